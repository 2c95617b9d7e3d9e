//! Cheapest path over the layouts between source and destination (Dijkstra).
//!
//! States are nd-SBPs whose entries are B, the partials present at either end, or a split of a dim: of any dim on meshes of
//! up to two axes, on others of each dim that is split at either end and of the longest. Splits that stand at neither end
//! are worth their time: they make the all-reduce along two axes a reduce-scatter, a smaller all-reduce and an all-gather.
//! A test compares with a brute force over all dims and partials.
//!
//! Edges are the legal moves along one axis and the exchange. On one mesh the exchange leads from any state to any other;
//! between two meshes it leads from the source's states to the destination's, so reducing or slicing before sending, and
//! gathering after, come out of the same search.

use super::cost::{self, Algorithm, LinkKind, Model};
use super::exchange::{Exchange, Own, same_mesh};
use super::plan::Layout;
use super::step::{BoxingStep, StepOp, move_along};
use crate::placement::{Placement, shard_range};
use crate::sbp::{NdSbp, Sbp};
use oflow_kernels::{DType, Dims};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// On meshes of at most so many axes splits of all dims are considered.
const ALL_DIMS_AXES: usize = 2;

type Node = usize;
/// Cost and steps; state; for an exchange that is not priced yet, the state that it comes from.
type Queue = BinaryHeap<Reverse<((u64, u32), Node, Option<Node>)>>;

struct Search<'a> {
    model: &'a Model,
    shape: &'a [usize],
    element: u64,
    sides: SmallVec<[Side; 2]>,
    candidates: SmallVec<[Sbp; 8]>,
    own: Own,
    best: Vec<Best>,
}

/// One mesh and the states on it.
struct Side {
    placement: Placement,
    first: Node,
    states: usize,
}

#[derive(Clone, Copy)]
struct Best {
    /// Price and number of steps: of two paths that cost the same the shorter is taken.
    cost: (u64, u32),
    from: Node,
    step: Option<StepOp>,
    done: bool,
}

const UNREACHED: Best = Best { cost: (u64::MAX, u32::MAX), from: 0, step: None, done: false };

/// The cheapest steps from `src` to `dst`. Both layouts are valid for the shape.
pub(super) fn cheapest(model: &Model, shape: &[usize], dtype: DType, src: &Layout, dst: &Layout) -> Vec<BoxingStep> {
    let same_ranks = same_mesh(&src.placement, &dst.placement);
    // Meshes that differ in axis names only are one mesh; another device kind needs a copy, which the exchange makes.
    let one = same_ranks && src.placement.device() == dst.placement.device();
    let start = if one { free_moves(&dst.placement, &src.sbp, &dst.sbp) } else { src.sbp.clone() };
    if shape.contains(&0) || (one && start == dst.sbp) {
        return Vec::new();
    }
    let candidates = candidates(shape, src, dst);
    let mut sides: SmallVec<[Side; 2]> = SmallVec::new();
    let mut first = 0;
    let placements = if one { vec![&dst.placement] } else { vec![&src.placement, &dst.placement] };
    for placement in placements {
        let states = candidates.len().pow(placement.axes() as u32);
        sides.push(Side { placement: placement.clone(), first, states });
        first += states;
    }
    let mut search = Search {
        model,
        shape,
        element: dtype.size() as u64,
        candidates,
        own: Own::new(&src.placement, &dst.placement),
        best: vec![UNREACHED; first],
        sides,
    };
    let from = search.node(0, &start);
    let to = search.node(search.sides.len() - 1, &dst.sbp);
    search.run(from, to);
    search.path(from, to)
}

/// The state with the destination's SBP on the axes of size 1, where all SBPs are the same thing.
fn free_moves(placement: &Placement, sbp: &NdSbp, dst: &NdSbp) -> NdSbp {
    (0..sbp.len()).map(|a| if placement.dims()[a] == 1 { dst[a] } else { sbp[a] }).collect()
}

fn candidates(shape: &[usize], src: &Layout, dst: &Layout) -> SmallVec<[Sbp; 8]> {
    let mut all: SmallVec<[Sbp; 8]> = src.sbp.iter().chain(dst.sbp.iter()).copied().collect();
    all.push(Sbp::Broadcast);
    if src.placement.axes().max(dst.placement.axes()) <= ALL_DIMS_AXES {
        all.extend((0..shape.len()).map(Sbp::Split));
    } else {
        let longest = (0..shape.len()).max_by_key(|d| (shape[*d], Reverse(*d)));
        all.extend(longest.map(Sbp::Split));
    }
    all.sort_unstable();
    all.dedup();
    all
}

impl Search<'_> {
    fn node(&self, side: usize, sbp: &NdSbp) -> Node {
        let index = |s: &Sbp| self.candidates.iter().position(|c| c == s).unwrap_or(0);
        self.sides[side].first + sbp.iter().fold(0, |n, s| n * self.candidates.len() + index(s))
    }

    fn side(&self, node: Node) -> usize {
        self.sides.iter().rposition(|s| s.first <= node).unwrap_or(0)
    }

    fn sbp(&self, node: Node) -> NdSbp {
        let side = &self.sides[self.side(node)];
        let mut rest = node - side.first;
        let mut sbp = NdSbp::broadcast(side.placement.axes());
        for a in (0..sbp.len()).rev() {
            sbp[a] = self.candidates[rest % self.candidates.len()];
            rest /= self.candidates.len();
        }
        sbp
    }

    fn layout(&self, node: Node) -> Layout {
        Layout { placement: self.sides[self.side(node)].placement.clone(), sbp: self.sbp(node) }
    }

    fn relax(&mut self, from: Node, to: Node, op: StepOp, price: u64) -> bool {
        let (cost, steps) = self.best[from].cost;
        let new = (cost.saturating_add(price), steps + 1);
        let better = new < self.best[to].cost;
        if better {
            self.best[to] = Best { cost: new, from, step: Some(op), done: false };
        }
        better
    }

    fn run(&mut self, from: Node, to: Node) {
        self.best[from].cost = (0, 0);
        // The direct exchange is always there: an upper bound that prunes from the start.
        self.relax_exchange(from, to);
        let mut queue: Queue =
            BinaryHeap::from([Reverse((self.best[from].cost, from, None)), Reverse((self.best[to].cost, to, None))]);
        while let Some(Reverse((cost, node, exchanged_from))) = queue.pop() {
            if node == to && cost == self.best[to].cost && exchanged_from.is_none() {
                return;
            }
            if let Some(before) = exchanged_from {
                // Priced by its lower bound so far, and now the cheapest that is left.
                if self.relax_exchange(before, node) {
                    queue.push(Reverse((self.best[node].cost, node, None)));
                }
                continue;
            }
            if self.best[node].done || cost != self.best[node].cost {
                continue;
            }
            self.best[node].done = true;
            let side = self.side(node);
            let sbp = self.sbp(node);
            for axis in 0..sbp.len() {
                if self.sides[side].placement.dims()[axis] == 1 {
                    continue;
                }
                for next in self.moves(side, &sbp, axis, node) {
                    if self.relax(node, next.0, next.1, next.2) && self.best[next.0].cost <= self.best[to].cost {
                        queue.push(Reverse((self.best[next.0].cost, next.0, None)));
                    }
                }
            }
            if side == 0 {
                self.bound_exchanges(node, &sbp, to, &mut queue);
            }
        }
    }

    /// Queues the exchanges from a state by a lower bound of their price: pricing one takes longer than anything else here.
    fn bound_exchanges(&self, node: Node, sbp: &NdSbp, to: Node, queue: &mut Queue) {
        let (cost, steps) = self.best[node].cost;
        let target = &self.sides[self.sides.len() - 1];
        let exchange = (&self.sides[0].placement, &target.placement);
        // What a rank can do alone after an exchange, the exchange does itself, but for padding parts that went to different
        // ranks: without that a path that goes on has a collective.
        let pads = self.sbp(to).has_partial();
        let gather = self.model.rate(LinkKind::SameHost, Algorithm::AllGather);
        let beyond = if pads { self.model.local_ps } else { gather.price(1, 0) };
        for next in target.first..target.first + target.states {
            let later = if next == to { 0 } else { beyond };
            let limit = self.best[next].cost.0.min(self.best[to].cost.0.saturating_sub(later));
            if next == node || self.best[next].done || cost + self.model.local_exchange_ps > limit {
                continue;
            }
            let next_sbp = self.sbp(next);
            let x = Exchange::new(self.shape, (exchange.0, sbp), (exchange.1, &next_sbp), &self.own);
            let bound = cost.saturating_add(x.least_price(self.model, self.element));
            if bound <= limit {
                queue.push(Reverse(((bound, steps + 1), next, Some(node))));
            }
        }
    }

    fn moves(&self, side: usize, sbp: &NdSbp, axis: usize, node: Node) -> SmallVec<[(Node, StepOp, u64); 8]> {
        let placement = &self.sides[side].placement;
        let k = placement.dims()[axis];
        let mut sizes: Dims = self.shape.into();
        for a in (0..sbp.len()).filter(|a| *a != axis) {
            if let Sbp::Split(d) = sbp[a] {
                sizes[d] = shard_range(sizes[d], placement.dims()[a], 0).len();
            }
        }
        let link = self.model.along(placement, axis);
        let count = self.candidates.len();
        let stride = count.pow((sbp.len() - 1 - axis) as u32);
        let here = self.candidates.iter().position(|c| *c == sbp[axis]).unwrap_or(0);
        let edge = |(i, to): (usize, &Sbp)| {
            let op = move_along(placement.dims(), sbp, axis, *to)?;
            Some((node - here * stride + i * stride, op, cost::of_move(self.model, link, op, k, &sizes, self.element)))
        };
        self.candidates.iter().enumerate().filter_map(edge).collect()
    }

    fn relax_exchange(&mut self, from: Node, next: Node) -> bool {
        let (src, dst) = (self.sbp(from), self.sbp(next));
        let (before, after) = (&self.sides[0].placement, &self.sides[self.sides.len() - 1].placement);
        let x = Exchange::new(self.shape, (before, &src), (after, &dst), &self.own);
        let op = StepOp::Exchange { kept: x.kept, device_copy: before.device() != after.device() };
        let price = x.price(self.model, self.element);
        self.relax(from, next, op, price)
    }

    fn path(&self, from: Node, to: Node) -> Vec<BoxingStep> {
        let mut steps = Vec::new();
        let mut node = to;
        while node != from {
            let Best { from: previous, step: Some(op), cost, .. } = self.best[node] else { break };
            let cost_ps = cost.0 - self.best[previous].cost.0;
            steps.push(BoxingStep { op, before: self.layout(previous), after: self.layout(node), cost_ps });
            node = previous;
        }
        steps.reverse();
        steps
    }
}
