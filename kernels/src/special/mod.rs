//! Special functions of real numbers: gamma, error and Bessel functions, orthogonal polynomials.
//!
//! Everything is computed in f64, with branches and loops, one number at a time: the parts of a function (series, continued fractions,
//! tables of Chebyshev coefficients) differ so much that computing all of them for a whole vector would be slower. The loops of
//! `cpu/elementwise/loops.rs` call a function through a pointer: a new row costs no loop of its own. f32 numbers are rounded once, so
//! they are right to half a unit of the last place nearly everywhere; for f32, much of this is also in [`crate::single`], in shorter
//! polynomials and without branches.
//!
//! The crate `libm` (a port of musl) has `lgamma`, `tgamma`, `erf`, `erfc`, `j0`, `j1`, `y0` and `y1`. The rest is here. Tables were
//! computed with 60 digits from the definitions in the comments; numbers in parentheses are formulas of the DLMF, <https://dlmf.nist.gov>.
//! `kernels/cuda/special.cuh` is the same for GPUs, and its test compares both.
//!
//! Values at poles and outside of the domain are PyTorch's. At infinity they are the limits, where PyTorch has NaN.

mod airy;
mod bessel;
mod error;
mod gamma;
mod incomplete;
mod parts;
mod polynomials;

pub(crate) use airy::airy_ai;
pub(crate) use bessel::{bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e, bessel_y0, bessel_y1};
pub(crate) use bessel::{i0, i0e, i1, i1e, spherical_j0};
pub(crate) use error::{erfcx, erfinv, ndtri};
pub(crate) use gamma::{digamma, lgamma, polygamma, zeta};
pub(crate) use incomplete::{igamma, igamma_of_single, igammac, igammac_of_single};
pub(crate) use parts::{exponent, mantissa};
pub(crate) use polynomials::*;

/// The sum of coefficients times Chebyshev polynomials of the first kind in `t`, by Clenshaw's recurrence.
fn chebyshev(t: f64, coefficients: &[f64]) -> f64 {
    let (mut b, mut before) = (0.0, 0.0);
    for c in coefficients[1..].iter().rev() {
        (b, before) = (2.0 * t * b - before + c, b);
    }
    t * b - before + coefficients[0]
}

/// The polynomial in `x` of these coefficients, from the constant term up.
fn horner(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// `exp(sign x²)`, with the digits that rounding the square would lose: the upper half of the digits has an exact square.
fn exp_square(x: f64, sign: f64) -> f64 {
    let high = f64::from_bits(x.to_bits() & !0x07ff_ffff);
    (sign * high * high).exp() * (sign * (x - high) * (x + high)).exp()
}
