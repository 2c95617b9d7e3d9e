//! Ranks as processes of one host (or threads that share one mapping) over an inherited memfd.
//!
//! The launcher makes a [`ShmArena`], passes its file descriptor to each rank, and keeps its own mapping. When a rank dies the
//! launcher calls [`ShmArena::poison`], and every wait of every rank ends within milliseconds. The memory has no name in the file
//! system, so the kernel frees it with the last process. Start reading at `link` (the atomic protocol), then `arena` (the
//! layout).

mod arena;
mod link;
mod loss;
mod sync;
mod transport;

pub use arena::{RankState, ShmArena};
pub use loss::Loss;
pub(super) use transport::Beside;
pub use transport::{ShmComm, ShmOptions, ShmTransport, Spins};

#[cfg(all(test, not(oflow_loom)))]
mod tests;
