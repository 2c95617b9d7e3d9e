//! The computations of oflow on one device.
//!
//! This crate knows dtypes, logical shapes, shard boxes, strides and pointers. It knows nothing of SBP, ranks or
//! placements: the rooms above hand it [`View`]s and it computes. Start reading at [`view`] (what a kernel is given)
//! `cpu` (the kernels) and `cuda` (those on NVIDIA GPUs).

mod cmath;
pub mod conv;
pub mod cpu;
pub mod cuda;
mod dtype;
pub mod expr;
pub mod parallel;
pub mod pool;
pub mod resample;
mod scalar;
mod single;
mod special;
pub mod view;
pub mod vmath;

pub use dtype::*;
/// A complex number: an element of [`DType::C64`] (f32) and [`DType::C128`] (f64).
pub use num_complex::Complex;
pub use scalar::Scalar;
pub use view::{Dims, ShardBox, Strides, View};

/// The error of a kernel: a sentence without op name and source line, which the caller adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelError(pub String, Cause);

/// The cause of a kernel's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Wrong arguments or values.
    Call,
    /// A failure of the device: a missing library, or an error of the driver.
    Device,
    /// The device is out of memory.
    Memory,
}

impl KernelError {
    /// Makes an error about arguments or values.
    pub fn new(message: impl Into<String>) -> Self {
        KernelError(message.into(), Cause::Call)
    }
    /// Makes an error about the device.
    pub fn device(message: impl Into<String>) -> Self {
        KernelError(message.into(), Cause::Device)
    }
    /// The device is out of memory.
    pub fn out_of_memory(message: impl Into<String>) -> Self {
        KernelError(message.into(), Cause::Memory)
    }
    /// The cause of a kernel's error.
    pub fn cause(&self) -> Cause {
        self.1
    }
}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KernelError {}

impl From<KernelError> for oflow_base::Error {
    fn from(e: KernelError) -> oflow_base::Error {
        match e.1 {
            Cause::Call => oflow_base::Error::argument(e.0),
            Cause::Device => oflow_base::Error::device(e.0),
            Cause::Memory => oflow_base::Error::memory(e.0),
        }
    }
}

/// Result of a kernel.
pub type Result<T, E = KernelError> = std::result::Result<T, E>;

/// An elementwise reduction of several values to one. On `bool`, `Max` is *or* and `Min` is *and*. `Max` and `Min` propagate NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// Sum; for f16 and bf16 accumulated in f32.
    Sum,
    /// Maximum; NaN propagates.
    Max,
    /// Minimum; NaN propagates.
    Min,
}

impl std::fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
        })
    }
}
