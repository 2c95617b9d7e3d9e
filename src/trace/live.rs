//! Sums over the events of a rank for people who watch the job: short, and without an end.
//!
//! Recording an event costs 0.1 to 0.2 µs. A rank of many small ops would be slowed down, so only a part of its time is recorded: of
//! a rank that makes twenty times as many events as is cheap, a twentieth, some milliseconds at a time. Its ops are much shorter than that.

use super::collector::Sink;
use super::event::{Boxed, Event, What};
use super::totals::Split;
use crate::comm::now_ns;
use crate::error::CallSite;
use std::collections::{BTreeMap, VecDeque};

/// Boxings kept until they are taken, the last ones.
const BOXINGS: usize = 8;
/// Threads that are told apart; further ones do not count.
const THREADS: usize = 256;

/// Events in a second that may be recorded: one per cent of the time.
const CHEAP: u64 = 50_000;
/// Least part of the time that is recorded.
const LEAST: u64 = 40;

/// Times of one thread.
#[derive(Clone, Copy, Default)]
struct Thread {
    split: Split,
    /// Waiting for streams.
    streams: u64,
    calls: u64,
}

/// Sums since the watching began.
pub(crate) struct LiveTotals {
    threads: BTreeMap<u32, Thread>,
    /// The thread that ends steps.
    main: Option<u32>,
    rows: u64,
    /// Nanoseconds that were recorded; since when they are, and how many events there were since then. The time at which recording goes on, if
    /// it does not now.
    recorded: u64,
    since: u64,
    events: u64,
    resumes: Option<u64>,
    boxings: VecDeque<(CallSite, Boxed)>,
}

impl LiveTotals {
    /// Sums from now on.
    pub(crate) fn new() -> LiveTotals {
        LiveTotals {
            threads: BTreeMap::new(),
            main: None,
            rows: 0,
            recorded: 0,
            since: now_ns(),
            events: 0,
            resumes: None,
            boxings: VecDeque::new(),
        }
    }

    /// Rows of the batches that the program took.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes the last boxings, oldest first.
    pub(crate) fn take_boxings(&mut self) -> impl Iterator<Item = (CallSite, Boxed)> {
        self.boxings.drain(..)
    }

    /// Parts of the main thread's recorded time. Before a step has ended the thread with most calls counts as main.
    pub(crate) fn spent(&self) -> Split {
        let most = || self.threads.iter().max_by_key(|(_, t)| t.calls).map(|(number, _)| *number);
        let Some(main) = self.main.or_else(most) else { return Split { whole: self.recorded, ..Split::default() } };
        let mut split = self.threads.get(&main).map(|t| t.split).unwrap_or_default();
        let streams = self.threads.get(&main).map_or(0, |t| t.streams);
        // It waits for streams, and they compute, or wait for late ranks.
        let others = || self.threads.iter().filter(|(n, _)| **n != main).map(|(_, t)| &t.split);
        let kernels = others().map(|s| s.compute).sum::<u64>().min(streams);
        let late = others().map(|s| s.late_ranks).sum::<u64>().min(streams - kernels);
        split.compute += kernels;
        split.late_ranks += late;
        split.communication += streams - kernels - late;
        split.whole = self.recorded;
        split
    }
}

impl LiveTotals {
    /// Ends a piece of the recorded time, and decides whether the next one is recorded.
    fn go_on(&mut self, now: u64) {
        match self.resumes {
            Some(at) if now < at => return,
            Some(_) => self.resumes = None,
            None => {
                let piece = now.saturating_sub(self.since);
                self.recorded += piece;
                let cheap = (piece / (1_000_000_000 / CHEAP)).max(1);
                let part = (self.events / cheap).clamp(0, LEAST - 1);
                // A piece with a few events at its begin says little.
                if part > 0 && self.events > 1000 {
                    self.resumes = Some(now + part * piece);
                }
            }
        }
        (self.since, self.events) = (now, 0);
    }
}

impl Sink for LiveTotals {
    fn take(&mut self, (number, _): (u32, &str), events: &[Event]) {
        self.events += events.len() as u64;
        if self.threads.len() >= THREADS && !self.threads.contains_key(&number) {
            return;
        }
        let thread = self.threads.entry(number).or_default();
        for event in events {
            let ns = event.ns();
            match &event.what {
                What::Call { .. } => thread.calls += 1,
                What::Kernel(_) => thread.split.compute += ns,
                What::Boxing(b) => {
                    thread.split.communication += b.moving_ns;
                    if self.boxings.len() == BOXINGS {
                        self.boxings.pop_front();
                    }
                    self.boxings.push_back((event.site, (**b).clone()));
                }
                What::Collective(c) => thread.split.late_ranks += c.waited_ns,
                What::Wait => thread.streams += ns,
                What::BatchWait(rows) => {
                    thread.split.data += ns;
                    self.rows += *rows as u64;
                }
                What::Checkpoint(_) => thread.split.checkpoint += ns,
                What::Step { .. } => self.main = Some(number),
                What::Memory { .. }
                | What::Launch(_)
                | What::Backward
                | What::Batch { .. }
                | What::Graph
                | What::Span(_) => {}
            }
        }
    }

    // What is missing in sums that change all the time is not worth telling.
    fn dropped(&mut self, _count: u64) {}

    fn is_full(&self) -> bool {
        self.resumes.is_some()
    }

    fn drained(&mut self) {
        self.go_on(now_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sums to which every 10 ms so many events are handed while they are recorded, over a second.
    fn second(events: usize) -> LiveTotals {
        let mut totals = LiveTotals { since: 0, ..LiveTotals::new() };
        let event = Event { begin: 0, end: 10, site: CallSite::at("t.rs", 1), what: What::Kernel("relu") };
        for tick in 1..=100 {
            if !totals.is_full() {
                totals.take((1, "main"), &vec![event.clone(); events]);
            }
            totals.go_on(tick * 10 * MS);
        }
        totals
    }

    #[test]
    fn all_is_recorded_of_a_rank_with_few_events_and_a_part_of_one_with_many() {
        assert_eq!(second(400).recorded, 1000 * MS);
        let many = second(5_000);
        assert!((80 * MS..=200 * MS).contains(&many.recorded), "{} ms", many.recorded / MS);
        // Sums and time are of the same pieces.
        assert_eq!(many.spent().compute / 10 / 5_000, many.recorded / (10 * MS));
        assert!(second(1_000_000).recorded >= 20 * MS);
    }
}
