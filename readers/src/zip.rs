//! The directory of a zip file: what `.npz` files need of the format.
//!
//! Sizes come from the central directory at the end of the file (APPNOTE.TXT 4.3.12), in their 64-bit form where the 32-bit ones are full
//! (4.5.3). Nothing of the file is trusted: each offset is checked by the read.

use crate::source::Source;
use oflow::{Error, Result};

/// Most members that are read; an `.npz` has a few.
const MOST: u64 = 1 << 16;

/// Longest end of the directory: 22 bytes and a comment.
const TAIL: u64 = 22 + 65_535;

/// A file in the zip file.
#[derive(Debug)]
pub struct Member {
    pub name: String,
    /// Whether it is deflated; otherwise it is stored.
    pub compressed: bool,
    /// Bytes that it takes in the zip file.
    pub stored: u64,
    /// Where its own header begins.
    header: u64,
}

fn u16_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u16::from_le_bytes(b.get(at..at + 2)?.try_into().ok()?)))
}

fn u32_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?)))
}

fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(b.get(at..at + 8)?.try_into().ok()?))
}

impl Member {
    /// Where its bytes begin: behind its own header, whose names may have other lengths than in the directory.
    pub fn start(&self, source: &Source) -> Result<u64> {
        let header = source.read(self.header, 30)?;
        let lengths = u16_at(&header, 26).zip(u16_at(&header, 28));
        match lengths {
            Some((name, extra)) if header.starts_with(b"PK\x03\x04") => Ok(self.header + 30 + name + extra),
            _ => Err(source.error("", format!("'{}' has no header where the directory says", self.name))),
        }
    }
}

/// The files in a zip file.
pub fn members(source: &Source) -> Result<Vec<Member>> {
    let broken = |what: &str| source.error("", format!("no zip file, or a broken one: {what}"));
    let tail_at = source.len().saturating_sub(TAIL);
    let tail = source.read(tail_at, (source.len() - tail_at) as usize)?;
    let end = tail.windows(4).rposition(|w| w == b"PK\x05\x06");
    let end = end.ok_or_else(|| broken("the end of its directory is missing"))?;
    let short = || broken("the directory is cut");
    let field = |at: usize| u32_at(&tail, end + at).ok_or_else(short);
    let (mut count, mut size, mut offset) = (u16_at(&tail, end + 10).ok_or_else(short)?, field(12)?, field(16)?);
    if count == 0xffff || size == 0xffff_ffff || offset == 0xffff_ffff {
        // The place of the 64-bit end stands in the 20 bytes before.
        let locator = end.checked_sub(20).map(|at| &tail[at..end]).filter(|l| l.starts_with(b"PK\x06\x07"));
        if let Some(at) = locator.and_then(|l| u64_at(l, 8)) {
            let long = source.read(at, 56)?;
            let fields = u64_at(&long, 32).zip(u64_at(&long, 40)).zip(u64_at(&long, 48));
            let fields = fields.filter(|_| long.starts_with(b"PK\x06\x06"));
            ((count, size), offset) = fields.ok_or_else(short)?;
        }
    }
    if count > MOST {
        return Err(broken(&format!("{count} files in it; {MOST} are read at most")));
    }
    let size = usize::try_from(size).map_err(|_| short())?;
    let directory = source.read(offset, size)?;
    let (mut all, mut rest) = (vec![], &directory[..]);
    for _ in 0..count {
        let (member, next) = member(rest).ok_or_else(short)?;
        all.push(member.map_err(|e| source.error("", e.message()))?);
        rest = &rest[next..];
    }
    Ok(all)
}

/// The member at the start of the directory's rest, and the length of its entry. `None` where the directory is cut.
fn member(entry: &[u8]) -> Option<(Result<Member>, usize)> {
    if !entry.starts_with(b"PK\x01\x02") {
        return None;
    }
    let (flags, method) = (u16_at(entry, 8)?, u16_at(entry, 10)?);
    let (mut stored, mut real, mut header) = (u32_at(entry, 20)?, u32_at(entry, 24)?, u32_at(entry, 42)?);
    let lengths = [28, 30, 32].map(|at| u16_at(entry, at).map(|n| n as usize));
    let [Some(name), Some(extra), Some(comment)] = lengths else { return None };
    let name_bytes = entry.get(46..46 + name)?;
    let mut fields = entry.get(46 + name..46 + name + extra)?;
    while let Some((id, length)) = u16_at(fields, 0).zip(u16_at(fields, 2)) {
        let body = fields.get(4..4 + length as usize)?;
        if id == 1 {
            // Only those that are full in the short form, in this order.
            let mut at = 0;
            for short in [&mut real, &mut stored, &mut header] {
                if *short == 0xffff_ffff {
                    *short = u64_at(body, at)?;
                    at += 8;
                }
            }
        }
        fields = &fields[4 + length as usize..];
    }
    let name = String::from_utf8_lossy(name_bytes).into_owned();
    let made = match (flags & 1, method) {
        (0, 0 | 8) => Ok(Member { name, compressed: method == 8, stored, header }),
        (1, _) => Err(Error::value(format!("'{name}' is encrypted"))),
        _ => Err(Error::value(format!("'{name}' is compressed by method {method}; NumPy stores or deflates"))),
    };
    let length = 46 + name_bytes.len() + extra + comment;
    (length <= entry.len()).then_some((made, length))
}
