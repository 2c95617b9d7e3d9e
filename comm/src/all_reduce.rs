//! An all-reduce between members that send directly to each other.

use super::Group;
use super::collectives::{ALIGN, Segments, Session, others, piece_bytes};
use super::transport::{Segment, Transport};
use super::zero_copy::RawSliceMut;
use oflow_base::Result;
use oflow_kernels::cpu::accumulate::reduce_slices;
use oflow_kernels::{DType, ReduceOp};
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes that are reduced, and copied while they lie in the first cache.
const BLOCK: usize = 16 << 10;

impl<'d, T: Transport> Session<'_, 'd, T> {
    /// Everyone posts all and reduces all.
    pub(super) fn one_phase(
        &self,
        group: &Group,
        (send, recv): (&'d [u8], &mut [u8]),
        how: (DType, ReduceOp),
    ) -> Result<()> {
        self.post_to_all(group, send.into(), send.len())?;
        self.reduce_from_all(group, send.len(), (send, recv), how)
    }

    /// Chunk after chunk, everyone reduces a part and posts the result.
    pub(super) fn two_phases(
        &self,
        group: &Group,
        (send, recv): (&'d [u8], &'d mut [u8]),
        scratch: &mut Vec<u8>,
        how: (DType, ReduceOp),
    ) -> Result<()> {
        let (m, n) = (group.ranks.len(), send.len());
        let chunk = piece_bytes(self.link.capacity(), m - 1) * m;
        // Member j's part of the chunk that starts at `at`; of a chunk behind the end, nothing.
        let part_of = |at: usize, j: usize| {
            let at = at.min(n);
            let len = chunk.min(n - at);
            let step = len.div_ceil(m).next_multiple_of(ALIGN);
            at + (j * step).min(len)..at + ((j + 1) * step).min(len)
        };
        let from_memory = others(group).all(|(_, reader)| self.link.sends_from_memory(reader));
        let first_other = usize::from(group.me == 0);
        let scatter = |at: usize| self.post_to_each(group, send.into(), |j| Some(part_of(at, j)), |_| n);
        let mut to = RawSliceMut::from(recv);
        scatter(0)?;
        for at in (0..n).step_by(chunk) {
            let (mine, next) = (part_of(at, group.me), at + chunk);
            if from_memory {
                self.reduce_from_all(group, n, (&send[mine.clone()], to.slice(mine.clone())), how)?;
                self.post_to_all(group, to.part(mine), n)?;
            } else {
                let scattered_next = part_of(next, first_other);
                self.reduce_and_post(group, (send, &mut to), (mine, scattered_next), scratch, how)?;
            }
            if next < n {
                scatter(next)?;
            }
            let reduced_next = &send[part_of(next, group.me)];
            for (i, from) in others(group) {
                self.take(from, n, &to.destination(part_of(at, i)).before(reduced_next))?;
            }
        }
        Ok(())
    }

    /// Reduces this member's part into the outbox and into its place. `next` is what is read afterwards.
    fn reduce_and_post(
        &self,
        group: &Group,
        (send, to): (&'d [u8], &mut RawSliceMut<'d>),
        (mine, next): (Range<usize>, Range<usize>),
        scratch: &mut Vec<u8>,
        (dtype, op): (DType, ReduceOp),
    ) -> Result<()> {
        let total = send.len();
        let pieces = self.receive_from_all(group, total, mine.len())?;
        let mut outbox = self.outbox()?;
        scratch.resize(scratch.len().max(BLOCK), 0);
        for at in (0..mine.len()).step_by(BLOCK) {
            let block = at..(at + BLOCK).min(mine.len());
            let place = mine.start + block.start..mine.start + block.end;
            let mut values: SmallVec<[&[u8]; 8]> = pieces.iter().map(|p| &p[block.clone()]).collect();
            values.insert(group.me, &send[place.clone()]);
            // Copying a block to the outbox is faster than reducing into it: the peers' caches hold its lines.
            if to.past_cache() {
                let result = &mut scratch[..block.len()];
                reduce_slices(result, &values, dtype, op)?;
                outbox[block].copy_from_slice(result);
                to.destination(place).before(&send[(next.start + at).min(next.end)..next.end]).fill(result);
            } else {
                let result = to.slice(place);
                reduce_slices(result, &values, dtype, op)?;
                outbox[block].copy_from_slice(result);
            }
        }
        drop(pieces);
        let part = |(_, reader)| Segment { reader, offset: 0, len: mine.len(), total: total as u64 };
        self.publish(outbox, &others(group).map(part).collect::<Segments>());
        Ok(())
    }
}
