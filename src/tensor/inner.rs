//! The data behind a tensor handle: contents, autograd edge, view, cached copies, role in unsharding. Operations on each are in the file
//! named for it.

use super::edge::Edge;
use super::local::LocalTensor;
use crate::error::CallSite;
use crate::memory::Origin;
use crate::ops::TensorType;
use crate::plan::GlobalRef;
use oflow_kernels::{DType, Strides};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

/// The contents of a tensor handle.
pub enum Body {
    /// Data on one device.
    Local(LocalTensor),
    /// A global tensor with this rank's shard; `None` on ranks outside the placement. An in-place op on a shard that other
    /// handles share replaces it, so that global views stay values.
    Global(GlobalRef, Mutex<Option<LocalTensor>>),
    /// The type alone: what is left of a tensor whose data an in-place call has overwritten, and of a handle in the pool.
    Tombstone(TensorType),
}

/// How a view was made, where that forbids to write through it under grad mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// By an op of one output, under grad mode.
    Plain,
    /// As one of several outputs of one function (`split`, `chunk`).
    OneOfMany,
    /// Under `no_grad`: it has no edge, but its base may have one.
    NoGrad,
}

/// A view of a local tensor.
pub(crate) struct LocalView {
    /// The tensor that it is a view of; no view itself.
    pub(super) base: Tensor,
    /// Where it lies in the base's elements, counted row-major.
    pub(super) offset: usize,
    pub(super) strides: Strides,
    pub(super) made: AtomicU8,
    /// The base's count of recorded writes when this view's edge was derived.
    pub(super) seen: AtomicU64,
    pub(super) site: CallSite,
}

/// The edge of a handle, and how often a recorded write has changed it: what views of it compare.
#[derive(Default)]
pub(super) struct EdgeCell {
    edge: Mutex<Edge>,
    pub(super) writes: AtomicU64,
}

impl EdgeCell {
    pub(super) fn get(&self) -> Edge {
        self.edge.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
    pub(super) fn set(&self, edge: Edge) {
        *self.edge.lock().unwrap_or_else(|e| e.into_inner()) = edge;
    }
    pub(super) fn clear(&mut self) {
        *self.edge.get_mut().unwrap_or_else(|e| e.into_inner()) = Edge::None;
        *self.writes.get_mut() = 0;
    }
}

/// Key of a cached copy: boxed to a layout, or cast to a dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReshardKey {
    /// In the layout of the global type of that id.
    Boxed(u64),
    /// In that dtype; recorded as a call of its own or not.
    Cast(DType, bool),
}

/// A cached copy of a tensor.
pub(super) struct CachedCopy {
    pub(super) of: ReshardKey,
    pub(super) version: u64,
    /// Where the gradient of the tensor went when the copy was made. Kept alive, so that no other slot takes its address.
    pub(super) edge: Edge,
    pub(super) copy: Tensor,
}

/// The remembered copies of one tensor.
#[derive(Default)]
pub(crate) struct ReshardCache(pub(super) SmallVec<[CachedCopy; 1]>);

impl ReshardCache {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The layout in which calls read a tensor that is stored in another one.
#[derive(Clone)]
pub(crate) struct ForUse {
    /// The type that calls get.
    pub to: GlobalRef,
    /// Whether the unsharded copy is remembered until the tensor changes; else it lives for one call.
    pub keeps: bool,
    /// Whether the gradient lies as the unsharded copy does, and not as the tensor.
    pub whole_gradient: bool,
}

/// Role of a handle in ZeRO's unsharding; most have none.
pub(super) enum Unsharding {
    /// Calls read it in another layout.
    Marked(ForUse),
    /// The unsharded copy of a marked tensor that one call reads.
    From(Tensor),
}

/// The data that all handles of one tensor share.
pub(crate) struct Inner {
    pub(crate) body: Body,
    /// Whether it has data, or belongs to a dry run: of a local tensor that of its storage, of a global one that of the rank's context.
    pub(super) origin: Origin,
    pub(super) requires_grad: AtomicBool,
    pub(super) edge: EdgeCell,
    /// Of a view of a local tensor: its base.
    pub(super) view: Option<LocalView>,
    /// Of a global tensor: came from a view op or `detach`.
    pub(super) global_view: AtomicBool,
    /// Of a global tensor: in-place changes so far, the same number on every rank. (A local one's are its storage's.)
    pub(super) version: AtomicU64,
    /// Boxed copies and casts.
    pub(crate) boxed: Mutex<ReshardCache>,
    /// Whether calls read it in another layout, or it is such a form.
    pub(super) gathering: OnceLock<Box<Unsharding>>,
    /// The number by which observers of calls know its value; 0 if none has seen it made.
    pub(super) stamp: AtomicU64,
}

/// A tensor: a local tensor on one device, or a global tensor whose shards are on the ranks of a placement. Clones share the
/// tensor. It is `Send` and `Sync`, and can be dropped without a context.
///
/// `{:?}` prints metadata, `{}` also the values of a local tensor. Neither communicates, so a global tensor prints metadata only:
/// ```
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let x = zeros([4, 2], (&mesh, sbp![S(0)]))?;
/// assert_eq!(format!("{x}"), "f32[4, 2] [S(0)] on cpu[1]");
/// let y = from_vec(vec![1.0f32, 2.5], [2], Device::Cpu)?;
/// assert_eq!(format!("{y:?}"), "f32[2] on cpu");
/// assert_eq!(format!("{y}"), "tensor([1.0000, 2.5000], f32[2] on cpu)");
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(pub(super) Option<Arc<Inner>>);
