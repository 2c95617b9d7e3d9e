//! The two-layer perceptron of a transformer block.

use super::Linear;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// `pr(gelu(fc(x)))`, GELU by the tanh approximation. Sharded by splitting fc's outputs (S(0)) and pr's inputs (S(1)):
/// nothing is communicated between the two.
pub struct Mlp {
    /// Up.
    pub fc: Linear,
    /// Down.
    pub pr: Linear,
}
crate::module!(Mlp { fc, pr });

impl Mlp {
    /// From `width` up to `hidden` and down again.
    #[track_caller]
    pub fn new(width: usize, hidden: usize, target: impl IntoTarget) -> Result<Mlp> {
        let t = target.into_target();
        Ok(Mlp { fc: Linear::new(width, hidden, &t)?, pr: Linear::new(hidden, width, &t)? })
    }
    /// Maps the last dim.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.pr.forward(&self.fc.forward(x)?.gelu_tanh()?)
    }
}
