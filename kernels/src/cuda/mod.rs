//! Kernels on NVIDIA GPUs: `.cu` sources (`kernels/cuda/`) that NVRTC compiles at run time, and the host code that
//! launches them, one file a family, named like their counterparts in [`crate::cpu`].
//!
//! CUDA is needed neither for building this crate nor for running it without a GPU: libraries are loaded at the first use of a
//! GPU, and
//! [`probe`](probe::probe) reports what is installed. A kernel is launched on a [`Queue`]: a stream of a GPU, with the compiled
//! programs of that GPU. Calls enqueue work on the stream and do not wait for it.

pub mod accumulate;
mod ahead;
pub mod attention;
pub mod batch_norm;
mod blas;
mod compile;
pub mod conv;
pub mod copy;
pub mod count;
mod cubin;
pub mod elementwise;
pub mod embedding;
mod fill;
pub mod gather;
mod gpu;
pub mod grouped_norm;
pub mod index;
pub mod libraries;
pub mod loss;
mod many;
pub mod matmul;
mod memory;
pub mod norm;
pub mod optim;
mod pointwise;
pub mod pool;
pub mod probe;
mod program;
pub mod programs;
mod queue;
pub mod random;
pub mod reduce;
pub mod resample;
pub mod rotary;
mod rows;
pub mod run;
pub mod scan;
pub mod select;
pub mod softmax;
pub mod sort;
pub mod steps;
mod stream;
pub mod take;
#[cfg(test)]
pub(crate) mod testing;

pub use blas::Epilogue;
pub use compile::cache_dir as kernel_cache;
pub use cubin::{Usage, usage};
pub use gpu::Gpu;
pub use memory::{DeviceMemory, PinnedMemory};
pub use program::{Define, Source};
pub use queue::{Args, Fault, FaultSlot, Function, Launch, Queue};
pub use stream::{Event, Stream};

use crate::KernelError;
use cudarc::driver::DriverError;

/// Error of a failed call of the driver, in CUDA's words.
pub(crate) fn driver_error(what: &str, e: DriverError) -> KernelError {
    let name = e.error_name().ok().and_then(|n| n.to_str().ok()).unwrap_or("an unknown error");
    let text = e.error_string().ok().and_then(|n| n.to_str().ok()).unwrap_or("");
    let error = format!("{what}: {name} ({text})");
    match e.0 {
        cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => KernelError::out_of_memory(error),
        _ => KernelError::device(error),
    }
}
