//! `x Wᵀ + b`.

use super::init;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// A linear layer `x weightᵀ + bias`. S(0) on the weight splits the outputs ("column parallel"), S(1) splits the inputs ("row
/// parallel").
#[derive(crate::nn::Module)]
pub struct Linear {
    /// Weight, `[out, in]`.
    pub weight: Tensor,
    /// Bias, `[out]`; `None` adds nothing.
    pub bias: Option<Tensor>,
}

impl Linear {
    /// Makes a layer with bias. Weight and bias are uniform in ±1/√`inputs`, PyTorch's default.
    #[track_caller]
    pub fn new(inputs: usize, outputs: usize, target: impl IntoTarget) -> Result<Linear> {
        let target = target.into_target();
        let mut l = Linear::without_bias(inputs, outputs, &target)?;
        l.bias = Some(init::uniform([outputs], bound(inputs), &target)?);
        Ok(l)
    }
    /// Makes a layer without bias.
    #[track_caller]
    pub fn without_bias(inputs: usize, outputs: usize, target: impl IntoTarget) -> Result<Linear> {
        Ok(Linear { weight: init::uniform([outputs, inputs], bound(inputs), target)?, bias: None })
    }
    /// Maps `[…, in]` to `[…, out]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.linear(&self.weight, self.bias.as_ref())
    }
}

fn bound(inputs: usize) -> f64 {
    1.0 / (inputs.max(1) as f64).sqrt()
}
