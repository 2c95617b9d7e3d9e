//! The communicator of a rank context. It records the start and end of each call, and reports a divergence or a missing rank to
//! the control client before it returns the error. Collectives between GPUs do not pass here; they log to the recorder.

use crate::comm::{CallLog, Collective, CollectiveCall, Communicator, Group, Pulse, Tag, Traffic};
use crate::control::ControlClient;
use crate::control::flight::Recorder;
use crate::error::{ErrorKind, Result};
use crate::intern::FixedHasher;
use crate::trace::{self, What};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A communicator whose calls are recorded.
pub(super) struct Recorded {
    inner: Arc<dyn Communicator>,
    recorder: Arc<Recorder>,
    /// Weak: a rank leaves its job although something holds on to its communicator.
    control: Option<Weak<ControlClient>>,
    flows: Mutex<Flows>,
}

/// Numbers under which the timelines of the members of a collective name it. Members issue the same calls in the same order, so each counts
/// the calls that one global op makes among the same ranks.
#[derive(Default)]
struct Flows {
    ordinal: u64,
    calls: BTreeMap<u64, u64>,
}

impl Flows {
    /// The number of the next call of this op among these ranks.
    fn next(&mut self, tag: &Tag, among: impl IntoIterator<Item = usize>) -> u64 {
        if tag.ordinal != self.ordinal {
            self.ordinal = tag.ordinal;
            self.calls.clear();
        }
        let mut ranks = FixedHasher::default();
        among.into_iter().for_each(|r| ranks.write_usize(r));
        let call = self.calls.entry(ranks.finish()).or_insert(0);
        *call += 1;
        for word in [tag.ordinal, tag.hash, *call] {
            ranks.write_u64(word);
        }
        ranks.finish()
    }
}

/// Messages of an exchange that timelines connect; one with more peers has the first ones.
const MOST_FLOWS: usize = 16;

impl Recorded {
    pub(super) fn new(
        inner: Arc<dyn Communicator>,
        recorder: Arc<Recorder>,
        control: Option<&Arc<ControlClient>>,
    ) -> Recorded {
        Recorded { inner, recorder, control: control.map(Arc::downgrade), flows: Mutex::default() }
    }

    /// Runs a call of a kind among some ranks, of so many bytes. `flows` makes its numbers for the timeline.
    fn record(
        &self,
        (kind, ranks, bytes): (Collective, &[usize], usize),
        tag: &Tag,
        run: impl FnOnce() -> Result<()>,
        flows: impl FnOnce(&mut Flows) -> SmallVec<[u64; 2]>,
    ) -> Result<()> {
        let number = self.recorder.begin(kind, tag, ranks, bytes);
        let begin = trace::begin();
        let before = if begin.is_recorded() { self.inner.traffic().waited_ns } else { 0 };
        let result = run();
        begin.end(tag.site(), || {
            What::Collective(Box::new(trace::Collective {
                kind: kind.name(),
                op: tag.op,
                ranks: ranks.len(),
                bytes: bytes as u64,
                waited_ns: self.inner.traffic().waited_ns.saturating_sub(before),
                flows: flows(&mut self.flows.lock().unwrap_or_else(PoisonError::into_inner)),
            }))
        });
        self.recorder.end(number, result.is_err());
        if let Err(error) = &result
            && let Some(control) = self.control.as_ref().and_then(Weak::upgrade)
        {
            if error.kind() == ErrorKind::Diverged {
                control.tell_divergence(error);
            }
            control.note_missing(error);
        }
        result
    }
}

impl Communicator for Recorded {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn world(&self) -> usize {
        self.inner.world()
    }
    fn run(&self, group: &Group, tag: &Tag, call: CollectiveCall<'_>) -> Result<()> {
        let flow = |flows: &mut Flows| smallvec![flows.next(tag, group.ranks.iter().copied())];
        self.record((call.kind(), &group.ranks, call.bytes()), tag, || self.inner.run(group, tag, call), flow)
    }
    fn exchange(&self, tag: &Tag, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()> {
        let mut ranks: SmallVec<[usize; 16]> = SmallVec::new();
        ranks.push(self.inner.rank());
        ranks.extend(sends.iter().map(|(r, _)| *r).chain(recvs.iter().map(|(r, _)| *r)));
        ranks.sort_unstable();
        ranks.dedup();
        let out: usize = sends.iter().map(|s| s.1.len()).sum();
        let back: usize = recvs.iter().map(|r| r.1.len()).sum();
        let me = self.inner.rank();
        let pairs: SmallVec<[(usize, usize); MOST_FLOWS]> = match trace::begin().is_recorded() {
            true => {
                let all = sends.iter().map(|(to, _)| (me, *to)).chain(recvs.iter().map(|(from, _)| (*from, me)));
                all.take(MOST_FLOWS).collect()
            }
            false => SmallVec::new(),
        };
        let flow = |flows: &mut Flows| pairs.iter().map(|(from, to)| flows.next(tag, [*from, *to])).collect();
        self.record((Collective::Exchange, &ranks, out.max(back)), tag, || self.inner.exchange(tag, sends, recvs), flow)
    }
    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }
    fn count_sent(&self, bytes: u64) {
        self.inner.count_sent(bytes);
    }
    fn pulse(&self) -> Arc<dyn Pulse> {
        self.inner.pulse()
    }
    fn log(&self) -> Option<Arc<dyn CallLog>> {
        Some(self.recorder.clone())
    }
}
