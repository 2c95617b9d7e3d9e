//! The binomial tree over the members of a group: the way of a broadcast, and of short messages in large groups.
//!
//! Member 0 is the root; the parent of a member is its number without the lowest bit. A member and all below it are numbered
//! consecutively, so what they send up the tree arrives in member order.
//!
//! A collective of more than [`DIRECT_MEMBERS`] members whose contributions have at most [`SHORT_BYTES`] together goes up to
//! the root and back: each member exchanges messages with at most ⌈log2 m⌉ + 1 others. Sent directly, m members exchange m²
//! messages, which for 1,024 ranks of one host takes seconds and, as each pair of ranks has a page of its own, gigabytes.

use std::ops::Range;

/// Largest number of members that always send to each other directly.
pub const DIRECT_MEMBERS: usize = 64;

/// Largest number of bytes, of all contributions together, that go by the tree.
pub const SHORT_BYTES: u64 = 16 << 10;

/// The tree of so many members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    members: usize,
}

impl Tree {
    /// Makes the tree of `members` members.
    pub const fn of(members: usize) -> Tree {
        Tree { members }
    }

    /// Returns the tree by which `members` members send contributions of so many bytes together, or `None` if they send them
    /// directly.
    pub fn of_short(members: usize, bytes: u64) -> Option<Tree> {
        (members > DIRECT_MEMBERS && bytes <= SHORT_BYTES).then_some(Tree { members })
    }

    /// Returns the parent of a member; the root has none.
    pub fn parent(self, member: usize) -> Option<usize> {
        (member > 0).then(|| member & (member - 1))
    }

    /// Returns the children of a member, those with the most members below them first.
    pub fn children(self, member: usize) -> impl Iterator<Item = usize> + Clone {
        let bits = if member == 0 { usize::BITS } else { member.trailing_zeros() };
        let fitting = usize::BITS - (self.members - member).saturating_sub(1).leading_zeros();
        (0..bits.min(fitting)).rev().map(move |b| member + (1 << b))
    }

    /// Returns a member and all below it.
    pub fn span(self, member: usize) -> Range<usize> {
        let below = if member == 0 { self.members } else { 1 << member.trailing_zeros() };
        member..self.members.min(member + below)
    }

    /// Returns what a member sends when contributions go up to the root and the whole result down. `parts` is the size of the
    /// contributions of some members, `whole` that of the result.
    pub fn sent(self, member: usize, whole: u64, parts: impl Fn(Range<usize>) -> u64) -> u64 {
        let up = if member > 0 { parts(self.span(member)) } else { 0 };
        up + self.children(member).count() as u64 * whole
    }

    /// Returns what a member receives from another one; see [`sent`](Self::sent).
    pub fn received(self, member: usize, from: usize, whole: u64, parts: impl Fn(Range<usize>) -> u64) -> u64 {
        match () {
            () if self.parent(from) == Some(member) => parts(self.span(from)),
            () if self.parent(member) == Some(from) => whole,
            () => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_but_the_root_is_the_child_of_its_parent() {
        for m in 1..140 {
            let tree = Tree::of(m);
            let mut parents = vec![None; m];
            for i in 0..m {
                for c in tree.children(i) {
                    assert_eq!(parents[c].replace(i), None, "{c} of {m}");
                }
            }
            assert_eq!(parents, (0..m).map(|i| tree.parent(i)).collect::<Vec<_>>());
            assert_eq!(tree.children(0).count(), m.next_power_of_two().trailing_zeros() as usize);
        }
    }

    #[test]
    fn a_span_is_a_member_and_the_spans_of_its_children() {
        for m in 1..140 {
            let tree = Tree::of(m);
            for i in 0..m {
                let mut below: Vec<usize> = tree.children(i).flat_map(|c| tree.span(c)).chain([i]).collect();
                below.sort_unstable();
                assert_eq!(below, tree.span(i).collect::<Vec<_>>(), "{i} of {m}");
            }
        }
    }

    #[test]
    fn what_is_sent_is_received() {
        for m in [1, 2, 65, 100, 128] {
            let (tree, sizes) = (Tree::of(m), |i: usize| [0, 3, 1, 7][i % 4]);
            let parts = |r: Range<usize>| r.map(sizes).sum::<u64>();
            let whole = parts(0..m);
            let mut sent = vec![0; m];
            for i in 0..m {
                for (from, sent) in sent.iter_mut().enumerate() {
                    *sent += tree.received(i, from, whole, parts);
                }
            }
            assert_eq!(sent, (0..m).map(|i| tree.sent(i, whole, parts)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn only_short_messages_of_many_go_by_the_tree() {
        assert_eq!(Tree::of_short(DIRECT_MEMBERS, 1), None);
        assert_eq!(Tree::of_short(DIRECT_MEMBERS + 1, SHORT_BYTES), Some(Tree::of(DIRECT_MEMBERS + 1)));
        assert_eq!(Tree::of_short(1024, SHORT_BYTES + 1), None);
    }
}
