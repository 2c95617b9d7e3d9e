//! P → B: every rank receives the reduction.

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{Algorithm, MoveCost, Price, all_reduce_sent};
use crate::boxing::rank_step::{GroupOp, RankCollective, RankStep};
use crate::boxing::step::{Inner, Move, RankAt, elements};
use crate::sbp::Sbp;
use oflow_base::host_hierarchy::{FlowKind, one_phase_bytes};
use oflow_kernels::ReduceOp;

/// P(op) → B: every rank receives the reduction over the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllReduce {
    /// Mesh axes of the step.
    pub axes: AxisSet,
    /// Reduction of the partial.
    pub op: ReduceOp,
}

impl Move for AllReduce {
    fn between(axes: AxisSet, ends: (Sbp, Sbp), inner: &Inner<'_>) -> Option<AllReduce> {
        match ends {
            (Sbp::Partial(op), Sbp::Broadcast) if !inner.reduces_otherwise(op) => Some(AllReduce { axes, op }),
            _ => None,
        }
    }

    fn axes(&self) -> AxisSet {
        self.axes
    }

    fn text(&self) -> String {
        format!("all-reduce({})", self.op)
    }

    fn symbol(&self) -> &'static str {
        "AR"
    }

    /// Of n elements and k members, each sends all to everyone: (k - 1) n. Above [`one_phase_bytes`] member i sends what the others
    /// reduce, and the result of its chunk c to everyone: n - c + (k - 1) c.
    fn price(&self, at: &MoveCost<'_>) -> Price {
        let (k, n, element) = (at.members(), at.elements(), at.dtype.size() as u64);
        let one = n * element <= one_phase_bytes(k) as u64;
        let algorithm = if one { Algorithm::AllReduceOnePhase } else { Algorithm::AllReduceTwoPhase };
        let wire = all_reduce_sent(n as usize, k, 0, element);
        at.collective((FlowKind::AllReduce, algorithm), (at.peers(), wire), n, at.reduced(self.op))
    }

    fn sent(&self, here: &RankAt<'_>) -> u64 {
        let (n, k, me) = (elements(&here.before().size), here.group_size(self.axes), here.member(self.axes));
        match here.tree(self.axes, n.saturating_mul(k)) {
            Some(tree) => tree.sent(me, n as u64, |below| (below.len() * n) as u64),
            None => all_reduce_sent(n, k, me, here.element()),
        }
    }

    fn program(&self, here: &RankAt<'_>) -> RankStep {
        RankStep::Collective(RankCollective {
            op: GroupOp::AllReduce(self.op),
            members: here.members(self.axes),
            cut: None,
            joined: None,
            size: here.after().size,
        })
    }
}
