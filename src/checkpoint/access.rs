//! Opens and makes files and folders where others may have prepared something.
//!
//! Only regular files are opened, without blocking, and texts are read up to a bound: opening a FIFO waits for its other end, and
//! a device may have no end. New files are created exclusively, so a link in their place is never followed. What is made can be
//! written to by its owner alone, whatever the umask is.

use super::folder::io_error;
use crate::control::TRUST_VARIABLE;
use crate::control::flight::refuse_files_too_large;
use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Mode of new files, less the umask.
pub const FILE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);
/// Mode of files that other users cannot open.
pub const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Mode of the lock of a folder that users of a group share.
pub const SHARED_LOCK: Mode = FILE.union(Mode::WGRP);
/// Mode of new folders, less the umask.
const FOLDER: u32 = 0o755;

/// The way out of a checkpoint that cannot be read.
pub const ANOTHER: &str = "use another checkpoint: `oflow ckpt ls` lists them, `oflow ckpt verify` checks them";

/// Opens a regular file for reading. Symbolic links are followed: caches of models consist of them.
///
/// # Errors
/// If there is no such file, if it is no regular file, or if it cannot be read.
pub fn open(path: &Path) -> Result<File> {
    open_if_there(path)?
        .ok_or_else(|| failed(path, rustix::io::Errno::NOENT.into()).help("every host of a job must see the file"))
}

/// [`open`], or `None` if there is no such file.
///
/// # Errors
/// If it is no regular file, or if it cannot be read.
pub fn open_if_there(path: &Path) -> Result<Option<File>> {
    let other = |kind: std::fs::FileType| {
        Error::storage(format!("{} is no regular file but {}", path.display(), name_of(kind)))
            .help("replace it by the file that was written, or use another checkpoint")
    };
    // Before it is opened too: opening some devices has effects.
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(path, e)),
    };
    if !meta.is_file() {
        return Err(other(meta.file_type()));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(e) => return Err(failed(path, e.into())),
    };
    let meta = file.metadata().map_err(|e| failed(path, e))?;
    if meta.is_file() { Ok(Some(file)) } else { Err(other(meta.file_type())) }
}

fn failed(path: &Path, e: std::io::Error) -> Error {
    Error::storage(format!("cannot open {}", path.display())).because(e)
}

/// The name of a kind of file, with its article.
fn name_of(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () => "a file of another kind",
    }
}

/// Creates a file for writing.
///
/// # Errors
/// If there is something of that name, or if it cannot be made.
pub fn create(path: &Path, mode: Mode) -> Result<File> {
    refuse_files_too_large();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, mode)
        .map(File::from)
        .map_err(|e| io_error(format!("cannot write {}", path.display()), e.into()))
}

/// Makes a folder.
///
/// # Errors
/// If there is something of that name, or if it cannot be made.
pub fn make_folder(path: &Path) -> Result<()> {
    make(path, false)
}

/// Makes a folder and those that contain it, where they are not there.
///
/// # Errors
/// If one cannot be made.
pub fn make_folders(path: &Path) -> Result<()> {
    make(path, true)
}

fn make(path: &Path, recursive: bool) -> Result<()> {
    DirBuilder::new()
        .mode(FOLDER)
        .recursive(recursive)
        .create(path)
        .map_err(|e| io_error(format!("cannot make the folder {}", path.display()), e))
}

/// Returns whether the user trusts those who may write to folders of checkpoints.
pub fn trusted() -> bool {
    std::env::var(TRUST_VARIABLE).is_ok_and(|v| v == "1")
}

/// Checks that no other user can replace what is in a folder. Its owner and root can; others can if its mode says so and it is not
/// sticky. The group of a user that has the number of the user is not others.
///
/// # Errors
/// If another user can, unless the environment says that they are trusted.
pub fn check_folder(dir: &Path) -> Result<()> {
    let meta = std::fs::metadata(dir).map_err(|e| failed(dir, e))?;
    let (shown, me) = (dir.display(), rustix::process::geteuid().as_raw());
    let group = if meta.gid() == meta.uid() { 0 } else { 0o020 };
    let (why, way) = if meta.uid() != me && meta.uid() != 0 {
        (
            format!("belongs to user {}, and this process runs as user {me}", meta.uid()),
            "name a folder of your own".into(),
        )
    } else if meta.mode() & (0o002 | group) != 0 && meta.mode() & 0o1000 == 0 {
        (format!("can be written to by other users (mode {:o})", meta.mode() & 0o7777), format!("`chmod go-w {shown}`"))
    } else {
        return Ok(());
    };
    if trusted() {
        return Ok(());
    }
    Err(Error::storage(format!("{shown} {why}: they could replace what is in it"))
        .help(format!("{way}, or set {TRUST_VARIABLE}=1 if you trust them")))
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// The errors of [`open`], and if the file is longer.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    bytes_of(open(path)?, path, most)
}

/// [`bytes`] of a file that is open.
///
/// # Errors
/// If it cannot be read or is longer.
pub fn bytes_of(file: File, path: &Path, most: u64) -> Result<Vec<u8>> {
    let io = |e: std::io::Error| Error::storage(format!("cannot read {}", path.display())).because(e).help(ANOTHER);
    let len = file.metadata().map_err(io)?.len();
    let mut bytes = vec![];
    if len <= most {
        // It may grow meanwhile.
        file.take(most + 1).read_to_end(&mut bytes).map_err(io)?;
    }
    match len.max(bytes.len() as u64) {
        n if n > most => {
            Err(Error::storage(format!("{} has {n} bytes, more than the {most} that are read", path.display()))
                .help(ANOTHER))
        }
        _ => Ok(bytes),
    }
}

/// [`bytes`] as text.
///
/// # Errors
/// The errors of [`bytes`], and if it is not UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(bytes(path, most)?)
        .map_err(|_| Error::storage(format!("{} is broken: it is no text", path.display())).help(ANOTHER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat};

    #[test]
    fn only_regular_files_are_opened_and_none_is_waited_for() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let said = |path: &Path| open(path).unwrap_err().to_string();
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink("fifo", at("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, kind) in [("fifo", "a FIFO"), ("link", "a FIFO"), ("socket", "a socket"), ("", "a folder")] {
            assert!(said(&at(name)).contains(&format!(" is no regular file but {kind}\n  help: ")), "{name}");
        }
        assert!(said(Path::new("/dev/zero")).starts_with("/dev/zero is no regular file but a device"));
        assert!(said(&at("none")).starts_with(&format!("cannot open {}: ", at("none").display())));
        assert!(open_if_there(&at("none")).unwrap().is_none());
    }

    #[test]
    fn long_texts_are_refused_before_they_are_read() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("x");
        File::create(&path).unwrap().set_len(20 << 30).unwrap();
        let e = text(&path, 100).unwrap_err().to_string();
        assert!(e.contains("x has 21474836480 bytes, more than the 100 that are read"), "{e}");
        std::fs::write(&path, [0xff; 100]).unwrap();
        assert!(text(&path, 100).unwrap_err().to_string().contains("x is broken: it is no text"));
        assert!(text(&path, 99).is_err());
        std::fs::write(&path, "text").unwrap();
        assert_eq!(text(&path, 4).unwrap(), "text");
    }
}
