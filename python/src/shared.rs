//! The memory of tensors that other libraries may look at.

use crate::errors::{OrRaise, exception};
use oflow::placement::Device;
use oflow::tensor::LocalTensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

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
    if t.is_meta() {
        let e = oflow::Error::unsupported(format!("{t:?} has no value while its graph is captured"))
            .help("return it from the function and read what the call of the graph gives");
        return Err(exception(py, e));
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
