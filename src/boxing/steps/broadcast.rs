//! Towards another mesh: from a corner of it to all of it.

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{Algorithm, MoveCost, Price};
use crate::boxing::rank_step::{GroupOp, RankCollective, RankStep};
use crate::boxing::step::{Move, RankAt, elements};
use oflow_base::host_hierarchy::FlowKind;
use oflow_base::tree::Tree;

/// From the ranks at coordinate 0 of these axes to the whole mesh, which is B along them. The search makes this step itself,
/// because the layout before is that of another mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// Mesh axes of the destination.
    pub axes: AxisSet,
}

impl Move for Broadcast {
    fn axes(&self) -> AxisSet {
        self.axes
    }

    fn text(&self) -> String {
        "broadcast".into()
    }

    fn symbol(&self) -> &'static str {
        "BC"
    }

    /// A binomial tree of ⌈log2 k⌉ rounds, in each of which the busiest member sends all.
    fn price(&self, at: &MoveCost<'_>) -> Price {
        let (rounds, n) = (u64::from(at.members().next_power_of_two().trailing_zeros()), at.elements());
        at.collective((FlowKind::Broadcast, Algorithm::Broadcast), (rounds, rounds * n), n, at.moved())
    }

    fn sent(&self, here: &RankAt<'_>) -> u64 {
        let children = Tree::of(here.group_size(self.axes)).children(here.member(self.axes)).count();
        (children * elements(&here.after().size)) as u64
    }

    fn program(&self, here: &RankAt<'_>) -> RankStep {
        RankStep::Collective(RankCollective {
            op: GroupOp::Broadcast,
            members: here.members(self.axes),
            cut: None,
            joined: None,
            size: here.after().size,
        })
    }
}
