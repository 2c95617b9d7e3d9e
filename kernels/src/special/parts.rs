//! A number as mantissa and exponent.

/// The mantissa of C's `frexp`: `x` is `mantissa 2^exponent` with the mantissa from 1/2 to 1. Zero, infinity and NaN pass.
pub(crate) fn mantissa(x: f64) -> f64 {
    libm::frexp(x).0
}

/// The exponent of C's `frexp`; 0 for zero, infinity and NaN.
pub(crate) fn exponent(x: f64) -> f64 {
    if x.is_finite() { libm::frexp(x).1 as f64 } else { 0.0 }
}
