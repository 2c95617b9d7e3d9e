//! Profiles of a part of a program.

use crate::context::enter;
use crate::errors::OrRaise;
use crate::phrases::in_python;
use oflow::data::{BatchPlace, BatchTimer};
use oflow::{Profile, Profiler};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A profile that is being taken, or was.
#[pyclass(module = "oflow._oflow")]
pub struct _Profile {
    running: Option<Profiler>,
    taken: Option<Profile>,
}

/// Kind, op or name, file, line, name scope, count and seconds of a sum.
type Row = (&'static str, &'static str, u32, &'static str, u64, f64);

impl _Profile {
    fn taken(&self) -> PyResult<&Profile> {
        self.taken
            .as_ref()
            .ok_or_else(|| PyRuntimeError::new_err("the profile has not ended: read it after the `with` block"))
    }
}

#[pymethods]
impl _Profile {
    #[new]
    fn new() -> _Profile {
        _Profile { running: None, taken: None }
    }

    fn start(&mut self, py: Python<'_>, timeline: Option<std::path::PathBuf>) -> PyResult<()> {
        enter(py)?;
        let started = match timeline {
            None => Profiler::start(),
            Some(folder) => Profiler::start_with_timeline(folder),
        };
        self.running = Some(started.or_raise(py)?);
        Ok(())
    }

    fn stop(&mut self, py: Python<'_>) -> PyResult<()> {
        enter(py)?;
        if let Some(running) = self.running.take() {
            self.taken = Some(py.detach(|| running.stop()).or_raise(py)?);
        }
        Ok(())
    }

    fn text(&self) -> PyResult<String> {
        Ok(in_python(&self.taken()?.to_string()))
    }

    fn timeline(&self) -> PyResult<Option<String>> {
        Ok(self.taken()?.timeline().map(|path| path.display().to_string()))
    }

    fn steps(&self) -> PyResult<u64> {
        Ok(self.taken()?.totals().steps())
    }

    /// Seconds of a step: whole, computing, communication, late ranks, data, checkpoints, the rest.
    fn split(&self) -> PyResult<Option<[f64; 7]>> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let split = self.taken()?.totals().step();
        Ok(split
            .map(|s| [s.whole, s.compute, s.communication, s.late_ranks, s.data, s.checkpoint, s.rest()].map(seconds)))
    }

    fn rows(&self, kind: &str) -> PyResult<Vec<Row>> {
        let row = |(name, site, busy): (&'static str, oflow::CallSite, oflow::trace::Busy)| {
            (name, site.file, site.line, site.scope.path(), busy.count, busy.ns as f64 / 1e9)
        };
        Ok(self.taken()?.totals().of_kind(kind).map(row).collect())
    }
}

/// Marks the end of a step of the program: steps of optimizers do not count from then on.
#[pyfunction]
pub fn mark_step(py: Python<'_>) -> PyResult<()> {
    enter(py)?;
    oflow::mark_step();
    Ok(())
}

/// The line of the program that asks for batches, and its rank.
#[pyclass(module = "oflow._oflow", frozen)]
pub struct _BatchPlace(BatchPlace);

#[pymethods]
impl _BatchPlace {
    #[new]
    fn new(py: Python<'_>) -> PyResult<_BatchPlace> {
        enter(py)?;
        let _scope = crate::site::caller(py).scope();
        Ok(_BatchPlace(BatchPlace::here()))
    }
}

/// Time of a batch.
#[pyclass(module = "oflow._oflow", frozen)]
pub struct _BatchTimer(BatchTimer);

#[pymethods]
impl _BatchTimer {
    #[new]
    fn new(place: &_BatchPlace) -> _BatchTimer {
        _BatchTimer(BatchTimer::start(place.0))
    }

    fn waited(&self, rows: usize) {
        self.0.waited(rows);
    }

    fn made(&self, rows: usize) {
        self.0.made(rows);
    }
}
