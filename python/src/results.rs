//! Results of calls as objects of Python.

use crate::tensor::Tensor;
use crate::types;
use oflow::Scalar;
use oflow::functional::{FnDef, FnReturn};
use oflow::ops::AttrValue;
use pyo3::Bound;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyComplex, PyTuple};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The tensors of a result. What a function gives back as it was given is the same object again.
pub fn tensors(
    py: Python<'_>,
    def: &FnDef,
    mut all: Vec<oflow::Tensor>,
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
        FnReturn::Named(names) => {
            named(py, &def.sig.name, names, all.into_iter().map(object).collect::<PyResult<_>>()?)
        }
        // An op whose output stands for several gives as many.
        FnReturn::Tensor | FnReturn::TensorTuple | FnReturn::Value(_) => {
            let all = all.into_iter().map(object).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, all)?.into_any().unbind())
        }
    }
}

/// A named tuple, of a class of its own for each function.
fn named(py: Python<'_>, function: &str, names: &[String], values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    static CLASSES: PyOnceLock<Mutex<BTreeMap<String, Py<PyAny>>>> = PyOnceLock::new();
    let classes = CLASSES.get_or_init(py, Mutex::default);
    let known = classes.lock().unwrap_or_else(PoisonError::into_inner).get(function).map(|c| c.clone_ref(py));
    let class = match known {
        Some(class) => class,
        None => {
            let make = py.import("collections")?.getattr("namedtuple")?;
            let class = make.call1((function.replace('.', "_"), names.to_vec()))?.unbind();
            let kept = class.clone_ref(py);
            classes.lock().unwrap_or_else(PoisonError::into_inner).insert(function.to_string(), kept);
            class
        }
    };
    class.bind(py).call1(PyTuple::new(py, values)?).map(Bound::unbind)
}

/// A number.
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
        AttrValue::DType(d) => types::dtype_object(py, *d)?.into_any(),
        AttrValue::Scalar(s) => scalar(py, *s)?,
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
