//! Kernels of order along a dim.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::{InferCtx, KernelCx, TensorType};
use oflow_kernels::cpu::sort::Nth;
use oflow_kernels::{Scalar, View, cuda};

/// Input and outputs of a call, as lines where they have no dims, and the dim. Outputs that lack it have it as 1.
fn ends(cx: &KernelCx<'_>) -> Result<([View; 3], usize)> {
    let (x, dim) = (cx.input(0)?, cx.dim("dim", 0)?);
    let out = |i: usize| KernelCx::line(&KernelCx::keepdim_view(cx.output(i), x.rank(), &[dim]));
    Ok(([KernelCx::line(x), out(0), out(1)], dim))
}

/// Input and outputs of `middle` as lines.
fn whole(cx: &KernelCx<'_>) -> Result<[View; 3]> {
    let line = |v: &View| {
        // SAFETY: as many elements in the same contiguous memory.
        unsafe { v.restride(0, [v.len()].into_iter().collect(), [1].into_iter().collect()) }
    };
    Ok([line(cx.input(0)?), line(cx.output(0)), line(cx.output(1))])
}

/// The order and number of the element that `kthvalue` gives.
fn kth(cx: &KernelCx<'_>) -> Result<Nth> {
    Ok(Nth::At(cx.int("k")? as usize - 1))
}

/// Scratch memory of a GPU's kernel.
fn scratch(c: &InferCtx<'_>, _: &[TensorType]) -> Result<usize> {
    let x = c.input(0)?;
    Ok(cuda::sort::workspace(x.dtype, &x.shape, c.dim("dim", x.shape.len())?))
}

pub(super) fn rows() -> Vec<Row> {
    let ordered = |op: &'static str, flag: &'static str| {
        let row = both(op, move |on, cx| {
            let ([x, values, indices], dim) = ends(cx)?;
            run!(on, sort::sort(&x, &values, &indices, dim, cx.bool(flag)?; cx.workspace))
        });
        row.scratch(scratch)
    };
    vec![
        ordered("sort", "descending"),
        ordered("topk", "largest"),
        both("kthvalue", |on, cx| {
            let ([x, values, indices], dim) = ends(cx)?;
            run!(on, sort::nth(&x, &values, &indices, dim, kth(cx)?; cx.workspace))
        })
        .scratch(scratch),
        both("median", |on, cx| {
            let ([x, values, indices], dim) = ends(cx)?;
            run!(on, sort::nth(&x, &values, &indices, dim, Nth::Median; cx.workspace))
        })
        .scratch(scratch),
        both("middle", |on, cx| {
            let [x, value, index] = whole(cx)?;
            if x.is_empty() {
                run!(on, copy::fill(&value, Scalar::Float(f64::NAN)))?;
                return run!(on, copy::fill(&index, Scalar::Int(0)));
            }
            run!(on, sort::nth(&x, &value, &index, 0, Nth::Median; cx.workspace))
        })
        .scratch(|c, _| {
            let x = c.input(0)?;
            Ok(cuda::sort::workspace(x.dtype, &[x.len()], 0))
        }),
    ]
}
