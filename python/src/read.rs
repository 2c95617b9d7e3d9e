//! Reads objects of Python as plain values: numbers, lists, indices, attributes. No tensor is made here and none is read: that is for
//! `data`, when the overload is chosen.

use crate::errors::Unfit;
use crate::phrases::in_python;
use crate::tensor::Tensor;
use crate::types::{self, Generator};
use oflow::functional::{Arg, FnParam, TensorIndex};
use oflow::kernels::view::contiguous_strides;
use oflow::ops::{AttrKind, AttrValue, ParamKind};
use oflow::{DType, Scalar};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PyRange, PySlice, PyString,
    PyTuple, PyType,
};
use pyo3::{Borrowed, intern};
use smallvec::SmallVec;
use std::sync::Arc;

/// An object that a call is given.
pub type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// An object as the argument of a parameter, which is not an [`index`] or a place.
pub fn convert(p: &FnParam, o: Object<'_, '_>) -> Result<Arg, Unfit> {
    match p.kind {
        ParamKind::Tensor => Ok(Arg::Tensor(tensor(o)?)),
        ParamKind::TensorTuple => {
            members(o)?.iter().map(|m| tensor(m.as_borrowed())).collect::<Result<_, _>>().map(Arg::Tensors)
        }
        ParamKind::Generator => {
            Ok(Arg::Generator(o.cast::<Generator>().map_err(|_| Unfit::Type)?.get().inner().clone()))
        }
        ParamKind::Attr(kind) => {
            let value = attr(kind, o)?;
            p.accept(kind, value).map(Arg::Attr).map_err(|e| Unfit::Text(in_python(e.message())))
        }
        ParamKind::TensorIndex | ParamKind::Target => Err(Unfit::Type),
    }
}

/// Reads a tensor from an object.
pub fn tensor(o: Object<'_, '_>) -> Result<oflow::Tensor, Unfit> {
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

/// The class of a tensor of another library, as `torch.Tensor`: what has DLPack and does not compute with tensors of oflow itself, as arrays
/// of NumPy do.
pub fn of_another_library(o: &Object<'_, '_>) -> PyResult<Option<String>> {
    let py = o.py();
    let foreign = !o.is_instance_of::<Tensor>()
        && !o.is_instance_of::<PyType>()
        && o.hasattr(intern!(py, "__dlpack__"))?
        && !o.hasattr(intern!(py, "__array_ufunc__"))?;
    if foreign { class_of(&o.get_type()).map(Some) } else { Ok(None) }
}

/// The name of a class with the library that it is of.
pub fn class_of(class: &Bound<'_, PyType>) -> PyResult<String> {
    let (name, module) = (class.name()?.to_string(), class.module()?.to_string());
    Ok(format!("{}.{name}", module.split('.').next().unwrap_or_default()))
}

/// The exception for a tensor of another library.
pub fn foreign(class: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "expected a tensor of oflow, found {class}: `oflow.from_dlpack` makes one that shares its memory"
    ))
}

/// Whether an object is a number of NumPy: `numpy.generic`, known by what it has.
fn is_numpy_scalar(o: &Object<'_, '_>) -> PyResult<bool> {
    let py = o.py();
    Ok(o.hasattr(intern!(py, "__array_interface__"))?
        && o.hasattr(intern!(py, "item"))?
        && !o.hasattr(intern!(py, "__len__"))?)
}

/// Reads a number of Python or numpy.
pub fn scalar(o: Object<'_, '_>) -> Result<Scalar, Unfit> {
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
        return Err(Unfit::Type);
    }
    let item = o.call_method0(intern!(o.py(), "item"))?;
    let plain =
        item.is_instance_of::<PyFloat>() || item.is_instance_of::<PyInt>() || item.is_instance_of::<PyComplex>();
    if plain { scalar(item.as_borrowed()) } else { Err(Unfit::Type) }
}

fn int_of(o: &Object<'_, '_>) -> Result<i64, Unfit> {
    o.extract::<i64>().map_err(|e| match e.is_instance_of::<PyOverflowError>(o.py()) {
        true => {
            let text = o.str().map_or_else(|_| "an int".to_string(), |s| s.to_string());
            // Neither dtypes nor attributes have an unsigned integer of 64 bits.
            let bits = match o.extract::<u64>() {
                Ok(n) => format!("; the signed integer of the same bits is {}", n as i64),
                Err(_) => String::new(),
            };
            Unfit::Raise(PyOverflowError::new_err(format!("{text} does not fit into 64 bits with a sign{bits}")))
        }
        false => Unfit::Type,
    })
}

/// An integer; a bool is none.
pub fn int(o: Object<'_, '_>) -> Result<i64, Unfit> {
    if o.is_instance_of::<PyInt>() {
        return if o.is_instance_of::<PyBool>() { Err(Unfit::Type) } else { int_of(&o) };
    }
    match scalar(o) {
        Ok(Scalar::Int(i)) => return Ok(i),
        Ok(_) => return Err(Unfit::Type),
        Err(Unfit::Type) => {}
        Err(e) => return Err(e),
    }
    // Reading a tensor may be a collective, which nobody asked for here.
    let index = intern!(o.py(), "__index__");
    if o.is_instance_of::<Tensor>() || o.is_instance_of::<PyType>() || !o.hasattr(index)? {
        return Err(Unfit::Type);
    }
    match o.call_method0(index) {
        Ok(i) => int_of(&i.as_borrowed()),
        // Arrays have the method, and raise this where they have several elements.
        Err(e) if e.is_instance_of::<PyTypeError>(o.py()) => Err(Unfit::Type),
        Err(e) => Err(Unfit::Raise(e)),
    }
}

/// An object as an index: one member, or a tuple of them. A list is a tuple if a tensor, a slice, `None` or `...` stands in it, as in
/// PyTorch; else it is one member, an array of indices.
pub fn index(o: Object<'_, '_>) -> Result<Index, Unfit> {
    let mut index = Index::default();
    if let Ok(t) = o.cast::<PyTuple>() {
        t.iter_borrowed().try_for_each(|m| index.add(m))?;
        return Ok(index);
    }
    let no_number = |m: &Bound<'_, PyAny>| {
        m.is_none() || m.is_instance_of::<PySlice>() || m.is_instance_of::<PyEllipsis>() || m.is_instance_of::<Tensor>()
    };
    match o.cast::<PyList>() {
        Ok(l) if l.iter().any(|m| no_number(&m)) => l.iter().try_for_each(|m| index.add(m.as_borrowed()))?,
        _ => index.add(o)?,
    }
    Ok(index)
}

/// An index of which values are not tensors yet.
#[derive(Default)]
pub struct Index {
    /// The members. Where a tensor of values is to stand there is a whole dim.
    pub members: Vec<TensorIndex>,
    /// The values, with the position of each among the members.
    pub values: Vec<(usize, Values)>,
}

impl Index {
    fn add(&mut self, o: Object<'_, '_>) -> Result<(), Unfit> {
        let member = match index_member(o)? {
            Member::Plain(member) => member,
            Member::Values(values) => {
                self.values.push((self.members.len(), values));
                TensorIndex::Full
            }
        };
        self.members.push(member);
        Ok(())
    }
}

/// One member of an index.
enum Member {
    Plain(TensorIndex),
    Values(Values),
}

fn index_member(o: Object<'_, '_>) -> Result<Member, Unfit> {
    let plain = |member| Ok(Member::Plain(member));
    let py = o.py();
    if o.is_none() {
        return plain(TensorIndex::NewAxis);
    }
    if o.is(py.Ellipsis()) || o.is_instance_of::<PyEllipsis>() {
        return plain(TensorIndex::Ellipsis);
    }
    if let Ok(s) = o.cast::<PySlice>() {
        let bound = |name: &Bound<'_, PyString>| -> Result<Option<i64>, Unfit> {
            let b = s.getattr(name)?;
            if b.is_none() { Ok(None) } else { int(b.as_borrowed()).map(Some) }
        };
        let (start, end) = (bound(intern!(py, "start"))?, bound(intern!(py, "stop"))?);
        let step = bound(intern!(py, "step"))?.unwrap_or(1);
        return plain(match (start, end, step) {
            (None, None, 1) => TensorIndex::Full,
            _ => TensorIndex::Slice { start, end, step },
        });
    }
    if let Ok(t) = o.cast::<Tensor>() {
        return plain(TensorIndex::Tensor(t.get().inner().clone()));
    }
    // It may be read as a number too; a number of Python is asked no more.
    if !o.is_instance_of::<PyInt>()
        && let Some(class) = of_another_library(&o)?
    {
        return Err(Unfit::Raise(foreign(&class)));
    }
    match int(o).map(Scalar::Int).or_else(|no| if let Unfit::Type = no { scalar(o) } else { Err(no) }) {
        Ok(Scalar::Int(i)) => plain(TensorIndex::Int(i)),
        // One new dim of size 1 or 0, as in PyTorch.
        Ok(Scalar::Bool(b)) => Ok(Member::Values(Values::Numbers(Nested::one(Scalar::Bool(b))))),
        Ok(Scalar::Float(_) | Scalar::Complex(..)) => Err(Unfit::Type),
        Err(Unfit::Type) => index_values(o).map(Member::Values),
        Err(e) => Err(e),
    }
}

/// Values of which a tensor is made.
pub enum Values {
    /// A number or nested lists.
    Numbers(Nested),
    /// Members of a range.
    Ints(Vec<i64>),
    /// An array of NumPy, or another with `__array_interface__`.
    Array(Array),
}

/// A list, a range or an array as values of an index.
fn index_values(o: Object<'_, '_>) -> Result<Values, Unfit> {
    if o.is_instance_of::<PyString>() {
        return Err(Unfit::Type);
    }
    if o.is_instance_of::<PyList>() {
        return Nested::read(&o).map(Values::Numbers);
    }
    if o.is_instance_of::<PyRange>() {
        return Ok(Values::Ints(o.try_iter()?.map(|i| i?.extract()).collect::<PyResult<_>>()?));
    }
    Array::read(&o)?.map(Values::Array).ok_or(Unfit::Type)
}

/// Numbers of nested lists, row-major.
pub struct Nested {
    /// Size of each dim.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub numbers: Vec<Number>,
}

/// A number in a list.
pub enum Number {
    /// A number of Python or NumPy.
    Known(Scalar),
    /// A tensor of one element. To read it may be a collective.
    Tensor(oflow::Tensor),
}

impl Nested {
    fn one(number: Scalar) -> Nested {
        Nested { shape: vec![], numbers: vec![Number::Known(number)] }
    }

    /// Reads a number or nested lists.
    pub fn read(o: &Bound<'_, PyAny>) -> Result<Nested, Unfit> {
        let mut all = Nested { shape: vec![], numbers: vec![] };
        all.add(o, 0)?;
        Ok(all)
    }

    /// Deeper lists are refused: a list that holds itself would have no end.
    const DEEPEST: usize = 64;

    fn add(&mut self, o: &Bound<'_, PyAny>, depth: usize) -> Result<(), Unfit> {
        if !(o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>()) {
            self.numbers.push(match o.cast::<Tensor>() {
                Ok(t) => Number::Tensor(t.get().inner().clone()),
                Err(_) => Number::Known(scalar(o.as_borrowed())?),
            });
            return match depth == self.shape.len() {
                true => Ok(()),
                false => Err(Unfit::Text("the lists are not nested alike: a number stands where a list should".into())),
            };
        }
        let members: Vec<Bound<'_, PyAny>> = o.try_iter()?.collect::<PyResult<_>>()?;
        if depth >= Self::DEEPEST {
            return Err(Unfit::Text(format!("lists are nested deeper than {}", Self::DEEPEST)));
        }
        match self.shape.get(depth) {
            Some(n) if *n != members.len() => {
                return Err(Unfit::Text(format!(
                    "the lists have different lengths: {n} and {} at depth {depth}",
                    members.len()
                )));
            }
            Some(_) => {}
            None if self.numbers.is_empty() => self.shape.push(members.len()),
            None => {
                return Err(Unfit::Text("the lists are not nested alike: a list stands where a number should".into()));
            }
        }
        members.iter().try_for_each(|m| self.add(m, depth + 1))
    }
}

/// An array of NumPy, or anything with `__array_interface__`.
pub struct Array {
    /// The object that keeps the memory.
    pub owner: Py<PyAny>,
    /// Address of the first element.
    pub data: usize,
    /// Whether the memory must not be written.
    pub read_only: bool,
    /// The type of the elements.
    pub dtype: DType,
    /// Size of each dim.
    pub shape: Vec<usize>,
    /// Bytes from one element to the next, for each dim.
    pub strides: Vec<isize>,
}

impl Array {
    /// Reads the description of an array; `None` if the object is none.
    pub fn read(o: &Bound<'_, PyAny>) -> Result<Option<Array>, Unfit> {
        let py = o.py();
        if !o.hasattr(intern!(py, "__array_interface__"))? || o.is_instance_of::<pyo3::types::PyType>() {
            return Ok(None);
        }
        let said = o.getattr(intern!(py, "__array_interface__"))?;
        let said = said.cast::<PyDict>().map_err(|_| Unfit::Type)?;
        let field = |name: &str| {
            said.get_item(name)?
                .filter(|v| !v.is_none())
                .ok_or_else(|| PyValueError::new_err(format!("__array_interface__ has no '{name}'")))
        };
        let code: String = field("typestr")?.extract()?;
        let dtype = dtype_of_code(&code).map_err(Unfit::Text)?;
        let shape: Vec<usize> = field("shape")?.extract()?;
        let (data, read_only): (usize, bool) = field("data")?.extract()?;
        let strides: Vec<isize> = match said.get_item("strides")?.filter(|v| !v.is_none()) {
            Some(s) => s.extract()?,
            None => contiguous_strides(&shape).iter().map(|s| s * dtype.size() as isize).collect(),
        };
        if strides.len() != shape.len() {
            return Err(Unfit::Text("__array_interface__ has not as many strides as dims".into()));
        }
        Ok(Some(Array { owner: o.clone().unbind(), data, read_only, dtype, shape, strides }))
    }
}

/// The dtype of an array interface.
fn dtype_of_code(code: &str) -> Result<DType, String> {
    let foreign = if cfg!(target_endian = "little") { '>' } else { '<' };
    let kind = code.trim_start_matches(['<', '>', '|', '=']);
    match DType::BUILTIN.into_iter().find(|d| array_kind(*d) == Some(kind)) {
        _ if code.starts_with(foreign) => Err(format!("the array has the byte order of another machine ({code})")),
        Some(d) => Ok(d),
        None => Err(format!(
            "oflow has no dtype for arrays of '{code}'; convert it first, for example with array.astype(numpy.float32)"
        )),
    }
}

/// Kind and bytes of a dtype in an array interface.
pub fn array_kind(dtype: DType) -> Option<&'static str> {
    dtype.builtin()?.facts().array
}
