//! The cache of builds: one folder each, complete or not there.

use crate::error::{Error, ErrorKind, Result};
use crate::libraries::hash_of;
use oflow_files::{Access, Lock, check};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The folder for builds.
///
/// # Errors
/// There is no place for it: no option, no variable, no home; another user could replace what is in it.
pub(super) fn folder(option: Option<&Path>) -> Result<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|h| h.join(".cache"))).map(|d| d.join("oflow/ops"));
    let found = option.map(Path::to_path_buf).or_else(|| var("OFLOW_OP_CACHE")).or_else(home);
    let found = found.ok_or_else(|| {
        Error::registry("no folder to build the op in is known")
            .help("set OFLOW_OP_CACHE, or give `BuildOptions::cache`")
    })?;
    oflow_files::cache_folder(&found).map_err(refused)?;
    // Compilers are run in other folders.
    found.canonicalize().map_err(|e| at(&found, "cannot be found", &e))
}

/// Makes a folder of the cache that other users cannot open, if it is not there. In a sticky folder another user may have taken its
/// name.
pub(super) fn own_folder(path: &Path) -> Result<()> {
    oflow_files::cache_folder(path).map_err(refused)
}

/// Locks a file until it is dropped. Other processes that build in `folder` are waited for.
pub(super) fn locked(file: &Path, folder: &Path) -> Result<Lock> {
    let tell = |who: &str| eprintln!("oflow: {who} builds {}; waiting for it", folder.display());
    Lock::wait(file, tell).map_err(refused)
}

/// The error of a file or folder that cannot be relied on, as one of a build.
pub(super) fn refused(e: Error) -> Error {
    e.as_kind(ErrorKind::Registry)
}

pub(super) fn at(path: &Path, what: &str, e: &io::Error) -> Error {
    Error::registry(format!("{} {what}: {e}", path.display()))
}

/// The place of a build.
pub(super) struct Slot {
    folder: PathBuf,
    lock: PathBuf,
    key: String,
}

/// Result of a build.
pub(super) struct Built {
    /// The library, in the folder of the build.
    pub(super) library: PathBuf,
    /// Content of the library file, whose hash is right.
    pub(super) bytes: Vec<u8>,
    /// Hash of the key and of the files that the sources include.
    pub(super) hash: String,
}

/// Name of the library in the folder.
pub(super) const LIBRARY: &str = "library.so";
/// Names the library and the files that the sources include, with their hashes: lines `HASH PATH`.
const INCLUDED: &str = "included";

impl Slot {
    pub(super) fn new(folder: &Path, name: &str, key: &str) -> Slot {
        let name = format!("{name}-{}", &key[..16]);
        Slot { folder: folder.join(&name), lock: folder.join(format!("{name}.lock")), key: key.to_string() }
    }

    /// The library in the slot; else the one that `build` makes in a folder that it is given, while other processes wait.
    /// `build` returns the files that the library was made of besides the sources.
    ///
    /// # Errors
    /// Those of `build`, and of the file system.
    pub(super) fn built_by(&self, build: impl FnOnce(&Path) -> Result<Vec<PathBuf>>) -> Result<Built> {
        if let Some(built) = self.valid()? {
            return Ok(built);
        }
        let _locked = locked(&self.lock, &self.folder)?;
        if let Some(built) = self.valid()? {
            return Ok(built);
        }
        let partial = self.folder.with_extension("partial");
        let failed = |e: io::Error| at(&partial, "cannot be written", &e);
        remove(&partial).map_err(failed)?;
        // Nobody else can open what is in it, whatever modes a compiler gives its files.
        oflow_files::folder(&partial, Access::Private).map_err(refused)?;
        let made = build(&partial).and_then(|included| {
            let library = partial.join(LIBRARY);
            fs::set_permissions(&library, fs::Permissions::from_mode(Access::Private.file())).map_err(failed)?;
            let mut text = format!("{} {LIBRARY}\n", hash_of([fs::read(&library).map_err(failed)?.as_slice()]));
            for path in included {
                // One that were left out could change unseen.
                let bytes = oflow_files::checked_bytes(&path, u64::MAX).map_err(|e| {
                    Error::registry(format!("{} is included by the source and cannot be used: {e}", path.display()))
                })?;
                text += &format!("{} {}\n", hash_of([bytes.as_slice()]), path.display());
            }
            oflow_files::replace(&partial.join(INCLUDED), Access::Private, text.as_bytes()).map_err(refused)?;
            remove(&self.folder).map_err(failed)?;
            fs::rename(&partial, &self.folder).map_err(failed)
        });
        if let Err(e) = made {
            // What is left of it says nothing more than the error does.
            let _ = remove(&partial);
            return Err(e);
        }
        self.valid()?.ok_or_else(|| {
            Error::registry(format!("the build in {} changed while it was made", self.folder.display()))
                .help("a file that the source includes was written at the same time: build again")
        })
    }

    /// The build, if it is there and it and the files that it was made of are the same.
    ///
    /// # Errors
    /// Another user has made the folder, or could replace what is in it.
    fn valid(&self) -> Result<Option<Built>> {
        if self.folder.symlink_metadata().is_err() {
            return Ok(None);
        }
        check(&self.folder).map_err(refused)?;
        let library = self.folder.join(LIBRARY);
        if library.symlink_metadata().is_ok() {
            check(&library).map_err(refused)?;
        }
        Ok(self.same(library))
    }

    fn same(&self, library: PathBuf) -> Option<Built> {
        let included = fs::read_to_string(self.folder.join(INCLUDED)).ok()?;
        let (of_library, included) = included.split_once(&format!(" {LIBRARY}\n"))?;
        let bytes = oflow_files::bytes(&library, u64::MAX).ok()?;
        if hash_of([bytes.as_slice()]) != of_library {
            return None;
        }
        let mut parts: Vec<&[u8]> = vec![self.key.as_bytes()];
        for line in included.lines() {
            let (hash, path) = line.split_once(' ')?;
            if hash_of([fs::read(path).ok()?.as_slice()]) != hash {
                return None;
            }
            // Where the file is does not count: ranks of other hosts have it elsewhere.
            parts.push(hash.as_bytes());
        }
        Some(Built { library, bytes, hash: hash_of(parts) })
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
