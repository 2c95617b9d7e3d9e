//! Pinned host buffers, used again when the copies from or to them are done.

use crate::error::Result;
use oflow_kernels::cuda::{Event, Gpu, PinnedMemory, Stream};
use std::sync::Arc;

/// Larger copies are cut into pieces of this size, so that pinned memory stays bounded.
pub(super) const PIECE: usize = 32 << 20;

/// Buffers of one stream's copies.
#[derive(Default)]
pub(super) struct PinnedPool {
    /// Each with the event of its last copy.
    buffers: Vec<(PinnedMemory, Event)>,
}

impl PinnedPool {
    /// A buffer of at least that many bytes (at most [`PIECE`]) whose last copy is done. Prefers one that is idle to making
    /// another, and making another to waiting, up to four of a size.
    pub(super) fn take(&mut self, gpu: &Arc<Gpu>, bytes: usize) -> Result<(PinnedMemory, Event)> {
        let size = bytes.next_power_of_two().max(4096);
        let mut same = 0;
        for i in 0..self.buffers.len() {
            if self.buffers[i].0.size() == size {
                same += 1;
                if self.buffers[i].1.reached()? {
                    return Ok(self.buffers.swap_remove(i));
                }
            }
        }
        if same >= 4
            && let Some(i) = self.buffers.iter().position(|(b, _)| b.size() == size)
        {
            let oldest = self.buffers.remove(i);
            oldest.1.synchronize()?;
            return Ok(oldest);
        }
        Ok((PinnedMemory::new(gpu, size)?, Event::new(gpu, false)?))
    }

    /// Gives a buffer back when its copy has been put on the stream.
    pub(super) fn give(&mut self, (buffer, event): (PinnedMemory, Event), stream: &Stream) -> Result<()> {
        event.record(stream)?;
        self.buffers.push((buffer, event));
        Ok(())
    }

    /// The buffer given back last.
    pub(super) fn last(&self) -> Option<&PinnedMemory> {
        self.buffers.last().map(|(b, _)| b)
    }
}
