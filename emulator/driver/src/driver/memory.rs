//! Memory: one reserved range of addresses per GPU, blocks in it, and page-locked host memory.
//!
//! Blocks are 512-byte aligned, have a fence behind them that is looked at when they are freed, and begin as garbage
//! (0xCB). Freed ones become garbage again and rest in quarantine before they are given out anew. In strict mode nothing
//! may touch a GPU's memory while no stream is at work: host code that takes a device pointer for its own crashes at once.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_uint, c_void};
use std::sync::Mutex;

use super::codes::*;
use super::gate::{self, AtWork, HUGE};
use super::*;

const GARBAGE: u8 = 0xCB;
const GRAIN: usize = 512;
const QUARANTINE: usize = 32 << 20;
/// Of blocks larger than twice this only the ends are made garbage, so that big reservations stay cheap.
const GARBAGE_END: usize = 16 << 20;

// ---- the heap of a GPU ----------------------------------------------------------------------------------------------

/// A live block. `dying` when its free is on its way in a stream.
struct Block {
    size: usize,
    /// Made in the order of a stream; only then may it be freed so.
    ordered: bool,
    dying: bool,
}

pub struct Heap {
    base: usize,
    capacity: usize,
    used: usize,
    high: usize,
    /// From here on no address was ever given out.
    fresh: usize,
    live: BTreeMap<usize, Block>,
    /// Address and whole length of what may be given out.
    free: BTreeMap<usize, usize>,
    quarantine: VecDeque<(usize, usize)>,
    resting: usize,
}

fn whole(size: usize) -> usize {
    size.next_multiple_of(GRAIN) + GRAIN
}

/// # Safety
/// The range lies in one heap and nobody uses it.
unsafe fn make_garbage(start: usize, len: usize) {
    let _at_work = AtWork::begin();
    let at = start as *mut u8;
    // SAFETY: ours alone by contract, and open while `_at_work` lives.
    unsafe {
        if len <= 2 * GARBAGE_END {
            at.write_bytes(GARBAGE, len);
        } else {
            at.write_bytes(GARBAGE, GARBAGE_END);
            at.add(len - GARBAGE_END).write_bytes(GARBAGE, GARBAGE_END);
        }
    }
}

impl Heap {
    /// Reserves addresses for `capacity` bytes, and room for fences.
    pub fn new(capacity: usize) -> Heap {
        let reserve = (capacity * 2).next_multiple_of(HUGE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping, at an address of the system's choice.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), reserve + HUGE, libc::PROT_NONE, flags, -1, 0) };
        assert!(
            base != libc::MAP_FAILED,
            "no addresses for emulated device memory: {}",
            std::io::Error::last_os_error()
        );
        let base = (base as usize).next_multiple_of(HUGE);
        // SAFETY: the aligned part of the mapping. With huge pages, opening and closing the gate costs little.
        unsafe { libc::madvise(base as *mut c_void, reserve, libc::MADV_HUGEPAGE) };
        gate::add(base);
        Heap {
            base,
            capacity,
            used: 0,
            high: 0,
            fresh: base,
            live: BTreeMap::new(),
            free: BTreeMap::from([(base, reserve)]),
            quarantine: VecDeque::new(),
            resting: 0,
        }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    fn allocate(&mut self, size: usize, ordered: bool) -> Outcome<usize> {
        let need = whole(size);
        if self.used + size.next_multiple_of(GRAIN) > self.capacity {
            return Err(OUT_OF_MEMORY);
        }
        let fit = |heap: &Heap| heap.free.iter().find(|&(_, &len)| len >= need).map(|(&start, &len)| (start, len));
        let (start, len) = loop {
            match fit(self) {
                Some(found) => break found,
                None if self.quarantine.is_empty() => return Err(OUT_OF_MEMORY),
                None => self.let_out(),
            }
        };
        self.free.remove(&start);
        if len > need {
            self.free.insert(start + need, len - need);
        }
        self.high = self.high.max((start + need - self.base).next_multiple_of(HUGE));
        gate::raise(self.base, self.high);
        // What was used before was left as garbage; what never was is zero.
        let zero = start.max(self.fresh);
        if start + need > zero {
            // SAFETY: just taken from the free ranges.
            unsafe { make_garbage(zero, start + need - zero) };
            self.fresh = start + need;
        }
        // The fence may lie where a large block's middle was, which nobody made garbage.
        // SAFETY: as above.
        unsafe { make_garbage(start + size, need - size) };
        self.live.insert(start, Block { size, ordered, dying: false });
        self.used += size.next_multiple_of(GRAIN);
        Ok(start)
    }

    /// Marks a block as about to be freed: from now on it is no valid argument.
    fn doom(&mut self, start: usize, ordered: bool) -> Outcome {
        let may = |block: &&mut Block| !block.dying && (block.ordered || !ordered);
        let block = self.live.get_mut(&start).filter(may).ok_or(INVALID_VALUE)?;
        block.dying = true;
        Ok(())
    }

    /// Frees a doomed block; the error says that somebody wrote behind it.
    fn bury(&mut self, start: usize) -> Result<(), String> {
        let Some(block) = self.live.remove(&start) else { return Ok(()) };
        let need = whole(block.size);
        self.used -= block.size.next_multiple_of(GRAIN);
        let torn = {
            let _at_work = AtWork::begin();
            // SAFETY: the fence of a block that this heap holds, open while `_at_work` lives.
            let fence = unsafe { std::slice::from_raw_parts((start + block.size) as *const u8, need - block.size) };
            fence.iter().position(|&byte| byte != GARBAGE)
        };
        // SAFETY: the block has been taken from the live ones.
        unsafe { make_garbage(start, need) };
        if need > 4 * GARBAGE_END {
            // SAFETY: as above; the middle of a large block goes back to the system.
            unsafe { libc::madvise((start + GARBAGE_END) as *mut c_void, need - 2 * GARBAGE_END, libc::MADV_DONTNEED) };
        }
        self.quarantine.push_back((start, need));
        self.resting += need;
        while self.resting > QUARANTINE {
            self.let_out();
        }
        match torn {
            Some(at) => Err(format!("something wrote {at} bytes behind a block of {} bytes", block.size)),
            None => Ok(()),
        }
    }

    /// The block that has rested longest may be given out again.
    fn let_out(&mut self) {
        let Some((mut start, mut len)) = self.quarantine.pop_front() else { return };
        self.resting -= len;
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.free.remove(&before);
            (start, len) = (before, length + len);
        }
        if let Some(after) = self.free.remove(&(start + len)) {
            len += after;
        }
        self.free.insert(start, len);
    }

    /// Frees every allocation of the heap.
    pub fn clear(&mut self) {
        let all: Vec<usize> = self.live.keys().copied().collect();
        for start in all {
            let _ = self.bury(start);
        }
    }

    fn holds(&self, at: usize) -> bool {
        at >= self.base && at < self.base + self.capacity * 2
    }

    /// The live block that `len` bytes from `at` lie in.
    fn find(&self, at: usize, len: usize) -> Option<(usize, usize)> {
        let (&start, block) = self.live.range(..=at).next_back()?;
        let inside = !block.dying && at.checked_add(len)? <= start + block.size;
        inside.then_some((start, block.size))
    }
}

// ---- what a pointer is ----------------------------------------------------------------------------------------------

static PINNED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Where a range of addresses lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MemoryKind {
    Device,
    Pinned,
    Pageable,
}

/// The GPU whose addresses `at` belongs to.
pub fn owner(at: usize) -> Option<&'static Gpu> {
    gpus().iter().find(|gpu| lock(&gpu.heap).holds(at))
}

/// Says where `len` bytes from `at` lie; an error if they begin in memory of the driver and are not all of one live block.
pub fn place(at: usize, len: usize) -> Outcome<MemoryKind> {
    if let Some(gpu) = owner(at) {
        return lock(&gpu.heap).find(at, len).map(|_| MemoryKind::Device).ok_or(INVALID_VALUE);
    }
    if let Some((&start, &size)) = lock(&PINNED).range(..=at).next_back()
        && at < start + size
    {
        return if at + len <= start + size { Ok(MemoryKind::Pinned) } else { Err(INVALID_VALUE) };
    }
    if at == 0 { Err(INVALID_VALUE) } else { Ok(MemoryKind::Pageable) }
}

/// A pointer that a kernel is given, when it runs, points into a GPU's addresses, but not into (or just behind) a block that is there. One
/// whose free comes later in a stream is.
pub fn dangles(at: usize) -> bool {
    owner(at).is_some_and(|gpu| {
        let heap = lock(&gpu.heap);
        heap.live.range(..=at).next_back().is_none_or(|(start, block)| at > start + block.size)
    })
}

// ---- allocation -----------------------------------------------------------------------------------------------------

/// # Safety
/// `to` is null or a place for the result.
unsafe fn allocate(to: *mut usize, size: usize, ordered: bool) -> Outcome {
    let gpu = current()?;
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    let start = lock(&gpu.heap).allocate(size, ordered)?;
    // SAFETY: by contract.
    unsafe { put(to, start) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(to: *mut usize, size: usize) -> i32 {
    // SAFETY: the caller's promise.
    status(graph::safe_in_captures().and_then(|()| unsafe { allocate(to, size, false) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocAsync(to: *mut usize, size: usize, stream: usize) -> i32 {
    // SAFETY: the caller's promise.
    let found = stream::find(stream).and_then(|stream| stream.not_captured(STREAM_CAPTURE_UNSUPPORTED));
    // SAFETY: the caller's promise.
    status(found.and_then(|()| unsafe { allocate(to, size, true) }))
}

fn bury(gpu: &'static Gpu, start: usize) {
    let buried = lock(&gpu.heap).bury(start);
    if let Err(text) = buried {
        gpu.fail(ILLEGAL_ADDRESS, &text);
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(at: usize) -> i32 {
    status(current().and_then(|_| {
        if at == 0 {
            return Ok(());
        }
        graph::safe_in_captures()?;
        let owner = owner(at).ok_or(INVALID_VALUE)?;
        lock(&owner.heap).doom(at, false)?;
        stream::drain(owner);
        bury(owner, at);
        owner.healthy()
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(at: usize, stream: usize) -> i32 {
    status(current().and_then(|_| {
        if at == 0 {
            return Ok(());
        }
        let stream = stream::find(stream)?;
        stream.not_captured(STREAM_CAPTURE_UNSUPPORTED)?;
        let owner = owner(at).ok_or(INVALID_VALUE)?;
        lock(&owner.heap).doom(at, true)?;
        stream.control(move || bury(owner, at));
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> i32 {
    status(current().and_then(|gpu| {
        let heap = lock(&gpu.heap);
        // SAFETY: the caller gives places for the results.
        unsafe {
            put(free, heap.capacity - heap.used)?;
            put(total, heap.capacity)
        }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetAddressRange_v2(base: *mut usize, size: *mut usize, at: usize) -> i32 {
    status(current().and_then(|_| {
        let owner = owner(at).ok_or(NOT_FOUND)?;
        let (start, len) = lock(&owner.heap).find(at, 1).ok_or(NOT_FOUND)?;
        if !base.is_null() {
            // SAFETY: not null, so a place for the result.
            unsafe { base.write(start) };
        }
        if !size.is_null() {
            // SAFETY: as above.
            unsafe { size.write(len) };
        }
        Ok(())
    }))
}

fn page_up(size: usize) -> usize {
    size.next_multiple_of(4096)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(to: *mut usize, size: usize, _flags: c_uint) -> i32 {
    status(current().and_then(|_| {
        if size == 0 {
            return Err(INVALID_VALUE);
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), page_up(size), rights, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(OUT_OF_MEMORY);
        }
        lock(&PINNED).insert(at as usize, size);
        // SAFETY: the caller gives a place for the result.
        unsafe { put(to, at as usize) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocHost_v2(to: *mut usize, size: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { cuMemHostAlloc(to, size, 0) }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(at: usize) -> i32 {
    /// Freed host memory that stays reserved and unmapped for a while, so that a late use crashes.
    static GRAVES: Mutex<VecDeque<(usize, usize)>> = Mutex::new(VecDeque::new());
    status(current_even_if_failed().and_then(|_| {
        // As the driver: nothing may still be using it.
        gpus().iter().for_each(stream::drain);
        let size = lock(&PINNED).remove(&at).ok_or(INVALID_VALUE)?;
        let mut graves = lock(&GRAVES);
        // SAFETY: the mapping that cuMemHostAlloc made, no longer anybody's.
        unsafe {
            libc::madvise(at as *mut c_void, page_up(size), libc::MADV_DONTNEED);
            libc::mprotect(at as *mut c_void, page_up(size), libc::PROT_NONE);
        }
        graves.push_back((at, page_up(size)));
        while graves.len() > 256 {
            if let Some((at, len)) = graves.pop_front() {
                // SAFETY: as above.
                unsafe { libc::munmap(at as *mut c_void, len) };
            }
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostGetDevicePointer_v2(to: *mut usize, at: usize, _flags: c_uint) -> i32 {
    status(current().and_then(|_| match place(at, 1)? {
        // SAFETY: the caller gives a place for the result.
        MemoryKind::Pinned => unsafe { put(to, at) },
        _ => Err(INVALID_VALUE),
    }))
}

/// cuPointerGetAttribute: the memory type (2) and the device ordinal (9) only.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttribute(to: *mut c_uint, attribute: c_uint, at: usize) -> i32 {
    status(initialised().and_then(|()| {
        let value = match (attribute, place(at, 1)?) {
            (2, MemoryKind::Device) => 2,
            (2, MemoryKind::Pinned) => 1,
            (9, MemoryKind::Device) => owner(at).map_or(0, |gpu| gpu.ordinal as u32),
            (2 | 9, _) => return Err(INVALID_VALUE),
            _ => return Err(NOT_SUPPORTED),
        };
        // SAFETY: the caller gives a place for the result.
        unsafe { put(to, value) }
    }))
}
