//! The collector of a rank: it takes the buffers of the rank's threads and hands the events to sessions.
//!
//! Sessions come and go; while there is one, a thread takes the buffers ten times a second. All events of a session's time are handed to it
//! before it is dropped. Locks are taken in the order sessions, steps, sink, list of buffers, buffer; a thread that records takes the last alone.

use super::event::{Event, What};
use super::lane::{self, Lanes, forget, lanes_of, lock};
use crate::comm::now_ns;
use crate::error::{CallSite, Error, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often the buffers are taken.
const EVERY: Duration = Duration::from_millis(100);

/// Collectors of the ranks of this process, by owner.
static COLLECTORS: Mutex<BTreeMap<u32, Arc<Collector>>> = Mutex::new(BTreeMap::new());

/// Number of collectors with a session.
static WATCHED: AtomicU32 = AtomicU32::new(0);

/// The number of a rank context, under which its threads record.
#[derive(Debug)]
pub(crate) struct Owner(u32);

impl Owner {
    /// A new one.
    pub(crate) fn new() -> Owner {
        static OWNERS: AtomicU32 = AtomicU32::new(1);
        Owner(OWNERS.fetch_add(1, Ordering::Relaxed))
    }

    /// The number.
    pub(crate) fn number(&self) -> u32 {
        self.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        lock(&COLLECTORS).remove(&self.0);
        forget(self.0);
    }
}

/// Reader of the events of a rank.
pub(crate) trait Sink: Send {
    /// Whether events may be handed over now; they are kept meanwhile.
    fn is_ready(&mut self) -> bool {
        true
    }
    /// Events of one thread, by start; of two that start together the longer one first. The number and the name of the thread are given.
    fn take(&mut self, thread: (u32, &str), events: &[Event]);
    /// So many events were dropped.
    fn dropped(&mut self, count: u64);
    /// All events so far have been handed over.
    fn drained(&mut self) {}
    /// Whether it takes no more.
    fn is_full(&self) -> bool {
        false
    }
}

/// Numbers of steps that a session records.
pub(crate) type Steps = Range<u64>;

struct Open {
    number: u64,
    steps: Steps,
    sink: Arc<Mutex<dyn Sink>>,
}

impl Open {
    fn wants(&self, step: u64) -> bool {
        self.steps.contains(&step) && !lock(&self.sink).is_full()
    }
}

/// Steps of a program: who ends them, how many there were, and when the present one began.
#[derive(Default)]
struct Counted {
    /// The optimizer whose steps count, or 0 where the program marks its steps.
    marker: Option<usize>,
    done: u64,
    since: u64,
}

#[derive(Default)]
struct Sessions {
    open: Vec<Open>,
    /// Whether the thread that takes the buffers runs.
    running: bool,
}

/// The sessions of a rank.
struct Collector {
    lanes: Arc<Lanes>,
    sessions: Mutex<Sessions>,
    steps: Mutex<Counted>,
}

/// The collector of an owner, which is made at its first session.
fn collector_of(owner: u32) -> Arc<Collector> {
    let new = || Arc::new(Collector { lanes: lanes_of(owner), sessions: Mutex::default(), steps: Mutex::default() });
    lock(&COLLECTORS).entry(owner).or_insert_with(new).clone()
}

impl Collector {
    /// Hands the events so far to the sessions that want the present step.
    fn drain(&self, open: &[Open], at_end: bool) {
        // A session that is not ready keeps all waiting: buffers are taken once.
        if !open.iter().all(|s| lock(&s.sink).is_ready()) && !at_end {
            return;
        }
        let step = lock(&self.steps).done;
        let mut events = Vec::new();
        for lane in self.lanes.all() {
            events.clear();
            let dropped = lane.take(&mut events);
            events.sort_by_key(|e| (e.begin, std::cmp::Reverse(e.end)));
            for session in open.iter().filter(|s| s.wants(step)) {
                let mut sink = lock(&session.sink);
                if !events.is_empty() {
                    sink.take((lane.number, &lane.name), &events);
                }
                if dropped > 0 {
                    sink.dropped(dropped);
                }
            }
        }
        open.iter().for_each(|s| lock(&s.sink).drained());
    }

    /// Records if a session wants the present step.
    fn update(&self, open: &[Open]) {
        let step = lock(&self.steps).done;
        self.lanes.record(open.iter().any(|s| s.wants(step)));
    }

    /// The thread that takes the buffers, until no session is left.
    fn run(&self) {
        loop {
            self.lanes.wait(EVERY);
            let mut sessions = lock(&self.sessions);
            if sessions.open.is_empty() {
                sessions.running = false;
                return;
            }
            self.drain(&sessions.open, false);
            self.update(&sessions.open);
        }
    }

    /// Ends a step, if this one counts.
    fn end_step(&self, marker: usize) {
        let sessions = lock(&self.sessions);
        let (number, since) = {
            let mut steps = lock(&self.steps);
            match steps.marker {
                Some(counts) if marker != 0 && marker != counts => return,
                _ => steps.marker = Some(marker),
            }
            (steps.done, steps.since)
        };
        let now = now_ns();
        lane::push(Event { begin: now, end: now, site: CallSite::at("", 0), what: What::Step { number, since } });
        // The events so far belong to this step.
        if sessions.open.iter().any(|s| s.steps.contains(&number) != s.steps.contains(&(number + 1))) {
            self.drain(&sessions.open, false);
        }
        {
            let mut steps = lock(&self.steps);
            (steps.done, steps.since) = (number + 1, now);
        }
        self.update(&sessions.open);
    }
}

/// Hands the events of a rank to a sink until it is dropped.
pub(crate) struct Session {
    collector: Arc<Collector>,
    number: u64,
}

impl Session {
    /// Starts one for an owner, and for these steps of its program.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(owner: u32, steps: Steps, sink: Arc<Mutex<dyn Sink>>) -> Result<Session> {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let collector = collector_of(owner);
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let mut sessions = lock(&collector.sessions);
        if sessions.open.is_empty() {
            // Steps are counted from here on, by whoever ends the first.
            *lock(&collector.steps) = Counted { marker: None, done: 0, since: now_ns() };
            WATCHED.fetch_add(1, Ordering::Relaxed);
        } else {
            // Earlier events are not for the new one.
            collector.drain(&sessions.open, false);
        }
        sessions.open.push(Open { number, steps, sink });
        collector.update(&sessions.open);
        let started = match sessions.running {
            true => Ok(()),
            false => {
                let of = collector.clone();
                std::thread::Builder::new().name("oflow-trace".into()).spawn(move || of.run()).map(drop)
            }
        };
        sessions.running = sessions.running || started.is_ok();
        drop(sessions);
        let session = Session { collector, number };
        started.map_err(|e| Error::io("the thread that collects the timeline could not be started").because(e))?;
        Ok(session)
    }

    /// Steps of the rank that have ended since its first session that is open; also those that nothing records.
    pub(crate) fn steps(&self) -> u64 {
        lock(&self.collector.steps).done
    }
}

impl Drop for Session {
    /// Hands over what was recorded until now.
    fn drop(&mut self) {
        let mut sessions = lock(&self.collector.sessions);
        self.collector.drain(&sessions.open, true);
        sessions.open.retain(|s| s.number != self.number);
        if sessions.open.is_empty() {
            WATCHED.fetch_sub(1, Ordering::Relaxed);
        }
        self.collector.update(&sessions.open);
        drop(sessions);
        self.collector.lanes.wake();
    }
}

/// Notes the end of a step of this thread's rank. `marker` tells who counts steps: 0 the program itself, else the address of an optimizer.
/// Only the first optimizer counts, and none once the program does.
#[inline]
pub(crate) fn step(marker: usize) {
    if WATCHED.load(Ordering::Relaxed) != 0 {
        end_step(marker);
    }
}

#[cold]
fn end_step(marker: usize) {
    let collector = lock(&COLLECTORS).get(&lane::owner()).cloned();
    if let Some(collector) = collector {
        collector.end_step(marker);
    }
}
