//! Common part of all optimizers: state and masters of the parameters, the step, and what is saved.
//!
//! An optimizer is its settings ([`OptimizerRule`]) in a [`Stepper`]. The step is one op for many parameters; it takes each parameter with
//! its gradient and its state, in the order of [`OptimizerRule::state`].

use super::many::groups;
use super::master::{Masters, state_like};
use super::{Optimizer, StepChecks, with_gradients};
use crate::context::no_grad;
use crate::error::{CallSite, Result};
use crate::functional::invoke;
use crate::ops::{Op, RuntimeAttrs};
use crate::state::{LoadState, SaveState};
use crate::tensor::Tensor;
use smallvec::smallvec;

/// The settings of an optimizer, and its step.
pub trait OptimizerRule: Copy {
    /// Learning rate of the next step.
    fn lr(&self) -> f64;
    /// Sets the learning rate.
    fn set_lr(&mut self, lr: f64);
    /// Whether half parameters have f32 masters.
    fn master_weights(&self) -> bool;
    /// The same settings with or without masters.
    #[must_use]
    fn with_masters(self, on: bool) -> Self;
    /// Tensors of state of each parameter, in the order in which the op takes them: the name under which each is saved, and whether
    /// these settings need it.
    fn state(&self) -> Vec<(&'static str, bool)>;
    /// Initial value of new state.
    fn initial(&self) -> f64 {
        0.0
    }
    /// Whether the number of steps enters the step, and is saved.
    fn counts_steps(&self) -> bool {
        false
    }
    /// Refuses settings that contradict each other. Each step asks it.
    ///
    /// # Errors
    /// If they do.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// The op of many parameters.
    fn op(&self) -> Result<&'static Op>;
    /// The settings of the op for a parameter. They depend on the parameter by [`ParamState::steps`], where the rule counts them, and
    /// [`ParamState::is_new`] only: parameters that have these in common go together.
    fn settings(&self, p: &ParamState<'_>) -> RuntimeAttrs;
    /// Carries out the step of parameters with the same layout and the same [`settings`](OptimizerRule::settings).
    fn run(&self, due: &[ParamState<'_>], site: CallSite) -> Result<()> {
        // The op may have no input for the last state, which these settings do not need.
        let (op, settings) = (self.op()?, self.settings(&due[0]));
        let inputs: Vec<Option<&Tensor>> = due.iter().flat_map(|p| p.inputs().take(op.sig.repeating())).collect();
        invoke(Ok(op), &inputs, smallvec![], settings, site).map(drop)
    }
}

/// The methods of an [`OptimizerRule`] that are fields of the settings.
macro_rules! options_fields {
    () => {
        fn lr(&self) -> f64 {
            self.lr
        }
        fn set_lr(&mut self, lr: f64) {
            self.lr = lr;
        }
        fn master_weights(&self) -> bool {
            self.master_weights
        }
        fn with_masters(self, master_weights: bool) -> Self {
            Self { master_weights, ..self }
        }
    };
}
pub(super) use options_fields;

/// A parameter of a step: what is updated (the parameter or its master), and what belongs to it.
pub struct ParamState<'a> {
    number: usize,
    /// Tensor that is updated.
    pub target: Tensor,
    grad: Tensor,
    /// State of the parameter, in the order of [`OptimizerRule::state`]; `None` where the settings need none.
    pub state: &'a [Option<Tensor>],
    steps: i64,
    new: bool,
}

impl ParamState<'_> {
    /// Number of the parameter's step, from 1.
    pub fn steps(&self) -> i64 {
        self.steps
    }
    /// Whether its state was made for this step.
    pub fn is_new(&self) -> bool {
        self.new
    }
    /// All tensors, in the order in which the op takes them.
    pub fn inputs(&self) -> impl Iterator<Item = Option<&Tensor>> {
        [Some(&self.target), Some(&self.grad)].into_iter().chain(self.state.iter().map(Option::as_ref))
    }
}

/// State of one parameter.
#[derive(Default)]
struct StoredState {
    tensors: Vec<Option<Tensor>>,
    steps: i64,
    /// Whether tensors were made since the last step.
    new: bool,
}

/// An optimizer of given settings. The state of half-precision parameters is f32.
pub struct Stepper<R> {
    parameters: Vec<Tensor>,
    kept: Vec<Option<StoredState>>,
    masters: Masters,
    checks: StepChecks,
    options: R,
}

impl<R: OptimizerRule> Stepper<R> {
    /// Makes an optimizer of these parameters. Its state is allocated at the first step, in the layouts of the parameters.
    pub fn new(parameters: Vec<Tensor>, options: R) -> Stepper<R> {
        let masters = Masters::new(parameters.len(), options.master_weights());
        Stepper {
            kept: parameters.iter().map(|_| None).collect(),
            masters,
            checks: StepChecks::default(),
            parameters,
            options,
        }
    }
    /// Returns the settings.
    pub fn options(&self) -> R {
        self.options
    }
    /// Sets the settings of later steps. Masters are kept or not from the first step on; state that the new settings need and
    /// the old ones did not starts at the next step.
    pub fn set_options(&mut self, options: R) {
        self.options = options.with_masters(self.options.master_weights());
    }
    /// Sets all settings, for a state that is loaded next.
    pub(super) fn restore_options(&mut self, options: R) {
        self.masters.switch(options.master_weights());
        self.options = options;
    }

    fn fresh(&self, p: &Tensor) -> Result<Tensor> {
        let t = state_like(p)?;
        if self.options.initial() != 0.0 { t.add(self.options.initial()) } else { Ok(t) }
    }

    /// Makes the missing state of parameter `i`; `state` is what the settings need.
    fn ready(&mut self, i: usize, state: &[(&str, bool)]) -> Result<()> {
        let mut kept = self.kept[i].take().unwrap_or_default();
        kept.tensors.resize(state.len(), None);
        for (t, (_, needed)) in kept.tensors.iter_mut().zip(state) {
            match (*needed, &t) {
                (false, _) => *t = None,
                (true, None) => {
                    *t = Some(self.fresh(&self.parameters[i])?);
                    kept.new = true;
                }
                (true, Some(_)) => {}
            }
        }
        self.kept[i] = Some(kept);
        Ok(())
    }

    /// Adds the tensors and the numbers of steps.
    pub(super) fn save(&self, to: &mut SaveState) -> Result<()> {
        let state = self.options.state();
        for (i, kept) in self.kept.iter().enumerate() {
            for ((name, needed), t) in state.iter().zip(kept.iter().flat_map(|k| &k.tensors)) {
                if let (true, Some(t)) = (needed, t) {
                    to.tensor(&format!("{i}.{name}"), t);
                }
            }
        }
        self.masters.save(to);
        if self.options.counts_steps() {
            to.value("steps", self.kept.iter().map(|k| k.as_ref().map_or(0, |k| k.steps)).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Asks for the tensors and the numbers of steps, which the settings that are in force need.
    pub(super) fn load(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let _quiet = no_grad();
        let steps: Vec<i64> =
            if self.options.counts_steps() { from.value("steps")?.unwrap_or_default() } else { vec![] };
        self.masters.load(&self.parameters, from)?;
        let state = self.options.state();
        for i in 0..self.parameters.len() {
            self.kept[i] = None;
            if !state.iter().any(|(name, needed)| *needed && from.has(&format!("{i}.{name}"))) {
                continue;
            }
            self.ready(i, &state)?;
            let Some(kept) = &mut self.kept[i] else { continue };
            (kept.steps, kept.new) = (steps.get(i).copied().unwrap_or(0), false);
            for ((name, _), t) in state.iter().zip(&kept.tensors) {
                if let Some(t) = t {
                    from.fill(&format!("{i}.{name}"), t);
                }
            }
        }
        Ok(())
    }
}

impl<R: OptimizerRule> Optimizer for Stepper<R> {
    fn step_at(&mut self, site: CallSite) -> Result<()> {
        let _scope = site.scope();
        self.options.check().map_err(|e| e.at(site))?;
        self.checks.before(&self.parameters, self.lr(), site)?;
        let _quiet = no_grad();
        let state = self.options.state();
        for i in 0..self.parameters.len() {
            if self.parameters[i].grad().is_some() {
                self.ready(i, &state)?;
            }
        }
        let mut due = vec![];
        for (i, (p, kept)) in self.parameters.iter().zip(&mut self.kept).enumerate() {
            let (Some(grad), Some(kept)) = (p.grad(), kept) else { continue };
            kept.steps += 1;
            let new = std::mem::take(&mut kept.new);
            let target = self.masters.of(i, p)?;
            due.push(ParamState { number: i, target, grad, state: &kept.tensors, steps: kept.steps, new });
        }
        let counts = self.options.counts_steps();
        for group in groups(due, |p| &p.target, |p| (counts.then_some(p.steps), p.new)) {
            self.options.run(&group, site)?;
            group.iter().try_for_each(|d| self.masters.store(d.number, &self.parameters[d.number]))?;
        }
        self.masters.stored(with_gradients(&self.parameters));
        Ok(())
    }
    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }
    fn lr(&self) -> f64 {
        self.options.lr()
    }
    fn set_lr(&mut self, lr: f64) {
        self.options.set_lr(lr);
    }
}
