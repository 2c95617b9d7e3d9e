//! The line of the Python program that calls: what errors, comm records and divergence reports name.

use oflow::CallSite;
use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

/// `PyFrame_GetLasti` of CPython 3.11 and later, which is not in the stable ABI.
fn last_instruction() -> Option<unsafe extern "C" fn(*mut c_void) -> c_int> {
    static FOUND: OnceLock<Option<unsafe extern "C" fn(*mut c_void) -> c_int>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: looks a symbol up in this process.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PyFrame_GetLasti".as_ptr()) };
        // SAFETY: CPython's function of that name has had this type since there is one.
        (!found.is_null())
            .then(|| unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(found) })
    })
}

// Both are in the stable ABI; pyo3 does not declare them there.
unsafe extern "C" {
    fn PyFrame_GetCode(frame: *mut ffi::PyFrameObject) -> *mut PyObject;
    fn PyFrame_GetLineNumber(frame: *mut ffi::PyFrameObject) -> c_int;
}

/// The code that the innermost frame of Python runs, and where in it: a number that tells lines apart.
struct Running<'py> {
    frame: Bound<'py, PyAny>,
    /// The code object that runs.
    code: Bound<'py, PyAny>,
    /// The instruction; negative where the line itself stands for it.
    at: i32,
}

impl<'py> Running<'py> {
    fn of(frame: Bound<'py, PyAny>) -> Running<'py> {
        let (py, ptr) = (frame.py(), frame.as_ptr());
        // SAFETY: a frame; each has a code.
        let code = unsafe { Bound::from_owned_ptr(py, PyFrame_GetCode(ptr.cast()).cast()) };
        let at = match last_instruction() {
            // SAFETY: a frame.
            Some(last) => unsafe { last(ptr.cast()) },
            // SAFETY: a frame.
            None => -1 - unsafe { PyFrame_GetLineNumber(ptr.cast()) },
        };
        Running { frame, code, at }
    }

    /// The innermost frame; none where no Python runs on this thread.
    fn innermost(py: Python<'py>) -> Option<Running<'py>> {
        // SAFETY: the thread is attached; a borrowed frame or null.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }.map(Running::of)
    }

    /// The frame that called this one.
    fn caller(&self) -> Option<Running<'py>> {
        let back = self.frame.getattr(intern!(self.frame.py(), "f_back")).ok()?;
        (!back.is_none()).then(|| Running::of(back))
    }

    /// The line that runs.
    fn line(&self) -> u32 {
        // SAFETY: a frame.
        let line = unsafe { PyFrame_GetLineNumber(self.frame.as_ptr().cast()) };
        u32::try_from(line).unwrap_or(0)
    }
}

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
