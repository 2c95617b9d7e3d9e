//! Memory of tensors: [`Storage`], a reference-counted block of bytes, and the caching [`Allocator`].
//!
//! This module knows devices and bytes, and nothing of tensors or dtypes. A storage may be dropped on any thread, without a rank
//! context, and after its allocator.

mod allocator;
mod block;
mod classes;
mod origin;
mod owner;
mod report;
mod stats;
mod storage;
mod uses;
mod vector;

pub use allocator::{Allocator, AllocatorOptions, MemorySource};
pub use block::Region;
pub use classes::block_bytes;
pub use origin::Origin;
pub use owner::{MemoryOwner, MemoryUse};
pub use report::{DeviceMemory, MemoryFailure, MemoryHolder, MemoryReport};
pub(crate) use report::{by_use, write_tables};
pub use stats::MemoryStats;
pub use storage::{Storage, Writing};
pub use uses::{Line, Ticket, Tickets};
pub(crate) use vector::{with_room, zeroed};
