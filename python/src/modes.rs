//! Modes of the thread that Python enters and leaves, by their names.

use crate::errors::OrRaise;
use crate::guards::{end_left, hold, leave};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::any::Any;

/// Enters a mode of the thread, until `_leave` is called with the number that this returns.
#[pyfunction]
#[pyo3(signature = (mode, value=None))]
pub fn _enter(py: Python<'_>, mode: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    end_left();
    let text = || -> PyResult<String> {
        value.ok_or_else(|| PyValueError::new_err(format!("the mode {mode} needs a value")))?.extract()
    };
    let number = || -> PyResult<u64> {
        value.ok_or_else(|| PyValueError::new_err(format!("the mode {mode} needs a value")))?.extract()
    };
    let guard: Box<dyn Any> = match mode {
        "no_grad" => Box::new(oflow::no_grad()),
        "enable_grad" => Box::new(oflow::enable_grad()),
        "no_sync" => Box::new(oflow::no_sync()),
        "detect_anomaly" => Box::new(oflow::detect_anomaly()),
        "source" => Box::new(oflow::graph::source_thread()),
        "keep_layouts" => Box::new(oflow::keep_layouts()),
        "recompute" => Box::new(oflow::interpreter::recompute()),
        "name_scope" => Box::new(oflow::name_scope(&text()?)),
        "span" => Box::new({
            let site = crate::site::caller(py);
            let _scope = site.scope();
            oflow::span(&text()?)
        }),
        "autocast" => Box::new(oflow::autocast(match text()?.as_str() {
            "bfloat16" => oflow::Autocast::Bf16,
            "float16" => oflow::Autocast::F16,
            "off" => oflow::Autocast::Off,
            other => return Err(PyValueError::new_err(format!("autocast takes bfloat16 or float16, not {other}"))),
        })),
        "allow" => Box::new(oflow::boxing_policy(oflow::Policy::Allow)),
        "log" => Box::new(oflow::boxing_policy(oflow::Policy::Log)),
        "warn_above_bytes" => Box::new(oflow::boxing_policy(oflow::Policy::WarnAboveBytes(number()?))),
        "warn_above_micros" => Box::new(oflow::boxing_policy(oflow::Policy::WarnAboveMicros(number()?))),
        "deny" => Box::new(oflow::boxing_policy(oflow::Policy::Deny)),
        "deny_all" => Box::new(oflow::boxing_policy(oflow::Policy::DenyAll)),
        "watch_calls" => {
            let pair = value.ok_or_else(|| PyValueError::new_err("watch_calls needs hooks"))?;
            let (before, after): (Option<Py<PyAny>>, Option<Py<PyAny>>) = pair.extract()?;
            Box::new((before.map(crate::dispatch_hooks::watch), after.map(crate::dispatch_hooks::watch_results)))
        }
        "pin_sbp" => {
            let pair = value.ok_or_else(|| PyValueError::new_err("pin_sbp needs an op and an sbp"))?;
            let (op, sbp): (String, Bound<'_, PyAny>) = pair.extract()?;
            let sbp = crate::types::sbp_of(&sbp).map_err(|no| crate::types::raised(no, &sbp, "an sbp"))?;
            let site = crate::site::caller(py);
            let _scope = site.scope();
            Box::new(oflow::pin_sbp(&op, sbp).or_raise(py)?)
        }
        other => return Err(PyValueError::new_err(format!("unknown mode '{other}'"))),
    };
    Ok(hold(guard))
}

/// Leaves a mode, and no other one. On another thread than its own the mode ends at the next call of its own.
#[pyfunction]
pub fn _leave(number: u64) {
    leave(number);
}

/// The modes in force on this thread, as text.
#[pyfunction]
pub fn _modes() -> Vec<String> {
    end_left();
    oflow::interpreter::modes()
}

/// Whether calls are recorded for backward on this thread.
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    end_left();
    oflow::context::grad_enabled()
}
