//! Streams that are this process: inline, or threads.

use super::thread::StreamThread;
use crate::comm::Communicator;
use crate::error::{CallSite, Result};
use crate::memory::{Allocator, Storage, Tickets};
use crate::trace::{self, What};
use crate::vm::{INLINE_BYTES, Instruction, StreamKind, Streams, VmMode, Work};
use std::sync::{Arc, Mutex};

/// Held from asking which work an instruction waits for until the instruction is noted as work to wait for: of two threads
/// that issue work on one storage, of one rank or of two, one comes after the other.
static ISSUE: Mutex<()> = Mutex::new(());

pub(super) struct HostStreams {
    mode: VmMode,
    comm: Option<Arc<dyn Communicator>>,
    /// Where boxings take what they need between their steps.
    memory: Allocator,
    threads: Vec<StreamThread>,
}

impl HostStreams {
    pub(super) fn new(mode: VmMode, memory: &Allocator, comm: Option<Arc<dyn Communicator>>) -> Result<HostStreams> {
        let start = |name, delays| StreamThread::start(name, memory.clone(), comm.clone(), delays);
        let threads = match mode {
            VmMode::Inline => vec![],
            VmMode::CommThread => vec![start("comm", None)?],
            VmMode::Async { delay_us, seed } => {
                vec![start("comm", Some((delay_us, seed)))?, start("compute", Some((delay_us, seed ^ 0x9e37)))?]
            }
        };
        Ok(HostStreams { mode, comm, memory: memory.clone(), threads })
    }

    fn wait_all(&self, tickets: &Tickets) -> Result<()> {
        if tickets.is_empty() {
            return Ok(());
        }
        let begin = trace::begin();
        tickets.iter().try_for_each(|t| t.line.wait(t.seq))?;
        begin.end(CallSite::at("", 0), || What::Wait);
        self.failed()
    }

    fn failed(&self) -> Result<()> {
        self.threads.iter().try_for_each(|t| t.check())
    }
}

impl Streams for HostStreams {
    fn submit(&self, i: Instruction) -> Result<()> {
        let thread = match (self.mode, i.stream) {
            (VmMode::Inline, _) => None,
            (VmMode::CommThread, StreamKind::Compute | StreamKind::Copy) => None,
            (VmMode::CommThread, StreamKind::Comm) if i.boxed_bytes() <= INLINE_BYTES => {
                let begin = trace::begin();
                self.threads[0].drain();
                begin.end(i.origin().1, || What::Wait);
                self.failed()?;
                None
            }
            (VmMode::CommThread, StreamKind::Comm) => Some(0),
            (VmMode::Async { .. }, StreamKind::Comm) => Some(0),
            (VmMode::Async { .. }, StreamKind::Compute | StreamKind::Copy) => Some(1),
        };
        match thread {
            None => {
                if i.all_reads().chain(i.all_writes()).any(Storage::is_streamed) {
                    self.wait_all(&needed(i.all_reads(), i.all_writes()))?;
                }
                let alone = i.begin()?;
                match &i.work {
                    Work::Kernel(k) => k.run(None)?,
                    boxing => boxing.run(self.comm.as_deref(), &self.memory)?,
                }
                alone.end()
            }
            Some(t) => {
                self.failed()?;
                let _one_by_one = ISSUE.lock().unwrap_or_else(|e| e.into_inner());
                let mut tickets = needed(i.all_reads(), i.all_writes());
                let ticket = self.threads[t].next_ticket();
                // A stream does its work in order.
                tickets.retain(|k| !Arc::ptr_eq(&k.line, &ticket.line));
                i.all_reads().for_each(|s| s.read_by(&ticket));
                i.all_writes().for_each(|s| s.written_by(&ticket));
                self.threads[t].push(i, tickets);
                Ok(())
            }
        }
    }

    /// Waits for whichever stream of whichever rank writes the storage.
    fn wait(&self, storage: &Storage) -> Result<()> {
        self.wait_all(&needed([storage].into_iter(), std::iter::empty()))
    }

    fn read(&self, storage: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        self.wait(storage)?;
        let turn = storage.turn()?;
        // SAFETY: inside the storage (the caller checked), final (waited for), and `to` is another memory.
        unsafe { std::ptr::copy_nonoverlapping(storage.ptr().add(offset), to.as_mut_ptr(), to.len()) };
        storage.still(turn)
    }

    fn write(&self, storage: &Storage, offset: usize, from: &[u8]) -> Result<()> {
        self.wait_unused(storage)?;
        // SAFETY: inside the storage (the caller checked), which no instruction uses any more; `from` is another memory.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), storage.ptr().add(offset), from.len()) };
        Ok(())
    }

    fn computes_here(&self) -> bool {
        !matches!(self.mode, VmMode::Async { .. })
    }

    fn wait_unused(&self, storage: &Storage) -> Result<()> {
        self.wait_all(&needed(std::iter::empty(), [storage].into_iter()))
    }

    fn synchronize(&self) -> Result<()> {
        for t in &self.threads {
            t.drain();
        }
        self.failed()
    }
}

/// The work that must be done before these are read and written.
#[inline]
fn needed<'a>(reads: impl Iterator<Item = &'a Storage>, writes: impl Iterator<Item = &'a Storage>) -> Tickets {
    let mut tickets = Tickets::new();
    reads.for_each(|s| s.before_read(&mut tickets));
    writes.for_each(|s| s.before_write(&mut tickets));
    tickets
}
