//! Functions that drop elements or whole channels at random, made of dropout and of random numbers.

use super::draw::drawn;
use super::random::numbers_like;
use super::shape::in_method;
use super::{create, invoke1, op};
use crate::context::{Generator, inner_calls};
use crate::error::{CallSite, Error, Result};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Random numbers";
    /// Dropout of whole channels of `[batch, channels, …]`: each channel of each sample becomes 0 with probability `p`, the others are
    /// divided by 1 - p. What is dropped does not depend on placement or SBP.
    "feature_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor" = feature_dropout;
    /// Elements become the negative limit of SELU with probability `p`; then all are scaled and shifted, so that mean 0 and variance 1 stay
    /// (Klambauer et al., 2017). With p = 1 all are 0.
    "alpha_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor" = alpha_dropout;
    /// `alpha_dropout` of whole channels of `[batch, channels, …]`.
    "feature_alpha_dropout(Tensor x, Float p=0.5, *, Generator? generator) -> Tensor" = feature_alpha_dropout;
    /// x, or a slope times x where x is not above 0: with `training` each element has a random slope from `lower` to `upper`, else all have
    /// their mean.
    "rrelu(Tensor x, Float lower=0.125, Float upper=0.3333333333333333, Bool training=false, *, Generator? generator) -> Tensor" = rrelu;
}

/// -λα of SELU.
const LIMIT: f64 = -1.758_099_340_847_376_6;

fn probability(p: f64) -> Result<()> {
    match (0.0..=1.0).contains(&p) {
        true => Ok(()),
        false => Err(Error::argument(format!("p is {p}")).help("it is within 0 and 1")),
    }
}

/// 1 with probability `p` for each channel of each sample, or for each element, and 0 otherwise. Real numbers: both parts of a complex
/// number are dropped together.
fn ones(x: &Tensor, p: f64, channels: bool, generator: Option<&Generator>, site: CallSite) -> Result<Tensor> {
    let like = if x.dtype().is_complex() { x.detach().real()? } else { x.detach() };
    if !channels {
        return numbers_like(op!("bernoulli"), &like, &[p], generator, site);
    }
    let mut shape = x.shape().to_vec();
    if shape.len() < 2 {
        return Err(Error::shape(format!("x has {} dims; it is [batch, channels, …]", shape.len())));
    }
    shape[2..].fill(1);
    let [seed, ordinal] = drawn(generator)?;
    let attrs = smallvec![AttrValue::from(&shape[..]), like.dtype().into()];
    create(op!("bernoulli"), attrs, smallvec![p.into(), seed, ordinal], &x.whole_target(), site)
}

pub(super) fn feature_dropout(x: &Tensor, p: f64, generator: Option<&Generator>, site: CallSite) -> Result<Tensor> {
    let body = || {
        probability(p)?;
        let inner = inner_calls();
        let kept = ones(x, 1.0 - p, true, generator, site)?;
        let scaled = if p < 1.0 { kept.div(1.0 - p)? } else { kept };
        drop(inner);
        x.mul(&scaled)
    };
    site.run(body).map_err(in_method("feature_dropout", x, site))
}

fn alpha(
    name: &str,
    x: &Tensor,
    p: f64,
    channels: bool,
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        probability(p)?;
        let inner = inner_calls();
        let kept = ones(x, 1.0 - p, channels, generator, site)?;
        if p == 1.0 {
            drop(inner);
            return x.mul(&kept);
        }
        let scale = ((LIMIT * LIMIT * p + 1.0) * (1.0 - p)).sqrt().recip();
        // A dropped element is the limit, scaled and shifted; one that is kept has no limit added.
        let shift = kept.rsub(1.0)?.mul(LIMIT * scale)?.sub(LIMIT * scale * p)?;
        let y = x.mul(&kept.mul(scale)?)?;
        drop(inner);
        y.add(&shift)
    };
    site.run(body).map_err(in_method(name, x, site))
}

pub(super) fn alpha_dropout(x: &Tensor, p: f64, generator: Option<&Generator>, site: CallSite) -> Result<Tensor> {
    alpha("alpha_dropout", x, p, false, generator, site)
}

pub(super) fn feature_alpha_dropout(
    x: &Tensor,
    p: f64,
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<Tensor> {
    alpha("feature_alpha_dropout", x, p, true, generator, site)
}

pub(super) fn rrelu(
    x: &Tensor,
    lower: f64,
    upper: f64,
    training: bool,
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<Tensor> {
    let body = || {
        if !(lower <= upper && (upper - lower).is_finite()) {
            return Err(Error::argument(format!("slopes from {lower} to {upper}")).help("lower is at most upper"));
        }
        if !training {
            return x.leaky_relu(0.5 * (lower + upper));
        }
        let inner = inner_calls();
        let slope = numbers_like(op!("rand"), &x.detach(), &[lower, upper], generator, site)?;
        drop(inner);
        invoke1(op!("prelu"), &[Some(x), Some(&slope)], smallvec![], smallvec![], site)
    };
    site.run(body).map_err(in_method("rrelu", x, site))
}
