//! Times of kernels on a stream of a GPU, for timelines and profiles. While no session records nothing is measured.
//!
//! A kernel runs between two timed events. The GPU's clock is not the host's: an *anchor* is an event whose time on the host is known, and the
//! events of a kernel are so much later than that. The first anchor is waited for, so the first kernel that is recorded drains the stream.
//! CUDA tells the time between two events as a 32-bit float, so an anchor is replaced after a second.

use crate::comm::now_ns;
use crate::error::{CallSite, Result};
use crate::trace::{self, Event as Happened, StreamLane, What};
use oflow_kernels::cuda::{Event, Stream};
use std::collections::VecDeque;

/// Age of an anchor, in nanoseconds, from which on another one is taken.
const OLD_NS: u64 = 1_000_000_000;
/// Kernels after which those that have ended are looked for.
const SOME_RUNNING: usize = 64;
/// Kernels whose times are kept until somebody asks.
const MOST_RUNNING: usize = 4096;

/// An event with the time at which the host's clock would have seen it.
struct Anchor {
    event: Event,
    at: u64,
}

/// A kernel whose time is not known yet.
struct Running {
    events: (Event, Event),
    /// When it was issued.
    issued: u64,
    op: &'static str,
    site: CallSite,
}

/// The kernels of one stream.
pub(super) struct KernelTimes {
    /// Name of the stream in timelines.
    name: &'static str,
    lane: Option<StreamLane>,
    anchor: Option<Anchor>,
    idle: Vec<(Event, Event)>,
    running: VecDeque<Running>,
}

/// The start of a kernel that is measured.
pub(super) struct Started {
    events: (Event, Event),
    issued: u64,
}

impl KernelTimes {
    /// Measures kernels of a stream, which timelines show under this name.
    pub(super) fn new(name: &'static str) -> KernelTimes {
        KernelTimes { name, lane: None, anchor: None, idle: vec![], running: VecDeque::new() }
    }

    /// Says that a kernel is about to be put on the stream, by the calling thread's rank. `None` while no session records.
    ///
    /// # Errors
    /// Those of the driver.
    #[inline]
    pub(super) fn start(&mut self, stream: &Stream) -> Result<Option<Started>> {
        if trace::begin().is_recorded() { self.start_recorded(stream) } else { Ok(None) }
    }

    #[cold]
    fn start_recorded(&mut self, stream: &Stream) -> Result<Option<Started>> {
        let lane = self.lane.get_or_insert_with(|| StreamLane::new(trace::owner(), self.name));
        if !lane.is_recorded() {
            return Ok(None);
        }
        self.poll()?;
        let old = |a: &Anchor| now_ns().saturating_sub(a.at) > OLD_NS;
        if self.running.is_empty() && self.anchor.as_ref().is_none_or(old) {
            let event = Event::new(stream.gpu(), true)?;
            event.record(stream)?;
            event.synchronize()?;
            self.anchor = Some(Anchor { event, at: now_ns() });
        }
        let events = match self.idle.pop() {
            Some(events) => events,
            None => (Event::new(stream.gpu(), true)?, Event::new(stream.gpu(), true)?),
        };
        let issued = now_ns();
        events.0.record(stream)?;
        Ok(Some(Started { events, issued }))
    }

    /// Says that the kernel is on the stream.
    ///
    /// # Errors
    /// Those of the driver.
    pub(super) fn issued(
        &mut self,
        started: Started,
        stream: &Stream,
        (op, site): (&'static str, CallSite),
    ) -> Result<()> {
        let Started { events, issued } = started;
        events.1.record(stream)?;
        self.running.push_back(Running { events, issued, op, site });
        Ok(())
    }

    /// Records the kernels that have ended.
    ///
    /// # Errors
    /// Those of the driver.
    pub(super) fn poll(&mut self) -> Result<()> {
        // Asking the driver takes about as long as a launch.
        if self.running.len() < SOME_RUNNING { Ok(()) } else { self.ended() }
    }

    /// As [`KernelTimes::poll`], also if there are few.
    pub(super) fn ended(&mut self) -> Result<()> {
        while let Some(first) = self.running.front() {
            if self.running.len() > MOST_RUNNING {
                first.events.1.synchronize()?;
            } else if !first.events.1.reached()? {
                break;
            }
            let (Some(k), Some(anchor), Some(lane)) = (self.running.pop_front(), &self.anchor, &self.lane) else {
                break;
            };
            let at = |event: &Event| -> Result<u64> {
                let ns = f64::from(anchor.event.elapsed_ms(event)?) * 1e6;
                Ok(anchor.at.saturating_add_signed(ns as i64))
            };
            // No kernel runs before it is issued: the anchor's time is some microseconds late.
            let begin = at(&k.events.0)?.max(k.issued);
            let end = at(&k.events.1)?.max(begin);
            lane.happened(Happened { begin, end, site: k.site, what: What::Kernel(k.op) });
            if end.saturating_sub(anchor.at) > OLD_NS {
                let (begun, ended) = k.events;
                let before = self.anchor.replace(Anchor { event: ended, at: end });
                self.idle.extend(before.map(|a| (begun, a.event)));
            } else {
                self.idle.push(k.events);
            }
        }
        Ok(())
    }
}
