//! Files of a JSON object per line.

use crate::Kind;
use crate::records::{Records, Split};
use oflow::data::{Array, Dataset, Field, Row};
use oflow::{Error, Result};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// The rows of a file with a JSON object on each line. Numbers become i64 where all of a value are integers and f64 otherwise, true and
/// false bool, strings text; lists, also of lists of one length, become arrays. A column that is chosen has the [`Kind`] that was asked for.
///
/// ```
/// use oflow::data::Dataset;
/// use oflow_readers::{Jsonl, Kind};
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("texts.jsonl");
/// # std::fs::write(&path, "{\"text\": \"a b\", \"ids\": [3, 5], \"more\": null}\n\n{\"text\": \"c\", \"ids\": [7, \"x\"]}\n")?;
/// let texts = Jsonl::open(&path)?.column("text", Kind::Text)?.column("ids", Kind::I32)?;
/// assert_eq!(texts.len(), 2);
/// assert_eq!(texts.get(0)?.array("ids")?.to_vec::<i32>()?, [3, 5]);
/// let message = texts.get(1).unwrap_err().message().to_string();
/// assert!(message.ends_with("texts.jsonl, line 3: 'ids': a list has numbers and other values"), "{message}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Jsonl {
    records: Arc<Records>,
    columns: Vec<(Arc<str>, Kind)>,
}

impl Jsonl {
    /// Opens a file whose lines have 16 MiB at most. It is gone over once, for an index of a byte per row.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is longer.
    pub fn open(path: impl AsRef<Path>) -> Result<Jsonl> {
        Jsonl::with_longest(path, 1 << 24)
    }
    /// Opens a file with another limit of the bytes of a line.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is longer.
    pub fn with_longest(path: impl AsRef<Path>, longest: usize) -> Result<Jsonl> {
        Ok(Jsonl { records: Arc::new(Records::open(path, Split::Lines, longest)?), columns: vec![] })
    }
    /// Chooses a column; others are left out then.
    ///
    /// # Errors
    /// If the column was chosen already.
    pub fn column(mut self, name: &str, kind: Kind) -> Result<Jsonl> {
        if self.columns.iter().any(|(n, _)| **n == *name) {
            return Err(Error::argument(format!("the column '{name}' is chosen twice")));
        }
        self.columns.push((name.into(), kind));
        Ok(self)
    }
    fn row(&self, object: &Map<String, Value>) -> Result<Row> {
        let within = |name: &str, e: Error| Error::value(format!("'{name}': {}", e.message()));
        if self.columns.is_empty() {
            return object.iter().try_fold(Row::new(), |row, (name, value)| {
                Ok(row.with(&name[..], field(value, None).map_err(|e| within(name, e))?))
            });
        }
        self.columns.iter().try_fold(Row::new(), |row, (name, kind)| {
            let value = object.get(&**name).ok_or_else(|| Error::value(format!("no '{name}' in the object")))?;
            Ok(row.with(name.clone(), field(value, Some(*kind)).map_err(|e| within(name, e))?))
        })
    }
}

/// The leaves of a list of lists, and its shape.
fn leaves<'a>(value: &'a Value, depth: usize, shape: &mut Vec<usize>, all: &mut Vec<&'a Value>) -> Result<()> {
    let Value::Array(items) = value else {
        if depth != shape.len() {
            return Err(Error::value("a list has lists and other values"));
        }
        all.push(value);
        return Ok(());
    };
    if depth == shape.len() {
        // Only on the way to the first leaf is the shape not known.
        if !all.is_empty() {
            return Err(Error::value("a list has lists and other values"));
        }
        shape.push(items.len());
    } else if shape[depth] != items.len() {
        return Err(Error::value(format!("lists of {} and of {} values side by side", shape[depth], items.len())));
    }
    items.iter().try_for_each(|v| leaves(v, depth + 1, shape, all))
}

/// The field of a value. Without a kind it follows from the value.
fn field(value: &Value, kind: Option<Kind>) -> Result<Field> {
    match (value, kind) {
        (Value::String(text), None | Some(Kind::Text)) => return Ok(text.clone().into()),
        (_, Some(Kind::Text)) => return Err(Error::value("no text")),
        (Value::Null | Value::Object(_), _) => {
            return Err(Error::value("null and objects cannot be fields; choose other columns with `column`"));
        }
        _ => {}
    }
    let (mut shape, mut all) = (vec![], vec![]);
    leaves(value, 0, &mut shape, &mut all)?;
    let bools: Vec<bool> = all.iter().filter_map(|v| v.as_bool()).collect();
    let integers: Vec<i64> = all.iter().filter_map(|v| v.as_i64()).collect();
    let numbers: Vec<f64> = all.iter().filter_map(|v| v.as_f64()).collect();
    let n = all.len();
    let whole = || match integers.len() == n {
        true => Ok(&integers),
        false => Err(Error::value("a number does not fit i64")),
    };
    if bools.len() != n && numbers.len() != n {
        return Err(Error::value(match all.len() {
            1 => "no number",
            _ => "a list has numbers and other values",
        }));
    }
    let narrow = |what: &str| Error::value(format!("a number does not fit {what}"));
    let made = match kind {
        Some(Kind::Bool) | None if bools.len() == n && n > 0 => Array::new(&bools, &shape),
        Some(Kind::Bool) => Err(Error::value("a number is neither true nor false")),
        _ if numbers.len() != n => Err(Error::value("true and false cannot be numbers")),
        Some(Kind::F32) => Array::new(&numbers.iter().map(|x| *x as f32).collect::<Vec<_>>(), &shape),
        Some(Kind::F64) => Array::new(&numbers, &shape),
        Some(Kind::I32) => {
            let all = whole()?.iter().map(|x| i32::try_from(*x).map_err(|_| narrow("i32"))).collect::<Result<Vec<_>>>();
            Array::new(&all?, &shape)
        }
        Some(Kind::U8) => {
            let all = whole()?.iter().map(|x| u8::try_from(*x).map_err(|_| narrow("u8"))).collect::<Result<Vec<_>>>();
            Array::new(&all?, &shape)
        }
        Some(Kind::I64) => Array::new(whole()?, &shape),
        None | Some(Kind::Text) => match integers.len() == n {
            true => Array::new(&integers, &shape),
            false => Array::new(&numbers, &shape),
        },
    };
    Ok(made?.into())
}

impl Dataset for Jsonl {
    type Item = Row;
    fn len(&self) -> usize {
        self.records.len()
    }
    fn get(&self, index: usize) -> Result<Row> {
        let (bytes, line) = self.records.get(index)?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(object)) => self.row(&object).map_err(|e| self.records.error(line, e.message())),
            Ok(_) => Err(self.records.error(line, "the line has no JSON object")),
            // The place that serde_json names is one within the line.
            Err(e) => Err(self.records.error(line, format!("no JSON at column {}: {e}", e.column()))),
        }
    }
}
