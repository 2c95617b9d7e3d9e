//! How the end of a Python program is told to its job. The policy is in `oflow/_job.py`.

use crate::context;
use oflow::control::{Failure, FailureKind};
use pyo3::prelude::*;

/// The kind of a failure by its name in JSON.
fn kind_named(name: &str) -> FailureKind {
    FailureKind::ALL.into_iter().find(|k| k.name() == name).unwrap_or(FailureKind::Error)
}

/// Tells the job that this rank's program has failed, unless the job has failed already: every rank that waits for this one is
/// woken, and the launcher prints the message. Without a job nothing happens.
#[pyfunction]
pub fn _report_failure(py: Python<'_>, kind: &str, message: &str) -> bool {
    let Some(ctx) = context::now() else { return false };
    let Some(control) = ctx.control() else { return false };
    if control.has_failed() {
        return false;
    }
    let who = format!("rank {} (pid {})", ctx.rank(), std::process::id());
    let failure = Failure::of_rank(ctx.rank(), kind_named(kind), format!("{who} failed: {message}"));
    // Where the service is gone there is nobody to tell; the exit code remains.
    py.detach(|| control.report_failure(&failure)).is_ok()
}

/// In a process that was forked from a rank: the fork is no rank.
#[pyfunction]
pub fn _forked() {
    context::forget();
}
