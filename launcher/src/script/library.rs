//! The library that scripts are linked to.
//!
//! A script may name crates that the library uses too. Of most of them it may have a copy of its own, with other features. Those whose
//! types or traits stand in the library's interface, or that keep state for a whole process, must be the library's own ([`SHARED`]): the
//! script's package asks for the features with which the library has them, and what cargo then builds is compared.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use serde::Deserialize;

use super::cargo;
use super::package::{Package, SHARED_PACKAGE};
use crate::Failed;

/// Crates that a script must share with the library: `half` and `smallvec` are in its types, values of the traits of `serde` are saved in
/// checkpoints, and events of `tracing` reach one subscriber.
const SHARED: [&str; 6] = ["half", "serde", "serde_core", "smallvec", "tracing", "tracing-core"];

/// Crates of which the procedural macros of [`SHARED`] are made: with other features the macros would be others, too.
const OF_MACROS: [&str; 1] = ["syn"];

/// The library as cargo has built it.
pub struct Library {
    rlib: PathBuf,
    /// The crates of [`SHARED`] and [`OF_MACROS`] as the library has them.
    crates: Vec<Crate>,
    /// Where the linker finds libraries of the system that build scripts have made.
    native: Vec<String>,
    /// Changes whenever the library is built anew.
    print: String,
}

/// Fields that are read of cargo's messages (`--message-format=json`).
#[derive(Deserialize)]
struct Message {
    package_id: Option<String>,
    target: Option<Target>,
    #[serde(default)]
    features: Vec<String>,
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

impl Message {
    /// The file of the library oflow, if the message is about it: beside its metadata, under a name that no build with other features takes.
    fn library(&self) -> Option<PathBuf> {
        let target = self.target.as_ref()?;
        let ours = target.name == "oflow" && target.kind.iter().any(|kind| kind == "lib");
        let metadata = self.filenames.iter().find(|file| file.extension().is_some_and(|e| e == "rmeta"))?;
        ours.then(|| metadata.with_extension("rlib"))
    }
}

/// A crate as cargo has built it.
#[derive(Debug, PartialEq)]
struct Crate {
    name: String,
    version: String,
    features: Vec<String>,
    /// The file has a name that no build with other features, dependencies or settings takes.
    file: PathBuf,
}

impl Crate {
    /// The crate that a message is about, if it is of those.
    fn of(message: &Message, names: &[&str]) -> Option<Crate> {
        // `registry+https://…#name@version`
        let (name, version) = message.package_id.as_ref()?.rsplit_once('#')?.1.split_once('@')?;
        let library = message.target.as_ref()?.kind.iter().any(|kind| kind == "lib");
        let file = message.filenames.iter().find(|file| file.extension().is_some_and(|e| e == "rlib"))?;
        (library && names.contains(&name)).then(|| Crate {
            name: name.into(),
            version: version.into(),
            features: message.features.clone(),
            file: file.clone(),
        })
    }

    /// A dependency on it with its features, as a line of a manifest. Of versions that fit, cargo takes the one of the lock file.
    fn dependency(&self) -> String {
        let mut parts = self.version.split('.');
        let compatible: Vec<&str> = match parts.next() {
            Some("0") => ["0"].into_iter().chain(parts.next()).collect(),
            major => major.into_iter().collect(),
        };
        let (name, version) = (&self.name, compatible.join("."));
        let key = format!("{name}-{}", version.replace('.', "-"));
        let features = self.features.join("\", \"");
        let features = if features.is_empty() { features } else { format!("\"{features}\"") };
        format!(
            "{key} = {{ package = \"{name}\", version = \"{version}\", default-features = false, features = [{features}] }}\n"
        )
    }
}

fn messages(printed: &[u8]) -> impl Iterator<Item = Message> {
    printed.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
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
        let (mut rlib, mut native, mut crates) = (None, Vec::new(), Vec::new());
        for message in messages(printed) {
            crates.extend(Crate::of(&message, &[&SHARED[..], &OF_MACROS].concat()));
            if let Some(file) = message.library() {
                rlib = Some(file);
            }
            native.extend(message.linked_paths);
        }
        let rlib: PathBuf = rlib?;
        let metadata = fs::metadata(&rlib).ok()?;
        let built = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let print = format!("{}-{}-{}", rlib.file_stem()?.to_str()?, metadata.len(), built.as_nanos());
        Some(Library { rlib, crates, native, print })
    }

    /// Manifest of a package that depends on the shared crates with the library's features: among the dependencies of a script's package
    /// it makes cargo build them as the library has them.
    pub fn shared_manifest(&self) -> String {
        let (of_macros, shared): (Vec<&Crate>, _) =
            self.crates.iter().partition(|c| OF_MACROS.contains(&c.name.as_str()));
        let lines = |crates: &[&Crate]| crates.iter().map(|c| c.dependency()).collect::<String>();
        format!(
            "# Written by oflaunch; changes are lost. What the library shares with scripts, with the library's features.
[package]
name = \"{SHARED_PACKAGE}\"
version = \"0.0.0\"
edition = \"2024\"
publish = false

[lib]
path = \"lib.rs\"

[dependencies]
{}
# Macros are built for the host, as build scripts are.
[build-dependencies]
{}",
            lines(&shared),
            lines(&of_macros)
        )
    }

    /// The first shared crate of a build that is not the library's own, or the library itself: a crate that a script names may depend on it,
    /// as `oflow-readers` does, and must have the same.
    pub fn differs(&self, printed: &[u8]) -> Option<String> {
        if messages(printed).filter_map(|m| m.library()).any(|file| file != self.rlib) {
            return Some("oflow itself, built with other features".to_string());
        }
        let built = messages(printed).filter_map(|m| Crate::of(&m, &SHARED));
        let own = |c: &Crate| self.crates.iter().any(|ours| ours.file == c.file);
        built
            .into_iter()
            .find(|c| !own(c))
            .map(|c| format!("{} {} with features [{}]", c.name, c.version, c.features.join(", ")))
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

    #[test]
    fn shared_crates_keep_version_and_features() {
        let line = |name: &str, version: &str, features: &str, hash: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"registry+https://x#{name}@{version}","target":{{"name":"{name}","kind":["lib"]}},"features":[{features}],"filenames":["/t/deps/lib{name}-{hash}.rlib","/t/deps/lib{name}-{hash}.rmeta"]}}"#
            )
        };
        let oflow = r#"{"package_id":"path+file:///x#oflow@0.1.0","target":{"name":"oflow","kind":["lib"]},"filenames":["/proc/self/liboflow-1.rmeta"]}"#;
        let own = [
            line("half", "2.7.1", r#""std""#, "1"),
            line("syn", "2.0.1", "", "2"),
            line("tracing", "0.1.4", "", "3"),
            line("anyhow", "1.0.0", "", "4"),
        ];
        let crates: Vec<Crate> =
            messages(own.join("\n").as_bytes()).filter_map(|m| Crate::of(&m, &["half", "syn", "tracing"])).collect();
        let lines: Vec<String> = crates.iter().map(Crate::dependency).collect();
        assert_eq!(
            lines,
            [
                "half-2 = { package = \"half\", version = \"2\", default-features = false, features = [\"std\"] }\n",
                "syn-2 = { package = \"syn\", version = \"2\", default-features = false, features = [] }\n",
                "tracing-0-1 = { package = \"tracing\", version = \"0.1\", default-features = false, features = [] }\n",
            ]
        );
        // Without a file the library is none.
        assert!(Library::of(oflow.as_bytes()).is_none());
        let library = Library { rlib: "deps/liboflow-1.rlib".into(), crates, native: vec![], print: "1".into() };
        assert_eq!(library.differs(own.join("\n").as_bytes()), None);
        // Another copy of what is not shared does not matter.
        assert_eq!(library.differs(line("anyhow", "1.0.0", "", "9").as_bytes()), None);
        let other = line("half", "2.7.1", r#""std","serde""#, "8");
        // A dependency that depends on the library has this one, or another.
        let depends = oflow.replace("/proc/self/", "deps/");
        assert_eq!(library.differs(depends.as_bytes()), None);
        let another = depends.replace("liboflow-1", "liboflow-2");
        assert!(library.differs(another.as_bytes()).is_some_and(|text| text.contains("oflow itself")));
        assert_eq!(library.differs(other.as_bytes()).as_deref(), Some("half 2.7.1 with features [std, serde]"));
    }

    /// A script that was linked to an older build of the library is not fresh.
    #[test]
    fn another_build_of_the_library_is_another_command() {
        let args = |print: &str| {
            let mut command = Command::new("cargo");
            let library =
                Library { rlib: "deps/liboflow-1.rlib".into(), crates: vec![], native: vec![], print: print.into() };
            library.link(&mut command);
            command.get_args().map(OsString::from).collect::<Vec<_>>()
        };
        assert_ne!(args("liboflow-1-100-1"), args("liboflow-1-100-2"));
        assert_eq!(args("liboflow-1-100-1"), args("liboflow-1-100-1"));
    }
}
