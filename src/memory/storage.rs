//! [`Storage`]: a counted handle to a block of bytes.

use super::block::{Block, Memory};
use super::origin::Origin;
use super::owner::{MemoryOwner, MemoryUse, OwnerId};
use super::uses::{Ticket, Tickets};
use crate::error::{CallSite, Error, NameScope, Result};
use crate::placement::Device;
use oflow_kernels::Element;
use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

/// A handle to a block of bytes on a device. Clones share the block. Dropping the last handle returns the block to its allocator.
///
/// The handle has its own reference count instead of being an `Arc`, so that the last one can put the *whole* block, counters
/// included, into its allocator's free list. So an allocation of a cached block does not use the heap. [`ptr`](Self::ptr) gives
/// access to the bytes; the caller orders reads and writes.
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

    #[inline]
    fn block(&self) -> &Block {
        // SAFETY: every handle is counted and the block lives until the last one is dropped.
        unsafe { self.0.as_ref() }
    }

    /// Makes a storage of bytes that belong to `owner`, such as a file mapping or another library's tensor. The owner is dropped
    /// with the storage, on any thread.
    ///
    /// # Safety
    /// `data` is memory of `device` and valid for reads of `bytes` initialised bytes as long as `owner` lives; and for writes, if
    /// the storage is written.
    pub unsafe fn external(device: Device, data: *mut u8, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Storage {
        Storage::new(Block::new(data, bytes, device, Origin::DATA, Memory::External { _owner: owner }))
    }

    /// Makes a storage of a part of this one, which has users and a version of its own and keeps the whole. Parts that overlap do not know
    /// of each other's users: whoever makes them orders their uses.
    ///
    /// # Errors
    /// If the bytes do not lie in the storage.
    pub fn part(&self, offset: usize, bytes: usize) -> Result<Storage> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes()) {
            return Err(Error::argument(format!("bytes {offset}..+{bytes} do not lie in {self:?}")));
        }
        // A dry run has no bytes behind its addresses.
        let data = if self.origin().is_dry() { self.ptr() } else { self.ptr().wrapping_add(offset) };
        let memory = Memory::External { _owner: Box::new(self.clone()) };
        Ok(Storage::new(Block::new(data, bytes, self.device(), self.origin(), memory)))
    }

    /// Makes a storage from a vector without copying.
    pub fn from_vec<T: Element>(values: Vec<T>) -> Storage {
        let mut values = ManuallyDrop::new(values);
        let (data, len, capacity) = (values.as_mut_ptr(), values.len(), values.capacity());
        let owner = Box::new(VecOwner { data, capacity });
        // SAFETY: the vector's own pointer, kept alive by its owner; elements are plain data without padding.
        unsafe { Storage::external(Device::Cpu, data.cast(), len * size_of::<T>(), owner) }
    }

    /// Returns the address of the first byte. It is never null. It must not be read if [`bytes`](Self::bytes) is 0, nor in a dry
    /// run.
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        self.block().data
    }

    /// Returns the number of bytes requested.
    pub fn bytes(&self) -> usize {
        self.block().bytes
    }

    /// Returns the device.
    pub fn device(&self) -> Device {
        self.block().device
    }

    /// Returns the origin: a storage of a dry run has no memory.
    #[inline]
    pub fn origin(&self) -> Origin {
        self.block().origin
    }

    /// Returns the number of in-place changes since the allocation.
    pub fn version(&self) -> u64 {
        self.block().version.load(Ordering::Acquire)
    }

    /// Counts an in-place change and returns the new version.
    pub fn bump_version(&self) -> u64 {
        self.block().version.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Notes that another library shares the memory: it may be written without a change of the [`version`](Self::version).
    pub fn share_outside(&self) {
        self.block().outside.store(true, Ordering::Release);
    }

    /// Returns whether another library shares the memory, or did.
    pub fn is_shared_outside(&self) -> bool {
        self.block().outside.load(Ordering::Acquire)
    }

    /// Returns whether this is the only handle.
    pub fn is_unique(&self) -> bool {
        self.block().handles.load(Ordering::Acquire) == 1
    }

    /// Returns the number of handles.
    #[inline]
    pub fn holders(&self) -> usize {
        self.block().handles.load(Ordering::Acquire)
    }

    /// Returns a number that is unique among live blocks.
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Returns whether a stream has been given work on it: there may be work to wait for.
    #[inline]
    pub fn is_streamed(&self) -> bool {
        self.block().uses.is_streamed()
    }

    /// Adds the tickets that a reader of the storage must wait for.
    pub fn before_read(&self, tickets: &mut Tickets) {
        self.block().uses.before_read(tickets);
    }

    /// Adds the tickets that a writer of the storage must wait for.
    pub fn before_write(&self, tickets: &mut Tickets) {
        self.block().uses.before_write(tickets);
    }

    /// Records work of a stream that reads the storage.
    pub fn read_by(&self, ticket: &Ticket) {
        self.block().uses.read_by(ticket);
    }

    /// Records work of a stream that writes the storage.
    pub fn written_by(&self, ticket: &Ticket) {
        self.block().uses.written_by(ticket);
    }

    /// Returns the counter of writes, for [`still`](Storage::still) after reading.
    ///
    /// # Errors
    /// If another thread is writing the storage.
    #[inline]
    pub fn turn(&self) -> Result<u64> {
        self.block().uses.turn()
    }

    /// Checks that the storage has not been written since [`turn`](Storage::turn) returned `turn`.
    ///
    /// # Errors
    /// If another thread has written it.
    #[inline]
    pub fn still(&self, turn: u64) -> Result<()> {
        self.block().uses.still(turn)
    }

    /// Marks the storage as being written, until the mark is dropped.
    ///
    /// # Errors
    /// If another thread is writing the storage.
    pub fn begin_write(&self) -> Result<Writing<'_>> {
        self.block().uses.begin_write()?;
        Ok(Writing(self))
    }

    /// Ends a write whose mark was [left](Writing::leave).
    pub(crate) fn end_write(&self) {
        self.block().uses.end_write();
    }

    /// Says what the block is used for, for memory reports. Blocks of less than 4 KiB and memory of other libraries have no owner to change.
    pub(crate) fn set_use(&self, used_for: MemoryUse) {
        let block = self.block();
        if let Memory::Cached { home, .. } = &block.memory
            && block.owner.get() != OwnerId::NONE
            && let Some(home) = home.upgrade()
        {
            home.change_owner(block, |owner| MemoryOwner { used_for, ..owner });
        }
    }

    /// Makes the owner of `before`, in whose place this block is, that of this one.
    pub(crate) fn inherit_owner(&self, before: &Storage) {
        let block = self.block();
        if let (Memory::Cached { home, .. }, Some(owner)) = (&block.memory, before.owner())
            && block.owner.get() != OwnerId::NONE
            && let Some(home) = home.upgrade()
        {
            home.change_owner(block, |_| owner);
        }
    }

    /// The owner of the block in memory reports. Blocks of less than 4 KiB and memory of other libraries have none.
    pub(crate) fn owner(&self) -> Option<MemoryOwner> {
        let block = self.block();
        match &block.memory {
            Memory::Cached { home, .. } if block.owner.get() != OwnerId::NONE => home.upgrade()?.owner_of(block),
            _ => None,
        }
    }

    /// Says in which module the block is used, for memory reports, unless it was made in one. Costs two loads where there is nothing to say.
    #[inline]
    pub(crate) fn name_owner(&self, scope: NameScope) {
        let owner = &self.block().owner;
        if owner.get() != OwnerId::NONE && !owner.is_in_scope() && scope != NameScope::default() {
            self.name_owner_now(scope);
        }
    }

    #[cold]
    fn name_owner_now(&self, scope: NameScope) {
        let block = self.block();
        if let Memory::Cached { home, .. } = &block.memory
            && let Some(home) = home.upgrade()
        {
            home.change_owner(block, |o| MemoryOwner { site: CallSite { scope, ..o.site }, ..o });
        }
    }

    /// Returns whether both are handles to one block.
    #[inline]
    pub fn same_block(&self, other: &Storage) -> bool {
        self.0 == other.0
    }
}

/// Marks a storage as being written until it is dropped.
#[must_use = "the storage is being written until this is dropped"]
pub struct Writing<'a>(&'a Storage);

impl Writing<'_> {
    /// Leaves the mark, for [`Storage::end_write`].
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.block().uses.end_write();
    }
}

impl Clone for Storage {
    #[inline]
    fn clone(&self) -> Storage {
        // Relaxed as in `Arc`: a new handle comes from one that is alive.
        self.block().handles.fetch_add(1, Ordering::Relaxed);
        Storage(self.0)
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        if self.block().handles.fetch_sub(1, Ordering::Release) == 1 {
            self.drop_block();
        }
    }
}

impl Storage {
    fn drop_block(&mut self) {
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
