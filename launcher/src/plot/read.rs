//! Reads logs in JSON lines.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use super::curve::Point;
use crate::Failed;

/// Bytes of a line that are read: more is no line of a log.
const LONGEST_LINE: u64 = 1 << 20;
/// Points of all metrics of a file that are kept.
const MOST_POINTS: usize = 50_000_000;

/// The log of a run.
pub struct Run {
    /// Path of the file, without its ending.
    pub name: String,
    /// The points of each metric, by step.
    pub curves: BTreeMap<String, Vec<Point>>,
    /// Lines that could not be read.
    pub broken: usize,
}

/// Reads a file.
pub fn run(path: &Path) -> Result<Run, Failed> {
    let failed = |e: &dyn std::fmt::Display| Failed::new(format!("cannot read {}: {e}", path.display()));
    let file = oflow_files::open(path).map_err(|e| Failed::new(e.to_string()))?;
    let shown = path.display().to_string();
    let name = shown.strip_suffix(".jsonl").unwrap_or(&shown).to_string();
    let mut run = Run { name, curves: BTreeMap::new(), broken: 0 };
    let (mut reader, mut line, mut points) = (BufReader::with_capacity(1 << 16, file), Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(|e| failed(&e))?;
        if read == 0 {
            break;
        }
        if line.last() != Some(&b'\n') && read as u64 == LONGEST_LINE {
            reader.skip_until(b'\n').map_err(|e| failed(&e))?;
            run.broken += 1;
            continue;
        }
        points += match add(&mut run.curves, &line) {
            Some(added) => added,
            None if line.trim_ascii().is_empty() => 0,
            None => {
                run.broken += 1;
                0
            }
        };
        if points > MOST_POINTS {
            return Err(failed(&format!("it has more than {MOST_POINTS} values")));
        }
    }
    // Logs of several runs may have been put together.
    run.curves.values_mut().for_each(|points| points.sort_by(|a, b| a.step.total_cmp(&b.step)));
    Ok(run)
}

/// Adds the values of a line, and returns how many; `None` if it is no line of a log.
fn add(curves: &mut BTreeMap<String, Vec<Point>>, line: &[u8]) -> Option<usize> {
    let Ok(Value::Object(object)) = serde_json::from_slice(line) else { return None };
    let step = object.get("step")?.as_f64()?;
    let mut added = 0;
    for (name, value) in &object {
        let value = match value {
            _ if name == "step" || name == "time" => continue,
            Value::Number(n) => n.as_f64().unwrap_or(f64::NAN),
            // What JSON has no numbers for.
            Value::Null => f64::NAN,
            Value::String(text) if ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()) => f64::NAN,
            _ => continue,
        };
        added += 1;
        match curves.get_mut(name) {
            Some(points) => points.push(Point { step, value }),
            None => {
                curves.insert(name.clone(), vec![Point { step, value }]);
            }
        }
    }
    Some(added)
}
