//! Adam with decoupled weight decay.

use super::many::groups;
use super::master::{Masters, state_like};
use super::saved;
use super::{Optimizer, StepChecks, with_gradients};
use crate::context::no_grad;
use crate::error::{CallSite, Result};
use crate::functional::{invoke, op};
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`AdamW`]; PyTorch's defaults.
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
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdamWOptions {
    fn default() -> AdamWOptions {
        AdamWOptions { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, master_weights: true }
    }
}

/// State of one parameter.
struct Moments {
    mean: Tensor,
    square: Tensor,
    steps: i64,
}

/// AdamW (Loshchilov and Hutter, 2019), with PyTorch's formula. The state of half-precision parameters is f32.
pub struct AdamW {
    parameters: Vec<Tensor>,
    moments: Vec<Option<Moments>>,
    masters: Masters,
    checks: StepChecks,
    options: AdamWOptions,
}

impl AdamW {
    /// Makes an optimizer of these parameters. Its state is allocated at the first step, in the layouts of the parameters.
    pub fn new(parameters: Vec<Tensor>, options: AdamWOptions) -> AdamW {
        let masters = Masters::new(parameters.len(), options.master_weights);
        AdamW {
            moments: parameters.iter().map(|_| None).collect(),
            masters,
            checks: StepChecks::default(),
            parameters,
            options,
        }
    }
    /// Returns the settings.
    pub fn options(&self) -> AdamWOptions {
        self.options
    }
    /// Sets the settings of later steps. Masters are kept or not from the first step on.
    pub fn set_options(&mut self, options: AdamWOptions) {
        let master_weights = self.options.master_weights;
        self.options = AdamWOptions { master_weights, ..options };
    }
    /// Sets all settings, for a state that is loaded next.
    pub(super) fn restore_options(&mut self, options: AdamWOptions) {
        self.masters.switch(options.master_weights);
        self.options = options;
    }
}

impl Optimizer for AdamW {
    fn step_at(&mut self, site: CallSite) -> Result<()> {
        let (o, _scope) = (self.options, site.scope());
        self.checks.before(&self.parameters, self.lr(), site)?;
        let _quiet = no_grad();
        let mut due = vec![];
        for (i, (p, state)) in self.parameters.iter().zip(&mut self.moments).enumerate() {
            let Some(g) = p.grad() else { continue };
            let master = self.masters.of(i, p)?;
            let s = match state {
                Some(s) => s,
                None => state.insert(Moments { mean: state_like(p)?, square: state_like(p)?, steps: 0 }),
            };
            s.steps += 1;
            due.push((i, master, g, &*s));
        }
        for group in groups(due, |(_, p, ..)| p, |(.., s)| s.steps) {
            let runtime = smallvec![
                o.lr.into(),
                o.beta1.into(),
                o.beta2.into(),
                o.eps.into(),
                o.weight_decay.into(),
                group[0].3.steps.into(),
            ];
            let inputs: Vec<Option<&Tensor>> =
                group.iter().flat_map(|(_, p, g, s)| [Some(p), Some(g), Some(&s.mean), Some(&s.square)]).collect();
            invoke(op!("adamw_many"), &inputs, smallvec![], runtime, site)?;
            group.iter().try_for_each(|(i, ..)| self.masters.store(*i, &self.parameters[*i]))?;
        }
        self.masters.stored(with_gradients(&self.parameters));
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

/// Saves the settings, the numbers of steps, and tensors by number of the parameter: `3.mean`, `3.square`, `3.master`.
impl Stateful for AdamW {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        for (i, m) in self.moments.iter().enumerate() {
            let Some(m) = m else { continue };
            to.tensor(&format!("{i}.mean"), &m.mean);
            to.tensor(&format!("{i}.square"), &m.square);
        }
        self.masters.save(to);
        to.value("steps", self.moments.iter().map(|m| m.as_ref().map_or(0, |m| m.steps)).collect::<Vec<_>>())?;
        saved::save(self, to)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let _quiet = no_grad();
        let steps: Vec<i64> = from.value("steps")?.unwrap_or_default();
        saved::load(self, from)?;
        self.masters.load(&self.parameters, from)?;
        for (i, p) in self.parameters.iter().enumerate() {
            self.moments[i] = None;
            if !from.has(&format!("{i}.mean")) {
                continue;
            }
            let steps = steps.get(i).copied().unwrap_or(0);
            let m = self.moments[i].insert(Moments { mean: state_like(p)?, square: state_like(p)?, steps });
            from.fill(&format!("{i}.mean"), &m.mean);
            from.fill(&format!("{i}.square"), &m.square);
        }
        Ok(())
    }
}
