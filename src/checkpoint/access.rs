//! Opens files that others may have prepared: only regular ones, without blocking, and texts up to a bound.
//!
//! Opening a FIFO waits for its other end, and a device may have no end; neither is part of a checkpoint.

use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The way out of a checkpoint that cannot be read.
pub const ANOTHER: &str = "use another checkpoint: `oflow ckpt ls` lists them, `oflow ckpt verify` checks them";

/// Opens a regular file for reading. Symbolic links are followed: caches of models consist of them.
///
/// # Errors
/// If there is no such file, if it is no regular file, or if it cannot be read.
pub fn open(path: &Path) -> Result<File> {
    open_if_there(path)?
        .ok_or_else(|| failed(path, ErrorKind::NotFound.into()).help("every host of a job must see the folder"))
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
