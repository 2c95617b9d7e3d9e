//! The communicator of a rank context. It records the start and end of each call, and reports a divergence or a missing rank to
//! the control client before it returns the error. Collectives between GPUs do not pass here; they log to the recorder.

use crate::comm::{CallLog, Collective, CollectiveCall, Communicator, Group, Pulse, Tag, Traffic};
use crate::control::ControlClient;
use crate::control::flight::Recorder;
use crate::error::{ErrorKind, Result};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// A communicator whose calls are recorded.
pub(super) struct Recorded {
    inner: Arc<dyn Communicator>,
    recorder: Arc<Recorder>,
    /// Weak: a rank leaves its job although something holds on to its communicator.
    control: Option<Weak<ControlClient>>,
}

impl Recorded {
    pub(super) fn new(
        inner: Arc<dyn Communicator>,
        recorder: Arc<Recorder>,
        control: Option<&Arc<ControlClient>>,
    ) -> Recorded {
        Recorded { inner, recorder, control: control.map(Arc::downgrade) }
    }

    /// Runs a call of a kind among some ranks, of so many bytes.
    fn record(
        &self,
        (kind, ranks, bytes): (Collective, &[usize], usize),
        tag: &Tag,
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let number = self.recorder.begin(kind, tag, ranks, bytes);
        let result = run();
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
        self.record((call.kind(), &group.ranks, call.bytes()), tag, || self.inner.run(group, tag, call))
    }
    fn exchange(&self, tag: &Tag, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()> {
        let mut ranks: SmallVec<[usize; 16]> = SmallVec::new();
        ranks.push(self.inner.rank());
        ranks.extend(sends.iter().map(|(r, _)| *r).chain(recvs.iter().map(|(r, _)| *r)));
        ranks.sort_unstable();
        ranks.dedup();
        let out: usize = sends.iter().map(|s| s.1.len()).sum();
        let back: usize = recvs.iter().map(|r| r.1.len()).sum();
        self.record((Collective::Exchange, &ranks, out.max(back)), tag, || self.inner.exchange(tag, sends, recvs))
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
