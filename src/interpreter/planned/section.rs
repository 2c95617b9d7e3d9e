//! How a loop of a planned program is carried out.

use super::act::{RootId, SlotId};
use crate::program::ValueId;
use smallvec::SmallVec;

/// A window onto other memory, which moves by so many elements from one iteration to the next.
#[derive(Clone, Copy)]
pub(super) struct Moving {
    pub(super) window: RootId,
    pub(super) whole: SlotId,
    pub(super) by: isize,
}

/// Place of the new value of a tensor that a loop writes, when an iteration ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The memory of the tensor.
    InPlace,
    /// The memory of the tensor, to which an act copies it.
    Copied,
    /// Other memory of the tensor, which is that of the slot from then on.
    Moved(SlotId),
}

/// How a loop is carried out.
pub(super) enum Section {
    /// On tensors: these values are read, this memory is written in place.
    OnTensors(Vec<ValueId>, SmallVec<[RootId; 1]>),
    /// By acts.
    Acts(Inside),
}

/// A loop that is carried out by acts.
#[derive(Default)]
pub(super) struct Inside {
    pub(super) moving: Vec<Moving>,
    /// Wholes of what is collected.
    pub(super) wholes: Vec<RootId>,
    /// Of them, those that a run returns: they are allocated when the loop begins.
    pub(super) fresh: Vec<RootId>,
    pub(super) written: Vec<Written>,
}
