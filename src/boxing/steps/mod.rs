//! The kinds of steps that plans are made of, one a file: from which SBP to which it leads and when it keeps the logical
//! value, what it costs, what it sends, which memory it takes, and what each rank does.
//!
//! | from → to | move | legal if (axes of size 1 never count) |
//! |---|---|---|
//! | B → S(d) | slice | no inner axis splits d |
//! | B → P(sum) | coordinate 0 keeps, the others become zero | always: inner reductions of zeros are zero |
//! | B → P(max), P(min) | all keep | always: the reduction of equal values is that value |
//! | S(d) → P(op) | pad with op's identity | no inner axis splits d; no inner P(sum) unless op is sum: an inner sum of identities of max would overflow |
//! | P(op) → B | all-reduce | every inner P is of the same op: inner axes are reduced first, only equal ops commute |
//! | P(op) → S(d) | reduce-scatter | as above, and no inner axis splits d |
//! | S(d) → B | all-gather | no inner axis splits d |
//! | S(d) → S(e) | all-to-all | no inner axis splits d or e |
//!
//! "Inner" means: inside the outermost axis of the move and not part of it. The members of a move along several axes are
//! in row-major order of their coordinates, so their parts of a dim are consecutive; they are those of the *nested* split,
//! which for uneven sizes is not the flat split into as many parts.
//!
//! Everything else goes in several moves or through the exchange, which is always legal. Towards another mesh there is also
//! the broadcast: what the corner of the mesh (coordinate 0 of some axes) has gets everywhere along these axes.
//!
//! A new kind is a file here, with its `mod` line and its row in the list below: [`StepOp`] and the search have it from there. If two
//! kinds lead from one SBP to another, the cheaper one is taken.

mod all_gather;
mod all_reduce;
mod all_to_all;
mod broadcast;
mod exchange;
mod keep;
mod pad;
mod reduce_scatter;
mod slice;

pub use all_gather::AllGather;
pub use all_reduce::AllReduce;
pub use all_to_all::AllToAll;
pub use broadcast::Broadcast;
pub use exchange::Exchange;
pub use keep::Keep;
pub use pad::Pad;
pub use reduce_scatter::ReduceScatter;
pub use slice::Slice;

use super::axes::{AxisSet, axis_names};
use super::cost::MoveCost;
use super::step::{Communication, Inner, Move, Step};
use crate::sbp::{Layout, Sbp};
use std::fmt;

macro_rules! kinds {
    (moves: $($Move:ident),*; others: $($Other:ident),*) => {
        /// Operation of a boxing step, by its kind. Everything but the exchange changes the SBP of one or several mesh axes, all
        /// from the same to the same.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StepOp {
            $(#[doc = concat!("The step [`", stringify!($Move), "`].")] $Move($Move),)*
            $(#[doc = concat!("The step [`", stringify!($Other), "`].")] $Other($Other),)*
        }

        $(impl From<$Move> for StepOp {
            fn from(step: $Move) -> StepOp {
                StepOp::$Move(step)
            }
        })*
        $(impl From<$Other> for StepOp {
            fn from(step: $Other) -> StepOp {
                StepOp::$Other(step)
            }
        })*

        impl StepOp {
            /// What the kind says of the step.
            pub(super) fn kind(&self) -> &dyn Step {
                match self {
                    $(StepOp::$Move(step) => step,)*
                    $(StepOp::$Other(step) => step,)*
                }
            }
        }

        /// The cheapest legal move along mesh axes that changes their SBP as given, with its price in picoseconds.
        pub(super) fn cheapest_move(
            axes: AxisSet,
            ends: (Sbp, Sbp),
            inner: &Inner<'_>,
            at: &MoveCost<'_>,
        ) -> Option<(StepOp, u64)> {
            let mut best: Option<(StepOp, u64)> = None;
            $(if let Some(step) = $Move::between(axes, ends, inner) {
                let price = Move::price(&step, at).total();
                if best.is_none_or(|(_, least)| price < least) {
                    best = Some((StepOp::$Move(step), price));
                }
            })*
            best
        }
    };
}

kinds! {
    moves: Slice, Pad, Keep, AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast;
    others: Exchange
}

impl StepOp {
    /// Returns one or two letters for the kind, as in the tables of [boxing](crate::docs::boxing).
    pub fn symbol(&self) -> &'static str {
        self.kind().symbol()
    }

    /// How the ranks communicate.
    pub(crate) fn communication(&self) -> Communication {
        self.kind().communication()
    }
}

/// One step of a plan with the layouts around it.
#[derive(Clone, Debug)]
pub struct BoxingStep {
    /// Operation of the step, with its mesh axes.
    pub op: StepOp,
    /// Layout before the step.
    pub before: Layout,
    /// Layout after the step.
    pub after: Layout,
    /// Predicted time in picoseconds.
    pub cost_ps: u64,
}

impl fmt::Display for BoxingStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &self.after.placement;
        let text = self.op.kind().text(&|axes| axis_names(p, axes));
        write!(f, "{text}: {} -> {}", self.before.sbp, self.after.sbp)?;
        if self.before.placement != self.after.placement {
            write!(f, " on {}", self.after.placement)?;
        }
        Ok(())
    }
}
