//! Products: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::tensor::Tensor;

/// Options of [`Tensor::matmul_with`](crate::Tensor::matmul_with).
#[derive(Clone, Debug, Default)]
pub struct MatmulOptions {
    /// `Bool transpose_a=false`. `false` by default.
    pub transpose_a: bool,
    /// `Bool transpose_b=false`. `false` by default.
    pub transpose_b: bool,
}

impl Tensor {
    /// The matrix product of `[..., m, k]` and `[..., k, n]`, of shape `[..., m, n]`. Leading dims broadcast; a vector is a matrix of one row
    /// or one column, as in PyTorch. Matrices may be transposed first.
    ///
    /// ```text
    /// matmul(Tensor a, Tensor b, *, Bool transpose_a=false, Bool transpose_b=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let a = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
    /// let v = from_vec(vec![1.0f32, 1.0], [2], Device::Cpu)?;
    /// assert_eq!(a.matmul(&v)?.to_vec::<f32>()?, [3.0, 7.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn matmul(&self, b: &Tensor) -> Result<Tensor> {
        super::super::nn::matmul(self, b, false, false, CallSite::here())
    }

    /// [`Tensor::matmul`](crate::Tensor::matmul) with its options.
    #[track_caller]
    pub fn matmul_with(&self, b: &Tensor, options: &crate::functional::MatmulOptions) -> Result<Tensor> {
        super::super::nn::matmul(self, b, options.transpose_a, options.transpose_b, CallSite::here())
    }

    /// a bᵀ for `[..., m, k]` and `[..., n, k]`, of shape `[..., m, n]`.
    ///
    /// ```text
    /// matmul_t(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn matmul_t(&self, b: &Tensor) -> Result<Tensor> {
        super::super::nn::matmul_t(self, b, CallSite::here())
    }

    /// x weightᵀ + bias for an input `[..., in]`, a weight `[out, in]` and a bias `[out]`, of shape `[..., out]`. Autocast casts all three.
    ///
    /// ```text
    /// linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor
    /// ```
    #[track_caller]
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        super::super::nn::linear(self, weight, bias, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("matmul(Tensor a, Tensor b, *, Bool transpose_a=false, Bool transpose_b=false) -> Tensor", |b| Ok(vec![super::super::nn::matmul(b.given(0)?, b.given(1)?, b.bool(2)?, b.bool(3)?, b.site)?])),
    ("matmul_t(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::nn::matmul_t(b.given(0)?, b.given(1)?, b.site)?])),
    ("linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor", |b| Ok(vec![super::super::nn::linear(b.given(0)?, b.given(1)?, b.tensor(2), b.site)?])),
];
