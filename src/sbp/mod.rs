//! How a tensor lies on a mesh: the SBP algebra, sharding rules and candidate signatures.
//!
//! Pure: no I/O, no threads, no clock, no device. Start at [`Sbp`], then [`shard_box`].

mod layout;
mod types;

pub use layout::{check_layout, shard_box};
pub use types::{NdSbp, Sbp, TensorDim};
