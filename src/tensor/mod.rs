//! [`Tensor`], a handle to a local, global or meta tensor: its data, its metadata, and its node in the autograd graph.
//!
//! This module knows storages, layouts and nodes. It computes nothing and never communicates.

mod alias;
mod bits;
mod borrowed_slots;
mod edge;
mod handle;
mod inner;
mod local;
mod print;
mod reshard_cache;
mod unshard;

pub use crate::plan::{GlobalRef, GlobalType, LocalRef, LocalType, intern_global, intern_local};
pub(crate) use alias::{Refusal, share_memory};
pub(crate) use borrowed_slots::{borrow_slots, borrowed_leaves, next_stamp};
pub use edge::{
    Custom, CustomBackward, Edge, Hook, HookFn, HookMoment, LeafSlot, Node, Packed, Saved, SavedData, Unpack,
};
pub(crate) use handle::WeakTensor;
pub use inner::{Body, Tensor};
pub(crate) use inner::{ForUse, Made, ReshardKey};
pub use local::LocalTensor;
