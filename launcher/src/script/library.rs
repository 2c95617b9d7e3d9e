//! The library that scripts are linked to.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use serde::Deserialize;

use super::cargo;
use super::package::Package;
use crate::Failed;

/// The library as cargo has built it.
pub struct Library {
    rlib: PathBuf,
    /// Where the linker finds libraries of the system that build scripts have made.
    native: Vec<String>,
    /// Changes whenever the library is built anew.
    print: String,
}

/// Fields that are read of cargo's messages (`--message-format=json`).
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    #[serde(default)]
    linked_paths: Vec<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Library {
    /// Builds the library of the package's source tree if it is not up to date.
    pub fn build(package: &Package, verbose: bool) -> Result<Library, Failed> {
        let manifest = package.home.join("Cargo.toml");
        let command = || {
            let mut command = cargo::command(package, "build", &manifest);
            command.args(["--package", "oflow", "--lib", "--message-format", "json-render-diagnostics"]);
            // With other features than oflaunch's it would be another library, compiled once more.
            if cfg!(feature = "tls") {
                command.args(["--features", "tls"]);
            }
            command.stdout(Stdio::piped());
            command
        };
        let printed = cargo::run(command, "the library oflow", verbose)?;
        Library::of(&printed).ok_or_else(|| {
            Failed::new(format!("cargo built the library of {} and did not say where it is", package.home.display()))
        })
    }

    fn of(printed: &[u8]) -> Option<Library> {
        let messages = printed.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let (mut rlib, mut native) = (None, Vec::new());
        for message in messages {
            let Message { target, filenames, linked_paths } = message;
            native.extend(linked_paths);
            let ours = |t: Target| t.name == "oflow" && t.kind.iter().any(|kind| kind == "lib");
            if target.is_some_and(ours) {
                // Beside its metadata, under a name that no build with other features takes.
                let metadata = filenames.into_iter().find(|file| file.extension().is_some_and(|e| e == "rmeta"));
                rlib = metadata.map(|file| file.with_extension("rlib"));
            }
        }
        let rlib: PathBuf = rlib?;
        let metadata = fs::metadata(&rlib).ok()?;
        let built = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let print = format!("{}-{}-{}", rlib.file_stem()?.to_str()?, metadata.len(), built.as_nanos());
        Some(Library { rlib, native, print })
    }

    /// Gives the compiler the library and where to find what it needs.
    pub fn link(&self, command: &mut Command) {
        let mut library = OsString::from("oflow=");
        library.push(&self.rlib);
        command.arg("--extern").arg(library);
        // Cargo does not look at what the compiler is told to link. It builds anew when the compiler's arguments change.
        command.arg("-C").arg(format!("metadata={}", self.print));
        if let Some(folder) = self.rlib.parent() {
            let mut dependencies = OsString::from("dependency=");
            dependencies.push(folder);
            command.arg("-L").arg(dependencies);
        }
        for folder in &self.native {
            command.arg("-L").arg(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script that was linked to an older build of the library is not fresh.
    #[test]
    fn another_build_of_the_library_is_another_command() {
        let args = |print: &str| {
            let mut command = Command::new("cargo");
            let library = Library { rlib: "deps/liboflow-1.rlib".into(), native: vec![], print: print.into() };
            library.link(&mut command);
            command.get_args().map(OsString::from).collect::<Vec<_>>()
        };
        assert_ne!(args("liboflow-1-100-1"), args("liboflow-1-100-2"));
        assert_eq!(args("liboflow-1-100-1"), args("liboflow-1-100-1"));
    }
}
