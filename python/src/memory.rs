//! How much memory a rank has in use, and for what.

use crate::errors::OrRaise;
use crate::phrases::in_python;
use crate::{context, types};
use oflow::placement::Device;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

fn device_or_cpu(device: Option<&Bound<'_, PyAny>>) -> PyResult<Device> {
    match device {
        Some(d) => types::device_of(d).map_err(|no| types::raised(no, d, "a device")),
        None => Ok(Device::Cpu),
    }
}

/// Memory of a device that this rank has in use, has cached, and had in use at most, in bytes.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub fn memory_stats<'py>(py: Python<'py>, device: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    context::enter(py)?;
    let stats = oflow::memory_stats(device_or_cpu(device)?).or_raise(py)?;
    py.import("oflow._memory")?.getattr("MemoryStats")?.call1((stats.live, stats.cached, stats.peak))
}

/// Starts the peak of a device's memory anew, from the bytes in use now.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub fn reset_peak_memory(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    context::enter(py)?;
    oflow::reset_peak_memory(device_or_cpu(device)?).or_raise(py)
}

/// Holders of this rank's memory, as a text and as JSON.
#[pyfunction]
pub fn _memory_report(py: Python<'_>) -> PyResult<(String, String)> {
    context::enter(py)?;
    let report = oflow::memory_report();
    let json = serde_json::to_string(&report).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    Ok((in_python(&report.to_string()), json))
}
