//! Kernels of indexing. Each rank adds the elements that it has.

use super::embedding::check_on_cpu;
use super::{On, Row, both, run};
use crate::error::Result;
use crate::ops::KernelCx;
use oflow_kernels::{Dims, ShardBox, Strides, View, cuda};

/// The input of `flip`, read backwards along the dims.
fn turned(cx: &KernelCx<'_>) -> Result<View> {
    let x = cx.input(0)?;
    let dims = if cx.ints("dims")?.is_empty() { Default::default() } else { cx.dims("dims", 0)? };
    let (mut strides, mut offset): (Strides, isize) = (x.strides().into(), 0);
    for d in dims {
        // A tensor without elements has no last one.
        offset += x.dims()[d].saturating_sub(1) as isize * strides[d];
        strides[d] = -strides[d];
    }
    let offset = if x.is_empty() { 0 } else { offset };
    // SAFETY: the same elements in another order.
    Ok(unsafe { x.restride(offset, x.dims().into(), strides) })
}

/// The inputs and the output of `index_sum` as rows: a table, and rows by the dims of the indices.
fn as_rows(cx: &KernelCx<'_>) -> Result<(View, View)> {
    let (values, ids, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
    let width: usize = out.dims()[1..].iter().product();
    let rows = |v: &View, lead: &[usize]| {
        let dims: Dims = lead.iter().copied().chain([width]).collect();
        let strides = oflow_kernels::view::contiguous_strides(&dims);
        // SAFETY: as many elements in the same contiguous memory.
        unsafe { v.restride(0, dims, strides) }
    };
    Ok((rows(values, ids.dims()), rows(out, &out.dims()[..1])))
}

/// The dim that indices choose along, the logical index of the first element of a shard there, and the size of the whole dim.
fn chosen_along(cx: &KernelCx<'_>, shard: &ShardBox) -> Result<(usize, i64, usize)> {
    let dim = cx.dim("dim", 0)?;
    Ok((dim, shard.offset[dim] as i64, shard.logical[dim]))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("index_select", |on, cx| {
            let (x, dim) = (cx.input_box(0)?, cx.dim("dim", 0)?);
            let (first, size) = (x.offset[dim] as i64, x.logical[dim]);
            check_on_cpu(on, cx.input(1)?, size)?;
            run!(on, take::index_select(cx.input(0)?, cx.input(1)?, cx.output(0), dim, first; size))
        }),
        both("index_sum", |on, cx| {
            let ((values, out), table) = (as_rows(cx)?, cx.output_box(0));
            let (first, size) = (table.offset[0] as i64, table.logical[0]);
            run!(on, embedding::embedding_grad(&values, cx.input(1)?, &out, first, size; cx.workspace()))
        })
        .scratch(|c, outs| Ok(cuda::embedding::embedding_grad_workspace(outs[0].shape[0], c.input(1)?.len()))),
        both("gather", |on, cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            run!(on, gather::gather(cx.input(0)?, cx.input(1)?, cx.output(0), dim, first, size))
        }),
        both("scatter_into", |on, cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            let (x, ids, src, out) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.output(0));
            run!(on, gather::scatter(x, ids, src, out, dim, first, size))
        }),
        both("gather_last", |on, cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            run!(on, gather::gather_last(cx.input(0)?, cx.input(1)?, cx.output(0), dim, first, size; cx.workspace()))
        })
        .scratch(|c, _| Ok(c.input(0)?.len())),
        both("scatter_fill", |on, cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            let (x, ids, s, out) = (cx.input(0)?, cx.input(1)?, cx.scalar("s")?, cx.output(0));
            run!(on, gather::scatter_fill(x, ids, s, out, dim, first, size))
        }),
        both("scatter_sum", |on, cx| {
            let (dim, first, size) = chosen_along(cx, cx.output_box(0))?;
            let (values, ids, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
            run!(on, gather::scatter_sum(values, ids, out, dim, first, size; cx.workspace()))
        })
        .scratch(|_, outs| Ok(cuda::gather::scatter_sum_workspace(outs[0].dtype, outs[0].len()))),
        both("wrap_index", |on, cx| {
            let size = cx.int("size")? as usize;
            run!(on, take::wrap_index(cx.input(0)?, cx.output(0), size)).map_err(|e| match on {
                On::Cpu => {
                    let dim = cx.int("dim").unwrap_or_default();
                    e.help(format!("dim {dim} of the tensor that is indexed has size {size}"))
                }
                On::Cuda(_) => e,
            })
        }),
        both("last_index", |on, cx| {
            let (rows, base) = (cx.output_box(0), cx.input_box(0)?.offset[0] as i64);
            let (first, size) = (rows.offset[0] as i64, rows.logical[0]);
            check_on_cpu(on, cx.input(0)?, size)?;
            run!(on, take::last_index(cx.input(0)?, cx.output(0), first, base; size))
        }),
        both("flip", |on, cx| run!(on, copy::copy(&turned(cx)?, cx.output(0)))),
    ]
}
