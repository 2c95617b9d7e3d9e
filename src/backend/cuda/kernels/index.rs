//! Kernels of indexing.

use super::{OpKernel, kernel, with_scratch};
use crate::backend::cpu::index::{as_rows, chosen_along, turned};
use oflow_kernels::cuda::{copy, embedding, gather, take};

pub(super) fn kernels() -> Vec<OpKernel> {
    let sum = kernel("index_sum", |q, cx| {
        let ((values, out), table) = (as_rows(cx)?, cx.output_box(0));
        let (first, size) = (table.offset[0] as i64, table.logical[0]);
        Ok(embedding::embedding_grad(q, &values, cx.input(1)?, &out, first, size, cx.workspace())?)
    });
    let scatter_sum = kernel("scatter_sum", |q, cx| {
        let (dim, first, size) = chosen_along(cx, cx.output_box(0))?;
        let (values, ids, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
        Ok(gather::scatter_sum(q, values, ids, out, dim, first, size, cx.workspace())?)
    });
    let gather_last = kernel("gather_last", |q, cx| {
        let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
        let (x, ids, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
        Ok(gather::gather_last(q, x, ids, out, dim, first, size, cx.workspace())?)
    });
    vec![
        with_scratch(gather_last, |c, _| Ok(c.input(0)?.len())),
        kernel("scatter_fill", |q, cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            let (x, ids, s, out) = (cx.input(0)?, cx.input(1)?, cx.scalar("s")?, cx.output(0));
            Ok(gather::scatter_fill(q, x, ids, s, out, dim, first, size)?)
        }),
        kernel("gather", |q, cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            Ok(gather::gather(q, cx.input(0)?, cx.input(1)?, cx.output(0), dim, first, size)?)
        }),
        kernel("scatter_into", |q, cx| {
            let (dim, first, size) = chosen_along(cx, cx.input_box(0)?)?;
            let (x, ids, src, out) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.output(0));
            Ok(gather::scatter(q, x, ids, src, out, dim, first, size)?)
        }),
        with_scratch(scatter_sum, |_, outs| Ok(gather::scatter_sum_workspace(outs[0].dtype, outs[0].len()))),
        kernel("index_select", |q, cx| {
            let (x, dim) = (cx.input_box(0)?, cx.dim("dim", 0)?);
            let (first, size) = (x.offset[dim] as i64, x.logical[dim]);
            Ok(take::index_select(q, cx.input(0)?, cx.input(1)?, cx.output(0), dim, first, size)?)
        }),
        with_scratch(sum, |c, outs| Ok(embedding::embedding_grad_workspace(outs[0].shape[0], c.input(1)?.len()))),
        kernel("wrap_index", |q, cx| Ok(take::wrap_index(q, cx.input(0)?, cx.output(0), cx.int("size")? as usize)?)),
        kernel("last_index", |q, cx| {
            let (rows, base) = (cx.output_box(0), cx.input_box(0)?.offset[0] as i64);
            Ok(take::last_index(q, cx.input(0)?, cx.output(0), rows.offset[0] as i64, base, rows.logical[0])?)
        }),
        kernel("flip", |q, cx| Ok(copy::copy(q, &turned(cx)?, cx.output(0))?)),
    ]
}
