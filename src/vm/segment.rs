//! Segments: kernels of one stream that follow each other, which a device may take as one piece of work.

use super::KernelWork;
use crate::error::{CallSite, Result};
use std::any::Any;
use std::sync::{Mutex, MutexGuard};

/// Kernels that are issued together, again and again, always with the same memory.
pub struct Segment {
    kernels: Vec<KernelWork>,
    prepared: Mutex<Prepared>,
}

/// What the streams of a device have made of a segment.
pub enum Prepared {
    /// Nothing yet.
    Not,
    /// What they launch.
    Ready(Box<dyn Any + Send>),
    /// Nothing: why the device does not take the kernels together.
    Refused(String),
}

impl Segment {
    /// Makes a segment.
    pub fn new(kernels: Vec<KernelWork>) -> Segment {
        Segment { kernels, prepared: Mutex::new(Prepared::Not) }
    }

    /// Returns the kernels, in their order.
    pub fn kernels(&self) -> &[KernelWork] {
        &self.kernels
    }

    /// Returns what the streams have made of it.
    pub fn prepared(&self) -> MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Calls the kernels one after the other.
    pub(super) fn run(&self) -> Result<()> {
        self.kernels.iter().try_for_each(|k| k.run(None))
    }

    /// The op and the user's line of a kernel, by number.
    pub(crate) fn origin(&self, n: usize) -> Option<(&'static str, CallSite)> {
        self.kernels.get(n).map(|k| (k.plan.op.name(), k.site))
    }
}
