//! Sums over the events of a rank: what its steps consist of, and which op, line and module takes how long.
//!
//! The thread that ends steps is the rank's main thread. What it does in a step is *split*: kernels, boxings that it carries out itself or
//! waits for (*exposed*), waiting for late ranks, for data, checkpoints, and the rest, which is dispatch and the program's own code.

use super::collector::Sink;
use super::event::{Event, What};
use crate::error::CallSite;
use crate::intern::FixedMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Rows kept: a program whose lines are made at run time must not grow the sums without bound.
const ROWS: usize = 4096;
/// Steps kept, the last ones.
const STEPS: usize = 256;
/// Intervals of waiting kept before they are compared.
const INTERVALS: usize = 1 << 16;

/// Parts of the time of a main thread, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Split {
    /// From the end of the step before to the end of this one.
    pub whole: u64,
    /// Kernels on the thread, and waiting for those of other threads and of GPUs.
    pub compute: u64,
    /// Boxings on the thread, and waiting for boxings of other threads and of GPUs, without the waiting for late ranks.
    pub communication: u64,
    /// Waiting for ranks that came later to a collective.
    pub late_ranks: u64,
    /// Waiting for batches.
    pub data: u64,
    /// Saving and loading of checkpoints.
    pub checkpoint: u64,
}

impl Split {
    /// The remaining time: dispatch, the program's own code, and time without a processor.
    pub fn rest(&self) -> u64 {
        [self.compute, self.communication, self.late_ranks, self.data, self.checkpoint]
            .into_iter()
            .fold(self.whole, u64::saturating_sub)
    }

    fn add(&mut self, other: &Split) {
        self.whole += other.whole;
        self.compute += other.compute;
        self.communication += other.communication;
        self.late_ranks += other.late_ranks;
        self.data += other.data;
        self.checkpoint += other.checkpoint;
    }

    fn divided(&self, by: u64) -> Split {
        let by = by.max(1);
        Split {
            whole: self.whole / by,
            compute: self.compute / by,
            communication: self.communication / by,
            late_ranks: self.late_ranks / by,
            data: self.data / by,
            checkpoint: self.checkpoint / by,
        }
    }
}

/// How often something happened, and how long it took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Busy {
    /// Number of events.
    pub count: u64,
    /// Sum of their times in nanoseconds.
    pub ns: u64,
}

/// Batches of one loader.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Batches {
    /// Batches that the program took, with the time that it waited.
    pub taken: Busy,
    /// Batches that were made, with the time that it took.
    pub made: Busy,
    /// Processor time in that.
    pub cpu_ns: u64,
    /// Threads that made some, by number.
    makers: BTreeSet<u32>,
}

impl Batches {
    /// Number of threads that made some, but the main one.
    pub fn threads(&self, main: Option<u32>) -> usize {
        self.makers.iter().filter(|n| Some(**n) != main).count()
    }
}

/// Kind of an event, its op or name, and its line.
type Key = (&'static str, &'static str, CallSite);

/// Sums of one thread since the end of the last step.
#[derive(Default)]
struct Thread {
    split: Split,
    /// Waiting for streams in the present step, of which a part is waiting for late ranks.
    streams: u64,
}

/// The waiting for streams of a rank, and what else happened meanwhile.
#[derive(Default)]
struct Waits {
    /// Intervals in which a thread waited for a stream.
    streams: Vec<(u64, u64)>,
    /// Intervals in which one waited for late ranks.
    late: Vec<(u64, u64)>,
    /// Intervals of kernels on other threads than the main one, and on streams of GPUs.
    kernels: Vec<(u64, u64)>,
    /// Of intervals that are not kept any more: the sum of the first, and of what they have in common with the others.
    before: [u64; 3],
}

impl Waits {
    fn sums(&self) -> [u64; 3] {
        let (all, late) = compared(&self.streams, &self.late);
        let (_, kernels) = compared(&self.streams, &self.kernels);
        [self.before[0] + all, self.before[1] + late, self.before[2] + kernels]
    }

    /// The share of kernels in the waiting, and that of late ranks.
    fn shares(&self) -> (f64, f64) {
        let [all, late, kernels] = self.sums();
        let share = |part: u64| part as f64 / all.max(1) as f64;
        let kernels = share(kernels).min(1.0);
        (kernels, share(late).min(1.0 - kernels))
    }

    /// Forgets intervals when there are many.
    fn bound(&mut self) {
        if self.streams.len() + self.late.len() + self.kernels.len() > INTERVALS {
            *self = Waits { before: self.sums(), ..Waits::default() };
        }
    }
}

/// Sums over the events of one rank.
#[derive(Default)]
pub struct Totals {
    rows: FixedMap<Key, Busy>,
    beyond: u64,
    threads: BTreeMap<u32, Thread>,
    main: Option<u32>,
    steps: Vec<(Split, u64)>,
    count: u64,
    rows_of_batches: u64,
    batches: BTreeMap<CallSite, Batches>,
    /// Communication of threads beside the main one.
    beside: BTreeMap<u32, u64>,
    waits: Waits,
    dropped: u64,
}

impl Totals {
    /// Number of steps that have ended.
    pub fn steps(&self) -> u64 {
        self.count
    }

    /// Events that are not in the sums.
    pub fn dropped(&self) -> u64 {
        self.dropped + self.beyond
    }

    /// The mean step of those that took as long as most: the first one, which plans and warms up, is left out where there are others.
    /// `None` before the first step has ended.
    pub fn step(&self) -> Option<Split> {
        let steady = match self.steps.len() as u64 == self.count && self.count > 1 {
            true => &self.steps[1..],
            false => &self.steps[..],
        };
        if steady.is_empty() {
            return None;
        }
        let mut sorted: Vec<&(Split, u64)> = steady.iter().collect();
        sorted.sort_by_key(|(s, _)| s.whole);
        // Between the quartiles: an interrupted step would outweigh many.
        let quarter = sorted.len() / 4;
        let middle: Vec<(Split, u64)> = sorted[quarter..sorted.len() - quarter].iter().map(|s| **s).collect();
        let (mut sum, mut streams) = (Split::default(), 0u64);
        for (split, waited) in &middle {
            sum.add(split);
            streams += waited;
        }
        let (kernels, late) = self.waits.shares();
        let (kernels, late) = ((streams as f64 * kernels) as u64, (streams as f64 * late) as u64);
        sum.compute += kernels;
        sum.late_ranks += late;
        sum.communication += streams.saturating_sub(kernels + late);
        Some(sum.divided(middle.len() as u64))
    }

    /// Median time of a step in nanoseconds; 0 before the first.
    pub fn median_step(&self) -> u64 {
        let skip = usize::from(self.steps.len() as u64 == self.count && self.count > 1);
        let mut all: Vec<u64> = self.steps.iter().skip(skip).map(|s| s.0.whole).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0)
    }

    /// Rows of the batches that the program took, in a step; none where it took none through a loader.
    pub fn rows_of_a_step(&self) -> Option<f64> {
        (self.rows_of_batches > 0 && self.count > 0).then(|| self.rows_of_batches as f64 / self.count as f64)
    }

    /// Batches by line that gave their loader its rows.
    pub fn batches(&self) -> impl Iterator<Item = (CallSite, &Batches)> {
        self.batches.iter().map(|(site, b)| (*site, b))
    }

    /// Number of the thread that ends steps.
    pub fn main_thread(&self) -> Option<u32> {
        self.main
    }

    /// Time of boxings on other threads than the main one, in all.
    pub fn beside(&self) -> u64 {
        self.beside.iter().filter(|(n, _)| Some(**n) != self.main).map(|(_, ns)| ns).sum()
    }

    /// The sums of events of a kind (`kernel`, `op`, `op in backward`, `boxing` …): op or name, line, sum.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'static str, CallSite, Busy)> + 'a {
        self.rows.iter().filter(move |(key, _)| key.0 == kind).map(|((_, name, site), busy)| (*name, *site, *busy))
    }

    fn batches_of(&mut self, site: CallSite) -> Option<&mut Batches> {
        if self.batches.len() >= ROWS && !self.batches.contains_key(&site) {
            self.beyond += 1;
            return None;
        }
        Some(self.batches.entry(site).or_default())
    }

    fn count(&mut self, key: Key, ns: u64) {
        if self.rows.len() >= ROWS && !self.rows.contains_key(&key) {
            self.beyond += 1;
            return;
        }
        let row = self.rows.entry(key).or_default();
        row.count += 1;
        row.ns += ns;
    }
}

/// The length of the first intervals, and of what they have in common with the second.
fn compared(first: &[(u64, u64)], second: &[(u64, u64)]) -> (u64, u64) {
    let (mut first, mut second) = (first.to_vec(), second.to_vec());
    first.sort_unstable();
    second.sort_unstable();
    let (mut from, mut all, mut common) = (0, 0, 0);
    for (begin, end) in first {
        all += end - begin;
        while second.get(from).is_some_and(|s| s.1 <= begin) {
            from += 1;
        }
        let part = |s: &(u64, u64)| s.1.min(end).saturating_sub(s.0.max(begin));
        common += second[from..].iter().take_while(|s| s.0 < end).map(part).sum::<u64>();
    }
    (all, common)
}

impl Sink for Totals {
    fn take(&mut self, (number, _): (u32, &str), events: &[Event]) {
        for event in events {
            let ns = event.ns();
            let kind = event.what.category();
            let thread = self.threads.entry(number).or_default();
            match &event.what {
                What::Call { op, backward: true } => self.count(("op in backward", op, event.site), ns),
                What::Call { op, .. } | What::Launch(op) => self.count((kind, op, event.site), ns),
                What::Kernel(op) => {
                    thread.split.compute += ns;
                    // Those of the main thread do not matter: it waits for none of them.
                    if self.main != Some(number) {
                        self.waits.kernels.push((event.begin, event.end));
                    }
                    self.count((kind, op, event.site), ns);
                }
                What::Boxing(b) => {
                    thread.split.communication += b.moving_ns;
                    *self.beside.entry(number).or_default() += b.moving_ns;
                    self.count((kind, b.op, event.site), b.moving_ns);
                }
                What::Collective(c) => {
                    thread.split.late_ranks += c.waited_ns;
                    self.waits.late.push((event.begin, event.begin + c.waited_ns));
                    self.count((kind, c.kind, event.site), ns);
                }
                What::Wait => {
                    thread.streams += ns;
                    self.waits.streams.push((event.begin, event.end));
                    self.count((kind, "stream", event.site), ns);
                }
                What::BatchWait(rows) => {
                    thread.split.data += ns;
                    self.rows_of_batches += *rows as u64;
                    if let Some(b) = self.batches_of(event.site) {
                        b.taken.count += 1;
                        b.taken.ns += ns;
                    }
                    self.count((kind, "wait for a batch", event.site), ns);
                }
                What::Batch { cpu_ns, .. } => {
                    if let Some(b) = self.batches_of(event.site) {
                        b.made.count += 1;
                        b.made.ns += ns;
                        b.cpu_ns += cpu_ns;
                        b.makers.insert(number);
                    }
                    self.count((kind, "make a batch", event.site), ns);
                }
                What::Checkpoint(what) => {
                    thread.split.checkpoint += ns;
                    self.count((kind, what, event.site), ns);
                }
                What::Span(name) => self.count((kind, name, event.site), ns),
                What::Backward => self.count((kind, "backward", event.site), ns),
                What::Graph => self.count((kind, "graph", event.site), ns),
                What::Step { since, .. } => {
                    self.main = Some(number);
                    let done = std::mem::take(thread);
                    let split = Split { whole: event.end.saturating_sub(*since), ..done.split };
                    if self.steps.len() < STEPS {
                        self.steps.push((split, done.streams));
                    } else {
                        self.steps[self.count as usize % STEPS] = (split, done.streams);
                    }
                    self.count += 1;
                }
                What::Memory { .. } => {}
            }
            self.waits.bound();
        }
    }

    fn dropped(&mut self, count: u64) {
        self.dropped += count;
    }
}
