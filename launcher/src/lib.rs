//! Runs oflow jobs (`oflaunch`) and answers questions about the library (`oflow`).
//!
//! To run a job, `oflaunch` builds the program if it is a script, hosts the control service, starts the ranks, prints their
//! output, and ends all ranks when one fails.
//!
//! That part knows processes, pipes and exit codes, and nothing of tensors and ops. Start at [`job::run`]; the command line is in
//! [`cli`]. The subcommands of `oflow` are listed in [`commands`].
//!
//! # How it works
//!
//! **Ranks bound to cores.** `cores.rs` divides the cores of a host among its ranks; `rank.rs` binds each rank before its
//! program starts. `job/bound.rs` checks once a second whether other work keeps ranks waiting for their cores. If so, and
//! `--bind` is `auto` (the default), it widens the affinity masks of their threads to all cores of the job, for the rest
//! of the job. The ranks need not know: the number of cores of all ranks together (`ShmArena::cores`) stays the same.
//! `load.rs` tells other work from the job's own, also for `oflow calibrate`.
//!
//! **Python programs.** `python.rs` finds the interpreter and the command line of a script or module. Apart from it, only
//! `traceback.rs` knows Python: it finds the exception and the user's line in the stderr of a rank, for the failure
//! report (`report.rs`), and it follows a traceback line by line, so that equal tracebacks of several ranks are printed
//! once (`repeats.rs`). In the rank, `python/oflow/_job.py` leaves the job at exit, reports a failure where nobody would
//! read the traceback (another launcher, threads that still run), and makes a world of one of each process that a rank
//! starts.
//!
//! **Watching.** `watch/` shows a job while it runs, on a page or in the terminal; `timeline/` shows steps of a recorded timeline, and `plot/`
//! logged metrics.
//!
//! **Cost model.** `model.rs` finds, reads and writes the file of constants; `calibrate/` measures them with conversions
//! of one step through the executor. The share of each constant in a price is taken from the model itself.

pub mod calibrate;
pub mod ckpt;
pub mod cli;
pub mod commands;
pub mod cores;
pub mod doctor;
mod doctor_cuda;
pub mod events;
pub mod guardian;
pub mod inspect;
pub mod job;
pub mod libraries;
mod load;
pub mod logs;
pub mod model;
pub mod output;
mod picture;
pub mod plot;
pub mod postmortem;
pub mod program;
pub mod python;
pub mod rank;
mod repeats;
pub mod report;
pub mod run;
pub mod script;
pub mod terminal;
pub mod timeline;
pub mod traceback;
pub mod undelivered;
pub mod watch;

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
