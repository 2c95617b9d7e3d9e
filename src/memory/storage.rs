//! [`Storage`]: a counted handle to a block of bytes.

use super::block::{Block, Memory};
use super::origin::Origin;
use super::uses::{Ticket, Tickets, Uses};
use crate::error::Result;
use crate::placement::Device;
use oflow_kernels::Element;
use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// A handle to a block of bytes on a device. Cloning shares the block; the last handle gives it back.
///
/// The handle counts references itself instead of being an `Arc`, so that the last one can put the *whole* block, counters
/// included, into its allocator's free list: a warm allocation touches no heap. The bytes are reached through
/// [`ptr`](Self::ptr); who reads and who writes when is decided above (views, versions, streams).
///
/// ```
/// use oflow::memory::{Allocator, AllocatorOptions};
/// let memory = Allocator::cpu(AllocatorOptions::default());
/// let a = memory.alloc(100)?;
/// let b = a.clone();
/// b.bump_version();
/// assert_eq!((a.version(), a.bytes(), a.is_unique()), (1, 100, false));
/// drop(b);
/// assert!(a.is_unique());
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Storage(NonNull<Block>);

// SAFETY: a counted pointer to a block, which is Send and Sync.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    pub(super) fn new(block: Box<Block>) -> Storage {
        block.handles.store(1, Ordering::Relaxed);
        Storage(NonNull::from(Box::leak(block)))
    }

    fn block(&self) -> &Block {
        // SAFETY: every handle is counted and the block lives until the last one is dropped.
        unsafe { self.0.as_ref() }
    }

    /// Bytes that belong to `owner` (a file mapping, another library's tensor), which lives as long as the storage and may
    /// be dropped on any thread.
    ///
    /// # Safety
    /// `data` is valid for reads of `bytes` initialised bytes, and for writes if anyone writes to the storage, as long as
    /// `owner` lives; memory of `device`.
    pub unsafe fn external(device: Device, data: *mut u8, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Storage {
        Storage::new(Box::new(Block {
            handles: AtomicUsize::new(1),
            version: AtomicU64::new(0),
            uses: Uses::default(),
            data,
            bytes,
            device,
            origin: Origin::DATA,
            memory: Memory::External { _owner: owner },
        }))
    }

    /// Takes over a vector without copying.
    pub fn from_vec<T: Element>(values: Vec<T>) -> Storage {
        let mut values = ManuallyDrop::new(values);
        let (data, len, capacity) = (values.as_mut_ptr(), values.len(), values.capacity());
        let owner = Box::new(VecOwner { data, capacity });
        // SAFETY: the vector's own pointer, kept alive by its owner; elements are plain data without padding.
        unsafe { Storage::external(Device::Cpu, data.cast(), len * size_of::<T>(), owner) }
    }

    /// The first byte. Never null, but not to be read when [`bytes`](Self::bytes) is 0, nor in a dry run.
    pub fn ptr(&self) -> *mut u8 {
        self.block().data
    }

    /// How many bytes were asked for.
    pub fn bytes(&self) -> usize {
        self.block().bytes
    }

    /// The device whose memory it is.
    pub fn device(&self) -> Device {
        self.block().device
    }

    /// Whether it has bytes, or is one of a dry run, whose bytes are only counted.
    pub fn origin(&self) -> Origin {
        self.block().origin
    }

    /// How often the contents were changed in place. Starts at 0 when the storage is allocated.
    pub fn version(&self) -> u64 {
        self.block().version.load(Ordering::Acquire)
    }

    /// The contents were changed in place; returns the new version.
    pub fn bump_version(&self) -> u64 {
        self.block().version.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Whether this is the only handle, so that nobody else can see a change.
    pub fn is_unique(&self) -> bool {
        self.block().handles.load(Ordering::Acquire) == 1
    }

    /// How many handles there are.
    pub fn holders(&self) -> usize {
        self.block().handles.load(Ordering::Acquire)
    }

    /// A number that tells this block from every other that is alive.
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Adds the work of streams that a reader of the storage waits for.
    pub fn before_read(&self, tickets: &mut Tickets) {
        self.block().uses.before_read(tickets);
    }

    /// Adds the work of streams that a writer of the storage waits for.
    pub fn before_write(&self, tickets: &mut Tickets) {
        self.block().uses.before_write(tickets);
    }

    /// Notes work of a stream that reads the storage.
    pub fn read_by(&self, ticket: &Ticket) {
        self.block().uses.read_by(ticket);
    }

    /// Notes work of a stream that writes the storage.
    pub fn written_by(&self, ticket: &Ticket) {
        self.block().uses.written_by(ticket);
    }

    /// What [`still`](Storage::still) is asked with when the storage has been read.
    ///
    /// # Errors
    /// While another thread writes it.
    pub fn turn(&self) -> Result<u64> {
        self.block().uses.turn()
    }

    /// Nobody has written the storage since that turn.
    ///
    /// # Errors
    /// When another thread has.
    pub fn still(&self, turn: u64) -> Result<()> {
        self.block().uses.still(turn)
    }

    /// Marks the storage as being written, until the mark is dropped.
    ///
    /// # Errors
    /// When another thread writes it already.
    pub fn begin_write(&self) -> Result<Writing<'_>> {
        self.block().uses.begin_write()?;
        Ok(Writing(self))
    }

    /// Whether both are handles to one block.
    pub fn same_block(&self, other: &Storage) -> bool {
        self.0 == other.0
    }
}

/// A storage is being written as long as this lives.
#[must_use = "the storage is being written until this is dropped"]
pub struct Writing<'a>(&'a Storage);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.block().uses.end_write();
    }
}

impl Clone for Storage {
    fn clone(&self) -> Storage {
        // Relaxed as in `Arc`: a new handle comes from one that is alive.
        self.block().handles.fetch_add(1, Ordering::Relaxed);
        Storage(self.0)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if self.block().handles.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // What other handles did before they were dropped comes before the block's next life.
        fence(Ordering::Acquire);
        // SAFETY: the last handle; the block came from a box in `new`.
        let block = unsafe { Box::from_raw(self.0.as_ptr()) };
        if let Memory::Cached { home, .. } = &block.memory
            && let Some(home) = home.upgrade()
        {
            home.put_back(block);
        }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes on {}, version {})", self.bytes(), self.device(), self.version())
    }
}

/// A vector taken apart.
struct VecOwner<T> {
    data: *mut T,
    capacity: usize,
}

// SAFETY: owns plain elements, which are Send and Sync.
unsafe impl<T: Element> Send for VecOwner<T> {}
// SAFETY: as above; it offers no access at all.
unsafe impl<T: Element> Sync for VecOwner<T> {}

impl<T> Drop for VecOwner<T> {
    fn drop(&mut self) {
        // SAFETY: pointer and capacity of a vector of `from_vec`. Elements need no drop: they are Copy.
        drop(unsafe { Vec::from_raw_parts(self.data, 0, self.capacity) });
    }
}
