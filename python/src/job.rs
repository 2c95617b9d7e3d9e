//! How the end of a Python program is told to its job. The policy is in `oflow/_job.py`.

use crate::context;
use oflow::control::{Failure, FailureKind, STARTERS, SetBy, VARIABLES};
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
    // Others are told "rank 1 reported: " before it.
    let failure = Failure::of_rank(ctx.rank(), kind_named(kind), message);
    // Where the service is gone there is nobody to tell; the exit code remains.
    py.detach(|| control.report_failure(&failure)).is_ok()
}

/// The environment variables by which a launcher tells a process that it is a rank.
#[pyfunction]
pub fn _rank_variables() -> Vec<&'static str> {
    let ours = VARIABLES.iter().filter(|v| v.set_by == SetBy::Launcher).map(|v| v.name);
    let theirs = STARTERS.iter().flat_map(|s| {
        let one = [s.rank, s.local_rank, s.local_world];
        one.into_iter().chain(s.world.iter().copied()).chain(s.node.iter().copied()).chain(s.nodes.iter().copied())
    });
    let mut all: Vec<&str> = ours.chain(theirs).chain(["PMIX_RANK"]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// In a process that was forked from a rank: the fork is not a rank.
#[pyfunction]
pub fn _forked() {
    context::forget();
}
