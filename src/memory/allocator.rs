//! The caching allocator of one rank's device.

use super::block::{Block, Memory, Pages, Region};
use super::classes::{CLASSES, class_of};
use super::origin::Origin;
use super::storage::Storage;
use crate::error::{Error, ErrorKind, Result};
use crate::placement::Device;
use std::fmt;
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

/// Memory of an allocator, in bytes of whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

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
        let state = State { lists: Vec::new(), list_of: vec![0; CLASSES], stats: MemoryStats::default() };
        Allocator(Arc::new(Shared { device, source, options, state: Mutex::new(state) }))
    }

    /// Returns a storage of `bytes` bytes, aligned to 64. Its contents are initialised but arbitrary.
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
            if reused.is_some() {
                state.stats.cached -= size;
                state.stats.hits += 1;
                state.use_bytes(size);
            }
            reused
        };
        match reused {
            Some(mut block) => {
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
        {
            let mut state = self.0.lock();
            state.stats.misses += 1;
            state.use_bytes(size);
            let list = state.list_made(class);
            list.existing += 1;
            // Room for every block of the class now, so that freeing one never grows the list.
            list.idle.reserve(list.existing - list.idle.len());
        }
        let (data, home) = (pages.data(), Arc::downgrade(&self.0));
        let memory = Memory::Cached { pages, class, home };
        Ok(Storage::new(Block::new(data, bytes, self.0.device, self.0.origin(), memory)))
    }

    fn out_of_memory(&self, bytes: usize) -> Error {
        Error::memory(format!("cannot allocate {bytes} bytes on {}: {}", self.0.device, self.stats()))
            .help("use smaller batches or shard over more ranks")
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
    fn use_bytes(&mut self, size: usize) {
        self.stats.live += size;
        self.stats.peak = self.stats.peak.max(self.stats.live);
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

    /// Takes a block whose last handle is gone.
    pub(super) fn put_back(&self, mut block: Box<Block>) {
        let Memory::Cached { pages, class, .. } = &mut block.memory else { return };
        if self.options.poison_on_free {
            pages.fill(0xCB);
        }
        let (size, class) = (pages.size(), *class);
        let mut state = self.lock();
        state.stats.live -= size;
        state.stats.cached += size;
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
