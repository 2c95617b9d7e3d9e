//! Kernels of convolutions.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::conv::Sliding;

/// How the kernel of a call slides.
fn sliding(cx: &KernelCx<'_>) -> Result<Sliding> {
    Ok(Sliding::new(cx.ints("stride")?, cx.ints("padding")?, cx.ints("dilation")?, cx.int("groups")? as usize)?)
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("conv", |on, cx| {
            run!(on, conv::conv(cx.input(0)?, cx.input(1)?, cx.opt_input(2), &sliding(cx)?, cx.output(0)))
        }),
        both("conv_transpose", |on, cx| {
            run!(on, conv::conv_transpose(cx.input(0)?, cx.input(1)?, cx.opt_input(2), &sliding(cx)?, cx.output(0)))
        }),
        both("conv_weight", |on, cx| {
            run!(on, conv::conv_weight(cx.input(0)?, cx.input(1)?, &sliding(cx)?, cx.output(0)))
        }),
    ]
}
