//! The frames of a connection: a header of 64 bytes, two names, the payload. Numbers are little-endian.
//!
//! ```text
//!  0 magic "oflw"   4 kind   5 collective   6 flags   7 length of the op's name   8 length of the file's name   9 zero
//! 12 line          16 ordinal              24 hash                32 total        40 age
//! 48 length        52 checksum of the payload, if flag 1 is set   56 zero         60 checksum of bytes 0..60
//! ```
//!
//! A post with the same names as the post before it omits them (flag 2). `age` is the time from the last start of the call that
//! the sender knows of to the sending: clocks of hosts differ, intervals do not.

use crate::transport::RunningCall;

/// Bytes of a header.
pub(super) const HEADER: usize = 64;
/// Longest header with names.
pub(super) const MOST_HEAD: usize = HEADER + 2 * u8::MAX as usize;

const MAGIC: [u8; 4] = *b"oflw";
const CHECKED: u8 = 1;
const SAME_NAMES: u8 = 2;

/// Purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// Part of a collective.
    Post = 1,
    /// The sender waits and is alive.
    Alive = 2,
    /// The sender is in another call than that of the post it received.
    Reject = 3,
    /// The sender posts nothing more.
    Goodbye = 4,
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) collective: u8,
    pub(super) same_names: bool,
    pub(super) op_len: u8,
    pub(super) file_len: u8,
    pub(super) line: u32,
    pub(super) ordinal: u64,
    pub(super) hash: u64,
    pub(super) total: u64,
    pub(super) age: u64,
    pub(super) len: u32,
    /// CRC-32 of the payload, where the sender made one.
    pub(super) checksum: Option<u32>,
}

/// The names that follow a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) op: Vec<u8>,
    pub(super) file: Vec<u8>,
    pub(super) line: u32,
}

impl Frame {
    /// A frame without names or payload.
    pub(super) fn bare(kind: FrameKind) -> Frame {
        Frame {
            kind,
            collective: 0,
            same_names: false,
            op_len: 0,
            file_len: 0,
            line: 0,
            ordinal: 0,
            hash: 0,
            total: 0,
            age: 0,
            len: 0,
            checksum: None,
        }
    }

    /// A frame that names a call.
    pub(super) fn of_call(kind: FrameKind, call: &RunningCall) -> Frame {
        let tag = call.tag;
        Frame {
            collective: call.kind as u8,
            op_len: tag.op.len().min(u8::MAX.into()) as u8,
            file_len: tag.file.len().min(u8::MAX.into()) as u8,
            line: tag.line,
            ordinal: tag.ordinal,
            hash: tag.hash,
            ..Frame::bare(kind)
        }
    }

    /// The header's bytes.
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut b = [0; HEADER];
        let flags = if self.checksum.is_some() { CHECKED } else { 0 } | if self.same_names { SAME_NAMES } else { 0 };
        b[..4].copy_from_slice(&MAGIC);
        b[4..9].copy_from_slice(&[self.kind as u8, self.collective, flags, self.op_len, self.file_len]);
        b[12..16].copy_from_slice(&self.line.to_le_bytes());
        for (at, word) in [(16, self.ordinal), (24, self.hash), (32, self.total), (40, self.age)] {
            b[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        for (at, word) in [(48, self.len), (52, self.checksum.unwrap_or(0))] {
            b[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc32fast::hash(&b[..60]);
        b[60..].copy_from_slice(&sum.to_le_bytes());
        b
    }

    /// Reads a header. `most` is the longest payload that may follow.
    pub(super) fn decode(b: &[u8; HEADER], most: usize) -> Result<Frame, &'static str> {
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if b[..4] != MAGIC {
            return Err("a frame does not start with the magic number");
        }
        if word(60) != crc32fast::hash(&b[..60]) {
            return Err("the checksum of a frame's header is wrong");
        }
        let kind = match b[4] {
            1 => FrameKind::Post,
            2 => FrameKind::Alive,
            3 => FrameKind::Reject,
            4 => FrameKind::Goodbye,
            _ => return Err("a frame is of an unknown kind"),
        };
        let flags = b[6];
        if flags & !(CHECKED | SAME_NAMES) != 0 || b[9..12] != [0; 3] {
            return Err("a frame has unknown flags");
        }
        let frame = Frame {
            kind,
            collective: b[5],
            same_names: flags & SAME_NAMES != 0,
            op_len: b[7],
            file_len: b[8],
            line: word(12),
            ordinal: long(16),
            hash: long(24),
            total: long(32),
            age: long(40),
            len: word(48),
            checksum: (flags & CHECKED != 0).then(|| word(52)),
        };
        if frame.len as usize > most || (frame.len > 0 && kind != FrameKind::Post) {
            return Err("a frame announces more bytes than a post may have");
        }
        if frame.same_names && (frame.op_len > 0 || frame.file_len > 0) {
            return Err("a frame has names and says that it has none");
        }
        Ok(frame)
    }

    /// Bytes of the names that follow.
    pub(super) fn names(&self) -> usize {
        self.op_len as usize + self.file_len as usize
    }
}

/// The name of an op as it is sent: its beginning.
pub(super) fn op_bytes(op: &str) -> &[u8] {
    &op.as_bytes()[..op.len().min(u8::MAX.into())]
}

/// The name of a file as it is sent: the end of the path if the path is too long.
pub(super) fn file_bytes(file: &str) -> &[u8] {
    &file.as_bytes()[file.len().saturating_sub(u8::MAX.into())..]
}
