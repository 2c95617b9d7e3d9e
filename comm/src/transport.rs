//! The trait over which the collectives are written: an outbox of a few buffers, posts to readers, reading in place.
//!
//! A rank *acquires* the next of its outbox buffers (waiting until everyone has read what was in it), fills it, and
//! *publishes* ranges of it to readers. Posts from one rank to another arrive in order. A reader *receives* the next post
//! of a peer, reads the bytes in place, and *releases* it. Every collective is written once over these four steps, in
//! [`super::collectives`]. A transport that copies in any case can bypass the outbox: posts are sent from the caller's memory
//! ([`Transport::post_from`]) and received in it ([`Transport::receive_into`]).

use super::zero_copy::{Destination, RawSlice};
use super::{Collective, Pulse, Tag};
use oflow_base::{Error, Place, Result};
use smallvec::SmallVec;
use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Number of outbox buffers of a rank: the number of posts in transit before a rank waits for its readers.
pub const SLOTS: usize = 4;

/// Help text of errors about a wait that has timed out.
pub(super) const LONGER_WAITS: &str = "if the rank may compute for that long, raise the time-out: under oflaunch it is six times --stall, at least 30 minutes";

/// The call in progress that a post belongs to.
#[derive(Clone, Copy, Debug)]
pub struct RunningCall<'a> {
    /// The op that issued it.
    pub tag: &'a Tag,
    /// Kind of the collective.
    pub kind: Collective,
    /// Time of the last start of this call that this rank knows of ([`now_ns`](super::now_ns)), at first its own. Posts carry it.
    pub arrived: &'a Cell<u64>,
}

/// The form in which all messages name a call.
macro_rules! named {
    ($kind:expr, $op:expr, $ordinal:expr, $file:expr, $line:expr) => {
        format_args!("{} of '{}' #{} ({}:{})", $kind, $op, $ordinal, $file, $line)
    };
}
impl RunningCall<'_> {
    /// `all_reduce of 'matmul' #5 (train.rs:10)`.
    pub fn describe(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for RunningCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = self.tag;
        f.write_fmt(named!(self.kind.name(), t.op, t.ordinal, t.file, t.line))
    }
}

/// Describes a call of another rank, from its parts.
pub(super) fn describe(kind: &str, op: &str, ordinal: u64, file: &str, line: u32) -> String {
    named!(kind, op, ordinal, file, line).to_string()
}

/// Parses the description of a call, as `named!` makes it, at the end of `text`. Returns `None` if the text does not end in one.
pub fn place_of(rank: usize, text: &str) -> Option<Place> {
    let (_, rest) = text.rsplit_once(" of '")?;
    let (op, rest) = rest.split_once("' #")?;
    let (ordinal, rest) = rest.split_once(" (")?;
    let (file, rest) = rest.rsplit_once(':')?;
    let line = rest.split_once(')')?.0.parse().ok()?;
    Some(Place { rank, op: op.into(), ordinal: ordinal.parse().ok()?, file: file.into(), line })
}

/// The error of two ranks, each with the description of its call, that issued different ops. The lower rank is named first, so that the
/// reports of both ranks have the same text.
pub(super) fn diverged(a: (usize, &str), b: (usize, &str)) -> Error {
    let (x, y) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    Error::diverged(format!(
        "ranks {} and {} issued different ops: rank {} is in {}, rank {} in {}",
        x.0, y.0, x.0, x.1, y.0, y.1
    ))
    .in_places([x, y].into_iter().filter_map(|(rank, text)| place_of(rank, text)))
    .help("every rank must issue the same ops in the same order; look for a branch on the rank or on rank-local data")
}

/// The error of a wait for a rank that has left the job. `waiting` says which rank waits for what.
pub(super) fn ended(rank: usize, waiting: &str) -> Error {
    Error::peer(format!("rank {rank} has ended while {waiting}")).missing(rank).help(
        "if that rank has not failed, it issued fewer ops: all ranks issue the same ones, and a global tensor is read (`item`, \
         `to_vec`) on every rank; read it on all of them, then print it on one",
    )
}

/// A range of the acquired buffer for one reader.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// World rank of the reader; never the sender itself.
    pub reader: usize,
    /// Offset in the buffer.
    pub offset: usize,
    /// Length in bytes; may be 0.
    pub len: usize,
    /// Length of the whole message, of which this part is a piece; compared with the length that the reader expects.
    pub total: u64,
}

/// The header of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// [`Tag::ordinal`] of the sender.
    pub ordinal: u64,
    /// [`Tag::hash`] of the sender.
    pub hash: u64,
    /// The sender's collective, as a number because it may come from another process.
    pub kind: u8,
    /// See [`Segment::total`].
    pub total: u64,
    /// [`RunningCall::arrived`] of the sender.
    pub arrived: u64,
}

/// A received post that is not yet released.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// The sender's header.
    pub head: Head,
    /// The bytes, in the sender's outbox.
    pub data: *const u8,
    /// Number of bytes that have arrived.
    pub len: usize,
}

/// A rank's end of a transport, used by one thread at a time.
///
/// # Safety
/// The collectives read and write through the pointers that an implementation hands out, so it promises: the pointer of
/// [`acquire`](Self::acquire) is valid for reads and writes of [`capacity`](Self::capacity) initialised bytes, aligned to
/// 64, and nobody else touches these bytes until `publish`; the pointer of [`receive`](Self::receive) is valid for reads
/// of `len` initialised bytes that nobody writes until [`release`](Self::release). Memory passed to
/// [`post_from`](Self::post_from) is not touched any more after [`finish`](Self::finish) has succeeded or
/// [`abandon`](Self::abandon) has returned, that passed to [`receive_into`](Self::receive_into) not after its return.
pub unsafe trait Transport: Send {
    /// Returns the number of this rank.
    fn rank(&self) -> usize;
    /// Returns the number of ranks.
    fn world(&self) -> usize;
    /// Returns the size of an outbox buffer in bytes: a multiple of 64, at least 64 for each rank of the world.
    fn capacity(&self) -> usize;
    /// Waits until the next outbox buffer has been read by all its readers, and returns its address.
    fn acquire(&self, call: &RunningCall) -> Result<*mut u8>;
    /// Posts parts of the acquired buffer, at most one per reader. Never blocks.
    fn publish(&self, call: &RunningCall, parts: &[Segment]);
    /// Waits for the next post from a rank. The post before it must have been released.
    fn receive(&self, call: &RunningCall, from: usize) -> Result<Arrived>;
    /// Releases the received post, so that the sender may reuse its buffer.
    fn release(&self, from: usize);
    /// Returns the name of the call of the received post from `from`.
    fn describe_post(&self, from: usize, head: &Head) -> String;
    /// Tells `from` that its post does not belong to this rank's call, so that `from` gets an error instead of waiting. The post
    /// is not released.
    fn reject(&self, call: &RunningCall, from: usize);
    /// Ends a successful call. A rendezvous transport waits here until all posts have been read.
    fn finish(&self, call: &RunningCall) -> Result<()>;
    /// Returns whether posts to a rank may be sent from the caller's memory.
    fn sends_from_memory(&self, _reader: usize) -> bool {
        false
    }
    /// Posts bytes from the caller's memory: a piece of a message of `total` bytes. Never blocks. Only for readers for which
    /// [`sends_from_memory`](Self::sends_from_memory) is true.
    ///
    /// # Safety
    /// The memory is readable and not written until the call has ended with [`finish`](Self::finish) or
    /// [`abandon`](Self::abandon).
    unsafe fn post_from(&self, _call: &RunningCall, _reader: usize, _bytes: RawSlice, _total: u64) {}
    /// Like [`receive`](Self::receive), and the transport may write the bytes directly to `room`; the returned address then
    /// points there. A post of another call, of a message of another length, or too long for `room` is stored elsewhere.
    fn receive_into(&self, call: &RunningCall, from: usize, _total: u64, _room: &Destination) -> Result<Arrived> {
        self.receive(call, from)
    }
    /// Ends a failed call, at any point.
    fn abandon(&self) {}
    /// Returns the host of each rank; empty if all ranks are on one host. Ranks of a host are consecutive.
    fn hosts(&self) -> &[usize] {
        &[]
    }
    /// Returns the payload bytes posted so far to ranks of other hosts, if the transport knows hosts; else 0.
    fn sent_to_other_hosts(&self) -> u64 {
        0
    }
    /// See [`Communicator::pulse`](super::Communicator::pulse). The default never reports a failure.
    fn pulse(&self) -> Arc<dyn Pulse> {
        Arc::new(Well)
    }
}

/// The pulse of a transport without failure detection.
struct Well;

impl Pulse for Well {
    fn failure(&self) -> Option<Error> {
        None
    }
    fn has_left(&self, _rank: usize) -> bool {
        false
    }
}

/// The acquired outbox buffer.
pub(super) struct Outbox<'a, T: Transport> {
    link: &'a T,
    bytes: &'a mut [u8],
}

impl<'a, T: Transport> Outbox<'a, T> {
    pub(super) fn acquire(link: &'a T, call: &RunningCall) -> Result<Self> {
        let data = link.acquire(call)?;
        // SAFETY: the contract of `Transport::acquire`; the slice ends with `publish`, which consumes self.
        let bytes = unsafe { std::slice::from_raw_parts_mut(data, link.capacity()) };
        Ok(Outbox { link, bytes })
    }
    pub(super) fn publish(self, call: &RunningCall, parts: &[Segment]) {
        self.link.publish(call, parts);
    }
}

impl<T: Transport> Deref for Outbox<'_, T> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl<T: Transport> DerefMut for Outbox<'_, T> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

/// A received post; dropping it releases it.
pub(super) struct Piece<'a, T: Transport> {
    link: &'a T,
    from: usize,
    bytes: &'a [u8],
}

impl<'a, T: Transport> Piece<'a, T> {
    /// Waits for the next post of `from` and checks that it belongs to this call and to a message of `total` bytes.
    pub(super) fn receive(link: &'a T, call: &RunningCall, from: usize, total: usize) -> Result<Self> {
        let arrived = link.receive(call, from)?;
        Self::check(link, call, from, total, arrived)
    }

    /// Receives the next post of `from` to the start of `room`, checked as in [`receive`](Self::receive). Returns its length in bytes.
    pub(super) fn receive_into(
        link: &'a T,
        call: &RunningCall,
        from: usize,
        total: usize,
        room: &Destination,
    ) -> Result<usize> {
        let arrived = link.receive_into(call, from, total as u64, room)?;
        let piece = Self::check(link, call, from, total, arrived)?;
        if piece.len() > room.len {
            return Err(Error::comm(format!(
                "rank {from} sent {} bytes where at most {} are expected, in {call}",
                piece.len(),
                room.len
            )));
        }
        if !std::ptr::eq(arrived.data, room.data) {
            room.fill(&piece);
        }
        Ok(piece.len())
    }

    fn check(link: &'a T, call: &RunningCall, from: usize, total: usize, arrived: Arrived) -> Result<Self> {
        let (head, tag) = (arrived.head, call.tag);
        if head.ordinal != tag.ordinal || head.hash != tag.hash || head.kind != call.kind as u8 {
            let theirs = link.describe_post(from, &head);
            link.reject(call, from);
            return Err(diverged((link.rank(), &call.describe()), (from, &theirs)));
        }
        if head.total != total as u64 {
            link.reject(call, from);
            return Err(Error::diverged(format!(
                "ranks disagree about a size in {}: rank {from} sends {} bytes where rank {} expects {total}",
                call.describe(),
                head.total,
                link.rank()
            ))
            .in_places([from, link.rank()].into_iter().filter_map(|rank| place_of(rank, &call.describe()))));
        }
        call.arrived.set(call.arrived.get().max(head.arrived));
        // SAFETY: the contract of `Transport::receive`; the slice ends with the release in `drop`.
        let bytes = unsafe { std::slice::from_raw_parts(arrived.data, arrived.len) };
        Ok(Piece { link, from, bytes })
    }
}

impl<T: Transport> Deref for Piece<'_, T> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl<T: Transport> Drop for Piece<'_, T> {
    fn drop(&mut self) {
        self.link.release(self.from);
    }
}

/// A rank's counters: which outbox buffer is next, which posts must have been read before it is reused, and the number of posts sent to
/// and received from each rank. Counters wrap at 2³⁰.
pub(super) struct Ledger {
    posts: usize,
    pending: [SmallVec<[(usize, u32); 8]>; SLOTS],
    sent: Vec<u32>,
    received: Vec<u32>,
}

/// Counters live in 30 bits, because two bits of a shared flag have another meaning.
pub(super) const COUNT_MASK: u32 = u32::MAX >> 2;

impl Ledger {
    pub(super) fn new(world: usize) -> Ledger {
        Ledger { posts: 0, pending: Default::default(), sent: vec![0; world], received: vec![0; world] }
    }
    /// The buffer that the next post uses.
    pub(super) fn slot(&self) -> usize {
        self.posts % SLOTS
    }
    /// Readers of the last posts from a buffer, each with the number of posts it must have read before the buffer may be reused.
    pub(super) fn pending(&self, slot: usize) -> &[(usize, u32)] {
        &self.pending[slot]
    }
    /// Forgets the readers of a buffer, after all have read it.
    pub(super) fn clear(&mut self, slot: usize) {
        self.pending[slot].clear();
    }
    /// Counts a post to a reader from the current buffer; returns its number.
    pub(super) fn post_to(&mut self, reader: usize) -> u32 {
        let n = self.sent[reader].wrapping_add(1) & COUNT_MASK;
        self.sent[reader] = n;
        let slot = self.slot();
        self.pending[slot].push((reader, n));
        n
    }
    /// Moves on to the next buffer, after the current one is posted.
    pub(super) fn advance(&mut self) {
        self.posts += 1;
    }
    /// The number of the next post from a rank.
    pub(super) fn expected(&self, from: usize) -> u32 {
        self.received[from].wrapping_add(1) & COUNT_MASK
    }
    /// Number of posts of a rank that have been released.
    pub(super) fn received(&self, from: usize) -> u32 {
        self.received[from]
    }
    /// Counts a released post of a rank; returns their number.
    pub(super) fn release(&mut self, from: usize) -> u32 {
        let n = self.expected(from);
        self.received[from] = n;
        n
    }
}

/// Whether a wrapping 30-bit counter has reached `wanted`.
pub(super) fn reached(count: u32, wanted: u32) -> bool {
    (count.wrapping_sub(wanted) << 2) as i32 >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_compare_across_the_wrap() {
        assert!(reached(5, 5) && reached(6, 5) && !reached(4, 5));
        assert!(reached(1, COUNT_MASK) && !reached(COUNT_MASK, 1));
        let mut l = Ledger::new(2);
        l.sent[1] = COUNT_MASK;
        assert_eq!(l.post_to(1), 0);
        assert_eq!(l.pending(0), [(1, 0)]);
    }

    #[test]
    fn the_parts_of_a_name_are_read_back() {
        let name = describe("all_reduce", "sum", 7, "C:/a (b)/x of 'y.rs", 12);
        let there = describe("exchange", "to_vec", 7, "src/main.rs", 12);
        let wanted = Place { rank: 3, op: "to_vec".into(), ordinal: 7, file: "src/main.rs".into(), line: 12 };
        assert_eq!(place_of(3, &there), Some(wanted.clone()));
        assert_eq!(place_of(3, &format!("waits for rank 1 to send, in {there}")), Some(wanted));
        // What cannot be told apart is not made up.
        assert_eq!(place_of(3, &name), None);
        assert_eq!(place_of(3, "another call"), None);
        let places = diverged((4, &there), (1, &there));
        assert_eq!(places.places().iter().map(|p| p.rank).collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn a_divergence_reads_alike_on_both_sides() {
        let one = diverged((1, "add"), (0, "mul")).to_string();
        assert_eq!(one, diverged((0, "mul"), (1, "add")).to_string());
        assert!(one.starts_with("ranks 0 and 1 issued different ops: rank 0 is in mul, rank 1 in add"), "{one}");
    }
}
