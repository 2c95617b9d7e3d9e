//! A single number with its kind, as an operand or attribute.

use crate::{Builtin, DType, DTypeKind, Limits};
use num_complex::Complex;
use std::fmt;

/// A number given by the user: the kind (bool, int, float, complex) takes part in type promotion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A floating point number of 64 bits.
    Float(f64),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
}

impl Scalar {
    /// Returns the kind, which type promotion uses.
    pub fn kind(self) -> DTypeKind {
        match self {
            Scalar::Bool(_) => DTypeKind::Bool,
            Scalar::Int(_) => DTypeKind::Int,
            Scalar::Float(_) => DTypeKind::Float,
            Scalar::Complex(..) => DTypeKind::Complex,
        }
    }
    /// Returns the value as f64; of a complex number the real part.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(x) | Scalar::Complex(x, _) => x,
        }
    }
    /// Reads a complex number as Python writes it.
    ///
    /// ```
    /// use oflow_kernels::Scalar;
    /// assert_eq!(Scalar::parse_complex("1.5-2j"), Some(Scalar::Complex(1.5, -2.0)));
    /// assert_eq!(Scalar::parse_complex("1e-3j"), Some(Scalar::Complex(0.0, 1e-3)));
    /// assert_eq!(Scalar::parse_complex("1.5"), None);
    /// ```
    pub fn parse_complex(text: &str) -> Option<Scalar> {
        let parts = text.strip_suffix('j')?;
        // The sign between the parts: not the first character, and not that of an exponent.
        let sign = |(i, c): &(usize, char)| *i > 0 && matches!(c, '+' | '-') && !parts[..*i].ends_with(['e', 'E']);
        let (re, im) = match parts.char_indices().rfind(sign) {
            Some((i, _)) => (parts[..i].parse().ok()?, &parts[i..]),
            None => (0.0, parts),
        };
        Some(Scalar::Complex(re, im.parse().ok()?))
    }
    /// Returns real and imaginary part.
    pub fn to_complex(self) -> (f64, f64) {
        match self {
            Scalar::Complex(re, im) => (re, im),
            s => (s.to_f64(), 0.0),
        }
    }
    /// Returns the value as i64; floats are truncated towards zero and saturate.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(x) | Scalar::Complex(x, _) => x as i64,
        }
    }
    /// Returns whether the value is not zero.
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(x) => x != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }
    /// The number as an element of that dtype has it: integers wrap, floats become integers towards zero and are rounded
    /// to narrower floats.
    pub fn in_dtype(self, dtype: Builtin) -> Scalar {
        dtype.rounded(self)
    }
    /// The nearest number that the dtype holds, where this one is an integer beyond an integer dtype's range.
    pub fn saturated(self, dtype: DType) -> Scalar {
        match (self, dtype.integers()) {
            (Scalar::Int(i), Some((low, high))) => Scalar::Int(i.clamp(low, high)),
            (s, _) => s,
        }
    }
    /// Whether the dtype has room for the number: PyTorch's rule for what it writes into a tensor. A float loses its
    /// fraction in an integer dtype, a negative integer may wrap in an unsigned one, everything becomes a bool.
    pub fn fits(self, dtype: Builtin) -> bool {
        let largest = match dtype.facts().limits {
            Limits::Largest(x) => x,
            _ => f64::MAX,
        };
        match (self, dtype.dtype().integers()) {
            // A complex number has no place among real ones, but for one without an imaginary part.
            (Scalar::Complex(re, im), _) if dtype.is_complex() => {
                [re, im].iter().all(|x| !x.is_finite() || x.abs() <= largest)
            }
            (Scalar::Complex(re, im), _) => im == 0.0 && Scalar::Float(re).fits(dtype),
            (Scalar::Bool(_), _) => true,
            _ if dtype == Builtin::Bool => true,
            (Scalar::Int(i), Some((low, high))) => i <= high && (i >= low || (low == 0 && i >= -high)),
            // The bounds of i64 are no floats: 2^63 is the first number beyond.
            (Scalar::Float(x), Some((low, high))) => x >= low as f64 && x < high as f64 + 1.0,
            (s, None) => !s.to_f64().is_finite() || s.to_f64().abs() <= largest,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
            // As PyTorch and Python write it, without a sum: `1.5-2.0j`.
            Scalar::Complex(re, im) => {
                write!(f, "{re:?}{}{:?}j", if im.is_sign_negative() { '-' } else { '+' }, im.abs())
            }
        }
    }
}

macro_rules! from {
    ($($t:ty => $v:ident as $w:ty),*) => {$(
        impl From<$t> for Scalar { fn from(x: $t) -> Self { Scalar::$v(x as $w) } }
    )*};
}
from!(bool => Bool as bool, i32 => Int as i64, i64 => Int as i64, u8 => Int as i64, i8 => Int as i64, i16 => Int as i64,
      u16 => Int as i64, u32 => Int as i64,
      usize => Int as i64, f32 => Float as f64, f64 => Float as f64);

impl From<Complex<f32>> for Scalar {
    fn from(z: Complex<f32>) -> Self {
        Scalar::Complex(z.re as f64, z.im as f64)
    }
}

impl From<Complex<f64>> for Scalar {
    fn from(z: Complex<f64>) -> Self {
        Scalar::Complex(z.re, z.im)
    }
}
