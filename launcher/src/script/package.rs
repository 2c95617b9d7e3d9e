//! The generated package of a script.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use oflow_files::Access;
use rustix::fs::{AtFlags, CWD, accessat};

use super::frontmatter::Frontmatter;
use super::library::Library;
use super::stamp::{self, Hasher};
use crate::Failed;
use crate::cli::Profile;

/// A file that cargo puts into every target directory.
const TARGET_MARK: &str = "CACHEDIR.TAG";

/// File name of the lock of a package.
pub const LOCK_NAME: &str = "lock";

/// File name of the copy of a script with frontmatter.
pub const COPY_NAME: &str = "main.rs";

/// Name and folder of the package that gives a script's package the features of crates that the library uses too.
pub const SHARED_PACKAGE: &str = "oflow-shared";

/// File name of an empty library target: to build it is to build the dependencies of a script.
const DEPENDENCIES: &str = "dependencies.rs";

/// File name of the lock file of the library's workspace.
pub const LIBRARY_LOCK: &str = "Cargo.lock";

/// The package of a script.
#[derive(Clone, Debug)]
pub struct Package {
    /// Path of the script.
    pub source: PathBuf,
    /// The oflow source tree.
    pub home: PathBuf,
    /// Cargo's target directory: that of oflaunch, or the user's own one.
    pub target: PathBuf,
    /// Whether it is the user's own one.
    pub own_target: bool,
    /// Whether this user may build there. If not, the executable there is up to date.
    pub writable: bool,
    /// Folder of the package.
    pub folder: PathBuf,
    /// Name of the package and of the executable, unique for each script.
    pub name: String,
    /// Profile that cargo builds with.
    pub profile: Profile,
}

impl Package {
    /// Finds the package of the script at an absolute path. A script is built in the target directory of oflaunch, where the library
    /// has been built. If this user cannot write there, an executable that is up to date is used as it is; any other is built in a
    /// target directory of the user's own.
    pub fn locate(source: &Path, profile: Profile) -> Result<Package, Failed> {
        let home = home()?;
        let target = target_dir(&home, std::env::current_exe().ok().as_deref());
        let package = Package::within(source, profile, home, (target, false))?;
        if package.writable || stamp::is_fresh(&package) {
            return Ok(package);
        }
        let Package { source, home, target, profile, .. } = package;
        let nowhere = |own: &str| {
            Failed::new(format!(
                "scripts cannot be built: this user cannot write to {}{own}; set XDG_CACHE_HOME to a folder for what is built",
                target.display()
            ))
        };
        let own = own_target(&target).ok_or_else(|| nowhere(""))?;
        let package = Package::within(&source, profile, home, (own, true))?;
        if package.writable { Ok(package) } else { Err(nowhere(&format!(" or {}", package.target.display()))) }
    }

    fn within(
        source: &Path,
        profile: Profile,
        home: PathBuf,
        (target, own_target): (PathBuf, bool),
    ) -> Result<Package, Failed> {
        let text = utf8(source)?;
        let mut hash = Hasher::default();
        hash.write(text.as_bytes());
        let stem = source.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let name = format!("{}-{:016x}", package_name(&stem), hash.finish());
        let folder = target.join("scripts").join(&name);
        // A lock that another user has made cannot be opened.
        let lock = folder.join(LOCK_NAME);
        let writable = [&folder, &target.join(profile.folder()), &lock].into_iter().all(|f| may_write(f));
        Ok(Package { source: source.to_path_buf(), home, target, own_target, writable, folder, name, profile })
    }

    /// Makes the folder of the package. A target directory of the user's own is made so that other users cannot open it.
    ///
    /// # Errors
    /// If it cannot be made, or if another user could replace what is in it.
    pub fn make_folder(&self) -> oflow::Result<()> {
        if self.own_target {
            oflow_files::cache_folder(&self.target)?;
        }
        oflow_files::folders(&self.folder, Access::Readable)?;
        oflow_files::check(&self.folder)
    }

    /// Checks that no other user could have put there what is executed or relied on: the folders, the executable, the stamp.
    ///
    /// # Errors
    /// If another user could.
    pub fn check(&self) -> Result<(), Failed> {
        let executable = self.executable();
        let target = self.target.ancestors().find(|p| p.symlink_metadata().is_ok());
        let list = executable.with_extension("d");
        let parts = [self.folder.clone(), stamp::path(self), self.manifest_path(), executable, list];
        let there = parts.iter().map(PathBuf::as_path).filter(|p| p.symlink_metadata().is_ok());
        target
            .into_iter()
            .chain(there)
            .try_for_each(oflow_files::check)
            .map_err(|e| Failed::new(format!("scripts are not built or run from {}: {e}", self.target.display())))
    }

    /// Returns the path of the executable.
    pub fn executable(&self) -> PathBuf {
        self.target.join(self.profile.folder()).join(&self.name)
    }

    /// Returns the path of the generated manifest.
    pub fn manifest_path(&self) -> PathBuf {
        self.folder.join("Cargo.toml")
    }

    /// Returns the path of the copy of a script with frontmatter.
    pub fn copy_path(&self) -> PathBuf {
        self.folder.join(COPY_NAME)
    }

    /// Returns as text what is built how.
    pub fn command_line(&self) -> String {
        format!(
            "cargo rustc --manifest-path {} --profile {}  ({}, with the library of {})",
            self.manifest_path().display(),
            self.profile.name(),
            self.source.display(),
            self.home.display()
        )
    }

    /// Writes the package: manifest, lock file and, for a script with frontmatter, the copy. Files with the right contents are
    /// not written, so that cargo sees no change.
    ///
    /// `built`: the library that the script is linked to; without one the package depends on the source tree.
    pub fn write(&self, frontmatter: Option<&Frontmatter>, built: Option<&Library>) -> Result<(), Failed> {
        let failed = |e: oflow::Error| Failed::new(e.to_string());
        self.make_folder().map_err(failed)?;
        if let Some(frontmatter) = frontmatter {
            write_if_changed(&self.copy_path(), &frontmatter.source).map_err(failed)?;
        }
        let library = fs::read_to_string(self.home.join("Cargo.toml"))
            .map_err(|e| Failed::new(format!("cannot read {}: {e}", self.home.join("Cargo.toml").display())))?;
        // A published source tree may come without a lock file. A script that is linked and names no dependency needs none.
        let lock = match (built, frontmatter) {
            (Some(_), None) => String::new(),
            _ => fs::read_to_string(self.home.join(LIBRARY_LOCK)).unwrap_or_default(),
        };
        if let (Some(built), Some(_)) = (built, frontmatter) {
            let shared = self.folder.join(SHARED_PACKAGE);
            oflow_files::folders(&shared, Access::Readable).map_err(failed)?;
            write_if_changed(&shared.join("Cargo.toml"), &built.shared_manifest()).map_err(failed)?;
            for empty in [shared.join("lib.rs"), self.folder.join(DEPENDENCIES)] {
                write_if_changed(&empty, "").map_err(failed)?;
            }
        }
        let manifest = self.manifest(frontmatter, built, &library, &lock)?;
        let path = self.manifest_path();
        if write_if_changed(&path, &manifest).map_err(failed)? {
            // The library's own versions, so that what is built already fits.
            let path = self.folder.join("Cargo.lock");
            oflow_files::replace(&path, Access::Readable, lock.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    fn manifest(
        &self,
        frontmatter: Option<&Frontmatter>,
        built: Option<&Library>,
        library: &str,
        lock: &str,
    ) -> Result<String, Failed> {
        let copy = self.copy_path();
        let source = utf8(if frontmatter.is_some() { &copy } else { &self.source })?;
        let mut lock_hash = Hasher::default();
        lock_hash.write(lock.as_bytes());
        let (dependencies, oflow) = match (built, frontmatter) {
            (Some(_), None) => (String::new(), String::new()),
            (Some(_), Some(_)) => (
                format!("[lib]\nname = \"dependencies\"\npath = \"{DEPENDENCIES}\"\n"),
                format!("{SHARED_PACKAGE} = {{ path = \"{SHARED_PACKAGE}\" }}"),
            ),
            (None, _) => (String::new(), format!("oflow = {{ path = {} }}", toml_string(utf8(&self.home)?))),
        };
        Ok(format!(
            "# Written by oflaunch; changes are lost. Script: {script}
# The lock file is copied again when this changes: {lock:016x}
[package]
name = \"{name}\"
version = \"0.0.0\"
edition = \"2024\"
publish = false

[workspace]

{dependencies}
[[bin]]
name = \"{name}\"
path = {source}

[dependencies]
{oflow}
{entries}
{tables}
{profiles}",
            script = self.source.display().to_string().escape_default(),
            lock = lock_hash.finish(),
            name = self.name,
            source = toml_string(source),
            entries = frontmatter.map_or("", |f| &f.entries),
            tables = frontmatter.map_or("", |f| &f.tables),
            profiles = profiles(library, &packages(lock)),
        ))
    }
}

/// Returns the oflow source tree: that of `OFLOW_HOME`, or the one from which oflaunch was built.
pub fn home() -> Result<PathBuf, Failed> {
    let (home, whence) = match std::env::var_os("OFLOW_HOME") {
        Some(home) => (PathBuf::from(home), "OFLOW_HOME names"),
        None => {
            let launcher = Path::new(env!("CARGO_MANIFEST_DIR"));
            (launcher.parent().unwrap_or(launcher).to_path_buf(), "oflaunch was built from")
        }
    };
    let missing = |why: String| {
        Failed::new(format!(
            "scripts are built against the oflow source tree, but {}, which {whence}, {why}; set OFLOW_HOME to one",
            home.display()
        ))
    };
    let home = home.canonicalize().map_err(|e| missing(format!("cannot be used: {e}")))?;
    if home.join("src/lib.rs").is_file() && home.join("Cargo.toml").is_file() {
        Ok(home)
    } else {
        Err(missing("has no oflow sources".into()))
    }
}

/// The target directory in which oflaunch itself lies, where the library has been built; otherwise the source tree's.
fn target_dir(home: &Path, own_executable: Option<&Path>) -> PathBuf {
    own_executable
        .and_then(|exe| exe.parent()?.parent())
        .filter(|target| target.join(TARGET_MARK).is_file())
        .map_or_else(|| home.join("target"), Path::to_path_buf)
}

/// The user's own target directory beside one that the user cannot write to; none where the environment names no folder for it.
fn own_target(installed: &Path) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    let mut hash = Hasher::default();
    hash.write(installed.as_os_str().as_bytes());
    Some(cache.join("oflow").join(format!("target-{:016x}", hash.finish())))
}

/// Whether this user can write to a file or folder, or make it, as far as permissions and the disk say.
fn may_write(path: &Path) -> bool {
    let there = path.ancestors().find(|p| p.exists());
    there.is_some_and(|p| accessat(CWD, p, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS).is_ok())
}

/// A file stem as the beginning of a package name.
fn package_name(stem: &str) -> String {
    let mut name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 's');
    }
    name
}

/// The `[profile…]` tables of a manifest, because with other settings every dependency would be built anew. Of those of one
/// package, the ones for `packages`: cargo warns of any other.
fn profiles(manifest: &str, packages: &BTreeSet<&str>) -> String {
    let mut inside = false;
    let lines = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            let package = line.split_once(".package.").map(|(_, name)| name.trim_end_matches(']').trim_matches('"'));
            inside = line.starts_with("[profile.") && package.is_none_or(|p| p == "*" || packages.contains(p));
        }
        inside
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The packages that the library needs, by a lock file, and the library; none if the file does not have it.
fn packages(lock: &str) -> BTreeSet<&str> {
    let mut needs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut package = "";
    for line in lock.lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            package = name.trim_matches('"');
        } else if let Some(dependency) = line.strip_prefix(" \"") {
            // With a version where there are several.
            needs.entry(package).or_default().extend(dependency.split(['"', ' ']).next());
        }
    }
    let mut next: Vec<&str> = needs.keys().copied().filter(|package| *package == "oflow").collect();
    let mut found = BTreeSet::new();
    while let Some(package) = next.pop() {
        if found.insert(package) {
            next.extend(needs.get(package).into_iter().flatten());
        }
    }
    found
}

fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn utf8(path: &Path) -> Result<&str, Failed> {
    path.to_str().ok_or_else(|| Failed::new(format!("the path {} is not UTF-8, which cargo needs", path.display())))
}

/// Whether the file was written.
fn write_if_changed(path: &Path, text: &str) -> oflow::Result<bool> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(false);
    }
    oflow_files::replace(path, Access::Readable, text.as_bytes())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal() {
        for (stem, name) in [("train", "train"), ("2d mesh", "s2d-mesh"), ("größe", "gr--e"), ("", "s")] {
            assert_eq!(package_name(stem), name);
        }
    }

    #[test]
    fn only_profiles_are_taken() {
        let manifest = "[package]\nname = \"x\"\n[profile.dev]\nopt-level = 2\n\n[dependencies]\na = \"1\"\n[profile.release.package.\"*\"]\ndebug = 1\n";
        let all = "[profile.dev]\nopt-level = 2\n\n[profile.release.package.\"*\"]\ndebug = 1\n";
        assert_eq!(profiles(manifest, &BTreeSet::new()), all);
    }

    #[test]
    fn profiles_of_packages_that_are_not_there_are_left_out() {
        let lock = "[[package]]\nname = \"oflaunch\"\ndependencies = [\n \"clap\",\n \"oflow\",\n]\n\n[[package]]\nname = \"oflow\"\n\
                    dependencies = [\n \"half 2.7.1\",\n \"tonic\",\n]\n\n[[package]]\nname = \"tonic\"\ndependencies = [\n \"h2\",\n]\n";
        let packages = packages(lock);
        assert_eq!(packages, BTreeSet::from(["h2", "half", "oflow", "tonic"]));
        let manifest = "[profile.release]\ndebug = 1\n[profile.release.package.clap]\nopt-level = 0\n[profile.release.package.h2]\nopt-level = 0\n";
        let there = "[profile.release]\ndebug = 1\n[profile.release.package.h2]\nopt-level = 0\n";
        assert_eq!(profiles(manifest, &packages), there);
        // What is linked to the library has no packages, not even the library.
        let manifest = "[profile.release]\ndebug = 1\n[profile.release.package.oflow]\nopt-level = 2\n";
        assert_eq!(profiles(manifest, &super::packages("")), "[profile.release]\ndebug = 1\n");
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(toml_string("a \"b\" \\ \n"), "\"a \\\"b\\\" \\\\ \\u000A\"");
    }

    #[test]
    fn the_target_directory_is_where_we_were_built() {
        let dir = tempfile::tempdir().unwrap();
        let home = Path::new("/home/oflow");
        let exe = dir.path().join("release/oflaunch");
        assert_eq!(target_dir(home, Some(&exe)), home.join("target"));
        fs::write(dir.path().join(TARGET_MARK), "").unwrap();
        assert_eq!(target_dir(home, Some(&exe)), dir.path());
        assert_eq!(target_dir(home, None), home.join("target"));
    }

    #[test]
    fn two_scripts_of_one_name_are_two_packages() {
        let a = Package::locate(Path::new("/a/train.rs"), Profile::Dev).unwrap();
        let b = Package::locate(Path::new("/b/train.rs"), Profile::Dev).unwrap();
        assert_ne!(a.name, b.name);
        assert!(a.name.starts_with("train-"));
        let release = Package::locate(Path::new("/a/train.rs"), Profile::Release).unwrap();
        assert_eq!(release.name, a.name);
        assert_ne!(release.executable(), a.executable());
    }
}
