//! Placements: device kinds and meshes of ranks, and the balanced split of a length.
//!
//! A [`Placement`] says which ranks hold a tensor, as a mesh with named axes. [`shard_range`] computes the part of a split dim that
//! a rank holds.

mod device;
mod mesh;

pub use device::Device;
pub use mesh::{AxisRef, MeshAxis, Placement, Rank};
pub use oflow_base::{shard_range, shards_within};
