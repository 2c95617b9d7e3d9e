//! Objects of Python as arguments of functions.

use crate::errors::Unfit;
use crate::indices::index;
use crate::numbers::{int, scalar};
use crate::phrases::in_python;
use crate::place;
use crate::signature::{self, PLACE};
use crate::tensor::Tensor;
use crate::types::{self, Generator};
use oflow::Scalar;
use oflow::functional::bind::{Language, Words};
use oflow::functional::{Arg, FnParam, FnSig};
use oflow::ops::{AttrKind, AttrValue, ParamKind};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString, PyTuple};
use pyo3::{Borrowed, intern};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// An object that a call is given.
pub type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// Words that Python programs say for `dims`.
const FOR_DIMS: &str = "dim";

/// Position of the parameter that a keyword names.
pub fn named(sig: &FnSig, keyword: &str) -> Option<usize> {
    let all = &sig.params;
    let found = all.iter().position(|p| signature::name_of(p) == keyword && p.kind != ParamKind::Target);
    found.or_else(|| if keyword == FOR_DIMS { all.iter().position(|p| p.name == "dims") } else { None })
}

/// Python as a caller of functions, in the binding of one call to one overload.
pub struct Arguments<'b, 'a, 'py> {
    /// Whether the overload has a parameter for the place of a new tensor.
    makes_tensor: bool,
    /// Values for parameters that the call leaves out.
    base: &'b [Option<Arg>],
    place: place::Given<'a, 'py>,
    requires_grad: bool,
}

impl<'b> Arguments<'b, '_, '_> {
    /// For an overload; `base` has values for parameters that the call leaves out.
    pub fn of(makes_tensor: bool, base: &'b [Option<Arg>]) -> Self {
        Arguments { makes_tensor, base, place: Default::default(), requires_grad: false }
    }
    /// Whether the call asks for leaves that require a gradient.
    pub fn requires_grad(&self) -> bool {
        self.requires_grad
    }
}

impl<'a, 'py> Language for Arguments<'_, 'a, 'py> {
    type Value = Object<'a, 'py>;
    type Taken = Arg;
    type Error = PyErr;
    const WORDS: Words = Words::Python;

    fn name<'p>(&self, p: &'p FnParam) -> Cow<'p, str> {
        signature::name_of(p)
    }
    fn named(&self, sig: &FnSig, keyword: &str) -> Option<usize> {
        named(sig, keyword)
    }
    fn is_absent(&self, p: &FnParam, o: Object<'a, 'py>) -> bool {
        o.is_none() && !p.is_required()
    }
    fn convert(&mut self, p: &FnParam, o: Object<'a, 'py>) -> Result<Arg, Unfit> {
        convert(p, o)
    }
    fn convert_list(&mut self, _: &FnParam, all: &[Object<'a, 'py>]) -> Result<Arg, Unfit> {
        Ok(Arg::Attr(AttrValue::Ints(all.iter().map(|o| int(*o)).collect::<Result<_, _>>()?)))
    }
    fn other_keyword(&mut self, keyword: &str, o: Object<'a, 'py>) -> Result<bool, Unfit> {
        let at = PLACE.iter().position(|(name, ..)| *name == keyword).filter(|_| self.makes_tensor);
        if let Some(at) = at {
            self.place[at] = Some(o).filter(|o| !o.is_none());
        }
        Ok(at.is_some())
    }
    fn supplies(&self, i: usize, p: &FnParam) -> bool {
        p.kind == ParamKind::Target || self.base.get(i).is_some_and(Option::is_some)
    }
    fn left_out(&mut self, i: usize, p: &FnParam) -> Result<Option<Arg>, Unfit> {
        if p.kind == ParamKind::Target {
            let (target, requires_grad) = place::target(&self.place)?;
            self.requires_grad = requires_grad;
            return Ok(Some(Arg::Target(target)));
        }
        let base = self.base.get(i).cloned().flatten();
        Ok(base.or_else(|| p.default.clone().map(Arg::Attr)))
    }
    fn type_of(&self, p: &FnParam) -> String {
        takes(p)
    }
    fn describe(&self, o: Object<'a, 'py>) -> String {
        found(o).unwrap_or_else(|_| "?".into())
    }
}

/// The type of an object; of a list or tuple with those of its members.
pub fn found(object: Borrowed<'_, '_, PyAny>) -> PyResult<String> {
    let name = object.get_type().name()?.to_string();
    if !(object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()) {
        return Ok(name);
    }
    let mut kinds: Vec<String> = vec![];
    for member in object.try_iter()? {
        let kind = member?.get_type().name()?.to_string();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(if kinds.is_empty() { format!("empty {name}") } else { format!("{name} of {}", kinds.join(", ")) })
}

/// Types that a parameter takes, in Python's words.
pub fn takes(p: &FnParam) -> String {
    let one = match p.kind {
        ParamKind::Tensor => "Tensor",
        ParamKind::TensorTuple => "a list or tuple of Tensors",
        ParamKind::Target => "a device",
        ParamKind::TensorIndex => "an index (int, slice, None, ..., Tensor or a tuple of them)",
        ParamKind::Generator => "Generator",
        ParamKind::Attr(k) => match k {
            AttrKind::Int => "int",
            AttrKind::Float => "float",
            AttrKind::Bool => "bool",
            AttrKind::Str => "str",
            AttrKind::Ints | AttrKind::Shape => "int or a tuple of ints",
            AttrKind::Floats => "float or a tuple of floats",
            AttrKind::DType => "oflow.dtype",
            AttrKind::Scalar => "Number",
            AttrKind::Bytes => "bytes",
            AttrKind::Device => "a device",
            AttrKind::Placement => "oflow.placement",
            AttrKind::NdSbp => "an sbp or a tuple of sbps",
            AttrKind::IntLists | AttrKind::Shapes => "a list of tuples of ints",
            AttrKind::Placements => "a list of placements",
            AttrKind::NdSbps => "a list of sbps",
            AttrKind::Bools => "a list of bools",
            AttrKind::Strs => "a list of strs",
            AttrKind::DTypes => "a list of dtypes",
            AttrKind::Scalars => "a list of Numbers",
            _ => "something else",
        },
    };
    let many = p.len.map_or(String::new(), |n| format!(" (of {n})"));
    format!("{one}{many}{}", if p.optional { " or None" } else { "" })
}

/// An object as the argument of a parameter.
pub fn convert(p: &FnParam, o: Object<'_, '_>) -> Result<Arg, Unfit> {
    match p.kind {
        ParamKind::Tensor => Ok(Arg::Tensor(tensor(o)?)),
        ParamKind::TensorTuple => {
            members(o)?.iter().map(|m| tensor(m.as_borrowed())).collect::<Result<_, _>>().map(Arg::Tensors)
        }
        ParamKind::Generator => {
            Ok(Arg::Generator(o.cast::<Generator>().map_err(|_| Unfit::Type)?.get().inner().clone()))
        }
        ParamKind::Target => Err(Unfit::Type),
        ParamKind::Attr(kind) => {
            let value = attr(kind, o)?;
            p.accept(kind, value).map(Arg::Attr).map_err(|e| Unfit::Text(in_python(e.message())))
        }
        ParamKind::TensorIndex => index(o).map(Arg::Index),
    }
}

fn tensor(o: Object<'_, '_>) -> Result<oflow::Tensor, Unfit> {
    Ok(o.cast::<Tensor>().map_err(|_| Unfit::Type)?.get().inner().clone())
}

/// The members of a list or tuple.
fn members<'py>(o: Object<'_, 'py>) -> Result<Vec<Bound<'py, PyAny>>, Unfit> {
    if let Ok(t) = o.cast::<PyTuple>() {
        return Ok(t.iter().collect());
    }
    if let Ok(l) = o.cast::<PyList>() {
        return Ok(l.iter().collect());
    }
    // Ranges, arrays of NumPy; no text, and nothing without an order.
    let text = o.is_instance_of::<PyString>() || o.is_instance_of::<PyBytes>() || o.is_instance_of::<PyByteArray>();
    if text
        || o.is_instance_of::<PyDict>()
        || o.is_instance_of::<Tensor>()
        || o.cast::<pyo3::types::PySequence>().is_err()
    {
        let array = !text && !o.is_instance_of::<Tensor>() && o.hasattr(intern!(o.py(), "__array_interface__"))?;
        if !array || o.len().is_err() {
            return Err(Unfit::Type);
        }
    }
    Ok(o.try_iter()?.collect::<PyResult<_>>()?)
}

fn list(o: Object<'_, '_>, of: impl Fn(Object<'_, '_>) -> Result<AttrValue, Unfit>) -> Result<AttrValue, Unfit> {
    let all = members(o)?.iter().map(|m| of(m.as_borrowed())).collect::<Result<Vec<_>, Unfit>>()?;
    Ok(AttrValue::List(all.into()))
}

/// An object as a value of that kind.
fn attr(kind: AttrKind, o: Object<'_, '_>) -> Result<AttrValue, Unfit> {
    Ok(match kind {
        AttrKind::Int => AttrValue::Int(int(o)?),
        AttrKind::Float => match scalar(o)? {
            Scalar::Bool(_) | Scalar::Complex(..) => return Err(Unfit::Type),
            s => AttrValue::Float(s.to_f64()),
        },
        AttrKind::Scalar => AttrValue::Scalar(scalar(o)?),
        AttrKind::Bool => match scalar(o)? {
            Scalar::Bool(b) => AttrValue::Bool(b),
            _ => return Err(Unfit::Type),
        },
        AttrKind::Str => AttrValue::Str(o.cast::<PyString>().map_err(|_| Unfit::Type)?.to_str()?.into()),
        AttrKind::Ints | AttrKind::Shape => match int(o) {
            // One number; where a list has a length it stands for as many.
            Ok(i) if kind == AttrKind::Ints => AttrValue::Int(i),
            Ok(i) => AttrValue::Ints(SmallVec::from_slice(&[i])),
            Err(Unfit::Type) => {
                AttrValue::Ints(members(o)?.iter().map(|m| int(m.as_borrowed())).collect::<Result<_, _>>()?)
            }
            Err(e) => return Err(e),
        },
        AttrKind::Floats => match scalar(o) {
            Ok(Scalar::Complex(..)) => return Err(Unfit::Type),
            Ok(s) => AttrValue::Float(s.to_f64()),
            Err(Unfit::Type) => AttrValue::Floats(
                members(o)?.iter().map(|m| scalar(m.as_borrowed()).map(Scalar::to_f64)).collect::<Result<_, _>>()?,
            ),
            Err(e) => return Err(e),
        },
        AttrKind::Bytes => match o.cast::<PyBytes>() {
            Ok(b) => AttrValue::Bytes(Arc::from(b.as_bytes())),
            Err(_) => return Err(Unfit::Type),
        },
        AttrKind::NdSbps => list(o, |m| match m.is_none() {
            true => Ok(AttrValue::Absent),
            false => attr(AttrKind::NdSbp, m),
        })?,
        AttrKind::Placements => list(o, |m| attr(AttrKind::Placement, m))?,
        AttrKind::IntLists => list(o, |m| match attr(AttrKind::Shape, m)? {
            AttrValue::Int(i) => Ok(AttrValue::Ints(SmallVec::from_slice(&[i]))),
            v => Ok(v),
        })?,
        AttrKind::DType => AttrValue::DType(types::dtype_of(&o)?),
        AttrKind::Device => AttrValue::Device(types::device_of(&o)?),
        AttrKind::Placement => AttrValue::Placement(types::placement_of(&o)?),
        AttrKind::NdSbp => AttrValue::NdSbp(types::sbp_of(&o)?),
        kind => match kind.member() {
            Some(member) => list(o, |m| attr(member, m))?,
            None => return Err(Unfit::Type),
        },
    })
}

/// An object as the attribute that it is like: numbers, texts, lists of these, dtypes.
pub fn attr_of(o: Object<'_, '_>) -> Result<AttrValue, Unfit> {
    match scalar(o) {
        Ok(Scalar::Bool(b)) => return Ok(AttrValue::Bool(b)),
        Ok(Scalar::Int(i)) => return Ok(AttrValue::Int(i)),
        Ok(Scalar::Float(x)) => return Ok(AttrValue::Float(x)),
        Ok(z @ Scalar::Complex(..)) => return Ok(AttrValue::Scalar(z)),
        Err(Unfit::Type) => {}
        Err(e) => return Err(e),
    }
    let kinds = [
        AttrKind::Str,
        AttrKind::Ints,
        AttrKind::Floats,
        AttrKind::Bools,
        AttrKind::Strs,
        AttrKind::DType,
        AttrKind::NdSbp,
        AttrKind::Placement,
    ];
    for kind in kinds {
        match attr(kind, o) {
            Err(Unfit::Type | Unfit::Text(_)) => {}
            found => return found,
        }
    }
    Err(Unfit::Type)
}
