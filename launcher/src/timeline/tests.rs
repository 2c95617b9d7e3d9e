use std::fs;
use std::path::Path;

use clap::Command;
use oflow_proto::append_packet;
use oflow_proto::perfetto::track_event::Type;
use oflow_proto::perfetto::{
    InternedData, InternedName, ProcessDescriptor, SourceLocation, ThreadDescriptor, TracePacket, TrackDescriptor,
    TrackEvent,
};

use super::{Steps, arguments, files_of, median_step, ranks, read, spans, steps, time, window};

/// Writes traces as ranks do, with a number for each name.
struct Trace {
    bytes: Vec<u8>,
    names: Vec<String>,
}

impl Trace {
    fn new() -> Trace {
        Trace { bytes: vec![], names: vec![] }
    }

    fn packet(&mut self, rank: usize, packet: TracePacket) {
        let packet = TracePacket { trusted_packet_sequence_id: Some(rank as u32 + 1), ..packet };
        append_packet(&packet, &mut self.bytes);
    }

    fn track(&mut self, rank: usize, track: TrackDescriptor) {
        self.packet(rank, TracePacket { track_descriptor: Some(track), ..Default::default() });
    }

    /// Describes a rank: its thread is track 10, its steps are track 11, its name scopes track 12 of a hundred for each rank.
    fn rank(&mut self, rank: usize, name: &str) {
        let process = ProcessDescriptor { pid: Some(1), process_name: Some(name.into()) };
        self.track(rank, TrackDescriptor { uuid: Some(of(rank, 1)), process: Some(process), ..Default::default() });
        let thread = ThreadDescriptor { thread_name: Some("main".into()), ..Default::default() };
        self.track(rank, TrackDescriptor { uuid: Some(of(rank, 10)), thread: Some(thread), ..Default::default() });
        for (track, name) in [(11, "steps"), (12, "name scopes")] {
            let uuid = Some(of(rank, track));
            self.track(rank, TrackDescriptor { uuid, name: Some(name.into()), ..Default::default() });
        }
    }

    fn begin(&mut self, rank: usize, track: u64, at: u64, category: &str, name: &str, flows: &[u64]) {
        self.names.push(name.into());
        let iid = self.names.len() as u64;
        let text = |text: &str| vec![InternedName { iid: Some(iid), name: Some(text.into()) }];
        let line = SourceLocation {
            iid: Some(iid),
            file_name: Some("train.rs".into()),
            function_name: Some("model".into()),
            line_number: Some(7),
        };
        let new = InternedData {
            event_categories: text(category),
            event_names: text(name),
            source_locations: vec![line],
            ..Default::default()
        };
        let event = TrackEvent {
            r#type: Some(Type::SliceBegin.into()),
            track_uuid: Some(of(rank, track)),
            name_iid: Some(iid),
            category_iids: vec![iid],
            source_location_iid: Some(iid),
            flow_ids: flows.to_vec(),
            ..Default::default()
        };
        let packet = TracePacket {
            timestamp: Some(at),
            track_event: Some(event),
            interned_data: Some(new),
            ..Default::default()
        };
        self.packet(rank, packet);
    }

    fn end(&mut self, rank: usize, track: u64, at: u64) {
        let event =
            TrackEvent { r#type: Some(Type::SliceEnd.into()), track_uuid: Some(of(rank, track)), ..Default::default() };
        self.packet(rank, TracePacket { timestamp: Some(at), track_event: Some(event), ..Default::default() });
    }

    fn slice(&mut self, rank: usize, track: u64, (from, to): (u64, u64), category: &str, name: &str) {
        self.begin(rank, track, from, category, name, &[]);
        self.end(rank, track, to);
    }
}

fn of(rank: usize, track: u64) -> u64 {
    100 * rank as u64 + track
}

/// Ten steps of two ranks, each of a millisecond; step 4 has two. Half of each is a product, the rest a collective in which rank 0 waits.
fn two_ranks() -> Trace {
    let mut trace = Trace::new();
    for rank in 0..2 {
        trace.rank(rank, &format!("rank {rank} on <b>"));
        let mut at = 1_000_000;
        for step in 0..10 {
            let length = if step == 4 { 2_000_000 } else { 1_000_000 };
            let half = at + length / 2;
            // Inner slices of equal times are written as ranks write them.
            trace.begin(rank, 12, at, "scope", "h", &[]);
            trace.begin(rank, 12, at, "scope", "0", &[]);
            trace.end(rank, 12, half);
            trace.end(rank, 12, half);
            trace.slice(rank, 10, (at, half), "kernel", "matmul & more");
            trace.begin(rank, 10, half, "collective", "all_reduce", &[step]);
            if rank == 0 {
                trace.slice(rank, 10, (half, half + 100_000), "wait", "wait for late ranks");
            }
            trace.end(rank, 10, at + length);
            trace.slice(rank, 11, (at, at + length), "step", &format!("step {step}"));
            at += length;
        }
    }
    trace
}

/// Runs `oflow timeline` on files of a folder; the picture, or the error.
fn timeline(folder: &Path, args: &str, out: &str) -> Result<String, String> {
    let path = |a: &str| folder.join(a).display().to_string();
    let words = args.split_whitespace().map(|a| if folder.join(a).exists() { path(a) } else { a.into() });
    let all = ["timeline".to_string()].into_iter().chain(words).chain(["-o".into(), path(out)]);
    let matches = arguments(Command::new("timeline")).try_get_matches_from(all).map_err(|e| e.to_string())?;
    super::run(&matches).map_err(|e| e.message)?;
    let bytes = fs::read(folder.join(out)).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn a_picture_has_the_slices_of_the_step_with_their_lines() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("job.pftrace"), two_ranks().bytes).unwrap();
    let svg = timeline(tmp.path(), "job.pftrace", "out.svg").unwrap();
    assert!(svg.contains("rank 1 on &lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    assert_eq!(count(&svg, "<title>matmul &amp; more, 500.0 us\ntrain.rs:7\nin model</title>"), 2);
    assert_eq!((count(&svg, ">all_reduce<"), count(&svg, "<title>wait for late ranks, 100.0 us\n")), (2, 1));
    assert_eq!(count(&svg, "class=\"link\""), 1, "one collective has two members");
    assert!(
        svg.contains("prefers-color-scheme: dark") && svg.contains(">0.4<") && svg.contains(">name scopes<"),
        "{svg}"
    );
    // What contains the other is above it.
    let row = |name: &str| {
        let at = svg.find(&format!(">{name}</text>")).unwrap();
        svg[..at].rsplit("y=\"").next().unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(row("h") < row("0"), "{svg}");
    // Two steps, one rank; a folder.
    let svg = timeline(tmp.path(), ". --step 3..5 --ranks 1 --width 400", "out.svg").unwrap();
    assert_eq!((count(&svg, ">step 3<"), count(&svg, ">step 4<"), count(&svg, "rank 0 on")), (1, 1, 0));
    assert!(svg.contains("steps 3 to 4, 3.00 ms; 1 more ranks") && svg.contains("viewBox=\"0 0 400 "), "{svg}");
    assert!(timeline(tmp.path(), "job.pftrace", "out.png").unwrap().contains("PNG"));
}

#[test]
fn a_folder_stands_for_the_files_of_its_last_job() {
    let tmp = tempfile::tempdir().unwrap();
    let write = |name: &str, minute: u64| {
        let path = tmp.path().join(name);
        fs::write(&path, two_ranks().bytes).unwrap();
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(60 * minute);
        fs::File::options().append(true).open(&path).unwrap().set_modified(at).unwrap();
    };
    let names = || {
        let files = files_of(tmp.path()).unwrap();
        files.iter().map(|f| f.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    };
    write("rank-3.pftrace", 5);
    write("rank-4.pftrace", 5);
    assert_eq!(names(), "rank-3.pftrace rank-4.pftrace", "a job runs, or was killed");
    write("job.pftrace", 6);
    write("node-1.pftrace", 6);
    assert_eq!(names(), "job.pftrace node-1.pftrace", "another one has ended");
    write("rank-0.pftrace", 7);
    assert_eq!(names(), "rank-0.pftrace rank-3.pftrace rank-4.pftrace", "the next one runs");
    // A file counts once.
    let svg = timeline(tmp.path(), "job.pftrace job.pftrace --step 5", "out.svg").unwrap();
    assert_eq!(count(&svg, ">step 5<"), 2, "a step of each of two ranks: {svg}");
}

#[test]
fn what_is_not_there_is_said() {
    let tmp = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(tmp.path().join(name), bytes).unwrap();
    write("job.pftrace", &two_ranks().bytes);
    for (args, expected) in [
        ("job.pftrace --step 12", "step 12 is not in this timeline\n  help: it has 0 to 9"),
        ("job.pftrace --step 5..5", "a range of at most 100 such as 10..12"),
        ("job.pftrace --step 0..1000", "a range of at most 100"),
        ("job.pftrace --ranks 0,2,5", "no rank 2: it has 0 to 1"),
        ("nothing.pftrace", "nothing.pftrace"),
    ] {
        let error = timeline(tmp.path(), args, "out.svg").unwrap_err();
        assert!(error.contains(expected), "{args}: {error}");
    }
    assert!(timeline(tmp.path(), "job.pftrace", "out.gif").unwrap_err().contains(".svg or .png"));
    fs::create_dir(tmp.path().join("empty")).unwrap();
    assert!(timeline(tmp.path(), "empty", "out.svg").unwrap_err().contains("empty has no timeline\n  help: `oflaunch"));
    write("text.pftrace", b"no trace at all");
    assert!(timeline(tmp.path(), "text.pftrace", "out.svg").unwrap_err().contains("no rank of oflow is in it"));
    let mut other = Trace::new();
    other.rank(0, "a process of another program");
    other.slice(0, 10, (5, 9), "kernel", "matmul");
    write("other.pftrace", &other.bytes);
    assert!(timeline(tmp.path(), "other.pftrace", "out.svg").unwrap_err().contains("no rank of oflow is in it"));
    write("empty.pftrace", b"");
    assert!(timeline(tmp.path(), "empty.pftrace", "out.svg").unwrap_err().contains("no rank of oflow is in it"));

    // Without steps all of it is shown, also if it is a single instant.
    let mut short = Trace::new();
    short.rank(3, "rank 3 on a");
    short.slice(3, 10, (7, 7), "kernel", "add");
    write("short.pftrace", &short.bytes);
    assert!(timeline(tmp.path(), "short.pftrace", "out.svg").unwrap().contains("1 ns in all, without steps"));
    let error = timeline(tmp.path(), "short.pftrace --step 1", "out.svg").unwrap_err();
    assert!(error.contains("no step ended in this timeline\n  help: leave --step out"), "{error}");
}

#[test]
fn any_bytes_are_drawn_or_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let whole = two_ranks().bytes;
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    let (mut drawn, mut refused) = (0, 0);
    for round in 0..300 {
        let mut bytes = whole.clone();
        if round % 2 == 0 {
            bytes.truncate(random() % whole.len());
        }
        for _ in 0..random() % 8 {
            let at = random() % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random() as u8;
            }
        }
        fs::write(tmp.path().join("x.pftrace"), bytes).unwrap();
        match timeline(tmp.path(), "x.pftrace", "out.svg") {
            Ok(svg) => {
                assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
                drawn += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(drawn > 50 && refused > 10, "{drawn} drawn, {refused} refused");
}

#[test]
fn times_and_numbers_at_their_limits_are_drawn() {
    let tmp = tempfile::tempdir().unwrap();
    let last = u64::MAX;
    let mut trace = Trace::new();
    trace.rank(0, "rank 0 on a");
    for _ in 0..3 {
        trace.slice(0, 10, (0, last), "kernel", "matmul");
        trace.slice(0, 10, (last, last), "kernel", "add");
    }
    fs::write(tmp.path().join("whole.pftrace"), &trace.bytes).unwrap();
    for number in [last - 1, last] {
        trace.slice(0, 11, (0, last), "step", &format!("step {number}"));
    }
    trace.slice(0, 11, (last, last), "step", "step 5");
    fs::write(tmp.path().join("steps.pftrace"), &trace.bytes).unwrap();
    for args in
        ["whole.pftrace", "steps.pftrace", "steps.pftrace --step 5", "steps.pftrace --step 18446744073709551614"]
    {
        for out in ["out.svg", "out.png"] {
            timeline(tmp.path(), args, out).unwrap();
        }
        let words = args
            .split_whitespace()
            .map(|a| if a.ends_with("e") { tmp.path().join(a).display().to_string() } else { a.into() });
        let matches =
            arguments(Command::new("timeline")).try_get_matches_from(["timeline".to_string()].into_iter().chain(words));
        super::run(&matches.unwrap()).map_err(|e| e.message).unwrap();
    }
}

#[test]
fn a_step_that_two_starts_have_is_that_of_the_last() {
    let tmp = tempfile::tempdir().unwrap();
    let mut trace = Trace::new();
    trace.rank(0, "rank 0 on a");
    for (number, from, to) in [(0, 10, 50), (1, 50, 60), (0, 100, 130), (1, 130, 190), (2, 190, 210)] {
        trace.slice(0, 11, (from, to), "step", &format!("step {number}"));
    }
    fs::write(tmp.path().join("job.pftrace"), trace.bytes).unwrap();
    let mut all = super::Overview::default();
    let mut found: Steps = vec![];
    for file in files_of(tmp.path()).unwrap() {
        read::scan(&file, &mut all.tracks, |s| {
            found.push((s.name[5..].parse().unwrap(), s.begin, s.end));
            Ok(())
        })
        .unwrap();
    }
    assert_eq!(median_step(&found), 0, "of 10, 20, 30 and 60 ns, without the first step");
    all.steps.insert(0, found);
    let ranks = ranks(&all.tracks, None::<std::slice::Iter<usize>>).unwrap();
    assert_eq!(window(&all, &ranks, Some((1, 2))).unwrap(), ("step 1, 60 ns".into(), (130, 190)));
    assert_eq!(window(&all, &ranks, Some((0, 9))).unwrap().1, (100, 210));
}

#[test]
fn numbers_as_texts() {
    assert_eq!((spans([0, 1, 2, 5, 7, 8].into_iter()), spans([].into_iter())), ("0 to 2, 5, 7 to 8".into(), "".into()));
    assert_eq!(
        [999, 1_500, 99_900, 14_600_000, 3_000_000_000].map(time),
        ["999 ns", "1.50 us", "99.9 us", "14.6 ms", "3.00 s"]
    );
    assert_eq!((steps("12"), steps("10..12")), (Ok((12, 13)), Ok((10, 12))));
    for wrong in ["", "a", "1..", "..1", "3..2", "-1", "1..9999", "18446744073709551615"] {
        assert!(steps(wrong).is_err(), "{wrong}");
    }
}
