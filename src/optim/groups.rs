//! Groups of parameters with settings of their own, as one optimizer.

use super::saved::{self, Notes};
use super::{Optimizer, Trainer, check_distinct, check_gradients};
use crate::error::{CallSite, Result};
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use std::collections::BTreeMap;

/// Parameters with weight decay, and those without: parameters of fewer than two dims, which are biases and the scales of norms.
pub fn by_decay(parameters: Vec<Tensor>) -> (Vec<Tensor>, Vec<Tensor>) {
    parameters.into_iter().partition(|p| p.ndim() >= 2)
}

/// Optimizers of several groups of parameters, as one. Parameters are numbered through all groups; the saved state of one group is
/// that of its optimizer alone. A state is loaded into as many groups, of as many parameters, as it was saved of; each gets its
/// settings back.
///
/// ```
/// use oflow::optim::{AdamW, AdamWOptions, Groups, OptimizerExt, by_decay};
/// use oflow::nn::{Linear, Module};
/// use oflow::prelude::*;
/// let net = Linear::new(3, 2, Device::Cpu)?;
/// let (weights, biases) = by_decay(net.parameters());
/// let o = AdamWOptions { lr: 0.1, ..Default::default() };
/// let mut opt = Groups::new(vec![
///     Box::new(AdamW::new(weights, o)),
///     Box::new(AdamW::new(biases, AdamWOptions { weight_decay: 0.0, ..o })),
/// ]);
/// net.forward(&ones([1, 3], Device::Cpu)?)?.sum(())?.backward()?;
/// opt.step()?;
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Default)]
pub struct Groups {
    groups: Vec<Box<dyn Trainer>>,
    /// Of each group.
    notes: Vec<Notes>,
    all: Vec<Tensor>,
    /// Number of parameters that were found to be distinct.
    distinct: usize,
}

impl Groups {
    /// Makes one optimizer of several.
    pub fn new(groups: Vec<Box<dyn Trainer>>) -> Groups {
        let mut made = Groups::default();
        groups.into_iter().for_each(|g| made.push(g));
        made
    }
    /// Adds a group.
    pub fn push(&mut self, group: Box<dyn Trainer>) {
        self.all.extend(group.parameters().iter().cloned());
        self.groups.push(group);
        self.notes.push(Notes::new());
    }
    /// Returns the groups.
    pub fn groups(&self) -> &[Box<dyn Trainer>] {
        &self.groups
    }
    /// Returns a group, to change its settings.
    pub fn group_mut(&mut self, number: usize) -> Option<&mut Box<dyn Trainer>> {
        self.groups.get_mut(number)
    }
    /// Returns what the program noted of a group beside its settings.
    pub fn notes(&self, number: usize) -> Option<&Notes> {
        self.notes.get(number)
    }
    /// Notes plain values of a group, such as the learning rate with which its schedule began. They are saved and loaded with the
    /// group's settings. A number beyond the last group changes nothing.
    pub fn set_notes(&mut self, number: usize, notes: Notes) {
        if let Some(old) = self.notes.get_mut(number) {
            *old = notes;
        }
    }
}

impl Optimizer for Groups {
    fn step_at(&mut self, site: CallSite) -> Result<()> {
        check_gradients(&self.all, site)?;
        if self.distinct != self.all.len() {
            check_distinct(&self.all).map_err(|e| e.at(site))?;
            self.distinct = self.all.len();
        }
        for group in &mut self.groups {
            // A group that is not trained now: its other checks still apply.
            let due = group.parameters().iter().any(|p| p.grad().is_some());
            if due {
                group.step_at(site)?;
            }
        }
        Ok(())
    }
    fn parameters(&self) -> &[Tensor] {
        &self.all
    }
    fn lr(&self) -> f64 {
        self.groups.first().map_or(0.0, |g| g.lr())
    }
    fn set_lr(&mut self, lr: f64) {
        self.groups.iter_mut().for_each(|g| g.set_lr(lr));
    }
}

impl Stateful for Groups {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        let (mut first, mut counts, mut steps, mut groups) = (0, false, vec![], vec![]);
        for (i, (group, notes)) in self.groups.iter().zip(&self.notes).enumerate() {
            let mut own = SaveState::new();
            group.save_state(&mut own)?;
            for (name, source) in own.take_sources().hosts {
                to.host(&format!("group {i}.{name}"), source);
            }
            let (tensors, values) = own.into_parts();
            for (name, t) in &tensors {
                to.tensor(&renumbered(name, first), t);
            }
            // A group that counts none has a place for each parameter too.
            let own = values.get("steps").and_then(|v| v.as_array()).cloned();
            counts |= own.is_some();
            steps.extend(own.unwrap_or_else(|| vec![0.into(); group.parameters().len()]));
            groups.push(saved::value_of(&**group, first, notes)?);
            first += group.parameters().len();
        }
        if counts {
            to.value("steps", steps)?;
        }
        to.value(saved::NAME, groups)
    }

    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let own: Vec<&dyn Trainer> = self.groups.iter().map(|g| &**g as &dyn Trainer).collect();
        let groups = saved::groups_of(from, &own)?;
        for (i, saved) in groups.into_iter().enumerate() {
            self.groups[i].restore_config(&saved.config)?;
            self.notes[i].extend(saved.notes);
        }
        let mut counts = false;
        for group in &self.groups {
            let mut own = SaveState::new();
            group.save_state(&mut own)?;
            counts |= own.into_parts().1.contains_key("steps");
        }
        let steps: Vec<i64> = if counts { from.value("steps")?.unwrap_or_default() } else { vec![] };
        let (all, mut first) = (from.tensors(), 0);
        for group in &mut self.groups {
            let count = group.parameters().len();
            let names = of_group(&all, first, count);
            let own = steps.iter().copied().chain(std::iter::repeat(0)).skip(first).take(count).collect::<Vec<_>>();
            let values = BTreeMap::from([
                ("steps".to_string(), own.into()),
                (saved::NAME.to_string(), vec![saved::value_of(&**group, 0, &Notes::new())?].into()),
            ]);
            let mut inner = LoadState::new(names.iter().map(String::as_str), &values);
            group.load_state(&mut inner)?;
            let asked = inner.into_asked();
            for (name, tensor) in asked.fills {
                from.fill(&renumbered(&name, first), &tensor);
            }
            asked.missing.iter().for_each(|name| from.lacks(&renumbered(name, first)));
            first += count;
        }
        Ok(())
    }

    fn prepare(&mut self, wanted: &LoadState<'_>) -> Result<()> {
        let (all, values, mut first) = (wanted.tensors(), BTreeMap::new(), 0);
        for group in &mut self.groups {
            let names = of_group(&all, first, group.parameters().len());
            group.prepare(&LoadState::new(names.iter().map(String::as_str), &values))?;
            first += group.parameters().len();
        }
        Ok(())
    }
}

/// The names of the tensors of a group whose parameters have these numbers, as the group's optimizer alone names them.
fn of_group(all: &[String], first: usize, count: usize) -> Vec<String> {
    let within = |name: &String| {
        let (n, rest) = name.split_once('.')?;
        let n = n.parse::<usize>().ok()?.checked_sub(first).filter(|n| *n < count)?;
        Some(format!("{n}.{rest}"))
    };
    all.iter().filter_map(within).collect()
}

/// `3.mean` as `8.mean`, in a group whose first parameter is number 5.
fn renumbered(name: &str, first: usize) -> String {
    match name.split_once('.').map(|(n, rest)| (n.parse::<usize>(), rest)) {
        Some((Ok(n), rest)) => format!("{}.{rest}", n + first),
        _ => name.to_string(),
    }
}
