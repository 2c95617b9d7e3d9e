//! The numbers of random functions, and functions made of random tensors.

use super::create::TargetSpec;
use super::{create, invoke, invoke1, op};
use crate::context::{Generator, inner_calls};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::Target;
use crate::ops::AttrValue;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Random numbers";
    /// The numbers from 0 to n - 1 in a random order, which does not depend on placement or SBP; i64 unless the target says otherwise.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// assert_eq!(randperm(4, Device::Cpu)?.msort()?.to_vec::<i64>()?, [0, 1, 2, 3]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "randperm(Int n, Target target, *, DataType dtype=i64, Generator? generator) -> Tensor" = randperm as fn randperm;
    /// `num_samples` indices of each row of weights, each drawn with a probability in proportion to its weight; without `replacement` no
    /// index comes twice, and indices without weight come last. Weights are not negative and have a finite sum; they need not add up to
    /// one. The indices do not depend on placement or SBP.
    "multinomial(Tensor probs, Int num_samples, Bool replacement=false, *, Generator? generator) -> Tensor" = multinomial;
}

/// The runtime attributes `seed` and `ordinal` of one random op. An ordinal of -1 stands for the generator of the rank.
pub(super) fn drawn(generator: Option<&Generator>) -> Result<[Scalar; 2]> {
    let (seed, ordinal) = generator.map_or(Ok((0, u64::MAX)), |g| g.draw())?;
    Ok([Scalar::Int(seed as i64), Scalar::Int(ordinal as i64)])
}

pub(super) fn randperm(n: i64, target: &TargetSpec, site: CallSite) -> Result<Tensor> {
    let named = |e: Error| e.in_call(|| format!("randperm({n})")).at(site);
    if n < 0 {
        return Err(named(Error::argument(format!("{n} is no number of elements"))));
    }
    let [seed, ordinal] = target.drawn().map_err(named)?;
    // Every rank draws and sorts all keys, so nothing is sent.
    let whole = match target.target() {
        Target::Global(p, _) => Target::Global(p.clone(), NdSbp::broadcast(p.axes())),
        local => local.clone(),
    };
    let inner = inner_calls();
    let attrs = smallvec![AttrValue::from(&[n as usize][..]), DType::I64.into()];
    // So many bits that hardly ever two keys are equal; sorting takes a step for each byte of them.
    let bits = (2 * (i64::BITS - n.leading_zeros()) + 8).min(62);
    let bounds = smallvec![Scalar::Int(0), Scalar::Int(1 << bits), seed, ordinal];
    let keys = create(op!("randint"), attrs, bounds, &whole, site)?;
    let attrs = smallvec![0i64.into(), false.into(), true.into()];
    let order = invoke(op!("sort"), &[Some(&keys)], attrs, smallvec![], site)?.remove(1);
    let order = order.cast_at(target.dtype_or(DType::I64), site)?;
    drop(inner);
    match target.target() {
        Target::Global(p, sbp) => {
            let _scope = site.scope();
            order.to_global((p, sbp))
        }
        Target::Local(_) => Ok(order),
    }
}

pub(super) fn multinomial(
    probs: &Tensor,
    num_samples: i64,
    replacement: bool,
    generator: Option<&Generator>,
    site: CallSite,
) -> Result<Tensor> {
    let named = |e: Error| e.in_call(|| format!("multinomial({}, {num_samples})", probs.short())).at(site);
    if !probs.dtype().is_float() {
        return Err(named(Error::dtype(format!("weights are floats, not {}", probs.dtype()))));
    }
    let Some(n) = probs.shape().last().copied().filter(|_| probs.ndim() <= 2) else {
        return Err(named(Error::shape("the weights must have one dim or two")));
    };
    if num_samples < 1 || n == 0 || (!replacement && num_samples as usize > n) {
        let what = format!("{num_samples} indices cannot be drawn of {n}");
        return Err(named(Error::argument(what)).help("with `replacement` an index may come several times"));
    }
    let drawn = drawn(generator).map_err(named)?;
    let _scope = site.scope();
    let inner = inner_calls();
    let weights = probs.detach();
    let weights = if probs.dtype().is_half() { weights.cast(DType::F32)? } else { weights };
    // Parts of a sum are no weights.
    let weights = match weights.global() {
        Some(g) if g.sbp.has_partial() => {
            let whole = NdSbp::broadcast(g.placement.axes());
            weights.to_global(whole)?
        }
        _ => weights,
    };
    let mut shape = probs.shape().to_vec();
    let last = shape.len() - 1;
    if replacement {
        shape[last] = num_samples as usize;
    }
    let uniform = |target: &Target| {
        let attrs = smallvec![AttrValue::from(&shape[..]), weights.dtype().into()];
        let numbers = smallvec![Scalar::Float(0.0), Scalar::Float(1.0), drawn[0], drawn[1]];
        create(op!("rand"), attrs, numbers, target, site)
    };
    let u = uniform(weights.target().target())?;
    if !replacement {
        // Of exponential numbers with these rates the least ones are first with these probabilities: the greatest weights divided by
        // exponential numbers.
        let score = weights.div(&u.log()?.neg()?)?;
        drop(inner);
        let attrs = smallvec![num_samples.into(), AttrValue::from(-1i64), true.into(), true.into()];
        return Ok(invoke(op!("topk"), &[Some(&score)], attrs, smallvec![], site)?.remove(1));
    }
    let sums = weights.cumsum(-1)?;
    let all = sums.slice(-1, n as i64 - 1, n as i64, 1)?;
    // From above 0 up to the whole sum: an index without weight adds nothing, so it is never the first that reaches such a number.
    let goal = u.rsub(1.0)?.mul(&all)?;
    drop(inner);
    invoke1(op!("searchsorted"), &[Some(&sums), Some(&goal)], smallvec![false.into(), false.into()], smallvec![], site)
}
