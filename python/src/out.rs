//! `out=`: results that are written over tensors of the caller's.
//!
//! A result is computed and then copied, so a tensor given for it may be one of the inputs.

use crate::errors::OrRaise;
use crate::function::{Function, Overload};
use crate::site;
use crate::tensor::Tensor;
use oflow::functional::FnReturn;
use oflow::{Error, ErrorKind};
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// A call without its argument `out`.
pub struct Without<'a, 'py> {
    /// The tensor that the caller gives as `out`; a tuple of several; or None.
    pub out: Borrowed<'a, 'py, PyAny>,
    /// The other arguments: by position, then by name.
    pub rest: Vec<Borrowed<'a, 'py, PyAny>>,
    /// The names of the last of them.
    pub names: Bound<'py, PyTuple>,
}

/// A call of a function without its argument `out`; `None` where there is none, and for functions whose results are not new tensors.
///
/// # Errors
/// A name that is not text.
pub fn without<'a, 'py>(
    py: Python<'py>,
    overloads: &[Overload],
    all: &[Borrowed<'a, 'py, PyAny>],
    names: &[&str],
) -> PyResult<Option<Without<'a, 'py>>> {
    let makes_tensors = |o: &Overload| {
        let sig = &o.def.sig;
        let free = sig.params.iter().all(|p| p.name != "out");
        free && !sig.name.ends_with('_') && !matches!(sig.returns, FnReturn::Void | FnReturn::Value(_))
    };
    let Some(at) = names.iter().position(|name| *name == "out").filter(|_| overloads.iter().all(makes_tensors)) else {
        return Ok(None);
    };
    let mut rest = all.to_vec();
    let out = rest.remove(all.len() - names.len() + at);
    let others = names.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, name)| *name);
    Ok(Some(Without { out, rest, names: PyTuple::new(py, others.collect::<Vec<_>>())? }))
}

/// Writes the result of a call over `out`, and returns that.
///
/// # Errors
/// Results that require gradients, are of another shape or of a kind of dtype that `out` cannot hold; not as many tensors as the function
/// gives. Nothing is written then.
pub fn written<'py>(
    function: &Function,
    result: &Bound<'py, PyAny>,
    out: Borrowed<'_, 'py, PyAny>,
) -> PyResult<Py<PyAny>> {
    let (py, name) = (result.py(), function.name());
    if out.is_none() {
        return Ok(result.clone().unbind());
    }
    if let Ok(made) = result.cast::<Tensor>() {
        let out = out.cast::<Tensor>().map_err(|_| PyTypeError::new_err(format!("{name}: `out` is a tensor")))?;
        fits(name, made, &out).or_raise(py)?;
        write(made, &out)?;
        return Ok(out.to_owned().into_any().unbind());
    }
    let all = result.cast::<PyTuple>()?;
    let count = all.len();
    let members = match (out.cast::<PyTuple>(), out.cast::<PyList>()) {
        (Ok(t), _) => t.iter().collect::<Vec<_>>(),
        (_, Ok(l)) => l.iter().collect(),
        _ => vec![],
    };
    let outs: Vec<Bound<'_, Tensor>> = members.iter().filter_map(|o| o.cast::<Tensor>().ok().cloned()).collect();
    if outs.len() != count || members.len() != count {
        return Err(PyTypeError::new_err(format!("{name}: `out` is a tuple of {count} tensors, one for each result")));
    }
    let made: Vec<Bound<'_, Tensor>> = all.iter().map(|m| m.cast_into()).collect::<Result<_, _>>()?;
    for (made, out) in made.iter().zip(&outs) {
        fits(name, made, out).or_raise(py)?;
    }
    for (made, out) in made.iter().zip(&outs) {
        write(made, out)?;
    }
    let outs = PyTuple::new(py, outs)?;
    // A named tuple takes its fields one by one.
    let class = all.get_type();
    let filled = if class.is(py.get_type::<PyTuple>()) { outs.into_any() } else { class.call1(outs)? };
    Ok(filled.unbind())
}

/// Copies a result; between layouts a collective, for which other threads of Python need not wait.
fn write(made: &Bound<'_, Tensor>, out: &Bound<'_, Tensor>) -> PyResult<()> {
    let (py, site) = (made.py(), site::caller(made.py()));
    let (made, out) = (made.get().inner(), out.get().inner());
    py.detach(|| {
        let _scope = site.scope();
        out.copy_(made).map(drop)
    })
    .or_raise(py)
}

/// Whether a result may be written over `out`.
fn fits(function: &str, made: &Bound<'_, Tensor>, out: &Bound<'_, Tensor>) -> oflow::Result<()> {
    let (made, out) = (made.get().inner(), out.get().inner());
    if made.requires_grad() || out.requires_grad() {
        let text =
            format!("{function}: a result that is written over `out` has no gradient, and an argument requires one");
        return Err(Error::new(ErrorKind::Autograd, text).help("leave `out` out, or call it under `oflow.no_grad()`"));
    }
    if made.shape() != out.shape() {
        let text = format!("{function}: the result has shape {:?}, `out` has shape {:?}", made.shape(), out.shape());
        return Err(Error::shape(text).help("a tensor keeps its shape: give one of the result's shape, or none"));
    }
    if made.dtype().kind() > out.dtype().kind() {
        let text = format!("{function}: a result of {} cannot be written over `out` of {}", made.dtype(), out.dtype());
        return Err(Error::new(ErrorKind::DType, text).help("give `out` the dtype of the result"));
    }
    Ok(())
}
