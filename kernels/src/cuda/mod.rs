//! Kernels on NVIDIA GPUs: `.cu` sources (`kernels/cuda/`) that NVRTC compiles at run time, and the host code that
//! launches them, one file a family, named like their counterparts in [`crate::cpu`].
//!
//! CUDA is needed neither for building this crate nor for running it without a GPU: libraries are loaded at the first use of a
//! GPU, and
//! [`probe`](probe::probe) reports what is installed. A kernel is launched on a [`Queue`]: a stream of a GPU, with the compiled
//! programs of that GPU. Calls enqueue work on the stream and do not wait for it.

mod ahead;
mod blas;
mod by_name;
mod compile;
mod cubin;
mod cudnn;
mod cufft;
mod cusolver;
mod dnn;
mod driver_error;
pub mod elementwise;
mod gpu;
mod graph;
pub mod libraries;
mod many;
mod memory;
mod pointwise;
pub mod probe;
mod program;
pub mod programs;
mod queue;
mod rows;
mod stream;

/// Declares the modules of kernels and [`SOURCES`], the CUDA sources of each.
macro_rules! kernels {
    ($($vis:vis mod $name:ident: $($source:ident),+;)*) => {
        $($vis mod $name;)*
        /// Every file of `kernels/cuda`; a test compares.
        static SOURCES: &[&Source] = &[$($(&$name::$source),+),*];
    };
}

kernels! {
    pub mod accumulate: ACCUMULATE;
    pub mod attention: ATTENTION, PLAIN;
    pub mod batch_norm: BATCH_NORM;
    pub mod conv: CONV;
    pub mod copy: COPY, TRANSPOSE;
    pub mod count: COUNT;
    pub mod embedding: EMBEDDING;
    pub mod fft: FFT;
    pub mod fill: FILL;
    pub mod gather: GATHER;
    pub mod grouped_norm: GROUPED_NORM;
    pub mod index: INDEX, TRIANGLE;
    pub mod loss: LOSS;
    pub mod matmul: MATMUL;
    pub mod norm: NORM;
    pub mod optim: OPTIM;
    pub mod pool: POOL;
    pub mod random: RANDOM;
    pub mod reduce: REDUCE;
    pub mod resample: RESAMPLE;
    pub mod rotary: ROTARY;
    pub mod run: RUN;
    pub mod scan: SCAN;
    pub mod select: SELECT;
    pub mod softmax: SOFTMAX;
    pub mod solver: LINALG;
    pub mod sort: SORT;
    pub mod steps: STEPS;
    pub mod take: TAKE;
}

pub use blas::Epilogue;
pub use compile::cache_dir as kernel_cache;
pub use cubin::{Usage, usage};
pub(crate) use driver_error::driver_error;
pub use gpu::Gpu;
pub use graph::CapturedWork;
pub use memory::{DeviceMemory, PinnedMemory};
pub use program::{Define, Function, Source};
pub use queue::{Args, Fault, FaultSlot, Launch, Queue};
pub use stream::{Event, Stream};
