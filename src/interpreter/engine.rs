//! The engine of backward, over opaque values: counting, order, accumulation, hooks and buckets. It names no tensor, so a
//! program that is run and one that is written down are differentiated by the same code.
//!
//! **Order** (I9). Every node that the outputs lead to stands on the agenda, by ordinal. A node is younger than the nodes
//! its edges lead to, so taken in falling order each is complete when it is taken: nothing waits for a contribution.
//!
//! **Settling.** Each edge of a node is settled exactly once: with a gradient, or without one where the rule gives none or
//! where no gradient has reached the node. A leaf is complete when all edges that lead to it are settled, no earlier and no
//! later; then it is boxed home, large gradients at once, small ones in buckets.

use crate::error::Result;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Destination of an edge.
pub(super) enum EdgeTo<N, L> {
    /// No gradient is wanted.
    Nowhere,
    /// A leaf.
    Leaf(L),
    /// That output of a node.
    Node(N, usize),
}

/// Gradients of the outputs of a node, by output.
pub(super) type Grads<V> = SmallVec<[Option<V>; 2]>;

/// The complete gradient of a leaf, in the layout of the leaf or not.
pub(super) enum LeafGrad<V> {
    /// Already in the leaf's layout.
    Ready(V),
    /// Gradient that must be boxed to the leaf's layout, with its bytes.
    NeedsBoxing(V, usize),
}

/// A graph of recorded calls as backward walks it, and the operations on its values.
pub(super) trait BackwardGraph {
    type Value;
    type Node: Clone;
    type Leaf: Clone;

    /// Order of creation; greater than that of every node that the edges lead to.
    fn ordinal(&self, node: &Self::Node) -> u64;
    fn outputs(&self, node: &Self::Node) -> usize;
    fn edges(&self, node: &Self::Node) -> usize;
    fn edge(&self, node: &Self::Node, i: usize) -> EdgeTo<Self::Node, Self::Leaf>;
    /// A number that no other leaf has.
    fn leaf_id(&self, leaf: &Self::Leaf) -> usize;

    /// The sum of two contributions to the gradient of a leaf, or of an output of `node`.
    fn add(&mut self, node: Option<&Self::Node>, a: Self::Value, b: Self::Value) -> Result<Self::Value>;
    /// The node's gradients are complete: hooks see them and may replace them.
    fn hook_node(&mut self, node: &Self::Node, grads: &mut Grads<Self::Value>) -> Result<()>;
    /// The same for a leaf's gradient.
    fn hook_leaf(&mut self, leaf: &Self::Leaf, grad: Self::Value) -> Result<Self::Value>;
    /// The gradients of the node's inputs; what is missing at the end counts as none.
    fn rule(&mut self, node: &Self::Node, grads: Grads<Self::Value>) -> Result<Vec<Option<Self::Value>>>;

    /// How a leaf's complete gradient gets its layout.
    fn to_leaf_layout(&mut self, leaf: &Self::Leaf, grad: Self::Value) -> Result<LeafGrad<Self::Value>>;
    /// Boxes one gradient.
    fn box_one(&mut self, leaf: &Self::Leaf, grad: Self::Value) -> Result<Self::Value>;
    /// Boxes gradients together, in their order.
    fn box_together(&mut self, all: &[(Self::Leaf, Self::Value)]) -> Result<Vec<Self::Value>>;
    /// Takes a leaf's gradient, complete and in its layout.
    fn store(&mut self, leaf: &Self::Leaf, grad: Self::Value) -> Result<()>;
}

/// Gradients of at most this many bytes are boxed together: alone, each would be mostly latency.
pub(super) const SMALL: usize = 64 << 10;
/// Gradients that wait for others until they are so many bytes.
pub(super) const BUCKET: usize = 1 << 20;

/// A leaf that is not complete: edges that are not settled, and the sum so far.
struct Awaited<V> {
    edges: usize,
    sum: Option<V>,
}

/// The only leaves, by id, and nodes, by ordinal, whose gradients are wanted. Calls that lead to none of them are passed over, and so are their
/// hooks and the boxings of other leaves.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) leaves: BTreeSet<usize>,
    pub(super) nodes: BTreeSet<u64>,
}

struct Engine<'a, T: BackwardGraph> {
    graph: &'a mut T,
    agenda: BTreeMap<u64, (T::Node, Grads<T::Value>)>,
    /// By leaf id; looked up, never iterated.
    leaves: BTreeMap<usize, Awaited<T::Value>>,
    /// Complete gradients that are boxed together; in order of completion, the same on every rank.
    bucket: Vec<(T::Leaf, T::Value)>,
    bucket_bytes: usize,
    /// Ordinals of the nodes whose rules are run; `None` for all.
    leading: Option<BTreeSet<u64>>,
}

/// An output of the program, and the gradient that backward starts from there.
pub(super) type Start<T> =
    (EdgeTo<<T as BackwardGraph>::Node, <T as BackwardGraph>::Leaf>, <T as BackwardGraph>::Value);

/// Runs backward from outputs with their gradients, to all leaves or to what is chosen.
pub(super) fn run<T: BackwardGraph>(graph: &mut T, outputs: Vec<Start<T>>, chosen: Option<&Chosen>) -> Result<()> {
    let (agenda, leaves) = (BTreeMap::new(), BTreeMap::new());
    let mut e = Engine { graph, agenda, leaves, bucket: vec![], bucket_bytes: 0, leading: None };
    outputs.iter().for_each(|(link, _)| e.count(link));
    if let Some(chosen) = chosen {
        e.keep(chosen);
    }
    for (link, g) in outputs {
        e.settle(&link, Some(g))?;
    }
    while let Some((_, (node, grads))) = e.agenda.pop_last() {
        e.node(&node, grads)?;
    }
    e.flush()
}

impl<T: BackwardGraph> Engine<'_, T> {
    /// Puts every node that an edge leads to on the agenda, and counts the edges that lead to each leaf.
    fn count(&mut self, from: &EdgeTo<T::Node, T::Leaf>) {
        let mut stack: Vec<T::Node> = vec![];
        self.reach(from, &mut stack);
        while let Some(node) = stack.pop() {
            for i in 0..self.graph.edges(&node) {
                let link = self.graph.edge(&node, i);
                self.reach(&link, &mut stack);
            }
        }
    }

    fn reach(&mut self, link: &EdgeTo<T::Node, T::Leaf>, stack: &mut Vec<T::Node>) {
        match link {
            EdgeTo::Nowhere => {}
            EdgeTo::Leaf(leaf) => {
                let id = self.graph.leaf_id(leaf);
                self.leaves.entry(id).or_insert(Awaited { edges: 0, sum: None }).edges += 1;
            }
            EdgeTo::Node(node, _) => {
                let outputs = self.graph.outputs(node);
                self.agenda.entry(self.graph.ordinal(node)).or_insert_with(|| {
                    stack.push(node.clone());
                    (node.clone(), (0..outputs).map(|_| None).collect())
                });
            }
        }
    }

    /// Drops from agenda and leaves what leads to nothing that is chosen: it is settled by nobody.
    fn keep(&mut self, chosen: &Chosen) {
        self.leaves.retain(|id, _| chosen.leaves.contains(id));
        let mut leading = BTreeSet::new();
        // From the oldest on: the edges of a node lead to older ones.
        for (ordinal, (node, _)) in &self.agenda {
            let leads = (0..self.graph.edges(node)).any(|i| match self.graph.edge(node, i) {
                EdgeTo::Nowhere => false,
                EdgeTo::Leaf(leaf) => chosen.leaves.contains(&self.graph.leaf_id(&leaf)),
                EdgeTo::Node(older, _) => {
                    let older = self.graph.ordinal(&older);
                    leading.contains(&older) || chosen.nodes.contains(&older)
                }
            });
            if leads {
                leading.insert(*ordinal);
            }
        }
        self.agenda.retain(|ordinal, _| leading.contains(ordinal) || chosen.nodes.contains(ordinal));
        self.leading = Some(leading);
    }

    fn node(&mut self, node: &T::Node, mut grads: Grads<T::Value>) -> Result<()> {
        let mut found = vec![];
        if grads.iter().any(|g| g.is_some()) {
            self.graph.hook_node(node, &mut grads)?;
            if self.leading.as_ref().is_some_and(|l| !l.contains(&self.graph.ordinal(node))) {
                return Ok(());
            }
            found = self.graph.rule(node, grads)?;
        }
        let mut found = found.into_iter();
        for i in 0..self.graph.edges(node) {
            let link = self.graph.edge(node, i);
            self.settle(&link, found.next().flatten())?;
        }
        Ok(())
    }

    /// Settles an edge: adds its gradient, if any, to the destination.
    fn settle(&mut self, link: &EdgeTo<T::Node, T::Leaf>, g: Option<T::Value>) -> Result<()> {
        match (link, g) {
            (EdgeTo::Nowhere, _) | (EdgeTo::Node(..), None) => Ok(()),
            (EdgeTo::Node(node, output), Some(g)) => {
                // On the agenda since `count`, unless nothing chosen is below it: its ordinal is below that of the node that sends.
                let Some((_, grads)) = self.agenda.get_mut(&self.graph.ordinal(node)) else { return Ok(()) };
                let old = grads[*output].take();
                let sum = match old {
                    None => g,
                    Some(old) => self.graph.add(Some(node), old, g)?,
                };
                if let Some((_, grads)) = self.agenda.get_mut(&self.graph.ordinal(node)) {
                    grads[*output] = Some(sum);
                }
                Ok(())
            }
            (EdgeTo::Leaf(leaf), g) => {
                let id = self.graph.leaf_id(leaf);
                let Some(awaited) = self.leaves.get_mut(&id) else { return Ok(()) };
                awaited.edges -= 1;
                let last = awaited.edges == 0;
                let sum = match (awaited.sum.take(), g) {
                    (Some(old), Some(g)) => Some(self.graph.add(None, old, g)?),
                    (old, g) => old.or(g),
                };
                match sum {
                    Some(sum) if last => self.complete(leaf, sum),
                    sum => {
                        if let Some(awaited) = self.leaves.get_mut(&id) {
                            awaited.sum = sum;
                        }
                        Ok(())
                    }
                }
            }
        }
    }

    /// A leaf's gradient is complete: it is boxed to the leaf's layout, at once or with others.
    fn complete(&mut self, leaf: &T::Leaf, g: T::Value) -> Result<()> {
        let g = self.graph.hook_leaf(leaf, g)?;
        match self.graph.to_leaf_layout(leaf, g)? {
            LeafGrad::Ready(g) => self.graph.store(leaf, g),
            LeafGrad::NeedsBoxing(g, bytes) if bytes > SMALL => {
                let g = self.graph.box_one(leaf, g)?;
                self.graph.store(leaf, g)
            }
            LeafGrad::NeedsBoxing(g, bytes) => {
                self.bucket.push((leaf.clone(), g));
                self.bucket_bytes += bytes;
                if self.bucket_bytes < BUCKET { Ok(()) } else { self.flush() }
            }
        }
    }

    /// Boxes the gradients that wait for each other.
    fn flush(&mut self) -> Result<()> {
        self.bucket_bytes = 0;
        let all = std::mem::take(&mut self.bucket);
        if all.is_empty() {
            return Ok(());
        }
        let boxed = self.graph.box_together(&all)?;
        all.iter().zip(boxed).try_for_each(|((leaf, _), g)| self.graph.store(leaf, g))
    }
}

#[cfg(test)]
mod tests;
