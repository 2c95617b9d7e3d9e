//! The moves that plans are made of, and when each keeps the logical value.
//!
//! Along one mesh axis:
//!
//! | from → to | move | legal if (axes of size 1 never count) |
//! |---|---|---|
//! | B → S(d) | slice | no inner axis splits d |
//! | B → P(sum) | coordinate 0 keeps, the others become zero | always: inner reductions of zeros are zero |
//! | B → P(max), P(min) | all keep | always: the reduction of equal values is that value |
//! | S(d) → P(op) | pad with op's identity | no inner axis splits d; no inner P(sum) unless op is sum: an inner sum of identities of max would overflow |
//! | P(op) → B | all-reduce | every inner P is of the same op: inner axes are reduced first, only equal ops commute |
//! | P(op) → S(d) | reduce-scatter | as above, and no inner axis splits d |
//! | S(d) → B | all-gather | no inner axis splits d |
//! | S(d) → S(e) | all-to-all | no inner axis splits d or e |
//!
//! Everything else goes in two moves or through the exchange (`exchange.rs`), which is always legal.

use super::plan::Layout;
use crate::placement::{MeshAxis, Placement};
use crate::sbp::{NdSbp, Sbp};
use oflow_kernels::ReduceOp;
use std::fmt;

/// A set of mesh axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AxisSet(u64);

impl AxisSet {
    /// Adds an axis.
    pub fn insert(&mut self, axis: usize) {
        self.0 |= 1 << axis;
    }
    /// True when the axis is in the set.
    pub fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }
    /// True when no axis is.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What a step does. Everything but the exchange changes the SBP of one mesh axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOp {
    /// B → S(dim): each rank keeps its part. No bytes move.
    Slice {
        /// Mesh axis.
        axis: MeshAxis,
        /// Tensor dim.
        dim: usize,
    },
    /// S(dim) → P(op): each rank's part surrounded by the identity of `op`. No bytes move.
    Pad {
        /// Mesh axis.
        axis: MeshAxis,
        /// Tensor dim.
        dim: usize,
        /// Which partial.
        op: ReduceOp,
    },
    /// B → P(op): for a sum coordinate 0 keeps its copy and the others become zero; for max and min all keep theirs.
    Keep {
        /// Mesh axis.
        axis: MeshAxis,
        /// Which partial.
        op: ReduceOp,
    },
    /// P(op) → B.
    AllReduce {
        /// Mesh axis.
        axis: MeshAxis,
        /// Which partial.
        op: ReduceOp,
    },
    /// S(dim) → B.
    AllGather {
        /// Mesh axis.
        axis: MeshAxis,
        /// Tensor dim.
        dim: usize,
    },
    /// P(op) → S(dim).
    ReduceScatter {
        /// Mesh axis.
        axis: MeshAxis,
        /// Which partial.
        op: ReduceOp,
        /// Tensor dim.
        dim: usize,
    },
    /// S(from) → S(to).
    AllToAll {
        /// Mesh axis.
        axis: MeshAxis,
        /// Dim that was split.
        from: usize,
        /// Dim that becomes split.
        to: usize,
    },
    /// Any layout → any layout: each rank sends the intersections of its box with the receivers' boxes; P contributions
    /// are reduced at the receiver, inner mesh axis first, in order of coordinates.
    Exchange {
        /// Axes that are partial before and after, and stay so: the exchange runs within each of their coordinates.
        kept: AxisSet,
        /// The device kind changes.
        device_copy: bool,
    },
}

/// One step of a plan with the layouts around it.
#[derive(Clone, Debug)]
pub struct BoxingStep {
    /// What it does.
    pub op: StepOp,
    /// Layout before.
    pub before: Layout,
    /// Layout after.
    pub after: Layout,
    /// Price in picoseconds.
    pub cost_ps: u64,
}

fn axis_name(p: &Placement, axis: MeshAxis) -> String {
    match &p.names()[axis.0] {
        Some(name) => name.clone(),
        None => format!("axis {}", axis.0),
    }
}

impl fmt::Display for BoxingStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &self.before.placement;
        let along = |axis| axis_name(p, axis);
        match self.op {
            StepOp::Slice { axis, dim } => write!(f, "slice(dim {dim}) along {}", along(axis))?,
            StepOp::Pad { axis, dim, op } => write!(f, "pad(dim {dim}, {op}) along {}", along(axis))?,
            StepOp::Keep { axis, op: ReduceOp::Sum } => write!(f, "keep-first along {}", along(axis))?,
            StepOp::Keep { axis, .. } => write!(f, "keep-all along {}", along(axis))?,
            StepOp::AllReduce { axis, op } => write!(f, "all-reduce({op}) along {}", along(axis))?,
            StepOp::AllGather { axis, dim } => write!(f, "all-gather(dim {dim}) along {}", along(axis))?,
            StepOp::ReduceScatter { axis, op, dim } => {
                write!(f, "reduce-scatter({op}, dim {dim}) along {}", along(axis))?
            }
            StepOp::AllToAll { axis, from, to } => write!(f, "all-to-all(dim {from} to {to}) along {}", along(axis))?,
            StepOp::Exchange { kept, device_copy } => {
                f.write_str(if device_copy { "exchange and copy to device" } else { "exchange" })?;
                for a in (0..p.axes()).filter(|a| kept.contains(*a)) {
                    write!(f, " within {}", along(MeshAxis(a)))?;
                }
            }
        }
        write!(f, ": {} -> {}", self.before.sbp, self.after.sbp)?;
        if self.before.placement != self.after.placement {
            write!(f, " on {}", self.after.placement)?;
        }
        Ok(())
    }
}

/// True when an axis inside `axis` splits `dim`.
fn inner_splits(dims: &[usize], sbp: &NdSbp, axis: usize, dim: usize) -> bool {
    (axis + 1..dims.len()).any(|b| dims[b] > 1 && sbp[b] == Sbp::Split(dim))
}

/// True when an axis inside `axis` is partial with another reduction.
pub(super) fn inner_other_partial(dims: &[usize], sbp: &NdSbp, axis: usize, op: ReduceOp) -> bool {
    (axis + 1..dims.len()).any(|b| dims[b] > 1 && sbp[b].partial_op().is_some_and(|o| o != op))
}

/// The move that changes `sbp[axis]` into `to` on a mesh of sizes `dims`, if there is a legal one.
pub(super) fn move_along(dims: &[usize], sbp: &NdSbp, axis: usize, to: Sbp) -> Option<StepOp> {
    use Sbp::{Broadcast as B, Partial as P, Split as S};
    let splits = |d| inner_splits(dims, sbp, axis, d);
    let clash = |op| inner_other_partial(dims, sbp, axis, op);
    let inner_sum = || (axis + 1..dims.len()).any(|b| dims[b] > 1 && sbp[b] == Sbp::PARTIAL_SUM);
    let a = MeshAxis(axis);
    let (op, legal) = match (sbp[axis], to) {
        (B, S(d)) => (StepOp::Slice { axis: a, dim: d }, !splits(d)),
        (B, P(op)) => (StepOp::Keep { axis: a, op }, true),
        (S(d), P(op)) => (StepOp::Pad { axis: a, dim: d, op }, !splits(d) && (op == ReduceOp::Sum || !inner_sum())),
        (P(op), B) => (StepOp::AllReduce { axis: a, op }, !clash(op)),
        (P(op), S(d)) => (StepOp::ReduceScatter { axis: a, op, dim: d }, !clash(op) && !splits(d)),
        (S(d), B) => (StepOp::AllGather { axis: a, dim: d }, !splits(d)),
        (S(d), S(e)) if d != e => (StepOp::AllToAll { axis: a, from: d, to: e }, !splits(d) && !splits(e)),
        _ => return None,
    };
    legal.then_some(op)
}
