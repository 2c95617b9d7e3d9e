//! Training data: batches of rows, in the same order on every rank.
//!
//! Each rank builds only its shard of a batch, without communication. Start at [`Loader`], which makes batches of columns in memory or of
//! a [`Dataset`], whose rows are read by number. A [`Feed`] makes batches of a [`DataStream`], whose rows come one after another.
//! [`Stream`] and `Feed` have a position that checkpoints save. [The page on data](crate::docs::data) leads through all of it; readers of
//! files are in the crate `oflow-readers`.

mod collate;
mod dataset;
mod feed;
mod loader;
mod order;
mod row;
mod sampler;
mod stream;
mod streams;
mod threads;
mod timer;

pub use dataset::{
    Batched, Concat, Dataset, InMemory, Interleaved, Map, Sampled, Subset, Window, Zip, in_memory, interleave,
};
pub use feed::Feed;
pub use loader::{Batches, Loader};
pub use order::permutation;
pub use row::{Array, Field, Row};
pub use sampler::Sampler;
pub use stream::Stream;
pub use streams::{
    Chained, DataStream, DataStreamExt, Filtered, FromFn, Grouped, InTurn, Mapped, Paired, Prefetch, Shuffled, Skipped,
    Taken, from_fn, position_part,
};
pub use timer::{BatchPlace, BatchTimer};
