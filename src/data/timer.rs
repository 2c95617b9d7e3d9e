//! Time of batches, for loaders that are not of this room.

use crate::error::CallSite;
use crate::trace::{self, Begin, What};

/// The line that asks for the batches of a loader, and the rank that does.
#[derive(Clone, Copy, Debug)]
pub struct BatchPlace {
    site: CallSite,
    owner: u32,
}

impl BatchPlace {
    /// This line, and the rank of this thread.
    #[track_caller]
    pub fn here() -> BatchPlace {
        BatchPlace { site: CallSite::here(), owner: trace::owner() }
    }
}

/// Tells timelines, profiles and reports how long a program waited for a batch, or how long a batch took to make. A loader of one's own uses
/// it as [`Loader`](super::Loader) does; while nothing is recorded it costs one read of a word.
///
/// ```
/// use oflow::data::{BatchPlace, BatchTimer};
/// let place = BatchPlace::here();
/// let made = std::thread::spawn(move || {
///     let timer = BatchTimer::start(place);
///     let batch = vec![1.0f32; 8];
///     timer.made(batch.len());
///     batch
/// });
/// let timer = BatchTimer::start(place);
/// let batch = made.join();
/// timer.waited(8);
/// ```
#[derive(Clone, Copy)]
#[must_use = "`made` or `waited` tells what took the time"]
pub struct BatchTimer {
    begin: Begin,
    cpu_ns: u64,
    site: CallSite,
}

impl BatchTimer {
    /// Starts the time, for the loader of a place. A thread that belongs to no rank works for the rank of the place from here on.
    pub fn start(place: BatchPlace) -> BatchTimer {
        if trace::owner() == 0 {
            trace::adopt(place.owner);
        }
        let begin = trace::begin();
        BatchTimer { begin, cpu_ns: begin.cpu_ns(), site: place.site }
    }

    /// The program has waited for a batch of so many rows, of all ranks together.
    pub fn waited(self, rows: usize) {
        self.begin.end(self.site, || What::BatchWait(rows));
    }

    /// This thread has made a batch of so many rows.
    pub fn made(self, rows: usize) {
        let cpu_ns = self.begin.cpu_ns().saturating_sub(self.cpu_ns);
        self.begin.end(self.site, || What::Batch { rows, cpu_ns });
    }
}
