//! Kernels of convolutions.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::conv::Sliding;
use oflow_kernels::cpu::conv;

/// How the kernel of a call slides.
pub(in crate::backend) fn sliding(cx: &KernelCx<'_>) -> Result<Sliding> {
    Ok(Sliding::new(cx.ints("stride")?, cx.ints("padding")?, cx.ints("dilation")?, cx.int("groups")? as usize)?)
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("conv", |cx| Ok(conv::conv(cx.input(0)?, cx.input(1)?, cx.opt_input(2), &sliding(cx)?, cx.output(0))?)),
        kernel("conv_transpose", |cx| {
            Ok(conv::conv_transpose(cx.input(0)?, cx.input(1)?, cx.opt_input(2), &sliding(cx)?, cx.output(0))?)
        }),
        kernel("conv_weight", |cx| Ok(conv::conv_weight(cx.input(0)?, cx.input(1)?, &sliding(cx)?, cx.output(0))?)),
    ]
}
