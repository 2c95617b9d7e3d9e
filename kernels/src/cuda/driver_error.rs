//! Errors of the CUDA driver as errors of kernels.

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
