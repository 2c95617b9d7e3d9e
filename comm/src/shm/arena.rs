//! The layout of the shared memory.
//!
//! ```text
//! Header | RankRecord × world | Interest × world × words | Link × world² (from i to j at i * world + j)
//!        | outbox buffers: SLOTS × capacity × world
//! ```
//!
//! All offsets follow from `world` and `capacity`, which are in the header and checked by [`ShmArena::from_fd`]. An arena of
//! zeros is valid and new. Links and buffers take physical memory at their first use, and nobody touches a link that is not used:
//! all links of 1,024 ranks have 640 MiB.

use super::super::transport::{RunningCall, SLOTS};
use super::Loss;
use super::link::{Channel, Interest, Letter};
use super::transport::{ShmComm, ShmOptions, ShmTransport};
use crate::Collectives;
use oflow_base::{Error, Result};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::ffi::c_void;
use std::fmt::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

const MAGIC: u64 = u64::from_le_bytes(*b"oflowshm");
const VERSION: u32 = 4;
/// The arena's parts start at multiples of a page.
const PAGE: usize = 4096;
/// Keeps offsets within an outbox buffer below 2³².
const MOST_CAPACITY: usize = 1 << 30;
const MOST_RANKS: usize = 1024;

#[repr(C)]
struct Header {
    magic: u64,
    version: u32,
    world: u32,
    capacity: u64,
    total: u64,
    /// 0, or `(rank + 1) << 32 | loss` of the first rank that was lost.
    poison: AtomicU64,
    /// Ranks that have told their cores.
    reported_cores: AtomicU64,
    /// The cores of all of these, a bit each.
    cores: [AtomicU64; CpuSet::MAX_CPU / 64],
}

/// Bytes of a rank's status line.
const STATUS: usize = 320;

/// State of a rank that the others may want to know.
#[repr(C, align(128))]
struct RankRecord {
    public: Public,
    texts: [Text; SLOTS],
}

/// The part of a rank's record that anybody may read at any time.
#[repr(C)]
struct Public {
    /// A [`RankState`] as a number.
    state: AtomicU32,
    /// Odd while the status is being written.
    version: AtomicU32,
    status_len: AtomicU64,
    status: [AtomicU64; STATUS / 8],
}

/// Names the op of the post in one outbox buffer. Written by the rank before it posts, read before the post is released.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Text {
    line: u32,
    op_len: u8,
    file_len: u8,
    op: [u8; OP],
    file: [u8; FILE],
}

const OP: usize = 58;
const FILE: usize = 128;

/// State of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankState {
    /// The rank has not opened its communicator.
    Absent,
    /// The rank has opened its communicator.
    Attached,
    /// The rank has dropped its communicator.
    Left,
}

/// The memory that the ranks of one host share.
pub struct ShmArena {
    base: *mut u8,
    layout: ArenaLayout,
    /// Whether it was opened for one rank, which has told its cores.
    of_one_rank: bool,
}

// SAFETY: the mapping is plain memory that lives as long as the arena; all access to it is atomic or ordered by the links.
unsafe impl Send for ShmArena {}
// SAFETY: as above.
unsafe impl Sync for ShmArena {}

#[derive(Clone, Copy, PartialEq, Eq)]
struct ArenaLayout {
    world: usize,
    capacity: usize,
    interests: usize,
    links: usize,
    outboxes: usize,
    total: usize,
}

/// Bits of an [`Interest`].
const WORD: usize = 32;

fn interest_words(world: usize) -> usize {
    world.div_ceil(WORD)
}

impl ArenaLayout {
    fn new(world: usize, capacity: usize) -> ArenaLayout {
        let records = PAGE + world * size_of::<RankRecord>();
        let interests = records.next_multiple_of(PAGE);
        let links = (interests + world * interest_words(world) * size_of::<Interest>()).next_multiple_of(PAGE);
        let outboxes = (links + world * world * size_of::<Channel<Letter>>()).next_multiple_of(2 << 20);
        ArenaLayout { world, capacity, interests, links, outboxes, total: outboxes + world * SLOTS * capacity }
    }
}

/// A status while it is written; what does not fit is cut.
struct Line {
    bytes: [u8; STATUS],
    len: usize,
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let n = text.len().min(STATUS - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&text.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

impl ShmArena {
    /// Makes an arena for `world` ranks with about `bytes_per_rank` bytes of outbox each. Returns it with its file descriptor,
    /// which is close-on-exec; the launcher clears the flag in each child.
    pub fn create(world: usize, bytes_per_rank: usize) -> Result<(Arc<ShmArena>, OwnedFd)> {
        if world == 0 || world > MOST_RANKS {
            return Err(Error::argument(format!("shared memory for {world} ranks; 1 to {MOST_RANKS} are possible")));
        }
        let capacity = (bytes_per_rank / SLOTS).clamp(64 * world, MOST_CAPACITY).next_multiple_of(PAGE);
        let layout = ArenaLayout::new(world, capacity);
        let failed = |e: rustix::io::Errno| {
            Error::memory(format!("cannot create {} bytes of shared memory for {world} ranks", layout.total)).because(e)
        };
        let fd = rustix::fs::memfd_create("oflow", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).map_err(failed)?;
        rustix::fs::ftruncate(&fd, layout.total as u64).map_err(failed)?;
        // A rank that could shrink the file would kill the others by SIGBUS.
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).map_err(failed)?;
        let arena = ShmArena::map(&fd, layout, false)?;
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            world: world as u32,
            capacity: capacity as u64,
            total: layout.total as u64,
            poison: AtomicU64::new(0),
            reported_cores: AtomicU64::new(0),
            cores: [const { AtomicU64::new(0) }; _],
        };
        // SAFETY: the mapping starts with room for a header, page-aligned, and nobody else has the file yet.
        unsafe { arena.base.cast::<Header>().write(header) };
        Ok((Arc::new(arena), fd))
    }

    /// Opens the arena of an inherited file descriptor.
    ///
    /// # Errors
    /// If it is no arena for `world` ranks, or `rank` is not below `world`.
    pub fn from_fd(fd: impl AsFd, rank: usize, world: usize) -> Result<Arc<ShmArena>> {
        let wrong = |what: String| {
            Err(Error::comm(format!("the inherited descriptor is not oflow's shared memory for {world} ranks: {what}"))
                .help("start all ranks with one oflaunch of one version"))
        };
        if rank >= world || world > MOST_RANKS {
            return Err(Error::argument(format!("rank {rank} in a world of {world}")));
        }
        let size = match rustix::fs::fstat(&fd) {
            Ok(stat) => stat.st_size as u64,
            Err(e) => return wrong(e.to_string()),
        };
        let mut head = [0u8; 32];
        let read = rustix::io::pread(&fd, &mut head, 0).unwrap_or(0);
        let (words, _) = head.as_chunks::<8>();
        let word = |i: usize| u64::from_ne_bytes(words[i]);
        if read < head.len() || word(0) != MAGIC {
            return wrong("it does not start with the magic number".into());
        }
        let (version, ranks) = (word(1) as u32, (word(1) >> 32) as usize);
        if version != VERSION {
            return wrong(format!("its version is {version}, this program's {VERSION}"));
        }
        if ranks != world {
            return wrong(format!("it is for {ranks} ranks"));
        }
        let capacity = word(2) as usize;
        if !(64 * world..=MOST_CAPACITY + PAGE).contains(&capacity) || !capacity.is_multiple_of(PAGE) {
            return wrong(format!("buffers of {capacity} bytes"));
        }
        let layout = ArenaLayout::new(world, capacity);
        if word(3) != layout.total as u64 || size != layout.total as u64 {
            return wrong(format!("it has {size} bytes, its header says {}, expected {}", word(3), layout.total));
        }
        let arena = ShmArena::map(&fd, layout, true)?;
        arena.tell_cores();
        Ok(Arc::new(arena))
    }

    fn map(fd: impl AsFd, layout: ArenaLayout, of_one_rank: bool) -> Result<ShmArena> {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), layout.total, flags, MapFlags::SHARED, fd, 0) };
        let base = base
            .map_err(|e| Error::memory(format!("cannot map {} bytes of shared memory", layout.total)).because(e))?
            .cast::<u8>();
        let arena = ShmArena { base, layout, of_one_rank };
        // Only a hint; kernels that have no huge pages for shared memory refuse it.
        arena.advise(layout.outboxes, layout.total - layout.outboxes, Advice::LinuxHugepage);
        Ok(arena)
    }

    fn advise(&self, offset: usize, len: usize, advice: Advice) {
        // SAFETY: a range of this mapping; neither of the advices used (huge pages, populate) changes contents.
        let _ = unsafe { rustix::mm::madvise(self.base.wrapping_add(offset).cast::<c_void>(), len, advice) };
    }

    /// Returns the number of ranks.
    pub fn world(&self) -> usize {
        self.layout.world
    }

    /// Returns the size of an outbox buffer in bytes.
    pub fn capacity(&self) -> usize {
        self.layout.capacity
    }

    /// Opens the communicator of a rank, once for each rank.
    pub fn comm(self: &Arc<Self>, rank: usize, options: ShmOptions) -> Result<ShmComm> {
        Ok(Collectives::new(self.transport(rank, options)?))
    }

    /// Opens the transport of a rank, once for each rank.
    pub fn transport(self: &Arc<Self>, rank: usize, options: ShmOptions) -> Result<ShmTransport> {
        let Some(record) = (rank < self.world()).then(|| self.record(rank)) else {
            return Err(Error::argument(format!("rank {rank} in a world of {}", self.world())));
        };
        if record.state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return Err(Error::comm(format!("rank {rank} has opened its communicator before")));
        }
        if !self.of_one_rank {
            self.tell_cores();
        }
        Ok(ShmTransport::new(self.clone(), rank, options))
    }

    /// Adds the cores that this thread may run on to those of all ranks.
    fn tell_cores(&self) {
        let header = self.header();
        if let Ok(own) = sched_getaffinity(None) {
            for core in (0..CpuSet::MAX_CPU).filter(|core| own.is_set(*core)) {
                header.cores[core / 64].fetch_or(1 << (core % 64), Ordering::Relaxed);
            }
        }
        header.reported_cores.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of cores on which the ranks may run, all together, or `None` as long as some have not opened the arena.
    /// A rank that is bound to one core has a core of its own if no other is bound to it, which its own binding does not tell.
    pub fn cores(&self) -> Option<usize> {
        let header = self.header();
        if header.reported_cores.load(Ordering::Acquire) < self.world() as u64 {
            return None;
        }
        let all: u32 = header.cores.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        // A quota of processor time allows fewer at once.
        let own = sched_getaffinity(None).map_or(0, |own| own.count() as usize);
        let usable = std::thread::available_parallelism().map_or(1, |n| n.get());
        Some(if usable < own { usable } else { all as usize })
    }

    /// Marks the job as failed because `rank` is lost, and ends every rank's waits. Only the first call counts. `rank` is used in
    /// messages only.
    pub fn poison(&self, rank: usize, loss: Loss) {
        let word = (rank as u64 + 1) << 32 | u64::from(loss.encode());
        let _ = self.header().poison.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
        (0..self.world()).for_each(|awaited| self.nudge_who_waits_for(awaited));
    }

    /// Makes the ranks that may sleep for a rank look at the alarms.
    fn nudge_who_waits_for(&self, rank: usize) {
        for waiter in 0..self.world() {
            let (words, bit) = self.interest(waiter, rank);
            if words.announced(bit) {
                self.link(rank, waiter).nudge_reader();
                self.link(waiter, rank).nudge_sender();
            }
        }
    }

    /// Where rank `waiter` announces that it may sleep for `rank`, and with which bit.
    pub(super) fn interest(&self, waiter: usize, rank: usize) -> (&Interest, usize) {
        debug_assert!(waiter < self.world() && rank < self.world());
        let index = waiter * interest_words(self.world()) + rank / WORD;
        // SAFETY: within the mapping by the layout, aligned, and atomic.
        (unsafe { &*self.base.add(self.layout.interests).cast::<Interest>().add(index) }, rank % WORD)
    }

    /// Returns the lost rank, or `None`.
    pub fn poisoned(&self) -> Option<(usize, Loss)> {
        let word = self.header().poison.load(Ordering::Acquire);
        (word != 0).then(|| ((word >> 32) as usize - 1, Loss::decode(word as u32)))
    }

    /// Returns the state of a rank.
    pub fn state(&self, rank: usize) -> RankState {
        match self.record(rank).state.load(Ordering::Acquire) {
            0 => RankState::Absent,
            1 => RankState::Attached,
            _ => RankState::Left,
        }
    }

    /// Returns what a rank waits for as a line of text, or `None` while it computes. A rank writes it only before it sleeps, so
    /// it costs nothing on the fast path.
    pub fn status(&self, rank: usize) -> Option<String> {
        let r = self.record(rank);
        for _ in 0..100 {
            let before = r.version.load(Ordering::Acquire);
            let len = (r.status_len.load(Ordering::Relaxed) as usize).min(STATUS);
            let bytes: Vec<u8> = r.status.iter().flat_map(|w| w.load(Ordering::Relaxed).to_ne_bytes()).collect();
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && before == r.version.load(Ordering::Relaxed) {
                return (len > 0).then(|| String::from_utf8_lossy(&bytes[..len]).into_owned());
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Writes the status line of the calling rank (a seqlock: readers retry while the version is odd or has changed).
    pub(super) fn set_status(&self, rank: usize, text: fmt::Arguments) {
        let r = self.record(rank);
        let version = r.version.load(Ordering::Relaxed);
        r.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        // On the stack: a rank that is about to sleep touches no heap.
        let mut line = Line { bytes: [0; STATUS], len: 0 };
        let _ = line.write_fmt(text);
        let text = &line.bytes[..line.len];
        r.status_len.store(text.len() as u64, Ordering::Relaxed);
        for (word, chunk) in r.status.iter().zip(text.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        r.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Marks the rank as left: waits for what it has not done fail. Its own communicator does so at its end; a launcher does it
    /// for a process that has ended without.
    pub fn leave(&self, rank: usize) {
        self.record(rank).state.store(2, Ordering::Release);
        self.nudge_who_waits_for(rank);
    }

    /// The link from one rank to another.
    pub(super) fn link(&self, from: usize, to: usize) -> &Channel<Letter> {
        debug_assert!(from < self.world() && to < self.world());
        let index = from * self.layout.world + to;
        // SAFETY: within the mapping by the layout, aligned (pages and a size that is a multiple of 128), and any bytes that
        // the protocol leaves there are a valid link.
        unsafe { &*self.base.add(self.layout.links).cast::<Channel<Letter>>().add(index) }
    }

    /// A rank's outbox buffer.
    pub(super) fn buffer(&self, rank: usize, slot: usize) -> *mut u8 {
        debug_assert!(rank < self.world() && slot < SLOTS);
        self.base.wrapping_add(self.layout.outboxes + (rank * SLOTS + slot) * self.layout.capacity)
    }

    /// Gives the beginnings of the own buffers their memory in one step instead of by page faults.
    pub(super) fn populate(&self, rank: usize, bytes: usize) {
        for slot in 0..SLOTS {
            let start = self.layout.outboxes + (rank * SLOTS + slot) * self.layout.capacity;
            self.advise(start, bytes.min(self.layout.capacity), Advice::LinuxPopulateWrite);
        }
    }

    /// Notes the op of the post in an own buffer.
    ///
    /// # Safety
    /// Only rank `rank` may call this, and only for a buffer that it has acquired.
    pub(super) unsafe fn write_text(&self, rank: usize, slot: usize, call: &RunningCall) {
        let tag = call.tag;
        let op = &tag.op.as_bytes()[..tag.op.len().min(OP)];
        // The end of a path says more than its beginning.
        let file = &tag.file.as_bytes()[tag.file.len().saturating_sub(FILE)..];
        let text = self.text(rank, slot);
        // SAFETY: in bounds of the record; nobody reads this text until the post is published.
        unsafe {
            (*text).line = tag.line;
            (*text).op_len = op.len() as u8;
            (*text).file_len = file.len() as u8;
            (&raw mut (*text).op).cast::<u8>().copy_from_nonoverlapping(op.as_ptr(), op.len());
            (&raw mut (*text).file).cast::<u8>().copy_from_nonoverlapping(file.as_ptr(), file.len());
        }
    }

    /// Op, file and line of the post in a peer's buffer.
    ///
    /// # Safety
    /// The caller has received the post and not released it.
    pub(super) unsafe fn read_text(&self, rank: usize, slot: usize) -> (String, String, u32) {
        // SAFETY: in bounds of the record; not written until the post is released. Plain integers: any bytes are valid.
        let t = unsafe { self.text(rank, slot).read() };
        let string =
            |bytes: &[u8], len: u8| String::from_utf8_lossy(&bytes[..bytes.len().min(len as usize)]).into_owned();
        (string(&t.op, t.op_len), string(&t.file, t.file_len), t.line)
    }

    fn text(&self, rank: usize, slot: usize) -> *mut Text {
        debug_assert!(slot < SLOTS);
        let texts = self.record_ptr(rank).wrapping_byte_add(std::mem::offset_of!(RankRecord, texts));
        texts.cast::<Text>().wrapping_add(slot)
    }

    fn record_ptr(&self, rank: usize) -> *mut RankRecord {
        self.base.wrapping_add(PAGE).cast::<RankRecord>().wrapping_add(rank)
    }

    fn record(&self, rank: usize) -> &Public {
        assert!(rank < self.world());
        // SAFETY: within the mapping by the layout, aligned, and only atomics.
        unsafe { &(*self.record_ptr(rank)).public }
    }

    fn header(&self) -> &Header {
        // SAFETY: written by `create` before anyone else had the file; what changes after that is atomic.
        unsafe { &*self.base.cast::<Header>() }
    }
}

impl Drop for ShmArena {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, and no reference into it outlives the arena.
        let _ = unsafe { rustix::mm::munmap(self.base.cast::<c_void>(), self.layout.total) };
    }
}
