//! Every collective, written once over a [`Transport`]. Here are the session of a call and what its steps share; `direct.rs`
//! chooses a way for each collective and has those between members that send directly to each other.
//!
//! | collective | steps | payload bytes a rank sends (m members, n bytes) |
//! |---|---|---|
//! | barrier | everyone posts nothing to everyone | 0 |
//! | barrier, short all_reduce or all_gather of many members | up a binomial tree and down again (`tree`) | what those below it contribute, and the result for each child |
//! | broadcast | a binomial tree from the root: everyone reads from its parent and posts to its children | n for each child |
//! | all_reduce, n ≤ [`one_phase_bytes`](oflow_base::host_hierarchy::one_phase_bytes)`(m)` | everyone posts all, everyone reduces all | (m - 1) n |
//! | all_reduce, larger | per chunk: reduce-scatter, then all-gather; the next chunk is posted in between | 2 n (m - 1) / m |
//! | all_gather | everyone posts its part to everyone | (m - 1) own |
//! | reduce_scatter | everyone posts to each the part that it reduces | n - own |
//! | all_to_all, exchange | everyone posts to each its message | what it sends to others |
//! | long broadcast, all_reduce, all_gather, reduce_scatter on hosts with several members | by hosts (`hierarchical`) | each byte crosses from one host to another once |
//!
//! Long messages go in rounds of pieces (`piece_bytes`), of which an outbox buffer holds those of one round. **Buffer hazards**: a
//! buffer is overwritten only after all its readers have released it, which the transport ensures, for small and large calls
//! alike. If all readers of a post are on other hosts it is sent from the caller's memory, which is not written again before the
//! call ends; and what such ranks send is received in the caller's memory.
//! **Deadlock freedom**: in round r a rank posts all its r-th chunks, then takes all r-th chunks sent to it. It may wait in
//! round r only for ranks that are in a round ≤ r - [`SLOTS`] (to free a buffer) or in a round ≤ r and not past its posts
//! (for a chunk); so a rank in the smallest round can always go on. In a broadcast a rank posts after it has read: it waits
//! for its parent, which waits for its own in the same round, up to the root, which waits for no posts.
//! **Bits**: a member that reduces an element reduces the members' values in member order; the others receive the result.

use super::transport::{Outbox, Piece, RunningCall, Segment, Transport};
use super::zero_copy::{Destination, RawSlice, RawSliceMut};
use super::{Collective, CollectiveCall, Communicator, DType, Group, Pulse, ReduceOp, Tag, Traffic, now_ns};
use oflow_base::{Error, Result};
use oflow_kernels::cpu::accumulate::reduce_slices;
use smallvec::SmallVec;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(doc)]
use super::transport::SLOTS;

/// Parts of an outbox start at multiples of this, so that they are aligned for every dtype and share no cache line.
pub(super) const ALIGN: usize = 64;

/// A [`Communicator`] over any transport.
pub struct Collectives<T> {
    rank: usize,
    world: usize,
    state: Mutex<State<T>>,
    bytes_sent: AtomicU64,
    between_hosts: AtomicU64,
    calls: AtomicU64,
    waited_ns: AtomicU64,
    pulse: Arc<dyn Pulse>,
}

struct State<T> {
    link: T,
    /// Contributions and partial results on their way.
    scratch: Vec<u8>,
    /// The first error: the streams of posts may be out of step after it, so nothing more is tried.
    failed: Option<String>,
}

impl<T: Transport> Collectives<T> {
    /// Makes the collectives over a transport.
    pub fn new(link: T) -> Self {
        Collectives {
            rank: link.rank(),
            world: link.world(),
            pulse: link.pulse(),
            state: Mutex::new(State { link, scratch: Vec::new(), failed: None }),
            bytes_sent: AtomicU64::new(0),
            between_hosts: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// Calls `f` with the transport.
    pub(super) fn with_transport<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        f(&self.state.lock().unwrap_or_else(PoisonError::into_inner).link)
    }

    /// Runs one call. `'d` is the life of the caller's buffers: longer than the call, so that posts may leave from them.
    fn call<'d>(
        &self,
        tag: &Tag,
        kind: Collective,
        body: impl FnOnce(&Session<'_, 'd, T>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { link, scratch, failed } = &mut *state;
        let site = tag.site();
        if let Some(first) = failed {
            return Err(Error::comm(format!("this rank's communicator failed before: {first}")).at(site));
        }
        let start = now_ns();
        let arrived = Cell::new(start);
        let call = RunningCall { tag, kind, arrived: &arrived };
        let session = Session { link, call, sent: Cell::new(0), ended: Cell::new(false), borrowed: PhantomData };
        let result = body(&session, scratch).and_then(|()| session.finish());
        self.bytes_sent.fetch_add(session.sent.get(), Relaxed);
        self.between_hosts.store(session.link.sent_to_other_hosts(), Relaxed);
        // Changed only under the lock; atomics only because others read them.
        self.calls.store(self.calls.load(Relaxed) + 1, Relaxed);
        let waited = arrived.get() - start;
        self.waited_ns.store(self.waited_ns.load(Relaxed).saturating_add(waited), Relaxed);
        result.map_err(|e| {
            *failed = Some(e.message().to_owned());
            e.at(site)
        })
    }

    fn check(&self, group: &Group) -> Result<()> {
        let mine = group.ranks.get(group.me) == Some(&self.rank);
        let known = group.ranks.iter().all(|&r| r < self.world);
        let once = group.ranks.iter().filter(|&&r| r == self.rank).count() == 1;
        if mine && known && once {
            return Ok(());
        }
        Err(Error::argument(format!(
            "group of ranks {:?} with member {} is not a group of rank {} in a world of {}",
            group.ranks, group.me, self.rank, self.world
        )))
    }
}

/// One call on one transport, with the caller's buffers of life `'d`.
pub(super) struct Session<'a, 'd, T: Transport> {
    pub(super) link: &'a T,
    call: RunningCall<'a>,
    sent: Cell<u64>,
    /// The transport has let go of the caller's buffers.
    ended: Cell<bool>,
    borrowed: PhantomData<RawSlice<'d>>,
}

impl<T: Transport> Drop for Session<'_, '_, T> {
    fn drop(&mut self) {
        if !self.ended.get() {
            self.link.abandon();
        }
    }
}

pub(super) type Segments = SmallVec<[Segment; 8]>;
pub(super) type Received<'a, T> = SmallVec<[Piece<'a, T>; 8]>;
pub(super) type Pieces<'d> = SmallVec<[Outgoing<'d>; 8]>;

/// Bytes for one reader.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'d> {
    pub(super) reader: usize,
    pub(super) bytes: RawSlice<'d>,
    /// Length of the whole message, see [`Segment::total`].
    pub(super) total: usize,
}

impl<'a, 'd, T: Transport> Session<'a, 'd, T> {
    fn finish(&self) -> Result<()> {
        self.link.finish(&self.call)?;
        self.ended.set(true);
        Ok(())
    }
    pub(super) fn outbox(&self) -> Result<Outbox<'a, T>> {
        Outbox::acquire(self.link, &self.call)
    }
    pub(super) fn receive(&self, from: usize, total: usize) -> Result<Piece<'a, T>> {
        Piece::receive(self.link, &self.call, from, total)
    }
    pub(super) fn publish(&self, outbox: Outbox<'a, T>, parts: &[Segment]) {
        self.count(parts.iter().map(|p| p.len).sum());
        outbox.publish(&self.call, parts);
    }
    fn count(&self, sent: usize) {
        self.sent.set(self.sent.get() + sent as u64);
    }
    /// Posts bytes of the caller's memory, at most one piece a reader: from where they lie if the transport can, otherwise
    /// from the outbox, which has room for them together; readers of the same bytes share them.
    pub(super) fn post(&self, pieces: &[Outgoing<'d>]) -> Result<()> {
        if pieces.iter().all(|p| self.link.sends_from_memory(p.reader)) {
            self.count(pieces.iter().map(|p| p.bytes.len()).sum());
            for p in pieces {
                // SAFETY: the memory lives longer than this session, which does not end before `finish` or `abandon`.
                unsafe { self.link.post_from(&self.call, p.reader, p.bytes, p.total as u64) };
            }
            return Ok(());
        }
        let mut outbox = self.outbox()?;
        let (mut parts, mut end) = (Segments::new(), 0);
        let mut last: Option<(RawSlice, usize)> = None;
        for &Outgoing { reader, bytes, total } in pieces {
            let offset = match last {
                Some((same, at)) if same == bytes => at,
                _ => {
                    bytes.copy_to(&mut outbox[end..end + bytes.len()]);
                    let at = end;
                    last = Some((bytes, at));
                    end = (at + bytes.len()).next_multiple_of(ALIGN);
                    at
                }
            };
            parts.push(Segment { reader, offset, len: bytes.len(), total: total as u64 });
        }
        self.publish(outbox, &parts);
        Ok(())
    }
    /// Posts the same bytes to all other members.
    pub(super) fn post_to_all(&self, group: &Group, bytes: RawSlice<'d>, total: usize) -> Result<()> {
        let piece = |(_, reader)| Outgoing { reader, bytes, total };
        self.post(&others(group).map(piece).collect::<Pieces>())
    }
    /// Posts to each other member its own range of `bytes`; none for members that `range` leaves out.
    pub(super) fn post_to_each(
        &self,
        group: &Group,
        bytes: RawSlice<'d>,
        range: impl Fn(usize) -> Option<Range<usize>>,
        total: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let piece = |(j, reader)| Some(Outgoing { reader, bytes: bytes.part(range(j)?), total: total(j) });
        self.post(&others(group).filter_map(piece).collect::<Pieces>())
    }
    /// Waits for a post that fills a range of `to`.
    pub(super) fn take(&self, from: usize, total: usize, to: &Destination) -> Result<()> {
        let got = Piece::receive_into(self.link, &self.call, from, total, to)?;
        self.is_as_long(got, to.len, from)
    }
    /// Waits for a post from every other member.
    pub(super) fn receive_from_all(&self, group: &Group, total: usize, len: usize) -> Result<Received<'a, T>> {
        let mut pieces = Received::new();
        for (_, from) in others(group) {
            let piece = self.receive(from, total)?;
            self.is_as_long(piece.len(), len, from)?;
            pieces.push(piece);
        }
        Ok(pieces)
    }
    /// Waits for a post from every other member and reduces them with `mine` in member order.
    pub(super) fn reduce_from_all(
        &self,
        group: &Group,
        total: usize,
        (mine, dst): (&[u8], &mut [u8]),
        (dtype, op): (DType, ReduceOp),
    ) -> Result<()> {
        let pieces = self.receive_from_all(group, total, dst.len())?;
        let mut sources: SmallVec<[&[u8]; 8]> = pieces.iter().map(|p| &**p).collect();
        sources.insert(group.me, mine);
        Ok(reduce_slices(dst, &sources, dtype, op)?)
    }

    /// All sends and receives of one rank, in rounds of chunks. The peers are distinct on each side.
    pub(super) fn swap(&self, sends: &[(usize, &'d [u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()> {
        let chunk = piece_bytes(self.link.capacity(), sends.len());
        let rounds_to_send = sends.iter().map(|(_, b)| rounds(b.len(), chunk)).max().unwrap_or(0);
        let mut done: SmallVec<[Option<usize>; 8]> = SmallVec::from_elem(None, recvs.len());
        for round in 0.. {
            if round < rounds_to_send {
                let now = sends.iter().filter(|(_, b)| round < rounds(b.len(), chunk)).map(|&(reader, b)| {
                    let bytes = RawSlice::from(b).part(round_range(b.len(), chunk, round));
                    Outgoing { reader, bytes, total: b.len() }
                });
                self.post(&now.collect::<Pieces>())?;
            }
            let mut waiting = false;
            for ((from, bytes), done) in recvs.iter_mut().zip(&mut done) {
                let (at, total) = (done.unwrap_or(0), bytes.len());
                if done.is_none() || at < total {
                    let mut to = RawSliceMut::from(&mut **bytes);
                    let got = Piece::receive_into(self.link, &self.call, *from, total, &to.destination(at..total))?;
                    *done = Some(at + got);
                    waiting |= at + got < total;
                }
            }
            if round + 1 >= rounds_to_send && !waiting {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn is_as_long(&self, got: usize, expected: usize, from: usize) -> Result<()> {
        if got == expected {
            return Ok(());
        }
        let what = self.call.describe();
        Err(Error::comm(format!("rank {from} sent {got} bytes where {expected} were expected, in {what}")))
    }
}

/// The other members as (member, world rank).
pub(super) fn others(group: &Group) -> impl Iterator<Item = (usize, usize)> + '_ {
    group.ranks.iter().copied().enumerate().filter(|(i, _)| *i != group.me)
}

/// The parts of a post of a long message have so many bytes together: they are written, and read by the peers, while they lie in
/// a core's cache.
const POST_BYTES: usize = 256 << 10;
/// But each has as many, because every part costs a wait.
const LEAST_PIECE: usize = 32 << 10;

/// Bytes of a long message that each of so many readers gets in a post. All members count alike.
pub(super) fn piece_bytes(capacity: usize, readers: usize) -> usize {
    let readers = readers.max(1);
    (capacity / readers).min((POST_BYTES / readers).max(LEAST_PIECE)) / ALIGN * ALIGN
}

/// Posts that a message takes: at least one, so that an empty message is compared too.
pub(super) fn rounds(len: usize, chunk: usize) -> usize {
    len.div_ceil(chunk).max(1)
}

pub(super) fn round_range(len: usize, chunk: usize, round: usize) -> Range<usize> {
    (round * chunk).min(len)..((round + 1) * chunk).min(len)
}

impl<T: Transport> Communicator for Collectives<T> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    fn run<'d>(&self, group: &Group, tag: &Tag, call: CollectiveCall<'d>) -> Result<()> {
        self.check(group)?;
        call.check(group)?;
        self.call(tag, call.kind(), |s, scratch| match call {
            CollectiveCall::Barrier => s.barrier(group),
            CollectiveCall::Broadcast { root, buffer } => s.broadcast(group, root, buffer),
            CollectiveCall::AllReduce { send, receive, dtype, op } => {
                s.all_reduce(group, (send, receive), scratch, (dtype, op))
            }
            CollectiveCall::AllGather { send, receive, counts } => s.all_gather(group, (send, receive), counts),
            CollectiveCall::ReduceScatter { send, receive, counts, dtype, op } => {
                s.reduce_scatter(group, (send, receive), counts, scratch, (dtype, op))
            }
            CollectiveCall::AllToAll { send, send_counts, receive, receive_counts } => {
                s.all_to_all(group, (send, send_counts), (receive, receive_counts))
            }
        })
    }

    fn exchange(&self, tag: &Tag, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()> {
        let to: SmallVec<[usize; 8]> = sends.iter().map(|(r, _)| *r).collect();
        let from: SmallVec<[usize; 8]> = recvs.iter().map(|(r, _)| *r).collect();
        for (list, what) in [(&to, "sends to"), (&from, "receives from")] {
            let twice = list.iter().enumerate().find(|(i, r)| list[..*i].contains(r));
            if let Some(r) = list.iter().find(|r| **r >= self.world || **r == self.rank).or(twice.map(|t| t.1)) {
                return Err(Error::argument(format!(
                    "exchange: rank {} {what} {r}; peers must be other ranks of the world of {}, each once",
                    self.rank, self.world
                )));
            }
        }
        self.call(tag, Collective::Exchange, |s, _| s.swap(sends, recvs))
    }

    fn count_sent(&self, bytes: u64) {
        self.bytes_sent.fetch_add(bytes, Relaxed);
    }
    fn pulse(&self) -> Arc<dyn Pulse> {
        self.pulse.clone()
    }
    fn traffic(&self) -> Traffic {
        Traffic {
            bytes_sent: self.bytes_sent.load(Relaxed),
            between_hosts: self.between_hosts.load(Relaxed),
            calls: self.calls.load(Relaxed),
            waited_ns: self.waited_ns.load(Relaxed),
        }
    }
}
