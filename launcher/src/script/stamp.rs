//! Checks without cargo whether a script's executable is up to date.
//!
//! After a build the stamp is a hash over all inputs of the executable: cargo's lists of source files (the script's and the
//! library's) with their sizes and times, manifests, flags, and oflaunch itself, and one of the compiler's version. If nothing has
//! changed the executable is run. Where there is no compiler its version is not compared: nothing can be built there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oflow_files::Access;

use super::package::Package;

/// File times are taken from a coarser clock than ours; a change may look older than it is by this much.
const CLOCK_SLACK: Duration = Duration::from_millis(10);
/// Environment variables that change what cargo builds.
const FLAGS: &[&str] = &["RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTUP_TOOLCHAIN"];
const FLAG_PREFIXES: &[&str] = &["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_ENCODED_RUSTFLAGS"];

/// FNV-1a with 64 bits. Unlike std's hasher it is the same in every build.
pub struct Hasher(u64);

impl Default for Hasher {
    fn default() -> Hasher {
        Hasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher {
    /// Adds bytes and their number.
    pub fn write(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the hash.
    pub fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns whether the executable is that of the last build and nothing has changed since.
pub fn is_fresh(package: &Package) -> bool {
    let saved = fs::read_to_string(path(package)).ok();
    saved.as_deref().and_then(|saved| saved.split_once(' ')).is_some_and(|(inputs, compiler)| {
        compute(package, None).is_some_and(|now| inputs == now) && compiler_version().is_none_or(|now| compiler == now)
    })
}

/// Records that the executable is up to date, unless an input was changed after the start of the build, because it is not known
/// which version was built.
pub fn save(package: &Package, began: SystemTime) {
    let path = path(package);
    let saved = match (compute(package, Some(began)), compiler_version()) {
        (Some(inputs), Some(compiler)) => {
            let text = format!("{inputs} {compiler}");
            oflow_files::replace(&path, Access::Readable, text.as_bytes()).is_ok()
        }
        _ => false,
    };
    if !saved {
        // Without a stamp the next run asks cargo: slower and right.
        let _may_be_missing = fs::remove_file(&path);
    }
}

/// Returns the path of a package's stamp.
pub fn path(package: &Package) -> PathBuf {
    package.folder.join(format!("stamp-{}", package.profile.name()))
}

/// The hash over all inputs but the compiler; none if one is missing, or younger than the build.
fn compute(package: &Package, build_began: Option<SystemTime>) -> Option<String> {
    let mut hash = Hasher::default();
    let executable = package.executable();
    hash.write(&fingerprint(&executable)?.0);
    let own = std::env::current_exe().ok()?;
    hash.write(own.as_os_str().as_bytes());
    hash.write(&fingerprint(&own)?.0);
    for (name, value) in flags() {
        hash.write(name.as_bytes());
        hash.write(value.as_bytes());
    }
    let mut inputs = dep_info(&fs::read_to_string(executable.with_extension("d")).ok()?);
    // The library is not among the dependencies of a script that is linked to it.
    if !inputs.contains(&package.home.join("src/lib.rs")) {
        let library = package.target.join(package.profile.folder()).join("liboflow.d");
        inputs.extend(dep_info(&fs::read_to_string(library).ok()?));
    }
    inputs.push(package.source.clone());
    inputs.sort();
    inputs.dedup();
    for input in &inputs {
        let (print, modified) = fingerprint(input)?;
        if build_began.is_some_and(|began| modified + CLOCK_SLACK >= began) {
            return None;
        }
        hash.write(input.as_os_str().as_bytes());
        hash.write(&print);
    }
    // The contents as well: an editor or a copy may keep the time.
    hash.write(&fs::read(&package.source).ok()?);
    let home = &package.home;
    hash.write(home.as_os_str().as_bytes());
    for manifest in manifests(home, &inputs) {
        hash.write(manifest.as_os_str().as_bytes());
        hash.write(&fs::read(&manifest).ok()?);
    }
    for file in ["Cargo.lock", ".cargo/config.toml"] {
        // Not every source tree has both.
        hash.write(&fs::read(home.join(file)).unwrap_or_default());
    }
    Some(format!("{:016x}", hash.finish()))
}

/// The manifests of the source tree's crates that have inputs, and of its workspace.
fn manifests(home: &Path, inputs: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::from([home]);
    for input in inputs.iter().filter(|input| input.starts_with(home)) {
        for folder in input.ancestors().skip(1) {
            // What is above a known folder is known.
            if !folders.insert(folder) {
                break;
            }
        }
    }
    folders.into_iter().map(|folder| folder.join("Cargo.toml")).filter(|manifest| manifest.is_file()).collect()
}

/// Length and time of a file, as bytes and the time alone.
fn fingerprint(path: &Path) -> Option<([u8; 24], SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?;
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&metadata.len().to_le_bytes());
    let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    bytes[8..].copy_from_slice(&age.as_nanos().to_le_bytes());
    Some((bytes, modified))
}

/// The hash of the compiler's version; none if there is no compiler.
fn compiler_version() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().ok()?;
    let mut hash = Hasher::default();
    hash.write(&output.stdout);
    output.status.success().then(|| format!("{:016x}", hash.finish()))
}

fn flags() -> Vec<(String, OsString)> {
    let relevant = |name: &str| FLAGS.contains(&name) || FLAG_PREFIXES.iter().any(|p| name.starts_with(p));
    let mut flags: Vec<(String, OsString)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| relevant(name))
        .collect();
    flags.sort();
    flags
}

/// The source files in a dep-info file: `executable: file file …`, with spaces in names escaped.
fn dep_info(text: &str) -> Vec<PathBuf> {
    let Some((_, list)) = text.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut name = String::new();
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&' ') => name.extend(chars.next()),
            ' ' => files.push(std::mem::take(&mut name)),
            c => name.push(c),
        }
    }
    files.push(name);
    files.into_iter().filter(|f| !f.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dep_info_names_are_unescaped() {
        assert_eq!(
            dep_info("/t/debug/x: /a/b.rs /with\\ space/c.rs /back\\slash.rs\n\n/a/b.rs:\n"),
            [Path::new("/a/b.rs"), Path::new("/with space/c.rs"), Path::new("/back\\slash.rs")]
        );
        assert!(dep_info("").is_empty());
    }

    #[test]
    fn the_manifest_of_every_crate_with_inputs_counts() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let file = |name: &str| {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        let [top, base, comm] = ["Cargo.toml", "base/Cargo.toml", "comm/Cargo.toml"].map(file);
        // A crate that the executable is not made of.
        file("xtask/Cargo.toml");
        let inputs = ["src/lib.rs", "base/src/lib.rs", "comm/src/shm/mod.rs", "comm/src/shm/arena.rs"].map(file);
        assert_eq!(manifests(&home, &inputs), BTreeSet::from([top.clone(), base, comm]));
        // A script with a library elsewhere.
        assert_eq!(manifests(&home, &[dir.path().join("a.rs")]), BTreeSet::from([top]));
    }

    #[test]
    fn neighbours_do_not_run_together() {
        let hash = |parts: &[&str]| {
            let mut h = Hasher::default();
            parts.iter().for_each(|p| h.write(p.as_bytes()));
            h.finish()
        };
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_eq!(hash(&["ab", "c"]), hash(&["ab", "c"]));
    }
}
