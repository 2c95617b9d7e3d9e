//! CUDA graphs: work that a stream captures once, in place of doing it, and is given again with one call of the driver.

use super::{Gpu, Stream, driver_error};
use crate::Result;
use cudarc::driver::{result, sys};
use std::sync::Arc;

/// Work of one stream, ready to be launched.
pub struct CapturedWork {
    gpu: Arc<Gpu>,
    raw: sys::CUgraphExec,
}

// SAFETY: a handle that any thread may use; the driver keeps launches of it in order.
unsafe impl Send for CapturedWork {}
// SAFETY: as above.
unsafe impl Sync for CapturedWork {}

impl Drop for CapturedWork {
    fn drop(&mut self) {
        if self.gpu.bind().is_ok() {
            // SAFETY: the handle is given back once. What has been launched is still done.
            let _ = unsafe { result::graph::exec_destroy(self.raw) };
        }
    }
}

impl Stream {
    /// Begins to capture what this thread puts on the stream, up to [`end_capture`](Stream::end_capture). Meanwhile the thread waits for nothing and
    /// allocates no memory of a GPU; a call that does makes the capture invalid.
    ///
    /// # Errors
    /// The driver does not capture.
    pub fn begin_capture(&self) -> Result<()> {
        self.gpu().bind()?;
        // Other threads go on with what they do.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: a live stream.
        unsafe { result::stream::begin_capture(self.raw(), mode) }.map_err(|e| driver_error("cuStreamBeginCapture", e))
    }

    /// Ends a capture and makes it ready to be launched.
    ///
    /// # Errors
    /// Something has made the capture invalid, or the driver has no room.
    pub fn end_capture(&self) -> Result<CapturedWork> {
        self.gpu().bind()?;
        // SAFETY: a live stream, which captures.
        let graph = unsafe { result::stream::end_capture(self.raw()) };
        let graph = graph.map_err(|e| driver_error("cuStreamEndCapture", e))?;
        // SAFETY: a live graph.
        let made = unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) };
        // SAFETY: as above; it is given back once.
        let _ = unsafe { result::graph::destroy(graph) };
        let raw = made.map_err(|e| driver_error("cuGraphInstantiate", e))?;
        Ok(CapturedWork { gpu: self.gpu().clone(), raw })
    }

    /// Puts captured work on the stream.
    ///
    /// The memory that it was captured with must be there still, at the same addresses.
    ///
    /// # Errors
    /// The driver refuses the launch.
    pub fn launch_captured(&self, work: &CapturedWork) -> Result<()> {
        self.gpu().bind()?;
        // SAFETY: live handles of one context.
        unsafe { result::graph::launch(work.raw, self.raw()) }.map_err(|e| driver_error("cuGraphLaunch", e))
    }
}
