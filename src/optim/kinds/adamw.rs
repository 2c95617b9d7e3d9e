//! AdamW: Adam with decoupled weight decay.

use crate::error::Result;
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`AdamW`](super::AdamW); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamWOptions {
    /// Learning rate, at first 1e-3.
    pub lr: f64,
    /// Decay rate of the running mean of gradients.
    pub beta1: f64,
    /// Decay rate of the running mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the mean of squares, for numerical stability.
    pub eps: f64,
    /// Weight decay: each step multiplies a parameter by 1 - lr · weight_decay.
    pub weight_decay: f64,
    /// AMSGrad: divides by the root of the largest mean of squares so far.
    pub amsgrad: bool,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdamWOptions {
    fn default() -> AdamWOptions {
        AdamWOptions {
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
            amsgrad: false,
            maximize: false,
            master_weights: true,
        }
    }
}

impl OptimizerRule for AdamWOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("mean", true), ("square", true), ("largest", self.amsgrad)]
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn op(&self) -> Result<&'static Op> {
        if self.amsgrad { op!("adam_many") } else { op!("adamw_many") }
    }
    fn settings(&self, at: StepCount) -> RuntimeAttrs {
        let AdamWOptions { lr, beta1, beta2, eps, weight_decay, amsgrad, .. } = *self;
        let mut all: RuntimeAttrs = smallvec![lr.into(), beta1.into(), beta2.into(), eps.into(), weight_decay.into()];
        if amsgrad {
            // Adam's op decouples the decay by request.
            all.push(true.into());
        }
        all.push(at.steps.into());
        all
    }
}
