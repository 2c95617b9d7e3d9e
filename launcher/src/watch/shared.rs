//! State shared by three threads: the page's, the one that supervises the ranks, and the writer of the output.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lines::Lines;
use super::state::State;

/// A page that has not asked for so long is closed.
const CLOSED: Duration = Duration::from_secs(5);

/// State, output, and whether a page is open.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Apart, because the writer must not wait while a large state is told.
    lines: Mutex<Lines>,
    began: Instant,
    /// When a page has asked last, in milliseconds after `began`; 0: never.
    asked: AtomicU64,
}

impl Shared {
    pub(super) fn new(state: State) -> Shared {
        Shared { state: Mutex::new(state), lines: Mutex::default(), began: Instant::now(), asked: AtomicU64::new(0) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in it depends on another part of it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a page asks.
    pub(super) fn is_asked(&self) {
        self.asked.store(self.began.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
    }

    pub(super) fn page_is_open(&self) -> bool {
        let asked = self.asked.load(Ordering::Relaxed);
        asked > 0 && self.began.elapsed() < Duration::from_millis(asked) + CLOSED
    }
}
