//! Quantised numbers: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, invoke1, op};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

impl Tensor {
    /// The integers that the elements of a quantised tensor are stored as: i8, u8, i16 or i32.
    ///
    /// ```text
    /// int_repr(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn int_repr(&self) -> Result<Tensor> {
        invoke1(op!("int_repr"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// x in a quantised dtype, `qint8`, `quint8`, `qint16` or `qint32`: x by the scale, rounded (ties to even), plus the zero point, within the integers
    /// that the dtype stores. NaN, which no integer stands for, is stored as 0. It has no gradient.
    ///
    /// ```text
    /// quantize(Tensor x, DataType dtype) -> Tensor
    /// ```
    #[track_caller]
    pub fn quantize(&self, dtype: DType) -> Result<Tensor> {
        super::super::quantize::quantize(self, dtype, CallSite::here())
    }

    /// The numbers of a quantised tensor, in f32.
    ///
    /// ```text
    /// dequantize(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn dequantize(&self) -> Result<Tensor> {
        super::super::quantize::dequantize(self, CallSite::here())
    }

    /// The product of quantised matrices, quantised with `dtype`. The sums are those of integers, exact, so the result is the same under
    /// every layout.
    ///
    /// ```text
    /// quantized_matmul(Tensor a, Tensor b, DataType dtype) -> Tensor
    /// ```
    #[track_caller]
    pub fn quantized_matmul(&self, b: &Tensor, dtype: DType) -> Result<Tensor> {
        super::super::quantize::quantized_matmul(self, b, dtype, CallSite::here())
    }

    /// x rounded to the numbers that a quantised dtype with this scale, zero point and range has, as floats: training that knows of the
    /// rounding to come. The gradient passes unchanged where x is in the range, and is 0 elsewhere.
    ///
    /// ```text
    /// fake_quantize_per_tensor_affine(Tensor x, Float scale, Int zero_point, Int quant_min, Int quant_max) -> Tensor
    /// ```
    #[track_caller]
    pub fn fake_quantize_per_tensor_affine(
        &self,
        scale: f64,
        zero_point: impl IntLike,
        quant_min: impl IntLike,
        quant_max: impl IntLike,
    ) -> Result<Tensor> {
        super::super::quantize::fake_quantize(self, scale, zero_point.int(), quant_min.int(), quant_max.int(), CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("quantize(Tensor x, DataType dtype) -> Tensor", |b| Ok(vec![super::super::quantize::quantize(b.given(0)?, b.given_dtype(1)?, b.site)?])),
    ("dequantize(Tensor x) -> Tensor", |b| Ok(vec![super::super::quantize::dequantize(b.given(0)?, b.site)?])),
    ("quantized_matmul(Tensor a, Tensor b, DataType dtype) -> Tensor", |b| Ok(vec![super::super::quantize::quantized_matmul(b.given(0)?, b.given(1)?, b.given_dtype(2)?, b.site)?])),
    ("fake_quantize_per_tensor_affine(Tensor x, Float scale, Int zero_point, Int quant_min, Int quant_max) -> Tensor", |b| Ok(vec![super::super::quantize::fake_quantize(b.given(0)?, b.float(1)?, b.int(2)?, b.int(3)?, b.int(4)?, b.site)?])),
];
