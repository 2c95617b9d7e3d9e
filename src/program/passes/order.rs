//! Order: a call that ends more memory than it makes comes before calls that do not need it, where most bytes are in use.
//!
//! In a backward pass the gradient of a weight frees an activation and makes little; made first, the activation is gone before the
//! gradient by the activation, which is as large, is there.

use super::super::types::{Program, ValueId, Work};
use super::liveness::{Liveness, Sizes};

/// How many calls are moved at most.
const MOVES: usize = 256;

/// Moves calls up as long as the peak falls.
pub(super) fn order(program: &mut Program) {
    let mut sizes = Sizes::default();
    let mut live = Liveness::of(program, &mut sizes);
    for _ in 0..MOVES {
        let Some(moved) = Moves::new(program, &live).best() else { return };
        let mut tried = program.clone();
        moved.apply(&mut tried);
        let after = Liveness::of(&tried, &mut sizes);
        // As many bytes may be in use in several nodes.
        let most = |l: &Liveness| (l.peak.1, l.used.iter().filter(|u| **u == l.peak.1).count());
        if most(&after) >= most(&live) {
            return;
        }
        (*program, live) = (tried, after);
    }
}

/// A call that moves up.
struct Move {
    /// Windows that it reads and that are made in between, and the call itself, in order.
    nodes: Vec<usize>,
    /// Before this node.
    to: usize,
}

impl Move {
    fn apply(&self, program: &mut Program) {
        let moved: Vec<_> = self.nodes.iter().rev().map(|n| program.nodes.remove(*n)).collect();
        for node in moved {
            program.nodes.insert(self.to, node);
        }
    }
}

struct Moves<'a> {
    program: &'a Program,
    live: &'a Liveness,
    /// The node that defines each value; none of one from outside.
    defined: Vec<Option<usize>>,
}

impl<'a> Moves<'a> {
    fn new(program: &'a Program, live: &'a Liveness) -> Moves<'a> {
        let mut defined = vec![None; program.values.len()];
        for (n, node) in program.nodes.iter().enumerate() {
            node.defines().for_each(|v| defined[v.index()] = Some(n));
        }
        Moves { program, live, defined }
    }

    /// The move that frees most at the peak: of the call there, or of a later one.
    fn best(&self) -> Option<Move> {
        let peak = self.live.peak.0;
        let mut best: Option<(usize, Move)> = None;
        for n in peak..self.program.nodes.len() {
            if !self.may_move(n) {
                continue;
            }
            let made: usize = self.program.nodes[n].outputs.iter().map(|v| self.live.pieces[v.index()].bytes).sum();
            let (ended, last) = self.ended(n, peak);
            if ended <= made {
                continue;
            }
            let mut nodes = vec![];
            let to = self.ready(n, &mut nodes).max(last);
            // It makes its result while what it ends is there still.
            let fits = self.live.before[to] + made <= self.live.peak.1;
            if to <= peak && to < n && fits && best.as_ref().is_none_or(|(most, _)| ended - made > *most) {
                nodes.push(n);
                nodes.retain(|k| *k >= to);
                nodes.sort_unstable();
                nodes.dedup();
                best = Some((ended - made, Move { nodes, to }));
            }
        }
        best.map(|(_, m)| m)
    }

    /// Whether a call may be made earlier: it writes nothing, and no rank exchanges anything for it.
    fn may_move(&self, n: usize) -> bool {
        let node = &self.program.nodes[n];
        let Work::Call(call) = &node.work else { return false };
        let plain = !call.op.traits.side_effect && call.host.is_none() && call.op.layout.is_none();
        plain && node.writes.is_empty() && node.guard.is_none()
    }

    /// Bytes that node `n` ends if it stands before node `to`, and the node after their other uses.
    fn ended(&self, n: usize, to: usize) -> (usize, usize) {
        let node = &self.program.nodes[n];
        let mut roots: Vec<ValueId> = node.inputs.iter().flatten().map(|v| self.live.root[v.index()]).collect();
        roots.sort_unstable();
        roots.dedup();
        let mut all = (0, 0);
        for piece in roots.iter().map(|r| &self.live.pieces[r.index()]) {
            let after = piece.uses.iter().chain(&piece.writes).filter(|u| **u != n).map(|u| u + 1).max().unwrap_or(0);
            if piece.made.is_some() && piece.last() == n && after <= to {
                all = (all.0 + piece.bytes, all.1.max(after));
            }
        }
        all
    }

    /// The first node before which `n` may stand, and the windows that would have to move with it.
    fn ready(&self, n: usize, windows: &mut Vec<usize>) -> usize {
        let (mut first, mut open) = (0, vec![n]);
        while let Some(n) = open.pop() {
            for v in self.program.nodes[n].needs() {
                let Some(at) = self.defined[v.index()] else { continue };
                let is_window = self.live.root[v.index()] != v && self.program.nodes[at].writes.is_empty();
                if is_window {
                    windows.push(at);
                    open.push(at);
                } else {
                    first = first.max(at + 1);
                }
            }
        }
        first
    }
}
