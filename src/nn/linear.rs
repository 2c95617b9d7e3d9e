//! `x Wᵀ + b`.

use super::init;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// A linear layer. The weight is `[out, in]`: S(0) splits the outputs ("column split"), S(1) the inputs ("row split").
pub struct Linear {
    /// `[out, in]`.
    pub weight: Tensor,
    /// `[out]`.
    pub bias: Option<Tensor>,
}
crate::module!(Linear { weight, bias });

impl Linear {
    /// With bias; both uniform within ±1/√in, PyTorch's default.
    #[track_caller]
    pub fn new(inputs: usize, outputs: usize, target: impl IntoTarget) -> Result<Linear> {
        let target = target.into_target();
        let mut l = Linear::without_bias(inputs, outputs, &target)?;
        l.bias = Some(init::uniform([outputs], bound(inputs), &target)?);
        Ok(l)
    }
    /// Without bias.
    #[track_caller]
    pub fn without_bias(inputs: usize, outputs: usize, target: impl IntoTarget) -> Result<Linear> {
        Ok(Linear { weight: init::uniform([outputs, inputs], bound(inputs), target)?, bias: None })
    }
    /// Maps the last dim.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.linear(&self.weight, self.bias.as_ref())
    }
}

fn bound(inputs: usize) -> f64 {
    1.0 / (inputs.max(1) as f64).sqrt()
}
