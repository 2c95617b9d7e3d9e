//! Kernels of reductions and running sums.

use super::{OpKernel, kernel, with_scratch};
use crate::backend::cpu::reduce::{arg_ends, counted, ends, first_index};
use crate::error::Result;
use crate::ops::{InferCtx, KernelCx, TensorType};
use oflow_kernels::cpu::reduce::Reduce;
use oflow_kernels::cuda::{index, reduce, scan};

/// `truth` as [`reduce::reduce`] says.
fn reduction(name: &'static str, op: Reduce, truth: bool) -> OpKernel {
    let kernel = kernel(name, move |q, cx| {
        let (x, dims, out) = ends(cx)?;
        Ok(reduce::reduce(q, x, &out, op, truth, &dims, cx.workspace)?)
    });
    with_scratch(kernel, scratch)
}

fn scratch(c: &InferCtx<'_>, outs: &[TensorType]) -> Result<usize> {
    let outputs = outs[0].len();
    Ok(reduce::workspace(outputs, c.input(0)?.len() / outputs.max(1)))
}

fn arg(name: &'static str, max: bool) -> OpKernel {
    let kernel = kernel(name, move |q, cx| {
        let (x, out, d) = arg_ends(cx)?;
        Ok(reduce::argreduce(q, &x, &out, d, max, cx.workspace)?)
    });
    with_scratch(kernel, scratch)
}

pub(super) fn kernels() -> Vec<OpKernel> {
    let mean = kernel("mean", |q, cx| {
        let (x, dims, out) = ends(cx)?;
        Ok(reduce::mean(q, x, &out, &dims, counted(cx, &dims)?, cx.workspace)?)
    });
    let cumsum = kernel("cumsum", |q, cx| {
        let (x, out) = (KernelCx::line(cx.input(0)?), KernelCx::line(cx.output(0)));
        Ok(scan::cumsum(q, &x, &out, cx.dim("dim", 0)?, cx.bool("reverse")?, cx.workspace)?)
    });
    vec![
        reduction("sum", Reduce::Sum, false),
        reduction("prod", Reduce::Prod, false),
        reduction("amax", Reduce::Max, false),
        reduction("amin", Reduce::Min, false),
        reduction("any", Reduce::Max, true),
        reduction("all", Reduce::Min, true),
        reduction("count_nonzero", Reduce::Sum, true),
        with_scratch(mean, scratch),
        arg("argmax", true),
        arg("argmin", false),
        kernel("match_index", |q, cx| {
            let (d, first) = first_index(cx)?;
            Ok(index::match_index(q, cx.input(0)?, cx.input(1)?, cx.output(0), d, first)?)
        }),
        with_scratch(cumsum, |c, _| {
            let shape = c.shape(0)?;
            Ok(scan::workspace(shape, c.dim("dim", shape.len())?))
        }),
    ]
}
