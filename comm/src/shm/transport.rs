//! The [`Transport`] over a [`ShmArena`].

use super::super::transport::{
    Arrived, Head, LONGER_WAITS, Ledger, RunningCall, SLOTS, Segment, Transport, describe, diverged, ended, reached,
};
use super::arena::{RankState, ShmArena};
use super::link::{Flag, INLINE, INLINE_AT, Patience, Stop};
use crate::{Collective, Collectives, Pulse, team};
use oflow_base::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A rank's communicator over shared memory.
pub type ShmComm = Collectives<ShmTransport>;

/// How often a wait looks for what it waits for before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spins {
    /// So many times.
    Fixed(u32),
    /// For longer than a wake-up takes if there is a core for every rank of the host; less after waits that took much longer, for
    /// which it was in vain. Hardly if there are fewer cores, because the rank that is waited for may need the core. The ranks'
    /// cores are known when all have opened the arena ([`ShmArena::cores`]).
    ByCores,
}

const SPINS_ON_OWN_CORE: u32 = 4000;
const SPINS_ON_SHARED_CORE: u32 = 20;
/// A sleep of this length at most would have been shorter without sleeping.
const SHORT_SLEEP: Duration = Duration::from_micros(50);

/// Options of waits.
#[derive(Clone, Copy, Debug)]
pub struct ShmOptions {
    /// Number of polls of a flag before sleeping.
    pub spins: Spins,
    /// Time-out of a wait; the error names the missing ranks.
    pub timeout: Duration,
    /// World rank of the host's first rank, for messages. Within the arena ranks count from 0.
    pub first: usize,
}

impl Default for ShmOptions {
    fn default() -> ShmOptions {
        ShmOptions { spins: Spins::ByCores, timeout: Duration::from_secs(30 * 60), first: 0 }
    }
}

/// Work of a rank while it waits for another rank of its host.
pub(crate) trait Beside {
    /// Looks after it once; for how long the rank may sleep then.
    fn look(&self) -> Result<Duration>;
}

/// A rank that posts as much at once gets memory for that in all its buffers in one step.
const POPULATE_FROM: usize = 64 << 10;

/// A rank's end of a shared-memory world.
pub struct ShmTransport {
    arena: Arc<ShmArena>,
    rank: usize,
    first: usize,
    timeout: Duration,
    spins: Cell<u32>,
    /// The most that `spins` may become again; none if it does not change.
    most_spins: Cell<Option<u32>>,
    /// Whether the ranks' cores are still to be found out.
    asks_for_cores: Cell<bool>,
    ledger: RefCell<Ledger>,
    /// How many of this rank's posts each peer is known to have taken.
    acked: RefCell<Vec<u32>>,
    /// The op whose text is in each buffer: address of the op's and the file's name, and line.
    texts: [Cell<(usize, usize, u32)>; SLOTS],
    /// So many bytes at the start of each own buffer have their memory.
    populated: Cell<usize>,
    /// The peers for which this rank has announced that it may sleep.
    announced: RefCell<Vec<bool>>,
}

impl ShmTransport {
    pub(super) fn new(arena: Arc<ShmArena>, rank: usize, options: ShmOptions) -> ShmTransport {
        let world = arena.world();
        ShmTransport {
            arena,
            rank,
            first: options.first,
            timeout: options.timeout,
            spins: Cell::new(match options.spins {
                Spins::Fixed(n) => n,
                Spins::ByCores => SPINS_ON_SHARED_CORE,
            }),
            most_spins: Cell::new(None),
            asks_for_cores: Cell::new(options.spins == Spins::ByCores),
            ledger: RefCell::new(Ledger::new(world)),
            acked: RefCell::new(vec![0; world]),
            texts: Default::default(),
            populated: Default::default(),
            announced: RefCell::new(vec![false; world]),
        }
    }

    fn wait(&self, flag: &Flag, done: impl Fn(u32) -> bool, wait: Wait, beside: Option<&dyn Beside>) -> Result<()> {
        let Wait { call, on, to } = wait;
        let name = self.first + on;
        let line = || format!("waits for rank {name} {to}, in {call}");
        let slept = Cell::new(None);
        let sleeping = || {
            if slept.get().is_none() {
                slept.set(Some(Instant::now()));
                self.ask_for_cores();
                self.arena.set_status(self.rank, format_args!("waits for rank {name} {to}, in {call}"));
            }
        };
        let once = |patience| flag.wait(patience, &done, || self.alarm(call, on, &line), sleeping);
        let result = match beside {
            None => once(Patience { spins: self.spins.get(), timeout: self.timeout }),
            Some(beside) => match once(Patience { spins: self.spins.get(), timeout: Duration::ZERO }) {
                Err(Stop::Timeout) => {
                    let start = Instant::now();
                    loop {
                        let timeout = beside.look()?.min(self.timeout);
                        match once(Patience { spins: 1, timeout }) {
                            Err(Stop::Timeout) if start.elapsed() < self.timeout => {}
                            result => break result,
                        }
                    }
                }
                result => result,
            },
        };
        match result {
            Ok(()) => {
                if let Some(since) = slept.get() {
                    self.arena.set_status(self.rank, format_args!(""));
                    self.adapt(since.elapsed());
                }
                Ok(())
            }
            Err(Stop::Alarm(e)) => Err(e),
            Err(Stop::Timeout) => Err(self.late(on, &line())),
        }
    }

    /// Finds out how long to look before sleeping, as soon as that can be known.
    fn ask_for_cores(&self) {
        if self.asks_for_cores.get()
            && let Some(cores) = self.arena.cores()
        {
            self.asks_for_cores.set(false);
            let own = self.arena.world() <= cores;
            self.spins.set(if own { SPINS_ON_OWN_CORE } else { SPINS_ON_SHARED_CORE });
            self.most_spins.set(own.then_some(SPINS_ON_OWN_CORE));
        }
    }

    /// After a sleep: looks longer the next time if a longer look would have been enough, else shorter. Where waits are long, cores
    /// are left to others; where long and short waits alternate, one short wait in several sleeps.
    fn adapt(&self, asleep: Duration) {
        if let Some(most) = self.most_spins.get() {
            let fewer = (self.spins.get() / 2).max(SPINS_ON_SHARED_CORE);
            self.spins.set(if asleep <= SHORT_SLEEP { most } else { fewer });
        }
    }

    /// Why a wait for rank `on` cannot end well any more.
    fn alarm(&self, call: &RunningCall, on: usize, line: &dyn Fn() -> String) -> Option<Error> {
        let (me, name) = (self.first + self.rank, self.first + on);
        if !std::mem::replace(&mut self.announced.borrow_mut()[on], true) {
            let (interest, bit) = self.arena.interest(self.rank, on);
            interest.announce(bit);
        }
        if let Some((rank, loss)) = self.arena.poisoned() {
            let rank = self.first + rank;
            return Some(Error::peer(format!("rank {rank} {loss} while rank {me} {}", line())));
        }
        if self.arena.link(self.rank, on).rejected() {
            let theirs = self.arena.status(on).unwrap_or_else(|| "another call".into());
            return Some(diverged((me, &call.describe()), (name, &theirs)));
        }
        if self.arena.state(on) == RankState::Left {
            return Some(ended(name, &format!("rank {me} {}", line())));
        }
        None
    }

    fn late(&self, on: usize, line: &str) -> Error {
        let first = self.first;
        let others: Vec<String> = (0..self.arena.world())
            .filter(|r| *r != self.rank)
            .map(|r| match (first + r, self.arena.state(r), self.arena.status(r)) {
                (r, RankState::Absent, _) => format!("rank {r} has not started"),
                (r, RankState::Left, _) => format!("rank {r} has ended"),
                (r, RankState::Attached, Some(s)) => format!("rank {r} {s}"),
                (r, RankState::Attached, None) => format!("rank {r} is not in a call"),
            })
            .collect();
        let seconds = self.timeout.as_secs_f64();
        let (me, on) = (first + self.rank, first + on);
        Error::comm(format!("rank {on} is missing: after {seconds} s rank {me} {line}\n  {}", others.join("\n  ")))
            .help(LONGER_WAITS)
    }

    /// As [`Transport::acquire`], with something to do while waiting.
    pub(crate) fn acquire_beside(&self, call: &RunningCall, beside: Option<&dyn Beside>) -> Result<*mut u8> {
        let mut ledger = self.ledger.borrow_mut();
        let mut acked = self.acked.borrow_mut();
        let slot = ledger.slot();
        for &(reader, n) in ledger.pending(slot) {
            if !reached(acked[reader], n) {
                let taken = self.arena.link(self.rank, reader).taken();
                self.wait(taken, |c| reached(c, n), Wait { call, on: reader, to: "to read" }, beside)?;
                acked[reader] = taken.count();
            }
        }
        ledger.clear(slot);
        Ok(self.arena.buffer(self.rank, slot))
    }

    /// Where the bytes of an outbox buffer lie.
    pub(crate) fn own_buffer(&self, slot: usize) -> *mut u8 {
        self.arena.buffer(self.rank, slot)
    }

    /// The buffer that the next post uses.
    pub(crate) fn slot(&self) -> usize {
        self.ledger.borrow().slot()
    }

    /// As [`Transport::receive`], with something to do while waiting.
    pub(crate) fn receive_beside(
        &self,
        call: &RunningCall,
        from: usize,
        beside: Option<&dyn Beside>,
    ) -> Result<Arrived> {
        let n = self.ledger.borrow().expected(from);
        let link = self.arena.link(from, self.rank);
        self.wait(link.ready(n), |c| c == n, Wait { call, on: from, to: "to send" }, beside)?;
        // SAFETY: this rank is the link's reader and post `n` is there and not taken; the pointer is used until `release`.
        let (head, ack, len, offset, slot, inline) = unsafe {
            link.read(n, |l| {
                (
                    (*l).head(),
                    (*l).ack,
                    (*l).len as usize,
                    (*l).offset,
                    (*l).slot,
                    (&raw const (*l).inline).cast::<u8>(),
                )
            })
        };
        let acked = &mut self.acked.borrow_mut()[from];
        *acked = newer(*acked, ack);
        if offset == INLINE_AT && len <= INLINE {
            return Ok(Arrived { head, data: inline, len });
        }
        let (offset, slot) = (offset as usize, slot as usize);
        if slot >= SLOTS || offset.saturating_add(len) > self.arena.capacity() {
            return Err(Error::comm(format!(
                "the shared memory is corrupt: rank {from} posted {len} bytes at {offset}"
            )));
        }
        Ok(Arrived { head, data: self.arena.buffer(from, slot).wrapping_add(offset), len })
    }
}

/// Whom a rank waits for, and what for.
#[derive(Clone, Copy)]
struct Wait<'a> {
    call: &'a RunningCall<'a>,
    on: usize,
    to: &'a str,
}

/// The pulse of a rank's world.
struct ShmPulse {
    arena: Arc<ShmArena>,
    rank: usize,
    first: usize,
}

impl Pulse for ShmPulse {
    fn failure(&self) -> Option<Error> {
        self.arena.poisoned().map(|(rank, loss)| Error::peer(format!("rank {} {loss}", self.first + rank)))
    }
    fn has_left(&self, rank: usize) -> bool {
        self.arena.state(rank) == RankState::Left
    }
    fn waits_for(&self) -> Option<usize> {
        awaited(&self.arena.status(self.rank)?)
    }
}

/// The rank that a status line of [`ShmTransport::wait`] names.
fn awaited(status: &str) -> Option<usize> {
    status.strip_prefix("waits for rank ")?.split(' ').next()?.parse().ok()
}

// SAFETY: `acquire` returns this rank's own buffer, page-aligned within the arena, after every reader of its last post has
// taken it (counters with release and acquire); a letter or a buffer that `receive` points to is written by its sender only
// after `release`. All bytes of a memfd are initialised.
unsafe impl Transport for ShmTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.arena.world()
    }

    fn pulse(&self) -> Arc<dyn Pulse> {
        Arc::new(ShmPulse { arena: self.arena.clone(), rank: self.rank, first: self.first })
    }

    fn capacity(&self) -> usize {
        self.arena.capacity()
    }

    fn acquire(&self, call: &RunningCall) -> Result<*mut u8> {
        self.acquire_beside(call, None)
    }

    fn publish(&self, call: &RunningCall, parts: &[Segment]) {
        let (mut ledger, tag) = (self.ledger.borrow_mut(), call.tag);
        let slot = ledger.slot();
        let buffer = self.arena.buffer(self.rank, slot);
        let text = (tag.op.as_ptr().addr(), tag.file.as_ptr().addr(), tag.line);
        if self.texts[slot].replace(text) != text {
            // SAFETY: this rank's own text, in a buffer that is acquired and not yet published.
            unsafe { self.arena.write_text(self.rank, slot, call) };
        }
        let end = parts.iter().map(|p| p.offset + p.len).max().unwrap_or(0);
        if end > self.populated.get() && end > POPULATE_FROM {
            // A step further than asked for, so that a message that grows slowly does not come here each time.
            let bytes = (2 * end).min(self.arena.capacity());
            self.populated.set(bytes);
            self.arena.populate(self.rank, bytes);
        }
        for p in parts {
            let (ack, n) = (ledger.received(p.reader), ledger.post_to(p.reader));
            let inline = p.len <= INLINE;
            let write = |letter: *mut super::link::Letter| {
                // SAFETY: the letter is this post's to write (see `post`), the bytes are within the acquired buffer.
                unsafe {
                    (*letter).ordinal = tag.ordinal;
                    (*letter).hash = tag.hash;
                    (*letter).total = p.total;
                    (*letter).arrived = call.arrived.get();
                    (*letter).ack = ack;
                    (*letter).len = p.len as u32;
                    (*letter).offset = if inline { INLINE_AT } else { p.offset as u32 };
                    (*letter).slot = slot as u8;
                    (*letter).kind = call.kind as u8;
                    if inline {
                        let to = (&raw mut (*letter).inline).cast::<u8>();
                        to.copy_from_nonoverlapping(buffer.add(p.offset), p.len);
                    }
                }
            };
            // SAFETY: this rank is the link's sender and the ledger counts its posts. The buffer's post of SLOTS before has
            // been taken by all its readers, and posts to one reader are taken in order, so post `n - SLOTS` has, too.
            unsafe { self.arena.link(self.rank, p.reader).post(n, write) };
        }
        ledger.advance();
    }

    fn receive(&self, call: &RunningCall, from: usize) -> Result<Arrived> {
        self.receive_beside(call, from, None)
    }

    fn release(&self, from: usize) {
        let n = self.ledger.borrow_mut().release(from);
        self.arena.link(from, self.rank).take(n);
    }

    fn describe_post(&self, from: usize, head: &Head) -> String {
        let n = self.ledger.borrow().expected(from);
        // SAFETY: called between `receive` and `release`: the post is there, and so is its sender's text.
        let (op, file, line) = unsafe {
            let slot = self.arena.link(from, self.rank).read(n, |l| (*l).slot);
            self.arena.read_text(from, slot as usize % SLOTS)
        };
        describe(Collective::name_of(head.kind), &op, head.ordinal, &file, line)
    }

    fn reject(&self, call: &RunningCall, from: usize) {
        self.arena.set_status(self.rank, format_args!("{call}"));
        let link = self.arena.link(from, self.rank);
        link.reject();
        self.arena.link(self.rank, from).nudge_reader();
    }

    fn finish(&self, _call: &RunningCall) -> Result<()> {
        Ok(())
    }
}

/// The later of two wrapping counts.
fn newer(a: u32, b: u32) -> u32 {
    if reached(a, b) { a } else { b }
}

impl Drop for ShmTransport {
    fn drop(&mut self) {
        team::leaving();
        self.arena.leave(self.rank);
    }
}
