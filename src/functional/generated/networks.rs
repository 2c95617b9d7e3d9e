//! Networks: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, invoke1, op};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

/// Options of [`Tensor::one_hot_with`](crate::Tensor::one_hot_with).
#[derive(Clone, Debug)]
pub struct OneHotOptions {
    /// `DataType dtype=i64`. `DType::I64` by default.
    pub dtype: DType,
}

impl Default for OneHotOptions {
    fn default() -> OneHotOptions {
        OneHotOptions {
            dtype: DType::I64,
        }
    }
}

/// Options of [`Tensor::layer_norm_with`](crate::Tensor::layer_norm_with).
#[derive(Clone, Debug, Default)]
pub struct LayerNormOptions {
    /// `Int? axes`. Not given by default.
    pub axes: Option<i64>,
}

/// Options of [`Tensor::rms_norm_with`](crate::Tensor::rms_norm_with).
#[derive(Clone, Debug, Default)]
pub struct RmsNormOptions {
    /// `Int? axes`. Not given by default.
    pub axes: Option<i64>,
}

/// Options of [`Tensor::attention_with`](crate::Tensor::attention_with).
#[derive(Clone, Debug, Default)]
pub struct AttentionOptions {
    /// `Float? scale`. Not given by default.
    pub scale: Option<f64>,
}

impl Tensor {
    /// The softmax along a dim: exp(x) divided by its sum.
    ///
    /// ```text
    /// softmax(Tensor x, Int dim=-1) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is no float tensor.
    #[track_caller]
    pub fn softmax(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("softmax"), &[Some(self)], smallvec![dim.int().into()], smallvec![], CallSite::here())
    }

    /// The logarithm of the softmax along a dim.
    ///
    /// ```text
    /// log_softmax(Tensor x, Int dim=-1) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is no float tensor.
    #[track_caller]
    pub fn log_softmax(&self, dim: impl IntLike) -> Result<Tensor> {
        invoke1(op!("log_softmax"), &[Some(self)], smallvec![dim.int().into()], smallvec![], CallSite::here())
    }

    /// Rows of the table `weight`, `[rows, width]`, by index: integer ids of any shape give `[ids…, width]`.
    ///
    /// ```text
    /// embedding(Tensor weight, Tensor ids) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If an index is outside of the table. The kernel finds it, so only ranks that hold the index return the error; it ends the job.
    #[track_caller]
    pub fn embedding(&self, ids: &Tensor) -> Result<Tensor> {
        invoke1(op!("embedding"), &[Some(self), Some(ids)], smallvec![], smallvec![], CallSite::here())
    }

    /// For integer indices of any shape a new last dim of size `classes`: 1 at the index, 0 elsewhere.
    ///
    /// ```text
    /// one_hot(Tensor ids, Int classes, *, DataType dtype=i64) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `ids` is no integer tensor.
    #[track_caller]
    pub fn one_hot(&self, classes: impl IntLike) -> Result<Tensor> {
        invoke1(op!("one_hot"), &[Some(self)], smallvec![classes.int().into(), DType::I64.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::one_hot`](crate::Tensor::one_hot) with its options.
    #[track_caller]
    pub fn one_hot_with(
        &self,
        classes: impl IntLike,
        options: &crate::functional::OneHotOptions,
    ) -> Result<Tensor> {
        invoke1(op!("one_hot"), &[Some(self)], smallvec![classes.int().into(), options.dtype.into()], smallvec![], CallSite::here())
    }

    /// The last dims with mean 0 and variance 1, times `weight`, plus `bias`. The number of dims is that of `weight`, 1 without one,
    /// unless `axes` says otherwise. `eps` is added to the variance.
    ///
    /// ```text
    /// layer_norm(Tensor x, Tensor? weight, Tensor? bias, Float eps=1e-5, *, Int? axes) -> Tensor
    /// ```
    #[track_caller]
    pub fn layer_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        super::super::nn::layer_norm(self, weight, bias, eps, None, CallSite::here())
    }

    /// [`Tensor::layer_norm`](crate::Tensor::layer_norm) with its options.
    #[track_caller]
    pub fn layer_norm_with(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
        options: &crate::functional::LayerNormOptions,
    ) -> Result<Tensor> {
        super::super::nn::layer_norm(self, weight, bias, eps, options.axes, CallSite::here())
    }

    /// x divided by the root mean square over the last dims, times `weight`. The number of dims is that of `weight`, 1 without one,
    /// unless `axes` says otherwise. `eps` is added to the mean square.
    ///
    /// ```text
    /// rms_norm(Tensor x, Tensor? weight, Float eps=1e-6, *, Int? axes) -> Tensor
    /// ```
    #[track_caller]
    pub fn rms_norm(&self, weight: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        super::super::nn::rms_norm(self, weight, eps, None, CallSite::here())
    }

    /// [`Tensor::rms_norm`](crate::Tensor::rms_norm) with its options.
    #[track_caller]
    pub fn rms_norm_with(
        &self,
        weight: Option<&Tensor>,
        eps: f64,
        options: &crate::functional::RmsNormOptions,
    ) -> Result<Tensor> {
        super::super::nn::rms_norm(self, weight, eps, options.axes, CallSite::here())
    }

    /// softmax(scale q kᵀ) v for queries, keys and values of shape `[B, H, T, D]`. With `causal`, query i attends to keys 0..=i only.
    /// `scale` is 1 / √D unless given.
    ///
    /// ```text
    /// attention(Tensor q, Tensor k, Tensor v, Bool causal=false, *, Float? scale) -> Tensor
    /// ```
    #[track_caller]
    pub fn attention(&self, k: &Tensor, v: &Tensor, causal: bool) -> Result<Tensor> {
        super::super::nn::attention(self, k, v, causal, None, CallSite::here())
    }

    /// [`Tensor::attention`](crate::Tensor::attention) with its options.
    #[track_caller]
    pub fn attention_with(
        &self,
        k: &Tensor,
        v: &Tensor,
        causal: bool,
        options: &crate::functional::AttentionOptions,
    ) -> Result<Tensor> {
        super::super::nn::attention(self, k, v, causal, options.scale, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("layer_norm(Tensor x, Tensor? weight, Tensor? bias, Float eps=1e-5, *, Int? axes) -> Tensor", |b| Ok(vec![super::super::nn::layer_norm(b.given(0)?, b.tensor(1), b.tensor(2), b.float(3)?, b.int(4).ok(), b.site)?])),
    ("rms_norm(Tensor x, Tensor? weight, Float eps=1e-6, *, Int? axes) -> Tensor", |b| Ok(vec![super::super::nn::rms_norm(b.given(0)?, b.tensor(1), b.float(2)?, b.int(3).ok(), b.site)?])),
    ("attention(Tensor q, Tensor k, Tensor v, Bool causal=false, *, Float? scale) -> Tensor", |b| Ok(vec![super::super::nn::attention(b.given(0)?, b.given(1)?, b.given(2)?, b.bool(3)?, b.float(4).ok(), b.site)?])),
];
