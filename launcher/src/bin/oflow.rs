//! `oflow`: answers questions about this machine, ops, SBP and boxing. See `oflow --help`.

use std::process::ExitCode;

use oflaunch::commands;

fn main() -> ExitCode {
    if oflaunch::guardian::asked() {
        return oflaunch::guardian::run();
    }
    match commands::dispatch(&commands::command().get_matches()) {
        Ok(code) => ExitCode::from(code),
        Err(failed) => {
            eprintln!("oflow: {failed}");
            ExitCode::from(failed.code)
        }
    }
}
