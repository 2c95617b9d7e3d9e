//! The streams of a GPU: instructions become launches on CUDA streams, waits become events.
//!
//! Everything is issued by the caller's thread and nothing waits on the host, except reading. Work on one stream runs in
//! order, so only uses of a storage on *another* stream need a wait. For that the vm notes every use with a ticket (stream
//! and number) and, when an instruction needs a ticket of another stream, lets its stream wait for an event recorded at or
//! after it. Events are recorded when somebody asks (a *mark*), and after every boxing and copy, which others do wait for.
//!
//! Memory of dropped storages goes back to the allocator at once, while the GPU may still use it. That is safe because the
//! notes belong to the block: its next user writes it first, through an instruction, and so waits for the former users on
//! other streams. (Giving memory back to the driver waits for the GPU by itself.)

use super::boxing::{Boxings, Counted};
use super::pinned::{Buffer, PIECE, PinnedPool, READ_AHEAD, READ_PIECE};
use super::times::KernelTimes;
use super::waits::{Ticket, Waits};
use crate::comm::Communicator;
use crate::error::{CallSite, Error, ErrorKind, Result};
use crate::memory::{Allocator, Storage};
use crate::ops::KernelCx;
use crate::trace::{self, What};
use crate::vm::{Instruction, Prepared, Segment, StreamKind, Streams, TakesSegments, Work};
use oflow_kernels::cuda::{CapturedWork, Event, FaultSlot, Gpu, Queue, Stream};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

const COMPUTE: usize = 0;
const COMM: usize = 1;
const COPY: usize = 2;
const STREAMS: usize = 3;

/// After so many instructions the compute stream gets a mark, so that a failure can be narrowed down.
const MARK_EVERY: u64 = 32;
/// Marks that a stream keeps.
const MARKS: usize = 32;
/// Name of kernels that are launched together, in timelines and profiles.
const CAPTURED: &str = "captured kernels";
/// Instructions whose names are remembered for reports, of each stream.
const NAMES: usize = 1024;

/// A point of a stream that has an event.
struct Mark {
    seq: u64,
    event: Event,
}

/// A piece of memory that is being read.
struct Coming<'a> {
    ticket: Ticket,
    buffer: Buffer,
    to: &'a mut [u8],
}

/// State of one stream.
#[derive(Default)]
struct Line {
    /// Number of the last instruction.
    issued: u64,
    /// All up to this one are known to be done.
    done: u64,
    /// Oldest first.
    marks: VecDeque<Mark>,
    /// Per other stream the number up to which this one has been told to wait for it.
    waited: [u64; STREAMS],
    /// Names of the latest instructions: number `n` is at `n % NAMES`.
    names: Vec<(u64, &'static str, CallSite)>,
}

struct State {
    waits: Waits,
    lines: [Line; STREAMS],
    /// Kernels of each stream, while somebody records.
    times: [KernelTimes; STREAMS],
    pinned: PinnedPool,
    /// Segments that have been captured, by number, for what their kernels report.
    segments: BTreeMap<u64, Weak<Segment>>,
    /// Once something has failed nothing runs any more: results would be wrong.
    failed: Option<(ErrorKind, String)>,
}

impl State {
    /// Notes what the instruction of that ticket uses.
    fn note(&mut self, reads: &[Storage], writes: &[Storage], ticket: Ticket) {
        let State { waits, lines, .. } = self;
        waits.note(reads, writes, ticket, |t| t.seq <= lines[t.stream].done);
    }

    /// The op and the line of the kernel that has this word, if it is remembered.
    fn origin_of(&self, word: u64) -> Option<(&'static str, CallSite)> {
        if word & OF_SEGMENT != 0 {
            let segment = self.segments.get(&((word & !OF_SEGMENT) >> PLACE_BITS))?.upgrade()?;
            return segment.origin((word & ((1 << PLACE_BITS) - 1)) as usize);
        }
        let t = unpacked(word);
        let (seq, name, site) = self.lines[t.stream].names[(t.seq as usize) % NAMES];
        (seq == t.seq).then_some((name, site))
    }

    /// Remembers a segment: the word of its first kernel.
    fn remember(&mut self, segment: &Arc<Segment>) -> u64 {
        self.segments.retain(|_, s| s.strong_count() > 0);
        let number = self.segments.last_key_value().map_or(0, |(n, _)| n + 1);
        self.segments.insert(number, Arc::downgrade(segment));
        OF_SEGMENT | number << PLACE_BITS
    }
}

/// A stream, and where its kernels report values that are out of range.
struct Lane {
    stream: Stream,
    faults: Arc<FaultSlot>,
}

/// One instruction on a stream: what a kernel gets as its stream.
pub(crate) struct OnStream {
    lane: Arc<Lane>,
    ticket: u64,
}

impl OnStream {
    /// The queue that puts work on the stream.
    pub(crate) fn queue(&self) -> Queue<'_> {
        Queue::new(&self.lane.stream, &self.lane.faults, self.ticket)
    }
}

pub(super) struct CudaStreams {
    gpu: Arc<Gpu>,
    boxings: Boxings,
    /// Where scratch memory comes from.
    alloc: Allocator,
    streams: [Arc<Lane>; STREAMS],
    faults: Arc<FaultSlot>,
    /// Wait after every instruction, so that an error comes from the call that caused it.
    blocking: bool,
    /// Take kernels of graphs together.
    segments: bool,
    state: Mutex<State>,
    syncs: AtomicU64,
    host_copies: AtomicU64,
}

/// Stream and number in one word, as kernels report it.
fn packed(t: Ticket) -> u64 {
    (t.stream as u64) << 56 | t.seq
}

fn unpacked(word: u64) -> Ticket {
    Ticket { stream: (word >> 56) as usize % STREAMS, seq: word & ((1 << 56) - 1) }
}

/// Marks the word of a kernel of a segment, which has no number of its own at each launch: the segment's number and its place there.
const OF_SEGMENT: u64 = 1 << 63;
const PLACE_BITS: u32 = 24;

impl CudaStreams {
    pub(super) fn new(
        gpu: &Arc<Gpu>,
        alloc: &Allocator,
        host: &Allocator,
        comm: Option<Arc<dyn Communicator>>,
    ) -> Result<CudaStreams> {
        let lines = std::array::from_fn(|_| Line { names: vec![(0, "", CallSite::here()); NAMES], ..Line::default() });
        let faults = Arc::new(FaultSlot::new(gpu)?);
        let lane = |high| -> Result<Arc<Lane>> {
            Ok(Arc::new(Lane { stream: Stream::new(gpu, high)?, faults: faults.clone() }))
        };
        Ok(CudaStreams {
            gpu: gpu.clone(),
            boxings: Boxings::new(gpu, host, comm),
            alloc: alloc.clone(),
            streams: [lane(false)?, lane(true)?, lane(true)?],
            faults,
            blocking: std::env::var("OFLOW_CUDA_BLOCKING").is_ok_and(|v| v == "1"),
            segments: std::env::var("OFLOW_CUDA_GRAPHS").map_or(true, |v| v != "0"),
            state: Mutex::new(State {
                waits: Waits::default(),
                lines,
                times: ["cuda compute stream", "cuda communication stream", "cuda copy stream"].map(KernelTimes::new),
                pinned: PinnedPool::default(),
                segments: BTreeMap::new(),
                failed: None,
            }),
            syncs: AtomicU64::new(0),
            host_copies: AtomicU64::new(0),
        })
    }

    fn put(&self, state: &mut State, i: &Instruction, stream: usize, name: &'static str, site: CallSite) -> Result<()> {
        let ticket = self.begin(state, stream, &i.reads, &i.writes, name, site)?;
        let on = OnStream { lane: self.streams[stream].clone(), ticket: packed(ticket) };
        match &i.work {
            Work::Kernel(k) => self.timed(state, stream, (name, site), |_| k.run(Some(&on)))?,
            Work::Segment(s) => {
                self.timed(state, stream, (CAPTURED, site), |state| self.segment(state, s, stream, &on))?
            }
            boxing => {
                let counted = Counted { syncs: &self.syncs, host_copies: &self.host_copies };
                self.boxings.run(boxing, on.queue(), &mut |bytes| self.scratch(state, ticket, bytes), &counted)?;
            }
        }
        if stream != COMPUTE || ticket.seq.is_multiple_of(MARK_EVERY) {
            self.mark(state, stream)?;
        }
        if self.blocking {
            self.sync_to(state, ticket)?;
        }
        Ok(())
    }

    /// Puts kernels on a stream, between two events if somebody records.
    fn timed(
        &self,
        state: &mut State,
        stream: usize,
        kernel: (&'static str, CallSite),
        run: impl FnOnce(&mut State) -> Result<()>,
    ) -> Result<()> {
        let on = &self.streams[stream].stream;
        let started = state.times[stream].start(on)?;
        run(state)?;
        started.map_or(Ok(()), |started| state.times[stream].issued(started, on, kernel))
    }

    /// Puts the kernels of a segment on a stream: with one launch, of what was captured at the first time.
    fn segment(&self, state: &mut State, segment: &Arc<Segment>, stream: usize, on: &OnStream) -> Result<()> {
        let (mut prepared, stream) = (segment.prepared(), &self.streams[stream].stream);
        if matches!(*prepared, Prepared::Not) {
            *prepared = match self.capture(state, segment, stream, &on.lane) {
                Ok(work) => Prepared::Ready(Box::new(work)),
                Err(e) => Prepared::Refused(e.to_string()),
            };
        }
        if let Prepared::Ready(work) = &*prepared
            && let Some(work) = work.downcast_ref::<CapturedWork>()
        {
            return Ok(stream.launch_captured(work)?);
        }
        segment.kernels().iter().try_for_each(|k| k.run(Some(on)))
    }

    /// Captures the kernels of a segment.
    fn capture(
        &self,
        state: &mut State,
        segment: &Arc<Segment>,
        stream: &Stream,
        lane: &Arc<Lane>,
    ) -> Result<CapturedWork> {
        let first = state.remember(segment);
        stream.begin_capture()?;
        let issued = segment
            .kernels()
            .iter()
            .zip(first..)
            .try_for_each(|(k, ticket)| k.run(Some(&OnStream { lane: lane.clone(), ticket })));
        // The capture ends in any case.
        let captured = stream.end_capture();
        issued?;
        Ok(captured?)
    }

    /// Numbers a piece of work on a stream, makes the stream wait for what the work needs, and notes what it uses.
    fn begin(
        &self,
        state: &mut State,
        stream: usize,
        reads: &[Storage],
        writes: &[Storage],
        name: &'static str,
        site: CallSite,
    ) -> Result<Ticket> {
        self.wait_for(state, stream, reads, writes)?;
        let line = &mut state.lines[stream];
        line.issued += 1;
        let ticket = Ticket { stream, seq: line.issued };
        line.names[(ticket.seq as usize) % NAMES] = (ticket.seq, name, site);
        state.note(reads, writes, ticket);
        Ok(ticket)
    }

    /// Makes a stream wait for what work that uses these needs of the others.
    fn wait_for(&self, state: &mut State, stream: usize, reads: &[Storage], writes: &[Storage]) -> Result<()> {
        let lines = &state.lines;
        let passed = |t: Ticket| t.seq <= lines[t.stream].done.max(lines[stream].waited[t.stream]);
        let needed = state.waits.needed(reads, writes, Some(stream), passed);
        for other in 0..STREAMS {
            let Some(seq) = needed.iter().filter(|t| t.stream == other).map(|t| t.seq).max() else { continue };
            let at = self.mark_of(state, Ticket { stream: other, seq })?;
            let mark = &state.lines[other].marks[at];
            let reached = mark.seq;
            self.streams[stream].stream.wait(&mark.event)?;
            state.lines[stream].waited[other] = reached;
        }
        Ok(())
    }

    /// Memory that an instruction uses from now on, besides what it was issued with. The instruction may drop it when all
    /// its work is on the stream: see the head of this file.
    fn scratch(&self, state: &mut State, ticket: Ticket, bytes: usize) -> Result<Storage> {
        let storage = self.alloc.alloc(bytes)?;
        let writes = std::slice::from_ref(&storage);
        self.wait_for(state, ticket.stream, &[], writes)?;
        state.note(&[], writes, ticket);
        Ok(storage)
    }

    /// Records an event after the last instruction of a stream, unless it has one.
    fn mark(&self, state: &mut State, stream: usize) -> Result<()> {
        let line = &mut state.lines[stream];
        if line.marks.back().is_some_and(|m| m.seq == line.issued) {
            return Ok(());
        }
        let event = match line.marks.len() {
            n if n < MARKS => Event::new(&self.gpu, false)?,
            // Who was told to wait for the oldest has been told already: recording it anew does not change that.
            _ => match line.marks.pop_front() {
                Some(m) => {
                    if m.event.reached()? {
                        line.done = line.done.max(m.seq);
                    }
                    m.event
                }
                None => Event::new(&self.gpu, false)?,
            },
        };
        event.record(&self.streams[stream].stream)?;
        line.marks.push_back(Mark { seq: line.issued, event });
        Ok(())
    }

    /// The number of the earliest mark at or after an instruction, recorded now if there is none.
    fn mark_of(&self, state: &mut State, t: Ticket) -> Result<usize> {
        if state.lines[t.stream].marks.back().is_none_or(|m| m.seq < t.seq) {
            self.mark(state, t.stream)?;
        }
        Ok(state.lines[t.stream].marks.partition_point(|m| m.seq < t.seq))
    }

    /// Waits on the host until an instruction is done.
    fn sync_to(&self, state: &mut State, t: Ticket) -> Result<()> {
        if t.seq <= state.lines[t.stream].done {
            return self.check_faults(state);
        }
        let at = self.mark_of(state, t)?;
        let mark = &state.lines[t.stream].marks[at];
        let seq = mark.seq;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let begin = trace::begin();
        mark.event.synchronize()?;
        begin.end(CallSite::at("", 0), || What::Wait);
        state.lines[t.stream].done = seq;
        state.times[t.stream].poll()?;
        self.check_faults(state)
    }

    fn read_pieces(&self, state: &mut State, storage: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        let mut coming = VecDeque::new();
        let run = self.read_ahead(state, storage, offset, to, &mut coming);
        // Some copies may be under way after an error: the pool keeps the memory until they are done.
        let given = coming.into_iter().try_for_each(|c| state.pinned.give(c.buffer, &self.streams[COPY].stream));
        run.and(given)
    }

    /// While the host takes one piece out of pinned memory the next ones are on their way there.
    fn read_ahead<'a>(
        &self,
        state: &mut State,
        storage: &Storage,
        offset: usize,
        to: &'a mut [u8],
        coming: &mut VecDeque<Coming<'a>>,
    ) -> Result<()> {
        let reads = std::slice::from_ref(storage);
        for (k, to) in to.chunks_mut(READ_PIECE).enumerate() {
            if coming.len() == READ_AHEAD {
                self.arrived(state, coming)?;
            }
            let ticket = self.begin(state, COPY, reads, &[], "read", CallSite::here())?;
            let buffer = state.pinned.take(&self.gpu, to.len())?;
            let (at, len) = (buffer.0.data(), to.len());
            let from = storage.ptr().wrapping_add(offset + k * READ_PIECE);
            self.host_copies.fetch_add(1, Ordering::Relaxed);
            coming.push_back(Coming { ticket, buffer, to });
            // SAFETY: inside the storage (the caller checked), which the caller keeps until all copies are done or something has
            // failed; a buffer of at least that many bytes, which goes back to the pool only with an event after the copy.
            unsafe { self.streams[COPY].stream.copy_to_host(at, from, len) }?;
            self.mark(state, COPY)?;
        }
        while !coming.is_empty() {
            self.arrived(state, coming)?;
        }
        Ok(())
    }

    /// Waits for the oldest piece and takes it.
    fn arrived(&self, state: &mut State, coming: &mut VecDeque<Coming<'_>>) -> Result<()> {
        let Some(first) = coming.front() else { return Ok(()) };
        self.sync_to(state, first.ticket)?;
        let Some(Coming { buffer, to, .. }) = coming.pop_front() else { return Ok(()) };
        // SAFETY: the buffer has at least that many bytes, the copy to it is done, and nobody else has it.
        unsafe { std::ptr::copy_nonoverlapping(buffer.0.data(), to.as_mut_ptr(), to.len()) };
        state.pinned.give_idle(buffer);
        Ok(())
    }

    fn write_pieces(&self, state: &mut State, storage: &Storage, offset: usize, from: &[u8]) -> Result<()> {
        let writes = std::slice::from_ref(storage);
        for (k, piece) in from.chunks(PIECE).enumerate() {
            self.begin(state, COPY, &[], writes, "write", CallSite::here())?;
            let (buffer, event) = state.pinned.take(&self.gpu, piece.len())?;
            // SAFETY: a buffer of at least that many bytes that no copy uses.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), buffer.data(), piece.len()) };
            let to = storage.ptr().wrapping_add(offset + k * PIECE);
            self.host_copies.fetch_add(1, Ordering::Relaxed);
            // SAFETY: inside the storage (the caller checked). The block may be dropped before the copy is done: see the
            // head of this file; the buffer is used again only when its event says so.
            unsafe { self.streams[COPY].stream.copy_to_device(to, buffer.data(), piece.len()) }?;
            state.pinned.give((buffer, event), &self.streams[COPY].stream)?;
            self.mark(state, COPY)?;
        }
        Ok(())
    }

    /// Does something with the state, unless something failed before. CUDA tells of a failure with whatever call comes
    /// next, so all of them are in here.
    fn locked(&self, run: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        self.check_faults(&mut state)?;
        run(&mut state).map_err(|e| self.poison(&mut state, e))
    }

    /// An error if a kernel has found a value out of range, or something failed before.
    fn check_faults(&self, state: &mut State) -> Result<()> {
        if let Some((kind, text)) = &state.failed {
            return Err(Error::new(*kind, text.clone()));
        }
        if let Some(e) = self.boxings.guard.failure() {
            state.failed = Some((e.kind(), e.message().to_string()));
            return Err(e);
        }
        let Some(fault) = self.faults.take() else { return Ok(()) };
        let error = Error::new(ErrorKind::Value, fault.to_string());
        let error = match state.origin_of(fault.ticket) {
            Some((name, site)) => error.in_call(|| name.to_string()).at(site),
            None => error,
        };
        state.failed = Some((ErrorKind::Value, error.to_string()));
        Err(error)
    }

    /// Nothing runs after a failure of the device. Says which op it was, as closely as is known: CUDA reports what a kernel
    /// did wrong with some later call.
    fn poison(&self, state: &mut State, e: Error) -> Error {
        if e.kind() != ErrorKind::Device {
            return e;
        }
        if let Some((kind, text)) = &state.failed {
            return Error::new(*kind, text.clone());
        }
        let mut suspects = vec![];
        for line in &state.lines {
            let first = (line.done + 1).max(line.issued.saturating_sub(NAMES as u64 - 1));
            suspects.extend((first..=line.issued).map(|n| line.names[n as usize % NAMES]));
        }
        let named = |(_, op, site): &(u64, &'static str, CallSite)| format!("'{op}' at {site}");
        let e = match &suspects[..] {
            [] => e,
            [only] => e.help(format!("it was {}", named(only))),
            many => {
                let shown: Vec<String> = many.iter().rev().take(8).rev().map(named).collect();
                e.help(format!(
                    "it was one of the last {} ops: … {}. OFLOW_CUDA_BLOCKING=1 waits after each and names the one",
                    many.len(),
                    shown.join(", ")
                ))
            }
        };
        state.failed = Some((e.kind(), e.to_string()));
        e
    }
}

impl Streams for CudaStreams {
    fn submit(&self, i: Instruction) -> Result<()> {
        let stream = match i.stream {
            StreamKind::Compute => COMPUTE,
            StreamKind::Comm => COMM,
            StreamKind::Copy => COPY,
        };
        let (name, site) = i.origin();
        self.locked(|state| self.put(state, &i, stream, name, site))
    }

    fn wait(&self, storage: &Storage) -> Result<()> {
        self.locked(|state| match state.waits.last_write(storage) {
            Some(t) => self.sync_to(state, t),
            None => Ok(()),
        })
    }

    fn read(&self, storage: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        self.locked(|state| self.read_pieces(state, storage, offset, to))
    }

    fn write(&self, storage: &Storage, offset: usize, from: &[u8]) -> Result<()> {
        self.locked(|state| self.write_pieces(state, storage, offset, from))
    }

    fn synchronize(&self) -> Result<()> {
        self.locked(|state| {
            for stream in 0..STREAMS {
                let seq = state.lines[stream].issued;
                if seq > state.lines[stream].done {
                    self.sync_to(state, Ticket { stream, seq })?;
                }
            }
            self.boxings.poll()?;
            state.times.iter_mut().try_for_each(KernelTimes::ended)?;
            self.check_faults(state)
        })
    }

    fn takes_segments(&self) -> TakesSegments {
        match (self.segments, self.blocking) {
            (false, _) => TakesSegments::Off("OFLOW_CUDA_GRAPHS=0"),
            (_, true) => TakesSegments::Off("OFLOW_CUDA_BLOCKING=1"),
            _ => TakesSegments::Yes,
        }
    }

    fn counts(&self) -> (u64, u64) {
        (self.syncs.load(Ordering::Relaxed), self.host_copies.load(Ordering::Relaxed))
    }
}

/// The queue that a CUDA kernel puts its work on.
///
/// # Errors
/// The kernel does not run on a GPU.
pub fn queue<'a>(cx: &KernelCx<'a>) -> Result<Queue<'a>> {
    let stream = cx.stream.and_then(|s| s.downcast_ref::<OnStream>());
    let stream = stream.ok_or_else(|| Error::device(format!("{}: a CUDA kernel without a stream", cx.op.sig.name)))?;
    Ok(stream.queue())
}
