//! The inverse functions of `erf` and of the normal distribution function, and `erfcx`.

use super::polynomial;
use crate::vmath::Real;
use std::f32::consts::SQRT_2;

/// `erfinv(x) / x` for w = `-log(1 - x²)` in `0..=6.25`, in `w - 1`: around there the terms of the polynomial cancel least. The last
/// digits are those of the least error.
const INVERSE_NEAR: [f32; 11] = [
    1.1273744,
    0.2478329,
    0.004250811,
    -0.002376405,
    9.99227e-05,
    3.839338e-05,
    -4.250782e-06,
    -6.9142874e-07,
    2.0437894e-07,
    -1.9447969e-08,
    6.983681e-10,
];

/// The same over `sqrt(w)`, in `1 / sqrt(w)` of `0.098..=0.4`: w up to 104.
const INVERSE_FAR: [f32; 12] = [
    0.9601442,
    -0.029950643,
    0.0017994115,
    0.0019597453,
    -0.00030853736,
    0.0004222094,
    0.00042012273,
    0.00018184792,
    -0.00020345821,
    -0.00017099372,
    3.61545e-05,
    4.808077e-05,
];

/// `(1 + 2x) erfcx(x)` in `(x - 3.75) / (x + 3.75)`.
const ERFCX: [f64; 16] = [
    1.2375126308071391,
    -0.14024059858572127,
    0.0035854194180316976,
    0.08227673851211012,
    -0.1088040132020334,
    0.0923043207359042,
    -0.05869272662880936,
    0.028362280234667626,
    -0.009749269540440022,
    0.0017556187138696323,
    0.0002996347778954181,
    -0.00029015332160598915,
    4.425238467474947e-05,
    2.241560132465326e-05,
    -6.344495523498326e-06,
    -1.0383432432734145e-06,
];

/// `scale` times `erfinv(x)`, of `x`, `1 - x²` and the square of the scale. In f32: neither form has digits that cancel. At the ends w is
/// infinite, beyond them NaN.
#[inline(always)]
fn inverse(x: f32, rest: f32, [scale, square]: [f32; 2]) -> f32 {
    let w = -Real::log(rest);
    let root = (w * square).sqrt();
    let near = x * scale * polynomial(w - 1.0, &INVERSE_NEAR);
    let far = x * (root * polynomial((scale / root - 0.249) * (1.0 / 0.151), &INVERSE_FAR));
    if w <= 6.25 { near } else { far }
}

#[inline(always)]
pub(crate) fn erfinv(x: f32) -> (f32, bool) {
    let a = x.abs();
    (inverse(x, (1.0 - a) * (1.0 + a), [1.0; 2]), true)
}

/// By `erfinv(2p - 1)`, whose distance to the nearer end is exact in `p`.
#[inline(always)]
pub(crate) fn ndtri(p: f32) -> (f32, bool) {
    let q = if p < 0.5 { p } else { 1.0 - p };
    (inverse(2.0 * (p - 0.5), 4.0 * q * (1.0 - q), [SQRT_2, 2.0]), true)
}

#[inline(always)]
pub(crate) fn erfcx(x: f32) -> (f32, bool) {
    let a = x.abs() as f64;
    let y = polynomial(1.0 - 7.5 / (a + 3.75), &ERFCX) / (1.0 + 2.0 * a);
    // The square is exact.
    let below = 2.0 * Real::exp(a * a) - y;
    ((if x < 0.0 { below } else { y }) as f32, true)
}
