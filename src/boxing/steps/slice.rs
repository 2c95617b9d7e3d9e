//! B → S(d): each rank keeps its part.

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{MoveCost, Price};
use crate::boxing::rank_step::RankStep;
use crate::boxing::step::{Inner, Move, RankAt, start_in};
use crate::sbp::Sbp;

/// B → S(dim): each rank keeps its part. No bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Mesh axes of the step.
    pub axes: AxisSet,
    /// Tensor dim that is split.
    pub dim: usize,
}

impl Move for Slice {
    const LOCAL: bool = true;

    fn between(axes: AxisSet, ends: (Sbp, Sbp), inner: &Inner<'_>) -> Option<Slice> {
        match ends {
            (Sbp::Broadcast, Sbp::Split(dim)) if !inner.splits(dim) => Some(Slice { axes, dim }),
            _ => None,
        }
    }

    fn axes(&self) -> AxisSet {
        self.axes
    }

    fn text(&self) -> String {
        format!("slice(dim {})", self.dim)
    }

    fn symbol(&self) -> &'static str {
        "s"
    }

    /// The result is written.
    fn price(&self, at: &MoveCost<'_>) -> Price {
        at.local(at.largest(self.dim))
    }

    fn program(&self, here: &RankAt<'_>) -> RankStep {
        let (before, after) = (here.before(), here.after());
        RankStep::Slice { offset: start_in(&after, &before), size: after.size }
    }
}
