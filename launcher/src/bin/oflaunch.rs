//! `oflaunch`: runs one program as several ranks. See `oflaunch --help`.

use std::process::ExitCode;

use oflaunch::cli::Cli;
use oflaunch::job;

fn main() -> ExitCode {
    if oflaunch::guardian::asked() {
        return oflaunch::guardian::run();
    }
    match job::run(Cli::from_command_line()) {
        Ok(code) => ExitCode::from(code),
        Err(failed) => {
            oflaunch::output::complain(&failed.message);
            ExitCode::from(failed.code)
        }
    }
}
