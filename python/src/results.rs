//! Results of calls as objects of Python.

use crate::tensor::Tensor;
use crate::types;
use oflow::Scalar;
use oflow::functional::{FnDef, FnReturn, OutputSlot};
use oflow::ops::AttrValue;
use pyo3::Bound;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyComplex, PyTuple};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The tensors of a result; `slots`: what each output stands for, where a call may leave outputs out. What a function gives back as it
/// was given is the same object again.
pub fn tensors(
    py: Python<'_>,
    def: &FnDef,
    mut all: Vec<oflow::Tensor>,
    slots: Option<&[OutputSlot]>,
    first: Option<pyo3::Borrowed<'_, '_, Tensor>>,
) -> PyResult<Py<PyAny>> {
    let object = |t: oflow::Tensor| -> PyResult<Py<PyAny>> {
        match first {
            Some(x) if x.get().inner().same(&t) => Ok(x.to_owned().into_any().unbind()),
            _ => Ok(Py::new(py, Tensor::of(t))?.into_any()),
        }
    };
    match &def.sig.returns {
        FnReturn::Void => Ok(py.None()),
        FnReturn::Tensor if all.len() == 1 => object(all.swap_remove(0)),
        // Its only output is optional.
        FnReturn::Tensor if all.is_empty() => Ok(py.None()),
        FnReturn::Named(names) => {
            let mut all = all.into_iter().map(object);
            let mut values = vec![];
            for slot in slots.unwrap_or(&vec![OutputSlot::One; names.len()]) {
                values.push(match slot {
                    OutputSlot::One => all.next().transpose()?.unwrap_or_else(|| py.None()),
                    OutputSlot::Absent => py.None(),
                    OutputSlot::Several => {
                        PyTuple::new(py, all.by_ref().collect::<PyResult<Vec<_>>>()?)?.into_any().unbind()
                    }
                });
            }
            // A function may return less than its op.
            values.truncate(names.len());
            named(py, &def.sig.name, names, values)
        }
        // An op whose output stands for several gives as many.
        FnReturn::Tensor | FnReturn::TensorTuple | FnReturn::Value(_) => {
            let all = all.into_iter().map(object).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, all)?.into_any().unbind())
        }
    }
}

/// A named tuple, of one class for each function and the names that it returns: overloads and libraries that are built again return
/// others.
fn named(py: Python<'_>, function: &str, names: &[String], values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    type Classes = BTreeMap<String, Vec<(Vec<String>, Py<PyAny>)>>;
    static CLASSES: PyOnceLock<Mutex<Classes>> = PyOnceLock::new();
    let classes = CLASSES.get_or_init(py, Mutex::default);
    let find = |all: &Vec<(Vec<String>, Py<PyAny>)>| {
        all.iter().find(|(of, _)| of == names).map(|(_, class)| class.clone_ref(py))
    };
    let known = classes.lock().unwrap_or_else(PoisonError::into_inner).get(function).and_then(find);
    let class = match known {
        Some(class) => class,
        None => {
            let make = py.import("collections")?.getattr("namedtuple")?;
            let class = make.call1((function.replace('.', "_"), names.to_vec()))?.unbind();
            let mut classes = classes.lock().unwrap_or_else(PoisonError::into_inner);
            classes.entry(function.to_string()).or_default().push((names.to_vec(), class.clone_ref(py)));
            class
        }
    };
    class.bind(py).call1(PyTuple::new(py, values)?).map(Bound::unbind)
}

/// Converts a number to an object of Python.
pub fn scalar(py: Python<'_>, s: Scalar) -> PyResult<Py<PyAny>> {
    Ok(match s {
        Scalar::Bool(b) => b.into_pyobject(py)?.to_owned().into_any().unbind(),
        Scalar::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        Scalar::Float(x) => x.into_pyobject(py)?.into_any().unbind(),
        Scalar::Complex(re, im) => PyComplex::from_doubles(py, re, im).into_any().unbind(),
    })
}

/// A value that is no tensor.
pub fn value(py: Python<'_>, v: &AttrValue) -> PyResult<Py<PyAny>> {
    Ok(match v {
        AttrValue::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        AttrValue::Float(x) => x.into_pyobject(py)?.into_any().unbind(),
        AttrValue::Bool(b) => b.into_pyobject(py)?.to_owned().into_any().unbind(),
        AttrValue::Str(s) => s.into_pyobject(py)?.into_any().unbind(),
        AttrValue::Ints(v) => PyTuple::new(py, v.iter())?.into_any().unbind(),
        AttrValue::Floats(v) => PyTuple::new(py, v.iter())?.into_any().unbind(),
        AttrValue::Scalar(s) => scalar(py, *s)?,
        AttrValue::DType(d) => types::dtype_object(py, *d)?.into_any(),
        AttrValue::Bytes(b) => PyBytes::new(py, b).into_any().unbind(),
        AttrValue::Device(d) => Py::new(py, types::Device::of(*d))?.into_any(),
        AttrValue::Placement(p) => Py::new(py, types::Placement::of(p.clone()))?.into_any(),
        AttrValue::NdSbp(s) => types::sbp_tuple(py, s)?,
        AttrValue::List(v) => {
            let all = v.iter().map(|m| value(py, m)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, all)?.into_any().unbind()
        }
        AttrValue::Absent => py.None(),
        other => return Err(PyRuntimeError::new_err(format!("{other} has no form in Python"))),
    })
}
