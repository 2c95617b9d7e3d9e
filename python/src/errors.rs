//! Errors of the library as exceptions. The classes are in `oflow/_errors.py`.

use crate::phrases::{at_line, in_python};
use crate::site;
use oflow::error::panic_text;
use oflow::{Error, ErrorKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::any::Any;

/// The class of exceptions of a kind of errors.
fn class_of(kind: ErrorKind) -> &'static str {
    use ErrorKind::*;
    match kind {
        Shape => "ShapeError",
        DType => "DTypeError",
        Sbp => "SbpError",
        Placement => "PlacementError",
        Argument => "ArgumentError",
        Parse => "ParseError",
        Context => "ContextError",
        Unsupported => "UnsupportedError",
        Autograd => "AutogradError",
        Registry => "RegistryError",
        Denied => "DeniedError",
        Index | Value => "OutOfRangeError",
        Memory => "OutOfMemoryError",
        Io => "IoError",
        Storage => "StorageError",
        Device => "DeviceError",
        Comm => "CommError",
        Peer => "PeerError",
        Link => "LinkError",
        Diverged => "DivergedError",
        _ => "Error",
    }
}

/// Why an object is not the argument of a parameter.
pub type Unfit = oflow::functional::bind::Unfit<PyErr>;

fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(MODULE.get_or_try_init(py, || PyModule::import(py, "oflow._errors").map(Bound::unbind))?.bind(py))
}

/// The exception that a callback in Python has raised, if the error came from one.
fn raised_by_callback(py: Python<'_>, error: &Error) -> Option<PyErr> {
    let mut source = std::error::Error::source(error);
    while let Some(e) = source {
        if let Some(e) = e.downcast_ref::<PyErr>() {
            return Some(e.clone_ref(py));
        }
        source = e.source();
    }
    None
}

/// The exception of an error: one of the classes by its kind, or the exception that a callback in Python raised.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    if let Some(raised) = raised_by_callback(py, &error) {
        return raised;
    }
    let made = || -> PyResult<PyErr> {
        let class = classes(py)?.getattr(class_of(error.kind()))?;
        let site = site::caller(py);
        let e = class.call1((at_line(&in_python(&error.to_string()), &site.to_string()),))?;
        e.setattr("kind", format!("{:?}", error.kind()))?;
        e.setattr("message", in_python(error.message()))?;
        e.setattr("help", error.help_text().map(in_python))?;
        let site = error.site().map(|named| if named.file.ends_with(".rs") { site } else { named });
        e.setattr("site", site.map(|s| (s.file, s.line)))?;
        e.setattr("missing_rank", error.missing_rank())?;
        let places = error.places().iter().map(|p| (p.rank, p.op.clone(), p.ordinal, p.file.clone(), p.line));
        e.setattr("places", places.collect::<Vec<_>>())?;
        Ok(PyErr::from_value(e))
    };
    let raised = made().unwrap_or_else(|_| PyRuntimeError::new_err(error.to_string()));
    // Ctrl-C ended a wait: other ranks got it too and left. Python would raise it while it prints the error of the wait.
    if !error.is_logical()
        && let Err(interrupt) = py.check_signals()
    {
        interrupt.set_cause(py, Some(raised));
        return interrupt;
    }
    raised
}

/// The exception of a panic.
pub fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let text = panic_text(panic);
    let text = format!("oflow has a fault, it panicked: {}", text.unwrap_or("without a message"));
    match classes(py).and_then(|m| m.getattr("InternalError")).and_then(|class| class.call1((text.as_str(),))) {
        Ok(e) => PyErr::from_value(e),
        Err(_) => PyRuntimeError::new_err(text),
    }
}

/// The library's error for an exception that a callback raised: the exception comes out again where Python called.
pub fn from_callback(e: PyErr) -> Error {
    Error::argument("a function in Python raised an exception").because(e)
}

/// `?` on results of the library.
pub trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for oflow::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|e| exception(py, e))
    }
}
