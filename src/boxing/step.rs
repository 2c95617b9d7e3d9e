//! Traits of the kinds of boxing steps. Each kind is a file of [`super::steps`].
//!
//! A [`Move`] changes the SBP of some mesh axes, all from the same to the same, and keeps to the groups of ranks along them.
//! Every move is a [`Step`]; what is no move (the exchange) says all of a step by itself.

use super::axes::AxisSet;
use super::cost::{Model, MoveCost, Price, nested_range};
use super::moved::Moved;
use super::rank_step::{Members, Parts, RankStep};
use crate::placement::Placement;
use crate::sbp::{Layout, Sbp, shard_box};
use oflow_base::tree::Tree;
use oflow_kernels::{DType, Dims, ReduceOp, ShardBox};
use smallvec::SmallVec;

/// How the ranks of a step communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Communication {
    /// Not at all: each rank has what it needs.
    None,
    /// By collectives of the groups along mesh axes.
    Groups(AxisSet),
    /// By messages between ranks that have the same coordinates on some axes.
    Messages {
        /// Axes on which both ends have the same coordinate.
        within: AxisSet,
    },
}

/// A step along mesh axes that all have the same SBP before and the same after.
pub(super) trait Move: Copy + Sized {
    /// Whether no rank sends anything.
    const LOCAL: bool = false;

    /// The move of this kind along `axes` from one SBP to another, if there is one and it keeps the logical value. Axes of size 1
    /// never count. The default is for kinds that the search makes by itself.
    fn between(axes: AxisSet, ends: (Sbp, Sbp), inner: &Inner<'_>) -> Option<Self> {
        let _never = (axes, ends, inner);
        None
    }

    /// The mesh axes.
    fn axes(&self) -> AxisSet;

    /// Text of the step in plans, without the axes: `all-gather(dim 0)`.
    fn text(&self) -> String;

    /// One or two letters for the kind, in the tables of the page on boxing.
    fn symbol(&self) -> &'static str;

    /// Predicted time.
    fn price(&self, at: &MoveCost<'_>) -> Price;

    /// Elements of the buffers in which the rank with the largest shards packs and unpacks, given the sizes of its shards.
    fn scratch(&self, before: &[usize], after: &[usize]) -> u64 {
        let _none = (before, after);
        0
    }

    /// Elements that a rank sends where its group does not go by hosts.
    fn sent(&self, here: &RankAt<'_>) -> u64 {
        let _none = here;
        0
    }

    /// The work of a rank.
    fn program(&self, here: &RankAt<'_>) -> RankStep;
}

/// A kind of step as plans know it.
pub(super) trait Step {
    /// Text of the step in plans, without the layouts: `all-gather(dim 0) along tp`. `names` gives the names of mesh axes.
    fn text(&self, names: &dyn Fn(AxisSet) -> String) -> String;

    /// One or two letters for the kind, in the tables of the page on boxing.
    fn symbol(&self) -> &'static str;

    /// How its ranks communicate.
    fn communication(&self) -> Communication;

    /// Predicted time along axes; `None` for a kind that is priced from its messages.
    fn price(&self, at: &MoveCost<'_>) -> Option<Price>;

    /// Shares of an element that a receiver reduces into one, if the layout before is `sbp` on a mesh of sizes `dims`.
    fn contributions(&self, dims: &[usize], sbp: &[Sbp]) -> u64 {
        let _one = (dims, sbp);
        1
    }

    /// Elements of the buffers besides the shards, on the rank with the largest ones, whose sizes are given.
    fn scratch(&self, before: &[usize], after: &[usize], contributions: u64) -> u64;

    /// The work of a rank.
    fn program(&self, at: &StepAt<'_>, rank: usize) -> RankStep;

    /// Bytes that a rank sends.
    fn sent(&self, at: &StepAt<'_>, rank: usize) -> u64;

    /// Bytes that all ranks send.
    fn sent_by_all(&self, at: &StepAt<'_>) -> u64 {
        at.after.placement.ranks().iter().map(|rank| self.sent(at, *rank)).sum()
    }
}

impl<M: Move> Step for M {
    fn text(&self, names: &dyn Fn(AxisSet) -> String) -> String {
        format!("{} along {}", Move::text(self), names(self.axes()))
    }

    fn symbol(&self) -> &'static str {
        Move::symbol(self)
    }

    fn communication(&self) -> Communication {
        if M::LOCAL { Communication::None } else { Communication::Groups(self.axes()) }
    }

    fn price(&self, at: &MoveCost<'_>) -> Option<Price> {
        Some(Move::price(self, at))
    }

    fn scratch(&self, before: &[usize], after: &[usize], _contributions: u64) -> u64 {
        Move::scratch(self, before, after)
    }

    fn program(&self, at: &StepAt<'_>, rank: usize) -> RankStep {
        at.rank(rank).map_or(RankStep::Idle, |here| Move::program(self, &here))
    }

    fn sent(&self, at: &StepAt<'_>, rank: usize) -> u64 {
        let Some(here) = at.rank(rank).filter(|_| !M::LOCAL) else { return 0 };
        // Only where hosts count are a group's list of ranks and parts worth making.
        if at.model.hosts.several()
            && at.on_host
            && let Some(moved) = Moved::of(&Move::program(self, &here), at.dtype)
        {
            return moved.sent(at.model, true);
        }
        Move::sent(self, &here) * at.dtype.size() as u64
    }
}

/// The mesh axes inside the outermost axis of a move that are not part of it: they may forbid it.
pub(super) struct Inner<'a> {
    /// Sizes of the mesh.
    pub(super) dims: &'a [usize],
    /// SBPs of the mesh axes before the move.
    pub(super) sbp: &'a [Sbp],
    /// The axes of the move.
    pub(super) axes: AxisSet,
}

impl Inner<'_> {
    fn any(&self, bad: impl Fn(Sbp) -> bool) -> bool {
        let inside = self.axes.first() + 1..self.dims.len();
        inside.into_iter().any(|a| self.dims[a] > 1 && !self.axes.contains(a) && bad(self.sbp[a]))
    }

    /// Whether an inner axis splits a dim: then the members' parts of the dim are not consecutive.
    pub(super) fn splits(&self, dim: usize) -> bool {
        self.any(|s| s == Sbp::Split(dim))
    }

    /// Whether an inner axis is partial with another reduction: inner axes are reduced first, and only equal reductions commute.
    pub(super) fn reduces_otherwise(&self, op: ReduceOp) -> bool {
        self.any(|s| s.partial_op().is_some_and(|o| o != op))
    }

    /// Whether an inner axis is a sum.
    pub(super) fn sums(&self) -> bool {
        self.any(|s| s == Sbp::PARTIAL_SUM)
    }
}

/// A step of a plan, with the tensor that it moves.
pub(super) struct StepAt<'a> {
    pub(super) model: &'a Model,
    /// Logical shape.
    pub(super) shape: &'a [usize],
    pub(super) dtype: DType,
    pub(super) before: &'a Layout,
    pub(super) after: &'a Layout,
    /// Whether the bytes pass through host memory.
    pub(super) on_host: bool,
}

impl<'a> StepAt<'a> {
    /// A rank of the mesh of the layout after; none where the rank is not part of it.
    fn rank(&'a self, rank: usize) -> Option<RankAt<'a>> {
        let mesh = &self.after.placement;
        let position = mesh.position(rank)?;
        Some(RankAt { at: self, mesh, position, coord: mesh.coord(position) })
    }
}

/// A rank in the mesh of a move.
pub(super) struct RankAt<'a> {
    at: &'a StepAt<'a>,
    mesh: &'a Placement,
    position: usize,
    /// Coordinate on each mesh axis.
    pub(super) coord: SmallVec<[usize; 4]>,
}

impl RankAt<'_> {
    fn shard(&self, layout: &Layout) -> ShardBox {
        shard_box(self.at.shape, self.mesh, &layout.sbp, self.position)
    }

    /// The rank's shard before the move.
    pub(super) fn before(&self) -> ShardBox {
        self.shard(self.at.before)
    }

    /// The rank's shard after the move.
    pub(super) fn after(&self) -> ShardBox {
        self.shard(self.at.after)
    }

    /// Bytes of an element.
    pub(super) fn element(&self) -> u64 {
        self.at.dtype.size() as u64
    }

    /// The rank's group along axes.
    pub(super) fn members(&self, axes: AxisSet) -> Members {
        let (group, me) = self.mesh.group_along(self.position, axes.iter());
        Members { ranks: group.into_iter().map(|p| self.mesh.ranks()[p]).collect(), me }
    }

    /// The number of ranks of the group along axes.
    pub(super) fn group_size(&self, axes: AxisSet) -> usize {
        axes.group_size(self.mesh.dims())
    }

    /// The rank's number in its group along axes.
    pub(super) fn member(&self, axes: AxisSet) -> usize {
        axes.iter().fold(0, |m, a| m * self.mesh.dims()[a] + self.coord[a])
    }

    /// Sizes of axes.
    pub(super) fn sizes(&self, axes: AxisSet) -> Dims {
        axes.iter().map(|a| self.mesh.dims()[a]).collect()
    }

    /// The parts of a dim of `len` elements that the members of the group along axes have.
    pub(super) fn parts(&self, axes: AxisSet, dim: usize, len: usize) -> Parts {
        let ks: SmallVec<[usize; 4]> = axes.iter().map(|a| self.mesh.dims()[a]).collect();
        Parts { dim, ranges: (0..ks.iter().product()).map(|i| nested_range(len, &ks, i)).collect() }
    }

    /// The tree by which the group sends so many elements together, if it does.
    pub(super) fn tree(&self, axes: AxisSet, contributed: usize) -> Option<Tree> {
        Tree::of_short(self.group_size(axes), contributed as u64 * self.element()).filter(|_| self.at.on_host)
    }
}

/// Elements of a box of these sizes.
pub(super) fn elements(size: &Dims) -> usize {
    size.iter().product()
}

/// Whether more than one row of a box lies before a dim: then the parts of the dim do not lie one after another in memory, and
/// are packed or unpacked.
pub(super) fn packs(sizes: &[usize], dim: usize) -> bool {
    sizes[..dim].iter().product::<usize>() > 1
}

/// Where `inner` starts in `outer`, both boxes of one tensor.
pub(super) fn start_in(inner: &ShardBox, outer: &ShardBox) -> Dims {
    inner.offset.iter().zip(&outer.offset).map(|(i, o)| i - o).collect()
}
