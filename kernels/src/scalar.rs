//! A single number with its kind, as an operand or attribute.

use crate::DTypeKind;
use std::fmt;

/// A number given by the user: the kind (bool, int, float) takes part in type promotion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

impl Scalar {
    /// Returns the kind, which type promotion uses.
    pub fn kind(self) -> DTypeKind {
        match self {
            Scalar::Bool(_) => DTypeKind::Bool,
            Scalar::Int(_) => DTypeKind::Int,
            Scalar::Float(_) => DTypeKind::Float,
        }
    }
    /// Returns the value as f64.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(x) => x,
        }
    }
    /// Returns the value as i64; floats are truncated towards zero and saturate.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(x) => x as i64,
        }
    }
    /// Returns whether the value is not zero.
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(x) => x != 0.0,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
        }
    }
}

macro_rules! from {
    ($($t:ty => $v:ident as $w:ty),*) => {$(
        impl From<$t> for Scalar { fn from(x: $t) -> Self { Scalar::$v(x as $w) } }
    )*};
}
from!(bool => Bool as bool, i32 => Int as i64, i64 => Int as i64, u8 => Int as i64, i8 => Int as i64, u32 => Int as i64,
      usize => Int as i64, f32 => Float as f64, f64 => Float as f64);
