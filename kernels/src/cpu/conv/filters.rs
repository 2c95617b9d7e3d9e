//! Convolutions of small images. Lines of places have gaps where rows end, and a line of a small image is short: then vectors run along
//! the rows of the result (its channels), and each place that counts is multiplied with one vector of weights after the other. Taps that
//! fall on the zeros around the image are left out. The channels of a place lie side by side.

use super::lines::Part;
use super::tile::{FILTERS, LANES, Outer};
use super::{Each, Job};
use crate::cpu::acc::{Acc, store};
use std::ops::Range;

/// Bytes of copied images that one pass over the weights serves: only the channels of a panel need to stay in a cache.
pub(super) const IMAGES: usize = 2560 * 1024;
/// Bytes of weights that stay in the second-level cache beside the images and the sums.
const PANEL: usize = 160 * 1024;
/// Places whose sums stay in the second-level cache.
const PLACES: usize = 800;

/// True where more than an eighth of what vectors along a line would compute means nothing, and rows fill vectors.
pub(super) fn worthwhile(rows: usize, part: &Part, pitch: [usize; 2]) -> bool {
    let places: usize = part.count.iter().product();
    rows.next_multiple_of(LANES) * 7 <= rows * 8 && part.line(pitch).next_multiple_of(LANES) * 7 > places * 8
}

/// Channels of which the weights stay in the second-level cache beside the images: an odd number, so that neighbouring taps do not
/// share cache sets.
pub(super) fn panel<A>(taps: usize) -> usize {
    (PANEL / (FILTERS * taps.max(1) * size_of::<A>())).max(LANES) | 1
}

/// Neighbouring places and neighbouring elements of the result: the first place, the image, its element, how many.
struct Run {
    place: usize,
    image: usize,
    element: usize,
    n: usize,
}

/// A place: which taps read elements of the image (one bit each, all where there are more than bits), its address.
type PatchPosition = (u64, usize);

/// Some places, in the order in which they are computed: those that read by the same taps together.
struct Chunk {
    /// The first of the places, and for each where it stands in the order.
    first: usize,
    order: Vec<usize>,
    lines: Vec<usize>,
    /// Taps, and the range of the order that reads by them.
    classes: Vec<(u64, Range<usize>)>,
}

impl Chunk {
    fn new(first: usize, places: &[PatchPosition]) -> Chunk {
        let mut sorted: Vec<usize> = (0..places.len()).collect();
        sorted.sort_by_key(|i| places[*i].0);
        let mut order = vec![0; places.len()];
        sorted.iter().enumerate().for_each(|(at, i)| order[*i] = at);
        let mut classes: Vec<(u64, Range<usize>)> = vec![];
        for (at, i) in sorted.iter().enumerate() {
            match classes.last_mut() {
                Some((taps, range)) if *taps == places[*i].0 => range.end = at + 1,
                _ => classes.push((places[*i].0, at..at + 1)),
            }
        }
        Chunk { first, order, lines: sorted.iter().map(|i| places[*i].1).collect(), classes }
    }

    /// The parts of the order that read by a tap; neighbours are one.
    fn reading(&self, tap: usize) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = vec![];
        for (_, range) in self.classes.iter().filter(|(taps, _)| tap >= 64 || taps >> tap & 1 == 1) {
            match all.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => all.push(range.clone()),
            }
        }
        all
    }
}

impl<A: Acc> Job<'_, A> {
    /// Computes everything; `each(n, run)` calls `run` for `0..n`.
    pub(super) fn along_rows(&self, panel: usize, each: &dyn Fn(usize, Each<'_>)) {
        let (pitch, step) = (self.plan.image.pitch(), self.plan.step[2]);
        let channels = self.packed.offsets.len() / self.part.taps.len().max(1);
        let held = self.plan.image.elements();
        let taps = |at: usize| {
            let bits = self.part.taps.iter().enumerate().take(64);
            bits.fold(0u64, |bits, (t, tap)| bits | u64::from(held[at + tap.at]) << t)
        };
        let all = self.part.taps.len() > 64;
        let (mut places, mut runs): (Vec<PatchPosition>, Vec<Run>) = (vec![], vec![]);
        for (image, start) in self.starts.iter().enumerate() {
            self.part.rows(self.plan, pitch, 0, self.part.line(pitch), |at, element, n| {
                match runs.last_mut() {
                    Some(last) if last.image == image && last.element + last.n * step == element => last.n += n,
                    _ => runs.push(Run { place: places.len(), image, element, n }),
                }
                let address = |at: usize| (*start as *const A).wrapping_add(at * channels) as usize;
                places.extend((at..at + n).map(|at| (if all { u64::MAX } else { taps(at) }, address(at))));
            });
        }
        let together = places.len().div_ceil(places.len().div_ceil(PLACES).max(1)).max(1);
        let chunks: Vec<Chunk> =
            places.chunks(together).enumerate().map(|(i, places)| Chunk::new(i * together, places)).collect();
        each(self.packed.blocks.len() * chunks.len(), &|task| {
            self.block(panel, task / chunks.len(), &chunks[task % chunks.len()], &runs);
        });
    }

    /// Some rows of the result at some places; panels have so many channels.
    fn block(&self, panel: usize, block: usize, chunk: &Chunk, runs: &[Run]) {
        let (b, taps) = (&self.packed.blocks[block], &self.part.taps);
        let mut bias = vec![A::ZERO; b.width];
        bias[..b.rows].copy_from_slice(&self.bias[b.first..][..b.rows]);
        let mut sums = bias.repeat(chunk.order.len());
        let lines: Vec<*const A> = chunk.lines.iter().map(|p| *p as *const A).collect();
        let channels = self.packed.offsets.len() / taps.len().max(1);
        for first in (0..channels).step_by(panel) {
            let count = panel.min(channels - first);
            for (t, tap) in taps.iter().enumerate() {
                let columns = self.packed.weights[b.at + (first * taps.len() + t * count) * b.width..].as_ptr();
                let runs = [(tap.at * channels + first, count)];
                for range in chunk.reading(t) {
                    let outer = Outer { lines: &lines[range.clone()], runs: &runs, step: 1, columns, width: b.width };
                    // SAFETY: a place reads each of its taps in every channel, and the columns have a row for each of these.
                    unsafe { self.isa.outer(&outer, &mut sums[range.start * b.width..range.end * b.width]) };
                }
            }
        }
        self.put(b.first, &sums, b.rows, b.width, chunk, runs);
    }

    /// Writes rows of the result from `sums[place of the order][row]`.
    fn put(&self, first: usize, sums: &[A], rows: usize, width: usize, chunk: &Chunk, runs: &[Run]) {
        let (dtype, step) = (self.out.dtype(), self.plan.step[2]);
        let elements: usize = self.plan.result.iter().product();
        let range = chunk.first..chunk.first + chunk.order.len();
        let mut values: Vec<A> = vec![];
        let from = runs.partition_point(|run| run.place + run.n <= range.start);
        for run in runs[from..].iter().take_while(|run| run.place < range.end) {
            let (start, end) = (run.place.max(range.start), (run.place + run.n).min(range.end));
            let element = run.element + (start - run.place) * step;
            for r in 0..rows {
                values.clear();
                let order = &chunk.order[start - range.start..end - range.start];
                values.extend(order.iter().map(|at| sums[at * width + r]));
                let row = self.rows[run.image] + first + r;
                let to = self.out.ptr().wrapping_add((row * elements + element) * dtype.size());
                // SAFETY: elements of the contiguous output that only this place of this part writes.
                unsafe { store(dtype, to, step as isize, &values) };
            }
        }
    }
}
