//! The optimizers of the library with PyTorch's groups of parameters, and loss scaling.

use crate::errors::OrRaise;
use crate::tensor::Tensor;
use crate::{context, site};
use oflow::Result;
use oflow::optim::{GradScalerOptions, Groups, Lbfgs, LbfgsOptions, Optimizer, OptimizerConfig};
use oflow::state::{LoadState, SaveState, Stateful};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard};

/// Tensors by name.
type Named = Vec<(String, Tensor)>;

/// The engine of `oflow.optim.Optimizer`.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct _Optimizer {
    inner: Mutex<Groups>,
}

/// Locks an object, unless it is in use: by another thread, or by the call that asks.
pub fn free<'a, T>(of: &'a Mutex<T>, what: &str) -> Result<MutexGuard<'a, T>> {
    of.try_lock().map_err(|_| oflow::Error::argument(format!("{what} is in use by another call")))
}

impl _Optimizer {
    /// The optimizers of the groups.
    pub fn groups(&self) -> Result<MutexGuard<'_, Groups>> {
        free(&self.inner, "the optimizer")
    }
}

/// The settings of a group, which Python gives as JSON.
fn config(py: Python<'_>, settings: &str) -> PyResult<OptimizerConfig> {
    let wrong = |e| PyValueError::new_err(format!("the settings of an optimizer cannot be read: {e}"));
    let config: OptimizerConfig = serde_json::from_str(settings).map_err(wrong)?;
    config.check().or_raise(py)?;
    Ok(config)
}

#[pymethods]
impl _Optimizer {
    #[new]
    fn new() -> _Optimizer {
        _Optimizer { inner: Mutex::default() }
    }

    /// Adds a group with these settings.
    fn add(&self, py: Python<'_>, parameters: Vec<Bound<'_, Tensor>>, settings: &str) -> PyResult<()> {
        let parameters: Vec<oflow::Tensor> = parameters.iter().map(|p| p.get().inner().clone()).collect();
        let settings = config(py, settings)?;
        settings.check_parameters(&parameters).or_raise(py)?;
        let group = settings.build(parameters);
        self.groups().or_raise(py)?.push(group);
        Ok(())
    }

    /// Sets the settings of a group for later steps.
    fn set(&self, py: Python<'_>, group: usize, settings: &str) -> PyResult<()> {
        let (settings, mut inner) = (config(py, settings)?, self.groups().or_raise(py)?);
        match inner.group_mut(group) {
            Some(group) => group.set_config(&settings).or_raise(py),
            None => Err(PyRuntimeError::new_err("param_groups was changed; use add_param_group")),
        }
    }

    /// Notes plain values of a group, given as JSON, which are saved with its settings.
    fn note(&self, py: Python<'_>, group: usize, notes: &str) -> PyResult<()> {
        let notes = serde_json::from_str(notes).map_err(|e| PyValueError::new_err(e.to_string()))?;
        self.groups().or_raise(py)?.set_notes(group, notes);
        Ok(())
    }

    /// The settings and the notes of each group, as JSON.
    fn settings(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let inner = self.groups().or_raise(py)?;
        let text = |e: serde_json::Error| PyValueError::new_err(e.to_string());
        let each = inner.groups().iter().enumerate();
        each.map(|(i, group)| {
            let settings = serde_json::to_string(&group.config()).map_err(text)?;
            Ok((settings, serde_json::to_string(&inner.notes(i)).map_err(text)?))
        })
        .collect()
    }

    /// Updates each parameter that has a gradient.
    fn step(&self, py: Python<'_>) -> PyResult<()> {
        context::enter(py)?;
        let site = site::caller(py);
        py.detach(|| self.groups()?.step_at(site)).or_raise(py)
    }

    /// Names with tensors, and the values as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<(Named, String)> {
        let inner = self.groups().or_raise(py)?;
        state_of(py, &*inner)
    }

    /// Takes over the values and makes the tensors of a state with these names, which are to be filled; and the names it lacks.
    fn prepare(&self, py: Python<'_>, names: Vec<String>, values: &str) -> PyResult<(Named, Vec<String>)> {
        context::enter(py)?;
        let mut inner = self.groups().or_raise(py)?;
        prepared(py, &mut *inner, &names, values)
    }
}

/// The engine of `oflow.optim.LBFGS`: an optimizer of one group.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct _Lbfgs {
    inner: Mutex<Lbfgs>,
}

impl _Lbfgs {
    /// The optimizer of the library.
    pub fn optimizer(&self) -> Result<MutexGuard<'_, Lbfgs>> {
        free(&self.inner, "the optimizer")
    }
}

/// The settings of L-BFGS, which Python gives as JSON.
fn lbfgs_options(settings: &str) -> PyResult<LbfgsOptions> {
    serde_json::from_str(settings)
        .map_err(|e| PyValueError::new_err(format!("the settings of an optimizer cannot be read: {e}")))
}

#[pymethods]
impl _Lbfgs {
    #[new]
    fn new(py: Python<'_>, parameters: Vec<Bound<'_, Tensor>>, settings: &str) -> PyResult<_Lbfgs> {
        let parameters: Vec<oflow::Tensor> = parameters.iter().map(|p| p.get().inner().clone()).collect();
        oflow::optim::check_distinct(&parameters).or_raise(py)?;
        Ok(_Lbfgs { inner: Mutex::new(Lbfgs::new(parameters, lbfgs_options(settings)?)) })
    }

    /// Sets the settings of later steps, and notes plain values that are saved with them.
    fn set(&self, py: Python<'_>, settings: &str, notes: &str) -> PyResult<()> {
        let notes = serde_json::from_str(notes).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let (options, mut inner) = (lbfgs_options(settings)?, self.optimizer().or_raise(py)?);
        inner.set_options(options);
        inner.set_notes(notes);
        Ok(())
    }

    /// The settings and the notes, as JSON.
    fn settings(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let inner = self.optimizer().or_raise(py)?;
        let text = |e: serde_json::Error| PyValueError::new_err(e.to_string());
        let options = serde_json::to_string(&inner.options()).map_err(text)?;
        Ok(vec![(options, serde_json::to_string(inner.notes()).map_err(text)?)])
    }

    /// Updates the parameters. Calls the closure, which returns the loss, a tensor or a number; returns what it returned first.
    fn step(&self, py: Python<'_>, closure: Py<PyAny>) -> PyResult<Option<Py<PyAny>>> {
        context::enter(py)?;
        let site = site::caller(py);
        let (mut first, mut raised) = (None, None);
        let done = py.detach(|| {
            self.optimizer()?.step_at(site, || {
                Python::attach(|py| {
                    let said = closure.bind(py).call0().and_then(|loss| {
                        first.get_or_insert_with(|| loss.clone().unbind());
                        match loss.cast::<Tensor>() {
                            Ok(t) => Ok(t.get().inner().clone()),
                            Err(_) => {
                                oflow::functional::full([], loss.extract::<f64>()?, oflow::placement::Device::Cpu)
                                    .or_raise(py)
                            }
                        }
                    });
                    said.map_err(|e| {
                        raised = Some(e);
                        oflow::Error::argument("the closure has raised an exception")
                    })
                })
            })
        });
        match raised {
            Some(e) => Err(e),
            None => done.or_raise(py).map(|_| first),
        }
    }

    /// Names with tensors, and the values as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<(Named, String)> {
        let inner = self.optimizer().or_raise(py)?;
        state_of(py, &*inner)
    }

    /// Takes over the values and makes the tensors of a state with these names, which are to be filled; and the names it lacks.
    fn prepare(&self, py: Python<'_>, names: Vec<String>, values: &str) -> PyResult<(Named, Vec<String>)> {
        context::enter(py)?;
        let mut inner = self.optimizer().or_raise(py)?;
        prepared(py, &mut *inner, &names, values)
    }
}

/// The state of an optimizer: names with tensors, and the values as JSON.
fn state_of(py: Python<'_>, of: &dyn Stateful) -> PyResult<(Named, String)> {
    let mut to = SaveState::new();
    of.save_state(&mut to).or_raise(py)?;
    let (tensors, values) = to.into_parts();
    let values = serde_json::to_string(&values).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok((tensors.into_iter().map(|(name, t)| (name, Tensor::of(t))).collect(), values))
}

/// Loads the values of a state into an optimizer: the tensors that are to be filled, and the names that the state lacks.
fn prepared(py: Python<'_>, of: &mut dyn Stateful, names: &[String], values: &str) -> PyResult<(Named, Vec<String>)> {
    let values =
        serde_json::from_str(values).map_err(|e| PyValueError::new_err(format!("no state of an optimizer: {e}")))?;
    let mut from = LoadState::new(names.iter().map(String::as_str), &values);
    of.load_state(&mut from).or_raise(py)?;
    let asked = from.into_asked();
    Ok((asked.fills.into_iter().map(|(name, t)| (name, Tensor::of(t))).collect(), asked.missing))
}

/// Scales all gradients so that their norm is at most `max_norm`; returns the norm before.
#[pyfunction]
pub fn _clip_grad_norm(py: Python<'_>, parameters: Vec<Bound<'_, Tensor>>, max_norm: f64) -> PyResult<Tensor> {
    context::enter(py)?;
    let parameters: Vec<oflow::Tensor> = parameters.iter().map(|p| p.get().inner().clone()).collect();
    let site = site::caller(py);
    py.detach(|| {
        let _scope = site.scope();
        oflow::optim::clip_grad_norm(&parameters, max_norm)
    })
    .or_raise(py)
    .map(Tensor::of)
}

/// The engine of `oflow.optim.EMA`.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct _Ema {
    inner: Mutex<oflow::optim::Ema>,
}

impl _Ema {
    /// The average of the library.
    pub fn average(&self) -> Result<MutexGuard<'_, oflow::optim::Ema>> {
        free(&self.inner, "the average")
    }
}

#[pymethods]
impl _Ema {
    #[new]
    fn new(py: Python<'_>, parameters: Vec<Bound<'_, Tensor>>, decay: f64) -> PyResult<_Ema> {
        context::enter(py)?;
        let parameters: Vec<oflow::Tensor> = parameters.iter().map(|p| p.get().inner().clone()).collect();
        let inner = py.detach(|| oflow::optim::Ema::new(parameters, decay)).or_raise(py)?;
        Ok(_Ema { inner: Mutex::new(inner) })
    }
    fn update(&self, py: Python<'_>) -> PyResult<()> {
        context::enter(py)?;
        let site = site::caller(py);
        py.detach(|| {
            let _scope = site.scope();
            free(&self.inner, "the average")?.update()
        })
        .or_raise(py)
    }
    fn swap(&self, py: Python<'_>) -> PyResult<()> {
        context::enter(py)?;
        let site = site::caller(py);
        py.detach(|| {
            let _scope = site.scope();
            free(&self.inner, "the average")?.swap()
        })
        .or_raise(py)
    }
    fn averages(&self, py: Python<'_>) -> PyResult<Vec<Tensor>> {
        let inner = free(&self.inner, "the average").or_raise(py)?;
        Ok(inner.averages().iter().map(|t| Tensor::of(t.clone())).collect())
    }
    fn updates(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(free(&self.inner, "the average").or_raise(py)?.updates())
    }
    fn set_updates(&self, py: Python<'_>, updates: u64) -> PyResult<()> {
        free(&self.inner, "the average").or_raise(py)?.set_updates(updates);
        Ok(())
    }
}

/// Loss scaling for float16: scales losses and skips steps whose gradients are not finite.
#[pyclass(frozen, module = "oflow.optim")]
pub struct GradScaler {
    inner: Mutex<oflow::optim::GradScaler>,
}

impl GradScaler {
    /// The scaler of the library.
    pub fn scaler(&self) -> Result<MutexGuard<'_, oflow::optim::GradScaler>> {
        free(&self.inner, "the scaler")
    }
}

/// The engine of an optimizer in Python.
fn engine<'py>(optimizer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, _Optimizer>> {
    let engine = optimizer.getattr("_ready").and_then(|ready| ready.call0());
    let engine = engine.map_err(|_| pyo3::exceptions::PyTypeError::new_err("expected an oflow.optim.Optimizer"))?;
    Ok(engine.cast_into()?)
}

#[pymethods]
impl GradScaler {
    #[new]
    #[pyo3(signature = (init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000))]
    fn new(init_scale: f64, growth_factor: f64, backoff_factor: f64, growth_interval: usize) -> GradScaler {
        let options =
            GradScalerOptions { scale: init_scale, growth: growth_factor, backoff: backoff_factor, growth_interval };
        GradScaler { inner: Mutex::new(oflow::optim::GradScaler::new(options)) }
    }
    /// The loss times the scale, in float32 or wider; call ``backward`` on it.
    fn scale(&self, py: Python<'_>, loss: &Bound<'_, Tensor>) -> PyResult<Tensor> {
        context::enter(py)?;
        let (site, loss) = (site::caller(py), loss.get().inner());
        let _scope = site.scope();
        self.scaler().and_then(|s| s.scale(loss)).or_raise(py).map(Tensor::of)
    }
    /// Divides the gradients of the optimizer's parameters by the scale. Needed before gradients are clipped or read.
    fn unscale_(&self, py: Python<'_>, optimizer: &Bound<'_, PyAny>) -> PyResult<()> {
        context::enter(py)?;
        let (site, engine) = (site::caller(py), engine(optimizer)?);
        let engine = engine.get();
        py.detach(|| {
            let _scope = site.scope();
            self.scaler()?.unscale_(&*engine.groups()?)
        })
        .or_raise(py)
    }
    /// Steps the optimizer if all its gradients are finite, and returns whether it did. The decision is the same on all ranks.
    fn step(&self, py: Python<'_>, optimizer: &Bound<'_, PyAny>) -> PyResult<bool> {
        context::enter(py)?;
        let (site, engine) = (site::caller(py), engine(optimizer)?);
        let engine = engine.get();
        py.detach(|| {
            let _scope = site.scope();
            self.scaler()?.step(&mut *engine.groups()?)
        })
        .or_raise(py)
    }
    /// Grows or shrinks the scale. Call it after each step.
    fn update(&self, py: Python<'_>) -> PyResult<()> {
        self.scaler().or_raise(py)?.update();
        Ok(())
    }
    /// The scale of the next loss.
    fn get_scale(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.scaler().or_raise(py)?.current())
    }
    /// Number of skipped steps.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.scaler().or_raise(py)?.skipped())
    }
}
