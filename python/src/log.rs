//! Logs of metrics. `oflow/metrics.py` has the classes and functions of programs.

use crate::errors::OrRaise;
use crate::tensor::Tensor;
use crate::{context, site};
use oflow::metrics::{Format, Log, LogOptions, LogValue, OverRanks};
use oflow::{Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The engine of `oflow.metrics.Log`.
#[pyclass(frozen, module = "oflow._oflow")]
pub struct _Log {
    inner: Mutex<Option<Log>>,
}

/// Values by name, as Python gives them.
type Values<'py> = Vec<(String, Bound<'py, PyAny>)>;

/// Runs a call on values that are tensors or numbers.
fn logging(
    py: Python<'_>,
    values: Values<'_>,
    call: impl FnOnce(&[(&str, &dyn LogValue)]) -> Result<()> + Send,
) -> PyResult<()> {
    context::enter(py)?;
    let one = |(name, value): (String, Bound<'_, PyAny>)| -> PyResult<(String, Box<dyn LogValue + Send + Sync>)> {
        if let Ok(t) = value.cast::<Tensor>() {
            return Ok((name, Box::new(t.get().inner().clone())));
        }
        let number: f64 = value.extract().map_err(|_| {
            let kind = value.get_type().name().map_or_else(|_| "object".into(), |n| n.to_string());
            PyTypeError::new_err(format!("'{name}' is a {kind}: a log takes tensors of one element and real numbers"))
        })?;
        Ok((name, Box::new(number)))
    };
    let (site, values) = (site::caller(py), values.into_iter().map(one).collect::<PyResult<Vec<_>>>()?);
    py.detach(|| {
        let _scope = site.scope();
        let all: Vec<(&str, &dyn LogValue)> =
            values.iter().map(|(name, v)| (name.as_str(), &**v as &dyn LogValue)).collect();
        call(&all)
    })
    .or_raise(py)
}

/// Runs a call that may communicate.
fn running(py: Python<'_>, call: impl FnOnce() -> Result<()> + Send) -> PyResult<()> {
    context::enter(py)?;
    let site = site::caller(py);
    py.detach(|| {
        let _scope = site.scope();
        call()
    })
    .or_raise(py)
}

impl _Log {
    fn with(&self, f: impl FnOnce(&Log) -> Result<()>) -> Result<()> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || Error::argument("this log is closed").help("make a new Log, with `resume=True` to continue it");
        f(inner.as_ref().ok_or_else(closed)?)
    }
}

#[pymethods]
impl _Log {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        formats: Vec<String>,
        flush_every: usize,
        resume: bool,
        over_ranks: &str,
    ) -> PyResult<_Log> {
        context::enter(py)?;
        let formats = formats.iter().map(|f| f.parse()).collect::<Result<Vec<Format>>>().or_raise(py)?;
        let over_ranks = over_ranks.parse::<OverRanks>().or_raise(py)?;
        let site = site::caller(py);
        let made = py.detach(|| {
            let _scope = site.scope();
            Log::new(path, LogOptions { formats, flush_every, resume, over_ranks })
        });
        Ok(_Log { inner: Mutex::new(Some(made.or_raise(py)?)) })
    }
    fn log(&self, py: Python<'_>, step: usize, values: Values<'_>) -> PyResult<()> {
        logging(py, values, |values| self.with(|log| log.log(step, values)))
    }
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        running(py, || self.with(Log::flush))
    }
    fn install(&self, py: Python<'_>) -> PyResult<()> {
        running(py, || self.with(Log::install))
    }
    /// Ends the log. What it has not written is written as far as no communication is needed.
    fn drop(&self, py: Python<'_>) -> PyResult<()> {
        running(py, || {
            let log = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(log);
            Ok(())
        })
    }
}

/// Logs to the installed log.
#[pyfunction]
pub fn _log(py: Python<'_>, step: usize, values: Values<'_>) -> PyResult<()> {
    logging(py, values, |values| oflow::log(step, values))
}

/// Flushes the installed log.
#[pyfunction]
pub fn _flush_log(py: Python<'_>) -> PyResult<()> {
    running(py, oflow::metrics::flush_log)
}
