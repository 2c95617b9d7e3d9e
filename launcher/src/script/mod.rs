//! Builds a Rust script: a file that ends in `.rs` and uses oflow, without a package.
//!
//! The script becomes the only binary of a generated package. The library is built first, in the oflow source tree's own
//! workspace, with the features that oflaunch has: it is the one that oflaunch was built with, and only the script is compiled
//! and linked to it, and its dependencies where it names some. Only where these need a crate that is shared with the library with other
//! features than it has (`library.rs`) is the source tree among the dependencies, so that cargo chooses one set of features for both; then
//! the library is compiled once more. An unchanged script is not built.
//!
//! What is there is executed, so it is refused if another user could have put it there.

mod cargo;
mod cargo_env;
mod frontmatter;
mod library;
mod package;
mod stamp;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use oflow_files::Lock;
use oflow_files::lock::open_lock;
use rustix::fs::Mode;
use rustix::process::umask;

use crate::cli::Profile;
use crate::{EXIT_NOT_COMPILED, Failed};

use library::Library;
use package::LIBRARY_LOCK;
pub use package::{Package, home};
pub use stamp::Hasher;

/// A built script. It keeps the executable open, so a job runs this executable also if another oflaunch builds the script again
/// meanwhile (cargo replaces the file). So no lock is held while hosts wait for each other or while the job runs.
#[derive(Debug)]
pub struct Built {
    file: File,
    package: Package,
}

/// From what to start processes.
pub struct Start {
    /// The file to execute.
    pub path: PathBuf,
    /// The lock of the build: no other process builds the script before this is closed.
    _lock: Option<File>,
}

impl Built {
    fn open(package: Package) -> Result<Built, Failed> {
        let executable = package.executable();
        let file = File::open(&executable)
            .map_err(|e| Failed::new(format!("cannot open what was built, {}: {e}", executable.display())))?;
        Ok(Built { file, package })
    }

    /// Path of the executable.
    pub fn executable(&self) -> PathBuf {
        self.package.executable()
    }

    /// The executable as it was built, for this process and those that it starts.
    pub fn as_built(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Whether the executable has not been replaced since it was opened.
    fn is_there(&self) -> bool {
        let id = |m: io::Result<fs::Metadata>| m.map(|m| (m.dev(), m.ino())).ok();
        let there = id(fs::metadata(self.executable()));
        there.is_some() && id(self.file.metadata()) == there
    }

    /// From what to start processes as long as the result lives. By its path, which gives a process its name, unless
    /// another executable is there by now or may be in a moment.
    pub fn start(&self) -> Start {
        let path = self.executable();
        let same = |lock: File| {
            lock.try_lock_shared().ok()?;
            self.is_there().then_some(lock)
        };
        match open_lock(&lock_path(&self.package)).ok().and_then(same) {
            Some(lock) => Start { path, _lock: Some(lock) },
            None => Start { path: self.as_built(), _lock: None },
        }
    }
}

/// Builds the script at an absolute path, if anything has changed since the last build.
pub fn build(source: &Path, profile: Profile, verbose: bool) -> Result<Built, Failed> {
    // Whatever the user's umask, other users cannot change what is built.
    let _umask = NobodyElseWrites::begin();
    let package = Package::locate(source, profile)?;
    package.check()?;
    let up_to_date = |package: Package| {
        if verbose {
            eprintln!("oflaunch: {} is up to date", package.executable().display());
        }
        Built::open(package)
    };
    if !package.writable {
        let built = up_to_date(package)?;
        // What was opened is what is fresh: an executable is replaced and never written again.
        return if stamp::is_fresh(&built.package) && built.is_there() {
            Ok(built)
        } else {
            Err(Failed::new(format!("{} is being built again by another user; try again", source.display())))
        };
    }
    // Those that have nothing to build do not hold up each other.
    let reading = open_lock(&lock_path(&package)).ok().filter(|file| file.try_lock_shared().is_ok());
    if reading.is_some() && stamp::is_fresh(&package) {
        return up_to_date(package);
    }
    drop(reading);
    let _lock = lock(&package)?;
    if stamp::is_fresh(&package) {
        return up_to_date(package);
    }
    let text = oflow_files::text(source, u64::MAX).map_err(|e| Failed::new(e.to_string()))?;
    let frontmatter = frontmatter::parse(&text)
        .map_err(|e| Failed::with_code(EXIT_NOT_COMPILED, format!("{}: {e}", source.display())))?;
    let began = SystemTime::now();
    // Without its lock file the source tree can be built only by who may write one there.
    let locked = package.home.join(LIBRARY_LOCK).is_file();
    let mut library = locked.then(|| Library::build(&package, verbose)).transpose()?;
    package.write(frontmatter.as_ref(), library.as_ref())?;
    if let (Some(built), Some(_)) = (&library, &frontmatter)
        && let Some(other) = built.differs(&cargo::build_dependencies(&package, verbose)?)
    {
        eprintln!(
            "oflaunch: the script needs {other}, which the library has with others: the library is compiled for this script"
        );
        library = None;
        package.write(frontmatter.as_ref(), None)?;
    }
    cargo::build(&package, frontmatter.is_some(), library.as_ref(), verbose)?;
    stamp::save(&package, began);
    Built::open(package)
}

/// Takes the permission of group and others to write from all files that the process makes, while this lives.
struct NobodyElseWrites(Mode);

impl NobodyElseWrites {
    fn begin() -> NobodyElseWrites {
        let others = Mode::WGRP | Mode::WOTH;
        let before = umask(others);
        umask(before | others);
        NobodyElseWrites(before)
    }
}

impl Drop for NobodyElseWrites {
    fn drop(&mut self) {
        umask(self.0);
    }
}

/// Waits until no other oflaunch builds this script, which this one may do until the result is dropped.
fn lock(package: &Package) -> Result<Lock, Failed> {
    if package.own_target && !package.target.exists() {
        eprintln!(
            "oflaunch: this user cannot write where oflaunch was built; scripts are built in {}, and the library first",
            package.target.display()
        );
    }
    let tell = |who: &str| eprintln!("oflaunch: {who} builds {}; waiting for it", package.source.display());
    package.make_folder().and_then(|()| Lock::wait(&lock_path(package), tell)).map_err(|e| Failed::new(e.to_string()))
}

fn lock_path(package: &Package) -> PathBuf {
    package.folder.join(package::LOCK_NAME)
}
