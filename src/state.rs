//! What a program keeps from step to step, by name: tensors and plain values.
//!
//! Modules, optimizers and data streams are [`Stateful`]; so may be types of the user's. The room knows names and handles;
//! files are the business of [`crate::checkpoint`]. Start at [`Stateful`].

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Something whose state can be saved and loaded.
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
    /// Names everything that is to be saved. The same names, shapes and layouts on every rank.
    ///
    /// # Errors
    /// When a value cannot be written as JSON.
    fn save_state(&self, to: &mut SaveState) -> Result<()>;
    /// Takes up values and names the tensors that are to be filled; they are filled when all names have been checked.
    ///
    /// # Errors
    /// When a value is not of the kind that is expected.
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()>;
}

/// Joins the name of a section with a name in it.
fn full(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_string() } else { format!("{section}.{name}") }
}

/// Collects what is to be saved.
#[derive(Default)]
pub struct SaveState {
    section: String,
    tensors: Vec<(String, Tensor)>,
    values: BTreeMap<String, Value>,
}

impl SaveState {
    /// Nothing so far; names go without a prefix.
    pub fn new() -> SaveState {
        SaveState::default()
    }
    /// The names that follow belong to that section: `section.name`.
    pub fn section(&mut self, section: &str) {
        self.section = section.to_string();
    }
    /// A tensor. The handle is kept, not the bytes.
    pub fn tensor(&mut self, name: &str, tensor: &Tensor) {
        self.tensors.push((full(&self.section, name), tensor.clone()));
    }
    /// A plain value.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn value(&mut self, name: &str, value: impl Serialize) -> Result<()> {
        let name = full(&self.section, name);
        let value = serde_json::to_value(value)
            .map_err(|e| Error::argument(format!("the value '{name}' cannot be saved as JSON")).because(e))?;
        self.values.insert(name, value);
        Ok(())
    }
    /// All tensors by full name, in the order in which they were given, and all values.
    pub fn into_parts(self) -> (Vec<(String, Tensor)>, BTreeMap<String, Value>) {
        (self.tensors, self.values)
    }
}

/// What is there to be loaded, and what has been asked for.
pub struct LoadState<'a> {
    section: String,
    names: BTreeSet<&'a str>,
    values: &'a BTreeMap<String, Value>,
    asked: Asked,
}

/// What was asked for.
#[derive(Default)]
pub struct Asked {
    /// Tensors to fill, by full name.
    pub fills: Vec<(String, Tensor)>,
    /// Names that are not there.
    pub missing: Vec<String>,
    /// Names that are there and were asked for.
    pub used: BTreeSet<String>,
}

impl<'a> LoadState<'a> {
    /// From the names of the tensors that are there, and the values.
    pub fn new(tensors: impl IntoIterator<Item = &'a str>, values: &'a BTreeMap<String, Value>) -> LoadState<'a> {
        LoadState { section: String::new(), names: tensors.into_iter().collect(), values, asked: Asked::default() }
    }
    /// The names that follow belong to that section.
    pub fn section(&mut self, section: &str) {
        self.section = section.to_string();
    }
    /// Whether a tensor or value of that name is there.
    pub fn has(&self, name: &str) -> bool {
        let name = full(&self.section, name);
        self.names.contains(name.as_str()) || self.values.contains_key(&name)
    }
    /// Asks for a tensor to be filled in place, in the layout that it has.
    pub fn fill(&mut self, name: &str, tensor: &Tensor) {
        let name = full(&self.section, name);
        if self.names.contains(name.as_str()) {
            self.asked.used.insert(name.clone());
            self.asked.fills.push((name, tensor.clone()));
        } else {
            self.asked.missing.push(name);
        }
    }
    /// A value; none, and noted as missing, where it is not there.
    ///
    /// # Errors
    /// When it is there but of another kind.
    pub fn value<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        let name = full(&self.section, name);
        let Some(value) = self.values.get(&name) else {
            self.asked.missing.push(name);
            return Ok(None);
        };
        let read = T::deserialize(value).map_err(|e| {
            // It may be a list of all losses.
            let shown: String = value.to_string().chars().take(80).collect();
            Error::argument(format!("the saved value '{name}' is {shown}, which is not what is expected")).because(e)
        })?;
        self.asked.used.insert(name);
        Ok(Some(read))
    }
    /// What has been asked for.
    pub fn into_asked(self) -> Asked {
        self.asked
    }
}

/// A plain value of the user's: kept as it is.
impl Stateful for Value {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        to.value("value", self)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        if let Some(value) = from.value("value")? {
            *self = value;
        }
        Ok(())
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
            e.starts_with("the saved value 'opt.lr' is \"high\", which is not what is expected: invalid type"),
            "{e}"
        );
        assert_eq!(from.value::<f64>("beta").unwrap(), None);
        assert_eq!(from.into_asked().missing, ["opt.beta"]);
    }
}
