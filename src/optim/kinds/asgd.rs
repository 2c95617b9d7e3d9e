//! Averaged SGD.

use crate::error::Result;
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Asgd`](super::Asgd); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AsgdOptions {
    /// Learning rate, at first 1e-2. Step n, counted from 0, divides it by (1 + lambd · lr · n)^alpha.
    pub lr: f64,
    /// Decay: each step multiplies a parameter by 1 - lambd times the rate of the step.
    pub lambd: f64,
    /// Power of the decay of the rate.
    pub alpha: f64,
    /// Step, counted from 0, after which the average is one of several steps; before it is the parameter.
    pub t0: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AsgdOptions {
    fn default() -> AsgdOptions {
        AsgdOptions {
            lr: 1e-2,
            lambd: 1e-4,
            alpha: 0.75,
            t0: 1e6,
            weight_decay: 0.0,
            maximize: false,
            master_weights: true,
        }
    }
}

impl OptimizerRule for AsgdOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("average", true)]
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn op(&self) -> Result<&'static Op> {
        op!("asgd_many")
    }
    fn settings(&self, at: StepCount) -> RuntimeAttrs {
        let AsgdOptions { lr, lambd, alpha, t0, weight_decay, .. } = *self;
        let before = (at.steps - 1) as f64;
        let rate = lr / (1.0 + lambd * lr * before).powf(alpha);
        let mix = 1.0 / (before - t0).max(1.0);
        smallvec![rate.into(), lambd.into(), weight_decay.into(), mix.into()]
    }
}
