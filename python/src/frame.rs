//! Frames of the running program: which code runs, and where in it.

use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

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
pub struct Running<'py> {
    frame: Bound<'py, PyAny>,
    /// The code object that runs.
    pub code: Bound<'py, PyAny>,
    /// The instruction; negative where the line itself stands for it.
    pub at: i32,
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
    pub fn innermost(py: Python<'py>) -> Option<Running<'py>> {
        // SAFETY: the thread is attached; a borrowed frame or null.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }.map(Running::of)
    }

    /// The frame that called this one.
    pub fn caller(&self) -> Option<Running<'py>> {
        let back = self.frame.getattr(intern!(self.frame.py(), "f_back")).ok()?;
        (!back.is_none()).then(|| Running::of(back))
    }

    /// The line that runs.
    pub fn line(&self) -> u32 {
        // SAFETY: a frame.
        let line = unsafe { PyFrame_GetLineNumber(self.frame.as_ptr().cast()) };
        u32::try_from(line).unwrap_or(0)
    }
}
