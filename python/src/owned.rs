//! A stream of batches that owns its loader.

use oflow::data::{Loader, Stream};
use std::sync::Arc;

/// A stream, and the loader that it borrows. The stream is dropped first: fields are dropped in their order.
pub struct OwnedStream {
    stream: Stream<'static>,
    _loader: Arc<Loader>,
}

impl OwnedStream {
    /// The stream of a loader.
    pub fn new(loader: Arc<Loader>) -> OwnedStream {
        // SAFETY: `_loader` keeps the loader where it is for longer than the stream lives, nobody can change it, and the stream is
        // lent by this type with a shorter lifetime only.
        let borrowed: &'static Loader = unsafe { &*Arc::as_ptr(&loader) };
        OwnedStream { stream: borrowed.stream(), _loader: loader }
    }
    /// The stream that is owned.
    pub fn stream(&self) -> &Stream<'_> {
        &self.stream
    }
    /// The stream, to take batches of it.
    pub fn stream_mut(&mut self) -> &mut Stream<'static> {
        &mut self.stream
    }
}
