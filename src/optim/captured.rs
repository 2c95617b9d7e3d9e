//! Steps that graphs have captured: each run counts the step and computes its numbers anew.

use super::master::follow;
use super::rule::{OF_GROUP, Scalars, StepCount};
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{HostObject, HostSource, address_of};
use crate::ops::{Op, RuntimeAttrs};
use crate::tensor::Tensor;
use crate::trace;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;
use std::sync::{Arc, Mutex};

/// The numbers of an optimizer of any settings. What a captured step does with them is compiled once.
pub(super) trait StepNumbers: Send + Sync {
    fn check(&self, site: CallSite) -> Result<()>;
    fn op(&self) -> Result<&'static Op>;
    fn advance(&self, i: usize) -> StepCount;
    fn settings(&self, at: StepCount) -> RuntimeAttrs;
    fn scalars(&self, at: StepCount) -> Scalars;
    fn captured_settings(&self) -> String;
    /// Whether half parameters have masters, and how often a state was loaded that lacks one.
    fn masters(&self) -> (bool, usize);
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
    /// Settings that the graph holds.
    settings: String,
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
        let settings = self.numbers.captured_settings();
        if settings != self.settings {
            return Err(Error::argument(format!(
                "the graph was captured with other settings of the optimizer: {}, now {settings}",
                self.settings
            ))
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
        let (group, number) = ((call / OF_GROUP) as usize, (call % OF_GROUP) as usize);
        let count = self.now.lock().unwrap_or_else(|e| e.into_inner()).get(group).copied();
        let found = count.and_then(|count| match number {
            0 => Some(self.numbers.settings(count)),
            n => self.numbers.scalars(count).get(n - 1).map(|x| smallvec![(*x).into()]),
        });
        found.ok_or_else(|| Error::registry("a captured step has no such call"))
    }
    fn done(&self) {
        let mut halves = self.halves.lock().unwrap_or_else(|e| e.into_inner());
        halves.iter_mut().for_each(|h| h.at = Some(h.parameter.version()));
        trace::step(self.address());
    }
    fn address(&self) -> usize {
        address_of(&self.numbers)
    }
    fn saved(&self) -> String {
        // Numbers and a name: always JSON.
        let (op, settings, groups) = (self.op.full_name(), self.settings.clone(), self.groups.clone());
        serde_json::to_string(&SavedStep { op, settings, groups }).unwrap_or_default()
    }
}

/// A captured step as saved graphs have it.
#[derive(Serialize, Deserialize)]
struct SavedStep {
    op: String,
    settings: String,
    groups: Vec<Vec<usize>>,
}

/// An optimizer, as graphs that are loaded take its numbers.
pub(super) struct StepSource {
    pub numbers: Arc<dyn StepNumbers>,
    /// Half parameters that have masters, by number.
    pub halves: Vec<(usize, Tensor, Tensor)>,
    pub parameters: usize,
}

impl HostSource for StepSource {
    fn address(&self) -> usize {
        address_of(&self.numbers)
    }
    fn restore(&self, saved: &str) -> Result<Arc<dyn HostObject>> {
        let wrong = |e| Error::parse("the step of the graph is not that of an optimizer").because(e);
        let SavedStep { op, settings, groups } = serde_json::from_str(saved).map_err(wrong)?;
        let own = self.numbers.op()?;
        if own.full_name() != op {
            return Err(Error::argument(format!("the graph steps with {op}, this optimizer with {}", own.full_name()))
                .help("make the optimizer with the settings that it had when the graph was saved"));
        }
        let own = self.numbers.captured_settings();
        if own != settings {
            return Err(Error::argument(format!(
                "the graph steps with the settings {settings}, this optimizer has {own}"
            ))
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

/// The step of these groups of parameters, for a graph that captures it. `halves`: parameters that have masters, by number.
pub(super) fn captured(
    numbers: Arc<dyn StepNumbers>,
    halves: &[(usize, Tensor, Tensor)],
    groups: Vec<Vec<usize>>,
) -> Result<Arc<dyn HostObject>> {
    let due = halves.iter().filter(|(i, ..)| groups.iter().any(|group| group.contains(i)));
    let half =
        |(_, p, master): &(usize, Tensor, Tensor)| Half { parameter: p.clone(), master: master.clone(), at: None };
    Ok(Arc::new(CapturedStep {
        op: numbers.op()?,
        settings: numbers.captured_settings(),
        now: Mutex::default(),
        halves: Mutex::new(due.map(half).collect()),
        masters: numbers.masters(),
        numbers,
        groups,
    }))
}
