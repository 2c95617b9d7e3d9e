//! Branch-free elementary functions.
//!
//! Everything here is `#[inline(always)]` straight-line code: selects instead of branches, exponents taken from the bits,
//! rounding by the "magic number" addition. A plain loop over a slice therefore vectorises for whatever instruction set
//! the caller compiles for. Where a product and a sum are fused the code says so, so a number has the same bits on every path and
//! every CPU. Loops are compiled for CPUs that fuse them in one instruction; on others (x86-64 before 2013) it is a call that takes
//! many times as long.
//!
//! Accuracy is bounded by the tests below (2 to 3 ulp; more of functions that are made of these: up to 6 of inverse hyperbolic
//! ones, 16 of erfc far out). NaN stays NaN, overflow gives infinity.

use std::ops::{Add, Div, Mul, Neg, Sub};

mod consts;
mod hyperbolic;
use consts::*;

/// The floating-point types of the kernels: f32 and f64.
pub trait Real:
    Copy
    + PartialOrd
    + Default
    + Send
    + Sync
    + std::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// A quiet NaN.
    const NAN: Self;

    /// Rounds to this type.
    fn from_f64(x: f64) -> Self;
    /// Converts to f64 without rounding.
    fn to_f64(self) -> f64;
    /// Absolute value, also of NaN.
    fn abs(self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Smallest integer not below.
    fn ceil(self) -> Self;
    /// Nearest integer, ties to even (PyTorch's `round`).
    fn round_even(self) -> Self;
    /// The integer part.
    fn trunc(self) -> Self;
    /// C's `fmod`: the sign of the dividend. Exact.
    fn fmod(self, other: Self) -> Self;
    /// `self` to the power `other`, by the standard library.
    fn powf(self, other: Self) -> Self;

    /// The number next to `self` towards `other`: `other` where both are equal, NaN where one is.
    fn next_after(self, other: Self) -> Self;

    /// e to the power `self`.
    fn exp(self) -> Self;
    /// `exp(self) - 1` without cancellation near zero.
    fn expm1(self) -> Self;
    /// Natural logarithm; zero gives negative infinity, less than zero NaN.
    fn log(self) -> Self;
    /// `log(1 + self)` without cancellation near zero.
    fn log1p(self) -> Self;
    /// Sine. Branches for huge arguments; see [`Real::sin_cos_fast`].
    fn sin(self) -> Self;
    /// Cosine. Branches for huge arguments; see [`Real::sin_cos_fast`].
    fn cos(self) -> Self;
    /// Sine and cosine, branch-free; meaningful only for `abs(self) <= SIN_LIMIT`.
    fn sin_cos_fast(self) -> (Self, Self);
    /// Up to where the branch-free range reduction of sine and cosine holds.
    const SIN_LIMIT: Self;
    /// The error function.
    fn erf(self) -> Self;
    /// `1 - erf(self)` without cancellation for large arguments.
    fn erfc(self) -> Self;
    /// The normal distribution function, `(1 + erf(self / sqrt(2))) / 2`. Its absolute error is small; far below zero digits cancel.
    fn normal_cdf(self) -> Self;
    /// 2 to the power `self`.
    fn exp2(self) -> Self;
    /// The logarithm to base 2, exact for powers of two.
    fn log2(self) -> Self;
    /// The logarithm to base 10.
    fn log10(self) -> Self;
    /// The angle whose sine is `self`, in `-pi/2..=pi/2`; NaN outside `-1..=1`.
    fn asin(self) -> Self;
    /// The angle whose cosine is `self`, in `0..=pi`; NaN outside `-1..=1`.
    fn acos(self) -> Self;
    /// The angle whose tangent is `self`, in `-pi/2..=pi/2`.
    fn atan(self) -> Self;
    /// The angle of the point (`x`, `self`), in `-pi..=pi`, as C's `atan2`.
    fn atan2(self, x: Self) -> Self;

    /// The length of the vector (`self`, `other`), also where the squares overflow; infinite where one of both is, whatever the other.
    #[inline(always)]
    fn hypot(self, other: Self) -> Self {
        let (a, b) = (self.abs(), other.abs());
        // A NaN passes either choice.
        let big = if a > b { a } else { b };
        let small = if a > b { b } else { a };
        let r = small / big;
        let y = big * (Self::ONE + r * r).sqrt();
        let y = if big == Self::ZERO { small } else { y };
        if (a == Self::INFINITY) | (b == Self::INFINITY) { Self::INFINITY } else { y }
    }
    /// `log(exp(self) + exp(other))`, also where the powers overflow.
    #[inline(always)]
    fn logaddexp(self, other: Self) -> Self {
        let big = if self > other { self } else { other };
        let y = big + (-(self - other).abs()).exp().log1p();
        // Infinities of one sign, too.
        if self == other { self + Self::from_f64(std::f64::consts::LN_2) } else { y }
    }
    /// Tangent. Branches for huge arguments; see [`Real::sin_cos_fast`].
    #[inline(always)]
    fn tan(self) -> Self {
        self.sin() / self.cos()
    }
    /// Hyperbolic sine of each lane.
    #[inline(always)]
    fn sinh(self) -> Self {
        hyperbolic::sinh(self)
    }
    /// Hyperbolic cosine of each lane.
    #[inline(always)]
    fn cosh(self) -> Self {
        hyperbolic::cosh(self)
    }
    /// Inverse of [`Real::sinh`].
    #[inline(always)]
    fn asinh(self) -> Self {
        hyperbolic::asinh(self)
    }
    /// Inverse of [`Real::cosh`]; NaN below 1.
    #[inline(always)]
    fn acosh(self) -> Self {
        hyperbolic::acosh(self)
    }
    /// Inverse of [`Real::tanh`]; NaN outside `-1..=1`.
    #[inline(always)]
    fn atanh(self) -> Self {
        hyperbolic::atanh(self)
    }
    /// Hyperbolic tangent of each lane.
    fn tanh(self) -> Self;
    /// `1 / (1 + exp(-self))`.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }
    /// The larger; NaN if either is NaN.
    #[inline(always)]
    fn max_nan(self, other: Self) -> Self {
        #[allow(clippy::eq_op)]
        if self > other || self != self { self } else { other }
    }
    /// The smaller; NaN if either is NaN.
    #[inline(always)]
    fn min_nan(self, other: Self) -> Self {
        #[allow(clippy::eq_op)]
        if self < other || self != self { self } else { other }
    }
    /// True for NaN.
    #[inline(always)]
    fn is_nan(self) -> bool {
        #[allow(clippy::eq_op)]
        {
            self != self
        }
    }
}

/// Horner's rule, coefficients from the constant term up.
macro_rules! horner {
    ($x:expr, $c:expr) => {{
        let c = $c;
        let mut p = c[c.len() - 1];
        let mut i = c.len() - 1;
        while i > 0 {
            i -= 1;
            p = p.mul_add($x, c[i]);
        }
        p
    }};
}

/// `x = 2^e (1 + f)` with `1 + f` between the square roots of 1/2 and 2, and `log(1 + f) = f - (half_square - rest)`:
/// gives `(e, f, half_square, rest)`.
macro_rules! log_parts {
    ($x:expr, $t:ident, $int:ident, $uint:ident, $k:ident) => {{
        let tiny = $x < $t::MIN_POSITIVE;
        let x = if tiny { $x * $k::DENORMAL_SCALE } else { $x };
        let bits = x.to_bits() as $int;
        let shift = $t::MANTISSA_DIGITS - 1;
        let e = bits.wrapping_sub($k::SQRT_HALF_BITS) >> shift;
        let f = $t::from_bits(bits.wrapping_sub(e << shift) as $uint) - 1.0;
        let e = $k::exponent_to_float(e) - if tiny { $k::DENORMAL_SHIFT } else { 0.0 };
        let s = f / (2.0 + f);
        let z = s * s;
        let r = horner!(z, $k::ATANH) * z;
        let half_square = 0.5 * f * f;
        (e, f, half_square, s * (half_square + r))
    }};
}

/// `atan(q)` for `q` in `0..=1`: from `sqrt(2) - 1` on, by the angle that is left to pi/4.
macro_rules! atan_below_one {
    ($q:expr, $t:ident, $k:ident) => {{
        let q = $q;
        let far = q > std::$t::consts::SQRT_2 - 1.0;
        let t = if far { (q - 1.0) / (q + 1.0) } else { q };
        let z = t * t;
        let y = horner!(z, $k::ATAN) * (z * t);
        if far { std::$t::consts::FRAC_PI_4 + (y + 0.5 * $k::PIO2_LO + t) } else { y + t }
    }};
}

macro_rules! real {
    ($t:ident, $int:ident, $uint:ident, $k:ident, $erf:ident, $erfc:ident) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $t::INFINITY;
            const NAN: Self = $t::NAN;
            const SIN_LIMIT: Self = 1.0e6;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $t::copysign(self, sign)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $t::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $t::ceil(self)
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                $t::round_ties_even(self)
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                $t::trunc(self)
            }
            #[inline(always)]
            fn fmod(self, other: Self) -> Self {
                self % other
            }
            #[inline(always)]
            fn powf(self, other: Self) -> Self {
                $t::powf(self, other)
            }

            #[inline(always)]
            fn next_after(self, other: Self) -> Self {
                let next = if self < other { self.next_up() } else { self.next_down() };
                let next = if self == other { other } else { next };
                if self.is_nan() || other.is_nan() { $t::NAN } else { next }
            }
            #[inline(always)]
            fn exp(self) -> Self {
                let x = clamp(self, $k::EXP_LOW, $k::EXP_HIGH);
                let (n, r) = $k::reduce_exp(x);
                let y = horner!(r, $k::EXPM1_R2).mul_add(r * r, r) + 1.0;
                // Two steps, because 2^n alone over- or underflows at both ends of the range.
                let half = n >> 1;
                y * $k::pow2(half) * $k::pow2(n.wrapping_sub(half))
            }
            #[inline(always)]
            fn expm1(self) -> Self {
                // Below EXPM1_LOW the result is -1 to the last bit.
                let x = clamp(self, $k::EXPM1_LOW, $k::EXP_HIGH);
                let (n, r) = $k::reduce_exp(x);
                let p = horner!(r, $k::EXPM1_R2).mul_add(r * r, r);
                // 2 * (2^(n-1) p + (2^(n-1) - 1/2)), so that n = max exponent + 1 does not overflow early.
                let t = $k::pow2(n.wrapping_sub(1));
                let y = (t * p + (t - 0.5)) * 2.0;
                // Keeps the sign of zero.
                if x == 0.0 { x } else { y }
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                // By t = expm1(-2 |x|), which needs no care for overflow or the sign of zero.
                let x = self.abs() * -2.0;
                let x = if x < $k::EXPM1_LOW { $k::EXPM1_LOW } else { x };
                let (n, r) = $k::reduce_exp(x);
                let p = horner!(r, $k::EXPM1_R2).mul_add(r * r, r);
                let power = $k::pow2(n);
                let t = power * p + (power - 1.0);
                (t / (t + 2.0)).copysign(self)
            }
            #[inline(always)]
            fn log(self) -> Self {
                let (e, f, half_square, rest) = log_parts!(self, $t, $int, $uint, $k);
                log_ends(self, e * $k::LN2_HI + (f - (half_square - (rest + e * $k::LN2_LO))))
            }
            #[inline(always)]
            fn log1p(self) -> Self {
                let u = 1.0 + self;
                let l = Real::log(u);
                let y = l + (self - (u - 1.0)) / u;
                let y = if u > 0.0 && u < $t::INFINITY { y } else { l };
                if u == 1.0 { self } else { y }
            }
            #[inline(always)]
            fn sin(self) -> Self {
                if self.abs() <= Self::SIN_LIMIT { Real::sin_cos_fast(self).0 } else { $t::sin(self) }
            }
            #[inline(always)]
            fn cos(self) -> Self {
                if self.abs() <= Self::SIN_LIMIT { Real::sin_cos_fast(self).1 } else { $t::cos(self) }
            }
            #[inline(always)]
            fn sin_cos_fast(self) -> (Self, Self) {
                let (quadrant, r) = reduce_quadrant(self as f64);
                let r = r as $t;
                let z = r * r;
                // The sign is r's; said so for zero.
                let s = (horner!(z, $k::SIN) * (z * r) + r).copysign(r);
                let c = horner!(z, $k::COS) * (z * z) + (1.0 - 0.5 * z);
                let swap = quadrant & 1 != 0;
                let (sin, cos) = (if swap { c } else { s }, if swap { s } else { c });
                (if quadrant & 2 != 0 { -sin } else { sin }, if quadrant.wrapping_add(1) & 2 != 0 { -cos } else { cos })
            }
            #[inline(always)]
            fn erf(self) -> Self {
                $erf(self)
            }
            #[inline(always)]
            fn erfc(self) -> Self {
                $erfc(self)
            }
            #[inline(always)]
            fn normal_cdf(self) -> Self {
                // A half of it is exact, so this rounds as a product and a sum do.
                <$t>::mul_add(0.5, $erf(self * std::$t::consts::FRAC_1_SQRT_2), 0.5)
            }
            #[inline(always)]
            fn exp2(self) -> Self {
                let (n, r) = $k::reduce_exp2(clamp(self, $k::EXP2_LOW, $k::EXP2_HIGH));
                let y = horner!(r, $k::EXPM1_R2).mul_add(r * r, r) + 1.0;
                let half = n >> 1;
                y * $k::pow2(half) * $k::pow2(n.wrapping_sub(half))
            }
            #[inline(always)]
            fn log2(self) -> Self {
                let (e, f, half_square, rest) = log_parts!(self, $t, $int, $uint, $k);
                log_ends(self, e + (f - (half_square - rest)) * std::$t::consts::LOG2_E)
            }
            #[inline(always)]
            fn log10(self) -> Self {
                let (e, f, half_square, rest) = log_parts!(self, $t, $int, $uint, $k);
                log_ends(
                    self,
                    e * $k::LOG10_2_HI + ((f - (half_square - rest)) * std::$t::consts::LOG10_E + e * $k::LOG10_2_LO),
                )
            }
            #[inline(always)]
            fn asin(self) -> Self {
                let a = self.abs();
                let large = a > 0.5;
                let z = if large { (1.0 - a) * 0.5 } else { a * a };
                let t = if large { z.sqrt() } else { a };
                let y = horner!(z, $k::ASIN).mul_add(z * t, t);
                let from_top = std::$t::consts::FRAC_PI_2 - (2.0 * y - $k::PIO2_LO);
                (if large { from_top } else { y }).copysign(self)
            }
            #[inline(always)]
            fn acos(self) -> Self {
                let a = self.abs();
                let large = a > 0.5;
                let z = if large { (1.0 - a) * 0.5 } else { a * a };
                let t = if large { z.sqrt() } else { a };
                let y = horner!(z, $k::ASIN).mul_add(z * t, t);
                let near_one = if self < 0.0 { std::$t::consts::PI - (2.0 * y - 2.0 * $k::PIO2_LO) } else { 2.0 * y };
                let near_zero = std::$t::consts::FRAC_PI_2 - (y.copysign(self) - $k::PIO2_LO);
                if large { near_one } else { near_zero }
            }
            #[inline(always)]
            fn atan(self) -> Self {
                let a = self.abs();
                let over = a > 1.0;
                // The reciprocal of infinity is the zero that belongs to pi/2.
                let t = atan_below_one!(if over { 1.0 / a } else { a }, $t, $k);
                let from_top = std::$t::consts::FRAC_PI_2 - (t - $k::PIO2_LO);
                (if over { from_top } else { t }).copysign(self)
            }
            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                let (a, b) = (x.abs(), self.abs());
                let steep = b > a;
                let (low, high) = if steep { (a, b) } else { (b, a) };
                // C's answers where the quotient says nothing: zero by zero is zero, infinity by infinity is one.
                let q = if low == high { if high == 0.0 { 0.0 } else { 1.0 } } else { low / high };
                let t = atan_below_one!(q, $t, $k);
                let t = if steep { std::$t::consts::FRAC_PI_2 - (t - $k::PIO2_LO) } else { t };
                let t = if x.is_sign_negative() { std::$t::consts::PI - (t - 2.0 * $k::PIO2_LO) } else { t };
                // A NaN of either reaches the result, also where the other was taken for the larger.
                (if a + b >= 0.0 { t } else { $t::NAN }).copysign(self)
            }
        }
    };
}

/// Value of every logarithm at the ends: infinity and NaN pass, zero is minus infinity, less is NaN.
#[inline(always)]
fn log_ends<T: Real>(x: T, y: T) -> T {
    let y = if x < T::INFINITY { y } else { x };
    let y = if x == T::ZERO { -T::INFINITY } else { y };
    if x < T::ZERO { T::NAN } else { y }
}

/// Into `low..=high`; NaN stays.
#[inline(always)]
fn clamp<T: PartialOrd>(x: T, low: T, high: T) -> T {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `x = quadrant * pi/2 + r` with `abs(r) <= pi/4`, for `abs(x)` up to 2^20.
#[inline(always)]
fn reduce_quadrant(x: f64) -> (i64, f64) {
    let shifted = x * std::f64::consts::FRAC_2_PI + MAGIC64;
    let n = shifted - MAGIC64;
    // The first two parts have 33 bits, so the products are exact.
    let r = ((x - n * PIO2_1) - n * PIO2_2) - n * PIO2_3;
    ((shifted.to_bits() & 3) as i64, r)
}

/// From 1 on by the fourth root of `1 - erf(x)`, which is nearly a straight line, else by `erf(x) / x`: one polynomial, of
/// which the coefficients are chosen for each element. NaN takes the second way.
#[inline(always)]
fn erf32(x: f32) -> f32 {
    let a = x.abs();
    let large = a >= 1.0;
    let b = if a > k32::ERF_ONE { k32::ERF_ONE } else { a };
    let u = if large { b - 1.5 } else { a * a };
    let c: [f32; 8] = std::array::from_fn(|i| if large { k32::ERFC_ROOT[i] } else { k32::ERF_SMALL[i] });
    // The upper coefficients in pairs: a shorter chain of operations.
    let square = u * u;
    let p = c[7].mul_add(u, c[6]).mul_add(square, c[5].mul_add(u, c[4])).mul_add(square, c[3].mul_add(u, c[2]));
    let p = p.mul_add(u, c[1]).mul_add(u, c[0]);
    let fourth = (p * p) * (p * p);
    (if large { 1.0 - fourth } else { p * a }).copysign(x)
}

#[inline(always)]
fn erf64(x: f64) -> f64 {
    let a = x.abs();
    let small = horner!(a * a, k64::ERF_SMALL) * x;
    let b = if a > k64::ERF_ONE { k64::ERF_ONE } else { a };
    let large = 1.0 - Real::exp(-(b * b)) * horner!((b - 2.5) / (b + 2.5), k64::ERFCX);
    // Written so that NaN takes the first arm.
    if a >= 1.0 { large.copysign(x) } else { small }
}

/// `exp(-x^2)` rounds the square; by the upper half of the digits it is exact, and a short factor corrects it.
#[inline(always)]
fn erfc64(x: f64) -> f64 {
    let a = x.abs();
    let b = if a > 28.0 { 28.0 } else { a };
    let high = f64::from_bits(b.to_bits() & !0x07ff_ffff);
    let bell = Real::exp(-(high * high)) * Real::exp(-((b - high) * (b + high)));
    let large = bell * horner!((b - 2.0) / (b + 2.0), k64::ERFC);
    let large = if x < 0.0 { 2.0 - large } else { large };
    // Written so that NaN takes the second arm.
    if a >= 0.5 { large } else { 1.0 - horner!(a * a, k64::ERF_SMALL) * x }
}

/// As `erfc64`, with `(x + 2) exp(x^2) erfc(x)` for the polynomial: it falls by half only, so no digits cancel.
#[inline(always)]
fn erfc32(x: f32) -> f32 {
    let a = x.abs();
    let b = if a > 11.0 { 11.0 } else { a };
    let high = f32::from_bits(b.to_bits() & !0xfff);
    let bell = Real::exp(-(high * high)) * Real::exp(-((b - high) * (b + high)));
    let r = 1.0 / (b + 2.0);
    let t = (b - 2.0) * r;
    let large = bell * (horner!(t, k32::ERFC) * r);
    let large = if x < 0.0 { 2.0 - large } else { large };
    // Written so that NaN takes the second arm.
    let square = a * a;
    let small = 1.0 - horner!(square, k32::ERF_SMALL) * x;
    if a >= 0.5 { large } else { small }
}

real!(f32, i32, u32, k32, erf32, erfc32);
real!(f64, i64, u64, k64, erf64, erfc64);
