//! What a step costs, in integer picoseconds, under fixed constants: the same on every machine, so that the choice of a
//! plan does not depend on where it is made.
//!
//! A step takes `latency + peers * PER_PEER + wire * PER_BYTE + copied * PER_BYTE_COPIED`. Every byte count is that of the
//! busiest rank, exact for uneven shards; `wire` is the larger of what it sends and what it receives. With n elements
//! before the split along the mesh axis, k ranks on the axis, and p_i the part of rank i in the dim:
//!
//! | step | latency | peers | wire of rank i (elements) | copied (elements) |
//! |---|---|---|---|---|
//! | slice, pad, keep | LOCAL | 0 | 0 | the result |
//! | all-reduce, n of at most [`one_phase_bytes`] | COLLECTIVE | k − 1 | (k − 1) n | 0 |
//! | all-reduce, larger | COLLECTIVE | k − 1 | n − c_i + (k − 1) c_i, c_i its chunk of n | 0 |
//! | all-gather(d) | COLLECTIVE | k − 1 | max(send (k − 1) p_i, receive rest) | 0 |
//! | reduce-scatter(d) | COLLECTIVE | k − 1 | max(send rest, receive (k − 1) p_i) | 0 |
//! | all-to-all(f, t) | COLLECTIVE | k − 1 | its shard less what stays; its new shard less what stays | 0 |
//! | exchange | EXCHANGE | messages of the busiest rank | messages sent; messages received | the result, once per contribution |
//! | exchange without messages | LOCAL_EXCHANGE | 0 | 0 | as above |
//!
//! Packing around a collective is part of its bandwidth: every transport copies anyway.
//!
//! An exchange costs a little more latency than a collective or a slice, so these are preferred where they do the same.
//! An exchange of more than [`EXACT_MESSAGES`] messages is priced with the average sender instead of the busiest one,
//! which keeps planning linear in the number of ranks.

use super::step::StepOp;
use crate::placement::shard_range;
use oflow_kernels::Dims;

/// Starting a step that stays on the rank.
pub const LOCAL_PS: u64 = 200_000;
/// Starting an exchange in which each rank only copies from itself.
pub const LOCAL_EXCHANGE_PS: u64 = 250_000;
/// Starting a collective.
pub const COLLECTIVE_PS: u64 = 5_000_000;
/// Starting a point-to-point batch.
pub const EXCHANGE_PS: u64 = 6_000_000;
/// Each peer that a rank exchanges with.
pub const PER_PEER_PS: u64 = 500_000;
/// A byte on the wire: 10 GB/s.
pub const PER_BYTE_PS: u64 = 100;
/// A byte read and written on the rank: 40 GB/s.
pub const PER_BYTE_COPIED_PS: u64 = 25;
/// Above this many possible messages an exchange is priced with the average sender.
pub const EXACT_MESSAGES: u64 = 1 << 18;

/// An all-reduce of at most this many bytes sends everything to everyone at once; a larger one is a reduce-scatter and an
/// all-gather of chunks. The communicators decide by the same number.
pub const fn one_phase_bytes(members: usize) -> usize {
    if members <= 2 { 8 << 10 } else { (16 << 10) / members }
}

/// Elements that member `i` of `k` sends in an all-reduce of `n` elements.
pub(super) fn all_reduce_sent(n: usize, k: usize, i: usize, element: u64) -> u64 {
    let (peers, chunk) = (k as u64 - 1, shard_range(n, k, i).len() as u64);
    if n as u64 * element <= one_phase_bytes(k) as u64 { peers * n as u64 } else { n as u64 - chunk + peers * chunk }
}

/// The price of one communication or copy.
pub(super) fn price(latency: u64, peers: u64, wire: u64, copied: u64) -> u64 {
    let terms = [(peers, PER_PEER_PS), (wire, PER_BYTE_PS), (copied, PER_BYTE_COPIED_PS)];
    terms.iter().fold(latency, |sum, (n, each)| sum.saturating_add(n.saturating_mul(*each)))
}

/// Product of the sizes of all dims but `skip`.
fn rest(sizes: &[usize], skip: &[usize]) -> u64 {
    (0..sizes.len()).filter(|d| !skip.contains(d)).map(|d| sizes[d] as u64).product()
}

/// The price of a move along one axis of size `k`. `sizes` is the largest box before the axis splits it: the box at
/// coordinate 0 of all other axes, because the balanced split gives the larger parts to the smaller coordinates.
pub(super) fn of_move(op: StepOp, k: usize, sizes: &Dims, element: u64) -> u64 {
    let n: u64 = sizes.iter().map(|s| *s as u64).product();
    let peers = k as u64 - 1;
    let part = |d: usize, i: usize| shard_range(sizes[d], k, i).len() as u64;
    let largest = |d: usize| rest(sizes, &[d]) * part(d, 0);
    let smallest = |d: usize| rest(sizes, &[d]) * part(d, k - 1);
    match op {
        StepOp::Slice { dim, .. } => price(LOCAL_PS, 0, 0, largest(dim) * element),
        StepOp::Pad { .. } | StepOp::Keep { .. } => price(LOCAL_PS, 0, 0, n * element),
        StepOp::AllReduce { .. } => {
            price(COLLECTIVE_PS, peers, all_reduce_sent(n as usize, k, 0, element) * element, 0)
        }
        StepOp::AllGather { dim, .. } | StepOp::ReduceScatter { dim, .. } => {
            let wire = (peers * largest(dim)).max(n - smallest(dim));
            price(COLLECTIVE_PS, peers, wire * element, 0)
        }
        StepOp::AllToAll { from, to, .. } => {
            let others = rest(sizes, &[from, to]);
            let (f, t) = (sizes[from] as u64, sizes[to] as u64);
            let wire = (0..k)
                .map(|i| (part(from, i) * (t - part(to, i))).max(part(to, i) * (f - part(from, i))))
                .max()
                .unwrap_or(0);
            price(COLLECTIVE_PS, peers, others * wire * element, 0)
        }
        StepOp::Exchange { .. } => unreachable!("an exchange is priced from its messages"),
    }
}
