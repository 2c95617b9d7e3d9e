//! Programs: ordered calls over numbered values, as data. What [`graph`](crate::graph) captures, prints, checks and runs, and what activation
//! checkpointing ([`recompute`](crate::interpreter::recompute)) lists and runs once more.
//!
//! A [`Program`] is what one rank does in one run of a captured closure. Its values have types: shape and dtype, and device or placement
//! and nd-SBP. Each value is defined once, by the program's inputs, variables and constants or by a node; a call that writes a tensor in
//! place defines a new value, and the old one is gone unless the tensor is global, whose values are kept. So the order of the nodes is the
//! order of side effects, and a list is enough: there is no graph to sort.
//!
//! Layouts are explicit. A [`CallNode`] runs in the layouts that its inputs have, and its signature is stated, not chosen again; a change
//! of layout is a node of its own. Nodes hold no interned ids, so a program reads the same in every process.
//!
//! **Numbers** of a call are fixed when it is captured, but for two kinds: those that the program draws ([`Draw`]: counted from the state
//! that the generator has when a run begins), and those that the host computes for each run ([`HostId`]: learning rates, numbers of steps).
//!
//! **Sections** that repeat are a node each, which has the calls of one iteration as a program of its own (`repeat.rs`). What runs a program
//! reads it flat (`flat.rs`): one list of nodes, and the loops among them.
//!
//! **Guards** are the one decision of a program: a node under a guard does nothing where a truth value is false.
//!
//! A program is written as text (`text.rs`, `parse.rs`) and as bytes (`wire.rs`). Both readers end in [`Program::verify`].
//!
//! The room is pure: it knows ops, layouts and plans, and no tensors.

mod alike;
mod build;
mod compare;
mod flat;
mod parse;
mod passes;
mod repeat;
mod summary;
mod text;
mod types;
mod verify;
mod wire;

pub use alike::AlikeLine;
pub(crate) use build::op_of;
pub use compare::Difference;
pub(crate) use flat::{Flat, Loop, Turn};
pub use passes::{Effect, Memory, Passes, Size};
pub use repeat::Section;
pub(crate) use repeat::{part_type, stacked_type};
pub(crate) use summary::variable_name;
pub use summary::{ModuleRow, ParameterRow, Summary};
pub use types::{
    BoxedFor, CallNode, Draw, GeneratorId, HostId, Node, Outside, OutsideKind, Program, Repeat, ValueId, Work, Write,
    described,
};
