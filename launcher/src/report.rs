//! How a rank ended: a sentence and an exit code.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use oflow::control::service::{Candidate, Missing};
use oflow::control::{Failure, FailureKind};

use crate::traceback;

/// Names of the signals that a person meets. The numbers are Linux's on all architectures we build for.
const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// How a rank ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Rank that has ended.
    pub rank: usize,
    /// Id of the process.
    pub pid: i32,
    /// Exit status of the process.
    pub status: ExitStatus,
    /// The last lines of its stderr.
    pub tail: Vec<String>,
    /// Whether the kernel killed it because the memory was exhausted.
    pub out_of_memory: bool,
    /// Peer that this rank had waited for in vain, as it reported.
    pub missing: Option<Missing>,
}

impl Ended {
    /// Returns whether the rank succeeded.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// Returns whether a signal ended it. A signal is never a consequence of another rank's failure.
    pub fn by_signal(&self) -> bool {
        self.status.signal().is_some()
    }

    /// Returns the exit code as in a shell: that of the process, or 128 plus the signal.
    pub fn code(&self) -> u8 {
        let code = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 1,
        };
        u8::try_from(code).unwrap_or(1)
    }

    /// Returns the failure that it means for the job.
    pub fn failure(&self) -> Failure {
        let kind = match (self.status.signal(), self.code()) {
            (Some(9), _) if self.out_of_memory => FailureKind::OutOfMemory,
            (Some(6), _) | (None, 134) if no_memory(&self.tail) => FailureKind::OutOfMemory,
            (Some(_), _) => FailureKind::Killed,
            (None, 101) if panic_message(&self.tail).is_some() => FailureKind::Panicked,
            (None, 1) => match error_message(&self.tail) {
                Some((message, _)) if NO_MEMORY.iter().any(|text| message.contains(text)) => FailureKind::OutOfMemory,
                Some((message, _)) if NO_ROOM.iter().any(|text| message.contains(text)) => FailureKind::Storage,
                Some(_) => FailureKind::Error,
                None => FailureKind::Exited,
            },
            _ => FailureKind::Exited,
        };
        // No signal is the consequence of another rank's end.
        let missing = self.missing.filter(|_| !self.by_signal());
        let kind = if missing.is_some_and(|m| m.link) { FailureKind::LinkLost } else { kind };
        Failure { missing: missing.map(|m| m.rank), ..Failure::of_rank(self.rank, kind, self.describe()) }
    }

    /// Returns the failure and its code, to be compared with others; `None` if the rank succeeded.
    pub fn candidate(&self) -> Option<Candidate> {
        let failed = !self.success();
        failed.then(|| Candidate { failure: self.failure(), code: Some(self.code()), is_final: false })
    }

    /// Returns a sentence: which rank, and how it ended.
    pub fn describe(&self) -> String {
        let who = format!("rank {} (pid {})", self.rank, self.pid);
        if let Some(signal) = self.status.signal() {
            let hint = match signal {
                9 if self.out_of_memory => " because its memory had run out",
                9 => "; the kernel does that when memory runs out",
                6 if no_memory(&self.tail) => " because its memory had run out",
                _ => "",
            };
            let place = traceback::crash(&self.tail).map_or(String::new(), |place| format!(" (at {place})"));
            return format!("{who} was killed by {}{hint}{place}", signal_name(signal));
        }
        match (self.code(), panic_message(&self.tail)) {
            (101, Some(message)) => format!("{who} panicked: {message}"),
            (code, _) => match error_message(&self.tail) {
                Some((message, place)) if code == 1 => format!("{who} failed: {message}{}", at(place)),
                _ => format!("{who} exited with code {code}"),
            },
        }
    }

    /// The same where the rank's stderr has been shown, if the sentence quotes what stands there. `alone`: the job has no other rank.
    pub fn describe_below(&self, alone: bool) -> Option<String> {
        if self.failure().kind != FailureKind::Error {
            return None;
        }
        let (message, place) = error_message(&self.tail)?;
        let help = match !alone && MEETS_OTHERS.iter().any(|text| message.contains(text)) {
            true => {
                "; the ranks share the file system: let rank 0 make and remove files for all, and the \
                     others wait for it with `barrier()`"
            }
            false => "",
        };
        Some(format!("rank {} (pid {}) failed with the error above{}{help}", self.rank, self.pid, at(place)))
    }
}

/// Words in errors of oflow and of Python where memory has run out.
const NO_MEMORY: [&str; 3] = ["out of memory", "cannot allocate ", "MemoryError"];
/// Errors of the system when a file cannot grow.
const NO_ROOM: [&str; 3] = ["No space left on device", "Disk quota exceeded", "Read-only file system"];

/// Whether the program reported a failed allocation before it aborted, as Rust's allocator does.
fn no_memory(tail: &[String]) -> bool {
    tail.iter().any(|line| line.contains("memory allocation of ") && line.contains(" failed"))
}

/// Returns a signal as `signal 9 (SIGKILL)`.
pub fn signal_name(signal: i32) -> String {
    match SIGNALS.iter().find(|(number, _)| *number == signal) {
        Some((_, name)) => format!("signal {signal} ({name})"),
        None => format!("signal {signal}"),
    }
}

/// The last panic in the output of a Rust program: its place, and the first line of its message.
fn panic_message(tail: &[String]) -> Option<String> {
    let at = tail.iter().rposition(|line| line.contains("panicked at "))?;
    let place = tail[at].split_once("panicked at ")?.1.trim_end_matches(':');
    match tail.get(at + 1).filter(|line| !line.is_empty() && !line.starts_with("note: ")) {
        Some(message) => Some(format!("{message} (at {place})")),
        None => Some(format!("at {place}")),
    }
}

fn at(place: Option<String>) -> String {
    place.map_or(String::new(), |place| format!(" (at {place})"))
}

/// Words of systems and languages where another rank has made or filled what this one makes or removes.
const MEETS_OTHERS: [&str; 6] = [
    "File exists (os error 17)",
    "kind: AlreadyExists",
    "[Errno 17] File exists",
    "Directory not empty (os error 39)",
    "kind: DirectoryNotEmpty",
    "[Errno 39] Directory not empty",
];

/// The error that ended a program, what a Rust program's `main` returned or Python's last traceback, and its place.
fn error_message(tail: &[String]) -> Option<(String, Option<String>)> {
    traceback::error(tail).or_else(|| returned_error(tail))
}

/// The error that a Rust program's `main` returned last: its first line, and the place where oflow's errors name one.
fn returned_error(tail: &[String]) -> Option<(String, Option<String>)> {
    let first = tail.iter().rposition(|line| line.starts_with("Error: "))?;
    let message = tail[first].strip_prefix("Error: ")?;
    let place =
        tail[first + 1..].iter().take_while(|line| line.starts_with("  ")).find_map(|l| l.strip_prefix("  at "));
    Some((message.to_string(), place.map(str::to_string)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(raw: i32, tail: &[&str]) -> Ended {
        Ended {
            rank: 2,
            pid: 123,
            status: ExitStatus::from_raw(raw),
            tail: tail.iter().map(|l| l.to_string()).collect(),
            out_of_memory: false,
            missing: None,
        }
    }

    #[test]
    fn sentences_and_codes() {
        let panic = ["thread 'main' (9) panicked at src/main.rs:2:5:", "boom", "note: run with"];
        let error = ["starts", "Error: add(f32[2]): no", "  more of it", "  at train.rs:7", "  help: do not"];
        let python = ["Traceback (most recent call last):", "  File \"a.py\", line 3, in f", "ValueError: no"];
        for (raw, tail, sentence, code) in [
            (7 << 8, &panic[..0], "rank 2 (pid 123) exited with code 7", 7),
            (101 << 8, &panic[..0], "rank 2 (pid 123) exited with code 101", 101),
            (101 << 8, &panic[..], "rank 2 (pid 123) panicked: boom (at src/main.rs:2:5)", 101),
            (101 << 8, &panic[..1], "rank 2 (pid 123) panicked: at src/main.rs:2:5", 101),
            (7 << 8, &panic[..], "rank 2 (pid 123) exited with code 7", 7),
            (1 << 8, &error[..], "rank 2 (pid 123) failed: add(f32[2]): no (at train.rs:7)", 1),
            (1 << 8, &error[..2], "rank 2 (pid 123) failed: add(f32[2]): no", 1),
            (2 << 8, &error[..], "rank 2 (pid 123) exited with code 2", 2),
            (1 << 8, &python[..], "rank 2 (pid 123) failed: ValueError: no (at a.py:3)", 1),
            (3 << 8, &python[..], "rank 2 (pid 123) exited with code 3", 3),
            (11, &panic[..0], "rank 2 (pid 123) was killed by signal 11 (SIGSEGV)", 139),
            (64, &panic[..0], "rank 2 (pid 123) was killed by signal 64", 192),
        ] {
            let ended = ended(raw, tail);
            assert_eq!(ended.describe(), sentence);
            assert_eq!(ended.code(), code);
            assert!(!ended.success());
        }
        // Where the error itself stands above.
        let below = |raw: i32, tail: &[&str]| ended(raw, tail).describe_below(false);
        assert_eq!(below(1 << 8, &error).unwrap(), "rank 2 (pid 123) failed with the error above (at train.rs:7)");
        assert_eq!(below(1 << 8, &python).unwrap(), "rank 2 (pid 123) failed with the error above (at a.py:3)");
        assert_eq!(below(1 << 8, &error[..2]).unwrap(), "rank 2 (pid 123) failed with the error above");
        for text in
            ["Error: File exists (os error 17)", "Error: Os { code: 39, kind: DirectoryNotEmpty, message: \"…\" }"]
        {
            assert!(below(1 << 8, &[text]).unwrap().contains("; the ranks share the file system: let rank 0 make"));
        }
        let others = [(1 << 8, &panic[..0]), (101 << 8, &panic[..]), (2 << 8, &error[..]), (11, &error[..])];
        others.iter().for_each(|(raw, tail)| assert_eq!(below(*raw, tail), None));
        let kinds = |ended: &Ended| ended.failure().kind;
        assert_eq!(kinds(&ended(7 << 8, &[])), FailureKind::Exited);
        assert_eq!(kinds(&ended(101 << 8, &panic)), FailureKind::Panicked);
        assert_eq!(kinds(&ended(1 << 8, &error)), FailureKind::Error);
        assert_eq!(kinds(&ended(11, &panic)), FailureKind::Killed);
        assert_eq!(kinds(&ended(9, &[])), FailureKind::Killed);
        let full = ["Error: cannot write x: No space left on device (os error 28)"];
        assert_eq!(kinds(&ended(1 << 8, &full)), FailureKind::Storage);
        let starved = [python[0], python[1], "MemoryError"];
        assert_eq!(kinds(&ended(1 << 8, &starved)), FailureKind::OutOfMemory);
        let aborted = ended(6, &["memory allocation of 9999 bytes failed"]);
        assert_eq!(kinds(&aborted), FailureKind::OutOfMemory);
        assert!(aborted.describe().ends_with("signal 6 (SIGABRT) because its memory had run out"));
        let starved = Ended { out_of_memory: true, ..ended(9, &[]) };
        assert_eq!(kinds(&starved), FailureKind::OutOfMemory);
        assert!(starved.describe().ends_with("signal 9 (SIGKILL) because its memory had run out"));
        let missing = |link| Some(Missing { rank: 5, link });
        for (link, kind) in [(false, FailureKind::Error), (true, FailureKind::LinkLost)] {
            let waited = Ended { missing: missing(link), ..ended(1 << 8, &["Error: no loss: rank 5 has ended"]) };
            let failure = waited.failure();
            assert_eq!((failure.rank, failure.missing, failure.kind), (Some(2), Some(5), kind));
        }
        // A signal is no consequence of another rank's end.
        let failure = Ended { missing: missing(true), ..ended(11, &[]) }.failure();
        assert_eq!((failure.rank, failure.missing, failure.kind), (Some(2), None, FailureKind::Killed));
        let killed = ended(9, &[]).describe();
        assert!(killed.starts_with("rank 2 (pid 123) was killed by signal 9 (SIGKILL)"), "{killed}");
        assert!(ended(0, &[]).success());
    }
}
