//! The lines that a convolution is computed on.
//!
//! A channel of an image is copied once, with its padding (that between two rows once), so that each tap of the kernel reads at a fixed distance from the
//! result: result `q` is the sum over channels and taps of `weight * line[tap + q]`. The result is counted along the padded
//! rows, so some places of a line mean nothing; they are computed and not stored. A stride cuts the image into phases, each of
//! which is read with a stride of 1. The transposed convolution is the same sum, once for each phase of the result.

use super::turned::turn;
use crate::conv::{Sizes, Sliding};
use crate::cpu::acc::{Acc, load};
use crate::{DType, KernelError, Result, View};

/// How the copy of a channel lies.
pub(super) struct Image {
    /// Positions of each phase.
    dims: [usize; 3],
    phases: [usize; 3],
    /// Elements of the image from position to position; position 0 of phase `f` is element `f - low`.
    step: [usize; 3],
    low: [isize; 3],
    size: [usize; 3],
    /// Zeros at the end of a row that are those at the beginning of the next one.
    shared: usize,
}

/// Where a tap reads, and which one of the kernel it is.
pub(super) struct Tap {
    pub(super) at: usize,
    pub(super) number: usize,
}

/// The elements of the result that one set of taps makes: `first + step * j` for `j` below `count`.
pub(super) struct Part {
    pub(super) taps: Vec<Tap>,
    pub(super) first: [usize; 3],
    pub(super) count: [usize; 3],
}

/// Rows that are copied, and results that are computed from them.
pub(super) struct LinePlan {
    pub(super) image: Image,
    pub(super) parts: Vec<Part>,
    /// Elements of the result from place to place.
    pub(super) step: [usize; 3],
    pub(super) result: [usize; 3],
}

/// The most taps in one dim. With the largest dilation that [`Sliding`] takes, the distance of the last tap does not overflow.
const MOST_TAPS: usize = 1 << 22;

/// The error of an image whose copy does not go into memory.
pub(super) fn too_large(image: &Image) -> KernelError {
    KernelError::out_of_memory(format!(
        "no memory for an image of {:?} that is copied with the zeros around it: {:?} positions of {:?} phases",
        image.size, image.dims, image.phases
    ))
}

/// Refuses a kernel of more than [`MOST_TAPS`] taps in a dim.
fn check_taps(sizes: &Sizes) -> Result<()> {
    match sizes.kernel.iter().all(|k| *k <= MOST_TAPS) {
        true => Ok(()),
        false => Err(KernelError::new(format!("a kernel of {:?} taps is too large", sizes.kernel))),
    }
}

fn product(v: &[usize; 3]) -> usize {
    v.iter().product()
}

/// All triples below `n`, the last counted first.
fn triples(n: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..product(&n)).map(move |i| [i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]])
}

impl Image {
    /// Elements of the copy of a channel.
    pub(super) fn plane(&self) -> usize {
        product(&self.phases) * self.phase()
    }
    /// Elements of a phase of it.
    fn phase(&self) -> usize {
        self.dims[0] * self.pitch()[0] + self.shared
    }
    /// Rows share the zeros between them, as far as all phases have some on both sides and a row has more positions than results: fewer
    /// places of a line mean nothing then.
    fn sharing(mut self, results: usize) -> Image {
        let zeros = (0..self.phases[2]).map(|phase| {
            let (first, end) = self.inside(2, phase);
            first.min(self.dims[2] - end)
        });
        self.shared = zeros.min().unwrap_or(0).min(self.dims[2] - results.min(self.dims[2]));
        self
    }
    /// Returns the image if the number of elements in the copies of `channels` channels does not overflow.
    ///
    /// # Errors
    /// If it does: a large dilation or stride makes a large copy of a small image.
    fn checked(self, channels: usize) -> Result<Image> {
        let elements = self.phases.iter().chain(&self.dims).try_fold(channels.max(1), |n, d| n.checked_mul(*d));
        match elements.is_some_and(|n| n < isize::MAX as usize / 64) {
            true => Ok(self),
            false => Err(too_large(&self)),
        }
    }
    /// Elements of a row and of a matrix.
    pub(super) fn pitch(&self) -> [usize; 2] {
        let row = self.dims[2] - self.shared;
        [self.dims[1] * row, row]
    }
    /// True where the copy would be the image.
    pub(super) fn is_the_image(&self) -> bool {
        self.dims == self.size && self.phases == [1; 3] && self.step == [1; 3] && self.low == [0; 3]
    }
    fn at(&self, phase: [usize; 3], p: [usize; 3]) -> usize {
        let (phase, [matrix, row]) = ((phase[0] * self.phases[1] + phase[1]) * self.phases[2] + phase[2], self.pitch());
        phase * self.phase() + p[0] * matrix + p[1] * row + p[2]
    }
    /// The first position at or after `from` of dim `d` whose element is in the image, and the first after those.
    fn inside(&self, d: usize, phase: usize) -> (usize, usize) {
        let start = phase as isize - self.low[d];
        let step = self.step[d] as isize;
        // start + p * step is at least 0, and below size.
        let first = if start >= 0 { 0 } else { (-start + step - 1) / step };
        let end = (self.size[d] as isize - start + step - 1).div_euclid(step);
        let first = (first as usize).min(self.dims[d]);
        (first, (end.max(0) as usize).clamp(first, self.dims[d]))
    }

    /// For each position of the copy, whether it holds an element; the others are zero.
    pub(super) fn elements(&self) -> Vec<bool> {
        let mut held = vec![false; self.plane()];
        for phase in triples(self.phases) {
            let inside: [(usize, usize); 3] = std::array::from_fn(|d| self.inside(d, phase[d]));
            for a in inside[0].0..inside[0].1 {
                for b in inside[1].0..inside[1].1 {
                    let at = self.at(phase, [a, b, 0]);
                    held[at + inside[2].0..at + inside[2].1].fill(true);
                }
            }
        }
        held
    }
    /// Copies channel `channel` (counted over the batch) of a contiguous tensor to where there are zeros, or another channel.
    pub(super) fn copy<A: Acc>(&self, of: &View, channel: usize, to: &mut [A]) {
        let dtype = of.dtype();
        let base = of.ptr().wrapping_add(channel * product(&self.size) * dtype.size());
        for phase in triples(self.phases) {
            let inside: [(usize, usize); 3] = std::array::from_fn(|d| self.inside(d, phase[d]));
            let element = |d: usize, p: usize| (p * self.step[d] + phase[d]) as isize - self.low[d];
            let (first, end) = inside[2];
            if first >= end {
                continue;
            }
            for a in inside[0].0..inside[0].1 {
                for b in inside[1].0..inside[1].1 {
                    let at = self.at(phase, [a, b, 0]);
                    let row = &mut to[at + first..at + end];
                    let from = (element(0, a) * self.size[1] as isize + element(1, b)) * self.size[2] as isize
                        + element(2, first);
                    let from = base.wrapping_offset(from * dtype.size() as isize);
                    // SAFETY: positions first..end of this row are elements of the channel, `step` apart.
                    unsafe {
                        match dtype == A::DTYPE && self.step[2] == 1 {
                            true => from.cast::<A>().copy_to_nonoverlapping(row.as_mut_ptr(), row.len()),
                            false => load(dtype, from, self.step[2] as isize, row),
                        }
                    }
                }
            }
        }
    }
}

impl Part {
    /// Length of the line that has all places.
    pub(super) fn line(&self, pitch: [usize; 2]) -> usize {
        if self.count.contains(&0) {
            return 0;
        }
        (self.count[0] - 1) * pitch[0] + (self.count[1] - 1) * pitch[1] + self.count[2]
    }
    /// Calls `run(place of the line, element of the result, length)` for each row of places within `q..q + n`.
    pub(super) fn rows(
        &self,
        plan: &LinePlan,
        pitch: [usize; 2],
        q: usize,
        n: usize,
        mut run: impl FnMut(usize, usize, usize),
    ) {
        let mut at = q;
        while at < q + n {
            let (a, b, c) = (at / pitch[0], at % pitch[0] / pitch[1], at % pitch[1]);
            let next = at - c + pitch[1];
            if a >= self.count[0] {
                return;
            }
            if b < self.count[1] && c < self.count[2] {
                let length = (self.count[2] - c).min(q + n - at);
                let j = [a, b, c];
                let e: [usize; 3] = std::array::from_fn(|d| self.first[d] + plan.step[d] * j[d]);
                run(at, (e[0] * plan.result[1] + e[1]) * plan.result[2] + e[2], length);
            }
            at = next;
        }
    }
}

impl LinePlan {
    /// Of a convolution.
    ///
    /// # Errors
    /// If the copy of an image is too large.
    pub(super) fn direct(sizes: &Sizes, s: &Sliding) -> Result<LinePlan> {
        check_taps(sizes)?;
        let reach = |d: usize| sizes.kernel[d].saturating_sub(1) * s.dilation[d];
        let phases = std::array::from_fn(|d| {
            (0..sizes.kernel[d]).map(|k| k * s.dilation[d] % s.stride[d]).max().unwrap_or(0) + 1
        });
        let image = Image {
            dims: std::array::from_fn(|d| sizes.result[d] + reach(d) / s.stride[d]),
            phases,
            step: s.stride,
            low: s.padding,
            size: sizes.image,
            shared: 0,
        }
        .sharing(sizes.result[2])
        .checked(sizes.channels)?;
        let taps = triples(sizes.kernel).enumerate().map(|(number, k)| {
            let along = |d: usize| k[d] * s.dilation[d];
            let phase = std::array::from_fn(|d| along(d) % s.stride[d]);
            Tap { at: image.at(phase, std::array::from_fn(|d| along(d) / s.stride[d])), number }
        });
        let parts = vec![Part { taps: taps.collect(), first: [0; 3], count: sizes.result }];
        Ok(LinePlan { image, parts, step: [1; 3], result: sizes.result })
    }

    /// Of its gradient of the image, which is the transposed convolution: the lines are copies of what the convolution gave.
    ///
    /// # Errors
    /// If the copy of an image is too large.
    pub(super) fn transposed(sizes: &Sizes, s: &Sliding) -> Result<LinePlan> {
        check_taps(sizes)?;
        // Element h of the image was read by tap k for result (h + padding - k * dilation) / stride, where that is whole. With
        // h = f + stride * j it is j + reads(f, k).
        let reads = |d: usize, f: usize, k: usize| {
            let at = f as isize + s.padding[d] - (k * s.dilation[d]) as isize;
            (at.rem_euclid(s.stride[d] as isize) == 0).then(|| at.div_euclid(s.stride[d] as isize))
        };
        let phases: [usize; 3] = std::array::from_fn(|d| s.stride[d].min(sizes.image[d]));
        let count = |d: usize, f: usize| (sizes.image[d] - f).div_ceil(s.stride[d]);
        // The positions that are read.
        let range: [(isize, isize); 3] = std::array::from_fn(|d| {
            let of = |f: usize| (0..sizes.kernel[d]).filter_map(move |k| reads(d, f, k));
            let all = || (0..phases[d]).flat_map(|f| of(f).map(move |r| (r, r + count(d, f) as isize)));
            let (low, end) = (all().map(|r| r.0).min(), all().map(|r| r.1).max());
            (low.unwrap_or(0), end.unwrap_or(0))
        });
        let longest: [usize; 3] = std::array::from_fn(|d| if phases[d] == 0 { 0 } else { count(d, 0) });
        let image = Image {
            dims: std::array::from_fn(|d| ((range[d].1 - range[d].0) as usize).max(longest[d])),
            phases: [1; 3],
            step: [1; 3],
            low: std::array::from_fn(|d| -range[d].0),
            size: sizes.result,
            shared: 0,
        }
        .sharing(longest[2])
        .checked(sizes.filters)?;
        let part = |f: [usize; 3]| {
            let taps = triples(sizes.kernel).enumerate().filter_map(|(number, k)| {
                let mut p = [0; 3];
                for d in 0..3 {
                    p[d] = (reads(d, f[d], k[d])? - range[d].0) as usize;
                }
                Some(Tap { at: image.at([0; 3], p), number })
            });
            Part { taps: taps.collect(), first: f, count: std::array::from_fn(|d| count(d, f[d])) }
        };
        let parts = triples(phases).map(part).collect();
        Ok(LinePlan { image, parts, step: s.stride, result: sizes.image })
    }
}

/// Copies channels of an image, `first` counted over the batch, one plane after the other, into memory that held only zeros before or
/// other channels of this plan.
pub(super) fn copies<A: Acc>(plan: &LinePlan, of: &View, first: usize, channels: usize, to: &mut [A]) {
    let plane = plan.image.plane();
    for c in 0..channels {
        plan.image.copy(of, first + c, &mut to[c * plane..(c + 1) * plane]);
    }
}

/// Channels that [`copies_by_place`] turns together.
pub(super) const TOGETHER: usize = 16;

/// As [`copies`], with the channels of each position side by side. `some` has room for [`TOGETHER`] planes, or for all channels if they
/// are fewer.
pub(super) fn copies_by_place<A: Acc>(
    plan: &LinePlan,
    of: &View,
    first: usize,
    channels: usize,
    some: &mut [A],
    to: &mut [A],
) {
    let plane = plan.image.plane();
    assert!(to.len() >= channels * plane && some.len() >= TOGETHER.min(channels) * plane);
    for c in (0..channels).step_by(TOGETHER) {
        let count = TOGETHER.min(channels - c);
        copies(plan, of, first + c, count, some);
        // SAFETY: `count` planes, and as many columns of `plane` rows of channels (asserted).
        unsafe { turn::<A>(some.as_ptr(), plane, to.as_mut_ptr().add(c), channels, [count, plane]) };
    }
}

/// True where lines of `A` may be read out of the tensor itself.
pub(super) fn in_place<A: Acc>(plan: &LinePlan, dtype: DType) -> bool {
    dtype == A::DTYPE && plan.image.is_the_image()
}
