//! Kernels of tensors made from nothing. Each rank makes only its shard.

use super::shape::strided;
use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::{Scalar, View};

/// The logical index of the first element that lies here.
fn first_at(cx: &KernelCx<'_>) -> i64 {
    cx.output_box(0).offset[0] as i64
}

/// A part of `linspace`: its elements are `start + step * i`, `i` from `first` on.
struct Steps {
    pub part: View,
    pub start: Scalar,
    pub step: Scalar,
    pub first: i64,
}

/// The first half counts from the start, the second from the end, so that both are met exactly.
fn linspace_parts(cx: &KernelCx<'_>) -> Result<[Steps; 2]> {
    let (out, b) = (cx.output(0), cx.output_box(0));
    let (start, end) = (cx.scalar("start")?.to_f64(), cx.scalar("end")?.to_f64());
    let (n, at) = (b.logical[0], b.offset[0]);
    let step = if n < 2 { 0.0 } else { (end - start) / (n - 1) as f64 };
    let front = n.div_ceil(2).saturating_sub(at).min(out.len());
    let of = |from: usize, count: usize, start: f64, zero: usize| Steps {
        part: strided(out, 0, from, 1, count),
        start: Scalar::Float(start),
        step: Scalar::Float(step),
        first: (at + from) as i64 - zero as i64,
    };
    Ok([of(0, front, start, 0), of(front, out.len() - front, end, n.saturating_sub(1))])
}

/// View of the elements of the diagonal of `eye` that lie in this rank's shard.
fn eye_diagonal(cx: &KernelCx<'_>) -> View {
    let (out, b) = (cx.output(0), cx.output_box(0));
    let first = b.offset[0].max(b.offset[1]);
    let end = (b.offset[0] + b.size[0]).min(b.offset[1] + b.size[1]);
    let len = end.saturating_sub(first);
    let s = out.strides();
    let offset = match len {
        0 => 0,
        _ => (first - b.offset[0]) as isize * s[0] + (first - b.offset[1]) as isize * s[1],
    };
    // SAFETY: elements of the output: the diagonal from where it enters the shard to where it leaves it.
    unsafe { out.restride(offset, [len].into_iter().collect(), [s[0] + s[1]].into_iter().collect()) }
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("full", |on, cx| run!(on, copy::fill(cx.output(0), cx.scalar("value")?))),
        both("arange", |on, cx| {
            run!(on, index::arange(cx.output(0), cx.scalar("start")?, cx.scalar("step")?, first_at(cx)))
        }),
        both("linspace", |on, cx| {
            let parts = linspace_parts(cx)?;
            parts.iter().try_for_each(|p| run!(on, index::arange(&p.part, p.start, p.step, p.first)))
        }),
        both("eye", |on, cx| {
            run!(on, copy::fill(cx.output(0), Scalar::Int(0)))?;
            run!(on, copy::fill(&eye_diagonal(cx), Scalar::Int(1)))
        }),
    ]
}
