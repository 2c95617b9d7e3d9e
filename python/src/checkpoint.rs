//! Checkpoints, and files of tensors. What is saved is a list of sections: an optimizer, a scaler, an average, a generator, a stream of
//! batches, or the tensors and values that Python gives of a module or a dict.

use crate::errors::{OrRaise, exception};
use crate::loader::Stream;
use crate::optim::{_Ema, _Lbfgs, _Optimizer, GradScaler, free};
use crate::tensor::Tensor;
use crate::types::Generator;
use crate::{context, site, types};
use oflow::checkpoint::{Checkpoint as Saved, CheckpointManager, CheckpointOptions, LoadOptions};
use oflow::data::{Loader, Stream as Batches};
use oflow::functional::IntoTarget;
use oflow::placement::{Device, Placement};
use oflow::sbp::NdSbp;
use oflow::state::{LoadState, SaveState, Stateful};
use oflow::{CallSite, Error, Result};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// A section that Python gives.
enum Section {
    Optimizer(Py<_Optimizer>),
    Lbfgs(Py<_Lbfgs>),
    Scaler(Py<GradScaler>),
    Average(Py<_Ema>),
    Generator(oflow::Generator),
    Stream(Py<Stream>),
    Plain(Plain),
}

/// Tensors by name, and values in their notation.
#[derive(Clone, Default)]
struct Plain {
    tensors: Vec<(String, oflow::Tensor)>,
    values: BTreeMap<String, serde_json::Value>,
    /// The values of the checkpoint.
    loaded: BTreeMap<String, serde_json::Value>,
}

impl Stateful for Plain {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.tensors.iter().for_each(|(name, t)| to.tensor(name, t));
        self.values.iter().try_for_each(|(name, v)| to.notation(name, v.clone()))
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        self.tensors.iter().for_each(|(name, t)| from.fill(name, t));
        for name in self.values.keys() {
            if let Some(value) = from.notation(name) {
                self.loaded.insert(name.clone(), value.clone());
            }
        }
        Ok(())
    }
}

/// The values of sections, as JSON.
pub(crate) type Values = Vec<(String, String)>;

/// Missing and unexpected names.
type Names = (Vec<String>, Vec<String>);

/// A section during a call.
enum LockedSection<'a> {
    Optimizer(MutexGuard<'a, oflow::optim::Groups>),
    Lbfgs(MutexGuard<'a, oflow::optim::Lbfgs>),
    Scaler(MutexGuard<'a, oflow::optim::GradScaler>),
    Average(MutexGuard<'a, oflow::optim::Ema>),
    Generator(&'a mut oflow::Generator),
    Stream(MutexGuard<'a, Batches<Arc<Loader>>>),
    Plain(&'a mut Plain),
}

impl LockedSection<'_> {
    fn state(&self) -> &dyn Stateful {
        match self {
            LockedSection::Optimizer(o) => &**o,
            LockedSection::Lbfgs(o) => &**o,
            LockedSection::Scaler(s) => &**s,
            LockedSection::Average(a) => &**a,
            LockedSection::Generator(g) => &**g,
            LockedSection::Stream(s) => &**s,
            LockedSection::Plain(p) => &**p,
        }
    }
}

impl Stateful for LockedSection<'_> {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.state().save_state(to)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        match self {
            LockedSection::Optimizer(o) => o.load_state(from),
            LockedSection::Lbfgs(o) => o.load_state(from),
            LockedSection::Scaler(s) => s.load_state(from),
            LockedSection::Average(a) => a.load_state(from),
            LockedSection::Generator(g) => g.load_state(from),
            LockedSection::Stream(s) => s.load_state(from),
            LockedSection::Plain(p) => p.load_state(from),
        }
    }
    fn prepare(&mut self, wanted: &LoadState<'_>) -> Result<()> {
        match self {
            LockedSection::Optimizer(o) => o.prepare(wanted),
            // The others make no tensors at a first use.
            _ => Ok(()),
        }
    }
}

fn held(section: &mut Section) -> Result<LockedSection<'_>> {
    Ok(match section {
        Section::Optimizer(o) => LockedSection::Optimizer(o.get().groups()?),
        Section::Lbfgs(o) => LockedSection::Lbfgs(o.get().optimizer()?),
        Section::Scaler(s) => LockedSection::Scaler(s.get().scaler()?),
        Section::Average(a) => LockedSection::Average(a.get().average()?),
        Section::Generator(g) => LockedSection::Generator(g),
        Section::Stream(s) => LockedSection::Stream(s.get().stream()?),
        Section::Plain(p) => LockedSection::Plain(p),
    })
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| PyValueError::new_err(format!("a value cannot be saved: {e}")))
}

fn text(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

fn sections(given: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Vec<(String, Section)>> {
    let one = |o: Bound<'_, PyAny>| -> PyResult<Section> {
        if let Ok(o) = o.cast::<_Optimizer>() {
            return Ok(Section::Optimizer(o.clone().unbind()));
        }
        if let Ok(o) = o.cast::<_Lbfgs>() {
            return Ok(Section::Lbfgs(o.clone().unbind()));
        }
        if let Ok(s) = o.cast::<GradScaler>() {
            return Ok(Section::Scaler(s.clone().unbind()));
        }
        if let Ok(a) = o.cast::<_Ema>() {
            return Ok(Section::Average(a.clone().unbind()));
        }
        if let Ok(g) = o.cast::<Generator>() {
            return Ok(Section::Generator(g.get().inner().clone()));
        }
        if let Ok(s) = o.cast::<Stream>() {
            return Ok(Section::Stream(s.clone().unbind()));
        }
        let (tensors, values): (Vec<(String, Bound<'_, Tensor>)>, String) = o.extract()?;
        let tensors = tensors.into_iter().map(|(name, t)| (name, t.get().inner().clone())).collect();
        Ok(Section::Plain(Plain { tensors, values: json(&values)?, ..Default::default() }))
    };
    given.into_iter().map(|(name, o)| Ok((name, one(o)?))).collect()
}

/// Runs a call on sections that are to be saved.
pub(crate) fn saving<T: Send>(
    py: Python<'_>,
    given: Vec<(String, Bound<'_, PyAny>)>,
    call: impl FnOnce(&[(&str, &dyn Stateful)]) -> Result<T> + Send,
) -> PyResult<T> {
    context::enter(py)?;
    let (site, mut all) = (site::caller(py), sections(given)?);
    py.detach(|| {
        let _scope = site.scope();
        let held: Vec<(&str, LockedSection<'_>)> =
            all.iter_mut().map(|(name, s)| Ok((name.as_str(), held(s)?))).collect::<Result<_>>()?;
        let state: Vec<(&str, &dyn Stateful)> = held.iter().map(|(name, h)| (*name, h.state())).collect();
        call(&state)
    })
    .or_raise(py)
}

/// Runs a call on sections that are to be loaded. Returns the values of those that Python gave, by section, as JSON.
pub(crate) fn loading<T: Send>(
    py: Python<'_>,
    given: Vec<(String, Bound<'_, PyAny>)>,
    call: impl FnOnce(&mut [(&str, &mut dyn Stateful)]) -> Result<T> + Send,
) -> PyResult<(T, Values)> {
    context::enter(py)?;
    let (site, mut all) = (site::caller(py), sections(given)?);
    let done = py.detach(|| {
        let _scope = site.scope();
        let mut held: Vec<(&str, LockedSection<'_>)> =
            all.iter_mut().map(|(name, s)| Ok((name.as_str(), held(s)?))).collect::<Result<_>>()?;
        let mut state: Vec<(&str, &mut dyn Stateful)> =
            held.iter_mut().map(|(name, h)| (*name, h as &mut dyn Stateful)).collect();
        call(&mut state)
    });
    let done = done.or_raise(py)?;
    let plain = all.into_iter().filter_map(|(name, s)| match s {
        Section::Plain(p) => Some((name, p.loaded)),
        _ => None,
    });
    Ok((done, plain.map(|(name, values)| Ok((name, text(&values)?))).collect::<PyResult<_>>()?))
}

/// The engine of `oflow.checkpoint.CheckpointManager`.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct _CheckpointManager {
    inner: Mutex<Option<CheckpointManager>>,
}

fn gone() -> Error {
    Error::argument("this manager has been finished").help("make a new CheckpointManager of the folder")
}

impl _CheckpointManager {
    fn with<T>(&self, f: impl FnOnce(&mut CheckpointManager) -> Result<T>) -> Result<T> {
        f(free(&self.inner, "the manager")?.as_mut().ok_or_else(gone)?)
    }
}

#[pymethods]
impl _CheckpointManager {
    #[new]
    fn new(dir: PathBuf, keep: usize) -> _CheckpointManager {
        let manager = CheckpointManager::new(dir, CheckpointOptions { keep });
        _CheckpointManager { inner: Mutex::new(Some(manager)) }
    }

    fn save(&self, py: Python<'_>, step: u64, state: Vec<(String, Bound<'_, PyAny>)>, behind: bool) -> PyResult<()> {
        saving(py, state, |state| self.with(|m| if behind { m.save_async(step, state) } else { m.save(step, state) }))
    }

    fn load_latest(&self, py: Python<'_>, state: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<(Option<u64>, Values)> {
        loading(py, state, |state| self.with(|m| m.load_latest(state)))
    }

    fn load_step(&self, py: Python<'_>, step: u64, state: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Values> {
        loading(py, state, |state| self.with(|m| m.load_step(step, state))).map(|((), values)| values)
    }

    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let site = site::caller(py);
        py.detach(|| {
            let _scope = site.scope();
            match &mut *free(&self.inner, "the manager")? {
                Some(m) => m.wait(),
                None => Ok(()),
            }
        })
        .or_raise(py)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let site = site::caller(py);
        py.detach(|| {
            let _scope = site.scope();
            let manager = free(&self.inner, "the manager")?.take();
            manager.map_or(Ok(()), CheckpointManager::finish)
        })
        .or_raise(py)
    }
}

/// Where loaded tensors are to live.
enum Where {
    Device(Device),
    Layout(Placement, NdSbp),
}

fn place(
    device: Option<&Bound<'_, PyAny>>,
    placement: Option<&Bound<'_, PyAny>>,
    sbp: Option<&Bound<'_, PyAny>>,
) -> PyResult<Where> {
    match (device, placement, sbp) {
        (None, None, None) => Ok(Where::Device(Device::Cpu)),
        (Some(d), None, None) => types::device_of(d).map(Where::Device).map_err(|no| types::raised(no, d, "a device")),
        (None, Some(p), Some(s)) => Ok(Where::Layout(
            types::placement_of(p).map_err(|no| types::raised(no, p, "a placement"))?,
            types::sbp_of(s).map_err(|no| types::raised(no, s, "an sbp"))?,
        )),
        (None, ..) => Err(PyTypeError::new_err("placement and sbp are given together")),
        _ => Err(PyTypeError::new_err("give a device, or a placement and an sbp")),
    }
}

/// A checkpoint, a folder of a model or a safetensors file, opened for reading.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct _Checkpoint {
    inner: Saved,
}

#[pymethods]
impl _Checkpoint {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<_Checkpoint> {
        context::enter(py)?;
        let site = site::caller(py);
        let opened = py.detach(|| {
            let _scope = site.scope();
            Saved::open(&path)
        });
        Ok(_Checkpoint { inner: opened.or_raise(py)? })
    }
    #[getter]
    fn step(&self) -> u64 {
        self.inner.step()
    }
    #[getter]
    fn world(&self) -> usize {
        self.inner.world()
    }
    /// Names of the tensors with shapes and dtypes.
    fn tensors(&self) -> Vec<(String, Vec<usize>, String)> {
        self.inner.tensors().iter().map(|(name, t)| (name.clone(), t.shape.clone(), t.dtype.clone())).collect()
    }
    /// The values in their notation, as JSON.
    fn values(&self) -> PyResult<String> {
        text(self.inner.values())
    }
    #[pyo3(signature = (name, device=None, placement=None, sbp=None))]
    fn tensor(
        &self,
        py: Python<'_>,
        name: &str,
        device: Option<&Bound<'_, PyAny>>,
        placement: Option<&Bound<'_, PyAny>>,
        sbp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tensor> {
        context::enter(py)?;
        let (site, place) = (site::caller(py), place(device, placement, sbp)?);
        py.detach(|| {
            let _scope = site.scope();
            match &place {
                Where::Device(d) => self.inner.tensor(name, *d),
                Where::Layout(p, s) => self.inner.tensor(name, (p, s.clone())),
            }
        })
        .or_raise(py)
        .map(Tensor::of)
    }
    /// Loads sections. Returns missing and unexpected names, and the values of the sections that Python gave.
    fn load(
        &self,
        py: Python<'_>,
        state: Vec<(String, Bound<'_, PyAny>)>,
        strict: bool,
        cast: bool,
    ) -> PyResult<(Names, Values)> {
        let load = |state: &mut [(&str, &mut dyn Stateful)]| {
            self.inner.load_with(state, LoadOptions { strict, cast }).map(|l| (l.missing, l.unexpected))
        };
        loading(py, state, load)
    }
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.verify()).or_raise(py)
    }
}

/// Writes tensors to one safetensors file.
#[pyfunction]
pub fn _save_file(py: Python<'_>, path: PathBuf, tensors: Vec<(String, Bound<'_, Tensor>)>) -> PyResult<()> {
    context::enter(py)?;
    let site = site::caller(py);
    let tensors: Vec<(String, oflow::Tensor)> =
        tensors.into_iter().map(|(name, t)| (name, t.get().inner().clone())).collect();
    py.detach(|| {
        let _scope = site.scope();
        let named: Vec<(&str, &oflow::Tensor)> = tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
        oflow::save_file(&path, &named)
    })
    .or_raise(py)
}

/// Reads all tensors of a file, of the folder of a model, or of a checkpoint.
#[pyfunction]
#[pyo3(signature = (path, device=None, placement=None, sbp=None))]
pub fn _load_file(
    py: Python<'_>,
    path: PathBuf,
    device: Option<&Bound<'_, PyAny>>,
    placement: Option<&Bound<'_, PyAny>>,
    sbp: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(String, Tensor)>> {
    context::enter(py)?;
    let (site, place) = (site::caller(py), place(device, placement, sbp)?);
    let read = |site: CallSite| {
        let _scope = site.scope();
        match &place {
            Where::Device(d) => oflow::load_file(&path, *d),
            Where::Layout(p, s) => oflow::load_file(&path, (p, s.clone()).into_target()),
        }
    };
    let all = py.detach(|| read(site)).map_err(|e| exception(py, e))?;
    Ok(all.into_iter().map(|(name, t)| (name, Tensor::of(t))).collect())
}
