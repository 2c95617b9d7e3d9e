//! Normalisation of the last dim.

use super::init;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// Layer norm over the last dim: mean 0 and variance 1, then a scale and a shift.
#[derive(crate::nn::Module)]
pub struct LayerNorm {
    /// Scale, `[width]`; ones at first.
    pub weight: Tensor,
    /// Shift, `[width]`; zeros at first.
    pub bias: Tensor,
    /// Added to the variance; 1e-5 at first.
    pub eps: f64,
}

impl LayerNorm {
    /// Makes a norm for a last dim of size `width`.
    #[track_caller]
    pub fn new(width: usize, target: impl IntoTarget) -> Result<LayerNorm> {
        let t = target.into_target();
        Ok(LayerNorm { weight: init::constant([width], 1.0, &t)?, bias: init::constant([width], 0.0, &t)?, eps: 1e-5 })
    }
    /// Normalises the last dim of `[…, width]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.layer_norm(Some(&self.weight), Some(&self.bias), self.eps)
    }
}

/// RMS norm over the last dim: root mean square 1, then a scale.
#[derive(crate::nn::Module)]
pub struct RmsNorm {
    /// Scale, `[width]`; ones at first.
    pub weight: Tensor,
    /// Added to the mean square; none at first: then it is that of [`Tensor::rms_norm`].
    pub eps: Option<f64>,
}

impl RmsNorm {
    /// Makes a norm for a last dim of size `width`.
    #[track_caller]
    pub fn new(width: usize, target: impl IntoTarget) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: init::constant([width], 1.0, target)?, eps: None })
    }
    /// Normalises the last dim of `[…, width]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.rms_norm(Some(&self.weight), self.eps)
    }
}
