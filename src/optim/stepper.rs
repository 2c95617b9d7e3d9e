//! Common part of all optimizers: state and masters of the parameters, the step, and what is saved.
//!
//! An optimizer is its settings ([`OptimizerRule`]) in a [`Stepper`]. The step is one op for many parameters; it takes each parameter with
//! its gradient and its state, in the order of [`OptimizerRule::state`].

use super::captured::{StepNumbers, StepSource, captured};
use super::many::groups;
use super::master::{Masters, is_state_like, state_like};
use super::rule::{OptimizerRule, ParamState, Scalars, StepCall, StepCount};
use super::{Optimizer, StepChecks, check_rate, with_gradients};
use crate::context::no_grad;
use crate::error::{CallSite, Result};
use crate::interpreter::{address_of, host_of_capture, is_capturing, outside_capture};
use crate::ops::{Op, RuntimeAttrs};
use crate::state::{LoadState, SaveState};
use crate::tensor::Tensor;
use crate::trace;
use std::sync::{Arc, Mutex, MutexGuard};

/// The numbers of an optimizer, which graphs that have captured its step share with it.
struct Numbers<R> {
    options: R,
    /// Steps of each parameter so far, and whether its state was made since the last one.
    counts: Vec<StepCount>,
    /// How often a state was loaded that has no master of a half parameter that had one.
    without_master: usize,
}

impl<R: OptimizerRule> Numbers<R> {
    /// Refuses settings that are none.
    fn check(&self, site: CallSite) -> Result<()> {
        self.options.check().map_err(|e| e.at(site))?;
        check_rate(self.options.lr(), site)
    }
    /// Counts a step of a parameter.
    fn advance(&mut self, i: usize) -> StepCount {
        let count = &mut self.counts[i];
        count.steps += 1;
        let now = *count;
        count.is_new = false;
        now
    }
}

type Shared<R> = Arc<Mutex<Numbers<R>>>;

fn lock<R>(numbers: &Mutex<Numbers<R>>) -> MutexGuard<'_, Numbers<R>> {
    numbers.lock().unwrap_or_else(|e| e.into_inner())
}

impl<R: OptimizerRule> StepNumbers for Mutex<Numbers<R>> {
    fn check(&self, site: CallSite) -> Result<()> {
        lock(self).check(site)
    }
    fn op(&self) -> Result<&'static Op> {
        lock(self).options.op()
    }
    fn advance(&self, i: usize) -> StepCount {
        lock(self).advance(i)
    }
    fn settings(&self, at: StepCount) -> RuntimeAttrs {
        lock(self).options.settings(at)
    }
    fn scalars(&self, at: StepCount) -> Scalars {
        lock(self).options.scalars(at)
    }
    fn captured_settings(&self) -> String {
        lock(self).options.captured_settings()
    }
    fn masters(&self) -> (bool, usize) {
        let numbers = lock(self);
        (numbers.options.master_weights(), numbers.without_master)
    }
}

/// An optimizer of given settings. The state of half-precision parameters is f32.
pub struct Stepper<R> {
    parameters: Vec<Tensor>,
    /// Tensors of state of each parameter; `None` before its first step.
    kept: Vec<Option<Vec<Option<Tensor>>>>,
    numbers: Shared<R>,
    masters: Masters,
    checks: StepChecks,
}

impl<R: OptimizerRule> Stepper<R> {
    /// Makes an optimizer of these parameters. Its state is allocated at the first step, in the layouts of the parameters.
    pub fn new(parameters: Vec<Tensor>, options: R) -> Stepper<R> {
        let masters = Masters::new(parameters.len(), options.master_weights());
        let counts = vec![StepCount::default(); parameters.len()];
        Stepper {
            kept: parameters.iter().map(|_| None).collect(),
            numbers: Arc::new(Mutex::new(Numbers { options, counts, without_master: 0 })),
            masters,
            checks: StepChecks::default(),
            parameters,
        }
    }
    /// Returns the settings.
    pub fn options(&self) -> R {
        lock(&self.numbers).options
    }
    /// Sets the settings of later steps. Masters are kept or not from the first step on; state that the new settings need and
    /// the old ones did not starts at the next step.
    pub fn set_options(&mut self, options: R) {
        let mut numbers = lock(&self.numbers);
        numbers.options = options.with_masters(numbers.options.master_weights());
    }
    /// Sets all settings, for a state that is loaded next.
    pub(super) fn restore_options(&mut self, options: R) {
        self.masters.switch(options.master_weights());
        lock(&self.numbers).options = options;
    }

    /// A new tensor of state of a parameter, `None` where it has none of that name.
    fn fresh(&self, name: &str, p: &Tensor) -> Result<Option<Tensor>> {
        let options = self.options();
        let Some(t) = state_like(p, options.shape_of_state(name, p.ndim()))? else { return Ok(None) };
        let initial = options.initial(name);
        Ok(Some(if initial != 0.0 { t.add(initial)? } else { t }))
    }

    /// The half parameters that have masters, with these, by number.
    fn halves(&self) -> Vec<(usize, Tensor, Tensor)> {
        let all = self.parameters.iter().enumerate();
        all.filter_map(|(i, p)| Some((i, p.clone(), self.masters.copy_of(i)?.clone()))).collect()
    }

    /// Makes the missing state of parameter `i`; `state` is what is needed. State that is not needed now stays: settings that need it
    /// again go on with it.
    fn ready(&mut self, i: usize, state: &[(&str, bool)]) -> Result<()> {
        let mut kept = self.kept[i].take().unwrap_or_default();
        kept.resize(state.len(), None);
        for (t, (name, _)) in kept.iter_mut().zip(state).filter(|(t, (_, needed))| *needed && t.is_none()) {
            *t = self.fresh(name, &self.parameters[i])?;
            lock(&self.numbers).counts[i].is_new |= t.is_some();
        }
        self.kept[i] = Some(kept);
        Ok(())
    }

    /// The names of the state of parameter `i`, and whether the settings or a state that is loaded need it.
    fn wanted(&self, i: usize, by: &LoadState<'_>) -> Vec<(&'static str, bool)> {
        let state = self.options().state().into_iter();
        state.map(|(name, needed)| (name, needed || by.has(&format!("{i}.{name}")))).collect()
    }

    /// The counts of the parameters in the step that begins. A graph that is captured counts it when it runs.
    fn count(&self, due: &[usize]) -> Vec<StepCount> {
        let mut numbers = lock(&self.numbers);
        let next = |i: &usize| match is_capturing() {
            true => StepCount { steps: numbers.counts[*i].steps + 1, ..numbers.counts[*i] },
            false => numbers.advance(*i),
        };
        due.iter().map(next).collect()
    }

    /// Adds the tensors and the numbers of steps.
    pub(super) fn save(&self, to: &mut SaveState) -> Result<()> {
        let numbers = lock(&self.numbers);
        let state = numbers.options.state();
        for (i, kept) in self.kept.iter().enumerate() {
            for ((name, _), t) in state.iter().zip(kept.iter().flatten()) {
                if let Some(t) = t {
                    to.tensor(&format!("{i}.{name}"), t);
                }
            }
        }
        self.masters.save(to);
        to.host(
            "step",
            Arc::new(StepSource {
                numbers: self.numbers.clone(),
                halves: self.halves(),
                parameters: self.parameters.len(),
            }),
        );
        if numbers.options.counts_steps() {
            to.value("steps", numbers.counts.iter().map(|c| c.steps).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Makes the wanted tensors of state, as the first step does.
    pub(super) fn make_state(&mut self, wanted: &LoadState<'_>) -> Result<()> {
        let _quiet = no_grad();
        self.masters.prepare(&self.parameters, wanted)?;
        for i in 0..self.parameters.len() {
            let state = self.wanted(i, wanted);
            if state.iter().any(|(name, _)| wanted.has(&format!("{i}.{name}"))) {
                self.ready(i, &state)?;
            }
        }
        Ok(())
    }

    /// Asks for the tensors and the numbers of steps, which the settings that are in force need.
    pub(super) fn load(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let _quiet = no_grad();
        let options = self.options();
        let steps: Vec<i64> = if options.counts_steps() { from.value("steps")?.unwrap_or_default() } else { vec![] };
        if self.masters.load(&self.parameters, from)? {
            lock(&self.numbers).without_master += 1;
        }
        for i in 0..self.parameters.len() {
            let state = self.wanted(i, from);
            // What a graph has captured is filled, not replaced.
            let (there, p) = (self.kept[i].take(), &self.parameters[i]);
            let fits = |kept: &Vec<Option<Tensor>>| {
                let named = state.iter().zip(kept).filter_map(|((name, _), t)| Some((name, t.as_ref()?)));
                named.into_iter().all(|(name, t)| is_state_like(p, options.shape_of_state(name, p.ndim()), t))
            };
            self.kept[i] = there.filter(fits);
            for (t, _) in self.kept[i].iter_mut().flatten().zip(&state).filter(|(_, (_, wanted))| !wanted) {
                *t = None;
            }
            if !state.iter().any(|(name, _)| from.has(&format!("{i}.{name}"))) {
                lock(&self.numbers).counts[i] = StepCount { steps: 0, is_new: true };
                for ((name, _), t) in state.iter().zip(self.kept[i].iter().flatten()) {
                    if let Some(t) = t {
                        t.fill_(options.initial(name))?;
                    }
                }
                continue;
            }
            self.ready(i, &state)?;
            lock(&self.numbers).counts[i] = StepCount { steps: steps.get(i).copied().unwrap_or(0), is_new: false };
            for ((name, needed), t) in state.iter().zip(self.kept[i].iter().flatten()) {
                if let (true, Some(t)) = (needed, t) {
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
        lock(&self.numbers).check(site)?;
        let options = self.options();
        self.checks.before(&self.parameters, |p| options.check_parameter(p), site)?;
        let _quiet = no_grad();
        let state = options.state();
        let due: Vec<usize> = with_gradients(&self.parameters).map(|(i, _)| i).collect();
        // A graph that is captured needs the state as its variables.
        outside_capture(site, || due.iter().try_for_each(|i| self.ready(*i, &state)))?;
        let mut params = vec![];
        for (i, count) in due.iter().zip(self.count(&due)) {
            let p = &self.parameters[*i];
            let (Some(grad), Some(kept)) = (p.grad(), &self.kept[*i]) else { continue };
            let grad = if options.maximize() { grad.neg()? } else { grad };
            let needed = kept.iter().zip(&state).map(|(t, (_, needed))| t.clone().filter(|_| *needed)).collect();
            let target = self.masters.of(*i, p, site)?;
            params.push(ParamState { number: *i, target, grad, state: needed, count });
        }
        let counts = options.counts_steps();
        let groups = groups(params, |p| &p.target, |p| (counts.then_some(p.count.steps), p.count.is_new));
        let host = match is_capturing() {
            true => {
                let step = captured(self.numbers.clone(), &self.halves(), numbers_of(&groups))?;
                host_of_capture(options.op()?.name(), &step, site)?
            }
            false => None,
        };
        for (n, group) in groups.iter().enumerate() {
            options.run(group, StepCall { site, group: host.map(|h| (h, n as u32)) })?;
            group.iter().try_for_each(|d| self.masters.store(d.number, &self.parameters[d.number]))?;
        }
        drop(groups);
        self.masters.stored(with_gradients(&self.parameters));
        if !is_capturing() {
            trace::step(address_of(&self.numbers));
        }
        Ok(())
    }
    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }
    fn lr(&self) -> f64 {
        self.options().lr()
    }
    fn set_lr(&mut self, lr: f64) {
        lock(&self.numbers).options.set_lr(lr);
    }
}

/// The numbers of the parameters of each group.
fn numbers_of(groups: &[Vec<ParamState>]) -> Vec<Vec<usize>> {
    groups.iter().map(|group| group.iter().map(|p| p.number).collect()).collect()
}
