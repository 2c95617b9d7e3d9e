//! Why a job has failed, as data: printed by the launcher, written to its event log and sent to every rank.

use std::fmt;

use serde::{Deserialize, Serialize};

use oflow_base::{Error, ErrorKind, Place};
use oflow_comm::shm::Loss;

/// Kind of failure that ended a job. The names are those of the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureKind {
    /// A rank's program returned an error.
    Error,
    /// A rank panicked.
    Panicked,
    /// A rank exited with a code but without an error or panic message, or left while other ranks still waited for it.
    Exited,
    /// A rank was ended by a signal.
    Killed,
    /// A rank ran out of memory.
    OutOfMemory,
    /// A rank's process was stopped (SIGSTOP).
    Stopped,
    /// A rank is alive but has not joined a collective within the time-out.
    Stalled,
    /// Ranks issued different ops.
    Diverged,
    /// A host, or its launcher, is lost.
    NodeLost,
    /// The connection between two hosts is cut, or delivers no data.
    LinkLost,
    /// A user or a scheduler ended the job.
    Interrupted,
    /// A file could not be written, for example because the disk is full.
    Storage,
}

impl FailureKind {
    /// Every kind of failure.
    pub const ALL: [FailureKind; 12] = [
        FailureKind::Error,
        FailureKind::Panicked,
        FailureKind::Exited,
        FailureKind::Killed,
        FailureKind::OutOfMemory,
        FailureKind::Stopped,
        FailureKind::Stalled,
        FailureKind::Diverged,
        FailureKind::NodeLost,
        FailureKind::LinkLost,
        FailureKind::Interrupted,
        FailureKind::Storage,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Error => "error",
            FailureKind::Panicked => "panicked",
            FailureKind::Exited => "exited",
            FailureKind::Killed => "killed",
            FailureKind::OutOfMemory => "out-of-memory",
            FailureKind::Stopped => "stopped",
            FailureKind::Stalled => "stalled",
            FailureKind::Diverged => "diverged",
            FailureKind::NodeLost => "node-lost",
            FailureKind::LinkLost => "link-lost",
            FailureKind::Interrupted => "interrupted",
            FailureKind::Storage => "storage",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a job has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The rank that failed, or `None` if the job as a whole was ended.
    pub rank: Option<usize>,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// The report: a sentence that names the rank, if there is one.
    pub message: String,
    /// Positions of ranks at the failure, if known. For a divergence these are the two ranks that differ, lower rank first.
    #[serde(default)]
    pub places: Vec<Place>,
    /// The rank for which the failed one had waited in vain, which may be the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<usize>,
}

impl Failure {
    /// Makes the failure of a rank.
    pub fn of_rank(rank: usize, kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { rank: Some(rank), kind, message: message.into(), places: Vec::new(), missing: None }
    }

    /// Makes the failure of the job as a whole.
    pub fn of_job(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { rank: None, kind, message: message.into(), places: Vec::new(), missing: None }
    }

    /// Adds the positions of ranks at the failure.
    #[must_use]
    pub fn in_places(mut self, places: impl IntoIterator<Item = Place>) -> Failure {
        self.places.extend(places);
        self
    }

    /// Makes the failure that an error on a rank means for its job.
    pub fn of_error(rank: usize, error: &Error) -> Failure {
        let kind = kind_of(error);
        let message = match (kind, error.help_text()) {
            // The message of a divergence names the positions of both ranks. The call site of this rank, which the full text of the error
            // adds, would only repeat one of them.
            (FailureKind::Diverged, Some(help)) => format!("{}\n  help: {help}", error.message()),
            (FailureKind::Diverged, None) => error.message().to_string(),
            _ => error.to_string(),
        };
        Failure::of_rank(rank, kind, message).in_places(error.places().iter().cloned())
    }

    /// Returns how the ranks that wait for the failed one report it. `code` is the exit code of its process, if known.
    pub fn loss(&self, code: Option<u8>) -> Loss {
        match (self.kind, code) {
            (FailureKind::Stopped, _) => Loss::Stopped,
            (FailureKind::Stalled, _) => Loss::Stalled,
            (FailureKind::Diverged, _) => Loss::Diverged,
            (FailureKind::LinkLost | FailureKind::NodeLost, _) => Loss::Unreachable,
            (FailureKind::Exited, Some(0)) => Loss::Gone,
            (_, Some(code)) => Loss::Died(code),
            (FailureKind::Killed | FailureKind::Exited, None) => Loss::Gone,
            (_, None) => Loss::Failed,
        }
    }

    /// Returns the failure as JSON, the form in which it is sent.
    pub fn to_json(&self) -> String {
        // Serialising strings and numbers cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the JSON of [`Failure::to_json`]. If `detail` is empty or malformed, the failure has the rank and message given here
    /// and the kind `Error`.
    pub fn from_wire(rank: Option<usize>, message: String, detail: &str) -> Failure {
        let bare = Failure { rank, kind: FailureKind::Error, message, places: Vec::new(), missing: None };
        serde_json::from_str(detail).unwrap_or(bare)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::peer(format!("the job has failed: {failure}")).in_places(failure.places)
    }
}

fn kind_of(error: &Error) -> FailureKind {
    match error.kind() {
        ErrorKind::Diverged => FailureKind::Diverged,
        ErrorKind::Memory => FailureKind::OutOfMemory,
        ErrorKind::Link => FailureKind::LinkLost,
        ErrorKind::Storage => FailureKind::Storage,
        ErrorKind::Io if cannot_store(error) => FailureKind::Storage,
        _ => FailureKind::Error,
    }
}

/// Whether the error was caused by a file system that does not accept more data: full, over quota, read-only or at a size limit.
fn cannot_store(error: &Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull, WriteZero};
    let mut next: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return matches!(io.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem | FileTooLarge | WriteZero);
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for kind in FailureKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
            assert_eq!(serde_json::from_str::<FailureKind>(&format!("\"{kind}\"")).unwrap(), kind);
        }
    }

    #[test]
    fn travels_as_json() {
        let place = Place { rank: 1, op: "relu".into(), ordinal: 3, file: "train.rs".into(), line: 10 };
        let failure = Failure::of_rank(1, FailureKind::Diverged, "they differ").in_places([place]);
        assert_eq!(
            failure.to_json(),
            r#"{"rank":1,"kind":"diverged","message":"they differ","places":[{"rank":1,"op":"relu","ordinal":3,"file":"train.rs","line":10}]}"#
        );
        assert_eq!(Failure::from_wire(None, String::new(), &failure.to_json()), failure);
        let bare = Failure::of_rank(2, FailureKind::Error, "lost");
        assert_eq!(Failure::from_wire(Some(2), "lost".into(), ""), bare);
        assert_eq!(Failure::from_wire(Some(2), "lost".into(), "{\"rank\":"), bare);
    }

    #[test]
    fn errors_have_their_kinds() {
        let io = |kind: std::io::ErrorKind| Error::io("cannot write").because(std::io::Error::from(kind));
        for (error, kind) in [
            (Error::diverged("x"), FailureKind::Diverged),
            (Error::memory("x"), FailureKind::OutOfMemory),
            (Error::link("x"), FailureKind::LinkLost),
            (io(std::io::ErrorKind::StorageFull), FailureKind::Storage),
            (Error::storage("a checkpoint was not written"), FailureKind::Storage),
            (io(std::io::ErrorKind::NotFound), FailureKind::Error),
            (Error::shape("x"), FailureKind::Error),
        ] {
            assert_eq!(Failure::of_error(0, &error).kind, kind, "{error}");
        }
    }
}
