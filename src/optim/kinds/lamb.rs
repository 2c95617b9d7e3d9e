//! LAMB: each parameter's step is scaled by the norm of the parameter over that of its direction.
//!
//! The squares of all parameters that lie alike, and those of their directions, are one tensor: P(sum) on the mesh axes that split
//! them. So one small reduction serves however many parameters there are.

use crate::error::Result;
use crate::functional::{invoke, invoke1, op};
use crate::interpreter::Call;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::master::zeros_of;
use crate::optim::rule::{OptimizerRule, ParamState, StepCall, StepCount, options_fields};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Lamb`](super::Lamb).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LambOptions {
    /// Learning rate, at first 1e-3.
    pub lr: f64,
    /// Decay rate of the running mean of gradients.
    pub beta1: f64,
    /// Decay rate of the running mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the mean of squares, for numerical stability.
    pub eps: f64,
    /// Weight decay: factor of the parameter that is added to its direction.
    pub weight_decay: f64,
    /// Whether the means are corrected for their start at 0, as Adam's are.
    pub bias_correction: bool,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for LambOptions {
    fn default() -> LambOptions {
        LambOptions {
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-6,
            weight_decay: 0.0,
            bias_correction: true,
            maximize: false,
            master_weights: true,
        }
    }
}

impl OptimizerRule for LambOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("mean", true), ("square", true)]
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn op(&self) -> Result<&'static Op> {
        op!("lamb_direction_many")
    }
    fn settings(&self, at: StepCount) -> RuntimeAttrs {
        let steps = if self.bias_correction { at.steps } else { 0 };
        smallvec![self.beta1.into(), self.beta2.into(), self.eps.into(), self.weight_decay.into(), steps.into()]
    }
    fn run(&self, due: &[ParamState], call: StepCall) -> Result<()> {
        let site = call.site;
        // The directions live for one step.
        let directions: Vec<Tensor> = due.iter().map(|d| zeros_of(&d.target)).collect::<Result<_>>()?;
        let inputs: Vec<Option<&Tensor>> =
            due.iter().zip(&directions).flat_map(|(d, r)| d.inputs().chain([Some(r)])).collect();
        let settings = self.settings(due[0].count);
        Call::new(self.op()?, &inputs).runtime(settings).host(call.settings()).at(site).run()?;

        // As they are stored: calls may read parameters in another layout.
        let stored: Vec<Tensor> = due.iter().map(|d| d.target.detach()).collect();
        let all: Vec<Option<&Tensor>> = stored.iter().chain(&directions).map(Some).collect();
        let squares = invoke1(op!("squares_of_each"), &all, smallvec![], smallvec![], site)?;
        let squares = match squares.global() {
            Some(g) => squares.to_global(NdSbp::broadcast(g.placement.axes()))?,
            None => squares,
        };
        let (norms, n) = (squares.sqrt()?, due.len());
        let (of_parameters, of_directions) = (norms.narrow(0, 0, n)?, norms.narrow(0, n, n)?);
        // Where one of the two is 0 there is nothing to compare.
        let none = of_parameters.eq(0.0)?.logical_or(&of_directions.eq(0.0)?)?;
        let ratio = of_parameters.div(&of_directions)?;
        let factors = ratio.masked_fill(&none, 1.0)?;
        let factors = call.times(&factors, &self.scalars(due[0].count), 0)?;
        let pairs = due.iter().zip(&directions).flat_map(|(d, r)| [Some(&d.target), Some(r)]);
        let inputs: Vec<Option<&Tensor>> = [Some(&factors)].into_iter().chain(pairs).collect();
        invoke(op!("subtract_many"), &inputs, smallvec![], smallvec![], site).map(drop)
    }
}
