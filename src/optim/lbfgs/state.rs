//! The state of L-BFGS as it is saved: the direction and the gradient of the last step, and the changes that are kept.

use super::super::saved::NAME;
use super::{Change, Lbfgs, LbfgsOptions, Notes, Vector};
use crate::error::{Error, Result};
use crate::state::{LoadState, SaveState, Stateful};
use serde::{Deserialize, Serialize};

/// Numbers of the memory, as a state has them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    iterations: u64,
    evaluations: u64,
    scale: f64,
    length: f64,
    ro: Vec<f64>,
}

/// The one group, as a state has it.
#[derive(Serialize, Deserialize)]
struct Group {
    kind: String,
    #[serde(flatten)]
    options: LbfgsOptions,
    params: Vec<usize>,
    #[serde(default, skip_serializing_if = "Notes::is_empty")]
    notes: Notes,
}

const KIND: &str = "lbfgs";

impl Lbfgs {
    /// Calls `f` with the name and the vector of each that is saved.
    fn vectors(&self, mut f: impl FnMut(&str, &Vector)) {
        f("direction", &self.memory.direction);
        f("gradient", &self.memory.gradient);
        for (k, c) in self.memory.changes.iter().enumerate() {
            f(&format!("step.{k}"), &c.step);
            f(&format!("change.{k}"), &c.gradient);
        }
    }
}

/// Saves the settings, the numbers of the steps so far, and tensors by number of the parameter: `3.direction`, `3.change.0`.
impl Stateful for Lbfgs {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.vectors(|name, v| v.iter().enumerate().for_each(|(i, t)| to.tensor(&format!("{i}.{name}"), t)));
        let m = &self.memory;
        let ro = m.changes.iter().map(|c| c.ro).collect();
        let (iterations, evaluations, scale, length) = (m.iterations, m.evaluations, m.scale, m.length);
        to.value("memory", Numbers { iterations, evaluations, scale, length, ro })?;
        let (params, notes) = ((0..self.parameters.len()).collect(), self.notes.clone());
        to.value(NAME, [Group { kind: KIND.into(), options: self.options, params, notes }])
    }

    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        if let Some(groups) = from.value::<Vec<serde_json::Value>>(NAME)? {
            let read = |g: &serde_json::Value| serde_json::from_value::<Group>(g.clone()).ok();
            let group = match &groups[..] {
                [one] => read(one).filter(|g| g.kind == KIND && g.params.len() == self.parameters.len()),
                _ => None,
            };
            let Some(group) = group else {
                return Err(Error::argument(format!(
                    "the saved state is not of L-BFGS with one group of {} parameters",
                    self.parameters.len()
                ))
                .help("make the optimizer as the saved one was made, then load the state"));
            };
            self.options = group.options;
            self.notes.extend(group.notes);
        }
        let Some(Numbers { iterations, evaluations, scale, length, ro }) = from.value("memory")? else { return Ok(()) };
        let zeros = || -> Result<Vector> {
            self.parameters.iter().map(|p| crate::functional::zeros_like(&p.detach())).collect()
        };
        // Before the first step there are no vectors.
        let kept = if iterations == 0 { vec![] } else { zeros()? };
        let memory = super::Memory {
            iterations,
            evaluations,
            scale,
            length,
            gradient: if iterations == 0 { vec![] } else { zeros()? },
            direction: kept,
            changes: ro
                .into_iter()
                .map(|ro| Ok(Change { step: zeros()?, gradient: zeros()?, ro }))
                .collect::<Result<_>>()?,
        };
        self.memory = memory;
        self.vectors(|name, v| v.iter().enumerate().for_each(|(i, t)| from.fill(&format!("{i}.{name}"), t)));
        Ok(())
    }
}
