//! Opens and reads files of checkpoints, with what to do where one cannot be read.

use crate::error::{Error, Result};
use std::fs::File;
use std::path::Path;

/// The way out of a checkpoint that cannot be read.
pub const ANOTHER: &str = "use another checkpoint: `oflow ckpt ls` lists them, `oflow ckpt verify` checks them";

/// Opens a regular file for reading.
///
/// # Errors
/// The errors of [`oflow_files::open`].
pub fn open(path: &Path) -> Result<File> {
    oflow_files::open(path).map_err(|e| match path.exists() {
        true => e.help("replace it by the file that was written, or use another checkpoint"),
        false => e.help("every host of a job must see the file"),
    })
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// The errors of [`open`] and [`oflow_files::bytes_of`].
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    oflow_files::bytes_of(open(path)?, path, most).map_err(|e| e.help(ANOTHER))
}

/// [`bytes`] as text.
///
/// # Errors
/// The errors of [`bytes`], and if it is not UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(bytes(path, most)?)
        .map_err(|_| Error::storage(format!("{} is broken: it is not a text", path.display())).help(ANOTHER))
}
