//! Kernels of order along a dim.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::cpu::copy;
use oflow_kernels::cpu::sort::{self, Nth};
use oflow_kernels::{Scalar, View};

/// Input and outputs of a call, as lines where they have no dims, and the dim. Outputs that lack it have it as 1.
pub(in crate::backend) fn ends(cx: &KernelCx<'_>) -> Result<([View; 3], usize)> {
    let (x, dim) = (cx.input(0)?, cx.dim("dim", 0)?);
    let out = |i: usize| KernelCx::line(&KernelCx::keepdim_view(cx.output(i), x.rank(), &[dim]));
    Ok(([KernelCx::line(x), out(0), out(1)], dim))
}

/// Input and outputs of `middle` as lines.
pub(in crate::backend) fn whole(cx: &KernelCx<'_>) -> Result<[View; 3]> {
    let line = |v: &View| {
        // SAFETY: as many elements in the same contiguous memory.
        unsafe { v.restride(0, [v.len()].into_iter().collect(), [1].into_iter().collect()) }
    };
    Ok([line(cx.input(0)?), line(cx.output(0)), line(cx.output(1))])
}

/// The order and number of the element that `kthvalue` gives.
pub(in crate::backend) fn kth(cx: &KernelCx<'_>) -> Result<Nth> {
    Ok(Nth::At(cx.int("k")? as usize - 1))
}

pub(super) fn kernels() -> Vec<OpKernel> {
    let ordered = |op: &'static str, flag: &'static str| {
        kernel(op, move |cx| {
            let ([x, values, indices], dim) = ends(cx)?;
            Ok(sort::sort(&x, &values, &indices, dim, cx.bool(flag)?)?)
        })
    };
    vec![
        ordered("sort", "descending"),
        ordered("topk", "largest"),
        kernel("kthvalue", |cx| {
            let ([x, values, indices], dim) = ends(cx)?;
            Ok(sort::nth(&x, &values, &indices, dim, kth(cx)?)?)
        }),
        kernel("median", |cx| {
            let ([x, values, indices], dim) = ends(cx)?;
            Ok(sort::nth(&x, &values, &indices, dim, Nth::Median)?)
        }),
        kernel("middle", |cx| {
            let [x, value, index] = whole(cx)?;
            if x.is_empty() {
                copy::fill(&value, Scalar::Float(f64::NAN))?;
                return Ok(copy::fill(&index, Scalar::Int(0))?);
            }
            Ok(sort::nth(&x, &value, &index, 0, Nth::Median)?)
        }),
    ]
}
