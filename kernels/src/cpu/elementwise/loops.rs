//! The inner loops: one function over a chunk for each function of the expression language and arithmetic.
//!
//! A destination may be one of the sources (in place). Each such case is a loop of its own, because the vectoriser's own
//! check would send it down the scalar path.

use super::joined::{Basic, Compare, Power, pairs, raised, select_by};
use super::maps::{Block, WIDTH, map1, map2, map3, select, written};
use crate::cpu::copy::convert_run;
use crate::cpu::lane::{Lane, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::expr::{BinaryOp, UnaryOp, binary_functions, floor_div, integers, remainder, truth, unary_functions};
use crate::vmath::Real;
use crate::{Builtin, Scalar, single, special};
use multiversion::multiversion;
use std::mem::MaybeUninit;
use std::ops::{Add, Mul, Sub};

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
    /// The smaller of `high` and the larger of `x.a` and `x.b`; NaN where one of them is.
    ///
    /// # Safety
    /// See [`Lanes::unary`].
    unsafe fn clamp(high: *const Self, x: Block<Self>);
    /// Of two `arms` the first where `x.a` and `x.b` compare so, else the second.
    ///
    /// # Safety
    /// See [`Lanes::unary`].
    unsafe fn select_by(by: Compare, arms: [*const Self; 2], x: Block<Self>);
    /// How elements are raised to an exponent that is the same for all, where that needs no logarithm.
    fn power(exponent: Self) -> Option<Power>;
    /// `x.a` to the power.
    ///
    /// # Safety
    /// See [`Lanes::unary`].
    unsafe fn raised(power: Power, x: Block<Self>);
    /// The numbers of a dtype that the elements are stored as.
    ///
    /// # Safety
    /// See [`Lanes::unary`].
    unsafe fn rounded(to: Builtin, x: Block<Self>) {
        // SAFETY: by the contract of this function.
        unsafe { rounded_through(to, x) }
    }
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

/// Elements that are stored in another dtype at once, and the most bytes of one.
const STORED: usize = 256;

/// Stores elements in a dtype and loads them again.
///
/// # Safety
/// See [`Lanes::unary`].
unsafe fn rounded_through<T: Lane>(to: Builtin, x: Block<T>) {
    let mut stored = [MaybeUninit::<[u64; 2]>::uninit(); STORED];
    let between = stored.as_mut_ptr().cast::<u8>();
    for at in (0..x.n).step_by(STORED) {
        let n = STORED.min(x.n - at);
        // SAFETY: `n` elements lie in the block from `at` on; they are read before they are written, and fit between.
        unsafe {
            convert_run(x.a.add(at).cast(), T::DTYPE, 1, between, to, 1, n);
            convert_run(between, to, 1, x.dst.add(at).cast(), T::DTYPE, 1, n);
        }
    }
}

/// The halves, which need no memory between.
///
/// # Safety
/// See [`Lanes::unary`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn rounded_f32(to: Builtin, x: Block<f32>) {
    // SAFETY: by the contract of this function.
    unsafe {
        match to {
            Builtin::BF16 => map1(x, |v| bf16_to_f32(f32_to_bf16(v))),
            Builtin::F16 => map1(x, |v| f16_to_f32(f32_to_f16(v))),
            _ => rounded_through(to, x),
        }
    }
}

/// The branch-free sine or cosine where the whole block allows it; the choice is made per element either way, so that it does not depend
/// on the neighbours. Both are written into the loops, as in [`written`].
macro_rules! trigonometric {
    ($x:expr, |$v:ident| $near:expr, $any:expr) => {{
        // Readable by the contract of `Lanes::unary`; the borrow ends before anything is written.
        let all = std::slice::from_raw_parts($x.a, $x.n);
        match all.iter().fold(true, |near, v| near & (v.abs() <= T::SIN_LIMIT)) {
            true => written!($x, |$v| $near),
            false => written!($x, |$v| $any),
        }
    }};
}

/// `v.max_nan(low).min_nan(high)`, with one look for NaN: a `high` that is NaN is the smaller of both in the second comparison.
#[inline(always)]
fn clamped<T: Real>(v: T, low: T, high: T) -> T {
    let larger = if v > low { v } else { low };
    let smaller = if larger < high { larger } else { high };
    #[allow(clippy::eq_op)]
    let nan = (v != v) | (low != low);
    if nan { T::NAN } else { smaller }
}

/// The quotient of sine and cosine.
#[inline(always)]
fn tangent<T: Real>((sin, cos): (T, T)) -> T {
    sin / cos
}

/// A function of f64, of another type's number.
#[inline]
fn wide<T: Real>(x: T, f: fn(f64) -> f64) -> T {
    T::from_f64(f(x.to_f64()))
}

/// The same for two numbers.
#[inline]
fn wide_of_two<T: Real>(a: T, b: T, f: fn(f64, f64) -> f64) -> T {
    T::from_f64(f(a.to_f64(), b.to_f64()))
}

/// A function of f32 that `crate::single` computes: whole blocks are read before they are written, and the last one is filled up, so
/// there is one loop. Where the value does not hold, `$slow` gives it.
macro_rules! single {
    ($x:expr, |$v:ident, $w:ident| $fast:expr, $slow:expr) => {{
        let Block { a, b, dst, n } = $x;
        for at in (0..n).step_by(WIDTH) {
            let len = WIDTH.min(n - at);
            let (first, second) = (part(a.add(at), len), part(b.add(at), len));
            let (mut out, mut holds) = ([0.0f32; WIDTH], [0u32; WIDTH]);
            for i in 0..WIDTH {
                let ($v, $w) = (first[i], second[i]);
                let (value, held) = $fast;
                out[i] = value;
                holds[i] = held as u32;
            }
            if holds.iter().fold(1, |all, held| all & held) == 0 {
                for i in (0..len).filter(|i| holds[*i] == 0) {
                    let ($v, $w) = (first[i], second[i]);
                    out[i] = $slow;
                }
            }
            match len {
                WIDTH => dst.add(at).cast::<[f32; WIDTH]>().write_unaligned(out),
                _ => std::ptr::copy_nonoverlapping(out.as_ptr(), dst.add(at), len),
            }
        }
    }};
}

/// A block of `len` elements, filled up with ones.
///
/// # Safety
/// They are readable, and not more than the block.
#[inline(always)]
unsafe fn part(from: *const f32, len: usize) -> [f32; WIDTH] {
    // SAFETY: by the contract of this function; reads ask for no alignment.
    unsafe {
        if len == WIDTH {
            return from.cast::<[f32; WIDTH]>().read_unaligned();
        }
        let mut block = [1.0; WIDTH];
        std::ptr::copy_nonoverlapping(from, block.as_mut_ptr(), len);
        block
    }
}

/// The function of f64 in the place of one of [`crate::single`].
#[cold]
#[inline(never)]
fn slow(x: f32, f: fn(f64) -> f64) -> f32 {
    wide(x, f)
}

/// The same for two numbers.
#[cold]
#[inline(never)]
fn slow_of_two(a: f32, b: f32, f: fn(f64, f64) -> f64) -> f32 {
    wide_of_two(a, b, f)
}

macro_rules! unary_loops {
    ($($name:ident $text:literal $doc:literal {
            $(real |$x:ident| $real:expr $(, near $near:expr)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident| $int:expr;)?
            $(complex |$z:ident| $complex:expr;)?
            $(range |$r:ident| $range:expr;)?
            $(monotony |$m:ident| $monotony:expr;)?
            slope |$sx:ident, $sy:ident, $dx:ident| $slope:expr;
        })*) => {
        /// # Safety
        /// See [`Lanes::unary`].
        #[inline(always)]
        unsafe fn unary_real<T: Lane + Real>(op: UnaryOp, block: Block<T>) {
            // SAFETY: by the contract of this function.
            #[allow(unreachable_patterns)]
            unsafe {
                match op {
                    $($($(UnaryOp::$name => trigonometric!(block, |$x| $near, $real),)?)?)*
                    // Written in: a long closure would not be compiled into the loop.
                    $($(UnaryOp::$name => written!(block, |$x| $real),)?)*
                    _ => match op.wide() {
                        // One loop for all of them: the call costs little beside the function.
                        Some(f) => map1(block, |x| wide(x, f)),
                        // `Expr::check_class` refuses it for floats.
                        None => unreachable!("{op} of floats"),
                    },
                }
            }
        }

        /// # Safety
        /// See [`Lanes::unary`].
        #[inline(always)]
        unsafe fn unary_single(op: UnaryOp, block: Block<f32>) {
            // SAFETY: by the contract of this function.
            unsafe {
                match op {
                    $($($(UnaryOp::$name => single!(block, |x, _same| $single(x), slow(x, $wide)),)?)?)*
                    _ => unary_real(op, block),
                }
            }
        }

        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn unary_i64(op: UnaryOp, block: Block<i64>) {
            // SAFETY: by the contract of this function.
            unsafe {
                match op {
                    $($(UnaryOp::$name => map1(block, |$i| $int),)?)*
                    // `Expr::check_class` refuses it for integers.
                    _ => unreachable!("{op} of integers"),
                }
            }
        }
    };
}
unary_functions!(unary_loops);

macro_rules! binary_loops {
    ($($name:ident $text:literal $doc:literal {
            $(real |$a:ident, $b:ident| $real:expr $(, single $one:path)?;)?
            $(wide $wide:path $(, single $single:path)?;)?
            $(int |$i:ident, $j:ident| $int:expr;)?
            $(complex |$y:ident, $z:ident| $complex:expr;)?
            slope |$sa:ident, $sb:ident, $da:ident, $db:ident| $slope:expr;
        })*) => {
        /// # Safety
        /// See [`Lanes::unary`].
        #[inline(always)]
        unsafe fn binary_real<T: Lane + Real>(op: BinaryOp, block: Block<T>) {
            // SAFETY: by the contract of this function.
            unsafe {
                match op {
                    $($(BinaryOp::$name => map2(block, |$a, $b| $real),)?)*
                    _ => match op.wide() {
                        Some(f) => map2(block, |a, b| wide_of_two(a, b, f)),
                        // `Expr::check_class` refuses it for floats.
                        None => unreachable!("{op} of floats"),
                    },
                }
            }
        }

        /// # Safety
        /// See [`Lanes::unary`].
        #[inline(always)]
        unsafe fn binary_single(op: BinaryOp, block: Block<f32>) {
            // SAFETY: by the contract of this function.
            unsafe {
                match op {
                    $($($(BinaryOp::$name => single!(block, |$a, $b| $one($a, $b), $real),)?)?)*
                    $($($(BinaryOp::$name => single!(block, |a, b| $single(a, b), slow_of_two(a, b, $wide)),)?)?)*
                    _ => binary_real(op, block),
                }
            }
        }

        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn binary_i64(op: BinaryOp, block: Block<i64>) {
            // SAFETY: by the contract of this function.
            unsafe {
                match op {
                    $($(BinaryOp::$name => map2(block, |$i, $j| $int),)?)*
                    // `Expr::check_class` refuses it for integers.
                    _ => unreachable!("{op} of integers"),
                }
            }
        }
    };
}
binary_functions!(binary_loops);

macro_rules! real_lanes {
    ($t:ident $unary:ident by $unary_of:ident, $binary:ident by $binary_of:ident; $pair:ident $select:ident $clamp:ident $by:ident $raised:ident $rounded:ident |$s:ident| $scalar:expr) => {
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $unary(op: UnaryOp, x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { $unary_of(op, x) }
        }
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $binary(op: BinaryOp, x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { $binary_of(op, x) }
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
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $clamp(high: *const $t, x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { map3(high, x, clamped) }
        }
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $by(by: Compare, arms: [*const $t; 2], x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { select_by(by, arms, x) }
        }
        /// # Safety
        /// See [`Lanes::unary`].
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
        unsafe fn $raised(power: Power, x: Block<$t>) {
            // SAFETY: by the contract of this function.
            unsafe { raised(power, x) }
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
            unsafe fn clamp(high: *const Self, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { $clamp(high, x) }
            }
            unsafe fn select_by(by: Compare, arms: [*const Self; 2], x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { $by(by, arms, x) }
            }
            fn power(exponent: Self) -> Option<Power> {
                Power::of_float(exponent.into())
            }
            unsafe fn raised(power: Power, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { $raised(power, x) }
            }
            unsafe fn rounded(to: Builtin, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { $rounded(to, x) }
            }
        }
    };
}
real_lanes!(f32 unary_f32 by unary_single, binary_f32 by binary_single; pair_f32 select_f32 clamp_f32 select_by_f32 raised_f32 rounded_f32 |s| s.to_f64() as f32);
real_lanes!(f64 unary_f64 by unary_real, binary_f64 by binary_real; pair_f64 select_f64 clamp_f64 select_by_f64 raised_f64 rounded_through |s| s.to_f64());

/// # Safety
/// See [`Lanes::unary`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn pair_i64(first: Basic, second: Basic, c: *const i64, x: Block<i64>) {
    // SAFETY: by the contract of this function.
    unsafe { pairs!(first, second, c, x, i64::wrapping_add, i64::wrapping_sub, i64::wrapping_mul) }
}

/// # Safety
/// See [`Lanes::unary`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn clamp_i64(high: *const i64, x: Block<i64>) {
    // SAFETY: by the contract of this function.
    unsafe { map3(high, x, |v, low, high| v.max(low).min(high)) }
}

/// # Safety
/// See [`Lanes::unary`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn select_by_i64(by: Compare, arms: [*const i64; 2], x: Block<i64>) {
    // SAFETY: by the contract of this function.
    unsafe { select_by(by, arms, x) }
}

/// # Safety
/// See [`Lanes::unary`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn raised_i64(power: Power, x: Block<i64>) {
    // SAFETY: by the contract of this function.
    unsafe {
        match power {
            Power::One => map1(x, |v| v),
            Power::Three => map1(x, |v| v.wrapping_mul(v).wrapping_mul(v)),
            _ => map1(x, |v| v.wrapping_mul(v)),
        }
    }
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
    unsafe fn clamp(high: *const Self, x: Block<Self>) {
        // SAFETY: by the contract of this function.
        unsafe { clamp_i64(high, x) }
    }
    unsafe fn select_by(by: Compare, arms: [*const Self; 2], x: Block<Self>) {
        // SAFETY: by the contract of this function.
        unsafe { select_by_i64(by, arms, x) }
    }
    fn power(exponent: Self) -> Option<Power> {
        match exponent {
            1 => Some(Power::One),
            2 => Some(Power::Two),
            3 => Some(Power::Three),
            // Roots and quotients are no integers.
            _ => None,
        }
    }
    unsafe fn raised(power: Power, x: Block<Self>) {
        // SAFETY: by the contract of this function.
        unsafe { raised_i64(power, x) }
    }
}
