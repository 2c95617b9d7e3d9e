//! Prices that the search has found so far: for each boxing of the call (an input's, its gradient's, an output's) and each
//! layout that a candidate gives it, first a lower bound, then the price. Inputs that are alike (same type, same layout,
//! same wants) are one part, counted. The part whose price used to exceed its bound the most is priced first: then the
//! others often need no price.

use super::space::{Leaf, Space};
use super::{ChoiceInput, dual, dual_of, waste, way_out};
use crate::boxing::Model;
use crate::boxing::bound::{Floor, Need, need, need_so_far};
use crate::boxing::dry::LEAST_LOWERING;
use crate::error::Result;
use crate::ops::{NdSignature, TensorType};
use crate::sbp::{NdSbp, Sbp, Signature};
use smallvec::SmallVec;
use std::cell::Cell;
use std::cmp::Reverse;

/// Layouts of one tensor that are remembered at most. Beyond, bounds are weaker and prices are asked for again.
const DENSE: usize = 1 << 16;

pub(super) struct Prices<'a> {
    c: &'a ChoiceInput<'a>,
    space: &'a Space,
    floor: Floor,
    parts: Vec<Term>,
    /// How many prices were asked for.
    priced: Cell<u64>,
}

/// The boxing of one tensor, or of several that are alike.
struct Term {
    of: Of,
    count: u64,
    /// The SBPs that candidates give it.
    symbols: SmallVec<[Sbp; 8]>,
    /// Per row of the space its symbol.
    column: SmallVec<[u8; 16]>,
    /// Per mesh axis and symbol the least that it takes to bring that axis there.
    axes: Vec<u64>,
    /// Per layout (its symbols as digits) what is known; empty where there are too many.
    known: Vec<Known>,
    /// How many prices were asked for, and by how much they exceeded their bounds together.
    asked: u64,
    exceeded: u64,
}

impl Term {
    /// By how much a price exceeds its bound on average.
    fn gap(&self) -> u64 {
        self.exceeded / self.asked.max(1)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Of {
    Input(usize),
    /// The gradient of an input, on its way back.
    Gradient(usize),
    Output(usize),
}

#[derive(Clone, Copy)]
enum Known {
    Nothing,
    AtLeast(u64),
    Price(u64),
}

impl<'a> Prices<'a> {
    pub(super) fn new(c: &'a ChoiceInput<'a>, space: &'a Space) -> Prices<'a> {
        let floor = Floor::new(&Model::default(), c.placement.device());
        let mut prices =
            Prices { c, space, floor, parts: Vec::with_capacity(c.sbps.len() + c.outs.len()), priced: Cell::new(0) };
        for i in 0..c.sbps.len() {
            if c.sbps[i].is_some() && c.infer.inputs[i].is_some() && !prices.joins(i) {
                prices.add(Of::Input(i));
                if c.needs_grad(i) {
                    prices.add(Of::Gradient(i));
                }
            }
        }
        (0..c.outs.len()).for_each(|o| prices.add(Of::Output(o)));
        prices
    }

    /// Counts one more price.
    pub(super) fn count(&self) {
        self.priced.set(self.priced.get() + 1);
    }

    /// How many prices were asked for.
    pub(super) fn priced(&self) -> u64 {
        self.priced.get()
    }

    /// How many boxings are priced, of those that are alike one.
    pub(super) fn boxings(&self) -> u64 {
        self.parts.len() as u64
    }

    /// Counts an input with an earlier one that is alike.
    fn joins(&mut self, i: usize) -> bool {
        let (c, space) = (self.c, self.space);
        let alike = |p: &Term| match p.of {
            Of::Input(k) | Of::Gradient(k) => {
                c.sbps[k] == c.sbps[i]
                    && c.infer.inputs[k] == c.infer.inputs[i]
                    && c.needs_grad(k) == c.needs_grad(i)
                    && space.rows.iter().all(|s| s.inputs[k] == s.inputs[i])
                    && space.listed().iter().all(|s| s.inputs[k] == s.inputs[i])
            }
            Of::Output(_) => false,
        };
        let mut found = false;
        for part in self.parts.iter_mut().filter(|p| alike(p)) {
            part.count += 1;
            found = true;
        }
        found
    }

    fn add(&mut self, of: Of) {
        let (c, space) = (self.c, self.space);
        let mut symbols: SmallVec<[Sbp; 8]> = SmallVec::new();
        let mut symbol = |s: Sbp| match symbols.iter().position(|k| *k == s) {
            Some(k) => k as u8,
            None => {
                symbols.push(s);
                symbols.len() as u8 - 1
            }
        };
        let column = space.rows.iter().map(|s| symbol(of.of_row(s))).collect();
        space.listed().iter().flat_map(|s| of.of_listed(s).iter()).for_each(|s| {
            symbol(*s);
        });
        let mut axes = Vec::with_capacity(c.placement.axes() * symbols.len());
        for a in 0..c.placement.axes() {
            axes.extend(symbols.iter().map(|s| self.floor(of, a, *s)));
        }
        let layouts = symbols.len().checked_pow(c.placement.axes() as u32).filter(|n| *n <= DENSE).unwrap_or(0);
        let known = vec![Known::Nothing; layouts];
        self.parts.push(Term { of, count: 1, symbols, column, axes, known, asked: 0, exceeded: 0 });
    }

    /// The least that it takes on an axis to give a part that SBP.
    ///
    /// Where S becomes B, the members of a group along the axis want the same elements and no two hold the same ones; where
    /// P becomes anything else, each holds a part of what is wanted: both ways someone has to send.
    fn floor(&self, of: Of, axis: usize, sbp: Sbp) -> u64 {
        let c = self.c;
        let k = c.placement.dims()[axis];
        let of_step = |communicates, holders| {
            self.floor.steps(Need { elements: 0, communicates, reduces: false, holders, written: 0, unfilled: None }, 0)
        };
        let between = |t: &TensorType, from: Sbp, to: Sbp| match (from, to) {
            _ if from == to || k == 1 || t.is_empty() => 0,
            (Sbp::Partial(_), Sbp::Partial(_)) | (Sbp::Split(_), Sbp::Broadcast) => of_step(true, 2),
            // A contribution of each.
            (Sbp::Partial(_), _) => of_step(true, k as u64),
            _ => of_step(false, 2),
        };
        match (of, c.request) {
            (Of::Input(i) | Of::Gradient(i), _) => {
                let (Some(have), Some(t)) = (&c.sbps[i], &c.infer.inputs[i]) else { return 0 };
                match of {
                    Of::Gradient(_) => between(t, dual_of(sbp), dual_of(have[axis])),
                    _ => between(t, have[axis], sbp),
                }
            }
            (Of::Output(0), Some(r)) => between(&c.outs[0], sbp, r[axis]),
            (Of::Output(o), _) if sbp.is_partial() => self.least_way_out(o, k),
            (Of::Output(_), _) => 0,
        }
    }

    /// The least way out of an output that has so many contributions to each element: all but one of them are sent to be
    /// merged, and some rank receives its share of that.
    fn least_way_out(&self, out: usize, contributions: usize) -> u64 {
        let t = &self.c.outs[out];
        if contributions == 1 || t.is_empty() {
            return 0;
        }
        let merges = (t.len() as u64).saturating_mul(contributions as u64 - 1);
        let elements = merges.div_ceil(self.c.placement.len() as u64);
        let holders = contributions as u64;
        let need = Need { elements, communicates: true, reduces: true, holders, written: 0, unfilled: None };
        self.floor.steps(need, t.dtype.size() as u64)
    }

    /// The symbol that a candidate gives a part on an axis.
    fn symbol(&self, part: &Term, leaf: &Leaf, axis: usize) -> usize {
        match self.space.listed_at(leaf) {
            Some(s) => part.symbols.iter().position(|k| *k == part.of.of_listed(s)[axis]).unwrap_or(0),
            None => part.column[leaf[axis] as usize] as usize,
        }
    }

    fn layout(&self, part: &Term, leaf: &Leaf) -> NdSbp {
        (0..self.c.placement.axes()).map(|a| part.symbols[self.symbol(part, leaf, a)]).collect()
    }

    /// Place of a candidate's layout in `known`.
    fn place(&self, part: &Term, leaf: &Leaf) -> usize {
        (0..self.c.placement.axes()).fold(0, |n, a| n * part.symbols.len() + self.symbol(part, leaf, a))
    }

    /// The floor of a part over the first `axes` axes of a candidate.
    fn of_axes(&self, part: &Term, leaf: &Leaf, axes: usize) -> u64 {
        let here = |a: usize| part.axes[a * part.symbols.len() + self.symbol(part, leaf, a)];
        (0..axes).map(here).max().unwrap_or(0)
    }

    /// A lower bound of a part's price from the first `axes` axes of a candidate.
    fn so_far(&self, part: &Term, leaf: &Leaf, axes: usize) -> u64 {
        let c = self.c;
        let want = || (0..axes).map(|a| part.symbols[self.symbol(part, leaf, a)]);
        let between = |t: &TensorType, from: &[Sbp], to: &[Sbp]| match t.is_empty() {
            true => 0,
            false => need_so_far(&t.shape, c.placement.dims(), from, to)
                .map_or(0, |need| self.floor.steps(need, t.dtype.size() as u64)),
        };
        let least = match (part.of, c.request) {
            (Of::Input(i) | Of::Gradient(i), _) => match (&c.sbps[i], &c.infer.inputs[i], part.of) {
                (Some(have), Some(t), Of::Gradient(_)) => {
                    between(t, &want().map(dual_of).collect::<SmallVec<[Sbp; 4]>>(), &dual(have))
                }
                (Some(have), Some(t), _) => between(t, have, &want().collect::<SmallVec<[Sbp; 4]>>()),
                _ => 0,
            },
            (Of::Output(0), Some(asked)) => between(&c.outs[0], &want().collect::<SmallVec<[Sbp; 4]>>(), asked),
            (Of::Output(o), _) => {
                let partial = (0..axes).zip(want()).filter(|(_, s)| s.is_partial());
                self.least_way_out(o, partial.map(|(a, _)| c.placement.dims()[a]).product())
            }
        };
        least.max(self.of_axes(part, leaf, axes))
    }

    /// A lower bound of the price of all candidates that begin with these rows, and the P entries of their outputs so far.
    pub(super) fn of_beginning(&self, rows: &Leaf) -> (u64, u32) {
        let listed = self.space.listed_at(rows).is_some();
        let axes = if listed { self.c.placement.axes() } else { rows.len() };
        let (mut bound, mut partials) = (self.least_lowering(rows), 0);
        for p in &self.parts {
            bound = bound.saturating_add(self.so_far(p, rows, axes).saturating_mul(p.count));
            if let Of::Output(_) = p.of {
                partials += (0..axes).filter(|a| p.symbols[self.symbol(p, rows, *a)].is_partial()).count() as u32;
            }
        }
        (bound, partials)
    }

    /// The lowering that carries a candidate, or all that begin like this, out.
    pub(super) fn lowering_of(&self, leaf: &Leaf) -> Option<u8> {
        match self.space.listed_at(leaf) {
            Some(s) => s.lowering,
            None => leaf.iter().find_map(|r| self.space.rows[*r as usize].lowering),
        }
    }

    fn least_lowering(&self, leaf: &Leaf) -> u64 {
        if self.lowering_of(leaf).is_some() { LEAST_LOWERING } else { 0 }
    }

    /// A lower bound of a candidate's price, from all that is known by now.
    pub(super) fn of_candidate(&mut self, leaf: &Leaf) -> u64 {
        let mut bound = self.least_lowering(leaf);
        for k in 0..self.parts.len() {
            let part = &self.parts[k];
            let place = self.place(part, leaf);
            let least = match part.known.get(place) {
                Some(Known::AtLeast(ps) | Known::Price(ps)) => *ps,
                _ => {
                    let (least, exact) = self.least(part, leaf);
                    if let Some(known) = self.parts[k].known.get_mut(place) {
                        *known = if exact { Known::Price(least) } else { Known::AtLeast(least) };
                    }
                    least
                }
            };
            bound = bound.saturating_add(least.saturating_mul(self.parts[k].count));
        }
        bound
    }

    /// Prices a candidate, part by part, as long as the bound that results is `wanted` and `most` at most. The bound, and
    /// whether it is the price, in which a lowering counts with its least.
    pub(super) fn of_parts(&mut self, leaf: &Leaf, most: u64, wanted: impl Fn(u64) -> bool) -> Result<(u64, bool)> {
        let mut bounds: SmallVec<[u64; 16]> = SmallVec::new();
        let mut open: SmallVec<[usize; 16]> = SmallVec::new();
        for (k, part) in self.parts.iter().enumerate() {
            let (least, exact) = match part.known.get(self.place(part, leaf)) {
                Some(Known::Price(ps)) => (*ps, true),
                Some(Known::AtLeast(ps)) => (*ps, false),
                _ => self.least(part, leaf),
            };
            bounds.push(least.saturating_mul(part.count));
            if !exact {
                open.push(k);
            }
        }
        let lowering = self.least_lowering(leaf);
        let total = |bounds: &[u64]| bounds.iter().fold(lowering, |sum, b| sum.saturating_add(*b));
        let mut bound = total(&bounds);
        open.sort_by_key(|k| Reverse(self.parts[*k].gap()));
        for k in open {
            if bound > most || !wanted(bound) {
                return Ok((bound, false));
            }
            let part = &self.parts[k];
            let most = (most - (bound - bounds[k])) / part.count;
            let price = self.price(part, leaf, most)?;
            let least = price.unwrap_or(most.saturating_add(1));
            let before = bounds[k];
            bounds[k] = least.saturating_mul(part.count);
            bound = total(&bounds);
            let place = self.place(part, leaf);
            let part = &mut self.parts[k];
            part.asked += 1;
            part.exceeded = part.exceeded.saturating_add(bounds[k].saturating_sub(before));
            if let Some(known) = part.known.get_mut(place) {
                *known = price.map_or(Known::AtLeast(least), Known::Price);
            }
            if price.is_none() {
                return Ok((bound, false));
            }
        }
        Ok((bound, true))
    }

    /// A lower bound of a part's price, and whether it is the price: where nothing moves.
    fn least(&self, part: &Term, leaf: &Leaf) -> (u64, bool) {
        let (c, want) = (self.c, self.layout(part, leaf));
        let least = |t: &TensorType, src: &NdSbp, dst: &NdSbp| {
            let differs = (0..src.len()).any(|a| c.placement.dims()[a] > 1 && src[a] != dst[a]);
            match differs && !t.is_empty() {
                true => (self.floor.steps(need(&t.shape, c.placement.dims(), src, dst), t.dtype.size() as u64), false),
                false => (0, true),
            }
        };
        let (least, exact) = match part.of {
            Of::Output(o) => match c.request {
                Some(asked) if o == 0 => {
                    let (least, exact) = least(&c.outs[0], &want, asked);
                    (least.saturating_add(waste(c, &want, asked).unwrap_or(0)), exact)
                }
                _ => {
                    let axes = (0..want.len()).filter(|a| want[*a].is_partial());
                    let contributions = axes.map(|a| c.placement.dims()[a]).product();
                    (self.least_way_out(o, contributions), contributions == 1)
                }
            },
            Of::Input(i) | Of::Gradient(i) => {
                let (Some(have), Some(t)) = (&c.sbps[i], &c.infer.inputs[i]) else { return (0, true) };
                match part.of {
                    // What is not boxed has no gradient to box.
                    Of::Gradient(_) if *have != want => (least(t, &dual(&want), &dual(have)).0, false),
                    Of::Gradient(_) => (0, true),
                    _ => least(t, have, &want),
                }
            }
        };
        if exact { (least, true) } else { (least.max(self.of_axes(part, leaf, c.placement.axes())), false) }
    }

    /// A part's price if it is `most` at most.
    fn price(&self, part: &Term, leaf: &Leaf, most: u64) -> Result<Option<u64>> {
        self.count();
        let (c, want) = (self.c, self.layout(part, leaf));
        match part.of {
            Of::Output(o) => way_out(c, o, &want, most),
            Of::Input(i) | Of::Gradient(i) => {
                let (Some(have), Some(t)) = (&c.sbps[i], &c.infer.inputs[i]) else { return Ok(Some(0)) };
                match part.of {
                    _ if *have == want => Ok(Some(0)),
                    Of::Gradient(_) => c.cost_within(t, &dual(&want), &dual(have), most),
                    _ => c.cost_within(t, have, &want, most),
                }
            }
        }
    }
}

impl Of {
    fn of_row(self, s: &Signature) -> Sbp {
        match self {
            Of::Input(i) | Of::Gradient(i) => s.inputs[i],
            Of::Output(o) => s.outputs[o],
        }
    }

    fn of_listed(self, s: &NdSignature) -> &NdSbp {
        match self {
            Of::Input(i) | Of::Gradient(i) => &s.inputs[i],
            Of::Output(o) => &s.outputs[o],
        }
    }
}
