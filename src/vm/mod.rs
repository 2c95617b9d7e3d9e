//! Running instructions on a device, in streams, with the waits that their buffers need.
//!
//! An [`Instruction`] is data: a kernel with views, or a boxing plan with its ends. On the CPU compute runs inline; the
//! communication stream runs inline too, or on a thread of its own. On the asynchronous test device every stream is a
//! thread with random delays, which proves the waits without a GPU. On a GPU a stream is a CUDA stream and a wait an event
//! (`cuda.rs`). In a dry run nothing is executed (`dry.rs`). Knows nothing of tensors or SBP rules. Start at [`Vm::submit`].

pub mod box_collect;
pub mod box_exec;
pub mod box_many;
mod cuda;
mod cuda_boxing;
mod dry;
mod host;
mod instruction;
mod links;
mod pinned;
mod place;
mod place_cuda;
mod place_host;
mod replay;
mod stream;
mod waits;

pub(crate) use dry::no_values;
pub use instruction::{BoxManyWork, BoxWork, CollectWork, Instruction, KernelWork, Stopwatch, StreamKind, Work};
pub use replay::replay;

use crate::comm::Communicator;
use crate::error::{Error, Result};
use crate::memory::{Allocator, Storage};
use crate::placement::Device;
use cuda::CudaStreams;
pub(crate) use cuda::OnStream;
use dry::DryStreams;
use host::HostStreams;
use oflow_kernels::cuda::Gpu;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the streams of a device run.
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

/// Tensors up to this many (logical) bytes are boxed on the caller's thread: handing them over would cost more than the
/// collective.
pub const INLINE_BYTES: usize = 64 << 10;

/// What has run, for tests and traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmCounters {
    /// Kernels.
    pub kernels: u64,
    /// Boxings.
    pub boxings: u64,
    /// Contiguous copies made because a kernel does not take strides.
    pub copies: u64,
    /// Times that the host waited for a GPU.
    pub syncs: u64,
    /// Copies between host memory and a GPU's.
    pub host_copies: u64,
}

/// The streams of one device of one rank.
pub struct Vm {
    streams: Streams,
    kernels: AtomicU64,
    boxings: AtomicU64,
    copies: AtomicU64,
}

// One a device of a rank.
#[allow(clippy::large_enum_variant)]
enum Streams {
    Host(HostStreams),
    Cuda(CudaStreams),
    Dry(DryStreams),
}

impl Vm {
    /// Streams of this process in that mode, with the allocator of the device's memory, from which boxings take what they need
    /// between their steps, and the rank's communicator.
    pub fn new(mode: VmMode, alloc: &Allocator, comm: Option<Arc<dyn Communicator>>) -> Result<Vm> {
        Ok(Vm::over(Streams::Host(HostStreams::new(mode, alloc, comm)?)))
    }

    /// Streams of a GPU, with the allocators of its memory and of the host's, and the rank's communicator.
    pub fn cuda(
        gpu: &Arc<Gpu>,
        alloc: &Allocator,
        host: &Allocator,
        comm: Option<Arc<dyn Communicator>>,
    ) -> Result<Vm> {
        Ok(Vm::over(Streams::Cuda(CudaStreams::new(gpu, alloc, host, comm)?)))
    }

    /// Streams of a dry run of that rank: instructions are counted, nothing is executed, and no storage has bytes. What boxings
    /// take between their steps is counted by the allocator.
    pub(crate) fn dry(rank: usize, device: Device, alloc: &Allocator) -> Vm {
        Vm::over(Streams::Dry(DryStreams::new(rank, device, alloc)))
    }

    fn over(streams: Streams) -> Vm {
        Vm { streams, kernels: AtomicU64::new(0), boxings: AtomicU64::new(0), copies: AtomicU64::new(0) }
    }

    /// Issues an instruction. Inline work is done when this returns; other work is done when its outputs have been
    /// waited for ([`Vm::wait`]) or a later instruction that needs them runs.
    pub fn submit(&self, i: Instruction) -> Result<()> {
        match i.work {
            Work::Kernel(_) => self.kernels.fetch_add(1, Ordering::Relaxed),
            Work::Boxing(_) => self.boxings.fetch_add(1, Ordering::Relaxed),
            Work::BoxMany(ref b) => self.boxings.fetch_add(b.plans.len() as u64, Ordering::Relaxed),
            Work::Collect(_) => self.boxings.fetch_add(1, Ordering::Relaxed),
        };
        debug_assert!(i.reads.iter().chain(&i.writes).all(|s| self.check_origin(s).is_ok()));
        match &self.streams {
            Streams::Host(s) => s.submit(i),
            Streams::Cuda(s) => s.submit(i),
            Streams::Dry(s) => s.submit(&i),
        }
    }

    /// Waits until the bytes of a storage are final: all work issued so far that writes it is done.
    pub fn wait(&self, storage: &Storage) -> Result<()> {
        match &self.streams {
            Streams::Host(s) => s.wait(storage),
            Streams::Cuda(s) => s.wait(storage),
            Streams::Dry(_) => Ok(()),
        }
    }

    /// Reads bytes of a storage of this device, from that byte on, when they are final. Waits for nothing else.
    ///
    /// # Errors
    /// When the range lies outside the storage, and what the device reports.
    pub fn read(&self, storage: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        self.check_origin(storage)?;
        check_range(storage, offset, to.len())?;
        if to.is_empty() {
            return Ok(());
        }
        match &self.streams {
            Streams::Host(s) => {
                s.wait(storage)?;
                let turn = storage.turn()?;
                // SAFETY: inside the storage (checked), final (waited for), and `to` is another memory.
                unsafe { std::ptr::copy_nonoverlapping(storage.ptr().add(offset), to.as_mut_ptr(), to.len()) };
                storage.still(turn)
            }
            Streams::Cuda(s) => s.read(storage, offset, to),
            Streams::Dry(_) => Err(no_values("this storage")),
        }
    }

    /// Writes bytes into a storage of this device, after all work issued so far that uses it. The caller sees to it that
    /// nobody relies on what was there.
    ///
    /// # Errors
    /// When the range lies outside the storage, and what the device reports.
    pub fn write(&self, storage: &Storage, offset: usize, from: &[u8]) -> Result<()> {
        self.check_origin(storage)?;
        check_range(storage, offset, from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        match &self.streams {
            Streams::Host(s) => {
                s.wait_unused(storage)?;
                // SAFETY: inside the storage (checked), which no instruction uses any more; `from` is another memory.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), storage.ptr().add(offset), from.len()) };
                Ok(())
            }
            Streams::Cuda(s) => s.write(storage, offset, from),
            Streams::Dry(_) => Ok(()),
        }
    }

    /// The bytes of a dry run are behind no address: its storages belong to its own streams, and to no others.
    fn check_origin(&self, storage: &Storage) -> Result<()> {
        if storage.origin().is_dry() == matches!(self.streams, Streams::Dry(_)) {
            return Ok(());
        }
        Err(Error::context(format!("this storage belongs to {}, these streams do not", storage.origin())))
    }

    /// Waits for everything issued so far.
    pub fn synchronize(&self) -> Result<()> {
        match &self.streams {
            Streams::Host(s) => s.synchronize(),
            Streams::Cuda(s) => s.synchronize(),
            Streams::Dry(_) => Ok(()),
        }
    }

    /// Counts a contiguous copy.
    pub fn count_copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    /// What has run so far.
    pub fn counters(&self) -> VmCounters {
        let (syncs, host_copies) = match &self.streams {
            Streams::Host(_) | Streams::Dry(_) => (0, 0),
            Streams::Cuda(s) => s.counts(),
        };
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
