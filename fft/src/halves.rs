//! Transforms of n real numbers by complex ones of half the length (Sorensen, Jones, Heideman and Burrus, "Real-valued fast Fourier
//! transform algorithms", 1987): numbers of even and of odd places are the real and the imaginary parts.

use multiversion::multiversion;
use rustfft::num_complex::Complex as Z;
use std::ops::{Add, Mul, Neg, Sub};

/// The arithmetic of both functions.
pub(crate) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    const ZERO: Self;
    const HALF: Self;
}

impl Number for f32 {
    const ZERO: f32 = 0.0;
    const HALF: f32 = 0.5;
}
impl Number for f64 {
    const ZERO: f64 = 0.0;
    const HALF: f64 = 0.5;
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

/// From the transform of the m complex numbers to the first m + 1 of that of the n = 2m real ones, times a factor. `z` has room for one more
/// than there are numbers.
#[inline(always)]
fn to_spectrum<T: Number>(z: &mut [Z<T>], roots: &[Z<T>], factor: T) {
    let (m, first, half) = (z.len() - 1, z[0], factor * T::HALF);
    z[0] = Z { re: (first.re + first.im) * factor, im: T::ZERO };
    z[m] = Z { re: (first.re - first.im) * factor, im: T::ZERO };
    let (low, middle, high) = pairs(z, roots.len());
    if let Some(z) = middle {
        *z = Z { re: z.re * factor, im: -z.im * factor };
    }
    for ((low, high), w) in low.iter_mut().zip(high.iter_mut().rev()).zip(roots) {
        // Those of the even places, and those of the odd ones turned by the root.
        let (a, b) = (*low, *high);
        let even = Z { re: (a.re + b.re) * half, im: (a.im - b.im) * half };
        let odd = Z { re: (a.im + b.im) * half, im: (b.re - a.re) * half };
        let odd = Z { re: odd.re * w.re - odd.im * w.im, im: odd.re * w.im + odd.im * w.re };
        *low = Z { re: even.re + odd.re, im: even.im + odd.im };
        *high = Z { re: even.re - odd.re, im: odd.im - even.im };
    }
}

/// From the first m + 1 numbers of the transform of n = 2m real ones to m, whose transform back are these in pairs, times a factor.
#[inline(always)]
fn from_spectrum<T: Number>(z: &mut [Z<T>], roots: &[Z<T>], factor: T) {
    let m = z.len() - 1;
    let (a, b) = (z[0].re * factor, z[m].re * factor);
    z[0] = Z { re: a + b, im: a - b };
    let (low, middle, high) = pairs(z, roots.len());
    if let Some(z) = middle {
        *z = Z { re: (z.re + z.re) * factor, im: -(z.im + z.im) * factor };
    }
    for ((low, high), w) in low.iter_mut().zip(high.iter_mut().rev()).zip(roots) {
        let (a, b) = (*low, *high);
        let even = Z { re: (a.re + b.re) * factor, im: (a.im - b.im) * factor };
        let apart = Z { re: (a.re - b.re) * factor, im: (a.im + b.im) * factor };
        let odd = Z { re: apart.re * w.re + apart.im * w.im, im: apart.im * w.re - apart.re * w.im };
        *low = Z { re: even.re - odd.im, im: even.im + odd.re };
        *high = Z { re: even.re + odd.im, im: odd.re - even.im };
    }
}

macro_rules! compiled {
    ($($name:ident = $generic:ident of $t:ty;)*) => {$(
        /// See the generic function.
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        pub(crate) fn $name(z: &mut [Z<$t>], roots: &[Z<$t>], factor: $t) {
            $generic(z, roots, factor);
        }
    )*};
}
compiled! {
    to_spectrum_f32 = to_spectrum of f32;
    to_spectrum_f64 = to_spectrum of f64;
    from_spectrum_f32 = from_spectrum of f32;
    from_spectrum_f64 = from_spectrum of f64;
}
