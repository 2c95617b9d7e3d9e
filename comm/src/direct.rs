//! The way of each collective: by a tree ([`tree`](super::tree)), by hosts ([`hierarchical`](super::hierarchical)), or between members that
//! send directly to each other, which is written here (an all-reduce's in [`all_reduce`](super::all_reduce)). The arguments have been checked.

use super::collectives::{Outgoing, Pieces, Session, others, piece_bytes, round_range, rounds};
use super::hierarchical::hierarchy_of;
use super::transport::Transport;
use super::zero_copy::{RawSlice, RawSliceMut};
use super::{DType, Group, ReduceOp};
use oflow_base::Result;
use oflow_base::host_hierarchy::{FlowKind, Width, one_phase_bytes};
use oflow_base::tree::Tree;
use smallvec::SmallVec;
use std::ops::Range;

impl<'d, T: Transport> Session<'_, 'd, T> {
    pub(super) fn barrier(&self, group: &Group) -> Result<()> {
        if let Some(tree) = Tree::of_short(group.ranks.len(), 0) {
            return self.barrier_by_tree(group, tree);
        }
        if group.ranks.len() > 1 {
            self.post_to_all(group, RawSlice::from(&[][..]), 0)?;
        }
        others(group).try_for_each(|(_, from)| self.receive(from, 0).map(drop))
    }

    pub(super) fn broadcast(&self, group: &Group, root: usize, buf: &'d mut [u8]) -> Result<()> {
        if let Some(hierarchy) = hierarchy_of(self.link.hosts(), group, FlowKind::Broadcast, buf.len(), Width::moved(1))
        {
            return self.broadcast_hierarchical(group, &hierarchy, root, buf);
        }
        let (n, chunk, m) = (buf.len(), piece_bytes(self.link.capacity(), 1), group.ranks.len());
        // Members counted from the root.
        let me = (group.me + m - root) % m;
        let rank = |number: usize| group.ranks[(number + root) % m];
        let parent = Tree::of(m).parent(me).map(rank);
        let children: SmallVec<[usize; 8]> = Tree::of(m).children(me).map(rank).collect();
        let mut buf = RawSliceMut::from(buf);
        for round in 0..rounds(n, chunk) {
            let range = round_range(n, chunk, round);
            if let Some(parent) = parent {
                self.take(parent, n, &buf.destination(range.clone()))?;
            }
            if !children.is_empty() {
                let piece = |&reader| Outgoing { reader, bytes: buf.part(range.clone()), total: n };
                self.post(&children.iter().map(piece).collect::<Pieces>())?;
            }
        }
        Ok(())
    }

    pub(super) fn all_reduce(
        &self,
        group: &Group,
        (send, recv): (&'d [u8], &'d mut [u8]),
        scratch: &mut Vec<u8>,
        (dtype, op): (DType, ReduceOp),
    ) -> Result<()> {
        let (m, n) = (group.ranks.len(), send.len());
        let hierarchy = |kind| {
            let width = Width::reduced(dtype.size(), dtype.partial_size(op));
            hierarchy_of(self.link.hosts(), group, kind, n, width)
        };
        if m == 1 {
            recv.copy_from_slice(send);
            Ok(())
        } else if let Some(tree) = self.tree(m, m.saturating_mul(n)) {
            self.all_reduce_by_tree(group, tree, (send, recv), scratch, (dtype, op))
        } else if n <= one_phase_bytes(m).min(self.link.capacity()) {
            self.one_phase(group, (send, recv), (dtype, op))
        } else if let Some(hierarchy) = hierarchy(FlowKind::AllReduce) {
            self.all_reduce_hierarchical(group, &hierarchy, (send, recv), scratch, (dtype, op))
        } else {
            self.two_phases(group, (send, recv), scratch, (dtype, op))
        }
    }

    pub(super) fn all_gather(
        &self,
        group: &Group,
        (send, recv): (&'d [u8], &'d mut [u8]),
        counts: &[usize],
    ) -> Result<()> {
        let (chunk, total) = (piece_bytes(self.link.capacity(), 1), recv.len());
        if let Some(tree) = self.tree(group.ranks.len(), total) {
            return self.all_gather_by_tree(group, tree, send, recv, counts);
        }
        if group.ranks.len() == 1 {
            recv.copy_from_slice(send);
            return Ok(());
        }
        if let Some(hierarchy) = hierarchy_of(self.link.hosts(), group, FlowKind::AllGather, total, Width::moved(1)) {
            let mut to = cut(recv, counts);
            to[group.me].copy_from_slice(send);
            return self.all_gather_hierarchical(group, &hierarchy, send, &mut to, total);
        }
        let starts = starts(counts);
        let mut to = RawSliceMut::from(recv);
        let last = counts.iter().map(|&c| rounds(c, chunk)).max().unwrap_or(0);
        for round in 0..last {
            if round < rounds(send.len(), chunk) {
                let piece = RawSlice::from(send).part(round_range(send.len(), chunk, round));
                self.post_to_all(group, piece, send.len())?;
                let Range { start, end } = round_range(send.len(), chunk, round);
                let at = starts[group.me];
                to.destination(at + start..at + end).fill(&send[start..end]);
            }
            for (i, from) in others(group).filter(|(i, _)| round < rounds(counts[*i], chunk)) {
                let Range { start, end } = round_range(counts[i], chunk, round);
                let next = &send[round_range(send.len(), chunk, round + 1)];
                self.take(from, counts[i], &to.destination(starts[i] + start..starts[i] + end).before(next))?;
            }
        }
        Ok(())
    }

    pub(super) fn reduce_scatter(
        &self,
        group: &Group,
        (send, recv): (&'d [u8], &mut [u8]),
        counts: &[usize],
        scratch: &mut Vec<u8>,
        (dtype, op): (DType, ReduceOp),
    ) -> Result<()> {
        let m = group.ranks.len();
        let width = Width::reduced(dtype.size(), dtype.partial_size(op));
        if let Some(hierarchy) = hierarchy_of(self.link.hosts(), group, FlowKind::ReduceScatter, send.len(), width) {
            return self.reduce_scatter_hierarchical(group, &hierarchy, send, (recv, counts), scratch, (dtype, op));
        }
        let starts = starts(counts);
        let mine = starts[group.me]..starts[group.me] + recv.len();
        if m == 1 {
            recv.copy_from_slice(send);
            return Ok(());
        }
        let chunk = piece_bytes(self.link.capacity(), m - 1);
        let in_round = |j: usize, round: usize| {
            let r = round_range(counts[j], chunk, round);
            (round < rounds(counts[j], chunk)).then_some(starts[j] + r.start..starts[j] + r.end)
        };
        let last = counts.iter().map(|&c| rounds(c, chunk)).max().unwrap_or(0);
        for round in 0..last {
            if others(group).any(|(j, _)| in_round(j, round).is_some()) {
                self.post_to_each(group, send.into(), |j| in_round(j, round), |j| counts[j])?;
            }
            if let Some(range) = in_round(group.me, round) {
                let dst = &mut recv[range.start - mine.start..range.end - mine.start];
                self.reduce_from_all(group, counts[group.me], (&send[range], dst), (dtype, op))?;
            }
        }
        Ok(())
    }

    pub(super) fn all_to_all(
        &self,
        group: &Group,
        (send, send_counts): (&'d [u8], &[usize]),
        (recv, recv_counts): (&mut [u8], &[usize]),
    ) -> Result<()> {
        let mut sends = SmallVec::<[(usize, &[u8]); 8]>::new();
        let mut at = 0;
        for (&rank, &count) in group.ranks.iter().zip(send_counts) {
            sends.push((rank, &send[at..at + count]));
            at += count;
        }
        let mut recvs: SmallVec<[(usize, &mut [u8]); 8]> =
            group.ranks.iter().copied().zip(cut(recv, recv_counts)).collect();
        let (_, own) = sends.remove(group.me);
        recvs.remove(group.me).1.copy_from_slice(own);
        self.swap(&sends, &mut recvs)
    }
}

/// Where the members' parts start.
fn starts(counts: &[usize]) -> SmallVec<[usize; 8]> {
    counts.iter().scan(0, |at, c| Some(std::mem::replace(at, *at + c))).collect()
}

/// Cuts a slice by counts.
fn cut<'a>(mut bytes: &'a mut [u8], counts: &[usize]) -> SmallVec<[&'a mut [u8]; 8]> {
    let mut parts = SmallVec::new();
    for &c in counts {
        let (head, tail) = bytes.split_at_mut(c);
        parts.push(head);
        bytes = tail;
    }
    parts
}
