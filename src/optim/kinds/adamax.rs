//! Adamax.

use crate::error::Result;
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Adamax`](super::Adamax); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamaxOptions {
    /// Learning rate, at first 2e-3.
    pub lr: f64,
    /// Decay rate of the running mean of gradients.
    pub beta1: f64,
    /// Decay rate of the largest magnitude of a gradient.
    pub beta2: f64,
    /// Added to the magnitude of each gradient, for numerical stability.
    pub eps: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdamaxOptions {
    fn default() -> AdamaxOptions {
        AdamaxOptions {
            lr: 2e-3,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
            maximize: false,
            master_weights: true,
        }
    }
}

impl OptimizerRule for AdamaxOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("mean", true), ("largest", true)]
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn op(&self) -> Result<&'static Op> {
        op!("adamax_many")
    }
    fn settings(&self, at: StepCount) -> RuntimeAttrs {
        let AdamaxOptions { lr, beta1, beta2, eps, weight_decay, .. } = *self;
        smallvec![lr.into(), beta1.into(), beta2.into(), eps.into(), weight_decay.into(), at.steps.into()]
    }
}
