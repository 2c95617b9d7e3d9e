//! Networks: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntList, invoke1, op};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::{SmallVec, smallvec};
use std::borrow::Borrow;

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

/// Options of [`Tensor::rotary_embedding_with`](crate::Tensor::rotary_embedding_with).
#[derive(Clone, Debug, Default)]
pub struct RotaryEmbeddingOptions {
    /// `Bool interleaved=false`. `false` by default.
    pub interleaved: bool,
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
#[derive(Clone, Debug)]
pub struct AttentionOptions {
    /// `Float? scale`. Not given by default.
    pub scale: Option<f64>,
    /// `Int gather_limit=268435456`. `268435456` by default.
    pub gather_limit: i64,
}

impl Default for AttentionOptions {
    fn default() -> AttentionOptions {
        AttentionOptions {
            scale: None,
            gather_limit: 268435456,
        }
    }
}

/// Options of [`Tensor::interpolate_with`](crate::Tensor::interpolate_with).
#[derive(Clone, Debug)]
pub struct InterpolateOptions {
    /// `FloatList scale_factor=[]`. `vec![]` by default.
    pub scale_factor: Vec<f64>,
    /// `String mode="nearest"`. `"nearest"` by default.
    pub mode: &'static str,
    /// `Bool? align_corners`. Not given by default.
    pub align_corners: Option<bool>,
    /// `Bool? recompute_scale_factor`. Not given by default.
    pub recompute_scale_factor: Option<bool>,
    /// `Bool antialias=false`. `false` by default.
    pub antialias: bool,
}

impl Default for InterpolateOptions {
    fn default() -> InterpolateOptions {
        InterpolateOptions {
            scale_factor: vec![],
            mode: "nearest",
            align_corners: None,
            recompute_scale_factor: None,
            antialias: false,
        }
    }
}

/// Options of [`Tensor::grid_sample_with`](crate::Tensor::grid_sample_with).
#[derive(Clone, Debug)]
pub struct GridSampleOptions {
    /// `String mode="bilinear"`. `"bilinear"` by default.
    pub mode: &'static str,
    /// `String padding_mode="zeros"`. `"zeros"` by default.
    pub padding_mode: &'static str,
    /// `Bool align_corners=false`. `false` by default.
    pub align_corners: bool,
}

impl Default for GridSampleOptions {
    fn default() -> GridSampleOptions {
        GridSampleOptions {
            mode: "bilinear",
            padding_mode: "zeros",
            align_corners: false,
        }
    }
}

/// Options of [`Tensor::affine_grid_with`](crate::Tensor::affine_grid_with).
#[derive(Clone, Debug, Default)]
pub struct AffineGridOptions {
    /// `Bool align_corners=false`. `false` by default.
    pub align_corners: bool,
}

/// Options of [`Tensor::scaled_dot_product_attention_with`](crate::Tensor::scaled_dot_product_attention_with).
#[derive(Clone, Debug, Default)]
pub struct ScaledDotProductAttentionOptions {
    /// `Float? scale`. Not given by default.
    pub scale: Option<f64>,
    /// `Bool enable_gqa=false`. `false` by default.
    pub enable_gqa: bool,
}

/// Options of [`Tensor::embedding_bag_with`](crate::Tensor::embedding_bag_with).
#[derive(Clone, Debug)]
pub struct EmbeddingBagOptions {
    /// `String mode="mean"`. `"mean"` by default.
    pub mode: &'static str,
    /// `Tensor? per_sample_weights`. Not given by default.
    pub per_sample_weights: Option<Tensor>,
    /// `Bool include_last_offset=false`. `false` by default.
    pub include_last_offset: bool,
    /// `Int? padding_idx`. Not given by default.
    pub padding_idx: Option<i64>,
}

impl Default for EmbeddingBagOptions {
    fn default() -> EmbeddingBagOptions {
        EmbeddingBagOptions {
            mode: "mean",
            per_sample_weights: None,
            include_last_offset: false,
            padding_idx: None,
        }
    }
}

/// Options of [`Tensor::lstm_with`](crate::Tensor::lstm_with).
#[derive(Clone, Debug)]
pub struct LstmOptions {
    /// `Bool has_biases=true`. `true` by default.
    pub has_biases: bool,
    /// `Int num_layers=1`. `1` by default.
    pub num_layers: i64,
    /// `Float dropout=0.0`. `0.0` by default.
    pub dropout: f64,
    /// `Bool train=false`. `false` by default.
    pub train: bool,
    /// `Bool bidirectional=false`. `false` by default.
    pub bidirectional: bool,
    /// `Bool batch_first=false`. `false` by default.
    pub batch_first: bool,
}

impl Default for LstmOptions {
    fn default() -> LstmOptions {
        LstmOptions {
            has_biases: true,
            num_layers: 1,
            dropout: 0.0,
            train: false,
            bidirectional: false,
            batch_first: false,
        }
    }
}

/// Options of [`Tensor::gru_with`](crate::Tensor::gru_with).
#[derive(Clone, Debug)]
pub struct GruOptions {
    /// `Bool has_biases=true`. `true` by default.
    pub has_biases: bool,
    /// `Int num_layers=1`. `1` by default.
    pub num_layers: i64,
    /// `Float dropout=0.0`. `0.0` by default.
    pub dropout: f64,
    /// `Bool train=false`. `false` by default.
    pub train: bool,
    /// `Bool bidirectional=false`. `false` by default.
    pub bidirectional: bool,
    /// `Bool batch_first=false`. `false` by default.
    pub batch_first: bool,
}

impl Default for GruOptions {
    fn default() -> GruOptions {
        GruOptions {
            has_biases: true,
            num_layers: 1,
            dropout: 0.0,
            train: false,
            bidirectional: false,
            batch_first: false,
        }
    }
}

/// Options of [`Tensor::rnn_tanh_with`](crate::Tensor::rnn_tanh_with).
#[derive(Clone, Debug)]
pub struct RnnTanhOptions {
    /// `Bool has_biases=true`. `true` by default.
    pub has_biases: bool,
    /// `Int num_layers=1`. `1` by default.
    pub num_layers: i64,
    /// `Float dropout=0.0`. `0.0` by default.
    pub dropout: f64,
    /// `Bool train=false`. `false` by default.
    pub train: bool,
    /// `Bool bidirectional=false`. `false` by default.
    pub bidirectional: bool,
    /// `Bool batch_first=false`. `false` by default.
    pub batch_first: bool,
}

impl Default for RnnTanhOptions {
    fn default() -> RnnTanhOptions {
        RnnTanhOptions {
            has_biases: true,
            num_layers: 1,
            dropout: 0.0,
            train: false,
            bidirectional: false,
            batch_first: false,
        }
    }
}

/// Options of [`Tensor::rnn_relu_with`](crate::Tensor::rnn_relu_with).
#[derive(Clone, Debug)]
pub struct RnnReluOptions {
    /// `Bool has_biases=true`. `true` by default.
    pub has_biases: bool,
    /// `Int num_layers=1`. `1` by default.
    pub num_layers: i64,
    /// `Float dropout=0.0`. `0.0` by default.
    pub dropout: f64,
    /// `Bool train=false`. `false` by default.
    pub train: bool,
    /// `Bool bidirectional=false`. `false` by default.
    pub bidirectional: bool,
    /// `Bool batch_first=false`. `false` by default.
    pub batch_first: bool,
}

impl Default for RnnReluOptions {
    fn default() -> RnnReluOptions {
        RnnReluOptions {
            has_biases: true,
            num_layers: 1,
            dropout: 0.0,
            train: false,
            bidirectional: false,
            batch_first: false,
        }
    }
}

impl Tensor {
    /// The softmax along a dim: exp(x) divided by its sum.
    ///
    /// ```text
    /// softmax(Tensor x, Int dim=-1) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `x` is not a tensor of float.
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
    /// If `x` is not a tensor of float.
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
    /// If `ids` is not a tensor of integer.
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

    /// Rotary position embedding: pairs of the elements of each row of x `[..., positions, width]` turned by angles whose cosines and sines `[positions, pairs]` are given (more dims broadcast to those of x). A pair is elements i and `pairs + i`, or with `interleaved` 2 i and 2 i + 1. Elements beyond the pairs stay as they are.
    ///
    /// ```text
    /// rotary_embedding(Tensor x, Tensor cos, Tensor sin, *, Bool interleaved=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [1, 4], Device::Cpu)?;
    /// let (cos, sin) = (zeros([1, 2], Device::Cpu)?, ones([1, 2], Device::Cpu)?);
    /// assert_eq!(x.rotary_embedding(&cos, &sin)?.to_vec::<f32>()?, [-3.0, -4.0, 1.0, 2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more pairs than elements, or the tables do not broadcast to the rows of x.
    #[track_caller]
    pub fn rotary_embedding(&self, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
        invoke1(op!("rotary_embedding"), &[Some(self), Some(cos), Some(sin)], smallvec![false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::rotary_embedding`](crate::Tensor::rotary_embedding) with its options.
    #[track_caller]
    pub fn rotary_embedding_with(
        &self,
        cos: &Tensor,
        sin: &Tensor,
        options: &crate::functional::RotaryEmbeddingOptions,
    ) -> Result<Tensor> {
        invoke1(op!("rotary_embedding"), &[Some(self), Some(cos), Some(sin)], smallvec![options.interleaved.into()], smallvec![], CallSite::here())
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
    /// unless `axes` says otherwise. `eps` is added to the mean square; it is the distance from 1 to the next number of x's dtype,
    /// for halves of f32, unless given.
    ///
    /// ```text
    /// rms_norm(Tensor x, Tensor? weight, Float? eps, *, Int? axes) -> Tensor
    /// ```
    #[track_caller]
    pub fn rms_norm(&self, weight: Option<&Tensor>, eps: Option<f64>) -> Result<Tensor> {
        super::super::nn::rms_norm(self, weight, eps, None, CallSite::here())
    }

    /// [`Tensor::rms_norm`](crate::Tensor::rms_norm) with its options.
    #[track_caller]
    pub fn rms_norm_with(
        &self,
        weight: Option<&Tensor>,
        eps: Option<f64>,
        options: &crate::functional::RmsNormOptions,
    ) -> Result<Tensor> {
        super::super::nn::rms_norm(self, weight, eps, options.axes, CallSite::here())
    }

    /// softmax(scale q kᵀ) v for queries, keys and values of shape `[B, H, T, D]`. With `causal`, query i attends to keys 0..=i only.
    /// `scale` is 1 / √D unless given. Memory is linear in T; a derivative of second order takes memory quadratic in T.
    ///
    /// ```text
    /// attention(Tensor q, Tensor k, Tensor v, Bool causal=false, *, Float? scale, Int gather_limit=268435456) -> Tensor
    /// ```
    #[track_caller]
    pub fn attention(&self, k: &Tensor, v: &Tensor, causal: bool) -> Result<Tensor> {
        super::super::nn::attention(self, k, v, causal, None, 268435456, CallSite::here())
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
        super::super::nn::attention(self, k, v, causal, options.scale, options.gather_limit, CallSite::here())
    }

    /// Batch normalisation: each channel (dim 1 of `[batch, channels, …]`) is normalised to mean 0 and variance 1, multiplied by `weight`
    /// and shifted by `bias`. With `training` the mean and the variance are those of x, over the global batch in every layout. Running
    /// statistics, if given, are then updated in place: `running_mean` to `(1 - momentum) * running_mean + momentum * mean`, and
    /// `running_var` in the same way with the unbiased variance. Without `training`, x is normalised by the running statistics.
    ///
    /// ```text
    /// batch_norm(Tensor x, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias, Bool training=false, Float momentum=0.1, Float eps=1e-5) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 3.0, 3.0, 9.0], [2, 2], Device::Cpu)?;
    /// let y = x.batch_norm(None, None, None, None, true, 0.1, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// With `training`, if a channel has one element; without `training`, if a running statistic is missing.
    #[track_caller]
    pub fn batch_norm(
        &self,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        super::super::channels::batch_norm(self, running_mean, running_var, weight, bias, training, momentum, eps, CallSite::here())
    }

    /// Group normalisation: the channels (dim 1) are divided into `num_groups` groups of equal size. Each group of each image is normalised
    /// to mean 0 and variance 1, multiplied by `weight` and shifted by `bias`, which have one element per channel.
    ///
    /// ```text
    /// group_norm(Tensor x, Int num_groups, Tensor? weight, Tensor? bias, Float eps=1e-5) -> Tensor
    /// ```
    #[track_caller]
    pub fn group_norm(
        &self,
        num_groups: impl IntLike,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        super::super::channels::group_norm(self, num_groups.int(), weight, bias, eps, CallSite::here())
    }

    /// Instance normalisation: each channel of each image is normalised to mean 0 and variance 1, multiplied by `weight` and shifted by
    /// `bias`. Running statistics, if given, are updated as in `batch_norm`, with the statistics of the images averaged over the batch.
    /// Without `use_input_stats`, x is normalised by the running statistics.
    ///
    /// ```text
    /// instance_norm(Tensor x, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias, Bool use_input_stats=true, Float momentum=0.1, Float eps=1e-5) -> Tensor
    /// ```
    #[track_caller]
    pub fn instance_norm(
        &self,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        use_input_stats: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        super::super::channels::instance_norm(self, running_mean, running_var, weight, bias, use_input_stats, momentum, eps, CallSite::here())
    }

    /// The convolution of `[batch, channels, length]`, or without the batch, with a weight `[filters, channels / groups, kernel]`, plus
    /// `bias` (one number a filter). Lists of one number stand for all spatial dims. By name `padding` may be `"valid"` or `"same"`,
    /// which gives as many elements as x has.
    ///
    /// ```text
    /// conv1d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let (x, w) = (from_vec(vec![1.0f32, 2.0, 4.0], [1, 1, 3], Device::Cpu)?, ones([1, 1, 2], Device::Cpu)?);
    /// assert_eq!(x.conv1d(&w, None, 1, 0, 1, 1)?.to_vec::<f32>()?, [3.0, 6.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn conv1d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        groups: impl IntLike,
    ) -> Result<Tensor> {
        super::super::conv::conv1d(self, weight, bias, &stride.ints(), &padding.ints(), &dilation.ints(), groups.int(), CallSite::here())
    }

    /// As `conv1d` for `[batch, channels, height, width]` and a weight `[filters, channels / groups, height, width]`.
    ///
    /// ```text
    /// conv2d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let (x, w) = (ones([2, 3, 8, 8], Device::Cpu)?, ones([4, 3, 3, 3], Device::Cpu)?);
    /// assert_eq!(x.conv2d(&w, None, 2, 1, 1, 1)?.shape(), [2, 4, 4, 4]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn conv2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        groups: impl IntLike,
    ) -> Result<Tensor> {
        super::super::conv::conv2d(self, weight, bias, &stride.ints(), &padding.ints(), &dilation.ints(), groups.int(), CallSite::here())
    }

    /// As `conv1d` for 3 spatial dims.
    ///
    /// ```text
    /// conv3d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn conv3d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        groups: impl IntLike,
    ) -> Result<Tensor> {
        super::super::conv::conv3d(self, weight, bias, &stride.ints(), &padding.ints(), &dilation.ints(), groups.int(), CallSite::here())
    }

    /// The transposed convolution of `[batch, channels, length]`, or without the batch, with a weight `[channels, filters / groups,
    /// kernel]`: the gradient of a convolution. `output_padding` adds elements at the end.
    ///
    /// ```text
    /// conv_transpose1d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor
    /// ```
    #[track_caller]
    pub fn conv_transpose1d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: impl IntList,
        padding: impl IntList,
        output_padding: impl IntList,
        groups: impl IntLike,
        dilation: impl IntList,
    ) -> Result<Tensor> {
        super::super::conv::conv_transpose1d(self, weight, bias, &stride.ints(), &padding.ints(), &output_padding.ints(), groups.int(), &dilation.ints(), CallSite::here())
    }

    /// As `conv_transpose1d` for 2 spatial dims.
    ///
    /// ```text
    /// conv_transpose2d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor
    /// ```
    #[track_caller]
    pub fn conv_transpose2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: impl IntList,
        padding: impl IntList,
        output_padding: impl IntList,
        groups: impl IntLike,
        dilation: impl IntList,
    ) -> Result<Tensor> {
        super::super::conv::conv_transpose2d(self, weight, bias, &stride.ints(), &padding.ints(), &output_padding.ints(), groups.int(), &dilation.ints(), CallSite::here())
    }

    /// As `conv_transpose1d` for 3 spatial dims.
    ///
    /// ```text
    /// conv_transpose3d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor
    /// ```
    #[track_caller]
    pub fn conv_transpose3d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: impl IntList,
        padding: impl IntList,
        output_padding: impl IntList,
        groups: impl IntLike,
        dilation: impl IntList,
    ) -> Result<Tensor> {
        super::super::conv::conv_transpose3d(self, weight, bias, &stride.ints(), &padding.ints(), &output_padding.ints(), groups.int(), &dilation.ints(), CallSite::here())
    }

    /// The largest element of each window of the last dim of `[batch, channels, length]`, or without the batch. `stride` is the kernel's size
    /// unless given; `padding` adds -inf on both sides, at most half of a kernel. `ceil_mode` keeps a last window that is cut off.
    ///
    /// ```text
    /// max_pool1d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn max_pool1d(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        ceil_mode: bool,
    ) -> Result<Tensor> {
        super::super::conv::max_pool1d(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), &dilation.ints(), ceil_mode, CallSite::here())
    }

    /// As `max_pool1d` for 2 spatial dims.
    ///
    /// ```text
    /// max_pool2d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(16, Device::Cpu.dtype(DType::F32))?.reshape([1, 1, 4, 4])?;
    /// assert_eq!(x.max_pool2d(2, (), 0, 1, false)?.to_vec::<f32>()?, [5.0, 7.0, 13.0, 15.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn max_pool2d(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        ceil_mode: bool,
    ) -> Result<Tensor> {
        super::super::conv::max_pool2d(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), &dilation.ints(), ceil_mode, CallSite::here())
    }

    /// As `max_pool1d` for 3 spatial dims.
    ///
    /// ```text
    /// max_pool3d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn max_pool3d(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        ceil_mode: bool,
    ) -> Result<Tensor> {
        super::super::conv::max_pool3d(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), &dilation.ints(), ceil_mode, CallSite::here())
    }

    /// `max_pool1d`, and where the elements are, counted over the spatial dims.
    ///
    /// ```text
    /// max_pool1d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn max_pool1d_with_indices(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        ceil_mode: bool,
    ) -> Result<Vec<Tensor>> {
        super::super::conv::max_pool1d_with_indices(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), &dilation.ints(), ceil_mode, CallSite::here())
    }

    /// `max_pool2d`, and where the elements are, counted over the spatial dims.
    ///
    /// ```text
    /// max_pool2d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn max_pool2d_with_indices(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        ceil_mode: bool,
    ) -> Result<Vec<Tensor>> {
        super::super::conv::max_pool2d_with_indices(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), &dilation.ints(), ceil_mode, CallSite::here())
    }

    /// `max_pool3d`, and where the elements are, counted over the spatial dims.
    ///
    /// ```text
    /// max_pool3d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn max_pool3d_with_indices(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        dilation: impl IntList,
        ceil_mode: bool,
    ) -> Result<Vec<Tensor>> {
        super::super::conv::max_pool3d_with_indices(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), &dilation.ints(), ceil_mode, CallSite::here())
    }

    /// The average of each window of the last dim. With `count_include_pad` the zeros of the padding count as elements.
    ///
    /// ```text
    /// avg_pool1d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true) -> Tensor
    /// ```
    #[track_caller]
    pub fn avg_pool1d(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        ceil_mode: bool,
        count_include_pad: bool,
    ) -> Result<Tensor> {
        super::super::conv::avg_pool1d(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), ceil_mode, count_include_pad, CallSite::here())
    }

    /// As `avg_pool1d` for 2 spatial dims; `divisor_override` is divided by in place of the number of elements.
    ///
    /// ```text
    /// avg_pool2d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true, Int? divisor_override) -> Tensor
    /// ```
    #[track_caller]
    pub fn avg_pool2d(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: Option<i64>,
    ) -> Result<Tensor> {
        super::super::conv::avg_pool2d(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), ceil_mode, count_include_pad, divisor_override, CallSite::here())
    }

    /// As `avg_pool2d` for 3 spatial dims.
    ///
    /// ```text
    /// avg_pool3d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true, Int? divisor_override) -> Tensor
    /// ```
    #[track_caller]
    pub fn avg_pool3d(
        &self,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: Option<i64>,
    ) -> Result<Tensor> {
        super::super::conv::avg_pool3d(self, &kernel_size.ints(), &stride.ints(), &padding.ints(), ceil_mode, count_include_pad, divisor_override, CallSite::here())
    }

    /// The largest elements of `output_size` windows of about one size, which cover the last dim.
    ///
    /// ```text
    /// adaptive_max_pool1d(Tensor x, IntList output_size) -> Tensor
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool1d(&self, output_size: impl IntList) -> Result<Tensor> {
        super::super::conv::adaptive_max_pool1d(self, &output_size.ints(), CallSite::here())
    }

    /// As `adaptive_max_pool1d` for 2 spatial dims.
    ///
    /// ```text
    /// adaptive_max_pool2d(Tensor x, IntList output_size) -> Tensor
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool2d(&self, output_size: impl IntList) -> Result<Tensor> {
        super::super::conv::adaptive_max_pool2d(self, &output_size.ints(), CallSite::here())
    }

    /// As `adaptive_max_pool1d` for 3 spatial dims.
    ///
    /// ```text
    /// adaptive_max_pool3d(Tensor x, IntList output_size) -> Tensor
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool3d(&self, output_size: impl IntList) -> Result<Tensor> {
        super::super::conv::adaptive_max_pool3d(self, &output_size.ints(), CallSite::here())
    }

    /// The averages of `output_size` windows of about one size, which cover the last dim.
    ///
    /// ```text
    /// adaptive_avg_pool1d(Tensor x, IntList output_size) -> Tensor
    /// ```
    #[track_caller]
    pub fn adaptive_avg_pool1d(&self, output_size: impl IntList) -> Result<Tensor> {
        super::super::conv::adaptive_avg_pool1d(self, &output_size.ints(), CallSite::here())
    }

    /// As `adaptive_avg_pool1d` for 2 spatial dims.
    ///
    /// ```text
    /// adaptive_avg_pool2d(Tensor x, IntList output_size) -> Tensor
    /// ```
    #[track_caller]
    pub fn adaptive_avg_pool2d(&self, output_size: impl IntList) -> Result<Tensor> {
        super::super::conv::adaptive_avg_pool2d(self, &output_size.ints(), CallSite::here())
    }

    /// As `adaptive_avg_pool1d` for 3 spatial dims.
    ///
    /// ```text
    /// adaptive_avg_pool3d(Tensor x, IntList output_size) -> Tensor
    /// ```
    #[track_caller]
    pub fn adaptive_avg_pool3d(&self, output_size: impl IntList) -> Result<Tensor> {
        super::super::conv::adaptive_avg_pool3d(self, &output_size.ints(), CallSite::here())
    }

    /// `adaptive_max_pool1d`, and where the elements are, counted over the spatial dims.
    ///
    /// ```text
    /// adaptive_max_pool1d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool1d_with_indices(&self, output_size: impl IntList) -> Result<Vec<Tensor>> {
        super::super::pools::adaptive_max_pool1d_with_indices(self, &output_size.ints(), CallSite::here())
    }

    /// `adaptive_max_pool2d`, and where the elements are, counted over the spatial dims.
    ///
    /// ```text
    /// adaptive_max_pool2d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool2d_with_indices(&self, output_size: impl IntList) -> Result<Vec<Tensor>> {
        super::super::pools::adaptive_max_pool2d_with_indices(self, &output_size.ints(), CallSite::here())
    }

    /// `adaptive_max_pool3d`, and where the elements are, counted over the spatial dims.
    ///
    /// ```text
    /// adaptive_max_pool3d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool3d_with_indices(&self, output_size: impl IntList) -> Result<Vec<Tensor>> {
        super::super::pools::adaptive_max_pool3d_with_indices(self, &output_size.ints(), CallSite::here())
    }

    /// The p-norm of each window of the last dim, p = `norm_type`: the p-th root of the sum of xᵖ. `stride` is the kernel's size unless given.
    ///
    /// ```text
    /// lp_pool1d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn lp_pool1d(
        &self,
        norm_type: f64,
        kernel_size: impl IntList,
        stride: impl IntList,
        ceil_mode: bool,
    ) -> Result<Tensor> {
        super::super::pools::lp_pool1d(self, norm_type, &kernel_size.ints(), &stride.ints(), ceil_mode, CallSite::here())
    }

    /// As `lp_pool1d` for 2 spatial dims.
    ///
    /// ```text
    /// lp_pool2d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn lp_pool2d(
        &self,
        norm_type: f64,
        kernel_size: impl IntList,
        stride: impl IntList,
        ceil_mode: bool,
    ) -> Result<Tensor> {
        super::super::pools::lp_pool2d(self, norm_type, &kernel_size.ints(), &stride.ints(), ceil_mode, CallSite::here())
    }

    /// As `lp_pool1d` for 3 spatial dims.
    ///
    /// ```text
    /// lp_pool3d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn lp_pool3d(
        &self,
        norm_type: f64,
        kernel_size: impl IntList,
        stride: impl IntList,
        ceil_mode: bool,
    ) -> Result<Tensor> {
        super::super::pools::lp_pool3d(self, norm_type, &kernel_size.ints(), &stride.ints(), ceil_mode, CallSite::here())
    }

    /// The elements of a max pooling at their places `indices`, as `max_pool1d_with_indices` gives them, and zeros elsewhere. The size is that
    /// of an image whose windows end with it, unless given.
    ///
    /// ```text
    /// max_unpool1d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 4.0, 3.0, 2.0], [1, 1, 4], Device::Cpu)?;
    /// let pooled = x.max_pool1d_with_indices(2, (), 0, 1, false)?;
    /// assert_eq!(pooled[0].max_unpool1d(&pooled[1], 2, (), 0, ())?.to_vec::<f32>()?, [0.0, 4.0, 3.0, 0.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `output_size` is no size that the pooling could have been of.
    #[track_caller]
    pub fn max_unpool1d(
        &self,
        indices: &Tensor,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        output_size: impl IntList,
    ) -> Result<Tensor> {
        super::super::pools::max_unpool1d(self, indices, &kernel_size.ints(), &stride.ints(), &padding.ints(), &output_size.ints(), CallSite::here())
    }

    /// As `max_unpool1d` for 2 spatial dims.
    ///
    /// ```text
    /// max_unpool2d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor
    /// ```
    #[track_caller]
    pub fn max_unpool2d(
        &self,
        indices: &Tensor,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        output_size: impl IntList,
    ) -> Result<Tensor> {
        super::super::pools::max_unpool2d(self, indices, &kernel_size.ints(), &stride.ints(), &padding.ints(), &output_size.ints(), CallSite::here())
    }

    /// As `max_unpool1d` for 3 spatial dims.
    ///
    /// ```text
    /// max_unpool3d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor
    /// ```
    #[track_caller]
    pub fn max_unpool3d(
        &self,
        indices: &Tensor,
        kernel_size: impl IntList,
        stride: impl IntList,
        padding: impl IntList,
        output_size: impl IntList,
    ) -> Result<Tensor> {
        super::super::pools::max_unpool3d(self, indices, &kernel_size.ints(), &stride.ints(), &padding.ints(), &output_size.ints(), CallSite::here())
    }

    /// The largest elements of windows whose places are random (Graham, 2014), and where they are, counted over the spatial dims.
    /// `samples` `[batch, channels, 2]` are uniform numbers from 0 to 1: the windows of a channel of an image depend on its numbers, the
    /// first for the last dim.
    ///
    /// ```text
    /// fractional_max_pool2d(Tensor x, IntList kernel_size, IntList output_size, Tensor samples) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn fractional_max_pool2d(
        &self,
        kernel_size: impl IntList,
        output_size: impl IntList,
        samples: &Tensor,
    ) -> Result<Vec<Tensor>> {
        super::super::pools::fractional_max_pool2d(self, &kernel_size.ints(), &output_size.ints(), samples, CallSite::here())
    }

    /// As `fractional_max_pool2d` for 3 spatial dims and as many numbers for each channel, in the order of the dims.
    ///
    /// ```text
    /// fractional_max_pool3d(Tensor x, IntList kernel_size, IntList output_size, Tensor samples) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn fractional_max_pool3d(
        &self,
        kernel_size: impl IntList,
        output_size: impl IntList,
        samples: &Tensor,
    ) -> Result<Vec<Tensor>> {
        super::super::pools::fractional_max_pool3d(self, &kernel_size.ints(), &output_size.ints(), samples, CallSite::here())
    }

    /// Divides each element of `[batch, channels, …]` by (k + alpha a)^beta, where a is the mean of the squares at its place in `size` channels
    /// around its own; channels that are not there count as 0.
    ///
    /// ```text
    /// local_response_norm(Tensor x, Int size, Float alpha=0.0001, Float beta=0.75, Float k=1.0) -> Tensor
    /// ```
    #[track_caller]
    pub fn local_response_norm(&self, size: impl IntLike, alpha: f64, beta: f64, k: f64) -> Result<Tensor> {
        super::super::pools::local_response_norm(self, size.int(), alpha, beta, k, CallSite::here())
    }

    /// An image `[batch, channels, 1 to 3 spatial dims]` with other spatial sizes: `size`, or its own times `scale_factor`, one number a
    /// dim or one for all. The mode is `nearest`, `nearest-exact`, `linear` (1 dim), `bilinear`, `bicubic` (2), `trilinear` (3) or
    /// `area`. With `align_corners` the first and last elements of image and result lie on each other. Coordinates are computed with
    /// `scale_factor` where it is given, unless `recompute_scale_factor` takes the ratio of the sizes.
    ///
    /// ```text
    /// interpolate(Tensor x, IntList size=[], *, FloatList scale_factor=[], String mode="nearest", Bool? align_corners, Bool? recompute_scale_factor, Bool antialias=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0], [1, 1, 2], Device::Cpu)?;
    /// assert_eq!(x.interpolate(4)?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// let linear = oflow::functional::InterpolateOptions { mode: "linear", ..Default::default() };
    /// assert_eq!(x.interpolate_with(4, &linear)?.to_vec::<f32>()?, [1.0, 1.25, 1.75, 2.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If both or none of `size` and `scale_factor` are given, if the mode is for another number of dims, or with `antialias`.
    #[track_caller]
    pub fn interpolate(&self, size: impl IntList) -> Result<Tensor> {
        super::super::image::interpolate(self, &size.ints(), &[], "nearest", None, None, false, CallSite::here())
    }

    /// [`Tensor::interpolate`](crate::Tensor::interpolate) with its options.
    #[track_caller]
    pub fn interpolate_with(
        &self,
        size: impl IntList,
        options: &crate::functional::InterpolateOptions,
    ) -> Result<Tensor> {
        super::super::image::interpolate(self, &size.ints(), &options.scale_factor, options.mode, options.align_corners, options.recompute_scale_factor, options.antialias, CallSite::here())
    }

    /// `[..., channels * r², height, width]` as `[..., channels, height * r, width * r]`: r² channels become squares of pixels.
    ///
    /// ```text
    /// pixel_shuffle(Tensor x, Int upscale_factor) -> Tensor
    /// ```
    #[track_caller]
    pub fn pixel_shuffle(&self, upscale_factor: impl IntLike) -> Result<Tensor> {
        super::super::image::pixel_shuffle(self, upscale_factor.int(), CallSite::here())
    }

    /// `[..., channels, height * r, width * r]` as `[..., channels * r², height, width]`: the inverse of `pixel_shuffle`.
    ///
    /// ```text
    /// pixel_unshuffle(Tensor x, Int downscale_factor) -> Tensor
    /// ```
    #[track_caller]
    pub fn pixel_unshuffle(&self, downscale_factor: impl IntLike) -> Result<Tensor> {
        super::super::image::pixel_unshuffle(self, downscale_factor.int(), CallSite::here())
    }

    /// The channels, dim 1, in `groups` groups, taken in turn from each.
    ///
    /// ```text
    /// channel_shuffle(Tensor x, Int groups) -> Tensor
    /// ```
    #[track_caller]
    pub fn channel_shuffle(&self, groups: impl IntLike) -> Result<Tensor> {
        super::super::image::channel_shuffle(self, groups.int(), CallSite::here())
    }

    /// The windows of images `[batch, channels, height, width]`, or without the batch, as columns: `[batch, channels * elements of a
    /// window, windows]`. PyTorch's `nn.functional.unfold`.
    ///
    /// ```text
    /// im2col(Tensor x, IntList kernel_size, IntList dilation=[1], IntList padding=[0], IntList stride=[1]) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = ones([2, 3, 4, 5], Device::Cpu)?;
    /// assert_eq!(x.im2col([2, 3], 1, 0, 1)?.shape(), [2, 18, 9]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn im2col(
        &self,
        kernel_size: impl IntList,
        dilation: impl IntList,
        padding: impl IntList,
        stride: impl IntList,
    ) -> Result<Tensor> {
        super::super::image::im2col(self, &kernel_size.ints(), &dilation.ints(), &padding.ints(), &stride.ints(), CallSite::here())
    }

    /// Images of `output_size` to which columns of windows are added at their places: the gradient of `im2col`. PyTorch's
    /// `nn.functional.fold`.
    ///
    /// ```text
    /// col2im(Tensor x, IntList output_size, IntList kernel_size, IntList dilation=[1], IntList padding=[0], IntList stride=[1]) -> Tensor
    /// ```
    #[track_caller]
    pub fn col2im(
        &self,
        output_size: impl IntList,
        kernel_size: impl IntList,
        dilation: impl IntList,
        padding: impl IntList,
        stride: impl IntList,
    ) -> Result<Tensor> {
        super::super::image::col2im(self, &output_size.ints(), &kernel_size.ints(), &dilation.ints(), &padding.ints(), &stride.ints(), CallSite::here())
    }

    /// An image `[batch, channels, 2 or 3 spatial dims]` at the places of a grid `[batch, 2 or 3 dims of the result, 2 or 3]`, whose last dim
    /// is x, y and z, from -1 to 1 over the image. The mode is `bilinear`, `nearest` or `bicubic`, also of 3 dims; outside the
    /// image are `zeros`, its `border`, or its `reflection`. With `align_corners` -1 and 1 are the centres of the corner pixels, without it
    /// their outer edges.
    ///
    /// ```text
    /// grid_sample(Tensor x, Tensor grid, *, String mode="bilinear", String padding_mode="zeros", Bool align_corners=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [1, 1, 2, 2], Device::Cpu)?;
    /// let middle = zeros([1, 1, 1, 2], Device::Cpu)?;
    /// assert_eq!(x.grid_sample(&middle)?.to_vec::<f32>()?, [2.5]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If image and grid do not belong together, or have two dtypes.
    #[track_caller]
    pub fn grid_sample(&self, grid: &Tensor) -> Result<Tensor> {
        super::super::grid::grid_sample(self, grid, "bilinear", "zeros", false, CallSite::here())
    }

    /// [`Tensor::grid_sample`](crate::Tensor::grid_sample) with its options.
    #[track_caller]
    pub fn grid_sample_with(
        &self,
        grid: &Tensor,
        options: &crate::functional::GridSampleOptions,
    ) -> Result<Tensor> {
        super::super::grid::grid_sample(self, grid, options.mode, options.padding_mode, options.align_corners, CallSite::here())
    }

    /// The grid of affine maps `theta` `[batch, 2, 3]`, or `[batch, 3, 4]` for 3 spatial dims, for `grid_sample` to a result of `size`
    /// `[batch, channels, spatial dims]`.
    ///
    /// ```text
    /// affine_grid(Tensor theta, IntList size, *, Bool align_corners=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let same = from_vec(vec![1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0], [1, 2, 3], Device::Cpu)?;
    /// let grid = same.affine_grid([1, 1, 1, 2])?;
    /// assert_eq!(grid.to_vec::<f32>()?, [-0.5, 0.0, 0.5, 0.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn affine_grid(&self, size: impl IntList) -> Result<Tensor> {
        super::super::grid::affine_grid(self, &size.ints(), false, CallSite::here())
    }

    /// [`Tensor::affine_grid`](crate::Tensor::affine_grid) with its options.
    #[track_caller]
    pub fn affine_grid_with(
        &self,
        size: impl IntList,
        options: &crate::functional::AffineGridOptions,
    ) -> Result<Tensor> {
        super::super::grid::affine_grid(self, &size.ints(), options.align_corners, CallSite::here())
    }

    /// softmax(scale q kᵀ + mask) v over the last two dims. `attn_mask` broadcasts to the scores `[..., Tq, Tk]`: a bool mask is true where
    /// a query sees a key, a float mask is added. With `is_causal` query i sees keys 0..=i only. `dropout_p` is for the weights.
    /// `enable_gqa` repeats the heads of keys and values (dim -3) as often as the queries have more. A query that sees no key gives 0.
    ///
    /// ```text
    /// scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Float dropout_p=0.0, Bool is_causal=false, *, Float? scale, Bool enable_gqa=false) -> Tensor
    /// ```
    ///
    /// Without mask and dropout the scores never lie in memory.
    #[track_caller]
    pub fn scaled_dot_product_attention(
        &self,
        key: &Tensor,
        value: &Tensor,
        attn_mask: Option<&Tensor>,
        dropout_p: f64,
        is_causal: bool,
    ) -> Result<Tensor> {
        super::super::attend::scaled_dot_product_attention(self, key, value, attn_mask, dropout_p, is_causal, None, false, CallSite::here())
    }

    /// [`Tensor::scaled_dot_product_attention`](crate::Tensor::scaled_dot_product_attention) with its options.
    #[track_caller]
    pub fn scaled_dot_product_attention_with(
        &self,
        key: &Tensor,
        value: &Tensor,
        attn_mask: Option<&Tensor>,
        dropout_p: f64,
        is_causal: bool,
        options: &crate::functional::ScaledDotProductAttentionOptions,
    ) -> Result<Tensor> {
        super::super::attend::scaled_dot_product_attention(self, key, value, attn_mask, dropout_p, is_causal, options.scale, options.enable_gqa, CallSite::here())
    }

    /// The rows of a table `weight` that each bag of `ids` names, reduced: `sum`, `mean` or `max`. The rows of `ids` of two dims are
    /// bags; a list of ids has bags that start at `offsets` (with `include_last_offset` the last is the end). An empty bag gives 0.
    /// `per_sample_weights` multiply the rows of a `sum`. Rows at `padding_idx` do not count.
    ///
    /// ```text
    /// embedding_bag(Tensor weight, Tensor ids, Tensor? offsets, *, String mode="mean", Tensor? per_sample_weights, Bool include_last_offset=false, Int? padding_idx) -> Tensor
    /// ```
    #[track_caller]
    pub fn embedding_bag(&self, ids: &Tensor, offsets: Option<&Tensor>) -> Result<Tensor> {
        super::super::attend::embedding_bag(self, ids, offsets, "mean", None, false, None, CallSite::here())
    }

    /// [`Tensor::embedding_bag`](crate::Tensor::embedding_bag) with its options.
    #[track_caller]
    pub fn embedding_bag_with(
        &self,
        ids: &Tensor,
        offsets: Option<&Tensor>,
        options: &crate::functional::EmbeddingBagOptions,
    ) -> Result<Tensor> {
        super::super::attend::embedding_bag(self, ids, offsets, options.mode, options.per_sample_weights.as_ref(), options.include_last_offset, options.padding_idx, CallSite::here())
    }

    /// A long short-term memory over `[T, B, input]` (`batch_first`: `[B, T, input]`; without a batch `[T, input]`), from the states
    /// `hx`: h and c of shape `[layers · directions, B, hidden]`. `params` has for each layer and direction w_ih, w_hh and, with
    /// `has_biases`, b_ih and b_hh, whose rows are those of the gates i, f, g and o. `dropout` is between layers, where `train` is set.
    /// If h is narrower than c, the weights of each layer and direction end with w_hr `[width of h, hidden]`, which h is multiplied with.
    ///
    /// ```text
    /// lstm(Tensor x, TensorTuple hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n, Tensor c_n)
    /// ```
    #[track_caller]
    pub fn lstm<T: Borrow<Tensor>, U: Borrow<Tensor>>(
        &self,
        hx: impl AsRef<[T]>,
        params: impl AsRef<[U]>,
    ) -> Result<Vec<Tensor>> {
        let hx: SmallVec<[&Tensor; 8]> = hx.as_ref().iter().map(|t| t.borrow()).collect();
        let params: SmallVec<[&Tensor; 8]> = params.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::lstm(self, &hx, &params, true, 1, 0.0, false, false, false, CallSite::here())
    }

    /// [`Tensor::lstm`](crate::Tensor::lstm) with its options.
    #[track_caller]
    pub fn lstm_with<T: Borrow<Tensor>, U: Borrow<Tensor>>(
        &self,
        hx: impl AsRef<[T]>,
        params: impl AsRef<[U]>,
        options: &crate::functional::LstmOptions,
    ) -> Result<Vec<Tensor>> {
        let hx: SmallVec<[&Tensor; 8]> = hx.as_ref().iter().map(|t| t.borrow()).collect();
        let params: SmallVec<[&Tensor; 8]> = params.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::lstm(self, &hx, &params, options.has_biases, options.num_layers, options.dropout, options.train, options.bidirectional, options.batch_first, CallSite::here())
    }

    /// Gated recurrent units over a sequence, as `lstm`; the gates are r, z and n.
    ///
    /// ```text
    /// gru(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)
    /// ```
    #[track_caller]
    pub fn gru<T: Borrow<Tensor>>(&self, hx: &Tensor, params: impl AsRef<[T]>) -> Result<Vec<Tensor>> {
        let params: SmallVec<[&Tensor; 8]> = params.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::gru(self, hx, &params, true, 1, 0.0, false, false, false, CallSite::here())
    }

    /// [`Tensor::gru`](crate::Tensor::gru) with its options.
    #[track_caller]
    pub fn gru_with<T: Borrow<Tensor>>(
        &self,
        hx: &Tensor,
        params: impl AsRef<[T]>,
        options: &crate::functional::GruOptions,
    ) -> Result<Vec<Tensor>> {
        let params: SmallVec<[&Tensor; 8]> = params.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::gru(self, hx, &params, options.has_biases, options.num_layers, options.dropout, options.train, options.bidirectional, options.batch_first, CallSite::here())
    }

    /// A recurrent network with tanh over a sequence, as `lstm`.
    ///
    /// ```text
    /// rnn_tanh(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)
    /// ```
    #[track_caller]
    pub fn rnn_tanh<T: Borrow<Tensor>>(&self, hx: &Tensor, params: impl AsRef<[T]>) -> Result<Vec<Tensor>> {
        let params: SmallVec<[&Tensor; 8]> = params.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::rnn_tanh(self, hx, &params, true, 1, 0.0, false, false, false, CallSite::here())
    }

    /// [`Tensor::rnn_tanh`](crate::Tensor::rnn_tanh) with its options.
    #[track_caller]
    pub fn rnn_tanh_with<T: Borrow<Tensor>>(
        &self,
        hx: &Tensor,
        params: impl AsRef<[T]>,
        options: &crate::functional::RnnTanhOptions,
    ) -> Result<Vec<Tensor>> {
        let params: SmallVec<[&Tensor; 8]> = params.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::rnn_tanh(self, hx, &params, options.has_biases, options.num_layers, options.dropout, options.train, options.bidirectional, options.batch_first, CallSite::here())
    }

    /// A recurrent network with relu over a sequence, as `lstm`.
    ///
    /// ```text
    /// rnn_relu(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)
    /// ```
    #[track_caller]
    pub fn rnn_relu<T: Borrow<Tensor>>(&self, hx: &Tensor, params: impl AsRef<[T]>) -> Result<Vec<Tensor>> {
        let params: SmallVec<[&Tensor; 8]> = params.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::rnn_relu(self, hx, &params, true, 1, 0.0, false, false, false, CallSite::here())
    }

    /// [`Tensor::rnn_relu`](crate::Tensor::rnn_relu) with its options.
    #[track_caller]
    pub fn rnn_relu_with<T: Borrow<Tensor>>(
        &self,
        hx: &Tensor,
        params: impl AsRef<[T]>,
        options: &crate::functional::RnnReluOptions,
    ) -> Result<Vec<Tensor>> {
        let params: SmallVec<[&Tensor; 8]> = params.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::rnn_relu(self, hx, &params, options.has_biases, options.num_layers, options.dropout, options.train, options.bidirectional, options.batch_first, CallSite::here())
    }

    /// One step of a long short-term memory for `[B, input]` or `[input]`, from h and c: the new ones.
    ///
    /// ```text
    /// lstm_cell(Tensor x, TensorTuple hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> (Tensor h, Tensor c)
    /// ```
    #[track_caller]
    pub fn lstm_cell<T: Borrow<Tensor>>(
        &self,
        hx: impl AsRef<[T]>,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<Vec<Tensor>> {
        let hx: SmallVec<[&Tensor; 8]> = hx.as_ref().iter().map(|t| t.borrow()).collect();
        super::super::recurrent::lstm_cell(self, &hx, w_ih, w_hh, b_ih, b_hh, CallSite::here())
    }

    /// One step of gated recurrent units for `[B, input]` or `[input]`.
    ///
    /// ```text
    /// gru_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor
    /// ```
    #[track_caller]
    pub fn gru_cell(
        &self,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<Tensor> {
        super::super::recurrent::gru_cell(self, hx, w_ih, w_hh, b_ih, b_hh, CallSite::here())
    }

    /// tanh(x w_ihᵀ + b_ih + hx w_hhᵀ + b_hh).
    ///
    /// ```text
    /// rnn_tanh_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor
    /// ```
    #[track_caller]
    pub fn rnn_tanh_cell(
        &self,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<Tensor> {
        super::super::recurrent::rnn_tanh_cell(self, hx, w_ih, w_hh, b_ih, b_hh, CallSite::here())
    }

    /// relu(x w_ihᵀ + b_ih + hx w_hhᵀ + b_hh).
    ///
    /// ```text
    /// rnn_relu_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor
    /// ```
    #[track_caller]
    pub fn rnn_relu_cell(
        &self,
        hx: &Tensor,
        w_ih: &Tensor,
        w_hh: &Tensor,
        b_ih: Option<&Tensor>,
        b_hh: Option<&Tensor>,
    ) -> Result<Tensor> {
        super::super::recurrent::rnn_relu_cell(self, hx, w_ih, w_hh, b_ih, b_hh, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("layer_norm(Tensor x, Tensor? weight, Tensor? bias, Float eps=1e-5, *, Int? axes) -> Tensor", |b| Ok(vec![super::super::nn::layer_norm(b.given(0)?, b.tensor(1), b.tensor(2), b.float(3)?, b.int(4).ok(), b.site)?])),
    ("rms_norm(Tensor x, Tensor? weight, Float? eps, *, Int? axes) -> Tensor", |b| Ok(vec![super::super::nn::rms_norm(b.given(0)?, b.tensor(1), b.float(2).ok(), b.int(3).ok(), b.site)?])),
    ("attention(Tensor q, Tensor k, Tensor v, Bool causal=false, *, Float? scale, Int gather_limit=268435456) -> Tensor", |b| Ok(vec![super::super::nn::attention(b.given(0)?, b.given(1)?, b.given(2)?, b.bool(3)?, b.float(4).ok(), b.int(5)?, b.site)?])),
    ("batch_norm(Tensor x, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias, Bool training=false, Float momentum=0.1, Float eps=1e-5) -> Tensor", |b| Ok(vec![super::super::channels::batch_norm(b.given(0)?, b.tensor(1), b.tensor(2), b.tensor(3), b.tensor(4), b.bool(5)?, b.float(6)?, b.float(7)?, b.site)?])),
    ("group_norm(Tensor x, Int num_groups, Tensor? weight, Tensor? bias, Float eps=1e-5) -> Tensor", |b| Ok(vec![super::super::channels::group_norm(b.given(0)?, b.int(1)?, b.tensor(2), b.tensor(3), b.float(4)?, b.site)?])),
    ("instance_norm(Tensor x, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias, Bool use_input_stats=true, Float momentum=0.1, Float eps=1e-5) -> Tensor", |b| Ok(vec![super::super::channels::instance_norm(b.given(0)?, b.tensor(1), b.tensor(2), b.tensor(3), b.tensor(4), b.bool(5)?, b.float(6)?, b.float(7)?, b.site)?])),
    ("conv1d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor", |b| Ok(vec![super::super::conv::conv1d(b.given(0)?, b.given(1)?, b.tensor(2), b.ints(3)?, b.ints(4)?, b.ints(5)?, b.int(6)?, b.site)?])),
    ("conv2d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor", |b| Ok(vec![super::super::conv::conv2d(b.given(0)?, b.given(1)?, b.tensor(2), b.ints(3)?, b.ints(4)?, b.ints(5)?, b.int(6)?, b.site)?])),
    ("conv3d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor", |b| Ok(vec![super::super::conv::conv3d(b.given(0)?, b.given(1)?, b.tensor(2), b.ints(3)?, b.ints(4)?, b.ints(5)?, b.int(6)?, b.site)?])),
    ("conv_transpose1d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor", |b| Ok(vec![super::super::conv::conv_transpose1d(b.given(0)?, b.given(1)?, b.tensor(2), b.ints(3)?, b.ints(4)?, b.ints(5)?, b.int(6)?, b.ints(7)?, b.site)?])),
    ("conv_transpose2d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor", |b| Ok(vec![super::super::conv::conv_transpose2d(b.given(0)?, b.given(1)?, b.tensor(2), b.ints(3)?, b.ints(4)?, b.ints(5)?, b.int(6)?, b.ints(7)?, b.site)?])),
    ("conv_transpose3d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor", |b| Ok(vec![super::super::conv::conv_transpose3d(b.given(0)?, b.given(1)?, b.tensor(2), b.ints(3)?, b.ints(4)?, b.ints(5)?, b.int(6)?, b.ints(7)?, b.site)?])),
    ("max_pool1d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor", |b| Ok(vec![super::super::conv::max_pool1d(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.bool(5)?, b.site)?])),
    ("max_pool2d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor", |b| Ok(vec![super::super::conv::max_pool2d(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.bool(5)?, b.site)?])),
    ("max_pool3d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor", |b| Ok(vec![super::super::conv::max_pool3d(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.bool(5)?, b.site)?])),
    ("max_pool1d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)", |b| super::super::conv::max_pool1d_with_indices(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.bool(5)?, b.site)),
    ("max_pool2d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)", |b| super::super::conv::max_pool2d_with_indices(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.bool(5)?, b.site)),
    ("max_pool3d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)", |b| super::super::conv::max_pool3d_with_indices(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.bool(5)?, b.site)),
    ("avg_pool1d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true) -> Tensor", |b| Ok(vec![super::super::conv::avg_pool1d(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.bool(4)?, b.bool(5)?, b.site)?])),
    ("avg_pool2d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true, Int? divisor_override) -> Tensor", |b| Ok(vec![super::super::conv::avg_pool2d(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.bool(4)?, b.bool(5)?, b.int(6).ok(), b.site)?])),
    ("avg_pool3d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true, Int? divisor_override) -> Tensor", |b| Ok(vec![super::super::conv::avg_pool3d(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.bool(4)?, b.bool(5)?, b.int(6).ok(), b.site)?])),
    ("adaptive_max_pool1d(Tensor x, IntList output_size) -> Tensor", |b| Ok(vec![super::super::conv::adaptive_max_pool1d(b.given(0)?, b.ints(1)?, b.site)?])),
    ("adaptive_max_pool2d(Tensor x, IntList output_size) -> Tensor", |b| Ok(vec![super::super::conv::adaptive_max_pool2d(b.given(0)?, b.ints(1)?, b.site)?])),
    ("adaptive_max_pool3d(Tensor x, IntList output_size) -> Tensor", |b| Ok(vec![super::super::conv::adaptive_max_pool3d(b.given(0)?, b.ints(1)?, b.site)?])),
    ("adaptive_avg_pool1d(Tensor x, IntList output_size) -> Tensor", |b| Ok(vec![super::super::conv::adaptive_avg_pool1d(b.given(0)?, b.ints(1)?, b.site)?])),
    ("adaptive_avg_pool2d(Tensor x, IntList output_size) -> Tensor", |b| Ok(vec![super::super::conv::adaptive_avg_pool2d(b.given(0)?, b.ints(1)?, b.site)?])),
    ("adaptive_avg_pool3d(Tensor x, IntList output_size) -> Tensor", |b| Ok(vec![super::super::conv::adaptive_avg_pool3d(b.given(0)?, b.ints(1)?, b.site)?])),
    ("adaptive_max_pool1d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)", |b| super::super::pools::adaptive_max_pool1d_with_indices(b.given(0)?, b.ints(1)?, b.site)),
    ("adaptive_max_pool2d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)", |b| super::super::pools::adaptive_max_pool2d_with_indices(b.given(0)?, b.ints(1)?, b.site)),
    ("adaptive_max_pool3d_with_indices(Tensor x, IntList output_size) -> (Tensor values, Tensor indices)", |b| super::super::pools::adaptive_max_pool3d_with_indices(b.given(0)?, b.ints(1)?, b.site)),
    ("lp_pool1d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor", |b| Ok(vec![super::super::pools::lp_pool1d(b.given(0)?, b.float(1)?, b.ints(2)?, b.ints(3)?, b.bool(4)?, b.site)?])),
    ("lp_pool2d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor", |b| Ok(vec![super::super::pools::lp_pool2d(b.given(0)?, b.float(1)?, b.ints(2)?, b.ints(3)?, b.bool(4)?, b.site)?])),
    ("lp_pool3d(Tensor x, Float norm_type, IntList kernel_size, IntList stride=[], Bool ceil_mode=false) -> Tensor", |b| Ok(vec![super::super::pools::lp_pool3d(b.given(0)?, b.float(1)?, b.ints(2)?, b.ints(3)?, b.bool(4)?, b.site)?])),
    ("max_unpool1d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor", |b| Ok(vec![super::super::pools::max_unpool1d(b.given(0)?, b.given(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.ints(5)?, b.site)?])),
    ("max_unpool2d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor", |b| Ok(vec![super::super::pools::max_unpool2d(b.given(0)?, b.given(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.ints(5)?, b.site)?])),
    ("max_unpool3d(Tensor x, Tensor indices, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList output_size=[]) -> Tensor", |b| Ok(vec![super::super::pools::max_unpool3d(b.given(0)?, b.given(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.ints(5)?, b.site)?])),
    ("fractional_max_pool2d(Tensor x, IntList kernel_size, IntList output_size, Tensor samples) -> (Tensor values, Tensor indices)", |b| super::super::pools::fractional_max_pool2d(b.given(0)?, b.ints(1)?, b.ints(2)?, b.given(3)?, b.site)),
    ("fractional_max_pool3d(Tensor x, IntList kernel_size, IntList output_size, Tensor samples) -> (Tensor values, Tensor indices)", |b| super::super::pools::fractional_max_pool3d(b.given(0)?, b.ints(1)?, b.ints(2)?, b.given(3)?, b.site)),
    ("local_response_norm(Tensor x, Int size, Float alpha=0.0001, Float beta=0.75, Float k=1.0) -> Tensor", |b| Ok(vec![super::super::pools::local_response_norm(b.given(0)?, b.int(1)?, b.float(2)?, b.float(3)?, b.float(4)?, b.site)?])),
    ("interpolate(Tensor x, IntList size=[], *, FloatList scale_factor=[], String mode=\"nearest\", Bool? align_corners, Bool? recompute_scale_factor, Bool antialias=false) -> Tensor", |b| Ok(vec![super::super::image::interpolate(b.given(0)?, b.ints(1)?, b.floats(2)?, b.text(3)?, b.bool(4).ok(), b.bool(5).ok(), b.bool(6)?, b.site)?])),
    ("pixel_shuffle(Tensor x, Int upscale_factor) -> Tensor", |b| Ok(vec![super::super::image::pixel_shuffle(b.given(0)?, b.int(1)?, b.site)?])),
    ("pixel_unshuffle(Tensor x, Int downscale_factor) -> Tensor", |b| Ok(vec![super::super::image::pixel_unshuffle(b.given(0)?, b.int(1)?, b.site)?])),
    ("channel_shuffle(Tensor x, Int groups) -> Tensor", |b| Ok(vec![super::super::image::channel_shuffle(b.given(0)?, b.int(1)?, b.site)?])),
    ("im2col(Tensor x, IntList kernel_size, IntList dilation=[1], IntList padding=[0], IntList stride=[1]) -> Tensor", |b| Ok(vec![super::super::image::im2col(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.site)?])),
    ("col2im(Tensor x, IntList output_size, IntList kernel_size, IntList dilation=[1], IntList padding=[0], IntList stride=[1]) -> Tensor", |b| Ok(vec![super::super::image::col2im(b.given(0)?, b.ints(1)?, b.ints(2)?, b.ints(3)?, b.ints(4)?, b.ints(5)?, b.site)?])),
    ("grid_sample(Tensor x, Tensor grid, *, String mode=\"bilinear\", String padding_mode=\"zeros\", Bool align_corners=false) -> Tensor", |b| Ok(vec![super::super::grid::grid_sample(b.given(0)?, b.given(1)?, b.text(2)?, b.text(3)?, b.bool(4)?, b.site)?])),
    ("affine_grid(Tensor theta, IntList size, *, Bool align_corners=false) -> Tensor", |b| Ok(vec![super::super::grid::affine_grid(b.given(0)?, b.ints(1)?, b.bool(2)?, b.site)?])),
    ("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Float dropout_p=0.0, Bool is_causal=false, *, Float? scale, Bool enable_gqa=false) -> Tensor", |b| Ok(vec![super::super::attend::scaled_dot_product_attention(b.given(0)?, b.given(1)?, b.given(2)?, b.tensor(3), b.float(4)?, b.bool(5)?, b.float(6).ok(), b.bool(7)?, b.site)?])),
    ("embedding_bag(Tensor weight, Tensor ids, Tensor? offsets, *, String mode=\"mean\", Tensor? per_sample_weights, Bool include_last_offset=false, Int? padding_idx) -> Tensor", |b| Ok(vec![super::super::attend::embedding_bag(b.given(0)?, b.given(1)?, b.tensor(2), b.text(3)?, b.tensor(4), b.bool(5)?, b.int(6).ok(), b.site)?])),
    ("lstm(Tensor x, TensorTuple hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n, Tensor c_n)", |b| super::super::recurrent::lstm(b.given(0)?, &b.tensors(1)?.iter().collect::<Vec<_>>(), &b.tensors(2)?.iter().collect::<Vec<_>>(), b.bool(3)?, b.int(4)?, b.float(5)?, b.bool(6)?, b.bool(7)?, b.bool(8)?, b.site)),
    ("gru(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)", |b| super::super::recurrent::gru(b.given(0)?, b.given(1)?, &b.tensors(2)?.iter().collect::<Vec<_>>(), b.bool(3)?, b.int(4)?, b.float(5)?, b.bool(6)?, b.bool(7)?, b.bool(8)?, b.site)),
    ("rnn_tanh(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)", |b| super::super::recurrent::rnn_tanh(b.given(0)?, b.given(1)?, &b.tensors(2)?.iter().collect::<Vec<_>>(), b.bool(3)?, b.int(4)?, b.float(5)?, b.bool(6)?, b.bool(7)?, b.bool(8)?, b.site)),
    ("rnn_relu(Tensor x, Tensor hx, TensorTuple params, *, Bool has_biases=true, Int num_layers=1, Float dropout=0.0, Bool train=false, Bool bidirectional=false, Bool batch_first=false) -> (Tensor output, Tensor h_n)", |b| super::super::recurrent::rnn_relu(b.given(0)?, b.given(1)?, &b.tensors(2)?.iter().collect::<Vec<_>>(), b.bool(3)?, b.int(4)?, b.float(5)?, b.bool(6)?, b.bool(7)?, b.bool(8)?, b.site)),
    ("lstm_cell(Tensor x, TensorTuple hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> (Tensor h, Tensor c)", |b| super::super::recurrent::lstm_cell(b.given(0)?, &b.tensors(1)?.iter().collect::<Vec<_>>(), b.given(2)?, b.given(3)?, b.tensor(4), b.tensor(5), b.site)),
    ("gru_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor", |b| Ok(vec![super::super::recurrent::gru_cell(b.given(0)?, b.given(1)?, b.given(2)?, b.given(3)?, b.tensor(4), b.tensor(5), b.site)?])),
    ("rnn_tanh_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor", |b| Ok(vec![super::super::recurrent::rnn_tanh_cell(b.given(0)?, b.given(1)?, b.given(2)?, b.given(3)?, b.tensor(4), b.tensor(5), b.site)?])),
    ("rnn_relu_cell(Tensor x, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh) -> Tensor", |b| Ok(vec![super::super::recurrent::rnn_relu_cell(b.given(0)?, b.given(1)?, b.given(2)?, b.given(3)?, b.tensor(4), b.tensor(5), b.site)?])),
];
