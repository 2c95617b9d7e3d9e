//! Streams of a dry run: instructions are counted, nothing is executed.
//!
//! Views of a dry run have shapes and strides, and addresses that are never mapped. Nothing here looks behind them.

use super::instruction::{Instruction, Work};
use crate::boxing::BoxingPlan;
use crate::error::{Error, Result};
use crate::memory::Allocator;
use std::fmt::Display;

/// Streams that do nothing.
pub(super) struct DryStreams {
    /// Counts the scratch memory of boxings on devices that take it from their allocator.
    scratch: Option<Allocator>,
}

impl DryStreams {
    pub(super) fn new(scratch: Option<Allocator>) -> DryStreams {
        DryStreams { scratch }
    }

    /// Counts the memory that a boxing takes besides its ends. It is free again when this returns, as on a stream: the next
    /// user of the memory waits for the boxing.
    pub(super) fn submit(&self, i: &Instruction) -> Result<()> {
        let Some(alloc) = &self.scratch else { return Ok(()) };
        // Boxings between devices pass through pinned memory, which is no memory of the device.
        let extra = |p: &BoxingPlan| match p.src.placement.device() == p.dst.placement.device() {
            true => p.extra_bytes(),
            false => 0,
        };
        let bytes = match &i.work {
            Work::Boxing(b) => extra(&b.plan),
            Work::BoxMany(b) => b.plans.iter().map(|p| extra(p)).fold(0, u64::saturating_add),
            Work::Kernel(_) | Work::Collect(_) => 0,
        };
        if bytes > 0 {
            drop(alloc.alloc(usize::try_from(bytes).unwrap_or(usize::MAX))?);
        }
        Ok(())
    }
}

/// The error of reading what a dry run made.
pub(crate) fn no_values(what: impl Display) -> Error {
    Error::unsupported(format!("{what} has no values: a dry run computes shapes, layouts and memory only"))
        .help("leave reading out where `oflow::is_dry_run()`, or read in a real run")
}
