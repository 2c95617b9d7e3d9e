//! The tensor handle: an `Arc` that is reused from a per-thread pool, so that making and dropping tensors does not use the heap.

use super::edge::{Edge, LeafSlot};
use super::inner::{Body, EdgeCell, Inner, LocalView, Tensor};
use super::local::LocalTensor;
use crate::context::{no_context, origin_here};
use crate::error::{CallSite, Error, NameScope, Result};
use crate::memory::{MemoryUse, Origin};
use crate::ops::TensorType;
use crate::placement::{Device, Placement};
use crate::plan::{GlobalRef, TypeRef};
use crate::sbp::NdSbp;
use oflow_kernels::{DType, Dims};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// A handle that does not keep the tensor: for lists of tensors that the program may drop.
pub(crate) struct WeakTensor(Weak<Inner>);

impl WeakTensor {
    /// The tensor, if the program still has it.
    pub(crate) fn get(&self) -> Option<Tensor> {
        self.0.upgrade().map(|inner| Tensor(Some(inner)))
    }
    /// Whether the program still has the tensor.
    pub(crate) fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }
    /// A number that handles of one tensor have in common, and of no other tensor while such a handle is there.
    pub(crate) fn number(&self) -> usize {
        self.0.as_ptr().addr()
    }
}

thread_local! {
    static POOL: RefCell<Vec<Arc<Inner>>> = const { RefCell::new(Vec::new()) };
}
const POOL_MAX: usize = 64;

impl Drop for Tensor {
    fn drop(&mut self) {
        let Some(mut arc) = self.0.take() else { return };
        if let Some(inner) = Arc::get_mut(&mut arc) {
            inner.clear();
            // During thread exit the pool is gone; then the Arc is simply freed.
            let _ = POOL.try_with(|p| {
                if let Ok(mut p) = p.try_borrow_mut()
                    && p.len() < POOL_MAX
                {
                    p.push(arc);
                }
            });
        }
    }
}

impl Inner {
    fn clear(&mut self) {
        self.body = Body::Tombstone(TensorType { shape: Dims::new(), dtype: DType::F32 });
        *self.requires_grad.get_mut() = false;
        self.edge.clear();
        self.view = None;
        *self.global_view.get_mut() = false;
        *self.version.get_mut() = 0;
        self.boxed.get_mut().unwrap_or_else(|e| e.into_inner()).clear();
        self.gathering.take();
        *self.stamp.get_mut() = 0;
    }
}

impl Tensor {
    /// A handle for a body, without gradient.
    fn from_body(body: Body, origin: Origin) -> Tensor {
        Self::from_parts(body, origin, None)
    }
    pub(super) fn from_parts(body: Body, origin: Origin, view: Option<LocalView>) -> Tensor {
        let pooled = POOL.try_with(|p| p.try_borrow_mut().ok().and_then(|mut p| p.pop())).ok().flatten();
        if let Some(mut arc) = pooled {
            if let Some(inner) = Arc::get_mut(&mut arc) {
                inner.body = body;
                inner.origin = origin;
                inner.view = view;
            }
            return Tensor(Some(arc));
        }
        Tensor(Some(Arc::new(Inner {
            body,
            origin,
            requires_grad: AtomicBool::new(false),
            edge: EdgeCell::default(),
            view,
            global_view: AtomicBool::new(false),
            version: AtomicU64::new(0),
            boxed: Mutex::default(),
            gathering: OnceLock::new(),
            stamp: AtomicU64::new(0),
        })))
    }
    /// Makes a tensor of local data.
    pub fn from_local(local: LocalTensor) -> Tensor {
        let origin = local.storage.origin();
        Self::from_body(Body::Local(local), origin)
    }
    /// A global tensor from this rank's shard. The shard must have the sizes of the rank's box.
    pub(crate) fn from_shard(ty: GlobalRef, shard: Option<LocalTensor>) -> Tensor {
        Self::from_body(Body::Global(ty, Mutex::new(shard)), origin_here())
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Inner {
        match &self.0 {
            Some(i) => i,
            // Only `drop` empties a handle.
            None => unreachable!("tensor handle used after drop"),
        }
    }
    /// Returns the contents.
    #[inline]
    pub fn body(&self) -> &Body {
        &self.inner().body
    }
    /// Returns whether both are the same tensor, that is clones of one handle.
    #[inline]
    pub fn same(&self, other: &Tensor) -> bool {
        std::ptr::eq(self.inner(), other.inner())
    }

    /// Returns the logical shape and dtype.
    #[inline]
    pub fn ty(&self) -> &TensorType {
        match self.body() {
            Body::Local(l) => &l.ty.ty,
            Body::Global(g, _) => &g.ty,
            Body::Tombstone(t) => t,
        }
    }
    /// Returns the logical shape.
    pub fn shape(&self) -> &[usize] {
        &self.ty().shape
    }
    /// Returns the dtype.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }
    /// Returns the number of dims.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }
    /// Returns the number of logical elements.
    pub fn numel(&self) -> usize {
        self.ty().len()
    }
    /// Returns whether it is a global tensor.
    pub fn is_global(&self) -> bool {
        self.global().is_some()
    }
    /// Returns the type of a global tensor, or `None` for a local one.
    #[inline]
    pub fn global(&self) -> Option<&GlobalRef> {
        match self.body() {
            Body::Global(g, _) => Some(g),
            _ => None,
        }
    }
    /// Returns the type as in a plan; `None` for an overwritten tensor.
    pub(crate) fn type_ref(&self) -> Option<TypeRef> {
        match self.body() {
            Body::Local(l) => Some(TypeRef::Local(l.ty.clone())),
            Body::Global(g, _) => Some(TypeRef::Global(g.clone())),
            Body::Tombstone(_) => None,
        }
    }
    /// Returns the placement of a global tensor.
    ///
    /// # Errors
    /// If it is a local tensor.
    pub fn placement(&self) -> Result<&Placement> {
        self.global().map(|g| &g.placement).ok_or_else(|| self.not_global())
    }
    /// Returns the nd-SBP of a global tensor.
    ///
    /// # Errors
    /// If it is a local tensor.
    pub fn sbp(&self) -> Result<&NdSbp> {
        self.global().map(|g| &g.sbp).ok_or_else(|| self.not_global())
    }
    fn not_global(&self) -> Error {
        Error::sbp(format!("{self:?} is not a global tensor"))
            .help("make one with `distribute` (from the logical value) or `to_global` (from each rank's shard)")
    }
    /// Returns the device of a local tensor, or the device kind of a global one.
    pub fn device(&self) -> Device {
        match self.body() {
            Body::Local(l) => l.ty.device,
            Body::Global(g, _) => g.placement.device(),
            Body::Tombstone(_) => Device::Cpu,
        }
    }
    /// Returns whether it is a meta tensor: made in a [`dry_run`](crate::dry_run) or while a graph is captured, without data.
    pub fn is_meta(&self) -> bool {
        self.inner().origin.is_dry()
    }
    /// Whether it stands for a value of a graph that is captured.
    pub(crate) fn is_symbol(&self) -> bool {
        self.inner().origin.is_capture()
    }
    /// Checks that the tensor was made where this thread is: in the program, or in the dry run that the thread has entered; a global
    /// tensor by the rank whose context the thread has entered.
    ///
    /// # Errors
    /// On a meta tensor outside its dry run, on a tensor with data inside one, and on a global tensor of another rank or world.
    pub(crate) fn check_origin(&self) -> Result<()> {
        self.check_origin_is(origin_here())
    }
    /// [`Tensor::check_origin`] where that of this thread is known.
    #[inline]
    pub(crate) fn check_origin_is(&self, here: Origin) -> Result<()> {
        if self.inner().origin.is_usable(here) { Ok(()) } else { Err(self.mixed()) }
    }
    #[cold]
    fn mixed(&self) -> Error {
        let (made, here) = (self.inner().origin, origin_here());
        if !here.is_rank() && self.is_global() && !made.is_dry() {
            return no_context();
        }
        if made.is_dry() == here.is_dry() && !made.is_dry() {
            return Error::context(format!("{self:?} was made by {made}; it cannot be used by {here}")).help(
                "a global tensor holds the shard of one rank: give other ranks its value (`to_vec`, or a local tensor of `to_local`)",
            );
        }
        // Which rank it is makes no difference to a tensor with data.
        let of = |o: Origin| if o.is_dry() { o } else { Origin::DATA };
        Error::context(format!("{self:?} was made in {}; it cannot be used in {}", of(made), of(here))).help(match here
            .is_dry()
        {
            _ if made.is_capture() => "return it from the closure: each run of the graph gives its value",
            true => "make models, optimizers and inputs inside the closure of `dry_run` that uses them",
            false => "a meta tensor has no data, and its use ends with its dry run; make the tensor outside `dry_run`",
        })
    }
    /// This rank's data: the local tensor itself or the shard of a global one (none outside the placement).
    ///
    /// # Errors
    /// On overwritten tensors, which have no data, and as [`Tensor::check_origin`].
    pub(crate) fn data(&self) -> Result<Option<LocalTensor>> {
        self.check_origin()?;
        self.with_data(|l| l.cloned())
    }
    /// Shows this rank's data to `f`, of a tensor whose origin has been checked.
    ///
    /// # Errors
    /// On overwritten tensors, which have no data.
    #[inline]
    pub(crate) fn with_data<R>(&self, f: impl FnOnce(Option<&LocalTensor>) -> R) -> Result<R> {
        match self.body() {
            Body::Local(l) => Ok(f(Some(l))),
            Body::Global(_, s) => Ok(f(s.lock().unwrap_or_else(|e| e.into_inner()).as_ref())),
            Body::Tombstone(_) => Err(Error::autograd(format!("{self:?} has no data: a call in place wrote over it"))
                .help("use the op that returns a new tensor")),
        }
    }
    /// Says what the memory of the tensor is used for, for memory reports.
    pub(crate) fn set_memory_use(&self, used_for: MemoryUse) {
        // A tensor without data has no memory either.
        let _ = self.with_data(|l| l.map(|l| l.storage.set_use(used_for)));
    }
    /// Says which module uses the tensor, for memory reports, unless it was made in one.
    pub(crate) fn name_memory(&self, scope: NameScope) {
        let _ = self.with_data(|l| l.map(|l| l.storage.name_owner(scope)));
    }
    /// The module that memory reports name for the tensor; none where they name none.
    pub(crate) fn memory_scope(&self) -> NameScope {
        let owner = self.with_data(|l| l.and_then(|l| l.storage.owner()));
        owner.ok().flatten().map_or(NameScope::default(), |o| o.site.scope)
    }
    /// Replaces the shard of a global tensor (copy on write of in-place ops).
    pub(crate) fn replace_shard(&self, shard: LocalTensor) {
        if let Body::Global(_, s) = self.body() {
            let mut s = s.lock().unwrap_or_else(|e| e.into_inner());
            if let Some(before) = s.as_ref() {
                shard.storage.inherit_owner(&before.storage);
            }
            *s = Some(shard);
        }
    }
    /// Returns the version of the data, which grows with every in-place change. The views and the `detach` of a local tensor
    /// share it. Each handle of a global tensor has its own, the same on every rank.
    pub fn version(&self) -> u64 {
        match self.body() {
            Body::Local(l) => l.storage.version(),
            _ => self.inner().version.load(Ordering::Acquire),
        }
    }
    /// Whether another library shares the memory of a local tensor: its [`version`](Tensor::version) does not tell all changes.
    pub(crate) fn is_shared_outside(&self) -> bool {
        matches!(self.body(), Body::Local(l) if l.storage.is_shared_outside())
    }
    /// A global tensor is about to be changed in place, on every rank.
    pub(crate) fn bump_global_version(&self) {
        self.inner().version.fetch_add(1, Ordering::AcqRel);
        // What its call has saved of it is a handle of its own, with its own version.
        if let Edge::Node(node, i) = self.edge() {
            node.output_changed(i);
        }
    }
    /// Whether it is a global tensor that came from a view op or `detach`.
    pub(crate) fn is_global_view(&self) -> bool {
        self.inner().global_view.load(Ordering::Relaxed)
    }
    /// Marks a global tensor as the result of a view op.
    pub(crate) fn mark_global_view(&self) {
        self.inner().global_view.store(true, Ordering::Relaxed);
    }
    /// The result of a function whose last step is a view of a tensor of its own: nobody has that, so it is no view.
    pub(crate) fn into_result(self) -> Tensor {
        self.inner().global_view.store(false, Ordering::Relaxed);
        self
    }
    /// A handle that does not keep it.
    pub(crate) fn weak(&self) -> WeakTensor {
        WeakTensor(self.0.as_ref().map(Arc::downgrade).unwrap_or_default())
    }
    /// Whether this is the only handle.
    pub(crate) fn is_sole(&self) -> bool {
        self.0.as_ref().is_some_and(|i| Arc::strong_count(i) == 1)
    }

    /// Returns whether gradients are computed for it.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        if let Some(v) = &self.inner().view {
            self.follow_base(v);
        }
        self.inner().requires_grad.load(Ordering::Relaxed)
    }
    /// Returns whether it is a leaf: not the result of a recorded op.
    pub fn is_leaf(&self) -> bool {
        !matches!(self.edge(), Edge::Node(..))
    }
    /// Returns the op and the line of the recorded call that made it; `None` for a leaf.
    pub fn made_by(&self) -> Option<(&'static str, CallSite)> {
        match self.edge() {
            Edge::Node(node, _) => Some((node.op.name(), node.site)),
            _ => None,
        }
    }
    pub(crate) fn edge(&self) -> Edge {
        if !self.requires_grad() {
            return Edge::None;
        }
        self.borrow_slot();
        self.inner().edge.get()
    }
    pub(crate) fn set_edge(&self, edge: Edge) {
        self.borrow_slot();
        self.inner().requires_grad.store(edge.is_some(), Ordering::Relaxed);
        self.inner().edge.set(edge);
    }
    /// Sets whether gradients are computed for this leaf. Returns the tensor, for chaining.
    ///
    /// # Errors
    /// If the dtype is neither a float nor complex, or if `on` is false and the tensor is the result of a recorded op.
    pub fn requires_grad_(self, on: bool) -> Result<Tensor> {
        if on && !self.dtype().has_gradients() {
            let e = Error::autograd(format!("{self:?} cannot require a gradient: only float and complex tensors can"));
            return Err(match self.dtype().passes_gradients() {
                true => e.help("keep the leaf in f32 or a half and cast it: gradients pass the cast"),
                false => e,
            });
        }
        match (self.edge(), on) {
            (Edge::Node(..), false) => {
                return Err(Error::autograd(format!(
                    "{self:?} is the result of an op; its gradient cannot be switched off"
                ))
                .help("use `detach()`"));
            }
            (Edge::None, true) => {
                self.set_memory_use(MemoryUse::Parameter);
                // A leaf is a value of its own.
                self.inner().global_view.store(false, Ordering::Relaxed);
                let whole = self.for_use().filter(|how| how.whole_gradient).map(|how| how.to.clone());
                self.set_edge(Edge::Leaf(Arc::new(LeafSlot {
                    target: whole.or_else(|| self.global().cloned()),
                    ty: Some(self.ty().clone()),
                    replaced: Mutex::new(self.replaced()),
                    ..LeafSlot::default()
                })));
            }
            (Edge::Leaf(_), false) => {
                let replaced = self.replaced();
                self.set_edge(Edge::None);
                if let Some(site) = replaced {
                    self.dropped_at(site);
                }
            }
            _ => {}
        }
        Ok(self)
    }
    /// Notes that at `site` a module put `new` in this leaf's place. Gradients so far are dropped.
    pub(crate) fn replaced_by(&self, new: &Tensor, site: CallSite) {
        self.dropped_at(site);
        if let Edge::Leaf(slot) = new.inner().edge.get() {
            *slot.replaced.lock().unwrap_or_else(|e| e.into_inner()) = None;
        }
    }
    /// Notes that a module lost this leaf at `site`. A frozen one keeps the note in a slot that takes no gradient.
    pub(crate) fn dropped_at(&self, site: CallSite) {
        match self.inner().edge.get() {
            Edge::Leaf(slot) => {
                *slot.replaced.lock().unwrap_or_else(|e| e.into_inner()) = Some(site);
                *slot.grad.lock().unwrap_or_else(|e| e.into_inner()) = None;
            }
            Edge::None => {
                let slot = LeafSlot { replaced: Mutex::new(Some(site)), ..LeafSlot::default() };
                self.inner().edge.set(Edge::Leaf(Arc::new(slot)));
            }
            Edge::Node(..) => {}
        }
    }
    /// Where a module put another tensor in this leaf's place, if one did.
    pub(crate) fn replaced(&self) -> Option<CallSite> {
        match self.inner().edge.get() {
            Edge::Leaf(slot) => *slot.replaced.lock().unwrap_or_else(|e| e.into_inner()),
            _ => None,
        }
    }
    /// Returns a tensor with the same data and without gradient. For a local tensor it shares the memory: a write to one changes
    /// both. For a global tensor it is a value that cannot be written in place; `copy()` makes one that can.
    #[must_use = "detach returns a new handle"]
    pub fn detach(&self) -> Tensor {
        let t = self.value();
        if t.is_global() {
            t.mark_global_view();
        }
        t
    }
    /// Returns a leaf with the same data: a value of its own, which may be written, with or without a gradient. (PyTorch's
    /// `nn.Parameter(data, requires_grad)`.) A local leaf shares the memory of `self`; a global one has the value of now. A frozen
    /// leaf (`requires_grad` false) is written like any tensor, a trained one under `no_grad()`.
    ///
    /// # Errors
    /// If `requires_grad` is true and the dtype is neither a float nor complex.
    pub fn to_leaf(&self, requires_grad: bool) -> Result<Tensor> {
        self.value().requires_grad_(requires_grad)
    }
    /// The same data and version in a handle of its own, without gradient, not marked as a view.
    pub(crate) fn value(&self) -> Tensor {
        let body = match self.body() {
            Body::Local(l) => Body::Local(l.clone()),
            Body::Global(g, s) => {
                Body::Global(g.clone(), Mutex::new(s.lock().unwrap_or_else(|e| e.into_inner()).clone()))
            }
            Body::Tombstone(t) => Body::Tombstone(t.clone()),
        };
        let t = Tensor::from_body(body, self.inner().origin);
        t.inner().version.store(self.inner().version.load(Ordering::Acquire), Ordering::Release);
        self.note_stamp();
        t.inner().stamp.store(self.stamp(), Ordering::Relaxed);
        t
    }
    /// A global tensor in that version, of a value with that number.
    pub(crate) fn in_version(self, version: u64, stamp: u64) -> Tensor {
        self.inner().version.store(version, Ordering::Release);
        self.set_stamp(stamp);
        self
    }
    /// The number by which observers of calls know its value; 0 if none has seen it made.
    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        self.inner().stamp.load(Ordering::Relaxed)
    }
    /// Numbers the value.
    pub(crate) fn set_stamp(&self, number: u64) {
        self.inner().stamp.store(number, Ordering::Relaxed);
    }
    /// Tombstone of a tensor whose data a call has overwritten: its type alone.
    pub(crate) fn overwritten(&self) -> Tensor {
        Tensor::from_body(Body::Tombstone(self.ty().clone()), self.inner().origin)
    }
    /// Returns the short form for messages: `f32[2048, 256] [S(0)]`.
    pub fn short(&self) -> String {
        match self.global() {
            Some(g) => format!("{} {}", g.ty, g.sbp),
            None => self.ty().to_string(),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_symbol() {
            f.write_str("symbol ")?;
        } else if self.is_meta() {
            f.write_str("meta ")?;
        }
        match self.body() {
            Body::Local(l) => write!(f, "{}", **l.ty)?,
            Body::Global(g, _) => write!(f, "{}", ***g)?,
            Body::Tombstone(t) => write!(f, "overwritten {t}")?,
        }
        if self.requires_grad() {
            f.write_str(if self.is_leaf() { " (requires grad)" } else { " (in graph)" })?;
        }
        Ok(())
    }
}
