//! Recording: the question that every place asks, and the names that programs give.

use super::collector::step;
use super::event::{Event, What};
use super::lane::{RECORDING, push};
use crate::comm::now_ns;
use crate::error::CallSite;
use std::sync::atomic::Ordering;

/// Start of something, or nothing while no session records.
#[derive(Clone, Copy)]
#[must_use = "`end` tells what was done"]
pub(crate) struct Begin(u64);

/// Returns the time if a session records.
#[inline(always)]
pub(crate) fn begin() -> Begin {
    match RECORDING.load(Ordering::Relaxed) {
        0 => Begin(0),
        // The clock starts with the machine, so no time is 0.
        _ => Begin(now_ns()),
    }
}

impl Begin {
    /// Whether a session recorded then.
    #[inline(always)]
    pub(crate) fn is_recorded(self) -> bool {
        self.0 != 0
    }

    /// Processor time of this thread, if a session records: to be subtracted from that at the end.
    pub(crate) fn cpu_ns(self) -> u64 {
        if self.0 == 0 {
            return 0;
        }
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    }

    /// Records what this thread has done since.
    #[inline(always)]
    pub(crate) fn end(self, site: CallSite, what: impl FnOnce() -> What) {
        if self.0 != 0 {
            record(self.0, site, what());
        }
    }
}

#[cold]
#[inline(never)]
fn record(begin: u64, site: CallSite, what: What) {
    push(Event { begin, end: now_ns(), site, what });
}

/// Records something that happened from `begin` to `end`, in nanoseconds of [`now_ns`], if a session records.
pub(crate) fn happened((begin, end): (u64, u64), site: CallSite, what: impl FnOnce() -> What) {
    if RECORDING.load(Ordering::Relaxed) != 0 {
        push(Event { begin, end, site, what: what() });
    }
}

/// Marks the end of a step of the program, for timelines, profiles and reports. Programs that train with an optimizer need not call it: each
/// step of their first optimizer is one. Once the program marks steps itself, those of optimizers do not count.
///
/// ```
/// for _ in 0..3 {
///     // A batch is answered.
///     oflow::mark_step();
/// }
/// ```
pub fn mark_step() {
    step(0);
}

/// A part of a program that the timeline shows under a name, from [`span`] until it is dropped.
#[must_use = "the span ends when it is dropped: give it a name, `let _span = …`; `let _ = …` ends it at once"]
pub struct Span {
    begin: Begin,
    name: &'static str,
    site: CallSite,
    // An event belongs to one thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// Shows what this thread does under a name in the timeline (`oflaunch --trace`, [`profile`](crate::profile)), until the guard is dropped.
/// Calls of ops are shown anyway, under their [`name_scope`](crate::name_scope); a span is for the work between them, as reading files.
/// Costs one read of a word while nothing is recorded. Names live as long as the process; at most 65,536 different ones are kept.
///
/// ```
/// let _span = oflow::span("tokenize");
/// ```
#[track_caller]
pub fn span(name: &str) -> Span {
    let begin = begin();
    let name = if begin.is_recorded() { CallSite::told(name, 0, "").file } else { "" };
    Span { begin, name, site: CallSite::here(), _not_send: std::marker::PhantomData }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.begin.end(self.site, || What::Span(self.name));
    }
}
