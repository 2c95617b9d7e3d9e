//! Kernels on NVIDIA GPUs: `.cu` sources (`kernels/cuda/`) that NVRTC compiles at run time, and the host code that
//! launches them, one file a family, named like their counterparts in [`crate::cpu`].
//!
//! Nothing of CUDA is needed to build this or to run it on a machine without it: libraries are loaded when a GPU is asked
//! for, and [`probe`](probe::probe) says what is there. What a kernel is given is a [`Queue`]: a stream of one GPU, with the
//! compiled programs of that GPU. All calls only put work on the stream; nothing here waits for it.

pub mod accumulate;
mod ahead;
pub mod attention;
mod blas;
mod compile;
pub mod copy;
mod cubin;
pub mod elementwise;
pub mod embedding;
pub mod fill;
mod gpu;
pub mod index;
pub mod libraries;
pub mod loss;
mod many;
pub mod matmul;
mod memory;
pub mod norm;
pub mod optim;
mod pointwise;
pub mod probe;
mod program;
pub mod programs;
mod queue;
pub mod random;
pub mod reduce;
mod rows;
pub mod scan;
pub mod softmax;
mod stream;
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

/// What failed, in CUDA's words.
pub(crate) fn driver_error(what: &str, e: DriverError) -> KernelError {
    let name = e.error_name().ok().and_then(|n| n.to_str().ok()).unwrap_or("an unknown error");
    let text = e.error_string().ok().and_then(|n| n.to_str().ok()).unwrap_or("");
    let error = format!("{what}: {name} ({text})");
    match e.0 {
        cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => KernelError::out_of_memory(error),
        _ => KernelError::device(error),
    }
}
