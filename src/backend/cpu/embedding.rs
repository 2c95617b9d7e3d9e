//! Kernels of embedding. Each rank adds the rows of the table that it has.

use super::{OpKernel, kernel};
use crate::error::Result;
use oflow_kernels::View;
use oflow_kernels::cpu::index;

/// Checks indices against the logical table: alike on every rank that has them.
fn check(ids: &View, rows: usize) -> Result<()> {
    Ok(index::check_indices(ids, 0, rows as i64)?)
}

pub(super) fn kernels() -> Vec<OpKernel> {
    vec![
        kernel("embedding", |cx| {
            let table = cx.input_box(0)?;
            check(cx.input(1)?, table.logical[0])?;
            let first = table.offset[0] as i64;
            Ok(index::embedding(cx.input(0)?, cx.input(1)?, cx.output(0), first)?)
        }),
        kernel("embedding_grad", |cx| {
            let table = cx.output_box(0);
            let (first, rows) = (table.offset[0] as i64, table.logical[0]);
            Ok(index::embedding_grad(cx.input(0)?, cx.input(1)?, cx.output(0), first, rows)?)
        }),
        kernel("one_hot", |cx| {
            let b = cx.output_box(0);
            let last = b.offset.len() - 1;
            check(cx.input(0)?, b.logical[last])?;
            Ok(index::one_hot(cx.input(0)?, cx.output(0), b.offset[last] as i64)?)
        }),
    ]
}
