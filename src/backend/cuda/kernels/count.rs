//! Kernels of places in sorted sequences, and of counts.

use super::{OpKernel, kernel, with_scratch};
use crate::backend::cpu::count::{bounds, counted};
use oflow_kernels::cuda::count;

pub(super) fn kernels() -> Vec<OpKernel> {
    let histogram = kernel("histogram_within", |q, cx| {
        let (lo, hi) = bounds(cx)?;
        Ok(count::histogram(q, cx.input(0)?, cx.output(0), lo, hi, cx.workspace)?)
    });
    vec![
        kernel("searchsorted", |q, cx| {
            Ok(count::searchsorted(q, cx.input(0)?, cx.input(1)?, cx.output(0), cx.bool("right")?)?)
        }),
        kernel("count_index", |q, cx| {
            let (first, size) = counted(cx);
            Ok(count::count_index(q, cx.input(0)?, cx.output(0), first, size)?)
        }),
        with_scratch(histogram, |_, outs| Ok(count::histogram_workspace(outs[0].len()))),
    ]
}
