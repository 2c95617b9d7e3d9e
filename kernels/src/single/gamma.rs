//! The logarithm of the gamma function and its first two derivatives.
//!
//! Below 8 the recurrence to the argument that is 8 larger: the product of the eight factors, and what its derivatives make of it, cost
//! one division instead of eight. From there on the asymptotic series, and below 0 reflection. Near the zeros the f64 numbers have
//! digits enough.

use super::polynomial;
use crate::vmath::Real;
use std::f64::consts::PI;

/// From here on the asymptotic series.
const FAR: f64 = 8.0;

/// `log(2 pi) / 2`
const HALF_LOG_TAU: f64 = 0.9189385332046727;

/// Coefficients of Stirling's series (5.11.1), of the one of digamma (5.11.2), and `B(2k)` of its derivative.
const STIRLING: [f64; 7] =
    [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0];
const DIGAMMA: [f64; 7] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
const BERNOULLI: [f64; 6] = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0];

/// A number of at least 8, and the product that leads to it with two derivatives: 1, 0 and 0 from 8 on. The factors are taken in
/// pairs, `(a + k) (a + 7 - k)` is `a (a + 7) + k (7 - k)`.
#[inline(always)]
fn raised(a: f64) -> (f64, [f64; 3]) {
    let (square, slope) = (a * (a + 7.0), 2.0 * a + 7.0);
    // By the square: the product with its two derivatives.
    let (mut p, mut d, mut e) = (square, 1.0, 0.0);
    for by in [square + 6.0, square + 10.0, square + 12.0] {
        e = e * by + 2.0 * d;
        d = d * by + p;
        p *= by;
    }
    if a < FAR { (a + FAR, [p, d * slope, e * (slope * slope) + 2.0 * d]) } else { (a, [1.0, 0.0, 0.0]) }
}

/// Sine and cosine of `pi a` for `a` from 0 on, up to a common sign: the sine is 0 of whole numbers.
#[inline(always)]
fn turns(a: f64) -> (f64, f64) {
    (PI * (a - a.round_ties_even())).sin_cos_fast()
}

#[inline(always)]
pub(crate) fn lgamma(x: f32) -> (f32, bool) {
    let a = x.abs() as f64;
    let (z, [p, ..]) = raised(a);
    let r = 1.0 / z;
    let series = (z - 0.5) * Real::log(z) - z + HALF_LOG_TAU + r * polynomial(r * r, &STIRLING);
    // gamma(-a) is pi / (a sin(pi a) gamma(a)), up to the sign (5.5.3).
    let by = p * if x < 0.0 { PI / (a * turns(a).0.abs()) } else { 1.0 };
    let y = series - Real::log(by);
    // A zero is one to the last digit.
    let y = if (x == 1.0) | (x == 2.0) { 0.0 } else { y };
    ((if x < 0.0 { -y } else { y }) as f32, a < f64::INFINITY)
}

#[inline(always)]
pub(crate) fn digamma(x: f32) -> (f32, bool) {
    let a = x.abs() as f64;
    let (z, [p, d, _]) = raised(a);
    let r = 1.0 / z;
    let w = r * r;
    let y = Real::log(z) - 0.5 * r - w * polynomial(w, &DIGAMMA) - d / p;
    let (sin, cos) = turns(a);
    let below = y + 1.0 / a + PI * cos / sin;
    let below = if sin == 0.0 { f64::NAN } else { below };
    let y = if x < 0.0 { below } else { y };
    let y = if x == 0.0 { f32::INFINITY.copysign(-x) } else { y as f32 };
    (y, a < f64::INFINITY)
}

/// Of order 1; another one does not hold.
#[inline(always)]
pub(crate) fn polygamma(n: f32, x: f32) -> (f32, bool) {
    let a = x.abs() as f64;
    let (z, [p, d, e]) = raised(a);
    let (r, by) = (1.0 / z, 1.0 / p);
    let w = r * r;
    // The sum of the squares of reciprocals is what the logarithm's second derivative gives.
    let first = d * by;
    let y = r + 0.5 * w + w * r * polynomial(w, &BERNOULLI) + (first * first - e * by);
    let (sin, own) = (turns(a).0, 1.0 / a);
    let below = (PI / sin) * (PI / sin) - (y - own * own);
    let y = if x < 0.0 { below } else { y };
    (if x == 0.0 { f32::INFINITY } else { y as f32 }, (n == 1.0) & (a < f64::INFINITY))
}
