//! Where tensors' bytes live: [`Storage`], a counted handle to a block of bytes, and the caching [`Allocator`] that most
//! blocks come from and return to.
//!
//! Knows devices and bytes; knows nothing of tensors, dtypes of elements in a block, or who reads when. Dropping a storage
//! needs no rank context and may happen on any thread, also after the allocator is gone.

mod allocator;
mod block;
mod classes;
mod origin;
mod storage;
mod uses;
mod vector;

pub use allocator::{Allocator, AllocatorOptions, MemorySource, MemoryStats};
pub use block::Region;
pub use origin::Origin;
pub use storage::{Storage, Writing};
pub use uses::{Line, Ticket, Tickets};
pub(crate) use vector::{with_room, zeroed};
