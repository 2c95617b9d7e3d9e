//! Program of one rank in a plan: boxes, members and counts worked out, so that running it asks no more questions.

use super::cost::nested_range;
use super::exchange::Own;
use super::plan::BoxingPlan;
use super::step::{AxisSet, BoxingStep, StepOp};
use crate::placement::Placement;
use crate::sbp::Layout;
use crate::sbp::shard_box;
use oflow_kernels::{Dims, ReduceOp, ShardBox};
use smallvec::SmallVec;
use std::ops::Range;

/// The group of ranks of a collective.
#[derive(Clone, Debug)]
pub struct Members {
    /// World ranks in order of their coordinate on the axis.
    pub ranks: Vec<usize>,
    /// Index of this rank in `ranks`.
    pub me: usize,
}

/// The work of one rank in a step. Sizes are those of the rank's shards: the *input* before the step, the *output* after it.
#[derive(Clone, Debug)]
pub enum RankStep {
    /// This rank has nothing to do.
    Idle,
    /// The output is the input.
    Keep,
    /// The output is a box of the input.
    Slice {
        /// Start of the box in the input.
        offset: Dims,
        /// Sizes of the box.
        size: Dims,
    },
    /// The output is the identity of the reduction.
    Identity {
        /// The reduction.
        op: ReduceOp,
        /// Sizes of the output.
        size: Dims,
    },
    /// The output is the identity of the reduction around the input.
    Pad {
        /// The reduction.
        op: ReduceOp,
        /// Start of the input in the output.
        offset: Dims,
        /// Sizes of the output.
        size: Dims,
    },
    /// The output is the reduction of the members' inputs.
    AllReduce {
        /// The ranks that take part.
        members: Members,
        /// The reduction.
        op: ReduceOp,
    },
    /// The output is the members' inputs side by side in a dim.
    AllGather {
        /// The ranks that take part.
        members: Members,
        /// The tensor dim.
        dim: usize,
        /// Each member's part of the dim in the output.
        parts: Vec<Range<usize>>,
        /// Sizes of the output.
        size: Dims,
    },
    /// The output is this member's part of the reduction of the members' inputs.
    ReduceScatter {
        /// The ranks that take part.
        members: Members,
        /// The reduction.
        op: ReduceOp,
        /// The tensor dim.
        dim: usize,
        /// Each member's part of the dim in the input.
        parts: Vec<Range<usize>>,
        /// Sizes of the output.
        size: Dims,
    },
    /// Each member receives its part of dim `to` from all members, and joins the parts along dim `from`.
    AllToAll {
        /// The ranks that take part.
        members: Members,
        /// Dim that was split.
        from: usize,
        /// Dim that becomes split.
        to: usize,
        /// Each member's part of dim `from` in the output.
        from_parts: Vec<Range<usize>>,
        /// Each member's part of dim `to` in the input.
        to_parts: Vec<Range<usize>>,
        /// Sizes of the output.
        size: Dims,
    },
    /// The output is the input of member 0. The others have none.
    Broadcast {
        /// The ranks that take part.
        members: Members,
        /// Sizes of the output.
        size: Dims,
    },
    /// Messages between arbitrary ranks.
    Exchange(RankExchange),
}

/// A message of an exchange, sent or received.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// World rank of the peer.
    pub rank: usize,
    /// For a message to another rank, start of its box in the input.
    pub offset: Dims,
    /// Sizes of the box; the bytes are in row-major order.
    pub size: Dims,
}

/// The source of a contribution to a cell.
#[derive(Clone, Debug)]
pub enum Contribution {
    /// A box of the input with the sizes of the cell; the value is its start.
    Own(Dims),
    /// A received message; the value is its index.
    Received(usize),
}

/// A box of the output with all its contributions.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Start of the box in the output.
    pub offset: Dims,
    /// Sizes of the box.
    pub size: Dims,
    /// The contributions, in row-major order of the reduced mesh axes.
    pub contributions: SmallVec<[Contribution; 4]>,
}

/// The work of one rank in an exchange.
#[derive(Clone, Debug)]
pub struct RankExchange {
    /// Messages to other ranks.
    pub sends: Vec<Transfer>,
    /// Messages from other ranks.
    pub receives: Vec<Transfer>,
    /// Sizes of the output; none on a rank outside the destination.
    pub size: Option<Dims>,
    /// The output is the identity: this rank is not at coordinate 0 of some axis that becomes partial.
    pub identity: Option<ReduceOp>,
    /// The boxes that make up the output.
    pub cells: Vec<Cell>,
    /// How contributions are reduced, outermost first: op and count. The innermost is reduced first.
    pub levels: SmallVec<[(ReduceOp, usize); 2]>,
}

/// The work of one rank in a plan.
#[derive(Clone, Debug)]
pub struct RankProgram {
    /// Sizes of this rank's source shard; none outside the source placement.
    pub src: Option<Dims>,
    /// Sizes of this rank's destination shard; none outside the destination placement.
    pub dst: Option<Dims>,
    /// One entry per step of the plan.
    pub steps: Vec<RankStep>,
}

impl RankProgram {
    pub(super) fn new(plan: &BoxingPlan, rank: usize) -> RankProgram {
        let size =
            |l: &Layout| l.placement.position(rank).map(|p| shard_box(&plan.shape, &l.placement, &l.sbp, p).size);
        RankProgram {
            src: size(&plan.src),
            dst: size(&plan.dst),
            steps: plan.steps.iter().map(|s| rank_step(plan, s, rank)).collect(),
        }
    }
}

/// One rank's part of a step.
pub(super) fn rank_step(plan: &BoxingPlan, step: &BoxingStep, rank: usize) -> RankStep {
    let (shape, mesh) = (&plan.shape, &step.after.placement);
    if let StepOp::Exchange { .. } = step.op {
        return exchange(plan, step, rank);
    }
    let Some(position) = mesh.position(rank) else { return RankStep::Idle };
    let after = shard_box(shape, mesh, &step.after.sbp, position);
    let size = after.size.clone();
    if let StepOp::Broadcast { axes } = step.op {
        return RankStep::Broadcast { members: members(mesh, position, axes), size };
    }
    let before = shard_box(shape, mesh, &step.before.sbp, position);
    let parts = |axes: AxisSet, whole: usize| -> Vec<Range<usize>> {
        let ks: SmallVec<[usize; 4]> = axes.iter().map(|a| mesh.dims()[a]).collect();
        (0..ks.iter().product()).map(|i| nested_range(whole, &ks, i)).collect()
    };
    match step.op {
        StepOp::Slice { .. } => RankStep::Slice { offset: start_in(&after, &before), size },
        StepOp::Pad { op, .. } => RankStep::Pad { op, offset: start_in(&before, &after), size },
        StepOp::Keep { axes, op } => {
            let coord = mesh.coord(position);
            if op == ReduceOp::Sum && axes.iter().any(|a| coord[a] != 0) {
                RankStep::Identity { op, size }
            } else {
                RankStep::Keep
            }
        }
        StepOp::AllReduce { axes, op } => RankStep::AllReduce { members: members(mesh, position, axes), op },
        StepOp::AllGather { axes, dim } => {
            let parts = parts(axes, after.size[dim]);
            RankStep::AllGather { members: members(mesh, position, axes), dim, parts, size }
        }
        StepOp::ReduceScatter { axes, op, dim } => {
            let parts = parts(axes, before.size[dim]);
            RankStep::ReduceScatter { members: members(mesh, position, axes), op, dim, parts, size }
        }
        StepOp::AllToAll { axes, from, to } => RankStep::AllToAll {
            members: members(mesh, position, axes),
            from,
            to,
            from_parts: parts(axes, after.size[from]),
            to_parts: parts(axes, before.size[to]),
            size,
        },
        StepOp::Broadcast { .. } | StepOp::Exchange { .. } => RankStep::Idle,
    }
}

fn members(mesh: &Placement, position: usize, axes: AxisSet) -> Members {
    let (group, me) = mesh.group_along(position, axes.iter());
    Members { ranks: group.into_iter().map(|p| mesh.ranks()[p]).collect(), me }
}

/// Where `inner` starts in `outer`, both boxes of one tensor.
fn start_in(inner: &ShardBox, outer: &ShardBox) -> Dims {
    inner.offset.iter().zip(&outer.offset).map(|(i, o)| i - o).collect()
}

fn exchange(plan: &BoxingPlan, step: &BoxingStep, rank: usize) -> RankStep {
    let shape = &plan.shape;
    let (before, after) = (&step.before, &step.after);
    let (sender, receiver) = (before.placement.position(rank), after.placement.position(rank));
    if sender.is_none() && receiver.is_none() {
        return RankStep::Idle;
    }
    let own = Own::new(&before.placement, &after.placement);
    let x = plan.exchange(step, &own);
    let mut out = RankExchange {
        sends: Vec::new(),
        receives: Vec::new(),
        size: None,
        identity: None,
        cells: Vec::new(),
        levels: x.levels(),
    };
    let have = sender.map(|p| shard_box(shape, &before.placement, &before.sbp, p));
    if let (Some(p), Some(have)) = (sender, &have) {
        x.sends(p, |to, b| {
            let rank = after.placement.ranks()[to];
            out.sends.push(Transfer { rank, offset: start_in(&b, have), size: b.size });
        });
    }
    if let Some(q) = receiver {
        let want = shard_box(shape, &after.placement, &after.sbp, q);
        out.identity = x.identity(q);
        x.pieces(q, |piece| {
            let contributions = piece
                .holders
                .iter()
                .map(|h| match &have {
                    Some(have) if sender == Some(*h) => Contribution::Own(start_in(&piece.at, have)),
                    _ => {
                        let rank = before.placement.ranks()[*h];
                        let offset = Dims::new();
                        out.receives.push(Transfer { rank, offset, size: piece.at.size.clone() });
                        Contribution::Received(out.receives.len() - 1)
                    }
                })
                .collect();
            out.cells.push(Cell { offset: start_in(&piece.at, &want), size: piece.at.size, contributions });
        });
        out.size = Some(want.size);
    }
    RankStep::Exchange(out)
}

impl RankStep {
    /// Whether this rank neither sends nor receives.
    pub fn is_local(&self) -> bool {
        use RankStep::*;
        matches!(self, Idle | Keep | Slice { .. } | Identity { .. } | Pad { .. })
    }

    /// Sizes of this rank's shard after the step, given those before it.
    pub fn size_after(&self, before: Option<Dims>) -> Option<Dims> {
        match self {
            RankStep::Idle => None,
            RankStep::Keep | RankStep::AllReduce { .. } => before,
            RankStep::Exchange(x) => x.size.clone(),
            RankStep::Slice { size, .. }
            | RankStep::Identity { size, .. }
            | RankStep::Pad { size, .. }
            | RankStep::AllGather { size, .. }
            | RankStep::ReduceScatter { size, .. }
            | RankStep::AllToAll { size, .. }
            | RankStep::Broadcast { size, .. } => Some(size.clone()),
        }
    }
}

impl RankProgram {
    /// Sizes of this rank's shard before a step, if it has one.
    pub fn size_before(&self, step: usize) -> Option<Dims> {
        self.steps[..step].iter().fold(self.src.clone(), |size, s| s.size_after(size))
    }

    /// Whether a step's output can be written to the destination at once: what follows works in place.
    pub fn ends_in_place(&self, step: usize) -> bool {
        self.steps[step + 1..].iter().all(|s| matches!(s, RankStep::AllReduce { .. } | RankStep::Keep))
    }
}
