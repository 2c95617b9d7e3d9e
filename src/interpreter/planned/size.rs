//! Sizes of a planned program, as programs are told them.

use crate::placement::Device;
use std::fmt;

/// Memory of one device that a graph needs on this rank, beside the tensors from outside and those that a run returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaSize {
    /// Device that holds it.
    pub device: Device,
    /// How many values, temporaries and pieces of scratch memory have a part of it.
    pub parts: usize,
    /// Size of the block that the allocator gives for it.
    pub bytes: usize,
    /// Bytes that its parts take.
    pub packed: usize,
    /// The most bytes of its parts that are in use at one time: no arena is smaller.
    pub bound: usize,
}

/// Kernels, boxings and memory with which a rank runs a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphPlan {
    /// Kernels that are prebuilt.
    pub kernels: usize,
    /// Boxings that are prebuilt.
    pub boxings: usize,
    /// Nodes that are carried out on tensors: settings of hosts, exchanges of halos, copies between devices, views that a run returns.
    pub stepwise: usize,
    /// The arena of each device. It is allocated at the first run and kept as long as the graph.
    pub arenas: Vec<ArenaSize>,
}

/// `13 kernels, 4 boxings, 2 nodes on tensors, 4096 bytes on cpu for 9 values (1.00 of the bound)`.
impl fmt::Display for GraphPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kernels, {} boxings, {} nodes on tensors", self.kernels, self.boxings, self.stepwise)?;
        for a in &self.arenas {
            let gap = a.packed as f64 / a.bound.max(1) as f64;
            write!(f, ", {} bytes on {} for {} values ({gap:.2} of the bound)", a.bytes, a.device, a.parts)?;
        }
        Ok(())
    }
}
