//! Sections that are being captured, as data.

use super::super::program_builder::ProgramBuilder;
use crate::error::CallSite;
use crate::program::ValueId;
use crate::tensor::{LeafSlot, Tensor, WeakTensor};
use std::sync::Arc;

/// A value from outside of a section.
pub(super) struct Take {
    /// Value in the section.
    pub(super) value: ValueId,
    /// Value around it; `None` of a gradient that begins with -0, until it is made.
    pub(super) from: Option<ValueId>,
    /// Version of the tensor when it was taken.
    pub(super) version: u64,
    /// Handles through which it is read.
    pub(super) handles: Vec<WeakTensor>,
    /// The tensor that the section writes.
    pub(super) written: Option<WeakTensor>,
    /// Number, version and value of that tensor now.
    pub(super) last: Option<(u64, u64, ValueId)>,
}

/// The slot of a leaf's gradient.
pub(super) struct Slot {
    pub(super) slot: Arc<LeafSlot>,
    /// The gradient before the section.
    pub(super) before: Option<Tensor>,
    /// Value that the section takes for it.
    pub(super) take: Option<ValueId>,
    /// Whether the section has found no gradient there, before it has stored or set one.
    pub(super) found_none: bool,
    /// Whether the section has set or cleared it.
    pub(super) assigned: bool,
    /// Whether a section inside adds to the gradient with which this one begins in its first iteration only.
    pub(super) first_only: bool,
}

impl Slot {
    pub(super) fn new(slot: Arc<LeafSlot>) -> Slot {
        Slot { slot, before: None, take: None, found_none: false, assigned: false, first_only: false }
    }
}

/// A section that is being captured.
pub(super) struct Open {
    /// Builder of the program or the section around it.
    pub(super) outer: ProgramBuilder,
    pub(super) count: usize,
    pub(super) site: CallSite,
    /// Draws of each generator before it.
    pub(super) first: Vec<u64>,
    /// How many tensors had been made before it.
    pub(super) made: usize,
    /// In the order of the body's values from outside.
    pub(super) takes: Vec<Take>,
    pub(super) slots: Vec<Slot>,
}

impl Open {
    /// Number of a leaf's slot among those that are known here.
    pub(super) fn slot(&mut self, slot: &Arc<LeafSlot>) -> usize {
        self.slots.iter().position(|s| Arc::ptr_eq(&s.slot, slot)).unwrap_or_else(|| {
            self.slots.push(Slot::new(slot.clone()));
            self.slots.len() - 1
        })
    }
}
