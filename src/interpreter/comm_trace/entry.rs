//! A comm record as it is kept: what moved bytes, for which op and line, in which direction.

use super::together::{Shared, links};
use crate::boxing::BoxingPlan;
use crate::comm::Tag;
use crate::error::CallSite;
use crate::trace::{Boxed, Moved};
use std::cell::Cell;
use std::sync::Arc;

/// Cause of moved bytes.
pub(super) enum What {
    /// A plan, what it is predicted to take in picoseconds, and what it was carried out with.
    Boxing(Arc<BoxingPlan>, u64, Shared),
    /// Something without a boxing plan: bytes that all ranks together send, and what it is.
    Collective(u64, &'static str),
}

/// A comm record as it is kept.
pub(super) struct Entry {
    pub(super) op: &'static str,
    pub(super) site: CallSite,
    pub(super) backward: bool,
    pub(super) what: What,
    pub(super) measured_ns: Option<u64>,
}

impl Entry {
    pub(super) fn new(tag: &Tag, what: What) -> Entry {
        let site = tag.site();
        Entry { op: tag.op, site, backward: BACKWARD.get(), what, measured_ns: None }
    }

    /// The entry as the timeline shows it.
    pub(super) fn moved(&self, moving_ns: u64, together: usize) -> Boxed {
        let (moved, bytes) = match &self.what {
            What::Boxing(plan, _, shared) => (Moved::Plan(plan.clone()), links(plan, shared).values().sum()),
            What::Collective(bytes, name) => (Moved::Exchange(name), *bytes),
        };
        Boxed { op: self.op, backward: self.backward, moved, bytes, moving_ns, together }
    }
}

thread_local! {
    static BACKWARD: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a backward pass.
pub(in super::super) fn in_backward() -> bool {
    BACKWARD.get()
}

/// Marks boxings of this thread as backward until dropped.
pub(in super::super) struct BackwardScope(bool);

impl BackwardScope {
    pub(in super::super) fn enter() -> BackwardScope {
        BackwardScope(BACKWARD.replace(true))
    }
}

impl Drop for BackwardScope {
    fn drop(&mut self) {
        BACKWARD.set(self.0);
    }
}
