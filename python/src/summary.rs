//! Summaries of models: `oflow.nn.summary`. Rows and arguments are in `oflow/nn/_summary.py`.

use crate::autograd::tensors;
use crate::errors::{OrRaise, from_callback};
use crate::phrases::in_python;
use crate::{context, site};
use oflow::nn::{Summary, summarize};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A summary as a text and as JSON.
pub fn told(summary: &Summary) -> PyResult<(String, String)> {
    let json = serde_json::to_string(summary).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    Ok((in_python(&summary.to_string()), json))
}

/// Summary of a model with these parameters: `body` calls it and returns the list of its results. `kinds` names the classes of modules.
#[pyfunction]
pub fn _summarize(
    py: Python<'_>,
    names: Vec<String>,
    parameters: &Bound<'_, PyAny>,
    kinds: Vec<(String, String)>,
    body: &Bound<'_, PyAny>,
) -> PyResult<(String, String)> {
    context::enter(py)?;
    let parameters: Vec<_> = names.into_iter().zip(tensors(parameters, "the parameters of a model")?).collect();
    let caller = site::caller(py);
    let made = summarize(&parameters, caller, || {
        tensors(&body.call0().map_err(from_callback)?, "the results of a model").map_err(from_callback)
    });
    let mut summary = made.or_raise(py)?;
    summary.name_kinds(|path| kinds.iter().find(|(p, _)| p == path).map(|(_, kind)| kind.as_str()));
    told(&summary)
}
