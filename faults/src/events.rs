//! The reports of a job, from the lines that `oflaunch --events` writes.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// One line of the event log.
#[derive(Clone, Debug)]
pub struct Event {
    /// Seconds since 1970.
    pub time: f64,
    /// `start`, `failure`, `warning` …
    pub name: String,
    /// All fields of the event.
    pub fields: Value,
}

/// A failure, as the launcher reports it.
#[derive(Clone, Debug)]
pub struct Report {
    /// When, in seconds since 1970.
    pub time: f64,
    /// The rank that is to blame; none: several, or the job as a whole.
    pub rank: Option<usize>,
    /// Kind of the failure: `killed`, `diverged` …
    pub kind: String,
    /// Sentence of the report.
    pub message: String,
    /// Where ranks were.
    pub places: Vec<Place>,
}

/// Where a rank was in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Rank that was there.
    pub rank: usize,
    /// Op that the rank was in.
    pub op: String,
    /// File name without its folder.
    pub file: String,
    /// Line of the call in the program.
    pub line: u32,
}

/// Every event of a file, which may not be there yet and may end within a line.
pub fn read(file: &Path) -> Result<Vec<Event>, String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|l| event(l).ok_or_else(|| format!("not an event: {l}"))).collect()
}

fn event(line: &str) -> Option<Event> {
    let fields: Value = serde_json::from_str(line).ok()?;
    let time = fields.get("time")?.as_f64()?;
    let name = fields.get("event")?.as_str()?.to_string();
    Some(Event { time, name, fields })
}

impl Event {
    /// The failure that the event tells of, if it is one.
    pub fn report(&self) -> Option<Report> {
        let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
        let number = |v: &Value, key: &str| v.get(key).and_then(Value::as_u64);
        let places = self.fields.get("places").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        (self.name == "failure").then(|| Report {
            time: self.time,
            rank: number(&self.fields, "rank").map(|r| r as usize),
            kind: text(&self.fields, "kind"),
            message: text(&self.fields, "message"),
            places: places
                .iter()
                .map(|p| Place {
                    rank: number(p, "rank").map_or(usize::MAX, |r| r as usize),
                    op: text(p, "op"),
                    file: text(p, "file").rsplit('/').next().unwrap_or_default().to_string(),
                    line: number(p, "line").unwrap_or(0) as u32,
                })
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read_and_half_a_line_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        assert!(read(&file).unwrap().is_empty());
        let failure = r#"{"time": 2.5, "event": "failure", "rank": 1, "kind": "diverged", "message": "m",
            "places": [{"rank": 1, "op": "relu", "ordinal": 7, "file": "/a/b.rs", "line": 3}]}"#
            .replace('\n', " ");
        fs::write(&file, format!("{{\"time\": 1, \"event\": \"start\"}}\n{failure}\n{{\"time\": 3")).unwrap();
        let events = read(&file).unwrap();
        assert_eq!(events.len(), 2);
        assert!(events[0].report().is_none());
        let report = events[1].report().unwrap();
        assert_eq!((report.time, report.rank, report.kind.as_str()), (2.5, Some(1), "diverged"));
        assert_eq!(report.places, [Place { rank: 1, op: "relu".into(), file: "b.rs".into(), line: 3 }]);
        fs::write(&file, "nonsense\n").unwrap();
        assert!(read(&file).is_err());
    }
}
