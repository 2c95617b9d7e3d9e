//! Functions of C that CPython calls, one for each method of tensors: from here a call goes to [`call`](call::call).

use crate::call::{self, Given};
use crate::function::Function;
use pyo3::Borrowed;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, METH_FASTCALL, METH_KEYWORDS, PyMethodDef, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use smallvec::SmallVec;
use std::ffi::CString;
use std::sync::OnceLock;

/// Reads the arguments of a C call.
///
/// # Safety
/// The pointers are those that CPython gives to a `METH_FASTCALL | METH_KEYWORDS` function; `this` is null or an object.
unsafe fn given<'a, 'py>(
    py: Python<'py>,
    this: *mut PyObject,
    args: *const *mut PyObject,
    count: isize,
    names: *mut PyObject,
) -> Given<'a, 'py> {
    let mut all = SmallVec::new();
    if !this.is_null() {
        // SAFETY: an object that the caller holds for the time of the call.
        all.push(unsafe { Borrowed::from_ptr(py, this) });
    }
    let positional = count.unsigned_abs();
    // SAFETY: a tuple, or null where nothing is given by name.
    let names = unsafe { Borrowed::from_ptr_or_opt(py, names) }.map(|n| unsafe { n.cast_unchecked::<PyTuple>() });
    let named = names.map_or(0, |n| n.as_any().len().unwrap_or(0));
    for i in 0..positional + named {
        // SAFETY: CPython gives so many objects, which live until the call returns.
        all.push(unsafe { Borrowed::from_ptr(py, *args.add(i)) });
    }
    Given { all, names, is_method: !this.is_null() }
}

/// Runs a call, with an exception for an error and for a panic.
///
/// # Safety
/// Called by CPython, with its arguments; `function` outlives the call.
unsafe fn enter(
    function: &Function,
    this: *mut PyObject,
    args: *const *mut PyObject,
    count: isize,
    names: *mut PyObject,
) -> *mut PyObject {
    Python::attach(|py| {
        let run = || {
            // SAFETY: as promised by the caller.
            let given = unsafe { given(py, this, args, count, names) };
            call::call(py, function, &given)
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        match result.unwrap_or_else(|panic| Err(crate::errors::panicked(py, panic.as_ref()))) {
            Ok(object) => object.into_ptr(),
            Err(e) => {
                e.restore(py);
                std::ptr::null_mut()
            }
        }
    })
}

unsafe extern "C" fn call_function(
    function: *mut PyObject,
    args: *const *mut PyObject,
    count: isize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: `function` is the `Function` that `function_object` has given to CPython, which keeps it.
    unsafe {
        let py = Python::assume_attached();
        let function = Borrowed::from_ptr(py, function).cast_unchecked::<Function>();
        enter(function.get(), std::ptr::null_mut(), args, count, names)
    }
}

/// Methods of `Tensor` by number.
static METHODS: OnceLock<Vec<Py<Function>>> = OnceLock::new();

/// The most methods that there are trampolines for.
pub const MOST_METHODS: usize = 1024;

unsafe extern "C" fn call_method<const N: usize>(
    this: *mut PyObject,
    args: *const *mut PyObject,
    count: isize,
    names: *mut PyObject,
) -> *mut PyObject {
    match METHODS.get().and_then(|all| all.get(N)) {
        // SAFETY: called by CPython; the table is never dropped.
        Some(function) => unsafe { enter(function.get(), this, args, count, names) },
        None => Python::attach(|py| {
            PyRuntimeError::new_err("the methods of Tensor are not there yet").restore(py);
            std::ptr::null_mut()
        }),
    }
}

type Fast = unsafe extern "C" fn(*mut PyObject, *const *mut PyObject, isize, *mut PyObject) -> *mut PyObject;

/// `call_method` of every number: a method descriptor of C holds no data, so each method has a function of its own.
static TRAMPOLINES: [Fast; MOST_METHODS] = {
    macro_rules! eight {
        ($start:expr) => {
            [
                call_method::<{ $start }> as Fast,
                call_method::<{ $start + 1 }>,
                call_method::<{ $start + 2 }>,
                call_method::<{ $start + 3 }>,
                call_method::<{ $start + 4 }>,
                call_method::<{ $start + 5 }>,
                call_method::<{ $start + 6 }>,
                call_method::<{ $start + 7 }>,
            ]
        };
    }
    macro_rules! rows {
        ($($row:literal)*) => { [$(eight!($row * 8)),*] };
    }
    let rows: [[Fast; 8]; MOST_METHODS / 8] = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127);
    let mut all = [rows[0][0]; MOST_METHODS];
    let mut i = 0;
    while i < MOST_METHODS {
        all[i] = rows[i / 8][i % 8];
        i += 1;
    }
    all
};

/// The definition of a function for CPython, which reads it as long as the function lives: for ever, since functions of the table
/// are never removed.
fn definition(name: &str, doc: &str, code: Fast) -> PyResult<*mut PyMethodDef> {
    let text = |s: &str| CString::new(s.replace('\0', " ")).map(|s| s.into_raw().cast_const());
    let definition = PyMethodDef {
        ml_name: text(name)?,
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: code },
        ml_flags: METH_FASTCALL | METH_KEYWORDS,
        ml_doc: text(doc)?,
    };
    Ok(Box::into_raw(Box::new(definition)))
}

/// A function of Python that runs `function`.
pub fn function_object<'py>(py: Python<'py>, function: &Py<Function>, module: &str) -> PyResult<Bound<'py, PyAny>> {
    let f = function.get();
    let definition = definition(f.name(), &f.doc(), call_function)?;
    let module = pyo3::types::PyString::new(py, module);
    // SAFETY: a definition that lives for ever; `__self__` is a `Function`, as `call_function` expects.
    unsafe {
        let object = ffi::PyCFunction_NewEx(definition, function.as_ptr(), module.as_ptr());
        Bound::from_owned_ptr_or_err(py, object)
    }
}

/// Adds methods to the class of tensors, once.
pub fn add_methods(class: &Bound<'_, PyType>, functions: Vec<Py<Function>>) -> PyResult<()> {
    let py = class.py();
    if functions.len() > MOST_METHODS {
        return Err(PyRuntimeError::new_err(format!("{} methods; there is room for {MOST_METHODS}", functions.len())));
    }
    for (function, code) in functions.iter().zip(TRAMPOLINES) {
        let f = function.get();
        let definition = definition(f.name(), &f.doc(), code)?;
        // SAFETY: a definition that lives for ever; CPython checks that `self` is of the class before it calls.
        let method = unsafe {
            let object = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
            Bound::from_owned_ptr_or_err(py, object)?
        };
        class.setattr(f.name(), method)?;
    }
    METHODS.set(functions).map_err(|_| PyRuntimeError::new_err("the methods of Tensor are there already"))
}
