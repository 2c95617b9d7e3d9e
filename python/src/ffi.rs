//! All that this crate does with raw pointers: functions of C that Python calls, frames of the running program, memory that is
//! shared with other libraries. Everything else in the crate is safe Rust.

use oflow::kernels::View;
use oflow::memory::Storage;
use oflow::placement::Device;
use oflow::tensor::LocalTensor;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, METH_FASTCALL, METH_KEYWORDS, PyMethodDef, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use pyo3::{Borrowed, intern};
use smallvec::SmallVec;
use std::ffi::{CString, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

/// The arguments of one call: by position, then by name.
pub struct Given<'a, 'py> {
    /// All arguments; of a method the tensor comes first.
    pub all: SmallVec<[Borrowed<'a, 'py, PyAny>; 8]>,
    /// How many of them are given by position.
    pub positional: usize,
    /// The names of the others.
    pub names: Option<Borrowed<'a, 'py, PyTuple>>,
}

/// A function as Python's C sees it: `__self__` of the built-in function.
pub use crate::function::Function;

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
    let positional = positional + usize::from(!this.is_null());
    Given { all, positional, names }
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
            function.call(py, &given)
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
pub const MOST_METHODS: usize = 640;

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
    let rows: [[Fast; 8]; MOST_METHODS / 8] = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66
        67 68 69 70 71 72 73 74 75 76 77 78 79);
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

/// Memory of another library as a storage.
///
/// The claim that `bytes` bytes at `start` are memory as long as `owner` lives is the other library's: an array of NumPy or a
/// tensor of DLPack that says something else breaks the program, whoever reads it.
pub fn external(start: usize, bytes: usize, owner: Box<dyn std::any::Any + Send + Sync>) -> Storage {
    // Nothing is read of an empty one, whose address some libraries leave out.
    let start = if bytes == 0 { 64 } else { start };
    // SAFETY: as its library says; see above.
    unsafe { Storage::external(Device::Cpu, std::ptr::with_exposed_provenance_mut(start), bytes, owner) }
}

/// Whether the bytes that shape and strides address from `start` on are bools: Rust knows no others.
pub fn are_bools(start: usize, shape: &[usize], strides: &[isize]) -> bool {
    match (shape, strides) {
        ([n, shape @ ..], [s, strides @ ..]) => {
            (0..*n as isize).all(|i| are_bools(start.wrapping_add_signed(i.wrapping_mul(*s)), shape, strides))
        }
        // SAFETY: an element of another library's tensor; see `external`.
        _ => unsafe { *std::ptr::with_exposed_provenance::<u8>(start) <= 1 },
    }
}

/// DLPack's structs: <https://dmlc.github.io/dlpack/latest/c_api.html>.
mod dl {
    use std::ffi::c_void;

    #[repr(C)]
    #[derive(Clone, Copy, PartialEq)]
    pub struct Device {
        pub kind: i32,
        pub id: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct DataType {
        pub code: u8,
        pub bits: u8,
        pub lanes: u16,
    }
    #[repr(C)]
    pub struct Tensor {
        pub data: *mut c_void,
        pub device: Device,
        pub ndim: i32,
        pub dtype: DataType,
        pub shape: *mut i64,
        pub strides: *mut i64,
        pub byte_offset: u64,
    }
    #[repr(C)]
    pub struct Managed {
        pub tensor: Tensor,
        pub context: *mut c_void,
        pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    }
    #[repr(C)]
    pub struct Versioned {
        pub major: u32,
        pub minor: u32,
        pub context: *mut c_void,
        pub deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
        pub flags: u64,
        pub tensor: Tensor,
    }
    pub const READ_ONLY: u64 = 1;
    pub const COPIED: u64 = 2;
    pub const CPU: i32 = 1;
}

/// Description of a tensor in a capsule of DLPack.
pub struct Imported {
    /// Kind of the device, DLPack's number.
    pub device: i32,
    /// Code, bits and lanes of the dtype.
    pub dtype: (u8, u8, u16),
    /// Size of each dim.
    pub shape: Vec<usize>,
    /// In elements; none: row-major.
    pub strides: Option<Vec<isize>>,
    /// Address of the first element.
    pub data: usize,
    /// Whether the producer forbids writes.
    pub read_only: bool,
    /// Keeps the memory.
    pub owner: Box<dyn std::any::Any + Send + Sync>,
}

/// A tensor of another library, which is given back when this is dropped.
struct Foreign<M> {
    managed: *mut M,
    delete: fn(*mut M),
}

// SAFETY: DLPack's deleters may be called on any thread; nothing else is done with the pointer.
unsafe impl<M> Send for Foreign<M> {}
// SAFETY: as above.
unsafe impl<M> Sync for Foreign<M> {}

impl<M> Drop for Foreign<M> {
    fn drop(&mut self) {
        // Deleters of Python libraries drop objects of Python. When Python has ended the memory is left to the process's end.
        let (managed, delete) = (self.managed, self.delete);
        let _ = Python::try_attach(|_| delete(managed));
    }
}

/// Takes the tensor out of a capsule that `__dlpack__` has returned.
pub fn import_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Imported> {
    let py = capsule.py();
    let ptr = capsule.as_ptr();
    let valid = |name: &std::ffi::CStr| {
        // SAFETY: any object may be asked.
        unsafe { ffi::PyCapsule_IsValid(ptr, name.as_ptr()) == 1 }
    };
    if valid(c"dltensor_versioned") {
        // SAFETY: a capsule of that name holds a `DLManagedTensorVersioned`; renamed, it is ours.
        unsafe {
            let managed = ffi::PyCapsule_GetPointer(ptr, c"dltensor_versioned".as_ptr()).cast::<dl::Versioned>();
            // A newer major version has another layout.
            if (*managed).major > 1 {
                return Err(PyBufferError::new_err(format!("DLPack version {} is newer than 1", (*managed).major)));
            }
            if ffi::PyCapsule_SetName(ptr, c"used_dltensor_versioned".as_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
            let delete = |m: *mut dl::Versioned| {
                if let Some(delete) = (*m).deleter {
                    delete(m);
                }
            };
            let owner = Foreign { managed, delete };
            imported(&(*managed).tensor, (*managed).flags & dl::READ_ONLY != 0, Box::new(owner))
        }
    } else if valid(c"dltensor") {
        // SAFETY: a capsule of that name holds a `DLManagedTensor`; renamed, it is ours.
        unsafe {
            let managed = ffi::PyCapsule_GetPointer(ptr, c"dltensor".as_ptr()).cast::<dl::Managed>();
            if ffi::PyCapsule_SetName(ptr, c"used_dltensor".as_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
            let delete = |m: *mut dl::Managed| {
                if let Some(delete) = (*m).deleter {
                    delete(m);
                }
            };
            let owner = Foreign { managed, delete };
            imported(&(*managed).tensor, false, Box::new(owner))
        }
    } else {
        Err(PyTypeError::new_err("from_dlpack takes an object with __dlpack__, or a capsule that was not used before"))
    }
}

/// # Safety
/// `t` is filled in by its producer and kept by `owner`.
unsafe fn imported(t: &dl::Tensor, read_only: bool, owner: Box<dyn std::any::Any + Send + Sync>) -> PyResult<Imported> {
    let n = usize::try_from(t.ndim).map_err(|_| PyBufferError::new_err("a negative number of dims"))?;
    let list = |p: *mut i64| -> Option<Vec<i64>> {
        // SAFETY: so many numbers, as the producer says.
        (!p.is_null()).then(|| unsafe { std::slice::from_raw_parts(p, n) }.to_vec())
    };
    let shape = if n == 0 { Some(vec![]) } else { list(t.shape) };
    let shape = shape.and_then(|s| s.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<Vec<usize>>>());
    let shape = shape.ok_or_else(|| PyBufferError::new_err("the shape is missing, or has a negative size"))?;
    let strides = if n == 0 { None } else { list(t.strides) };
    Ok(Imported {
        device: t.device.kind,
        dtype: (t.dtype.code, t.dtype.bits, t.dtype.lanes),
        shape,
        strides: strides.map(|s| s.iter().map(|s| *s as isize).collect()),
        data: t.data.expose_provenance().wrapping_add(t.byte_offset as usize),
        read_only,
        owner,
    })
}

/// A tensor that is given to others: what their deleter drops.
struct Exported {
    shape: Vec<i64>,
    strides: Vec<i64>,
    _local: LocalTensor,
}

/// A capsule of DLPack that shares the memory of a local tensor; `versioned` is the protocol from version 1 on.
pub fn export_capsule<'py>(
    py: Python<'py>,
    local: LocalTensor,
    dtype: (u8, u8),
    versioned: bool,
    copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let flags = if local.is_shard() { dl::READ_ONLY } else { 0 } | if copied { dl::COPIED } else { 0 };
    let data = std::ptr::with_exposed_provenance_mut(crate::data::address(&local));
    let mut kept = Box::new(Exported {
        shape: local.dims().iter().map(|n| *n as i64).collect(),
        strides: local.strides().iter().map(|s| *s as i64).collect(),
        _local: local,
    });
    let tensor = dl::Tensor {
        data,
        device: dl::Device { kind: dl::CPU, id: 0 },
        ndim: kept.shape.len() as i32,
        dtype: dl::DataType { code: dtype.0, bits: dtype.1, lanes: 1 },
        shape: kept.shape.as_mut_ptr(),
        strides: kept.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context = Box::into_raw(kept).cast::<c_void>();
    // SAFETY: the capsule owns the struct until a consumer renames it and calls its deleter.
    unsafe {
        let capsule = if versioned {
            let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut dl::Versioned));
            let managed = Box::new(dl::Versioned { major: 1, minor: 0, context, deleter, flags, tensor });
            ffi::PyCapsule_New(Box::into_raw(managed).cast(), c"dltensor_versioned".as_ptr(), Some(drop_versioned))
        } else {
            let deleter = Some(delete_managed as unsafe extern "C" fn(*mut dl::Managed));
            let managed = Box::new(dl::Managed { tensor, context, deleter });
            ffi::PyCapsule_New(Box::into_raw(managed).cast(), c"dltensor".as_ptr(), Some(drop_managed))
        };
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

unsafe extern "C" fn delete_versioned(m: *mut dl::Versioned) {
    // SAFETY: made by `export_capsule`, deleted once.
    unsafe {
        drop(Box::from_raw((*m).context.cast::<Exported>()));
        drop(Box::from_raw(m));
    }
}

unsafe extern "C" fn delete_managed(m: *mut dl::Managed) {
    // SAFETY: made by `export_capsule`, deleted once.
    unsafe {
        drop(Box::from_raw((*m).context.cast::<Exported>()));
        drop(Box::from_raw(m));
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut PyObject) {
    // SAFETY: a capsule that nobody has used still has its name, and its struct is ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, c"dltensor_versioned".as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, c"dltensor_versioned".as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_managed(capsule: *mut PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, c"dltensor".as_ptr()) == 1 {
            delete_managed(ffi::PyCapsule_GetPointer(capsule, c"dltensor".as_ptr()).cast());
        }
    }
}

/// The bytes of a kernel's input.
pub fn bytes_of(view: &View) -> oflow::Result<Vec<u8>> {
    let bytes = bytes_in(view)?;
    // SAFETY: the elements of a contiguous view, which live as long as the kernel runs, and nobody writes inputs meanwhile.
    Ok(unsafe { std::slice::from_raw_parts(view.ptr(), bytes) }.to_vec())
}

/// Writes a kernel's output.
pub fn write_bytes(view: &View, from: &[u8]) -> oflow::Result<()> {
    let bytes = bytes_in(view)?;
    if bytes != from.len() {
        return Err(oflow::Error::shape(format!("{} bytes are written to an output of {bytes}", from.len())));
    }
    // SAFETY: the elements of the output of this call, of which no slice is alive.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), view.ptr(), bytes) };
    Ok(())
}

fn bytes_in(view: &View) -> oflow::Result<usize> {
    match view.is_contiguous() {
        true => Ok(view.len() * view.dtype().size()),
        false => Err(oflow::Error::unsupported("a kernel in Python takes contiguous tensors")),
    }
}
