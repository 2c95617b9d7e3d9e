//! NVIDIA GPUs, through CUDA: a stream is a CUDA stream and a wait an event (`streams.rs`); boxings run on a stream of their
//! own, over NCCL or staged through pinned memory (`boxing.rs`, `place.rs`).
//!
//! # Instructions on a GPU
//!
//! An instruction puts work on a CUDA stream. The thread of the caller issues everything and waits for reads only.
//! `streams.rs` says how the uses of a storage on several streams are ordered, and why a dropped storage may go back to
//! the allocator at once.
//!
//! A kernel gets a `Queue` of `oflow-kernels`, finds its compiled program there, and launches. NVRTC compiles a program
//! at its first use; memory and disk keep it by source, definitions, architecture and compiler. A kernel reports values
//! out of range in a record in mapped host memory, with the number of its instruction, so the error names the op and its
//! line. An error that CUDA reports late is attributed to the ops since the last point that is known to be good.
//!
//! # Boxings
//!
//! The executors of `vm` ask a `BoxingDevice` for memory, copies, identities, reductions and collectives. The host does
//! these at once; a GPU puts them on its communication stream. Steps that a rank does alone never leave the GPU.
//!
//! A group gets its link at its first use (`links.rs`). The members tell each other their GPUs over the communicator
//! of the host, and all choose NCCL or staging through pinned memory alike. The id of the NCCL communicator goes the same
//! way. An exchange runs over the ranks of both placements; exchanges of several plans share a batch only
//! if these ranks are the same (`BoxingDevice::scope`). A boxing between a GPU and a host goes through pinned memory and runs on
//! the host.
//!
//! One place issues the NCCL calls of all communicators, in the order of issue, onto one stream. Collectives on the host
//! are done when the call returns. So the rank's one order of collectives holds over both. A thread aborts NCCL when a
//! member is gone (`oflow_comm::nccl`).
//!
//! The crate `oflow-emulator` runs all of this on the CPU.

mod boxing;
mod boxing_device;
mod kernels;
mod links;
mod pinned;
mod streams;
mod times;
mod waits;

use super::op_kernels::OpKernel;
use super::{Backend, BoxingPlace, DeviceRt, Opening};
use crate::comm::Communicator;
use crate::error::{Error, Result};
use crate::memory::{Allocator, AllocatorOptions, MemorySource, Region};
use crate::ops::KernelDef;
use crate::placement::Device;
use crate::vm::Vm;
pub(crate) use links::check_wish as check_links;
use oflow_kernels::cuda::probe::probe;
use oflow_kernels::cuda::{DeviceMemory, Gpu};
use oflow_kernels::expr::Expr;
use std::sync::Arc;
use streams::CudaStreams;
pub use streams::queue;

/// The backend of [`Device::Cuda`].
pub(super) struct Cuda;

impl Backend for Cuda {
    /// The ranks of a host take its visible GPUs in turn.
    fn open(&self, at: &Opening<'_>) -> Result<DeviceRt> {
        let open = || {
            let not_here = |e| Error::unsupported(format!("Device::Cuda cannot be used on this machine: {e}"));
            let count = probe().check().map_err(not_here)?.len();
            let gpu = Gpu::open(at.local_rank % count)?;
            open_gpu(&gpu, self.allocator_options(), at.host, at.comm.cloned())
        };
        open().map_err(|e| {
            e.help("`oflow doctor` lists what was found and what is missing; without a GPU use Device::Cpu")
        })
    }
    /// Memory of a GPU is kept: to give it back would stop all its streams.
    fn allocator_options(&self) -> AllocatorOptions {
        AllocatorOptions { cache_bytes: usize::MAX, poison_on_free: false }
    }
    fn boxing_place(&self) -> BoxingPlace {
        BoxingPlace::Device
    }
    fn kernels(&self, _device: Device) -> Vec<OpKernel> {
        super::op_kernels::on_cuda().collect()
    }
    fn elementwise(&self, _device: Device, expr: &Arc<Expr>) -> Option<KernelDef> {
        Some(kernels::elementwise(expr))
    }
    fn copy(&self, _device: Device) -> Option<KernelDef> {
        Some(kernels::copy())
    }
}

/// Memory and streams of a GPU, with the rank's host memory, for bytes on their way, and its communicator.
///
/// # Errors
/// What the driver reports.
pub fn open_gpu(
    gpu: &Arc<Gpu>,
    options: AllocatorOptions,
    host: &Allocator,
    comm: Option<Arc<dyn Communicator>>,
) -> Result<DeviceRt> {
    let alloc = Allocator::device(Device::Cuda, Arc::new(GpuMemory(gpu.clone())), options);
    let vm = Vm::new(CudaStreams::new(gpu, &alloc, host, comm)?);
    Ok(DeviceRt { alloc, vm })
}

struct GpuMemory(Arc<Gpu>);

impl MemorySource for GpuMemory {
    fn allocate(&self, bytes: usize) -> Result<Region> {
        let memory = DeviceMemory::new(&self.0, bytes)?;
        // SAFETY: memory of the GPU, freed when `memory` is dropped; only work on the GPU's streams uses it.
        Ok(unsafe { Region::new(memory.data(), memory) })
    }
}
