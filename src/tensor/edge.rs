//! The autograd graph: nodes, the edges between them, leaf slots. Plain data; the engine is in the interpreter.

use super::handle::Tensor;
use super::types::GlobalRef;
use crate::error::{CallSite, Result};
use crate::ops::{Attrs, Op, RuntimeAttrs, TensorType};
use crate::placement::Device;
use smallvec::SmallVec;
use std::cell::RefCell;
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
    /// The storage's version when it was saved.
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
    /// Number of outputs.
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

thread_local! {
    /// Nodes waiting to be dropped: a long chain must not be dropped by recursion.
    static DOOMED: RefCell<Option<Vec<Edge>>> = const { RefCell::new(None) };
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut edges: Vec<Edge> = std::mem::take(&mut self.edges).into_vec();
        let queued = DOOMED.try_with(|d| match d.borrow_mut().as_mut() {
            Some(q) => {
                q.append(&mut edges);
                true
            }
            None => false,
        });
        if queued == Ok(true) || edges.iter().all(|e| !e.is_some()) {
            return;
        }
        // Outermost drop on this thread: what falls below lands in the queue instead of the stack.
        let _ = DOOMED.try_with(|d| *d.borrow_mut() = Some(edges));
        while let Ok(Some(e)) = DOOMED.try_with(|d| d.borrow_mut().as_mut().and_then(|q| q.pop())) {
            drop(e);
        }
        let _ = DOOMED.try_with(|d| *d.borrow_mut() = None);
    }
}
