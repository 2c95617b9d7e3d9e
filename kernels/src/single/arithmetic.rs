//! Remainders.

use crate::expr::{floor_div_of, remainder_of};

/// Quotients below this have a part behind the point, or are whole, in f64 too: the exact one is at least `2^-24` away from a whole
/// number that it is not, and rounding moves it by less than `2^-25`.
const MOST: f64 = (1u64 << 28) as f64;

/// C's `fmod`. Product and difference are exact: the whole quotient has 28 bits and the divisor 24.
#[inline(always)]
pub(crate) fn fmod(a: f32, b: f32) -> (f32, bool) {
    let (x, y) = (a as f64, b as f64);
    let q = x / y;
    let r = (x - q.trunc() * y) as f32;
    (r.copysign(a), (q.abs() < MOST) & (b.abs() < f32::INFINITY))
}

/// Python's `a % b`.
#[inline(always)]
pub(crate) fn remainder(a: f32, b: f32) -> (f32, bool) {
    let (r, holds) = fmod(a, b);
    (remainder_of(b, r), holds)
}

/// Python's `a // b`.
#[inline(always)]
pub(crate) fn floor_div(a: f32, b: f32) -> (f32, bool) {
    let (r, holds) = fmod(a, b);
    (floor_div_of(a, b, r), holds)
}
