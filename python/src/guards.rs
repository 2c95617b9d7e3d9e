//! The guards of modes, held until Python leaves them.
//!
//! A mode ends when it is left, in any order and on any thread: Python closes generators, and with them the `with` blocks inside, on
//! the thread that drops them last, which may be a worker or the garbage collector's. The guard of a mode belongs to its thread, so
//! another thread notes the mode as left, and its own thread ends it at its next call.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The low bits of a mode's number count the modes of its thread; the bits above are the thread's.
const COUNT_BITS: u32 = 40;

/// Threads that have entered a mode, so far.
static THREADS: AtomicU64 = AtomicU64::new(0);

/// How many modes wait in [`ELSEWHERE`]: what every call reads.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Modes that threads know of each other.
struct Elsewhere {
    /// Threads that have entered a mode and have not ended.
    living: BTreeSet<u64>,
    /// Modes of these that were left on another thread.
    left: Vec<u64>,
}

static ELSEWHERE: Mutex<Elsewhere> = Mutex::new(Elsewhere { living: BTreeSet::new(), left: Vec::new() });

impl Elsewhere {
    fn lock() -> MutexGuard<'static, Elsewhere> {
        ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Takes the modes of a thread that were left.
    fn take(&mut self, thread: u64) -> Vec<u64> {
        let (mine, others) = self.left.drain(..).partition(|number| number >> COUNT_BITS == thread);
        self.left = others;
        LEFT.store(self.left.len(), Ordering::Release);
        mine
    }
}

/// The modes of a thread.
struct Modes {
    thread: u64,
    next: u64,
    entered: Vec<(u64, Box<dyn Any>)>,
}

impl Modes {
    fn new() -> Modes {
        let thread = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
        Elsewhere::lock().living.insert(thread);
        THREAD.set(thread);
        Modes { thread, next: 0, entered: vec![] }
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        let mut all = Elsewhere::lock();
        all.living.remove(&self.thread);
        all.take(self.thread);
    }
}

thread_local! {
    static MODES: RefCell<Modes> = RefCell::new(Modes::new());
    /// The number of this thread, once it has entered a mode.
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// Whether modes wait to be ended by their threads.
#[inline]
pub fn left_elsewhere() -> bool {
    LEFT.load(Ordering::Acquire) > 0
}

/// Ends the modes of this thread that were left on other threads.
pub fn end_left() {
    let thread = THREAD.get();
    if thread == 0 || !left_elsewhere() {
        return;
    }
    let mine = Elsewhere::lock().take(thread);
    mine.into_iter().for_each(end);
}

/// Ends a mode of this thread. Its guard is dropped outside of the borrow.
fn end(number: u64) {
    let _guard = MODES.with_borrow_mut(|modes| {
        let at = modes.entered.iter().rposition(|(n, _)| *n == number)?;
        Some(modes.entered.remove(at))
    });
}

/// Holds the guard of a mode that this thread has entered; returns the mode's number.
pub fn hold(guard: Box<dyn Any>) -> u64 {
    MODES.with_borrow_mut(|modes| {
        modes.next += 1;
        let number = modes.thread << COUNT_BITS | modes.next;
        modes.entered.push((number, guard));
        number
    })
}

/// Leaves a mode, and no other one. On another thread than its own the mode is noted as left, and ends at the next call of its own. One
/// that has ended already, and one of a thread that has ended, change nothing.
pub fn leave(number: u64) {
    let thread = number >> COUNT_BITS;
    if thread == THREAD.get() {
        return end(number);
    }
    let mut all = Elsewhere::lock();
    if all.living.contains(&thread) {
        all.left.push(number);
        LEFT.store(all.left.len(), Ordering::Release);
    }
}
