//! Kernels of random tensors: the CPU's numbers.

use super::{OpKernel, kernel};
use crate::backend::cpu::drawn;
use oflow_kernels::cuda::random;

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("rand", |q, cx| {
            let (s, n) = drawn(cx)?;
            let (lo, hi) = (cx.scalar("lo")?.to_f64(), cx.scalar("hi")?.to_f64());
            Ok(random::uniform(q, cx.output(0), cx.output_box(0), s, n, lo, hi)?)
        }),
        kernel("randn", |q, cx| {
            let (s, n) = drawn(cx)?;
            let (mean, std) = (cx.scalar("mean")?.to_f64(), cx.scalar("std")?.to_f64());
            Ok(random::normal(q, cx.output(0), cx.output_box(0), s, n, mean, std)?)
        }),
        kernel("bernoulli", |q, cx| {
            let (s, n) = drawn(cx)?;
            Ok(random::bernoulli(q, cx.output(0), cx.output_box(0), s, n, cx.scalar("p")?.to_f64())?)
        }),
        kernel("randint", |q, cx| {
            let (s, n) = drawn(cx)?;
            let (lo, hi) = (cx.scalar("lo")?.to_i64(), cx.scalar("hi")?.to_i64());
            Ok(random::randint(q, cx.output(0), cx.output_box(0), s, n, lo, hi)?)
        }),
        kernel("dropout", |q, cx| {
            let (s, n) = drawn(cx)?;
            Ok(random::dropout(q, cx.input(0)?, cx.output(0), cx.output_box(0), s, n, cx.scalar("p")?.to_f64())?)
        }),
    ]
}
