//! RMSprop.

use crate::error::Result;
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`RmsProp`](super::RmsProp); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RmsPropOptions {
    /// Learning rate, at first 1e-2.
    pub lr: f64,
    /// Decay rate of the running mean of squared gradients.
    pub alpha: f64,
    /// Added to the root of the mean of squares, for numerical stability.
    pub eps: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Momentum: factor of the previous direction; 0 keeps no state.
    pub momentum: f64,
    /// Whether the root is of the variance: the square of the mean gradient is subtracted.
    pub centered: bool,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for RmsPropOptions {
    fn default() -> RmsPropOptions {
        RmsPropOptions {
            lr: 1e-2,
            alpha: 0.99,
            eps: 1e-8,
            weight_decay: 0.0,
            momentum: 0.0,
            centered: false,
            maximize: false,
            master_weights: true,
        }
    }
}

impl OptimizerRule for RmsPropOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("square", true), ("mean", self.centered), ("momentum", self.momentum > 0.0)]
    }
    fn op(&self) -> Result<&'static Op> {
        op!("rmsprop_many")
    }
    fn settings(&self, _: StepCount) -> RuntimeAttrs {
        let RmsPropOptions { lr, alpha, eps, weight_decay, momentum, centered, .. } = *self;
        smallvec![lr.into(), alpha.into(), eps.into(), weight_decay.into(), momentum.into(), centered.into()]
    }
}
