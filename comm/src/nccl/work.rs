//! A communicator's calls on its stream, for the log. A call is logged as queued when it is issued. Its start and end are found
//! by polling CUDA events around it.

use crate::{CallLog, Collective, Tag};
use oflow_base::Result;
use oflow_kernels::cuda::{Event, Gpu, Stream};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls that are looked after at once. Of more the oldest are forgotten: the log has forgotten them too.
const MOST: usize = 1024;

/// A call, for the log: kind, op, members, bytes.
pub(super) type What<'a> = (Collective, &'a Tag, &'a [usize], usize);

/// A call that is on the stream, or about to be.
pub(super) struct Issued {
    /// In the log; 0 where there is none.
    number: u64,
    /// Before and after its work.
    events: [Event; 2],
    arrived: bool,
}

#[derive(Default)]
struct IssuedCalls {
    /// Oldest first.
    issued: VecDeque<Issued>,
    idle: Vec<[Event; 2]>,
}

/// The calls of a communicator.
pub(super) struct Work {
    log: Option<Arc<dyn CallLog>>,
    calls: Mutex<IssuedCalls>,
}

impl Work {
    pub(super) fn new(log: Option<Arc<dyn CallLog>>) -> Work {
        Work { log, calls: Mutex::default() }
    }

    /// A call is about to be put on the stream; [`issued`](Work::issued) or [`refused`](Work::refused) comes next.
    pub(super) fn begin(&self, gpu: &Arc<Gpu>, stream: &Stream, what: What<'_>) -> Result<Issued> {
        let idle = {
            let mut calls = self.lock();
            self.look(&mut calls);
            calls.idle.pop()
        };
        let events = match idle {
            Some(events) => events,
            None => [Event::new(gpu, false)?, Event::new(gpu, false)?],
        };
        events[0].record(stream)?;
        Ok(Issued { number: self.queued(what), events, arrived: false })
    }

    /// The call is on the stream.
    pub(super) fn issued(&self, call: Issued, stream: &Stream) -> Result<()> {
        call.events[1].record(stream)?;
        let mut calls = self.lock();
        if calls.issued.len() == MOST {
            calls.issued.pop_front();
        }
        calls.issued.push_back(call);
        Ok(())
    }

    /// The call could not be put on the stream.
    pub(super) fn refused(&self, call: &Issued) {
        self.tell(|log| log.ended(call.number, true));
    }

    /// Runs a call that is not put on a stream.
    pub(super) fn at_once(&self, what: What<'_>, run: impl FnOnce() -> Result<()>) -> Result<()> {
        let number = self.queued(what);
        self.tell(|log| log.arrived(number));
        let ended = run();
        self.tell(|log| log.ended(number, ended.is_err()));
        ended
    }

    /// Whether calls are on their way.
    pub(super) fn is_busy(&self) -> bool {
        let mut calls = self.lock();
        self.look(&mut calls);
        !calls.issued.is_empty()
    }

    /// The call that the stream has come to will not end well, and it will come to no other.
    pub(super) fn give_up(&self) {
        let mut calls = self.lock();
        self.look(&mut calls);
        for call in calls.issued.drain(..).filter(|c| c.arrived) {
            self.tell(|log| log.ended(call.number, true));
        }
    }

    /// Notes how far the stream has come. An event that cannot be asked is that of a broken device, which others report: nothing
    /// is on its way any more.
    fn look(&self, calls: &mut IssuedCalls) {
        while let Some(first) = calls.issued.front_mut() {
            let [begun, ended] = [0, 1].map(|i| first.events[i].reached());
            let number = first.number;
            match (begun, ended) {
                (_, Ok(true)) => self.tell(|log| log.ended(number, false)),
                (Ok(true), Ok(false)) => {
                    if !std::mem::replace(&mut first.arrived, true) {
                        self.tell(|log| log.arrived(number));
                    }
                    return;
                }
                (Ok(false), Ok(false)) => return,
                _ => {
                    self.tell(|log| log.ended(number, true));
                    return calls.issued.clear();
                }
            }
            calls.idle.extend(calls.issued.pop_front().map(|c| c.events));
        }
    }

    fn queued(&self, (kind, tag, ranks, bytes): What<'_>) -> u64 {
        self.log.as_ref().map_or(0, |log| log.queued(kind, tag, ranks, bytes))
    }

    fn tell(&self, what: impl FnOnce(&dyn CallLog)) {
        if let Some(log) = &self.log {
            what(&**log);
        }
    }

    fn lock(&self) -> MutexGuard<'_, IssuedCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
