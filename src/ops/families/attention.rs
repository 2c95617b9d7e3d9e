//! Scaled dot-product attention over `[B, H, T, D]`, with memory linear in the length.

use super::attention_grad::{gradient, second_gradient};
use super::statistics;
use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, InferCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::Dims;
use smallvec::smallvec;

fn check(c: &InferCtx<'_>, q: usize) -> Result<()> {
    match (c.shape(q)?, c.shape(q + 1)?, c.shape(q + 2)?) {
        ([b, h, _, d], [b2, h2, t, d2], [b3, h3, t2, _])
            if b == b2 && b == b3 && h == h2 && h == h3 && d == d2 && t == t2 =>
        {
            super::one_dtype(c, &[q, q + 1, q + 2])
        }
        (q, k, v) => Err(Error::shape(format!("queries {q:?}, keys {k:?} and values {v:?} do not fit"))
            .help("they are [B, H, Tq, D], [B, H, Tk, D] and [B, H, Tk, Dv]")),
    }
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    // Batch and heads split everything.
    let both = |ins: usize, outs: usize| -> Vec<Signature> {
        (0..2).map(|d| Signature::new(&vec![Sbp::Split(d); ins], &vec![Sbp::Split(d); outs])).collect()
    };
    vec![
        OpDef::new("attention(q: float, k: float, v: float; causal: bool = false, scale: runtime float) -> (out, lse)")
            .map(|o| {
                o.doc("softmax(scale q kᵀ) v; causal: query i sees keys 0..=i.")
                    .strided()
                    .check(|c| check(c, 0))
                    .shapes(|c| {
                        let (q, v) = (c.shape(0)?, c.shape(2)?);
                        let lse: Dims = q[..3].into();
                        let mut out = lse.clone();
                        out.push(v[3]);
                        Ok(smallvec![out, lse])
                    })
                    .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
                        let d = c.input(0)?.dtype;
                        Ok([d, statistics(d)].into_iter().collect())
                    })))
                    .get_sbp(move |c| {
                        let mut s = both(3, 2);
                        if !c.bool("causal")? {
                            // Every query sees every key, so queries may be split too.
                            let q = Sbp::Split(2);
                            s.push(Signature::new(&[q, b, b], &[q, q]));
                        }
                        s.push(Signature::new(&[b, b, Sbp::Split(3)], &[Sbp::Split(3), b]));
                        s.push(Signature::new(&[b, b, p], &[p, b]));
                        Ok(s)
                    })
                    .flops(|c| Ok((c.input(0)?.len() as u64).saturating_mul(4 * c.shape(1)?[2] as u64)))
                    .grad(Grad::rule_saving(&[0, 1, 2], &[0, 1], gradient))
                    .samples(&[
                        "f32[2, 3, 5, 4] f32[2, 3, 5, 4] f32[2, 3, 5, 4]; causal=true, scale=0.5",
                        "f64[2, 2, 3, 4] f64[2, 2, 5, 4] f64[2, 2, 5, 6]; scale=0.5",
                    ])
            }),
        OpDef::new(
            "attention_grad(dout: float, q: float, k: float, v: float, out: float, lse: float; causal: bool = false, scale: runtime float) -> (dq, dk, dv)",
        )
        .map(|o| {
            o.doc("Gradients of attention, from its inputs and results.")
                .by_name_only()
                .strided()
                .check(|c| {
                    check(c, 1)?;
                    super::one_dtype(c, &[0, 1, 4])?;
                    super::dtype_is(c, 5, statistics(c.input(1)?.dtype))?;
                    let (q, v) = (c.shape(1)?, c.shape(3)?);
                    let out = [q[0], q[1], q[2], v[3]];
                    super::dims_are(c, 0, &out)?;
                    super::dims_are(c, 4, &out)?;
                    super::dims_are(c, 5, &q[..3])
                })
                .shapes(|c| Ok(smallvec![c.shape(1)?.into(), c.shape(2)?.into(), c.shape(3)?.into()]))
                .dtype(DTypeRule::Input(1))
                .get_sbp(move |c| {
                    let mut s = both(6, 3);
                    if !c.bool("causal")? {
                        let q = Sbp::Split(2);
                        s.push(Signature::new(&[q, q, b, b, q, q], &[q, p, p]));
                    }
                    Ok(s)
                })
                .grad(Grad::rule_saving(&[0, 1, 2, 3, 4, 5], &[], second_gradient))
                .traits(|t| t.run_empty = true)
                .samples(&["f64[2, 2, 3, 4] f64[2, 2, 3, 4] f64[2, 2, 3, 4] f64[2, 2, 3, 4] f64[2, 2, 3, 4] f64[2, 2, 3]+; causal=true, scale=0.5"])
        }),
    ]
}
