//! Memory that tensors share with other libraries, in both directions.

use crate::errors::{OrRaise, exception};
use crate::ffi;
use oflow::DType;
use oflow::memory::Storage;
use oflow::placement::Device;
use oflow::tensor::{LocalTensor, intern_local};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

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
        let storage: Storage = ffi::external(start, count * dtype.size(), owner);
        storage.share_outside();
        let ty = intern_local(shape, dtype, Device::Cpu);
        if dtype == DType::Bool && !ffi::are_bools(self.data, shape, strides) {
            return Err(oflow::Error::argument("a bool is the byte 0 or 1; this memory has others"));
        }
        LocalTensor::of_storage(&ty, storage, low.unsigned_abs(), strides.into()).map(oflow::Tensor::from_local)
    }
}

/// The address of the first element.
pub fn address(l: &LocalTensor) -> usize {
    (l.storage().ptr() as usize).wrapping_add(l.offset() * l.dtype().size())
}

/// The data of a local tensor that others may look at: all work on it is done.
pub fn readable(py: Python<'_>, t: &oflow::Tensor, what: &str) -> PyResult<LocalTensor> {
    if t.is_global() {
        return Err(PyTypeError::new_err(format!(
            "{what} takes a local tensor, not {t:?}; take this rank's shard with to_local(), or the whole value with to_global(sbp=oflow.sbp.broadcast).to_local()"
        )));
    }
    if t.requires_grad() {
        let e = oflow::Error::autograd(format!("{t:?} requires a gradient, which {what} would lose"))
            .help("call detach() first");
        return Err(exception(py, e));
    }
    if t.device() != Device::Cpu {
        return Err(PyTypeError::new_err(format!(
            "{what} takes a tensor on the CPU, not {t:?}; move it with to(\"cpu\")"
        )));
    }
    // Work on other threads may need the interpreter.
    py.detach(|| oflow::synchronize(Device::Cpu)).or_raise(py)?;
    let local = t.shard().or_raise(py)?;
    local.ok_or_else(|| PyTypeError::new_err(format!("{t:?} has no data")))
}
