//! The parameters of an op as a struct: one type says the attributes of the op and of its gradient op, and is what kernels and rules
//! read (PopXL's parameter struct).

use super::attr::{AttrKind, AttrValue};
use super::def::OpDef;
use super::typed::FromAttr;
use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use crate::placement::Device;
use oflow_kernels::{DType, Scalar};
use smallvec::SmallVec;
use std::fmt::Write;
use std::hash::Hasher;
use std::sync::Arc;

/// A field of a struct of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamField {
    /// Name of the attribute.
    pub name: &'static str,
    /// Kind of the attribute.
    pub kind: AttrKind,
    /// May be left out.
    pub optional: bool,
    /// Plans do not depend on it.
    pub runtime: bool,
    /// Default value, as a declaration writes it.
    pub default: Option<&'static str>,
}

/// A struct that holds the attributes of an op. `#[derive(OpParams)]` implements it:
///
/// ```
/// use oflow::ops::{KernelCx, OpDef, OpParams, register};
/// use oflow::{interpreter::OpCall, prelude::*};
///
/// #[derive(Clone, Debug, PartialEq, OpParams)]
/// struct Affine {
///     #[param(default = "1 / 8", runtime)]
///     scale: f64,
///     #[param(default = "2")]
///     times: usize,
/// }
///
/// fn affine(cx: &KernelCx<'_>) -> Result<()> {
///     let (p, x) = (cx.params::<Affine>()?, cx.input("x")?.as_slice::<f64>()?);
///     // SAFETY: the output of this call, of which no other slice is alive.
///     let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
///     y.iter_mut().zip(x).for_each(|(y, x)| *y = p.scale * x * p.times as f64);
///     Ok(())
/// }
///
/// assert_eq!(Affine::grammar(), "scale: runtime float = 1 / 8, times: int = 2");
/// let op = OpDef::with_params::<Affine>("affine(x: f64) -> y")?.domain("params").cpu(affine);
/// let op = register(op)?;
/// let x = from_vec(vec![8.0f64], [1], Device::Cpu)?;
/// let call = OpCall::new(op, &Affine { scale: 0.5, times: 3 }.values())?;
/// assert_eq!(call.run(&[Some(&x)])?[0].to_vec::<f64>()?, [12.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub trait OpParams: Sized {
    /// The fields in declared order.
    const FIELDS: &'static [ParamField];

    /// Reads all fields; `get` gives the value of an attribute.
    ///
    /// # Errors
    /// Those of `get`; a value that the field's type cannot hold.
    fn read(get: &dyn Fn(&str) -> Result<AttrValue>) -> Result<Self>;

    /// The values by name, for a call.
    fn values(&self) -> Vec<(&'static str, AttrValue)>;

    /// The attributes as a declaration writes them: `alpha: runtime float = 0.02`.
    fn grammar() -> String {
        let mut text = String::new();
        for f in Self::FIELDS {
            let (sep, optional) = (if text.is_empty() { "" } else { ", " }, if f.optional { "?" } else { "" });
            let runtime = if f.runtime { "runtime " } else { "" };
            // Writing to a text does not fail.
            let _ = write!(text, "{sep}{}{optional}: {runtime}{}", f.name, f.kind.name());
            if let Some(default) = f.default {
                let _ = write!(text, " = {default}");
            }
        }
        text
    }

    /// A hash of names, types and defaults: the same in every process that has the same struct.
    fn identity() -> u64 {
        let mut h = FixedHasher::default();
        h.write(Self::grammar().as_bytes());
        h.finish()
    }
}

/// A type that a parameter may have.
pub trait ParamType: Sized {
    /// The type of the attribute.
    const KIND: AttrKind;
    /// Whether it may be left out.
    const OPTIONAL: bool = false;

    /// The value of the attribute `name`, if this type holds it without loss. (Floats may be rounded to `f32`.)
    ///
    /// # Errors
    /// It does not.
    fn from_value(name: &str, value: AttrValue) -> Result<Self>;

    /// As an attribute.
    fn to_value(&self) -> AttrValue;
}

#[cold]
fn wrong(name: &str, value: &AttrValue, wanted: &str) -> Error {
    Error::argument(format!("the parameter '{name}' is {value}, which is not {wanted}"))
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl ParamType for $t {
            const KIND: AttrKind = AttrKind::Int;
            fn from_value(name: &str, value: AttrValue) -> Result<$t> {
                let found = i64::from_attr(&value).and_then(|i| <$t>::try_from(i).ok());
                found.ok_or_else(|| wrong(name, &value, concat!("a ", stringify!($t))))
            }
            fn to_value(&self) -> AttrValue {
                // No address space has as many bytes as the largest i64.
                AttrValue::Int(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    )*};
}
integers!(i64, i32, u32, usize);

macro_rules! plain {
    ($($t:ty = $kind:ident as $read:ty: $own:expr, $to:expr;)*) => {$(
        impl ParamType for $t {
            const KIND: AttrKind = AttrKind::$kind;
            fn from_value(name: &str, value: AttrValue) -> Result<$t> {
                let own: fn($read) -> $t = $own;
                <$read>::from_attr(&value).map(own).ok_or_else(|| wrong(name, &value, <$read>::WHAT))
            }
            fn to_value(&self) -> AttrValue {
                let to: fn(&$t) -> AttrValue = $to;
                to(self)
            }
        }
    )*};
}
plain! {
    f64 = Float as f64: |x| x, |x| AttrValue::Float(*x);
    bool = Bool as bool: |b| b, |b| AttrValue::Bool(*b);
    String = Str as &str: str::to_string, |s| AttrValue::Str(s.as_str().into());
    DType = DType as DType: |d| d, |d| AttrValue::DType(*d);
    Device = Device as Device: |d| d, |d| AttrValue::Device(*d);
    Scalar = Scalar as Scalar: |s| s, |s| AttrValue::Scalar(*s);
    Vec<i64> = Ints as &[i64]: <[i64]>::to_vec, |v| AttrValue::Ints(v.as_slice().into());
    Vec<f64> = Floats as &[f64]: <[f64]>::to_vec, |v| AttrValue::Floats(SmallVec::from_slice(v));
}

impl ParamType for f32 {
    const KIND: AttrKind = AttrKind::Float;
    fn from_value(name: &str, value: AttrValue) -> Result<f32> {
        let x = f64::from_value(name, value)?;
        match (x as f32).is_finite() || !x.is_finite() {
            true => Ok(x as f32),
            false => Err(wrong(name, &AttrValue::Float(x), "an f32")),
        }
    }
    fn to_value(&self) -> AttrValue {
        AttrValue::Float(f64::from(*self))
    }
}

macro_rules! lists {
    ($($t:ty = $kind:ident $words:literal),*) => {$(
        impl ParamType for Vec<$t> {
            const KIND: AttrKind = AttrKind::$kind;
            fn from_value(name: &str, value: AttrValue) -> Result<Vec<$t>> {
                match value {
                    AttrValue::List(all) => all.iter().map(|v| <$t>::from_value(name, v.clone())).collect(),
                    other => Err(wrong(name, &other, $words)),
                }
            }
            fn to_value(&self) -> AttrValue {
                let all: Arc<[AttrValue]> = self.iter().map(|v| v.to_value()).collect();
                AttrValue::List(all)
            }
        }
    )*};
}
lists!(bool = Bools "a list of bools", String = Strs "a list of texts", DType = DTypes "a list of element types");

impl<T: ParamType> ParamType for Option<T> {
    const KIND: AttrKind = T::KIND;
    const OPTIONAL: bool = true;
    fn from_value(name: &str, value: AttrValue) -> Result<Option<T>> {
        match value {
            AttrValue::Absent => Ok(None),
            value => T::from_value(name, value).map(Some),
        }
    }
    fn to_value(&self) -> AttrValue {
        self.as_ref().map_or(AttrValue::Absent, T::to_value)
    }
}

impl OpDef {
    /// Starts a declaration whose attributes are the fields of `P`. `text` has none: `leaky_relu(x: float) -> y`.
    ///
    /// # Errors
    /// The text is no declaration, or has attributes of its own; a default is none of its type.
    pub fn with_params<P: OpParams>(text: &str) -> Result<OpDef> {
        let arrow = text.find("->").unwrap_or(text.len());
        match (text[..arrow].rfind(')'), text[..arrow].contains(';')) {
            (Some(close), false) => OpDef::new(&format!("{}; {}{}", &text[..close], P::grammar(), &text[close..])),
            (None, _) => OpDef::new(text),
            (_, true) => {
                Err(Error::parse(format!("op declaration '{text}' has attributes beside those of its parameters"))
                    .help("put them into the struct"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_type_cannot_hold_are_refused() {
        assert_eq!(i32::from_value("n", AttrValue::Int(7)).unwrap(), 7);
        assert!(i32::from_value("n", AttrValue::Int(1 << 40)).unwrap_err().message().contains("'n' is 1099511627776"));
        assert!(usize::from_value("n", AttrValue::Int(-1)).is_err());
        assert!(f32::from_value("x", AttrValue::Float(1e300)).is_err());
        assert!(f32::from_value("x", AttrValue::Float(f64::INFINITY)).unwrap().is_infinite());
        assert_eq!(f64::from_value("x", AttrValue::Int(1)).unwrap(), 1.0);
        assert!(f64::from_value("x", AttrValue::Bool(true)).is_err() && f64::from_value("x", "1".into()).is_err());
        assert_eq!(Option::<f64>::from_value("x", AttrValue::Absent).unwrap(), None);
        let texts = vec!["a".to_string(), "b".to_string()];
        assert_eq!(Vec::<String>::from_value("l", texts.to_value()).unwrap(), texts);
        assert!(Vec::<bool>::from_value("l", texts.to_value()).is_err());
    }
}
