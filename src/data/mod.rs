//! Training data: global batches from rows in memory, shuffled in the same order on every rank.
//!
//! Each rank builds only its shard of a batch, without communication. Start at [`Loader`]; [`Stream`] adds a position that
//! checkpoints save.

mod loader;
mod order;
mod stream;

pub use loader::{Batches, Loader};
pub use order::permutation;
pub use stream::Stream;
