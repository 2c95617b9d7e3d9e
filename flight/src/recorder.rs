//! A rank's dispatch stream and its recorder.

use std::fs::File;
use std::hash::Hasher;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use super::graph_run::{GraphNodes, GraphRun};
use super::ring::{CallWords, OpWords, Ring, TEXT_BYTES, TextAt, tail};
use super::{CallRecord, Flight, Marks, NodeRecord, OpRecord};
use oflow_base::CallSite;
use oflow_base::error::NameScope;
use oflow_base::intern::FixedHasher;
use oflow_comm::{CallLog, Collective, Tag, now_ns};
use oflow_files::Access;

/// The text of a call at one line of the program. It is written into the recorder at its first use, and again only if it has been
/// overwritten since.
#[derive(Default)]
pub struct OpText {
    text: Box<str>,
    at: AtomicU64,
}

impl OpText {
    /// Makes a text. If it is too long for a record, the record holds its beginning.
    pub fn new(text: String) -> OpText {
        OpText { text: text.into(), at: AtomicU64::new(0) }
    }

    /// Returns the whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A name that lives as long as the program, known by its address.
struct Name {
    start: usize,
    len: usize,
    /// Hash of its content, the same in every process.
    hash: u64,
    at: TextAt,
}

/// Texts of calls without a plan that are found again without being made again.
const DESCRIBED: usize = 256;

struct State {
    ordinal: u64,
    hash: u64,
    /// Name scope of the last op.
    scope: NameScope,
    marks: Marks,
    /// Names of ops and files that have come by; the last one used stands first. A program has a few dozen.
    names: Vec<Name>,
    files: Vec<Name>,
    texts: u64,
    /// By hash of name and key: where the last text of a call without a plan lies.
    described: Box<[(u64, TextAt); DESCRIBED]>,
    calls: u64,
    /// Calls of graphs that have been written.
    node_calls: u64,
    /// None until the first op, and where there is no memory for it.
    ring: Option<Arc<Ring>>,
    file: Option<File>,
    opened: bool,
}

/// The dispatch stream of one rank: ordinal, rolling hash, marks, and the last ops and collectives.
pub struct Recorder {
    rank: usize,
    world: usize,
    state: Mutex<State>,
}

impl Recorder {
    /// Makes the recorder of a rank. With a folder its memory is a file there, which remains after the process has ended.
    pub fn new(rank: usize, world: usize, folder: Option<&Path>) -> Recorder {
        let file = folder.and_then(|folder| {
            let path = folder.join(Flight::ring_name(rank));
            // Another process may still write to the old file.
            let _there_may_be_none = std::fs::remove_file(&path);
            // New, so that no link of somebody else is followed.
            let opened = oflow_files::create(&path, Access::Private);
            opened.inspect_err(|e| tracing::warn!("no flight record in {}: {e}", path.display())).ok()
        });
        Recorder {
            rank,
            world,
            state: Mutex::new(State {
                ordinal: 0,
                hash: 0,
                scope: NameScope::default(),
                marks: Marks::default(),
                names: Vec::new(),
                files: Vec::new(),
                texts: 0,
                described: Box::new([(0, 0); DESCRIBED]),
                calls: 0,
                node_calls: 0,
                ring: None,
                file,
                opened: false,
            }),
        }
    }

    /// Makes a recorder that numbers and hashes the stream but keeps no records, for dry runs.
    pub fn without_records(rank: usize, world: usize) -> Recorder {
        let mut recorder = Recorder::new(rank, world, None);
        recorder.state.get_mut().unwrap_or_else(PoisonError::into_inner).opened = true;
        recorder
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whole at every point where a panic could happen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the next global op. `key` is a hash of the op, its attributes and types; the line of the call is added here.
    /// `call` is its text, `add(f32[4] [S(0)], …)`. Without `call` the name is hashed too.
    pub fn next(&self, op: &'static str, key: u64, site: CallSite, call: Option<&OpText>) -> Tag {
        self.record(op, key, site, call, None)
    }

    /// Like [`Recorder::next`] without `call`, for a call without a plan: `text` is asked for its text if none with this name and
    /// key is in the records.
    pub fn next_described(&self, op: &'static str, key: u64, site: CallSite, text: &dyn Fn() -> String) -> Tag {
        self.record(op, key, site, None, Some(text))
    }

    fn record(
        &self,
        op: &'static str,
        key: u64,
        site: CallSite,
        call: Option<&OpText>,
        text: Option<&dyn Fn() -> String>,
    ) -> Tag {
        let s = &mut *self.lock();
        if !s.opened {
            s.open(self.rank, self.world);
        }
        s.ordinal += 1;
        let (file_hash, file) = named(&mut s.files, site.file, s.ring.as_deref(), &mut s.texts);
        // A call's text begins with the name, and its key covers it.
        let (op_hash, name) = match call {
            Some(_) => (0, 0),
            None => named(&mut s.names, op, s.ring.as_deref(), &mut s.texts),
        };
        let mut h = FixedHasher::default();
        h.write_u64(s.hash);
        h.write_u64(op_hash);
        h.write_u64(key);
        h.write_u64(file_hash);
        h.write_u32(site.line);
        s.hash = h.finish();
        s.scope = site.scope;
        s.marks.note(s.ordinal, s.hash);
        let tag = Tag { ordinal: s.ordinal, hash: s.hash, op, file: site.file, line: site.line, scope: site.scope };
        if let Some(ring) = &s.ring {
            let call = match (call, text) {
                (Some(c), _) => {
                    let mut at = c.at.load(Ordering::Relaxed);
                    if !ring.holds_text(at) {
                        s.texts += 1;
                        at = ring.write_text(s.texts, &c.text);
                        c.at.store(at, Ordering::Relaxed);
                    }
                    at
                }
                (None, Some(text)) => {
                    let what = key ^ op_hash.rotate_left(1);
                    let slot = &mut s.described[what as usize % DESCRIBED];
                    if slot.0 != what || !ring.holds_text(slot.1) {
                        s.texts += 1;
                        *slot = (what, ring.write_text(s.texts, &text()));
                    }
                    slot.1
                }
                (None, None) => 0,
            };
            let (line, time_ns) = (site.line, coarse_ns());
            ring.write_op(&OpWords { ordinal: s.ordinal, hash: s.hash, time_ns, op: name, call, file, line });
        }
        tag
    }

    /// Records the start of a collective and returns its number for [`Recorder::end`]. `bytes`: input or output, whichever is
    /// more.
    pub fn begin(&self, kind: Collective, tag: &Tag, ranks: &[usize], bytes: usize) -> u64 {
        self.note(kind, tag, ranks, bytes, false)
    }

    fn note(&self, kind: Collective, tag: &Tag, ranks: &[usize], bytes: usize, queued: bool) -> u64 {
        let s = &mut *self.lock();
        s.calls += 1;
        let (_, file) = named(&mut s.files, tag.file, s.ring.as_deref(), &mut s.texts);
        let (_, op) = named(&mut s.names, tag.op, s.ring.as_deref(), &mut s.texts);
        if let Some(ring) = &s.ring {
            let (ordinal, line) = (tag.ordinal, tag.line);
            let call = CallWords { ordinal, kind, bytes, start_ns: now_ns(), queued, op, file, line, ranks };
            ring.begin_call(s.calls, &call);
        }
        s.calls
    }

    /// Records the end of a collective.
    pub fn end(&self, number: u64, failed: bool) {
        if let Some(ring) = &self.lock().ring {
            ring.end_call(number, now_ns(), failed);
        }
    }

    /// Returns the current time on the clock of the records, a monotonic one; 0 if no records are kept.
    pub fn now(&self) -> f64 {
        self.lock().ring.as_ref().map_or(0.0, |ring| ring.time(now_ns()))
    }

    /// Returns the number of global ops issued so far.
    pub fn issued(&self) -> u64 {
        self.lock().ordinal
    }

    /// Returns the marks after an ordinal, then that of the last op, in order.
    pub fn marks_after(&self, ordinal: u64) -> Vec<(u64, u64)> {
        self.lock().marks.after(ordinal)
    }

    /// Returns the ops in the interval (after, to] that are still recorded, in order: the last `most` of them.
    pub fn ops(&self, after: u64, to: u64, most: usize) -> Vec<OpRecord> {
        let s = self.lock();
        let Some(ring) = &s.ring else { return Vec::new() };
        let to = to.min(s.ordinal);
        let first = after.saturating_add(1).max(to.saturating_sub(most as u64 - 1)).max(1);
        (first..=to).filter_map(|o| ring.read_op(o)).collect()
    }

    /// Returns the path of the name scope of the last op; empty outside of all.
    pub fn scope(&self) -> &'static str {
        self.lock().scope.path()
    }

    /// Returns the last op.
    pub fn last(&self) -> Option<OpRecord> {
        let s = self.lock();
        s.ring.as_ref()?.read_op(s.ordinal)
    }

    /// Begins a run of a graph with these nodes; `graph` is the ordinal of its entry in the stream, 0 if it has none. The calls of the nodes
    /// are written at the first run, and again only if those of other graphs have overwritten them.
    pub fn begin_run<'a>(&self, nodes: &'a mut GraphNodes, graph: u64) -> GraphRun<'a> {
        let s = &mut *self.lock();
        if !s.opened {
            s.open(self.rank, self.world);
        }
        nodes.begin(s.ring.as_ref(), &mut s.node_calls, graph)
    }

    /// Returns the node of the graph that runs.
    pub fn node(&self) -> Option<NodeRecord> {
        self.lock().ring.as_ref()?.node()
    }

    /// Returns two numbers that change as runs of graphs go on.
    pub fn steps(&self) -> [u64; 2] {
        self.lock().ring.as_ref().map_or([0; 2], |ring| ring.steps())
    }

    /// Returns the collective that the rank is in.
    pub fn open_call(&self) -> Option<CallRecord> {
        self.lock().ring.as_ref()?.open_call()
    }
}

impl CallLog for Recorder {
    fn queued(&self, kind: Collective, tag: &Tag, ranks: &[usize], bytes: usize) -> u64 {
        self.note(kind, tag, ranks, bytes, true)
    }
    fn arrived(&self, number: u64) {
        if let Some(ring) = &self.lock().ring {
            ring.arrive_call(number, now_ns());
        }
    }
    fn ended(&self, number: u64, failed: bool) {
        self.end(number, failed);
    }
}

impl State {
    /// Makes the ring at the first op, so a rank that issues none needs no memory. If it fails the stream continues without
    /// records.
    fn open(&mut self, rank: usize, world: usize) {
        self.opened = true;
        let file = self.file.take();
        self.ring = Ring::create(file.as_ref(), rank, world)
            .or_else(|e| {
                tracing::warn!("{e}");
                Ring::create(None, rank, world)
            })
            .ok()
            .map(Arc::new);
    }
}

/// Hash and text of a name. The same address with the same length is the same name, because names live for ever.
fn named(known: &mut Vec<Name>, name: &'static str, ring: Option<&Ring>, texts: &mut u64) -> (u64, TextAt) {
    let (start, len) = (name.as_ptr().addr(), name.len());
    let i = match known.iter().position(|n| n.start == start && n.len == len) {
        Some(i) => i,
        None => {
            let mut h = FixedHasher::default();
            h.write(name.as_bytes());
            h.write_usize(len);
            known.push(Name { start, len, hash: h.finish(), at: 0 });
            known.len() - 1
        }
    };
    known.swap(0, i);
    let first = &mut known[0];
    if let Some(ring) = ring
        && !ring.holds_text(first.at)
    {
        *texts += 1;
        first.at = ring.write_text(*texts, tail(name, TEXT_BYTES));
    }
    (first.hash, first.at)
}

/// The monotonic clock to a few milliseconds, at a fifth of the price.
fn coarse_ns() -> u64 {
    let t = clock_gettime(ClockId::MonotonicCoarse);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(line: u32) -> CallSite {
        CallSite::at("train.rs", line)
    }

    #[test]
    fn what_a_dead_rank_leaves_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(3, 8, Some(folder.path()));
        let text = OpText::new("add(f32[4] [S(0)], f32[4] [B]) on cpu[2]".into());
        for line in 1..=1500 {
            recorder.next("add", 7, site(line), Some(&text));
        }
        let tag = recorder.next("to_vec", 1, site(9), None);
        let done = recorder.begin(Collective::AllGather, &tag, &[0, 3], 70);
        recorder.end(done, false);
        recorder.begin(Collective::AllReduce, &tag, &(0..40).collect::<Vec<_>>(), 5 << 40);
        let path = folder.path().join(Flight::ring_name(3));
        let flight = Flight::read(&path).unwrap();
        assert_eq!((flight.rank, flight.world, flight.pid), (3, 8, std::process::id()));
        assert_eq!((flight.issued, flight.ops.len()), (1501, 1024));
        let add = &flight.ops[1022];
        assert_eq!((add.ordinal, add.op.as_str(), add.line), (1500, "add", 1500));
        assert_eq!((add.call.as_str(), add.file.as_str()), (text.as_str(), "train.rs"));
        let [first, open] = flight.calls.as_slice() else { panic!("{:?}", flight.calls) };
        assert!(first.end.unwrap() >= first.start && !first.failed && first.ranks == [0, 3]);
        assert_eq!((first.bytes, open.bytes, open.queued), (70, 5 << 40, false));
        assert_eq!((open.kind.as_str(), open.members, open.ranks.len(), open.end), ("all_reduce", 40, 32, None));
        assert_eq!((open.op.as_str(), open.ordinal, open.line), ("to_vec", 1501, 9));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((now - open.start).abs() < 60.0 && (now - add.time).abs() < 60.0);
        // As JSON it is the same.
        let saved = Flight::save_all(folder.path(), folder.path()).unwrap();
        assert_eq!((saved.written, saved.failed.len()), (1, 0));
        assert!(!path.exists());
        let read = Flight::read(&path.with_extension("json")).unwrap();
        let hashes = |f: &Flight| f.ops.iter().map(|o| (o.ordinal, o.hash, o.line)).collect::<Vec<_>>();
        assert!(hashes(&read) == hashes(&flight) && read.calls.len() == 2 && read.calls[1].end.is_none());
    }

    #[test]
    fn what_waits_on_a_stream_is_not_what_the_rank_is_in() {
        let recorder = Recorder::new(0, 2, None);
        let tag = recorder.next("sum", 1, site(9), None);
        let queue = || recorder.queued(Collective::AllReduce, &tag, &[0, 1], 8);
        let (a, b, c) = (queue(), queue(), queue());
        let open = || recorder.open_call().map(|c| c.number);
        assert_eq!(open(), None);
        recorder.arrived(a);
        assert_eq!(open(), Some(a));
        // What the host does meanwhile does not hide it.
        let host = recorder.begin(Collective::Barrier, &tag, &[0, 1], 0);
        recorder.end(host, false);
        assert_eq!(open(), Some(a));
        recorder.ended(a, false);
        assert_eq!(open(), None);
        // Nobody saw it begin, only that it is over.
        recorder.ended(b, true);
        recorder.arrived(c);
        assert_eq!(open(), Some(c));
        let calls = recorder.lock().ring.as_ref().unwrap().flight().calls;
        let seen: Vec<_> = calls.iter().map(|c| (c.number, c.queued, c.end.is_some(), c.failed)).collect();
        assert_eq!(
            seen,
            [(1, false, true, false), (2, false, true, true), (3, false, false, false), (4, false, true, false)]
        );
        assert!(calls.iter().all(|c| c.end.is_none_or(|end| end >= c.start)));
    }

    #[test]
    fn texts_that_fall_out_are_written_again() {
        let recorder = Recorder::new(0, 1, None);
        let old = OpText::new("relu(old)".into());
        recorder.next("relu", 0, site(1), Some(&old));
        for i in 0..5000 {
            recorder.next("relu", 0, site(1), Some(&OpText::new(format!("relu({i})"))));
        }
        let last = recorder.last().unwrap();
        assert_eq!((last.call.as_str(), last.op.as_str(), last.file.as_str()), ("relu(4999)", "relu", "train.rs"));
        recorder.next("relu", 0, site(1), Some(&old));
        assert_eq!(recorder.last().unwrap().call, "relu(old)");
        assert_eq!(recorder.ops(0, 10, 100), []);
        // Whoever asks may say anything.
        assert_eq!(recorder.ops(u64::MAX, u64::MAX, 3), []);
        assert_eq!(recorder.ops(4990, u64::MAX, 3).iter().map(|o| o.ordinal).collect::<Vec<_>>(), [5000, 5001, 5002]);
        // The hash of a stream does not depend on which names came before.
        assert_eq!(recorder.marks_after(5001).len(), 1);
    }

    #[test]
    fn a_call_without_a_plan_is_described_once() {
        let recorder = Recorder::new(0, 1, None);
        let made = std::cell::Cell::new(0);
        let next = |op, key: u64| {
            let text = || {
                made.set(made.get() + 1);
                format!("{op}({key})")
            };
            let hash = recorder.next_described(op, key, site(1), &text).hash;
            let last = recorder.last().unwrap();
            assert_eq!((last.op.as_str(), last.call), (op, format!("{op}({key})")));
            hash
        };
        for _ in 0..10 {
            next("to_global", 7);
            next("distribute", 7);
        }
        assert_eq!(made.get(), 2);
        // Texts that share a slot replace each other; the stream's hash does not depend on texts.
        next("to_global", 7 + DESCRIBED as u64);
        next("to_global", 7);
        assert_eq!(made.get(), 4);
        let other = Recorder::new(0, 1, None);
        let described = Recorder::new(0, 1, None).next_described("add", 1, site(1), &String::new).hash;
        assert_eq!(other.next("add", 1, site(1), None).hash, described);
    }

    #[test]
    fn every_difference_changes_the_hash_and_nothing_else_does() {
        let hash = |warm: &[&'static str], op: &'static str, key: u64, file: &'static str, line: u32| {
            let r = Recorder::new(0, 1, None);
            // Another history of names, then the same stream.
            let mut s = r.lock();
            warm.iter().for_each(|name| {
                named(&mut s.names, name, None, &mut 0);
                named(&mut s.files, name, None, &mut 0);
            });
            drop(s);
            r.next("add", 1, site(1), None);
            r.next(op, key, CallSite::at(file, line), None).hash
        };
        let same = hash(&[], "relu", 5, "a.rs", 3);
        // Another address, the same content.
        let copy: &'static str = Box::leak("relu".to_string().into_boxed_str());
        assert_eq!(hash(&["x", "a.rs", "add"], copy, 5, "a.rs", 3), same);
        for other in [
            hash(&[], "gelu", 5, "a.rs", 3),
            hash(&[], "relu", 6, "a.rs", 3),
            hash(&[], "relu", 5, "b.rs", 3),
            hash(&[], "relu", 5, "a.rs", 4),
        ] {
            assert_ne!(other, same);
        }
    }

    #[test]
    fn files_of_something_else_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flight-0.ring");
        std::fs::write(&path, b"short").unwrap();
        let error = Flight::read(&path).unwrap_err().to_string();
        assert!(error.contains("flight-0.ring: it has 5 bytes, not "), "{error}");
        std::fs::write(path.with_extension("json"), b"{").unwrap();
        assert!(Flight::read(&path.with_extension("json")).is_err());
        let op = r#"{"ordinal":0,"hash":1,"op":"add","file":"t.rs","line":1,"time":1.0}"#;
        for (world, ops, why) in [
            (u64::MAX, "", "it is of rank 1 in a world of 18446744073709551615"),
            (1, "", "rank 1 in a world of 1"),
            (2, op, "number 0"),
        ] {
            let json = format!(r#"{{"rank":1,"world":{world},"pid":1,"issued":1,"ops":[{ops}],"calls":[]}}"#);
            std::fs::write(path.with_extension("json"), json).unwrap();
            let error = Flight::read(&path.with_extension("json")).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        std::fs::remove_file(path.with_extension("json")).unwrap();
        // It may be worth something to somebody; an empty file is of a rank that died before its first op.
        let saved = Flight::save_all(folder.path(), folder.path()).unwrap();
        assert_eq!((saved.written, saved.failed.len(), path.exists()), (0, 1, true));
        std::fs::write(&path, b"").unwrap();
        let saved = Flight::save_all(folder.path(), folder.path()).unwrap();
        assert_eq!((saved.written, saved.failed.len(), path.exists()), (0, 0, false));
    }

    #[test]
    fn a_ring_goes_only_when_its_copy_is_whole() {
        let (rings, full) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for rank in 0..2 {
            Recorder::new(rank, 2, Some(rings.path())).next("add", 7, site(1), None);
        }
        // The copy of one rank cannot be written: a folder has its name.
        let blocked = full.path().join(Flight::json_name(0));
        std::fs::create_dir(&blocked).unwrap();
        let saved = Flight::save_all(rings.path(), full.path()).unwrap();
        assert_eq!((saved.written, saved.failed.len()), (1, 1));
        assert!(saved.failed[0].contains("flight-0.json"), "{:?}", saved.failed);
        let left = |folder: &Path| {
            let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(
            (left(rings.path()), left(full.path())),
            (vec!["flight-0.ring".into()], vec!["flight-0.json".into(), "flight-1.json".into()])
        );
        std::fs::remove_dir(&blocked).unwrap();
        assert_eq!(Flight::save_all(rings.path(), full.path()).unwrap().written, 1);
        assert_eq!(left(rings.path()).len(), 0);
    }

    #[test]
    fn a_ring_that_is_cut_short_does_not_end_its_rank() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(0, 1, Some(folder.path()));
        recorder.next("add", 7, site(1), None);
        let path = folder.path().join(Flight::ring_name(0));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        for line in 2..5000 {
            recorder.next("add", 7, site(line), None);
        }
        // Its heartbeats go on, from private memory.
        assert_eq!(recorder.last().unwrap().line, 4999);
        assert_eq!(recorder.issued(), 4999);
        assert!(Flight::read(&path).unwrap_err().to_string().contains("it has 0 bytes"));
    }
}
