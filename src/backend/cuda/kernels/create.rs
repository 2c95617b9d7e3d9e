//! Kernels of tensors made from nothing.

use super::{OpKernel, kernel};
use crate::backend::cpu::{eye_diagonal, first_at, linspace_parts};
use oflow_kernels::{Scalar, cuda};

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("full", |q, cx| Ok(cuda::fill::fill(q, cx.output(0), cx.scalar("value")?)?)),
        kernel("arange", |q, cx| {
            Ok(cuda::index::arange(q, cx.output(0), cx.scalar("start")?, cx.scalar("step")?, first_at(cx))?)
        }),
        kernel("linspace", |q, cx| {
            let parts = linspace_parts(cx)?;
            Ok(parts.iter().try_for_each(|p| cuda::index::arange(q, &p.part, p.start, p.step, p.first))?)
        }),
        kernel("eye", |q, cx| {
            cuda::fill::fill(q, cx.output(0), Scalar::Int(0))?;
            Ok(cuda::fill::fill(q, &eye_diagonal(cx), Scalar::Int(1))?)
        }),
    ]
}
