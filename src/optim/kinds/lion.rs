//! Lion.

use crate::error::Result;
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Lion`](super::Lion); the paper's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LionOptions {
    /// Learning rate, at first 1e-4.
    pub lr: f64,
    /// Part of the momentum in the direction.
    pub beta1: f64,
    /// Decay rate of the momentum.
    pub beta2: f64,
    /// Weight decay: each step multiplies a parameter by 1 - lr · weight_decay.
    pub weight_decay: f64,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for LionOptions {
    fn default() -> LionOptions {
        LionOptions { lr: 1e-4, beta1: 0.9, beta2: 0.99, weight_decay: 0.0, maximize: false, master_weights: true }
    }
}

impl OptimizerRule for LionOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("momentum", true)]
    }
    fn op(&self) -> Result<&'static Op> {
        op!("lion_many")
    }
    fn settings(&self, _: StepCount) -> RuntimeAttrs {
        smallvec![self.lr.into(), self.beta1.into(), self.beta2.into(), self.weight_decay.into()]
    }
}
