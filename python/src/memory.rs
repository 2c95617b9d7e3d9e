//! How much memory a rank has in use.

use crate::errors::OrRaise;
use crate::{context, types};
use pyo3::prelude::*;

/// Memory of a device that this rank has in use, has cached, and had in use at most, in bytes.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub fn memory_stats<'py>(py: Python<'py>, device: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    context::enter(py)?;
    let device = match device {
        Some(d) => types::device_of(d).map_err(|no| types::raised(no, d, "a device"))?,
        None => oflow::placement::Device::Cpu,
    };
    let stats = oflow::memory_stats(device).or_raise(py)?;
    py.import("oflow._memory")?.getattr("MemoryStats")?.call1((stats.live, stats.cached, stats.peak))
}
