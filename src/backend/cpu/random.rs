//! Kernels of random tensors: Philox numbers by seed, ordinal and logical index (I10).

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::random;

/// Seed and ordinal of a call.
pub(in crate::backend) fn drawn(cx: &KernelCx<'_>) -> Result<(u64, u64)> {
    Ok((cx.scalar("seed")?.to_i64() as u64, cx.scalar("ordinal")?.to_i64() as u64))
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("rand", |cx| {
            let (s, n) = drawn(cx)?;
            let (lo, hi) = (cx.scalar("lo")?.to_f64(), cx.scalar("hi")?.to_f64());
            Ok(random::uniform(cx.output(0), cx.output_box(0), s, n, lo, hi)?)
        }),
        kernel("randn", |cx| {
            let (s, n) = drawn(cx)?;
            let (mean, std) = (cx.scalar("mean")?.to_f64(), cx.scalar("std")?.to_f64());
            Ok(random::normal(cx.output(0), cx.output_box(0), s, n, mean, std)?)
        }),
        kernel("bernoulli", |cx| {
            let (s, n) = drawn(cx)?;
            Ok(random::bernoulli(cx.output(0), cx.output_box(0), s, n, cx.scalar("p")?.to_f64())?)
        }),
        kernel("randint", |cx| {
            let (s, n) = drawn(cx)?;
            let (lo, hi) = (cx.scalar("lo")?.to_i64(), cx.scalar("hi")?.to_i64());
            Ok(random::randint(cx.output(0), cx.output_box(0), s, n, lo, hi)?)
        }),
        kernel("dropout", |cx| {
            let (s, n) = drawn(cx)?;
            Ok(random::dropout(cx.input(0)?, cx.output(0), cx.output_box(0), s, n, cx.scalar("p")?.to_f64())?)
        }),
    ]
}
