//! `oflaunch --trace`, with real processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use oflow_proto::perfetto::track_event::Type;

use crate::common::*;

/// What a trace has of one rank.
#[derive(Default, Debug)]
struct Seen {
    /// Slices by category.
    slices: BTreeMap<String, usize>,
    /// Sums of the boxings' notes.
    bytes: u64,
    steps: Vec<String>,
    begun: usize,
    ended: usize,
    errors: Vec<u64>,
}

/// Reads a trace; by name of the rank's process.
fn read(path: &Path) -> (BTreeMap<String, Seen>, BTreeMap<u64, usize>) {
    let trace = oflow_proto::read_trace(&std::fs::read(path).unwrap()).unwrap();
    let (mut names, mut texts): (BTreeMap<u32, String>, BTreeMap<_, String>) = (BTreeMap::new(), BTreeMap::new());
    let (mut seen, mut flows): (BTreeMap<String, Seen>, BTreeMap<u64, usize>) = (BTreeMap::new(), BTreeMap::new());
    for packet in trace.packet {
        let of = packet.trusted_packet_sequence_id.unwrap();
        if let Some(process) = packet.track_descriptor.and_then(|t| t.process) {
            names.insert(of, process.process_name().to_string());
        }
        if let Some(new) = packet.interned_data {
            let mut put =
                |kind, iid: Option<u64>, name: Option<String>| texts.insert((of, kind, iid.unwrap()), name.unwrap());
            new.event_names.into_iter().for_each(|n| drop(put(0, n.iid, n.name)));
            new.event_categories.into_iter().for_each(|n| drop(put(1, n.iid, n.name)));
            new.debug_annotation_names.into_iter().for_each(|n| drop(put(2, n.iid, n.name)));
        }
        let Some(event) = packet.track_event else { continue };
        let rank = seen.entry(names[&of].clone()).or_default();
        match event.r#type() {
            Type::SliceBegin => rank.begun += 1,
            Type::SliceEnd => rank.ended += 1,
            _ => {}
        }
        event.flow_ids.iter().for_each(|f| *flows.entry(*f).or_default() += 1);
        let Some(category) = event.category_iids.first().map(|c| texts[&(of, 1, *c)].clone()) else { continue };
        let notes: BTreeMap<String, u64> =
            event.debug_annotations.iter().map(|a| (texts[&(of, 2, a.name_iid())].clone(), a.uint_value())).collect();
        match category.as_str() {
            "boxing" => rank.bytes += notes["bytes"],
            "step" => rank.steps.push(texts[&(of, 0, event.name_iid())].clone()),
            "clock" => rank.errors.push(notes["error_ns"]),
            _ => {}
        }
        *rank.slices.entry(category).or_default() += 1;
    }
    (seen, flows)
}

#[test]
fn a_job_leaves_a_timeline_that_agrees_with_its_report() {
    let folder = Folder::new();
    let gpt = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/gpt.rs").canonicalize().unwrap();
    let trace = folder.path().join("deep/run");
    let sizes = ["--dim", "32", "--heads", "2", "--seq", "16", "--batch", "4", "--steps", "4", "--sample", "0"];
    let job = |more: &[&str]| {
        let start = ["-n", "2", "--report", "--trace", trace.to_str().unwrap()];
        let program = [gpt.to_str().unwrap(), "--", "--parallel", "tp"];
        let output = run(&folder, &[&start[..], more, &program, &sizes].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stderr(&output)
    };
    let text = job(&[]);
    let file = trace.join("job.pftrace");
    assert!(text.contains(&format!("timeline: {} (open it in https://ui.perfetto.dev", file.display())), "{text}");
    let names = |folder: &Path| {
        let mut all: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    };
    assert_eq!(names(&trace), ["job.pftrace"]);
    let (seen, flows) = read(&file);
    assert_eq!(seen.len(), 2);
    let total = text.lines().find(|l| l.contains("in all: ")).unwrap();
    let mut words = total.split_whitespace().map(|w| w.parse::<u64>());
    let (count, bytes) = (words.next().unwrap().unwrap(), words.next().unwrap().unwrap());
    for (name, rank) in &seen {
        assert!(name.starts_with("rank 0 on ") || name.starts_with("rank 1 on "), "{name}");
        assert_eq!((rank.slices["boxing"] as u64, rank.bytes), (count, bytes), "{name}: the report has\n{total}");
        assert_eq!(rank.steps, ["step 0", "step 1", "step 2", "step 3"]);
        assert_eq!(rank.begun, rank.ended);
        assert_eq!((rank.slices["backward"], &rank.errors[..]), (4, &[0][..]), "ranks of one host have one clock");
        assert!(rank.slices["kernel"] > 400 && rank.slices["op"] > 400 && rank.slices["scope"] > 50, "{rank:?}");
        assert!(rank.slices["data"] >= 4, "{rank:?}");
    }
    assert!(flows.len() > 50 && flows.values().all(|n| *n == 2), "each collective has two members");

    let draw = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oflow"));
        let output = command.arg("timeline").arg(&trace).args(args).current_dir(folder.path()).output().unwrap();
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
        stdout(&output)
    };
    let lines = draw(&["--step", "2"]);
    assert!(lines.starts_with("4 steps, ") && lines.contains("\nstep 2, ") && lines.contains("# compute "), "{lines}");
    assert!(lines.contains("\nrank 0 on ") && lines.contains("\nrank 1 on "), "{lines}");
    assert!(lines.lines().filter(|l| !l.starts_with("step ")).all(|l| l.chars().count() <= 80), "{lines}");
    draw(&["--step", "2..4", "-o", "steps.svg"]);
    let svg = std::fs::read_to_string(folder.path().join("steps.svg")).unwrap();
    for part in ["steps 2 to 3, ", ">step 3<", "<title>backward, ", "gpt.rs:", ">boxings<"] {
        assert!(svg.contains(part), "{part} is not in {svg}");
    }

    // Some steps only, into the same folder.
    job(&["--trace-steps", "1..3", "--trace-mib", "9"]);
    let (seen, _) = read(&file);
    assert!(seen.values().all(|rank| rank.steps == ["step 1", "step 2"] && rank.slices["backward"] == 2), "{seen:?}");
}

#[test]
fn what_cannot_be_recorded_is_refused_before_the_job() {
    let folder = Folder::new();
    folder.sh("hello", "echo hello");
    let output = run(&folder, &["-n", "1", "--trace", "t", "--trace-steps", "5..5", "./hello"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("the steps are \"5..5\", not a range"), "{}", stderr(&output));
    let output = run(&folder, &["-n", "1", "--trace-steps", "5..6", "./hello"]);
    assert!(code(&output) == 2 && stderr(&output).contains("--trace <DIR>"), "{}", stderr(&output));
    folder.write("file", "");
    let output = run(&folder, &["-n", "1", "--trace", "file/t", "./hello"]);
    assert!(
        code(&output) != 0 && stdout(&output).is_empty() && stderr(&output).contains("file/t"),
        "{}",
        stderr(&output)
    );
    // A program without oflow leaves none, and a dry run no folder.
    let output = run(&folder, &["-n", "1", "--trace", "t", "./hello"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "hello\n"));
    assert!(stderr(&output).contains("no rank has written a timeline to"), "{}", stderr(&output));
    run(&folder, &["-n", "1", "--trace", "u", "--dry-run", "./hello"]);
    assert!(!folder.path().join("u").exists());
}
