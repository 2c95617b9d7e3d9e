//! JSON lines: `{"step":3,"time":1764504092.1,"loss":0.25}`.

use super::file::{append, continued, not_a_log};
use super::row::Row;
use crate::error::Result;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};

pub(super) struct Jsonl {
    path: PathBuf,
    file: File,
}

impl Jsonl {
    pub fn open(path: &Path, resumed: Option<usize>) -> Result<Jsonl> {
        let kept = |content: &str, step| kept(path, content, step);
        Ok(Jsonl { file: continued(path, resumed, kept)?, path: path.to_path_buf() })
    }

    pub fn write(&mut self, rows: &[Row]) -> Result<()> {
        let lines: String = rows.iter().map(line).collect();
        append(&mut self.file, &self.path, lines.as_bytes())
    }
}

/// The lines of steps before `step`.
fn kept(path: &Path, content: &str, step: usize) -> Result<String> {
    let mut kept = String::new();
    for (i, line) in content.lines().enumerate() {
        let object: Option<Value> = serde_json::from_str(line).ok();
        let of = object.and_then(|o| o.get("step")?.as_u64()).ok_or_else(|| not_a_log(path, i))?;
        if of < step as u64 {
            kept += line;
            kept.push('\n');
        }
    }
    Ok(kept)
}

fn line(row: &Row) -> String {
    let mut line = format!("{{\"step\":{},\"time\":{}", row.step, number(row.time));
    for (name, value) in &row.values {
        line += &format!(",{}:{}", Value::from(&**name), number(*value));
    }
    line + "}\n"
}

/// A number of JSON, which has no NaN and no infinity: they are strings, written as protobuf's JSON has them.
fn number(x: f64) -> Value {
    match x {
        _ if x.is_finite() => Value::from(x),
        _ if x.is_nan() => Value::from("NaN"),
        _ if x > 0.0 => Value::from("Infinity"),
        _ => Value::from("-Infinity"),
    }
}
