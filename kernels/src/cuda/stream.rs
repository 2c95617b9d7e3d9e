//! CUDA streams and events.

use super::blas::{BlasStream, WORKSPACE};
use super::{DeviceMemory, Gpu, driver_error};
use crate::{KernelError, Result};
use cudarc::driver::{DriverError, result, sys};
use std::sync::{Arc, OnceLock};

/// A CUDA stream: work that a GPU executes in order.
pub struct Stream {
    gpu: Arc<Gpu>,
    raw: sys::CUstream,
    /// Scratch memory of products and convolutions, allocated at the first one. Those of one stream follow each other, so they share it.
    workspace: OnceLock<DeviceMemory>,
}

// SAFETY: CUDA allows the use of a stream from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Makes a stream that does not wait for the legacy default stream. An `urgent` stream has the highest priority.
    pub fn new(gpu: &Arc<Gpu>, urgent: bool) -> Result<Stream> {
        gpu.bind()?;
        // Lower numbers are more urgent; the driver clamps to what the GPU has.
        let priority = if urgent { -1 } else { 0 };
        let raw = result::stream::create_with_priority(result::stream::StreamKind::NonBlocking, priority);
        let raw = raw.map_err(|e| driver_error("cuStreamCreate", e))?;
        Ok(Stream { gpu: gpu.clone(), raw, workspace: OnceLock::new() })
    }
    /// Returns the GPU.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }
    /// Returns the driver's handle.
    pub fn raw(&self) -> sys::CUstream {
        self.raw
    }
    /// The stream with its workspace, for products and convolutions.
    pub(super) fn for_blas(&self) -> Result<BlasStream> {
        let workspace = match self.workspace.get() {
            Some(memory) => memory,
            // A failure is not kept: there may be room the next time.
            None => {
                let memory = DeviceMemory::new(&self.gpu, WORKSPACE)?;
                self.workspace.get_or_init(|| memory)
            }
        };
        Ok(BlasStream { stream: self.raw, workspace: workspace.data() })
    }
    /// Scratch memory in the order of the stream: later work may use it until it is dropped, and it goes back when that work is done.
    ///
    /// # Errors
    /// There is no memory, or the stream is being captured by a driver that captures no allocations.
    pub(super) fn scratch(&self, bytes: usize) -> Result<Scratch<'_>> {
        self.gpu.bind()?;
        // SAFETY: a live stream of the current context.
        let at = unsafe { result::malloc_async(self.raw, bytes.max(1)) };
        let at = at.map_err(|e| driver_error(&format!("allocating {bytes} bytes of scratch memory on a GPU"), e))?;
        Ok(Scratch { stream: self, at })
    }
    /// Waits on the host until all work of the stream is done.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: a live stream.
        unsafe { result::stream::synchronize(self.raw) }.map_err(|e| driver_error("cuStreamSynchronize", e))
    }
    /// Makes later work of this stream wait for an event.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.gpu.bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: a live stream and a live event of the same driver.
        unsafe { result::stream::wait_event(self.raw, event.raw, flags) }
            .map_err(|e| driver_error("cuStreamWaitEvent", e))
    }
    /// Makes later work of the legacy default stream wait for the work that this stream has now: for code that launches without naming
    /// a stream.
    pub fn before_default(&self) -> Result<()> {
        let event = Event::new(&self.gpu, false)?;
        event.record(self)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the null handle is the default stream; a live event of the same driver.
        unsafe { result::stream::wait_event(std::ptr::null_mut(), event.raw, flags) }
            .map_err(|e| driver_error("cuStreamWaitEvent", e))
    }
    /// Makes later work of this stream wait for the work that the legacy default stream has now.
    pub fn after_default(&self) -> Result<()> {
        let event = Event::new(&self.gpu, false)?;
        // SAFETY: a live event; the null handle is the default stream of its context.
        unsafe { result::event::record(event.raw, std::ptr::null_mut()) }
            .map_err(|e| driver_error("cuEventRecord", e))?;
        self.wait(&event)
    }
    /// Copies from host memory. If it is pinned, the call returns before the copy is done.
    ///
    /// # Safety
    /// `to` is memory of this GPU, `from` host memory, both of that many bytes, and both live until the copy is done.
    pub unsafe fn copy_to_device(&self, to: *mut u8, from: *const u8, bytes: usize) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: by this function's contract.
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to as sys::CUdeviceptr, from.cast(), bytes, self.raw) };
        status.result().map_err(|e| driver_error("cuMemcpyHtoDAsync", e))
    }
    /// Copies to host memory. If it is pinned, the call returns before the copy is done.
    ///
    /// # Safety
    /// `from` is memory of this GPU, `to` host memory, both of that many bytes, and both live until the copy is done.
    pub unsafe fn copy_to_host(&self, to: *mut u8, from: *const u8, bytes: usize) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: by this function's contract.
        let status = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from as sys::CUdeviceptr, bytes, self.raw) };
        status.result().map_err(|e| driver_error("cuMemcpyDtoHAsync", e))
    }
    /// Copies within the GPU.
    ///
    /// # Safety
    /// Both are memory of this GPU, of that many bytes, without overlap, and live until the copy is done.
    pub unsafe fn copy_on_device(&self, to: *mut u8, from: *const u8, bytes: usize) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: by this function's contract.
        let status =
            unsafe { sys::cuMemcpyDtoDAsync_v2(to as sys::CUdeviceptr, from as sys::CUdeviceptr, bytes, self.raw) };
        status.result().map_err(|e| driver_error("cuMemcpyDtoDAsync", e))
    }
    /// Sets bytes to zero.
    ///
    /// # Safety
    /// `to` is memory of this GPU of that many bytes, which lives until this is done.
    pub unsafe fn set_zero(&self, to: *mut u8, bytes: usize) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: by this function's contract.
        unsafe { result::memset_d8_async(to as sys::CUdeviceptr, 0, bytes, self.raw) }
            .map_err(|e| driver_error("cuMemsetD8Async", e))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.gpu.bind().is_ok() {
            // SAFETY: from `new`, destroyed once; the driver finishes its work first.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
}

/// Scratch memory of the work of a stream.
pub(super) struct Scratch<'a> {
    stream: &'a Stream,
    at: sys::CUdeviceptr,
}

impl Scratch<'_> {
    /// The address on the GPU.
    pub(super) fn data(&self) -> *mut u8 {
        self.at as *mut u8
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // SAFETY: from `Stream::scratch`, freed once, in the order of its stream.
        let _ = unsafe { result::free_async(self.at, self.stream.raw) };
    }
}

/// A CUDA event: a point in a stream.
pub struct Event {
    gpu: Arc<Gpu>,
    raw: sys::CUevent,
}

// SAFETY: CUDA allows the use of an event from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Makes an event that is not recorded yet. Only `timed` events can measure time; they cost more.
    pub fn new(gpu: &Arc<Gpu>, timed: bool) -> Result<Event> {
        gpu.bind()?;
        use sys::CUevent_flags_enum as F;
        let flags = if timed { F::CU_EVENT_DEFAULT } else { F::CU_EVENT_DISABLE_TIMING };
        let raw = result::event::create(flags).map_err(|e| driver_error("cuEventCreate", e))?;
        Ok(Event { gpu: gpu.clone(), raw })
    }
    /// Records the event: it is reached when all work issued to the stream so far is done.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: a live event and a live stream of one context.
        unsafe { result::event::record(self.raw, stream.raw) }.map_err(|e| driver_error("cuEventRecord", e))
    }
    /// Returns whether the event has been reached.
    pub fn reached(&self) -> Result<bool> {
        self.gpu.bind()?;
        // SAFETY: a live event.
        match unsafe { result::event::query(self.raw) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(e) => Err(driver_error("cuEventQuery", e)),
        }
    }
    /// Waits on the host until the event has been reached.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: a live event.
        unsafe { result::event::synchronize(self.raw) }.map_err(|e| driver_error("cuEventSynchronize", e))
    }
    /// Returns the milliseconds between two timed events that have been reached.
    pub fn elapsed_ms(&self, later: &Event) -> Result<f32> {
        self.gpu.bind()?;
        type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;
        static FUNCTION: OnceLock<Option<ElapsedTime>> = OnceLock::new();
        // Drivers before CUDA 12.8 have only the function's first name, which the bindings do not know any more.
        let look = |name: &[u8]| {
            // SAFETY: a function of that type under both names, in a library that is never closed.
            unsafe { sys::culib().get::<ElapsedTime>(name) }.ok().map(|f| *f)
        };
        let find = || look(b"cuEventElapsedTime_v2").or_else(|| look(b"cuEventElapsedTime"));
        let Some(elapsed) = *FUNCTION.get_or_init(find) else {
            return Err(KernelError::device("the driver lacks cuEventElapsedTime"));
        };
        let mut ms = 0.0;
        // SAFETY: live events; writes one number.
        unsafe { elapsed(&mut ms, self.raw, later.raw) }.result().map_err(|e| driver_error("cuEventElapsedTime", e))?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.gpu.bind().is_ok() {
            // SAFETY: from `new`, destroyed once.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}
