//! Transforms of n real numbers by complex ones of half the length (Sorensen, Jones, Heideman and Burrus, "Real-valued fast Fourier
//! transform algorithms", 1987): numbers of even and of odd places are the real and the imaginary parts.

use multiversion::multiversion;
use rustfft::FftNum;
use rustfft::num_complex::Complex as Z;
use std::ops::{Add, Mul, Sub};

/// Numbers, or vectors of them, with arithmetic.
pub(crate) trait Number: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {}

impl Number for f32 {}
impl Number for f64 {}

/// The real and the imaginary part of `exp(-2πi k / n)`.
pub(crate) fn root<T: FftNum>(k: usize, n: usize) -> [T; 2] {
    let (sin, cos) = (std::f64::consts::TAU * (k % n) as f64 / n as f64).sin_cos();
    [cos, -sin].map(|x| T::from_f64(x).unwrap_or_else(T::zero))
}

/// The numbers below the middle, the one there, and those above.
type Parts<'a, T> = (&'a mut [Z<T>], Option<&'a mut Z<T>>, &'a mut [Z<T>]);

/// The numbers k from 1 on and m - k, a pair for each root, and the one in the middle, if there is one.
fn pairs<T>(z: &mut [Z<T>], roots: usize) -> Parts<'_, T> {
    let m = z.len() - 1;
    let (low, rest) = z[1..m.max(1)].split_at_mut(roots);
    let (middle, high) = rest.split_at_mut(rest.len() - roots);
    (low, middle.first_mut(), high)
}

/// The numbers k and m - k of the spectrum of real numbers, from those of the spectrum of pairs. The root is `exp(-2πi k / n)`.
#[inline(always)]
pub(crate) fn of_spectrum<N: Number>([a, b]: [Z<N>; 2], w: Z<N>, half: N) -> [Z<N>; 2] {
    // Those of the even places, and those of the odd ones turned by the root.
    let even = Z { re: (a.re + b.re) * half, im: (a.im - b.im) * half };
    let odd = Z { re: (a.im + b.im) * half, im: (b.re - a.re) * half };
    let odd = Z { re: odd.re * w.re - odd.im * w.im, im: odd.re * w.im + odd.im * w.re };
    [Z { re: even.re + odd.re, im: even.im + odd.im }, Z { re: even.re - odd.re, im: odd.im - even.im }]
}

/// The inverse of [`of_spectrum`].
#[inline(always)]
pub(crate) fn of_pairs<N: Number>([a, b]: [Z<N>; 2], w: Z<N>, factor: N) -> [Z<N>; 2] {
    let even = Z { re: (a.re + b.re) * factor, im: (a.im - b.im) * factor };
    let apart = Z { re: (a.re - b.re) * factor, im: (a.im + b.im) * factor };
    let odd = Z { re: apart.re * w.re + apart.im * w.im, im: apart.im * w.re - apart.re * w.im };
    [Z { re: even.re - odd.im, im: even.im + odd.re }, Z { re: even.re + odd.im, im: odd.re - even.im }]
}

/// A function that turns pairs of numbers, the second of which lie in the opposite order, with their roots and a factor.
pub(crate) type Pairwise<T> = fn(&mut [Z<T>], &mut [Z<T>], &[Z<T>], T);

/// From the transform of the m complex numbers to the first m + 1 of that of the n = 2m real ones, times a factor. `z` has room for one more
/// than there are numbers.
pub(crate) fn to_spectrum<T: FftNum>(z: &mut [Z<T>], roots: &[Z<T>], factor: T, pairwise: Pairwise<T>) {
    let (m, first) = (z.len() - 1, z[0]);
    z[0] = Z { re: (first.re + first.im) * factor, im: T::zero() };
    z[m] = Z { re: (first.re - first.im) * factor, im: T::zero() };
    let (low, middle, high) = pairs(z, roots.len());
    if let Some(z) = middle {
        *z = Z { re: z.re * factor, im: -z.im * factor };
    }
    pairwise(low, high, roots, factor / (T::one() + T::one()));
}

/// From the first m + 1 numbers of the transform of n = 2m real ones to m, whose transform back are these in pairs, times a factor.
pub(crate) fn from_spectrum<T: FftNum>(z: &mut [Z<T>], roots: &[Z<T>], factor: T, pairwise: Pairwise<T>) {
    let m = z.len() - 1;
    let (a, b) = (z[0].re * factor, z[m].re * factor);
    z[0] = Z { re: a + b, im: a - b };
    let (low, middle, high) = pairs(z, roots.len());
    if let Some(z) = middle {
        *z = Z { re: (z.re + z.re) * factor, im: -(z.im + z.im) * factor };
    }
    pairwise(low, high, roots, factor);
}

macro_rules! compiled {
    ($($name:ident = $each:ident of $t:ty;)*) => {$(
        /// See the function of one pair.
        #[multiversion(targets("x86_64+avx2+fma"))]
        pub(crate) fn $name(low: &mut [Z<$t>], high: &mut [Z<$t>], roots: &[Z<$t>], factor: $t) {
            for ((low, high), w) in low.iter_mut().zip(high.iter_mut().rev()).zip(roots) {
                [*low, *high] = $each([*low, *high], *w, factor);
            }
        }
    )*};
}
compiled! {
    all_of_spectrum_f32 = of_spectrum of f32;
    all_of_spectrum_f64 = of_spectrum of f64;
    all_of_pairs_f32 = of_pairs of f32;
    all_of_pairs_f64 = of_pairs of f64;
}
