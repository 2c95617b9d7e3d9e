//! Embedding: rows of a table by index. A vocabulary split gives P(sum): each rank adds the rows it has.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, InferCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::Dims;

fn split_ids(c: &InferCtx<'_>, ids: usize, row: impl Fn(Sbp) -> Signature) -> Result<Vec<Signature>> {
    Ok((0..c.shape(ids)?.len()).map(|d| row(Sbp::Split(d))).collect())
}

const EMBEDDING: &str = "Rows of the table `weight`, `[rows, width]`, by index: integer ids of any shape give `[ids…, width]`.

# Errors
If an index is outside of the table. The kernel finds it, so only ranks that hold the index return the error; it ends the job.";

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    vec![
        OpDef::new("embedding(weight: float[2], ids: no_grad i32|i64) -> y").map(|o| {
            o.doc(EMBEDDING)
                .checks_values()
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
                    s.extend(super::taken());
                    Ok(s)
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
        OpDef::new("embedding_grad(dy: float[1..], ids: no_grad i32|i64; rows: int) -> dweight").map(|o| {
            o.doc("Gradient of embedding: dy's rows added up by index, in order.")
                .by_name_only()
                .checks_values()
                .check(|c| match c.shape(0)? {
                    [lead @ .., _] if lead == c.shape(1)? => Ok(()),
                    dy => Err(Error::shape(format!(
                        "dy has shape {dy:?}; that of the ids, {:?}, and one dim more is needed",
                        c.shape(1)?
                    ))),
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
            o.doc("For integer indices of any shape a new last dim of size `classes`: 1 at the index, 0 elsewhere.")
                .function("one_hot(Tensor ids, Int classes, *, DataType dtype=i64) -> Tensor")
                .checks_values()
                .check(|c| super::index_dtype(c, 0).and_then(|()| super::real_attr(c)))
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
                .grad(Grad::None)
                .samples(&["i64[3, 2]<4; classes=4", "i32[5]<3; classes=3, dtype=f32"])
        }),
    ]
}
