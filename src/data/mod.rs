//! Data: rows in memory, shuffled alike on every rank, cut into global batches of which each rank makes its slice only.
//!
//! Start at [`Loader`].

mod loader;
mod order;
mod stream;

pub use loader::{Batches, Loader};
pub use order::permutation;
pub use stream::Stream;
