//! The caching allocator of one rank's device.

use super::block::{Block, Memory, OwnerCell, Pages, Region};
use super::classes::{CLASSES, class_of};
use super::origin::Origin;
use super::owner::{MemoryOwner, MemoryUse, OWNED_FROM, OwnerId, Owners};
use super::report::{DeviceMemory, MemoryFailure, holders, largest};
use super::stats::MemoryStats;
use super::storage::Storage;
use crate::error::{CallSite, Error, ErrorKind, Result};
use crate::placement::Device;
use crate::trace::{self, What};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Options of an [`Allocator`].
#[derive(Clone, Copy, Debug)]
pub struct AllocatorOptions {
    /// Largest sum of idle blocks in bytes. Above it the largest blocks are freed first.
    pub cache_bytes: usize,
    /// Fills freed blocks with `0xCB`, so that tests detect reads after free.
    pub poison_on_free: bool,
}

impl Default for AllocatorOptions {
    /// Keeps up to 64 GiB of idle blocks; does not fill freed blocks.
    fn default() -> Self {
        AllocatorOptions { cache_bytes: 64 << 30, poison_on_free: false }
    }
}

/// A caching allocator: it keeps freed blocks for later allocations of their size class. Clones are handles to the same
/// allocator. A block that outlives its allocator frees its memory itself.
#[derive(Clone)]
pub struct Allocator(Arc<Shared>);

pub(super) struct Shared {
    device: Device,
    source: Source,
    options: AllocatorOptions,
    state: Mutex<State>,
}

/// Where new blocks come from.
enum Source {
    /// Memory of this process.
    Host,
    /// Memory that a backend takes from its device.
    Device(Arc<dyn MemorySource>),
    /// Nowhere: they are only counted.
    Dry(Origin),
}

/// Takes memory from a device for an [`Allocator`].
pub trait MemorySource: Send + Sync {
    /// Memory of that many bytes, aligned to 64 at least.
    ///
    /// # Errors
    /// Of the kind `Memory` when there is not enough: the allocator then gives back what it has cached and asks again.
    fn allocate(&self, bytes: usize) -> Result<Region>;
}

struct State {
    /// The lists of the classes that are used.
    lists: Vec<List>,
    /// Per class the number of its list, counted from 1; 0 where there is none. Few of the classes are ever used.
    list_of: Vec<u16>,
    stats: MemoryStats,
    owners: Owners,
    /// The last allocation that failed.
    failure: Option<MemoryFailure>,
    /// Bytes in use when the timeline was told last, in all and by use.
    shown: (usize, [usize; MemoryUse::ALL.len()]),
}

/// Change of the bytes in use that the timeline shows.
const SHOWN: usize = 1 << 20;

/// The blocks of a class.
#[derive(Default)]
struct List {
    /// The boxes are kept whole, so that reusing one allocates nothing.
    #[allow(clippy::vec_box)]
    idle: Vec<Box<Block>>,
    /// Number of blocks that exist, idle or in use: the room that the list has reserved.
    existing: usize,
}

impl State {
    /// The list of a class, if there is one.
    #[inline]
    fn list(&mut self, class: usize) -> Option<&mut List> {
        self.lists.get_mut(usize::from(self.list_of[class]).wrapping_sub(1))
    }

    /// The list of a class, which is made if there is none.
    #[inline]
    fn list_made(&mut self, class: usize) -> &mut List {
        if self.list_of[class] == 0 {
            self.lists.push(List::default());
            self.list_of[class] = self.lists.len() as u16;
        }
        let at = usize::from(self.list_of[class]) - 1;
        &mut self.lists[at]
    }
}

impl Allocator {
    /// Makes an allocator for the CPU.
    pub fn cpu(options: AllocatorOptions) -> Allocator {
        Allocator::host(Device::Cpu, options)
    }

    /// Makes an allocator of host memory for `device`: the CPU, or a test device that runs on it.
    pub fn host(device: Device, options: AllocatorOptions) -> Allocator {
        Self::new(device, Source::Host, options)
    }

    /// Makes an allocator of a device's own memory, taken from `source`. Work on a stream may still use a freed block; the
    /// device's streams make the next user of the block wait for that work, wherever it runs.
    pub fn device(device: Device, source: Arc<dyn MemorySource>, options: AllocatorOptions) -> Allocator {
        Self::new(device, Source::Device(source), options)
    }

    /// An allocator of a dry run: it counts the blocks that the allocator of such a device would hand out, in the same size
    /// classes and with the same statistics, and takes no memory for them.
    pub(crate) fn dry(device: Device, origin: Origin, options: AllocatorOptions) -> Allocator {
        Self::new(device, Source::Dry(origin), options)
    }

    fn new(device: Device, source: Source, options: AllocatorOptions) -> Allocator {
        let state = State {
            lists: Vec::new(),
            list_of: vec![0; CLASSES],
            stats: MemoryStats::default(),
            owners: Owners::new(),
            failure: None,
            shown: Default::default(),
        };
        Allocator(Arc::new(Shared { device, source, options, state: Mutex::new(state) }))
    }

    /// Returns a storage of `bytes` bytes, aligned to 64. Its contents are initialised but arbitrary. Memory reports count it for what
    /// this thread does ([`MemoryOwner::here`]).
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn alloc(&self, bytes: usize) -> Result<Storage> {
        let Some((class, size)) = class_of(bytes) else {
            return Err(self.out_of_memory(bytes));
        };
        let reused = {
            let mut state = self.0.lock();
            let reused = state.list(class).and_then(|list| list.idle.pop());
            reused.map(|block| {
                state.stats.cached -= size;
                state.stats.hits += 1;
                let owner = state.use_bytes(size);
                self.0.show(&mut state);
                (block, owner)
            })
        };
        match reused {
            Some((mut block, owner)) => {
                block.owner = owner;
                block.bytes = bytes;
                *block.version.get_mut() = 0;
                *block.outside.get_mut() = false;
                block.uses.renew();
                Ok(Storage::new(block))
            }
            None => self.alloc_new(bytes, class, size),
        }
    }

    #[cold]
    fn alloc_new(&self, bytes: usize, class: usize, size: usize) -> Result<Storage> {
        let pages = match self.0.pages(size) {
            Ok(pages) => pages,
            // A GPU may have failed at something else before, and tells it now.
            Err(e) if e.kind() != ErrorKind::Memory => return Err(e),
            // What is cached may make room.
            Err(_) => {
                self.trim();
                self.0.pages(size).map_err(|e| self.out_of_memory(bytes).because(e))?
            }
        };
        let owner = {
            let mut state = self.0.lock();
            state.stats.misses += 1;
            let owner = state.use_bytes(size);
            self.0.show(&mut state);
            let list = state.list_made(class);
            list.existing += 1;
            // Room for every block of the class now, so that freeing one never grows the list.
            list.idle.reserve(list.existing - list.idle.len());
            owner
        };
        let (data, home) = (pages.data(), Arc::downgrade(&self.0));
        let memory = Memory::Cached { pages, class, home };
        let mut block = Block::new(data, bytes, self.0.device, self.0.origin(), memory);
        block.owner = owner;
        Ok(Storage::new(block))
    }

    /// The error of an allocation that failed. Who held memory then is kept for the memory report.
    fn out_of_memory(&self, bytes: usize) -> Error {
        let owner = MemoryOwner::here();
        let mut state = self.0.lock();
        let held = holders(&state.owners.now(), state.stats.live);
        let largest = largest(&held);
        let failure = MemoryFailure {
            bytes,
            op: owner.op.to_string(),
            line: owner.site.to_string(),
            live: state.stats.live,
            held,
        };
        state.failure = Some(failure);
        Error::memory(format!("cannot allocate {bytes} bytes on {}: {}", self.0.device, state.stats))
            .help(format!("use smaller batches or shard over more ranks{largest}"))
    }

    /// Returns who holds memory now, at the peak, and when an allocation failed.
    pub fn report(&self) -> DeviceMemory {
        let state = self.0.lock();
        DeviceMemory {
            device: self.0.device.name().to_string(),
            stats: state.stats,
            now: holders(&state.owners.now(), state.stats.live),
            peak: holders(&state.owners.then(), state.stats.peak),
            failure: state.failure.clone(),
        }
    }

    /// Makes the bytes in use now the peak: later reports tell the peak since this call.
    pub fn reset_peak(&self) {
        let mut state = self.0.lock();
        state.stats.peak = state.stats.live;
        state.owners.at_peak();
    }

    /// Name of the device.
    pub(crate) fn device_name(&self) -> &'static str {
        self.0.device.name()
    }

    /// Returns the memory in use and cached.
    pub fn stats(&self) -> MemoryStats {
        self.0.lock().stats
    }

    /// Frees all idle blocks.
    pub fn trim(&self) {
        self.0.shrink_to(0);
    }
}

impl State {
    #[inline]
    fn use_bytes(&mut self, size: usize) -> OwnerCell {
        let owner = if size < OWNED_FROM { OwnerCell::default() } else { self.own_bytes(size) };
        self.stats.live += size;
        if self.stats.live > self.stats.peak {
            self.stats.peak = self.stats.live;
            self.owners.at_peak();
        }
        owner
    }

    fn own_bytes(&mut self, size: usize) -> OwnerCell {
        let owner = MemoryOwner::here();
        let id = self.owners.id(&owner);
        self.owners.add(id, size);
        OwnerCell::new(id, owner.is_in_scope())
    }
}

impl Shared {
    /// New memory from the system.
    fn pages(&self, size: usize) -> Result<Pages> {
        match &self.source {
            Source::Host => Pages::host(size).ok_or_else(|| Error::memory("the system has none")),
            Source::Device(source) => Ok(Pages::Device { region: source.allocate(size)?, size }),
            Source::Dry(_) => Ok(Pages::Dry(size)),
        }
    }

    fn origin(&self) -> Origin {
        if let Source::Dry(origin) = self.source { origin } else { Origin::DATA }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the bytes in use in the timeline when they have changed by a mebibyte.
    #[inline]
    fn show(&self, state: &mut State) {
        let begin = trace::begin();
        if begin.is_recorded() && state.stats.live.abs_diff(state.shown.0) >= SHOWN {
            state.shown.0 = state.stats.live;
            let device = self.device.name();
            let tell = |used_for, bytes| {
                begin.end(CallSite::at("", 0), || What::Memory { device, used_for, bytes: bytes as u64 });
            };
            tell("", state.stats.live);
            for (used_for, shown) in MemoryUse::ALL.iter().zip(&mut state.shown.1) {
                let bytes = state.owners.sum(*used_for);
                if bytes.abs_diff(*shown) >= SHOWN {
                    *shown = bytes;
                    tell(used_for.name(), bytes);
                }
            }
        }
    }

    /// The owner of a block, if it has one.
    pub(super) fn owner_of(&self, block: &Block) -> Option<MemoryOwner> {
        self.lock().owners.owner(block.owner.get()).copied()
    }

    /// Counts a block for another owner.
    pub(super) fn change_owner(&self, block: &Block, change: impl FnOnce(MemoryOwner) -> MemoryOwner) {
        let Memory::Cached { pages, .. } = &block.memory else { return };
        let mut state = self.lock();
        let before = block.owner.get();
        let Some(owner) = state.owners.owner(before) else { return };
        let owner = change(*owner);
        let after = state.owners.id(&owner);
        if after != before {
            state.owners.remove(before, pages.size());
            state.owners.add(after, pages.size());
        }
        block.owner.set(after, owner.is_in_scope());
    }

    /// Takes a block whose last handle is gone.
    pub(super) fn put_back(&self, mut block: Box<Block>) {
        let Memory::Cached { pages, class, .. } = &mut block.memory else { return };
        if self.options.poison_on_free {
            pages.fill(0xCB);
        }
        let (size, class) = (pages.size(), *class);
        let owner = block.owner.get();
        let mut state = self.lock();
        if owner != OwnerId::NONE {
            state.owners.remove(owner, size);
        }
        state.stats.live -= size;
        state.stats.cached += size;
        self.show(&mut state);
        state.list_made(class).idle.push(block);
        let full = state.stats.cached > self.options.cache_bytes;
        drop(state);
        if full {
            self.shrink_to(self.options.cache_bytes);
        }
    }

    /// Drops idle blocks, the largest first, until at most that many bytes are cached.
    fn shrink_to(&self, bytes: usize) {
        let mut class = CLASSES;
        loop {
            let mut state = self.lock();
            if state.stats.cached <= bytes {
                return;
            }
            while class > 0 && state.list(class - 1).is_none_or(|list| list.idle.is_empty()) {
                class -= 1;
            }
            if class == 0 {
                return;
            }
            let Some(list) = state.list(class - 1) else { continue };
            let Some(block) = list.idle.pop() else { continue };
            if let Memory::Cached { pages, .. } = &block.memory {
                list.existing -= 1;
                state.stats.cached -= pages.size();
            }
            // Unmapping takes time that others should not wait.
            drop(state);
            drop(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator(cache_bytes: usize) -> Allocator {
        Allocator::cpu(AllocatorOptions { cache_bytes, poison_on_free: false })
    }

    fn bytes_of(s: &Storage) -> &[u8] {
        // SAFETY: allocated in this test, and nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(s.ptr(), s.bytes()) }
    }

    #[test]
    fn new_blocks_are_zero_aligned_and_writable() {
        let a = allocator(1 << 30);
        let mut kept = Vec::new();
        for bytes in [0, 1, 63, 64, 65, 4096, 4097, 100_000, 1 << 20, (3 << 20) + 1] {
            let s = a.alloc(bytes).unwrap();
            assert_eq!((s.bytes(), s.ptr().addr() % 64, s.version()), (bytes, 0, 0));
            assert!(bytes_of(&s).iter().all(|b| *b == 0));
            // SAFETY: this test's own storage.
            unsafe { s.ptr().write_bytes(7, bytes) };
            kept.push(s);
        }
        drop(kept);
        assert_eq!(a.stats().live, 0);
    }

    #[test]
    fn a_freed_block_serves_its_whole_class() {
        let a = allocator(1 << 30);
        let first = a.alloc(5000).unwrap();
        let at = first.ptr();
        first.bump_version();
        let second = first.clone();
        drop(first);
        assert_eq!(a.stats().live, 5120);
        drop(second);
        let again = a.alloc(5120).unwrap();
        assert_eq!((again.ptr(), again.version(), again.bytes()), (at, 0, 5120));
        let s = MemoryStats { live: 5120, cached: 0, peak: 5120, hits: 1, misses: 1 };
        assert_eq!(a.stats(), s);
        drop(again);
        a.trim();
        assert_eq!(a.stats(), MemoryStats { live: 0, ..s });
    }

    #[test]
    fn the_largest_idle_blocks_are_evicted_first() {
        let a = allocator(8192);
        let (small, large, medium) = (a.alloc(64).unwrap(), a.alloc(1 << 21).unwrap(), a.alloc(8000).unwrap());
        drop(small);
        drop(large);
        assert_eq!(a.stats().cached, 64);
        drop(medium);
        assert_eq!(a.stats().cached, 64);
        let kept: Vec<_> = (0..3).map(|_| a.alloc(2048).unwrap()).collect();
        drop(kept);
        assert_eq!(a.stats().cached, 64 + 3 * 2048);
    }

    #[test]
    fn too_much_is_an_error_with_the_numbers() {
        let a = allocator(1 << 30);
        let _live = a.alloc(100).unwrap();
        for bytes in [usize::MAX, 1 << 46] {
            let e = a.alloc(bytes).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Memory);
            let text = format!("cannot allocate {bytes} bytes on cpu: 128 bytes in use, 0 cached");
            assert!(e.message().starts_with(&text), "{e}");
        }
    }

    #[test]
    fn freed_from_any_thread_and_after_the_allocator() {
        let a = allocator(1 << 30);
        let blocks: Vec<_> = (0..64).map(|i| a.alloc(i * 100).unwrap()).collect();
        std::thread::scope(|s| {
            for chunk in blocks.chunks(16) {
                let mine: Vec<_> = chunk.to_vec();
                s.spawn(move || drop(mine));
            }
        });
        std::thread::spawn(move || drop(blocks)).join().unwrap();
        assert_eq!(a.stats().live, 0);
        let last = a.alloc(1000).unwrap();
        drop(a);
        assert!(bytes_of(&last).iter().all(|b| *b == 0));
    }

    #[test]
    fn poison_shows_a_read_after_free() {
        let a = Allocator::cpu(AllocatorOptions { poison_on_free: true, ..Default::default() });
        drop(a.alloc(200).unwrap());
        let s = a.alloc(200).unwrap();
        assert_eq!(bytes_of(&s), [0xCB; 200]);
    }

    #[test]
    fn a_dry_allocator_counts_like_a_real_one_and_takes_nothing() {
        let options = AllocatorOptions { cache_bytes: 1 << 20, ..Default::default() };
        let (real, dry) = (Allocator::cpu(options), Allocator::dry(Device::Cpu, Origin::dry_run(0, 1), options));
        let (mut held, mut seed) = (Vec::new(), 1u64);
        for _ in 0..2000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if seed >> 63 == 0 || held.is_empty() {
                let bytes = (seed >> 40) as usize % 300_000;
                held.push((real.alloc(bytes).unwrap(), dry.alloc(bytes).unwrap()));
            } else {
                held.swap_remove((seed >> 33) as usize % held.len());
            }
            assert_eq!(real.stats(), dry.stats());
        }
        // More than any machine has.
        let most = dry.alloc(1 << 46).unwrap();
        assert_eq!((most.bytes(), most.origin().is_dry(), held[0].0.origin().is_dry()), (1 << 46, true, false));
        assert_eq!(dry.alloc(usize::MAX).unwrap_err().kind(), ErrorKind::Memory);
    }

    #[test]
    fn external_memory_keeps_its_owner() {
        let owner = Arc::new(());
        let data = Box::leak(Box::new([1u8, 2, 3]));
        // SAFETY: leaked, so valid for ever.
        let s = unsafe { Storage::external(Device::Cpu, data.as_mut_ptr(), 3, Box::new(owner.clone())) };
        let t = s.clone();
        drop(s);
        assert_eq!((Arc::strong_count(&owner), bytes_of(&t)), (2, &[1u8, 2, 3][..]));
        drop(t);
        assert_eq!(Arc::strong_count(&owner), 1);
        let v = Storage::from_vec(vec![1.0f32, 2.0]);
        assert_eq!((v.bytes(), bytes_of(&v)), (8, &[0, 0, 128, 63, 0, 0, 0, 64][..]));
        assert_eq!(Storage::from_vec(Vec::<i64>::new()).bytes(), 0);
    }
}
