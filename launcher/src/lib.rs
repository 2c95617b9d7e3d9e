//! Runs oflow jobs (`oflaunch`) and answers questions about the library (`oflow`).
//!
//! To run a job, `oflaunch` builds the program if it is a script, hosts the control service, starts the ranks, prints their
//! output, and ends all ranks when one fails.
//!
//! That part knows processes, pipes and exit codes, and nothing of tensors and ops. Start at [`job::run`]; the command line is in
//! [`cli`]. The subcommands of `oflow` are listed in [`commands`].

pub mod ask;
pub mod calibrate;
pub mod ckpt;
pub mod cli;
pub mod commands;
pub mod cores;
pub mod doctor;
mod doctor_cuda;
pub mod events;
pub mod guardian;
pub mod job;
pub mod libraries;
mod load;
pub mod logs;
pub mod losses;
pub mod model;
pub mod output;
pub mod postmortem;
pub mod program;
pub mod python;
pub mod rank;
mod repeats;
pub mod report;
pub mod run;
pub mod script;
pub mod terminal;
pub mod traceback;

use std::fmt;

/// Exit codes of `oflaunch` itself, with their meaning for the help text.
pub const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "every rank exited with 0"),
    ("N", "the code of the first rank that failed"),
    ("128+N", "the first rank that failed was killed by signal N; 130 also after Ctrl-C"),
    ("1", "oflaunch itself failed"),
    ("2", "wrong use of the command line"),
    ("101", "the script did not compile, or the first rank that failed panicked"),
    ("126", "the program cannot be executed"),
    ("127", "the program was not found"),
];

/// oflaunch itself has failed.
pub const EXIT_FAILED: u8 = 1;
/// The script did not compile. The code of cargo, and of a panic.
pub const EXIT_NOT_COMPILED: u8 = 101;
/// The program cannot be executed.
pub const EXIT_NOT_EXECUTABLE: u8 = 126;
/// The program was not found.
pub const EXIT_NOT_FOUND: u8 = 127;

/// Why no job was run, and the exit code.
#[derive(Debug)]
pub struct Failed {
    /// The exit code.
    pub code: u8,
    /// Message for the user; empty if it has been printed already.
    pub message: String,
}

impl Failed {
    /// Makes a failure of oflaunch itself.
    pub fn new(message: impl Into<String>) -> Failed {
        Failed::with_code(EXIT_FAILED, message)
    }

    /// Makes a failure with its own exit code.
    pub fn with_code(code: u8, message: impl Into<String>) -> Failed {
        Failed { code, message: message.into() }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
