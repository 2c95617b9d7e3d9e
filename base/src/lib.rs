//! What all crates of oflow share.
//!
//! | module | content |
//! |---|---|
//! | [`error`] | the error of oflow, and the place in a program that it names |
//! | [`intern`] | the hasher with a fixed seed, ordered tables, interning |
//! | [`split`] | the balanced split |
//! | [`spread`] | who sends what in a collective whose members share hosts, and when an all-reduce has one phase |
//!
//! Pure: no I/O, no threads, no clock, no device. It stands below every other crate of the project, so it knows none.

pub mod error;
pub mod intern;
pub mod split;
pub mod spread;

pub use error::{CallSite, Error, ErrorKind, Place, Result};
pub use split::shard_range;
