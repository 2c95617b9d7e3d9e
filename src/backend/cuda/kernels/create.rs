//! Kernels of tensors made from nothing.

use super::{OpKernel, kernel};
use crate::backend::cpu::first_and_step;
use oflow_kernels::cuda;

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("full", |q, cx| Ok(cuda::fill::fill(q, cx.output(0), cx.scalar("value")?)?)),
        kernel("arange", |q, cx| {
            let (start, step) = first_and_step(cx)?;
            Ok(cuda::index::arange(q, cx.output(0), start, step)?)
        }),
    ]
}
