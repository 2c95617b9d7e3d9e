//! Gradients: `oflow.grad`, hooks, functions with a backward in Python.

use crate::errors::{OrRaise, from_callback};
use crate::tensor::Tensor;
use crate::{context, site};
use oflow::BackwardOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyWeakrefMethods, PyWeakrefReference};
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

impl HookHandle {
    fn of(handle: oflow::functional::HookHandle) -> HookHandle {
        HookHandle { handle: Mutex::new(Some(handle)) }
    }
}

/// A hook, which must be callable.
fn callable(hook: Bound<'_, PyAny>, method: &str, of: &str) -> PyResult<Py<PyAny>> {
    match hook.is_callable() {
        true => Ok(hook.unbind()),
        false => {
            Err(PyTypeError::new_err(format!("{method} takes a function of {of}, not {}", hook.get_type().name()?)))
        }
    }
}

/// Calls a hook of Python with a leaf whenever backward has added to its gradient.
pub fn register_post_accumulate_grad_hook(slf: &Bound<'_, Tensor>, hook: Bound<'_, PyAny>) -> PyResult<HookHandle> {
    let py = slf.py();
    let hook = callable(hook, "register_post_accumulate_grad_hook", "the tensor")?;
    // The tensor's slot holds the hook: a hook that held the object would keep both for good.
    let object = PyWeakrefReference::new(slf)?.unbind();
    let call = move |leaf: &oflow::Tensor| {
        Python::attach(|py| -> PyResult<()> {
            let leaf = match object.bind(py).upgrade() {
                Some(object) => object,
                None => Bound::new(py, Tensor::of(leaf.clone()))?.into_any(),
            };
            let returned = hook.bind(py).call1((leaf,))?;
            match returned.is_none() {
                true => Ok(()),
                false => Err(PyTypeError::new_err(format!(
                    "a hook after accumulation returns None, not {}; it may set the tensor's grad",
                    returned.get_type().name()?
                ))),
            }
        })
        .map_err(from_callback)
    };
    let site = crate::site::caller(py);
    let _scope = site.scope();
    slf.get().inner().register_post_accumulate_grad_hook(call).or_raise(py).map(HookHandle::of)
}

/// Calls a hook of Python with the gradient of a tensor.
pub fn register_hook(py: Python<'_>, t: &oflow::Tensor, hook: Bound<'_, PyAny>) -> PyResult<HookHandle> {
    let hook = callable(hook, "register_hook", "the gradient")?;
    let call = move |g: &oflow::Tensor| {
        Python::attach(|py| -> PyResult<Option<oflow::Tensor>> {
            let returned = hook.bind(py).call1((Tensor::of(g.clone()),))?;
            optional(&returned, "a hook")
        })
        .map_err(from_callback)
    };
    let site = crate::site::caller(py);
    let _scope = site.scope();
    t.register_hook(call).or_raise(py).map(HookHandle::of)
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

/// Gradients that ``outputs`` start from: none, one, or one for each.
fn starts(given_for: Option<&Bound<'_, PyAny>>, outputs: usize, what: &str) -> PyResult<Vec<Option<oflow::Tensor>>> {
    let starts: Vec<Option<oflow::Tensor>> = match given_for {
        None => vec![],
        Some(g) if g.is_instance_of::<Tensor>() => vec![given(g, what)?],
        Some(g) => g.try_iter()?.map(|m| given(&m?, &format!("each of {what}"))).collect::<PyResult<_>>()?,
    };
    match starts.is_empty() || starts.len() == outputs {
        true => Ok(starts),
        false => Err(PyValueError::new_err(format!("{} gradients are given for {outputs} outputs", starts.len()))),
    }
}

/// Adds gradients of the sum of ``outputs`` to the ``grad`` of all leaves, or to that of ``inputs``.
#[pyfunction]
#[pyo3(signature = (outputs, gradients=None, retain_graph=None, create_graph=false, inputs=None))]
pub fn _backward(
    py: Python<'_>,
    outputs: &Bound<'_, PyAny>,
    gradients: Option<&Bound<'_, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    inputs: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    context::enter(py)?;
    let outputs = tensors(outputs, "outputs")?;
    let starts = starts(gradients, outputs.len(), "the gradients")?;
    let inputs = inputs.map(|i| tensors(i, "inputs")).transpose()?;
    let retain_graph = retain_graph.unwrap_or(create_graph);
    let options = BackwardOptions { gradient: None, retain_graph, create_graph, inputs };
    let site = site::caller(py);
    let run = || {
        let _scope = site.scope();
        oflow::functional::backward_from(&outputs, &starts, &options)
    };
    py.detach(run).or_raise(py)
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
    let starts = starts(grad_outputs, outputs.len(), "grad_outputs")?;
    let retain_graph = retain_graph.unwrap_or(create_graph);
    let options = BackwardOptions { retain_graph, create_graph, ..BackwardOptions::default() };
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
