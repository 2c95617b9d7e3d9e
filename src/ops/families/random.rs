//! Random tensors and dropout: Philox numbers that depend on seed, op ordinal and logical index only, so not on placement
//! or SBP; a rank makes only its shard (I10).

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, GivenValues, Grad, GradArg, OpDef, ShapeRule};
use crate::sbp::Sbp;
use crate::sbp::Signature;

const DRAWN: &str = "seed: runtime int = 0, ordinal: runtime int = -1";

/// Refuses bounds, the first two runtime attributes, between which there is no integer.
fn some_integer(given: &GivenValues<'_>) -> Result<()> {
    let (lo, hi) = (given.runtime[0].to_i64(), given.runtime[1].to_i64());
    if lo < hi { Ok(()) } else { Err(Error::argument(format!("the range [{lo}, {hi}) has no integer"))) }
}

/// Refuses bounds, the first two runtime attributes, without numbers from one to the other.
fn bounds(given: &GivenValues<'_>) -> Result<()> {
    let (lo, hi) = (given.runtime[0].to_f64(), given.runtime[1].to_f64());
    match lo <= hi && (hi - lo).is_finite() {
        true => Ok(()),
        false => Err(Error::argument(format!("expected bounds from the lower to the higher, got {lo} and {hi}"))
            .help("both are finite, and so is their distance")),
    }
}

/// Refuses a probability, the first runtime attribute, outside [0, 1].
fn is_probability(given: &GivenValues<'_>) -> Result<()> {
    match given.runtime[0].to_f64() {
        p if (0.0..=1.0).contains(&p) => Ok(()),
        p => Err(Error::argument(format!("{p} is not a probability")).help("probabilities go from 0 to 1")),
    }
}

const NORMAL: &str = "Normal numbers with that mean and standard deviation. They do not depend on placement or SBP.";

const DROPOUT: &str =
    "Zeros with probability p, and the other elements times 1 / (1 - p). The mask depends on the seed and the logical \
    position, not on placement or SBP. The result is always a new tensor; with p = 0 `nn::Dropout` returns its \
    input instead.

# Errors
If p is not within 0 and 1.";

fn source(name: &str, extra: &str, dtype: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(; shape: shape, dtype: dtype = {dtype}, {extra}, {DRAWN}) -> y"))?
        .doc(doc)
        .shape_rule(ShapeRule::Attr)
        .dtype(DTypeRule::Attr)
        .check(super::real_attr)
        .grad(Grad::None)
        .traits(|t| t.random = true))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        source("rand", "lo: runtime float = 0.0, hi: runtime float = 1.0", "f32", "Uniform numbers in [lo, hi).").map(
            |o| {
                o.by_name_only().check(super::float_attr)
                .values(bounds)
                .samples(&["; shape=[3, 5], seed=7, ordinal=3", "; shape=[9], dtype=f64, seed=7, ordinal=4"])
            },
        ),
        source("randn", "mean: runtime float = 0.0, std: runtime float = 1.0", "f32", NORMAL).map(|o| {
            o.by_name_only().check(super::float_attr)
            .samples(&["; shape=[3, 5], seed=7, ordinal=3", "; shape=[2, 3, 3], dtype=bf16, seed=1, ordinal=0"])
        }),
        source("bernoulli", "p: runtime float = 0.5", "f32", "1 with probability p, else 0.").map(|o| {
            o.function("bernoulli(Shape shape, Float p, Target target, *, DataType dtype=f32, Generator? generator) -> Tensor")
                .values(is_probability)
                .samples(&["; shape=[3, 5], p=0.3, seed=7, ordinal=3"])
        }),
        source("randint", "lo: runtime int = 0, hi: runtime int", "i64", "Integers in [lo, hi).").map(|o| {
            o.function("randint(Int lo, Int hi, Shape shape, Target target, *, DataType dtype=i64, Generator? generator) -> Tensor")
                .values(some_integer)
                .samples(&["; shape=[3, 5], lo=-2, hi=9, seed=7, ordinal=3"])
        }),
        OpDef::new(&format!("dropout(x: float; p: runtime float = 0.5, {DRAWN}) -> y")).map(|o| {
            o.doc(DROPOUT)
                .function("dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor")
                .values(is_probability)
                .traits(|t| {
                    t.random = true;
                    t.strided = true;
                })
                .get_sbp(|c| {
                    let rank = c.shape(0)?.len();
                    let mut s: Vec<Signature> =
                        (0..rank).map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(d)])).collect();
                    // The mask depends on the logical index alone, so it is the same on every rank: linear.
                    s.push(Signature::new(&[Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
                    Ok(s)
                })
                .grad(Grad::wiring("dropout", &[GradArg::OutGrad(0)], &["p", "seed", "ordinal"], &[0]))
                .samples(&["f32[3, 5]; p=0.4, seed=7, ordinal=3", "f64[4, 2]; p=0.0, seed=7, ordinal=3"])
        }),
    ]
}
