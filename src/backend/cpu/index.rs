//! Kernels of indexing. Each rank adds the elements that it has.

use super::{OpKernel, kernel};
use crate::error::{Error, Result};
use crate::ops::KernelCx;
use oflow_kernels::cpu::{copy, gather, index, take};
use oflow_kernels::{Dims, ShardBox, Strides, View};

/// The input of `flip`, read backwards along the dims.
pub(in crate::backend) fn turned(cx: &KernelCx<'_>) -> Result<View> {
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
pub(in crate::backend) fn as_rows(cx: &KernelCx<'_>) -> Result<(View, View)> {
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
pub(in crate::backend) fn chosen_along(cx: &KernelCx<'_>, shard: &ShardBox) -> Result<(usize, i64, usize)> {
    let dim = cx.dim("dim", 0)?;
    Ok((dim, shard.offset[dim] as i64, shard.logical[dim]))
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("index_select", |cx| {
            let (x, dim) = (cx.input_box(0)?, cx.dim("dim", 0)?);
            index::check_indices(cx.input(1)?, 0, x.logical[dim] as i64)?;
            Ok(take::index_select(cx.input(0)?, cx.input(1)?, cx.output(0), dim, x.offset[dim] as i64)?)
        }),
        kernel("index_sum", |cx| {
            let ((values, out), table) = (as_rows(cx)?, cx.output_box(0));
            Ok(index::embedding_grad(&values, cx.input(1)?, &out, table.offset[0] as i64, table.logical[0])?)
        }),
        kernel("gather", |cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            Ok(gather::gather(cx.input(0)?, cx.input(1)?, cx.output(0), dim, first, size)?)
        }),
        kernel("scatter_into", |cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            Ok(gather::scatter(cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.output(0), dim, first, size)?)
        }),
        kernel("gather_last", |cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            Ok(gather::gather_last(cx.input(0)?, cx.input(1)?, cx.output(0), dim, first, size)?)
        }),
        kernel("scatter_fill", |cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            Ok(gather::scatter_fill(cx.input(0)?, cx.input(1)?, cx.scalar("s")?, cx.output(0), dim, first, size)?)
        }),
        kernel("scatter_sum", |cx| {
            let (dim, first, size) = chosen_along(cx, cx.output_box(0))?;
            Ok(gather::scatter_sum(cx.input(0)?, cx.input(1)?, cx.output(0), dim, first, size)?)
        }),
        kernel("wrap_index", |cx| {
            let size = cx.int("size")? as usize;
            let outside = |e| {
                let dim = cx.int("dim").unwrap_or_default();
                Error::from(e).help(format!("dim {dim} of the tensor that is indexed has size {size}"))
            };
            take::wrap_index(cx.input(0)?, cx.output(0), size).map_err(outside)
        }),
        kernel("last_index", |cx| {
            let (rows, base) = (cx.output_box(0), cx.input_box(0)?.offset[0] as i64);
            index::check_indices(cx.input(0)?, 0, rows.logical[0] as i64)?;
            Ok(take::last_index(cx.input(0)?, cx.output(0), rows.offset[0] as i64, base)?)
        }),
        kernel("flip", |cx| Ok(copy::copy(&turned(cx)?, cx.output(0))?)),
    ]
}
