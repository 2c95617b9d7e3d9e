//! The event log: one JSON object per line, for programs that monitor jobs.
//!
//! Every event has `time` (seconds since 1970) and `event`. [`EVENTS`] lists the events and their other fields.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use oflow::control::Failure;
use oflow_files::{Access, append_where_named};
use serde_json::{Map, Value, json};

use crate::Failed;
use crate::undelivered::Undelivered;

/// Every event with its fields, for the documentation.
pub const EVENTS: &[(&str, &str)] = &[
    ("start", "the job begins: `program`, `args`, `world`, `first_rank`, `nproc`, `node`, `nodes`, `restart`"),
    ("rank-started", "`rank`, `pid`"),
    ("rank-ended", "`rank`, `pid`, `code` (128 and the signal's number after a signal), `message`"),
    ("failure", "the job has failed: `rank` or null, `kind`, `message`, `places`"),
    ("warning", "`message`, and `rank` if it concerns one rank"),
    (
        "other-work",
        "other work uses the ranks' cores: `rank` has waited the share `waited` of its time; `freed`: whether ranks may now use more cores; `message`",
    ),
    ("published", "a rank has called `ControlClient::publish`; on node 0: `rank`, `topic`, `text`"),
    ("restart", "all ranks are restarted: `restart`, `world`"),
    ("end", "`code`: the exit code of oflaunch"),
];

/// The event log of a job. Clones write to the same files.
#[derive(Clone, Debug, Default)]
pub struct Events(Option<Arc<Mutex<Files>>>);

#[derive(Debug)]
struct Files {
    open: Vec<(PathBuf, File)>,
    undelivered: Undelivered,
}

impl Events {
    /// Opens the files for appending, and creates them if they do not exist. Without files events are dropped. Events that cannot be
    /// written later are told to `undelivered`.
    pub fn to(paths: &[PathBuf], log_dir: Option<&Path>, undelivered: Undelivered) -> Result<Events, Failed> {
        let open = |path: &PathBuf| -> Result<(PathBuf, File), Failed> {
            // What the user names may be a link, as /dev/stderr is.
            let failed = |e: String| Failed::new(format!("cannot write events to {}: {e}", path.display()));
            let file = match path.parent() == log_dir {
                true => oflow_files::append(path, Access::Readable).map_err(|e| failed(e.to_string()))?,
                false => append_where_named(path, Access::Readable).map_err(|e| failed(e.to_string()))?,
            };
            Ok((path.clone(), file))
        };
        let open = paths.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Ok(Events((!open.is_empty()).then(|| Arc::new(Mutex::new(Files { open, undelivered })))))
    }

    /// Writes an event; `fields` is an object.
    pub fn tell(&self, event: &str, fields: Value) {
        let Some(files) = &self.0 else { return };
        let line = line(SystemTime::now(), event, fields);
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        let Files { open, undelivered } = &mut *files;
        open.retain_mut(|(path, file)| {
            let written = file.write_all(line.as_bytes());
            if let Err(e) = &written {
                undelivered.lost(&format!("cannot write events to {}: {e}", path.display()));
            }
            written.is_ok()
        });
    }

    /// Writes the event `failure`.
    pub fn failure(&self, failure: &Failure) {
        self.tell("failure", serde_json::to_value(failure).unwrap_or_default());
    }

    /// Writes a warning about a rank or the job.
    pub fn warning(&self, rank: Option<usize>, message: &str) {
        self.tell("warning", json!({ "rank": rank, "message": message }));
    }
}

/// One line, written at once: readers never see half an event of a job that lives.
fn line(now: SystemTime, event: &str, fields: Value) -> String {
    let mut object = Map::new();
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as f64 / 1e6;
    object.insert("time".into(), json!(seconds));
    object.insert("event".into(), json!(event));
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    format!("{}\n", Value::Object(object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oflow::control::FailureKind;
    use std::time::Duration;

    #[test]
    fn an_event_is_a_line_of_json() {
        let at = UNIX_EPOCH + Duration::from_micros(1_795_204_689_662_496);
        let text = line(at, "warning", json!({ "message": "two\nlines" }));
        assert_eq!(text, "{\"event\":\"warning\",\"message\":\"two\\nlines\",\"time\":1795204689.662496}\n");
    }

    #[test]
    fn events_are_appended_to_every_file() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("a"), folder.path().join("b")];
        for restart in 0..2 {
            let events = Events::to(&paths, None, Undelivered::default()).unwrap();
            events.tell("start", json!({ "restart": restart }));
            events.clone().failure(&Failure::of_rank(1, FailureKind::Killed, "rank 1 was killed"));
        }
        let text = std::fs::read_to_string(&paths[0]).unwrap();
        assert_eq!(text, std::fs::read_to_string(&paths[1]).unwrap());
        let read: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(read.len(), 4);
        assert_eq!(read[2]["restart"], 1);
        assert_eq!((&read[3]["rank"], &read[3]["kind"]), (&json!(1), &json!("killed")));
        assert!(read.iter().all(|e| EVENTS.iter().any(|(name, _)| e["event"] == **name)));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = Events::to(&["/nowhere/at/all".into()], None, Undelivered::default()).unwrap_err();
        assert!(error.message.contains("cannot write events to /nowhere/at/all"), "{error}");
    }
}
