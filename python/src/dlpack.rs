//! DLPack: tensors of other libraries, and ours for them, without a copy.

use crate::errors::OrRaise;
use crate::ffi::Memory;
use crate::ffi::{Imported, export_capsule, import_capsule};
use crate::shared::{address, readable};
use crate::signature::dtype_name;
use crate::tensor::Tensor;
use oflow::DType;
use oflow::kernels::view::contiguous_strides;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// DLPack's kinds of devices that are memory of the CPU.
const CPU: i32 = 1;

/// Code and bits of a dtype.
fn code_of(dtype: DType) -> Option<(u8, u8)> {
    dtype.builtin().map(|b| b.facts().dlpack)
}

/// A tensor that shares the memory of another library's tensor.
pub fn import(from: &Bound<'_, PyAny>) -> PyResult<oflow::Tensor> {
    let py = from.py();
    let capsule = if from.is_instance_of::<PyCapsule>() {
        from.clone()
    } else {
        let give = from.getattr(intern!(py, "__dlpack__")).map_err(|_| {
            let name = from.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
            PyTypeError::new_err(format!("from_dlpack takes an object with __dlpack__, not {name}"))
        })?;
        let version = PyDict::new(py);
        version.set_item(intern!(py, "max_version"), (1, 0))?;
        match give.call((), Some(&version)) {
            // Producers from before version 1 take no version.
            Err(e) if e.is_instance_of::<PyTypeError>(py) => give.call0()?,
            given => given?,
        }
    };
    let i: Imported = import_capsule(&capsule)?;
    if i.device != CPU {
        return Err(PyBufferError::new_err(format!(
            "the tensor is on a device of DLPack's kind {}; oflow takes memory of the CPU",
            i.device
        )));
    }
    let (code, bits, lanes) = i.dtype;
    let dtype =
        DType::BUILTIN.into_iter().find(|d| lanes == 1 && code_of(*d) == Some((code, bits))).ok_or_else(|| {
            PyBufferError::new_err(format!(
                "oflow has no dtype for DLPack's code {code} with {bits} bits and {lanes} lanes"
            ))
        })?;
    if i.read_only {
        return Err(PyBufferError::new_err(
            "the tensor is read-only; one that shares its memory could be written. Give a copy",
        ));
    }
    let strides = i.strides.unwrap_or_else(|| contiguous_strides(&i.shape).to_vec());
    Memory { data: i.data, owner: Some(i.owner) }.tensor(dtype, &i.shape, &strides).or_raise(py)
}

/// A tensor that shares the memory of another library's tensor: a write to one is seen in the other.
///
/// Takes an object with ``__dlpack__``: a tensor of PyTorch on the CPU, an array of NumPy.
#[pyfunction]
pub fn from_dlpack(py: Python<'_>, ext_tensor: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    crate::context::enter(py)?;
    import(ext_tensor).map(Tensor::of)
}

/// The capsule of a local tensor.
pub fn export<'py>(
    py: Python<'py>,
    t: &oflow::Tensor,
    max_version: Option<(u32, u32)>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    if device.is_some_and(|d| d != (CPU, 0)) {
        return Err(PyBufferError::new_err("the tensor is on the CPU and is not moved by __dlpack__"));
    }
    let mut local = readable(py, t, "__dlpack__")?;
    let dtype = code_of(t.dtype())
        .ok_or_else(|| PyBufferError::new_err(format!("DLPack has no dtype for {}", dtype_name(t.dtype()))))?;
    let versioned = max_version.is_some_and(|(major, _)| major >= 1);
    let copy = copy.unwrap_or(false);
    if copy {
        local = readable(py, &t.copy().or_raise(py)?, "__dlpack__")?;
    }
    if local.is_shard() && !versioned {
        return Err(PyBufferError::new_err("a shard is read-only, which DLPack says from version 1 on; give a copy"));
    }
    if !copy {
        local.storage().share_outside();
    }
    let data = address(&local);
    export_capsule(py, local, data, dtype, versioned, copy)
}

/// DLPack's device of a tensor.
pub fn device_of(t: &oflow::Tensor) -> PyResult<(i32, i32)> {
    match t.device() {
        oflow::placement::Device::Cpu => Ok((CPU, 0)),
        other => {
            Err(PyBufferError::new_err(format!("tensors on {other} are not given by DLPack; move it with to(\"cpu\")")))
        }
    }
}
