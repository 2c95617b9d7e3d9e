//! A product with a weight, and a bias: what a linear layer computes, as one op. The bias costs no pass of its own over the
//! result.

use crate::error::{Error, Result};
use crate::ops::{AttrValue, Grad, InferCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::Dims;

fn shape(c: &InferCtx<'_>) -> Result<Dims> {
    let (x, w, b) = (c.shape(0)?, c.shape(1)?, c.shape(2)?);
    let (Some((k, lead)), [out, inputs]) = (x.split_last(), w) else {
        return Err(Error::shape(format!("x needs a last dim and the weight two dims, not {x:?} and {w:?}")));
    };
    if lead.is_empty() {
        return Err(Error::shape("x needs at least 2 dims").help("`Tensor::linear` takes vectors too"));
    }
    if k != inputs {
        return Err(Error::shape(format!("x has {k} features, the weight takes {inputs}"))
            .help("the weight is [out, in]; the last dim of x must equal in"));
    }
    if b != [*out] {
        return Err(Error::shape(format!("the bias has shape {b:?}, the weight gives {out} features")));
    }
    let mut dims: Dims = lead.into();
    dims.push(*out);
    Ok(dims)
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    vec![OpDef::new("linear(x: float, weight: float, bias: float) -> y").and_then(|o| {
        Ok(o.product_by_parts("x", "weight")?
            .adds("bias")?
            .doc("x weightᵀ + bias, with a weight of shape [out, in].")
            .strided()
            .check(|c| super::one_dtype(c, &[0, 1, 2]))
            .shape1(shape)
            .get_sbp(move |c| {
                let last = c.shape(0)?.len() - 1;
                let mut s: Vec<Signature> =
                    (0..last).map(|d| Signature::new(&[Sbp::Split(d), b, b], &[Sbp::Split(d)])).collect();
                s.push(Signature::new(&[b, Sbp::Split(0), Sbp::Split(0)], &[Sbp::Split(last)]));
                // The bias is a summand like the products: it must be added once.
                s.push(Signature::new(&[Sbp::Split(last), Sbp::Split(1), p], &[p]));
                s.push(Signature::new(&[p, b, p], &[p]));
                s.push(Signature::new(&[b, p, p], &[p]));
                Ok(s)
            })
            .flops(|c| Ok((c.input(0)?.len() as u64).saturating_mul(2 * c.shape(1)?[0] as u64)))
            .grad(Grad::rule_saving(&[0, 1], &[], |g| {
                let Some(dy) = g.grad(0) else { return Ok(()) };
                if g.needs(0) {
                    let w = g.input(1)?;
                    let dx = g.call("matmul", &[dy, w], &[])?;
                    g.set(0, dx)?;
                }
                if g.needs(1) {
                    let x = g.input(0)?;
                    let dw = g.call("matmul_rows", &[dy, x], &[])?;
                    g.set(1, dw)?;
                }
                if g.needs(2) {
                    let lead: Vec<i64> = (0..g.input_shape(0).len() as i64 - 1).collect();
                    let db = g.call("sum", &[dy], &[("dims", AttrValue::Ints(lead.into_iter().collect()))])?;
                    g.set(2, db)?;
                }
                Ok(())
            }))
            .samples(&[
                "f32[4, 6] f32[5, 6] f32[5]",
                "f64[2, 3, 4] f64[5, 4] f64[5]",
                "bf16[4, 6] bf16[3, 6] bf16[3]",
                "f32[2, 2, 3, 4] f32[2, 4] f32[2]",
            ]))
    })]
}
