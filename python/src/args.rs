//! Objects of Python as arguments of functions.

use crate::phrases::in_python;
use crate::tensor::Tensor;
use crate::types::{self, Generator};
use oflow::functional::{Arg, FnParam, TensorIndex};
use oflow::ops::{AttrKind, AttrValue, ParamKind};
use oflow::{DType, Scalar};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple,
    PyType,
};
use pyo3::{Borrowed, intern};
use smallvec::SmallVec;
use std::sync::Arc;

/// Why an object is not the argument of a parameter.
pub enum No {
    /// The object has another type: another overload may take it.
    Kind,
    /// The same, with its own words.
    Text(String),
    /// An exception of its own; no other overload is tried.
    Raise(PyErr),
}

impl No {
    /// The other one, where this says nothing of its own.
    pub fn or_kind(self, other: No) -> No {
        if let No::Kind = self { other } else { self }
    }
}

impl From<PyErr> for No {
    fn from(e: PyErr) -> No {
        No::Raise(e)
    }
}
impl From<pyo3::CastError<'_, '_>> for No {
    fn from(_: pyo3::CastError<'_, '_>) -> No {
        No::Kind
    }
}

type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

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
pub fn convert(p: &FnParam, o: Object<'_, '_>) -> Result<Arg, No> {
    match p.kind {
        ParamKind::Tensor => Ok(Arg::Tensor(tensor(o)?)),
        ParamKind::TensorTuple => {
            members(o)?.iter().map(|m| tensor(m.as_borrowed())).collect::<Result<_, _>>().map(Arg::Tensors)
        }
        ParamKind::TensorIndex => index(o).map(Arg::Index),
        ParamKind::Generator => Ok(Arg::Generator(o.cast::<Generator>()?.get().inner().clone())),
        ParamKind::Target => Err(No::Kind),
        ParamKind::Attr(kind) => {
            let value = attr(kind, o)?;
            if p.len.is_none() && kind.holds(&value) && kind != AttrKind::Shape {
                return Ok(Arg::Attr(value));
            }
            p.accept(kind, value).map(Arg::Attr).map_err(|e| No::Text(in_python(e.message())))
        }
    }
}

fn tensor(o: Object<'_, '_>) -> Result<oflow::Tensor, No> {
    Ok(o.cast::<Tensor>()?.get().inner().clone())
}

/// The members of a list or tuple.
fn members<'py>(o: Object<'_, 'py>) -> Result<Vec<Bound<'py, PyAny>>, No> {
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
            return Err(No::Kind);
        }
    }
    Ok(o.try_iter()?.collect::<PyResult<_>>()?)
}

/// Whether an object is a number of NumPy: `numpy.generic`, known by what it has.
fn is_numpy_scalar(o: &Object<'_, '_>) -> PyResult<bool> {
    let py = o.py();
    Ok(o.hasattr(intern!(py, "__array_interface__"))?
        && o.hasattr(intern!(py, "item"))?
        && !o.hasattr(intern!(py, "__len__"))?)
}

/// Reads a number of Python or numpy.
pub fn scalar(o: Object<'_, '_>) -> Result<Scalar, No> {
    if let Ok(x) = o.cast_exact::<PyFloat>() {
        return Ok(Scalar::Float(x.extract()?));
    }
    if let Ok(b) = o.cast_exact::<PyBool>() {
        return Ok(Scalar::Bool(b.is_true()));
    }
    if o.is_instance_of::<PyInt>() {
        return int_of(&o).map(Scalar::Int);
    }
    if let Ok(x) = o.cast::<PyFloat>() {
        return Ok(Scalar::Float(x.extract()?));
    }
    if let Ok(z) = o.cast::<PyComplex>() {
        return Ok(Scalar::Complex(z.real(), z.imag()));
    }
    if o.is_instance_of::<Tensor>() || o.is_instance_of::<PyString>() || !is_numpy_scalar(&o)? {
        return Err(No::Kind);
    }
    let item = o.call_method0(intern!(o.py(), "item"))?;
    let plain =
        item.is_instance_of::<PyFloat>() || item.is_instance_of::<PyInt>() || item.is_instance_of::<PyComplex>();
    if plain { scalar(item.as_borrowed()) } else { Err(No::Kind) }
}

fn int_of(o: &Object<'_, '_>) -> Result<i64, No> {
    o.extract::<i64>().map_err(|e| match e.is_instance_of::<PyOverflowError>(o.py()) {
        true => {
            let text = o.str().map_or_else(|_| "an int".to_string(), |s| s.to_string());
            // Neither dtypes nor attributes have an unsigned integer of 64 bits.
            let bits = match o.extract::<u64>() {
                Ok(n) => format!("; the signed integer of the same bits is {}", n as i64),
                Err(_) => String::new(),
            };
            No::Raise(PyOverflowError::new_err(format!("{text} does not fit into 64 bits with a sign{bits}")))
        }
        false => No::Kind,
    })
}

/// An integer; a bool is none.
fn int(o: Object<'_, '_>) -> Result<i64, No> {
    if o.is_instance_of::<PyInt>() {
        return if o.is_instance_of::<PyBool>() { Err(No::Kind) } else { int_of(&o) };
    }
    match scalar(o) {
        Ok(Scalar::Int(i)) => return Ok(i),
        Ok(_) => return Err(No::Kind),
        Err(No::Kind) => {}
        Err(e) => return Err(e),
    }
    // Reading a tensor may be a collective, which nobody asked for here.
    let index = intern!(o.py(), "__index__");
    if o.is_instance_of::<Tensor>() || o.is_instance_of::<PyType>() || !o.hasattr(index)? {
        return Err(No::Kind);
    }
    match o.call_method0(index) {
        Ok(i) => int_of(&i.as_borrowed()),
        // Arrays have the method, and raise this where they have several elements.
        Err(e) if e.is_instance_of::<PyTypeError>(o.py()) => Err(No::Kind),
        Err(e) => Err(No::Raise(e)),
    }
}

/// A list of integers, from single objects.
pub fn ints_of<'a, 'py: 'a>(all: impl Iterator<Item = Object<'a, 'py>>) -> Result<Arg, No> {
    Ok(Arg::Attr(AttrValue::Ints(all.map(int).collect::<Result<SmallVec<_>, _>>()?)))
}

fn list(o: Object<'_, '_>, of: impl Fn(Object<'_, '_>) -> Result<AttrValue, No>) -> Result<AttrValue, No> {
    let all = members(o)?.iter().map(|m| of(m.as_borrowed())).collect::<Result<Vec<_>, No>>()?;
    Ok(AttrValue::List(all.into()))
}

/// An object as a value of that kind.
fn attr(kind: AttrKind, o: Object<'_, '_>) -> Result<AttrValue, No> {
    Ok(match kind {
        AttrKind::Int => AttrValue::Int(int(o)?),
        AttrKind::Float => match scalar(o)? {
            Scalar::Bool(_) | Scalar::Complex(..) => return Err(No::Kind),
            s => AttrValue::Float(s.to_f64()),
        },
        AttrKind::Scalar => AttrValue::Scalar(scalar(o)?),
        AttrKind::Bool => match scalar(o)? {
            Scalar::Bool(b) => AttrValue::Bool(b),
            _ => return Err(No::Kind),
        },
        AttrKind::Str => AttrValue::Str(o.cast::<PyString>()?.to_str()?.into()),
        AttrKind::Ints | AttrKind::Shape => match int(o) {
            // One number; where a list has a length it stands for as many.
            Ok(i) if kind == AttrKind::Ints => AttrValue::Int(i),
            Ok(i) => AttrValue::Ints(SmallVec::from_slice(&[i])),
            Err(No::Kind) => {
                AttrValue::Ints(members(o)?.iter().map(|m| int(m.as_borrowed())).collect::<Result<_, _>>()?)
            }
            Err(e) => return Err(e),
        },
        AttrKind::Floats => match scalar(o) {
            Ok(Scalar::Complex(..)) => return Err(No::Kind),
            Ok(s) => AttrValue::Float(s.to_f64()),
            Err(No::Kind) => AttrValue::Floats(
                members(o)?.iter().map(|m| scalar(m.as_borrowed()).map(Scalar::to_f64)).collect::<Result<_, _>>()?,
            ),
            Err(e) => return Err(e),
        },
        AttrKind::DType => AttrValue::DType(types::dtype_of(&o)?),
        AttrKind::Device => AttrValue::Device(types::device_of(&o)?),
        AttrKind::Placement => AttrValue::Placement(types::placement_of(&o)?),
        AttrKind::NdSbp => AttrValue::NdSbp(types::sbp_of(&o)?),
        AttrKind::Bytes => match o.cast::<PyBytes>() {
            Ok(b) => AttrValue::Bytes(Arc::from(b.as_bytes())),
            Err(_) => return Err(No::Kind),
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
        kind => match kind.member() {
            Some(member) => list(o, |m| attr(member, m))?,
            None => return Err(No::Kind),
        },
    })
}

/// An object as an index: one member, or a tuple of them. A list is a tuple if a tensor, a slice, `None` or `...` stands in it, as in
/// PyTorch; else it is one member, an array of indices.
pub fn index(o: Object<'_, '_>) -> Result<Vec<TensorIndex>, No> {
    if let Ok(t) = o.cast::<PyTuple>() {
        return t.iter_borrowed().map(index_member).collect();
    }
    let no_number = |m: &Bound<'_, PyAny>| {
        m.is_none() || m.is_instance_of::<PySlice>() || m.is_instance_of::<PyEllipsis>() || m.is_instance_of::<Tensor>()
    };
    match o.cast::<PyList>() {
        Ok(l) if l.iter().any(|m| no_number(&m)) => l.iter().map(|m| index_member(m.as_borrowed())).collect(),
        _ => Ok(vec![index_member(o)?]),
    }
}

fn index_member(o: Object<'_, '_>) -> Result<TensorIndex, No> {
    let py = o.py();
    if o.is_none() {
        return Ok(TensorIndex::NewAxis);
    }
    if o.is(py.Ellipsis()) || o.is_instance_of::<PyEllipsis>() {
        return Ok(TensorIndex::Ellipsis);
    }
    if let Ok(s) = o.cast::<PySlice>() {
        let bound = |name: &Bound<'_, PyString>| -> Result<Option<i64>, No> {
            let b = s.getattr(name)?;
            if b.is_none() { Ok(None) } else { int(b.as_borrowed()).map(Some) }
        };
        let (start, end) = (bound(intern!(py, "start"))?, bound(intern!(py, "stop"))?);
        let step = bound(intern!(py, "step"))?.unwrap_or(1);
        return Ok(match (start, end, step) {
            (None, None, 1) => TensorIndex::Full,
            _ => TensorIndex::Slice { start, end, step },
        });
    }
    if let Ok(t) = o.cast::<Tensor>() {
        return Ok(TensorIndex::Tensor(t.get().inner().clone()));
    }
    match int(o).map(Scalar::Int).or_else(|no| if let No::Kind = no { scalar(o) } else { Err(no) }) {
        Ok(Scalar::Int(i)) => Ok(TensorIndex::Int(i)),
        // One new dim of size 1 or 0, as in PyTorch.
        Ok(Scalar::Bool(b)) => Ok(TensorIndex::Values(crate::data::of_values(&[b], &[], DType::Bool)?)),
        Ok(Scalar::Float(_) | Scalar::Complex(..)) => Err(No::Kind),
        Err(No::Kind) => Ok(TensorIndex::Values(crate::data::index_tensor(o)?)),
        Err(e) => Err(e),
    }
}

/// An object as the attribute that it is like: numbers, texts, lists of these, dtypes.
pub fn attr_of(o: Object<'_, '_>) -> Result<AttrValue, No> {
    match scalar(o) {
        Ok(Scalar::Bool(b)) => return Ok(AttrValue::Bool(b)),
        Ok(Scalar::Int(i)) => return Ok(AttrValue::Int(i)),
        Ok(Scalar::Float(x)) => return Ok(AttrValue::Float(x)),
        Ok(z @ Scalar::Complex(..)) => return Ok(AttrValue::Scalar(z)),
        Err(No::Kind) => {}
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
            Err(No::Kind | No::Text(_)) => {}
            found => return found,
        }
    }
    Err(No::Kind)
}
