//! Memory that is shared with other libraries, and the bytes of kernels: what this crate does with pointers to elements.

use oflow::DType;
use oflow::kernels::View;
use oflow::memory::Storage;
use oflow::placement::Device;
use oflow::tensor::{LocalTensor, intern_local};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::c_void;

/// Memory of another library as a storage.
///
/// The claim that `bytes` bytes at `start` are memory as long as `owner` lives is the other library's: an array of NumPy or a
/// tensor of DLPack that says something else breaks the program, whoever reads it.
fn external(start: usize, bytes: usize, owner: Box<dyn std::any::Any + Send + Sync>) -> Storage {
    // Nothing is read of an empty one, whose address some libraries leave out.
    let start = if bytes == 0 { 64 } else { start };
    // SAFETY: as its library says; see above.
    unsafe { Storage::external(Device::Cpu, std::ptr::with_exposed_provenance_mut(start), bytes, owner) }
}

/// Whether the bytes that shape and strides address from `start` on are bools: Rust knows no others.
fn are_bools(start: usize, shape: &[usize], strides: &[isize]) -> bool {
    match (shape, strides) {
        ([n, shape @ ..], [s, strides @ ..]) => {
            (0..*n as isize).all(|i| are_bools(start.wrapping_add_signed(i.wrapping_mul(*s)), shape, strides))
        }
        // SAFETY: an element of another library's tensor; see `external`.
        _ => unsafe { *std::ptr::with_exposed_provenance::<u8>(start) <= 1 },
    }
}

/// Memory of another library, from the address of its first element.
pub struct Memory {
    /// Address of element 0.
    pub data: usize,
    /// Owner that keeps the memory alive.
    pub owner: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl Memory {
    /// A tensor of this memory; strides are in elements.
    pub fn tensor(self, dtype: DType, shape: &[usize], strides: &[isize]) -> oflow::Result<oflow::Tensor> {
        oflow::ops::TensorType::checked(shape, dtype)?;
        // From the lowest address to the highest.
        let (mut low, mut high) = (0isize, 0isize);
        let empty = shape.contains(&0);
        if !empty {
            for (n, s) in shape.iter().zip(strides) {
                let reach =
                    (*n as isize - 1).checked_mul(*s).ok_or_else(|| oflow::Error::argument("strides reach too far"))?;
                if reach < 0 { low += reach } else { high += reach }
            }
        }
        let count = if empty { 0 } else { (high - low) as usize + 1 };
        let owner = self.owner.unwrap_or_else(|| Box::new(()));
        let start = self.data.wrapping_add_signed(low * dtype.size() as isize);
        let storage: Storage = external(start, count * dtype.size(), owner);
        storage.share_outside();
        let ty = intern_local(shape, dtype, Device::Cpu);
        if dtype == DType::Bool && !are_bools(self.data, shape, strides) {
            return Err(oflow::Error::argument("a bool is the byte 0 or 1; this memory has others"));
        }
        LocalTensor::of_storage(&ty, storage, low.unsigned_abs(), strides.into()).map(oflow::Tensor::from_local)
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

/// A capsule of DLPack that shares the memory of a local tensor, whose first element is at `data`; `versioned` is the protocol from version 1 on.
pub fn export_capsule<'py>(
    py: Python<'py>,
    local: LocalTensor,
    data: usize,
    dtype: (u8, u8),
    versioned: bool,
    copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let flags = if local.is_shard() { dl::READ_ONLY } else { 0 } | if copied { dl::COPIED } else { 0 };
    let data = std::ptr::with_exposed_provenance_mut(data);
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
