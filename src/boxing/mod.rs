//! Boxing: changing the placement or the nd-SBP of a tensor and keeping its logical value.
//!
//! The page [boxing](crate::docs::boxing) describes layouts, steps, costs and plans. Programs box by
//! [`Tensor::to_global`](crate::Tensor::to_global) and implicitly, where an op needs another layout; this module computes the plans.
//!
//! [`plan`] is a pure function from (shape, dtype, source layout, destination layout) to a [`BoxingPlan`]: a list of
//! [`BoxingStep`]s. It has a plan for every pair of layouts, the cheapest one under the model in [`cost`](mod@cost), the same on every
//! rank. [`BoxingPlan::program`] returns the work of one rank. [`replay`](crate::vm::replay()) executes a plan for all ranks on one thread. [`many`] groups
//! the steps of several boxings into common collectives.
//!
//! # Two sets of constants
//!
//! One cost model prices every boxing and every signature; its constants are data. Signatures are chosen under fixed
//! constants, so a program has the same layouts on every machine. A boxing is carried out by the plan that is cheapest
//! under the constants of the job (`RankCtx::planner`). `oflow calibrate` measures these and writes a file. The launcher
//! of node 0 reads the file, and each rank gets its bytes when it joins, so all ranks plan alike. Without a file, under
//! [`run_ranks`](crate::run_ranks) and in a world of one, the fixed constants are used.

mod axes;
mod bound;
mod boxes;
mod choice;
pub mod cost;
mod dry;
mod exchange;
mod frontier;
mod hosts;
mod links;
mod loads;
pub mod many;
mod memory;
mod moved;
mod plan;
mod program;
mod rank_step;
mod search;
mod sizes;
mod step;
pub mod steps;

pub use crate::sbp::Layout;
pub use axes::AxisSet;
pub use boxes::{BoxesPlan, HeldBox, Piece, WantedBox, collect_boxes, collect_windows};
pub use choice::{
    Candidate, Choice, ChoiceInput, CostVector, Hint, InputAdvice, Unproven, candidates, cheapest, choose, hint,
    input_advice, price, signatures,
};
pub(crate) use cost::all_reduce_sent;
pub use cost::{Algorithm, Link, LinkKind, Model, Rate};
pub use hosts::Hosts;
pub use many::INLINE_BYTES;
pub use plan::{BoxingPlan, Planner, cost, plan};
pub use program::RankProgram;
pub use rank_step::{Cell, Contribution, GroupOp, Members, Parts, RankCollective, RankExchange, RankStep, Transfer};
pub(crate) use step::Communication;
pub use steps::{BoxingStep, StepOp};
