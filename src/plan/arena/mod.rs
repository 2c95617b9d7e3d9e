//! Offsets of buffers in one arena: buffers that live at the same time do not share bytes.
//!
//! Assigning offsets with the fewest bytes is NP-hard ("dynamic storage allocation"). No packing is smaller than the bound, the most bytes that live at
//! one time. Training steps reach it with a greedy order; for others a bounded search follows (`search.rs`). Both depend on the buffers alone, so
//! a plan is the same in each process.

mod search;

use std::collections::BTreeMap;

/// Offsets are multiples of this, which suits every dtype and the widest vector registers.
pub const ARENA_ALIGN: usize = 64;

/// A buffer that needs a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Size of the buffer in bytes.
    pub bytes: usize,
    /// The step that makes it.
    pub first: usize,
    /// The last step that uses it; it is there until that step is done.
    pub last: usize,
}

impl Lifetime {
    /// The bytes that it takes in an arena.
    fn taken(&self) -> usize {
        self.bytes.next_multiple_of(ARENA_ALIGN)
    }
}

/// Places of buffers in an arena.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// First byte of each buffer.
    pub offsets: Vec<usize>,
    /// Size of the arena.
    pub bytes: usize,
    /// The most bytes that live at one time: no packing is smaller.
    pub bound: usize,
    /// The first step at which they live.
    pub peak: usize,
}

impl Packing {
    /// Whether each of the buffers has a place of its own inside of the arena, as [`pack`] gives it.
    pub fn is_of(&self, buffers: &[Lifetime]) -> bool {
        if self.offsets.len() != buffers.len() || (self.bound, self.peak) != most_at_once(buffers) {
            return false;
        }
        let fits = |(b, at): (&Lifetime, &usize)| {
            let end = at.checked_add(b.taken());
            at.is_multiple_of(ARENA_ALIGN) && end.is_some_and(|end| end <= self.bytes)
        };
        if !buffers.iter().zip(&self.offsets).all(fits) {
            return false;
        }
        // At each step first what has ended before, then what begins: its neighbours in the arena must leave it room.
        let mut changes: Vec<(usize, bool, usize)> = vec![];
        for (i, b) in buffers.iter().enumerate().filter(|(_, b)| b.bytes > 0) {
            changes.push((b.first, true, i));
            changes.push((b.last + 1, false, i));
        }
        changes.sort_unstable();
        let mut there: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, begins, i) in changes {
            let (at, end) = (self.offsets[i], self.offsets[i] + buffers[i].taken());
            if !begins {
                there.remove(&at);
                continue;
            }
            let before = there.range(..end).next_back().map(|(_, end)| *end);
            if before.is_some_and(|other| other > at) {
                return false;
            }
            there.insert(at, end);
        }
        true
    }
}

/// Gives each buffer a place. Buffers without bytes have offset 0.
pub fn pack(buffers: &[Lifetime]) -> Packing {
    let (bound, peak) = most_at_once(buffers);
    let (offsets, bytes) = search::offsets(buffers, bound);
    Packing { offsets, bytes, bound, peak }
}

/// The most bytes that live at one step, and the first such step.
pub fn most_at_once(buffers: &[Lifetime]) -> (usize, usize) {
    // At each step first what begins, then what has ended: a buffer is there until its last step is done.
    let mut changes: Vec<(usize, bool, usize)> = Vec::with_capacity(2 * buffers.len());
    for b in buffers.iter().filter(|b| b.bytes > 0) {
        changes.push((b.first, false, b.taken()));
        changes.push((b.last, true, b.taken()));
    }
    changes.sort_unstable();
    let (mut live, mut most) = (0, (0, 0));
    for (step, ends, bytes) in changes {
        live = if ends { live - bytes } else { live + bytes };
        if live > most.0 {
            most = (live, step);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    pub(super) fn meet(a: &Lifetime, b: &Lifetime) -> bool {
        a.first <= b.last && b.first <= a.last
    }

    fn random(rng: &mut Random, count: usize, sizes: usize) -> Vec<Lifetime> {
        (0..count)
            .map(|_| {
                let first = rng.below(count);
                Lifetime { bytes: rng.below(sizes) * 32, first, last: first + rng.below(1 + count / 3) }
            })
            .collect()
    }

    fn check(buffers: &[Lifetime], p: &Packing) {
        for (i, a) in buffers.iter().enumerate() {
            assert!(p.offsets[i].is_multiple_of(ARENA_ALIGN) && p.offsets[i] + a.taken() <= p.bytes);
            for (j, b) in buffers.iter().enumerate().filter(|(_, b)| meet(a, b) && b.bytes > 0 && a.bytes > 0) {
                let apart = p.offsets[i] + a.taken() <= p.offsets[j] || p.offsets[j] + b.taken() <= p.offsets[i];
                assert!(i == j || apart, "{a:?} at {} and {b:?} at {}", p.offsets[i], p.offsets[j]);
            }
        }
        let at = |step: usize| {
            buffers.iter().filter(|b| (b.first..=b.last).contains(&step)).map(Lifetime::taken).sum::<usize>()
        };
        let most = buffers.iter().map(|b| at(b.first)).max().unwrap_or(0);
        assert_eq!((p.bound, at(p.peak)), (most, most));
        assert!(p.bytes >= p.bound && p.is_of(buffers));
    }

    #[test]
    fn a_packing_in_which_two_buffers_meet_is_told() {
        let mut rng = Random::new(5);
        let mut moved = 0;
        for count in 2..60 {
            let buffers = random(&mut rng, count, 9);
            let p = pack(&buffers);
            let i = rng.below(count);
            for at in (0..p.bytes).step_by(ARENA_ALIGN) {
                let mut other = p.clone();
                other.offsets[i] = at;
                let apart = |o: usize| {
                    let (a, b) = (&buffers[i], &buffers[o]);
                    let met = o != i && a.bytes > 0 && b.bytes > 0 && meet(a, b);
                    !met || at + a.taken() <= p.offsets[o] || p.offsets[o] + b.taken() <= at
                };
                let right = at + buffers[i].taken() <= p.bytes && (0..count).all(apart);
                assert_eq!(other.is_of(&buffers), right, "{buffers:?}, {i} at {at}");
                moved += usize::from(!right);
            }
            let mut other = p.clone();
            other.offsets[i] += 1;
            assert!(!other.is_of(&buffers) && !p.is_of(&buffers[1..]));
            let smaller = p.bytes.saturating_sub(ARENA_ALIGN);
            assert!(p.bytes == 0 || !Packing { bytes: smaller, ..p }.is_of(&buffers));
        }
        assert!(moved > 500, "{moved} wrong places");
    }

    #[test]
    fn a_training_step_reaches_the_bound() {
        // Activations that live from forward to backward, and temporaries.
        let (layers, mut buffers) = (32, vec![]);
        for l in 0..layers {
            let (forward, backward) = (4 * l, 8 * layers - 4 * l);
            for (k, bytes) in [4096, 1024, 2048, 640].into_iter().enumerate() {
                buffers.push(Lifetime { bytes, first: forward + k, last: backward + 3 - k });
                buffers.push(Lifetime { bytes: 3 * bytes, first: forward + k, last: forward + k + 1 });
                buffers.push(Lifetime { bytes: 2 * bytes, first: backward + k, last: backward + k + 1 });
            }
        }
        let p = pack(&buffers);
        check(&buffers, &p);
        assert_eq!(p.bytes, p.bound);
    }
}
