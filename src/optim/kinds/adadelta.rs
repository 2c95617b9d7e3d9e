//! Adadelta.

use crate::error::{Error, Result};
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Adadelta`](super::Adadelta); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdadeltaOptions {
    /// Learning rate: factor of the change.
    pub lr: f64,
    /// Decay rate of the running means.
    pub rho: f64,
    /// Added under the roots, for numerical stability.
    pub eps: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdadeltaOptions {
    fn default() -> AdadeltaOptions {
        AdadeltaOptions { lr: 1.0, rho: 0.9, eps: 1e-6, weight_decay: 0.0, maximize: false, master_weights: true }
    }
}

impl OptimizerRule for AdadeltaOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("square", true), ("change", true)]
    }
    fn check(&self) -> Result<()> {
        match (0.0..=1.0).contains(&self.rho) {
            true => Ok(()),
            false => Err(Error::argument(format!("rho is a number from 0 to 1, not {}", self.rho))),
        }
    }
    fn op(&self) -> Result<&'static Op> {
        op!("adadelta_many")
    }
    fn settings(&self, _: StepCount) -> RuntimeAttrs {
        smallvec![self.lr.into(), self.rho.into(), self.eps.into(), self.weight_decay.into()]
    }
}
