//! Records of a text file by number, through an index of where some of them begin.

use crate::source::{FromOffset, Source};
use oflow::{Error, Result};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Every so many records have their place in the index: a byte of memory for each record of the file.
const STRIDE: usize = 16;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// How a file is split into records. Records of no bytes are left out.
#[derive(Clone, Copy, Debug)]
pub enum Split {
    /// At the ends of lines.
    Lines,
    /// At the ends of lines outside of quotes, which open at the start of a field only.
    Csv { delimiter: u8 },
}

/// Where the scan of a CSV record is.
#[derive(Clone, Copy, PartialEq)]
enum At {
    FieldStart,
    Field,
    Quoted,
    /// Behind a quote in a quoted field: its end, or the first of two.
    Quote,
}

/// Place of a record.
#[derive(Clone, Copy, Debug)]
struct Mark {
    offset: u64,
    line: u64,
}

/// Records of a file.
#[derive(Debug)]
pub struct Records {
    pub source: Arc<Source>,
    split: Split,
    longest: usize,
    marks: Vec<Mark>,
    len: usize,
}

/// Goes over records from a mark on.
struct Scan<'a> {
    records: &'a Records,
    from: FromOffset,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Place of the next byte.
    next: Mark,
}

impl Scan<'_> {
    fn byte(&mut self) -> Result<Option<u8>> {
        if self.at == self.filled {
            let read = self.from.read(&mut self.buffer);
            self.filled = read.map_err(|e| Error::io(self.records.error(self.next.line, &e).message()).because(e))?;
            self.at = 0;
            if self.filled == 0 {
                return Ok(None);
            }
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        self.next.offset += 1;
        Ok(Some(byte))
    }
    /// The next record: its place and, with `keep`, its bytes without the end of its line.
    fn record(&mut self, keep: bool) -> Result<Option<(Mark, Vec<u8>)>> {
        let (mut start, mut bytes, mut length) = (self.next, vec![], 0usize);
        let mut at = At::FieldStart;
        loop {
            let byte = self.byte()?;
            let end = byte.is_none() || (byte == Some(b'\n') && at != At::Quoted);
            if byte == Some(b'\n') {
                self.next.line += 1;
            }
            if end {
                if bytes.last() == Some(&b'\r') {
                    bytes.pop();
                }
                if length > 0 {
                    return Ok(Some((start, bytes)));
                }
                if byte.is_none() {
                    return Ok(None);
                }
                (start, bytes, length, at) = (self.next, vec![], 0, At::FieldStart);
                continue;
            }
            let Some(byte) = byte else { return Ok(None) };
            // The end of an empty line may have two bytes.
            length += usize::from(byte != b'\r' || length > 0);
            if length > self.records.longest {
                let most = self.records.longest;
                return Err(self.records.error(start.line, format!("the record has more than {most} bytes")));
            }
            if keep {
                bytes.push(byte);
            }
            if let Split::Csv { delimiter } = self.records.split {
                at = match (at, byte) {
                    (At::FieldStart | At::Quote, b'"') => At::Quoted,
                    (At::Quoted, b'"') => At::Quote,
                    (At::Quoted, _) => At::Quoted,
                    (_, b) if b == delimiter => At::FieldStart,
                    _ => At::Field,
                };
            }
        }
    }
}

impl Records {
    /// Goes over the file once and notes where records begin.
    pub fn open(path: impl AsRef<Path>, split: Split, longest: usize) -> Result<Records> {
        let source = Source::open(path)?;
        // A mark of the order of bytes, which some editors write, belongs to no record.
        let bom = source.len() >= 3 && source.read(0, 3)? == [0xef, 0xbb, 0xbf];
        let first = Mark { offset: if bom { 3 } else { 0 }, line: 1 };
        let mut all = Records { source, split, longest, marks: vec![first], len: 0 };
        let (mut marks, mut len) = (vec![], 0);
        let mut scan = all.scan(0);
        while let Some((mark, _)) = scan.record(false)? {
            if len % STRIDE == 0 {
                marks.push(mark);
            }
            len += 1;
        }
        (all.marks, all.len) = (marks, len);
        Ok(all)
    }
    pub fn len(&self) -> usize {
        self.len
    }
    fn scan(&self, mark: usize) -> Scan<'_> {
        let next = self.marks[mark];
        // Most records are short: the first read of a few of them is.
        let buffer = vec![0; if mark == 0 && self.len == 0 { BUFFER } else { BUFFER / 8 }];
        Scan { records: self, from: self.source.from(next.offset), buffer, at: 0, filled: 0, next }
    }
    /// A record and the number of its line, counted from 1.
    pub fn get(&self, index: usize) -> Result<(Vec<u8>, u64)> {
        if index >= self.len {
            return Err(Error::index(format!("record {index} is out of range; there are {}", self.len)));
        }
        let mut scan = self.scan(index / STRIDE);
        for _ in 0..index % STRIDE {
            scan.record(false)?;
        }
        let found = scan.record(true)?.map(|(mark, bytes)| (bytes, mark.line));
        found.ok_or_else(|| self.source.error("", format!("record {index} is gone: the file has changed")))
    }
    pub fn error(&self, line: u64, message: impl std::fmt::Display) -> Error {
        self.source.error(&format!("line {line}"), message)
    }
}
