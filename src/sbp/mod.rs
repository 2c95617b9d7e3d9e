//! SBP: how a tensor is laid out on a mesh, and which combinations of layouts are correct for an op.
//!
//! [`Sbp`] is the layout along one mesh axis, [`NdSbp`] along all axes; [`sbp!`](crate::sbp!) writes one. [`shard_box`] computes the part
//! of a tensor that a rank holds. A [`Signature`] is one correct combination for the inputs and outputs of an op.

mod elementwise;
mod factors;
mod layout;
pub mod picture;
mod signature;
mod types;

pub use elementwise::{elementwise_signatures, elementwise_splits};
pub use factors::{FactorRule, broadcast_dim};
pub(crate) use layout::dual_of;
pub use layout::{Layout, check_layout, check_size, dual, shard_box};
pub use signature::Signature;
pub use types::{NdSbp, ReduceOp, Sbp, TensorDim};
