//! Numbers of Python and NumPy.

use crate::errors::Unfit;
use crate::tensor::Tensor;
use oflow::Scalar;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};
use pyo3::{Borrowed, intern};

type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

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
