//! Bilinear layer.

use super::init;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// A bilinear layer: `x1ᵀ W x2` for each matrix W of the weight, plus bias.
///
/// ```
/// use oflow::nn::Bilinear;
/// use oflow::prelude::*;
/// let layer = Bilinear::new(3, 4, 2, Device::Cpu)?;
/// let y = layer.forward(&ones([5, 3], Device::Cpu)?, &ones([5, 4], Device::Cpu)?)?;
/// assert_eq!(y.shape(), [5, 2]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(crate::nn::Module)]
pub struct Bilinear {
    /// Weight, `[out, in1, in2]`.
    pub weight: Tensor,
    /// Bias, `[out]`; `None` adds nothing.
    pub bias: Option<Tensor>,
}

impl Bilinear {
    /// Makes a layer with bias. Weight and bias are uniform in ±1/√`first`, PyTorch's default.
    #[track_caller]
    pub fn new(first: usize, second: usize, outputs: usize, target: impl IntoTarget) -> Result<Bilinear> {
        let (target, bound) = (target.into_target(), 1.0 / (first.max(1) as f64).sqrt());
        let weight = init::uniform([outputs, first, second], bound, &target)?;
        Ok(Bilinear { weight, bias: Some(init::uniform([outputs], bound, &target)?) })
    }
    /// Maps `[…, in1]` and `[…, in2]` to `[…, out]`.
    #[track_caller]
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
        x1.bilinear(x2, &self.weight, self.bias.as_ref())
    }
}
