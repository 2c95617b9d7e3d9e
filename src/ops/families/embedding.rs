//! Embedding: rows of a table by index. A vocabulary split gives P(sum): each rank adds the rows it has.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, InferCtx, KernelDef, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::cpu::index;
use oflow_kernels::{Dims, View, cuda};

/// Checks indices against the logical table: alike on every rank that has them.
fn check(ids: &View, rows: usize) -> Result<()> {
    Ok(index::check_indices(ids, 0, rows as i64)?)
}

fn split_ids(c: &InferCtx<'_>, ids: usize, row: impl Fn(Sbp) -> Signature) -> Result<Vec<Signature>> {
    Ok((0..c.shape(ids)?.len()).map(|d| row(Sbp::Split(d))).collect())
}

fn embedding_grad_cuda() -> KernelDef {
    KernelDef::cuda("embedding_grad_cuda", |cx| {
        let first = cx.output_box(0).offset[0] as i64;
        let (q, dy, ids) = (cx.queue()?, cx.input(0)?, cx.input(1)?);
        Ok(cuda::embedding::embedding_grad(q, dy, ids, cx.output(0), first, cx.workspace())?)
    })
    .with_workspace(|ctx, outs| Ok(cuda::embedding::embedding_grad_workspace(outs[0].shape[0], ctx.input(1)?.len())))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    vec![
        OpDef::new("embedding(weight: float, ids: int) -> y").map(|o| {
            o.doc("Rows of a table: y[…] = weight[ids[…]].")
                .check(|c| match c.shape(0)?.len() {
                    2 => super::index_dtype(c, 1),
                    _ => Err(Error::shape(format!("the table must have 2 dims, not {:?}", c.shape(0)?))),
                })
                .shape1(|c| {
                    let mut s: Dims = c.shape(1)?.into();
                    s.push(c.shape(0)?[1]);
                    Ok(s)
                })
                .dtype(DTypeRule::Input(0))
                .get_sbp(move |c| {
                    let last = c.shape(1)?.len();
                    let mut s = split_ids(c, 1, |d| Signature::new(&[b, d], &[d]))?;
                    s.push(Signature::new(&[Sbp::Split(1), b], &[Sbp::Split(last)]));
                    s.push(Signature::new(&[Sbp::Split(0), b], &[p]));
                    s.push(Signature::new(&[p, b], &[p]));
                    Ok(s)
                })
                .cpu(|cx| {
                    let table = cx.input_box(0)?;
                    check(cx.input(1)?, table.logical[0])?;
                    let first = table.offset[0] as i64;
                    Ok(index::embedding(cx.input(0)?, cx.input(1)?, cx.output(0), first)?)
                })
                .cuda(|cx| {
                    let table = cx.input_box(0)?;
                    let (first, rows) = (table.offset[0] as i64, table.logical[0]);
                    let (q, weight, ids) = (cx.queue()?, cx.input(0)?, cx.input(1)?);
                    Ok(cuda::embedding::embedding(q, weight, ids, cx.output(0), first, rows)?)
                })
                .grad(Grad::rule_saving(&[1], &[], |g| {
                    let Some(dy) = g.grad(0) else { return Ok(()) };
                    if g.needs(0) {
                        let rows = g.input_shape(0)[0];
                        let ids = g.input(1)?;
                        let dw = g.call("embedding_grad", &[dy, ids], &[("rows", rows.into())])?;
                        g.set(0, dw)?;
                    }
                    Ok(())
                }))
                .samples(&["f32[6, 4] i64[3, 2]<6", "f64[5, 3] i32[4]<5", "bf16[3, 2] i64[4]<3"])
        }),
        OpDef::new("embedding_grad(dy: float, ids: int; rows: int) -> dweight").map(|o| {
            o.doc("Gradient of embedding: dy's rows added up by index, in order.")
                .check(|c| {
                    super::index_dtype(c, 1)?;
                    match c.shape(0)? {
                        [lead @ .., _] if lead == c.shape(1)? => Ok(()),
                        dy => Err(Error::shape(format!(
                            "dy has shape {dy:?}; that of the ids, {:?}, and one dim more is needed",
                            c.shape(1)?
                        ))),
                    }
                })
                .shape1(|c| Ok([c.size("rows")?, *c.shape(0)?.last().unwrap_or(&0)].into_iter().collect()))
                .dtype(DTypeRule::Input(0))
                .get_sbp(move |c| {
                    let last = c.shape(1)?.len();
                    let mut s = split_ids(c, 1, |d| Signature::new(&[d, d], &[p]))?;
                    s.push(Signature::new(&[Sbp::Split(last), b], &[Sbp::Split(1)]));
                    s.push(Signature::new(&[b, b], &[Sbp::Split(0)]));
                    s.push(Signature::new(&[p, b], &[p]));
                    Ok(s)
                })
                .cpu(|cx| {
                    let first = cx.output_box(0).offset[0] as i64;
                    Ok(index::embedding_grad(cx.input(0)?, cx.input(1)?, cx.output(0), first)?)
                })
                .kernel(embedding_grad_cuda())
                .grad(Grad::rule_saving(&[1], &[], |g| {
                    let Some(v) = g.grad(0) else { return Ok(()) };
                    if g.needs(0) {
                        let ids = g.input(1)?;
                        let d = g.call("embedding", &[v, ids], &[])?;
                        g.set(0, d)?;
                    }
                    Ok(())
                }))
                .samples(&["f32[3, 2, 4] i64[3, 2]<6; rows=6", "f64[4, 3] i64[4]<5; rows=5"])
        }),
        OpDef::new("one_hot(ids: int; classes: int, dtype: dtype = i64) -> y").map(|o| {
            o.doc("1 at the index, 0 elsewhere, along a new last dim.")
                .check(|c| super::index_dtype(c, 0).and_then(|()| super::builtin_attr(c)))
                .shape1(|c| {
                    let mut s: Dims = c.shape(0)?.into();
                    s.push(c.size("classes")?);
                    Ok(s)
                })
                .dtype(DTypeRule::Attr)
                .get_sbp(|c| {
                    let rank = c.shape(0)?.len();
                    let mut s = split_ids(c, 0, |d| Signature::new(&[d], &[d]))?;
                    s.push(Signature::new(&[Sbp::Broadcast], &[Sbp::Split(rank)]));
                    Ok(s)
                })
                .cpu(|cx| {
                    let b = cx.output_box(0);
                    let last = b.offset.len() - 1;
                    check(cx.input(0)?, b.logical[last])?;
                    Ok(index::one_hot(cx.input(0)?, cx.output(0), b.offset[last] as i64)?)
                })
                .cuda(|cx| {
                    let b = cx.output_box(0);
                    let last = b.offset.len() - 1;
                    let (first, classes) = (b.offset[last] as i64, b.logical[last]);
                    Ok(cuda::index::one_hot(cx.queue()?, cx.input(0)?, cx.output(0), first, classes)?)
                })
                .grad(Grad::None)
                .samples(&["i64[3, 2]<4; classes=4", "i32[5]<3; classes=3, dtype=f32"])
        }),
    ]
}
