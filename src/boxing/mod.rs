//! Changing a tensor's placement or nd-SBP without changing its logical value.
//!
//! [`plan`] is a pure function from (shape, dtype, source layout, destination layout) to a [`BoxingPlan`]: a list of
//! [`BoxingStep`]s, each of which is data. It is total (a general exchange of intersecting boxes reaches every layout
//! from every other), cheapest under the cost model at the top of [`cost`](mod@cost), the same on every rank, and memoised.
//! [`BoxingPlan::program`] says what one rank does; [`replay()`] carries a plan out for all ranks on one thread; the
//! interpreter carries it out over a communicator. [`many`] says which steps of several boxings are one collective.
//!
//! This room knows layouts and boxes of elements. It does no I/O, starts no thread, reads no clock and touches no device.
//! Start at [`plan`], then `step.rs` (the moves and when they are legal), `exchange.rs` (the general one), `search.rs` (how
//! the cheapest path is found, with `front.rs` and `bound.rs`). `docs/boxing.md` tells it to users.

mod bound;
mod boxes;
mod choice;
pub mod cost;
mod dry;
mod exchange;
mod front;
mod hosts;
mod links;
mod loads;
pub mod many;
mod memory;
mod moved;
mod plan;
mod program;
mod replay;
mod search;
mod step;

pub use boxes::{BoxesPlan, HeldBox, Piece, collect_boxes};
pub use choice::{Candidate, Choice, ChoiceInput, CostVector, Unproven, candidates, choose, dual, price, signatures};
pub(crate) use cost::all_reduce_sent;
pub use cost::{Algorithm, Link, LinkKind, Model, Rate};
pub use dry::resolve_attrs;
pub use hosts::Hosts;
pub use plan::{BoxingPlan, Layout, Planner, cost, plan};
pub use program::{Cell, Contribution, Members, RankExchange, RankProgram, RankStep, Transfer};
pub use replay::replay;
pub use step::{AxisSet, BoxingStep, StepOp};
