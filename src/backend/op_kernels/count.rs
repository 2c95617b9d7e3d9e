//! Kernels of places in sorted sequences, and of counts.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cuda;

/// The bounds of a histogram.
fn bounds(cx: &KernelCx<'_>) -> Result<(f64, f64)> {
    Ok((cx.scalar("lo")?.to_f64(), cx.scalar("hi")?.to_f64()))
}

/// The logical index of the first count that lies here, and how many there are in all.
fn counted(cx: &KernelCx<'_>) -> (usize, usize) {
    let b = cx.output_box(0);
    (b.offset[0], b.logical[0])
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("searchsorted", |on, cx| {
            run!(on, count::searchsorted(cx.input(0)?, cx.input(1)?, cx.output(0), cx.bool("right")?))
        }),
        both("count_index", |on, cx| {
            let (first, size) = counted(cx);
            run!(on, count::count_index(cx.input(0)?, cx.output(0), first, size))
        }),
        both("histogram_within", |on, cx| {
            let (lo, hi) = bounds(cx)?;
            run!(on, count::histogram(cx.input(0)?, cx.output(0), lo, hi; cx.workspace))
        })
        .scratch(|_, outs| Ok(cuda::count::histogram_workspace(outs[0].len()))),
    ]
}
