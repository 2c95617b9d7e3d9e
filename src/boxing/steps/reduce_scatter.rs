//! P → S(d): each rank receives its part of the reduction.

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{Algorithm, MoveCost, Price};
use crate::boxing::rank_step::{GroupOp, RankCollective, RankStep};
use crate::boxing::sizes::count;
use crate::boxing::step::{Inner, Move, RankAt, elements, packs};
use crate::sbp::Sbp;
use oflow_base::host_hierarchy::FlowKind;
use oflow_kernels::ReduceOp;

/// P(op) → S(dim): each rank receives its part of the reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReduceScatter {
    /// Mesh axes of the step.
    pub axes: AxisSet,
    /// Reduction of the partial.
    pub op: ReduceOp,
    /// Tensor dim that is split.
    pub dim: usize,
}

impl Move for ReduceScatter {
    fn between(axes: AxisSet, ends: (Sbp, Sbp), inner: &Inner<'_>) -> Option<ReduceScatter> {
        let (Sbp::Partial(op), Sbp::Split(dim)) = ends else { return None };
        (!inner.reduces_otherwise(op) && !inner.splits(dim)).then_some(ReduceScatter { axes, op, dim })
    }

    fn axes(&self) -> AxisSet {
        self.axes
    }

    fn text(&self) -> String {
        format!("reduce-scatter({}, dim {})", self.op, self.dim)
    }

    fn symbol(&self) -> &'static str {
        "RS"
    }

    /// The member with the smallest part sends the rest, or the one with the largest receives it from everyone.
    fn price(&self, at: &MoveCost<'_>) -> Price {
        let (part, all) = (at.largest(self.dim), at.elements());
        let wire = (at.peers() * part).max(all - at.smallest(self.dim));
        let kind = (FlowKind::ReduceScatter, Algorithm::ReduceScatter);
        at.collective(kind, (at.peers(), wire), part, at.reduced(self.op))
    }

    fn scratch(&self, before: &[usize], _after: &[usize]) -> u64 {
        u64::from(packs(before, self.dim)) * count(before)
    }

    fn sent(&self, here: &RankAt<'_>) -> u64 {
        (elements(&here.before().size) - elements(&here.after().size)) as u64
    }

    fn program(&self, here: &RankAt<'_>) -> RankStep {
        RankStep::Collective(RankCollective {
            op: GroupOp::ReduceScatter(self.op),
            members: here.members(self.axes),
            cut: Some(here.parts(self.axes, self.dim, here.before().size[self.dim])),
            joined: None,
            size: here.after().size,
        })
    }
}
