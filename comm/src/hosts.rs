//! Ranks on several hosts: shared memory within a host, connections between hosts, one transport over both.
//!
//! A rank has one outbox, in the shared memory of its host (or in its own memory if it is alone on its host). Readers on the same
//! host read in place; posts to other hosts are written to their sockets from there. A rank that waits for a rank of its own host
//! progresses its TCP connections meanwhile.

use super::shm::{Beside, ShmArena, ShmOptions, ShmTransport};
use super::tcp::{Alarm, Connections, News};
use super::transport::{Arrived, Head, RunningCall, SLOTS, Segment, Transport};
use super::zero_copy::{Destination, RawSlice};
use super::{Collectives, LinkEnd, Pulse};
use oflow_base::{Error, Result};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A rank's communicator in a job on several hosts.
pub type HostsComm = Collectives<HostsTransport>;

/// Bytes of an outbox buffer of a rank that is alone on its host; the same as in shared memory.
pub const ALONE_CAPACITY: usize = 512 << 10;

/// How often a rank that waits for one of its host looks after its connections: when something waits to be written, and
/// otherwise.
const LOOK_BUSY: Duration = Duration::from_micros(100);
const LOOK_IDLE: Duration = Duration::from_millis(10);

/// A rank's end of a world on several hosts.
pub struct HostsTransport {
    rank: usize,
    /// The host of each rank.
    hosts: Vec<usize>,
    /// The ranks of this host.
    local: Range<usize>,
    capacity: usize,
    memory: Memory,
    links: Connections,
    pulse: Arc<HostsPulse>,
    /// Payload bytes posted to ranks of other hosts.
    sent: Cell<u64>,
}

enum Memory {
    Shared(Box<ShmTransport>),
    Own(Own),
}

/// The outbox of a rank that shares no memory with others.
struct Own {
    lines: *mut Line,
    capacity: usize,
    posts: Cell<usize>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

// SAFETY: owns plain bytes, which only its rank touches.
unsafe impl Send for Own {}

impl Own {
    fn new(capacity: usize) -> Own {
        let lines = vec![Line([0; 64]); capacity / 64 * SLOTS].into_boxed_slice();
        Own { lines: Box::into_raw(lines).cast(), capacity, posts: Cell::new(0) }
    }
    fn slot(&self) -> usize {
        self.posts.get() % SLOTS
    }
    fn buffer(&self) -> *mut u8 {
        // In bounds: there are SLOTS buffers of `capacity` bytes.
        self.lines.cast::<u8>().wrapping_add(self.slot() * self.capacity)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let lines = std::ptr::slice_from_raw_parts_mut(self.lines, self.capacity / 64 * SLOTS);
        // SAFETY: made from a box of that many lines in `new`, and freed once.
        drop(unsafe { Box::from_raw(lines) });
    }
}

impl HostsTransport {
    /// Makes the transport of rank `rank`. `hosts[r]` is the host of rank r; ranks of a host are consecutive. The arena is that
    /// of the rank's host, or `None` if the rank is alone there. `capacity` is the smallest of all ranks.
    pub fn new(
        rank: usize,
        hosts: Vec<usize>,
        arena: Option<Arc<ShmArena>>,
        options: ShmOptions,
        links: Connections,
        capacity: usize,
    ) -> Result<HostsTransport> {
        let Some(&host) = hosts.get(rank) else {
            return Err(Error::argument(format!("rank {rank} in a world of {}", hosts.len())));
        };
        let first = hosts.iter().position(|h| *h == host).unwrap_or(rank);
        let local = first..first + hosts.iter().filter(|h| **h == host).count();
        if !hosts.is_sorted() || hosts[local.clone()].iter().any(|h| *h != host) {
            return Err(Error::argument(format!("ranks of hosts {hosts:?}: those of one host must follow each other")));
        }
        let (world, room) = (hosts.len(), arena.as_ref().map_or(capacity, |a| a.capacity()));
        if capacity > room || capacity < 64 * world || !capacity.is_multiple_of(64) {
            return Err(Error::argument(format!("posts of {capacity} bytes for {world} ranks, in buffers of {room}")));
        }
        if let Some(a) = arena.as_ref().filter(|a| a.world() != local.len()) {
            let (has, ranks) = (a.world(), local.len());
            return Err(Error::argument(format!("shared memory of {has} ranks on a host with {ranks}")));
        }
        if let Some(r) = (0..world).find(|r| links.reaches(*r) == local.contains(r)) {
            return Err(Error::argument(format!("rank {rank} has no way to rank {r}, or two")));
        }
        let memory = match arena {
            None if local.len() == 1 => Memory::Own(Own::new(capacity)),
            None => return Err(Error::argument(format!("ranks {local:?} of one host share no memory"))),
            Some(arena) => Memory::Shared(Box::new(arena.transport(rank - first, ShmOptions { first, ..options })?)),
        };
        let shm = match &memory {
            Memory::Shared(shm) => Some(shm.pulse()),
            Memory::Own(_) => None,
        };
        let pulse = HostsPulse { shm, alarm: links.alarm().clone(), news: links.news().clone(), local: local.clone() };
        Ok(HostsTransport { rank, hosts, local, capacity, memory, links, pulse: Arc::new(pulse), sent: Cell::new(0) })
    }
}

/// Keeps connections moving while a rank waits for one of its host.
struct Meanwhile<'a>(&'a Connections);

impl Beside for Meanwhile<'_> {
    fn look(&self) -> Result<Duration> {
        // Each look may free what the other end waits for: go on while anything moves.
        while self.0.progress(Duration::ZERO) {
            if let Some(e) = self.0.alarm().failure() {
                return Err(e);
            }
        }
        Ok(if self.0.has_output() { LOOK_BUSY } else { LOOK_IDLE })
    }
}

// SAFETY: the pointer of `acquire` is to the rank's own buffer, in the arena (see `ShmTransport`) or in `Own`, after every
// local reader has taken it and the kernel all that goes elsewhere; that of `receive` is to the arena, or to a buffer of the
// link, which is used again only after `release`.
unsafe impl Transport for HostsTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.hosts.len()
    }

    fn hosts(&self) -> &[usize] {
        &self.hosts
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn acquire(&self, call: &RunningCall) -> Result<*mut u8> {
        match &self.memory {
            Memory::Shared(shm) => {
                self.links.written(call, shm.slot())?;
                shm.acquire_beside(call, Some(&Meanwhile(&self.links)))
            }
            Memory::Own(own) => {
                self.links.written(call, own.slot())?;
                Ok(own.buffer())
            }
        }
    }

    fn publish(&self, call: &RunningCall, parts: &[Segment]) {
        let (slot, buffer) = match &self.memory {
            Memory::Shared(shm) => {
                let slot = shm.slot();
                let buffer = shm.own_buffer(slot);
                let local: SmallVec<[Segment; 8]> = parts
                    .iter()
                    .filter(|p| self.local.contains(&p.reader))
                    .map(|p| Segment { reader: p.reader - self.local.start, ..*p })
                    .collect();
                shm.publish(call, &local);
                (slot, buffer)
            }
            Memory::Own(own) => {
                let at = (own.slot(), own.buffer());
                own.posts.set(own.posts.get() + 1);
                at
            }
        };
        for p in parts.iter().filter(|p| !self.local.contains(&p.reader)) {
            let bytes = (buffer.wrapping_add(p.offset).cast_const(), p.len);
            self.sent.set(self.sent.get() + p.len as u64);
            // SAFETY: the buffer is written again only after `acquire`, which waits for `written`.
            unsafe { self.links.post(call, p.reader, p.total, bytes, slot) };
        }
    }

    fn sends_from_memory(&self, reader: usize) -> bool {
        !self.local.contains(&reader)
    }

    unsafe fn post_from(&self, call: &RunningCall, reader: usize, bytes: RawSlice, total: u64) {
        self.sent.set(self.sent.get() + bytes.len() as u64);
        // SAFETY: readable until the call ends, with `flush` or `abandon`.
        unsafe { self.links.post_from(call, reader, total, bytes) };
    }

    fn receive_into(&self, call: &RunningCall, from: usize, total: u64, room: &Destination) -> Result<Arrived> {
        if self.local.contains(&from) {
            self.receive(call, from)
        } else {
            self.links.receive_into(call, from, total, room)
        }
    }

    fn receive(&self, call: &RunningCall, from: usize) -> Result<Arrived> {
        match &self.memory {
            Memory::Shared(shm) if self.local.contains(&from) => {
                shm.receive_beside(call, from - self.local.start, Some(&Meanwhile(&self.links)))
            }
            _ => self.links.receive(call, from),
        }
    }

    fn release(&self, from: usize) {
        match &self.memory {
            Memory::Shared(shm) if self.local.contains(&from) => shm.release(from - self.local.start),
            _ => self.links.release(from),
        }
    }

    fn describe_post(&self, from: usize, head: &Head) -> String {
        match &self.memory {
            Memory::Shared(shm) if self.local.contains(&from) => shm.describe_post(from - self.local.start, head),
            _ => self.links.describe(from),
        }
    }

    fn reject(&self, call: &RunningCall, from: usize) {
        match &self.memory {
            Memory::Shared(shm) if self.local.contains(&from) => shm.reject(call, from - self.local.start),
            _ => self.links.reject(call, from),
        }
    }

    fn finish(&self, call: &RunningCall) -> Result<()> {
        // The rank may compute for long now, and who computes writes nothing.
        self.links.flush(call)
    }

    fn sent_to_other_hosts(&self) -> u64 {
        self.sent.get()
    }

    fn abandon(&self) {
        self.links.abandon();
    }

    fn pulse(&self) -> Arc<dyn Pulse> {
        self.pulse.clone()
    }
}

/// Signs of life of the world, for others than the rank's own thread.
struct HostsPulse {
    shm: Option<Arc<dyn Pulse>>,
    alarm: Arc<Alarm>,
    news: Arc<News>,
    local: Range<usize>,
}

impl Pulse for HostsPulse {
    fn failure(&self) -> Option<Error> {
        self.shm.as_ref().and_then(|s| s.failure()).or_else(|| self.alarm.failure())
    }
    fn has_left(&self, rank: usize) -> bool {
        match &self.shm {
            Some(shm) if self.local.contains(&rank) => shm.has_left(rank - self.local.start),
            _ => self.news.has_gone(rank),
        }
    }
    fn waits_for(&self) -> Option<usize> {
        self.news.waits_for().or_else(|| self.shm.as_ref()?.waits_for())
    }
    fn link(&self, rank: usize) -> Option<LinkEnd> {
        self.news.link(rank)
    }
}
