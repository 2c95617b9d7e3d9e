//! The states that moves along mesh axes reach from one end of a boxing, with their cheapest paths.

use super::axes::AxisSet;
use super::cost::{Groups, Model, MoveCost};
use super::memory::extra;
use super::sizes::{Sizes, largest_box};
use super::step::{Inner, Move};
use super::steps::{Broadcast, StepOp, cheapest_move};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp};
use oflow_kernels::DType;
use smallvec::{SmallVec, smallvec};
use std::cell::{Ref, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The entries of an nd-SBP on the axes that have more than one rank: the others have no say.
pub(super) type State = SmallVec<[Sbp; 4]>;

/// A mesh, for a tensor.
pub(super) struct Mesh<'a> {
    pub(super) model: &'a Model,
    pub(super) shape: &'a [usize],
    /// Bytes of an element.
    pub(super) element: u64,
    dtype: DType,
    /// Bytes besides source and destination shard that a step may take.
    pub(super) memory: Option<u64>,
    pub(super) placement: Placement,
    /// The axes with more than one rank, and their sizes.
    pub(super) axes: SmallVec<[usize; 4]>,
    pub(super) dims: SmallVec<[usize; 4]>,
    /// The groups along sets of these axes, as they were asked for.
    groups: RefCell<SmallVec<[(AxisSet, Groups); 8]>>,
}

impl<'a> Mesh<'a> {
    pub(super) fn new(
        model: &'a Model,
        memory: Option<u64>,
        shape: &'a [usize],
        dtype: DType,
        placement: &Placement,
    ) -> Mesh<'a> {
        let axes: SmallVec<[usize; 4]> = (0..placement.axes()).filter(|a| placement.dims()[*a] > 1).collect();
        Mesh {
            model,
            shape,
            element: dtype.size() as u64,
            memory,
            dims: axes.iter().map(|a| placement.dims()[*a]).collect(),
            dtype,
            groups: RefCell::default(),
            placement: placement.clone(),
            axes,
        }
    }

    /// The entries that count.
    pub(super) fn state(&self, sbp: &NdSbp) -> State {
        self.axes.iter().map(|a| sbp[*a]).collect()
    }

    /// The whole nd-SBP: that of `like` on the axes that do not count.
    pub(super) fn sbp(&self, state: &[Sbp], like: &NdSbp) -> NdSbp {
        let mut sbp = like.clone();
        self.axes.iter().zip(state).for_each(|(a, v)| sbp[*a] = *v);
        sbp
    }

    /// Whether a step keeps the memory limit; `ends` says whether it is the first and the last.
    pub(super) fn fits(&self, op: StepOp, sizes: (&[usize], &[usize]), reduced: u64, ends: (bool, bool)) -> bool {
        self.memory.is_none_or(|most| extra(op, sizes.0, sizes.1, reduced, ends) * self.element <= most)
    }

    /// The price of a broadcast from a corner to a state.
    pub(super) fn broadcast(&self, state: &[Sbp], corner: AxisSet) -> u64 {
        let ks: SmallVec<[usize; 4]> = corner.iter().map(|a| self.placement.dims()[a]).collect();
        let sizes = largest_box(self.shape, &self.dims, state);
        let groups = self.groups(corner);
        let at = MoveCost { model: self.model, groups: &groups, ks: &ks, sizes: &sizes, dtype: self.dtype };
        Move::price(&Broadcast { axes: corner }, &at).total()
    }

    /// The groups along some axes of the mesh.
    fn groups(&self, axes: AxisSet) -> Ref<'_, Groups> {
        let find = |all: &[(AxisSet, Groups)]| all.iter().position(|(a, _)| *a == axes);
        let known = find(&self.groups.borrow());
        let at = known.unwrap_or_else(|| {
            let mut all = self.groups.borrow_mut();
            all.push((axes, Groups::along(self.model, &self.placement, axes)));
            all.len() - 1
        });
        Ref::map(self.groups.borrow(), |all| &all[at].1)
    }

    /// The axes of the mesh for those that count.
    fn name(&self, axes: AxisSet) -> AxisSet {
        axes.iter().map(|a| self.axes[a]).collect()
    }

    /// The cheapest move between two states that differ on `set`, and its price.
    pub(super) fn price(&self, before: &[Sbp], set: AxisSet, to: Sbp) -> Option<(StepOp, u64)> {
        self.moves(before, set).price(before, to)
    }

    /// The moves along `set` of states that are alike on the other axes.
    fn moves(&self, state: &[Sbp], set: AxisSet) -> Moves<'_> {
        let mut sizes = Sizes::from_slice(self.shape);
        let mut ks = SmallVec::new();
        for (a, s) in state.iter().enumerate() {
            if set.contains(a) {
                ks.push(self.dims[a]);
            } else if let Sbp::Split(d) = *s {
                sizes[d] = sizes[d].div_ceil(self.dims[a]);
            }
        }
        let named = self.name(set);
        Moves { mesh: self, set, named, sizes, ks, groups: self.groups(named) }
    }
}

/// The moves along some axes, with what their prices have in common.
struct Moves<'a> {
    mesh: &'a Mesh<'a>,
    set: AxisSet,
    /// The axes of the mesh for those of `set`.
    named: AxisSet,
    /// The largest box before these axes split it.
    sizes: Sizes,
    ks: SmallVec<[usize; 4]>,
    groups: Ref<'a, Groups>,
}

impl Moves<'_> {
    fn price(&self, before: &[Sbp], to: Sbp) -> Option<(StepOp, u64)> {
        let Mesh { model, dims, dtype, .. } = self.mesh;
        let inner = Inner { dims, sbp: before, axes: self.set };
        let at = MoveCost { model, groups: &self.groups, ks: &self.ks, sizes: &self.sizes, dtype: *dtype };
        cheapest_move(self.named, (before[self.set.first()], to), &inner, &at)
    }
}

type Node = u32;

/// Cheapest known way to a state.
#[derive(Clone, Copy)]
struct Best {
    node: Node,
    /// The most there is for states that are too far away.
    cost: (u64, u32),
    /// Lower bound of what is left beyond the state.
    left: u64,
    /// The state before it on the path, seen from the anchor.
    towards: Node,
    op: Option<StepOp>,
    done: bool,
}

/// States that moves reach from an anchor, or that reach it by moves.
pub(super) struct Frontier<'a> {
    candidates: &'a [Sbp],
    axes: usize,
    /// In order of discovery.
    found: Vec<Best>,
    /// Per state its place in `found` and 1; 0 where nothing is known. There are thousands of states and most searches look at
    /// few.
    places: Vec<u32>,
    anchor: Node,
    target: Option<Node>,
    backward: bool,
}

impl<'a> Frontier<'a> {
    /// States that can be reached from `anchor`; `target` is where the whole boxing leads.
    pub(super) fn new(mesh: &Mesh, candidates: &'a [Sbp], anchor: &[Sbp], target: Option<&State>) -> Frontier<'a> {
        let axes = mesh.dims.len();
        let mut frontier = Frontier {
            candidates,
            axes,
            found: Vec::new(),
            places: vec![0; candidates.len().pow(axes as u32)],
            anchor: 0,
            target: None,
            backward: false,
        };
        frontier.anchor = frontier.node(anchor);
        frontier.target = target.map(|t| frontier.node(t));
        frontier
    }

    /// States from which `anchor` can be reached; `target` is where the whole boxing starts.
    pub(super) fn backward(mesh: &Mesh, candidates: &'a [Sbp], anchor: &[Sbp], target: Option<&State>) -> Frontier<'a> {
        Frontier { backward: true, ..Frontier::new(mesh, candidates, anchor, target) }
    }

    fn digit(&self, s: Sbp) -> Node {
        self.candidates.iter().position(|c| *c == s).unwrap_or(0) as Node
    }

    fn node(&self, state: &[Sbp]) -> Node {
        state.iter().fold(0, |n, s| n * self.candidates.len() as Node + self.digit(*s))
    }

    fn state(&self, node: Node) -> State {
        let (mut rest, count) = (node, self.candidates.len() as Node);
        let mut state: State = smallvec![Sbp::Broadcast; self.axes];
        for s in state.iter_mut().rev() {
            *s = self.candidates[(rest % count) as usize];
            rest /= count;
        }
        state
    }

    /// Cheapest known way to a state, if one was found.
    fn at(&self, node: Node) -> Option<&Best> {
        self.found.get((self.places[node as usize] as usize).wrapping_sub(1))
    }

    /// Remembers what is known of a state.
    fn put(&mut self, best: Best) {
        let place = &mut self.places[best.node as usize];
        match self.found.get_mut((*place as usize).wrapping_sub(1)) {
            Some(known) => *known = best,
            None => {
                self.found.push(best);
                *place = self.found.len() as u32;
            }
        }
    }

    /// The cheapest way between the anchor and a state, with its number of steps, if it was found.
    pub(super) fn cost(&self, state: &[Sbp]) -> Option<(u64, u32)> {
        self.at(self.node(state)).map(|b| b.cost).filter(|c| c.0 != u64::MAX)
    }

    /// The states found that may be on a path cheaper than `limit`, and what they cost.
    pub(super) fn reached(&self, limit: u64) -> impl Iterator<Item = (State, (u64, u32))> + '_ {
        let may = move |b: &&Best| b.cost.0.saturating_add(b.left) < limit;
        self.found.iter().filter(may).map(|b| (self.state(b.node), b.cost))
    }

    /// Finds every state that may be on a path cheaper than `limit`, given what is `left` beyond a state at least: any bound
    /// that is as much as the number given with the state will do. Where
    /// the frontier comes to its target, `limit` becomes the cost of that path.
    pub(super) fn explore(&mut self, mesh: &Mesh, limit: &mut (u64, u32), mut left: impl FnMut(&[Sbp], u64) -> u64) {
        let anchor = Best { node: self.anchor, cost: (0, 0), left: 0, towards: 0, op: None, done: false };
        self.put(anchor);
        let mut queue = BinaryHeap::from([Reverse((0, 0, self.anchor))]);
        while let Some(Reverse((least, _, node))) = queue.pop() {
            if least >= limit.0 {
                break;
            }
            let Some(best) = self.at(node).copied().filter(|b| !b.done && Some(node) != self.target) else { continue };
            self.put(Best { done: true, ..best });
            let (state, cost) = (self.state(node), best.cost);
            let count = self.candidates.len() as Node;
            for mask in 1u64..1 << self.axes {
                let first = mask.trailing_zeros() as usize;
                let members = (0..self.axes).filter(|a| mask >> a & 1 == 1);
                if members.clone().any(|a| state[a] != state[first]) {
                    continue;
                }
                let set: AxisSet = members.clone().collect();
                let here = self.digit(state[first]);
                let moves = mesh.moves(&state, set);
                let stride: Node = members.clone().map(|a| count.pow((self.axes - 1 - a) as u32)).sum();
                for digit in (0..count).filter(|d| *d != here) {
                    let next = node - here * stride + digit * stride;
                    let known = self.at(next).copied();
                    let most = known.map_or((u64::MAX, u32::MAX), |k| k.cost);
                    if cost.0 >= most.0 || cost.0.saturating_add(known.map_or(0, |k| k.left)) >= limit.0 {
                        continue;
                    }
                    let mut other = State::from_slice(&state);
                    members.clone().for_each(|a| other[a] = self.candidates[digit as usize]);
                    let (before, after) = if self.backward { (&other, &state) } else { (&state, &other) };
                    let Some((op, price)) = moves.price(before, after[first]) else { continue };
                    let new = (cost.0.saturating_add(price), cost.1 + 1);
                    if new >= most || new.0 >= limit.0 {
                        continue;
                    }
                    let is_target = Some(next) == self.target;
                    let known = known.unwrap_or_else(|| {
                        let left = if is_target { 0 } else { left(&other, limit.0 - new.0) };
                        Best { node: next, cost: most, left, towards: 0, op: None, done: false }
                    });
                    let least = new.0.saturating_add(known.left);
                    if least >= limit.0 {
                        self.put(known);
                        continue;
                    }
                    if mesh.memory.is_some() {
                        let sizes =
                            (largest_box(mesh.shape, &mesh.dims, before), largest_box(mesh.shape, &mesh.dims, after));
                        let (near, far) = (node == self.anchor, is_target);
                        let ends = if self.backward { (far, near) } else { (near, far) };
                        if !mesh.fits(op, (&sizes.0, &sizes.1), 1, ends) {
                            continue;
                        }
                    }
                    self.put(Best { cost: new, towards: node, op: Some(op), done: false, ..known });
                    if is_target {
                        *limit = new;
                    }
                    queue.push(Reverse((least, new.1, next)));
                }
            }
        }
    }

    /// The moves between the anchor and a state in order of execution: move, state after it, price.
    pub(super) fn path(&self, state: &[Sbp]) -> Vec<(StepOp, State, u64)> {
        let mut node = self.node(state);
        let mut moves = Vec::new();
        while node != self.anchor {
            let Some((best, op)) = self.at(node).and_then(|b| Some((b, b.op?))) else { break };
            let price = best.cost.0 - self.at(best.towards).map_or(0, |b| b.cost.0);
            moves.push((op, self.state(if self.backward { best.towards } else { node }), price));
            node = best.towards;
        }
        if !self.backward {
            moves.reverse();
        }
        moves
    }
}
