//! All-reduce over hosts that have several members each: every byte crosses the network once.
//!
//! The members of one host share the work by stripes of the message. The member that has a stripe folds its host's values of
//! it into the partial result that comes from the host before, and hands it to the host after; from the last host results
//! flow back. So values are combined in member order, whatever the hosts. Partials of halves travel as f32.
//!
//! The communicators go by this, and so do the predictions of bytes.

use super::cost::one_phase_bytes;
use crate::placement::shard_range;
use oflow_kernels::{DType, ReduceOp};
use smallvec::SmallVec;
use std::ops::Range;

/// Which members do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The members of each host, in order.
    pub hosts: SmallVec<[Range<usize>; 8]>,
    /// Stripes: as many as the smallest host has members. Stripe s belongs to the s-th member of each host.
    pub stripes: usize,
}

impl Chain {
    /// The chain for an all-reduce of `bytes` among `members`, of which `host` tells where each is; none where another way is
    /// taken: for short messages, on one host, where no host has two members, and where a host's members do not follow
    /// each other.
    pub fn of(members: usize, bytes: u64, host: impl Fn(usize) -> usize) -> Option<Chain> {
        if members < 3 || bytes <= one_phase_bytes(members) as u64 {
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
        if hosts.len() < 2 || hosts.len() == members {
            return None;
        }
        let stripes = hosts.iter().map(Range::len).min().unwrap_or(1);
        Some(Chain { hosts, stripes })
    }

    /// The host of a member, and its place there.
    pub fn place(&self, member: usize) -> (usize, usize) {
        let host = self.hosts.iter().position(|run| run.contains(&member)).unwrap_or(0);
        (host, member - self.hosts[host].start)
    }

    /// Tells what a member receives of a message of `n` elements: sender and bytes. Exact for the sum over the members; chunks
    /// may shift a few bytes between those of one host.
    pub fn received(&self, member: usize, n: usize, (element, partial): (u64, u64), mut tell: impl FnMut(usize, u64)) {
        let (host, place) = self.place(member);
        let run = &self.hosts[host];
        let stripe = |s: usize| shard_range(n, self.stripes, s).len() as u64;
        let mates = || run.clone().filter(|m| *m != member);
        if place < self.stripes {
            mates().for_each(|m| tell(m, stripe(place) * element));
            if host > 0 {
                tell(self.hosts[host - 1].start + place, stripe(place) * partial);
            }
            if host + 1 < self.hosts.len() {
                tell(self.hosts[host + 1].start + place, stripe(place) * element);
            }
        }
        for s in (0..self.stripes).filter(|s| *s != place) {
            tell(run.start + s, stripe(s) * element);
        }
    }

    /// Bytes that a member sends, as [`received`](Self::received).
    pub fn sent(&self, member: usize, n: usize, (element, partial): (u64, u64)) -> u64 {
        let (host, place) = self.place(member);
        let mates = self.hosts[host].len() as u64 - 1;
        let own = if place < self.stripes { shard_range(n, self.stripes, place).len() as u64 } else { 0 };
        let mut sum = (n as u64 - own) * element + own * element * mates;
        if host + 1 < self.hosts.len() {
            sum += own * partial;
        }
        if host > 0 {
            sum += own * element;
        }
        sum
    }
}

/// Bytes of an element of a partial result on its way between hosts: sums of halves are in f32.
pub fn partial_bytes(dtype: DType, op: ReduceOp) -> usize {
    if op == ReduceOp::Sum && matches!(dtype, DType::F16 | DType::BF16) { 4 } else { dtype.size() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(hosts: &[usize], bytes: u64) -> Option<Chain> {
        Chain::of(hosts.len(), bytes, |i| hosts[i])
    }

    #[test]
    fn a_chain_is_taken_where_it_saves() {
        let long = 1 << 20;
        assert_eq!(chain(&[0, 0, 1, 1], long).unwrap().stripes, 2);
        assert_eq!(chain(&[3, 3, 3, 1, 1, 2], long).unwrap().hosts[..], [0..3, 3..5, 5..6]);
        assert_eq!(chain(&[0, 0, 1, 1], 4096), None);
        assert_eq!(chain(&[0, 0, 0], long), None);
        assert_eq!(chain(&[0, 1, 2], long), None);
        assert_eq!(chain(&[0, 1, 0, 1], long), None);
        assert_eq!(chain(&[0, 1], long), None);
    }

    #[test]
    fn what_is_sent_is_received_and_crosses_once() {
        for hosts in [&[0, 0, 1, 1][..], &[0, 0, 0, 1], &[0, 1, 1, 2, 2, 2]] {
            let c = chain(hosts, 1 << 20).unwrap();
            let (n, sizes) = (1_000_003, (2, 4));
            let (mut sent, mut got, mut network) = (0, 0, 0);
            for member in 0..hosts.len() {
                sent += c.sent(member, n, sizes);
                c.received(member, n, sizes, |from, bytes| {
                    assert_ne!(from, member);
                    got += bytes;
                    network += if hosts[from] == hosts[member] { 0 } else { bytes };
                });
            }
            assert_eq!(sent, got);
            assert_eq!(network, (c.hosts.len() as u64 - 1) * n as u64 * (2 + 4));
        }
    }
}
