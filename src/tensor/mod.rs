//! The tensor handle: local, global, lazy or meta; its metadata; its place in the autograd graph.
//!
//! Knows storages, layouts and nodes; computes nothing and never communicates. Start at [`Tensor`].

mod alias;
mod edge;
mod forms;
mod handle;
mod local;
mod print;

pub use crate::plan::{GlobalRef, GlobalType, LocalRef, LocalType, intern_global, intern_local};
pub(crate) use alias::{Made, Refusal, share_memory};
pub use edge::{Custom, CustomBackward, Edge, Hook, HookFn, LeafSlot, Node, Saved};
pub(crate) use forms::FormOf;
pub use handle::{Body, Tensor};
pub use local::LocalTensor;
