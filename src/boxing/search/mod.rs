//! Cheapest path over the layouts between source and destination.
//!
//! **States** are nd-SBPs whose entries are B, the partials present at either end, or a split of any dim. Splits that stand
//! at neither end are worth their time: they make the all-reduce along two axes a reduce-scatter, a smaller all-reduce and
//! an all-gather. Partials that stand at neither end are considered only where a dim is smaller than a mesh axis: there
//! all data may lie on one rank, and changing to another partial costs nothing. Dims that are split at neither end and are
//! divided evenly by the mesh are worth the same; so of many dims only the best are considered: as many as keep the number
//! of states within [`MOST_STATES`], and one at least.
//!
//! **Edges** are the legal moves along one axis or along several with the same SBP, the exchange, which leads from any
//! state to any other, and towards another mesh the broadcast from a *corner* of it.
//!
//! **Search.** An exchange does the work of two, so a path is: moves, at most one exchange (and broadcast), moves. The one
//! exception is an exchange that reduces: its result may be sent on in a second one, straight to the destination, which
//! costs less than reducing every copy. Two frontiers are explored, moves from the source and moves into the destination, each
//! bounded by the cheapest path so far and by what is left at least (`bound.rs`), as in A*. Then pairs of both are joined by
//! an exchange, cheapest bound first, until no bound is below the best path. Most pairs are left out by a bound from the
//! boxes of the first rank alone, which takes less time. None of this is done where one step is known
//! to be best: every path of several costs the lower bound and the start of one more step at least. A test compares with a
//! brute force over all dims, all partials and any number of exchanges.

mod join_frontiers;

use crate::boxing::axes::AxisSet;
use crate::boxing::bound::{Corners, Floor, need, need_of, need_so_far, partials};
use crate::boxing::cost::Model;
use crate::boxing::exchange::{Exchange, Own, same_mesh};
use crate::boxing::frontier::{Frontier, Mesh, State};
use crate::boxing::memory::extra_memory;
use crate::boxing::sizes::{Sizes, largest_box};
use crate::boxing::steps::{self, BoxingStep, StepOp};
use crate::placement::Placement;
use crate::sbp::Layout;
use crate::sbp::{NdSbp, Sbp};
use oflow_kernels::{DType, ReduceOp};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::sync::Arc;

/// Limit of nd-SBP states explored per mesh. Exceeded only if the SBPs of both ends plus one dim need more.
const MOST_STATES: usize = 1 << 10;

/// Result of a search: the steps, and whether they exceed the memory limit.
pub(super) struct CheapestPath {
    pub(super) steps: Vec<BoxingStep>,
    /// No path keeps the memory limit: this is the one that takes least.
    pub(super) over_memory: bool,
}

/// The cheapest steps from `src` to `dst`, both valid for the shape, if they cost no more than `most`. Only where there is no
/// limit of extra bytes is it known early that they cost more.
pub(super) fn cheapest_within(
    model: &Model,
    shape: &[usize],
    dtype: DType,
    (src, dst): (&Layout, &Layout),
    most: u64,
) -> Option<CheapestPath> {
    if model.extra_memory.is_some() {
        let found = cheapest(model, shape, dtype, src, dst);
        return (price(&found.steps) <= most).then_some(found);
    }
    let Some(search) = Search::new(model, None, shape, dtype, src, dst) else {
        return Some(CheapestPath { steps: Vec::new(), over_memory: false });
    };
    search.run(most).map(|steps| CheapestPath { steps, over_memory: false })
}

/// Total cost of the steps, in picoseconds.
pub(super) fn price(steps: &[BoxingStep]) -> u64 {
    steps.iter().fold(0, |sum: u64, s| sum.saturating_add(s.cost_ps))
}

/// The cheapest steps from `src` to `dst`, both valid for the shape, with the model's limit of extra bytes if that can be.
pub(super) fn cheapest(model: &Model, shape: &[usize], dtype: DType, src: &Layout, dst: &Layout) -> CheapestPath {
    let run = |memory| Search::new(model, memory, shape, dtype, src, dst).map(|s| s.run(u64::MAX));
    let none = |found: Option<Option<Vec<BoxingStep>>>| match found {
        None => Some(Vec::new()),
        Some(steps) => steps,
    };
    if let Some(steps) = none(run(model.extra_memory)) {
        return CheapestPath { steps, over_memory: false };
    }
    // Each round takes less than the one before, until nothing does.
    let mut steps = none(run(None)).unwrap_or_default();
    loop {
        let most = extra_memory(shape, dtype.size() as u64, &steps);
        match most.checked_sub(1).and_then(|less| none(run(Some(less)))) {
            Some(smaller) => steps = smaller,
            None => return CheapestPath { steps, over_memory: true },
        }
    }
}

/// The SBPs that a state may have on an axis.
fn candidates(shape: &[usize], src: &Layout, dst: &Layout, dtype: DType) -> SmallVec<[Sbp; 12]> {
    let mut all: SmallVec<[Sbp; 12]> = src.sbp.iter().chain(dst.sbp.iter()).copied().collect();
    all.push(Sbp::Broadcast);
    let axes = || [src, dst].into_iter().flat_map(|l| l.placement.dims());
    let longest_axis = axes().max().copied().unwrap_or(1);
    if shape.iter().any(|n| *n < longest_axis) {
        let ops = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min].into_iter().filter(|op| dtype.reduces(*op));
        all.extend(ops.map(Sbp::Partial));
    }
    all.sort_unstable();
    all.dedup();
    let most = src.placement.axes().max(dst.placement.axes()) as u32;
    let mut spare: SmallVec<[usize; 8]> = (0..shape.len()).filter(|d| !all.contains(&Sbp::Split(*d))).collect();
    let uneven = |d: usize| [src, dst].iter().any(|l| !shape[d].is_multiple_of(l.placement.len().max(1)));
    spare.sort_by_key(|d| (uneven(*d), Reverse(shape[*d]), *d));
    let fits = |count: usize| count.checked_pow(most).is_some_and(|states| states <= MOST_STATES);
    let kept = (1..=spare.len()).take_while(|n| *n == 1 || fits(all.len() + n)).count();
    all.extend(spare[..kept].iter().map(|d| Sbp::Split(*d)));
    all.sort_unstable();
    all
}

/// One search.
struct Search<'a> {
    src: &'a Layout,
    dst: &'a Layout,
    own: Own,
    from: Mesh<'a>,
    /// The destination's mesh, if it is another one.
    to: Option<Mesh<'a>>,
    candidates: SmallVec<[Sbp; 12]>,
    start: State,
    goal: State,
}

/// The best path so far.
#[derive(Clone)]
struct Path {
    /// Price and number of steps: of two paths that cost the same the shorter is taken.
    cost: (u64, u32),
    /// The last state of the moves from the source; none if there is no path yet.
    from: Option<State>,
    /// The exchange that joins the moves on the two meshes, if there is one.
    exchange: Option<StepOp>,
    /// Where the exchange leads if a second one goes on from there, and what that costs.
    middle: Option<(State, StepOp, u64)>,
    broadcast: Option<Corner>,
    /// The first state of the moves into the destination; none if the moves from the source reach it.
    to: Option<State>,
}

impl Path {
    fn of_moves(cost: (u64, u32), from: Option<State>) -> Path {
        Path { cost, from, exchange: None, middle: None, broadcast: None, to: None }
    }
}

/// A corner of the destination's mesh, with what it is for a state of the mesh.
#[derive(Clone)]
struct Corner {
    axes: AxisSet,
    placement: Placement,
    /// Where its ranks stand in the source's mesh.
    own: Arc<Own>,
    /// Whether the corner lies on the source's mesh.
    is_source: bool,
    sbp: NdSbp,
}

/// Where an exchange may lead: the destination's mesh, or a corner of it.
struct Entry {
    state: State,
    corner: Option<Corner>,
    /// Sizes of the state's first box.
    sizes: Sizes,
    /// Cost that remains from there, in picoseconds, and the number of steps.
    left: (u64, u32),
}

/// A state that moves reach from the source.
struct Source {
    state: State,
    /// Sizes of its first box.
    sizes: Sizes,
    /// Price and steps of the moves.
    cost: (u64, u32),
}

impl<'a> Search<'a> {
    /// None when there is nothing to do.
    fn new(
        model: &'a Model,
        memory: Option<u64>,
        shape: &'a [usize],
        dtype: DType,
        src: &'a Layout,
        dst: &'a Layout,
    ) -> Option<Search<'a>> {
        // Meshes that differ in axis names only are one mesh; another device kind needs a copy, which the exchange makes.
        let one = same_mesh(&src.placement, &dst.placement) && src.placement.device() == dst.placement.device();
        let mesh = |p: &Placement| Mesh::new(model, memory, shape, dtype, p);
        let (from, to) = (mesh(&src.placement), (!one).then(|| mesh(&dst.placement)));
        let start = from.state(&src.sbp);
        let goal = to.as_ref().unwrap_or(&from).state(&dst.sbp);
        if shape.contains(&0) || (one && start == goal) {
            return None;
        }
        let own = Own::new(&src.placement, &dst.placement);
        Some(Search { src, dst, own, candidates: candidates(shape, src, dst, dtype), from, to, start, goal })
    }

    fn source(&self, state: State, cost: (u64, u32)) -> Source {
        Source { sizes: largest_box(self.from.shape, &self.from.dims, &state), state, cost }
    }

    fn entry(&self, state: State, corner: Option<Corner>, left: (u64, u32)) -> Entry {
        let mesh = self.dst_mesh();
        Entry { sizes: largest_box(mesh.shape, &mesh.dims, &state), state, corner, left }
    }

    fn dst_mesh(&self) -> &Mesh<'a> {
        self.to.as_ref().unwrap_or(&self.from)
    }

    /// The steps, unless all ways cost more than `most` or the memory limit forbids them.
    fn run(&self, most: u64) -> Option<Vec<BoxingStep>> {
        // What costs more is not better than this.
        let mut best = Path::of_moves((most.saturating_add(1), if most == u64::MAX { u32::MAX } else { 0 }), None);
        let (mesh, candidates) = (&self.from, &self.candidates);
        let floor = Floor::new(mesh.model, mesh.placement.device());
        let direct = self.entry(self.goal.clone(), None, (0, 0));
        let start = self.source(self.start.clone(), (0, 0));
        // Always there, whatever it costs, where any price will do: something to beat.
        if most == u64::MAX || self.to.is_some() || self.least_exchange(&floor, &start, &direct) < best.cost.0 {
            self.join(&mut best, &self.start, (0, 0), &direct);
        }
        let none = AxisSet::default();
        let corners = |s: &[Sbp], joined| Corners::of(mesh.shape, &mesh.dims, s, none, joined);
        let one = self.to.is_none();
        if one && mesh.memory.is_none() {
            let several = floor.several_steps(need(mesh.shape, &mesh.dims, &self.start, &self.goal), mesh.element);
            match self.one_step(&best).filter(|step| step.cost_ps <= most) {
                Some(step) if step.cost_ps <= several => return Some(vec![step]),
                None if several > most => return None,
                _ => {}
            }
        }
        let target = one.then_some(&self.goal);
        let mut forward = Frontier::new(mesh, candidates, &self.start, target);
        let want = one.then(|| (corners(&self.goal, none), partials(&self.goal)));
        let quickly = |from: &[Sbp], to: &[Sbp]| {
            need_so_far(mesh.shape, &mesh.dims, from, to).map_or(0, |need| floor.steps(need, mesh.element))
        };
        forward.explore(mesh, &mut best.cost, |s, enough| match &want {
            Some((want, joined)) => {
                let least = quickly(s, &self.goal);
                if least >= enough {
                    return least;
                }
                let have = corners(s, *joined);
                floor.steps(need_of(mesh.shape, &mesh.dims, (s, &have), (&self.goal, want)), mesh.element)
            }
            None => floor.exchange_local,
        });
        if let Some(cost) = target.and_then(|t| forward.cost(t)).filter(|c| *c <= best.cost) {
            best = Path::of_moves(cost, target.cloned());
        }
        let sources = self.sources(&forward, best.cost.0);
        let into = self.dst_mesh();
        let mut backward = Frontier::backward(into, candidates, &self.goal, one.then_some(&self.start));
        let mut limit = best.cost;
        // By the axes that are partial in the state.
        let mut haves: SmallVec<[(AxisSet, Corners); 2]> = SmallVec::new();
        backward.explore(into, &mut limit, |s, enough| match one {
            true => {
                let least = quickly(&self.start, s);
                if least >= enough {
                    return least;
                }
                let joined = partials(s);
                let at = haves.iter().position(|(j, _)| *j == joined).unwrap_or_else(|| {
                    haves.push((joined, corners(&self.start, joined)));
                    haves.len() - 1
                });
                let ends = ((self.start.as_slice(), &haves[at].1), (s, &corners(s, none)));
                floor.steps(need_of(mesh.shape, &mesh.dims, ends.0, ends.1), mesh.element)
            }
            false => floor.exchange_local,
        });
        self.join_frontiers(&mut best, &sources, &backward, &floor);
        self.join_twice(&mut best, &sources, &floor);
        (best.from.is_some()).then(|| self.steps(&best, &forward, &backward))
    }

    /// The states of the forward frontier that may be on a path cheaper than `limit`, cheapest first.
    fn sources(&self, forward: &Frontier, limit: u64) -> Vec<Source> {
        let mut sources: Vec<Source> = forward.reached(limit).map(|(state, cost)| self.source(state, cost)).collect();
        sources.sort_by_key(|s| s.cost);
        sources
    }

    /// The cheaper of the move from the source to the destination, if it is one, and of the exchange that is known.
    fn one_step(&self, known: &Path) -> Option<BoxingStep> {
        let mesh = &self.from;
        let set: AxisSet = (0..self.start.len()).filter(|a| self.start[*a] != self.goal[*a]).collect();
        let first = set.first();
        let is_move = set.iter().all(|a| (self.start[a], self.goal[a]) == (self.start[first], self.goal[first]));
        let moved = if is_move { mesh.price(&self.start, set, self.goal[first]) } else { None };
        let (op, cost_ps) = match moved.filter(|m| m.1 <= known.cost.0) {
            Some(found) => found,
            None => (known.exchange?, known.cost.0),
        };
        let at = |state: &[Sbp]| Layout::new(&mesh.placement, mesh.sbp(state, &self.dst.sbp));
        Some(BoxingStep { op, before: at(&self.start), after: at(&self.goal), cost_ps })
    }

    /// Asks the exchange from a state of the source's mesh to an entry.
    fn with_exchange<R>(&self, state: &[Sbp], entry: &Entry, ask: impl FnOnce(&Exchange) -> R) -> R {
        let whole = |mesh: &Mesh, state: &[Sbp]| mesh.sbp(state, &NdSbp::broadcast(mesh.placement.axes()));
        let before = whole(&self.from, state);
        let mesh = &self.from;
        match &entry.corner {
            Some(c) => {
                let ends = ((&mesh.placement, &before), (&c.placement, &c.sbp));
                ask(&Exchange::new(mesh.model, mesh.shape, ends.0, ends.1, &c.own))
            }
            None => {
                let (to, after) = (self.dst_mesh(), whole(self.dst_mesh(), &entry.state));
                let ends = ((&mesh.placement, &before), (&to.placement, &after));
                ask(&Exchange::new(mesh.model, mesh.shape, ends.0, ends.1, &self.own))
            }
        }
    }

    /// Prices a path with an exchange and takes it if it is better than what there is.
    fn join(&self, best: &mut Path, state: &State, before: (u64, u32), entry: &Entry) {
        let mesh = &self.from;
        let devices = (self.src.placement.device(), self.dst.placement.device());
        let limit = best.cost.0.saturating_sub(before.0.saturating_add(entry.left.0));
        let asked = self.with_exchange(state, entry, |x| {
            Some((x.kept, x.price_within(mesh.element, limit)?, x.contributions() as u64))
        });
        let Some((kept, price, reduced)) = asked else { return };
        let op = steps::Exchange { kept, device_copy: devices.0 != devices.1 }.into();
        let cost = (before.0.saturating_add(price).saturating_add(entry.left.0), before.1 + 1 + entry.left.1);
        if cost >= best.cost {
            return;
        }
        if mesh.memory.is_some() {
            let after = match &entry.corner {
                Some(c) => largest_box(mesh.shape, c.placement.dims(), &c.sbp),
                None => largest_box(mesh.shape, &self.dst_mesh().dims, &entry.state),
            };
            let ends = (*state == self.start, entry.corner.is_none() && entry.state == self.goal);
            if !mesh.fits(op, (&largest_box(mesh.shape, &mesh.dims, state), &after), reduced, ends) {
                return;
            }
        }
        let (broadcast, to) = (entry.corner.clone(), Some(entry.state.clone()));
        *best = Path { exchange: Some(op), broadcast, to, ..Path::of_moves(cost, Some(state.clone())) };
    }

    /// The steps of a path, with the layouts between them.
    fn steps(&self, path: &Path, forward: &Frontier, backward: &Frontier) -> Vec<BoxingStep> {
        let mut found: Vec<(StepOp, Layout, u64)> = Vec::new();
        // On axes of size 1, where all SBPs are the same thing, a layout has that of the destination, or B on another mesh.
        let like = if self.to.is_some() { NdSbp::broadcast(self.src.placement.axes()) } else { self.dst.sbp.clone() };
        let first = Layout::new(&self.from.placement, self.from.sbp(&self.start, &like));
        let on = |mesh: &Mesh, state: &[Sbp], like: &NdSbp| Layout::new(&mesh.placement, mesh.sbp(state, like));
        let Some(from) = &path.from else { return Vec::new() };
        for (op, state, cost) in forward.path(from) {
            found.push((op, on(&self.from, &state, &like), cost));
        }
        let into = self.dst_mesh();
        if let Some(to) = &path.to {
            let landed = on(into, to, &self.dst.sbp);
            let left = backward.cost(to).map_or(0, |c| c.0);
            let broadcast = path.broadcast.as_ref().map_or(0, |c| into.broadcast(to, c.axes));
            if let Some(op) = path.exchange {
                let second = path.middle.as_ref().map_or(0, |m| m.2);
                let price = path.cost.0 - forward.cost(from).map_or(0, |c| c.0) - left - broadcast - second;
                let at = path.broadcast.as_ref().map(|c| Layout::new(&c.placement, c.sbp.clone()));
                let between = path.middle.as_ref().map(|m| on(into, &m.0, &self.dst.sbp));
                found.push((op, at.or(between).unwrap_or_else(|| landed.clone()), price));
            }
            if let Some((_, op, price)) = path.middle {
                found.push((op, landed.clone(), price));
            }
            if let Some(c) = &path.broadcast {
                found.push((steps::Broadcast { axes: c.axes }.into(), landed, broadcast));
            }
            for (op, state, cost) in backward.path(to) {
                found.push((op, on(into, &state, &self.dst.sbp), cost));
            }
        }
        let mut before = first;
        found
            .into_iter()
            .map(|(op, after, cost_ps)| {
                let step = BoxingStep { op, before: before.clone(), after: after.clone(), cost_ps };
                before = after;
                step
            })
            .collect()
    }
}
