//! Pairs of numbers of spectra, a vector of them at a time.

use super::lane::{Lane, instructions, parts, parts_mut};
use crate::halves::{self, Number, Pairwise};
use pulp::NullaryFnOnce;
use pulp::x86::V4;
use rustfft::num_complex::Complex as Z;
use std::ops::{Add, Mul, Sub};

/// A vector with its arithmetic.
#[derive(Clone, Copy)]
struct Vector<T: Lane>(V4, T::V);

impl<T: Lane> Number for Vector<T> {}

macro_rules! arithmetic {
    ($($operator:ident $method:ident $of:ident),*) => {$(
        impl<T: Lane> $operator for Vector<T> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Vector(self.0, T::$of(self.0, self.1, other.1))
            }
        }
    )*};
}
arithmetic!(Add add plus, Sub sub minus, Mul mul times);

/// The function of one pair that is applied to all.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    Spectrum,
    Pairs,
}

/// Turns the pairs that fill vectors, the rest by `rest`.
pub(crate) fn pairwise<T: Lane>(
    of: Of,
    rest: Pairwise<T>,
    (low, high): (&mut [Z<T>], &mut [Z<T>]),
    roots: &[Z<T>],
    factor: T,
) {
    let vectors = instructions();
    let whole = if vectors.is_some() { roots.len() / T::LANES * T::LANES } else { 0 };
    let (near, low) = low.split_at_mut(whole);
    let (high, far) = high.split_at_mut(high.len() - whole);
    if let Some(s) = vectors {
        s.vectorize(Call { s, of, low: near, high: far, roots: &roots[..whole], factor });
    }
    rest(low, high, &roots[whole..], factor);
}

struct Call<'a, T: Lane> {
    s: V4,
    of: Of,
    low: &'a mut [Z<T>],
    high: &'a mut [Z<T>],
    roots: &'a [Z<T>],
    factor: T,
}

impl<T: Lane> NullaryFnOnce for Call<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match self.of {
            Of::Spectrum => self.each(halves::of_spectrum),
            Of::Pairs => self.each(halves::of_pairs),
        }
    }
}

impl<T: Lane> Call<'_, T> {
    #[inline(always)]
    fn each(self, f: impl Fn([Z<Vector<T>>; 2], Z<Vector<T>>, Vector<T>) -> [Z<Vector<T>>; 2]) {
        let (s, step) = (self.s, 2 * T::LANES);
        let factor = Vector(s, T::splat(s, self.factor));
        let (low, high) = (parts_mut(self.low).chunks_exact_mut(step), parts_mut(self.high).rchunks_exact_mut(step));
        for ((low, high), w) in low.zip(high).zip(parts(self.roots).chunks_exact(step)) {
            let b = read(s, high);
            let b = Z { re: Vector(s, T::reversed(s, b.re.1)), im: Vector(s, T::reversed(s, b.im.1)) };
            let [a, b] = f([read(s, low), b], read(s, w), factor);
            T::store(T::join(s, [a.re.1, a.im.1]), low);
            T::store(T::join(s, [T::reversed(s, b.re.1), T::reversed(s, b.im.1)]), high);
        }
    }
}

/// A vector of complex numbers that lie one after the other.
#[inline(always)]
fn read<T: Lane>(s: V4, x: &[T]) -> Z<Vector<T>> {
    let [re, im] = T::split(s, [T::load(x), T::load(&x[T::LANES..])]);
    Z { re: Vector(s, re), im: Vector(s, im) }
}
