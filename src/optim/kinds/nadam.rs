//! NAdam.

use crate::error::Result;
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`NAdam`](super::NAdam); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NAdamOptions {
    /// Learning rate, at first 2e-3.
    pub lr: f64,
    /// Decay rate of the running mean of gradients.
    pub beta1: f64,
    /// Decay rate of the running mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the mean of squares, for numerical stability.
    pub eps: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Growth of the momentum, which is beta1 · (1 - 0.96^(n · momentum_decay) / 2) at step n. The product of all momenta so far is
    /// that of the present settings.
    pub momentum_decay: f64,
    /// Whether the weight decay multiplies the parameter by 1 - lr · weight_decay instead.
    pub decoupled_weight_decay: bool,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for NAdamOptions {
    fn default() -> NAdamOptions {
        NAdamOptions {
            lr: 2e-3,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
            momentum_decay: 4e-3,
            decoupled_weight_decay: false,
            maximize: false,
            master_weights: true,
        }
    }
}

impl OptimizerRule for NAdamOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("mean", true), ("square", true)]
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn op(&self) -> Result<&'static Op> {
        op!("nadam_many")
    }
    fn settings(&self, at: StepCount) -> RuntimeAttrs {
        smallvec![
            self.lr.into(),
            self.beta1.into(),
            self.beta2.into(),
            self.eps.into(),
            self.weight_decay.into(),
            self.momentum_decay.into(),
            self.decoupled_weight_decay.into(),
            at.steps.into(),
        ]
    }
}
