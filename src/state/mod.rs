//! The state of a program by name: tensors and plain values that checkpoints save and load.
//!
//! Modules, optimizers and data streams implement [`Stateful`]; a program may implement it for its own types.
//! [`crate::checkpoint`] saves and loads them.

pub mod notation;

use crate::context::{Generator, GeneratorState};
use crate::error::{Error, Result};
use crate::interpreter::HostSource;
use crate::tensor::Tensor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A value whose state can be saved in checkpoints and loaded from them.
///
/// ```
/// use oflow::prelude::*;
/// use oflow::state::{LoadState, SaveState, Stateful};
///
/// /// An average of the weights.
/// struct Average {
///     mean: Tensor,
///     count: u64,
/// }
///
/// impl Stateful for Average {
///     fn save_state(&self, to: &mut SaveState) -> Result<()> {
///         to.tensor("mean", &self.mean);
///         to.value("count", self.count)
///     }
///     fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
///         from.fill("mean", &self.mean); // filled in place, in whatever layout it has
///         self.count = from.value("count")?.unwrap_or(self.count);
///         Ok(())
///     }
/// }
/// ```
pub trait Stateful {
    /// Adds all tensors and values to save. Names, shapes and layouts must be the same on every rank.
    ///
    /// # Errors
    /// If a value cannot be written, or two values have one name.
    fn save_state(&self, to: &mut SaveState) -> Result<()>;
    /// Reads values and registers the tensors to fill. Tensors are filled after all names have been checked.
    ///
    /// # Errors
    /// If a value has another type than expected.
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()>;
    /// Makes the tensors of `wanted` that are made at a first use only, as the state of an optimizer is. A saved graph asks for what it
    /// has as variables ([`Graph::load`](crate::graph::Graph::load)). Without such tensors there is nothing to do.
    ///
    /// # Errors
    /// Those of making the tensors.
    fn prepare(&mut self, wanted: &LoadState<'_>) -> Result<()> {
        let _ = wanted;
        Ok(())
    }
}

/// Joins the name of a section with a name in it.
fn full(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_string() } else { format!("{section}.{name}") }
}

/// Collects the tensors and values of a save.
#[derive(Default)]
pub struct SaveState {
    section: String,
    tensors: Vec<(String, Tensor)>,
    values: BTreeMap<String, Value>,
    sources: GraphSources,
}

/// Sources of numbers in graphs, by full name: objects of the host, and generators of random numbers.
#[derive(Default)]
pub(crate) struct GraphSources {
    /// Objects that give numbers.
    pub hosts: Vec<(String, Arc<dyn HostSource>)>,
    /// Generators of random numbers.
    pub generators: Vec<(String, Generator)>,
}

impl SaveState {
    /// Makes an empty collection, with no section.
    pub fn new() -> SaveState {
        SaveState::default()
    }
    /// Sets the section of the following names: they become `section.name`.
    pub fn section(&mut self, section: &str) {
        self.section = section.to_string();
    }
    /// Adds a tensor. The collection keeps the handle and does not copy data.
    pub fn tensor(&mut self, name: &str, tensor: &Tensor) {
        self.tensors.push((full(&self.section, name), tensor.clone()));
    }
    /// Adds an object that gives graphs numbers.
    pub(crate) fn host(&mut self, name: &str, source: Arc<dyn HostSource>) {
        self.sources.hosts.push((full(&self.section, name), source));
    }
    /// Returns what graphs take beside tensors.
    pub(crate) fn take_sources(&mut self) -> GraphSources {
        std::mem::take(&mut self.sources)
    }
    /// Adds a plain value: anything that serde serializes. It is read as it was written, infinities, NaN, integers of 128 bits and
    /// maps with any keys included.
    ///
    /// # Errors
    /// If another value has the name, if the value has more than [`notation::DEEPEST`] levels, or if its `Serialize` fails.
    pub fn value(&mut self, name: &str, value: impl Serialize) -> Result<()> {
        let written = notation::write(&value).map_err(|e| {
            let name = full(&self.section, name);
            Error::argument(format!("the value '{name}' cannot be saved")).because(e)
        })?;
        self.notation(name, written)
    }
    /// Adds a plain value that is in the [`notation`] already.
    ///
    /// # Errors
    /// If another value has the name, or if the value has more than [`notation::DEEPEST`] levels.
    pub fn notation(&mut self, name: &str, value: Value) -> Result<()> {
        let name = full(&self.section, name);
        notation::check_depth(&value).map_err(|e| e.within(|| format!("the value '{name}' cannot be saved")))?;
        match self.values.insert(name.clone(), value) {
            None => Ok(()),
            Some(_) => Err(Error::argument(format!("two values of the state have the name '{name}'"))
                .help("give each value a name of its own")),
        }
    }
    /// Returns all tensors with their full names, in the order in which they were added, and all values.
    pub fn into_parts(self) -> (Vec<(String, Tensor)>, BTreeMap<String, Value>) {
        (self.tensors, self.values)
    }
}

/// The tensors and values of a checkpoint, and those requested so far.
pub struct LoadState<'a> {
    section: String,
    names: BTreeSet<&'a str>,
    values: &'a BTreeMap<String, Value>,
    asked: Asked,
}

/// The requests of a load.
#[derive(Default)]
pub struct Asked {
    /// Tensors to fill, by full name.
    pub fills: Vec<(String, Tensor)>,
    /// Requested names that the checkpoint lacks.
    pub missing: Vec<String>,
    /// Requested names that the checkpoint has.
    pub used: BTreeSet<String>,
}

impl<'a> LoadState<'a> {
    /// Makes a state from the names of the saved tensors and the saved values, which are in the [`notation`].
    pub fn new(tensors: impl IntoIterator<Item = &'a str>, values: &'a BTreeMap<String, Value>) -> LoadState<'a> {
        LoadState { section: String::new(), names: tensors.into_iter().collect(), values, asked: Asked::default() }
    }
    /// Sets the section of the following names.
    pub fn section(&mut self, section: &str) {
        self.section = section.to_string();
    }
    /// Whether the checkpoint has a tensor or a value of this name.
    pub fn has(&self, name: &str) -> bool {
        let name = full(&self.section, name);
        self.names.contains(name.as_str()) || self.values.contains_key(&name)
    }
    /// Returns the names of the tensors of the section, without it.
    pub fn tensors(&self) -> Vec<String> {
        let within = |name: &&str| match self.section.is_empty() {
            true => Some(name.to_string()),
            false => name.strip_prefix(self.section.as_str())?.strip_prefix('.').map(str::to_string),
        };
        self.names.iter().filter_map(within).collect()
    }
    /// Requests that a tensor is filled in place; it keeps its layout.
    pub fn fill(&mut self, name: &str, tensor: &Tensor) {
        let name = full(&self.section, name);
        if self.names.contains(name.as_str()) {
            self.asked.used.insert(name.clone());
            self.asked.fills.push((name, tensor.clone()));
        } else {
            self.asked.missing.push(name);
        }
    }
    /// Notes a name that the checkpoint lacks, for a state that asks parts of its own.
    pub fn lacks(&mut self, name: &str) {
        self.asked.missing.push(full(&self.section, name));
    }
    /// Returns a value. If the checkpoint lacks it, returns `None` and notes the name as missing.
    ///
    /// # Errors
    /// If the value has another type.
    pub fn value<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(value) = self.notation(name) else { return Ok(None) };
        notation::read(value).map(Some).map_err(|e| {
            // It may be a list of all losses.
            let shown: String = value.to_string().chars().take(80).collect();
            let name = full(&self.section, name);
            Error::argument(format!("the saved value '{name}' is {shown}, which has another type than expected"))
                .because(e)
        })
    }
    /// Returns a value in its [`notation`]. If the checkpoint lacks it, returns `None` and notes the name as missing.
    pub fn notation(&mut self, name: &str) -> Option<&'a Value> {
        let name = full(&self.section, name);
        let found = self.values.get(&name);
        match found {
            Some(_) => _ = self.asked.used.insert(name),
            None => self.asked.missing.push(name),
        }
        found
    }
    /// Returns the requests.
    pub fn into_asked(self) -> Asked {
        self.asked
    }
}

/// Saves and loads a JSON value unchanged.
impl Stateful for Value {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        to.value("value", self)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        if let Some(value) = from.notation("value") {
            *self = notation::to_json(value)?;
        }
        Ok(())
    }
}

/// Saves and loads the state of the stream. Every rank must have the same.
impl Stateful for Generator {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        let GeneratorState { seed, ordinal } = self.state();
        to.sources.generators.push((full(&to.section, "generator"), self.clone()));
        to.value("generator", [seed, ordinal])
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        match from.value::<[u64; 2]>("generator")? {
            Some([seed, ordinal]) => self.set_state(GeneratorState { seed, ordinal }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_another_kind_are_named() {
        let values = BTreeMap::from([("opt.lr".to_string(), json!("high"))]);
        let mut from = LoadState::new(["opt.0.mean"], &values);
        from.section("opt");
        assert!(from.has("lr") && from.has("0.mean") && !from.has("mean"));
        let e = from.value::<f64>("lr").unwrap_err().to_string();
        assert!(
            e.starts_with("the saved value 'opt.lr' is \"high\", which has another type than expected: invalid type"),
            "{e}"
        );
        assert_eq!(from.value::<f64>("beta").unwrap(), None);
        assert_eq!(from.into_asked().missing, ["opt.beta"]);
    }
}
