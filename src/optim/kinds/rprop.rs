//! Rprop.

use crate::error::{Error, Result};
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, StepCount, options_fields};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Rprop`](super::Rprop); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RpropOptions {
    /// Size of the first step of each element, at first 1e-2. Later steps have sizes of their own.
    pub lr: f64,
    /// Factors of the size of an element's step: where its gradient changes the sign, and where it keeps it.
    pub etas: (f64, f64),
    /// Least and largest size of a step.
    pub step_sizes: (f64, f64),
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for RpropOptions {
    fn default() -> RpropOptions {
        RpropOptions { lr: 1e-2, etas: (0.5, 1.2), step_sizes: (1e-6, 50.0), maximize: false, master_weights: true }
    }
}

impl OptimizerRule for RpropOptions {
    options_fields!();
    /// Rprop has no weight decay.
    fn with_weight_decay(self, _: f64) -> RpropOptions {
        self
    }
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("previous", true), ("size", true)]
    }
    fn initial(&self, state: &str) -> f64 {
        if state == "size" { self.lr } else { 0.0 }
    }
    fn check(&self) -> Result<()> {
        let (shrink, grow) = self.etas;
        if 0.0 < shrink && shrink < 1.0 && 1.0 < grow {
            return Ok(());
        }
        Err(Error::argument(format!("etas are a factor between 0 and 1 and one above 1, not {shrink} and {grow}")))
    }
    fn op(&self) -> Result<&'static Op> {
        op!("rprop_many")
    }
    fn settings(&self, _: StepCount) -> RuntimeAttrs {
        let RpropOptions { etas, step_sizes, .. } = *self;
        smallvec![etas.0.into(), etas.1.into(), step_sizes.0.into(), step_sizes.1.into()]
    }
}
