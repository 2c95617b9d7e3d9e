//! The base of all crates of oflow.
//!
//! | module | content |
//! |---|---|
//! | [`error`] | the error type of oflow, and lines of the user's program |
//! | [`Random`] | random numbers for tests |
//! | [`intern`] | the hasher with a fixed seed, ordered tables, interning |
//! | [`split`] | the balanced split |
//! | [`host_hierarchy`] | collectives of members on several hosts: which member sends what; when an all-reduce has one phase |
//! | [`text`] | numbers and texts as people read them |
//! | [`tree`] | the binomial tree: broadcasts, and short messages in large groups |
//!
//! Pure: no I/O, no threads, no clock, no device. It depends on no other crate of the project.

pub mod error;
mod guard_stack;
pub mod host_hierarchy;
pub mod intern;
mod random;
mod site;
pub mod split;
pub mod text;
pub mod tree;

pub use error::{CallSite, Error, ErrorKind, Place, Result};
pub use guard_stack::GuardStack;
pub use random::Random;
pub use split::{shard_range, shards_within};
