//! Offsets of buffers in one arena: buffers that live at the same time do not share bytes.
//!
//! Assigning offsets with the fewest bytes is NP-hard ("dynamic storage allocation"). Training steps are easy instances: a greedy order reaches the
//! lower bound, the most bytes that live at one time, or comes within a few percent of it. So [`pack`] places the buffers in several orders, with first
//! and with best fit, keeps the best result, and stops at the bound.
//!
//! An order learns from its result ("squeaky wheel optimization", Joslin and Clements, JAIR 1999): buffers that end above the bound are placed earlier
//! in the next try. The number of tries depends on the number of buffers alone, so a plan is the same in each process.

use std::cmp::Reverse;
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
    fn meets(&self, other: &Lifetime) -> bool {
        self.first <= other.last && other.first <= self.last
    }
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

/// Work that is done to find a better packing, in pairs of buffers; each try compares most pairs.
const WORK: usize = 12 << 20;
/// Fewest and most tries.
const TRIES: [usize; 2] = [8, 200];

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
    let mut best = Packing { offsets: vec![0; buffers.len()], bytes: usize::MAX, bound, peak };
    let mut orders = orders(buffers);
    let count = orders[0].of.len();
    let tries = (WORK / (count * count).max(1)).clamp(TRIES[0], TRIES[1]);
    for k in TURNS.iter().cycle().take(tries) {
        let (offsets, bytes) = place(buffers, &orders[*k].of, orders[*k].fit);
        orders[*k].learn(buffers, &offsets, (bound, bytes));
        if bytes < best.bytes {
            (best.offsets, best.bytes) = (offsets, bytes);
        }
        if best.bytes <= bound {
            break;
        }
    }
    best
}

/// Orders that take turns, by number: that by the busiest step learns fastest.
const TURNS: [usize; 10] = [0, 1, 1, 2, 1, 3, 4, 4, 5, 6];

/// An order in which buffers are placed, and how it changes.
struct Order {
    of: Vec<usize>,
    fit: Fit,
    /// Whether those that end highest come first, not all that end above the bound halfway to the front.
    highest: bool,
}

/// Buffers with smaller keys are placed first.
type Key = (Reverse<usize>, Reverse<usize>);

/// The orders, as they are at first.
fn orders(buffers: &[Lifetime]) -> [Order; 7] {
    let all = || (0..buffers.len()).filter(|b| buffers[*b].bytes > 0);
    let by = |key: &dyn Fn(&Lifetime) -> Key| {
        let mut order: Vec<usize> = all().collect();
        order.sort_by_key(|b| (key(&buffers[*b]), *b));
        order
    };
    let size = || by(&|b| (Reverse(b.taken()), Reverse(usize::MAX - b.first)));
    let begin = || by(&|b| (Reverse(usize::MAX - b.first), Reverse(b.taken())));
    let longest = by(&|b| (Reverse(b.last - b.first), Reverse(b.taken())));
    let order = |of, fit, highest| Order { of, fit, highest };
    [
        order(size(), Fit::Best, false),
        order(by_busiest_step(buffers), Fit::First, false),
        order(begin(), Fit::Best, true),
        order(begin(), Fit::First, false),
        order(begin(), Fit::First, true),
        order(size(), Fit::First, false),
        order(longest, Fit::First, false),
    ]
}

/// Buffers that live in the busiest step first, then those of the next busiest; of one step the longest-lived first ("greedy by breadth").
fn by_busiest_step(buffers: &[Lifetime]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..buffers.len()).filter(|b| buffers[*b].bytes > 0).collect();
    // Most bytes live at a step at which some buffer begins.
    let mut steps: Vec<usize> = order.iter().map(|b| buffers[*b].first).collect();
    steps.sort_unstable();
    steps.dedup();
    let span = |b: &Lifetime| (steps.partition_point(|s| *s < b.first), steps.partition_point(|s| *s <= b.last));
    let mut changes = vec![(0usize, 0usize); steps.len() + 1];
    for b in order.iter().map(|b| &buffers[*b]) {
        let (from, to) = span(b);
        changes[from].0 += b.taken();
        changes[to].1 += b.taken();
    }
    let mut now = 0;
    let live: Vec<usize> = changes[..steps.len()]
        .iter()
        .map(|(begins, ends)| {
            now = now + begins - ends;
            now
        })
        .collect();
    let busier = |a: usize, b: usize| if live[b] > live[a] { b } else { a };
    // The busiest of each run of 1, 2, 4, … steps: any run is two of these.
    let mut runs: Vec<Vec<usize>> = vec![(0..steps.len()).collect()];
    while let Some(last) = runs.last()
        && last.len() > 1 << (runs.len() - 1)
    {
        let half = 1 << (runs.len() - 1);
        runs.push((0..last.len() - half).map(|i| busier(last[i], last[i + half])).collect());
    }
    order.sort_by_cached_key(|b| {
        let (from, to) = span(&buffers[*b]);
        let run = (to - from).ilog2() as usize;
        let step = busier(runs[run][from], runs[run][to - (1 << run)]);
        let b = &buffers[*b];
        (Reverse(live[step]), step, Reverse(b.last - b.first), Reverse(b.taken()))
    });
    order
}

impl Order {
    /// Changes the order after a try.
    fn learn(&mut self, buffers: &[Lifetime], offsets: &[usize], (bound, bytes): (usize, usize)) {
        let limit = if self.highest { bytes.saturating_sub(1) } else { bound };
        let moved = |(place, b): (usize, &usize)| match offsets[*b] + buffers[*b].taken() > limit {
            true => ((if self.highest { 0 } else { place / 2 }, false), *b),
            false => ((place, true), *b),
        };
        let mut next: Vec<_> = self.of.iter().enumerate().map(moved).collect();
        next.sort_by_key(|(place, _)| *place);
        self.of = next.into_iter().map(|(_, b)| b).collect();
    }
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

/// Rule for the gap that a buffer is put into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// The lowest that is large enough.
    First,
    /// The smallest that is large enough.
    Best,
}

/// Places the buffers one by one: their offsets, and the bytes that they take.
fn place(buffers: &[Lifetime], order: &[usize], fit: Fit) -> (Vec<usize>, usize) {
    let mut offsets = vec![0; buffers.len()];
    // Those that have a place, by offset: first byte, byte behind the last, lifetime.
    let mut placed: Vec<(usize, usize, Lifetime)> = Vec::with_capacity(order.len());
    let mut bytes = 0;
    for &b in order {
        let (need, buffer) = (buffers[b].taken(), buffers[b]);
        let (mut end, mut found) = (0, None);
        for (at, behind, _) in placed.iter().filter(|(_, _, other)| other.meets(&buffer)) {
            let gap = at.saturating_sub(end);
            if gap >= need && found.is_none_or(|(_, best)| gap < best) {
                found = Some((end, gap));
                if fit == Fit::First {
                    break;
                }
            }
            end = end.max(*behind);
        }
        let at = found.map_or(end, |(at, _)| at);
        bytes = bytes.max(at + need);
        offsets[b] = at;
        placed.insert(placed.partition_point(|(other, ..)| *other <= at), (at, at + need, buffer));
    }
    (offsets, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

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
            for (j, b) in buffers.iter().enumerate().filter(|(_, b)| b.meets(a) && b.bytes > 0 && a.bytes > 0) {
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
                    let met = o != i && a.bytes > 0 && b.bytes > 0 && a.meets(b);
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

    /// The fewest bytes: some order with the lowest fit is optimal, so all orders are tried.
    fn optimum(buffers: &[Lifetime]) -> usize {
        fn orders(buffers: &[Lifetime], order: &mut Vec<usize>, best: &mut usize) {
            if order.len() == buffers.len() {
                *best = place(buffers, order, Fit::First).1.min(*best);
                return;
            }
            for b in 0..buffers.len() {
                if !order.contains(&b) {
                    order.push(b);
                    orders(buffers, order, best);
                    order.pop();
                }
            }
        }
        let mut best = usize::MAX;
        orders(buffers, &mut vec![], &mut best);
        best
    }

    #[test]
    fn buffers_that_live_together_do_not_overlap() {
        let mut rng = Random::new(7);
        for count in 0..120 {
            let buffers = random(&mut rng, count, 1 + count % 40);
            check(&buffers, &pack(&buffers));
        }
    }

    #[test]
    fn close_to_the_optimum_of_small_instances() {
        let mut rng = Random::new(11);
        let (mut least, mut ours) = (0, 0);
        for _ in 0..60 {
            let buffers: Vec<Lifetime> =
                random(&mut rng, 6, 9).into_iter().map(|b| Lifetime { bytes: b.bytes + 64, ..b }).collect();
            let (best, packed) = (optimum(&buffers), pack(&buffers).bytes);
            assert!(packed >= best);
            (least, ours) = (least + best, ours + packed);
        }
        assert!(ours as f64 <= 1.001 * least as f64, "{ours} bytes, {least} are enough");
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
