//! Short messages of large groups: contributions go up a binomial tree, the result comes down.
//!
//! Only the root reduces, all contributions in member order, so the bits are those of the direct way.
//!
//! **Deadlock freedom**: a member waits for its children, which have higher numbers and wait only for theirs; then for its parent,
//! which waits, up to the root, for members that have posted. A call posts twice at most, and a buffer is used again
//! [`SLOTS`](super::transport::SLOTS) posts later: by then the parent has read what went up, because its result has come, and the
//! children what went down, because their next contributions have.

use super::Group;
use super::collectives::{Segments, Session};
use super::transport::{Segment, Transport};
use oflow_base::Result;
use oflow_base::tree::Tree;
use oflow_kernels::cpu::accumulate::reduce_slices;
use oflow_kernels::{DType, ReduceOp};
use smallvec::SmallVec;
use std::ops::Range;

impl<T: Transport> Session<'_, '_, T> {
    /// Returns the tree by which `members` members send contributions of so many bytes together, if they do.
    pub(super) fn tree(&self, members: usize, bytes: usize) -> Option<Tree> {
        Tree::of_short(members, bytes as u64).filter(|_| bytes <= self.link.capacity())
    }

    pub(super) fn barrier_by_tree(&self, group: &Group, tree: Tree) -> Result<()> {
        self.up(group, tree, &mut [], |_| 0..0)?;
        self.down(group, tree, &mut [])
    }

    pub(super) fn all_reduce_by_tree(
        &self,
        group: &Group,
        tree: Tree,
        (send, recv): (&[u8], &mut [u8]),
        scratch: &mut Vec<u8>,
        (dtype, op): (DType, ReduceOp),
    ) -> Result<()> {
        let n = send.len();
        let of = |members: Range<usize>| members.start * n..members.end * n;
        scratch.clear();
        scratch.resize(n * group.ranks.len(), 0);
        scratch[of(group.me..group.me + 1)].copy_from_slice(send);
        self.up(group, tree, scratch, of)?;
        if group.me == 0 && n > 0 {
            let values: SmallVec<[&[u8]; 8]> = scratch.chunks_exact(n).collect();
            reduce_slices(recv, &values, dtype, op)?;
        }
        self.down(group, tree, recv)
    }

    pub(super) fn all_gather_by_tree(
        &self,
        group: &Group,
        tree: Tree,
        send: &[u8],
        recv: &mut [u8],
        counts: &[usize],
    ) -> Result<()> {
        let of = |members: Range<usize>| {
            let start = counts[..members.start].iter().sum();
            start..start + counts[members].iter().sum::<usize>()
        };
        recv[of(group.me..group.me + 1)].copy_from_slice(send);
        self.up(group, tree, recv, of)?;
        self.down(group, tree, recv)
    }

    /// Gathers the members' contributions at the root. `of` says where in `all` those of some members lie; the own one is there.
    fn up(&self, group: &Group, tree: Tree, all: &mut [u8], of: impl Fn(Range<usize>) -> Range<usize>) -> Result<()> {
        for child in tree.children(group.me) {
            let part = &mut all[of(tree.span(child))];
            let total = part.len();
            self.fill_from(group.ranks[child], part, total)?;
        }
        match tree.parent(group.me) {
            Some(parent) => self.post_copy(&[group.ranks[parent]], &all[of(tree.span(group.me))]),
            None => Ok(()),
        }
    }

    /// Copies the root's bytes to all members.
    fn down(&self, group: &Group, tree: Tree, bytes: &mut [u8]) -> Result<()> {
        if let Some(parent) = tree.parent(group.me) {
            let total = bytes.len();
            self.fill_from(group.ranks[parent], bytes, total)?;
        }
        let children: SmallVec<[usize; 8]> = tree.children(group.me).map(|c| group.ranks[c]).collect();
        if children.is_empty() { Ok(()) } else { self.post_copy(&children, bytes) }
    }

    /// Posts bytes to some ranks from the outbox: their memory is written again before the call ends.
    fn post_copy(&self, readers: &[usize], bytes: &[u8]) -> Result<()> {
        let mut outbox = self.outbox()?;
        outbox[..bytes.len()].copy_from_slice(bytes);
        let part = |&reader| Segment { reader, offset: 0, len: bytes.len(), total: bytes.len() as u64 };
        self.publish(outbox, &readers.iter().map(part).collect::<Segments>());
        Ok(())
    }
}
