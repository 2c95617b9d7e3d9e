//! How a tensor lies on a mesh: the SBP algebra, sharding rules and candidate signatures.
//!
//! Pure: no I/O, no threads, no clock, no device. Start at [`Sbp`], then [`shard_box`], then [`Signature`].

mod elementwise;
mod factors;
mod layout;
mod signature;
mod types;

pub use elementwise::elementwise_signatures;
pub use factors::{FactorRule, broadcast_dim};
pub use layout::{check_layout, shard_box};
pub use signature::Signature;
pub use types::{NdSbp, ReduceOp, Sbp, TensorDim};
