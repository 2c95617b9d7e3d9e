//! Functions of f32 whose loop is not the one of f64: straight-line code that the compiler makes vectors of.
//!
//! A function of [`crate::special`] is computed in f64, with branches and loops, a number at a time. Here is the same for f32: all
//! parts of the function are computed for every number and one of them is chosen, in f64 wherever digits cancel. Polynomials need
//! fewer terms than there: their error, 1e-9 or less of the value, is lost when it is rounded to f32. Near a zero that has no factor
//! of its own (those of Bessel functions beyond 8, of `y0` and `y1`, of `lgamma` and `digamma`) it is that of f64, 1e-14 or less.
//!
//! A function says beside its value whether that holds: where not (numbers too large, infinities, a case that is rare), the loop asks
//! the function that the row names first, for this element alone. So a value depends on its arguments only.
//!
//! Polynomials interpolate at Chebyshev nodes, computed with 40 digits, in `t` of -1 to 1, coefficients from the constant term up.

mod arithmetic;
mod bessel;
mod error;
mod gamma;

pub(crate) use arithmetic::{floor_div, fmod, remainder};
pub(crate) use bessel::{bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e, bessel_y0, bessel_y1};
pub(crate) use bessel::{i0, i0e, i1, i1e, spherical_j0};
pub(crate) use error::{erfcx, erfinv, ndtri};
pub(crate) use gamma::{digamma, lgamma, polygamma};

use crate::vmath::Real;

/// The polynomial by its even and odd coefficients: two chains of operations of half the length, which the CPU runs beside each other.
#[inline(always)]
fn polynomial<T: Real, const N: usize>(t: T, c: &[T; N]) -> T {
    let square = t * t;
    let (mut sums, mut i) = ([T::ZERO; 2], N);
    while i > 0 {
        i -= 1;
        sums[i % 2] = sums[i % 2] * square + c[i];
    }
    sums[1] * t + sums[0]
}
