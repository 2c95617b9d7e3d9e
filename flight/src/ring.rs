//! The recorder's memory: fixed records of atomic words, in a mapping that other processes can read at any time.
//!
//! One writer (under the recorder's lock), readers anywhere. A record's first word is its number, 0 while it is written: a
//! reader takes a record if the number is the same before and after. A text slot has a generation in the same place.

use std::ffi::c_void;
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::FallocateFlags;
use rustix::mm::{MapFlags, ProtFlags};

use super::{CallRecord, Flight, OpRecord, truncated};
use oflow_base::{Error, Result};
use oflow_comm::{Collective, now_ns};

/// Ops and collectives that are kept: 1,000 that are whole, and those that are being written.
const RECORDS: usize = 1024;
/// Texts that are kept: names, calls in short form, files.
const TEXTS: usize = 2048;
const OP_WORDS: usize = 8;
const CALL_WORDS: usize = 16;
const TEXT_WORDS: usize = 24;
/// Bytes of a text; what is longer is cut.
pub(super) const TEXT_BYTES: usize = (TEXT_WORDS - 2) * 8;
const HEAD_WORDS: usize = 64;
pub(super) const TOTAL_WORDS: usize = HEAD_WORDS + RECORDS * (OP_WORDS + CALL_WORDS) + TEXTS * TEXT_WORDS;
/// Where head, ops, collectives and texts lie, and how long they are, in bytes.
pub(super) const SECTIONS: [(usize, usize); 4] = {
    let ops = HEAD_WORDS * 8;
    let calls = ops + RECORDS * OP_WORDS * 8;
    let texts = calls + RECORDS * CALL_WORDS * 8;
    [(0, ops), (ops, calls - ops), (calls, texts - calls), (texts, TOTAL_WORDS * 8 - texts)]
};
const MAGIC: u64 = u64::from_le_bytes(*b"oflowfl3");
/// Members of a collective that a record names.
const NAMED: usize = 32;
/// A bit of the time at which a collective began: it is on a stream that has not come to it.
const QUEUED: u64 = 1 << 63;

/// The words of the head.
mod head {
    pub const MAGIC: usize = 0;
    pub const RANK: usize = 1;
    pub const WORLD: usize = 2;
    pub const PID: usize = 3;
    /// Nanoseconds since 1970 when the monotonic clock was at `MONOTONIC`.
    pub const UNIX: usize = 4;
    pub const MONOTONIC: usize = 5;
    pub const ISSUED: usize = 6;
    pub const CALLS: usize = 7;
}

/// A text in the ring: its slot, and the generation by which a reader sees that it is still that text. 0: none.
pub(super) type TextAt = u64;

/// Words that are written for one op.
pub(super) struct OpWords {
    pub ordinal: u64,
    pub hash: u64,
    pub time_ns: u64,
    pub op: TextAt,
    pub call: TextAt,
    pub file: TextAt,
    pub line: u32,
}

/// Words that are written for one collective when it begins.
pub(super) struct CallWords<'a> {
    pub ordinal: u64,
    pub kind: Collective,
    pub bytes: usize,
    pub start_ns: u64,
    /// A GPU has yet to come to it.
    pub queued: bool,
    pub op: TextAt,
    pub file: TextAt,
    pub line: u32,
    pub ranks: &'a [usize],
}

/// The mapping.
pub(super) struct Ring {
    words: *const AtomicU64,
}

// SAFETY: plain memory that lives as long as the ring; all access is atomic.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// A new ring for a rank: in a file, which gets its blocks now, or in memory of this process alone.
    pub(super) fn create(file: Option<&File>, rank: usize, world: usize) -> Result<Ring> {
        if let Some(file) = file {
            // A write to a mapped page that the disk has no room for would be a SIGBUS.
            rustix::fs::fallocate(file, FallocateFlags::empty(), 0, (TOTAL_WORDS * 8) as u64)
                .map_err(|e| Error::io("no room for the flight recorder").because(e))?;
        }
        let ring = Ring::map(file, ProtFlags::READ | ProtFlags::WRITE)?;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64);
        for (at, word) in [
            (head::RANK, rank as u64),
            (head::WORLD, world as u64),
            (head::PID, u64::from(std::process::id())),
            (head::UNIX, unix),
            (head::MONOTONIC, now_ns()),
        ] {
            ring.word(at).store(word, Ordering::Relaxed);
        }
        ring.word(head::MAGIC).store(MAGIC, Ordering::Release);
        Ok(ring)
    }

    /// Copies the ring of another process, which may run. A mapping would end this process if the file were cut short.
    pub(super) fn open(file: &File) -> Result<Ring> {
        let size = file.metadata()?.len();
        if size != (TOTAL_WORDS * 8) as u64 {
            return Err(Error::io(format!("it has {size} bytes, not {}", TOTAL_WORDS * 8)));
        }
        let copy = || -> Result<Vec<u64>> {
            let mut bytes = vec![0; TOTAL_WORDS * 8];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes.chunks_exact(8).map(|b| b.iter().rev().fold(0, |word, b| word << 8 | u64::from(*b))).collect())
        };
        let (first, second) = (copy()?, copy()?);
        if first[head::MAGIC] != MAGIC {
            return Err(Error::io("it does not start with the magic number"));
        }
        let ring = Ring::map(None, ProtFlags::READ | ProtFlags::WRITE)?;
        first.iter().enumerate().for_each(|(at, word)| ring.word(at).store(*word, Ordering::Relaxed));
        // What has been written since the first copy began may be torn in it.
        let starts = |at: usize, count: usize, words: usize| (0..count).map(move |i| at + i * words);
        let calls = HEAD_WORDS + RECORDS * OP_WORDS;
        let all = starts(HEAD_WORDS, RECORDS, OP_WORDS).chain(starts(calls, RECORDS, CALL_WORDS)).chain(starts(
            calls + RECORDS * CALL_WORDS,
            TEXTS,
            TEXT_WORDS,
        ));
        all.filter(|at| first[*at] != second[*at]).for_each(|at| ring.word(at).store(0, Ordering::Relaxed));
        Ok(ring)
    }

    fn map(file: Option<&File>, protection: ProtFlags) -> Result<Ring> {
        let (len, at) = (TOTAL_WORDS * 8, std::ptr::null_mut());
        let mapped = match file {
            // SAFETY: a new mapping at an address of the kernel's choice; its bytes are only touched as atomics.
            Some(file) => unsafe { rustix::mm::mmap(at, len, protection, MapFlags::SHARED, file.as_fd(), 0) },
            // SAFETY: as above.
            None => unsafe { rustix::mm::mmap_anonymous(at, len, protection, MapFlags::PRIVATE) },
        };
        let words = mapped.map_err(|e| Error::memory("cannot map the flight recorder").because(e))?.cast::<AtomicU64>();
        if file.is_some() {
            truncated::protect(words as usize, len);
        }
        Ok(Ring { words })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < TOTAL_WORDS);
        // SAFETY: within the mapping, which is page-aligned; atomics may have any value.
        unsafe { &*self.words.add(at) }
    }

    fn words<const N: usize>(&self, at: usize) -> &[AtomicU64; N] {
        assert!(at + N <= TOTAL_WORDS);
        // SAFETY: within the mapping, which is page-aligned; atomics may have any value.
        unsafe { &*self.words.add(at).cast::<[AtomicU64; N]>() }
    }

    fn op(&self, ordinal: u64) -> &[AtomicU64; OP_WORDS] {
        self.words(HEAD_WORDS + ordinal as usize % RECORDS * OP_WORDS)
    }

    fn call(&self, number: u64) -> &[AtomicU64; CALL_WORDS] {
        self.words(HEAD_WORDS + RECORDS * OP_WORDS + number as usize % RECORDS * CALL_WORDS)
    }

    fn text(&self, slot: usize) -> &[AtomicU64; TEXT_WORDS] {
        self.words(HEAD_WORDS + RECORDS * (OP_WORDS + CALL_WORDS) + slot % TEXTS * TEXT_WORDS)
    }

    /// Writes the record of an op.
    pub(super) fn write_op(&self, o: &OpWords) {
        let record = self.op(o.ordinal);
        let body = [o.hash, o.time_ns, o.op, o.call, o.file, u64::from(o.line)];
        write(record, o.ordinal, &body);
        self.word(head::ISSUED).store(o.ordinal, Ordering::Relaxed);
    }

    /// Writes the record of a collective that begins.
    pub(super) fn begin_call(&self, number: u64, c: &CallWords<'_>) {
        let mut body = [0u64; CALL_WORDS - 1];
        let kind = c.kind as u64 | (c.ranks.len() as u64) << 8 | u64::from(c.line) << 32;
        let start = c.start_ns | if c.queued { QUEUED } else { 0 };
        body[..7].copy_from_slice(&[c.ordinal, c.bytes as u64, kind, start, 0, c.op, c.file]);
        for (i, rank) in c.ranks.iter().enumerate().take(NAMED) {
            body[7 + i / 4] |= (*rank as u64 & 0xffff) << (i % 4 * 16);
        }
        write(self.call(number), number, &body);
        self.word(head::CALLS).store(number, Ordering::Relaxed);
    }

    /// Records that a GPU has started a queued collective.
    pub(super) fn arrive_call(&self, number: u64, now_ns: u64) {
        let record = self.call(number);
        // It may have been overwritten by later ones, here and below.
        if record[0].load(Ordering::Relaxed) == number {
            record[4].store(now_ns, Ordering::Relaxed);
        }
    }

    /// Records the end of a collective. The lowest bit is whether it failed. One that was not seen to begin began when it was
    /// queued.
    pub(super) fn end_call(&self, number: u64, end_ns: u64, failed: bool) {
        let record = self.call(number);
        if record[0].load(Ordering::Relaxed) == number {
            record[4].store(record[4].load(Ordering::Relaxed) & !QUEUED, Ordering::Relaxed);
            record[5].store(end_ns & !1 | u64::from(failed), Ordering::Relaxed);
        }
    }

    /// Writes the `count`-th text (from 1) and returns its slot.
    pub(super) fn write_text(&self, count: u64, text: &str) -> TextAt {
        let text = &text.as_bytes()[..text.floor_char_boundary(TEXT_BYTES)];
        let mut body = [0u64; TEXT_WORDS - 1];
        body[0] = text.len() as u64;
        for (word, chunk) in body[1..].iter_mut().zip(text.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(bytes);
        }
        write(self.text(count as usize), count, &body);
        count
    }

    /// Whether the text that was written there still is.
    pub(super) fn holds_text(&self, at: TextAt) -> bool {
        at != 0 && self.text(at as usize)[0].load(Ordering::Relaxed) == at
    }

    fn read_text(&self, at: TextAt) -> String {
        if at == 0 {
            return String::new();
        }
        match read(self.text(at as usize), at) {
            Some(words) => {
                let bytes: Vec<u8> = words[2..].iter().flat_map(|w| w.to_le_bytes()).collect();
                String::from_utf8_lossy(&bytes[..(words[1] as usize).min(TEXT_BYTES)]).into_owned()
            }
            None => String::new(),
        }
    }

    /// Seconds since 1970 of a reading of the monotonic clock.
    pub(super) fn time(&self, ns: u64) -> f64 {
        let at = |i| self.word(i).load(Ordering::Relaxed) as i128;
        (at(head::UNIX) + ns as i128 - at(head::MONOTONIC)) as f64 / 1e9
    }

    /// Number of the last op.
    pub(super) fn issued(&self) -> u64 {
        self.word(head::ISSUED).load(Ordering::Relaxed)
    }

    /// The op of an ordinal, if it is still there.
    pub(super) fn read_op(&self, ordinal: u64) -> Option<OpRecord> {
        let [_, hash, time, op, call, file, line, ..] = read(self.op(ordinal), ordinal)?;
        let call = self.read_text(call);
        let op = if op == 0 { call.split('(').next().unwrap_or_default().into() } else { self.read_text(op) };
        Some(OpRecord { ordinal, hash, op, call, file: self.read_text(file), line: line as u32, time: self.time(time) })
    }

    /// The collective that the rank is in: the oldest that has begun and not ended, because a stream holds those after it.
    pub(super) fn open_call(&self) -> Option<CallRecord> {
        let begun = |n: &u64| {
            let record = self.call(*n);
            let [start, end] = [4, 5].map(|i| record[i].load(Ordering::Relaxed));
            end == 0 && start & QUEUED == 0
        };
        let open = last(self.word(head::CALLS).load(Ordering::Relaxed)).find(begun)?;
        self.read_call(open).filter(CallRecord::is_open)
    }

    fn read_call(&self, number: u64) -> Option<CallRecord> {
        let words = read(self.call(number), number)?;
        let [_, ordinal, bytes, kind, start, end, op, file, ..] = words;
        let members = (kind >> 8 & 0xff_ffff) as usize;
        let rank = |i: usize| (words[8 + i / 4] >> (i % 4 * 16) & 0xffff) as usize;
        Some(CallRecord {
            number,
            ordinal,
            kind: Collective::name_of(kind as u8).into(),
            op: self.read_text(op),
            file: self.read_text(file),
            line: (kind >> 32) as u32,
            members,
            ranks: (0..members.min(NAMED)).map(rank).collect(),
            bytes,
            start: self.time(start & !QUEUED),
            queued: start & QUEUED != 0,
            end: (end != 0).then(|| self.time(end)),
            failed: end & 1 == 1,
        })
    }

    /// Everything that is there.
    pub(super) fn flight(&self) -> Flight {
        let at = |i| self.word(i).load(Ordering::Relaxed);
        Flight {
            rank: at(head::RANK) as usize,
            world: at(head::WORLD) as usize,
            pid: at(head::PID) as u32,
            issued: self.issued(),
            ops: last(self.issued()).filter_map(|o| self.read_op(o)).collect(),
            calls: last(at(head::CALLS)).filter_map(|n| self.read_call(n)).collect(),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        truncated::forget(self.words as usize);
        // SAFETY: the mapping of `map`, and no reference into it outlives the ring.
        let _ = unsafe { rustix::mm::munmap(self.words.cast_mut().cast::<c_void>(), TOTAL_WORDS * 8) };
    }
}

/// Numbers of the records that are kept when the last one is `n`.
fn last(n: u64) -> RangeInclusive<u64> {
    n.saturating_sub(RECORDS as u64 - 1).max(1)..=n
}

fn write<const N: usize>(record: &[AtomicU64; N], number: u64, body: &[u64]) {
    record[0].store(0, Ordering::Relaxed);
    fence(Ordering::Release);
    for (word, value) in record[1..].iter().zip(body) {
        word.store(*value, Ordering::Relaxed);
    }
    record[0].store(number, Ordering::Release);
}

fn read<const N: usize>(record: &[AtomicU64; N], number: u64) -> Option<[u64; N]> {
    if number == 0 || record[0].load(Ordering::Acquire) != number {
        return None;
    }
    let words = std::array::from_fn(|i| record[i].load(Ordering::Relaxed));
    fence(Ordering::Acquire);
    (record[0].load(Ordering::Relaxed) == number).then_some(words)
}
