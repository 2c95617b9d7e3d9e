//! Kernels of convolutions.

use super::{OpKernel, kernel};
use crate::backend::cpu::conv::sliding;
use oflow_kernels::cuda::conv;

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("conv", |q, cx| {
            Ok(conv::conv(q, cx.input(0)?, cx.input(1)?, cx.opt_input(2), &sliding(cx)?, cx.output(0))?)
        }),
        kernel("conv_transpose", |q, cx| {
            let (x, weight) = (cx.input(0)?, cx.input(1)?);
            Ok(conv::conv_transpose(q, x, weight, cx.opt_input(2), &sliding(cx)?, cx.output(0))?)
        }),
        kernel("conv_weight", |q, cx| {
            Ok(conv::conv_weight(q, cx.input(0)?, cx.input(1)?, &sliding(cx)?, cx.output(0))?)
        }),
    ]
}
