//! The optimizers of the library with PyTorch's groups of parameters, and loss scaling.

use crate::errors::OrRaise;
use crate::tensor::Tensor;
use crate::{context, site};
use oflow::optim::{AdamW, AdamWOptions, GradScalerOptions, Optimizer, Sgd, SgdOptions, check_gradients};
use oflow::state::{LoadState, SaveState, Stateful};
use oflow::{CallSite, Result};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// An optimizer of one group.
enum Kind {
    AdamW(AdamW),
    Sgd(Sgd),
}

impl Kind {
    fn get(&self) -> &dyn Optimizer {
        match self {
            Kind::AdamW(o) => o,
            Kind::Sgd(o) => o,
        }
    }
    fn get_mut(&mut self) -> &mut dyn Optimizer {
        match self {
            Kind::AdamW(o) => o,
            Kind::Sgd(o) => o,
        }
    }
    fn state(&self) -> &dyn Stateful {
        match self {
            Kind::AdamW(o) => o,
            Kind::Sgd(o) => o,
        }
    }
    fn state_mut(&mut self) -> &mut dyn Stateful {
        match self {
            Kind::AdamW(o) => o,
            Kind::Sgd(o) => o,
        }
    }
}

/// Optimizers of several groups of parameters, as one. Parameters are numbered through all groups, so the saved state of one
/// group is that of an optimizer of a Rust program.
#[derive(Default)]
pub struct Groups {
    groups: Vec<Kind>,
    all: Vec<oflow::Tensor>,
}

impl Optimizer for Groups {
    fn step_at(&mut self, site: CallSite) -> Result<()> {
        check_gradients(&self.all, site)?;
        for group in &mut self.groups {
            // A group that is not trained now: its other checks still apply.
            let group = group.get_mut();
            let due = group.parameters().iter().any(|p| p.grad().is_some());
            if due {
                group.step_at(site)?;
            }
        }
        Ok(())
    }
    fn parameters(&self) -> &[oflow::Tensor] {
        &self.all
    }
    fn lr(&self) -> f64 {
        self.groups.first().map_or(0.0, |g| g.get().lr())
    }
    fn set_lr(&mut self, lr: f64) {
        self.groups.iter_mut().for_each(|g| g.get_mut().set_lr(lr));
    }
}

/// Suffixes of the tensors that an optimizer keeps of a parameter.
const KEPT: [&str; 4] = ["mean", "square", "momentum", "master"];

impl Stateful for Groups {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        let (mut first, mut steps, mut lrs) = (0, vec![], vec![]);
        for group in &self.groups {
            let mut own = SaveState::new();
            group.state().save_state(&mut own)?;
            let (tensors, values) = own.into_parts();
            for (name, t) in &tensors {
                to.tensor(&renumbered(name, first), t);
            }
            steps.extend(values.get("steps").and_then(|v| v.as_array()).into_iter().flatten().cloned());
            lrs.push(group.get().lr());
            first += group.get().parameters().len();
        }
        if !steps.is_empty() {
            to.value("steps", steps)?;
        }
        if lrs.len() > 1 {
            to.value("lrs", &lrs)?;
        }
        to.value("lr", self.lr())
    }

    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let (mut first, several) = (0, self.groups.len() > 1);
        let has_steps = self.groups.iter().any(|g| matches!(g, Kind::AdamW(_)));
        let steps: Vec<i64> = if has_steps { from.value("steps")?.unwrap_or_default() } else { vec![] };
        let lr: Option<f64> = from.value("lr")?;
        // A state of one group fits several: they then have its learning rate.
        let lrs: Vec<f64> = if several && from.has("lrs") { from.value("lrs")?.unwrap_or_default() } else { vec![] };
        for (i, group) in self.groups.iter_mut().enumerate() {
            let count = group.get().parameters().len();
            let names: Vec<String> = (0..count)
                .flat_map(|p| KEPT.iter().map(move |kept| (p, kept)))
                .filter(|(p, kept)| from.has(&format!("{}.{kept}", first + p)))
                .map(|(p, kept)| format!("{p}.{kept}"))
                .collect();
            let own = steps.iter().copied().chain(std::iter::repeat(0)).skip(first).take(count).collect::<Vec<_>>();
            let values = BTreeMap::from([
                ("steps".to_string(), serde_json::Value::from(own)),
                ("lr".to_string(), lrs.get(i).copied().or(lr).unwrap_or(group.get().lr()).into()),
            ]);
            let mut inner = LoadState::new(names.iter().map(String::as_str), &values);
            group.state_mut().load_state(&mut inner)?;
            for (name, tensor) in inner.into_asked().fills {
                from.fill(&renumbered(&name, first), &tensor);
            }
            first += count;
        }
        Ok(())
    }
}

/// `3.mean` as `8.mean`, in a group whose first parameter is number 5.
fn renumbered(name: &str, first: usize) -> String {
    match name.split_once('.').map(|(n, rest)| (n.parse::<usize>(), rest)) {
        Some((Ok(n), rest)) => format!("{}.{rest}", n + first),
        _ => name.to_string(),
    }
}

/// Tensors by name.
type Named = Vec<(String, Tensor)>;

/// The engine of `oflow.optim.Optimizer`.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct _Optimizer {
    inner: Mutex<Groups>,
}

/// What is locked, unless it is in use: by another thread, or by the call that asks.
pub fn free<'a, T>(of: &'a Mutex<T>, what: &str) -> Result<MutexGuard<'a, T>> {
    of.try_lock().map_err(|_| oflow::Error::argument(format!("{what} is in use by another call")))
}

impl _Optimizer {
    /// The optimizers of the groups.
    pub fn groups(&self) -> Result<MutexGuard<'_, Groups>> {
        free(&self.inner, "the optimizer")
    }
}

fn number(options: &Bound<'_, PyDict>, name: &str) -> PyResult<f64> {
    let value = options.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("the group has no '{name}'")))?;
    value.extract().map_err(|_| pyo3::exceptions::PyTypeError::new_err(format!("'{name}' is a number, not {value}")))
}

fn flag(options: &Bound<'_, PyDict>, name: &str) -> PyResult<bool> {
    options.get_item(name)?.map_or(Ok(false), |v| v.is_truthy())
}

fn adamw(options: &Bound<'_, PyDict>) -> PyResult<AdamWOptions> {
    let betas = options.get_item("betas")?.ok_or_else(|| PyValueError::new_err("the group has no 'betas'"))?;
    let (beta1, beta2) = betas.extract()?;
    Ok(AdamWOptions {
        lr: number(options, "lr")?,
        beta1,
        beta2,
        eps: number(options, "eps")?,
        weight_decay: number(options, "weight_decay")?,
        master_weights: flag(options, "master_weights")?,
    })
}

fn sgd(options: &Bound<'_, PyDict>) -> PyResult<SgdOptions> {
    Ok(SgdOptions {
        lr: number(options, "lr")?,
        momentum: number(options, "momentum")?,
        dampening: number(options, "dampening")?,
        weight_decay: number(options, "weight_decay")?,
        nesterov: flag(options, "nesterov")?,
        master_weights: flag(options, "master_weights")?,
    })
}

#[pymethods]
impl _Optimizer {
    #[new]
    fn new() -> _Optimizer {
        _Optimizer { inner: Mutex::default() }
    }

    /// Adds a group with these options.
    fn add(
        &self,
        py: Python<'_>,
        kind: &str,
        parameters: Vec<Bound<'_, Tensor>>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let parameters: Vec<oflow::Tensor> = parameters.iter().map(|p| p.get().inner().clone()).collect();
        let group = match kind {
            "adamw" => Kind::AdamW(AdamW::new(parameters.clone(), adamw(options)?)),
            "sgd" => Kind::Sgd(Sgd::new(parameters.clone(), sgd(options)?)),
            other => return Err(PyValueError::new_err(format!("there is no optimizer '{other}'"))),
        };
        let mut inner = self.groups().or_raise(py)?;
        inner.groups.push(group);
        inner.all.extend(parameters);
        Ok(())
    }

    /// Sets the options of a group for later steps.
    fn set(&self, py: Python<'_>, group: usize, options: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut inner = self.groups().or_raise(py)?;
        match inner.groups.get_mut(group) {
            Some(Kind::AdamW(o)) => o.set_options(adamw(options)?),
            Some(Kind::Sgd(o)) => o.set_options(sgd(options)?),
            None => return Err(PyRuntimeError::new_err("param_groups was changed; use add_param_group")),
        }
        Ok(())
    }

    /// The learning rates of the groups.
    fn lrs(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        Ok(self.groups().or_raise(py)?.groups.iter().map(|g| g.get().lr()).collect())
    }

    /// Updates each parameter that has a gradient.
    fn step(&self, py: Python<'_>) -> PyResult<()> {
        context::enter(py)?;
        let site = site::caller(py);
        py.detach(|| self.groups()?.step_at(site)).or_raise(py)
    }

    /// Names with tensors, and the values as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<(Named, String)> {
        let mut to = SaveState::new();
        self.groups().and_then(|g| g.save_state(&mut to)).or_raise(py)?;
        let (tensors, values) = to.into_parts();
        let values = serde_json::to_string(&values).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok((tensors.into_iter().map(|(name, t)| (name, Tensor::of(t))).collect(), values))
    }

    /// Takes over the values and makes the tensors of a state with these names, which are to be filled; and the names it lacks.
    fn prepare(&self, py: Python<'_>, names: Vec<String>, values: &str) -> PyResult<(Named, Vec<String>)> {
        context::enter(py)?;
        let values = serde_json::from_str(values)
            .map_err(|e| PyValueError::new_err(format!("no state of an optimizer: {e}")))?;
        let mut from = LoadState::new(names.iter().map(String::as_str), &values);
        self.groups().and_then(|mut g| g.load_state(&mut from)).or_raise(py)?;
        let asked = from.into_asked();
        Ok((asked.fills.into_iter().map(|(name, t)| (name, Tensor::of(t))).collect(), asked.missing))
    }
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
    let engine = engine.map_err(|_| pyo3::exceptions::PyTypeError::new_err("this is no oflow.optim.Optimizer"))?;
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
