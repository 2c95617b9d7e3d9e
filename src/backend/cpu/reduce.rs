//! Kernels of reductions and running sums.

use super::{OpKernel, kernel};
use crate::error::Result;
use crate::ops::{KernelCx, KernelDef};
use oflow_kernels::cpu::argreduce::{argreduce, match_index};
use oflow_kernels::cpu::copy;
use oflow_kernels::cpu::reduce::{self, Reduce};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, View};
use smallvec::SmallVec;

/// The input, the dims that are reduced, and the output with these dims as 1.
pub(in crate::backend) fn ends<'a>(cx: &'a KernelCx<'_>) -> Result<(&'a View, SmallVec<[usize; 6]>, View)> {
    let (x, dims) = (cx.input(0)?, cx.dims("dims", 0)?);
    let out = KernelCx::keepdim_view(cx.output(0), x.rank(), &dims);
    Ok((x, dims, out))
}

/// How many logical elements each mean is of.
pub(in crate::backend) fn counted(cx: &KernelCx<'_>, dims: &[usize]) -> Result<usize> {
    let b = cx.input_box(0)?;
    Ok(dims.iter().map(|d| b.logical[*d]).product())
}

/// Input, output and dim of `argmax` and its like, as lines where they have no dims.
pub(in crate::backend) fn arg_ends(cx: &KernelCx<'_>) -> Result<(View, View, usize)> {
    let (x, d) = (cx.input(0)?, cx.dim("dim", 0)?);
    let out = KernelCx::keepdim_view(cx.output(0), x.rank(), &[d]);
    Ok((KernelCx::line(x), KernelCx::line(&out), d))
}

/// The logical index of the first element that lies here along the dim of `match_index`.
pub(in crate::backend) fn first_index(cx: &KernelCx<'_>) -> Result<(usize, i64)> {
    let d = cx.dim("dim", 0)?;
    Ok((d, cx.output_box(0).offset.get(d).copied().unwrap_or(0) as i64))
}

fn reduction(name: &'static str, op: Reduce) -> OpKernel {
    kernel(name, move |cx| {
        let (x, dims, out) = ends(cx)?;
        Ok(reduce::reduce(x, &out, op, &dims)?)
    })
}

/// `any`, `all` and `count_nonzero`: what is no bool is made one first.
fn quantor(name: &'static str, op: Reduce) -> OpKernel {
    let kernel = KernelDef::cpu(&format!("{name}_cpu"), move |cx| {
        let (x, dims, out) = ends(cx)?;
        if x.dtype() == DType::Bool {
            return Ok(reduce::reduce(x, &out, op, &dims)?);
        }
        let (scratch, strides) = (cx.workspace().ptr(), contiguous_strides(x.dims()));
        // SAFETY: the scratch memory has a byte for each element of x and is used by this call alone.
        let truth = unsafe { View::from_raw(scratch, DType::Bool, x.dims().into(), strides) };
        copy::copy(x, &truth)?;
        Ok(reduce::reduce(&truth, &out, op, &dims)?)
    });
    let kernel = kernel.with_workspace(|c, _| {
        let x = c.input(0)?;
        Ok(if x.dtype == DType::Bool { 0 } else { x.len() })
    });
    (name, kernel)
}

fn arg(name: &'static str, max: bool) -> OpKernel {
    kernel(name, move |cx| {
        let (x, out, d) = arg_ends(cx)?;
        Ok(argreduce(&x, &out, d, max, 0)?)
    })
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        reduction("sum", Reduce::Sum),
        reduction("prod", Reduce::Prod),
        reduction("amax", Reduce::Max),
        reduction("amin", Reduce::Min),
        quantor("any", Reduce::Max),
        quantor("all", Reduce::Min),
        quantor("count_nonzero", Reduce::Sum),
        kernel("mean", |cx| {
            let (x, dims, out) = ends(cx)?;
            Ok(reduce::mean(x, &out, &dims, counted(cx, &dims)?)?)
        }),
        arg("argmax", true),
        arg("argmin", false),
        kernel("match_index", |cx| {
            let (d, first) = first_index(cx)?;
            Ok(match_index(cx.input(0)?, cx.input(1)?, cx.output(0), d, first)?)
        }),
        kernel("cumsum", |cx| {
            let (x, out) = (KernelCx::line(cx.input(0)?), KernelCx::line(cx.output(0)));
            Ok(reduce::cumsum(&x, &out, cx.dim("dim", 0)?, cx.bool("reverse")?)?)
        }),
    ]
}
