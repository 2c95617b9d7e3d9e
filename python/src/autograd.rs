//! Gradients: `oflow.grad`, hooks, functions with a backward in Python.

use crate::errors::{OrRaise, from_callback};
use crate::tensor::Tensor;
use crate::{context, site};
use oflow::BackwardOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Mutex, PoisonError};

/// Removes its hook when ``remove`` is called.
#[pyclass(frozen, module = "oflow")]
pub struct HookHandle {
    handle: Mutex<Option<oflow::functional::HookHandle>>,
}

#[pymethods]
impl HookHandle {
    /// Removes the hook.
    fn remove(&self) {
        if let Some(handle) = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take() {
            handle.remove();
        }
    }
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        self.remove();
    }
}

/// Calls a hook of Python with the gradient of a tensor.
pub fn register_hook(py: Python<'_>, t: &oflow::Tensor, hook: Bound<'_, PyAny>) -> PyResult<HookHandle> {
    if !hook.is_callable() {
        return Err(PyTypeError::new_err("register_hook takes a function of the gradient"));
    }
    let hook = hook.unbind();
    let call = move |g: &oflow::Tensor| {
        Python::attach(|py| -> PyResult<Option<oflow::Tensor>> {
            let returned = hook.bind(py).call1((Tensor::of(g.clone()),))?;
            optional(&returned, "a hook")
        })
        .map_err(from_callback)
    };
    let site = crate::site::caller(py);
    let handle = {
        let _scope = site.scope();
        t.register_hook(call).or_raise(py)?
    };
    Ok(HookHandle { handle: Mutex::new(Some(handle)) })
}

/// A gradient, or None, given as an argument.
pub fn given(o: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<oflow::Tensor>> {
    match o.cast::<Tensor>() {
        Ok(t) => Ok(Some(t.get().inner().clone())),
        Err(_) if o.is_none() => Ok(None),
        Err(_) => Err(PyTypeError::new_err(format!("{what} must be a Tensor or None, not {}", o.get_type().name()?))),
    }
}

/// A tensor or None, returned by a function.
fn optional(o: &Bound<'_, PyAny>, who: &str) -> PyResult<Option<oflow::Tensor>> {
    if o.is_none() {
        return Ok(None);
    }
    match o.cast::<Tensor>() {
        Ok(t) => Ok(Some(t.get().inner().clone())),
        Err(_) => Err(PyTypeError::new_err(format!("{who} returns a Tensor or None, not {}", o.get_type().name()?))),
    }
}

/// One tensor, or a list of them.
pub fn tensors(o: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<oflow::Tensor>> {
    if let Ok(t) = o.cast::<Tensor>() {
        return Ok(vec![t.get().inner().clone()]);
    }
    let wrong = || PyTypeError::new_err(format!("{what} are a Tensor or a list of Tensors"));
    let all = o.try_iter().map_err(|_| wrong())?;
    all.map(|m| Ok(m?.cast::<Tensor>().map_err(|_| wrong())?.get().inner().clone())).collect()
}

/// Gradients of ``outputs`` (single numbers, unless ``grad_outputs`` are given) with respect to ``inputs``, without touching any
/// ``grad``.
///
/// With ``create_graph`` they can be differentiated again. An input without influence is an error, or None with ``allow_unused``.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=false, allow_unused=false))]
pub fn grad<'py>(
    py: Python<'py>,
    outputs: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    grad_outputs: Option<&Bound<'py, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    context::enter(py)?;
    let (outputs, inputs) = (tensors(outputs, "outputs")?, tensors(inputs, "inputs")?);
    let starts: Vec<Option<oflow::Tensor>> = match grad_outputs {
        None => vec![],
        Some(g) if g.is_instance_of::<Tensor>() => vec![given(g, "grad_outputs")?],
        Some(g) => g.try_iter()?.map(|m| given(&m?, "each of grad_outputs")).collect::<PyResult<_>>()?,
    };
    if !starts.is_empty() && starts.len() != outputs.len() {
        return Err(PyValueError::new_err(format!(
            "{} gradients are given for {} outputs",
            starts.len(),
            outputs.len()
        )));
    }
    let options = BackwardOptions { gradient: None, retain_graph: retain_graph.unwrap_or(create_graph), create_graph };
    let site = site::caller(py);
    let run = || {
        let _scope = site.scope();
        oflow::functional::grad_from(&outputs, &inputs, &starts, &options)
    };
    let found = py.detach(run).or_raise(py)?;
    if let Some(i) = found.iter().position(Option::is_none)
        && !allow_unused
    {
        return Err(PyValueError::new_err(format!(
            "input {i} has no influence on the outputs; allow_unused=True gives None for it"
        )));
    }
    let objects = found.into_iter().map(|g| g.map(|g| Py::new(py, Tensor::of(g))).transpose());
    PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}

/// Runs a function with a backward of its own: ``forward(*inputs)`` gives the outputs, ``backward(*gradients)`` those of the inputs.
#[pyfunction]
pub fn _apply_custom<'py>(
    py: Python<'py>,
    name: &str,
    inputs: Vec<Py<Tensor>>,
    forward: Bound<'py, PyAny>,
    backward: Py<PyAny>,
) -> PyResult<Bound<'py, PyTuple>> {
    context::enter(py)?;
    let given: Vec<&oflow::Tensor> = inputs.iter().map(|t| t.get().inner()).collect();
    let (count, who) = (inputs.len(), format!("{name}.backward"));
    let run_forward = |_: &[&oflow::Tensor]| -> oflow::Result<Vec<oflow::Tensor>> {
        tensors(&forward.call0().map_err(from_callback)?, "results of forward").map_err(from_callback)
    };
    let run_backward = move |grads: &[Option<oflow::Tensor>]| -> oflow::Result<Vec<Option<oflow::Tensor>>> {
        Python::attach(|py| -> PyResult<_> {
            let grads = grads.iter().map(|g| g.clone().map(|g| Py::new(py, Tensor::of(g))).transpose());
            let grads = PyTuple::new(py, grads.collect::<PyResult<Vec<_>>>()?)?;
            let returned = backward.bind(py).call1(grads)?;
            let all: Vec<Option<oflow::Tensor>> = match returned.cast::<PyTuple>() {
                Ok(t) => t.iter().map(|o| optional(&o, &who)).collect::<PyResult<_>>()?,
                Err(_) => vec![optional(&returned, &who)?],
            };
            match all.len() == count {
                true => Ok(all),
                false => Err(PyValueError::new_err(format!(
                    "backward returned {} gradients; there are {count} inputs that are tensors",
                    all.len()
                ))),
            }
        })
        .map_err(from_callback)
    };
    let site = site::caller(py);
    let outs = {
        let _scope = site.scope();
        oflow::apply_custom(name, &given, run_forward, run_backward).or_raise(py)?
    };
    PyTuple::new(py, outs.into_iter().map(|t| Py::new(py, Tensor::of(t))).collect::<PyResult<Vec<_>>>()?)
}
