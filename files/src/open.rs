//! Opening and reading regular files.

use crate::own::check;
use oflow_base::{Error, Result};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{File, FileType};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Opens a regular file for reading. Symbolic links are followed: caches of models consist of them.
///
/// # Errors
/// If there is no such file, if it is not a regular file, or if it cannot be read.
pub fn open(path: &Path) -> Result<File> {
    open_if_there(path)?.ok_or_else(|| failed(path, Errno::NOENT.into()))
}

/// [`open`](fn@open), or `None` if there is no such file.
///
/// # Errors
/// If it is not a regular file, or if it cannot be read.
pub fn open_if_there(path: &Path) -> Result<Option<File>> {
    // Before it is opened too: opening some devices has effects.
    match std::fs::metadata(path) {
        Ok(meta) => regular(path, meta.file_type())?,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(path, e)),
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(failed(path, e.into())),
    };
    regular(path, file.metadata().map_err(|e| failed(path, e))?.file_type())?;
    Ok(Some(file))
}

fn failed(path: &Path, e: std::io::Error) -> Error {
    Error::storage(format!("cannot open {}", path.display())).because(e)
}

/// Refuses what is not a regular file.
pub(crate) fn regular(path: &Path, kind: FileType) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () => "a file of another kind",
    };
    Err(Error::storage(format!("{} is not a regular file but {what}", path.display())))
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// The errors of [`open`](fn@open), and if the file is longer.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    bytes_of(open(path)?, path, most)
}

/// [`bytes`] of a file that is open; the path is named in errors.
///
/// # Errors
/// If it cannot be read or is longer.
pub fn bytes_of(file: File, path: &Path, most: u64) -> Result<Vec<u8>> {
    let io = |e: std::io::Error| Error::storage(format!("cannot read {}", path.display())).because(e);
    let len = file.metadata().map_err(io)?.len();
    let mut bytes = vec![];
    if len <= most {
        // It may grow meanwhile.
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    }
    match len.max(bytes.len() as u64) {
        n if n > most => {
            Err(Error::storage(format!("{} has {n} bytes, more than the {most} that are read", path.display())))
        }
        _ => Ok(bytes),
    }
}

/// [`bytes`] of a file that is executed, loaded or relied on.
///
/// # Errors
/// The errors of [`bytes`] and of [`check`].
pub fn checked_bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    // What is no file says so first.
    let file = open(path)?;
    check(path)?;
    bytes_of(file, path, most)
}

/// [`bytes`] as text.
///
/// # Errors
/// The errors of [`bytes`], and if it is not UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(bytes(path, most)?)
        .map_err(|_| Error::storage(format!("{} is broken: it is not a text", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType as Kind, mknodat};

    #[test]
    fn only_regular_files_are_opened_and_none_is_waited_for() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let said = |path: &Path| open(path).unwrap_err().to_string();
        mknodat(CWD, at("fifo"), Kind::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink("fifo", at("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, kind) in [("fifo", "a FIFO"), ("link", "a FIFO"), ("socket", "a socket"), ("", "a folder")] {
            assert!(said(&at(name)).ends_with(&format!(" is not a regular file but {kind}")), "{name}");
        }
        assert!(said(Path::new("/dev/zero")).starts_with("/dev/zero is not a regular file but a device"));
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
        assert!(text(&path, 100).unwrap_err().to_string().contains("x is broken: it is not a text"));
        assert!(text(&path, 99).is_err());
        std::fs::write(&path, "text").unwrap();
        assert_eq!(text(&path, 4).unwrap(), "text");
    }
}
