//! Collectives by hosts. [`HostHierarchy`] assigns the work to members.
//!
//! Each goes over the message in chunks, chunk t in its round t and, where it waits for results, in a later one by its *lag*.
//! Steps of a round, in this order:
//!
//! | collective | steps of a member |
//! |---|---|
//! | all-reduce | A: posts its values of each stripe to the stripe's member on its host. B: the member of a stripe takes these and the partial of the host before, and posts the new partial to the host after; on the last host it is the result, for the members there and the host before. C, a lag later: takes the result from the host after, posts it to its host and the host before. D: takes the results of the other stripes |
//! | reduce-scatter | A: posts its values of each part to the part's keeper on its host. B: a keeper takes these and the partials of the host before, and posts the new partials to the keepers on the host after; on the last host they are results, posted to their members. D, a lag later: takes its own result |
//! | all-gather | A: posts its part to its host and to the keepers on all others. B, a lag of one round: a keeper takes the parts it keeps and posts them to its host. D: takes from its host what A and B have posted |
//! | broadcast | A: the root posts all to its host, and its stripe to the host after. B: the member of a stripe takes it, from the root or the host before, and posts it to its host (not on the root's) and the host after. D: takes the other stripes |
//!
//! The lag of a host in a chain is the number of hosts that follow, which fills the chain.
//!
//! **Deadlock freedom**: call *time* of a step its round plus the place of its host in the chain (in an all-gather, where none
//! is first, its round). Every wait is for a step of an earlier time, or of the same time and earlier in the order A, B, C,
//! D; among steps C of one time for the host after, in which the chain ends. For: a partial comes from the host before, in the
//! same round, so from the time before; a result of chunk t is posted at time t plus the chain's length, and its lag has a
//! member take it at that very time, be it in C or in D; in an all-gather keepers take in a round what was posted in the round
//! before; all others take what their own host posted in the same round. And a buffer is used again
//! [`SLOTS`](super::transport::SLOTS) posts later: a round has at most three in an all-reduce, of which the next one's B waits
//! for A and its C for B, whose readers are at most one time later and before C; otherwise at most two, so that two rounds
//! have passed. (Results that wait for a lagging reader were posted at the time at which it takes them.)

mod all_gather;
mod all_reduce;
mod broadcast;
mod fold;
mod reduce_scatter;

use super::Group;
use super::collectives::{ALIGN, Segments, Session};
use super::transport::{Segment, Transport};
use super::zero_copy::RawSliceMut;
use oflow_base::Result;
use oflow_base::host_hierarchy::{FlowKind, HostHierarchy, Width};
use std::ops::Range;

/// How a group goes by hosts for a message of so many bytes, if it does.
pub(super) fn hierarchy_of(
    hosts: &[usize],
    group: &Group,
    kind: FlowKind,
    bytes: usize,
    width: Width,
) -> Option<HostHierarchy> {
    if hosts.is_empty() {
        return None;
    }
    let hierarchy = HostHierarchy::of(group.ranks.len(), |i| hosts[group.ranks[i]])?;
    hierarchy.takes(kind, bytes as u64 / width.element, width).then_some(hierarchy)
}

/// A message in chunks of stripes.
struct Stripes {
    bytes: usize,
    stripes: usize,
    /// Bytes of a stripe's chunk.
    step: usize,
}

impl Stripes {
    fn chunks(&self) -> usize {
        self.bytes.div_ceil(self.step * self.stripes)
    }
    fn chunk(&self, chunk: usize) -> Range<usize> {
        let at = chunk * self.step * self.stripes;
        at..(at + self.step * self.stripes).min(self.bytes)
    }
    fn of(&self, chunk: usize, stripe: usize) -> Range<usize> {
        let Range { start, end } = self.chunk(chunk);
        let step = (end - start).div_ceil(self.stripes).next_multiple_of(ALIGN);
        (start + stripe * step).min(end)..(start + (stripe + 1) * step).min(end)
    }
}

impl<T: Transport> Session<'_, '_, T> {
    /// Has the next post of a rank put where it belongs.
    pub(super) fn fill_from(&self, from: usize, to: &mut [u8], total: usize) -> Result<()> {
        let len = to.len();
        self.take(from, total, &RawSliceMut::from(to).destination(0..len))
    }

    /// Posts to each of some ranks a range of `bytes`.
    fn post_stripes(&self, bytes: &[u8], total: usize, to: impl Iterator<Item = (usize, Range<usize>)>) -> Result<()> {
        let mut outbox = self.outbox()?;
        let (mut parts, mut offset) = (Segments::new(), 0);
        for (reader, range) in to {
            let len = range.len();
            outbox[offset..offset + len].copy_from_slice(&bytes[range]);
            parts.push(Segment { reader, offset, len, total: total as u64 });
            offset += len.next_multiple_of(ALIGN);
        }
        self.publish(outbox, &parts);
        Ok(())
    }
}
