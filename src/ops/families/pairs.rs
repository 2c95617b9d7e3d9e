//! Complex numbers as pairs of real ones, and back: the same bytes.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, InferCtx, OpDef};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::Dims;
use std::sync::Arc;

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![to_pairs(), from_pairs()]
}

/// The dims of the complex numbers are split, or these are sums.
fn signatures(rank: usize) -> Vec<Signature> {
    (0..rank).map(Sbp::Split).chain([Sbp::PARTIAL_SUM]).map(|s| Signature::new(&[s], &[s])).collect()
}

fn to_pairs() -> Result<OpDef> {
    Ok(OpDef::new("view_as_real(x: complex) -> y")?
        .doc("Complex numbers as real ones: a last dim of 2 has the real and the imaginary part. It is a copy.")
        .strided()
        .shape1(|c| Ok(c.shape(0)?.iter().copied().chain([2]).collect()))
        .dtype(DTypeRule::Fn(Arc::new(|c| Ok([c.input(0)?.dtype.part()].into_iter().collect()))))
        .get_sbp(|c| Ok(signatures(c.shape(0)?.len())))
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dx = g.call("view_as_complex", &[dy], &[])?;
            g.set(0, dx)
        }))
        .samples(&["c64[3, 2]", "c128[4]", "c128[2, 1, 3]"]))
}

fn from_pairs() -> Result<OpDef> {
    let lead = |c: &InferCtx<'_>| -> Result<Dims> {
        match c.shape(0)? {
            [lead @ .., 2] => Ok(lead.into()),
            shape => Err(Error::shape(format!("the last dim of {shape:?} is not 2, for the two parts"))),
        }
    };
    Ok(OpDef::new("view_as_complex(x: f32|f64) -> y")?
        .doc("Real numbers, of which a last dim of 2 has the real and the imaginary part, as complex ones without that dim. It is a copy.")
        .strided()
        .check(move |c| lead(c).map(drop))
        .shape1(lead)
        .dtype(DTypeRule::Fn(Arc::new(|c| Ok([c.input(0)?.dtype.complex()].into_iter().collect()))))
        .get_sbp(move |c| Ok(signatures(lead(c)?.len())))
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dx = g.call("view_as_real", &[dy], &[])?;
            g.set(0, dx)
        }))
        .samples(&["f32[3, 2]", "f64[4, 3, 2]", "f64[2]"]))
}
