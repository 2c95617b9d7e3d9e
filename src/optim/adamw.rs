//! Adam with decoupled weight decay.

use super::Optimizer;
use super::many::groups;
use crate::context::no_grad;
use crate::error::{CallSite, Result};
use crate::functional::{invoke, op, zeros_like};
use crate::tensor::Tensor;
use smallvec::smallvec;

/// Settings of [`AdamW`]; PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct AdamWOptions {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of squares.
    pub beta2: f64,
    /// Added to the root of the mean of squares.
    pub eps: f64,
    /// Share of the parameter that a step takes away, per unit of learning rate.
    pub weight_decay: f64,
}

impl Default for AdamWOptions {
    fn default() -> AdamWOptions {
        AdamWOptions { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 }
    }
}

/// State of one parameter.
struct Moments {
    mean: Tensor,
    square: Tensor,
    steps: i64,
}

/// AdamW (Loshchilov and Hutter), by PyTorch's formula.
pub struct AdamW {
    parameters: Vec<Tensor>,
    moments: Vec<Option<Moments>>,
    options: AdamWOptions,
}

impl AdamW {
    /// For those parameters.
    pub fn new(parameters: Vec<Tensor>, options: AdamWOptions) -> AdamW {
        AdamW { moments: parameters.iter().map(|_| None).collect(), parameters, options }
    }
}

impl Optimizer for AdamW {
    #[track_caller]
    fn step(&mut self) -> Result<()> {
        let (o, site) = (self.options, CallSite::here());
        let _quiet = no_grad();
        let mut due = vec![];
        for (p, state) in self.parameters.iter().zip(&mut self.moments) {
            let Some(g) = p.grad() else { continue };
            let s = match state {
                Some(s) => s,
                None => state.insert(Moments { mean: zeros_like(p)?, square: zeros_like(p)?, steps: 0 }),
            };
            s.steps += 1;
            due.push((p, g, &*s));
        }
        for group in groups(due, |(p, ..)| p, |(.., s)| s.steps) {
            let runtime = smallvec![
                o.lr.into(),
                o.beta1.into(),
                o.beta2.into(),
                o.eps.into(),
                o.weight_decay.into(),
                group[0].2.steps.into(),
            ];
            let inputs: Vec<Option<&Tensor>> =
                group.iter().flat_map(|(p, g, s)| [Some(*p), Some(g), Some(&s.mean), Some(&s.square)]).collect();
            invoke(op!("adamw_many"), &inputs, smallvec![], runtime, site)?;
        }
        Ok(())
    }
    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }
    fn lr(&self) -> f64 {
        self.options.lr
    }
    fn set_lr(&mut self, lr: f64) {
        self.options.lr = lr;
    }
}
