//! The analysis of a job's records, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use oflow::control::flight::{CallRecord, Flight, OpRecord};
use serde_json::Value;

use crate::Failed;
use crate::job::flights::RINGS;

/// Longest log of events that is read, in bytes.
const MOST_OF_EVENTS: u64 = 1 << 30;

/// The end of a rank.
pub struct Rank {
    /// The rank's record.
    pub flight: Flight,
    /// A sentence about its end.
    pub state: String,
    /// The ranks that it waited for.
    pub missing: Vec<usize>,
}

/// One line of the timeline.
pub struct Moment {
    /// Seconds since 1970.
    pub time: f64,
    /// The rank; `None`: the launcher.
    pub rank: Option<usize>,
    /// Text of the line.
    pub text: String,
}

/// A page's contents.
pub struct Story {
    /// Number of ranks in the job.
    pub world: usize,
    /// The first failure, if the event log has it.
    pub first: Option<String>,
    /// The first divergence of the streams.
    pub divergence: Vec<String>,
    /// Sentences on which ranks wait for which.
    pub waits: Vec<String>,
    /// Ranks that others waited for and that never joined the call.
    pub absent: Vec<usize>,
    /// The ranks with a record.
    pub ranks: BTreeMap<usize, Rank>,
    /// The ranks without a record.
    pub unknown: Vec<usize>,
    /// Why records could not be read.
    pub unread: Vec<String>,
    /// The last ops and collectives, and the events, in order of time.
    pub timeline: Vec<Moment>,
}

impl Story {
    /// Reads folders; `last` ops of each rank go into the timeline.
    pub fn read(folders: &[&PathBuf], last: usize) -> Result<Story, Failed> {
        let (mut flights, mut events, mut unread) = (BTreeMap::new(), Vec::<Value>::new(), Vec::new());
        for folder in folders {
            let cannot = |e: std::io::Error| Failed::new(format!("cannot read {}: {e}", folder.display()));
            let list = |folder: &Path| -> std::io::Result<Vec<PathBuf>> {
                fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect()
            };
            let mut paths = list(folder).map_err(cannot)?;
            // Of a job that runs, or whose records could not be copied.
            let rings = folder.join(RINGS);
            match list(&rings) {
                Ok(more) => paths.extend(more),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => unread.push(format!("cannot read {}: {e}", rings.display())),
            }
            paths.sort();
            for path in paths {
                let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                if name.starts_with("flight-") && (name.ends_with(".json") || name.ends_with(".ring")) {
                    match Flight::read(&path) {
                        // Of a rank with both, the copy is whole.
                        Ok(flight) => drop(flights.entry(flight.rank).or_insert(flight)),
                        // A rank that had not begun when it died.
                        Err(_)
                            if name.ends_with(".ring")
                                && fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() == 0) => {}
                        Err(e) => unread.push(e.to_string()),
                    }
                } else if name == "events.jsonl" {
                    match oflow_files::text(&path, MOST_OF_EVENTS) {
                        // The last line of a launcher that was killed may be cut.
                        Ok(text) => events.extend(text.lines().filter_map(|line| serde_json::from_str(line).ok())),
                        Err(e) => unread.push(e.to_string()),
                    }
                }
            }
        }
        if flights.is_empty() && !unread.is_empty() {
            return Err(Failed::new(unread.join("\n")));
        }
        if flights.is_empty() {
            let names: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
            return Err(Failed::new(format!(
                "{} has no flight record (flight-N.json); give the job's --log-dir, or the folder that oflaunch named \
                 when the job failed",
                names.join(", ")
            )));
        }
        Ok(Story { unread, ..Story::of(flights, &events, last) })
    }

    /// Analyses the records.
    pub fn of(flights: BTreeMap<usize, Flight>, events: &[Value], last: usize) -> Story {
        let world = flights.values().map(|f| f.world).max().unwrap_or(0);
        let unknown = (0..world).filter(|r| !flights.contains_key(r)).collect();
        let timeline = timeline(&flights, events, last);
        let divergence = divergence(&flights);
        let ranks: BTreeMap<usize, Rank> = flights
            .iter()
            .map(|(r, f)| (*r, Rank { flight: f.clone(), state: state(f), missing: missing(f, &flights) }))
            .collect();
        let absent: BTreeSet<usize> = ranks.values().flat_map(|r| r.missing.iter().copied()).collect();
        let waits = ranks.values().filter_map(waits).collect();
        // Each start of a job has one; the records are those of the last start that failed.
        let failure = events.iter().rev().find(|e| e["event"] == "failure");
        let first = failure.and_then(|e| e["message"].as_str()).map(String::from);
        let (absent, unread) = (absent.into_iter().collect(), Vec::new());
        Story { world, first, divergence, waits, absent, ranks, unknown, unread, timeline }
    }

    /// The non-empty sections before the timeline: title and lines.
    pub fn sections(&self) -> Vec<(String, Vec<String>)> {
        let mut states: Vec<String> =
            self.ranks.iter().map(|(rank, r)| format!("rank {rank} (pid {}) {}", r.flight.pid, r.state)).collect();
        if !self.unknown.is_empty() {
            states.push(format!("{} left no record", list(&self.unknown)));
        }
        let absent = if self.absent.is_empty() { vec![] } else { vec![list(&self.absent)] };
        let all: [(String, Vec<String>); 6] = [
            ("Records that cannot be read".into(), self.unread.clone()),
            ("What happened first".into(), self.first.iter().cloned().collect()),
            ("First divergence".into(), self.divergence.clone()),
            ("Who waits for whom".into(), self.waits.clone()),
            ("Who never arrived".into(), absent),
            (format!("The {} ranks", self.world), states),
        ];
        all.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
    }
}

/// The collective that a rank did not come out of: under way, or failed. Those after it on the stream of a GPU are there too, and
/// what was tried after a failure has failed as well.
fn last_stop(f: &Flight) -> Option<&CallRecord> {
    let failed = || f.calls.iter().rev().filter(|c| !c.queued).take_while(|c| c.failed).last();
    f.calls.iter().find(|c| c.is_open()).or_else(failed)
}

/// Members of the rank's last collective that never came to it.
fn missing(f: &Flight, all: &BTreeMap<usize, Flight>) -> Vec<usize> {
    let Some(call) = last_stop(f) else { return Vec::new() };
    let came = |rank: usize| {
        let same = |c: &CallRecord| c.ordinal == call.ordinal && c.kind == call.kind && c.op == call.op;
        all.get(&rank).is_some_and(|f| f.calls.iter().any(|c| same(c) && !c.queued))
    };
    call.ranks.iter().copied().filter(|r| *r != f.rank && !came(*r)).collect()
}

fn waits(rank: &Rank) -> Option<String> {
    let call = last_stop(&rank.flight)?;
    let me = rank.flight.rank;
    if rank.missing.is_empty() {
        return None;
    }
    let how = if call.failed { "waited" } else { "waits" };
    Some(format!("rank {me} {how} for {} in {}", list(&rank.missing), describe(call)))
}

fn state(f: &Flight) -> String {
    let node = f.node.as_ref().map_or(String::new(), |n| format!("; in {}", n.describe(&n.call)));
    let Some(op) = f.ops.last() else { return format!("issued no op{node}") };
    let issued = format!("issued {} ops, the last one {}{node}", f.issued, describe_op(op));
    let mut queued = f.calls.iter().filter(|c| c.queued);
    let later = match (queued.next(), queued.count()) {
        (None, _) => String::new(),
        (Some(c), 0) => format!("; its GPU has not come to {}", describe(c)),
        (Some(c), n) => format!("; its GPU has not come to {} and {n} more", describe(c)),
    };
    let stop = match (last_stop(f), f.calls.iter().rev().find(|c| !c.queued)) {
        (Some(c), _) if c.failed => format!("{}, {}, failed", describe(c), size(c)),
        (Some(c), _) => format!("in {}, {}, and not out of it", describe(c), size(c)),
        (None, Some(c)) => format!("out of its last collective, {}", describe(c)),
        (None, None) => "no collective".into(),
    };
    format!("{issued}; {stop}{later}")
}

/// Bytes that it is about.
fn size(c: &CallRecord) -> String {
    crate::inspect::bytes(c.bytes)
}

/// `all_reduce of 'sum' #5 (train.rs:10)`.
pub fn describe(c: &CallRecord) -> String {
    format!("{} of '{}' #{} ({}:{})", c.kind, c.op, c.ordinal, c.file, c.line)
}

/// `add(f32[4] [S(0)]) #5 (train.rs:10)`.
pub fn describe_op(o: &OpRecord) -> String {
    let name = if o.call.is_empty() { format!("'{}'", o.op) } else { o.call.clone() };
    format!("{name} #{} ({}:{})", o.ordinal, o.file, o.line)
}

/// `rank 1`, `ranks 1, 2 and 5`; of many the first.
pub fn list(ranks: &[usize]) -> String {
    const SHOWN: usize = 64;
    let mut names: Vec<String> = ranks.iter().take(SHOWN).map(|r| r.to_string()).collect();
    if ranks.len() > SHOWN {
        names.push(format!("{} more", ranks.len() - SHOWN));
    }
    match names.as_slice() {
        [one] => format!("rank {one}"),
        [init @ .., last] => format!("ranks {} and {last}", init.join(", ")),
        [] => "nobody".into(),
    }
}

/// The first op that differs among the records, with one line for each version of it.
fn divergence(flights: &BTreeMap<usize, Flight>) -> Vec<String> {
    let mut by_ordinal: BTreeMap<u64, BTreeMap<u64, (Vec<usize>, &OpRecord)>> = BTreeMap::new();
    for (rank, flight) in flights {
        for op in &flight.ops {
            by_ordinal.entry(op.ordinal).or_default().entry(op.hash).or_insert((Vec::new(), op)).0.push(*rank);
        }
    }
    let Some((ordinal, versions)) = by_ordinal.iter().find(|(_, versions)| versions.len() > 1) else {
        return Vec::new();
    };
    // Hashes cover all that came before: if nothing before is known to be equal it may have been earlier.
    let known = *ordinal == 1 || by_ordinal.get(&(ordinal - 1)).is_some_and(|v| v.len() == 1);
    let head = if known {
        format!("the ranks agree up to op #{}; then", ordinal - 1)
    } else {
        format!("the ranks differ at op #{ordinal} or before; the records begin there")
    };
    let mut lines = vec![head];
    let mut versions: Vec<_> = versions.values().collect();
    versions.sort_by_key(|(ranks, _)| ranks[0]);
    lines.extend(versions.into_iter().map(|(ranks, op)| format!("  {} issued {}", list(ranks), describe_op(op))));
    lines
}

fn timeline(flights: &BTreeMap<usize, Flight>, events: &[Value], last: usize) -> Vec<Moment> {
    let mut all = Vec::new();
    for (rank, flight) in flights {
        let rank = Some(*rank);
        let ops = &flight.ops[flight.ops.len().saturating_sub(last)..];
        all.extend(ops.iter().map(|o| Moment { time: o.time, rank, text: format!("issues {}", describe_op(o)) }));
        let from = ops.first().map_or(0, |o| o.ordinal);
        for call in flight.calls.iter().filter(|c| c.ordinal >= from) {
            let end = match call.end {
                None if call.queued => {
                    let text = format!("queues {}, {}: its GPU never came to it", describe(call), size(call));
                    all.push(Moment { time: call.start, rank, text });
                    continue;
                }
                None => ": never out of it".to_string(),
                Some(end) if call.failed => format!(": fails after {:.3} s", end - call.start),
                Some(end) => format!(": {:.3} ms", (end - call.start) * 1e3),
            };
            all.push(Moment {
                time: call.start,
                rank,
                text: format!("comes to {}, {}{end}", describe(call), size(call)),
            });
        }
    }
    for event in events {
        let (Some(time), Some(name)) = (event["time"].as_f64(), event["event"].as_str()) else { continue };
        if name == "start" || name == "rank-started" {
            continue;
        }
        let rank = event["rank"].as_u64().map(|r| format!(" of rank {r}")).unwrap_or_default();
        let text = event["message"].as_str().or(event["text"].as_str()).unwrap_or_default();
        let text = text.lines().next().unwrap_or_default();
        all.push(Moment { time, rank: None, text: format!("{name}{rank}: {text}") });
    }
    all.sort_by(|a, b| a.time.total_cmp(&b.time));
    all
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn op(ordinal: u64, hash: u64, line: u32, time: f64) -> OpRecord {
        let call = format!("relu(f32[{line}] [B])");
        OpRecord { ordinal, hash, op: "relu".into(), call, file: "train.rs".into(), line, time }
    }

    pub fn call(ordinal: u64, start: f64, end: Option<f64>) -> CallRecord {
        CallRecord {
            number: ordinal,
            ordinal,
            kind: "all_reduce".into(),
            op: "sum".into(),
            file: "train.rs".into(),
            line: 9,
            members: 3,
            ranks: vec![0, 1, 2],
            bytes: 20_480,
            start,
            queued: false,
            end,
            failed: false,
        }
    }

    pub fn flights() -> BTreeMap<usize, Flight> {
        let flight = |rank: usize, ops: Vec<OpRecord>, calls| {
            let issued = ops.len() as u64;
            (rank, Flight { rank, world: 4, pid: 7, issued, ops, calls, node: None })
        };
        BTreeMap::from([
            flight(0, vec![op(1, 5, 3, 1.0), op(2, 6, 4, 2.0)], vec![call(2, 2.0, None)]),
            flight(1, vec![op(1, 5, 3, 1.0), op(2, 7, 8, 2.1)], vec![]),
            flight(2, vec![op(1, 5, 3, 1.0), op(2, 6, 4, 2.0)], vec![call(2, 2.5, None)]),
        ])
    }

    #[test]
    fn concludes() {
        let failure =
            serde_json::json!({"time": 3.0, "event": "failure", "rank": 1, "message": "rank 1 stalls\n  more"});
        let story = Story::of(flights(), &[failure], 1);
        assert_eq!(story.first.as_deref(), Some("rank 1 stalls\n  more"));
        assert_eq!(
            story.divergence,
            [
                "the ranks agree up to op #1; then",
                "  ranks 0 and 2 issued relu(f32[4] [B]) #2 (train.rs:4)",
                "  rank 1 issued relu(f32[8] [B]) #2 (train.rs:8)"
            ]
        );
        assert_eq!(story.absent, [1]);
        assert_eq!(story.unknown, [3]);
        assert_eq!(story.waits[0], "rank 0 waits for rank 1 in all_reduce of 'sum' #2 (train.rs:9)");
        assert_eq!(story.waits.len(), 2);
        let lines: Vec<&str> = story.timeline.iter().map(|m| m.text.as_str()).collect();
        assert_eq!(lines.last(), Some(&"failure of rank 1: rank 1 stalls"));
        assert_eq!(lines.len(), 6, "{lines:?}");
    }

    #[test]
    fn who_waits_on_gpus() {
        let queued = |ordinal, start| CallRecord { queued: true, ..call(ordinal, start, None) };
        let failed = |ordinal, start| CallRecord { failed: true, ..call(ordinal, start, Some(start + 1.0)) };
        let mut all = flights();
        let calls = [
            // In the first, with more behind it, and the host has been somewhere else meanwhile.
            vec![call(2, 2.0, None), queued(3, 2.1), queued(4, 2.2), call(5, 2.3, Some(2.4))],
            // Its GPU is busy with something else.
            vec![call(1, 1.0, Some(1.5)), queued(2, 2.0)],
            // It gave up, and then failed in what it tried on the host.
            vec![call(1, 1.0, Some(1.5)), failed(2, 2.0), queued(3, 2.1), failed(5, 3.5)],
        ];
        calls.into_iter().enumerate().for_each(|(r, calls)| all.get_mut(&r).unwrap().calls = calls);
        let story = Story::of(all, &[], 9);
        let waits = ["waits", "waited"].map(|w| format!("{w} for rank 1 in all_reduce of 'sum' #2 (train.rs:9)"));
        assert_eq!(story.waits, [format!("rank 0 {}", waits[0]), format!("rank 2 {}", waits[1])]);
        assert_eq!(story.absent, [1]);
        let states: Vec<&str> = story.ranks.values().map(|r| r.state.split_once("; ").unwrap().1).collect();
        let at = |n: u64| format!("all_reduce of 'sum' #{n} (train.rs:9)");
        let want = [
            format!("in {}, 20.0 KiB, and not out of it; its GPU has not come to {} and 1 more", at(2), at(3)),
            format!("out of its last collective, {}; its GPU has not come to {}", at(1), at(2)),
            format!("{}, 20.0 KiB, failed; its GPU has not come to {}", at(2), at(3)),
        ];
        assert_eq!(states, want);
        let never = format!("queues {}, 20.0 KiB: its GPU never came to it", at(4));
        assert!(story.timeline.iter().any(|m| m.rank == Some(0) && m.text == never));
    }

    #[test]
    fn of_many_ranks_the_first_are_listed() {
        assert_eq!(list(&[3]), "rank 3");
        assert_eq!(list(&[1, 2, 5]), "ranks 1, 2 and 5");
        let many: Vec<usize> = (0..1000).collect();
        assert!(list(&many).ends_with(", 62, 63 and 936 more"), "{}", list(&many));
    }

    #[test]
    fn a_folder_without_records_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_path_buf();
        let error = Story::read(&[&path], 3).err().unwrap().to_string();
        assert!(
            error.contains(" has no flight record (flight-N.json); give") && error.contains("--log-dir"),
            "{error}"
        );
    }
}
