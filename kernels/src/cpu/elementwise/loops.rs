//! The inner loops: one function over a chunk for each function of the expression language and arithmetic.
//!
//! A destination may be one of the sources (in place). Each such case is a loop of its own, because the vectoriser's own
//! check would send it down the scalar path.

use crate::Scalar;
use crate::cpu::lane::Lane;
use crate::expr::{BinaryOp, UnaryOp, floor_div, remainder, shl, shr};
use crate::vmath::Real;
use multiversion::multiversion;
use std::ops::{Add, Mul, Sub};

/// Two sources, a destination and a length. Unary functions have `b == a`.
#[derive(Clone, Copy)]
pub(super) struct Block<T> {
    pub(super) a: *const T,
    pub(super) b: *const T,
    pub(super) dst: *mut T,
    pub(super) n: usize,
}

/// The functions that instructions are made of in pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Basic {
    Add,
    Sub,
    Mul,
}

impl Basic {
    pub(super) fn of(op: BinaryOp) -> Option<Basic> {
        match op {
            BinaryOp::Add => Some(Basic::Add),
            BinaryOp::Sub => Some(Basic::Sub),
            BinaryOp::Mul => Some(Basic::Mul),
            _ => None,
        }
    }
}

/// A type of arithmetic.
pub(super) trait Lanes: Lane {
    /// The scalar in this arithmetic.
    fn from_scalar(s: Scalar) -> Self;

    /// # Safety
    /// The sources are readable and the destination writable for `n` elements; they overlap only where equal. So for all
    /// functions of this trait.
    unsafe fn unary(op: UnaryOp, x: Block<Self>);
    /// # Safety
    /// See [`Lanes::unary`].
    unsafe fn binary(op: BinaryOp, x: Block<Self>);
    /// `second(first(x.a, x.b), c)`; each rounds by itself.
    ///
    /// # Safety
    /// See [`Lanes::unary`].
    unsafe fn pair(first: Basic, second: Basic, c: *const Self, x: Block<Self>);
    /// `x.a` where the condition is not zero, else `x.b`.
    ///
    /// # Safety
    /// See [`Lanes::unary`].
    unsafe fn select(condition: *const Self, x: Block<Self>);
    /// Whether one of the elements is 0.
    ///
    /// # Safety
    /// `from` is readable for `n` elements.
    unsafe fn any_zero(from: *const Self, n: usize) -> bool {
        // SAFETY: by the contract of this function.
        let elements = unsafe { std::slice::from_raw_parts(from, n) };
        elements.iter().fold(false, |any, v| any | (*v == Self::default()))
    }
    /// # Safety
    /// See [`Lanes::unary`].
    unsafe fn fill(dst: *mut Self, value: Self, n: usize) {
        for i in 0..n {
            // SAFETY: by the contract of this function.
            unsafe { dst.add(i).write(value) };
        }
    }
}

// Plain counted loops: the closures of iterator adapters are compiled as functions of their own, without the wider
// instructions of the caller (exp ran at a third of the speed).

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn map2<T: Lane>(x: Block<T>, f: impl Fn(T, T) -> T) {
    let Block { a, b, dst, n } = x;
    // SAFETY: `i < n` throughout.
    unsafe {
        match (a.cast_mut() == dst, b.cast_mut() == dst) {
            (true, true) => {
                for i in 0..n {
                    let v = dst.add(i).read();
                    dst.add(i).write(f(v, v));
                }
            }
            (true, false) => {
                for i in 0..n {
                    dst.add(i).write(f(dst.add(i).read(), b.add(i).read()));
                }
            }
            (false, true) => {
                for i in 0..n {
                    dst.add(i).write(f(a.add(i).read(), dst.add(i).read()));
                }
            }
            (false, false) => {
                for i in 0..n {
                    dst.add(i).write(f(a.add(i).read(), b.add(i).read()));
                }
            }
        }
    }
}

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn map1<T: Lane>(x: Block<T>, f: impl Fn(T) -> T) {
    let Block { a, dst, n, .. } = x;
    // SAFETY: `i < n` throughout.
    unsafe {
        if a.cast_mut() == dst {
            for i in 0..n {
                dst.add(i).write(f(dst.add(i).read()));
            }
        } else {
            for i in 0..n {
                dst.add(i).write(f(a.add(i).read()));
            }
        }
    }
}

/// [`map1`] with the function written into the loop.
macro_rules! written {
    ($x:expr, |$v:ident| $result:expr) => {{
        let Block { a, dst, n, .. } = $x;
        if a.cast_mut() == dst {
            for i in 0..n {
                let $v = dst.add(i).read();
                dst.add(i).write($result);
            }
        } else {
            for i in 0..n {
                let $v = a.add(i).read();
                dst.add(i).write($result);
            }
        }
    }};
}

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn select<T: Lane>(condition: *const T, x: Block<T>, zero: T) {
    // By pointers, since the destination may be any of the three: the compiler checks for overlap before the loop.
    for i in 0..x.n {
        // SAFETY: `i < n`.
        unsafe {
            let (a, b) = (x.a.add(i).read(), x.b.add(i).read());
            x.dst.add(i).write(if condition.add(i).read() != zero { a } else { b });
        }
    }
}

/// Elements that are read from all sources before they are written: then it does not matter which of them the
/// destination is, and all loops are vectors.
const WIDTH: usize = 64;

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn map3<T: Lane>(c: *const T, x: Block<T>, f: impl Fn(T, T, T) -> T) {
    let blocks = x.n / WIDTH;
    for block in 0..blocks {
        // SAFETY: the block lies inside all; reads and writes ask for no alignment.
        unsafe {
            let read = |p: *const T| p.cast::<[T; WIDTH]>().add(block).read_unaligned();
            let (a, b, c) = (read(x.a), read(x.b), read(c));
            let mut out = [T::default(); WIDTH];
            for i in 0..WIDTH {
                out[i] = f(a[i], b[i], c[i]);
            }
            x.dst.cast::<[T; WIDTH]>().add(block).write_unaligned(out);
        }
    }
    for i in blocks * WIDTH..x.n {
        // SAFETY: `i < n`.
        unsafe { x.dst.add(i).write(f(x.a.add(i).read(), x.b.add(i).read(), c.add(i).read())) };
    }
}

/// The nine pairs, in the given three functions.
macro_rules! pairs {
    ($first:expr, $second:expr, $c:expr, $x:expr, $add:expr, $sub:expr, $mul:expr) => {
        match ($first, $second) {
            (Basic::Add, Basic::Add) => map3($c, $x, |a, b, c| $add($add(a, b), c)),
            (Basic::Add, Basic::Sub) => map3($c, $x, |a, b, c| $sub($add(a, b), c)),
            (Basic::Add, Basic::Mul) => map3($c, $x, |a, b, c| $mul($add(a, b), c)),
            (Basic::Sub, Basic::Add) => map3($c, $x, |a, b, c| $add($sub(a, b), c)),
            (Basic::Sub, Basic::Sub) => map3($c, $x, |a, b, c| $sub($sub(a, b), c)),
            (Basic::Sub, Basic::Mul) => map3($c, $x, |a, b, c| $mul($sub(a, b), c)),
            (Basic::Mul, Basic::Add) => map3($c, $x, |a, b, c| $add($mul(a, b), c)),
            (Basic::Mul, Basic::Sub) => map3($c, $x, |a, b, c| $sub($mul(a, b), c)),
            (Basic::Mul, Basic::Mul) => map3($c, $x, |a, b, c| $mul($mul(a, b), c)),
        }
    };
}
pub(super) use pairs;

/// The branch-free sine or cosine where the whole block allows it; the choice is made per element either way, so that
/// it does not depend on the neighbours.
///
/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
unsafe fn trigonometric<T: Lane + Real>(x: Block<T>, fast: impl Fn(T) -> T, any: impl Fn(T) -> T) {
    // SAFETY: readable by the contract of this function; the borrow ends before anything is written.
    let near =
        unsafe { std::slice::from_raw_parts(x.a, x.n) }.iter().fold(true, |all, v| all & (v.abs() <= T::SIN_LIMIT));
    // SAFETY: by the contract of this function.
    unsafe { if near { map1(x, fast) } else { map1(x, any) } }
}

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
unsafe fn unary_real<T: Lane + Real>(op: UnaryOp, x: Block<T>) {
    use UnaryOp::*;
    let truth = |b: bool| if b { T::ONE } else { T::ZERO };
    let tangent = |(sin, cos): (T, T)| sin / cos;
    // SAFETY: by the contract of this function.
    unsafe {
        match op {
            Neg => map1(x, |v| -v),
            Abs => map1(x, |v| v.abs()),
            Exp => map1(x, |v| v.exp()),
            Log => map1(x, |v| v.log()),
            Log1p => map1(x, |v| v.log1p()),
            Expm1 => map1(x, |v| v.expm1()),
            Sqrt => map1(x, |v| v.sqrt()),
            Rsqrt => map1(x, |v| T::ONE / v.sqrt()),
            Reciprocal => map1(x, |v| T::ONE / v),
            Square => map1(x, |v| v * v),
            Sin => trigonometric(x, |v| v.sin_cos_fast().0, |v| v.sin()),
            Cos => trigonometric(x, |v| v.sin_cos_fast().1, |v| v.cos()),
            Tanh => map1(x, |v| v.tanh()),
            Sigmoid => map1(x, |v| v.sigmoid()),
            Erf => map1(x, |v| v.erf()),
            // A closure this long would no longer be compiled into the loop.
            Erfc => written!(x, |v| v.erfc()),
            NormalCdf => map1(x, |v| v.normal_cdf()),
            Exp2 => map1(x, |v| v.exp2()),
            Log2 => map1(x, |v| v.log2()),
            Log10 => map1(x, |v| v.log10()),
            Tan => trigonometric(x, |v| tangent(v.sin_cos_fast()), |v| v.tan()),
            Asin => map1(x, |v| v.asin()),
            Acos => map1(x, |v| v.acos()),
            Atan => map1(x, |v| v.atan()),
            Sinh => map1(x, |v| v.sinh()),
            Cosh => map1(x, |v| v.cosh()),
            Asinh => map1(x, |v| v.asinh()),
            Acosh => map1(x, |v| v.acosh()),
            Atanh => map1(x, |v| v.atanh()),
            Floor => map1(x, |v| v.floor()),
            Ceil => map1(x, |v| v.ceil()),
            Round => map1(x, |v| v.round_even()),
            Trunc => map1(x, |v| v.trunc()),
            Sign => map1(x, |v| truth(v > T::ZERO) - truth(v < T::ZERO)),
            Relu => map1(x, |v| v.max_nan(T::ZERO)),
            Not => map1(x, |v| truth(v == T::ZERO)),
            IsNan => map1(x, |v| truth(v.is_nan())),
            IsInf => map1(x, |v| truth(v.abs() == T::INFINITY)),
            Conj | Re => map1(x, |v| v),
            Im => map1(x, |_| T::ZERO),
            // `Expr::check_class` refuses it for floats.
            BitNot => unreachable!("{op} of floats"),
        }
    }
}

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
unsafe fn binary_real<T: Lane + Real>(op: BinaryOp, x: Block<T>) {
    use BinaryOp::*;
    let truth = |b: bool| if b { T::ONE } else { T::ZERO };
    // SAFETY: by the contract of this function.
    unsafe {
        match op {
            Add => map2(x, |a, b| a + b),
            Sub => map2(x, |a, b| a - b),
            Mul => map2(x, |a, b| a * b),
            Div => map2(x, |a, b| a / b),
            Pow => map2(x, |a, b| a.powf(b)),
            Max => map2(x, |a, b| a.max_nan(b)),
            Min => map2(x, |a, b| a.min_nan(b)),
            Eq => map2(x, |a, b| truth(a == b)),
            Ne => map2(x, |a, b| truth(a != b)),
            Lt => map2(x, |a, b| truth(a < b)),
            Le => map2(x, |a, b| truth(a <= b)),
            Gt => map2(x, |a, b| truth(a > b)),
            Ge => map2(x, |a, b| truth(a >= b)),
            And => map2(x, |a, b| truth((a != T::ZERO) & (b != T::ZERO))),
            Or => map2(x, |a, b| truth((a != T::ZERO) | (b != T::ZERO))),
            Xor => map2(x, |a, b| truth((a != T::ZERO) ^ (b != T::ZERO))),
            Fmod => map2(x, |a, b| a.fmod(b)),
            Remainder => map2(x, |a, b| remainder(a, b)),
            FloorDiv => map2(x, |a, b| floor_div(a, b)),
            Atan2 => map2(x, |a, b| a.atan2(b)),
            Hypot => map2(x, |a, b| a.hypot(b)),
            LogAddExp => map2(x, |a, b| a.logaddexp(b)),
            // `Expr::check_class` refuses these for floats.
            Complex | BitAnd | BitOr | BitXor | Shl | Shr => unreachable!("{op} of floats"),
        }
    }
}

macro_rules! real_lanes {
    ($t:ident $unary:ident $binary:ident $pair:ident $select:ident |$s:ident| $scalar:expr) => {
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $unary(op: UnaryOp, x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { unary_real(op, x) }
        }
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $binary(op: BinaryOp, x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { binary_real(op, x) }
        }
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $pair(first: Basic, second: Basic, c: *const $t, x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { pairs!(first, second, c, x, Add::add, Sub::sub, Mul::mul) }
        }
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $select(condition: *const $t, x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { select(condition, x, 0.0) }
        }
        impl Lanes for $t {
            fn from_scalar($s: Scalar) -> Self {
                $scalar
            }
            unsafe fn unary(op: UnaryOp, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { $unary(op, x) }
            }
            unsafe fn binary(op: BinaryOp, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { $binary(op, x) }
            }
            unsafe fn pair(first: Basic, second: Basic, c: *const Self, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { $pair(first, second, c, x) }
            }
            unsafe fn select(condition: *const Self, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { $select(condition, x) }
            }
        }
    };
}
real_lanes!(f32 unary_f32 binary_f32 pair_f32 select_f32 |s| s.to_f64() as f32);
real_lanes!(f64 unary_f64 binary_f64 pair_f64 select_f64 |s| s.to_f64());

/// Quotient towards zero; 0 for a zero divisor.
#[inline(always)]
fn int_div(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

/// Remainder with the sign of the dividend; 0 for a zero divisor.
#[inline(always)]
fn int_fmod(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

fn int_remainder(a: i64, b: i64) -> i64 {
    let r = int_fmod(a, b);
    if r != 0 && ((r < 0) != (b < 0)) { r + b } else { r }
}

fn int_floor_div(a: i64, b: i64) -> i64 {
    int_div(a, b).wrapping_sub((int_fmod(a, b) != 0 && (a < 0) != (b < 0)) as i64)
}

/// Wrapping power; a negative exponent gives the quotient 1 / a^b towards zero.
fn int_pow(a: i64, b: i64) -> i64 {
    if b < 0 {
        return match a {
            1 => 1,
            -1 => 1 - 2 * (b & 1),
            _ => 0,
        };
    }
    let (mut result, mut base, mut b) = (1i64, a, b);
    while b != 0 {
        if b & 1 != 0 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        b >>= 1;
    }
    result
}

/// # Safety
/// See [`Lanes::unary`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn unary_i64(op: UnaryOp, x: Block<i64>) {
    use UnaryOp::*;
    // SAFETY: by the contract of this function.
    unsafe {
        match op {
            Neg => map1(x, |v| v.wrapping_neg()),
            Abs => map1(x, |v| v.wrapping_abs()),
            Square => map1(x, |v| v.wrapping_mul(v)),
            Sign => map1(x, |v| v.signum()),
            Relu => map1(x, |v| v.max(0)),
            Not => map1(x, |v| (v == 0) as i64),
            IsNan | IsInf => map1(x, |_| 0),
            Floor | Ceil | Round | Trunc | Conj | Re => map1(x, |v| v),
            Im => map1(x, |_| 0),
            BitNot => map1(x, |v| !v),
            // `Expr::check_class` refuses these for integers.
            Exp | Log | Log1p | Expm1 | Sqrt | Rsqrt | Reciprocal | Sin | Cos | Tanh | Sigmoid | Erf | Erfc
            | NormalCdf | Exp2 | Log2 | Log10 | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh => {
                unreachable!("{op} of integers")
            }
        }
    }
}

/// # Safety
/// See [`Lanes::unary`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn binary_i64(op: BinaryOp, x: Block<i64>) {
    use BinaryOp::*;
    // SAFETY: by the contract of this function.
    unsafe {
        match op {
            Add => map2(x, |a, b| a.wrapping_add(b)),
            Sub => map2(x, |a, b| a.wrapping_sub(b)),
            Mul => map2(x, |a, b| a.wrapping_mul(b)),
            Div => map2(x, int_div),
            Pow => map2(x, int_pow),
            Max => map2(x, |a, b| a.max(b)),
            Min => map2(x, |a, b| a.min(b)),
            Eq => map2(x, |a, b| (a == b) as i64),
            Ne => map2(x, |a, b| (a != b) as i64),
            Lt => map2(x, |a, b| (a < b) as i64),
            Le => map2(x, |a, b| (a <= b) as i64),
            Gt => map2(x, |a, b| (a > b) as i64),
            Ge => map2(x, |a, b| (a >= b) as i64),
            And => map2(x, |a, b| ((a != 0) & (b != 0)) as i64),
            Or => map2(x, |a, b| ((a != 0) | (b != 0)) as i64),
            Xor => map2(x, |a, b| ((a != 0) ^ (b != 0)) as i64),
            Fmod => map2(x, int_fmod),
            Remainder => map2(x, int_remainder),
            FloorDiv => map2(x, int_floor_div),
            BitAnd => map2(x, |a, b| a & b),
            BitOr => map2(x, |a, b| a | b),
            BitXor => map2(x, |a, b| a ^ b),
            Shl => map2(x, shl),
            Shr => map2(x, shr),
            // `Expr::check_class` refuses it for integers.
            Atan2 | Hypot | LogAddExp | Complex => unreachable!("{op} of integers"),
        }
    }
}

/// # Safety
/// See [`Lanes::unary`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn pair_i64(first: Basic, second: Basic, c: *const i64, x: Block<i64>) {
    // SAFETY: by the contract of this function.
    unsafe { pairs!(first, second, c, x, i64::wrapping_add, i64::wrapping_sub, i64::wrapping_mul) }
}

impl Lanes for i64 {
    fn from_scalar(s: Scalar) -> Self {
        s.to_i64()
    }
    unsafe fn unary(op: UnaryOp, x: Block<Self>) {
        // SAFETY: by the contract of this function.
        unsafe { unary_i64(op, x) }
    }
    unsafe fn binary(op: BinaryOp, x: Block<Self>) {
        // SAFETY: by the contract of this function.
        unsafe { binary_i64(op, x) }
    }
    unsafe fn pair(first: Basic, second: Basic, c: *const Self, x: Block<Self>) {
        // SAFETY: by the contract of this function.
        unsafe { pair_i64(first, second, c, x) }
    }
    unsafe fn select(condition: *const Self, x: Block<Self>) {
        // SAFETY: by the contract of this function.
        unsafe { select(condition, x, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_never_panic() {
        for a in [i64::MIN, -7, -1, 0, 1, 7, i64::MAX] {
            for b in [i64::MIN, -3, -1, 0, 1, 3, i64::MAX] {
                let values = [int_div(a, b), int_fmod(a, b), int_remainder(a, b), int_floor_div(a, b), int_pow(a, b)];
                if b == 0 {
                    assert_eq!(values, [0, 0, 0, 0, 1]);
                } else if a != 0 && a.abs_diff(0) < 100 && b.abs_diff(0) < 100 {
                    let (x, y) = (a as f64, b as f64);
                    assert_eq!(values[3], (x / y).floor() as i64);
                    assert_eq!(values[2], (x - (x / y).floor() * y) as i64);
                    assert_eq!(values[4], x.powf(y).trunc() as i64);
                }
            }
        }
    }
}
