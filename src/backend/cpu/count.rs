//! Kernels of places in sorted sequences, and of counts.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::count;

/// The bounds of a histogram.
pub(in crate::backend) fn bounds(cx: &KernelCx<'_>) -> Result<(f64, f64)> {
    Ok((cx.scalar("lo")?.to_f64(), cx.scalar("hi")?.to_f64()))
}

/// The logical index of the first count that lies here, and how many there are in all.
pub(in crate::backend) fn counted(cx: &KernelCx<'_>) -> (usize, usize) {
    let b = cx.output_box(0);
    (b.offset[0], b.logical[0])
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("searchsorted", |cx| {
            Ok(count::searchsorted(cx.input(0)?, cx.input(1)?, cx.output(0), cx.bool("right")?)?)
        }),
        kernel("count_index", |cx| {
            let (first, size) = counted(cx);
            Ok(count::count_index(cx.input(0)?, cx.output(0), first, size)?)
        }),
        kernel("histogram_within", |cx| {
            let (lo, hi) = bounds(cx)?;
            Ok(count::histogram(cx.input(0)?, cx.output(0), lo, hi)?)
        }),
    ]
}
