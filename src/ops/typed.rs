//! Values of attributes as types of Rust: which type reads which values is decided here, for attributes by name (`named.rs`),
//! structs of parameters (`params.rs`) and the arguments of functions (`functional/bind/bound.rs`).

use super::attr::AttrValue;
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use oflow_kernels::{DType, Scalar};

/// A type that the value of an attribute can be read as.
pub(crate) trait FromAttr<'a>: Sized {
    /// The type in messages, with its article.
    const WHAT: &'static str;
    /// Whether it is a number, which a runtime attribute may be.
    const IS_NUMBER: bool = false;

    /// The value as this type; none if it is of another one.
    fn from_attr(value: &'a AttrValue) -> Option<Self>;

    /// A number as this type; none if it is of another one.
    fn from_number(_: Scalar) -> Option<Self> {
        None
    }
}

macro_rules! numbers {
    ($($t:ty = $what:literal: $number:expr;)*) => {$(
        impl<'a> FromAttr<'a> for $t {
            const WHAT: &'static str = $what;
            const IS_NUMBER: bool = true;
            fn from_attr(value: &'a AttrValue) -> Option<$t> {
                value.to_scalar().and_then(Self::from_number)
            }
            fn from_number(s: Scalar) -> Option<$t> {
                let read: fn(Scalar) -> Option<$t> = $number;
                read(s)
            }
        }
    )*};
}
numbers! {
    i64 = "an integer": |s| if let Scalar::Int(i) = s { Some(i) } else { None };
    // An integer is a float too.
    f64 = "a float": |s| if let Scalar::Bool(_) = s { None } else { Some(s.to_f64()) };
    bool = "a bool": |s| if let Scalar::Bool(b) = s { Some(b) } else { None };
    Scalar = "a number": Some;
}

macro_rules! values {
    ($($t:ty = $what:literal: $from:pat => $found:expr;)*) => {$(
        impl<'a> FromAttr<'a> for $t {
            const WHAT: &'static str = $what;
            fn from_attr(value: &'a AttrValue) -> Option<$t> {
                match value {
                    $from => Some($found),
                    _ => None,
                }
            }
        }
    )*};
}
values! {
    &'a str = "text": AttrValue::Str(s) => s;
    &'a [i64] = "a list of integers": AttrValue::Ints(v) => v;
    &'a [f64] = "a list of floats": AttrValue::Floats(v) => v;
    &'a [AttrValue] = "a list": AttrValue::List(v) => v;
    DType = "a dtype": AttrValue::DType(d) => *d;
    Device = "a device": AttrValue::Device(d) => *d;
    &'a Placement = "a placement": AttrValue::Placement(p) => p;
    &'a NdSbp = "an nd-SBP": AttrValue::NdSbp(s) => s;
}
