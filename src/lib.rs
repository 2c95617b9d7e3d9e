//! oflow runs one Rust program on many devices as if they were one device.

pub mod comm;
pub mod control;
pub mod error;
pub mod intern;
pub mod placement;
pub mod sbp;

pub use error::{CallSite, Error, ErrorKind, Result};
pub use oflow_kernels as kernels;
