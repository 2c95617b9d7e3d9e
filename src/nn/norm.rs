//! Normalisation of the last dim.

use super::init;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// Mean 0 and variance 1 over the last dim, then scale and shift.
pub struct LayerNorm {
    /// Scale, ones at first.
    pub weight: Tensor,
    /// Shift, zeros at first.
    pub bias: Tensor,
    /// Added to the variance.
    pub eps: f64,
}
crate::module!(LayerNorm { weight, bias });

impl LayerNorm {
    /// For a last dim of that size.
    #[track_caller]
    pub fn new(width: usize, target: impl IntoTarget) -> Result<LayerNorm> {
        let t = target.into_target();
        Ok(LayerNorm {
            weight: init::constant([width], 1.0, &t)?,
            bias: init::constant([width], 0.0, &t)?,
            eps: 1e-5,
        })
    }
    /// Normalises.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.layer_norm(Some(&self.weight), Some(&self.bias), self.eps)
    }
}

/// Root mean square 1 over the last dim, then scale.
pub struct RmsNorm {
    /// Scale, ones at first.
    pub weight: Tensor,
    /// Added to the mean square.
    pub eps: f64,
}
crate::module!(RmsNorm { weight });

impl RmsNorm {
    /// For a last dim of that size.
    #[track_caller]
    pub fn new(width: usize, target: impl IntoTarget) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: init::constant([width], 1.0, target)?, eps: 1e-6 })
    }
    /// Normalises.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.rms_norm(Some(&self.weight), self.eps)
    }
}
