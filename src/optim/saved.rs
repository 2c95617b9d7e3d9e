//! Data that optimizers save beside tensors: for each group of parameters its settings, its parameters by number, and notes
//! of the program.
//!
//! The value is called `param_groups`, as in PyTorch: `[{"kind": "sgd", "lr": 0.1, …, "params": [0, 1], "notes": {"initial_lr": 0.1}}]`.
//! An optimizer alone is one group.

use super::{OptimizerConfig, Trainer};
use crate::error::{Error, Result};
use crate::state::{LoadState, SaveState};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Notes of a program on a group of parameters beside its settings: plain values by name. They are saved and loaded with the
/// group.
pub type Notes = BTreeMap<String, Value>;

/// Name of the value.
pub(super) const NAME: &str = "param_groups";

/// A group as a state has it.
pub(super) struct SavedGroup {
    /// Settings of the group.
    pub config: OptimizerConfig,
    /// Notes of the program on the group.
    pub notes: Notes,
}

/// A group as a value of a state; its parameters are numbered from `first` on.
pub(super) fn value_of(group: &(impl Trainer + ?Sized), first: usize, notes: &Notes) -> Result<Value> {
    let wrong = |e| Error::argument("the settings of an optimizer cannot be saved as JSON").because(e);
    let mut value = serde_json::to_value(group.config()).map_err(wrong)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("params".into(), (first..first + group.parameters().len()).collect());
        if !notes.is_empty() {
            fields.insert("notes".into(), notes.clone().into_iter().collect());
        }
    }
    Ok(value)
}

/// Adds the settings of an optimizer that is one group.
pub(super) fn save(opt: &impl Trainer, to: &mut SaveState) -> Result<()> {
    to.value(NAME, [value_of(opt, 0, &Notes::new())?])
}

/// Takes over the settings of a state for an optimizer that is one group.
///
/// # Errors
/// Those of [`groups_of`].
pub(super) fn load(opt: &mut impl Trainer, from: &mut LoadState<'_>) -> Result<()> {
    match groups_of(from, &[opt])?.pop() {
        Some(saved) => opt.restore_config(&saved.config),
        None => Ok(()),
    }
}

/// The groups of a state for an optimizer with these groups, one for each.
///
/// # Errors
/// If the state has other groups than the optimizer: another number, other numbers of parameters, or another kind.
pub(super) fn groups_of(from: &mut LoadState<'_>, own: &[&dyn Trainer]) -> Result<Vec<SavedGroup>> {
    let Some(saved) = from.value::<Vec<Map<String, Value>>>(NAME)? else { return Ok(vec![]) };
    same_number(saved.len(), own.len())?;
    let group = |(i, (mut fields, own)): (usize, (Map<String, Value>, &&dyn Trainer))| {
        let (have, want) = (fields.remove("params"), own.parameters().len());
        let have = have.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
        if have != want {
            return Err(other(format!(
                "group {i} of the saved state has {have} parameters, that of this optimizer has {want}"
            )));
        }
        let notes = fields.remove("notes").map_or(Ok(Notes::new()), serde_json::from_value);
        let config = serde_json::from_value::<OptimizerConfig>(Value::Object(fields));
        match (config, notes) {
            (Ok(config), Ok(notes)) if config.kind() == own.config().kind() => Ok(SavedGroup { config, notes }),
            (Ok(config), Ok(_)) => Err(other(format!(
                "group {i} of the saved state is of {}, that of this optimizer of {}",
                config.kind(),
                own.config().kind()
            ))),
            (Err(e), _) | (_, Err(e)) => {
                Err(Error::argument(format!("group {i} of the saved state has settings that cannot be read"))
                    .because(e))
            }
        }
    };
    saved.into_iter().zip(own).enumerate().map(group).collect()
}

fn same_number(saved: usize, own: usize) -> Result<()> {
    if saved == own {
        return Ok(());
    }
    let groups = |n: usize| format!("{n} group{} of parameters", if n == 1 { "" } else { "s" });
    Err(other(format!("the saved state has {}, this optimizer has {own}", groups(saved))))
}

fn other(what: String) -> Error {
    Error::argument(what).help("make the optimizer with the groups that the saved one had, then load the state")
}
