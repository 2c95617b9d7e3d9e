//! The line of the Python program that calls: what errors, receipts and divergence reports name.

use crate::frame::Running;
use oflow::CallSite;
use pyo3::intern;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A line that was looked up: reading the line table of a code object takes longer than a call of an op.
struct Known {
    /// Held, so that no other code takes its address.
    code: Py<PyAny>,
    at: i32,
    /// None: code of this package, which calls for its caller.
    line: Option<(&'static str, u32)>,
}

/// How many lines are remembered, by a hash of their place.
const LINES: usize = 1024;

static LINES_KNOWN: LazyLock<Mutex<Vec<Option<Known>>>> =
    LazyLock::new(|| Mutex::new((0..LINES).map(|_| None).collect()));

/// File names kept at most: cells of a notebook and code that a program makes have names without end.
const FILES: usize = 1 << 16;

/// File names live as long as the process; each is kept once. Beyond [`FILES`] all are `<python>`.
fn interned(file: &str) -> &'static str {
    static KNOWN: LazyLock<Mutex<BTreeSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut files = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = files.get(file) {
        return known;
    }
    if files.len() >= FILES {
        return "<python>";
    }
    let kept: &'static str = String::leak(file.to_string());
    files.insert(kept);
    kept
}

/// The folder of this package, with a separator at its end.
static PACKAGE: Mutex<Option<String>> = Mutex::new(None);

/// Sets the folder whose code calls for its caller.
#[pyfunction]
pub fn _set_package(folder: String) {
    *PACKAGE.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
}

fn look_up(running: &Running<'_>) -> Option<(&'static str, u32)> {
    let py = running.code.py();
    let file = running.code.getattr(intern!(py, "co_filename")).and_then(|f| f.extract::<String>());
    let file = file.unwrap_or_else(|_| "<unknown>".into());
    let package = PACKAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let own = package.as_ref().is_some_and(|folder| file.starts_with(folder.as_str()));
    (!own).then(|| (interned(&file), running.line()))
}

fn line_of(running: &Running<'_>) -> Option<(&'static str, u32)> {
    let address = running.code.as_ptr() as usize;
    let slot = ((address >> 4) ^ (running.at as usize).wrapping_mul(0x9E37_79B1)) % LINES;
    let mut all = LINES_KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &all[slot]
        && known.code.as_ptr() as usize == address
        && known.at == running.at
    {
        return known.line;
    }
    drop(all);
    let line = look_up(running);
    let known = Known { code: running.code.clone().into_any().unbind(), at: running.at, line };
    all = LINES_KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = all[slot].replace(known);
    drop(all);
    // Outside of the lock: dropping a code object may run other code.
    drop(before);
    line
}

/// The line of the program that called, in the name scope of this thread. Code of this package does not count.
pub fn caller(py: Python<'_>) -> CallSite {
    let mut running = Running::innermost(py);
    while let Some(frame) = running {
        if let Some((file, line)) = line_of(&frame) {
            return CallSite::in_scope(file, line);
        }
        running = frame.caller();
    }
    CallSite::in_scope("<python>", 0)
}
