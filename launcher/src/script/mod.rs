//! Building a Rust script: a file that ends in `.rs` and uses oflow, without a package around it.
//!
//! The script becomes the only binary of a hidden package that depends on the oflow source tree and is built in the same
//! target directory with the same profiles and versions, so that only the script itself is compiled. An unchanged
//! script is not built at all.

mod cargo;
mod frontmatter;
mod package;
mod stamp;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use crate::cli::Profile;
use crate::{EXIT_NOT_COMPILED, Failed};

pub use package::{Package, home};

/// A script that has been built. While it lives, no other oflaunch builds this script.
#[derive(Debug)]
pub struct Built {
    /// What to run.
    pub executable: PathBuf,
    /// Closing the file releases the lock.
    _lock: File,
}

/// Builds the script at an absolute path, if anything has changed since it was built last.
pub fn build(source: &Path, profile: Profile, verbose: bool) -> Result<Built, Failed> {
    let package = Package::locate(source, profile)?;
    let _lock = lock(&package)?;
    let executable = package.executable();
    if stamp::is_fresh(&package) {
        if verbose {
            eprintln!("oflaunch: {} is up to date", executable.display());
        }
        return Ok(Built { executable, _lock });
    }
    let text = fs::read_to_string(source)
        .map_err(|e| Failed::new(format!("cannot read the script {}: {e}", source.display())))?;
    let frontmatter = frontmatter::parse(&text)
        .map_err(|e| Failed::with_code(EXIT_NOT_COMPILED, format!("{}: {e}", source.display())))?;
    package.write(frontmatter.as_ref())?;
    let began = SystemTime::now();
    cargo::build(&package, frontmatter.is_some(), verbose)?;
    stamp::save(&package, began);
    Ok(Built { executable, _lock })
}

/// Waits until no other oflaunch builds this script.
fn lock(package: &Package) -> Result<File, Failed> {
    let path = package.folder.join("lock");
    let failed = |e: std::io::Error| Failed::new(format!("cannot lock {}: {e}", path.display()));
    fs::create_dir_all(&package.folder).map_err(failed)?;
    let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
    flock(&file, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
    Ok(file)
}
