//! Counters of an allocator.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Memory of an allocator, in bytes of whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStats {
    /// Bytes of blocks in use.
    pub live: usize,
    /// Bytes of idle blocks.
    pub cached: usize,
    /// Largest value of `live` so far.
    pub peak: usize,
    /// Allocations served by an idle block.
    pub hits: u64,
    /// Allocations that took new memory from the system.
    pub misses: u64,
}

impl fmt::Display for MemoryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryStats { live, cached, peak, hits, misses } = self;
        write!(f, "{live} bytes in use, {cached} cached, at most {peak} in use; {hits} hits, {misses} misses")
    }
}
