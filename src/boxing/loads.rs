//! Who sends and receives how much in an exchange within one mesh, worked out for pairs of ranks.
//!
//! The same answer as walking the cells of each receiver (`exchange.rs`), for the case that is priced most often by far:
//! both layouts on one mesh, all ranks on one host. Boxes of all ranks are laid out side by side, and each receiver is
//! compared with the senders that serve it: one for each coordinate of the axes that are split or reduced.

use super::step::AxisSet;
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

/// The busiest rank of an exchange on a mesh of sizes `dims`. Axes in `kept` are partial before and after and stay so.
pub(super) fn busiest(shape: &[usize], dims: &[usize], from: &[Sbp], to: &[Sbp], kept: AxisSet) -> Busiest {
    let rank = shape.len();
    let ranks: usize = dims.iter().product();
    let (have, want) = (boxes(shape, dims, from), boxes(shape, dims, to));
    // Senders that serve a receiver: its own coordinates on kept axes, any on split and reduced ones; for each of these, the
    // offset and the sum of the coordinates. Of copies, the one that is as far from its own as they are (`exchange.rs`).
    let mut others: SmallVec<[(usize, usize); 64]> = smallvec![(0, 0)];
    let mut copies: SmallVec<[usize; 16]> = smallvec![0];
    let [mut tied, mut free, mut copied, mut idle]: [Axes; 4] = Default::default();
    let mut stride = ranks;
    for (a, k) in dims.iter().enumerate() {
        stride /= k;
        if kept.contains(a) {
            tied.push((stride, *k));
        } else if from[a].is_broadcast() {
            copied.push((stride, *k));
            copies = copies.iter().flat_map(|o| (0..*k).map(move |c| o + c * stride)).collect();
        } else {
            free.push((stride, *k));
            others = others.iter().flat_map(|(o, sum)| (0..*k).map(move |c| (o + c * stride, sum + c))).collect();
        }
        if to[a].is_partial() && !kept.contains(a) {
            idle.push((stride, *k));
        }
    }
    let mut sent: SmallVec<[(u64, u64); 16]> = smallvec![(0, 0); ranks];
    let mut most = Busiest::default();
    for q in (0..ranks).filter(|q| idle.iter().all(|(stride, k)| q / stride % k == 0)) {
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
            let mut elements = 1;
            for (w, h) in wanted.iter().zip(held) {
                elements *= w.1.min(h.1).saturating_sub(w.0.max(h.0));
            }
            if elements > 0 {
                let s = &mut sent[p];
                *s = (s.0 + elements as u64, s.1 + 1);
                received = (received.0 + elements as u64, received.1 + 1);
            }
        }
        most = Busiest { elements: most.elements.max(received.0), messages: most.messages.max(received.1) };
    }
    for s in sent {
        most = Busiest { elements: most.elements.max(s.0), messages: most.messages.max(s.1) };
    }
    most
}
