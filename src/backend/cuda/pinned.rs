//! Pinned host buffers, used again when the copies from or to them are done.

use crate::error::Result;
use oflow_kernels::cuda::{Event, Gpu, PinnedMemory, Stream};
use std::sync::Arc;

/// Larger copies are cut into pieces of this size, so that pinned memory stays bounded.
pub(super) const PIECE: usize = 32 << 20;
/// Reads wait for each piece, so theirs are smaller, and a few are under way at once.
pub(super) const READ_PIECE: usize = 4 << 20;
pub(super) const READ_AHEAD: usize = 3;

/// A buffer with the event of its last copy.
pub(super) type Buffer = (PinnedMemory, Event);

/// Buffers of one stream's copies.
#[derive(Default)]
pub(super) struct PinnedPool {
    buffers: Vec<Buffer>,
}

impl PinnedPool {
    /// A buffer of at least that many bytes (at most [`PIECE`]) whose last copy is done. Prefers one that is idle to making
    /// another, and making another to waiting, up to four of a size.
    pub(super) fn take(&mut self, gpu: &Arc<Gpu>, bytes: usize) -> Result<Buffer> {
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
    pub(super) fn give(&mut self, (buffer, event): Buffer, stream: &Stream) -> Result<()> {
        event.record(stream)?;
        self.buffers.push((buffer, event));
        Ok(())
    }

    /// Gives a buffer back whose copy is done.
    pub(super) fn give_idle(&mut self, buffer: Buffer) {
        self.buffers.push(buffer);
    }
}
