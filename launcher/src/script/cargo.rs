//! Calling cargo.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};

use super::package::{COPY_NAME, Package};
use crate::{EXIT_NOT_COMPILED, Failed};

/// Builds the package, offline if all dependencies are on this machine. Cargo's output goes to stderr.
///
/// `copied`: the script is compiled from a copy; messages show the path of the script instead.
pub fn build(package: &Package, copied: bool, verbose: bool) -> Result<(), Failed> {
    let failed = || {
        let script = package.source.display();
        Failed::with_code(EXIT_NOT_COMPILED, format!("{script} could not be built; no rank was started"))
    };
    let no_cargo = |e: io::Error| Failed::new(format!("cannot run cargo: {e}; scripts need a Rust toolchain in PATH"));
    match offline(command(package, copied, true), verbose).map_err(no_cargo)? {
        Outcome::Built => Ok(()),
        Outcome::NotCompiled => Err(failed()),
        Outcome::NotResolved => {
            let status = command(package, copied, false).status().map_err(no_cargo)?;
            if status.success() { Ok(()) } else { Err(failed()) }
        }
    }
}

enum Outcome {
    Built,
    /// The compiler has reported errors.
    NotCompiled,
    /// Cargo has failed before compiling: something is missing on this machine, or the manifest is wrong.
    NotResolved,
}

/// Runs an offline build. What comes before the first compilation is held back, because it may be a complaint about a
/// missing download, which an online build will put right.
fn offline(mut command: Command, verbose: bool) -> io::Result<Outcome> {
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let mut held = Vec::new();
    let mut compiles = false;
    if let Some(pipe) = child.stderr.take() {
        let mut show = io::stderr().lock();
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            compiles = compiles || contains(&line, b"Compiling ");
            if compiles {
                show.write_all(&held)?;
                held.clear();
            }
            // Waiting for another build is news in any case.
            if compiles || contains(&line, b"Blocking ") {
                show.write_all(&line)?;
            } else {
                held.extend_from_slice(&line);
            }
            line.clear();
        }
        if verbose {
            show.write_all(&held)?;
        }
    }
    Ok(match (child.wait()?.success(), compiles) {
        (true, _) => Outcome::Built,
        (false, true) => Outcome::NotCompiled,
        (false, false) => Outcome::NotResolved,
    })
}

fn command(package: &Package, copied: bool, offline: bool) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .arg("rustc")
        .arg("--manifest-path")
        .arg(package.manifest_path())
        .args(["--bin", &package.name, "--profile", package.profile.name()])
        // The source tree's own cargo settings apply, as they did when the library was built.
        .current_dir(&package.home)
        .env("CARGO_TARGET_DIR", &package.target)
        // Else the executable would lie elsewhere.
        .env_remove("CARGO_BUILD_TARGET")
        // The terminal is for the ranks, and what cargo prints is no result.
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if offline {
        command.arg("--offline");
    }
    if io::stderr().is_terminal() {
        command.args(["--color", "always"]);
    }
    if copied {
        // Cargo names the copy relative to the package's folder.
        let mut map = OsString::from(format!("--remap-path-prefix={COPY_NAME}="));
        map.push(&package.source);
        command.arg("--").arg(map);
    }
    command
}

fn contains(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|w| w == word)
}
