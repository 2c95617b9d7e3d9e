//! Ranks as threads of one process. Sends rendezvous: a call returns when all that it sent has been read. An order of calls that
//! works only because of buffering therefore deadlocks here, and the deadlock is reported.
//!
//! A blocked rank waits for exactly one other rank, to send or to read, and only that rank can unblock it. So the deadlocks are
//! the cycles in the graph of waits; a cycle is searched for whenever a rank is about to block. If a rank drops its communicator,
//! ranks that wait for it get an error. No wait spins; one mutex guards a world.

use super::collectives::Collectives;
use super::transport::{
    Arrived, Head, Ledger, RunningCall, SLOTS, Segment, Transport, describe, diverged, ended, reached,
};
use super::{Collective, Pulse, Tag, team};
use oflow_base::{Error, Result};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// One simulated rank's communicator.
pub type SimComm = Collectives<SimTransport>;

/// Bytes of one outbox buffer unless a test wants fewer, to see more rounds.
const CAPACITY: usize = 256 << 10;

/// The shared state of a world of simulated ranks.
#[derive(Clone)]
pub struct SimWorld(Arc<Shared>);

struct Shared {
    world: usize,
    /// The host of each rank; empty if all are on one.
    hosts: Vec<usize>,
    capacity: usize,
    state: Mutex<State>,
    /// Where each rank sleeps; one a rank, so that only the rank concerned wakes.
    wake: Vec<Condvar>,
    outboxes: Vec<Outboxes>,
}

struct State {
    /// Channel from rank i to rank j, at `i * world + j`.
    links: Vec<Channel>,
    waits: Vec<Option<Wait>>,
    left: Vec<bool>,
    /// The graph of waits of the deadlock that ended this world.
    deadlock: Option<String>,
}

#[derive(Default)]
struct Channel {
    posts: VecDeque<Post>,
    /// Posts read and given back, as the ledger counts.
    taken: u32,
    bytes: u64,
    /// Call in which the reader rejected a post.
    rejected: Option<String>,
}

struct Post {
    head: Head,
    tag: Tag,
    data: usize,
    len: usize,
}

#[derive(Clone)]
struct Wait {
    on: usize,
    /// The count that the peer's reads must come to; none: it must send.
    taken: Option<u32>,
    tag: Tag,
    kind: Collective,
}

impl Wait {
    fn call(&self) -> String {
        let t = &self.tag;
        describe(self.kind.name(), t.op, t.ordinal, t.file, t.line)
    }
    fn describe(&self, rank: usize) -> String {
        let what = if self.taken.is_some() { "to read" } else { "to send" };
        format!("rank {rank} waits for rank {} {what}, in {}", self.on, self.call())
    }
}

/// A rank's outbox buffers. Kept by the world, because readers may outlive the rank's end.
struct Outboxes {
    words: *mut Line,
    lines: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

// SAFETY: owns plain bytes; who may touch which buffer when is the protocol of `Transport`.
unsafe impl Send for Outboxes {}
// SAFETY: as above: shared access is ordered by the world's mutex.
unsafe impl Sync for Outboxes {}

impl Outboxes {
    fn new(capacity: usize) -> Outboxes {
        let lines = vec![Line([0; 64]); capacity / 64 * SLOTS].into_boxed_slice();
        Outboxes { lines: lines.len(), words: Box::into_raw(lines).cast() }
    }
}

impl Drop for Outboxes {
    fn drop(&mut self) {
        // SAFETY: made from a box of that many lines in `new`, and freed once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.words, self.lines)) });
    }
}

impl SimWorld {
    /// Makes the communicators of `n` ranks.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(n: usize) -> Vec<SimComm> {
        SimWorld::with_capacity(n, CAPACITY)
    }

    /// Like [`new`](Self::new), with outbox buffers of `bytes` bytes, rounded up to what the world needs.
    pub fn with_capacity(n: usize, bytes: usize) -> Vec<SimComm> {
        SimWorld::make(n, Vec::new(), bytes)
    }

    /// Like [`with_capacity`](Self::with_capacity), for ranks on simulated hosts with `sizes[h]` ranks each.
    pub fn on_hosts(sizes: &[usize], bytes: usize) -> Vec<SimComm> {
        let hosts: Vec<usize> = sizes.iter().enumerate().flat_map(|(h, n)| vec![h; *n]).collect();
        SimWorld::make(hosts.len(), hosts, bytes)
    }

    fn make(n: usize, hosts: Vec<usize>, bytes: usize) -> Vec<SimComm> {
        let capacity = bytes.next_multiple_of(64).max(64 * n);
        let shared = Arc::new(Shared {
            world: n,
            hosts,
            capacity,
            state: Mutex::new(State {
                links: (0..n * n).map(|_| Channel::default()).collect(),
                waits: vec![None; n],
                left: vec![false; n],
                deadlock: None,
            }),
            wake: (0..n).map(|_| Condvar::new()).collect(),
            outboxes: (0..n).map(|_| Outboxes::new(capacity)).collect(),
        });
        (0..n)
            .map(|rank| {
                let ledger = RefCell::new(Ledger::new(n));
                Collectives::new(SimTransport { shared: SimWorld(shared.clone()), rank, ledger })
            })
            .collect()
    }

    /// Returns the payload bytes sent from one rank to another so far.
    pub fn link_bytes(&self, from: usize, to: usize) -> u64 {
        self.lock().links[from * self.0.world + to].bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimComm {
    /// Returns the world of this rank, for its counters.
    pub fn sim(&self) -> SimWorld {
        self.with_transport(|t| t.shared.clone())
    }
}

/// Runs `f(rank, communicator)` for each rank of a simulated world, on threads that are kept between calls. Returns the results
/// by rank.
///
/// # Panics
/// If a rank panics. The others get an error from their next wait for it, and the first panic is passed on with its rank.
pub fn run<R: Send>(n: usize, f: impl Fn(usize, SimComm) -> R + Sync) -> Vec<R> {
    run_with(SimWorld::new(n), f)
}

/// Like [`run`], with communicators of any transport.
pub fn run_with<C: Send, R: Send>(comms: Vec<C>, f: impl Fn(usize, C) -> R + Sync) -> Vec<R> {
    let comms: Vec<_> = comms.into_iter().map(|c| Mutex::new(Some(c))).collect();
    team::run_team(comms.len(), |rank| {
        let comm = comms[rank].lock().unwrap_or_else(PoisonError::into_inner).take();
        f(rank, comm.expect("each rank runs once"))
    })
}

/// A rank's end of a simulated world.
pub struct SimTransport {
    shared: SimWorld,
    rank: usize,
    ledger: RefCell<Ledger>,
}

impl SimTransport {
    fn link(&self, from: usize, to: usize) -> usize {
        from * self.shared.0.world + to
    }

    fn buffer(&self, slot: usize) -> *mut u8 {
        let s = &self.shared.0;
        // In bounds: `slot < SLOTS` and each rank has SLOTS buffers of `capacity`.
        s.outboxes[self.rank].words.cast::<u8>().wrapping_add(slot * s.capacity)
    }

    /// Sleeps until `ready`, or until it is certain that this will not come.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        wait: &Wait,
        ready: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'a, State>> {
        let on = wait.on;
        let me = self.rank;
        loop {
            if let Some(theirs) = &state.links[self.link(me, on)].rejected {
                return Err(diverged((me, &wait.call()), (on, theirs)));
            }
            if ready(&state) {
                return Ok(state);
            }
            if let Some(graph) = &state.deadlock {
                return Err(Error::comm(graph.clone()));
            }
            if state.left[on] {
                return Err(ended(on, &wait.describe(me)));
            }
            state.waits[me] = Some(wait.clone());
            if closes_cycle(&state.waits, me) {
                let graph: Vec<_> =
                    state.waits.iter().enumerate().filter_map(|(r, w)| Some(w.as_ref()?.describe(r))).collect();
                state.deadlock = Some(format!("deadlock among the ranks:\n  {}", graph.join("\n  ")));
                state.waits.fill(None);
                self.shared.0.wake.iter().for_each(Condvar::notify_all);
                continue;
            }
            // Whoever makes the wait end clears it first, so a rank that is about to wake never looks blocked.
            while state.waits[me].is_some() {
                state = self.shared.0.wake[me].wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Ends the waits of `rank` for which `over` is true.
    fn free(&self, state: &mut State, rank: usize, over: impl Fn(&Wait) -> bool) {
        if state.waits[rank].as_ref().is_some_and(over) {
            state.waits[rank] = None;
            self.shared.0.wake[rank].notify_all();
        }
    }

    fn wait_taken(&self, call: &RunningCall, slot: usize) -> Result<()> {
        let mut ledger = self.ledger.borrow_mut();
        let mut state = self.shared.lock();
        for &(reader, n) in ledger.pending(slot) {
            let wait = Wait { on: reader, taken: Some(n), tag: *call.tag, kind: call.kind };
            let link = self.link(self.rank, reader);
            state = self.wait(state, &wait, |s| reached(s.links[link].taken, n))?;
        }
        ledger.clear(slot);
        Ok(())
    }
}

/// Whether following the waits from a rank leads back to it.
fn closes_cycle(waits: &[Option<Wait>], start: usize) -> bool {
    let mut at = start;
    for _ in 0..waits.len() {
        match &waits[at] {
            Some(w) => at = w.on,
            None => return false,
        }
        if at == start {
            return true;
        }
    }
    false
}

// SAFETY: buffers belong to the world, which every end keeps alive; `acquire` waits until all readers of a buffer have
// released it, and posts stay in their queue until `release`; the mutex orders the accesses. Lines are 64-byte aligned.
unsafe impl Transport for SimTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.shared.0.world
    }

    fn capacity(&self) -> usize {
        self.shared.0.capacity
    }

    fn hosts(&self) -> &[usize] {
        &self.shared.0.hosts
    }

    fn acquire(&self, call: &RunningCall) -> Result<*mut u8> {
        let slot = self.ledger.borrow().slot();
        self.wait_taken(call, slot)?;
        Ok(self.buffer(slot))
    }

    fn publish(&self, call: &RunningCall, parts: &[Segment]) {
        let mut ledger = self.ledger.borrow_mut();
        let data = self.buffer(ledger.slot());
        let mut state = self.shared.lock();
        for p in parts {
            ledger.post_to(p.reader);
            let head = Head {
                ordinal: call.tag.ordinal,
                hash: call.tag.hash,
                kind: call.kind as u8,
                total: p.total,
                arrived: call.arrived.get(),
            };
            let data = data.wrapping_add(p.offset).expose_provenance();
            let link = &mut state.links[self.rank * self.shared.0.world + p.reader];
            link.posts.push_back(Post { head, tag: *call.tag, data, len: p.len });
            link.bytes += p.len as u64;
            self.free(&mut state, p.reader, |w| w.on == self.rank && w.taken.is_none());
        }
        ledger.advance();
    }

    fn receive(&self, call: &RunningCall, from: usize) -> Result<Arrived> {
        let link = self.link(from, self.rank);
        let wait = Wait { on: from, taken: None, tag: *call.tag, kind: call.kind };
        let state = self.wait(self.shared.lock(), &wait, |s| !s.links[link].posts.is_empty())?;
        let post = &state.links[link].posts[0];
        Ok(Arrived { head: post.head, data: std::ptr::with_exposed_provenance(post.data), len: post.len })
    }

    fn release(&self, from: usize) {
        let taken = self.ledger.borrow_mut().release(from);
        let mut state = self.shared.lock();
        let link = &mut state.links[from * self.shared.0.world + self.rank];
        link.posts.pop_front();
        link.taken = taken;
        self.free(&mut state, from, |w| w.on == self.rank && w.taken.is_some_and(|n| reached(taken, n)));
    }

    fn describe_post(&self, from: usize, head: &Head) -> String {
        let state = self.shared.lock();
        let tag = state.links[self.link(from, self.rank)].posts[0].tag;
        describe(Collective::name_of(head.kind), tag.op, tag.ordinal, tag.file, tag.line)
    }

    fn reject(&self, call: &RunningCall, from: usize) {
        let mut state = self.shared.lock();
        state.links[from * self.shared.0.world + self.rank].rejected = Some(call.describe());
        self.free(&mut state, from, |w| w.on == self.rank);
    }

    fn finish(&self, call: &RunningCall) -> Result<()> {
        // The buffer after the last one used comes first: posts are waited for in their order.
        let next = self.ledger.borrow().slot();
        (0..SLOTS).try_for_each(|i| self.wait_taken(call, (next + i) % SLOTS))
    }

    fn pulse(&self) -> Arc<dyn Pulse> {
        Arc::new(self.shared.clone())
    }
}

impl Pulse for SimWorld {
    fn failure(&self) -> Option<Error> {
        self.lock().deadlock.clone().map(Error::comm)
    }
    fn has_left(&self, rank: usize) -> bool {
        self.lock().left[rank]
    }
}

impl Drop for SimTransport {
    fn drop(&mut self) {
        team::leaving();
        let mut state = self.shared.lock();
        state.left[self.rank] = true;
        for rank in 0..self.shared.0.world {
            self.free(&mut state, rank, |w| w.on == self.rank);
        }
    }
}

#[cfg(test)]
#[path = "sim_tests.rs"]
mod tests;
