//! The autograd graph: nodes, the edges between them, leaf slots. Plain data; the engine is in the interpreter.

use super::inner::Tensor;
use crate::error::{CallSite, Result};
use crate::ops::{Attrs, Op, OpUse, RuntimeAttrs, TensorType};
use crate::placement::Device;
use crate::plan::{GlobalRef, TypeRef};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// When backward calls a hook.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HookMoment {
    /// The gradient is complete; the hook may return another one in its place.
    Complete,
    /// The gradient of a leaf has been added to its `grad`; the hook returns nothing.
    Accumulated,
}

/// A hook of a tensor's gradient.
#[derive(Clone)]
pub struct Hook {
    /// When it is called.
    pub moment: HookMoment,
    /// Receives the gradient of this pass.
    pub call: Arc<HookFn>,
    /// The line that registered it.
    pub site: CallSite,
}

/// The function of a [`Hook`].
pub type HookFn = dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync;

/// Destination of a tensor's gradient.
#[derive(Clone, Default)]
pub enum Edge {
    /// The tensor has no gradient.
    #[default]
    None,
    /// The slot of a leaf, in which the gradient accumulates. Boxed copies of a leaf share its slot.
    Leaf(Arc<LeafSlot>),
    /// Output `1` of a recorded call.
    Node(Arc<Node>, usize),
}

impl Edge {
    /// Returns whether the tensor has a gradient.
    pub fn is_some(&self) -> bool {
        !matches!(self, Edge::None)
    }
    /// Returns whether both are the same leaf's slot, or the same output of the same recorded call.
    pub fn same(&self, other: &Edge) -> bool {
        match (self, other) {
            (Edge::None, Edge::None) => true,
            (Edge::Leaf(a), Edge::Leaf(b)) => Arc::ptr_eq(a, b),
            (Edge::Node(a, i), Edge::Node(b, k)) => Arc::ptr_eq(a, b) && i == k,
            _ => false,
        }
    }
}

impl Edge {
    /// A write in place has moved the tensor from this output to `new`: the gradient that is retained is that of the new value, as
    /// in PyTorch. Hooks stay with the old value.
    pub(super) fn retain_at(&self, new: &Edge) {
        let (Edge::Node(from, i), Edge::Node(to, k)) = (self, new) else { return };
        if Arc::ptr_eq(from, to) {
            return;
        }
        let kept = {
            let mut watched = from.watched.lock().unwrap_or_else(|e| e.into_inner());
            let Some(at) = watched.iter().position(|(n, _, retain)| n == i && *retain) else { return };
            watched[at].2 = false;
            watched[at].1.grad.lock().unwrap_or_else(|e| e.into_inner()).take()
        };
        let slot = LeafSlot { grad: Mutex::new(kept), ..LeafSlot::default() };
        to.watched.lock().unwrap_or_else(|e| e.into_inner()).push((*k, Arc::new(slot), true));
    }
}

/// The accumulated gradient of a leaf.
#[derive(Default)]
pub struct LeafSlot {
    /// The gradient so far.
    pub grad: Mutex<Option<Tensor>>,
    /// Called in order with each gradient.
    pub hooks: Mutex<Vec<Hook>>,
    /// The leaf's global type, to which its gradient is boxed; `None` for a local leaf.
    pub target: Option<GlobalRef>,
    /// Shape and dtype of the leaf.
    pub ty: Option<TensorType>,
    /// The line at which a module replaced the leaf by another tensor; `None` if a module holds the leaf.
    pub replaced: Mutex<Option<CallSite>>,
}

/// A tensor kept for backward.
pub struct Saved {
    /// Data that is kept of the tensor.
    pub kept: SavedData,
    /// The version of the tensor that is kept when it was saved; of no meaning for a packed one.
    pub version: u64,
}

/// Data that is kept of a saved tensor.
pub enum SavedData {
    /// The tensor (for an output: without its edge, which would be a cycle).
    Tensor(Tensor),
    /// The tensor of which it is an unsharded copy that lives for one call: it is gathered once more.
    Gathered(Tensor),
    /// Value that a program's hook made of the tensor.
    Packed(Box<Packed>),
}

/// A saved tensor that a hook has packed.
pub struct Packed {
    /// Value that the hook made.
    pub value: Box<dyn Any + Send + Sync>,
    /// Makes the tensor again.
    pub unpack: Unpack,
    /// Type of the tensor.
    pub ty: Option<TypeRef>,
    /// Where its gradient goes.
    pub edge: Edge,
    /// Name of the scope that packed it, for errors.
    pub by: &'static str,
}

/// Makes a packed tensor again.
pub type Unpack = Arc<dyn Fn(&dyn Any) -> Result<Tensor> + Send + Sync>;

/// One recorded call.
pub struct Node {
    /// Order of creation in this rank. Backward runs nodes in descending order.
    pub ordinal: u64,
    /// The op that was called.
    pub op: &'static Op,
    /// Plan attributes of the call.
    pub attrs: Attrs,
    /// Runtime attributes, drawn seeds included.
    pub runtime: RuntimeAttrs,
    /// Edges of the inputs.
    pub edges: SmallVec<[Edge; 4]>,
    /// Types of the inputs as they were given to the call; `None` for an absent input.
    pub input_types: SmallVec<[Option<TypeRef>; 4]>,
    /// Inputs that the gradient rule reads; freed after backward unless the graph is retained.
    pub inputs: Mutex<Option<SmallVec<[Option<Saved>; 4]>>>,
    /// Outputs that the gradient rule reads.
    pub outputs: Mutex<SmallVec<[Option<Saved>; 2]>>,
    /// Number of outputs; for a call that writes its inputs, the number of tensors written.
    pub n_outputs: usize,
    /// Slots of outputs whose gradient is retained or hooked, by output.
    pub watched: Mutex<Vec<(usize, Arc<LeafSlot>, bool)>>,
    /// Device of the first input; in a local call, of all inputs.
    pub device: Device,
    /// Line of the call.
    pub site: CallSite,
    /// The user's function, if the call is one of `apply_custom`.
    pub custom: Option<Custom>,
    /// Keeps the library of the op from being unloaded.
    _used: Option<OpUse>,
}

/// A user's function with its own backward.
pub struct Custom {
    /// Name of the function, for messages.
    pub name: Arc<str>,
    /// The user's backward function.
    pub backward: CustomBackward,
}

/// A user's backward function: gradients of the outputs → gradients of the inputs.
pub type CustomBackward = Arc<dyn Fn(&[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> + Send + Sync>;

/// Order of creation. Per rank it grows in program order, which is the same on every rank.
static ORDINAL: AtomicU64 = AtomicU64::new(1);

impl Node {
    /// Makes the node of a call of `op` on `device` at `site` with these edges and input types. It saves nothing and has one
    /// output. Its ordinal is larger than those of the nodes that its edges lead to.
    pub fn new(
        op: &'static Op,
        device: Device,
        site: CallSite,
        edges: SmallVec<[Edge; 4]>,
        input_types: SmallVec<[Option<TypeRef>; 4]>,
    ) -> Node {
        Node {
            ordinal: ORDINAL.fetch_add(1, Ordering::Relaxed),
            op,
            attrs: Attrs::new(),
            runtime: RuntimeAttrs::new(),
            edges,
            input_types,
            inputs: Mutex::new(Some(SmallVec::new())),
            outputs: Mutex::default(),
            n_outputs: 1,
            watched: Mutex::default(),
            device,
            site,
            custom: None,
            _used: op.hold(),
        }
    }
    /// An output was changed in place: what was saved of it is not what the call has made.
    pub(crate) fn output_changed(&self, i: usize) {
        let mut outputs = self.outputs.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(saved) = outputs.get_mut(i).and_then(Option::as_mut) {
            saved.version = u64::MAX;
        }
    }
}

/// Parts of a node that are freed with it and may hold further nodes.
enum Fallen {
    Edge(Edge),
    Saved(SavedData),
    Custom(Custom),
    Watched(Arc<LeafSlot>),
}

thread_local! {
    /// What waits to be dropped on this thread: a long chain must not be dropped by recursion. `ManuallyDrop` because a
    /// thread local without a destructor can still be used while the thread's other locals are dropped.
    static FALLEN: RefCell<Option<ManuallyDrop<Queue>>> = const { RefCell::new(None) };
}

/// Nodes to free; those of one node fit in without an allocation.
type Queue = SmallVec<[Fallen; 8]>;

impl Node {
    /// Moves everything that can lead to other nodes into the queue.
    fn take_apart(&mut self, queue: &mut Queue) {
        for edge in std::mem::take(&mut self.edges) {
            if edge.is_some() {
                queue.push(Fallen::Edge(edge));
            }
        }
        let inputs = self.inputs.get_mut().unwrap_or_else(|e| e.into_inner()).take();
        let outputs = std::mem::take(self.outputs.get_mut().unwrap_or_else(|e| e.into_inner()));
        for saved in inputs.into_iter().flatten().flatten() {
            queue.push(Fallen::Saved(saved.kept));
        }
        for saved in outputs.into_iter().flatten() {
            queue.push(Fallen::Saved(saved.kept));
        }
        if let Some(custom) = self.custom.take() {
            queue.push(Fallen::Custom(custom));
        }
        let watched = std::mem::take(self.watched.get_mut().unwrap_or_else(|e| e.into_inner()));
        for (_, slot, _) in watched {
            queue.push(Fallen::Watched(slot));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let outermost = FALLEN.with(|f| {
            let mut f = f.borrow_mut();
            let outermost = f.is_none();
            self.take_apart(f.get_or_insert_with(|| ManuallyDrop::new(Queue::new())));
            outermost
        });
        if !outermost {
            return;
        }
        // Outermost drop on this thread: what falls below lands in the queue instead of the stack.
        while let Some(fallen) = FALLEN.with(|f| f.borrow_mut().as_mut().and_then(|q| q.pop())) {
            match fallen {
                Fallen::Edge(e) => drop(e),
                Fallen::Saved(t) => drop(t),
                Fallen::Custom(c) => drop(c),
                Fallen::Watched(s) => drop(s),
            }
        }
        FALLEN.with(|f| {
            let mut f = f.borrow_mut();
            // Empty; what it took of the heap is given back.
            if let Some(queue) = f.as_mut() {
                queue.shrink_to_fit();
            }
            *f = None;
        });
    }
}
