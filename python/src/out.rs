//! `out=`: results that are written over tensors of the caller's.
//!
//! A result is computed and then copied, so a tensor given for it may be one of the inputs.

use crate::call::{self, Given};
use crate::errors::OrRaise;
use crate::function::{Function, Overload};
use crate::operators::{Operator, call as operator};
use crate::tensor::Tensor;
use oflow::functional::FnReturn;
use oflow::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// The argument `out`, and the other arguments.
type Split<'a, 'py> = (Borrowed<'a, 'py, PyAny>, Vec<Borrowed<'a, 'py, PyAny>>, Bound<'py, PyTuple>);

/// The argument `out` of a call that no overload takes, and the others; `None` where there is none, and for functions whose results
/// are not new tensors.
fn split<'a, 'py>(py: Python<'py>, overloads: &[Overload], given: &Given<'a, 'py>) -> PyResult<Option<Split<'a, 'py>>> {
    let makes_tensors = |o: &Overload| {
        let sig = &o.def.sig;
        let free = sig.params.iter().all(|p| p.name != "out");
        free && !sig.name.ends_with('_') && !matches!(sig.returns, FnReturn::Void | FnReturn::Value(_))
    };
    let Some(names) = given.names.filter(|_| !given.is_method && overloads.iter().all(makes_tensors)) else {
        return Ok(None);
    };
    let Some(at) = names.iter_borrowed().position(|name| name.to_string() == "out") else { return Ok(None) };
    let first_named = given.all.len() - names.len();
    let mut rest = given.all.to_vec();
    let out = rest.remove(first_named + at);
    let others: Vec<_> = names.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, name)| name).collect();
    Ok(Some((out, rest, PyTuple::new(py, others)?)))
}

/// Runs a call that has `out`; `None` where it has none.
///
/// # Errors
/// Those of the call. Results that require gradients, are of another shape or of a kind of dtype that `out` cannot hold; not as many
/// tensors as the function gives. Nothing is written then.
pub fn call_into<'py>(
    py: Python<'py>,
    function: &Function,
    overloads: &[Overload],
    given: &Given<'_, 'py>,
) -> PyResult<Option<Py<PyAny>>> {
    let Some((out, rest, names)) = split(py, overloads, given)? else { return Ok(None) };
    let given = Given { all: rest.into(), names: Some(names.as_borrowed()), is_method: false };
    let result = call::call(py, function, &given)?.into_bound(py);
    if out.is_none() {
        return Ok(Some(result.unbind()));
    }
    let name = function.name();
    if let Ok(made) = result.cast::<Tensor>() {
        let out = out.cast::<Tensor>().map_err(|_| PyTypeError::new_err(format!("{name}: `out` is a tensor")))?;
        fits(name, made, &out).or_raise(py)?;
        operator(py, Operator::copy_, &[out.as_any().as_borrowed(), made.as_any().as_borrowed()])?;
        return Ok(Some(out.to_owned().into_any().unbind()));
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
        operator(py, Operator::copy_, &[out.as_any().as_borrowed(), made.as_any().as_borrowed()])?;
    }
    let outs = PyTuple::new(py, outs)?;
    // A named tuple takes its fields one by one.
    let class = all.get_type();
    let filled = if class.is(py.get_type::<PyTuple>()) { outs.into_any() } else { class.call1(outs)? };
    Ok(Some(filled.unbind()))
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
