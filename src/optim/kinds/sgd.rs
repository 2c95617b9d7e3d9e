//! Stochastic gradient descent.

use crate::error::{Error, Result};
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Sgd`](super::Sgd).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SgdOptions {
    /// Learning rate, at first 1e-3, as in PyTorch.
    pub lr: f64,
    /// Momentum: factor of the previous direction; 0 keeps no state.
    pub momentum: f64,
    /// Dampening: the gradient enters the direction with factor 1 - dampening.
    pub dampening: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for SgdOptions {
    fn default() -> SgdOptions {
        SgdOptions {
            lr: 1e-3,
            momentum: 0.0,
            dampening: 0.0,
            weight_decay: 0.0,
            nesterov: false,
            maximize: false,
            master_weights: true,
        }
    }
}

impl OptimizerRule for SgdOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("momentum", self.momentum != 0.0)]
    }
    fn check(&self) -> Result<()> {
        if self.nesterov && (self.momentum <= 0.0 || self.dampening != 0.0) {
            let SgdOptions { momentum, dampening, .. } = self;
            return Err(Error::argument(format!(
                "Nesterov momentum needs a momentum above 0 and no dampening, not momentum {momentum} and dampening {dampening}"
            )));
        }
        Ok(())
    }
    fn op(&self) -> Result<&'static Op> {
        op!("sgd_many")
    }
    fn settings(&self, at: StepCount) -> RuntimeAttrs {
        let SgdOptions { lr, momentum, dampening, weight_decay, nesterov, .. } = *self;
        smallvec![lr.into(), momentum.into(), dampening.into(), weight_decay.into(), nesterov.into(), at.is_new.into(),]
    }
}
