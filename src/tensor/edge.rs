//! The autograd graph: nodes, the edges between them, leaf slots. Plain data; the engine is in the interpreter.

use super::handle::Tensor;
use crate::error::{CallSite, Result};
use crate::ops::{Attrs, Op, RuntimeAttrs, TensorType};
use crate::placement::Device;
use crate::plan::GlobalRef;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Sees a gradient and may replace it.
pub type Hook = Arc<HookFn>;
/// The function of a [`Hook`].
pub type HookFn = dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync;

/// Where a tensor's gradient goes.
#[derive(Clone, Default)]
pub enum Edge {
    /// Nowhere.
    #[default]
    None,
    /// A leaf: it accumulates. Boxed forms of a leaf share its slot.
    Leaf(Arc<LeafSlot>),
    /// Output `1` of a recorded call.
    Node(Arc<Node>, usize),
}

impl Edge {
    /// Whether gradients flow.
    pub fn is_some(&self) -> bool {
        !matches!(self, Edge::None)
    }
    /// Whether both lead to the same place: the same leaf's slot, or the same output of the same recorded call.
    pub fn same(&self, other: &Edge) -> bool {
        match (self, other) {
            (Edge::None, Edge::None) => true,
            (Edge::Leaf(a), Edge::Leaf(b)) => Arc::ptr_eq(a, b),
            (Edge::Node(a, i), Edge::Node(b, k)) => Arc::ptr_eq(a, b) && i == k,
            _ => false,
        }
    }
}

/// Where a leaf's gradient accumulates.
#[derive(Default)]
pub struct LeafSlot {
    /// The gradient so far.
    pub grad: Mutex<Option<Tensor>>,
    /// Called in order with each arriving gradient.
    pub hooks: Mutex<Vec<Hook>>,
    /// The leaf's global type, which its gradient is boxed to; none for a local leaf.
    pub target: Option<GlobalRef>,
    /// Shape and dtype of the leaf.
    pub ty: Option<TensorType>,
    /// Where a module put another tensor in the leaf's place; none once a module holds the leaf again.
    pub replaced: Mutex<Option<CallSite>>,
}

/// A tensor kept for backward.
pub struct Saved {
    /// The tensor (for an output: without its edge, which would be a cycle).
    pub tensor: Tensor,
    /// The tensor's version when it was saved.
    pub version: u64,
}

/// One recorded call.
pub struct Node {
    /// Order of creation in this rank: backward runs it in falling order.
    pub ordinal: u64,
    /// The op.
    pub op: &'static Op,
    /// Plan attributes.
    pub attrs: Attrs,
    /// Runtime attributes, drawn seeds included.
    pub runtime: RuntimeAttrs,
    /// Edges of the inputs.
    pub edges: SmallVec<[Edge; 4]>,
    /// Types of the inputs (absent: none); global ones for a change of placement.
    pub input_types: SmallVec<[Option<TensorType>; 4]>,
    /// Global types of the inputs.
    pub input_globals: SmallVec<[Option<GlobalRef>; 4]>,
    /// Inputs the rule reads; taken away after backward unless the graph is retained.
    pub inputs: Mutex<Option<SmallVec<[Option<Saved>; 4]>>>,
    /// Outputs the rule reads.
    pub outputs: Mutex<SmallVec<[Option<Saved>; 2]>>,
    /// Number of outputs; of a call that writes its inputs, the number of tensors written.
    pub n_outputs: usize,
    /// Slots of outputs whose gradient is retained or hooked, by output.
    pub watched: Mutex<Vec<(usize, Arc<LeafSlot>, bool)>>,
    /// Device of the first input: of all inputs, where the call is local.
    pub device: Device,
    /// The user's line.
    pub site: CallSite,
    /// A user's function; its gradient is the user's code.
    pub custom: Option<Custom>,
}

/// A user's function with a backward of its own.
pub struct Custom {
    /// The name that the user gave it, for messages.
    pub name: Arc<str>,
    /// The backward.
    pub backward: CustomBackward,
}

/// A backward function of the user's: gradients of the outputs → gradients of the inputs.
pub type CustomBackward = Arc<dyn Fn(&[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> + Send + Sync>;

/// Order of creation. Per rank it grows in program order, which is the same on every rank.
static ORDINAL: AtomicU64 = AtomicU64::new(1);

impl Node {
    /// A node of a call of `op` on `device` at `site` with these edges and input types, which saves nothing and has one output.
    ///
    /// The ordinal is drawn here, after the edges: a node is younger than every node that its edges lead to.
    pub fn new(
        op: &'static Op,
        device: Device,
        site: CallSite,
        edges: SmallVec<[Edge; 4]>,
        input_types: SmallVec<[Option<TensorType>; 4]>,
    ) -> Node {
        Node {
            ordinal: ORDINAL.fetch_add(1, Ordering::Relaxed),
            op,
            attrs: Attrs::new(),
            runtime: RuntimeAttrs::new(),
            input_globals: SmallVec::from_elem(None, edges.len()),
            edges,
            input_types,
            inputs: Mutex::new(Some(SmallVec::new())),
            outputs: Mutex::default(),
            n_outputs: 1,
            watched: Mutex::default(),
            device,
            site,
            custom: None,
        }
    }
}

/// What falls with a node and may hold further nodes.
enum Fallen {
    Edge(Edge),
    Saved(Tensor),
    Custom(Custom),
    Watched(Arc<LeafSlot>),
}

thread_local! {
    /// What waits to be dropped on this thread: a long chain must not be dropped by recursion. `ManuallyDrop` because a
    /// thread local without a destructor can still be used while the thread's other locals are dropped.
    static FALLEN: RefCell<Option<ManuallyDrop<Vec<Fallen>>>> = const { RefCell::new(None) };
}

impl Node {
    /// Moves everything that can lead to other nodes into the queue.
    fn take_apart(&mut self, queue: &mut Vec<Fallen>) {
        let edges = std::mem::take(&mut self.edges).into_iter();
        queue.extend(edges.filter(|e| e.is_some()).map(Fallen::Edge));
        let inputs = self.inputs.get_mut().unwrap_or_else(|e| e.into_inner()).take().into_iter().flatten();
        let outputs = std::mem::take(self.outputs.get_mut().unwrap_or_else(|e| e.into_inner()));
        queue.extend(inputs.chain(outputs).flatten().map(|s| Fallen::Saved(s.tensor)));
        queue.extend(self.custom.take().map(Fallen::Custom));
        let watched = std::mem::take(self.watched.get_mut().unwrap_or_else(|e| e.into_inner()));
        queue.extend(watched.into_iter().map(|(_, slot, _)| Fallen::Watched(slot)));
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let outermost = FALLEN.with(|f| match f.borrow_mut().as_mut() {
            Some(queue) => {
                self.take_apart(queue);
                false
            }
            None => true,
        });
        if !outermost {
            return;
        }
        let mut first = Vec::new();
        self.take_apart(&mut first);
        if first.is_empty() {
            return;
        }
        // Outermost drop on this thread: what falls below lands in the queue instead of the stack.
        FALLEN.with(|f| *f.borrow_mut() = Some(ManuallyDrop::new(first)));
        while let Some(fallen) = FALLEN.with(|f| f.borrow_mut().as_mut().and_then(|q| q.pop())) {
            match fallen {
                Fallen::Edge(e) => drop(e),
                Fallen::Saved(t) => drop(t),
                Fallen::Custom(c) => drop(c),
                Fallen::Watched(s) => drop(s),
            }
        }
        let empty = FALLEN.with(|f| f.borrow_mut().take());
        drop(empty.map(ManuallyDrop::into_inner));
    }
}
