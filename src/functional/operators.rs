//! `+ - * /` and unary `-` on tensors and numbers. They return `Result<Tensor>`: `(&a + &b)?`.
//!
//! The right side may be a tensor, a number (f32, f64, i32, i64, `Complex`) or the `Result` of another operator. The left side may be a
//! tensor, an f64, an i64, a `Complex<f64>`, or, where the right side is a tensor, a `Result`. One type of each kind of number is what lets an
//! unsuffixed literal stand on the left; `f64::from(s) * &x` or `&x * s` serves an f32. Rust allows no impl of `Result + Result`
//! and of `Result + number` outside the standard library: [`eval!`](crate::eval) takes any expression.

use super::RightOperand;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::{Complex, Scalar};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Types that can be the right side of an operator: a tensor, a number, or the result of another operator.
pub trait RightSide {
    /// The operand's tensor or number.
    ///
    /// # Errors
    /// Of a result: its error.
    fn held<'a>(self) -> Result<RightOperand<'a>>
    where
        Self: 'a;
}

impl RightSide for &Tensor {
    #[inline]
    fn held<'a>(self) -> Result<RightOperand<'a>>
    where
        Self: 'a,
    {
        Ok(RightOperand::Borrowed(self))
    }
}
impl RightSide for Tensor {
    #[inline]
    fn held<'a>(self) -> Result<RightOperand<'a>> {
        Ok(RightOperand::Owned(self))
    }
}
impl RightSide for Result<Tensor> {
    #[inline]
    fn held<'a>(self) -> Result<RightOperand<'a>> {
        self.map(RightOperand::Owned)
    }
}

/// A value of an expression in [`eval!`](crate::eval): a tensor, a number, or the first error.
pub enum Term {
    /// A tensor that the operator has made.
    Tensor(Tensor),
    /// A number that needs no tensor.
    Number(Scalar),
    /// The expression's first error.
    Failed(Error),
}

impl Term {
    /// The tensor that an expression gives.
    ///
    /// # Errors
    /// The first error inside; also when the expression has numbers only.
    pub fn tensor(self) -> Result<Tensor> {
        match self {
            Term::Tensor(t) => Ok(t),
            Term::Failed(e) => Err(e),
            Term::Number(s) => Err(Error::argument(format!("the expression gives the number {s}, not a tensor"))),
        }
    }
}

impl From<&Tensor> for Term {
    fn from(t: &Tensor) -> Term {
        Term::Tensor(t.clone())
    }
}
impl From<Tensor> for Term {
    fn from(t: Tensor) -> Term {
        Term::Tensor(t)
    }
}
impl From<Result<Tensor>> for Term {
    fn from(t: Result<Tensor>) -> Term {
        t.map_or_else(Term::Failed, Term::Tensor)
    }
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl RightSide for $t {
            #[inline]
            fn held<'a>(self) -> Result<RightOperand<'a>> { Ok(RightOperand::Number(self.into())) }
        }
        impl From<$t> for Term {
            fn from(x: $t) -> Term { Term::Number(x.into()) }
        }
    )*};
}
numbers!(f32 f64 i32 i64 Complex<f32> Complex<f64>);

/// A number as a complex one.
fn complex(s: Scalar) -> Complex<f64> {
    let (re, im) = s.to_complex();
    Complex { re, im }
}

fn is_complex(s: Scalar) -> bool {
    matches!(s, Scalar::Complex(..))
}

/// `trait function sign, (number on the left of a tensor), (two whole numbers)`.
macro_rules! binary {
    ($($trait:ident $f:ident $sign:tt, $left:expr, $whole:expr;)*) => {$(
        impl<R: RightSide> $trait<R> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            #[inline]
            fn $f(self, other: R) -> Result<Tensor> { Tensor::$f(self, other.held()?) }
        }
        impl<R: RightSide> $trait<R> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            #[inline]
            fn $f(self, other: R) -> Result<Tensor> { Tensor::$f(&self, other.held()?) }
        }
        impl $trait<&Tensor> for Result<Tensor> {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, other: &Tensor) -> Result<Tensor> { Tensor::$f(&self?, other) }
        }
        impl $trait<Tensor> for Result<Tensor> {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, other: Tensor) -> Result<Tensor> { Tensor::$f(&self?, &other) }
        }
        binary!(@left $trait $f $left, f64 i64 Complex<f64>);
        impl $trait for Term {
            type Output = Term;
            #[track_caller]
            fn $f(self, other: Term) -> Term {
                match (self, other) {
                    (Term::Failed(e), _) | (_, Term::Failed(e)) => Term::Failed(e),
                    (Term::Tensor(a), Term::Tensor(b)) => Tensor::$f(&a, &b).into(),
                    (Term::Tensor(a), Term::Number(b)) => Tensor::$f(&a, b).into(),
                    (Term::Number(a), Term::Tensor(b)) => $left(&b, a).into(),
                    (Term::Number(Scalar::Int(a)), Term::Number(Scalar::Int(b))) => Term::Number($whole(a, b)),
                    (Term::Number(a), Term::Number(b)) if is_complex(a) || is_complex(b) => {
                        Term::from(complex(a) $sign complex(b))
                    }
                    (Term::Number(a), Term::Number(b)) => Term::from(a.to_f64() $sign b.to_f64()),
                }
            }
        }
    )*};
    (@left $trait:ident $f:ident $left:expr, $($t:ty)*) => {$(
        impl $trait<&Tensor> for $t {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, x: &Tensor) -> Result<Tensor> { $left(x, Scalar::from(self)) }
        }
        impl $trait<Tensor> for $t {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, x: Tensor) -> Result<Tensor> { $left(&x, Scalar::from(self)) }
        }
    )*};
}

/// The whole number where it is one of 64 bits, else the float.
fn whole(exact: Option<i64>, float: f64) -> Scalar {
    exact.map_or(Scalar::Float(float), Scalar::Int)
}

binary! {
    Add add +, Tensor::add, |a: i64, b: i64| whole(a.checked_add(b), a as f64 + b as f64);
    Sub sub -, Tensor::rsub, |a: i64, b: i64| whole(a.checked_sub(b), a as f64 - b as f64);
    Mul mul *, Tensor::mul, |a: i64, b: i64| whole(a.checked_mul(b), a as f64 * b as f64);
    Div div /, Tensor::rdiv, |a: i64, b: i64| Scalar::Float(a as f64 / b as f64);
}

impl Neg for &Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
impl Neg for Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(&self)
    }
}
impl Neg for Term {
    type Output = Term;
    #[track_caller]
    fn neg(self) -> Term {
        match self {
            Term::Tensor(t) => Tensor::neg(&t).into(),
            Term::Number(Scalar::Int(i)) => Term::Number(whole(i.checked_neg(), -(i as f64))),
            Term::Number(s) if is_complex(s) => Term::from(-complex(s)),
            Term::Number(s) => Term::from(-s.to_f64()),
            failed => failed,
        }
    }
}

/// Evaluates an arithmetic expression over tensors, numbers and `Result<Tensor>`, with the usual precedence, and gives a
/// `Result<Tensor>`: one `?` for all of it. A division of two whole numbers gives a float. Errors name the line of the macro.
///
/// ```
/// use oflow::prelude::*;
/// let (x, y) = (arange(3, Device::Cpu)?, full([3], 2, Device::Cpu)?);
/// let z = oflow::eval!(2 * (&x + 1) * &y - x.square() * x.neg())?;
/// assert_eq!(z.to_vec::<i64>()?, [4, 9, 20]);
/// let norm = oflow::eval!(&x * &x + &y * &y)?.cast(DType::F64)?.sqrt()?;
/// assert_eq!(norm.to_vec::<f64>()?[0], 2.0);
/// # Ok::<(), oflow::Error>(())
/// ```
#[macro_export]
macro_rules! eval {
    // @term [expression so far] [tokens of the operand at hand] tokens to come. An operator ends an operand; at the start of one
    // a minus is a sign, and a group that an operator or the end follows is an expression of its own.
    (@term [$($done:tt)*] [] - $($rest:tt)+) => { $crate::eval!(@term [$($done)* -] [] $($rest)+) };
    (@term [$($done:tt)*] [] ($($group:tt)+)) => { $($done)* $crate::eval!(@term [] [] $($group)+) };
    (@term [$($done:tt)*] [] ($($group:tt)+) + $($rest:tt)+) => {
        $crate::eval!(@term [$($done)* $crate::eval!(@term [] [] $($group)+) +] [] $($rest)+)
    };
    (@term [$($done:tt)*] [] ($($group:tt)+) - $($rest:tt)+) => {
        $crate::eval!(@term [$($done)* $crate::eval!(@term [] [] $($group)+) -] [] $($rest)+)
    };
    (@term [$($done:tt)*] [] ($($group:tt)+) * $($rest:tt)+) => {
        $crate::eval!(@term [$($done)* $crate::eval!(@term [] [] $($group)+) *] [] $($rest)+)
    };
    (@term [$($done:tt)*] [] ($($group:tt)+) / $($rest:tt)+) => {
        $crate::eval!(@term [$($done)* $crate::eval!(@term [] [] $($group)+) /] [] $($rest)+)
    };
    (@term [$($done:tt)*] [] & * $($rest:tt)+) => { $crate::eval!(@term [$($done)*] [& *] $($rest)+) };
    (@term [$($done:tt)*] [$($operand:tt)+] + $($rest:tt)+) => {
        $crate::eval!(@term [$($done)* $crate::functional::Term::from($($operand)+) +] [] $($rest)+)
    };
    (@term [$($done:tt)*] [$($operand:tt)+] - $($rest:tt)+) => {
        $crate::eval!(@term [$($done)* $crate::functional::Term::from($($operand)+) -] [] $($rest)+)
    };
    (@term [$($done:tt)*] [$($operand:tt)+] * $($rest:tt)+) => {
        $crate::eval!(@term [$($done)* $crate::functional::Term::from($($operand)+) *] [] $($rest)+)
    };
    (@term [$($done:tt)*] [$($operand:tt)+] / $($rest:tt)+) => {
        $crate::eval!(@term [$($done)* $crate::functional::Term::from($($operand)+) /] [] $($rest)+)
    };
    (@term [$($done:tt)*] [$($operand:tt)+] . $name:ident ($($args:tt)*) $($rest:tt)*) => {
        $crate::eval!(@term [$($done)*] [$($operand)+ . $name ($($args)*)] $($rest)*)
    };
    (@term [$($done:tt)*] [$($operand:tt)*] $t:tt $($rest:tt)*) => {
        $crate::eval!(@term [$($done)*] [$($operand)* $t] $($rest)*)
    };
    (@term [$($done:tt)*] [$($operand:tt)+]) => { $($done)* $crate::functional::Term::from($($operand)+) };
    ($($expression:tt)+) => { ($crate::eval!(@term [] [] $($expression)+)).tensor() };
}
