//! A block: the bytes, their owner, and the counters that all handles share.

use super::allocator::Shared;
use super::classes::ALIGN;
use super::origin::Origin;
use super::owner::OwnerId;
use super::uses::Uses;
use crate::placement::Device;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::alloc::Layout;
use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Blocks from this size on are mappings of their own, with huge pages: page faults are what large tensors cost most.
pub(super) const MAPPED_FROM: usize = 1 << 20;

/// A large block is refused where it would leave less than this: what does not fit is then the tensor, which is an error, and
/// not some small vector, which would end the process.
const HEADROOM: usize = 64 << 20;

/// State that all handles to some bytes share.
pub(super) struct Block {
    pub handles: AtomicUsize,
    pub version: AtomicU64,
    /// Whether another library may write it, which no version counts.
    pub outside: AtomicBool,
    pub uses: Uses,
    pub data: *mut u8,
    /// Size that was asked for, in bytes; at most what the memory holds.
    pub bytes: usize,
    pub device: Device,
    pub origin: Origin,
    pub memory: Memory,
    /// Owner in the allocator's table, which changes under the allocator's lock.
    pub owner: OwnerCell,
}

impl Block {
    /// A block of `bytes` bytes from `data` on, without users.
    pub fn new(data: *mut u8, bytes: usize, device: Device, origin: Origin, memory: Memory) -> Box<Block> {
        Box::new(Block {
            handles: AtomicUsize::new(1),
            version: AtomicU64::new(0),
            outside: AtomicBool::new(false),
            uses: Uses::default(),
            data,
            bytes,
            device,
            origin,
            memory,
            owner: OwnerCell::default(),
        })
    }
}

/// Number of an owner, and whether it has the name scope of a module.
#[derive(Default)]
pub(super) struct OwnerCell(AtomicU32);

/// Bit of an owner in a name scope. Tables have fewer rows.
const IN_SCOPE: u32 = 1 << 31;

impl OwnerCell {
    pub(super) fn new(id: OwnerId, in_scope: bool) -> OwnerCell {
        let cell = OwnerCell::default();
        cell.set(id, in_scope);
        cell
    }
    pub(super) fn get(&self) -> OwnerId {
        OwnerId::from_number(self.0.load(Ordering::Relaxed) & !IN_SCOPE)
    }
    pub(super) fn is_in_scope(&self) -> bool {
        self.0.load(Ordering::Relaxed) & IN_SCOPE != 0
    }
    pub(super) fn set(&self, id: OwnerId, in_scope: bool) {
        self.0.store(id.number() | if in_scope { IN_SCOPE } else { 0 }, Ordering::Relaxed);
    }
}

/// The owner of the bytes.
pub(super) enum Memory {
    /// A block of an allocator, to which it returns if that is still there.
    Cached { pages: Pages, class: usize, home: Weak<Shared> },
    /// Memory of another owner, which is dropped with the block.
    External { _owner: Box<dyn Any + Send + Sync> },
}

/// Owned memory of a size class.
pub(super) enum Pages {
    Host(HostPages),
    Device {
        region: Region,
        size: usize,
    },
    /// So many bytes of a dry run: counted, but there are none.
    Dry(usize),
}

/// Memory of a device.
pub struct Region {
    data: *mut u8,
    /// Frees the memory when it is dropped.
    _owner: Box<dyn Any + Send + Sync>,
}

impl Region {
    /// Memory from `data` on, which is there until `owner` is dropped: on any thread, also after the device was closed.
    ///
    /// # Safety
    /// While the owner lives, whatever the device's backend lets use the memory (its kernels, its copies, and the host where
    /// it boxes there) may read and write as many bytes as were asked for, and nobody else does.
    pub unsafe fn new(data: *mut u8, owner: impl Any + Send + Sync) -> Region {
        Region { data, _owner: Box::new(owner) }
    }
}

/// Memory of this process.
pub(super) struct HostPages {
    data: NonNull<u8>,
    size: usize,
}

impl Pages {
    /// Zeroed memory of that many bytes, or nothing if there is none.
    pub fn host(size: usize) -> Option<Pages> {
        let data = if size >= MAPPED_FROM { map(size) } else { heap(size) };
        Some(Pages::Host(HostPages { data: data?, size }))
    }
    pub fn data(&self) -> *mut u8 {
        match self {
            Pages::Host(p) => p.data.as_ptr(),
            Pages::Device { region, .. } => region.data,
            // In the first page, which is never mapped: an access would fault.
            Pages::Dry(_) => std::ptr::without_provenance_mut(ALIGN),
        }
    }
    pub fn size(&self) -> usize {
        match self {
            Pages::Host(p) => p.size,
            Pages::Device { size, .. } | Pages::Dry(size) => *size,
        }
    }
    /// Overwrites everything: a reader that should not read sees it. A device's own memory stays as it is.
    pub fn fill(&mut self, byte: u8) {
        if let Pages::Host(p) = self {
            // SAFETY: owned memory of `size` bytes, to which no handle exists any more.
            unsafe { p.data.write_bytes(byte, p.size) };
        }
    }
}

fn heap(size: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(size, ALIGN).ok().filter(|l| l.size() > 0)?;
    // SAFETY: the size is not zero. Zeroed, so that reading a new block is never reading uninitialised memory.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
}

fn map(size: usize) -> Option<NonNull<u8>> {
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    let with_headroom = size.checked_add(HEADROOM)?;
    // SAFETY: a new private mapping at an address of the kernel's choice.
    let data =
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), with_headroom, flags, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the end of the range just mapped, whose size is a multiple of the pages'.
    unsafe { rustix::mm::munmap(data.cast::<u8>().add(size).cast(), HEADROOM) }.ok()?;
    // SAFETY: the range just mapped. A hint: kernels without huge pages refuse it.
    let _ = unsafe { rustix::mm::madvise(data, size, Advice::LinuxHugepage) };
    NonNull::new(data.cast())
}

impl Drop for HostPages {
    fn drop(&mut self) {
        if self.size >= MAPPED_FROM {
            // SAFETY: the mapping of `map`; no handle to it exists any more.
            let _ = unsafe { rustix::mm::munmap(self.data.as_ptr().cast::<c_void>(), self.size) };
        } else if let Ok(layout) = Layout::from_size_align(self.size, ALIGN) {
            // SAFETY: allocated by `heap` with this layout.
            unsafe { std::alloc::dealloc(self.data.as_ptr(), layout) };
        }
    }
}

// SAFETY: a block owns its memory (or keeps the owner alive) and its counters are atomic; the bytes themselves are read and
// written through raw pointers, whose users order their accesses.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}
