//! The recorder's memory: fixed records of atomic words, in a mapping that other processes can read at any time.
//!
//! One writer (under the recorder's lock), readers anywhere. A record's first word is its number, 0 while it is written: a
//! reader takes a record if the number is the same before and after. A text slot has a generation in the same place.
//!
//! The nodes of a graph leave no records. The head has one word for them, which a run writes as it comes to each node: the number of the node,
//! and which call it makes. The calls of a graph are written before it runs, in a section of their own, so that records of ops do not
//! overwrite them.

use std::ffi::c_void;
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::FallocateFlags;
use rustix::mm::{MapFlags, ProtFlags};

use super::{CallRecord, Flight, NodeRecord, OpRecord, truncated};
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
/// Calls of graphs that are kept. Nodes that make the same call at one line share one: layers do.
pub(super) const NODE_CALLS: usize = 1024;
const NODE_CALL_WORDS: usize = 32;
/// Bytes of the text of such a call, its file included.
const NODE_CALL_BYTES: usize = (NODE_CALL_WORDS - 2) * 8;
/// Of them for the file; what is longer is cut.
const NODE_FILE_BYTES: usize = 96;
const HEAD_WORDS: usize = 64;
/// Where ops, collectives, texts and calls of graphs begin, in words.
const OPS: usize = HEAD_WORDS;
const CALLS: usize = OPS + RECORDS * OP_WORDS;
const ALL_TEXTS: usize = CALLS + RECORDS * CALL_WORDS;
const OF_GRAPHS: usize = ALL_TEXTS + TEXTS * TEXT_WORDS;
pub(super) const TOTAL_WORDS: usize = OF_GRAPHS + NODE_CALLS * NODE_CALL_WORDS;
/// Where head, ops, collectives, texts and calls of graphs lie, and how long they are, in bytes.
pub(super) const SECTIONS: [(usize, usize); 5] = [
    (0, OPS * 8),
    (OPS * 8, (CALLS - OPS) * 8),
    (CALLS * 8, (ALL_TEXTS - CALLS) * 8),
    (ALL_TEXTS * 8, (OF_GRAPHS - ALL_TEXTS) * 8),
    (OF_GRAPHS * 8, (TOTAL_WORDS - OF_GRAPHS) * 8),
];
const MAGIC: u64 = u64::from_le_bytes(*b"oflowfl4");
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
    /// Runs of graphs and iterations in them so far, and the ordinal of the last one's entry; 0: it has none.
    pub const RUNS: usize = 8;
    pub const GRAPH: usize = 9;
    /// The node that a run has come to, as `node_word` makes it; 0: no graph runs.
    pub const NODE: usize = 10;
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
        let all = starts(OPS, RECORDS, OP_WORDS)
            .chain(starts(CALLS, RECORDS, CALL_WORDS))
            .chain(starts(ALL_TEXTS, TEXTS, TEXT_WORDS))
            .chain(starts(OF_GRAPHS, NODE_CALLS, NODE_CALL_WORDS));
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
        self.words(OPS + ordinal as usize % RECORDS * OP_WORDS)
    }

    fn call(&self, number: u64) -> &[AtomicU64; CALL_WORDS] {
        self.words(CALLS + number as usize % RECORDS * CALL_WORDS)
    }

    fn text(&self, slot: usize) -> &[AtomicU64; TEXT_WORDS] {
        self.words(ALL_TEXTS + slot % TEXTS * TEXT_WORDS)
    }

    fn node_call(&self, slot: usize) -> &[AtomicU64; NODE_CALL_WORDS] {
        self.words(OF_GRAPHS + slot % NODE_CALLS * NODE_CALL_WORDS)
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
        pack(text, &mut body[1..]);
        write(self.text(count as usize), count, &body);
        count
    }

    /// Writes the `count`-th call of graphs (from 1).
    pub(super) fn write_node_call(&self, count: u64, call: &str, file: &str, line: u32) {
        let file = tail(file, NODE_FILE_BYTES);
        let call = &call[..call.floor_char_boundary(NODE_CALL_BYTES - file.len())];
        let mut body = [0u64; NODE_CALL_WORDS - 1];
        body[0] = u64::from(line) | (call.len() as u64) << 32 | (file.len() as u64) << 48;
        pack([call, file].concat().as_bytes(), &mut body[1..]);
        // A word has the lower half of the number, which is all that a reader compares.
        write(self.node_call(count as usize), count & u64::from(u32::MAX), &body);
    }

    /// A run of a graph begins; `graph` is the ordinal of its entry.
    pub(super) fn begin_run(&self, graph: u64) {
        self.word(head::GRAPH).store(graph, Ordering::Relaxed);
        self.turn();
    }

    /// A run begins, or another iteration of a loop in it.
    #[inline]
    pub(super) fn turn(&self) {
        let runs = self.word(head::RUNS).load(Ordering::Relaxed);
        self.word(head::RUNS).store(runs + 1, Ordering::Relaxed);
    }

    /// A run has come to a node, or has ended (0).
    #[inline]
    pub(super) fn come_to(&self, word: u64) {
        self.word(head::NODE).store(word, Ordering::Relaxed);
    }

    /// Number of runs of graphs and of iterations in them, and the word of the node that the last one has come to.
    pub(super) fn steps(&self) -> [u64; 2] {
        [head::RUNS, head::NODE].map(|at| self.word(at).load(Ordering::Relaxed))
    }

    /// The node that a run is at. Of a call that is no longer known, the line of the run is told.
    pub(super) fn node(&self) -> Option<NodeRecord> {
        let [_, word] = self.steps();
        let (number, call) = (word as u32, word >> 32);
        if number == 0 {
            return None;
        }
        let graph = self.word(head::GRAPH).load(Ordering::Relaxed);
        let known = read(self.node_call(call as usize), call).map(|words| {
            let [_, lengths, text @ ..] = words;
            let bytes: Vec<u8> = text.iter().flat_map(|w| w.to_le_bytes()).collect();
            let cut = |from: usize, len: u64| {
                let from = from.min(bytes.len());
                String::from_utf8_lossy(&bytes[from..(from + len as usize).min(bytes.len())]).into_owned()
            };
            let (call, file) = (lengths >> 32 & 0xffff, lengths >> 48);
            (cut(0, call), cut(call as usize, file), lengths as u32)
        });
        let (call, file, line) = match known {
            Some(known) => known,
            None => {
                let run = self.read_op(graph).unwrap_or_default();
                (String::new(), run.file, run.line)
            }
        };
        let op = call.split('(').next().unwrap_or_default().into();
        Some(NodeRecord { graph, number, op, call, file, line })
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
            node: self.node(),
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

/// The word of a node, counted from 0, that makes the `call`-th call of graphs; 0: a call that is not told.
pub(super) fn node_word(node: usize, call: u64) -> u64 {
    (node as u64 + 1) & u64::from(u32::MAX) | call << 32
}

/// The end of a path, at most so many bytes.
pub(super) fn tail(path: &str, most: usize) -> &str {
    &path[path.ceil_char_boundary(path.len().saturating_sub(most))..]
}

/// Bytes as words.
fn pack(text: &[u8], words: &mut [u64]) {
    for (word, chunk) in words.iter_mut().zip(text.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(bytes);
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
