//! An activation with parameters.

use super::init;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// x, or `weight` x where x is not above 0.
#[derive(crate::nn::Module)]
pub struct Prelu {
    /// One number, or one for each channel: dim 1 of what is given; 0.25 at first.
    pub weight: Tensor,
}

impl Prelu {
    /// Makes the activation with one number for each of `channels`, or with 1 for all.
    #[track_caller]
    pub fn new(channels: usize, target: impl IntoTarget) -> Result<Prelu> {
        Ok(Prelu { weight: init::constant([channels], 0.25, target)? })
    }
    /// The activation of each element of `[batch, channels, …]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.prelu(&self.weight)
    }
}
