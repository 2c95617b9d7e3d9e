//! Loops that do in one pass what a function for each part would do in several: pairs of sums and products, a selection with its
//! comparison, powers with one exponent, integers without a wider type between.

use super::maps::{Block, map1, map2};
use crate::Builtin;
use crate::cpu::lane::Lane;
use crate::expr::BinaryOp;
use crate::vmath::Real;
use multiversion::multiversion;

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

/// The comparisons that selections are made by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    pub(super) fn of(op: BinaryOp) -> Option<Compare> {
        match op {
            BinaryOp::Eq => Some(Compare::Eq),
            BinaryOp::Ne => Some(Compare::Ne),
            BinaryOp::Lt => Some(Compare::Lt),
            BinaryOp::Le => Some(Compare::Le),
            BinaryOp::Gt => Some(Compare::Gt),
            BinaryOp::Ge => Some(Compare::Ge),
            _ => None,
        }
    }
}

/// Exponents whose powers are products, quotients or roots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Power {
    One,
    Two,
    Three,
    Half,
    MinusHalf,
    MinusOne,
    MinusTwo,
}

impl Power {
    /// The exponent where it is one of these.
    pub(super) fn of_float(exponent: f64) -> Option<Power> {
        match exponent {
            1.0 => Some(Power::One),
            2.0 => Some(Power::Two),
            3.0 => Some(Power::Three),
            0.5 => Some(Power::Half),
            -0.5 => Some(Power::MinusHalf),
            -1.0 => Some(Power::MinusOne),
            -2.0 => Some(Power::MinusTwo),
            _ => None,
        }
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

/// Of two `arms` the first where `x.a` and `x.b` compare so, else the second.
///
/// # Safety
/// See [`Lanes::unary`](super::loops::Lanes::unary).
#[inline(always)]
pub(super) unsafe fn select_by<T: Lane + PartialOrd>(by: Compare, [c, d]: [*const T; 2], x: Block<T>) {
    // The comparison is written into the loop, which goes by pointers: the destination may be any of the four, and the compiler checks
    // for overlap before the loop.
    macro_rules! by {
        ($op:tt) => {
            for i in 0..x.n {
                // SAFETY: `i < n`, by the contract of this function.
                unsafe {
                    let (a, b, c, d) = (x.a.add(i).read(), x.b.add(i).read(), c.add(i).read(), d.add(i).read());
                    x.dst.add(i).write(if a $op b { c } else { d });
                }
            }
        };
    }
    match by {
        Compare::Eq => by!(==),
        Compare::Ne => by!(!=),
        Compare::Lt => by!(<),
        Compare::Le => by!(<=),
        Compare::Gt => by!(>),
        Compare::Ge => by!(>=),
    }
}

/// # Safety
/// See [`Lanes::unary`].
#[inline(always)]
pub(super) unsafe fn raised<T: Lane + Real>(power: Power, x: Block<T>) {
    // SAFETY: by the contract of this function.
    unsafe {
        match power {
            Power::One => map1(x, |v| v),
            Power::Two => map1(x, |v| v * v),
            Power::Three => map1(x, |v| v * v * v),
            // The power of -0 is 0, and that of minus infinity is infinity.
            Power::Half => map1(x, |v| {
                let root = v.sqrt() + T::ZERO;
                if v == -T::INFINITY { T::INFINITY } else { root }
            }),
            Power::MinusHalf => map1(x, |v| {
                let inverse = T::ONE / (v.sqrt() + T::ZERO);
                if v == -T::INFINITY { T::ZERO } else { inverse }
            }),
            Power::MinusOne => map1(x, |v| T::ONE / v),
            // The square of a large number would be infinite before its inverse is 0.
            Power::MinusTwo => map1(x, |v| {
                let inverse = T::ONE / v;
                inverse * inverse
            }),
        }
    }
}

/// Whether a dtype is one of integers smaller than i64.
pub(super) fn is_small_integer(dtype: Builtin) -> bool {
    use Builtin::{I8, I16, I32, U8, U16, U32};
    matches!(dtype, U8 | I8 | I16 | U16 | I32 | U32)
}

/// Sums, differences or products of integers of 1, 2 or 4 bytes, which wrap.
///
/// # Safety
/// See [`Lanes::unary`], for elements of that many bytes.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub(super) unsafe fn wrapping(op: Basic, bytes: usize, x: Block<u8>) {
    macro_rules! of {
        ($t:ident) => {{
            let x = Block::<$t> { a: x.a.cast(), b: x.b.cast(), dst: x.dst.cast(), n: x.n };
            match op {
                Basic::Add => map2(x, $t::wrapping_add),
                Basic::Sub => map2(x, $t::wrapping_sub),
                Basic::Mul => map2(x, $t::wrapping_mul),
            }
        }};
    }
    // SAFETY: by the contract of this function.
    unsafe {
        match bytes {
            1 => of!(u8),
            2 => of!(u16),
            _ => of!(u32),
        }
    }
}
