//! S(d) → P: each rank's part surrounded by the identity of the reduction.

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{MoveCost, Price};
use crate::boxing::rank_step::RankStep;
use crate::boxing::step::{Inner, Move, RankAt, start_in};
use crate::sbp::Sbp;
use oflow_kernels::ReduceOp;

/// S(dim) → P(op): each rank's part surrounded by the identity of `op`. No bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pad {
    /// Mesh axes of the step.
    pub axes: AxisSet,
    /// Tensor dim that is split.
    pub dim: usize,
    /// Reduction of the partial.
    pub op: ReduceOp,
}

impl Move for Pad {
    const LOCAL: bool = true;

    /// An inner sum of identities of max would overflow.
    fn between(axes: AxisSet, ends: (Sbp, Sbp), inner: &Inner<'_>) -> Option<Pad> {
        let (Sbp::Split(dim), Sbp::Partial(op)) = ends else { return None };
        (!inner.splits(dim) && (op == ReduceOp::Sum || !inner.sums())).then_some(Pad { axes, dim, op })
    }

    fn axes(&self) -> AxisSet {
        self.axes
    }

    fn text(&self) -> String {
        format!("pad(dim {}, {})", self.dim, self.op)
    }

    fn symbol(&self) -> &'static str {
        "p"
    }

    /// The result is written.
    fn price(&self, at: &MoveCost<'_>) -> Price {
        at.local(at.elements())
    }

    fn program(&self, here: &RankAt<'_>) -> RankStep {
        let (before, after) = (here.before(), here.after());
        RankStep::Pad { op: self.op, offset: start_in(&before, &after), size: after.size }
    }
}
