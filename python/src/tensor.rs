//! The class `oflow.Tensor`. Its methods are in `tensor_methods`, and functions of the table that `trampolines` adds.

use pyo3::prelude::*;

/// A tensor: a local tensor on one device, or a global tensor whose shards are on the ranks of a placement.
///
/// Made by ``oflow.tensor``, by factories such as ``oflow.zeros``, by ``oflow.from_numpy`` and ``oflow.from_dlpack``.
#[pyclass(frozen, subclass, weakref, dict, module = "oflow")]
pub struct Tensor {
    inner: oflow::Tensor,
}

impl Tensor {
    /// The object of a tensor.
    #[inline]
    pub fn of(inner: oflow::Tensor) -> Tensor {
        Tensor { inner }
    }
    /// The tensor of the library.
    #[inline]
    pub fn inner(&self) -> &oflow::Tensor {
        &self.inner
    }
}
