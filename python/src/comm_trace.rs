//! Communication that the program caused, and requests for layouts.

use crate::context::enter;
use crate::phrases::in_python;
use crate::types::{raised, sbp_of};
use pyo3::prelude::*;

/// The boxings since the last call, oldest first: which line of the program moved which bytes.
#[pyfunction]
pub fn take_comm_trace(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    enter(py)?;
    let all = py.detach(oflow::take_comm_trace);
    let class = py.import("oflow._comm_trace")?.getattr("CommRecord")?;
    let object = |r: oflow::CommRecord| {
        let links = r.bytes_by_link();
        let links: Vec<(String, u64)> = links.iter().map(|(link, bytes)| (format!("{link:?}"), *bytes)).collect();
        let (predicted, measured) = (r.predicted.as_secs_f64(), r.measured.map(|m| m.as_secs_f64()));
        let place = (r.site.file, r.site.line, r.site.scope.path());
        class.call1((
            r.op,
            place.0,
            place.1,
            place.2,
            r.backward,
            r.moved.to_string(),
            r.bytes_sent(),
            links,
            predicted,
            measured,
        ))
    };
    all.into_iter().map(object).collect()
}

/// The boxings of this rank since the last comm records were taken, added up by line of the program, as a table.
#[pyfunction]
pub fn report(py: Python<'_>) -> PyResult<String> {
    enter(py)?;
    Ok(in_python(&py.detach(oflow::report).to_string()))
}

/// Calls a function of no arguments with the results, or their gradients, in a layout that the program asks for.
#[pyfunction]
pub fn _with_sbp<'py>(
    py: Python<'py>,
    sbp: &Bound<'py, PyAny>,
    of_gradient: bool,
    function: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    enter(py)?;
    let layout = sbp_of(sbp).map_err(|no| raised(no, sbp, "an sbp or a tuple of them"))?;
    match of_gradient {
        true => oflow::with_grad_sbp(layout, || function.call0()),
        false => oflow::with_sbp(layout, || function.call0()),
    }
}
