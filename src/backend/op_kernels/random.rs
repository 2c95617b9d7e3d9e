//! Kernels of random tensors: Philox numbers by seed, ordinal and logical index (I10).

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;

/// Seed and ordinal of a call.
fn drawn(cx: &KernelCx<'_>) -> Result<(u64, u64)> {
    Ok((cx.scalar("seed")?.to_i64() as u64, cx.scalar("ordinal")?.to_i64() as u64))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("rand", |on, cx| {
            let (s, n) = drawn(cx)?;
            let (lo, hi) = (cx.scalar("lo")?.to_f64(), cx.scalar("hi")?.to_f64());
            run!(on, random::uniform(cx.output(0), cx.output_box(0), s, n, lo, hi))
        }),
        both("randn", |on, cx| {
            let (s, n) = drawn(cx)?;
            let (mean, std) = (cx.scalar("mean")?.to_f64(), cx.scalar("std")?.to_f64());
            run!(on, random::normal(cx.output(0), cx.output_box(0), s, n, mean, std))
        }),
        both("bernoulli", |on, cx| {
            let (s, n) = drawn(cx)?;
            run!(on, random::bernoulli(cx.output(0), cx.output_box(0), s, n, cx.scalar("p")?.to_f64()))
        }),
        both("randint", |on, cx| {
            let (s, n) = drawn(cx)?;
            let (lo, hi) = (cx.scalar("lo")?.to_i64(), cx.scalar("hi")?.to_i64());
            run!(on, random::randint(cx.output(0), cx.output_box(0), s, n, lo, hi))
        }),
        both("dropout", |on, cx| {
            let (s, n) = drawn(cx)?;
            run!(on, random::dropout(cx.input(0)?, cx.output(0), cx.output_box(0), s, n, cx.scalar("p")?.to_f64()))
        }),
    ]
}
