//! Joining the moves from the source with those into the destination by an exchange, or by two of which the first reduces.

use super::{Corner, Entry, Path, Search, Source};
use crate::boxing::axes::AxisSet;
use crate::boxing::bound::{Corners, Floor, Ways, becomes_partial, need};
use crate::boxing::cost::per_kib;
use crate::boxing::exchange::{Own, same_mesh};
use crate::boxing::frontier::{Frontier, Mesh, State};
use crate::boxing::sizes::{Sizes, count, largest_box};
use crate::boxing::steps::{self, StepOp};
use crate::placement::{MeshAxis, Placement};
use crate::sbp::Layout;
use crate::sbp::{NdSbp, Sbp};
use smallvec::SmallVec;
use std::sync::Arc;

impl Search<'_> {
    /// A lower bound of an exchange from a state to an entry on the same mesh.
    pub(super) fn least_exchange(&self, floor: &Floor, source: &Source, entry: &Entry) -> u64 {
        let ways = Ways::of(&self.from.dims, &source.state, &entry.state);
        floor.exchange_of_first(&ways, &source.sizes, &entry.sizes, self.from.element)
    }

    /// Joins pairs of both frontiers by exchanges.
    pub(super) fn join_frontiers(&self, best: &mut Path, sources: &[Source], backward: &Frontier, floor: &Floor) {
        let entries = self.entries(backward, best.cost.0);
        let (mesh, one) = (&self.from, self.to.is_none());
        let mut pairs: Vec<(u64, u32, usize, usize)> = Vec::new();
        let mut bounds = ExchangeBounds::new(mesh, floor);
        let mut wants: Vec<Option<Corners>> = entries.iter().map(|_| None).collect();
        for (i, source) in sources.iter().enumerate() {
            let (state, cost) = (&source.state, source.cost);
            for (j, entry) in entries.iter().enumerate() {
                let ends = cost.0.saturating_add(entry.left.0);
                if ends.saturating_add(floor.exchange_local) >= best.cost.0 {
                    continue;
                }
                if let Some(c) = &entry.corner
                    && c.is_source
                    && mesh.state(&c.sbp) == *state
                {
                    // The source is the corner: nothing to exchange.
                    let total = (ends, cost.1 + entry.left.1);
                    if total < best.cost {
                        let (broadcast, to) = (entry.corner.clone(), Some(entry.state.clone()));
                        *best = Path { broadcast, to, ..Path::of_moves(total, Some(state.clone())) };
                    }
                    continue;
                }
                let least = match (one, &entry.corner) {
                    (true, _) if *state == entry.state => continue,
                    (true, _) => {
                        if ends.saturating_add(self.least_exchange(floor, source, entry)) >= best.cost.0 {
                            continue;
                        }
                        let want = wants[j].get_or_insert_with(|| bounds.want(&entry.state));
                        bounds.least((i, state), (&entry.state, want))
                    }
                    (false, _) => self.with_exchange(state, entry, |x| x.least_price(mesh.element)),
                };
                let bound = ends.saturating_add(least);
                if bound < best.cost.0 {
                    pairs.push((bound, cost.1 + 1 + entry.left.1, i, j));
                }
            }
        }
        pairs.sort_unstable();
        for (bound, _, i, j) in pairs {
            if bound >= best.cost.0 {
                break;
            }
            self.join(best, &sources[i].state, sources[i].cost, &entries[j]);
        }
    }

    /// Joins states of the forward frontier with the goal by two exchanges, of which the first reduces.
    pub(super) fn join_twice(&self, best: &mut Path, sources: &[Source], floor: &Floor) {
        let mesh = &self.from;
        if self.to.is_some() {
            return;
        }
        let need = need(mesh.shape, &mesh.dims, &self.start, &self.goal);
        if !need.reduces || floor.two_exchanges(need, mesh.element) >= best.cost.0 {
            return;
        }
        let (mut first, no_axes) = (ExchangeBounds::new(mesh, floor), AxisSet::default());
        let want_goal = first.want(&self.goal);
        let goal_sizes = largest_box(mesh.shape, &mesh.dims, &self.goal);
        // The smallest shard there is, from each contribution but one that has to be reduced whatever the middle.
        let share = mesh.shape.iter().map(|n| *n as u64).product::<u64>().div_ceil(mesh.placement.len() as u64);
        let begins = |s: &Source| {
            let ways = Ways::of(&mesh.dims, &s.state, &self.goal);
            let sent = ways.sent_to_reduce(count(&s.sizes)).max(share.saturating_mul(ways.contributions - 1));
            s.cost.0.saturating_add(match sent {
                0 => floor.exchange_local,
                n => {
                    floor.exchange_start.saturating_add(per_kib(n.saturating_mul(mesh.element), floor.exchange_per_kib))
                }
            })
        };
        let begins: Vec<u64> = sources.iter().map(begins).collect();
        let first_begins = begins.iter().min().copied().unwrap_or(u64::MAX);
        let most = best.cost.0;
        // The middles, and of each what the second exchange costs once it is priced.
        let mut middles: Vec<(State, Option<(StepOp, u64)>)> = Vec::new();
        let mut triples = Vec::new();
        // Before some of its axes split a middle, this is a bound of all that split it further.
        let of_receiver = Ways::of_receiver();
        let ends = |sizes: &[usize]| floor.exchange_of_first(&of_receiver, sizes, &goal_sizes, mesh.element);
        let fits = |sizes: &[usize]| first_begins.saturating_add(ends(sizes)) < most;
        self.middles(&mut SmallVec::new(), &Sizes::from_slice(mesh.shape), &fits, &mut |middle, sizes| {
            if Ways::of(&mesh.dims, &self.start, middle).contributions == 1 {
                return;
            }
            let have = Corners::of(mesh.shape, &mesh.dims, middle, becomes_partial(middle, &self.goal), no_axes);
            let (whole, ends) = ((mesh.shape, mesh.dims.as_slice()), (self.goal.as_slice(), &want_goal));
            let second = floor.exchange(whole, (middle, &have), ends, mesh.element);
            let (mut want, at) = (None, middles.len());
            let before = triples.len();
            for (i, Source { state, sizes: have, cost }) in sources.iter().enumerate() {
                if cost.0.saturating_add(second) >= most {
                    break;
                }
                if begins[i].saturating_add(second) >= most {
                    continue;
                }
                let ways = Ways::of(&mesh.dims, state, middle);
                let of_first = floor.exchange_of_first(&ways, have, sizes, mesh.element);
                if cost.0.saturating_add(of_first).saturating_add(second) >= most {
                    continue;
                }
                let want = want.get_or_insert_with(|| first.want(middle));
                let bound = cost.0.saturating_add(first.least((i, state), (middle, want))).saturating_add(second);
                if bound < most {
                    triples.push((bound, i, at));
                }
            }
            if triples.len() > before {
                middles.push((State::from_slice(middle), None));
            }
        });
        triples.sort_unstable();
        for (bound, i, at) in triples {
            if bound >= best.cost.0 {
                break;
            }
            let (middle, known) = &mut middles[at];
            let before = sources[i].cost;
            if known.is_none() {
                let goal = self.entry(self.goal.clone(), None, (0, 0));
                let left = best.cost.0.saturating_sub(before.0).saturating_sub(floor.exchange_local);
                *known = self.with_exchange(middle, &goal, |x| {
                    let op = steps::Exchange { kept: x.kept, device_copy: false }.into();
                    Some((op, x.price_within(mesh.element, left)?))
                });
            }
            let Some((op, second)) = *known else { continue };
            let fits = mesh.memory.is_none() || {
                let sizes = |s: &[Sbp]| largest_box(mesh.shape, &mesh.dims, s);
                mesh.fits(op, (&sizes(middle), &sizes(&self.goal)), 1, (false, true))
            };
            let entry = self.entry(middle.clone(), None, (second, 1));
            let mut path = best.clone();
            self.join(&mut path, &sources[i].state, before, &entry);
            if fits && path.cost < best.cost {
                *best = Path { middle: Some((middle.clone(), op, second)), to: Some(self.goal.clone()), ..path };
            }
        }
    }

    /// Visits the states that continue `begun` and are split where the source was reduced, or as the goal has it, with the
    /// sizes of their first box. `fits` says of the sizes so far whether a state may go on like that.
    fn middles(
        &self,
        begun: &mut State,
        sizes: &Sizes,
        fits: &dyn Fn(&[usize]) -> bool,
        visit: &mut dyn FnMut(&[Sbp], &[usize]),
    ) {
        let axis = begun.len();
        if axis == self.goal.len() {
            return visit(begun, sizes);
        }
        for s in &self.candidates {
            let mut sizes = sizes.clone();
            match s {
                Sbp::Split(d) => sizes[*d] = sizes[*d].div_ceil(self.from.dims[axis]),
                _ if *s != self.goal[axis] => continue,
                _ => {}
            }
            if fits(&sizes) {
                begun.push(*s);
                self.middles(begun, &sizes, fits, visit);
                begun.pop();
            }
        }
    }

    /// Where an exchange may lead.
    fn entries(&self, backward: &Frontier, limit: u64) -> Vec<Entry> {
        let mut entries = Vec::new();
        let corners = if self.to.is_some() { self.corners() } else { SmallVec::new() };
        let mesh = self.dst_mesh();
        for (state, left) in backward.reached(limit) {
            for c in &corners {
                if mesh.axes.iter().zip(&state).all(|(a, s)| !c.axes.contains(*a) || s.is_broadcast()) {
                    let sbp = corner_sbp(&mesh.sbp(&state, &self.dst.sbp), c.axes, c.placement.axes());
                    let left = (left.0.saturating_add(mesh.broadcast(&state, c.axes)), left.1 + 1);
                    entries.push(self.entry(state.clone(), Some(Corner { sbp, ..c.clone() }), left));
                }
            }
            entries.push(self.entry(state, None, left));
        }
        entries
    }

    /// The corners from which a broadcast may lead to the destination, with B for a layout.
    fn corners(&self) -> SmallVec<[Corner; 4]> {
        let src = &self.src.placement;
        let corner = |axes| {
            let placement = corner_of(&self.dst.placement, axes)?;
            let is_source = same_mesh(&placement, src) && placement.device() == src.device();
            let (own, sbp) = (Arc::new(Own::new(src, &placement)), NdSbp::broadcast(placement.axes()));
            Some(Corner { axes, placement, own, is_source, sbp })
        };
        corners(self.dst).into_iter().filter_map(corner).collect()
    }
}

/// Lower bounds of exchanges within a mesh; remembers the corners of sources.
struct ExchangeBounds<'a> {
    mesh: &'a Mesh<'a>,
    floor: &'a Floor,
    /// By source, for sets of axes that become partial.
    have: Vec<SmallVec<[(AxisSet, Corners); 1]>>,
}

impl<'a> ExchangeBounds<'a> {
    fn new(mesh: &'a Mesh<'a>, floor: &'a Floor) -> ExchangeBounds<'a> {
        ExchangeBounds { mesh, floor, have: Vec::new() }
    }

    /// The corners of a destination.
    fn want(&self, state: &[Sbp]) -> Corners {
        Corners::of(self.mesh.shape, &self.mesh.dims, state, AxisSet::default(), AxisSet::default())
    }

    fn least(&mut self, (i, from): (usize, &[Sbp]), (to, want): (&[Sbp], &Corners)) -> u64 {
        let (shape, dims) = (self.mesh.shape, self.mesh.dims.as_slice());
        if self.have.len() <= i {
            self.have.resize_with(i + 1, SmallVec::new);
        }
        let first = becomes_partial(from, to);
        let known = &mut self.have[i];
        let at = known.iter().position(|(f, _)| *f == first).unwrap_or_else(|| {
            known.push((first, Corners::of(shape, dims, from, first, AxisSet::default())));
            known.len() - 1
        });
        self.floor.exchange((shape, dims), (from, &known[at].1), (to, want), self.mesh.element)
    }
}

/// The corners of a mesh from which a broadcast may lead to a layout: coordinate 0 of one axis that is B, or of all.
fn corners(dst: &Layout) -> SmallVec<[AxisSet; 4]> {
    let whole: AxisSet =
        (0..dst.sbp.len()).filter(|a| dst.sbp[*a].is_broadcast() && dst.placement.dims()[*a] > 1).collect();
    let mut all: SmallVec<[AxisSet; 4]> = whole.iter().map(|a| [a].into_iter().collect()).collect();
    if all.len() > 1 {
        all.push(whole);
    }
    all
}

/// The placement of a corner.
fn corner_of(mesh: &Placement, corner: AxisSet) -> Option<Placement> {
    corner.iter().rev().try_fold(mesh.clone(), |p, a| p.slice(MeshAxis(a), 0).ok())
}

/// Part of a mesh's nd-SBP that holds at a corner: the entries of the other axes, B on the axis of a single rank.
fn corner_sbp(sbp: &NdSbp, corner: AxisSet, axes: usize) -> NdSbp {
    let rest: NdSbp = (0..sbp.len()).filter(|a| !corner.contains(*a)).map(|a| sbp[a]).collect();
    if rest.is_empty() { NdSbp::broadcast(axes) } else { rest }
}
