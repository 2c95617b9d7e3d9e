//! Running instructions on a device, in streams, with the waits that their buffers need.
//!
//! An [`Instruction`] is data: a kernel with views, or a boxing plan with its ends. [`Streams`] carry it out; each device's
//! backend brings its own (`src/backend`). What a boxing plan does is written here once, over a `BoxingDevice`. Knows nothing of
//! tensors, SBP rules or devices. Start at [`Vm::submit`].
//!
//! # Carrying out boxings
//!
//! `box_exec.rs` carries out one plan step by step, without the heap when it is warm. `box_many.rs` carries out many
//! plans in waves; `boxing/many.rs` says which steps share a collective. `box_collect.rs` makes a layout from boxes that
//! ranks happen to hold, by a plan of `boxing/boxes.rs`. Programs reach the last two as `box_many` and `from_boxes`;
//! backward boxes the gradients of small leaves together. `listed.rs` lists what any of them does, for graphs.
//!
//! A rank has one total order of collectives, over all its groups, threads and devices. A collective on the caller's
//! thread waits until the communication thread has finished its queue, and a boxing on one device waits for the boxings
//! of the other devices.

pub mod box_collect;
pub mod box_exec;
pub mod box_many;
pub(crate) mod boxing_device;
mod boxing_device_host;
mod instruction;
pub(crate) mod listed;
mod replay;

pub use crate::ops::StreamKind;
pub use instruction::{
    BoxManyWork, BoxWork, CollectWork, HostBuffers, Instruction, KernelWork, ListedWork, Prepared, Segment, Stopwatch,
    Took, Work,
};
pub(crate) use instruction::{communicator, timed};
pub use replay::replay;

pub use crate::boxing::INLINE_BYTES;
use crate::error::{Error, Result};
use crate::memory::Storage;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the streams of the host run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmMode {
    /// Everything on the caller's thread, in order of issue.
    Inline,
    /// Compute on the caller's thread, boxing of large tensors on a communication thread; consumers wait for its results.
    /// Small ones ([`INLINE_BYTES`]) run on the caller's thread, after what the other still has to do: one total order.
    CommThread,
    /// Each stream is a thread; random delays of up to that many microseconds before each instruction.
    Async {
        /// Upper bound of a delay.
        delay_us: u64,
        /// Seed of the delays.
        seed: u64,
    },
}

/// Numbers of instructions that have run, for tests and traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmCounters {
    /// Kernels that have run.
    pub kernels: u64,
    /// Boxings that have run.
    pub boxings: u64,
    /// Contiguous copies made because a kernel does not take strides.
    pub copies: u64,
    /// Times that the host waited for a GPU.
    pub syncs: u64,
    /// Copies between host memory and a GPU's.
    pub host_copies: u64,
}

/// Whether streams take kernels together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesSegments {
    /// Streams that have no use for it.
    No,
    /// Setting that is against it.
    Off(&'static str),
    /// Streams that take them as one piece of work.
    Yes,
}

/// Streams of one device of one rank, which carry its instructions out. [`Vm`] stands before it, counts, and checks what it
/// is given.
pub trait Streams: Send + Sync {
    /// Issues an instruction: see [`Vm::submit`].
    fn submit(&self, i: Instruction) -> Result<()>;
    /// Waits until the bytes of a storage are final.
    fn wait(&self, storage: &Storage) -> Result<()>;
    /// Reads bytes inside a storage when they are final. There is at least one.
    fn read(&self, storage: &Storage, offset: usize, to: &mut [u8]) -> Result<()>;
    /// Writes bytes inside a storage after all work that uses it. There is at least one.
    fn write(&self, storage: &Storage, offset: usize, from: &[u8]) -> Result<()>;
    /// Waits for everything issued so far.
    fn synchronize(&self) -> Result<()>;
    /// How often the host waited for the device, and copies between host memory and the device's, so far.
    fn counts(&self) -> (u64, u64) {
        (0, 0)
    }
    /// Whether these are the streams of a dry run, whose storages have no bytes.
    fn is_dry(&self) -> bool {
        false
    }
    /// Whether kernels run on the thread that issues them: then one that has been issued is done.
    fn computes_here(&self) -> bool {
        false
    }
    /// Whether kernels that follow each other are issued faster as a [`Segment`].
    fn takes_segments(&self) -> TakesSegments {
        TakesSegments::No
    }
    /// Waits until no stream reads or writes the storage.
    fn wait_unused(&self, _storage: &Storage) -> Result<()> {
        self.synchronize()
    }
}

/// The streams of one device of one rank.
pub struct Vm {
    streams: Box<dyn Streams>,
    dry: bool,
    kernels: AtomicU64,
    boxings: AtomicU64,
    copies: AtomicU64,
}

impl Vm {
    /// Stands before the streams of a device.
    pub fn new(streams: impl Streams + 'static) -> Vm {
        Vm {
            dry: streams.is_dry(),
            streams: Box::new(streams),
            kernels: AtomicU64::new(0),
            boxings: AtomicU64::new(0),
            copies: AtomicU64::new(0),
        }
    }

    /// Issues an instruction. Inline work is done when this returns; other work is done when its outputs have been
    /// waited for ([`Vm::wait`]) or a later instruction that needs them runs.
    pub fn submit(&self, i: Instruction) -> Result<()> {
        match i.work {
            Work::Kernel(_) => self.kernels.fetch_add(1, Ordering::Relaxed),
            Work::Boxing(_) => self.boxings.fetch_add(1, Ordering::Relaxed),
            Work::BoxMany(ref b) => self.boxings.fetch_add(b.plans.len() as u64, Ordering::Relaxed),
            Work::Collect(_) => self.boxings.fetch_add(1, Ordering::Relaxed),
            Work::Listed(ref b) => self.boxings.fetch_add(b.listed.shares.len() as u64, Ordering::Relaxed),
            Work::Segment(ref s) => self.kernels.fetch_add(s.kernels().len() as u64, Ordering::Relaxed),
        };
        debug_assert!(i.reads.iter().chain(&i.writes).all(|s| self.check_origin(s).is_ok()));
        self.streams.submit(i)
    }

    /// Whether kernels run on the thread that issues them, and [`Vm::run_here`] may run them.
    pub(crate) fn computes_here(&self) -> bool {
        self.streams.computes_here()
    }

    /// Whether kernels that follow each other are issued faster as a [`Segment`].
    pub(crate) fn takes_segments(&self) -> TakesSegments {
        self.streams.takes_segments()
    }

    /// Runs a kernel on this thread, as [`Vm::submit`] of an instruction would where [`computes_here`](Vm::computes_here) holds. The caller
    /// holds the storages of its views and has waited for their users.
    #[inline]
    pub(crate) fn run_here(&self, kernel: &KernelWork) -> Result<()> {
        self.kernels.fetch_add(1, Ordering::Relaxed);
        kernel.run(None)
    }

    /// Waits until no stream reads or writes the storage.
    pub(crate) fn wait_unused(&self, storage: &Storage) -> Result<()> {
        self.streams.wait_unused(storage)
    }

    /// Waits until the bytes of a storage are final: all work issued so far that writes it is done.
    pub fn wait(&self, storage: &Storage) -> Result<()> {
        self.streams.wait(storage)
    }

    /// Reads bytes of a storage of this device, from that byte on, when they are final. Waits for nothing else.
    ///
    /// # Errors
    /// When the range lies outside the storage, and what the device reports.
    pub fn read(&self, storage: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        self.check_origin(storage)?;
        check_range(storage, offset, to.len())?;
        if to.is_empty() { Ok(()) } else { self.streams.read(storage, offset, to) }
    }

    /// Writes bytes into a storage of this device, after all work issued so far that uses it. The caller sees to it that
    /// nobody relies on what was there.
    ///
    /// # Errors
    /// When the range lies outside the storage, and what the device reports.
    pub fn write(&self, storage: &Storage, offset: usize, from: &[u8]) -> Result<()> {
        self.check_origin(storage)?;
        check_range(storage, offset, from.len())?;
        if from.is_empty() { Ok(()) } else { self.streams.write(storage, offset, from) }
    }

    /// The bytes of a dry run are behind no address: its storages belong to its own streams, and to no others.
    fn check_origin(&self, storage: &Storage) -> Result<()> {
        if storage.origin().is_dry() == self.dry {
            return Ok(());
        }
        Err(Error::context(format!(
            "storage of {} used with streams of {}",
            storage.origin(),
            if self.dry { "a dry run" } else { "a program with data" }
        )))
    }

    /// Waits for everything issued so far.
    pub fn synchronize(&self) -> Result<()> {
        self.streams.synchronize()
    }

    /// Counts a contiguous copy.
    pub fn count_copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    /// Numbers of instructions that have run so far.
    pub fn counters(&self) -> VmCounters {
        let (syncs, host_copies) = self.streams.counts();
        VmCounters {
            kernels: self.kernels.load(Ordering::Relaxed),
            boxings: self.boxings.load(Ordering::Relaxed),
            copies: self.copies.load(Ordering::Relaxed),
            syncs,
            host_copies,
        }
    }
}

fn check_range(storage: &Storage, offset: usize, len: usize) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= storage.bytes() => Ok(()),
        _ => Err(Error::argument(format!("bytes {offset}..+{len} of a storage of {} bytes", storage.bytes()))),
    }
}
