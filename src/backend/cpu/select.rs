//! Kernels of results whose length depends on values.

use super::{OpKernel, kernel};
use crate::ops::KernelCx;
use oflow_kernels::Scalar;
use oflow_kernels::cpu::{copy, select};

/// The element of the mask at which the shard of a result begins, whose first dim alone is split.
pub(in crate::backend) fn first_element(cx: &KernelCx<'_>) -> usize {
    let b = cx.output_box(0);
    b.offset.first().map_or(0, |row| row * b.logical[1..].iter().product::<usize>())
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("nonzero", |cx| Ok(select::nonzero(cx.input(0)?, cx.output(0), &cx.input_box(0)?.offset)?)),
        kernel("masked_select", |cx| Ok(select::masked_select(cx.input(0)?, cx.input(1)?, cx.output(0))?)),
        kernel("masked_spread", |cx| {
            Ok(select::masked_spread(cx.input(0)?, cx.input(1)?, cx.output(0), first_element(cx))?)
        }),
        kernel("unique", |cx| {
            let n = select::unique(cx.input(0)?, cx.output(0))? as i64;
            Ok(copy::fill(cx.output(1), Scalar::Int(n))?)
        }),
    ]
}
