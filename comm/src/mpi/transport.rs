//! Posts over MPI messages.

use super::calls::{Matched, MessageKind, Sending, World};
use crate::transport::{Arrived, Head, LONGER_WAITS, RunningCall, SLOTS, Segment, Transport, describe, diverged};
use crate::{Collective, Collectives, Pulse};
use ::mpi::Threading;
use ::mpi::environment::Universe;
use oflow_base::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A rank's communicator over MPI.
pub type MpiComm = Collectives<MpiTransport>;

/// How large, how patient, and where.
#[derive(Clone, Debug)]
pub struct MpiOptions {
    /// Bytes of an outbox buffer; rounded up to what the world needs.
    pub capacity: usize,
    /// Time-out of a wait; the error names the missing rank.
    pub timeout: Duration,
    /// The host of each rank, for the collectives that go by hosts; empty if all are on one.
    pub hosts: Vec<usize>,
}

impl Default for MpiOptions {
    fn default() -> MpiOptions {
        MpiOptions { capacity: 4 << 20, timeout: Duration::from_secs(30 * 60), hosts: Vec::new() }
    }
}

/// Looks without a pause, then with the processor given up in between, then with sleeps.
const SPINS: u32 = 2_000;
const YIELDS: u32 = 20_000;
const NAP: Duration = Duration::from_micros(50);
/// The alarms are looked at once in so many looks.
const ALARMS: u32 = 64;

/// A cache line: what the buffers are made of, for their alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory whose address does not change, aligned to 64.
struct Buffer(Vec<Line>);

impl Buffer {
    fn new(bytes: usize) -> Buffer {
        Buffer(vec![Line([0; 64]); bytes.div_ceil(64)])
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: lines are plain bytes without padding, one after another.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<u8>(), self.0.len() * 64) }
    }
}

/// Head of a post, before its bytes: numbers, then the names of op and file for messages about divergence.
mod head {
    pub(super) const ORDINAL: usize = 0;
    pub(super) const HASH: usize = 8;
    pub(super) const TOTAL: usize = 16;
    pub(super) const ARRIVED: usize = 24;
    pub(super) const LEN: usize = 32;
    pub(super) const LINE: usize = 40;
    pub(super) const KIND: usize = 44;
    pub(super) const OP_LEN: usize = 45;
    pub(super) const FILE_LEN: usize = 46;
    pub(super) const OP: std::ops::Range<usize> = 48..112;
    pub(super) const FILE: std::ops::Range<usize> = 112..256;
    /// Size of the head, in bytes.
    pub(super) const BYTES: usize = 256;
}
/// A post of at most so many bytes is one message.
const INLINE: usize = 4096 - head::BYTES;

/// One outbox buffer and what is being sent from it.
struct Slot {
    buffer: Buffer,
    /// Headers, kept for the next use.
    heads: Vec<Buffer>,
    /// Reader and message.
    sending: Vec<(usize, Sending)>,
}

struct State {
    slots: [Slot; SLOTS],
    posts: usize,
    /// The post of each rank that has been received: header with few bytes, or header and many.
    heads: Vec<Option<Buffer>>,
    data: Vec<Option<Buffer>>,
    /// Rejections must stay until the other ranks have received them.
    rejections: Vec<(Vec<u8>, Sending)>,
    /// An error of a call that could not return it.
    failed: Option<String>,
}

/// A rank's end of a world over MPI.
pub struct MpiTransport {
    world: World,
    rank: usize,
    ranks: usize,
    capacity: usize,
    /// Whether the clocks of all ranks are one.
    one_host: bool,
    timeout: Duration,
    hosts: Vec<usize>,
    pulse: Arc<dyn Pulse>,
    state: RefCell<Option<State>>,
    broken: Cell<bool>,
    /// Payload bytes posted to ranks of other hosts.
    sent: Cell<u64>,
    /// Ends MPI when it is dropped.
    universe: Option<Universe>,
}

// SAFETY: MPI was initialised for calls from any thread, one at a time, and a transport is used by one thread at a time.
unsafe impl Send for MpiTransport {}

/// Initialises MPI, which must not have been, and joins its world. `pulse` reports failures that MPI does not detect.
///
/// # Errors
/// MPI is initialised already, does not allow calls from several threads one at a time, or is not that of the launcher
/// (`rank` and `ranks` are what that said).
pub fn join(rank: usize, ranks: usize, pulse: Arc<dyn Pulse>, options: MpiOptions) -> Result<MpiComm> {
    let (universe, threading) = ::mpi::initialize_with_threading(Threading::Serialized)
        .ok_or_else(|| Error::comm("MPI is initialised already").help("call oflow::init() before any call of MPI"))?;
    if threading < Threading::Serialized {
        return Err(Error::unsupported(format!("this MPI library allows calls from one thread only ({threading:?})")));
    }
    let world = World::new()?;
    let (own, size) = world.place()?;
    if (own, size) != (rank, ranks) {
        return Err(Error::comm(format!(
            "MPI says that this is rank {own} of {size}, its launcher that it is rank {rank} of {ranks}"
        ))
        .help("run the program with the mpirun of the MPI library that it was built with"));
    }
    let one_host = world.ranks_here()? == size;
    let capacity = options.capacity.next_multiple_of(64).max(64 * ranks);
    let slot = || Slot { buffer: Buffer::new(capacity), heads: Vec::new(), sending: Vec::new() };
    let state = State {
        slots: std::array::from_fn(|_| slot()),
        posts: 0,
        heads: (0..ranks).map(|_| None).collect(),
        data: (0..ranks).map(|_| None).collect(),
        rejections: Vec::new(),
        failed: None,
    };
    Ok(Collectives::new(MpiTransport {
        world,
        rank,
        ranks,
        capacity,
        one_host,
        timeout: options.timeout,
        // Where ranks stand in turn on the hosts, no group of them is worth going by hosts.
        hosts: if options.hosts.is_sorted() { options.hosts } else { Vec::new() },
        pulse,
        state: RefCell::new(Some(state)),
        broken: Cell::new(false),
        sent: Cell::new(0),
        universe: Some(universe),
    }))
}

impl MpiTransport {
    fn with<R>(&self, work: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        let mut state = self.state.borrow_mut();
        let state = state.as_mut().ok_or_else(|| Error::comm("this rank has left MPI"))?;
        match &state.failed {
            Some(failed) => Err(Error::comm(failed.clone())),
            None => work(state),
        }
    }

    /// Polls until `done` returns a value, or until it is certain that it will not.
    fn wait<R>(&self, call: &dyn Fn() -> String, on: usize, mut done: impl FnMut() -> Result<Option<R>>) -> Result<R> {
        let mut look = || -> Result<R> {
            let start = Instant::now();
            let mut looks = 0u32;
            loop {
                if let Some(value) = done()? {
                    return Ok(value);
                }
                looks = looks.saturating_add(1);
                if looks.is_multiple_of(ALARMS) || looks > YIELDS {
                    if let Some(failure) = self.pulse.failure() {
                        return Err(failure);
                    }
                    if let Some(rejection) = self.world.look(on, MessageKind::Reject)? {
                        let mut text = vec![0; rejection.len];
                        rejection.take(&mut text)?;
                        return Err(diverged((self.rank, &call()), (on, &String::from_utf8_lossy(&text))));
                    }
                    if self.world.has(on, MessageKind::Left)? {
                        // What it sent before it left has come before.
                        if let Some(value) = done()? {
                            return Ok(value);
                        }
                        let text = format!("rank {on} has ended while rank {} is in {}", self.rank, call());
                        return Err(Error::peer(text).missing(on));
                    }
                    if start.elapsed() > self.timeout {
                        let seconds = self.timeout.as_secs_f64();
                        let text =
                            format!("rank {on} is missing: rank {} has waited {seconds} s in {}", self.rank, call());
                        return Err(Error::comm(text).help(LONGER_WAITS));
                    }
                }
                match looks {
                    0..SPINS => std::hint::spin_loop(),
                    SPINS..YIELDS => std::thread::yield_now(),
                    _ => std::thread::sleep(NAP),
                }
            }
        };
        look().inspect_err(|_| self.broken.set(true))
    }

    /// Waits until nothing more is being sent from a slot.
    fn drain(&self, call: &dyn Fn() -> String, slot: usize) -> Result<()> {
        loop {
            let next = self.with(|state| {
                let sending = &mut state.slots[slot].sending;
                let mut kept = Vec::with_capacity(sending.len());
                for (reader, mut message) in sending.drain(..) {
                    if !message.is_done()? {
                        kept.push((reader, message));
                    }
                }
                *sending = kept;
                Ok(sending.first().map(|(reader, _)| *reader))
            })?;
            let Some(reader) = next else { return Ok(()) };
            self.wait(call, reader, || {
                self.with(|state| {
                    let first = state.slots[slot].sending.first_mut();
                    Ok(match first {
                        Some((_, message)) => message.is_done()?.then_some(()),
                        None => Some(()),
                    })
                })
            })?;
        }
    }

    fn send(&self, state: &mut State, call: &RunningCall, index: usize, part: &Segment) -> Result<()> {
        let slot = &mut state.slots[state.posts % SLOTS];
        if slot.heads.len() <= index {
            slot.heads.resize_with(index + 1, || Buffer::new(head::BYTES + INLINE));
        }
        let to = slot.heads[index].bytes();
        let (tag, inline) = (call.tag, part.len <= INLINE);
        let arrived = if self.one_host { call.arrived.get() } else { 0 };
        let mut number = |at: usize, value: u64| to[at..at + 8].copy_from_slice(&value.to_le_bytes());
        number(head::ORDINAL, tag.ordinal);
        number(head::HASH, tag.hash);
        number(head::TOTAL, part.total);
        number(head::ARRIVED, arrived);
        number(head::LEN, part.len as u64);
        to[head::LINE..head::LINE + 4].copy_from_slice(&tag.line.to_le_bytes());
        to[head::KIND] = call.kind as u8;
        let op = &tag.op.as_bytes()[..tag.op.len().min(head::OP.len())];
        // The end of a path says more than its beginning.
        let file = &tag.file.as_bytes()[tag.file.len().saturating_sub(head::FILE.len())..];
        (to[head::OP_LEN], to[head::FILE_LEN]) = (op.len() as u8, file.len() as u8);
        to[head::OP][..op.len()].copy_from_slice(op);
        to[head::FILE][..file.len()].copy_from_slice(file);
        let bytes = &slot.buffer.bytes()[part.offset..part.offset + part.len];
        if inline {
            to[head::BYTES..head::BYTES + part.len].copy_from_slice(bytes);
        }
        let len = head::BYTES + if inline { part.len } else { 0 };
        // SAFETY: header and bytes lie in buffers of this slot, which is not written before `drain` has found every
        // message gone; if that cannot be, the buffers are never freed.
        unsafe {
            let (to, data) = (to.as_ptr(), bytes.as_ptr());
            slot.sending.push((part.reader, self.world.send(to, len, part.reader, MessageKind::Head)?));
            if !inline {
                slot.sending.push((part.reader, self.world.send(data, part.len, part.reader, MessageKind::Data)?));
            }
        }
        Ok(())
    }
}

/// A message into a buffer of at least `least` bytes, which is made if there is none.
fn take(message: Matched, most: usize, buffer: &mut Option<Buffer>) -> Result<usize> {
    let len = message.len;
    if len > most {
        return Err(Error::comm(format!("MPI: a post of {len} bytes where {most} are possible")));
    }
    let buffer = match buffer {
        Some(buffer) if buffer.0.len() * 64 >= len => buffer,
        other => other.insert(Buffer::new(len.next_power_of_two().clamp(4096, most.max(4096)))),
    };
    message.take(buffer.bytes())?;
    Ok(len)
}

// SAFETY: `acquire` returns a buffer of this rank's, aligned to 64 and initialised, after all messages from it have gone;
// `receive` points to a buffer that only the next `receive` from that rank writes, which comes after `release`.
unsafe impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.ranks
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn hosts(&self) -> &[usize] {
        &self.hosts
    }

    fn pulse(&self) -> Arc<dyn Pulse> {
        self.pulse.clone()
    }

    fn acquire(&self, call: &RunningCall) -> Result<*mut u8> {
        let slot = self.with(|state| Ok(state.posts % SLOTS))?;
        self.drain(&|| call.describe(), slot)?;
        self.with(|state| Ok(state.slots[slot].buffer.bytes().as_mut_ptr()))
    }

    fn sent_to_other_hosts(&self) -> u64 {
        self.sent.get()
    }

    fn publish(&self, call: &RunningCall, parts: &[Segment]) {
        if let Some(here) = self.hosts.get(self.rank) {
            let far: usize = parts.iter().filter(|p| self.hosts[p.reader] != *here).map(|p| p.len).sum();
            self.sent.set(self.sent.get() + far as u64);
        }
        let sent = self.with(|state| {
            parts.iter().enumerate().try_for_each(|(i, part)| self.send(state, call, i, part))?;
            state.posts += 1;
            Ok(())
        });
        if let Err(error) = sent {
            self.broken.set(true);
            if let Some(state) = &mut *self.state.borrow_mut() {
                state.failed.get_or_insert_with(|| error.to_string());
            }
        }
    }

    fn receive(&self, call: &RunningCall, from: usize) -> Result<Arrived> {
        let text = || call.describe();
        let header = self.wait(&text, from, || self.world.look(from, MessageKind::Head))?;
        let (head, len) = self.with(|state| {
            let got = take(header, head::BYTES + INLINE, &mut state.heads[from])?;
            let bytes = state.heads[from].as_mut().map(Buffer::bytes).unwrap_or_default();
            let number = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
            let len = number(head::LEN) as usize;
            let inline = if len <= INLINE { len } else { 0 };
            if got != head::BYTES + inline || len > self.capacity {
                return Err(Error::comm(format!("MPI: rank {from} sent a header of {got} bytes for {len} bytes")));
            }
            let head = Head {
                ordinal: number(head::ORDINAL),
                hash: number(head::HASH),
                kind: bytes[head::KIND],
                total: number(head::TOTAL),
                arrived: number(head::ARRIVED),
            };
            Ok((head, len))
        })?;
        if len <= INLINE {
            return self.with(|state| {
                let bytes = state.heads[from].as_mut().map(Buffer::bytes).unwrap_or_default();
                Ok(Arrived { head, data: bytes[head::BYTES..].as_ptr(), len })
            });
        }
        let message = self.wait(&text, from, || self.world.look(from, MessageKind::Data))?;
        self.with(|state| {
            let got = take(message, self.capacity, &mut state.data[from])?;
            if got != len {
                return Err(Error::comm(format!("MPI: rank {from} sent {got} bytes where its header says {len}")));
            }
            let bytes = state.data[from].as_mut().map(Buffer::bytes).unwrap_or_default();
            Ok(Arrived { head, data: bytes.as_ptr(), len })
        })
    }

    fn release(&self, _from: usize) {}

    fn describe_post(&self, from: usize, head: &Head) -> String {
        let kind = Collective::name_of(head.kind);
        let named = self.with(|state| {
            let bytes = state.heads[from].as_mut().map(Buffer::bytes).unwrap_or_default();
            let line = bytes[head::LINE..head::LINE + 4].try_into().map_or(0, u32::from_le_bytes);
            let (op, file) = (&bytes[head::OP], &bytes[head::FILE]);
            let op = String::from_utf8_lossy(&op[..op.len().min(bytes[head::OP_LEN].into())]);
            let file = String::from_utf8_lossy(&file[..file.len().min(bytes[head::FILE_LEN].into())]);
            Ok(describe(kind, &op, head.ordinal, &file, line))
        });
        named.unwrap_or_else(|_| kind.to_string())
    }

    fn reject(&self, call: &RunningCall, from: usize) {
        self.broken.set(true);
        let text = call.describe().into_bytes();
        // SAFETY: the text is kept until the transport is gone, and is then not freed unless it has been sent.
        let sent = unsafe { self.world.send(text.as_ptr(), text.len(), from, MessageKind::Reject) };
        if let (Ok(sending), Some(state)) = (sent, &mut *self.state.borrow_mut()) {
            state.rejections.push((text, sending));
        }
    }

    fn finish(&self, _call: &RunningCall) -> Result<()> {
        Ok(())
    }
}

impl Drop for MpiTransport {
    fn drop(&mut self) {
        let text = || "leaving MPI".to_string();
        let well = !self.broken.get() && !std::thread::panicking() && self.pulse.failure().is_none();
        let sent = well && (0..SLOTS).try_for_each(|slot| self.drain(&text, slot)).is_ok();
        for rank in (0..self.ranks).filter(|rank| *rank != self.rank) {
            // Whoever cannot be told any more does not wait.
            let _gone = self.world.tell(rank, MessageKind::Left);
        }
        if !sent {
            // MPI may still read from the buffers, and would wait for ranks that have gone: the launcher ends what is left.
            std::mem::forget(self.state.borrow_mut().take());
            std::mem::forget(self.universe.take());
        }
    }
}
