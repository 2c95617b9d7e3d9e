//! Acts of a planned program, and the memory that they use: roots, pieces of memory, and slots, windows onto them.

use crate::error::CallSite;
use crate::memory::Storage;
use crate::ops::RuntimeAttrs;
use crate::placement::Device;
use crate::plan::{KernelPlan, LocalRef, Packing};
use crate::vm::listed::Walk;
use oflow_kernels::Strides;
use smallvec::SmallVec;
use std::sync::Arc;

/// Number of a piece of memory of a program.
pub(super) type RootId = usize;

/// Number of a slot.
pub(super) type SlotId = usize;

/// Where a piece of memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Memory of a tensor from outside, by its number among the program's.
    Outside(usize),
    /// A part of the arena.
    Arena,
    /// Allocated in each run: a run returns it.
    Fresh,
    /// Known when a node that is carried out on tensors has made it.
    Late,
    /// A part of other memory along dim 0, of the number of the iteration of a loop.
    Part(RootId),
}

/// A piece of memory of a program.
pub(super) struct Root {
    pub(super) home: Home,
    pub(super) device: Device,
    pub(super) bytes: usize,
    /// Times of the first and of the last use.
    pub(super) first: usize,
    pub(super) last: usize,
    /// The last time at which an exchange that goes on may use it.
    pub(super) held: Option<usize>,
    /// Whether others than kernels of the compute stream use it.
    pub(super) shared: bool,
    /// Last node that needs a value in it; the number of nodes where a run returns one.
    pub(super) needed: Option<usize>,
    /// Memory that it may be: itself, and what the node had read that has made it. Sorted.
    pub(super) may_be: SmallVec<[RootId; 2]>,
}

/// A window onto memory, of one value.
pub(super) struct Slot {
    pub(super) ty: LocalRef,
    pub(super) root: RootId,
    /// First element, counted from the first one of the root.
    pub(super) offset: isize,
    pub(super) strides: Strides,
}

/// The arena of a device.
pub(super) struct Arena {
    pub(super) device: Device,
    pub(super) packing: Packing,
    /// Memory of the arena, from the first run on.
    pub(super) memory: Option<Storage>,
    /// The roots that it holds, in the order of the packing.
    pub(super) roots: Vec<RootId>,
}

/// One act of a planned program: a kernel or a boxing, over slots.
pub(super) struct Act {
    pub(super) what: What,
    pub(super) site: CallSite,
    /// Memory that it reads, and that it writes.
    pub(super) reads: SmallVec<[RootId; 4]>,
    pub(super) writes: SmallVec<[RootId; 2]>,
    pub(super) time: usize,
}

/// Work of an act.
pub(super) enum What {
    Kernel(Box<Kernel>),
    Box(Box<Boxing>),
}

/// A kernel over slots.
pub(super) struct Kernel {
    pub(super) plan: Arc<KernelPlan>,
    /// Step of the node's plan, which says the runtime attributes; none of a copy.
    pub(super) step: Option<usize>,
    pub(super) device: Device,
    pub(super) runtime: RuntimeAttrs,
    pub(super) inputs: SmallVec<[Option<SlotId>; 4]>,
    pub(super) outputs: SmallVec<[SlotId; 2]>,
    pub(super) workspace: Option<RootId>,
}

/// This rank's source and destination shard of a boxing; or its box, and the one that it gets.
pub(super) type Ends = (Option<SlotId>, Option<SlotId>);

/// Entry in the dispatch stream: name, key and text.
pub(super) type Entry = (&'static str, u64, String);

/// Boxings that are carried out together, or an exchange of boxes, over slots.
pub(super) struct Boxing {
    /// Plans of the exchange; none where nothing moves.
    pub(super) walk: Option<Walk>,
    pub(super) ends: Vec<Ends>,
    /// Devices of the sources and of the destinations.
    pub(super) devices: (Device, Device),
    /// Scratch memory, in the order in which it is asked for, of an exchange in host memory; others take their own.
    pub(super) scratch: Option<Vec<RootId>>,
    pub(super) backward: bool,
    /// None of a boxing inside a call, which has the call's.
    pub(super) entry: Option<Entry>,
}

/// An exchange that goes on, for which no act has waited yet.
pub(super) struct Ongoing {
    pub(super) act: usize,
    /// Memory of what it makes, or of what the last exchange makes that uses it.
    pub(super) made: SmallVec<[RootId; 2]>,
    /// Memory that it uses.
    pub(super) used: Vec<RootId>,
    /// Number of its scratch memory among those that are not part of an arena.
    pub(super) scratch: Option<usize>,
}

impl Act {
    /// The kernel, if it is one.
    pub(super) fn kernel(&self) -> Option<&Kernel> {
        match &self.what {
            What::Kernel(k) => Some(k),
            What::Box(_) => None,
        }
    }
}
