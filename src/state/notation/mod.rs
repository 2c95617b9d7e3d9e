//! The notation of plain values: JSON, and for what JSON does not have an object of one key that begins with `$`.
//!
//! ```text
//! {"$float": "inf"}           inf, -inf, nan; of another NaN its 64 bits in hex
//! {"$int": "-0x10000…"}       an integer beyond 64 bits, in hex
//! {"$bytes": "00ff"}          bytes in hex; of Python also $bytearray
//! {"$dict": [[key, value]…]}  a map with keys that are not strings, in an order that is not that of its keys, or that would be
//!                             taken for one of these objects
//! {"$some": null}             Rust's Some(None)
//! ```
//!
//! Python has more of them (`python/oflow/_plain.py`): `$tuple`, `$set`, `$frozenset` and `$complex` are lists to Rust; `$array`,
//! `$scalar`, `$dtype`, `$device` and `$text` are not read by Rust. [`write()`] and [`read()`] are the notation in
//! serde's terms: a value is read as it was written. `docs/checkpoints.md` has the table for users.

mod read;
mod write;

pub use read::read;
pub use write::write;

use crate::error::{Error, Result};
use serde_json::{Map, Value, json};

/// Most levels of lists and objects in the notation of a value. JSON of more than 127 is not read, and a manifest has two more.
pub const DEEPEST: usize = 100;

/// An object, where it could be taken for the notation of another value as a list of pairs.
pub(super) fn object(map: Map<String, Value>) -> Value {
    match map.len() == 1 && map.keys().any(|k| k.starts_with('$')) {
        true => pairs(map.into_iter().map(|(k, v)| (Value::from(k), v))),
        false => Value::Object(map),
    }
}

fn pairs(all: impl Iterator<Item = (Value, Value)>) -> Value {
    json!({ "$dict": all.map(|(k, v)| json!([k, v])).collect::<Vec<_>>() })
}

/// The tag and the content of an object that stands for another value.
pub(super) fn tagged(value: &Value) -> Option<(&str, &Value)> {
    let map = value.as_object().filter(|m| m.len() == 1)?;
    map.iter().next().and_then(|(k, v)| Some((k.strip_prefix('$')?, v)))
}

/// Refuses what JSON's readers refuse: lists in lists beyond a depth.
///
/// # Errors
/// If the value has more than [`DEEPEST`] levels.
pub fn check_depth(value: &Value) -> Result<()> {
    let mut level: Vec<&Value> = vec![value];
    for _ in 0..=DEEPEST {
        if level.is_empty() {
            return Ok(());
        }
        let inside = |v: &'_ Value| matches!(v, Value::Array(_) | Value::Object(_));
        level = level
            .into_iter()
            .flat_map(|v| -> Box<dyn Iterator<Item = &Value>> {
                match v {
                    Value::Array(all) => Box::new(all.iter()),
                    Value::Object(all) => Box::new(all.values()),
                    _ => Box::new(std::iter::empty()),
                }
            })
            .filter(|v| inside(v))
            .collect();
    }
    Err(Error::argument(format!("expected a value of at most {DEEPEST} levels of lists and objects, got more"))
        .help("save it flat, or as text or bytes"))
}

/// The value of JSON that a notation stands for.
///
/// # Errors
/// If it stands for a value that JSON does not have.
pub fn to_json(value: &Value) -> Result<Value> {
    let none = |what: &str| Error::argument(format!("expected a value of JSON, got the notation of a {what}: {value}"));
    match (tagged(value), value) {
        (Some(("dict", Value::Array(all))), _) => {
            let pair = |p: &Value| match p.as_array().map(Vec::as_slice) {
                Some([Value::String(k), v]) => Ok((k.clone(), to_json(v)?)),
                _ => Err(none("map with keys that are not strings")),
            };
            let map: Map<String, Value> = all.iter().map(pair).collect::<Result<_>>()?;
            Ok(Value::Object(map))
        }
        (Some((tag, _)), _) => Err(none(tag)),
        (None, Value::Array(all)) => all.iter().map(to_json).collect::<Result<Vec<_>>>().map(Value::Array),
        (None, Value::Object(all)) => {
            let map = all.iter().map(|(k, v)| Ok((k.clone(), to_json(v)?))).collect::<Result<Map<_, _>>>()?;
            Ok(Value::Object(map))
        }
        (None, plain) => Ok(plain.clone()),
    }
}
