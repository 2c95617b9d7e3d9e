//! Every collective, written once over a [`Transport`].
//!
//! | collective | steps | payload bytes a rank sends (m members, n bytes) |
//! |---|---|---|
//! | barrier | everyone posts nothing to everyone | 0 |
//! | barrier, short all_reduce or all_gather of many members | up a binomial tree and down again (`tree`) | what those below it contribute, and the result for each child |
//! | broadcast | a binomial tree from the root: everyone reads from its parent and posts to its children | n for each child |
//! | all_reduce, n ≤ [`one_phase_bytes`]`(m)` | everyone posts all, everyone reduces all | (m - 1) n |
//! | all_reduce, larger | per chunk: reduce-scatter, then all-gather; the next chunk is posted in between | 2 n (m - 1) / m |
//! | all_gather | everyone posts its part to everyone | (m - 1) own |
//! | reduce_scatter | everyone posts to each the part that it reduces | n - own |
//! | all_to_all, exchange | everyone posts to each its message | what it sends to others |
//! | long broadcast, all_reduce, all_gather, reduce_scatter on hosts with several members | by hosts (`across`) | each byte crosses from one host to another once |
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

use super::across::spread_of;
use super::lent::{Destination, Lent, LentMut};
use super::transport::{CollectiveCall, Outbox, Piece, Segment, Transport};
use super::{Collective, Communicator, DType, Group, Pulse, ReduceOp, Tag, Traffic, now_ns};
use oflow_base::spread::one_phase_bytes;
use oflow_base::spread::{Kind, Width};
use oflow_base::tree::Tree;
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
        let call = CollectiveCall { tag, kind, arrived: &arrived };
        let session = Session { link, call, sent: Cell::new(0), ended: Cell::new(false), lent: PhantomData };
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
    call: CollectiveCall<'a>,
    sent: Cell<u64>,
    /// The transport has let go of the caller's buffers.
    ended: Cell<bool>,
    lent: PhantomData<Lent<'d>>,
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
type Pieces<'d> = SmallVec<[Outgoing<'d>; 8]>;

/// Bytes for one reader.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'d> {
    pub(super) reader: usize,
    pub(super) bytes: Lent<'d>,
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
        let mut last: Option<(Lent, usize)> = None;
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
    pub(super) fn post_to_all(&self, group: &Group, bytes: Lent<'d>, total: usize) -> Result<()> {
        let piece = |(_, reader)| Outgoing { reader, bytes, total };
        self.post(&others(group).map(piece).collect::<Pieces>())
    }
    /// Posts to each other member its own range of `bytes`; none for members that `range` leaves out.
    pub(super) fn post_to_each(
        &self,
        group: &Group,
        bytes: Lent<'d>,
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
    fn swap(&self, sends: &[(usize, &'d [u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()> {
        let chunk = piece_bytes(self.link.capacity(), sends.len());
        let rounds_to_send = sends.iter().map(|(_, b)| rounds(b.len(), chunk)).max().unwrap_or(0);
        let mut done: SmallVec<[Option<usize>; 8]> = SmallVec::from_elem(None, recvs.len());
        for round in 0.. {
            if round < rounds_to_send {
                let now = sends.iter().filter(|(_, b)| round < rounds(b.len(), chunk)).map(|&(reader, b)| {
                    let bytes = Lent::from(b).part(round_range(b.len(), chunk, round));
                    Outgoing { reader, bytes, total: b.len() }
                });
                self.post(&now.collect::<Pieces>())?;
            }
            let mut waiting = false;
            for ((from, bytes), done) in recvs.iter_mut().zip(&mut done) {
                let (at, total) = (done.unwrap_or(0), bytes.len());
                if done.is_none() || at < total {
                    let mut to = LentMut::from(&mut **bytes);
                    let got = Piece::receive_into(self.link, &self.call, *from, total, &to.room(at..total))?;
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

/// The counts must be one a member and add up to the buffer.
fn check_counts(what: &str, counts: &[usize], m: usize, len: usize) -> Result<()> {
    let sum = counts.iter().try_fold(0usize, |a, &b| a.checked_add(b));
    if counts.len() == m && sum == Some(len) {
        return Ok(());
    }
    Err(Error::argument(format!("{what}: counts {counts:?} for {m} members and a buffer of {len} bytes")))
}

fn check_elements(dtype: DType, op: ReduceOp, bytes: usize) -> Result<()> {
    if !bytes.is_multiple_of(dtype.size()) {
        return Err(Error::argument(format!("{bytes} bytes are not whole elements of {dtype}")));
    }
    if dtype == DType::Bool && op == ReduceOp::Sum {
        return Err(Error::dtype("bool has no sum; reduce with max (or) or min (and), or cast to an integer first"));
    }
    if !dtype.reduces(op) {
        return Err(Error::dtype(format!("{dtype} is a registered dtype, which has no {op}"))
            .help("convert it to a built-in dtype by an op of your own, and reduce that"));
    }
    Ok(())
}

impl<T: Transport> Communicator for Collectives<T> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    fn barrier(&self, group: &Group, tag: &Tag) -> Result<()> {
        self.check(group)?;
        self.call(tag, Collective::Barrier, |s, _| {
            if let Some(tree) = Tree::of_short(group.ranks.len(), 0) {
                return s.barrier_by_tree(group, tree);
            }
            if group.ranks.len() > 1 {
                s.post_to_all(group, Lent::from(&[][..]), 0)?;
            }
            others(group).try_for_each(|(_, from)| s.receive(from, 0).map(drop))
        })
    }

    fn broadcast(&self, group: &Group, tag: &Tag, root: usize, buf: &mut [u8]) -> Result<()> {
        self.check(group)?;
        if root >= group.ranks.len() {
            return Err(Error::argument(format!("root {root} of a group of {}", group.ranks.len())));
        }
        self.call(tag, Collective::Broadcast, |s, _| {
            if let Some(spread) = spread_of(s.link.hosts(), group, Kind::Broadcast, buf.len(), Width::moved(1)) {
                return s.broadcast_across(group, &spread, root, buf);
            }
            let (n, chunk, m) = (buf.len(), piece_bytes(s.link.capacity(), 1), group.ranks.len());
            // Members counted from the root.
            let me = (group.me + m - root) % m;
            let rank = |number: usize| group.ranks[(number + root) % m];
            let parent = Tree::of(m).parent(me).map(rank);
            let children: SmallVec<[usize; 8]> = Tree::of(m).children(me).map(rank).collect();
            let mut buf = LentMut::from(buf);
            for round in 0..rounds(n, chunk) {
                let range = round_range(n, chunk, round);
                if let Some(parent) = parent {
                    s.take(parent, n, &buf.room(range.clone()))?;
                }
                if !children.is_empty() {
                    let piece = |&reader| Outgoing { reader, bytes: buf.part(range.clone()), total: n };
                    s.post(&children.iter().map(piece).collect::<Pieces>())?;
                }
            }
            Ok(())
        })
    }

    fn all_reduce(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        recv: &mut [u8],
        dtype: DType,
        op: ReduceOp,
    ) -> Result<()> {
        self.check(group)?;
        check_elements(dtype, op, send.len())?;
        check_counts("all_reduce, received", &[send.len()], 1, recv.len())?;
        self.call(tag, Collective::AllReduce, |s, scratch| {
            let (m, n, ends) = (group.ranks.len(), send.len(), (send, recv));
            if m == 1 {
                ends.1.copy_from_slice(send);
                Ok(())
            } else if let Some(tree) = s.tree(m, m.saturating_mul(n)) {
                s.all_reduce_by_tree(group, tree, ends, scratch, (dtype, op))
            } else if n <= one_phase_bytes(m).min(s.link.capacity()) {
                s.one_phase(group, ends, (dtype, op))
            } else if let Some(spread) = spread_of(
                s.link.hosts(),
                group,
                Kind::AllReduce,
                n,
                Width::reduced(dtype.size(), dtype.partial_size(op)),
            ) {
                s.all_reduce_across(group, &spread, ends, scratch, (dtype, op))
            } else {
                s.two_phases(group, ends, scratch, (dtype, op))
            }
        })
    }

    fn all_gather(&self, group: &Group, tag: &Tag, send: &[u8], recv: &mut [u8], counts: &[usize]) -> Result<()> {
        self.check(group)?;
        check_counts("all_gather", counts, group.ranks.len(), recv.len())?;
        check_counts("all_gather, sent", &[send.len()], 1, counts[group.me])?;
        self.call(tag, Collective::AllGather, |s, _| {
            let (chunk, total) = (piece_bytes(s.link.capacity(), 1), recv.len());
            if let Some(tree) = s.tree(group.ranks.len(), total) {
                return s.all_gather_by_tree(group, tree, send, recv, counts);
            }
            if group.ranks.len() == 1 {
                recv.copy_from_slice(send);
                return Ok(());
            }
            if let Some(spread) = spread_of(s.link.hosts(), group, Kind::AllGather, total, Width::moved(1)) {
                let mut to = cut(recv, counts);
                to[group.me].copy_from_slice(send);
                return s.all_gather_across(group, &spread, send, &mut to, total);
            }
            let starts = starts(counts);
            let mut to = LentMut::from(recv);
            let last = counts.iter().map(|&c| rounds(c, chunk)).max().unwrap_or(0);
            for round in 0..last {
                if round < rounds(send.len(), chunk) {
                    let piece = Lent::from(send).part(round_range(send.len(), chunk, round));
                    s.post_to_all(group, piece, send.len())?;
                    let Range { start, end } = round_range(send.len(), chunk, round);
                    let at = starts[group.me];
                    to.room(at + start..at + end).fill(&send[start..end]);
                }
                for (i, from) in others(group).filter(|(i, _)| round < rounds(counts[*i], chunk)) {
                    let Range { start, end } = round_range(counts[i], chunk, round);
                    let next = &send[round_range(send.len(), chunk, round + 1)];
                    s.take(from, counts[i], &to.room(starts[i] + start..starts[i] + end).before(next))?;
                }
            }
            Ok(())
        })
    }

    fn reduce_scatter(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        recv: &mut [u8],
        counts: &[usize],
        dtype: DType,
        op: ReduceOp,
    ) -> Result<()> {
        self.check(group)?;
        check_counts("reduce_scatter", counts, group.ranks.len(), send.len())?;
        counts.iter().try_for_each(|&c| check_elements(dtype, op, c))?;
        if recv.len() != counts[group.me] {
            return Err(Error::argument(format!(
                "reduce_scatter: {} bytes to receive {}",
                recv.len(),
                counts[group.me]
            )));
        }
        self.call(tag, Collective::ReduceScatter, |s, scratch| {
            let m = group.ranks.len();
            let width = Width::reduced(dtype.size(), dtype.partial_size(op));
            if let Some(spread) = spread_of(s.link.hosts(), group, Kind::ReduceScatter, send.len(), width) {
                return s.reduce_scatter_across(group, &spread, send, (recv, counts), scratch, (dtype, op));
            }
            let starts = starts(counts);
            let mine = starts[group.me]..starts[group.me] + recv.len();
            if m == 1 {
                recv.copy_from_slice(send);
                return Ok(());
            }
            let chunk = piece_bytes(s.link.capacity(), m - 1);
            let in_round = |j: usize, round: usize| {
                let r = round_range(counts[j], chunk, round);
                (round < rounds(counts[j], chunk)).then_some(starts[j] + r.start..starts[j] + r.end)
            };
            let last = counts.iter().map(|&c| rounds(c, chunk)).max().unwrap_or(0);
            for round in 0..last {
                if others(group).any(|(j, _)| in_round(j, round).is_some()) {
                    s.post_to_each(group, send.into(), |j| in_round(j, round), |j| counts[j])?;
                }
                if let Some(range) = in_round(group.me, round) {
                    let dst = &mut recv[range.start - mine.start..range.end - mine.start];
                    s.reduce_from_all(group, counts[group.me], (&send[range], dst), (dtype, op))?;
                }
            }
            Ok(())
        })
    }

    fn all_to_all(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        send_counts: &[usize],
        recv: &mut [u8],
        recv_counts: &[usize],
    ) -> Result<()> {
        self.check(group)?;
        check_counts("all_to_all, sent", send_counts, group.ranks.len(), send.len())?;
        check_counts("all_to_all, received", recv_counts, group.ranks.len(), recv.len())?;
        if send_counts[group.me] != recv_counts[group.me] {
            return Err(Error::argument(format!(
                "all_to_all: rank {} sends itself {} bytes and expects {}",
                self.rank, send_counts[group.me], recv_counts[group.me]
            )));
        }
        self.call(tag, Collective::AllToAll, |s, _| {
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
            s.swap(&sends, &mut recvs)
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
