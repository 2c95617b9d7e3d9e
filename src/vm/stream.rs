//! A stream that is a thread: a queue of instructions, each with the progress it must wait for.
//!
//! State: `issued` counts pushes (under the vm's lock), `done` counts completions in order. A waiter for number `n` sleeps
//! until `done >= n`. After a failure the thread goes on counting, without running, so that nobody waits for ever.

use super::instruction::Instruction;
use super::waits::Ticket;
use crate::comm::Communicator;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Allocator;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;

/// How far a stream has come.
pub(super) struct Progress {
    done: Mutex<u64>,
    moved: Condvar,
}

impl Progress {
    pub(super) fn wait(&self, seq: u64) {
        let mut done = self.done.lock().unwrap_or_else(|e| e.into_inner());
        while *done < seq {
            done = self.moved.wait(done).unwrap_or_else(|e| e.into_inner());
        }
    }
    fn advance(&self) {
        *self.done.lock().unwrap_or_else(|e| e.into_inner()) += 1;
        self.moved.notify_all();
    }
    pub(super) fn reached(&self, seq: u64) -> bool {
        *self.done.lock().unwrap_or_else(|e| e.into_inner()) >= seq
    }
}

type Job = (Instruction, Vec<(Arc<Progress>, u64)>);

pub(super) struct StreamThread {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    issued: AtomicU64,
    progress: Arc<Progress>,
    failure: Arc<Mutex<Option<(ErrorKind, String)>>>,
}

impl StreamThread {
    pub(super) fn start(
        name: &str,
        memory: Allocator,
        comm: Option<Arc<dyn Communicator>>,
        delays: Option<(u64, u64)>,
    ) -> Result<StreamThread> {
        let (queue, jobs) = mpsc::channel::<Job>();
        let progress = Arc::new(Progress { done: Mutex::new(0), moved: Condvar::new() });
        let failure = Arc::new(Mutex::new(None));
        let (p, f) = (progress.clone(), failure.clone());
        let thread = std::thread::Builder::new()
            .name(format!("oflow-{name}"))
            .spawn(move || {
                let mut noise = delays.map(|(us, seed)| Noise { us, state: seed | 1 });
                for (instruction, waits) in jobs {
                    for (progress, seq) in waits {
                        progress.wait(seq);
                    }
                    if let Some(n) = &mut noise {
                        n.pause();
                    }
                    let failed = f.lock().unwrap_or_else(|e| e.into_inner()).is_some();
                    if !failed && let Err(e) = instruction.run(comm.as_deref(), &memory) {
                        *f.lock().unwrap_or_else(|e| e.into_inner()) = Some((e.kind(), e.to_string()));
                    }
                    // The instruction's storages are released before its number is announced, so that whoever waited
                    // sees them free (and, on the test device, poisoned).
                    drop(instruction);
                    p.advance();
                }
            })
            .map_err(|e| Error::device(format!("cannot start the {name} stream")).because(e))?;
        Ok(StreamThread { queue: Some(queue), thread: Some(thread), issued: AtomicU64::new(0), progress, failure })
    }

    /// Number of the instruction to be pushed next.
    pub(super) fn next_ticket(&self, stream: usize) -> Ticket {
        Ticket { stream, seq: self.issued.fetch_add(1, Ordering::AcqRel) + 1 }
    }
    pub(super) fn push(&self, i: Instruction, waits: Vec<(Arc<Progress>, u64)>) {
        if let Some(q) = &self.queue {
            // The receiver lives as long as this struct; a send cannot fail before the drop below.
            let _ = q.send((i, waits));
        }
    }
    pub(super) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }
    pub(super) fn drain(&self) {
        self.progress.wait(self.issued.load(Ordering::Acquire));
    }
    pub(super) fn failure(&self) -> Option<(ErrorKind, String)> {
        self.failure.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

impl Drop for StreamThread {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(t) = self.thread.take() {
            // A panic in a kernel has been printed by the panic hook already.
            let _ = t.join();
        }
    }
}

/// Random pauses: schedules that a GPU might show.
struct Noise {
    us: u64,
    state: u64,
}

impl Noise {
    fn pause(&mut self) {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let until = std::time::Instant::now() + std::time::Duration::from_micros(self.state % (self.us + 1));
        while std::time::Instant::now() < until {
            std::thread::yield_now();
        }
    }
}
