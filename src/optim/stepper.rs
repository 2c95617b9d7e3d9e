//! Common part of all optimizers: state and masters of the parameters, the step, and what is saved.
//!
//! An optimizer is its settings ([`OptimizerRule`]) in a [`Stepper`]. The step is one op for many parameters; it takes each parameter with
//! its gradient and its state, in the order of [`OptimizerRule::state`].

use super::many::groups;
use super::master::{Masters, follow, is_state_like, state_like};
use super::{Optimizer, StepChecks, check_rate, with_gradients};
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{
    Call, HostCalls, HostNumbers, HostObject, HostSource, address_of, host_of_capture, is_capturing, outside_capture,
};
use crate::ops::{Op, RuntimeAttrs};
use crate::state::{LoadState, SaveState};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;
use std::sync::{Arc, Mutex, MutexGuard};

/// The settings of an optimizer, and its step.
pub trait OptimizerRule: Copy + Send + Sync + 'static {
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
    /// The settings of the op for parameters that have taken these steps: they go together.
    fn settings(&self, at: StepCount) -> RuntimeAttrs;
    /// Carries out the step of parameters with the same layout and the same [`settings`](OptimizerRule::settings).
    fn run(&self, due: &[ParamState<'_>], call: StepCall) -> Result<()> {
        // The op may have no input for the last state, which these settings do not need.
        let (op, settings) = (self.op()?, self.settings(due[0].count));
        let inputs: Vec<Option<&Tensor>> = due.iter().flat_map(|p| p.inputs().take(op.sig.repeating())).collect();
        Call::new(op, &inputs).runtime(settings).host(call.settings()).at(call.site).run().map(drop)
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

/// Steps of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCount {
    /// Number of the parameter's step, from 1.
    pub steps: i64,
    /// Whether its state was made for this step.
    pub is_new: bool,
}

/// A call of a step: its line, and where a graph that captures it finds its numbers at each run.
#[derive(Clone, Copy)]
pub struct StepCall {
    /// Line that called `step`.
    pub site: CallSite,
    group: Option<(HostCalls, u32)>,
}

impl StepCall {
    /// Where the [`settings`](OptimizerRule::settings) of the group are found.
    pub(super) fn settings(self) -> Option<HostNumbers> {
        self.group.map(|(host, n)| host.call(2 * n))
    }
    /// Where the learning rate alone is found.
    pub(super) fn rate(self) -> Option<HostNumbers> {
        self.group.map(|(host, n)| host.call(2 * n + 1))
    }
}

/// A parameter of a step: what is updated (the parameter or its master), and what belongs to it.
pub struct ParamState<'a> {
    number: usize,
    /// Tensor that is updated.
    pub target: Tensor,
    grad: Tensor,
    /// State of the parameter, in the order of [`OptimizerRule::state`]; `None` where the settings need none.
    pub state: &'a [Option<Tensor>],
    /// Steps of the parameter, this one included.
    pub count: StepCount,
}

impl ParamState<'_> {
    /// All tensors, in the order in which the op takes them.
    pub fn inputs(&self) -> impl Iterator<Item = Option<&Tensor>> {
        [Some(&self.target), Some(&self.grad)].into_iter().chain(self.state.iter().map(Option::as_ref))
    }
}

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

/// The numbers of an optimizer of any settings. What a captured step does with them is compiled once.
trait StepNumbers: Send + Sync {
    fn check(&self, site: CallSite) -> Result<()>;
    fn op(&self) -> Result<&'static Op>;
    fn advance(&self, i: usize) -> StepCount;
    fn settings(&self, at: StepCount) -> RuntimeAttrs;
    fn lr(&self) -> f64;
    /// Whether half parameters have masters, and how often a state was loaded that lacks one.
    fn masters(&self) -> (bool, usize);
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
    fn lr(&self) -> f64 {
        lock(self).options.lr()
    }
    fn masters(&self) -> (bool, usize) {
        let numbers = lock(self);
        (numbers.options.master_weights(), numbers.without_master)
    }
}

/// A half parameter of a captured step.
struct Half {
    parameter: Tensor,
    master: Tensor,
    /// Version of the parameter at which its value was the master, rounded; `None` if that is not known.
    at: Option<u64>,
}

/// A step that a graph has captured. At each run it counts the step and computes the settings of its calls.
struct CapturedStep {
    numbers: Arc<dyn StepNumbers>,
    op: &'static Op,
    /// Parameters of each call, by number.
    groups: Vec<Vec<usize>>,
    /// Counts of each group in the present run.
    now: Mutex<Vec<StepCount>>,
    /// Half parameters that have masters.
    halves: Mutex<Vec<Half>>,
    /// Masters at the capture: the answer of [`StepNumbers::masters`].
    masters: (bool, usize),
}

impl HostObject for CapturedStep {
    fn begin(&self, site: CallSite) -> Result<()> {
        let mut halves = self.halves.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(half) = halves.first()
            && self.numbers.masters() != self.masters
        {
            return Err(Error::unsupported(format!(
                "a state was loaded that does not have the f32 masters, of {:?} for example, that the graph steps",
                half.parameter
            ))
            .at(site)
            .help("build the graph again after such a load"));
        }
        for half in halves.iter_mut().filter(|h| h.at != Some(h.parameter.version()) || h.parameter.is_shared_outside())
        {
            no_grad().run(|| follow(&half.master, &half.parameter)).map_err(|e| e.at(site))?;
            half.at = Some(half.parameter.version());
        }
        Ok(())
    }
    fn advance(&self, site: CallSite) -> Result<()> {
        self.numbers.check(site)?;
        let op = self.numbers.op()?;
        if !std::ptr::eq(op, self.op) {
            return Err(Error::argument(format!("the settings need {} now, not {}", op.name(), self.op.name()))
                .at(site)
                .help("build the graph again after such a change"));
        }
        let mut now = vec![];
        for group in &self.groups {
            let counts: Vec<StepCount> = group.iter().map(|i| self.numbers.advance(*i)).collect();
            if counts.iter().any(|c| *c != counts[0]) {
                return Err(Error::unsupported(
                    "parameters that step together in the graph have taken different numbers of steps",
                )
                .at(site)
                .help("build the graph again after steps that train a part of the parameters"));
            }
            now.push(counts[0]);
        }
        *self.now.lock().unwrap_or_else(|e| e.into_inner()) = now;
        Ok(())
    }
    fn numbers(&self, call: u32) -> Result<RuntimeAttrs> {
        if call % 2 == 1 {
            return Ok(smallvec![self.numbers.lr().into()]);
        }
        let now = self.now.lock().unwrap_or_else(|e| e.into_inner());
        let count = now.get(call as usize / 2).copied();
        count.map(|c| self.numbers.settings(c)).ok_or_else(|| Error::registry("a captured step has no such call"))
    }
    fn done(&self) {
        let mut halves = self.halves.lock().unwrap_or_else(|e| e.into_inner());
        halves.iter_mut().for_each(|h| h.at = Some(h.parameter.version()));
    }
    fn address(&self) -> usize {
        address_of(&self.numbers)
    }
    fn saved(&self) -> String {
        // Numbers and a name: always JSON.
        serde_json::to_string(&SavedStep { op: self.op.full_name(), groups: self.groups.clone() }).unwrap_or_default()
    }
}

/// A captured step as saved graphs have it.
#[derive(Serialize, Deserialize)]
struct SavedStep {
    op: String,
    groups: Vec<Vec<usize>>,
}

/// An optimizer, as graphs that are loaded take its numbers.
struct StepSource {
    numbers: Arc<dyn StepNumbers>,
    /// Half parameters that have masters, by number.
    halves: Vec<(usize, Tensor, Tensor)>,
    parameters: usize,
}

impl HostSource for StepSource {
    fn address(&self) -> usize {
        address_of(&self.numbers)
    }
    fn restore(&self, saved: &str) -> Result<Arc<dyn HostObject>> {
        let wrong = |e| Error::parse("the step of the graph is not that of an optimizer").because(e);
        let SavedStep { op, groups } = serde_json::from_str(saved).map_err(wrong)?;
        let own = self.numbers.op()?;
        if own.full_name() != op {
            return Err(Error::argument(format!("the graph steps with {op}, this optimizer with {}", own.full_name()))
                .help("make the optimizer with the settings that it had when the graph was saved"));
        }
        let count = self.parameters;
        if let Some(i) = groups.iter().flatten().find(|i| **i >= count) {
            return Err(Error::argument(format!(
                "the graph steps parameter {i} of the optimizer, which has {count} parameters"
            ))
            .help("give it the parameters that it had when the graph was saved"));
        }
        if groups.iter().any(Vec::is_empty) {
            return Err(Error::parse("the step of the graph has a group without parameters"));
        }
        captured(self.numbers.clone(), &self.halves, groups)
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

    fn fresh(&self, p: &Tensor) -> Result<Tensor> {
        let (t, initial) = (state_like(p)?, self.options().initial());
        if initial != 0.0 { t.add(initial) } else { Ok(t) }
    }

    /// The half parameters that have masters, with these, by number.
    fn halves(&self) -> Vec<(usize, Tensor, Tensor)> {
        let all = self.parameters.iter().enumerate();
        all.filter_map(|(i, p)| Some((i, p.clone(), self.masters.copy_of(i)?.clone()))).collect()
    }

    /// Makes the missing state of parameter `i`; `state` is what the settings need.
    fn ready(&mut self, i: usize, state: &[(&str, bool)]) -> Result<()> {
        let mut kept = self.kept[i].take().unwrap_or_default();
        kept.resize(state.len(), None);
        for (t, (_, needed)) in kept.iter_mut().zip(state) {
            match (*needed, &t) {
                (false, _) => *t = None,
                (true, None) => {
                    *t = Some(self.fresh(&self.parameters[i])?);
                    lock(&self.numbers).counts[i].is_new = true;
                }
                (true, Some(_)) => {}
            }
        }
        self.kept[i] = Some(kept);
        Ok(())
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
            for ((name, needed), t) in state.iter().zip(kept.iter().flatten()) {
                if let (true, Some(t)) = (needed, t) {
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
        let (_quiet, state) = (no_grad(), self.options().state());
        self.masters.prepare(&self.parameters, wanted)?;
        for i in 0..self.parameters.len() {
            if state.iter().any(|(name, needed)| *needed && wanted.has(&format!("{i}.{name}"))) {
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
        let state = options.state();
        for i in 0..self.parameters.len() {
            // What a graph has captured is filled, not replaced.
            let there = self.kept[i].take();
            let fits =
                |kept: &Vec<Option<Tensor>>| kept.iter().flatten().all(|t| is_state_like(&self.parameters[i], t));
            self.kept[i] = there.filter(fits);
            if !state.iter().any(|(name, needed)| *needed && from.has(&format!("{i}.{name}"))) {
                lock(&self.numbers).counts[i] = StepCount { steps: 0, is_new: true };
                let initial = options.initial();
                for t in self.kept[i].iter().flatten().flatten() {
                    t.fill_(initial)?;
                }
                continue;
            }
            self.ready(i, &state)?;
            lock(&self.numbers).counts[i] = StepCount { steps: steps.get(i).copied().unwrap_or(0), is_new: false };
            for ((name, _), t) in state.iter().zip(self.kept[i].iter().flatten()) {
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
        lock(&self.numbers).check(site)?;
        self.checks.before(&self.parameters, site)?;
        let _quiet = no_grad();
        let options = self.options();
        let state = options.state();
        let due: Vec<usize> = with_gradients(&self.parameters).map(|(i, _)| i).collect();
        // A graph that is captured needs the state as its variables.
        outside_capture(site, || due.iter().try_for_each(|i| self.ready(*i, &state)))?;
        let mut params = vec![];
        for (i, count) in due.iter().zip(self.count(&due)) {
            let p = &self.parameters[*i];
            let (Some(grad), Some(state)) = (p.grad(), &self.kept[*i]) else { continue };
            let target = self.masters.of(*i, p, site)?;
            params.push(ParamState { number: *i, target, grad, state, count });
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
fn numbers_of(groups: &[Vec<ParamState<'_>>]) -> Vec<Vec<usize>> {
    groups.iter().map(|group| group.iter().map(|p| p.number).collect()).collect()
}

/// The step of these groups of parameters, for a graph that captures it. `halves`: parameters that have masters, by number.
fn captured(
    numbers: Arc<dyn StepNumbers>,
    halves: &[(usize, Tensor, Tensor)],
    groups: Vec<Vec<usize>>,
) -> Result<Arc<dyn HostObject>> {
    let due = halves.iter().filter(|(i, ..)| groups.iter().any(|group| group.contains(i)));
    let half =
        |(_, p, master): &(usize, Tensor, Tensor)| Half { parameter: p.clone(), master: master.clone(), at: None };
    Ok(Arc::new(CapturedStep {
        op: numbers.op()?,
        now: Mutex::default(),
        halves: Mutex::new(due.map(half).collect()),
        masters: numbers.masters(),
        numbers,
        groups,
    }))
}
