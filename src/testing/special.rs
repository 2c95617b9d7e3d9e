//! Numbers at which rules and kernels go wrong that are right on all others: infinities, NaN, zeros of both signs, numbers near zero and
//! the ends of integer dtypes. Layouts must not change what an op makes of them.
//!
//! Each sample is run on three sets of values ([`Set`]), in which every third number or so is replaced; the others are the exact ones
//! of [`Spec::exact_values`], so that a result is not NaN everywhere. Indices (`<n`), numbers between bounds (`@low..high`) and matrices
//! (`~`) stay as they are.
//!
//! **What is compared.** The call in a layout with the same call on one device: NaN equals NaN, an infinity equals itself, and all
//! other numbers are compared as everywhere. A `P(sum)` input is dealt out in parts whose sum is defined: one part of an infinity is
//! infinite and the others are finite.
//!
//! **What is left out.** The parts of a `P(sum)` input are of both signs or zero although their sum is not, so a part times an infinity is
//! no part of the product: that is a property of `P(sum)` and not of a signature (see [how an op chooses](crate::docs::boxing)).
//! Therefore
//! - signatures of elementwise ops that take P beside a float that is not P are not run: the choice takes them on request only;
//! - in other signatures, an input has finite special numbers only if another one is `P(sum)` on a mesh axis where it is not;
//! - in layouts that no signature need fit, so have all inputs of ops that are not elementwise, if one is `P(sum)`.

use super::layout::Value;
use super::sample::{Spec, Values};
use super::{
    Case, Complaint, Reference, Sample, differentiable, guarded, mix, mixed_cases, panicked, reference_of, seed,
};
use super::{said, signature_cases};
use crate::error::Result;
use crate::ops::Op;
use crate::sbp::Sbp;
use oflow_kernels::DType;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Special numbers that stand among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Infinity, zero and a number near zero; the largest integer.
    Plus,
    /// Minus infinity, minus zero and a number near it; the smallest integer.
    Minus,
    /// Both infinities, NaN and zero; both ends of the integers.
    Mixed,
}

/// Every set of special numbers.
pub const SETS: [Set; 3] = [Set::Plus, Set::Minus, Set::Mixed];

impl Set {
    /// The special numbers of a dtype; `finite`: without infinities and NaN.
    fn numbers(self, dtype: DType, finite: bool) -> Vec<f64> {
        if let Some((low, high)) = dtype.integers() {
            let (low, high) = (low as f64, high as f64);
            return match self {
                Set::Plus => vec![high, 0.0],
                Set::Minus => vec![low, 0.0],
                Set::Mixed => vec![low, high],
            };
        }
        // A number that has no full precision in its dtype.
        let small = match dtype.part() {
            DType::F64 => 1e-310,
            DType::F16 => 2f64.powi(-20),
            _ => 2f64.powi(-130),
        };
        let all = match self {
            Set::Plus => vec![f64::INFINITY, 0.0, small],
            Set::Minus => vec![f64::NEG_INFINITY, -0.0, -small],
            Set::Mixed => vec![f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0],
        };
        all.into_iter().filter(|x| !finite || x.is_finite()).collect()
    }
}

impl Spec {
    /// Exact values, some of which are special; `finite`: none that is not.
    fn special_values(&self, seed: u64, set: Set, finite: bool) -> Value {
        let mut value = self.exact_values(seed);
        let free = matches!(self.values, Values::Any | Values::Positive) && self.dtype != DType::Bool;
        let numbers = set.numbers(self.dtype, finite);
        if !free || numbers.is_empty() || self.dtype.quantization().is_some() {
            return value;
        }
        for (i, x) in value.data.iter_mut().enumerate() {
            let r = mix(&[seed, i as u64, 41]);
            if r.is_multiple_of(3) {
                *x = numbers[(r >> 8) as usize % numbers.len()];
            }
        }
        value
    }
}

/// A sample on one set of special numbers.
#[derive(Clone)]
pub struct SpecialTrial {
    op: &'static Op,
    sample: Sample,
    set: Set,
    what: String,
    turn: usize,
    /// With all special numbers: the layouts without `P(sum)` are compared with this.
    whole: Arc<Reference>,
}

/// The samples of an op on special numbers. Those that the op refuses (an index that is infinite) are left out; a panic is added to
/// `wrong`.
///
/// # Errors
/// A sample cannot be read.
pub fn special_trials(op: &'static Op, wrong: &mut Vec<Complaint>) -> Result<Vec<SpecialTrial>> {
    let mut found = vec![];
    for (i, sample) in Sample::all(op)?.into_iter().enumerate() {
        let spread = seed(&format!("{} {i}", op.name())) as usize % 60;
        for (k, set) in SETS.into_iter().enumerate() {
            let what = format!("{} sample {i} ({set:?})", op.name());
            let trial = |finite: &[bool]| referred(op, &what, &sample, set, finite);
            match guarded(|| trial(&[])) {
                Ok(whole) => {
                    let plain = sample.values(seed(&what), true);
                    let same = |(a, b): (&Option<Value>, &Option<Value>)| {
                        a.as_ref().map(|a| &a.data) == b.as_ref().map(|b| &b.data)
                    };
                    // Nothing in it may be special.
                    if !whole.inputs.iter().zip(&plain).all(same) {
                        let (sample, what, turn) = (sample.clone(), what.clone(), spread + k);
                        found.push(SpecialTrial { op, sample, set, what, turn, whole });
                    }
                }
                Err(e) if panicked(&e) => wrong.push(format!("{what}: {}", said(&e))),
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

/// The call on one device; the inputs that `finite` names have finite numbers.
fn referred(op: &'static Op, what: &str, sample: &Sample, set: Set, finite: &[bool]) -> Result<Arc<Reference>> {
    let each = |(i, s): (usize, &Option<Spec>)| {
        let finite = finite.get(i).copied().unwrap_or(false);
        s.as_ref().map(|s| s.special_values(mix(&[seed(what), i as u64]), set, finite))
    };
    let inputs = sample.inputs.iter().enumerate().map(each).collect();
    reference_of(op, what, sample, inputs, false, differentiable(op)).map(Arc::new)
}

impl SpecialTrial {
    /// Where the sample and its set stand among others, so that a test can take some of them: the sets of a sample follow each other.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// The cases on one mesh: signatures, on a mesh of several axes some of them, and one random layout.
    ///
    /// # Errors
    /// As [`nd_signatures`](super::nd_signatures).
    pub fn cases(&self, mesh: &[usize]) -> Result<Vec<Case>> {
        let limit = if mesh.len() == 1 { usize::MAX } else { 8 };
        let mut cases = guarded(|| signature_cases(&self.whole, &self.sample, mesh, limit))?;
        if mesh.iter().product::<usize>() > 1 {
            cases.extend(mixed_cases(&self.whole, mesh, 1)?);
        }
        let mut others: BTreeMap<Vec<bool>, Option<Arc<Reference>>> = BTreeMap::new();
        let mut found = vec![];
        for case in cases {
            let Some(finite) = self.finite(&case, mesh.len()) else { continue };
            if !finite.contains(&true) {
                found.push(case);
                continue;
            }
            let of = || guarded(|| referred(self.op, &self.what, &self.sample, self.set, &finite)).ok();
            if let Some(reference) = others.entry(finite.clone()).or_insert_with(of) {
                found.push(Case { reference: reference.clone(), ..case });
            }
        }
        Ok(found)
    }

    /// For each input of a case, whether its numbers are all finite; `None` where the case is left out.
    fn finite(&self, case: &Case, axes: usize) -> Option<Vec<bool>> {
        let inputs = || 0..case.sbps.len();
        let at = |i: usize, a: usize| case.sbps[i].as_ref().map(|n| n[a]);
        let is_sum = |i: usize, a: usize| at(i, a) == Some(Sbp::PARTIAL_SUM);
        let is_float = |i: usize| self.whole.inputs[i].as_ref().is_some_and(|v| v.ty.dtype.has_gradients());
        let elementwise = self.op.expr.is_some();
        if case.expect.is_none() {
            let summed = !elementwise && inputs().any(|i| (0..axes).any(|a| is_sum(i, a)));
            return Some(vec![summed; case.sbps.len()]);
        }
        let meets = |a: usize| {
            let partial = |i: usize| at(i, a).is_some_and(Sbp::is_partial);
            inputs().any(partial) && inputs().any(|i| is_float(i) && !partial(i))
        };
        if elementwise && (0..axes).any(meets) {
            return None;
        }
        let beside = |i: usize| (0..axes).any(|a| !is_sum(i, a) && inputs().any(|k| is_sum(k, a)));
        Some(inputs().map(beside).collect())
    }
}
