//! The moves that plans are made of, and when each keeps the logical value.
//!
//! Along one mesh axis, or along several at once that all have the same SBP before and get the same after:
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
//! "Inner" means: inside the outermost axis of the move and not part of it. The members of a move along several axes are
//! in row-major order of their coordinates, so their parts of a dim are consecutive; they are those of the *nested* split,
//! which for uneven sizes is not the flat split into as many parts.
//!
//! Everything else goes in several moves or through the exchange (`exchange.rs`), which is always legal. Towards another
//! mesh there is also the broadcast: what the corner of the mesh (coordinate 0 of some axes) has gets everywhere along
//! these axes.

use crate::placement::{MeshAxis, Placement};
use crate::sbp::Layout;
use crate::sbp::Sbp;
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
    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The axes, outermost first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        (0..64).filter(move |a| self.contains(*a))
    }
    /// The outermost axis.
    pub(super) fn first(self) -> usize {
        self.0.trailing_zeros() as usize
    }
    /// The number of ranks in a group along these axes of a mesh.
    pub fn group_size(self, dims: &[usize]) -> usize {
        self.iter().take_while(|a| *a < dims.len()).map(|a| dims[a]).product()
    }
}

impl From<MeshAxis> for AxisSet {
    fn from(a: MeshAxis) -> AxisSet {
        AxisSet(1 << a.0)
    }
}

impl FromIterator<usize> for AxisSet {
    fn from_iter<I: IntoIterator<Item = usize>>(axes: I) -> AxisSet {
        AxisSet(axes.into_iter().fold(0, |s, a| s | 1 << a))
    }
}

/// Operation of a boxing step. Everything but the exchange changes the SBP of one or several mesh axes, all from the same to
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOp {
    /// B → S(dim): each rank keeps its part. No bytes move.
    Slice {
        /// Mesh axes of the step.
        axes: AxisSet,
        /// Tensor dim that is split.
        dim: usize,
    },
    /// S(dim) → P(op): each rank's part surrounded by the identity of `op`. No bytes move.
    Pad {
        /// Mesh axes of the step.
        axes: AxisSet,
        /// Tensor dim that is split.
        dim: usize,
        /// Reduction of the partial.
        op: ReduceOp,
    },
    /// B → P(op): for a sum coordinate 0 keeps its copy and the others become zero; for max and min all keep theirs.
    Keep {
        /// Mesh axes of the step.
        axes: AxisSet,
        /// Reduction of the partial.
        op: ReduceOp,
    },
    /// P(op) → B: every rank receives the reduction over the axes.
    AllReduce {
        /// Mesh axes of the step.
        axes: AxisSet,
        /// Reduction of the partial.
        op: ReduceOp,
    },
    /// S(dim) → B: every rank receives all parts of the dim.
    AllGather {
        /// Mesh axes of the step.
        axes: AxisSet,
        /// Tensor dim that is split.
        dim: usize,
    },
    /// P(op) → S(dim): each rank receives its part of the reduction.
    ReduceScatter {
        /// Mesh axes of the step.
        axes: AxisSet,
        /// Reduction of the partial.
        op: ReduceOp,
        /// Tensor dim that is split.
        dim: usize,
    },
    /// S(from) → S(to): each rank sends its part of dim `to` to the rank that holds it after.
    AllToAll {
        /// Mesh axes of the step.
        axes: AxisSet,
        /// Tensor dim that is split before.
        from: usize,
        /// Tensor dim that is split after.
        to: usize,
    },
    /// From the ranks at coordinate 0 of these axes to the whole mesh, which is B along them.
    Broadcast {
        /// Mesh axes of the destination.
        axes: AxisSet,
    },
    /// Any layout → any layout: each rank sends the intersections of its box with the receivers' boxes; P contributions
    /// are reduced at the receiver, inner mesh axis first, in order of coordinates.
    Exchange {
        /// Axes that are partial before and after, and stay so: the exchange runs within each of their coordinates.
        kept: AxisSet,
        /// Whether the device kind changes.
        device_copy: bool,
    },
}

/// One step of a plan with the layouts around it.
#[derive(Clone, Debug)]
pub struct BoxingStep {
    /// Operation of the step, with its mesh axes.
    pub op: StepOp,
    /// Layout before the step.
    pub before: Layout,
    /// Layout after the step.
    pub after: Layout,
    /// Predicted time in picoseconds.
    pub cost_ps: u64,
}

/// `dp`, `dp+tp`, `axis 1`.
pub(super) fn axis_names(p: &Placement, axes: AxisSet) -> String {
    let name = |a: usize| p.names()[a].clone().unwrap_or_else(|| format!("axis {a}"));
    axes.iter().map(name).collect::<Vec<_>>().join("+")
}

impl fmt::Display for BoxingStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &self.after.placement;
        let along = |axes| axis_names(p, axes);
        match self.op {
            StepOp::Slice { axes, dim } => write!(f, "slice(dim {dim}) along {}", along(axes))?,
            StepOp::Pad { axes, dim, op } => write!(f, "pad(dim {dim}, {op}) along {}", along(axes))?,
            StepOp::Keep { axes, op: ReduceOp::Sum } => write!(f, "keep-first along {}", along(axes))?,
            StepOp::Keep { axes, .. } => write!(f, "keep-all along {}", along(axes))?,
            StepOp::AllReduce { axes, op } => write!(f, "all-reduce({op}) along {}", along(axes))?,
            StepOp::AllGather { axes, dim } => write!(f, "all-gather(dim {dim}) along {}", along(axes))?,
            StepOp::ReduceScatter { axes, op, dim } => {
                write!(f, "reduce-scatter({op}, dim {dim}) along {}", along(axes))?
            }
            StepOp::AllToAll { axes, from, to } => write!(f, "all-to-all(dim {from} to {to}) along {}", along(axes))?,
            StepOp::Broadcast { axes } => write!(f, "broadcast along {}", along(axes))?,
            StepOp::Exchange { kept, device_copy } => {
                f.write_str(if device_copy { "exchange and copy to device" } else { "exchange" })?;
                if !kept.is_empty() {
                    write!(f, " within {}", along(kept))?;
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

/// True when an axis inside `axis` is partial with another reduction.
pub(super) fn inner_other_partial(dims: &[usize], sbp: &[Sbp], axis: usize, op: ReduceOp) -> bool {
    (axis + 1..dims.len()).any(|b| dims[b] > 1 && sbp[b].partial_op().is_some_and(|o| o != op))
}

/// The move that changes the SBP of `axes`, which is the same on all of them, into `to` on a mesh of sizes `dims`, if
/// there is a legal one.
pub(super) fn move_along(dims: &[usize], sbp: &[Sbp], axes: AxisSet, to: Sbp) -> Option<StepOp> {
    use Sbp::{Broadcast as B, Partial as P, Split as S};
    let first = axes.first();
    let inner =
        |bad: &dyn Fn(Sbp) -> bool| (first + 1..dims.len()).any(|b| dims[b] > 1 && !axes.contains(b) && bad(sbp[b]));
    let splits = |d| inner(&|s| s == S(d));
    let clash = |op| inner(&|s| s.partial_op().is_some_and(|o| o != op));
    let inner_sum = || inner(&|s| s == Sbp::PARTIAL_SUM);
    let (op, legal) = match (sbp[first], to) {
        (B, S(dim)) => (StepOp::Slice { axes, dim }, !splits(dim)),
        (B, P(op)) => (StepOp::Keep { axes, op }, true),
        (S(dim), P(op)) => (StepOp::Pad { axes, dim, op }, !splits(dim) && (op == ReduceOp::Sum || !inner_sum())),
        (P(op), B) => (StepOp::AllReduce { axes, op }, !clash(op)),
        (P(op), S(dim)) => (StepOp::ReduceScatter { axes, op, dim }, !clash(op) && !splits(dim)),
        (S(dim), B) => (StepOp::AllGather { axes, dim }, !splits(dim)),
        (S(from), S(to)) if from != to => (StepOp::AllToAll { axes, from, to }, !splits(from) && !splits(to)),
        _ => return None,
    };
    legal.then_some(op)
}
