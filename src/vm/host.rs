//! Streams that are this process: inline, or threads.

use super::instruction::{Instruction, StreamKind};
use super::stream::StreamThread;
use super::waits::{Ticket, Waits};
use super::{INLINE_BYTES, VmMode};
use crate::comm::Communicator;
use crate::error::{Error, Result};
use crate::memory::{Allocator, Storage};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) struct HostStreams {
    mode: VmMode,
    comm: Option<Arc<dyn Communicator>>,
    /// Where boxings take what they need between their steps.
    memory: Allocator,
    threads: Vec<StreamThread>,
    waits: Mutex<Waits>,
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
        Ok(HostStreams { mode, comm, memory: memory.clone(), threads, waits: Mutex::new(Waits::default()) })
    }

    pub(super) fn submit(&self, i: Instruction) -> Result<()> {
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
                    let tickets = self.lock().needed(&i.reads, &i.writes, None, |t| self.reached(t));
                    self.wait_all(&tickets)?;
                }
                i.run(self.comm.as_deref(), &self.memory)
            }
            Some(t) => {
                self.failed()?;
                let mut w = self.lock();
                let tickets = w.needed(&i.reads, &i.writes, Some(t), |t| self.reached(t));
                let ticket = self.threads[t].next_ticket(t);
                w.note(&i.reads, &i.writes, ticket, |t| self.reached(t));
                self.threads[t].push(i, tickets.iter().map(|k| (self.threads[k.stream].progress(), k.seq)).collect());
                Ok(())
            }
        }
    }

    pub(super) fn wait(&self, storage: &Storage) -> Result<()> {
        if self.mode == VmMode::Inline {
            return Ok(());
        }
        let ticket = self.lock().last_write(storage).filter(|t| !self.reached(*t));
        self.wait_all(ticket.as_slice())
    }

    /// Waits until no instruction reads or writes the storage.
    pub(super) fn wait_unused(&self, storage: &Storage) -> Result<()> {
        if self.mode == VmMode::Inline {
            return Ok(());
        }
        let tickets = self.lock().needed(&[], std::slice::from_ref(storage), None, |t| self.reached(t));
        self.wait_all(&tickets)
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        for t in &self.threads {
            t.drain();
        }
        self.lock().clear();
        self.failed()
    }

    fn reached(&self, t: Ticket) -> bool {
        self.threads[t.stream].progress().reached(t.seq)
    }

    fn wait_all(&self, tickets: &[Ticket]) -> Result<()> {
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

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(|e| e.into_inner())
    }
}
