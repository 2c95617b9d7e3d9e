//! Stochastic gradient descent.

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

/// Settings of [`Sgd`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SgdOptions {
    /// Learning rate of each step.
    pub lr: f64,
    /// Momentum: factor of the previous direction; 0 keeps no state.
    pub momentum: f64,
    /// Dampening: the gradient enters the direction with factor 1 - dampening.
    pub dampening: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for SgdOptions {
    fn default() -> SgdOptions {
        SgdOptions { lr: 0.1, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false, master_weights: true }
    }
}

/// Stochastic gradient descent with momentum, with PyTorch's formula. The state of half-precision parameters is f32.
pub struct Sgd {
    parameters: Vec<Tensor>,
    momentum: Vec<Option<Tensor>>,
    masters: Masters,
    checks: StepChecks,
    options: SgdOptions,
}

impl Sgd {
    /// Makes an optimizer of these parameters. Its state is allocated at the first step, in the layouts of the parameters.
    pub fn new(parameters: Vec<Tensor>, options: SgdOptions) -> Sgd {
        let masters = Masters::new(parameters.len(), options.master_weights);
        Sgd { momentum: vec![None; parameters.len()], masters, checks: StepChecks::default(), parameters, options }
    }
    /// Returns the settings.
    pub fn options(&self) -> SgdOptions {
        self.options
    }
    /// Sets the settings of later steps. Masters are kept or not from the first step on.
    pub fn set_options(&mut self, options: SgdOptions) {
        let master_weights = self.options.master_weights;
        self.options = SgdOptions { master_weights, ..options };
    }
    /// Sets all settings, for a state that is loaded next.
    pub(super) fn restore_options(&mut self, options: SgdOptions) {
        self.masters.switch(options.master_weights);
        self.options = options;
    }
}

impl Optimizer for Sgd {
    fn step_at(&mut self, site: CallSite) -> Result<()> {
        let (o, _scope) = (self.options, site.scope());
        self.checks.before(&self.parameters, self.lr(), site)?;
        let _quiet = no_grad();
        let mut due = vec![];
        for (i, (p, state)) in self.parameters.iter().zip(&mut self.momentum).enumerate() {
            let Some(g) = p.grad() else { continue };
            let master = self.masters.of(i, p)?;
            let first = state.is_none();
            if first && o.momentum != 0.0 {
                *state = Some(state_like(p)?);
            }
            due.push((i, master, g, state.as_ref(), first));
        }
        for group in groups(due, |(_, p, ..)| p, |(.., state, first)| (state.is_some(), *first)) {
            let runtime = smallvec![
                o.lr.into(),
                o.momentum.into(),
                o.dampening.into(),
                o.weight_decay.into(),
                o.nesterov.into(),
                group[0].4.into(),
            ];
            let inputs: Vec<Option<&Tensor>> =
                group.iter().flat_map(|(_, p, g, state, _)| [Some(p), Some(g), *state]).collect();
            invoke(op!("sgd_many"), &inputs, smallvec![], runtime, site)?;
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

/// Saves the settings, and tensors by number of the parameter: `3.momentum`, `3.master`.
impl Stateful for Sgd {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        let there = self.momentum.iter().enumerate().filter_map(|(i, m)| Some((i, m.as_ref()?)));
        there.for_each(|(i, m)| to.tensor(&format!("{i}.momentum"), m));
        self.masters.save(to);
        saved::save(self, to)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let _quiet = no_grad();
        saved::load(self, from)?;
        self.masters.load(&self.parameters, from)?;
        for (i, p) in self.parameters.iter().enumerate() {
            let name = format!("{i}.momentum");
            self.momentum[i] = if from.has(&name) { Some(state_like(p)?) } else { None };
            if let Some(m) = &self.momentum[i] {
                from.fill(&name, m);
            }
        }
        Ok(())
    }
}
