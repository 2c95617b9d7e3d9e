//! Kernels of embedding. Each rank adds the rows of the table that it has.

use super::{On, Row, both, run};
use crate::error::Result;
use oflow_kernels::{View, cpu, cuda};

/// Checks indices against the logical table: alike on every rank that has them. Kernels of GPUs check while they read.
pub(super) fn check_on_cpu(on: On<'_>, ids: &View, rows: usize) -> Result<()> {
    match on {
        On::Cpu => Ok(cpu::index::check_indices(ids, 0, rows as i64)?),
        On::Cuda(_) => Ok(()),
    }
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("embedding", |on, cx| {
            let table = cx.input_box(0)?;
            let (first, rows) = (table.offset[0] as i64, table.logical[0]);
            check_on_cpu(on, cx.input(1)?, rows)?;
            run!(on, embedding::embedding(cx.input(0)?, cx.input(1)?, cx.output(0), first; rows))
        }),
        both("embedding_grad", |on, cx| {
            let table = cx.output_box(0);
            let (first, rows) = (table.offset[0] as i64, table.logical[0]);
            let (dy, ids, out) = (cx.input(0)?, cx.input(1)?, cx.output(0));
            run!(on, embedding::embedding_grad(dy, ids, out, first, rows; cx.workspace()))
        })
        .scratch(|c, outs| Ok(cuda::embedding::embedding_grad_workspace(outs[0].shape[0], c.input(1)?.len()))),
        both("one_hot", |on, cx| {
            let b = cx.output_box(0);
            let last = b.offset.len() - 1;
            let (first, classes) = (b.offset[last] as i64, b.logical[last]);
            check_on_cpu(on, cx.input(0)?, classes)?;
            run!(on, index::one_hot(cx.input(0)?, cx.output(0), first; classes))
        }),
    ]
}
