//! Ranks that diverge, stall or are stopped, in real jobs of real processes: the report names who, which ops and which lines,
//! soon enough, and the flight records tell the rest.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::common::*;
use rustix::process::Signal;

/// Runs a mode of the job to its end, and tells how long that took.
fn ranks(folder: &Folder, n: usize, options: &[&str], mode: &str) -> (Output, Duration) {
    let job = job();
    let start = Instant::now();
    let n = n.to_string();
    let output = run(folder, &[&["-n", &n, "--threads", "1"], options, &[job, "--", mode]].concat());
    (output, start.elapsed())
}

/// oflaunch's own text: its lines, and those that continue them.
fn own(output: &Output) -> String {
    stderr(output).lines().filter(|l| !l.starts_with("[rank ")).map(|l| format!("{l}\n")).collect()
}

#[test]
fn a_skipped_op_is_named_although_it_is_noticed_later() {
    let folder = Folder::new();
    let (output, took) = ranks(&folder, 3, &[], "skip");
    let text = own(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    let (relu, exp) = (line_of_job("skip", "x.relu()"), line_of_job("skip", "x.exp()"));
    assert!(text.contains(&format!("'relu' #2 ({relu})")) && text.contains(&format!("'exp' #2 ({exp})")), "{text}");
    assert!(text.contains("issued different ops: rank ") && text.contains("they noticed when rank "), "{text}");
    // The records name it too.
    let kept = text.lines().find_map(|l| l.split_once("`oflow postmortem ")?.1.split_once('`')).unwrap().0;
    let page = std::process::Command::new(env!("CARGO_BIN_EXE_oflow")).args(["postmortem", kept]).output().unwrap();
    let page = stdout(&page);
    assert!(page.contains("First divergence\n  the ranks agree up to op #1; then\n    rank"), "{page}");
    // A rank that had not come so far when the others met has no part in it.
    let relu = |ranks| page.contains(&format!("    {ranks} issued relu(f32[8] [S(0)]) on cpu[3] #2 ("));
    assert!(["rank 0", "rank 2", "ranks 0 and 2"].into_iter().any(relu), "{page}");
    assert!(page.contains("    rank 1 issued exp(f32[8] [S(0)]) on cpu[3] #2 ("), "{page}");
    let html = std::process::Command::new(env!("CARGO_BIN_EXE_oflow")).args(["postmortem", "--html", kept]).output();
    assert!(stdout(&html.unwrap()).starts_with("<!doctype html>"));
}

#[test]
fn ranks_that_declare_an_op_differently_after_their_start_are_told_apart() {
    let folder = Folder::new();
    let (output, took) = ranks(&folder, 2, &[], "declares-differently");
    let text = own(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    let line = line_of_job("declares_differently", "call(\"scaled\"");
    assert!(
        text.contains("rank 0 issued test.scaled(")
            && text.contains("the op is declared otherwise")
            && text.contains(&line),
        "{text}"
    );
}

#[test]
fn ranks_that_never_talk_are_compared_by_their_heartbeats() {
    let folder = Folder::new();
    let (output, took) = ranks(&folder, 2, &["--timeout", "0.1"], "skip-alone");
    let text = own(&output);
    assert_eq!(code(&output), 1, "{text}");
    // Two seconds are the budget on an idle machine.
    assert!(took < Duration::from_secs(8), "{took:?}");
    println!("found and ended after {took:?}");
    let (neg, relu) = (line_of_job("skip_alone", "x.neg()"), line_of_job("skip_alone", "x.relu()"));
    let wanted =
        format!("ranks 0 and 1 issued different ops: rank 0 issued 'relu' #9 ({relu}), rank 1 'neg' #9 ({neg})");
    let wanted_op = wanted.replace("'neg'", "'negative'");
    assert!(text.contains(&wanted) || text.contains(&wanted_op), "{text}");
}

#[test]
fn other_shapes_and_other_values_are_named() {
    let folder = Folder::new();
    let (output, _) = ranks(&folder, 2, &[], "shape");
    let (text, at) = (own(&output), line_of_job("shape", "ones("));
    assert!(text.contains(&format!("(f32[4, 2]) on cpu[2] as [S(0)] #1 ({at}), rank 1 ")), "{text}");
    assert!(text.contains(&format!("(f32[6, 2]) on cpu[2] as [S(0)] #1 ({at})")), "{text}");
    let (output, _) = ranks(&folder, 2, &[], "value");
    let (text, at) = (own(&output), line_of_job("value", "x.mul("));
    assert!(text.contains(&format!("#2 ({at}), rank 1 ")), "{text}");
    assert!(text.contains("differ in an attribute or in a value: a number given to the op"), "{text}");
}

#[test]
fn other_placements_are_named() {
    let folder = Folder::new();
    let here = "cpu[2]";
    let there = "cpu[2] of ranks [1, 0]";
    for (what, call) in [
        ("boxing", "to_global(f32[4, 2] [S(0)]{}, [B])"),
        ("factory", "full(f32[4, 2])"),
        ("shards", "to_global(f32[4, 2], [S(0)])"),
        ("source", "distribute(f32[4, 2], [S(0)])"),
    ] {
        let args = ["-n", "2", "--threads", "1", job(), "--", "placement", what];
        let output = run(&folder, &args);
        let text = own(&output);
        // A boxing names the source's placement where it differs.
        let [a, b] =
            [("", here), (" on cpu[2]", there)].map(|(src, on)| format!("{} on {on}", call.replace("{}", src)));
        assert!(
            text.contains(&format!("rank 0 issued {a}")) && text.contains(&format!("rank 1 {b}")),
            "{what}: {text}"
        );
        assert!(!text.contains("differ in an attribute"), "{text}");
    }
}

#[test]
fn a_stopped_rank_ends_the_job_and_leaves_nothing() {
    let folder = Folder::new();
    let args =
        ["-n", "3", "--threads", "1", "--timeout", "0.2", job(), "--", "forever", folder.path().to_str().unwrap()];
    let running = Running::start(&folder, &args);
    let pids = folder.pids(3);
    let start = Instant::now();
    kill(pids[1], Signal::STOP);
    let (status, text) = running.finish();
    let took = start.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(status.code(), Some(1), "{text}");
    let wanted = format!("oflaunch: rank 1 (pid {}) was stopped by a signal and does not continue; rank ", pids[1]);
    assert!(text.contains(&wanted) && text.contains(" waits for it, in all_reduce of 'to_vec' #"), "{text}");
    // Its peers read the same, not that it has died.
    assert!(text.contains("Error: rank 1 was stopped by a signal while rank ") && !text.contains("died"), "{text}");
    assert_gone(&pids);
    // It could not write anything itself.
    let kept = text.lines().find_map(|l| l.split_once("`oflow postmortem ")?.1.split_once('`')).unwrap().0;
    assert!(Path::new(kept).join("flight-1.json").exists());
    let page = std::process::Command::new(env!("CARGO_BIN_EXE_oflow")).args(["postmortem", kept]).output().unwrap();
    assert!(stdout(&page).contains(&format!("rank 1 (pid {}) issued ", pids[1])), "{}", stdout(&page));
}

#[test]
fn an_endless_loop_is_a_stall() {
    let folder = Folder::new();
    let (output, took) = ranks(&folder, 2, &["--stall", "2", "--timeout", "0.2"], "loop");
    let text = own(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    let relu = line_of_job("endless_loop", "relu()");
    assert!(text.contains("rank 1 stalls the job: rank 0 has waited "), "{text}");
    assert!(text.contains("rank 1 has issued nothing since 'relu' #") && text.contains(&relu), "{text}");
}

#[test]
fn nothing_is_left_of_a_job_that_succeeds() {
    let folder = Folder::new();
    let (output, _) = ranks(&folder, 2, &[], "arithmetic");
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
