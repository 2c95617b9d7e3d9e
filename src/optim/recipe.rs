//! Common part of optimizers whose step is one op for many parameters: their state, masters, and what they save.
//!
//! An optimizer is its settings ([`Recipe`]) in a [`Stepper`]. The op takes each parameter with its gradient and with what is kept
//! of it, in the order of [`Recipe::kept`].

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
pub trait Recipe: Copy {
    /// Learning rate of the next step.
    fn lr(&self) -> f64;
    /// Sets the learning rate.
    fn set_lr(&mut self, lr: f64);
    /// Whether half parameters have f32 masters.
    fn master_weights(&self) -> bool;
    /// The same settings with or without masters.
    #[must_use]
    fn with_masters(self, on: bool) -> Self;
    /// State of each parameter, by the names under which it is saved; `None` where these settings need none.
    fn kept(&self) -> Vec<Option<&'static str>>;
    /// Initial value of new state.
    fn initial(&self) -> f64 {
        0.0
    }
    /// Whether the number of steps enters the step, and is saved.
    fn counts_steps(&self) -> bool {
        false
    }
    /// The op of many parameters.
    fn op(&self) -> Result<&'static Op>;
    /// The settings of the op.
    fn settings(&self, steps: i64) -> RuntimeAttrs;
    /// Carries out the step of parameters that lie alike.
    fn run(&self, due: &[Due<'_>], site: CallSite) -> Result<()> {
        let inputs: Vec<Option<&Tensor>> = due.iter().flat_map(Due::inputs).collect();
        invoke(self.op(), &inputs, smallvec![], self.settings(due[0].steps), site).map(drop)
    }
}

/// A parameter of a step: what is updated (the parameter or its master), and what belongs to it.
pub struct Due<'a> {
    number: usize,
    /// Tensor that is updated.
    pub target: Tensor,
    grad: Tensor,
    /// State of the parameter, in the order of [`Recipe::kept`].
    pub kept: &'a [Option<Tensor>],
    steps: i64,
}

impl Due<'_> {
    /// Number of the parameter's step, from 1.
    pub fn steps(&self) -> i64 {
        self.steps
    }
    /// All tensors, in the order in which the op takes them.
    pub fn inputs(&self) -> impl Iterator<Item = Option<&Tensor>> {
        [Some(&self.target), Some(&self.grad)].into_iter().chain(self.kept.iter().map(Option::as_ref))
    }
}

/// State of one parameter.
struct Kept {
    tensors: Vec<Option<Tensor>>,
    steps: i64,
}

/// An optimizer of given settings. The state of half-precision parameters is f32.
pub struct Stepper<R> {
    parameters: Vec<Tensor>,
    kept: Vec<Option<Kept>>,
    masters: Masters,
    checks: StepChecks,
    options: R,
}

impl<R: Recipe> Stepper<R> {
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

    /// Makes the missing state of parameter `i`.
    fn ready(&mut self, i: usize) -> Result<()> {
        let names = self.options.kept();
        let mut kept = self.kept[i].take().unwrap_or(Kept { tensors: vec![], steps: 0 });
        kept.tensors.resize(names.len(), None);
        for (t, name) in kept.tensors.iter_mut().zip(names) {
            match name {
                None => *t = None,
                Some(_) if t.is_none() => *t = Some(self.fresh(&self.parameters[i])?),
                Some(_) => {}
            }
        }
        self.kept[i] = Some(kept);
        Ok(())
    }

    /// Adds the tensors and the numbers of steps.
    pub(super) fn save(&self, to: &mut SaveState) -> Result<()> {
        let names = self.options.kept();
        for (i, kept) in self.kept.iter().enumerate() {
            for (name, t) in names.iter().zip(kept.iter().flat_map(|k| &k.tensors)) {
                if let (Some(name), Some(t)) = (name, t) {
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
        let names = self.options.kept();
        for i in 0..self.parameters.len() {
            self.kept[i] = None;
            if !names.iter().flatten().any(|name| from.has(&format!("{i}.{name}"))) {
                continue;
            }
            self.ready(i)?;
            let Some(kept) = &mut self.kept[i] else { continue };
            kept.steps = steps.get(i).copied().unwrap_or(0);
            for (name, t) in names.iter().zip(&kept.tensors) {
                if let (Some(name), Some(t)) = (name, t) {
                    from.fill(&format!("{i}.{name}"), t);
                }
            }
        }
        Ok(())
    }
}

impl<R: Recipe> Optimizer for Stepper<R> {
    fn step_at(&mut self, site: CallSite) -> Result<()> {
        let _scope = site.scope();
        self.checks.before(&self.parameters, self.lr(), site)?;
        let _quiet = no_grad();
        for i in 0..self.parameters.len() {
            if self.parameters[i].grad().is_some() {
                self.ready(i)?;
            }
        }
        let mut due = vec![];
        for (i, (p, kept)) in self.parameters.iter().zip(&mut self.kept).enumerate() {
            let (Some(grad), Some(kept)) = (p.grad(), kept) else { continue };
            kept.steps += 1;
            let target = self.masters.of(i, p)?;
            due.push(Due { number: i, target, grad, kept: &kept.tensors, steps: kept.steps });
        }
        let counts = self.options.counts_steps();
        for group in groups(due, |d| &d.target, |d| if counts { d.steps } else { 0 }) {
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
