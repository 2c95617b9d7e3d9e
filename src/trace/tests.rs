use super::collector::{Sink, step};
use super::event::Event;
use super::*;
use crate::data::Dataset;
use crate::error::CallSite;
use crate::optim::{Optimizer, Sgd, SgdOptions};
use crate::prelude::*;
use crate::{Profiler, run_ranks};
use oflow_proto::perfetto::Trace;
use oflow_proto::perfetto::track_event::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// A slice of a trace.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    track: String,
    category: String,
    name: String,
    begin: u64,
    end: u64,
    /// Number of slices around it.
    depth: usize,
    notes: BTreeMap<String, u64>,
    flows: Vec<u64>,
    line: String,
}

/// Reads a trace as Perfetto does: by time, then by order in the file. Fails where slices do not nest.
fn slices(bytes: &[u8]) -> Vec<Slice> {
    let trace: Trace = oflow_proto::read_trace(bytes).unwrap();
    let (mut tables, mut tracks) = (BTreeMap::new(), BTreeMap::new());
    let mut events = vec![];
    for packet in trace.packet {
        let sequence = packet.trusted_packet_sequence_id.unwrap();
        let flags = packet.sequence_flags.unwrap_or(0);
        if flags & 1 != 0 {
            tables.retain(|(s, _, _), _: &mut String| *s != sequence);
        }
        if let Some(new) = packet.interned_data {
            let mut put = |kind: u8, iid: Option<u64>, text: String| {
                assert!(tables.insert((sequence, kind, iid.unwrap()), text).is_none(), "a number is given once");
            };
            new.event_names.into_iter().for_each(|n| put(0, n.iid, n.name.unwrap()));
            new.event_categories.into_iter().for_each(|n| put(1, n.iid, n.name.unwrap()));
            new.debug_annotation_names.into_iter().for_each(|n| put(2, n.iid, n.name.unwrap()));
            new.source_locations.into_iter().for_each(|l| {
                put(3, l.iid, format!("{}:{} {}", l.file_name(), l.line_number(), l.function_name()));
            });
        }
        if let Some(t) = packet.track_descriptor {
            let name = t.name.clone().or_else(|| Some(t.thread.clone()?.thread_name().to_string()));
            tracks.insert(t.uuid(), name.unwrap_or_else(|| t.process.clone().unwrap().process_name().to_string()));
        }
        let Some(event) = packet.track_event else { continue };
        assert!(flags & 2 != 0 && tracks.contains_key(&event.track_uuid()));
        let text = |kind: u8, iid: u64| tables[&(sequence, kind, iid)].clone();
        let notes = event.debug_annotations.iter().map(|a| (text(2, a.name_iid()), a.uint_value()));
        let slice = Slice {
            track: tracks[&event.track_uuid()].clone(),
            category: event.category_iids.first().map_or(String::new(), |c| text(1, *c)),
            name: event.name_iid.map_or(String::new(), |n| text(0, n)),
            begin: packet.timestamp.unwrap(),
            end: 0,
            depth: 0,
            notes: notes.collect(),
            flows: event.flow_ids.clone(),
            line: event.source_location_iid.map_or(String::new(), |n| text(3, n)),
        };
        events.push((packet.timestamp.unwrap(), events.len(), event.track_uuid(), event.r#type(), slice));
    }
    events.sort_by_key(|e| (e.0, e.1));
    let (mut open, mut done): (BTreeMap<u64, Vec<Slice>>, Vec<Slice>) = (BTreeMap::new(), vec![]);
    for (at, _, track, kind, slice) in events {
        let open = open.entry(track).or_default();
        match kind {
            Type::SliceBegin => open.push(slice),
            Type::SliceEnd => {
                let begun = open.pop().expect("an end has a begin");
                done.push(Slice { end: at, depth: open.len(), ..begun });
            }
            _ => done.push(Slice { end: at, category: format!("{kind:?}"), ..slice }),
        }
    }
    assert!(open.values().all(Vec::is_empty), "all slices end: {open:?}");
    done
}

/// All ranks of a world on one mesh axis.
fn mesh(ranks: usize) -> Result<Placement> {
    Placement::new(Device::Cpu, &(0..ranks).collect::<Vec<_>>(), &[ranks])
}

/// Trains for some steps in data parallelism, inside of a profile with a timeline.
fn trained(folder: &std::path::Path, steps: usize) -> Result<(crate::Profile, Vec<crate::CommRecord>)> {
    let mesh = mesh(2)?;
    let weight = randn([16, 8], (&mesh, sbp![B]))?.requires_grad_(true)?;
    let mut sgd = Sgd::new(vec![weight.clone()], SgdOptions { lr: 0.1, ..Default::default() });
    crate::take_comm_trace();
    let profiler = Profiler::start_with_timeline(folder)?;
    for _ in 0..steps {
        let _scope = crate::name_scope("model");
        let x = randn([12, 16], (&mesh, sbp![S(0)]))?;
        let _span = crate::span("work");
        let loss = {
            let _inner = crate::name_scope("layer");
            x.matmul(&weight)?.relu()?.sum(())?
        };
        sgd.zero_grad();
        loss.backward()?;
        sgd.step()?;
    }
    let profile = profiler.stop()?;
    Ok((profile, crate::take_comm_trace()))
}

#[test]
fn a_timeline_has_what_comm_records_and_sums_have() {
    let dir = tempfile::tempdir().unwrap();
    let results = run_ranks(2, |_| trained(dir.path(), 3)).unwrap();
    let mut all = vec![];
    for (rank, (profile, records)) in results.iter().enumerate() {
        let path = profile.timeline().unwrap();
        assert_eq!(path, dir.path().join(format!("rank-{rank}.pftrace")));
        let bytes = std::fs::read(path).unwrap();
        let slices = slices(&bytes);
        let of = |category: &str| slices.iter().filter(|s| s.category == category).cloned().collect::<Vec<Slice>>();
        // Boxings, with their bytes and times, are those of the records.
        let boxings = of("boxing");
        assert_eq!(boxings.len(), records.len());
        let sum = |name: &str| boxings.iter().map(|b| b.notes[name]).sum::<u64>();
        assert_eq!(sum("bytes"), records.iter().map(|r| r.bytes_sent()).sum::<u64>());
        let measured: u64 = records.iter().map(|r| r.measured.unwrap().as_nanos() as u64).sum();
        assert_eq!(sum("moving_ns"), measured);
        let told: u64 = profile.totals().of_kind("boxing").map(|(_, _, busy)| busy.ns).sum();
        assert_eq!(told, measured);
        // Kernels are those of the sums, each inside of the call of its op or of backward.
        let kernels = of("kernel");
        let counted: u64 = profile.totals().of_kind("kernel").map(|(_, _, busy)| busy.count).sum();
        assert_eq!(kernels.len() as u64, counted);
        let time: u64 = profile.totals().of_kind("kernel").map(|(_, _, busy)| busy.ns).sum();
        assert_eq!(kernels.iter().map(|k| k.end - k.begin).sum::<u64>(), time);
        assert!(kernels.iter().all(|k| k.depth > 0), "{kernels:?}");
        let matmul = kernels.iter().find(|k| k.name == "matmul").unwrap();
        assert!(matmul.line.contains("trace/tests.rs:") && matmul.line.ends_with(" model.layer"), "{}", matmul.line);
        assert_eq!(of("backward").len(), 3);
        let steps = of("step");
        assert_eq!(steps.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["step 0", "step 1", "step 2"]);
        assert!(steps.windows(2).all(|w| w[0].end == w[1].begin) && profile.totals().steps() == 3);
        let scopes: BTreeSet<(String, usize)> = of("scope").into_iter().map(|s| (s.name, s.depth)).collect();
        assert_eq!(scopes, [("layer".into(), 1), ("model".into(), 0)].into());
        assert_eq!(of("span").iter().filter(|s| s.name == "work").count(), 3);
        let split = profile.totals().step().unwrap();
        assert!(split.compute > 0 && split.communication > 0 && split.whole >= split.compute + split.communication);
        let text = profile.to_string();
        for part in ["3 steps, median", "a step: compute", "kernels by op", "matmul", "boxings by line", "timeline: "] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 100 || line.starts_with("timeline: ")), "{text}");
        all.extend(bytes);
    }
    // The files one after the other are a trace of the job: each collective has both ranks.
    let mut members: BTreeMap<u64, usize> = BTreeMap::new();
    for slice in slices(&all).iter().filter(|s| s.category == "collective") {
        assert!(!slice.flows.is_empty(), "{slice:?}");
        slice.flows.iter().for_each(|f| *members.entry(*f).or_default() += 1);
    }
    assert!(!members.is_empty() && members.values().all(|n| *n == 2), "{members:?}");
}

#[test]
fn a_profile_has_its_own_part_alone() {
    run_ranks(1, |_| {
        let x = randn([8, 8], Device::Cpu)?;
        let kernels = |p: &crate::Profile| p.totals().of_kind("kernel").map(|(_, _, b)| b.count).sum::<u64>();
        let (_, first) = crate::profile(|| x.relu())?;
        x.exp()?;
        let ((), none) = crate::profile(|| Ok(()))?;
        let (inner, outer) = crate::profile(|| Ok(crate::profile(|| x.relu()?.exp())?.1))?;
        assert_eq!((kernels(&first), kernels(&none), kernels(&inner), kernels(&outer)), (1, 0, 2, 2));
        assert!(none.to_string().contains("no step ended in it"), "{none}");
        // An error of the closure is the profile's, and ends it.
        assert!(crate::profile(|| x.matmul(&zeros([3, 3], Device::Cpu)?)).is_err());
        Ok(())
    })
    .unwrap();
}

#[test]
fn threads_that_a_rank_starts_are_shown_as_its_own() {
    let dir = tempfile::tempdir().unwrap();
    run_ranks(2, |world| {
        let mesh = mesh(2)?;
        let rows = crate::data::in_memory((0..64i64).collect::<Vec<_>>())
            .map(|n| Ok(crate::data::Row::new().with("x", n as f32)));
        let loader = crate::data::Loader::new(&mesh, 8).split_along(0)?.dataset(rows)?.prefetch(2, 4);
        let profiler = Profiler::start_with_timeline(dir.path())?;
        for batch in loader.epoch(0) {
            batch?;
        }
        let profile = profiler.stop()?;
        let made = profile.totals().of_kind("data").filter(|(name, _, _)| *name == "make a batch");
        assert_eq!(made.map(|(_, _, b)| b.count).sum::<u64>(), 8);
        let slices = slices(&std::fs::read(profile.timeline().unwrap()).unwrap());
        let on =
            |name: &str| slices.iter().filter(|s| s.name == name).map(|s| s.track.clone()).collect::<BTreeSet<_>>();
        assert_eq!(on("make a batch"), ["oflow-data".to_string()].into(), "rank {}", world.rank());
        assert!(!on("wait for a batch").contains("oflow-data"));
        Ok(())
    })
    .unwrap();
}

/// A file whose clock is what the test says; `i64::MIN` is none.
fn file_with(path: &std::path::Path, limit: u64, offset: &Arc<AtomicI64>) -> TraceFile {
    let offset = offset.clone();
    let clock = move || {
        let ns = offset.load(Ordering::Relaxed);
        (ns != i64::MIN).then_some(Clock { offset_ns: ns, error_ns: Some(10) })
    };
    let info = TraceInfo { rank: 3, start: 1, host: "here".into(), limit, clock: Box::new(clock) };
    TraceFile::make(path, info).unwrap()
}

fn event(begin: u64, end: u64, name: &'static str) -> Event {
    Event { begin, end, site: CallSite::at("train.rs", 7), what: What::Span(name) }
}

#[test]
fn times_are_those_of_the_first_host() {
    let dir = tempfile::tempdir().unwrap();
    let (path, offset) = (dir.path().join("a.pftrace"), Arc::new(AtomicI64::new(i64::MIN)));
    let mut file = file_with(&path, 1 << 20, &offset);
    assert!(!file.is_ready(), "the clocks have not been compared");
    offset.store(1000, Ordering::Relaxed);
    assert!(file.is_ready());
    file.take((0, "main"), &[event(5000, 6000, "a")]);
    // Within the errors of both it stays as it was.
    offset.store(1015, Ordering::Relaxed);
    file.take((0, "main"), &[event(7000, 8000, "b")]);
    offset.store(-3000, Ordering::Relaxed);
    file.take((0, "main"), &[event(10_000, 11_000, "c")]);
    // The launcher is gone: the last offset counts.
    offset.store(i64::MIN, Ordering::Relaxed);
    file.take((0, "main"), &[event(12_000, 13_000, "d")]);
    assert_eq!(file.finish().unwrap(), None);
    let slices = slices(&std::fs::read(&path).unwrap());
    let at = |name: &str| slices.iter().find(|s| s.name == name).map(|s| s.begin).unwrap();
    assert_eq!((at("a"), at("b"), at("c"), at("d")), (6000, 8000, 7000, 9000));
    let clocks: Vec<&Slice> = slices.iter().filter(|s| s.name == "clock").collect();
    assert_eq!(clocks.len(), 2);
    assert!(clocks.iter().all(|c| c.notes["error_ns"] == 10), "{clocks:?}");
}

#[test]
fn slices_nest_however_they_touch() {
    let dir = tempfile::tempdir().unwrap();
    let (path, offset) = (dir.path().join("a.pftrace"), Arc::new(AtomicI64::new(0)));
    let mut file = file_with(&path, 1 << 20, &offset);
    let mut events = vec![
        event(10, 20, "inner"),
        event(10, 30, "outer"),
        event(20, 30, "second"),
        event(30, 30, "empty"),
        event(30, 40, "next"),
        event(35, 35, "point"),
    ];
    events.sort_by_key(|e| (e.begin, std::cmp::Reverse(e.end)));
    file.take((0, "main"), &events);
    file.take((1, "other"), &[event(12, 14, "beside")]);
    file.finish().unwrap();
    let depths: BTreeMap<String, usize> = slices(&std::fs::read(&path).unwrap())
        .into_iter()
        .filter(|s| s.category == "span")
        .map(|s| (s.name, s.depth))
        .collect();
    let at = |name: &str| depths[name];
    assert_eq!((at("outer"), at("inner"), at("second"), at("next"), at("point"), at("beside")), (0, 1, 1, 0, 1, 0));
    assert_eq!(depths.len(), 7);
}

#[test]
fn a_file_stays_below_its_limit_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (path, offset) = (dir.path().join("a.pftrace"), Arc::new(AtomicI64::new(0)));
    let mut file = file_with(&path, 2000, &offset);
    for n in 0..100 {
        file.take((0, "main"), &[event(n * 10, n * 10 + 5, "a")]);
    }
    assert!(file.is_full());
    let said = file.finish().unwrap().unwrap();
    assert!(said.contains("ends after 0 MiB") && said.contains("--trace-steps"), "{said}");
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() <= 2000);
    let kept = slices(&bytes).iter().filter(|s| s.name == "a").count();
    assert!((10..100).contains(&kept), "{kept}");
}

#[test]
fn a_session_has_the_steps_it_asks_for() {
    run_ranks(1, |_| {
        let totals = Arc::new(Mutex::new(Totals::default()));
        let session = Session::start(owner(), 1..3, totals.clone())?;
        let x = randn([4, 4], Device::Cpu)?;
        for n in 0..5 {
            for _ in 0..=n {
                x.relu()?;
            }
            step(7);
            // Another optimizer's steps do not count.
            step(8);
        }
        drop(session);
        let totals = totals.lock().unwrap();
        let relus: u64 = totals.of_kind("kernel").filter(|k| k.0 == "relu").map(|k| k.2.count).sum();
        assert_eq!((relus, totals.steps()), (2 + 3, 2));
        Ok(())
    })
    .unwrap();
}

#[test]
fn waiting_for_streams_is_what_other_threads_did() {
    let site = CallSite::at("x.rs", 1);
    let event = |begin, end, what| Event { begin, end, site, what };
    let mut totals = Totals::default();
    let step = |number, at: u64| event(at, at, What::Step { number, since: at - 100 });
    totals.take((0, "main"), &[step(0, 100)]);
    let late =
        Collective { kind: "all_reduce", op: "sum", ranks: 2, bytes: 8, waited_ns: 10, flows: Default::default() };
    // In a step of 100 ns the main thread computes for 20 and waits for 60: in that a stream computes for 30, and another waits for late ranks
    // for 10 of its 15.
    for n in 1..4 {
        let at = 100 * n;
        totals.take((1, "cuda compute stream"), &[event(at + 10, at + 60, What::Kernel("matmul"))]);
        totals.take(
            (2, "cuda communication stream"),
            &[event(at + 65, at + 80, What::Collective(Box::new(late.clone())))],
        );
        let main = [event(at, at + 20, What::Kernel("add")), event(at + 30, at + 90, What::Wait), step(n, at + 100)];
        totals.take((0, "main"), &main);
    }
    let split = totals.step().unwrap();
    assert_eq!((split.whole, split.compute, split.late_ranks, split.communication), (100, 50, 10, 20), "{split:?}");
    assert_eq!(split.rest(), 20);
}
