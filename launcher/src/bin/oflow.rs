//! `oflow`: answers questions about this machine, ops, SBP and boxing. See `oflow --help`.

use std::process::ExitCode;

use oflaunch::commands;

fn main() -> ExitCode {
    if oflaunch::guardian::asked() {
        return oflaunch::guardian::run();
    }
    let matches = commands::command().get_matches();
    // `oflow ops | head` ends like any other program. `calibrate` and `run` talk to processes that may end before them, and must
    // not end by a closed pipe.
    if !matches!(matches.subcommand_name(), Some("calibrate" | "run")) {
        // SAFETY: before any thread exists; the default action needs no handler.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    match commands::dispatch(&matches) {
        Ok(code) => ExitCode::from(code),
        Err(failed) => {
            eprintln!("oflow: {}", oflaunch::terminal::visible(&failed.message));
            ExitCode::from(failed.code)
        }
    }
}
