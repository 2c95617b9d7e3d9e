//! A stream that is a thread: a queue of instructions, each with the progress it must wait for.
//!
//! State: `issued` counts pushes (under the vm's lock), `done` counts completions in order. A waiter for number `n` sleeps
//! until `done >= n`. After a failure, a panic among them, the thread goes on counting, without running, so that nobody waits
//! for ever; whoever waits is told of the failure.

use crate::comm::Communicator;
use crate::error::{Error, ErrorKind, Result, panic_text};
use crate::memory::{Allocator, Line, Ticket, Tickets};
use crate::trace;
use crate::vm::Instruction;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;

/// How far a stream has come, and what went wrong there first.
#[derive(Default)]
pub(super) struct Progress {
    done: Mutex<u64>,
    moved: Condvar,
    failure: Mutex<Option<(ErrorKind, String)>>,
}

impl Progress {
    fn wait_for(&self, seq: u64) {
        let mut done = self.done.lock().unwrap_or_else(|e| e.into_inner());
        while *done < seq {
            done = self.moved.wait(done).unwrap_or_else(|e| e.into_inner());
        }
    }
    pub(super) fn check(&self) -> Result<()> {
        match &*self.failure.lock().unwrap_or_else(|e| e.into_inner()) {
            Some((kind, text)) => Err(Error::new(*kind, text.clone())),
            None => Ok(()),
        }
    }
    fn fail(&self, e: &Error) {
        let mut failure = self.failure.lock().unwrap_or_else(|e| e.into_inner());
        failure.get_or_insert_with(|| (e.kind(), e.to_string()));
    }
    fn advance(&self) {
        *self.done.lock().unwrap_or_else(|e| e.into_inner()) += 1;
        self.moved.notify_all();
    }
}

impl Line for Progress {
    fn reached(&self, seq: u64) -> bool {
        // What a failed stream was to write is never there: who needs it waits, and is told.
        *self.done.lock().unwrap_or_else(|e| e.into_inner()) >= seq && self.check().is_ok()
    }
    fn wait(&self, seq: u64) -> Result<()> {
        self.wait_for(seq);
        self.check()
    }
}

type Job = (Instruction, Tickets);

pub(super) struct StreamThread {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    issued: AtomicU64,
    progress: Arc<Progress>,
}

impl StreamThread {
    pub(super) fn start(
        name: &str,
        memory: Allocator,
        comm: Option<Arc<dyn Communicator>>,
        delays: Option<(u64, u64)>,
    ) -> Result<StreamThread> {
        let (queue, jobs) = mpsc::channel::<Job>();
        let progress = Arc::new(Progress::default());
        let (p, owner) = (progress.clone(), trace::owner());
        let thread = std::thread::Builder::new()
            .name(format!("oflow-{name}"))
            .spawn(move || {
                trace::adopt(owner);
                let mut noise = delays.map(|(us, seed)| Noise { us, state: seed | 1 });
                for (instruction, waits) in jobs {
                    // What another stream was to write and has not cannot be used here either.
                    let ready = waits.iter().try_for_each(|t| t.line.wait(t.seq));
                    if let Some(n) = &mut noise {
                        n.pause();
                    }
                    let run = || {
                        ready?;
                        let alone = instruction.begin()?;
                        instruction.work.run(comm.as_deref(), &memory)?;
                        alone.end()
                    };
                    if p.check().is_ok()
                        && let Err(e) =
                            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|p| Err(panicked(&*p, &instruction)))
                    {
                        p.fail(&e);
                    }
                    // The instruction's storages are released before its number is announced, so that whoever waited
                    // sees them free (and, on the test device, poisoned).
                    drop(instruction);
                    p.advance();
                }
            })
            .map_err(|e| Error::device(format!("cannot start the {name} stream")).because(e))?;
        Ok(StreamThread { queue: Some(queue), thread: Some(thread), issued: AtomicU64::new(0), progress })
    }

    /// Number of the instruction to be pushed next.
    pub(super) fn next_ticket(&self) -> Ticket {
        Ticket { line: self.progress.clone(), seq: self.issued.fetch_add(1, Ordering::AcqRel) + 1 }
    }
    pub(super) fn push(&self, i: Instruction, waits: Tickets) {
        if let Some(q) = &self.queue {
            // The receiver lives as long as this struct; a send cannot fail before the drop below.
            let _ = q.send((i, waits));
        }
    }
    pub(super) fn drain(&self) {
        self.progress.wait_for(self.issued.load(Ordering::Acquire));
    }
    pub(super) fn check(&self) -> Result<()> {
        self.progress.check()
    }
}

/// A panic as the error of the instruction that it happened in.
fn panicked(panic: &(dyn Any + Send), i: &Instruction) -> Error {
    let text = panic_text(panic);
    let (op, site) = i.origin();
    Error::device(format!("panicked: {}", text.unwrap_or("without a text"))).in_call(|| op.to_string()).at(site)
}

impl Drop for StreamThread {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(t) = self.thread.take() {
            // Panics of instructions are caught where they run.
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
