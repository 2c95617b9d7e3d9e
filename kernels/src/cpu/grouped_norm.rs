//! Group norm: rows of channels with mean 0 and variance 1, then a scale and a shift for each channel, with gradients. The tensor is
//! `[n, groups, channels, inner]`; a row is what an image and a group have. All tensors are contiguous.

use super::acc::{Acc, finite, numbers, read, store, with_acc, write};
use super::rowmath;
use super::rows::check_norm;
use crate::parallel::{GRAIN, parallel_for};
use crate::{KernelError, Result, View};

/// Channels with fewer elements are computed with their neighbours.
const SHORT: usize = 16;

/// Sizes of a call.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    /// Of a group.
    pub(crate) channels: usize,
    /// Elements of a channel.
    pub(crate) inner: usize,
}

impl Sizes {
    pub(crate) fn rows(&self) -> usize {
        self.batch * self.groups
    }
    pub(crate) fn row(&self) -> usize {
        self.channels * self.inner
    }
    fn grain(&self) -> usize {
        (GRAIN / self.row().max(1)).max(1)
    }
    /// The elements of a row one by one, `of(channel, element)`: by the definition, where a number of a channel or a row is infinite and
    /// the same as a sum of products would be infinity minus infinity.
    fn each<A: Acc>(&self, to: &mut [A], of: impl Fn(usize, usize) -> A) {
        to.iter_mut().enumerate().for_each(|(i, to)| *to = of(i / self.inner.max(1), i));
    }
    /// A number for each element of a row, of one for each channel.
    fn spread<A: Acc>(&self, numbers: impl Iterator<Item = A>, to: &mut Vec<A>) {
        to.clear();
        numbers.for_each(|n| to.extend(std::iter::repeat_n(n, self.inner)));
    }
}

/// Checks that `same` are like x, that statistics have a number for each row, and parameters one for each channel.
pub(crate) fn check(
    x: &View,
    same: &[(&str, &View)],
    statistics: &[(&str, &View)],
    parameters: &[(&str, Option<&View>)],
) -> Result<Sizes> {
    let [batch, groups, channels, inner] = *x.dims() else {
        return Err(KernelError::new(format!("needs 4 dims, not {:?}", x.dims())));
    };
    check_norm(x, same, (statistics, &[batch, groups]), (parameters, &[groups, channels]))?;
    Ok(Sizes { batch, groups, channels, inner })
}

/// `y = (x - mean) rstd weight + bias`, with `mean` and `rstd = 1 / sqrt(variance + eps)` of each row.
///
/// # Errors
/// If dims or dtypes do not match, or a tensor is not contiguous.
pub fn grouped_norm(
    x: &View,
    weight: Option<&View>,
    bias: Option<&View>,
    eps: f64,
    y: &View,
    mean: &View,
    rstd: &View,
) -> Result<()> {
    let sizes = check(x, &[("y", y)], &[("mean", mean), ("rstd", rstd)], &[("weight", weight), ("bias", bias)])?;
    with_acc!(x.dtype(), forward(&sizes, x, weight, bias, eps, y, mean, rstd));
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn forward<A: Acc>(
    s: &Sizes,
    x: &View,
    weight: Option<&View>,
    bias: Option<&View>,
    eps: f64,
    y: &View,
    mean: &View,
    rstd: &View,
) {
    let all = s.groups * s.channels;
    let (w, b) = (numbers(weight, all, A::ONE), numbers(bias, all, A::ZERO));
    let plain = w.iter().all(|w| finite(*w));
    parallel_for(s.rows(), s.grain(), &|range| {
        let (mut from, mut to, mut scales, mut shifts) = (vec![], vec![], vec![], vec![]);
        for row in range {
            let of = row % s.groups * s.channels..(row % s.groups + 1) * s.channels;
            // SAFETY: a row of x, of y and of the statistics, which this task alone writes.
            unsafe {
                let x = read::<A>(x, row * s.row(), s.row(), &mut from);
                let (m, variance) = rowmath::moments(x);
                let r = A::ONE / (variance + A::from_f64(eps)).sqrt();
                write::<A>(mean, row, 1, &mut to, |t| t[0] = m);
                write::<A>(rstd, row, 1, &mut to, |t| t[0] = r);
                let each = || w[of.clone()].iter().zip(&b[of.clone()]).map(|(w, b)| (*w * r, *b - m * (*w * r)));
                write::<A>(y, row * s.row(), s.row(), &mut to, |y| {
                    if !plain {
                        let (w, b) = (&w[of.clone()], &b[of.clone()]);
                        return s.each(y, |c, i| (x[i] - m) * r * w[c] + b[c]);
                    }
                    if s.inner < SHORT {
                        s.spread(each().map(|e| e.0), &mut scales);
                        s.spread(each().map(|e| e.1), &mut shifts);
                        return rowmath::affines(x, &scales, &shifts, y);
                    }
                    let channels = x.chunks(s.inner).zip(y.chunks_mut(s.inner));
                    channels.zip(each()).for_each(|((x, y), (scale, shift))| rowmath::affine(x, scale, shift, y));
                });
            }
        }
    });
}

/// Gradients of [`grouped_norm`] from its input and the statistics it left: `dx`, `dweight`, `dbias`.
///
/// # Errors
/// If dims or dtypes do not match, a tensor is not contiguous, or there is no memory.
pub fn grouped_norm_grad(
    dy: &View,
    x: &View,
    [mean, rstd]: [&View; 2],
    weight: Option<&View>,
    [dx, dweight, dbias]: [&View; 3],
) -> Result<()> {
    let parameters = [("weight", weight), ("dweight", Some(dweight)), ("dbias", Some(dbias))];
    let sizes = check(x, &[("dy", dy), ("dx", dx)], &[("mean", mean), ("rstd", rstd)], &parameters)?;
    with_acc!(x.dtype(), backward(&sizes, dy, x, [mean, rstd], weight, [dx, dweight, dbias]))
}

/// The sums of dy and of `dy (x - mean) rstd` of each channel of a row.
fn channel_sums<A: Acc>(s: &Sizes, dy: &[A], x: &[A], mean: A, rstd: A, sums: &mut [[A; 2]]) {
    centred_sums(s, dy, x, mean, sums);
    for (c, [_, product]) in sums.iter_mut().enumerate() {
        *product = *product * rstd;
        if !finite(*product) {
            // By the definition: where (x - mean) rstd is zero an infinity is NaN.
            let of_channel = c * s.inner..(c + 1) * s.inner;
            *product = of_channel.fold(A::ZERO, |sum, i| sum + dy[i] * ((x[i] - mean) * rstd));
        }
    }
}

/// The sums of dy and of `dy (x - mean)` of each channel of a row.
fn centred_sums<A: Acc>(s: &Sizes, dy: &[A], x: &[A], mean: A, sums: &mut [[A; 2]]) {
    if s.inner >= SHORT {
        for ((dy, x), sums) in dy.chunks(s.inner).zip(x.chunks(s.inner)).zip(sums) {
            let (one, product) = rowmath::centred_sums(dy, x, mean);
            *sums = [one, product];
        }
        return;
    }
    for (c, sums) in sums.iter_mut().enumerate() {
        *sums = (c * s.inner..(c + 1) * s.inner)
            .fold([A::ZERO; 2], |[one, product], i| [one + dy[i], product + dy[i] * (x[i] - mean)]);
    }
}

fn backward<A: Acc>(
    s: &Sizes,
    dy: &View,
    x: &View,
    [mean, rstd]: [&View; 2],
    weight: Option<&View>,
    [dx, dweight, dbias]: [&View; 3],
) -> Result<()> {
    let all = s.groups * s.channels;
    let w = numbers(weight, all, A::ONE);
    let (means, rstds) = (numbers(Some(mean), s.rows(), A::ZERO), numbers(Some(rstd), s.rows(), A::ZERO));
    let (n, plain) = (A::from_f64(s.row() as f64), w.iter().all(|w| finite(*w)));
    let mut sums: Vec<[A; 2]> = vec![];
    let refused = |_| KernelError::out_of_memory("no memory for the sums of the channels of a group norm");
    sums.try_reserve_exact(s.batch * all).map_err(refused)?;
    sums.resize(s.batch * all, [A::ZERO; 2]);
    let shared = sums.as_mut_ptr() as usize;
    parallel_for(s.rows(), s.grain(), &|range| {
        let (mut a, mut b, mut to) = (vec![], vec![], vec![]);
        let mut spread: [Vec<A>; 3] = std::array::from_fn(|_| vec![]);
        for row in range {
            let w = &w[row % s.groups * s.channels..][..s.channels];
            let (m, r) = (means[row], rstds[row]);
            // SAFETY: a row of dy, x and dx and the sums of its channels, which this task alone writes.
            unsafe {
                let (dy, x) =
                    (read::<A>(dy, row * s.row(), s.row(), &mut a), read::<A>(x, row * s.row(), s.row(), &mut b));
                let sums = std::slice::from_raw_parts_mut((shared as *mut [A; 2]).add(row * s.channels), s.channels);
                channel_sums(s, dy, x, m, r, sums);
                // dx = r (g - Σ g / n - h Σ g h / n) with g = dy w and h = (x - m) r, as a dy + b x + c.
                let weighted = |i: usize| w.iter().zip(&*sums).fold(A::ZERO, |t, (w, s)| t + *w * s[i]);
                let by_x = -(r * r * weighted(1) / n);
                let add = -(r * weighted(0) / n) - m * by_x;
                let plain = plain && finite(by_x) && finite(add);
                write::<A>(dx, row * s.row(), s.row(), &mut to, |dx| {
                    if !plain {
                        let (g, gh) = (weighted(0) / n, weighted(1) / n);
                        return s.each(dx, |c, i| r * (dy[i] * w[c] - g - (x[i] - m) * r * gh));
                    }
                    if s.inner < SHORT {
                        s.spread(w.iter().map(|w| *w * r), &mut spread[0]);
                        s.spread(w.iter().map(|_| by_x), &mut spread[1]);
                        s.spread(w.iter().map(|_| add), &mut spread[2]);
                        return rowmath::combined_each(dy, x, [&spread[0], &spread[1], &spread[2]], dx);
                    }
                    let channels = dy.chunks(s.inner).zip(x.chunks(s.inner)).zip(dx.chunks_mut(s.inner));
                    channels.zip(w).for_each(|(((dy, x), dx), w)| rowmath::combined(dy, x, [*w * r, by_x, add], dx));
                });
            }
        }
    });
    // Image by image, whatever the threads.
    let mut totals = [vec![A::ZERO; all], vec![A::ZERO; all]];
    // Nothing has no statistics, and gives nothing.
    let some = if s.inner > 0 { sums.as_slice() } else { &[] };
    for (row, sums) in some.chunks(s.channels.max(1)).enumerate() {
        for (c, [one, product]) in (row % s.groups * s.channels..).zip(sums) {
            totals[0][c] = totals[0][c] + *product;
            totals[1][c] = totals[1][c] + *one;
        }
    }
    for (to, from) in [(dweight, &totals[0]), (dbias, &totals[1])] {
        // SAFETY: the elements of a contiguous output.
        unsafe { store(to.dtype(), to.ptr(), 1, from) };
    }
    Ok(())
}
