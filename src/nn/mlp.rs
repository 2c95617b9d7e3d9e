//! The two-layer perceptron of a transformer block.

use super::Linear;
use super::module::part;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// `pr(gelu(fc(x)))`, with the tanh approximation of GELU. To shard it, split the outputs of `fc` (S(0)) and the inputs of `pr`
/// (S(1)): then no communication is needed between the two.
#[derive(crate::nn::Module)]
pub struct Mlp {
    /// Projection to the hidden width, weight `[hidden, width]`.
    pub fc: Linear,
    /// Projection back, weight `[width, hidden]`.
    pub pr: Linear,
}

impl Mlp {
    /// Makes the two layers, `width` to `hidden` and back, with new random parameters.
    #[track_caller]
    pub fn new(width: usize, hidden: usize, target: impl IntoTarget) -> Result<Mlp> {
        let t = target.into_target();
        Ok(Mlp { fc: Linear::new(width, hidden, &t)?, pr: Linear::new(hidden, width, &t)? })
    }
    /// Maps `[…, width]` to `[…, width]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = part("fc", || self.fc.forward(x))?.gelu_tanh()?;
        part("pr", || self.pr.forward(&h))
    }
}
