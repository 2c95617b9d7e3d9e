//! Kernels of reductions and running sums.

use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::{InferCtx, KernelCx, TensorType};
use oflow_kernels::cpu::reduce::Reduce;
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, View, cpu, cuda};
use smallvec::SmallVec;

/// The input, the dims that are reduced, and the output with these dims as 1.
fn ends<'a>(cx: &'a KernelCx<'_>) -> Result<(&'a View, SmallVec<[usize; 6]>, View)> {
    let (x, dims) = (cx.input(0)?, cx.dims("dims", 0)?);
    let out = KernelCx::keepdim_view(cx.output(0), x.rank(), &dims);
    Ok((x, dims, out))
}

/// How many logical elements each mean is of.
fn counted(cx: &KernelCx<'_>, dims: &[usize]) -> Result<usize> {
    let b = cx.input_box(0)?;
    Ok(dims.iter().map(|d| b.logical[*d]).product())
}

/// Input, output and dim of `argmax` and its like, as lines where they have no dims.
fn arg_ends(cx: &KernelCx<'_>) -> Result<(View, View, usize)> {
    let (x, d) = (cx.input(0)?, cx.dim("dim", 0)?);
    let out = KernelCx::keepdim_view(cx.output(0), x.rank(), &[d]);
    Ok((KernelCx::line(x), KernelCx::line(&out), d))
}

/// The logical index of the first element that lies here along the dim of `match_index`.
fn first_index(cx: &KernelCx<'_>) -> Result<(usize, i64)> {
    let d = cx.dim("dim", 0)?;
    Ok((d, cx.output_box(0).offset.get(d).copied().unwrap_or(0) as i64))
}

/// Scratch memory of a reduction on a GPU.
fn scratch(c: &InferCtx<'_>, outs: &[TensorType]) -> Result<usize> {
    let outputs = outs[0].len();
    Ok(cuda::reduce::workspace(outputs, c.input(0)?.len() / outputs.max(1)))
}

fn reduction(name: &'static str, op: Reduce) -> Row {
    let row = both(name, move |on, cx| {
        let (x, dims, out) = ends(cx)?;
        match on {
            On::Cpu => Ok(cpu::reduce::reduce(x, &out, op, &dims)?),
            On::Cuda(q) => Ok(cuda::reduce::reduce(q, x, &out, op, false, &dims, cx.workspace)?),
        }
    });
    row.scratch(scratch)
}

/// `any`, `all` and `count_nonzero`, of the truth of elements. The CPU makes bools of other dtypes first; a GPU's kernel tests as it reads.
fn quantor(name: &'static str, op: Reduce) -> Row {
    let row = both(name, move |on, cx| {
        let (x, dims, out) = ends(cx)?;
        if let On::Cuda(q) = on {
            return Ok(cuda::reduce::reduce(q, x, &out, op, true, &dims, cx.workspace)?);
        }
        if x.dtype() == DType::Bool {
            return Ok(cpu::reduce::reduce(x, &out, op, &dims)?);
        }
        let (scratch, strides) = (cx.workspace().ptr(), contiguous_strides(x.dims()));
        // SAFETY: the scratch memory has a byte for each element of x and is used by this call alone.
        let truth = unsafe { View::from_raw(scratch, DType::Bool, x.dims().into(), strides) };
        cpu::copy::copy(x, &truth)?;
        Ok(cpu::reduce::reduce(&truth, &out, op, &dims)?)
    });
    row.scratch(scratch).scratch_on_cpu(|c, _| {
        let x = c.input(0)?;
        Ok(if x.dtype == DType::Bool { 0 } else { x.len() })
    })
}

fn arg(name: &'static str, max: bool) -> Row {
    let row = both(name, move |on, cx| {
        let (x, out, d) = arg_ends(cx)?;
        match on {
            On::Cpu => Ok(cpu::argreduce::argreduce(&x, &out, d, max, 0)?),
            On::Cuda(q) => Ok(cuda::reduce::argreduce(q, &x, &out, d, max, cx.workspace)?),
        }
    });
    row.scratch(scratch)
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        reduction("sum", Reduce::Sum),
        reduction("prod", Reduce::Prod),
        reduction("amax", Reduce::Max),
        reduction("amin", Reduce::Min),
        quantor("any", Reduce::Max),
        quantor("all", Reduce::Min),
        quantor("count_nonzero", Reduce::Sum),
        both("mean", |on, cx| {
            let (x, dims, out) = ends(cx)?;
            run!(on, reduce::mean(x, &out, &dims, counted(cx, &dims)?; cx.workspace))
        })
        .scratch(scratch),
        arg("argmax", true),
        arg("argmin", false),
        both("match_index", |on, cx| {
            let ((d, first), out) = (first_index(cx)?, cx.output(0));
            match on {
                On::Cpu => Ok(cpu::argreduce::match_index(cx.input(0)?, cx.input(1)?, out, d, first)?),
                On::Cuda(q) => Ok(cuda::index::match_index(q, cx.input(0)?, cx.input(1)?, out, d, first)?),
            }
        }),
        both("cumsum", |on, cx| {
            let (x, out) = (KernelCx::line(cx.input(0)?), KernelCx::line(cx.output(0)));
            let (dim, reverse) = (cx.dim("dim", 0)?, cx.bool("reverse")?);
            match on {
                On::Cpu => Ok(cpu::reduce::cumsum(&x, &out, dim, reverse)?),
                On::Cuda(q) => Ok(cuda::scan::cumsum(q, &x, &out, dim, reverse, cx.workspace)?),
            }
        })
        .scratch(|c, _| {
            let shape = c.shape(0)?;
            Ok(cuda::scan::workspace(shape, c.dim("dim", shape.len())?))
        }),
    ]
}
