//! Typed attributes of an op: values, kinds, and the words they contribute to a dispatch key.

use crate::error::{Error, Result};
use oflow_kernels::{DType, DTypeKind, Scalar};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Words of a dispatch key; inline for common calls.
pub type KeyWords = SmallVec<[u64; 24]>;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttrValue {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(Arc<str>),
    /// A list of integers; shapes and dims too.
    Ints(SmallVec<[i64; 6]>),
    /// A list of floats.
    Floats(SmallVec<[f64; 4]>),
    /// An element type.
    DType(DType),
    /// A number whose kind takes part in promotion.
    Scalar(Scalar),
    /// Raw bytes.
    Bytes(Arc<[u8]>),
}

/// The type an attribute is declared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttrKind {
    /// Integer.
    Int,
    /// Float; an integer is accepted.
    Float,
    /// Bool.
    Bool,
    /// Text.
    Str,
    /// List of integers.
    Ints,
    /// List of floats.
    Floats,
    /// Tensor shape: a list of non-negative integers.
    Shape,
    /// Element type.
    DType,
    /// Number of any kind.
    Scalar,
    /// Bytes.
    Bytes,
}

impl AttrKind {
    /// The word used in declarations and messages.
    pub fn name(self) -> &'static str {
        match self {
            AttrKind::Int => "int",
            AttrKind::Float => "float",
            AttrKind::Bool => "bool",
            AttrKind::Str => "str",
            AttrKind::Ints => "ints",
            AttrKind::Floats => "floats",
            AttrKind::Shape => "shape",
            AttrKind::DType => "dtype",
            AttrKind::Scalar => "scalar",
            AttrKind::Bytes => "bytes",
        }
    }

    /// The kind of that name.
    pub fn parse(s: &str) -> Result<AttrKind> {
        use AttrKind::*;
        [Int, Float, Bool, Str, Ints, Floats, Shape, DType, Scalar, Bytes]
            .into_iter()
            .find(|k| k.name() == s)
            .ok_or_else(|| Error::parse(format!("unknown attribute type '{s}'")))
    }

    /// Whether a value is of this kind without a conversion; negative sizes of a shape are for the op to refuse.
    pub fn holds(self, v: &AttrValue) -> bool {
        matches!(
            (self, v),
            (AttrKind::Int, AttrValue::Int(_))
                | (AttrKind::Float, AttrValue::Float(_))
                | (AttrKind::Bool, AttrValue::Bool(_))
                | (AttrKind::Str, AttrValue::Str(_))
                | (AttrKind::Ints | AttrKind::Shape, AttrValue::Ints(_))
                | (AttrKind::Floats, AttrValue::Floats(_))
                | (AttrKind::DType, AttrValue::DType(_))
                | (AttrKind::Scalar, AttrValue::Scalar(_))
                | (AttrKind::Bytes, AttrValue::Bytes(_))
        )
    }

    /// Converts a value to this kind where that is lossless.
    pub fn accept(self, name: &str, v: AttrValue) -> Result<AttrValue> {
        let bad = |v: &AttrValue| Err(Error::argument(format!("attribute '{name}' must be {}, not {v}", self.name())));
        Ok(match (self, v) {
            (AttrKind::Int, v @ AttrValue::Int(_))
            | (AttrKind::Bool, v @ AttrValue::Bool(_))
            | (AttrKind::Str, v @ AttrValue::Str(_))
            | (AttrKind::Ints, v @ AttrValue::Ints(_))
            | (AttrKind::Floats, v @ AttrValue::Floats(_))
            | (AttrKind::DType, v @ AttrValue::DType(_))
            | (AttrKind::Scalar, v @ AttrValue::Scalar(_))
            | (AttrKind::Bytes, v @ AttrValue::Bytes(_))
            | (AttrKind::Float, v @ AttrValue::Float(_)) => v,
            (AttrKind::Shape, AttrValue::Ints(v)) => {
                if let Some(n) = v.iter().find(|n| **n < 0) {
                    return Err(Error::shape(format!("a shape cannot hold the size {n}")));
                }
                AttrValue::Ints(v)
            }
            (AttrKind::Int, AttrValue::Scalar(Scalar::Int(i))) => AttrValue::Int(i),
            (AttrKind::Bool, AttrValue::Scalar(Scalar::Bool(b))) => AttrValue::Bool(b),
            (AttrKind::Float, AttrValue::Int(i)) => AttrValue::Float(i as f64),
            (AttrKind::Float, AttrValue::Scalar(s)) => AttrValue::Float(s.to_f64()),
            (AttrKind::Scalar, AttrValue::Int(i)) => AttrValue::Scalar(Scalar::Int(i)),
            (AttrKind::Scalar, AttrValue::Float(x)) => AttrValue::Scalar(Scalar::Float(x)),
            (AttrKind::Scalar, AttrValue::Bool(b)) => AttrValue::Scalar(Scalar::Bool(b)),
            (AttrKind::Ints, AttrValue::Int(i)) => AttrValue::Ints(SmallVec::from_slice(&[i])),
            (_, v) => return bad(&v),
        })
    }

    /// Reads a default or call-by-name value from text.
    pub fn parse_value(self, s: &str) -> Result<AttrValue> {
        let t = s.trim();
        let bad = || Error::parse(format!("'{t}' is not a value of type {}", self.name()));
        let scalar = |t: &str| -> Option<Scalar> {
            match t {
                "true" => Some(Scalar::Bool(true)),
                "false" => Some(Scalar::Bool(false)),
                "inf" => Some(Scalar::Float(f64::INFINITY)),
                "-inf" => Some(Scalar::Float(f64::NEG_INFINITY)),
                _ => t.parse::<i64>().map(Scalar::Int).or_else(|_| t.parse::<f64>().map(Scalar::Float)).ok(),
            }
        };
        Ok(match self {
            AttrKind::Int => AttrValue::Int(t.parse().map_err(|_| bad())?),
            AttrKind::Float => AttrValue::Float(scalar(t).ok_or_else(bad)?.to_f64()),
            AttrKind::Bool => AttrValue::Bool(t.parse().map_err(|_| bad())?),
            AttrKind::Str => AttrValue::Str(t.trim_matches('"').into()),
            AttrKind::DType => AttrValue::DType(t.parse().map_err(|_| bad())?),
            AttrKind::Scalar => AttrValue::Scalar(scalar(t).ok_or_else(bad)?),
            AttrKind::Ints | AttrKind::Shape => {
                let inner = t.strip_prefix('[').and_then(|r| r.strip_suffix(']')).ok_or_else(bad)?;
                let parts = inner.split(',').map(str::trim).filter(|p| !p.is_empty());
                AttrValue::Ints(parts.map(|p| p.parse::<i64>().map_err(|_| bad())).collect::<Result<_>>()?)
            }
            AttrKind::Floats => {
                let inner = t.strip_prefix('[').and_then(|r| r.strip_suffix(']')).ok_or_else(bad)?;
                let parts = inner.split(',').map(str::trim).filter(|p| !p.is_empty());
                AttrValue::Floats(parts.map(|p| p.parse::<f64>().map_err(|_| bad())).collect::<Result<_>>()?)
            }
            AttrKind::Bytes => return Err(Error::parse("bytes have no text form")),
        })
    }
}

impl AttrValue {
    /// Appends words that tell this value from every other.
    pub fn encode(&self, key: &mut KeyWords) {
        match self {
            AttrValue::Int(i) => key.push(*i as u64),
            AttrValue::Float(x) => key.push(x.to_bits()),
            AttrValue::Bool(b) => key.push(*b as u64),
            AttrValue::DType(d) => key.push(*d as u64),
            AttrValue::Ints(v) => {
                key.push(v.len() as u64);
                key.extend(v.iter().map(|i| *i as u64));
            }
            AttrValue::Floats(v) => {
                key.push(v.len() as u64);
                key.extend(v.iter().map(|x| x.to_bits()));
            }
            AttrValue::Scalar(s) => {
                key.push(s.kind() as u64);
                key.push(match s {
                    Scalar::Bool(b) => *b as u64,
                    Scalar::Int(i) => *i as u64,
                    Scalar::Float(x) => x.to_bits(),
                });
            }
            AttrValue::Str(s) => encode_bytes(s.as_bytes(), key),
            AttrValue::Bytes(b) => encode_bytes(b, key),
        }
    }

    /// Kind of a number, for promotion.
    pub fn scalar_kind(&self) -> Option<DTypeKind> {
        match self {
            AttrValue::Scalar(s) => Some(s.kind()),
            AttrValue::Int(_) => Some(DTypeKind::Int),
            AttrValue::Float(_) => Some(DTypeKind::Float),
            AttrValue::Bool(_) => Some(DTypeKind::Bool),
            _ => None,
        }
    }

    /// As a scalar, if it is a number.
    pub fn to_scalar(&self) -> Option<Scalar> {
        match self {
            AttrValue::Scalar(s) => Some(*s),
            AttrValue::Int(i) => Some(Scalar::Int(*i)),
            AttrValue::Float(x) => Some(Scalar::Float(*x)),
            AttrValue::Bool(b) => Some(Scalar::Bool(*b)),
            _ => None,
        }
    }
}

fn encode_bytes(bytes: &[u8], key: &mut KeyWords) {
    key.push(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut w = [0u8; 8];
        w[..chunk.len()].copy_from_slice(chunk);
        key.push(u64::from_le_bytes(w));
    }
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::Int(i) => write!(f, "{i}"),
            AttrValue::Float(x) => write!(f, "{x:?}"),
            AttrValue::Bool(b) => write!(f, "{b}"),
            AttrValue::Str(s) => write!(f, "{s:?}"),
            AttrValue::Ints(v) => write!(f, "{:?}", v.as_slice()),
            AttrValue::Floats(v) => write!(f, "{:?}", v.as_slice()),
            AttrValue::DType(d) => write!(f, "{d}"),
            AttrValue::Scalar(s) => write!(f, "{s}"),
            AttrValue::Bytes(b) => write!(f, "<{} bytes>", b.len()),
        }
    }
}

/// A size as an attribute. One that is no i64 becomes the largest, which no tensor can have.
fn saturated(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

macro_rules! from {
    ($($t:ty => |$x:ident| $e:expr;)*) => {$(
        impl From<$t> for AttrValue { fn from($x: $t) -> AttrValue { $e } }
    )*};
}
from! {
    i64 => |x| AttrValue::Int(x);
    i32 => |x| AttrValue::Int(x as i64);
    usize => |x| AttrValue::Int(saturated(x));
    f64 => |x| AttrValue::Float(x);
    bool => |x| AttrValue::Bool(x);
    &str => |x| AttrValue::Str(x.into());
    DType => |x| AttrValue::DType(x);
    Scalar => |x| AttrValue::Scalar(x);
    &[i64] => |x| AttrValue::Ints(x.into());
    Vec<i64> => |x| AttrValue::Ints(x.into());
    &[usize] => |x| AttrValue::Ints(x.iter().map(|i| saturated(*i)).collect());
}
impl<const N: usize> From<[i64; N]> for AttrValue {
    fn from(x: [i64; N]) -> AttrValue {
        AttrValue::Ints(SmallVec::from_slice(&x))
    }
}

/// Values of the plan attributes, in declared order.
pub type Attrs = SmallVec<[AttrValue; 2]>;
/// Values of the runtime attributes, in declared order. They are numbers and may change from call to call without a new
/// plan; shape, dtype and SBP rules cannot see them.
pub type RuntimeAttrs = SmallVec<[Scalar; 4]>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_and_convert() {
        assert_eq!(AttrKind::Ints.parse_value("[1, -2]").unwrap(), AttrValue::from([1i64, -2]));
        assert_eq!(AttrKind::Scalar.parse_value("2").unwrap(), AttrValue::Scalar(Scalar::Int(2)));
        assert!(AttrKind::Int.parse_value("2.5").is_err());
        assert!(AttrKind::Shape.accept("shape", AttrValue::from([-1i64])).is_err());
        let e = AttrKind::Bool.accept("causal", AttrValue::Int(1)).unwrap_err();
        assert_eq!(e.message(), "attribute 'causal' must be bool, not 1");
    }
}
