//! Hooks of Python that see each call of an op: `oflow.watch_calls`.

use crate::errors::from_callback;
use crate::tensor::Tensor;
use crate::{context, results};
use oflow::interpreter::{Call, Outputs, WatchGuard};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// A call of an op, as the hooks of ``oflow.watch_calls`` see it.
#[pyclass(frozen, module = "oflow", name = "WatchedCall")]
pub struct WatchedCall {
    /// The name of the op, with its domain.
    #[pyo3(get)]
    op: String,
    /// The inputs, in the order of the op's declaration; None for one that was left out.
    #[pyo3(get)]
    inputs: Py<PyTuple>,
    /// The attributes by name.
    #[pyo3(get)]
    attrs: Py<PyDict>,
    /// Whether the result is written over a tensor.
    #[pyo3(get)]
    in_place: bool,
    /// File and line of the program that called.
    #[pyo3(get)]
    site: (String, u32),
    text: String,
}

#[pymethods]
impl WatchedCall {
    fn __repr__(&self) -> String {
        format!("<call {}>", self.text)
    }
}

impl WatchedCall {
    fn of(py: Python<'_>, call: &Call<'_>) -> PyResult<WatchedCall> {
        let object = |t: &Option<&oflow::Tensor>| t.map(|t| Py::new(py, Tensor::of(t.clone()))).transpose();
        let inputs = PyTuple::new(py, call.inputs.iter().map(object).collect::<PyResult<Vec<_>>>()?)?;
        let attrs = PyDict::new(py);
        for (a, v) in call.op.sig.attrs.iter().zip(&call.attrs) {
            attrs.set_item(a.name.as_str(), results::value(py, v)?)?;
        }
        for (a, s) in call.op.sig.runtime.iter().zip(&call.runtime) {
            attrs.set_item(a.name.as_str(), results::scalar(py, *s)?)?;
        }
        Ok(WatchedCall {
            op: call.op.name().to_string(),
            inputs: inputs.unbind(),
            attrs: attrs.unbind(),
            in_place: call.given.is_some(),
            site: (call.site.file.to_string(), call.site.line),
            text: call.short(),
        })
    }
}

/// Runs a hook with a call; its own calls are made in the context of the thread.
fn run<R>(call: &Call<'_>, hook: impl FnOnce(Python<'_>, WatchedCall) -> PyResult<R>) -> oflow::Result<R> {
    Python::attach(|py| {
        let _rank = context::of_the_caller();
        hook(py, WatchedCall::of(py, call)?)
    })
    .map_err(from_callback)
}

/// Calls `hook(call)` before each call of an op on this thread.
pub fn watch(hook: Py<PyAny>) -> WatchGuard {
    oflow::interpreter::watch_calls(move |call| run(call, |py, call| hook.bind(py).call1((call,)).map(drop)))
}

/// Calls `hook(call, results)` after each call of an op on this thread. What it returns, unless that is None, replaces the results.
pub fn watch_results(hook: Py<PyAny>) -> WatchGuard {
    oflow::interpreter::watch_results(move |call, outs| {
        let now = run(call, |py, call| {
            let objects = outs.iter().map(|t| Py::new(py, Tensor::of(t.clone()))).collect::<PyResult<Vec<_>>>()?;
            replaced(&hook.bind(py).call1((call, PyTuple::new(py, objects)?))?)
        })?;
        if let Some(now) = now {
            *outs = now;
        }
        Ok(())
    })
}

/// Results that a hook returned in place of a call's: a tensor, or a tuple or list of them.
fn replaced(returned: &Bound<'_, PyAny>) -> PyResult<Option<Outputs>> {
    if returned.is_none() {
        return Ok(None);
    }
    if let Ok(t) = returned.cast::<Tensor>() {
        return Ok(Some(std::iter::once(t.get().inner().clone()).collect()));
    }
    let wrong = |of: &Bound<'_, PyAny>| {
        let kind = of.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        PyTypeError::new_err(format!("a hook of results returns None, a Tensor or a tuple of Tensors, not {kind}"))
    };
    if !(returned.is_instance_of::<PyTuple>() || returned.is_instance_of::<PyList>()) {
        return Err(wrong(returned));
    }
    let member = |m: PyResult<Bound<'_, PyAny>>| {
        let m = m?;
        let t = m.cast::<Tensor>().map_err(|_| wrong(&m))?;
        Ok(t.get().inner().clone())
    };
    returned.try_iter()?.map(member).collect::<PyResult<_>>().map(Some)
}
