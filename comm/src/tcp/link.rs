//! One connection: the queue of posts to be written, and the posts that have been read.

use super::frame::{Frame, HEADER, Kind, MOST_HEAD, Names, file_bytes, op_bytes};
use super::socket::{self, Did};
use super::tally::Tally;
use crate::transport::{RunningCall, SLOTS, describe};
use crate::{Collective, now_ns};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::sync::Arc;

/// Bytes that are read at once beside a payload that has a place already.
const STAGE: usize = 32 << 10;
/// Payloads up to this have a place in the link itself; larger ones take a buffer that all links share.
const SMALL: usize = 4 << 10;

/// Why nothing more comes over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer has sent a goodbye.
    Left,
    /// The connection was closed without a goodbye.
    Closed,
    /// The kernel reported an error.
    Failed(Errno),
    /// The bytes received are no frame.
    Garbled(&'static str),
    /// The peer's kernel does not answer.
    Silent,
}

/// Source of a post: an outbox buffer by its number, or the caller's memory.
pub(super) const MEMORY: usize = SLOTS;

/// A post that is on its way out. The bytes lie in the sender's outbox or in its caller's memory.
struct Outgoing {
    head: [u8; MOST_HEAD],
    head_len: usize,
    data: *const u8,
    len: usize,
    written: usize,
    /// The outbox buffer or [`MEMORY`], or none for frames without payload.
    slot: Option<usize>,
    /// The payload, where the call that it came from has failed.
    kept: Vec<u8>,
}

// SAFETY: the pointer is to an outbox of the rank that owns the link, and both move to another thread together; or to memory
// of a call, which no other thread enters before the link has let go of it.
unsafe impl Send for Outgoing {}

/// Room in the caller's memory for the next post, if it is the one that is waited for.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub(super) data: *mut u8,
    pub(super) len: usize,
    pub(super) ordinal: u64,
    pub(super) hash: u64,
    pub(super) collective: u8,
    pub(super) total: u64,
}

// SAFETY: as for `Outgoing`: there is an offer only within a call of the rank's thread.
unsafe impl Send for Offer {}

impl Offer {
    fn is_for(&self, f: &Frame) -> bool {
        (f.ordinal, f.hash, f.collective, f.total) == (self.ordinal, self.hash, self.collective, self.total)
            && f.len as usize <= self.len
    }
}

/// Where a post that came in lies.
#[derive(Default)]
struct Incoming {
    frame: Option<Frame>,
    /// When its header was read, on this rank's clock.
    read_at: u64,
    names: Names,
    small: Vec<u8>,
    large: Vec<u8>,
    /// Lies in the caller's memory instead.
    offered: Option<Offer>,
    filled: usize,
}

impl Incoming {
    fn bytes(&mut self) -> &mut [u8] {
        let len = self.frame.map_or(0, |f| f.len as usize);
        if let Some(offer) = &self.offered {
            // SAFETY: the contract of `Connection::offer`, which has seen that the payload fits.
            return unsafe { std::slice::from_raw_parts_mut(offer.data, len) };
        }
        if len <= SMALL { &mut self.small[..len] } else { &mut self.large[..len] }
    }
    fn is_whole(&self) -> bool {
        self.frame.is_some_and(|f| f.len as usize == self.filled)
    }
    /// Makes room in the link for a payload.
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

/// A post at the head of the queue.
pub(super) struct Post {
    pub(super) frame: Frame,
    /// [`Head::arrived`](crate::transport::Head::arrived) on this rank's clock.
    pub(super) arrived: u64,
    pub(super) data: *const u8,
    pub(super) len: usize,
}

/// One end of a connection.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    out: VecDeque<Outgoing>,
    /// The names last sent: addresses of op and file, line.
    named: (usize, usize, u32),
    /// Posts that came in and were not released: a ring from `first`, `held` of them whole or begun.
    ring: [Incoming; SLOTS],
    first: usize,
    held: usize,
    /// The last of them is not whole.
    begun: bool,
    /// Where the next post may lie.
    offer: Option<Offer>,
    stage: Vec<u8>,
    start: usize,
    end: usize,
    pub(super) over: Option<End>,
    /// Why nothing can be written any more. What the peer had to say before may still be there to read.
    pub(super) deaf: Option<Errno>,
    /// Since when the peer's kernel owes an answer.
    pub(super) unanswered: Option<std::time::Instant>,
    pub(super) rejected: Option<String>,
    /// Bytes that have moved; other threads read the numbers, too.
    pub(super) tally: Arc<Tally>,
    most: usize,
}

/// Buffers for large posts, shared by all links: the last one given back is the one in the cache.
pub(super) type Pool = Vec<Vec<u8>>;

impl Connection {
    /// A link over a connection that is proven. `most` is the longest payload.
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

    /// Whether something waits to be written.
    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether the socket is to be read: there is room for a post.
    pub(super) fn wants_input(&self) -> bool {
        self.over.is_none() && (self.held < SLOTS || self.begun)
    }

    fn is_next_whole(&self) -> bool {
        self.held > 0 && self.ring[self.first].is_whole()
    }

    /// Queues a post. `written` is called with the slots whose bytes the kernel has taken.
    ///
    /// # Safety
    /// The bytes are not changed until `written` has been called with `slot`.
    pub(super) unsafe fn post(&mut self, call: &RunningCall, total: u64, (data, len): (*const u8, usize), slot: usize) {
        let tag = call.tag;
        let names = (tag.op.as_ptr().addr(), tag.file.as_ptr().addr(), tag.line);
        let same = std::mem::replace(&mut self.named, names) == names;
        let mut frame = Frame::of_call(Kind::Post, call);
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

    /// Queues a frame that has no payload.
    pub(super) fn tell(&mut self, kind: Kind, call: Option<&RunningCall>) {
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

    /// Writes what the socket takes, and calls `written` with the slots that are done.
    pub(super) fn write(&mut self, mut written: impl FnMut(usize)) {
        if self.deaf.is_some() {
            return;
        }
        while let Some(o) = self.out.front_mut() {
            let head = &o.head[o.written.min(o.head_len)..o.head_len];
            let done = o.written.saturating_sub(o.head_len);
            // SAFETY: the contract of `post`: the bytes are there until they are written. Without payload the length is 0
            // and a dangling pointer will do.
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

    /// Reads what is there and there is room for; at most to the end of the next post, or beyond it. Whether anything came.
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
                    // A short read has emptied the socket.
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

    /// One read: the rest of a payload to its place, and what follows it to the stage. Whether all of the room was filled.
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
        // After a long payload only the next header: another long one shall not go through the stage.
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

    /// Offers the caller's memory to the next post, if it is the one that is waited for and fits. Where it has begun, it goes
    /// on there.
    ///
    /// # Safety
    /// The memory is writable, and nobody else touches it, until the post has been released or [`retract`](Self::retract)
    /// has returned.
    pub(super) unsafe fn offer(&mut self, offer: Offer, pool: &mut Pool) {
        if self.held == 0 {
            self.offer = Some(offer);
        } else if self.held == 1 && self.begun {
            let post = &mut self.ring[self.first];
            if post.frame.is_some_and(|f| offer.is_for(&f)) {
                let filled = post.filled;
                // SAFETY: writable by the contract of this function, as long as the payload at least.
                let to = unsafe { std::slice::from_raw_parts_mut(offer.data, filled) };
                to.copy_from_slice(&post.bytes()[..filled]);
                post.offered = Some(offer);
                if !post.large.is_empty() {
                    pool.push(std::mem::take(&mut post.large));
                }
            }
        }
    }

    /// Takes an offer back. A post that lies there, whole or in part, moves to the link.
    pub(super) fn retract(&mut self, pool: &mut Pool) {
        self.offer = None;
        let post = &mut self.ring[self.first];
        let Some(offer) = post.offered.take() else { return };
        let len = post.frame.map_or(0, |f| f.len as usize);
        post.make_room(len, pool);
        let filled = post.filled;
        // SAFETY: the contract of `offer`.
        let from = unsafe { std::slice::from_raw_parts(offer.data.cast_const(), filled) };
        post.bytes()[..filled].copy_from_slice(from);
    }

    /// Copies what is still to be written: neither a caller's memory nor an outbox need live any longer.
    pub(super) fn keep(&mut self) {
        for o in self.out.iter_mut().filter(|o| o.len > 0 && o.kept.is_empty()) {
            // SAFETY: the contract of `post`: the bytes are there until they are written.
            o.kept = unsafe { std::slice::from_raw_parts(o.data, o.len) }.to_vec();
            o.data = o.kept.as_ptr();
        }
    }

    /// Makes posts of what is in the stage, as far as there is room.
    fn parse(&mut self, pool: &mut Pool) -> Result<(), &'static str> {
        if self.over.is_some() {
            // What follows a goodbye or a spoilt frame is none.
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
            if frame.kind == Kind::Post && self.held == SLOTS {
                return Ok(());
            }
            let (op, rest) = rest.split_at(frame.op_len as usize);
            let file = &rest[..frame.file_len as usize];
            match frame.kind {
                Kind::Alive => {}
                Kind::Goodbye => {
                    self.over = Some(End::Left);
                    return Ok(());
                }
                Kind::Reject => self.rejected = Some(text(&frame, op, file, frame.line)),
                Kind::Post => {
                    let at = (self.first + self.held) % SLOTS;
                    if frame.same_names {
                        // The post before this one lies in the entry before, whole, released or not.
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
            if frame.kind == Kind::Post {
                self.begun = true;
                if !self.complete()? {
                    return Ok(());
                }
            }
        }
    }

    /// Moves staged bytes to the place of the last post. Whether it is whole.
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
            // Nobody may get it.
            self.held -= 1;
            return Err("the checksum of a payload is wrong");
        }
        Ok(!self.begun)
    }

    /// The next post, if it is there as a whole.
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

    /// Gives the next post back, and makes posts of what had no room before.
    pub(super) fn release(&mut self, pool: &mut Pool) {
        let post = &mut self.ring[self.first];
        post.offered = None;
        if !post.large.is_empty() {
            pool.push(std::mem::take(&mut post.large));
        }
        post.frame = None;
        self.first = (self.first + 1) % SLOTS;
        self.held -= 1;
        // A begun post has emptied the stage.
        if self.start < self.end
            && let Err(why) = self.parse(pool)
        {
            self.over = Some(End::Garbled(why));
        }
    }

    /// Throws away what came in, at the end.
    pub(super) fn discard(&mut self) {
        let mut bytes = [0; 4096];
        loop {
            match socket::receive(&self.stream, &mut [IoSliceMut::new(&mut bytes)]) {
                Ok(Did::Bytes(_)) => {}
                Ok(Did::Nothing) => return,
                // Who has closed takes nothing more.
                end => {
                    self.over = Some(end.err().map_or(End::Closed, End::Failed));
                    return;
                }
            }
        }
    }

    /// Names the call of the next post.
    pub(super) fn describe(&self) -> String {
        let post = &self.ring[self.first];
        post.frame.map_or_else(String::new, |f| text(&f, &post.names.op, &post.names.file, post.names.line))
    }
}

fn text(frame: &Frame, op: &[u8], file: &[u8], line: u32) -> String {
    let (op, file) = (String::from_utf8_lossy(op), String::from_utf8_lossy(file));
    describe(Collective::name_of(frame.collective), &op, frame.ordinal, &file, line)
}
