//! Views: which tensors share memory, and the gradients of writes to them.
//!
//! **Local tensors** have PyTorch's views. A view knows its one base, the handle that is no view itself, and where it lies
//! in it: offset and strides into the base's elements, counted row-major. A write through any of them is recorded on the
//! *base* ([`rebase`](Tensor::rebase)): its new value is the old one with the view's elements replaced. Every view of it
//! then derives its own edge anew, as a strided read of the base, when it is used next. (The rule of PyTorch's issue 3313.)
//!
//! **Global tensors** have none: what a view op or [`Tensor::detach`] gives is a value. Whether it happens to share memory
//! is not visible, so whether it may be written must not depend on that either. Such a handle is marked when it is made, on
//! every rank, and is refused as the target of a write until it becomes a leaf, a value of its own: by `requires_grad_(true)`, by
//! [`Tensor::to_leaf`], or because a module holds it as a parameter, trained or frozen, or as a buffer.
//!
//! These rules are checked for every write, before anything is issued, by one file of the interpreter. In detail:
//!
//! - *Local*: the op that writes has a node which gives the new value of the window; a `strided_write` of that value into
//!   the base's old value becomes the edge of the base. A view is then a `strided_read` of the base. These ops and
//!   `strided_put` are hidden, and each is the gradient of another (`ops/families/strided.rs`), so derivatives of every
//!   order exist.
//! - *Refused under grad mode*: writes to a leaf that requires a gradient, to a view of one, to outputs of `split` and
//!   `chunk`, and to views made under `no_grad`. *Refused in every mode*: writes to a tensor whose elements overlap
//!   (`expand`), and writing one element twice in one call.
//! - *Versions*: each storage counts its writes. Backward compares the count with that of the saved tensor. What the call
//!   itself has overwritten is not saved.
//! - *Global*: views share memory until a write in place finds another handle on the memory. The write then goes to new
//!   memory, to which the written handle moves. A write to a marked handle would be lost, so it is an error; `copy()` of
//!   the handle may be written, and so may the tensor that the view was made of. The handle of a global tensor counts its
//!   version on every rank, also on ranks without a shard, so all ranks detect a changed tensor alike. `to_local` returns
//!   the shard for reading; `write_shard` writes it.

use super::edge::{Edge, Node};
use super::inner::{Body, LocalView, Made, Tensor};
use super::local::LocalTensor;
use crate::error::CallSite;
use crate::ops::{AttrValue, TensorType, find};
use oflow_kernels::Strides;
use oflow_kernels::view::{contiguous_strides, copied};
use smallvec::smallvec;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

impl LocalView {
    pub(crate) fn made(&self) -> Made {
        match self.made.load(Ordering::Relaxed) {
            0 => Made::Plain,
            1 => Made::OneOfMany,
            _ => Made::NoGrad,
        }
    }

    /// The attributes that say where it lies in its base.
    fn place(&self, shape: &[usize]) -> [AttrValue; 3] {
        let strides: smallvec::SmallVec<[i64; 6]> = self.strides.iter().map(|s| *s as i64).collect();
        [AttrValue::from(shape), AttrValue::Int(self.offset as i64), AttrValue::Ints(strides)]
    }

    /// The edge of a view whose base has this one.
    fn read_of(&self, base: Edge, ty: &TensorType) -> Edge {
        let types = smallvec![self.base.type_ref()];
        let mut node = Node::new(builtin("strided_read"), self.base.device(), self.site, smallvec![base], types);
        node.attrs = self.place(&ty.shape).into_iter().collect();
        Edge::Node(node.into(), 0)
    }
}

fn builtin(name: &str) -> &'static crate::ops::Op {
    match find(name) {
        Ok(op) => op,
        // In the table of built-in ops, which is registered as a whole.
        Err(e) => unreachable!("built-in op: {e}"),
    }
}

impl Tensor {
    /// A view of a local tensor: `local` is a window onto the source's memory, which lies in the elements of the source's
    /// base at `offset` and `strides`.
    pub(crate) fn view_of(
        source: &Tensor,
        local: LocalTensor,
        (offset, strides): (usize, Strides),
        grad_mode: bool,
        site: CallSite,
    ) -> Tensor {
        let (base, above) = match &source.inner().view {
            Some(v) => (v.base.clone(), v.made()),
            None => (source.clone(), Made::Plain),
        };
        let made = match above {
            Made::Plain if !grad_mode => Made::NoGrad,
            above => above,
        };
        let seen = AtomicU64::new(base.inner().edge.writes.load(Ordering::Acquire));
        let view = LocalView { base, offset, strides, made: AtomicU8::new(made as u8), seen, site };
        let origin = source.inner().origin;
        Tensor::from_parts(Body::Local(local), origin, Some(view))
    }

    /// Where a local tensor lies in the elements of its base, counted row-major: offset, strides.
    pub(crate) fn place_in_base(&self) -> (usize, Strides) {
        match &self.inner().view {
            Some(v) => (v.offset, copied(&v.strides)),
            None => (0, contiguous_strides(self.shape())),
        }
    }

    pub(crate) fn local_view(&self) -> Option<&LocalView> {
        self.inner().view.as_ref()
    }

    /// Returns the base of a local view: the tensor whose memory it shares. `None` for other tensors.
    pub fn base(&self) -> Option<&Tensor> {
        self.inner().view.as_ref().map(|v| &v.base)
    }

    /// Returns whether it is a view. A local view shares its base's memory. A global view is the result of a view op or of
    /// `detach`; it is a value and cannot be written in place.
    pub fn is_view(&self) -> bool {
        self.inner().view.is_some() || self.is_global_view()
    }

    /// Returns whether the elements lie in memory in row-major order without gaps. Those of a global tensor do on each rank.
    pub fn is_contiguous(&self) -> bool {
        match self.body() {
            Body::Local(l) => l.is_contiguous(),
            _ => true,
        }
    }

    /// Marks a view as one of several outputs of one function.
    pub(crate) fn one_of_many(self) -> Tensor {
        if let Some(v) = &self.inner().view {
            v.made.store(Made::OneOfMany as u8, Ordering::Relaxed);
        }
        self
    }

    /// Derives the edge of a view anew if a write has been recorded on its base since.
    pub(super) fn follow_base(&self, view: &LocalView) {
        let writes = view.base.inner().edge.writes.load(Ordering::Acquire);
        if view.seen.load(Ordering::Acquire) == writes {
            return;
        }
        let edge = view.base.edge();
        if edge.is_some() && self.dtype().passes_gradients() {
            let new = view.read_of(edge, self.ty());
            self.inner().edge.get().retain_at(&new);
            self.set_edge(new);
        }
        view.seen.store(writes, Ordering::Release);
    }

    /// The tensor was written; `edge` leads to what made its new value (none: nothing that has a gradient). Of a view the
    /// write is recorded on its base.
    pub(crate) fn rebase(&self, edge: Edge, site: CallSite) {
        let Some(view) = &self.inner().view else { return self.set_edge_written(edge) };
        let old = view.base.edge();
        if !old.is_some() && !edge.is_some() {
            return;
        }
        let types = smallvec![view.base.type_ref(), self.type_ref()];
        let mut node = Node::new(builtin("strided_write"), self.device(), site, smallvec![old, edge], types);
        let [_, offset, strides] = view.place(self.shape());
        node.attrs = [AttrValue::from(self.shape()), offset, strides].into_iter().collect();
        view.base.set_edge_written(Edge::Node(node.into(), 0));
    }

    /// Sets the edge of a base after a write: its views derive theirs anew.
    fn set_edge_written(&self, edge: Edge) {
        self.edge().retain_at(&edge);
        self.set_edge(edge);
        self.inner().edge.writes.fetch_add(1, Ordering::Release);
    }

    /// Another handle of the same data: version and edge are copied, later changes of either are not shared. Not a view.
    pub(crate) fn shadow(&self) -> Tensor {
        let t = self.value();
        t.set_edge(self.edge());
        t
    }

    /// Whether gradients that reach this handle may keep it: there is no other handle to it or its memory, and the memory is
    /// dense.
    pub(crate) fn is_its_own(&self) -> bool {
        self.is_sole()
            && !self.is_view()
            && match self.body() {
                Body::Local(l) => l.storage.holders() == 1 && l.is_contiguous(),
                _ => true,
            }
    }
}

/// Whether two local tensors have memory in common.
pub(crate) fn share_memory(a: &Tensor, b: &Tensor) -> bool {
    match (a.body(), b.body()) {
        (Body::Local(a), Body::Local(b)) => a.storage.same_block(&b.storage),
        _ => a.same(b),
    }
}

impl Tensor {
    /// A number that tensors with memory in common have in common, whether or not this rank has a shard.
    pub(crate) fn memory_id(&self) -> usize {
        match self.body() {
            Body::Local(l) => l.storage.id(),
            _ => std::ptr::from_ref(self.inner()) as usize,
        }
    }
}

/// Why a tensor must not be written; see [`Tensor::refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A view of a global tensor: the write would be lost.
    GlobalView,
    /// A shard that `to_local` gave.
    Shard,
    /// Two of its elements are one.
    Overlap,
}

impl Tensor {
    /// Why the tensor is not written in place, in any mode; none if it may be.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self.body() {
            Body::Local(l) if l.is_shard() => Some(Refusal::Shard),
            Body::Local(l) if l.overlaps_itself() => Some(Refusal::Overlap),
            Body::Global(..) if self.is_global_view() => Some(Refusal::GlobalView),
            _ => None,
        }
    }
}
