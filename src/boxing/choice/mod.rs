//! Chooses the SBP signature of a call: the rule of the design in one place, for 1-d and n-d meshes alike.
//!
//! A candidate that needs no boxing wins, unless it has a price all the same on some mesh axis: a lowering communicates there, or
//! a P input is spread over more elements. Then it is compared with what moves something on these axes. Where all need boxing, the
//! least wins of forward boxing + its adjoint where a gradient is needed + collectives inside a lowering + the cheapest way out of P
//! outputs, in integer picoseconds under the fixed default constants. Where the caller asks for a layout of output 0, the boxing of
//! that output to it, with the work that a slice throws away, stands in place of its way out, and a candidate that gives another
//! layout needs boxing. Ties: fewer P outputs, then declared order. A rank's own coordinate never enters (I5): the choice is a
//! function of logical metadata alone, so every rank chooses alike.
//!
//! `space.rs` knows the candidates (the product of the 1-d signatures over the mesh axes, cut down by what may not move),
//! `search.rs` finds the best without pricing them all, `prices.rs` has what the search knows of the prices.
//! [`candidates`] prices every one: that is for people who ask, for tests and for searches over whole programs. `hint.rs` tells where
//! another layout of the result would cost far less.
//!
//! # The search
//!
//! The search is best first over mesh axes. Lower bounds are refined to prices, boxing by boxing. The result is the one
//! that pricing every candidate finds, with far fewer boxing plans. Rows of the signature table that differ only in dims
//! which nothing else tells apart are *twins*: of candidates that differ in twins only, the first is examined. A search
//! ends after a number of nodes, never after a time, so it ends alike on all ranks. Then the choice has its price and the
//! proven lower bound, which `oflow sbp` prints. A tensor that the op writes in place is never boxed.
//! `Space::worth_moving` says on which mesh axes candidates that move data are priced beside one that moves nothing.

mod advice;
mod hint;
mod prices;
mod search;
mod space;

use super::bound::least;
use super::dry::price_lowering;
use super::plan::cost_within;
use super::{Layout, Model, cost};
use crate::error::{Error, Result};
use crate::ops::{InferCtx, NdSignature, Op, SbpHints, TensorType};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp, check_layout, dual, dual_of};
pub use advice::{InputAdvice, input_advice};
pub use hint::{Hint, hint};
use search::ChosenSignature;
use smallvec::{SmallVec, smallvec};
use space::{Moves, Space};

/// Inputs of a choice: the call's op, types, layouts and planner.
pub struct ChoiceInput<'a> {
    /// The op that is called.
    pub op: &'static Op,
    /// Logical inputs and plan attributes.
    pub infer: &'a InferCtx<'a>,
    /// Logical types of the outputs.
    pub outs: &'a [TensorType],
    /// The one placement of all inputs.
    pub placement: &'a Placement,
    /// Present nd-SBP of each input (absent: none).
    pub sbps: &'a [Option<NdSbp>],
    /// For each input, whether backward computes its gradient.
    pub needs_grad: &'a [bool],
    /// Inputs that may not be boxed (mutable, or the given output of an in-place call).
    pub fixed_inputs: &'a [bool],
    /// nd-SBP that the kernel must give output 0, because it is written into a tensor that has it.
    pub given_out: Option<&'a NdSbp>,
    /// nd-SBP that output 0 is to have in the end: what the signature gives is boxed to it.
    pub request: Option<&'a NdSbp>,
    /// Whether inputs stay as they are where a signature takes them so, whatever that costs afterwards.
    pub keep: bool,
}

impl ChoiceInput<'_> {
    /// Returns what the op's own rules are told.
    pub fn hints(&self) -> SbpHints<'_> {
        SbpHints { inputs: self.sbps, output: self.request.or(self.given_out), keep: self.keep }
    }

    fn needs_grad(&self, input: usize) -> bool {
        self.needs_grad.get(input).copied().unwrap_or(false)
    }

    fn is_fixed(&self, input: usize) -> bool {
        self.fixed_inputs.get(input).copied().unwrap_or(false)
    }

    fn cost(&self, t: &TensorType, src: &NdSbp, dst: &NdSbp) -> Result<u64> {
        cost(&t.shape, t.dtype, &Layout::new(self.placement, src.clone()), &Layout::new(self.placement, dst.clone()))
    }

    /// The cost if it is `most` at most.
    fn cost_within(&self, t: &TensorType, src: &NdSbp, dst: &NdSbp, most: u64) -> Result<Option<u64>> {
        let at = |sbp: &NdSbp| Layout::new(self.placement, sbp.clone());
        cost_within((&t.shape, t.dtype), &at(src), &at(dst), most)
    }
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
    /// Cheapest way out of P outputs; of output 0 the boxing to the layout that was asked for.
    pub way_out: u64,
}

impl CostVector {
    /// Sum of all costs, in picoseconds.
    pub fn total(&self) -> u64 {
        self.forward.saturating_add(self.adjoint).saturating_add(self.lowering).saturating_add(self.way_out)
    }
}

/// A candidate with its price.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// SBP of each input and output, per mesh axis.
    pub sig: NdSignature,
    /// Predicted cost of the candidate.
    pub cost: CostVector,
    /// Number of P entries in the outputs.
    pub partials: usize,
}

/// All candidates in declared order, without their prices.
///
/// # Errors
/// When the op cannot tell its signatures.
pub fn signatures<'a>(c: &'a ChoiceInput<'a>) -> Result<impl Iterator<Item = NdSignature> + 'a> {
    let space = Space::new(c)?;
    let mut next = space.first();
    Ok(std::iter::from_fn(move || {
        while let Some(leaf) = next.take() {
            next = space.after(&leaf);
            let sig = space.signature(c, &leaf);
            if sig.is_some() {
                return sig;
            }
        }
        None
    }))
}

/// All candidates with their prices, in declared order. A call on many mesh axes has tens of thousands.
///
/// # Errors
/// When the op cannot tell its signatures.
pub fn candidates<'a>(c: &'a ChoiceInput<'a>) -> Result<impl Iterator<Item = Result<Candidate>> + 'a> {
    Ok(signatures(c)?.map(move |sig| price(c, sig)))
}

/// The signature that a call takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The chosen SBP of each input and output.
    pub sig: NdSignature,
    /// None where no candidate is better by the rule. Otherwise there were more candidates than a search looks at, and the
    /// assignment is the best that was found.
    pub unproven: Option<Unproven>,
}

/// Price and lower bound of a choice that was not proven to be the best, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unproven {
    /// Price of the choice, in picoseconds.
    pub price: u64,
    /// No candidate costs less.
    pub least: u64,
}

/// The signature the call takes. A search looks at a fixed number of nodes at most. It is large enough for most ops of up to 4
/// inputs on up to 4 mesh axes and with up to 8 dims; [`Choice::unproven`] tells where it was not.
///
/// # Errors
/// When no candidate satisfies a given output or a fixed input; the message lists what would be legal.
pub fn choose(c: &ChoiceInput<'_>) -> Result<Choice> {
    let space = Space::new(c)?;
    if let Some(sig) = taken_by_the_op(c, &space)? {
        return Ok(Choice { sig, unproven: None });
    }
    let chosen = |found: ChosenSignature| Choice { sig: found.sig, unproven: found.unproven };
    // Without boxing there is nothing to price but what the candidates bring along.
    let nothing: SmallVec<[Moves; 4]> = smallvec![Moves::Nothing; c.placement.axes()];
    if let Some(found) = search::best(c, &space.within(c, &nothing))? {
        let moves = space.worth_moving(c, &found.sig);
        if c.keep || moves == nothing {
            return Ok(chosen(found));
        }
        let better = space.within(c, &moves).with_twins(c);
        return Ok(chosen(search::best(c, &better)?.unwrap_or(found)));
    }
    if let Some(choice) = cheapest_of(c, space)? {
        return Ok(choice);
    }
    let legal: Vec<String> = c.op.signatures_1d(c.infer, c.outs)?.iter().map(|s| format!("    {s}")).collect();
    let fixed = (0..c.sbps.len()).find(|i| c.is_fixed(*i) && c.sbps[*i].is_some());
    let name = |i: usize| {
        let defs = &c.op.sig.inputs;
        defs.get(i).or(defs.last()).map_or("", |d| d.name.as_str())
    };
    let (why, way_out) = match (c.given_out, fixed) {
        (Some(o), _) => (
            format!("no legal signature gives an output {o} in place"),
            "use the op that returns a new tensor, or box this one with `to_global` first; ",
        ),
        (None, Some(i)) => (
            format!("no legal signature leaves '{}', which is changed in place, as it is", name(i)),
            "box it with `to_global` first; ",
        ),
        (None, None) => ("no legal signature for these inputs".to_string(), ""),
    };
    Err(Error::sbp(why).help(format!("{way_out}legal along one mesh axis:\n{}", legal.join("\n"))))
}

/// The signature that the op takes itself.
fn taken_by_the_op(c: &ChoiceInput<'_>, space: &Space) -> Result<Option<NdSignature>> {
    let Some(f) = &c.op.nd_choose else { return Ok(None) };
    let Some(want) = f(c.infer, c.placement, &c.hints())? else { return Ok(None) };
    let none = || {
        Error::registry(format!("{} takes {want}, which is none of its signatures for this call", c.op.shown()))
        .help("`nd_choose` picks among the signatures that the op declares, and leaves inputs that are changed in place as they are")
    };
    space.find(c, &want).map(Some).ok_or_else(none)
}

/// The cheapest assignment, whether it moves anything or not.
///
/// # Errors
/// When the op cannot tell its signatures.
pub fn cheapest(c: &ChoiceInput<'_>) -> Result<Option<Choice>> {
    cheapest_of(c, Space::new(c)?)
}

fn cheapest_of(c: &ChoiceInput<'_>, space: Space) -> Result<Option<Choice>> {
    let found = search::best(c, &space.with_twins(c))?;
    Ok(found.map(|f| Choice { sig: f.sig, unproven: f.unproven }))
}

/// Whether the layouts of a complete assignment are layouts of such tensors at all.
fn layouts_ok(c: &ChoiceInput<'_>, s: &NdSignature) -> bool {
    let ok = |t: &TensorType, n: &NdSbp| check_layout(&t.shape, t.dtype, c.placement, n).is_ok();
    c.infer.inputs.iter().zip(&s.inputs).all(|(t, n)| t.as_ref().is_none_or(|t| ok(t, n)))
        && c.outs.iter().zip(&s.outputs).all(|(t, n)| ok(t, n))
}

/// Price of boxing the inputs, and of what a lowering communicates.
pub(super) fn forward_price(c: &ChoiceInput<'_>, sig: &NdSignature) -> Result<CostVector> {
    let mut v = CostVector::default();
    for (i, want) in sig.inputs.iter().enumerate() {
        let (Some(have), Some(t)) = (&c.sbps[i], &c.infer.inputs[i]) else { continue };
        if have == want {
            continue;
        }
        v.forward = v.forward.saturating_add(c.cost(t, have, want)?);
        if c.needs_grad(i) {
            v.adjoint = v.adjoint.saturating_add(c.cost(t, &dual(want), &dual(have))?);
        }
    }
    if let Some(l) = sig.lowering {
        v.lowering = price_lowering(c, sig, l)?;
    }
    Ok(v)
}

/// An assignment with its price.
///
/// # Errors
/// When its lowering is refused.
pub fn price(c: &ChoiceInput<'_>, sig: NdSignature) -> Result<Candidate> {
    let mut v = forward_price(c, &sig)?;
    for (o, n) in sig.outputs.iter().enumerate() {
        v.way_out = v.way_out.saturating_add(way_out(c, o, n, u64::MAX)?.unwrap_or(u64::MAX));
    }
    let partials = sig.outputs.iter().map(partials).sum();
    Ok(Candidate { sig, cost: v, partials })
}

fn partials(n: &NdSbp) -> usize {
    n.iter().filter(|s| s.is_partial()).count()
}

/// Where an output has to go from a layout: what was asked for, or any layout free of P (all P axes to B, or all to S of
/// one dim); nowhere where it has no P.
fn ways_out(c: &ChoiceInput<'_>, out: usize, n: &NdSbp) -> Vec<NdSbp> {
    match c.request {
        Some(r) if out == 0 && r == n => vec![],
        Some(r) if out == 0 => vec![r.clone()],
        _ if !n.has_partial() => vec![],
        _ => {
            let to = |s: Sbp| n.map(|x| if x.is_partial() { s } else { x });
            // Of dims that are not split and that the mesh divides evenly one is as good as another.
            let shape = &c.outs[out].shape;
            let even = |d: usize| shape[d].is_multiple_of(c.placement.len()) && !n.contains(&Sbp::Split(d));
            let first = (0..shape.len()).find(|d| even(*d));
            let splits = (0..shape.len()).filter(|d| !even(*d) || Some(*d) == first).map(Sbp::Split);
            std::iter::once(Sbp::Broadcast).chain(splits).map(to).collect()
        }
    }
}

/// The least price of them, and of the work that it throws away, if that is `most` at most.
fn way_out(c: &ChoiceInput<'_>, out: usize, n: &NdSbp, most: u64) -> Result<Option<u64>> {
    let wasted = match c.request {
        Some(r) if out == 0 => waste(c, n, r)?,
        _ => 0,
    };
    let Some(mut most) = most.checked_sub(wasted) else { return Ok(None) };
    let t = &c.outs[out];
    let bound = |to: &NdSbp| least(&Model::default(), &t.shape, t.dtype.size() as u64, c.placement, n, to);
    let mut ways: SmallVec<[(u64, NdSbp); 8]> = ways_out(c, out, n).into_iter().map(|to| (bound(&to), to)).collect();
    if ways.is_empty() {
        return Ok(Some(wasted));
    }
    ways.sort_by_key(|w| w.0);
    let mut found = None;
    for (bound, to) in ways {
        if bound > most {
            break;
        }
        if let Some(price) = c.cost_within(t, n, &to, most)? {
            found = Some(price.saturating_add(wasted));
            // Only what costs less is of interest from here on.
            match price.checked_sub(1) {
                Some(less) => most = less,
                None => break,
            }
        }
    }
    Ok(found)
}

/// Cost of one redundant FLOP, in picoseconds.
const PS_PER_FLOP: u64 = 20;

/// Work done for elements of output 0 that are cut off at once: on axes where each rank has the whole and was asked for a
/// part. A slice of the inputs costs as much as a slice of the output, or more, but saves this.
fn waste(c: &ChoiceInput<'_>, have: &NdSbp, asked: &NdSbp) -> Result<u64> {
    let size = |of: &dyn Fn(usize) -> bool| -> u64 {
        (0..have.len()).filter(|a| of(*a)).map(|a| c.placement.dims()[a] as u64).product()
    };
    let cut = size(&|a| have[a].is_broadcast() && asked[a].split_dim().is_some());
    if cut == 1 {
        return Ok(0);
    }
    let flops = c.op.flops.as_ref().map_or(Ok(c.outs[0].len() as u64), |f| f(c.infer))?;
    let of_rank = flops / size(&|a| !have[a].is_broadcast());
    Ok((of_rank - of_rank / cut).saturating_mul(PS_PER_FLOP))
}
