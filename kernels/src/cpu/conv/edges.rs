//! The places of a transposed convolution whose kernel reaches beyond the image, for weights that are not finite.
//!
//! The lines are padded with zeros, and a zero times an infinite weight would be NaN. A transposed convolution adds a product for each
//! element of the image and has none for what is beside it, so these places are computed once more without the padding.

use super::super::acc::{Acc, load, read, store};
use crate::View;
use crate::conv::{Sizes, Sliding};

/// Whether some weight is infinite or NaN.
pub(super) fn is_needed<A: Acc>(weight: &View) -> bool {
    const RUN: usize = 4096;
    let (n, mut buffer) = (weight.dims().iter().product::<usize>(), vec![]);
    (0..n).step_by(RUN).any(|from| {
        // SAFETY: elements of the contiguous weight.
        let run: &[A] = unsafe { read(weight, from, RUN.min(n - from), &mut buffer) };
        // Zero times a number is zero, but times an infinity or NaN it is NaN.
        run.iter().fold(A::ZERO, |sum, w| sum + *w * A::ZERO) != A::ZERO
    })
}

/// The taps of the kernel that meet an element of `x` at a place of the result, each with that element; none where no tap reaches beyond.
fn taps(sizes: &Sizes, s: &Sliding, place: [usize; 3]) -> Option<Vec<(usize, usize)>> {
    let (mut found, mut beyond) = (vec![], false);
    let [depth, height, width] = sizes.kernel;
    for number in 0..depth * height * width {
        let tap = [number / (height * width), number / width % height, number % width];
        let at: [isize; 3] =
            std::array::from_fn(|d| place[d] as isize + s.padding[d] - (tap[d] * s.dilation[d]) as isize);
        if (0..3).any(|d| at[d].rem_euclid(s.stride[d] as isize) != 0) {
            continue;
        }
        let at: [isize; 3] = std::array::from_fn(|d| at[d].div_euclid(s.stride[d] as isize));
        match (0..3).all(|d| (0..sizes.result[d] as isize).contains(&at[d])) {
            true => {
                found.push((number, (0..3).fold(0, |sum, d| sum * sizes.result[d] + at[d] as usize)));
            }
            false => beyond = true,
        }
    }
    beyond.then_some(found)
}

/// Computes these places.
pub(super) fn correct<A: Acc>(sizes: &Sizes, s: &Sliding, x: &View, weight: &View, bias: Option<&View>, out: &View) {
    let [depth, height, width] = sizes.image;
    let (elements, places, kernel) = (depth * height * width, sizes.result.iter().product::<usize>(), sizes.taps());
    let all: Vec<(usize, Vec<(usize, usize)>)> = (0..elements)
        .filter_map(|i| Some((i, taps(sizes, s, [i / (height * width), i / width % height, i % width])?)))
        .collect();
    let mut biases = vec![A::ZERO; sizes.channels * sizes.groups];
    if let Some(bias) = bias {
        // SAFETY: the elements of the bias, whose size has been checked.
        unsafe { load(bias.dtype(), bias.ptr(), bias.strides()[0], &mut biases) };
    }
    let (mut of_x, mut of_weight) = (vec![], vec![]);
    for (image, group) in (0..sizes.batch).flat_map(|n| (0..sizes.groups).map(move |g| (n * sizes.groups + g, g))) {
        let weights = sizes.filters * sizes.channels * kernel;
        // SAFETY: the filters of a group in an image of the contiguous `x`, and those of the group in the contiguous weight.
        let (x, w): (&[A], &[A]) = unsafe {
            let x = read(x, image * sizes.filters * places, sizes.filters * places, &mut of_x);
            (x, read(weight, group * weights, weights, &mut of_weight))
        };
        for c in 0..sizes.channels {
            for (i, taps) in &all {
                let mut sum = biases[group * sizes.channels + c];
                for f in 0..sizes.filters {
                    let row = &w[(f * sizes.channels + c) * kernel..][..kernel];
                    sum = taps.iter().fold(sum, |sum, (tap, at)| sum + row[*tap] * x[f * places + at]);
                }
                let at = (image * sizes.channels + c) * elements + i;
                let to = out.ptr().wrapping_add(at * out.dtype().size());
                // SAFETY: one element of the contiguous output.
                unsafe { store(out.dtype(), to, 1, &[sum]) };
            }
        }
    }
}
