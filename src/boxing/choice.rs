//! Which SBP signature a call takes: the rule of the design in one place, for 1-d and n-d meshes alike.
//!
//! A candidate that needs no boxing wins; otherwise the least of forward boxing + its adjoint where a gradient is needed +
//! collectives inside a lowering + the cheapest way out of P outputs, in integer picoseconds under the fixed default
//! constants. Ties: fewer P outputs, then declared order. A rank's own coordinate never enters (I5): the choice is a
//! function of logical metadata alone, so every rank chooses alike.

use super::dry::price_lowering;
use super::{Layout, cost};
use crate::error::{Error, Result};
use crate::ops::{InferCtx, NdSignature, Op, RuntimeAttrs, TensorType};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp, Signature, check_layout};
use smallvec::SmallVec;

/// What a choice is made from.
pub struct ChoiceInput<'a> {
    /// The op.
    pub op: &'static Op,
    /// Logical inputs and plan attributes.
    pub infer: &'a InferCtx<'a>,
    /// Logical outputs.
    pub outs: &'a [TensorType],
    /// The one placement of all inputs.
    pub placement: &'a Placement,
    /// Present nd-SBP of each input (absent: none).
    pub sbps: &'a [Option<NdSbp>],
    /// Which inputs want a gradient.
    pub needs_grad: &'a [bool],
    /// Inputs that may not be boxed (mutable, or the given output of an in-place call).
    pub fixed_inputs: &'a [bool],
    /// nd-SBP that output 0 must have.
    pub given_out: Option<&'a NdSbp>,
    /// Runtime attributes, for pricing lowerings (their values do not enter).
    pub runtime: &'a RuntimeAttrs,
}

/// The parts of a candidate's price, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostVector {
    /// Boxing the inputs.
    pub forward: u64,
    /// Boxing their gradients back.
    pub adjoint: u64,
    /// Collectives inside a lowering.
    pub lowering: u64,
    /// Cheapest way out of P outputs.
    pub way_out: u64,
}

impl CostVector {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.forward + self.adjoint + self.lowering + self.way_out
    }
}

/// A candidate with its price.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The assignment.
    pub sig: NdSignature,
    /// The price.
    pub cost: CostVector,
    /// Number of P entries in the outputs.
    pub partials: usize,
}

/// All candidates with their prices, in declared order.
pub fn candidates<'a>(c: &'a ChoiceInput<'a>) -> Result<impl Iterator<Item = Result<Candidate>> + 'a> {
    let sigs = nd_signatures(c, None)?;
    Ok(sigs.into_iter().map(move |s| price(c, s)))
}

/// The signature the call takes.
///
/// # Errors
/// When no candidate satisfies a given output or a fixed input; the message lists what would be legal.
pub fn choose(c: &ChoiceInput<'_>) -> Result<Candidate> {
    // Exact match first: without boxing there is nothing to price but what the candidates bring along.
    for exact in [true, false] {
        let mut best: Option<Candidate> = None;
        for sig in nd_signatures(c, exact.then_some(c.sbps))? {
            let cand = price(c, sig)?;
            let key = |k: &Candidate| (k.cost.total(), k.partials);
            if best.as_ref().is_none_or(|b| key(&cand) < key(b)) {
                best = Some(cand);
            }
        }
        if let Some(b) = best {
            return Ok(b);
        }
    }
    let legal: Vec<String> = c.op.signatures_1d(c.infer, c.outs)?.iter().map(|s| format!("    {s}")).collect();
    Err(Error::sbp(match c.given_out {
        Some(o) => format!("no legal signature gives an output {o} in place"),
        None => "no legal signature for these inputs".to_string(),
    })
    .help(format!("legal along one mesh axis:\n{}", legal.join("\n"))))
}

/// Complete assignments that respect the constraints; with `exact`, only those whose inputs are as they are.
fn nd_signatures(c: &ChoiceInput<'_>, exact: Option<&[Option<NdSbp>]>) -> Result<Vec<NdSignature>> {
    let axes = c.placement.axes();
    let mut found: Vec<NdSignature> = Vec::new();
    if let Some(f) = &c.op.nd_infer {
        found = f(c.infer, c.placement)?;
    } else {
        let one = c.op.signatures_1d(c.infer, c.outs)?;
        // Per axis the rows that fit the constraints; the product over axes with axis 0 as the slowest digit.
        let rows: Vec<Vec<&Signature>> = (0..axes)
            .map(|a| {
                one.iter()
                    .filter(|s| {
                        s.inputs.iter().enumerate().all(|(i, sbp)| {
                            let now = c.sbps[i].as_ref().map(|n| n[a]);
                            let must = exact.is_some() || c.fixed_inputs.get(i).copied().unwrap_or(false);
                            !must || now.is_none_or(|n| n == *sbp)
                        }) && c.given_out.is_none_or(|o| s.outputs.first().is_none_or(|s| *s == o[a]))
                    })
                    .collect()
            })
            .collect();
        let total: usize = rows.iter().map(|r| r.len()).product();
        for k in 0..total {
            let mut rest = k;
            let mut pick: SmallVec<[&Signature; 4]> = SmallVec::new();
            for a in (0..axes).rev() {
                pick.push(rows[a][rest % rows[a].len()]);
                rest /= rows[a].len();
            }
            pick.reverse();
            let mut lowering = None;
            let mixed = pick.iter().filter_map(|s| s.lowering).any(|l| *lowering.get_or_insert(l) != l);
            if mixed {
                continue;
            }
            found.push(NdSignature {
                inputs: (0..c.sbps.len()).map(|i| pick.iter().map(|s| s.inputs[i]).collect()).collect(),
                outputs: (0..c.outs.len()).map(|o| pick.iter().map(|s| s.outputs[o]).collect()).collect(),
                lowering,
            });
        }
        if let Some(f) = &c.op.nd_extra {
            found.extend(f(c.infer, c.placement)?);
        }
    }
    if let Some(now) = exact {
        found.retain(|s| s.inputs.iter().zip(now).all(|(a, b)| b.as_ref().is_none_or(|b| a == b)));
    }
    found.retain(|s| {
        let fixed_ok = s.inputs.iter().enumerate().all(|(i, n)| {
            !c.fixed_inputs.get(i).copied().unwrap_or(false) || c.sbps[i].as_ref().is_none_or(|b| n == b)
        });
        let out_ok = c.given_out.is_none_or(|o| s.outputs.first().is_none_or(|n| n == o));
        let valid = c.op.nd_valid.as_ref().is_none_or(|f| f(c.infer, c.placement, s));
        fixed_ok && out_ok && valid && layouts_ok(c, s)
    });
    Ok(found)
}

fn layouts_ok(c: &ChoiceInput<'_>, s: &NdSignature) -> bool {
    let ok = |t: &TensorType, n: &NdSbp| check_layout(&t.shape, t.dtype, c.placement, n).is_ok();
    c.infer.inputs.iter().zip(&s.inputs).all(|(t, n)| t.as_ref().is_none_or(|t| ok(t, n)))
        && c.outs.iter().zip(&s.outputs).all(|(t, n)| ok(t, n))
}

fn price(c: &ChoiceInput<'_>, sig: NdSignature) -> Result<Candidate> {
    let mut v = CostVector::default();
    let at = |n: &NdSbp| Layout::new(c.placement, n.clone());
    for (i, want) in sig.inputs.iter().enumerate() {
        let (Some(have), Some(t)) = (&c.sbps[i], &c.infer.inputs[i]) else { continue };
        if have == want {
            continue;
        }
        v.forward += cost(&t.shape, t.dtype, &at(have), &at(want))?;
        if c.needs_grad.get(i).copied().unwrap_or(false) {
            v.adjoint += cost(&t.shape, t.dtype, &at(&dual(want)), &at(&dual(have)))?;
        }
    }
    if let Some(l) = sig.lowering {
        v.lowering = price_lowering(c, &sig, l)?;
    }
    let mut partials = 0;
    for (t, n) in c.outs.iter().zip(&sig.outputs) {
        partials += n.iter().filter(|s| s.is_partial()).count();
        v.way_out += way_out(t, c.placement, n)?;
    }
    Ok(Candidate { sig, cost: v, partials })
}

/// The layout of the gradient of a tensor: S ↔ S, B ↔ P.
pub fn dual(n: &NdSbp) -> NdSbp {
    n.map(|s| match s {
        Sbp::Split(d) => Sbp::Split(d),
        Sbp::Broadcast => Sbp::PARTIAL_SUM,
        Sbp::Partial(_) => Sbp::Broadcast,
    })
}

/// Least price of making a tensor free of P: all P axes to B, or all to S of one dim.
fn way_out(t: &TensorType, placement: &Placement, n: &NdSbp) -> Result<u64> {
    if !n.has_partial() {
        return Ok(0);
    }
    let src = Layout::new(placement, n.clone());
    let to = |s: Sbp| n.map(|x| if x.is_partial() { s } else { x });
    let mut least = cost(&t.shape, t.dtype, &src, &Layout::new(placement, to(Sbp::Broadcast)))?;
    for d in 0..t.shape.len() {
        least = least.min(cost(&t.shape, t.dtype, &src, &Layout::new(placement, to(Sbp::Split(d))))?);
    }
    Ok(least)
}
