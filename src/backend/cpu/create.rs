//! Kernels of tensors made from nothing. Each rank makes only its shard.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::{Scalar, cpu};

/// Start and step of `arange` for the elements that lie here.
pub(in crate::backend) fn first_and_step(cx: &KernelCx<'_>) -> Result<(Scalar, Scalar)> {
    let (start, step) = (cx.scalar("start")?, cx.scalar("step")?);
    let first = cx.output_box(0).offset[0];
    let start = match (start, step) {
        (Scalar::Int(a), Scalar::Int(s)) => Scalar::Int(a.wrapping_add(s.wrapping_mul(first as i64))),
        (a, s) => Scalar::Float(a.to_f64() + s.to_f64() * first as f64),
    };
    Ok((start, step))
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("full", |cx| Ok(cpu::copy::fill(cx.output(0), cx.scalar("value")?)?)),
        kernel("arange", |cx| {
            let (start, step) = first_and_step(cx)?;
            Ok(cpu::index::arange(cx.output(0), start, step)?)
        }),
    ]
}
