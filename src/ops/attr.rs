//! Typed attributes of an op: values, kinds, and the words they contribute to a dispatch key.

use super::arith::Arith;
use super::signature::split_outside;
use crate::error::{Error, Result};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp};
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
    /// A signed integer of 64 bits.
    Int(i64),
    /// A floating point number of 64 bits.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text of UTF-8.
    Str(Arc<str>),
    /// A list of integers; shapes and dims too.
    Ints(SmallVec<[i64; 6]>),
    /// A list of floats.
    Floats(SmallVec<[f64; 4]>),
    /// An element type.
    DType(DType),
    /// A number whose kind takes part in promotion.
    Scalar(Scalar),
    /// Raw bytes, as of a tensor's values.
    Bytes(Arc<[u8]>),
    /// A kind of device.
    Device(Device),
    /// A mesh of ranks.
    Placement(Placement),
    /// One SBP per mesh axis.
    NdSbp(NdSbp),
    /// A list of values, for kinds such as `placements`.
    List(Arc<[AttrValue]>),
    /// An optional attribute that was not given.
    Absent,
    /// In a lowering: a runtime attribute of the call that is lowered. Its value is known only when the call runs.
    Given(GivenNumber),
}

/// A runtime attribute of the call that a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenNumber {
    /// Position among the runtime attributes of the call, in declared order.
    pub index: usize,
    /// Kind of the number, all that is known when the plan is made.
    pub kind: DTypeKind,
}

/// A runtime attribute of a kernel in a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RuntimeArg {
    /// A number that the lowering states.
    Number(Scalar),
    /// A number of the call.
    Given(GivenNumber),
}

impl RuntimeArg {
    /// The kind of the number.
    pub fn kind(&self) -> DTypeKind {
        match self {
            RuntimeArg::Number(s) => s.kind(),
            RuntimeArg::Given(g) => g.kind,
        }
    }
    /// The number, for a call with these runtime attributes.
    pub fn of(&self, runtime: &[Scalar]) -> Result<Scalar> {
        match self {
            RuntimeArg::Number(s) => Ok(*s),
            RuntimeArg::Given(g) => runtime
                .get(g.index)
                .copied()
                .ok_or_else(|| Error::argument(format!("runtime attribute {} is missing", g.index))),
        }
    }
}

/// The type an attribute is declared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttrKind {
    /// A signed integer of 64 bits.
    Int,
    /// Float; an integer is accepted.
    Float,
    /// True or false.
    Bool,
    /// A text of UTF-8.
    Str,
    /// List of integers.
    Ints,
    /// List of floats.
    Floats,
    /// Tensor shape: a list of non-negative integers.
    Shape,
    /// An element type.
    DType,
    /// Number of any kind.
    Scalar,
    /// Raw bytes, as of a tensor's values.
    Bytes,
    /// Kind of device.
    Device,
    /// A placement: device and mesh of ranks.
    Placement,
    /// One SBP per mesh axis.
    NdSbp,
    /// List of lists of integers.
    IntLists,
    /// List of placements.
    Placements,
    /// List of nd-SBPs; a member may be absent.
    NdSbps,
    /// List of bools.
    Bools,
    /// List of texts.
    Strs,
    /// List of element types.
    DTypes,
    /// List of tensor shapes.
    Shapes,
    /// List of numbers of any kind.
    Scalars,
}

/// Whether the integer is a float too: 2^53 + 1 is none.
fn exact(i: i64) -> bool {
    i.unsigned_abs().checked_shr(i.trailing_zeros()).is_none_or(|odd| odd < 1 << 53)
}

impl AttrKind {
    const ALL: [AttrKind; 21] = {
        use AttrKind::*;
        [
            Int, Float, Bool, Str, Ints, Floats, Shape, DType, Scalar, Bytes, Device, Placement, NdSbp, IntLists,
            Placements, NdSbps, Bools, Strs, DTypes, Shapes, Scalars,
        ]
    };

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
            AttrKind::Device => "device",
            AttrKind::Placement => "placement",
            AttrKind::NdSbp => "sbp",
            AttrKind::IntLists => "int_lists",
            AttrKind::Placements => "placements",
            AttrKind::NdSbps => "sbps",
            AttrKind::Bools => "bools",
            AttrKind::Strs => "strs",
            AttrKind::DTypes => "dtypes",
            AttrKind::Shapes => "shapes",
            AttrKind::Scalars => "scalars",
        }
    }

    /// The kind of that name.
    pub fn parse(s: &str) -> Result<AttrKind> {
        AttrKind::ALL
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
                | (AttrKind::Device, AttrValue::Device(_))
                | (AttrKind::Placement, AttrValue::Placement(_))
                | (AttrKind::NdSbp, AttrValue::NdSbp(_))
        ) || matches!(v, AttrValue::List(list) if self.is_list_of(list))
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
            | (AttrKind::Device, v @ AttrValue::Device(_))
            | (AttrKind::Placement, v @ AttrValue::Placement(_))
            | (AttrKind::NdSbp, v @ AttrValue::NdSbp(_))
            | (AttrKind::Float, v @ AttrValue::Float(_)) => v,
            (AttrKind::Shape, AttrValue::Ints(v)) => {
                if let Some(n) = v.iter().find(|n| **n < 0) {
                    return Err(Error::shape(format!("a shape cannot hold the size {n}")));
                }
                AttrValue::Ints(v)
            }
            (AttrKind::Int, AttrValue::Scalar(Scalar::Int(i))) => AttrValue::Int(i),
            (AttrKind::Bool, AttrValue::Scalar(Scalar::Bool(b))) => AttrValue::Bool(b),
            (AttrKind::Float, AttrValue::Int(i)) if exact(i) => AttrValue::Float(i as f64),
            (AttrKind::Float, AttrValue::Scalar(Scalar::Int(i))) if exact(i) => AttrValue::Float(i as f64),
            (AttrKind::Float, AttrValue::Scalar(s @ (Scalar::Float(_) | Scalar::Bool(_)))) => {
                AttrValue::Float(s.to_f64())
            }
            (AttrKind::Scalar, v @ AttrValue::Given(_)) => v,
            (AttrKind::Scalar, AttrValue::Int(i)) => AttrValue::Scalar(Scalar::Int(i)),
            (AttrKind::Scalar, AttrValue::Float(x)) => AttrValue::Scalar(Scalar::Float(x)),
            (AttrKind::Scalar, AttrValue::Bool(b)) => AttrValue::Scalar(Scalar::Bool(b)),
            (AttrKind::Ints, AttrValue::Int(i)) => AttrValue::Ints(SmallVec::from_slice(&[i])),
            (AttrKind::Floats, AttrValue::Int(i)) if exact(i) => AttrValue::Floats(SmallVec::from_slice(&[i as f64])),
            (AttrKind::Floats, AttrValue::Float(x)) => AttrValue::Floats(SmallVec::from_slice(&[x])),
            (AttrKind::Floats, AttrValue::Ints(v)) if v.iter().all(|i| exact(*i)) => {
                AttrValue::Floats(v.iter().map(|i| *i as f64).collect())
            }
            // A list of numbers may stand as one of ints or floats.
            (AttrKind::Scalars, AttrValue::Ints(v)) => {
                AttrValue::List(v.iter().map(|i| Scalar::Int(*i).into()).collect())
            }
            (AttrKind::Scalars, AttrValue::Floats(v)) => {
                AttrValue::List(v.iter().map(|x| Scalar::Float(*x).into()).collect())
            }
            (kind, AttrValue::List(v)) if kind.is_list_of(&v) => AttrValue::List(v),
            (kind, AttrValue::Ints(v)) if v.is_empty() && kind.is_list() => AttrValue::List([].into()),
            (kind, AttrValue::List(v)) if kind.member().is_some() => {
                let of = kind.member().unwrap_or(kind);
                AttrValue::List(v.iter().map(|m| of.accept(name, m.clone())).collect::<Result<_>>()?)
            }
            (_, v) => return bad(&v),
        })
    }

    /// The kind of the members of a list of bools, texts, element types, shapes or numbers; none for other kinds.
    pub fn member(self) -> Option<AttrKind> {
        match self {
            AttrKind::Bools => Some(AttrKind::Bool),
            AttrKind::Strs => Some(AttrKind::Str),
            AttrKind::DTypes => Some(AttrKind::DType),
            AttrKind::Shapes => Some(AttrKind::Shape),
            AttrKind::Scalars => Some(AttrKind::Scalar),
            _ => None,
        }
    }

    /// Whether values of this kind are lists of other values.
    pub(super) fn is_list(self) -> bool {
        self.member().is_some() || matches!(self, AttrKind::IntLists | AttrKind::Placements | AttrKind::NdSbps)
    }

    /// Whether this is a kind of lists, and these may be its members.
    fn is_list_of(self, members: &[AttrValue]) -> bool {
        self.is_list() && members.iter().all(|member| self.has_member(member))
    }

    /// Whether a list of this kind may hold that.
    fn has_member(self, member: &AttrValue) -> bool {
        matches!(
            (self, member),
            (AttrKind::IntLists, AttrValue::Ints(_))
                | (AttrKind::Placements, AttrValue::Placement(_))
                | (AttrKind::NdSbps, AttrValue::NdSbp(_) | AttrValue::Absent)
        ) || self.member().is_some_and(|kind| {
            kind.holds(member)
                && !matches!((kind, member), (AttrKind::Shape, AttrValue::Ints(v)) if v.iter().any(|n| *n < 0))
        })
    }

    /// Reads a default or call-by-name value from text. A number may be arithmetic over numbers: `1 / 8`.
    pub fn parse_value(self, s: &str) -> Result<AttrValue> {
        let t = s.trim();
        let bad = || Error::parse(format!("'{t}' is not a value of type {}", self.name()));
        let scalar = |t: &str| -> Option<Scalar> {
            match t {
                "true" => Some(Scalar::Bool(true)),
                "false" => Some(Scalar::Bool(false)),
                _ if t.ends_with('j') => Scalar::parse_complex(t),
                _ => match t.parse::<i64>().map(Scalar::Int).or_else(|_| t.parse::<f64>().map(Scalar::Float)) {
                    Ok(number) => Some(number),
                    Err(_) => Arith::parse(t).and_then(|a| a.constant()).ok(),
                },
            }
        };
        let int = |t: &str| match scalar(t) {
            Some(Scalar::Int(i)) => Ok(i),
            _ => Err(bad()),
        };
        Ok(match self {
            AttrKind::Int => AttrValue::Int(int(t)?),
            AttrKind::Float => self.accept("", scalar(t).ok_or_else(bad)?.into()).map_err(|_| bad())?,
            AttrKind::Bool => AttrValue::Bool(t.parse().map_err(|_| bad())?),
            AttrKind::Str => AttrValue::Str(t.trim_matches('"').into()),
            AttrKind::DType => AttrValue::DType(t.parse().map_err(|_| bad())?),
            AttrKind::Scalar => AttrValue::Scalar(scalar(t).ok_or_else(bad)?),
            AttrKind::Ints | AttrKind::Shape => {
                let inner = t.strip_prefix('[').and_then(|r| r.strip_suffix(']')).ok_or_else(bad)?;
                let parts = inner.split(',').map(str::trim).filter(|p| !p.is_empty());
                AttrValue::Ints(parts.map(int).collect::<Result<_>>()?)
            }
            AttrKind::Floats => {
                let inner = t.strip_prefix('[').and_then(|r| r.strip_suffix(']')).ok_or_else(bad)?;
                let parts = inner.split(',').map(str::trim).filter(|p| !p.is_empty());
                AttrValue::Floats(parts.map(|p| Ok(scalar(p).ok_or_else(bad)?.to_f64())).collect::<Result<_>>()?)
            }
            AttrKind::Device => AttrValue::Device(t.parse()?),
            AttrKind::NdSbp => AttrValue::NdSbp(t.parse()?),
            AttrKind::Bools | AttrKind::Strs | AttrKind::DTypes | AttrKind::Shapes | AttrKind::Scalars => {
                let inner = t.strip_prefix('[').and_then(|r| r.strip_suffix(']')).ok_or_else(bad)?;
                let of = self.member().ok_or_else(bad)?;
                AttrValue::List(split_outside(inner, ',').map(|p| of.parse_value(p)).collect::<Result<_>>()?)
            }
            AttrKind::Bytes | AttrKind::Placement | AttrKind::IntLists | AttrKind::Placements | AttrKind::NdSbps => {
                return Err(Error::parse(format!("values of type {} have no text form", self.name())));
            }
        })
    }
}

impl AttrValue {
    /// Appends words that tell this value from every other, of whatever type: a tag, then what it holds, with its length
    /// first where that may differ. So no two lists of values have the same words.
    pub fn encode(&self, key: &mut KeyWords) {
        match self {
            AttrValue::Int(i) => key.extend([1, *i as u64]),
            AttrValue::Float(x) => key.extend([2, x.to_bits()]),
            AttrValue::Bool(b) => key.extend([3, u64::from(*b)]),
            AttrValue::DType(d) => key.extend([4, d.fingerprint()]),
            AttrValue::Ints(v) => {
                key.extend([5, v.len() as u64]);
                key.extend(v.iter().map(|i| *i as u64));
            }
            AttrValue::Floats(v) => {
                key.extend([6, v.len() as u64]);
                key.extend(v.iter().map(|x| x.to_bits()));
            }
            AttrValue::Scalar(Scalar::Bool(b)) => key.extend([7, u64::from(*b)]),
            AttrValue::Scalar(Scalar::Int(i)) => key.extend([8, *i as u64]),
            AttrValue::Scalar(Scalar::Float(x)) => key.extend([9, x.to_bits()]),
            AttrValue::Scalar(Scalar::Complex(re, im)) => key.extend([17, re.to_bits(), im.to_bits()]),
            AttrValue::Str(s) => {
                key.push(10);
                encode_bytes(s.as_bytes(), key);
            }
            AttrValue::Bytes(b) => {
                key.push(11);
                encode_bytes(b, key);
            }
            AttrValue::Device(d) => key.extend([12, d.number().into()]),
            AttrValue::Placement(p) => key.extend([13, p.id()]),
            AttrValue::NdSbp(n) => {
                key.push(14);
                encode_sbp(n, key);
            }
            AttrValue::List(v) => {
                key.extend([15, v.len() as u64]);
                v.iter().for_each(|member| member.encode(key));
            }
            AttrValue::Absent => key.push(0),
            AttrValue::Given(g) => key.extend([16, g.index as u64, g.kind as u64]),
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

/// Appends words that tell this nd-SBP from every other: its length, then a word for each axis (two for a split dim that
/// does not fit beside the tags).
pub(crate) fn encode_sbp(sbp: &NdSbp, key: &mut KeyWords) {
    const FIRST_DIM: u64 = 16;
    const LARGE_DIM: u64 = 15;
    key.push(sbp.len() as u64);
    for s in sbp.iter() {
        match s {
            Sbp::Broadcast => key.push(0),
            Sbp::Partial(op) => key.push(1 + *op as u64),
            Sbp::Split(d) => match FIRST_DIM.checked_add(*d as u64) {
                Some(word) => key.push(word),
                None => key.extend([LARGE_DIM, *d as u64]),
            },
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
            AttrValue::Device(d) => write!(f, "{d}"),
            AttrValue::Placement(p) => write!(f, "{p}"),
            AttrValue::NdSbp(n) => write!(f, "{n}"),
            AttrValue::List(v) => {
                let members: Vec<String> = v.iter().map(|m| m.to_string()).collect();
                write!(f, "[{}]", members.join(", "))
            }
            AttrValue::Absent => f.write_str("none"),
            AttrValue::Given(g) => write!(f, "runtime attribute {}", g.index),
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
    Device => |x| AttrValue::Device(x);
    Placement => |x| AttrValue::Placement(x);
    &Placement => |x| AttrValue::Placement(x.clone());
    NdSbp => |x| AttrValue::NdSbp(x);
    &NdSbp => |x| AttrValue::NdSbp(x.clone());
    Option<NdSbp> => |x| x.map_or(AttrValue::Absent, AttrValue::NdSbp);
    Vec<AttrValue> => |x| AttrValue::List(x.into());
    Vec<f64> => |x| AttrValue::Floats(x.into());
    Vec<bool> => |x| x.into_iter().map(AttrValue::from).collect::<Vec<_>>().into();
    Vec<&str> => |x| x.into_iter().map(AttrValue::from).collect::<Vec<_>>().into();
    Vec<DType> => |x| x.into_iter().map(AttrValue::from).collect::<Vec<_>>().into();
    Vec<Scalar> => |x| x.into_iter().map(AttrValue::from).collect::<Vec<_>>().into();
    Vec<Vec<i64>> => |x| x.into_iter().map(AttrValue::from).collect::<Vec<_>>().into();
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
    use crate::sbp::ReduceOp;

    #[test]
    fn values_read_and_convert() {
        assert_eq!(AttrKind::Ints.parse_value("[1, -2]").unwrap(), AttrValue::from([1i64, -2]));
        assert_eq!(AttrKind::Scalar.parse_value("2").unwrap(), AttrValue::Scalar(Scalar::Int(2)));
        assert!(AttrKind::Int.parse_value("2.5").is_err());
        assert!(AttrKind::Shape.accept("shape", AttrValue::from([-1i64])).is_err());
        let e = AttrKind::Bool.accept("causal", AttrValue::Int(1)).unwrap_err();
        assert_eq!(e.message(), "attribute 'causal' must be bool, not 1");
        let sbps = |v: &[AttrValue]| AttrKind::NdSbps.accept("sbps", AttrValue::List(v.into()));
        assert!(sbps(&[crate::sbp![S(0)].into(), AttrValue::Absent]).is_ok());
        assert!(sbps(&[1i64.into()]).is_err());
        for (kind, text) in [
            (AttrKind::Bools, "[true, false]"),
            (AttrKind::Strs, r#"["a, b", "]"]"#),
            (AttrKind::DTypes, "[f32, i64]"),
            (AttrKind::Shapes, "[[1, 2], [], [3]]"),
            (AttrKind::Scalars, "[1, 2.5, true]"),
            (AttrKind::Bools, "[]"),
        ] {
            let value = kind.parse_value(text).unwrap();
            assert_eq!(value.to_string(), text);
            assert_eq!(kind.accept("x", value.clone()).unwrap(), value);
            assert!(kind.holds(&value) && !AttrKind::Int.holds(&value));
        }
        assert!(AttrKind::Shapes.accept("x", vec![vec![1i64], vec![-2]].into()).is_err());
        assert!(AttrKind::Bools.parse_value("[true, 1]").is_err());
        let numbers = AttrKind::Scalars.accept("x", vec![1i64, 2].into()).unwrap();
        assert_eq!(numbers, vec![Scalar::Int(1), Scalar::Int(2)].into());
        assert_eq!(AttrKind::NdSbp.parse_value("[S(0), P]").unwrap(), crate::sbp![S(0), P].into());
        assert!(AttrKind::ALL.iter().all(|k| AttrKind::parse(k.name()).unwrap() == *k));
    }

    /// Values that a careless encoding takes for each other: equal bits of other types, dims at the ends of the numbers,
    /// lists that another list continues.
    #[test]
    fn no_two_lists_of_values_have_the_same_words() {
        let ends = [0, 1, 2, 15, 16, usize::MAX, usize::MAX - 15, usize::MAX - 16, 1 << 60];
        let sbps: Vec<Sbp> = ends
            .iter()
            .map(|d| Sbp::Split(*d))
            .chain([Sbp::Broadcast])
            .chain([ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min].map(Sbp::Partial))
            .collect();
        let mut values: Vec<AttrValue> = vec![AttrValue::Absent, AttrValue::List(Arc::new([]))];
        for n in [0i64, 1, 2, 5, 14, -1, i64::MIN] {
            values.extend([n.into(), AttrValue::Float(f64::from_bits(n as u64)), AttrValue::Scalar(Scalar::Int(n))]);
            values.extend([AttrValue::from([n]), AttrValue::from([n, n]), AttrValue::from([n, 0])]);
            values.push(AttrValue::Scalar(Scalar::Float(f64::from_bits(n as u64))));
            values.push(AttrValue::List(Arc::new([n.into()])));
        }
        values.extend([true, false].map(AttrValue::Bool));
        values.extend([true, false].map(|b| AttrValue::Scalar(Scalar::Bool(b))));
        values.extend(DType::BUILTIN.iter().map(|d| AttrValue::DType(*d)));
        values.extend(["", "\u{1}", "ab", "ab\0"].map(AttrValue::from));
        values.extend([&[][..], &[1], &[1, 0]].map(|b: &[u8]| AttrValue::Bytes(b.into())));
        values.extend([Device::Cpu, Device::Cuda, Device::Async].map(AttrValue::Device));
        values.extend([1, 2].map(|n| AttrValue::Placement(Placement::of_world(Device::Cpu, n).unwrap())));
        for a in &sbps {
            values.push(NdSbp::new(&[*a]).into());
            values.extend(sbps.iter().map(|b| AttrValue::from(NdSbp::new(&[*a, *b]))));
        }
        values.push(NdSbp::new(&[]).into());
        let mut seen: Vec<(KeyWords, String)> = vec![];
        let mut add = |list: &[&AttrValue]| {
            let mut key = KeyWords::new();
            list.iter().for_each(|v| v.encode(&mut key));
            seen.push((key, format!("{list:?}")));
        };
        for (i, a) in values.iter().enumerate() {
            add(&[a]);
            // Pairs too: one value's words must not run into the next one's.
            values.iter().skip(i % 7).step_by(7).for_each(|b| add(&[a, b]));
        }
        println!("{} lists", seen.len());
        seen.sort();
        for pair in seen.windows(2) {
            assert!(pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1, "{} and {}", pair[0].1, pair[1].1);
        }
    }
}
