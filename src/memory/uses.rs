//! The users of a storage: pending work of streams, and a thread that writes it now.
//!
//! A storage knows its users, so a reader can wait for them on any thread, without a rank context. *Tickets* are work issued to
//! asynchronous streams; the next user of the storage waits for them. The *turn* detects two threads that use a storage at once,
//! one of them writing: it is even if no thread writes, odd during a write, and two larger after it. A second writer finds it
//! odd, and a reader finds it odd or changed; both get an error.
//!
//! A panic on a stream becomes an error for every reader that waits for the stream's work.

use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A stream whose work can be waited for.
pub trait Line: Send + Sync {
    /// Returns whether the work up to `seq` has succeeded.
    fn reached(&self, seq: u64) -> bool;
    /// Waits until the work up to `seq` is done.
    ///
    /// # Errors
    /// If the stream has failed; its results are then invalid.
    fn wait(&self, seq: u64) -> Result<()>;
}

/// Work of a stream: the stream, and the number of the work there.
#[derive(Clone)]
pub struct Ticket {
    /// Stream that the instruction runs on.
    pub line: Arc<dyn Line>,
    /// The number of the work.
    pub seq: u64,
}

impl Ticket {
    fn reached(&self) -> bool {
        self.line.reached(self.seq)
    }
    fn on(&self, line: &Arc<dyn Line>) -> bool {
        Arc::ptr_eq(&self.line, line)
    }
}

/// A list of tickets to wait for.
pub type Tickets = SmallVec<[Ticket; 4]>;

#[derive(Default)]
struct Issued {
    write: Option<Ticket>,
    /// Reads since.
    reads: SmallVec<[Ticket; 2]>,
}

#[derive(Default)]
pub(super) struct Uses {
    /// Whether a stream has been given work on the storage; most storages never are, and cost a load here.
    streams: AtomicBool,
    issued: Mutex<Issued>,
    turn: AtomicU64,
}

impl Uses {
    /// Forgets the former life of a block.
    pub(super) fn renew(&mut self) {
        if std::mem::take(self.streams.get_mut()) {
            *self.issued.get_mut().unwrap_or_else(|e| e.into_inner()) = Issued::default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Issued> {
        self.issued.lock().unwrap_or_else(|e| e.into_inner())
    }

    #[inline]
    pub(super) fn is_streamed(&self) -> bool {
        self.streams.load(Ordering::Acquire)
    }

    /// Adds the last unfinished write, which a reader waits for.
    pub(super) fn before_read(&self, tickets: &mut Tickets) {
        if self.is_streamed() {
            tickets.extend(self.lock().write.clone().filter(|t| !t.reached()));
        }
    }

    /// Adds the last write and the reads since that are unfinished, which a writer waits for.
    pub(super) fn before_write(&self, tickets: &mut Tickets) {
        if self.is_streamed() {
            let issued = self.lock();
            tickets.extend(issued.write.iter().chain(&issued.reads).filter(|t| !t.reached()).cloned());
        }
    }

    /// A stream is given work that reads the storage.
    pub(super) fn read_by(&self, ticket: &Ticket) {
        let mut issued = self.lock();
        issued.reads.retain(|t| !t.on(&ticket.line) && !t.reached());
        issued.reads.push(ticket.clone());
        drop(issued);
        self.streams.store(true, Ordering::Release);
    }

    /// A stream is given work that writes the storage.
    pub(super) fn written_by(&self, ticket: &Ticket) {
        *self.lock() = Issued { write: Some(ticket.clone()), reads: SmallVec::new() };
        self.streams.store(true, Ordering::Release);
    }

    /// The number of writes so far.
    ///
    /// # Errors
    /// If another thread is writing.
    #[inline]
    pub(super) fn turn(&self) -> Result<u64> {
        match self.turn.load(Ordering::Acquire) {
            odd if odd % 2 == 1 => Err(at_once()),
            turn => Ok(turn),
        }
    }

    /// Checks that nothing has been written since that turn.
    ///
    /// # Errors
    /// If another thread has written: what was read may be neither the old nor the new value.
    #[inline]
    pub(super) fn still(&self, turn: u64) -> Result<()> {
        // What was read before stays before this load.
        std::sync::atomic::fence(Ordering::Acquire);
        if self.turn.load(Ordering::Relaxed) == turn { Ok(()) } else { Err(at_once()) }
    }

    pub(super) fn begin_write(&self) -> Result<()> {
        let turn = self.turn()?;
        let taken = self.turn.compare_exchange(turn, turn + 1, Ordering::AcqRel, Ordering::Relaxed);
        taken.map(drop).map_err(|_| at_once())
    }

    pub(super) fn end_write(&self) {
        self.turn.fetch_add(1, Ordering::Release);
    }
}

#[cold]
fn at_once() -> Error {
    Error::value("another thread changes a tensor in place while this call uses it")
        .help("let one thread finish before the other begins, or give each a `clone()`")
}
