//! S(d) → B: every rank receives all parts.

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{Algorithm, MoveCost, Price, nested_range};
use crate::boxing::rank_step::{GroupOp, RankCollective, RankStep};
use crate::boxing::sizes::count;
use crate::boxing::step::{Inner, Move, RankAt, elements, packs};
use crate::sbp::Sbp;
use oflow_base::host_hierarchy::FlowKind;
use std::ops::Range;

/// S(dim) → B: every rank receives all parts of the dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllGather {
    /// Mesh axes of the step.
    pub axes: AxisSet,
    /// Tensor dim that is split.
    pub dim: usize,
}

impl Move for AllGather {
    fn between(axes: AxisSet, ends: (Sbp, Sbp), inner: &Inner<'_>) -> Option<AllGather> {
        match ends {
            (Sbp::Split(dim), Sbp::Broadcast) if !inner.splits(dim) => Some(AllGather { axes, dim }),
            _ => None,
        }
    }

    fn axes(&self) -> AxisSet {
        self.axes
    }

    fn text(&self) -> String {
        format!("all-gather(dim {})", self.dim)
    }

    fn symbol(&self) -> &'static str {
        "AG"
    }

    /// The member with the largest part sends it to everyone, or the one with the smallest receives the rest.
    fn price(&self, at: &MoveCost<'_>) -> Price {
        let (part, all) = (at.largest(self.dim), at.elements());
        let wire = (at.peers() * part).max(all - at.smallest(self.dim));
        at.collective((FlowKind::AllGather, Algorithm::AllGather), (at.peers(), wire), part, at.moved())
    }

    fn scratch(&self, _before: &[usize], after: &[usize]) -> u64 {
        u64::from(packs(after, self.dim)) * count(after)
    }

    fn sent(&self, here: &RankAt<'_>) -> u64 {
        let (axes, whole) = (self.axes, here.after().size);
        match here.tree(axes, elements(&whole)) {
            Some(tree) => {
                let ks = here.sizes(axes);
                let around = elements(&whole) / whole[self.dim].max(1);
                let part = |member| nested_range(whole[self.dim], &ks, member);
                let below = |m: Range<usize>| around * (part(m.end - 1).end - part(m.start).start);
                tree.sent(here.member(axes), elements(&whole) as u64, |m| below(m) as u64)
            }
            None => ((here.group_size(axes) - 1) * elements(&here.before().size)) as u64,
        }
    }

    fn program(&self, here: &RankAt<'_>) -> RankStep {
        let size = here.after().size;
        RankStep::Collective(RankCollective {
            op: GroupOp::AllGather,
            members: here.members(self.axes),
            cut: None,
            joined: Some(here.parts(self.axes, self.dim, size[self.dim])),
            size,
        })
    }
}
