//! Bytes that each rank sends and receives in an exchange within one mesh, worked out for pairs of ranks.
//!
//! The same answer as walking the cells of each receiver (`exchange.rs`), for the case that is priced most often by far:
//! both layouts on one mesh, all ranks on one host. Boxes of all ranks are laid out side by side, and each receiver is
//! compared with the senders that serve it: one for each coordinate of the axes that are split or reduced.

use super::axes::AxisSet;
use crate::placement::shard_range;
use crate::sbp::Sbp;
use smallvec::{SmallVec, smallvec};

/// The most that one rank sends or receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Busiest {
    pub(super) elements: u64,
    pub(super) messages: u64,
}

type Boxes = SmallVec<[(usize, usize); 48]>;
/// Stride and size of mesh axes.
type Axes = SmallVec<[(usize, usize); 4]>;

/// Start and end in each dim of each position's box.
fn boxes(shape: &[usize], dims: &[usize], sbp: &[Sbp]) -> Boxes {
    let (rank, ranks) = (shape.len(), dims.iter().product::<usize>());
    let mut all: Boxes = SmallVec::with_capacity(rank * ranks);
    all.extend((0..ranks).flat_map(|_| shape.iter().map(|n| (0, *n))));
    let mut inner = ranks;
    for (a, k) in dims.iter().enumerate() {
        inner /= k;
        let Sbp::Split(d) = sbp[a] else { continue };
        for p in 0..ranks {
            let (start, end) = all[p * rank + d];
            let part = shard_range(end - start, *k, p / inner % k);
            all[p * rank + d] = (start + part.start, start + part.end);
        }
    }
    all
}

fn count(b: &[(usize, usize)]) -> u64 {
    b.iter().map(|s| (s.1 - s.0) as u64).product()
}

fn common(a: &[(usize, usize)], b: &[(usize, usize)]) -> u64 {
    let mut elements = 1;
    for (a, b) in a.iter().zip(b) {
        elements *= a.1.min(b.1).saturating_sub(a.0.max(b.0)) as u64;
        // Most boxes have nothing in common, which few dims show.
        if elements == 0 {
            break;
        }
    }
    elements
}

/// Elements that some rank sends or receives at least; exactly the busiest rank's where the source has no copies. What a rank
/// receives are all contributions to its box but its own. What the replicas of a shard send together are their elements, once
/// for each copy of the destination, but for what is their own.
fn least_elements(rank: usize, (have, want): (&Boxes, &Boxes), axes: &Loads) -> u64 {
    let ranks = axes.ranks;
    let mut most = 0;
    // By shard, at the first of its replicas: what these have of their own.
    let mut own: SmallVec<[u64; 64]> = smallvec![0; if axes.copies > 1 { ranks } else { 0 }];
    let first = |q: usize| q - axes.copied.iter().map(|(stride, k)| q / stride % k * stride).sum::<usize>();
    for q in 0..ranks {
        let (w, h) = (&want[q * rank..(q + 1) * rank], &have[q * rank..(q + 1) * rank]);
        let stays = if axes.is_idle(q) { 0 } else { common(w, h) };
        if !axes.is_idle(q) {
            most = most.max(count(w).saturating_mul(axes.contributions) - stays);
        }
        match own.get_mut(first(q)) {
            Some(own) => *own = own.saturating_add(stays),
            None => most = most.max(count(h).saturating_mul(axes.wanted) - stays),
        }
    }
    for (q, stays) in own.iter().enumerate().filter(|(q, _)| first(*q) == *q) {
        let sent = count(&have[q * rank..(q + 1) * rank]).saturating_mul(axes.wanted) - stays;
        most = most.max(sent.div_ceil(axes.copies));
    }
    most
}

/// The axes of an exchange by what they do.
struct Loads {
    ranks: usize,
    tied: Axes,
    /// Split or reduced in the source.
    free: Axes,
    /// B in the source.
    copied: Axes,
    /// Only coordinate 0 gets something.
    idle: Axes,
    copies: u64,
    contributions: u64,
    /// Copies of the destination.
    wanted: u64,
}

impl Loads {
    fn new(dims: &[usize], from: &[Sbp], to: &[Sbp], kept: AxisSet) -> Loads {
        let ranks: usize = dims.iter().product();
        let [tied, free, copied, idle]: [Axes; 4] = Default::default();
        let mut loads = Loads { ranks, tied, free, copied, idle, copies: 1, contributions: 1, wanted: 1 };
        let mut stride = ranks;
        for (a, k) in dims.iter().enumerate() {
            stride /= k;
            if kept.contains(a) {
                loads.tied.push((stride, *k));
                continue;
            }
            if from[a].is_broadcast() {
                loads.copied.push((stride, *k));
                loads.copies *= *k as u64;
            } else {
                loads.free.push((stride, *k));
                loads.contributions *= if from[a].is_partial() { *k as u64 } else { 1 };
            }
            match to[a] {
                Sbp::Partial(_) => loads.idle.push((stride, *k)),
                Sbp::Broadcast => loads.wanted *= *k as u64,
                Sbp::Split(_) => {}
            }
        }
        loads
    }

    fn is_idle(&self, q: usize) -> bool {
        self.idle.iter().any(|(stride, k)| !(q / stride).is_multiple_of(*k))
    }
}

/// The busiest rank of an exchange on a mesh of sizes `dims`, unless it sends or receives more elements than `most`. Axes in
/// `kept` are partial before and after and stay so.
pub(super) fn busiest(
    shape: &[usize],
    dims: &[usize],
    (from, to): (&[Sbp], &[Sbp]),
    kept: AxisSet,
    most_elements: u64,
) -> Option<Busiest> {
    let rank = shape.len();
    let (have, want) = (boxes(shape, dims, from), boxes(shape, dims, to));
    let axes = Loads::new(dims, from, to, kept);
    if most_elements < u64::MAX && least_elements(rank, (&have, &want), &axes) > most_elements {
        return None;
    }
    // Senders that serve a receiver: its own coordinates on kept axes, any on split and reduced ones; for each of these, the
    // offset and the sum of the coordinates. Of copies, the one that is as far from its own as they are (`exchange.rs`).
    let mut others: SmallVec<[(usize, usize); 64]> = smallvec![(0, 0)];
    let mut copies: SmallVec<[usize; 16]> = smallvec![0];
    for (stride, k) in &axes.copied {
        copies = copies.iter().flat_map(|o| (0..*k).map(move |c| o + c * stride)).collect();
    }
    for (stride, k) in &axes.free {
        others = others.iter().flat_map(|(o, sum)| (0..*k).map(move |c| (o + c * stride, sum + c))).collect();
    }
    let Loads { ranks, tied, free, copied, .. } = &axes;
    let ranks = *ranks;
    let mut sent: SmallVec<[(u64, u64); 16]> = smallvec![(0, 0); ranks];
    let mut most = Busiest::default();
    for q in (0..ranks).filter(|q| !axes.is_idle(*q)) {
        let base: usize = tied.iter().map(|(stride, k)| q / stride % k * stride).sum();
        let mine = copied.iter().fold(0, |n, (stride, k)| n * k + q / stride % k);
        let here: usize = free.iter().map(|(stride, k)| q / stride % k).sum();
        // Keeps the distance from being negative.
        let ahead = copies.len() * here.div_ceil(copies.len());
        let wanted = &want[q * rank..(q + 1) * rank];
        let mut received = (0, 0);
        let replica = |sum: usize| copies[(mine + ahead + sum - here) % copies.len()];
        for p in others.iter().map(|(o, sum)| base + o + replica(*sum)).filter(|p| *p != q) {
            let held = &have[p * rank..(p + 1) * rank];
            let elements = common(wanted, held);
            if elements > 0 {
                let s = &mut sent[p];
                *s = (s.0 + elements, s.1 + 1);
                received = (received.0 + elements, received.1 + 1);
            }
        }
        most = Busiest { elements: most.elements.max(received.0), messages: most.messages.max(received.1) };
    }
    for s in sent {
        most = Busiest { elements: most.elements.max(s.0), messages: most.messages.max(s.1) };
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_never_more_than_the_busiest_and_exact_without_copies() {
        let all = [Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Split(0), Sbp::Split(1)];
        let layouts = || (0..64).map(|i| [all[i / 16], all[i / 4 % 4], all[i % 4]]);
        for (shape, dims) in [([5, 7], [2, 3, 2]), ([12, 8], [2, 2, 2]), ([3, 1], [2, 1, 3])] {
            for (from, to) in layouts().flat_map(|f| layouts().map(move |t| (f, t))) {
                let kept = AxisSet::default();
                let (have, want) = (boxes(&shape, &dims, &from), boxes(&shape, &dims, &to));
                let axes = Loads::new(&dims, &from, &to, kept);
                let least = least_elements(2, (&have, &want), &axes);
                let known = busiest(&shape, &dims, (&from, &to), kept, u64::MAX).unwrap().elements;
                assert!(least <= known, "{from:?} {to:?}: {least} {known}");
                if axes.copies == 1 {
                    assert_eq!(least, known, "{from:?} {to:?}");
                }
                assert_eq!(busiest(&shape, &dims, (&from, &to), kept, known).map(|b| b.elements), Some(known));
            }
        }
    }
}
