//! Data that the collective of a step, or of the steps of several boxings, moves between the members of its group.

use super::cost::{Model, all_reduce_sent};
use super::rank_step::{GroupOp, Members, Parts, RankCollective, RankStep};
use crate::placement::shard_range;
use oflow_base::host_hierarchy::{Flow, FlowKind, HostHierarchy, Width, one_phase_bytes};
use oflow_base::tree::Tree;
use oflow_kernels::{DType, ReduceOp};
use smallvec::SmallVec;
use std::ops::Range;

/// A collective, as one rank sees it.
pub(super) struct Moved<'a> {
    members: &'a Members,
    kind: FlowKind,
    /// Elements: of each member's part, or of the whole message where all members have it.
    counts: SmallVec<[usize; 8]>,
    width: Width,
}

impl<'a> Moved<'a> {
    /// Data moved by the collective of a step; none where there is no collective, or where each member has a message of its own for
    /// each other.
    pub(super) fn of(step: &'a RankStep, dtype: DType) -> Option<Moved<'a>> {
        let RankStep::Collective(RankCollective { op, members, cut, joined, size }) = step else { return None };
        let count = |size: &[usize]| size.iter().product::<usize>();
        let moved = Width::moved(dtype.size());
        let reduced = |op: ReduceOp| Width::reduced(dtype.size(), dtype.partial_size(op));
        // Of a dim that is cut or joined only the members' ranges count, and all other dims are as in the output.
        let parts = |p: &Parts| {
            let around = count(&size[..p.dim]) * count(&size[p.dim + 1..]);
            p.ranges.iter().map(|r| around * r.len()).collect()
        };
        let whole = || SmallVec::from_slice(&[count(size)]);
        let (kind, counts, width) = match op {
            GroupOp::AllReduce(op) => (FlowKind::AllReduce, whole(), reduced(*op)),
            GroupOp::AllGather => (FlowKind::AllGather, parts(joined.as_ref()?), moved),
            GroupOp::ReduceScatter(op) => (FlowKind::ReduceScatter, parts(cut.as_ref()?), reduced(*op)),
            GroupOp::Broadcast => (FlowKind::Broadcast, whole(), moved),
            GroupOp::AllToAll => return None,
        };
        Some(Moved { members, kind, counts, width })
    }

    /// Joins another collective of the kind, over the same group, with this one.
    pub(super) fn join(&mut self, other: &Moved) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(n, m)| *n += m);
    }

    /// Elements of the whole message.
    pub(super) fn elements(&self) -> u64 {
        self.flow().elements() as u64
    }

    fn flow(&self) -> Flow<'_> {
        match self.kind {
            FlowKind::AllReduce => Flow::AllReduce(self.counts[0]),
            FlowKind::AllGather => Flow::AllGather(&self.counts),
            FlowKind::ReduceScatter => Flow::ReduceScatter(&self.counts),
            FlowKind::Broadcast => Flow::Broadcast(self.counts[0], 0),
        }
    }

    /// How the group goes by hosts, if it does; `on_host` says whether the bytes pass through the memory of hosts.
    fn hierarchy(&self, model: &Model, on_host: bool) -> Option<HostHierarchy> {
        let hierarchy = if on_host { model.hierarchy(&self.members.ranks) } else { None };
        hierarchy.filter(|s| s.takes(self.kind, self.elements(), self.width))
    }

    /// The tree by which the members go, if they do; elements of some members' contributions, and of the result.
    fn tree(&self, on_host: bool) -> Option<(Tree, impl Fn(Range<usize>) -> u64, u64)> {
        let k = self.members.ranks.len();
        let whole = self.elements();
        let contributed = match self.kind {
            FlowKind::AllReduce => whole.saturating_mul(k as u64),
            FlowKind::AllGather => whole,
            FlowKind::ReduceScatter | FlowKind::Broadcast => return None,
        };
        let tree = Tree::of_short(k, contributed.saturating_mul(self.width.element)).filter(|_| on_host)?;
        let parts = move |members: Range<usize>| match self.kind {
            FlowKind::AllGather => self.counts[members].iter().sum::<usize>() as u64,
            _ => members.len() as u64 * whole,
        };
        Some((tree, parts, whole))
    }

    /// Bytes that this rank sends.
    pub(super) fn sent(&self, model: &Model, on_host: bool) -> u64 {
        let (k, me, flow) = (self.members.ranks.len(), self.members.me, self.flow());
        if let Some(hierarchy) = self.hierarchy(model, on_host) {
            return hierarchy.sent(me, flow, self.width);
        }
        if let Some((tree, parts, whole)) = self.tree(on_host) {
            return tree.sent(me, whole, parts) * self.width.element;
        }
        let elements = match flow {
            Flow::AllReduce(n) => all_reduce_sent(n, k, me, self.width.element),
            Flow::AllGather(counts) => (k as u64 - 1) * counts[me] as u64,
            Flow::ReduceScatter(counts) => (flow.elements() - counts[me]) as u64,
            Flow::Broadcast(n, _) => (Tree::of(k).children(me).count() * n) as u64,
        };
        elements * self.width.element
    }

    /// Tells what this rank receives: sender and bytes.
    pub(super) fn received(&self, model: &Model, on_host: bool, mut tell: impl FnMut(usize, u64)) {
        let (ranks, me, flow) = (&self.members.ranks, self.members.me, self.flow());
        if let Some(hierarchy) = self.hierarchy(model, on_host) {
            return hierarchy.received(me, flow, self.width, |from, bytes| tell(ranks[from], bytes));
        }
        let k = ranks.len();
        if let Some((tree, parts, whole)) = self.tree(on_host) {
            for i in tree.children(me).chain(tree.parent(me)) {
                tell(ranks[i], tree.received(me, i, whole, &parts) * self.width.element);
            }
            return;
        }
        let elements = |i: usize| match flow {
            Flow::AllReduce(n) if n as u64 * self.width.element <= one_phase_bytes(k) as u64 => n,
            Flow::AllReduce(n) => shard_range(n, k, me).len() + shard_range(n, k, i).len(),
            Flow::AllGather(counts) => counts[i],
            Flow::ReduceScatter(counts) => counts[me],
            Flow::Broadcast(n, _) if Tree::of(k).parent(me) == Some(i) => n,
            Flow::Broadcast(..) => 0,
        };
        for i in (0..k).filter(|i| *i != me) {
            tell(ranks[i], elements(i) as u64 * self.width.element);
        }
    }
}
