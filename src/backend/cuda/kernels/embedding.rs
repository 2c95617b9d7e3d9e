//! Kernels of embedding.

use super::{OpKernel, kernel, with_scratch};
use oflow_kernels::cuda::{embedding, index};

pub(super) fn kernels() -> Vec<OpKernel> {
    let grad = kernel("embedding_grad", |q, cx| {
        let table = cx.output_box(0);
        let (first, rows) = (table.offset[0] as i64, table.logical[0]);
        Ok(embedding::embedding_grad(q, cx.input(0)?, cx.input(1)?, cx.output(0), first, rows, cx.workspace())?)
    });
    vec![
        kernel("embedding", |q, cx| {
            let table = cx.input_box(0)?;
            let (first, rows) = (table.offset[0] as i64, table.logical[0]);
            Ok(embedding::embedding(q, cx.input(0)?, cx.input(1)?, cx.output(0), first, rows)?)
        }),
        with_scratch(grad, |c, outs| Ok(embedding::embedding_grad_workspace(outs[0].shape[0], c.input(1)?.len()))),
        kernel("one_hot", |q, cx| {
            let b = cx.output_box(0);
            let last = b.offset.len() - 1;
            let (first, classes) = (b.offset[last] as i64, b.logical[last]);
            Ok(index::one_hot(q, cx.input(0)?, cx.output(0), first, classes)?)
        }),
    ]
}
