//! Hyperbolic functions and their inverses, from `exp`, `expm1`, `log` and `log1p`.

use super::Real;

/// From here on `exp(-x)` is lost beside `exp(x)`, in f64 too.
const ONE_SIDED: f64 = 20.0;

/// `exp(a) / 2`, also where `exp(a)` overflows.
#[inline(always)]
fn half_exp<T: Real>(a: T) -> T {
    let half = T::from_f64(0.5);
    let root = (a * half).exp();
    (half * root) * root
}

#[inline(always)]
pub fn sinh<T: Real>(x: T) -> T {
    let a = x.abs();
    let t = a.expm1();
    let near = (t + t / (t + T::ONE)) * T::from_f64(0.5);
    (if a > T::from_f64(ONE_SIDED) { half_exp(a) } else { near }).copysign(x)
}

#[inline(always)]
pub fn cosh<T: Real>(x: T) -> T {
    let a = x.abs();
    let half = T::from_f64(0.5);
    let e = a.exp();
    if a > T::from_f64(ONE_SIDED) { half_exp(a) } else { e * half + half / e }
}

/// Where `x^2 + 1` is `x^2` in f64 and its square root cannot overflow.
const LARGE: f64 = 1.0e9;

#[inline(always)]
pub fn asinh<T: Real>(x: T) -> T {
    let a = x.abs();
    let square = a * a;
    let near = (a + square / (T::ONE + (square + T::ONE).sqrt())).log1p();
    let far = a.log() + T::from_f64(std::f64::consts::LN_2);
    (if a > T::from_f64(LARGE) { far } else { near }).copysign(x)
}

#[inline(always)]
pub fn acosh<T: Real>(x: T) -> T {
    let t = x - T::ONE;
    let near = (t + (t + t + t * t).sqrt()).log1p();
    let far = x.log() + T::from_f64(std::f64::consts::LN_2);
    let y = if x > T::from_f64(LARGE) { far } else { near };
    if x < T::ONE { T::NAN } else { y }
}

#[inline(always)]
pub fn atanh<T: Real>(x: T) -> T {
    let a = x.abs();
    ((a + a) / (T::ONE - a)).log1p() * T::from_f64(0.5).copysign(x)
}
