//! Where tensors live: device kinds, meshes of ranks, groups, and the one function that splits a length.
//!
//! Pure: no I/O, no threads, no clock, no device. Start at [`Placement`], then [`shard_range`].

mod mesh;

pub use mesh::{AxisRef, Device, MeshAxis, Placement, Rank};
pub use oflow_base::shard_range;
