//! The candidates of a call: the product of its 1-d signatures over the mesh axes (the outermost axis is the slowest
//! digit), then the op's extra n-d signatures; or the list that replaces both. Rows that what may not move forbids are left
//! out per axis, so the product never holds them.

use super::{ChoiceInput, layouts_ok};
use crate::error::{Error, Result};
use crate::ops::{NdSignature, TensorType};
use crate::sbp::{NdSbp, Sbp, Signature};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A candidate, or the first axes of one: the row taken on each axis. A listed one has `LISTED` and its index. In the
/// order of such texts, candidates stand as declared, and a beginning stands before all that continue it.
pub(super) type Leaf = SmallVec<[u16; 8]>;

const LISTED: u16 = u16::MAX;

/// Up to so many candidates are looked at sooner than their twins are found.
const FEW: usize = 1024;

/// Tensors of the call that may be boxed on a mesh axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moves {
    /// Inputs stay as they are.
    Nothing,
    /// P inputs may become B, all of them; then other inputs may move too.
    Partials,
    Anything,
}

pub(super) struct Space {
    /// The legal 1-d signatures in declared order; empty where the list replaces them.
    pub(super) rows: Arc<[Signature]>,
    /// Per mesh axis the rows that may be taken on it.
    axes: SmallVec<[SmallVec<[u16; 16]>; 4]>,
    /// Complete assignments that are not of the product.
    listed: Vec<NdSignature>,
    /// Per row the one before it that is its twin; empty where none has one.
    twins: Vec<Option<u16>>,
}

impl Space {
    pub(super) fn new(c: &ChoiceInput<'_>) -> Result<Space> {
        let (mut rows, mut listed) = (vec![], vec![]);
        if let Some(f) = &c.op.nd_infer {
            listed = f(c.infer, c.placement, &c.hints())?;
        } else {
            rows = c.op.signatures_1d(c.infer, c.outs)?;
            rows.truncate(LISTED as usize);
            if let Some(s) = rows.iter().find(|s| s.inputs.len() != c.sbps.len() || s.outputs.len() != c.outs.len()) {
                let (ins, outs) = (c.sbps.len(), c.outs.len());
                return Err(Error::registry(format!(
                    "{} declares the signature {s}, but this call has {ins} inputs and {outs} outputs",
                    c.op.name()
                )));
            }
            if let Some(f) = &c.op.nd_extra {
                listed = f(c.infer, c.placement)?;
            }
        }
        listed.truncate(LISTED as usize);
        let well_formed = |s: &NdSignature| {
            let mut all = s.inputs.iter().chain(&s.outputs);
            let sizes = s.inputs.len() == c.sbps.len() && s.outputs.len() == c.outs.len();
            sizes && all.all(|n| n.len() == c.placement.axes())
        };
        if let Some(s) = listed.iter().find(|s| !well_formed(s)) {
            return Err(Error::registry(format!(
                "{} declares {:?} -> {:?}, but this call has {} inputs and {} outputs on {} mesh axes",
                c.op.name(),
                s.inputs,
                s.outputs,
                c.sbps.len(),
                c.outs.len(),
                c.placement.axes()
            )));
        }
        for s in &listed {
            let row = || format!("{:?} -> {:?}", s.inputs, s.outputs);
            let splits = |n: &NdSbp| n.iter().filter_map(|s| s.split_dim()).max();
            c.op.check_dims(c.infer, c.outs, &row, |i| splits(&s.inputs[i]), |o| splits(&s.outputs[o]))?;
        }
        listed.retain(|s| {
            layouts_ok(c, s)
                && (0..c.placement.axes()).all(|a| fits(c, a, |i| s.inputs[i][a], s.outputs.first().map(|n| n[a])))
        });
        let of_axis = |a: usize| {
            let ok = |r: &u16| {
                let s = &rows[*r as usize];
                fits(c, a, |i| s.inputs[i], s.outputs.first().copied())
            };
            (0..rows.len() as u16).filter(ok).collect()
        };
        let axes = (0..c.placement.axes()).map(of_axis).collect();
        Ok(Space { rows: rows.into(), axes, listed, twins: Vec::new() })
    }

    /// The assignments in which on each axis only the tensors of `moves` are boxed: none means that all inputs are as they
    /// are, and output 0 as it was asked for.
    pub(super) fn within(&self, c: &ChoiceInput<'_>, moves: &[Moves]) -> Space {
        let now = |i: usize, a: usize| c.sbps[i].as_ref().map(|n| n[a]);
        let is_still = |a: usize, input: &dyn Fn(usize) -> Sbp, out: Option<Sbp>| {
            (0..c.sbps.len()).all(|i| now(i, a).is_none_or(|s| s == input(i)))
                && c.request.is_none_or(|r| out.is_none_or(|o| o == r[a]))
        };
        let is_reduced = |a: usize, input: &dyn Fn(usize) -> Sbp| {
            (0..c.sbps.len()).all(|i| now(i, a).is_none_or(|s| !s.is_partial() || input(i).is_broadcast()))
        };
        let ok = |a: usize, input: &dyn Fn(usize) -> Sbp, out: Option<Sbp>| match moves[a] {
            Moves::Anything => true,
            Moves::Partials => is_still(a, input, out) || is_reduced(a, input),
            Moves::Nothing => is_still(a, input, out),
        };
        let of_axis = |(a, rows): (usize, &SmallVec<[u16; 16]>)| {
            let ok = |r: &&u16| {
                let s = &self.rows[**r as usize];
                ok(a, &|i| s.inputs[i], s.outputs.first().copied())
            };
            rows.iter().filter(ok).copied().collect()
        };
        let listed = self
            .listed
            .iter()
            .filter(|s| (0..c.placement.axes()).all(|a| ok(a, &|i| s.inputs[i][a], s.outputs.first().map(|n| n[a]))));
        Space {
            axes: self.axes.iter().enumerate().map(of_axis).collect(),
            listed: listed.cloned().collect(),
            rows: Arc::clone(&self.rows),
            twins: Vec::new(),
        }
    }

    /// Savings that a boxing could bring on each axis where an assignment costs something although its inputs stay as they
    /// are: a lowering communicates there, or a P input is spread over more elements, so that more has to be reduced
    /// afterwards than there is now.
    ///
    /// A spread input is reduced to B and nothing else. A reduce-scatter would be cheaper, but would leave the larger output split
    /// along a dim that nobody asked for; from B it can be cut any way for nothing.
    ///
    /// A P output that the op itself makes there, of inputs that are not P, is the plan of whoever laid them out (row-parallel
    /// products, split embeddings) and is no such cost.
    pub(super) fn worth_moving(&self, c: &ChoiceInput<'_>, sig: &NdSignature) -> SmallVec<[Moves; 4]> {
        let spreads = |a: usize| {
            let elements = |i: usize| c.infer.inputs[i].as_ref().map_or(0, TensorType::len);
            let partial = (0..sig.inputs.len()).filter(|i| c.sbps[*i].is_some() && sig.inputs[*i][a].is_partial());
            let most = partial.map(elements).max();
            let larger = |o: usize| most.is_some_and(|most| c.outs[o].len() > most);
            (0..sig.outputs.len()).any(|o| sig.outputs[o][a].is_partial() && larger(o))
        };
        // Where the same entries stand in a row that needs no lowering, it is another axis that needs it.
        let lowered = |a: usize| {
            let alike = |row: &Signature| {
                row.lowering.is_none()
                    && (0..sig.inputs.len()).all(|i| row.inputs[i] == sig.inputs[i][a])
                    && (0..sig.outputs.len()).all(|o| row.outputs[o] == sig.outputs[o][a])
            };
            sig.lowering.is_some() && !self.axes[a].iter().any(|r| alike(&self.rows[*r as usize]))
        };
        let of_axis = |a: usize| match c.placement.dims()[a] {
            1 => Moves::Nothing,
            _ if lowered(a) => Moves::Anything,
            _ if spreads(a) => Moves::Partials,
            _ => Moves::Nothing,
        };
        (0..c.placement.axes()).map(of_axis).collect()
    }

    /// Finds rows that are twins: they differ in the dims that they split only, and nothing tells these dims apart. No tensor
    /// of the call is split along them now, none is asked to be, no other row splits them, and they are of one size, or the
    /// mesh divides both evenly, so that every part is the same share. Then the twins may change places in every candidate
    /// and all prices stay, so of candidates that differ in that only the first need be looked at.
    pub(super) fn with_twins(mut self, c: &ChoiceInput<'_>) -> Space {
        let rows = &self.rows;
        if self.candidates_at_most() <= FEW
            || c.op.nd_valid.is_some()
            || !self.listed.is_empty()
            || rows.iter().any(|r| r.lowering.is_some())
        {
            return self;
        }
        let twin_of = |r: u16| (0..r).rev().find(|k| self.are_twins(c, *k, r));
        let twins: Vec<Option<u16>> = (0..rows.len() as u16).map(twin_of).collect();
        self.twins = twins;
        self
    }

    fn are_twins(&self, c: &ChoiceInput<'_>, one: u16, other: u16) -> bool {
        let rows = &self.rows;
        let on = |axis: &SmallVec<[u16; 16]>, r: u16| axis.contains(&r);
        if self.axes.iter().any(|axis| on(axis, one) != on(axis, other)) {
            return false;
        }
        // The dims of a tensor that change places when the rows do.
        let swap = |of: &dyn Fn(&Signature) -> Sbp, t: &TensorType, fixed: &[Option<&NdSbp>]| {
            let (a, b) = (of(&rows[one as usize]), of(&rows[other as usize]));
            let (Sbp::Split(d), Sbp::Split(e)) = (a, b) else { return a == b };
            let even = |d: usize| t.shape[d].is_multiple_of(c.placement.len());
            let alike = t.shape[d] == t.shape[e] || (even(d) && even(e));
            let known = |s: &Sbp| *s == a || *s == b;
            let others = (0..rows.len() as u16).filter(|k| *k != one && *k != other);
            a == b
                || (alike
                    && !fixed.iter().flatten().any(|n| n.iter().any(known))
                    && !others.into_iter().any(|k| known(&of(&rows[k as usize]))))
        };
        let input = |i: usize| {
            let Some(t) = &c.infer.inputs[i] else { return true };
            swap(&|s| s.inputs[i], t, &[c.sbps[i].as_ref()])
        };
        let output = |o: usize| {
            let fixed = if o == 0 { [c.request, c.given_out] } else { [None, None] };
            swap(&|s| s.outputs[o], &c.outs[o], &fixed)
        };
        (0..c.sbps.len()).all(input) && (0..c.outs.len()).all(output)
    }

    /// Whether a beginning that goes on with a row is the first of those that differ in twins only.
    pub(super) fn is_first_of_twins(&self, beginning: &Leaf, row: u16) -> bool {
        let twin = self.twins.get(row as usize).copied().flatten();
        twin.is_none_or(|t| beginning.contains(&t) || beginning.contains(&row))
    }

    /// The rows that may be taken on a mesh axis.
    pub(super) fn on_axis(&self, axis: usize) -> &[u16] {
        &self.axes[axis]
    }

    /// The complete assignments that are not of the product.
    pub(super) fn listed(&self) -> &[NdSignature] {
        &self.listed
    }

    pub(super) fn listed_leaf(index: usize) -> Leaf {
        smallvec![LISTED, index as u16]
    }

    /// The complete assignment that a leaf of the list stands for.
    pub(super) fn listed_at(&self, leaf: &Leaf) -> Option<&NdSignature> {
        if leaf.first() == Some(&LISTED) { self.listed.get(leaf[1] as usize) } else { None }
    }

    /// Whether rows of the product are carried out by different lowerings, which one call cannot run.
    pub(super) fn mixes_lowerings(&self, leaf: &Leaf) -> bool {
        let mut lowering = None;
        let mut of_rows = leaf.iter().filter_map(|r| self.rows[*r as usize].lowering);
        of_rows.any(|l| *lowering.get_or_insert(l) != l)
    }

    /// The number of candidates, legal or not.
    pub(super) fn candidates_at_most(&self) -> usize {
        let product = self.axes.iter().map(|rows| rows.len()).fold(1, usize::saturating_mul);
        self.listed.len().saturating_add(product)
    }

    /// The first candidate in declared order, legal or not.
    pub(super) fn first(&self) -> Option<Leaf> {
        let product: Option<Leaf> = self.axes.iter().map(|rows| rows.first().copied()).collect();
        product.or_else(|| (!self.listed.is_empty()).then(|| Space::listed_leaf(0)))
    }

    /// The next candidate in declared order.
    pub(super) fn after(&self, leaf: &Leaf) -> Option<Leaf> {
        let mut next = leaf.clone();
        if leaf.first() == Some(&LISTED) {
            next[1] += 1;
            return ((next[1] as usize) < self.listed.len()).then_some(next);
        }
        for a in (0..next.len()).rev() {
            let rows = &self.axes[a];
            let at = rows.iter().position(|r| *r == next[a]).unwrap_or(0);
            if let Some(r) = rows.get(at + 1) {
                next[a] = *r;
                return Some(next);
            }
            next[a] = rows[0];
        }
        (!self.listed.is_empty()).then(|| Space::listed_leaf(0))
    }

    /// The candidate with these layouts; none where there is no such.
    pub(super) fn find(&self, c: &ChoiceInput<'_>, want: &NdSignature) -> Option<NdSignature> {
        let alike = |s: &NdSignature| s.inputs == want.inputs && s.outputs == want.outputs;
        let on_axis = |a: usize| {
            let entry = |of: &[NdSbp], i: usize| of.get(i).filter(|n| a < n.len()).map(|n| n[a]);
            let alike = |r: &&u16| {
                let row = &self.rows[**r as usize];
                (0..row.inputs.len()).all(|i| entry(&want.inputs, i) == Some(row.inputs[i]))
                    && (0..row.outputs.len()).all(|o| entry(&want.outputs, o) == Some(row.outputs[o]))
            };
            self.axes[a].iter().find(alike).copied()
        };
        let leaf: Option<Leaf> = (0..self.axes.len()).map(on_axis).collect();
        let product = leaf.filter(|_| !self.rows.is_empty()).and_then(|leaf| self.signature(c, &leaf));
        let found = product.or_else(|| self.listed.iter().find(|s| alike(s)).cloned());
        found.filter(|s| alike(s) && layouts_ok(c, s))
    }

    /// Whether a candidate does not mix lowerings and is exact on every rank.
    pub(super) fn is_legal(&self, c: &ChoiceInput<'_>, leaf: &Leaf) -> bool {
        match c.op.nd_valid {
            Some(_) => self.signature(c, leaf).is_some(),
            None => self.listed_at(leaf).is_some() || !self.mixes_lowerings(leaf),
        }
    }

    /// The assignment of a candidate; none where it is not legal.
    pub(super) fn signature(&self, c: &ChoiceInput<'_>, leaf: &Leaf) -> Option<NdSignature> {
        let sig = match self.listed_at(leaf) {
            Some(s) => s.clone(),
            None if self.mixes_lowerings(leaf) => return None,
            None => {
                let picked = || leaf.iter().map(|r| &self.rows[*r as usize]);
                NdSignature {
                    inputs: (0..c.sbps.len()).map(|i| picked().map(|s| s.inputs[i]).collect()).collect(),
                    outputs: (0..c.outs.len()).map(|o| picked().map(|s| s.outputs[o]).collect()).collect(),
                    lowering: picked().find_map(|s| s.lowering),
                }
            }
        };
        c.op.nd_valid.as_ref().is_none_or(|f| f(c.infer, c.placement, &sig)).then_some(sig)
    }
}

/// Whether a row is a candidate on that axis: what may not move stays, and no partial is made or met that could change a value.
fn fits(c: &ChoiceInput<'_>, a: usize, input: impl Fn(usize) -> Sbp, out: Option<Sbp>) -> bool {
    (0..c.sbps.len()).all(|i| !c.is_fixed(i) || c.sbps[i].as_ref().is_none_or(|now| now[a] == input(i)))
        && c.given_out.is_none_or(|o| out.is_none_or(|s| s == o[a]))
        && (is_written_partial(c, a) || (0..c.sbps.len()).all(|i| is_held(c, a, i, input(i))))
        && (keeps_partials(c, a) || !meets_factor(c, &input))
}

/// Whether an input is P only where it is the same P now. A partial that is made for the op has identity elements (0, or an
/// infinity) on some ranks, and these would meet infinities of the other inputs there: `0 * inf` and `inf - inf` are NaN. Only what
/// a product adds, its bias, may become P(sum): a zero that is added changes no number.
fn is_held(c: &ChoiceInput<'_>, a: usize, i: usize, want: Sbp) -> bool {
    let is_added = || want == Sbp::PARTIAL_SUM && c.op.addends.contains(&i);
    !want.is_partial() || c.sbps[i].as_ref().is_none_or(|now| now[a] == want) || is_added()
}

/// Whether the call writes a tensor that is P on that axis. What is added to it or assigned to it must become P too.
fn is_written_partial(c: &ChoiceInput<'_>, a: usize) -> bool {
    let mut written = c.sbps.iter().enumerate().filter(|(i, _)| c.is_fixed(*i)).filter_map(|(_, n)| n.as_ref());
    c.given_out.is_some_and(|o| o[a].is_partial()) || written.any(|n| n[a].is_partial())
}

/// Whether the caller says that partials stay on that axis: inputs are to stay as they are, or the result is to be P.
fn keeps_partials(c: &ChoiceInput<'_>, a: usize) -> bool {
    c.keep || is_written_partial(c, a) || c.request.is_some_and(|r| r[a].is_partial())
}

/// Whether an elementwise op combines the parts of an input with the numbers of one that is not P. The parts may be of both signs or 0
/// where their reduction is not, so an infinity of the other input would give NaN. The result has as many elements as the input or
/// more, so nothing is gained by reducing it instead. Integers and bools have no infinities.
fn meets_factor(c: &ChoiceInput<'_>, input: &impl Fn(usize) -> Sbp) -> bool {
    let given = |i: &usize| c.infer.inputs[*i].as_ref();
    let is_factor = |i: usize| !input(i).is_partial() && given(&i).is_some_and(|t| t.dtype.has_gradients());
    let all = || 0..c.sbps.len();
    c.op.expr.is_some() && all().any(|i| given(&i).is_some() && input(i).is_partial()) && all().any(is_factor)
}
