//! Indices of Python: `x[...]`.

use crate::data::{index_tensor, of_values};
use crate::errors::Unfit;
use crate::numbers::{int, scalar};
use crate::tensor::Tensor;
use oflow::functional::TensorIndex;
use oflow::{DType, Scalar};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyList, PySlice, PyString, PyTuple};
use pyo3::{Borrowed, intern};

type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// An object as an index: one member, or a tuple of them. A list is a tuple if a tensor, a slice, `None` or `...` stands in it, as in
/// PyTorch; else it is one member, an array of indices.
pub fn index(o: Object<'_, '_>) -> Result<Vec<TensorIndex>, Unfit> {
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

fn index_member(o: Object<'_, '_>) -> Result<TensorIndex, Unfit> {
    let py = o.py();
    if o.is_none() {
        return Ok(TensorIndex::NewAxis);
    }
    if o.is(py.Ellipsis()) || o.is_instance_of::<PyEllipsis>() {
        return Ok(TensorIndex::Ellipsis);
    }
    if let Ok(s) = o.cast::<PySlice>() {
        let bound = |name: &Bound<'_, PyString>| -> Result<Option<i64>, Unfit> {
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
    match int(o).map(Scalar::Int).or_else(|no| if let Unfit::Type = no { scalar(o) } else { Err(no) }) {
        Ok(Scalar::Int(i)) => Ok(TensorIndex::Int(i)),
        // One new dim of size 1 or 0, as in PyTorch.
        Ok(Scalar::Bool(b)) => Ok(TensorIndex::Values(of_values(&[b], &[], DType::Bool)?)),
        Ok(Scalar::Float(_) | Scalar::Complex(..)) => Err(Unfit::Type),
        Err(Unfit::Type) => Ok(TensorIndex::Values(index_tensor(o)?)),
        Err(e) => Err(e),
    }
}
