//! One connection between two ranks: the queue of outgoing posts, and the ring of received posts that are not released yet.

use super::frame::{Frame, FrameKind, HEADER, MOST_HEAD, Names, file_bytes, op_bytes};
use super::socket::{self, Did};
use super::tally::Tally;
use crate::transport::{RunningCall, SLOTS, describe};
use crate::{Collective, now_ns};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::sync::Arc;

/// Size in bytes of the staging buffer: headers, and payloads that have no buffer yet, are read into it.
const STAGE: usize = 32 << 10;
/// Payloads of up to this many bytes are kept in a buffer of the link; larger ones take a buffer from the pool that all links share.
const SMALL: usize = 4 << 10;

/// Reason why nothing more is received over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer has sent a goodbye.
    Left,
    /// The connection was closed without a goodbye.
    Closed,
    /// The kernel reported an error.
    Failed(Errno),
    /// The received bytes are not a valid frame; the text says why.
    Garbled(&'static str),
    /// The peer's kernel has not acknowledged data or probes for too long.
    Silent,
}

/// Slot number of posts whose bytes lie in the caller's memory. Smaller numbers are outbox buffers.
pub(super) const MEMORY: usize = SLOTS;

/// A frame that is not completely written. Its payload lies in the sender's outbox or in its caller's memory.
struct Outgoing {
    head: [u8; MOST_HEAD],
    head_len: usize,
    data: *const u8,
    len: usize,
    written: usize,
    /// The outbox buffer or [`MEMORY`]; `None` for frames without payload.
    slot: Option<usize>,
    /// Copy of the payload, made if the call that queued it has failed; empty otherwise.
    kept: Vec<u8>,
}

// SAFETY: `data` points to an outbox of the rank that owns the link, and both move to another thread together; or to memory of a running
// call, and the link moves to another thread only after that call has flushed or abandoned its posts.
unsafe impl Send for Outgoing {}

/// Memory of the caller into which the next post is received, if it belongs to the expected call and message.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub(super) data: *mut u8,
    pub(super) len: usize,
    pub(super) ordinal: u64,
    pub(super) hash: u64,
    pub(super) collective: u8,
    pub(super) total: u64,
}

// SAFETY: as for `Outgoing`: an offer exists only during a call of the rank's thread.
unsafe impl Send for Offer {}

impl Offer {
    /// Whether a post belongs to the expected call and message, and fits.
    fn is_for(&self, f: &Frame) -> bool {
        (f.ordinal, f.hash, f.collective, f.total) == (self.ordinal, self.hash, self.collective, self.total)
            && f.len as usize <= self.len
    }
}

/// A received post, whole or in part, and the buffers for its payload.
#[derive(Default)]
struct Incoming {
    frame: Option<Frame>,
    /// Time at which the header was read, in ns on this rank's clock.
    read_at: u64,
    names: Names,
    small: Vec<u8>,
    large: Vec<u8>,
    /// Memory of the caller that has the payload in place of `small` and `large`.
    offered: Option<Offer>,
    /// Number of payload bytes received so far.
    filled: usize,
}

impl Incoming {
    fn bytes(&mut self) -> &mut [u8] {
        let len = self.frame.map_or(0, |f| f.len as usize);
        if let Some(offer) = &self.offered {
            // SAFETY: the memory is writable by the contract of `Connection::offer`; `is_for` has checked that the payload fits.
            return unsafe { std::slice::from_raw_parts_mut(offer.data, len) };
        }
        if len <= SMALL { &mut self.small[..len] } else { &mut self.large[..len] }
    }
    fn is_whole(&self) -> bool {
        self.frame.is_some_and(|f| f.len as usize == self.filled)
    }
    /// Makes `small` or `large` long enough for a payload.
    fn make_room(&mut self, len: usize, pool: &mut Pool) {
        if len > SMALL {
            self.large = pool.pop().unwrap_or_default();
            if self.large.len() < len {
                self.large.resize(len, 0);
            }
        } else if self.small.is_empty() {
            self.small = vec![0; SMALL];
        }
    }
}

/// The oldest received post.
pub(super) struct Post {
    pub(super) frame: Frame,
    /// [`Head::arrived`](crate::transport::Head::arrived) on this rank's clock.
    pub(super) arrived: u64,
    pub(super) data: *const u8,
    pub(super) len: usize,
}

/// This rank's end of a connection.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    out: VecDeque<Outgoing>,
    /// The names sent with the last post, which the next one omits if they are the same: addresses of the strings of op and file, and the
    /// line.
    named: (usize, usize, u32),
    /// Received posts that are not released: a ring buffer with `held` entries from `first` on. Only the last one may be incomplete.
    ring: [Incoming; SLOTS],
    first: usize,
    held: usize,
    /// Whether the last post of the ring is incomplete.
    begun: bool,
    /// Memory of the caller for the next post.
    offer: Option<Offer>,
    /// Staging buffer; the bytes from `start` to `end` are received and not parsed.
    stage: Vec<u8>,
    start: usize,
    end: usize,
    /// Set when nothing more will be received.
    pub(super) over: Option<End>,
    /// Error after which nothing can be written any more. Frames that the peer sent before may still be unread.
    pub(super) deaf: Option<Errno>,
    /// Time since when the peer's kernel has left data or probes unacknowledged.
    pub(super) unanswered: Option<std::time::Instant>,
    /// Description of the peer's call, if it has rejected a post as one of another call.
    pub(super) rejected: Option<String>,
    /// Counters of bytes sent and received, which other threads read too.
    pub(super) tally: Arc<Tally>,
    /// Longest payload in bytes that the peer may send.
    most: usize,
}

/// Buffers for large posts, shared by all links. The one returned last is taken first, since it is probably in the processor's cache.
pub(super) type Pool = Vec<Vec<u8>>;

impl Connection {
    /// Makes a link over a connection whose peer is authenticated. `most` is the longest payload in bytes.
    pub(super) fn new(stream: TcpStream, most: usize) -> Connection {
        Connection {
            stream,
            out: VecDeque::new(),
            named: (0, 0, 0),
            ring: Default::default(),
            first: 0,
            held: 0,
            begun: false,
            offer: None,
            stage: Vec::new(),
            start: 0,
            end: 0,
            over: None,
            deaf: None,
            unanswered: None,
            rejected: None,
            tally: Arc::default(),
            most,
        }
    }

    /// Whether frames are queued that are not completely written.
    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether the socket should be read: the connection is not over, and the ring has room for a post or one to complete.
    pub(super) fn wants_input(&self) -> bool {
        self.over.is_none() && (self.held < SLOTS || self.begun)
    }

    fn is_next_whole(&self) -> bool {
        self.held > 0 && self.ring[self.first].is_whole()
    }

    /// Queues a post of `len` bytes at `data`, a part of a message of `total` bytes.
    ///
    /// # Safety
    /// The bytes stay readable and unchanged until [`write`](Self::write) has reported `slot`, or [`keep`](Self::keep) has returned.
    pub(super) unsafe fn post(&mut self, call: &RunningCall, total: u64, (data, len): (*const u8, usize), slot: usize) {
        let tag = call.tag;
        let names = (tag.op.as_ptr().addr(), tag.file.as_ptr().addr(), tag.line);
        let same = std::mem::replace(&mut self.named, names) == names;
        let mut frame = Frame::of_call(FrameKind::Post, call);
        if same {
            (frame.same_names, frame.op_len, frame.file_len) = (true, 0, 0);
        }
        frame.total = total;
        frame.age = now_ns().saturating_sub(call.arrived.get());
        frame.len = len as u32;
        if cfg!(debug_assertions) && len > 0 {
            // SAFETY: readable by the contract of this function.
            frame.checksum = Some(crc32fast::hash(unsafe { std::slice::from_raw_parts(data, len) }));
        }
        let names = (!same).then_some((tag.op, tag.file));
        self.push(&frame, names, (data, len), Some(slot));
    }

    /// Queues a frame without payload.
    pub(super) fn tell(&mut self, kind: FrameKind, call: Option<&RunningCall>) {
        let frame = match call {
            Some(call) => Frame::of_call(kind, call),
            None => Frame::bare(kind),
        };
        let names = call.map(|c| (c.tag.op, c.tag.file));
        self.push(&frame, names, (std::ptr::null(), 0), None);
    }

    fn push(
        &mut self,
        frame: &Frame,
        names: Option<(&str, &str)>,
        (data, len): (*const u8, usize),
        slot: Option<usize>,
    ) {
        let mut head = [0; MOST_HEAD];
        head[..HEADER].copy_from_slice(&frame.encode());
        let mut head_len = HEADER;
        if let Some((op, file)) = names {
            for bytes in [op_bytes(op), file_bytes(file)] {
                head[head_len..head_len + bytes.len()].copy_from_slice(bytes);
                head_len += bytes.len();
            }
        }
        self.out.push_back(Outgoing { head, head_len, data, len, written: 0, slot, kept: Vec::new() });
    }

    /// Writes queued frames as far as the socket accepts them, and calls `written` with the slot of each post that the kernel has taken
    /// completely.
    pub(super) fn write(&mut self, mut written: impl FnMut(usize)) {
        if self.deaf.is_some() {
            return;
        }
        while let Some(o) = self.out.front_mut() {
            let head = &o.head[o.written.min(o.head_len)..o.head_len];
            let done = o.written.saturating_sub(o.head_len);
            // SAFETY: by the contract of `post` the bytes stay readable until they are written. Without payload the length is 0, for
            // which a dangling pointer is valid.
            let data = unsafe {
                let from =
                    if o.len == 0 { std::ptr::NonNull::dangling().as_ptr() } else { o.data.add(done).cast_mut() };
                std::slice::from_raw_parts(from, o.len - done)
            };
            match socket::send(&self.stream, &[IoSlice::new(head), IoSlice::new(data)]) {
                Ok(Did::Bytes(n)) => {
                    o.written += n;
                    self.tally.sent(n);
                }
                Ok(_) => return,
                Err(e) => {
                    self.deaf = Some(e);
                    return;
                }
            }
            if o.written == o.head_len + o.len {
                if let Some(slot) = o.slot {
                    written(slot);
                }
                self.out.pop_front();
            }
        }
    }

    /// Reads from the socket without waiting, as long as [`wants_input`](Self::wants_input). Stops when the oldest post is whole, unless
    /// `beyond`. Returns whether anything was received, the end of the connection included.
    pub(super) fn read(&mut self, beyond: bool, pool: &mut Pool) -> bool {
        let mut any = false;
        while self.wants_input() && (beyond || !self.is_next_whole()) {
            match self.fill() {
                Ok((Did::Bytes(n), full)) => {
                    any = true;
                    self.tally.came(n);
                    if let Err(why) = self.parse(pool) {
                        self.over = Some(End::Garbled(why));
                    }
                    // A short read means that the socket is empty.
                    if !full {
                        break;
                    }
                }
                Ok((Did::Nothing, _)) => break,
                Ok((Did::Closed, _)) => {
                    self.over = Some(End::Closed);
                    any = true;
                }
                Err(e) => {
                    self.over = Some(End::Failed(e));
                    any = true;
                }
            }
        }
        any
    }

    /// Makes one read: the rest of an incomplete payload goes to its buffer, the bytes after it to the stage. The bool is whether the read
    /// has filled all the space it was given.
    fn fill(&mut self) -> Result<(Did, bool), Errno> {
        if self.stage.is_empty() {
            self.stage = vec![0; STAGE];
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == STAGE {
            self.stage.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if !self.begun {
            let stage = &mut self.stage[self.end..];
            let room = stage.len();
            let did = socket::receive(&self.stream, &mut [IoSliceMut::new(stage)])?;
            let full = matches!(did, Did::Bytes(n) if n == room);
            if let Did::Bytes(n) = did {
                self.end += n;
            }
            return Ok((did, full));
        }
        let post = &mut self.ring[(self.first + self.held - 1) % SLOTS];
        let filled = post.filled;
        let rest = &mut post.bytes()[filled..];
        let wanted = rest.len();
        // After a long payload only a header is staged: the next payload, probably long too, is then read to its buffer without a copy.
        let most = if wanted > SMALL { MOST_HEAD } else { STAGE };
        let stage = &mut self.stage[self.end..STAGE.min(self.end + most)];
        let room = wanted + stage.len();
        let did = socket::receive(&self.stream, &mut [IoSliceMut::new(rest), IoSliceMut::new(stage)])?;
        let full = matches!(did, Did::Bytes(n) if n == room);
        if let Did::Bytes(n) = did {
            post.filled += n.min(wanted);
            self.end += n.saturating_sub(wanted);
        }
        Ok((did, full))
    }

    /// Offers memory of the caller for the next post, if that belongs to the expected call and fits. If the post is received in part, that
    /// part is copied there and the rest follows. Without effect if the next post is whole.
    ///
    /// # Safety
    /// The memory is writable and not accessed by others until the post has been released or [`retract`](Self::retract) has returned.
    pub(super) unsafe fn offer(&mut self, offer: Offer, pool: &mut Pool) {
        if self.held == 0 {
            self.offer = Some(offer);
        } else if self.held == 1 && self.begun {
            let post = &mut self.ring[self.first];
            if post.frame.is_some_and(|f| offer.is_for(&f)) {
                let filled = post.filled;
                // SAFETY: writable by the contract of this function, and at least as long as the payload (`is_for`).
                let to = unsafe { std::slice::from_raw_parts_mut(offer.data, filled) };
                to.copy_from_slice(&post.bytes()[..filled]);
                post.offered = Some(offer);
                if !post.large.is_empty() {
                    pool.push(std::mem::take(&mut post.large));
                }
            }
        }
    }

    /// Withdraws an offer. A post that lies in the offered memory, whole or in part, is copied to a buffer of the link.
    pub(super) fn retract(&mut self, pool: &mut Pool) {
        self.offer = None;
        let post = &mut self.ring[self.first];
        let Some(offer) = post.offered.take() else { return };
        let len = post.frame.map_or(0, |f| f.len as usize);
        post.make_room(len, pool);
        let filled = post.filled;
        // SAFETY: the contract of `offer`; the first `filled` bytes have been written.
        let from = unsafe { std::slice::from_raw_parts(offer.data.cast_const(), filled) };
        post.bytes()[..filled].copy_from_slice(from);
    }

    /// Copies the payloads that are not written yet, so that the caller's memory and the outbox may be freed or changed.
    pub(super) fn keep(&mut self) {
        for o in self.out.iter_mut().filter(|o| o.len > 0 && o.kept.is_empty()) {
            // SAFETY: by the contract of `post` the bytes stay readable until they are written.
            o.kept = unsafe { std::slice::from_raw_parts(o.data, o.len) }.to_vec();
            o.data = o.kept.as_ptr();
        }
    }

    /// Parses the staged bytes into frames, and moves posts to the ring as long as it has room.
    fn parse(&mut self, pool: &mut Pool) -> Result<(), &'static str> {
        if self.over.is_some() {
            // Bytes after a goodbye or an invalid frame are ignored.
            return Ok(());
        }
        if self.begun && !self.complete()? {
            return Ok(());
        }
        loop {
            let bytes = &self.stage[self.start..self.end];
            let Some((head, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(()) };
            let frame = Frame::decode(head, self.most)?;
            if rest.len() < frame.names() {
                return Ok(());
            }
            if frame.kind == FrameKind::Post && self.held == SLOTS {
                return Ok(());
            }
            let (op, rest) = rest.split_at(frame.op_len as usize);
            let file = &rest[..frame.file_len as usize];
            match frame.kind {
                FrameKind::Alive => {}
                FrameKind::Goodbye => {
                    self.over = Some(End::Left);
                    return Ok(());
                }
                FrameKind::Reject => self.rejected = Some(text(&frame, op, file, frame.line)),
                FrameKind::Post => {
                    let at = (self.first + self.held) % SLOTS;
                    if frame.same_names {
                        // The names are those of the post before, which are still in the entry before, even if it is released.
                        let names = std::mem::take(&mut self.ring[(at + SLOTS - 1) % SLOTS].names);
                        let to = &mut self.ring[at].names;
                        to.op.clone_from(&names.op);
                        to.file.clone_from(&names.file);
                        to.line = names.line;
                        self.ring[(at + SLOTS - 1) % SLOTS].names = names;
                    } else {
                        let to = &mut self.ring[at].names;
                        to.op.clear();
                        to.op.extend_from_slice(op);
                        to.file.clear();
                        to.file.extend_from_slice(file);
                        to.line = frame.line;
                    }
                    let post = &mut self.ring[at];
                    post.offered = self.offer.filter(|o| self.held == 0 && o.is_for(&frame));
                    if post.offered.is_none() {
                        post.make_room(frame.len as usize, pool);
                    }
                    (post.frame, post.read_at, post.filled) = (Some(frame), now_ns(), 0);
                    self.held += 1;
                }
            }
            self.start += HEADER + frame.names();
            if frame.kind == FrameKind::Post {
                self.begun = true;
                if !self.complete()? {
                    return Ok(());
                }
            }
        }
    }

    /// Moves staged bytes to the buffer of the last post. Returns whether the post is whole.
    ///
    /// # Errors
    /// If the post is whole and its checksum is wrong. The post is removed.
    fn complete(&mut self) -> Result<bool, &'static str> {
        let post = &mut self.ring[(self.first + self.held - 1) % SLOTS];
        let filled = post.filled;
        let rest = &mut post.bytes()[filled..];
        let n = rest.len().min(self.end - self.start);
        rest[..n].copy_from_slice(&self.stage[self.start..self.start + n]);
        post.filled += n;
        self.start += n;
        self.begun = !post.is_whole();
        if let Some(sum) = post.frame.and_then(|f| f.checksum)
            && !self.begun
            && crc32fast::hash(post.bytes()) != sum
        {
            // A damaged post must not be delivered.
            self.held -= 1;
            return Err("the checksum of a payload is wrong");
        }
        Ok(!self.begun)
    }

    /// Returns the oldest post if it is whole, and withdraws the offer that it has not used.
    pub(super) fn next(&mut self) -> Option<Post> {
        if !self.is_next_whole() {
            return None;
        }
        self.offer = None;
        let post = &mut self.ring[self.first];
        let frame = post.frame?;
        let arrived = post.read_at.saturating_sub(frame.age);
        let bytes = post.bytes();
        Some(Post { frame, arrived, data: bytes.as_ptr(), len: bytes.len() })
    }

    /// Releases the oldest post, and parses staged bytes for which the ring had no room.
    pub(super) fn release(&mut self, pool: &mut Pool) {
        let post = &mut self.ring[self.first];
        post.offered = None;
        if !post.large.is_empty() {
            pool.push(std::mem::take(&mut post.large));
        }
        post.frame = None;
        self.first = (self.first + 1) % SLOTS;
        self.held -= 1;
        // With an incomplete post the stage is empty: its bytes have been moved to that post.
        if self.start < self.end
            && let Err(why) = self.parse(pool)
        {
            self.over = Some(End::Garbled(why));
        }
    }

    /// Reads and drops received bytes, for use when the connection is being closed.
    pub(super) fn discard(&mut self) {
        let mut bytes = [0; 4096];
        loop {
            match socket::receive(&self.stream, &mut [IoSliceMut::new(&mut bytes)]) {
                Ok(Did::Bytes(_)) => {}
                Ok(Did::Nothing) => return,
                // The peer has closed the connection, so it does not receive either.
                end => {
                    self.over = Some(end.err().map_or(End::Closed, End::Failed));
                    return;
                }
            }
        }
    }

    /// Describes the call of the oldest post, for messages; empty without a post.
    pub(super) fn describe(&self) -> String {
        let post = &self.ring[self.first];
        post.frame.map_or_else(String::new, |f| text(&f, &post.names.op, &post.names.file, post.names.line))
    }
}

/// Describes the call that a frame belongs to.
fn text(frame: &Frame, op: &[u8], file: &[u8], line: u32) -> String {
    let (op, file) = (String::from_utf8_lossy(op), String::from_utf8_lossy(file));
    describe(Collective::name_of(frame.collective), &op, frame.ordinal, &file, line)
}
