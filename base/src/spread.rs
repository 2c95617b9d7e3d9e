//! Collectives of a group whose members share hosts: every byte crosses from one host to another once.
//!
//! | collective | between hosts | within a host |
//! |---|---|---|
//! | all-reduce | partial results go along the chain of hosts, results back | the members share the message by stripes |
//! | reduce-scatter | partial results go along the chain, results from its end to whom they belong | the members share the parts |
//! | all-gather | each part goes to one member of each other host | who got a part hands it on |
//! | broadcast | from the root's host from host to host, in stripes | the root, then who has a stripe, hands it on |
//!
//! In a chain the members of a host fold their values into the partial result of the host before, so values are combined in
//! member order, whatever the hosts. Partials of halves travel as f32.
//!
//! The communicators go by this, and so do prices and predictions of bytes. What is decided here depends on the group, the
//! hosts and the bytes of the whole message, which all members know alike.

use crate::shard_range;
use smallvec::SmallVec;
use std::ops::Range;

/// A message of fewer bytes, for each host but one, goes the direct way: what is saved does not pay for the hops.
pub const LONG_BYTES: u64 = 64 << 10;

/// An all-reduce of at most this many bytes sends everything to everyone at once; a larger one is a reduce-scatter and an
/// all-gather of chunks. The communicators decide by the same number.
pub const fn one_phase_bytes(members: usize) -> usize {
    if members <= 2 { 8 << 10 } else { (16 << 10) / members }
}

/// What is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<'a> {
    /// An all-reduce of so many elements.
    AllReduce(usize),
    /// An all-gather: each member's elements.
    AllGather(&'a [usize]),
    /// A reduce-scatter: each member's elements of the result.
    ReduceScatter(&'a [usize]),
    /// A broadcast of so many elements, and from which member.
    Broadcast(usize, usize),
}

/// The kinds of [`Flow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Flow::AllReduce`].
    AllReduce,
    /// [`Flow::AllGather`].
    AllGather,
    /// [`Flow::ReduceScatter`].
    ReduceScatter,
    /// [`Flow::Broadcast`].
    Broadcast,
}

impl Flow<'_> {
    #[cfg(test)]
    fn kind(&self) -> Kind {
        match self {
            Flow::AllReduce(_) => Kind::AllReduce,
            Flow::AllGather(_) => Kind::AllGather,
            Flow::ReduceScatter(_) => Kind::ReduceScatter,
            Flow::Broadcast(..) => Kind::Broadcast,
        }
    }

    /// Elements of the whole message.
    pub fn elements(&self) -> usize {
        match self {
            Flow::AllReduce(n) | Flow::Broadcast(n, _) => *n,
            Flow::AllGather(counts) | Flow::ReduceScatter(counts) => counts.iter().sum(),
        }
    }
}

/// Bytes of an element, and of an element of a partial result on its way between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// As it is.
    pub element: u64,
    /// Partly reduced: sums of halves are in f32.
    pub partial: u64,
}

impl Width {
    /// Of elements that are reduced: bytes of an element, and of an element of a partial result.
    pub fn reduced(element: usize, partial: usize) -> Width {
        Width { element: element as u64, partial: partial as u64 }
    }

    /// Of elements that are moved only.
    pub fn moved(element: usize) -> Width {
        Width { element: element as u64, partial: element as u64 }
    }
}

/// How the members of a group lie on hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The members of each host, in order.
    pub hosts: SmallVec<[Range<usize>; 8]>,
}

/// What the busiest member sends or receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busiest {
    /// Bytes within its host.
    pub near: u64,
    /// Bytes between hosts.
    pub far: u64,
    /// Members of its host it talks to.
    pub mates: u64,
    /// Messages between hosts that follow one another until the last byte is there.
    pub hops: u64,
}

impl Spread {
    /// How members lie on hosts, of which `host` tells where each is; none where a direct way is always taken: on one host,
    /// where no host has two members, and where a host's members do not follow each other.
    pub fn of(members: usize, host: impl Fn(usize) -> usize) -> Option<Spread> {
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
        (hosts.len() > 1 && hosts.len() < members).then_some(Spread { hosts })
    }

    /// Number of members.
    pub fn members(&self) -> usize {
        self.hosts.last().map_or(0, |run| run.end)
    }

    /// Stripes of an all-reduce or a broadcast: as many as the smallest host has members. Stripe s belongs to the s-th member
    /// of each host.
    pub fn stripes(&self) -> usize {
        self.hosts.iter().map(Range::len).min().unwrap_or(1)
    }

    /// The host of a member, and its place there.
    pub fn place(&self, member: usize) -> (usize, usize) {
        let host = self.hosts.partition_point(|run| run.end <= member);
        (host, member - self.hosts[host].start)
    }

    /// Who on a host takes care of a member's part, in an all-gather or a reduce-scatter; on its own host that is itself.
    pub fn keeper(&self, host: usize, member: usize) -> usize {
        let (_, place) = self.place(member);
        self.hosts[host].start + place % self.hosts[host].len()
    }

    /// The members whose parts `keeper` takes care of on its host, its own among them.
    pub fn kept(&self, keeper: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let (host, place) = self.place(keeper);
        let here = self.hosts[host].len();
        self.hosts.iter().flat_map(move |run| (run.start + place..run.end).step_by(here))
    }

    /// Whether the group goes by hosts for a message of so many elements.
    pub fn takes(&self, kind: Kind, elements: u64, width: Width) -> bool {
        let bytes = elements * width.element;
        let long = bytes >= LONG_BYTES * (self.hosts.len() as u64 - 1);
        match kind {
            Kind::AllReduce => bytes > one_phase_bytes(self.members()) as u64,
            Kind::AllGather | Kind::Broadcast => long,
            Kind::ReduceScatter => long && self.chain_saves(width),
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

    /// Tells what a member receives: sender and bytes. Exact, but that chunks of stripes may shift a few bytes between the
    /// members of one host.
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

    /// Bytes that a member sends, as [`received`](Self::received).
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

    /// What the busiest member does, of a message of `n` elements of which a member's part is at most `part`.
    pub fn busiest(&self, kind: Kind, n: u64, part: u64, width: Width) -> Busiest {
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
            Kind::AllReduce => {
                // Of two hosts each has one neighbour: a partial goes one way, a result the other.
                let both = if hosts > 2 { width.partial + width.element } else { width.partial };
                ((n - stripe + stripe * mates) * width.element, stripe * both, 2 * (hosts - 1))
            }
            Kind::AllGather => {
                let taken = part * away();
                let near = ((part + taken) * mates).max(n.saturating_sub(part + taken));
                (near * width.element, (part * (hosts - 1)).max(taken) * width.element, 1)
            }
            Kind::ReduceScatter => {
                let kept = (part * (away() + 1)).min(n);
                ((n - kept).max(kept * mates) * width.element, kept * width.partial + part * width.element, hosts)
            }
            Kind::Broadcast => (n * mates.max(1) * width.element, stripe * width.element, hosts - 1),
        };
        Busiest { near, far, mates, hops }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(hosts: &[usize]) -> Option<Spread> {
        Spread::of(hosts.len(), |i| hosts[i])
    }

    const F32: Width = Width { element: 4, partial: 4 };
    const F16: Width = Width { element: 2, partial: 4 };

    #[test]
    fn hosts_count_where_that_saves() {
        assert_eq!(spread(&[0, 0, 1, 1]).unwrap().stripes(), 2);
        assert_eq!(spread(&[3, 3, 3, 1, 1, 2]).unwrap().hosts[..], [0..3, 3..5, 5..6]);
        for direct in [&[0, 0, 0][..], &[0, 1, 2], &[0, 1, 0, 1], &[0, 1]] {
            assert_eq!(spread(direct), None);
        }
        let two = spread(&[0, 0, 1, 1]).unwrap();
        let takes = |kind, bytes: u64, width: Width| two.takes(kind, bytes / width.element, width);
        assert!(!takes(Kind::AllReduce, 4096, F32) && takes(Kind::AllReduce, 8192, F32));
        for kind in [Kind::AllGather, Kind::ReduceScatter, Kind::Broadcast] {
            assert!(!takes(kind, LONG_BYTES - 4, F32) && takes(kind, LONG_BYTES, F32), "{kind:?}");
        }
        // With two members a host, wide partials cost more than they save.
        assert!(!takes(Kind::ReduceScatter, 1 << 30, F16));
        let wide = spread(&[0, 0, 0, 0, 1, 1, 1, 1]).unwrap();
        assert!(wide.takes(Kind::ReduceScatter, 1 << 30, F16));
    }

    #[test]
    fn who_keeps_a_part_is_kept_by_it() {
        let s = spread(&[0, 0, 0, 1, 2, 2]).unwrap();
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
            let s = spread(hosts).unwrap();
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
