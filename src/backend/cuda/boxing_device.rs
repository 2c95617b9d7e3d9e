//! Shards on a GPU: kernels and copies on the communication stream, NCCL between the GPUs, or pinned memory and the
//! communicator of the host where ranks share a GPU or there is no NCCL.
//!
//! Everything that one rank does alone (packing, padding, identities, reductions of what came) is only put on the stream;
//! so is NCCL. A staged collective waits for the stream, because the host must have the bytes to pass them on. Its result
//! is on the way to the GPU when it returns.
//!
//! **Bits.** NCCL adds in an order of its own, so sums differ in their last bits from those of the other transports; but
//! every member gets the same (I12). Staged reductions and those at a receiver run in member order, as on the CPU. So do
//! the float maxima and minima that NCCL would rid of NaN.

use super::links::{Route, Routes};
use crate::boxing::{BoxingPlan, Communication, Members, RankStep, all_reduce_sent};
use crate::comm::nccl::{self, Guard, NcclComm};
use crate::comm::{Collective, CollectiveCall, Communicator, Group, Tag};
use crate::error::{Error, Result};
use crate::memory::{Allocator, Storage};
use crate::placement::shard_range;
use crate::vm::boxing_device::{ALIGN, Among, BoxingDevice, Message, Scratch, Span};
use oflow_base::host_hierarchy::one_phase_bytes;
use oflow_base::tree::Tree;
use oflow_kernels::cuda::{Queue, Stream, accumulate, copy};
use oflow_kernels::{DType, ReduceOp, View};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};

/// A GPU, for the collectives of one instruction.
pub(super) struct OnGpu<'a> {
    pub(super) queue: Queue<'a>,
    pub(super) comm: &'a dyn Communicator,
    /// Memory of the host.
    pub(super) host: &'a Allocator,
    pub(super) tag: &'a Tag,
    pub(super) links: &'a mut Routes,
    pub(super) guard: &'a Guard,
    /// Memory for this instruction: the stream waits for its former users, its next ones wait for the stream.
    pub(super) memory: &'a mut dyn FnMut(usize) -> Result<Storage>,
    pub(super) scratch_buffers: [Option<Storage>; Scratch::COUNT],
    pub(super) host_copies: &'a AtomicU64,
    pub(super) syncs: &'a AtomicU64,
}

type Counts = SmallVec<[usize; 8]>;

impl OnGpu<'_> {
    fn stream(&self) -> &Stream {
        self.queue.stream()
    }

    /// Makes the links that a plan needs. All ranks of both placements come here at the same place of their orders, even
    /// those that one of its exchanges does not concern.
    pub(super) fn prepare(&mut self, plan: &BoxingPlan) -> Result<()> {
        let rank = self.comm.rank();
        let program = plan.program(rank);
        for (step, mine) in plan.steps.iter().zip(&program.steps) {
            if let RankStep::Collective(c) = mine {
                self.link(&c.members.ranks).map(drop)?;
            }
            if matches!(step.op.communication(), Communication::Messages { .. }) {
                let set = self.links.union(plan);
                let ranks = self.links.set(set);
                if self.links.known(ranks).is_none() && ranks.contains(&rank) && plan.bytes_sent() > 0 {
                    let ranks = ranks.to_vec();
                    self.link(&ranks)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn link(&mut self, ranks: &[usize]) -> Result<Route> {
        self.links.link(ranks, self.comm, self.tag, self.guard)
    }

    fn copy_bytes(&self, from: Span, to: Span) -> Result<()> {
        if from.len == 0 || from.ptr == to.ptr {
            return Ok(());
        }
        // SAFETY: spans of this place: memory of this GPU that lives until the stream has passed, and do not overlap.
        Ok(unsafe { self.stream().copy_on_device(to.ptr, from.ptr, from.len) }?)
    }

    /// Messages between members; a message to itself is a copy.
    fn pass(&self, nccl: &NcclComm, sends: &[Message], receives: &[Message]) -> Result<()> {
        let rank = self.comm.rank();
        let member = |r: usize| {
            let lost = || Error::comm(format!("rank {r} is not a member of {:?}", nccl.ranks()));
            nccl.ranks().iter().position(|m| *m == r).ok_or_else(lost)
        };
        let (mut out, mut own): (SmallVec<[_; 8]>, _) = (SmallVec::new(), None);
        for (to, span) in sends.iter().filter(|m| m.1.len > 0) {
            match *to == rank {
                true => own = Some(*span),
                false => out.push((member(*to)?, span.ptr.cast_const(), span.len)),
            }
        }
        let mut back: SmallVec<[_; 8]> = SmallVec::new();
        for (from, span) in receives.iter().filter(|m| m.1.len > 0) {
            match (*from == rank, own) {
                (true, Some(mine)) => self.copy_bytes(mine, *span)?,
                _ => back.push((member(*from)?, span.ptr, span.len)),
            }
        }
        if out.is_empty() && back.is_empty() {
            return Ok(());
        }
        self.comm.count_sent(out.iter().map(|m| m.2 as u64).sum());
        // SAFETY: spans of this place: memory of this GPU that lives until the stream has passed.
        unsafe { nccl.exchange(self.stream(), &out, &back, self.tag) }
    }

    /// Bytes that members send each other, as messages.
    fn by_member(members: &Members, mut all: Span, counts: &[usize]) -> SmallVec<[Message; 8]> {
        let one = |(rank, count): (&usize, &usize)| {
            let (now, later) = all.split_at(*count);
            all = later;
            (*rank, now)
        };
        members.ranks.iter().zip(counts).map(one).collect()
    }

    /// Reduces the bytes received from the members in member order with its `own`: everyone sends everyone `sends`.
    fn reduce_received(
        &mut self,
        nccl: &NcclComm,
        members: &Members,
        sends: &[Message],
        (own, out): (Span, Span),
        (dtype, op): (DType, ReduceOp),
    ) -> Result<()> {
        let stride = out.len.next_multiple_of(ALIGN);
        let mut rest = self.scratch_buffer(Scratch::Reduce, stride * (members.ranks.len() - 1))?;
        let mut parts: SmallVec<[Span; 8]> = SmallVec::new();
        let mut receives: SmallVec<[Message; 8]> = SmallVec::new();
        for (i, rank) in members.ranks.iter().enumerate() {
            let part = if i == members.me { own } else { rest.cut(out.len) };
            parts.push(part);
            if i != members.me {
                receives.push((*rank, part));
            }
        }
        let others: SmallVec<[Message; 8]> = sends.iter().copied().filter(|m| m.0 != self.comm.rank()).collect();
        self.pass(nccl, &others, &receives)?;
        self.reduce(out, &parts, dtype, op)
    }

    /// A collective through the host: what it sends is copied there, what it makes is copied back.
    fn staged(&mut self, members: &Members, call: CollectiveCall<'_, Span, Span>) -> Result<()> {
        let group = Group { ranks: members.ranks.clone(), me: members.me };
        let (comm, tag) = (self.comm, self.tag);
        let (send, receive) = match &call {
            // The host's call has one buffer: the root sends from a copy of its own.
            CollectiveCall::Broadcast { root, buffer } if *root == members.me => (Some(*buffer), None),
            call => {
                let (read, written) = call.buffers();
                (read.copied(), written.copied())
            }
        };
        self.through_host(send.as_slice(), receive.as_slice(), |sent, received| {
            let mut own = Vec::new();
            let sent: &[u8] = sent.first().map_or(&[], |s| s);
            let received: &mut [u8] = match received.first_mut() {
                Some(received) => received,
                None => {
                    own.extend_from_slice(sent);
                    &mut own
                }
            };
            comm.run(&group, tag, call.map(|_| sent, |_| received))
        })
    }

    /// A collective that NCCL does not have, as messages between the members: padding would send more.
    fn by_messages(&mut self, nccl: &NcclComm, members: &Members, call: CollectiveCall<'_, Span, Span>) -> Result<()> {
        let to_all = |span: Span| members.ranks.iter().map(|r| (*r, span)).collect::<SmallVec<[Message; 8]>>();
        match call {
            CollectiveCall::AllReduce { send, receive, dtype, op } => {
                let k = members.ranks.len();
                if send.len <= one_phase_bytes(k) {
                    return self.reduce_received(nccl, members, &to_all(send), (send, receive), (dtype, op));
                }
                let n = send.len / dtype.size();
                let counts: Counts = (0..k).map(|i| shard_range(n, k, i).len() * dtype.size()).collect();
                let parts = Self::by_member(members, send, &counts);
                let results = Self::by_member(members, receive, &counts);
                let (own, result) = (parts[members.me].1, results[members.me].1);
                self.reduce_received(nccl, members, &parts, (own, result), (dtype, op))?;
                self.pass(nccl, &to_all(result), &results)
            }
            CollectiveCall::AllGather { send, receive, counts } => {
                self.pass(nccl, &to_all(send), &Self::by_member(members, receive, counts))
            }
            CollectiveCall::ReduceScatter { send, receive, counts, dtype, op } => {
                let parts = Self::by_member(members, send, counts);
                self.reduce_received(nccl, members, &parts, (parts[members.me].1, receive), (dtype, op))
            }
            CollectiveCall::AllToAll { send, send_counts, receive, receive_counts } => {
                let sends = Self::by_member(members, send, send_counts);
                self.pass(nccl, &sends, &Self::by_member(members, receive, receive_counts))
            }
            CollectiveCall::Broadcast { .. } | CollectiveCall::Barrier => self.staged(members, call),
        }
    }

    pub(super) fn through_host(
        &mut self,
        sends: &[Span],
        receives: &[Span],
        run: impl FnOnce(&[&[u8]], &mut [&mut [u8]]) -> Result<()>,
    ) -> Result<()> {
        let all = |spans: &[Span]| spans.iter().map(|s| s.len.next_multiple_of(ALIGN)).sum::<usize>();
        let (out, back) = (all(sends), all(receives));
        let stream = self.queue.stream();
        let room = self.links.staging.pinned_buffers(stream, out, back)?;
        let (mut to, mut from) = (Span { ptr: room.0, len: out }, Span { ptr: room.1, len: back });
        let mut copies: SmallVec<[Span; 8]> = SmallVec::new();
        for span in sends {
            let host = to.cut(span.len);
            copies.push(host);
            if span.len > 0 {
                self.host_copies.fetch_add(1, Ordering::Relaxed);
                // SAFETY: memory of this GPU and pinned memory that no other copy uses, both alive until the wait below.
                unsafe { stream.copy_to_host(host.ptr, span.ptr, span.len) }?;
            }
        }
        if out > 0 {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            stream.synchronize()?;
            if let Some(e) = self.guard.failure() {
                return Err(e);
            }
        }
        // SAFETY: pinned memory of that many initialised bytes, whose copies are done.
        let sent: SmallVec<[&[u8]; 8]> =
            copies.iter().map(|s| unsafe { std::slice::from_raw_parts(s.ptr, s.len) }).collect();
        let mut received: SmallVec<[&mut [u8]; 8]> = SmallVec::new();
        let mut hosts: SmallVec<[Span; 8]> = SmallVec::new();
        for span in receives {
            let host = from.cut(span.len);
            hosts.push(host);
            // SAFETY: pinned memory that no copy uses, cut into parts that do not overlap.
            received.push(unsafe { std::slice::from_raw_parts_mut(host.ptr, span.len) });
        }
        run(&sent, &mut received)?;
        for (host, span) in hosts.iter().zip(receives).filter(|(h, _)| h.len > 0) {
            self.host_copies.fetch_add(1, Ordering::Relaxed);
            self.links.staging.pending = true;
            // SAFETY: memory of this GPU, and pinned memory that is used again only after a wait for the stream.
            unsafe { stream.copy_to_device(span.ptr, host.ptr, host.len) }?;
        }
        Ok(())
    }
}

/// Bytes that this member sends when NCCL carries a call out.
fn sent(members: &Members, call: &CollectiveCall<'_, Span, Span>) -> u64 {
    let (k, me) = (members.ranks.len(), members.me);
    match call {
        CollectiveCall::Broadcast { buffer, .. } => (buffer.len * Tree::of(k).children(me).count()) as u64,
        CollectiveCall::AllReduce { send, dtype, .. } => {
            let element = dtype.size() as u64;
            all_reduce_sent(send.len / dtype.size(), k, me, element) * element
        }
        CollectiveCall::AllGather { send, .. } => (send.len * (k - 1)) as u64,
        CollectiveCall::ReduceScatter { send, receive, .. } => (send.len - receive.len) as u64,
        // Not carried out by NCCL: messages are counted where they are sent.
        CollectiveCall::AllToAll { .. } | CollectiveCall::Barrier => 0,
    }
}

impl BoxingDevice for OnGpu<'_> {
    fn rank(&self) -> usize {
        self.comm.rank()
    }
    fn scratch_buffer(&mut self, which: Scratch, bytes: usize) -> Result<Span> {
        if bytes == 0 {
            return Ok(Span { ptr: std::ptr::without_provenance_mut(ALIGN), len: 0 });
        }
        let buffer = &mut self.scratch_buffers[which.index()];
        // What was there is still read by work on the stream, and only the stream writes it again.
        let storage = match buffer.take().filter(|s| s.bytes() >= bytes) {
            Some(s) => s,
            None => (self.memory)(bytes)?,
        };
        Ok(Span { ptr: buffer.insert(storage).ptr(), len: bytes })
    }
    fn copy(&mut self, from: &View, to: &View) -> Result<()> {
        Ok(copy::copy(&self.queue, from, to)?)
    }
    fn identity(&mut self, out: &View, op: ReduceOp) -> Result<()> {
        Ok(accumulate::fill_identity(&self.queue, out, op)?)
    }
    fn reduce(&mut self, out: Span, from: &[Span], dtype: DType, op: ReduceOp) -> Result<()> {
        let from: SmallVec<[*const u8; 16]> = from.iter().map(|s| s.ptr.cast_const()).collect();
        Ok(accumulate::reduce_slices(&self.queue, out.ptr, &from, out.len / dtype.size(), dtype, op)?)
    }

    fn collective(&mut self, members: &Members, call: CollectiveCall<'_, Span, Span>) -> Result<()> {
        let route = self.link(&members.ranks)?;
        let (send, receive) = call.buffers();
        let longest = send.map_or(0, |s| s.len).max(receive.map_or(0, |r| r.len));
        // In an all-to-all others may have bytes where this member has none.
        if longest == 0 && !matches!(call.kind(), Collective::AllToAll | Collective::Barrier) {
            return Ok(());
        }
        match route {
            Route::Alone => match (send, receive) {
                (Some(send), Some(receive)) => self.copy_bytes(*send, *receive),
                _ => Ok(()),
            },
            Route::Nccl(nccl) if nccl::has(&call) => {
                self.comm.count_sent(sent(members, &call));
                let call = call.map(|s| (s.ptr.cast_const(), s.len), |r| (r.ptr, r.len));
                // SAFETY: spans of this place, with the lengths that the call says: memory of this GPU that lives until the
                // stream has passed.
                unsafe { nccl.run(self.stream(), call, self.tag) }
            }
            Route::Nccl(nccl) => self.by_messages(&nccl, members, call),
            Route::Staged => self.staged(members, call),
        }
    }

    fn exchange(&mut self, among: Among, sends: &[Message], receives: &[Message]) -> Result<()> {
        let link = match among {
            Among::Ranks(ranks) => self.links.known(ranks),
            Among::Plan(plan) => {
                let set = self.links.union(plan);
                self.links.known(self.links.set(set))
            }
        };
        match link.ok_or_else(|| Error::comm("an exchange between GPUs was not prepared"))?.clone() {
            Route::Alone => Ok(()),
            Route::Nccl(nccl) => self.pass(&nccl, sends, receives),
            Route::Staged => {
                let spans = |all: &[Message]| all.iter().map(|m| m.1).collect::<SmallVec<[Span; 8]>>();
                let (out, back) = (spans(sends), spans(receives));
                let (comm, tag) = (self.comm, self.tag);
                self.through_host(&out, &back, |sent, received| {
                    let to: SmallVec<[(usize, &[u8]); 8]> =
                        sends.iter().map(|m| m.0).zip(sent.iter().copied()).collect();
                    let mut from: SmallVec<[(usize, &mut [u8]); 8]> =
                        receives.iter().map(|m| m.0).zip(received.iter_mut().map(|r| &mut **r)).collect();
                    comm.exchange(tag, &to, &mut from)
                })
            }
        }
    }

    fn scope(&mut self, plan: &BoxingPlan) -> usize {
        self.links.union(plan)
    }
}
