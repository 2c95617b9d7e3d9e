//! Calling cargo.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::cargo_env;
use super::library::Library;
use super::package::{COPY_NAME, Package};
use crate::{EXIT_NOT_COMPILED, Failed};

/// Builds the script's package. Cargo's output goes to stderr.
///
/// `copied`: the script is compiled from a copy; messages show the path of the script instead.
pub fn build(package: &Package, copied: bool, library: Option<&Library>, verbose: bool) -> Result<(), Failed> {
    let command = || {
        let mut command = command(package, "rustc", &package.manifest_path());
        command.args(["--bin", &package.name]).arg("--").stdout(Stdio::null());
        // At an address known to the linker, 0.5 MiB of constants hold their pointers in the file: no rank writes them when it
        // starts, and the ranks of a host share the pages.
        command.args(["-C", "relocation-model=static"]);
        if copied {
            // Cargo names the copy relative to the package's folder.
            let mut map = OsString::from(format!("--remap-path-prefix={COPY_NAME}="));
            map.push(&package.source);
            command.arg(map);
        }
        if let Some(library) = library {
            library.link(&mut command);
        }
        command
    };
    run(command, &package.source.display().to_string(), verbose).map(|_| ())
}

/// Builds what the script's package depends on, and returns what cargo printed of it.
pub fn build_dependencies(package: &Package, verbose: bool) -> Result<Vec<u8>, Failed> {
    let command = || {
        let mut command = command(package, "build", &package.manifest_path());
        command.args(["--lib", "--message-format", "json-render-diagnostics"]).stdout(Stdio::piped());
        command
    };
    run(command, &format!("what {} depends on", package.source.display()), verbose)
}

/// Runs a build, offline if all dependencies are on this machine, and returns what cargo printed on a piped stdout.
///
/// `what`: names in messages what is built.
pub fn run(command: impl Fn() -> Command, what: &str, verbose: bool) -> Result<Vec<u8>, Failed> {
    let failed = || Failed::with_code(EXIT_NOT_COMPILED, format!("{what} could not be built; no rank was started"));
    let no_cargo = |e: io::Error| Failed::new(format!("cannot run cargo: {e}; scripts need a Rust toolchain in PATH"));
    let mut first = command();
    // Before the arguments of the compiler, which may be the last ones.
    first.env("CARGO_NET_OFFLINE", "true");
    match watch(first, false, verbose).map_err(no_cargo)? {
        (Outcome::Built, printed) => Ok(printed),
        (Outcome::NotCompiled, _) => Err(failed()),
        (Outcome::NotResolved, _) => match watch(command(), true, verbose).map_err(no_cargo)? {
            (Outcome::Built, printed) => Ok(printed),
            _ => Err(failed()),
        },
    }
}

enum Outcome {
    Built,
    /// The compiler has reported errors.
    NotCompiled,
    /// Cargo has failed before compiling: something is missing on this machine, or the manifest is wrong.
    NotResolved,
}

/// Runs a build. Of one that is not `online`, what comes before the first compilation is held back, because it may be a complaint about
/// a missing download, which an online build will put right.
fn watch(mut command: Command, online: bool, verbose: bool) -> io::Result<(Outcome, Vec<u8>)> {
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let printed = child.stdout.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            pipe.read_to_end(&mut all).map(|_| all)
        })
    });
    let mut held = Vec::new();
    let (mut compiles, mut in_warning) = (false, false);
    if let Some(pipe) = child.stderr.take() {
        let mut show = io::stderr().lock();
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            // The settings of packages are the library's, and a script need not have all of these: no warning, nor what follows it.
            in_warning = contains(&line, b"profile package spec ")
                || in_warning && (line == b"\n" || contains(&line, b"a package with a similar name exists"));
            if in_warning {
                line.clear();
                continue;
            }
            compiles = compiles || contains(&line, b"Compiling ");
            if compiles || online {
                show.write_all(&held)?;
                held.clear();
            }
            // Waiting for another build is news in any case.
            if compiles || online || contains(&line, b"Blocking ") {
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
    let outcome = match (child.wait()?.success(), compiles) {
        (true, _) => Outcome::Built,
        (false, true) => Outcome::NotCompiled,
        (false, false) => Outcome::NotResolved,
    };
    let printed = match printed.map(|thread| thread.join()) {
        None => Vec::new(),
        Some(Ok(printed)) => printed?,
        Some(Err(_)) => return Err(io::Error::other("what cargo printed was not read")),
    };
    Ok((outcome, printed))
}

/// A cargo command on a manifest, with the profile, target directory and settings of the package's build.
pub fn command(package: &Package, verb: &str, manifest: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .arg(verb)
        .arg("--manifest-path")
        .arg(manifest)
        .args(["--profile", package.profile.name()])
        // The source tree's own cargo settings apply, as they did when the library was built.
        .current_dir(&package.home)
        .env("CARGO_TARGET_DIR", &package.target)
        // Else the executable would lie elsewhere.
        .env_remove("CARGO_BUILD_TARGET")
        // The terminal is for the ranks, and what cargo prints is no result.
        .stdin(Stdio::null());
    cargo_env::forget(&mut command);
    if io::stderr().is_terminal() {
        command.args(["--color", "always"]);
    }
    command
}

fn contains(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|w| w == word)
}
