//! Batch norm: each channel, dim 1 of `[n, c, …]`, with mean 0 and variance 1 over all other dims, with gradients. All tensors are
//! contiguous.

use super::acc::{Acc, finite, numbers, read, store, with_acc, write};
use super::rowmath;
use super::rows::check_norm;
use crate::parallel::{GRAIN, parallel_for};
use crate::{KernelError, Result, View};
use std::sync::Mutex;

/// Channels with fewer elements side by side are read across instead.
const SHORT: usize = 16;

/// Sizes of a call.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) batch: usize,
    pub(crate) channels: usize,
    /// Elements of a channel that lie side by side.
    pub(crate) inner: usize,
}

/// Checks that `others` are like x, and that numbers of channels are what they say.
pub(crate) fn check(
    x: &View,
    others: &[(&str, &View)],
    statistics: &[(&str, &View)],
    parameters: &[(&str, Option<&View>)],
) -> Result<Sizes> {
    let [batch, channels, inner @ ..] = x.dims() else {
        return Err(KernelError::new(format!("needs at least 2 dims, not {:?}", x.dims())));
    };
    check_norm(x, others, (statistics, &[*channels]), (parameters, &[*channels]))?;
    Ok(Sizes { batch: *batch, channels: *channels, inner: inner.iter().product() })
}

impl Sizes {
    fn count(&self) -> usize {
        self.batch * self.inner
    }
    fn short(&self) -> bool {
        self.inner < SHORT
    }
    /// Calls `run` for all channels, in parallel, and gathers what it gives.
    fn channels<A: Acc, const N: usize>(&self, run: &(dyn Fn(usize) -> [A; N] + Sync)) -> [Vec<A>; N] {
        let found = Mutex::new(std::array::from_fn(|_| vec![A::ZERO; self.channels]));
        parallel_for(self.channels, (GRAIN / self.count().max(1)).max(1), &|range| {
            let all: Vec<[A; N]> = range.clone().map(run).collect();
            let mut found: std::sync::MutexGuard<'_, [Vec<A>; N]> =
                found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            for (c, numbers) in range.zip(all) {
                (0..N).for_each(|i| found[i][c] = numbers[i]);
            }
        });
        found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
    /// Calls `run(first element, channel or none, n)` for all pieces of x: a piece is a part of one channel, or with short ones a whole
    /// image.
    fn pieces(&self, run: &(dyn Fn(usize, Option<usize>) + Sync)) {
        let (count, each) = match self.short() {
            true => (self.batch, self.channels * self.inner),
            false => (self.batch * self.channels, self.inner),
        };
        parallel_for(count, (GRAIN / each.max(1)).max(1), &|range| {
            for piece in range {
                run(piece * each, (!self.short()).then(|| piece % self.channels));
            }
        });
    }
    /// Computes the elements of a piece again, `of(channel, element)`, whose channels are not plain: by the definition, because the same as a
    /// sum of products may be infinity minus infinity.
    fn again<A: Acc>(
        &self,
        channel: Option<usize>,
        plain: impl Fn(usize) -> bool,
        to: &mut [A],
        of: impl Fn(usize, usize) -> A,
    ) {
        for (i, to) in to.iter_mut().enumerate() {
            let c = channel.unwrap_or(i / self.inner.max(1));
            if !plain(c) {
                *to = of(c, i);
            }
        }
    }
    /// A number for each element of an image.
    fn spread<A: Acc>(&self, numbers: &[A]) -> Vec<A> {
        match self.short() {
            true => numbers.iter().flat_map(|n| std::iter::repeat_n(*n, self.inner)).collect(),
            false => vec![],
        }
    }
    /// Sums over the images, then over the columns of each channel: in f64, because the error of an f32 that is added to again and again
    /// grows with their number.
    fn columns(&self, row: &mut dyn FnMut(usize, &mut [f64])) -> Vec<f64> {
        let mut sums = vec![0.0; self.channels * self.inner];
        (0..self.batch).for_each(|n| row(n * sums.len(), &mut sums));
        let channel = |c: usize| &sums[c * self.inner..(c + 1) * self.inner];
        (0..self.channels).map(|c| channel(c).iter().sum()).collect()
    }
}

/// `y = (x - mean) / sqrt(var + eps) * weight + bias` with mean and biased variance of each channel.
///
/// # Errors
/// If dims or dtypes do not match, or a tensor is not contiguous.
pub fn batch_norm(
    x: &View,
    weight: Option<&View>,
    bias: Option<&View>,
    eps: f64,
    y: &View,
    mean: &View,
    var: &View,
) -> Result<()> {
    let sizes = check(x, &[("y", y)], &[("mean", mean), ("var", var)], &[("weight", weight), ("bias", bias)])?;
    with_acc!(x.dtype(), forward(&sizes, x, weight, bias, eps, y, mean, var));
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
    var: &View,
) {
    let n = A::from_f64(s.count() as f64);
    let [means, vars] = match s.short() {
        true => {
            let (mut buffer, width) = (vec![], s.channels * s.inner);
            // SAFETY (both): an image of x.
            let sums = s.columns(&mut |at, sums| rowmath::add(unsafe { read::<A>(x, at, width, &mut buffer) }, sums));
            let count = s.count() as f64;
            let means: Vec<A> = sums.iter().map(|s| A::from_f64(s / count)).collect();
            let centres = s.spread(&means);
            let squares = s.columns(&mut |at, sums| {
                rowmath::add_squares(unsafe { read::<A>(x, at, width, &mut buffer) }, &centres, sums)
            });
            [means, squares.iter().map(|s| A::from_f64(s / count)).collect()]
        }
        false => s.channels(&|c| {
            let mut buffer = vec![];
            let (mut mean, mut squares, mut seen) = (A::ZERO, A::ZERO, 0.0);
            for image in 0..s.batch {
                // SAFETY: the elements of a channel of an image.
                let (m, v) =
                    rowmath::moments(unsafe { read::<A>(x, (image * s.channels + c) * s.inner, s.inner, &mut buffer) });
                // The mean and the squared distances of what was seen and of this (Chan, Golub, LeVeque).
                let (size, all) = (s.inner as f64, seen + s.inner as f64);
                let d = m - mean;
                mean = mean + d * A::from_f64(size / all);
                squares = squares + v * A::from_f64(size) + d * d * A::from_f64(seen * size / all);
                seen = all;
            }
            if !finite(mean) {
                // An infinite mean was subtracted from others: NaN, where the sum is infinite.
                // SAFETY: as above.
                let sums = (0..s.batch).map(|image| {
                    rowmath::sum(unsafe { read::<A>(x, (image * s.channels + c) * s.inner, s.inner, &mut buffer) })
                });
                mean = sums.fold(A::ZERO, |a, b| a + b) / n;
            }
            // Of nothing there is no mean.
            if s.batch == 0 { [A::ZERO / n, A::ZERO / n] } else { [mean, squares / n] }
        }),
    };
    let (w, bias) = (numbers(weight, s.channels, A::ONE), numbers(bias, s.channels, A::ZERO));
    let rstd = |c: usize| A::ONE / (vars[c] + A::from_f64(eps)).sqrt();
    let scale: Vec<A> = (0..s.channels).map(|c| w[c] / (vars[c] + A::from_f64(eps)).sqrt()).collect();
    let shift: Vec<A> = (0..s.channels).map(|c| bias[c] - means[c] * scale[c]).collect();
    for (to, from) in [(mean, &means), (var, &vars)] {
        // SAFETY: the elements of a contiguous output.
        unsafe { store(to.dtype(), to.ptr(), 1, from) };
    }
    let (scales, shifts) = (s.spread(&scale), s.spread(&shift));
    let plain = |c: usize| finite(w[c]);
    let all_plain = (0..s.channels).all(plain);
    s.pieces(&|at, channel| {
        let (mut a, mut b) = (vec![], vec![]);
        let n = if channel.is_some() { s.inner } else { scales.len() };
        // SAFETY: elements of x and y that are this piece's alone.
        unsafe {
            let x = read::<A>(x, at, n, &mut a);
            write::<A>(y, at, n, &mut b, |y| {
                match channel {
                    Some(c) => rowmath::affine(x, scale[c], shift[c], y),
                    None => rowmath::affines(x, &scales, &shifts, y),
                }
                if !all_plain {
                    s.again(channel, plain, y, |c, i| (x[i] - means[c]) * rstd(c) * w[c] + bias[c]);
                }
            });
        }
    });
}

/// Gradients of [`batch_norm`] from its input and the statistics it left: `dx`, `dweight`, `dbias`.
///
/// # Errors
/// If dims or dtypes do not match, or a tensor is not contiguous.
pub fn batch_norm_grad(
    dy: &View,
    x: &View,
    [mean, var]: [&View; 2],
    weight: Option<&View>,
    eps: f64,
    [dx, dweight, dbias]: [&View; 3],
) -> Result<()> {
    let others = [("dy", dy), ("dx", dx)];
    let parameters = [("weight", weight), ("dweight", Some(dweight)), ("dbias", Some(dbias))];
    let sizes = check(x, &others, &[("mean", mean), ("var", var)], &parameters)?;
    with_acc!(x.dtype(), backward(&sizes, dy, x, [mean, var], weight, eps, [dx, dweight, dbias]));
    Ok(())
}

fn backward<A: Acc>(
    s: &Sizes,
    dy: &View,
    x: &View,
    [mean, var]: [&View; 2],
    weight: Option<&View>,
    eps: f64,
    [dx, dweight, dbias]: [&View; 3],
) {
    let n_all = A::from_f64(s.count() as f64);
    let (means, vars) = (numbers(Some(mean), s.channels, A::ZERO), numbers(Some(var), s.channels, A::ZERO));
    let rstd: Vec<A> = vars.iter().map(|v| A::ONE / (*v + A::from_f64(eps)).sqrt()).collect();
    // Sums of dy, and of dy (x - mean).
    let [sums, products] = match s.short() {
        true => {
            let (mut a, mut b, width) = (vec![], vec![], s.channels * s.inner);
            let centres = s.spread(&means);
            // SAFETY (all): an image of x and dy.
            let sums = s.columns(&mut |at, sums| rowmath::add(unsafe { read::<A>(dy, at, width, &mut a) }, sums));
            let products = s.columns(&mut |at, sums| {
                let (dy, x) = unsafe { (read::<A>(dy, at, width, &mut a), read::<A>(x, at, width, &mut b)) };
                rowmath::add_centred_products(dy, x, &centres, sums);
            });
            [sums, products].map(|s| s.into_iter().map(A::from_f64).collect())
        }
        false => s.channels(&|c| {
            let (mut a, mut b) = (vec![], vec![]);
            (0..s.batch).fold([A::ZERO; 2], |[sum, product], image| {
                let at = (image * s.channels + c) * s.inner;
                // SAFETY: the elements of a channel of an image.
                let (dy, x) = unsafe { (read::<A>(dy, at, s.inner, &mut a), read::<A>(x, at, s.inner, &mut b)) };
                let (one, other) = rowmath::centred_sums(dy, x, means[c]);
                [sum + one, product + other]
            })
        }),
    };
    let w = numbers(weight, s.channels, A::ONE);
    // Σ dy h with h = (x - mean) rstd. By the definition where it is not finite: where h is zero an infinity is NaN.
    let by_definition = |c: usize| {
        let (mut a, mut b) = (vec![], vec![]);
        (0..s.batch).fold(A::ZERO, |sum, image| {
            let at = (image * s.channels + c) * s.inner;
            // SAFETY: the elements of a channel of an image.
            let (dy, x) = unsafe { (read::<A>(dy, at, s.inner, &mut a), read::<A>(x, at, s.inner, &mut b)) };
            dy.iter().zip(x).fold(sum, |sum, (dy, x)| sum + *dy * ((*x - means[c]) * rstd[c]))
        })
    };
    let product = |c: usize| Some(products[c] * rstd[c]).filter(|p| finite(*p));
    let dw: Vec<A> = (0..s.channels).map(|c| product(c).unwrap_or_else(|| by_definition(c))).collect();
    // dx = rstd w (dy - sum / n - h dw / n), as a dy + b x + c.
    let by_dy: Vec<A> = (0..s.channels).map(|c| w[c] * rstd[c]).collect();
    let by_x: Vec<A> = (0..s.channels).map(|c| -(by_dy[c] * rstd[c] * dw[c] / n_all)).collect();
    let add: Vec<A> = (0..s.channels).map(|c| -(by_dy[c] * sums[c] / n_all) - means[c] * by_x[c]).collect();
    for (to, from) in [(dweight, &dw), (dbias, &sums)] {
        // SAFETY: the elements of a contiguous output.
        unsafe { store(to.dtype(), to.ptr(), 1, from) };
    }
    let all = [s.spread(&by_dy), s.spread(&by_x), s.spread(&add)];
    let plain = |c: usize| finite(by_dy[c]) && finite(by_x[c]) && finite(add[c]);
    let all_plain = (0..s.channels).all(plain);
    s.pieces(&|at, channel| {
        let (mut a, mut b, mut buffer) = (vec![], vec![], vec![]);
        let n = if channel.is_some() { s.inner } else { all[0].len() };
        // SAFETY: elements of dy, x and dx that are this piece's alone.
        unsafe {
            let (dy, x) = (read::<A>(dy, at, n, &mut a), read::<A>(x, at, n, &mut b));
            write::<A>(dx, at, n, &mut buffer, |dx| {
                match channel {
                    Some(c) => rowmath::combined(dy, x, [by_dy[c], by_x[c], add[c]], dx),
                    None => rowmath::combined_each(dy, x, [&all[0], &all[1], &all[2]], dx),
                }
                if !all_plain {
                    s.again(channel, plain, dx, |c, i| {
                        let h = (x[i] - means[c]) * rstd[c];
                        (dy[i] - sums[c] / n_all - h * (dw[c] / n_all)) * rstd[c] * w[c]
                    });
                }
            });
        }
    });
}
