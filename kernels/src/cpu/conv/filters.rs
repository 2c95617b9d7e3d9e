//! Convolutions of small images. Lines of places have gaps where rows end, and a line of a small image is short: then vectors run along
//! the rows of the result (its channels), and each place that counts is multiplied with one vector of weights after the other.

use super::lines::Part;
use super::tile::{LANES, Outer};
use super::{Each, Job, PANELS};
use crate::cpu::acc::{Acc, store};
use std::ops::Range;

/// Bytes of copied images that one pass over the weights serves: only the channels of a panel need to stay in a cache.
pub(super) const IMAGES: usize = 2 * 1024 * 1024;
/// Places whose sums stay in the second-level cache.
const PLACES: usize = 768;

/// True where more than an eighth of what vectors along a line would compute means nothing, and rows fill vectors.
pub(super) fn worthwhile(rows: usize, part: &Part, pitch: [usize; 2]) -> bool {
    let places: usize = part.count.iter().product();
    rows.next_multiple_of(LANES) * 7 <= rows * 8 && part.line(pitch).next_multiple_of(LANES) * 7 > places * 8
}

/// Neighbouring places and neighbouring elements of the result: the first place, the image, its element, how many.
struct Run {
    place: usize,
    image: usize,
    element: usize,
    n: usize,
}

impl<A: Acc> Job<'_, A> {
    /// Computes everything; `each(n, run)` calls `run` for `0..n`.
    pub(super) fn along_rows(&self, each: &dyn Fn(usize, Each<'_>)) {
        let (pitch, step) = (self.plan.image.pitch(), self.plan.step[2]);
        let (mut places, mut runs): (Vec<usize>, Vec<Run>) = (vec![], vec![]);
        for (image, start) in self.starts.iter().enumerate() {
            self.part.rows(self.plan, pitch, 0, self.part.line(pitch), |at, element, n| {
                match runs.last_mut() {
                    Some(last) if last.image == image && last.element + last.n * step == element => last.n += n,
                    _ => runs.push(Run { place: places.len(), image, element, n }),
                }
                places.extend((at..at + n).map(|at| (*start as *const A).wrapping_add(at) as usize));
            });
        }
        let chunks = places.len().div_ceil(PLACES);
        each(self.packed.blocks.len() * chunks, &|task| {
            let first = task % chunks * PLACES;
            self.block(task / chunks, first..(first + PLACES).min(places.len()), &places, &runs);
        });
    }

    /// Some rows of the result at some places.
    fn block(&self, block: usize, range: Range<usize>, places: &[usize], runs: &[Run]) {
        let (b, offsets) = (&self.packed.blocks[block], &self.packed.offsets);
        let mut bias = vec![A::ZERO; b.width];
        bias[..b.rows].copy_from_slice(&self.bias[b.first..][..b.rows]);
        let mut sums = bias.repeat(range.len());
        let lines: Vec<*const A> = places[range.clone()].iter().map(|p| *p as *const A).collect();
        let depth = (PANELS / (b.width * size_of::<A>())).max(1);
        for first in (0..offsets.len()).step_by(depth) {
            let taps = &offsets[first..offsets.len().min(first + depth)];
            let along: Vec<(usize, usize)> = taps.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run.len())).collect();
            let columns = self.packed.weights[b.at + first * b.width..].as_ptr();
            let outer = Outer { lines: &lines, runs: &along, columns, width: b.width };
            // SAFETY: a place reads each of its taps, and the columns have a row for each of them.
            unsafe { self.isa.outer(&outer, &mut sums) };
        }
        self.put(b.first, &sums, b.rows, b.width, range, runs);
    }

    /// Writes rows of the result from `sums[place][row]`.
    fn put(&self, first: usize, sums: &[A], rows: usize, width: usize, range: Range<usize>, runs: &[Run]) {
        let (dtype, step) = (self.out.dtype(), self.plan.step[2]);
        let elements: usize = self.plan.result.iter().product();
        let mut values: Vec<A> = vec![];
        let from = runs.partition_point(|run| run.place + run.n <= range.start);
        for run in runs[from..].iter().take_while(|run| run.place < range.end) {
            let (start, end) = (run.place.max(range.start), (run.place + run.n).min(range.end));
            let element = run.element + (start - run.place) * step;
            for r in 0..rows {
                values.clear();
                values.extend(sums[(start - range.start) * width + r..].iter().step_by(width).take(end - start));
                let row = self.rows[run.image] + first + r;
                let to = self.out.ptr().wrapping_add((row * elements + element) * dtype.size());
                // SAFETY: elements of the contiguous output that only this place of this part writes.
                unsafe { store(dtype, to, step as isize, &values) };
            }
        }
    }
}
