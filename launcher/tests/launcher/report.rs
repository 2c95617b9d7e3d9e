//! `oflaunch --report`, with real processes.

use std::path::Path;
use std::process::Command;

use crate::common::*;

const JOB: &str = r#"use oflow::prelude::*;

fn main() -> Result<()> {
    let world = oflow::init()?;
    let mesh = Placement::all(Device::Cpu)?;
    let x = ones([64, 16], (&mesh, sbp![S(0)]))?;
    let w = ones([16, 16], (&mesh, sbp![B]))?;
    let bias = ones([16], (&mesh, sbp![B]))?.requires_grad_(true)?;
    for step in 0..5000 {
        x.matmul(&w)?.to_global(sbp![S(1)])?; // line 10
        if step % 1000 == 0 {
            x.mul(&bias)?.sum(())?.backward()?; // line 12
            assert!(oflow::report().count() > 0); // what is taken is in the report of the run all the same
        }
        if step == 10 && std::env::args().nth(1).as_deref() == Some("fail") {
            if world.rank() == 1 {
                std::process::exit(3);
            }
            x.sum(())?.item()?; // waits for rank 1
        }
    }
    if world.rank() == 0 {
        println!("done");
    }
    Ok(())
}
"#;

/// The table of communication, each row on a line of its own.
fn table(text: &str) -> String {
    let (_, table) = text.split_once("communication by line of the program").unwrap_or_else(|| panic!("{text}"));
    unwrapped(table)
}

/// Columns of a row of the table: count, bytes, predicted, measured, median, the rest.
fn row(text: &str, end: impl Fn(&str) -> bool) -> (u64, u64, f64, f64, String) {
    let line = text.lines().find(|l| end(l)).unwrap_or_else(|| panic!("{text}"));
    let mut words = line.split_whitespace();
    let mut next = || words.next().unwrap_or_else(|| panic!("{line}"));
    let (count, bytes, predicted, measured, _median) = (next(), next(), next(), next(), next());
    let number = |s: &str| s.parse::<f64>().unwrap_or_else(|_| panic!("{s}: {line}"));
    (
        count.parse().unwrap(),
        bytes.parse().unwrap(),
        number(predicted),
        number(measured),
        words.collect::<Vec<_>>().join(" "),
    )
}

#[test]
fn a_job_tells_what_it_has_communicated_when_asked() {
    let folder = Folder::lasting("report");
    let script = folder.write("talk.rs", JOB);
    let script = script.to_str().unwrap();

    // Builds it, and says so.
    assert_eq!(code(&run(&folder, &["-n", "2", script])), 0);
    // Nothing is said unless asked for.
    let output = run(&folder, &["-n", "2", script]);
    // But by cargo, whose lock another test may hold.
    let said: Vec<String> = stderr(&output).lines().filter(|l| !l.contains("Blocking")).map(String::from).collect();
    assert_eq!((code(&output), stdout(&output).as_str(), said), (0, "[rank 0] done\n", vec![]));

    let output = run(&folder, &["-n", "2", "--report", script]);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "[rank 0] done\n"));
    let text = stderr(&output);
    assert!(text.starts_with("oflaunch: 2 ranks; no step ended: no optimizer stepped"), "{text}");
    assert!(text.contains("\ncommunication by line of the program, all 2 ranks\n"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100 || l.starts_with("oflaunch: ")), "{text}");
    assert!(!text.contains("dropped") && !text.contains("no report"), "{text}");
    let text = table(&text);
    // 5,000 all-to-alls are more than a ring of comm records holds. Each rank sends half of its half: 64 * 16 * 4 / 2 B in all.
    let (count, bytes, predicted, measured, _) = row(&text, |l| l.ends_with("talk.rs:10"));
    assert_eq!((count, bytes), (5000, 5000 * 2048));
    assert!(predicted > 0.0 && measured > 0.0);
    let same = row(&text, |l| l.contains("forward to_global f32[64, 16] [S(0)] -> [S(1)]: all-to-all"));
    assert_eq!((same.0, same.1), (5000, 5000 * 2048), "one line of the program, one boxing");
    // The gradient of the bias, a sum over the rows, is reduced: each rank sends its 16 * 4 B to the other.
    let (count, bytes, .., what) = row(&text, |l| l.contains("backward gradient f32[16] [P(sum)] -> [B]"));
    assert!((count, bytes) == (5, 5 * 128) && what.ends_with("all-reduce(sum) along axis 0"), "{text}");
    assert!(row(&text, |l| l.ends_with("talk.rs:12")).0 >= 5);
    let last = row(&text, |l| l.contains("in all: "));
    let lines = text.lines().filter(|l| l.contains(".rs:") && !l.starts_with("oflaunch"));
    let sum: u64 = lines.map(|l| l.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(last.1, sum, "{text}");

    // A rank that dies without a goodbye cannot tell; the others do.
    let output = run(&folder, &["-n", "3", "--report", script, "--", "fail"]);
    assert_eq!(code(&output), 3);
    let text = stderr(&output);
    assert!(text.contains("communication by line of the program, ranks 0, 2 of 3\n"), "{text}");
    assert!(text.contains("no report came from rank 1: killed, or without a global tensor\n"), "{text}");
    assert_eq!(row(&table(&text), |l| l.ends_with("talk.rs:10")).0, 11, "{text}");
}

#[test]
fn a_program_without_oflow_has_no_report() {
    let folder = Folder::new();
    folder.sh("hello", "echo hello");
    let output = run(&folder, &["-n", "1", "--report", "./hello"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "hello\n"));
    let text = stderr(&output);
    assert!(text.starts_with("oflaunch: no report of what was communicated\nno report came from rank 0"), "{text}");
}

#[test]
fn each_boxing_of_a_gpts_steps_is_listed() {
    let folder = Folder::new();
    let gpt = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/gpt.rs").canonicalize().unwrap();
    let sizes = ["--dim", "32", "--heads", "2", "--seq", "16", "--batch", "4", "--steps", "4", "--sample", "1"];
    let report = |parallel: &'static str| {
        let output = run(
            &folder,
            &[&["-n", "2", "--report", gpt.to_str().unwrap(), "--", "--parallel", parallel][..], &sizes].concat(),
        );
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        table(&stderr(&output))
    };
    let text = report("tp");
    // Two reductions per block and direction, in each of 4 blocks and 4 steps.
    for pass in ["forward", "backward"] {
        let is_reduction = |l: &&str| {
            l.contains(&format!(" {pass} ")) && l.contains("f32[4, 16, 32]") && l.ends_with("all-reduce(sum) along tp")
        };
        let rows: Vec<&str> = text.lines().filter(is_reduction).collect();
        let (mut count, mut bytes) = (0, 0);
        for line in rows {
            let (n, sent, predicted, measured, _) = row(line, |_| true);
            assert!(predicted > 0.0 && measured > 0.0, "{text}");
            (count, bytes) = (count + n, bytes + sent);
        }
        assert!(count == 4 * 8 && bytes > 0, "{pass}: {count}\n{text}");
    }
    assert!(text.contains(".rs:") && !text.contains("dropped"), "{text}");

    let text = report("dp");
    assert!(text.contains("backward gradient f32[32, 32]") && text.contains("times the predicted"), "{text}");
}

#[test]
fn a_report_is_kept_read_again_and_compared() {
    let folder = Folder::new();
    let gpt = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/gpt.rs").canonicalize().unwrap();
    let job = |dir: &str, batch: &str| {
        let sizes = ["--dim", "32", "--heads", "2", "--seq", "16", "--batch", batch, "--steps", "6", "--sample", "0"];
        let start = ["-n", "2", "--report", "--log-dir", dir, gpt.to_str().unwrap(), "--", "--parallel", "tp"];
        let output = run(&folder, &[&start[..], &sizes].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stderr(&output)
    };
    let text = job("first", "4");
    // The building of the script may be told before.
    let begin = text.find("oflaunch: 2 ranks, ").unwrap_or_else(|| panic!("{text}")) + "oflaunch: ".len();
    let summary: Vec<&str> = text[begin..].lines().take(10).collect();
    for part in [
        "2 ranks, 6 steps of ",
        " rows/s",
        "a step: compute ",
        "compute: ",
        "communication: ",
        "late: ",
        "memory: at most cpu",
    ] {
        assert!(summary.iter().any(|l| l.contains(part)), "{part}\n{text}");
    }
    assert!(text.contains("report: first/report.json (`oflow report first` prints it again)"), "{text}");
    let ask = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_oflow")).args(args).current_dir(folder.path()).output().unwrap();
        (code(&output), stdout(&output), stderr(&output))
    };
    let (code, again, _) = ask(&["report", "first"]);
    assert!(code == 0 && again.starts_with(summary[0]), "{again}");
    let (_, json, _) = ask(&["report", "first/report.json", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let times = json["times"].as_array().unwrap();
    assert_eq!((times.len(), times[0]["steps"].as_u64(), json["world"].as_u64()), (2, Some(6), Some(2)));
    assert_eq!(json["summary"][0], again.lines().next().unwrap());
    // Twice as many rows are more of everything.
    job("second", "8");
    let (code, text, _) = ask(&["report", "second", "--compare", "first"]);
    assert!(code == 0 && text.contains("kernels by line") && text.contains("MB sent a step"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    let (_, json, _) = ask(&["report", "second", "--compare", "first", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["bytes_a_step"]["after"].as_f64() > json["bytes_a_step"]["before"].as_f64(), "{json}");
    // What is no report says so.
    folder.write("other.json", "{}");
    for (path, why) in [("nowhere", "nowhere"), ("other.json", "not a report")] {
        let (code, _, said) = ask(&["report", path]);
        assert!(code == 1 && said.contains(why), "{said}");
    }
}

#[test]
fn slow_programs_are_told_what_to_change() {
    let folder = Folder::new();
    let slow = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/slow.rs").canonicalize().unwrap();
    let advice = |way: &str| {
        let start = ["-n", "2", "--report", "--log-dir", way, slow.to_str().unwrap(), "--", way, "12"];
        let output = run(&folder, &start);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let mut ask = Command::new(env!("CARGO_BIN_EXE_oflow"));
        let json = ask.args(["report", way, "--json"]).current_dir(folder.path()).output().unwrap().stdout;
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let all = json["advice"].as_array().unwrap().clone();
        all.iter()
            .map(|a| (a["change"].as_str().unwrap().to_string(), a["gain_ns"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    let has = |all: &[(String, u64)], part: &str| all.iter().any(|(change, _)| change.contains(part));
    let found = advice("layout");
    assert!(has(&found, "matmul: b [B] -> [S(1)]"), "{found:?}");
    let found = advice("layout-mended");
    assert!(!has(&found, "matmul: "), "{found:?}");
    // 128 rows of at least 150 us each.
    let found = advice("data");
    let data = found
        .iter()
        .find(|(change, _)| change.contains("data: no prefetch -> prefetch("))
        .unwrap_or_else(|| panic!("{found:?}"));
    assert!(data.1 > 10_000_000, "{found:?}");
}
