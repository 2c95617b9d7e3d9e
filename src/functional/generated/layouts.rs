//! Layouts: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::placement::Device;
use crate::tensor::Tensor;
use oflow_kernels::DType;

impl Tensor {
    /// The values as another dtype; the tensor itself if it has that dtype, like PyTorch's `to`. The gradient is cast back to the
    /// dtype of the input.
    ///
    /// ```text
    /// cast(Tensor x, DataType dtype) -> Tensor
    /// ```
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        super::super::layout::cast(self, dtype, CallSite::here())
    }

    /// A local tensor on another device, with its gradient; the tensor itself where it is on that device (as PyTorch's `to`). Global
    /// tensors move with `to_global((&placement, sbp))`.
    ///
    /// ```text
    /// to_device(Tensor x, Device device) -> Tensor
    /// ```
    #[track_caller]
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        super::super::layout::to_device(self, device, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("cast(Tensor x, DataType dtype) -> Tensor", |b| Ok(vec![super::super::layout::cast(b.given(0)?, b.given_dtype(1)?, b.site)?])),
    ("to_device(Tensor x, Device device) -> Tensor", |b| Ok(vec![super::super::layout::to_device(b.given(0)?, b.device(1)?, b.site)?])),
];
