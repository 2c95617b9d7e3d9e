//! Memory of a GPU, and pinned host memory.

use super::{Gpu, driver_error};
use crate::Result;
use cudarc::driver::{result, sys};
use std::sync::Arc;

/// Memory of a GPU. Freeing it waits for the GPU, as `cuMemFree` does, so allocations are cached.
pub struct DeviceMemory {
    gpu: Arc<Gpu>,
    data: sys::CUdeviceptr,
    size: usize,
}

impl DeviceMemory {
    /// Allocates `size` bytes, aligned to at least 256, with arbitrary contents.
    pub fn new(gpu: &Arc<Gpu>, size: usize) -> Result<DeviceMemory> {
        gpu.bind()?;
        // SAFETY: a current context; the size is not zero.
        let data = unsafe { result::malloc_sync(size.max(1)) };
        let data = data.map_err(|e| driver_error(&format!("allocating {size} bytes on a GPU"), e))?;
        Ok(DeviceMemory { gpu: gpu.clone(), data, size })
    }
    /// Returns the address on the GPU. The host must not access it.
    pub fn data(&self) -> *mut u8 {
        self.data as *mut u8
    }
    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.gpu.bind().is_ok() {
            // Streams may still use it; this is rare, because freed blocks are cached.
            let _ = result::ctx::synchronize();
            // SAFETY: from `new`, freed once. An error means that the context has failed: then nothing is left to free.
            let _ = unsafe { result::free_sync(self.data) };
        }
    }
}

/// Pinned host memory, which the GPU can access directly.
pub struct PinnedMemory {
    gpu: Arc<Gpu>,
    data: *mut u8,
    size: usize,
}

// SAFETY: owned memory; who reads and writes when is decided by its users.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// Allocates `size` bytes of zeros.
    pub fn new(gpu: &Arc<Gpu>, size: usize) -> Result<PinnedMemory> {
        gpu.bind()?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: a current context; the size is not zero.
        let data = unsafe { result::malloc_host(size.max(1), flags) };
        let data =
            data.map_err(|e| driver_error(&format!("allocating {size} bytes of pinned memory"), e))?.cast::<u8>();
        // SAFETY: just allocated with that size. Zeroed, so that reading it is never reading uninitialised memory.
        unsafe { data.write_bytes(0, size) };
        Ok(PinnedMemory { gpu: gpu.clone(), data, size })
    }
    /// Returns the address for the host.
    pub fn data(&self) -> *mut u8 {
        self.data
    }
    /// Returns the address for the GPU.
    pub fn device_data(&self) -> Result<*mut u8> {
        self.gpu.bind()?;
        let mut at: sys::CUdeviceptr = 0;
        // SAFETY: memory from `malloc_host` with DEVICEMAP; writes one pointer.
        let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut at, self.data.cast(), 0) };
        status.result().map_err(|e| driver_error("cuMemHostGetDevicePointer", e))?;
        Ok(at as *mut u8)
    }
    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.gpu.bind().is_ok() {
            // SAFETY: from `new`, freed once.
            let _ = unsafe { result::free_host(self.data.cast()) };
        }
    }
}
