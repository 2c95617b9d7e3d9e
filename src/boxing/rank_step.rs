//! The work of one rank in a step: boxes, members and counts worked out, so that running it asks no more questions.
//!
//! These are the ways in which a step is carried out, few on purpose: moves that stay on the rank, one form for all
//! collectives, and messages. The kinds of steps ([`super::steps`]) are more, and each says which of these its ranks do. The
//! executor (`vm/box_exec.rs`, `vm/box_many.rs`) and its reference (`vm/replay.rs`) know these only.

use oflow_kernels::{Dims, ReduceOp};
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
    /// One collective of a group.
    Collective(RankCollective),
    /// Messages between arbitrary ranks.
    Exchange(RankExchange),
}

/// A collective of a step's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupOp {
    /// Every member gets the reduction of the members' inputs.
    AllReduce(ReduceOp),
    /// Every member gets all members' inputs.
    AllGather,
    /// Every member gets its part of the reduction of the members' inputs.
    ReduceScatter(ReduceOp),
    /// Every member gets its part of each member's input.
    AllToAll,
    /// Every member gets the input of member 0. The others have none.
    Broadcast,
}

/// The parts of a dim that belong to the members of a group.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Tensor dim that is divided.
    pub dim: usize,
    /// Each member's range of the dim.
    pub ranges: Vec<Range<usize>>,
}

/// The work of one rank in a collective.
#[derive(Clone, Debug)]
pub struct RankCollective {
    /// The collective that runs.
    pub op: GroupOp,
    /// The ranks that take part.
    pub members: Members,
    /// How the input is cut for the members; `None` where each member's input goes as a whole.
    pub cut: Option<Parts>,
    /// Where in the output lies what came from the members; `None` where the collective itself makes the output.
    pub joined: Option<Parts>,
    /// Sizes of the output.
    pub size: Dims,
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

impl RankStep {
    /// Whether this rank neither sends nor receives.
    pub fn is_local(&self) -> bool {
        !matches!(self, RankStep::Collective(_) | RankStep::Exchange(_))
    }

    /// Sizes of this rank's shard after the step, given those before it.
    pub fn size_after(&self, before: Option<Dims>) -> Option<Dims> {
        match self {
            RankStep::Idle => None,
            RankStep::Keep => before,
            RankStep::Exchange(x) => x.size.clone(),
            RankStep::Collective(c) => Some(c.size.clone()),
            RankStep::Slice { size, .. } | RankStep::Identity { size, .. } | RankStep::Pad { size, .. } => {
                Some(size.clone())
            }
        }
    }

    /// Whether two steps of tensors of one dtype can be carried out as one collective, or as one batch of messages.
    pub(super) fn joins(&self, other: &RankStep) -> bool {
        match (self, other) {
            (RankStep::Collective(a), RankStep::Collective(b)) => a.op == b.op && a.members.ranks == b.members.ranks,
            (RankStep::Exchange(_), RankStep::Exchange(_)) => true,
            _ => false,
        }
    }
}
