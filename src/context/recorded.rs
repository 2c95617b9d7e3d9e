//! The communicator of a rank context. It records the start and end of each call, and reports a divergence or a missing rank to
//! the control client before it returns the error. Collectives between GPUs do not pass here; they log to the recorder.

use crate::comm::{CallLog, Collective, Communicator, DType, Group, Pulse, ReduceOp, Tag, Traffic};
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

    fn call(
        &self,
        kind: Collective,
        tag: &Tag,
        ranks: &[usize],
        bytes: usize,
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
    fn barrier(&self, group: &Group, tag: &Tag) -> Result<()> {
        self.call(Collective::Barrier, tag, &group.ranks, 0, || self.inner.barrier(group, tag))
    }
    fn broadcast(&self, group: &Group, tag: &Tag, root: usize, buf: &mut [u8]) -> Result<()> {
        self.call(Collective::Broadcast, tag, &group.ranks, buf.len(), || self.inner.broadcast(group, tag, root, buf))
    }
    fn all_reduce(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        recv: &mut [u8],
        dtype: DType,
        op: ReduceOp,
    ) -> Result<()> {
        self.call(Collective::AllReduce, tag, &group.ranks, recv.len(), || {
            self.inner.all_reduce(group, tag, send, recv, dtype, op)
        })
    }
    fn all_gather(&self, group: &Group, tag: &Tag, send: &[u8], recv: &mut [u8], counts: &[usize]) -> Result<()> {
        self.call(Collective::AllGather, tag, &group.ranks, recv.len(), || {
            self.inner.all_gather(group, tag, send, recv, counts)
        })
    }
    fn reduce_scatter(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        recv: &mut [u8],
        counts: &[usize],
        dtype: DType,
        op: ReduceOp,
    ) -> Result<()> {
        self.call(Collective::ReduceScatter, tag, &group.ranks, send.len(), || {
            self.inner.reduce_scatter(group, tag, send, recv, counts, dtype, op)
        })
    }
    fn all_to_all(
        &self,
        group: &Group,
        tag: &Tag,
        send: &[u8],
        send_counts: &[usize],
        recv: &mut [u8],
        recv_counts: &[usize],
    ) -> Result<()> {
        self.call(Collective::AllToAll, tag, &group.ranks, send.len().max(recv.len()), || {
            self.inner.all_to_all(group, tag, send, send_counts, recv, recv_counts)
        })
    }
    fn exchange(&self, tag: &Tag, sends: &[(usize, &[u8])], recvs: &mut [(usize, &mut [u8])]) -> Result<()> {
        let mut ranks: SmallVec<[usize; 16]> = SmallVec::new();
        ranks.push(self.inner.rank());
        ranks.extend(sends.iter().map(|(r, _)| *r).chain(recvs.iter().map(|(r, _)| *r)));
        ranks.sort_unstable();
        ranks.dedup();
        let out: usize = sends.iter().map(|s| s.1.len()).sum();
        let back: usize = recvs.iter().map(|r| r.1.len()).sum();
        self.call(Collective::Exchange, tag, &ranks, out.max(back), || self.inner.exchange(tag, sends, recvs))
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
