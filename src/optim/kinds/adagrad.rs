//! Adagrad.

use crate::error::Result;
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Adagrad`](super::Adagrad); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdagradOptions {
    /// Learning rate, at first 1e-2.
    pub lr: f64,
    /// Decay of the learning rate: step n, counted from 0, divides it by 1 + n · lr_decay.
    pub lr_decay: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Initial value of the sums of squares.
    pub initial_accumulator_value: f64,
    /// Added to the root of the sum, for numerical stability.
    pub eps: f64,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdagradOptions {
    fn default() -> AdagradOptions {
        AdagradOptions {
            lr: 1e-2,
            lr_decay: 0.0,
            weight_decay: 0.0,
            initial_accumulator_value: 0.0,
            eps: 1e-10,
            maximize: false,
            master_weights: true,
        }
    }
}

impl OptimizerRule for AdagradOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("sum", true)]
    }
    fn initial(&self, _: &str) -> f64 {
        self.initial_accumulator_value
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn op(&self) -> Result<&'static Op> {
        op!("adagrad_many")
    }
    fn settings(&self, at: StepCount) -> RuntimeAttrs {
        let lr = self.lr / (1.0 + (at.steps - 1) as f64 * self.lr_decay);
        smallvec![lr.into(), self.eps.into(), self.weight_decay.into()]
    }
}
