//! B → P: copies become contributions.

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{MoveCost, Price};
use crate::boxing::rank_step::RankStep;
use crate::boxing::step::{Inner, Move, RankAt};
use crate::sbp::Sbp;
use oflow_kernels::ReduceOp;

/// B → P(op): for a sum coordinate 0 keeps its copy and the others become zero; for max and min all keep theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Mesh axes of the step.
    pub axes: AxisSet,
    /// Reduction of the partial.
    pub op: ReduceOp,
}

impl Move for Keep {
    const LOCAL: bool = true;

    /// Always legal: inner reductions of zeros are zero, and the maximum of equal values is that value.
    fn between(axes: AxisSet, ends: (Sbp, Sbp), _inner: &Inner<'_>) -> Option<Keep> {
        match ends {
            (Sbp::Broadcast, Sbp::Partial(op)) => Some(Keep { axes, op }),
            _ => None,
        }
    }

    fn axes(&self) -> AxisSet {
        self.axes
    }

    fn text(&self) -> String {
        if self.op == ReduceOp::Sum { "keep-first".into() } else { "keep-all".into() }
    }

    fn symbol(&self) -> &'static str {
        "k"
    }

    /// The result is written.
    fn price(&self, at: &MoveCost<'_>) -> Price {
        at.local(at.elements())
    }

    fn program(&self, here: &RankAt<'_>) -> RankStep {
        if self.op == ReduceOp::Sum && self.axes.iter().any(|a| here.coord[a] != 0) {
            RankStep::Identity { op: self.op, size: here.after().size }
        } else {
            RankStep::Keep
        }
    }
}
