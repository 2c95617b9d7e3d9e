//! S(d) → S(e): another dim is split.

use crate::boxing::axes::AxisSet;
use crate::boxing::cost::{Algorithm, MoveCost, Price};
use crate::boxing::rank_step::{GroupOp, RankCollective, RankStep};
use crate::boxing::sizes::count;
use crate::boxing::step::{Inner, Move, RankAt, elements, packs};
use crate::sbp::Sbp;

/// S(from) → S(to): each rank sends its part of dim `to` to the rank that holds it after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllToAll {
    /// Mesh axes of the step.
    pub axes: AxisSet,
    /// Tensor dim that is split before.
    pub from: usize,
    /// Tensor dim that is split after.
    pub to: usize,
}

impl Move for AllToAll {
    fn between(axes: AxisSet, ends: (Sbp, Sbp), inner: &Inner<'_>) -> Option<AllToAll> {
        let (Sbp::Split(from), Sbp::Split(to)) = ends else { return None };
        (from != to && !inner.splits(from) && !inner.splits(to)).then_some(AllToAll { axes, from, to })
    }

    fn axes(&self) -> AxisSet {
        self.axes
    }

    fn text(&self) -> String {
        format!("all-to-all(dim {} to {})", self.from, self.to)
    }

    fn symbol(&self) -> &'static str {
        "AA"
    }

    /// A member sends its shard and receives its new one, each less what stays.
    fn price(&self, at: &MoveCost<'_>) -> Price {
        let (from, to, k) = (self.from, self.to, at.members());
        let (f, t) = (at.sizes[from], at.sizes[to]);
        let busy = |i| {
            let (mine, next) = (at.part(from, i), at.part(to, i));
            (mine * (t as u64 - next)).max(next * (f as u64 - mine))
        };
        // Along one axis members before the remainder have one element more than those after it, in either dim.
        let wire = match at.ks {
            _ if f.is_multiple_of(k) && t.is_multiple_of(k) => Some(busy(0)),
            [_] => [0, f % k, t % k].map(busy).into_iter().max(),
            _ => (0..k).map(busy).max(),
        };
        at.direct(Algorithm::AllToAll, at.peers(), at.without(&[from, to]) * wire.unwrap_or(0))
    }

    fn scratch(&self, before: &[usize], after: &[usize]) -> u64 {
        u64::from(packs(before, self.to)) * count(before) + u64::from(packs(after, self.from)) * count(after)
    }

    fn sent(&self, here: &RankAt<'_>) -> u64 {
        let mut stays = here.before().size;
        let all = elements(&stays);
        stays[self.to] = here.after().size[self.to];
        (all - elements(&stays)) as u64
    }

    fn program(&self, here: &RankAt<'_>) -> RankStep {
        let (before, size) = (here.before().size, here.after().size);
        RankStep::Collective(RankCollective {
            op: GroupOp::AllToAll,
            members: here.members(self.axes),
            cut: Some(here.parts(self.axes, self.to, before[self.to])),
            joined: Some(here.parts(self.axes, self.from, size[self.from])),
            size,
        })
    }
}
