//! Collectives of a group with several members per host: every byte crosses between hosts once.
//!
//! | collective | between hosts | within a host |
//! |---|---|---|
//! | all-reduce | partial results go along the chain of hosts, results back | each member handles one stripe of the message |
//! | reduce-scatter | partial results go along the chain, results from its end to their members | each member handles some of the parts |
//! | all-gather | each part goes to one member of each other host | that member sends the part to the others |
//! | broadcast | from the root's host from host to host, in stripes | the root, or the member of a stripe, sends it to the others |
//!
//! In a chain the members of a host add their values to the partial result of the host before, so values are combined in member
//! order on any hosts. Partial results of f16 and bf16 are sent as f32.
//!
//! The communicators, the cost model and the predictions of bytes all use this module. Its decisions depend on the group, the
//! hosts and the bytes of the whole message, which are the same on all members.

use crate::shard_range;
use smallvec::SmallVec;
use std::ops::Range;

/// Messages with fewer bytes per host but one are sent directly between members: the bytes saved would not pay for the hops.
pub const LONG_BYTES: u64 = 64 << 10;

/// Returns the largest size in bytes of an all-reduce of one phase, in which each member sends everything to all others. A larger
/// all-reduce is a reduce-scatter and an all-gather of chunks.
pub const fn one_phase_bytes(members: usize) -> usize {
    if members <= 2 { 8 << 10 } else { (16 << 10) / members }
}

/// A collective and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<'a> {
    /// An all-reduce: number of elements.
    AllReduce(usize),
    /// An all-gather: number of elements of each member.
    AllGather(&'a [usize]),
    /// A reduce-scatter: number of elements of each member's result.
    ReduceScatter(&'a [usize]),
    /// A broadcast: number of elements, and the root member.
    Broadcast(usize, usize),
}

/// The kinds of [`Flow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// The kind of [`Flow::AllReduce`].
    AllReduce,
    /// The kind of [`Flow::AllGather`].
    AllGather,
    /// The kind of [`Flow::ReduceScatter`].
    ReduceScatter,
    /// The kind of [`Flow::Broadcast`].
    Broadcast,
}

impl Flow<'_> {
    #[cfg(test)]
    fn kind(&self) -> FlowKind {
        match self {
            Flow::AllReduce(_) => FlowKind::AllReduce,
            Flow::AllGather(_) => FlowKind::AllGather,
            Flow::ReduceScatter(_) => FlowKind::ReduceScatter,
            Flow::Broadcast(..) => FlowKind::Broadcast,
        }
    }

    /// Returns the number of elements of the whole message.
    pub fn elements(&self) -> usize {
        match self {
            Flow::AllReduce(n) | Flow::Broadcast(n, _) => *n,
            Flow::AllGather(counts) | Flow::ReduceScatter(counts) => counts.iter().sum(),
        }
    }
}

/// Bytes of an element, and of an element of a partial result sent between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Bytes of an element.
    pub element: u64,
    /// Bytes of an element of a partial result; sums of f16 and bf16 are in f32.
    pub partial: u64,
}

impl Width {
    /// Makes the width of a reduction.
    pub fn reduced(element: usize, partial: usize) -> Width {
        Width { element: element as u64, partial: partial as u64 }
    }

    /// Makes the width of a collective without reduction.
    pub fn moved(element: usize) -> Width {
        Width { element: element as u64, partial: element as u64 }
    }
}

/// The members of a group by host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostHierarchy {
    /// The members of each host, in order.
    pub hosts: SmallVec<[Range<usize>; 8]>,
}

/// The load of the busiest member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busiest {
    /// Bytes within its host.
    pub near: u64,
    /// Bytes between hosts.
    pub far: u64,
    /// Number of members of its host that it exchanges messages with.
    pub mates: u64,
    /// Number of consecutive messages between hosts until the last byte has arrived.
    pub hops: u64,
}

impl HostHierarchy {
    /// Groups `members` members by host; `host(m)` is the host of member m. Returns `None` if messages are always sent
    /// directly: if all members are on one host, if no host has two members, or if the members of a host are not consecutive.
    pub fn of(members: usize, host: impl Fn(usize) -> usize) -> Option<HostHierarchy> {
        if members < 3 {
            return None;
        }
        let mut hosts: SmallVec<[Range<usize>; 8]> = SmallVec::new();
        let mut seen: SmallVec<[usize; 8]> = SmallVec::new();
        for i in 0..members {
            let at = host(i);
            match hosts.last_mut() {
                Some(run) if seen.last() == Some(&at) => run.end = i + 1,
                _ if seen.contains(&at) => return None,
                _ => {
                    hosts.push(i..i + 1);
                    seen.push(at);
                }
            }
        }
        (hosts.len() > 1 && hosts.len() < members).then_some(HostHierarchy { hosts })
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.hosts.last().map_or(0, |run| run.end)
    }

    /// Returns the number of stripes of an all-reduce or a broadcast: the number of members of the smallest host. Stripe s is
    /// handled by the s-th member of each host.
    pub fn stripes(&self) -> usize {
        self.hosts.iter().map(Range::len).min().unwrap_or(1)
    }

    /// Returns the host of a member, and its index there.
    pub fn place(&self, member: usize) -> (usize, usize) {
        let host = self.hosts.partition_point(|run| run.end <= member);
        (host, member - self.hosts[host].start)
    }

    /// Returns the member of a host that handles a member's part in an all-gather or a reduce-scatter; on its own host the member
    /// itself.
    pub fn keeper(&self, host: usize, member: usize) -> usize {
        let (_, place) = self.place(member);
        self.hosts[host].start + place % self.hosts[host].len()
    }

    /// Returns the members whose parts `keeper` handles on its host, including itself.
    pub fn kept(&self, keeper: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let (host, place) = self.place(keeper);
        let here = self.hosts[host].len();
        self.hosts.iter().flat_map(move |run| (run.start + place..run.end).step_by(here))
    }

    /// Returns whether a collective of this many elements goes by hosts, and not directly between members.
    pub fn takes(&self, kind: FlowKind, elements: u64, width: Width) -> bool {
        let bytes = elements * width.element;
        let long = bytes >= LONG_BYTES * (self.hosts.len() as u64 - 1);
        match kind {
            FlowKind::AllReduce => bytes > one_phase_bytes(self.members()) as u64,
            FlowKind::AllGather | FlowKind::Broadcast => long,
            FlowKind::ReduceScatter => long && self.chain_saves(width),
        }
    }

    /// Whether a chain puts less on the network than everyone's sending everyone its part, if the parts are equal. With few
    /// members on a host it may not, because results of all hosts but the last go one way more, and partials may be wider.
    fn chain_saves(&self, width: Width) -> bool {
        let (members, last) = (self.members() as u64, self.hosts.len() - 1);
        let sum = |f: &dyn Fn(usize, u64) -> u64| -> u64 {
            self.hosts.iter().enumerate().map(|(h, run)| run.len() as u64 * f(h, run.len() as u64)).sum()
        };
        let direct = sum(&|_, here| (members - here) * width.element);
        direct > sum(&|h, _| last as u64 * width.partial + if h == last { 0 } else { width.element })
    }

    /// Calls `tell(sender, bytes)` for what a member receives. The bytes are exact, except that chunks of stripes may shift a few
    /// bytes between members of one host.
    pub fn received(&self, member: usize, flow: Flow, width: Width, mut tell: impl FnMut(usize, u64)) {
        let (host, place) = self.place(member);
        let (run, last) = (&self.hosts[host], self.hosts.len() - 1);
        let mates = || run.clone().filter(|m| *m != member);
        let (stripes, element) = (self.stripes(), width.element);
        let stripe = |n: usize, s: usize| shard_range(n, stripes, s).len() as u64;
        let others = || (0..stripes).filter(|s| *s != place);
        match flow {
            Flow::AllReduce(n) => {
                if place < stripes {
                    mates().for_each(|m| tell(m, stripe(n, place) * element));
                    if host > 0 {
                        tell(self.hosts[host - 1].start + place, stripe(n, place) * width.partial);
                    }
                    if host < last {
                        tell(self.hosts[host + 1].start + place, stripe(n, place) * element);
                    }
                }
                others().for_each(|s| tell(run.start + s, stripe(n, s) * element));
            }
            Flow::AllGather(counts) => {
                let away = |keeper: usize| self.kept(keeper).filter(|m| !run.contains(m));
                for m in mates() {
                    tell(m, (counts[m] + away(m).map(|j| counts[j]).sum::<usize>()) as u64 * element);
                }
                away(member).for_each(|j| tell(j, counts[j] as u64 * element));
            }
            Flow::ReduceScatter(counts) => {
                let kept: u64 = self.kept(member).map(|j| counts[j] as u64).sum();
                mates().for_each(|m| tell(m, kept * element));
                if host > 0 {
                    self.kept(member).for_each(|j| tell(self.keeper(host - 1, j), counts[j] as u64 * width.partial));
                }
                if host < last {
                    tell(self.keeper(last, member), counts[member] as u64 * element);
                }
            }
            Flow::Broadcast(n, root) => {
                let hosts = self.hosts.len();
                let (home, _) = self.place(root);
                if host == home {
                    if member != root {
                        tell(root, n as u64 * element);
                    }
                    return;
                }
                if place < stripes {
                    tell(self.hosts[(host + hosts - 1) % hosts].start + place, stripe(n, place) * element);
                }
                others().for_each(|s| tell(run.start + s, stripe(n, s) * element));
            }
        }
    }

    /// Returns the bytes that a member sends, as exact as [`received`](Self::received).
    pub fn sent(&self, member: usize, flow: Flow, width: Width) -> u64 {
        let (host, place) = self.place(member);
        let (run, last) = (&self.hosts[host], self.hosts.len() - 1);
        let mates = run.len() as u64 - 1;
        let stripes = self.stripes();
        let own = |n: usize| if place < stripes { shard_range(n, stripes, place).len() as u64 } else { 0 };
        match flow {
            Flow::AllReduce(n) => {
                let on = if host < last { own(n) * width.partial } else { 0 };
                let back = if host > 0 { own(n) * width.element } else { 0 };
                (n as u64 - own(n) + own(n) * mates) * width.element + on + back
            }
            Flow::AllGather(counts) => {
                let away: usize = self.kept(member).filter(|m| !run.contains(m)).map(|j| counts[j]).sum();
                (counts[member] as u64 * (mates + last as u64) + away as u64 * mates) * width.element
            }
            Flow::ReduceScatter(counts) => {
                let sum = |all: &mut dyn Iterator<Item = usize>| all.map(|j| counts[j] as u64).sum::<u64>();
                let kept = sum(&mut self.kept(member));
                let on = match host < last {
                    true => kept * width.partial,
                    false => sum(&mut self.kept(member).filter(|j| !run.contains(j))) * width.element,
                };
                let away = if mates > 0 { counts.iter().sum::<usize>() as u64 - kept } else { 0 };
                away * width.element + on
            }
            Flow::Broadcast(n, root) => {
                let (home, _) = self.place(root);
                let to_mates = match () {
                    () if member == root => n as u64 * mates,
                    () if host == home => 0,
                    () => own(n) * mates,
                };
                let next = if (host + 1) % self.hosts.len() == home { 0 } else { own(n) };
                (to_mates + next) * width.element
            }
        }
    }

    /// Returns the load of the busiest member, for a message of `n` elements of which a member's part is at most `part`.
    pub fn busiest(&self, kind: FlowKind, n: u64, part: u64, width: Width) -> Busiest {
        let (hosts, largest) = (self.hosts.len() as u64, self.hosts.iter().map(Range::len).max().unwrap_or(1) as u64);
        let stripe = n.div_ceil(self.stripes() as u64);
        let mates = largest - 1;
        // Parts of other hosts that one member takes care of.
        let away = || {
            let of = |here: usize, other: usize| other.div_ceil(here) as u64;
            let all = |h: usize| (0..self.hosts.len()).filter(move |o| *o != h);
            let sum = |h: usize| all(h).map(|o| of(self.hosts[h].len(), self.hosts[o].len())).sum::<u64>();
            (0..self.hosts.len()).map(sum).max().unwrap_or(0)
        };
        let (near, far, hops) = match kind {
            FlowKind::AllReduce => {
                // Of two hosts each has one neighbour: a partial goes one way, a result the other.
                let both = if hosts > 2 { width.partial + width.element } else { width.partial };
                ((n - stripe + stripe * mates) * width.element, stripe * both, 2 * (hosts - 1))
            }
            FlowKind::AllGather => {
                let taken = part * away();
                let near = ((part + taken) * mates).max(n.saturating_sub(part + taken));
                (near * width.element, (part * (hosts - 1)).max(taken) * width.element, 1)
            }
            FlowKind::ReduceScatter => {
                let kept = (part * (away() + 1)).min(n);
                ((n - kept).max(kept * mates) * width.element, kept * width.partial + part * width.element, hosts)
            }
            FlowKind::Broadcast => (n * mates.max(1) * width.element, stripe * width.element, hosts - 1),
        };
        Busiest { near, far, mates, hops }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(hosts: &[usize]) -> Option<HostHierarchy> {
        HostHierarchy::of(hosts.len(), |i| hosts[i])
    }

    const F32: Width = Width { element: 4, partial: 4 };
    const F16: Width = Width { element: 2, partial: 4 };

    #[test]
    fn hosts_count_where_that_saves() {
        assert_eq!(hierarchy(&[0, 0, 1, 1]).unwrap().stripes(), 2);
        assert_eq!(hierarchy(&[3, 3, 3, 1, 1, 2]).unwrap().hosts[..], [0..3, 3..5, 5..6]);
        for direct in [&[0, 0, 0][..], &[0, 1, 2], &[0, 1, 0, 1], &[0, 1]] {
            assert_eq!(hierarchy(direct), None);
        }
        let two = hierarchy(&[0, 0, 1, 1]).unwrap();
        let takes = |kind, bytes: u64, width: Width| two.takes(kind, bytes / width.element, width);
        assert!(!takes(FlowKind::AllReduce, 4096, F32) && takes(FlowKind::AllReduce, 8192, F32));
        for kind in [FlowKind::AllGather, FlowKind::ReduceScatter, FlowKind::Broadcast] {
            assert!(!takes(kind, LONG_BYTES - 4, F32) && takes(kind, LONG_BYTES, F32), "{kind:?}");
        }
        // With two members a host, wide partials cost more than they save.
        assert!(!takes(FlowKind::ReduceScatter, 1 << 30, F16));
        let wide = hierarchy(&[0, 0, 0, 0, 1, 1, 1, 1]).unwrap();
        assert!(wide.takes(FlowKind::ReduceScatter, 1 << 30, F16));
    }

    #[test]
    fn who_keeps_a_part_is_kept_by_it() {
        let s = hierarchy(&[0, 0, 0, 1, 2, 2]).unwrap();
        for host in 0..3 {
            let run = s.hosts[host].clone();
            let mut all: Vec<usize> = run.clone().flat_map(|k| s.kept(k)).collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5]);
            for k in run.clone() {
                assert!(s.kept(k).all(|j| s.keeper(host, j) == k) && s.kept(k).any(|j| j == k));
            }
        }
    }

    #[test]
    fn what_is_sent_is_received_and_crosses_as_often_as_it_must() {
        for hosts in [&[0, 0, 1, 1][..], &[0, 0, 0, 1], &[0, 1, 1, 2, 2, 2], &[0, 0, 1, 2]] {
            let s = hierarchy(hosts).unwrap();
            let counts: Vec<usize> = (0..hosts.len()).map(|i| [0, 1_000_003, 77, 5_000][i % 4]).collect();
            let (n, links) = (counts.iter().sum::<usize>(), s.hosts.len() as u64 - 1);
            let of_last: usize = s.hosts[s.hosts.len() - 1].clone().map(|m| counts[m]).sum();
            let all = n as u64;
            let flows = [
                (Flow::AllReduce(n), links * all * (2 + 4)),
                (Flow::AllGather(&counts), links * all * 2),
                (Flow::ReduceScatter(&counts), links * all * 4 + (n - of_last) as u64 * 2),
                (Flow::Broadcast(n, 0), links * all * 2),
                (Flow::Broadcast(n, hosts.len() - 1), links * all * 2),
                (Flow::Broadcast(n, 1), links * all * 2),
            ];
            for (flow, crosses) in flows {
                let (mut sent, mut network) = (vec![0; hosts.len()], 0);
                for member in 0..hosts.len() {
                    s.received(member, flow, F16, |from, bytes| {
                        assert_ne!(from, member);
                        sent[from] += bytes;
                        network += if hosts[from] == hosts[member] { 0 } else { bytes };
                    });
                }
                let told: Vec<u64> = (0..hosts.len()).map(|m| s.sent(m, flow, F16)).collect();
                assert_eq!(sent, told, "{flow:?} {hosts:?}");
                assert_eq!(network, crosses, "{flow:?} {hosts:?}");
                let part = counts.iter().max().copied().unwrap_or(0) as u64;
                let most = s.busiest(flow.kind(), n as u64, part, F16);
                assert!(most.near + most.far >= told.iter().sum::<u64>() / hosts.len() as u64, "{flow:?} {hosts:?}");
            }
        }
    }
}
