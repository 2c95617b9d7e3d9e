//! The ring in which a rank's boxings leave their comm records.
//!
//! A boxing pushes its entry when it is issued and gets a number; the thread that carries it out adds the time under that
//! number. The memory is taken once, at the first boxing: after it neither allocates, and a context that boxes nothing, as that
//! of a thread without a rank, takes none.

use super::entry::Entry;
use super::report::{Report, ReportHint};
use super::run_time::RunTime;
use super::tally::Tally;
use crate::context::RankCtx;
use crate::trace::{self, What};
use crate::vm::{Stopwatch, Took};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Comm records kept per rank; older ones are dropped.
pub const COMM_TRACE_LIMIT: usize = 4096;

/// Hints kept per rank, a line and call each.
const HINTS: usize = 64;

struct State {
    entries: VecDeque<Entry>,
    /// Number of the entry at the front.
    first: u64,
    /// Entries that fell out at the front since the last take.
    dropped: u64,
    /// Sums, where the launcher wants a report of the whole run.
    job: Option<Job>,
    /// Calls whose results would cost far less in another layout, in the order in which they were planned.
    hints: Vec<ReportHint>,
}

/// Sums over the whole run.
struct Job {
    /// Of the entries that have left the ring.
    tally: Tally,
    time: RunTime,
}

/// One rank's ring.
pub(in super::super) struct Ring(Mutex<State>);

impl Ring {
    /// The empty ring of a rank. Where the launcher wants a report of the whole run, it gets one when the rank leaves.
    pub(in super::super) fn of_rank(ctx: &RankCtx) -> Arc<Ring> {
        let control = ctx.control().filter(|c| c.wants_report());
        let job = control.map(|_| Job { tally: Tally::new(ctx.rank(), ctx.world()), time: RunTime::start(ctx) });
        let (entries, hints) = (VecDeque::new(), Vec::new());
        let ring = Arc::new(Ring(Mutex::new(State { entries, first: 0, dropped: 0, job, hints })));
        if let Some(control) = control {
            let ring = ring.clone();
            // Without waiting for boxings that are under way: a rank that ends because of a failure would wait in vain.
            control.report_at_end(move || ring.end().map_or(String::new(), |job| job.to_json()));
        }
        ring
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry and returns its number.
    pub(super) fn push(&self, entry: Entry) -> u64 {
        self.push_all(std::iter::once(entry))
    }

    /// Adds entries and returns the number of the first; the others follow.
    pub(super) fn push_all(&self, entries: impl Iterator<Item = Entry>) -> u64 {
        let s = &mut *self.lock();
        if s.entries.capacity() == 0 {
            s.entries.reserve_exact(COMM_TRACE_LIMIT);
        }
        let number = s.first + s.entries.len() as u64;
        for entry in entries {
            if s.entries.len() == COMM_TRACE_LIMIT
                && let Some(oldest) = s.entries.pop_front()
            {
                s.first += 1;
                s.dropped += 1;
                if let Some(job) = &mut s.job {
                    job.tally.add(&oldest);
                }
            }
            s.entries.push_back(entry);
        }
        number
    }

    /// All entries, and how many were dropped since the last time.
    pub(super) fn take(&self) -> (Vec<Entry>, u64) {
        let s = &mut *self.lock();
        s.first += s.entries.len() as u64;
        // Drained, not replaced: the ring keeps its memory.
        let entries: Vec<Entry> = s.entries.drain(..).collect();
        if let Some(job) = &mut s.job {
            entries.iter().for_each(|e| job.tally.add(e));
        }
        (entries, std::mem::take(&mut s.dropped))
    }

    /// Adds a hint; a loop plans a line once, or once for each shape.
    pub(in super::super) fn hint(&self, hint: ReportHint) {
        let hints = &mut self.lock().hints;
        if hints.len() < HINTS && !hints.contains(&hint) {
            hints.push(hint);
        }
    }

    /// Whether the launcher wants a report of the whole run, which has hints about inputs.
    pub(in super::super) fn is_reporting(&self) -> bool {
        self.lock().job.is_some()
    }

    /// The hints so far.
    pub(super) fn hints(&self) -> Vec<ReportHint> {
        self.lock().hints.clone()
    }

    /// The report of the whole run, if the launcher wants one; the ring adds nothing up from here on.
    fn end(&self) -> Option<Report> {
        self.take();
        let job = self.lock().job.take()?;
        let mut report = job.tally.report(0, self.hints());
        report.times.push(job.time.end(&mut report.hints));
        Some(report)
    }
}

impl Stopwatch for Ring {
    fn done(&self, number: u64, took: Took, together: usize) {
        let mut s = self.lock();
        let at = number.checked_sub(s.first).and_then(|i| usize::try_from(i).ok());
        // It may have been taken, or have fallen out, while it was under way.
        if let Some(entry) = at.and_then(|i| s.entries.get_mut(i)) {
            entry.measured_ns = Some(took.ns);
            trace::happened((took.begin, took.end), entry.site, || {
                What::Boxing(Box::new(entry.moved(took.ns, together)))
            });
        }
    }
}
