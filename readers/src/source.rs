//! Bytes that are read at any place, by any thread, without more memory than was asked for.

use oflow::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is open. It is read at offsets, not mapped: a file that another process cuts is an error and no signal.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Source {
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Source>> {
        let path = path.as_ref().to_path_buf();
        let file = oflow_files::open(&path)?;
        let len = file.metadata().map_err(|e| failed(&path, e))?.len();
        Ok(Arc::new(Source { path, file, len }))
    }
    /// The length that the file had when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }
    pub fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|e| failed(&self.path, e))
    }
    /// An error at a place of the file: `where` is a line or a part.
    pub fn error(&self, place: &str, message: impl std::fmt::Display) -> Error {
        let comma = if place.is_empty() { "" } else { ", " };
        Error::value(format!("{}{comma}{place}: {message}", self.path.display()))
    }
    /// Reads `n` bytes at an offset. Memory is taken only if the file has them.
    pub fn read(&self, offset: u64, n: usize) -> Result<Vec<u8>> {
        if offset.checked_add(n as u64).is_none_or(|end| end > self.len) {
            let len = self.len;
            return Err(self.error("", format!("{n} bytes at {offset} are asked for; the file has {len}")));
        }
        let mut bytes = vec![0; n];
        self.file.read_exact_at(&mut bytes, offset).map_err(|e| failed(&self.path, e))?;
        Ok(bytes)
    }
    /// A reader from an offset on.
    pub fn from(self: &Arc<Source>, offset: u64) -> FromOffset {
        FromOffset { source: self.clone(), offset }
    }
}

fn failed(path: &Path, e: std::io::Error) -> Error {
    Error::io(format!("cannot read {}: {e}", path.display())).because(e)
}

pub struct FromOffset {
    source: Arc<Source>,
    offset: u64,
}

impl Read for FromOffset {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let n = self.source.file.read_at(to, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

/// A part of a file, or bytes in memory.
#[derive(Clone, Debug)]
pub enum Bytes {
    File { source: Arc<Source>, start: u64, len: u64 },
    Memory { of: String, bytes: Arc<[u8]> },
}

impl Bytes {
    pub fn len(&self) -> u64 {
        match self {
            Bytes::File { len, .. } => *len,
            Bytes::Memory { bytes, .. } => bytes.len() as u64,
        }
    }
    pub fn read(&self, offset: u64, n: usize) -> Result<Vec<u8>> {
        let end = offset.checked_add(n as u64).filter(|end| *end <= self.len());
        let Some(end) = end else {
            return Err(self.error(format!("{n} bytes at {offset} are asked for; there are {}", self.len())));
        };
        match self {
            Bytes::File { source, start, .. } => source.read(start.saturating_add(offset), n),
            Bytes::Memory { bytes, .. } => Ok(bytes[offset as usize..end as usize].to_vec()),
        }
    }
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        match self {
            Bytes::File { source, .. } => source.error("", message),
            Bytes::Memory { of, .. } => Error::value(format!("{of}: {message}")),
        }
    }
}
