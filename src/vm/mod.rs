//! Running instructions on a device, in streams, with the waits that their buffers need.
//!
//! An [`Instruction`] is data: a kernel with views, or a boxing plan with its ends. On the CPU compute runs inline; the
//! communication stream runs inline too, or on a thread of its own. On the asynchronous test device every stream is a
//! thread with random delays, which proves the waits without a GPU. Knows nothing of tensors or SBP rules. Start at
//! [`Vm::submit`].

pub mod box_collect;
pub mod box_exec;
pub mod box_many;
mod instruction;
mod place;
mod place_host;
mod stream;
mod waits;

pub use instruction::{BoxManyWork, BoxWork, Instruction, KernelPlan, KernelWork, Stopwatch, StreamKind, Work};

use crate::comm::Communicator;
use crate::error::{Error, Result};
use crate::memory::Storage;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use stream::StreamThread;
use waits::Waits;

/// How the streams of a device run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmMode {
    /// Everything on the caller's thread, in order of issue.
    Inline,
    /// Compute on the caller's thread, boxing of large tensors on a communication thread; consumers wait for its results.
    /// Small ones ([`INLINE_BYTES`]) run on the caller's thread, after what the other still has to do: one total order.
    CommThread,
    /// Each stream is a thread; random delays of up to that many microseconds before each instruction.
    Async {
        /// Upper bound of a delay.
        delay_us: u64,
        /// Seed of the delays.
        seed: u64,
    },
}

/// Tensors up to this many (logical) bytes are boxed on the caller's thread: handing them over would cost more than the
/// collective.
pub const INLINE_BYTES: usize = 64 << 10;

/// What has run, for tests and traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmCounters {
    /// Kernels.
    pub kernels: u64,
    /// Boxings.
    pub boxings: u64,
    /// Contiguous copies made because a kernel does not take strides.
    pub copies: u64,
}

/// The streams of one device of one rank.
pub struct Vm {
    mode: VmMode,
    comm: Option<Arc<dyn Communicator>>,
    threads: Vec<StreamThread>,
    waits: Mutex<Waits>,
    kernels: AtomicU64,
    boxings: AtomicU64,
    copies: AtomicU64,
}

impl Vm {
    /// Streams in that mode, with the rank's communicator.
    pub fn new(mode: VmMode, comm: Option<Arc<dyn Communicator>>) -> Result<Vm> {
        let threads = match mode {
            VmMode::Inline => vec![],
            VmMode::CommThread => vec![StreamThread::start("comm", comm.clone(), None)?],
            VmMode::Async { delay_us, seed } => vec![
                StreamThread::start("comm", comm.clone(), Some((delay_us, seed)))?,
                StreamThread::start("compute", comm.clone(), Some((delay_us, seed ^ 0x9e37)))?,
            ],
        };
        Ok(Vm {
            mode,
            comm,
            threads,
            waits: Mutex::new(Waits::default()),
            kernels: AtomicU64::new(0),
            boxings: AtomicU64::new(0),
            copies: AtomicU64::new(0),
        })
    }

    /// Issues an instruction. Inline work is done when this returns; other work is done when its outputs have been
    /// waited for ([`Vm::wait`]) or a later instruction that needs them runs.
    pub fn submit(&self, i: Instruction) -> Result<()> {
        match i.work {
            Work::Kernel(_) => self.kernels.fetch_add(1, Ordering::Relaxed),
            Work::Boxing(_) => self.boxings.fetch_add(1, Ordering::Relaxed),
            Work::BoxMany(ref b) => self.boxings.fetch_add(b.plans.len() as u64, Ordering::Relaxed),
        };
        let thread = match (self.mode, i.stream) {
            (VmMode::Inline, _) => None,
            (VmMode::CommThread, StreamKind::Compute) => None,
            (VmMode::CommThread, StreamKind::Comm) if i.boxed_bytes() <= INLINE_BYTES => {
                self.threads[0].drain();
                self.failed()?;
                None
            }
            (VmMode::CommThread, StreamKind::Comm) => Some(0),
            (VmMode::Async { .. }, StreamKind::Comm) => Some(0),
            (VmMode::Async { .. }, StreamKind::Compute) => Some(1),
        };
        match thread {
            None => {
                if self.mode != VmMode::Inline {
                    let mut w = self.lock();
                    let tickets = w.needed(&i, &self.threads, None);
                    drop(w);
                    self.wait_all(&tickets)?;
                }
                i.run(self.comm.as_deref())
            }
            Some(t) => {
                self.failed()?;
                let mut w = self.lock();
                let tickets = w.needed(&i, &self.threads, Some(t));
                let ticket = self.threads[t].next_ticket(t);
                w.note(&i, ticket);
                self.threads[t].push(i, tickets.iter().map(|k| (self.threads[k.stream].progress(), k.seq)).collect());
                Ok(())
            }
        }
    }

    /// Waits until the bytes of a storage are final: all work issued so far that writes it is done.
    pub fn wait(&self, storage: &Storage) -> Result<()> {
        if self.mode == VmMode::Inline {
            return Ok(());
        }
        let ticket = self.lock().last_write(storage, &self.threads);
        self.wait_all(ticket.as_slice())
    }

    /// Waits for everything issued so far.
    pub fn synchronize(&self) -> Result<()> {
        for t in &self.threads {
            t.drain();
        }
        self.lock().clear();
        self.failed()
    }

    /// Counts a contiguous copy.
    pub fn count_copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    /// What has run so far.
    pub fn counters(&self) -> VmCounters {
        VmCounters {
            kernels: self.kernels.load(Ordering::Relaxed),
            boxings: self.boxings.load(Ordering::Relaxed),
            copies: self.copies.load(Ordering::Relaxed),
        }
    }

    fn wait_all(&self, tickets: &[waits::Ticket]) -> Result<()> {
        for t in tickets {
            self.threads[t.stream].progress().wait(t.seq);
        }
        if tickets.is_empty() { Ok(()) } else { self.failed() }
    }

    fn failed(&self) -> Result<()> {
        match self.threads.iter().find_map(|t| t.failure()) {
            Some((kind, text)) => Err(Error::new(kind, text)),
            None => Ok(()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(|e| e.into_inner())
    }
}
