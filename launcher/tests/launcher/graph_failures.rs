//! Ranks that die, stop, stall, differ or fail in the run of a graph, in real jobs of real processes: the report names the rank, the op and the
//! line, as soon as it does for the same calls without a graph.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::common::*;
use rustix::process::Signal;

/// Runs a mode of the job to its end, and tells how long that took.
fn ranks(n: usize, options: &[&str], mode: &[&str]) -> (Output, Duration) {
    let (folder, job, n) = (Folder::new(), job(), n.to_string());
    let start = Instant::now();
    let output = run(&folder, &[&["-n", &n, "--threads", "1"], options, &[job, "--"], mode].concat());
    (output, start.elapsed())
}

/// `(file:line)` of a line of the job.
fn place(function: &str, text: &str) -> String {
    format!("({})", line_of_job(function, text))
}

/// oflaunch's own text: its lines, and those that continue them.
fn own(text: &str) -> String {
    text.lines().filter(|l| !l.starts_with("[rank")).map(|l| format!("{l}\n")).collect()
}

/// Text of one rank, without the prefix.
fn of_rank(text: &str, rank: usize) -> String {
    let prefix = format!("[rank {rank}] ");
    text.lines().filter_map(|l| l.strip_prefix(&prefix)).map(|l| format!("{l}\n")).collect()
}

/// The page of the records that a failed job has left.
fn postmortem(text: &str) -> String {
    let kept = text.lines().find_map(|l| l.split_once("`oflow postmortem ")?.1.split_once('`')).unwrap().0;
    assert!(Path::new(kept).exists());
    stdout(&Command::new(env!("CARGO_BIN_EXE_oflow")).args(["postmortem", kept]).output().unwrap())
}

/// A job of 2 ranks of which rank 1 stays in a kernel of a graph run.
fn held(folder: &Folder) -> (Running, Vec<i32>) {
    let path = folder.path().to_str().unwrap();
    let args = ["-n", "2", "--threads", "1", "--timeout", "0.2", job(), "--", "graph-holds", path];
    let running = Running::start(folder, &args);
    (running, folder.pids(2))
}

/// How a report names the kernel that rank 1 of [`held`] stays in, after its name.
fn held_at() -> String {
    place("work", "call(\"test.work\"")
}

#[test]
fn a_rank_that_is_killed_in_a_kernel_of_a_graph_leaves_the_call_and_its_line() {
    let folder = Folder::new();
    let (running, pids) = held(&folder);
    let start = Instant::now();
    kill(pids[1], Signal::KILL);
    let (status, text) = running.finish();
    assert!(start.elapsed() < Duration::from_secs(5), "took {:?}", start.elapsed());
    assert_eq!(status.code(), Some(137), "{text}");
    assert!(own(&text).contains(&format!("rank 1 (pid {}) was killed by signal 9 (SIGKILL)", pids[1])), "{text}");
    assert!(of_rank(&text, 0).starts_with("Error: rank 1 died with code 137 while rank 0 waits for rank 1 "), "{text}");
    assert_gone(&pids);
    let page = postmortem(&text);
    let line = page.lines().find(|l| l.contains(&format!("rank 1 (pid {}) issued ", pids[1]))).unwrap();
    let at = held_at();
    assert!(
        line.contains("; in test.work(f32[8] [S(0)]) on cpu[2], node 2 of graph #") && line.contains(&at),
        "{page}"
    );
    // The others are in no graph.
    assert_eq!(page.matches(" of graph #").count(), 1, "{page}");
}

#[test]
fn a_rank_that_is_stopped_in_a_kernel_of_a_graph_ends_the_job_and_leaves_the_call() {
    let folder = Folder::new();
    let (running, pids) = held(&folder);
    let start = Instant::now();
    kill(pids[1], Signal::STOP);
    let (status, text) = running.finish();
    assert!(start.elapsed() < Duration::from_secs(10), "took {:?}", start.elapsed());
    assert_eq!(status.code(), Some(1), "{text}");
    let wanted = format!("rank 1 (pid {}) was stopped by a signal and does not continue; rank 0 waits for it", pids[1]);
    assert!(own(&text).contains(&wanted), "{text}");
    assert_gone(&pids);
    let page = postmortem(&text);
    assert!(page.contains("; in test.work(f32[8] [S(0)]) on cpu[2], node 2 of graph #"), "{page}");
    assert!(page.contains(&held_at()), "{page}");
}

#[test]
fn a_rank_that_stays_in_a_kernel_of_a_graph_stalls_and_one_that_goes_on_does_not() {
    let options = ["--stall", "2", "--timeout", "0.2"];
    for (holds, is_long, node) in [("graph-holds", "graph-is-long", 2), ("graph-loop-holds", "graph-loop-is-long", 3)] {
        let folder = Folder::new();
        let (output, took) = ranks(2, &options, &[holds, folder.path().to_str().unwrap()]);
        let text = stderr(&output);
        assert_eq!(code(&output), 1, "{text}");
        assert!(took < Duration::from_secs(30), "{took:?}");
        assert!(own(&text).contains("rank 1 stalls the job: rank 0 has waited "), "{text}");
        let wanted = format!("rank 1 has issued nothing since 'test.work', node {node} of graph #");
        assert!(own(&text).contains(&wanted) && own(&text).contains(&held_at()), "{text}");
        let (output, took) = ranks(2, &options, &[is_long]);
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
        assert!(took > Duration::from_secs(6), "{is_long} was not long: {took:?}");
    }
}

#[test]
fn ranks_that_captured_other_calls_name_the_first_on_both_sides() {
    let usual = place("graph_differs", "let usual");
    for (n, how, first, other, line) in [
        (2, "op", "exp@1(%2) {}", "sigmoid@1(%2)", "(\"op\", true)"),
        (
            3,
            "attribute",
            "sum@1(%3) {dims=[], keepdim=false}",
            "sum@1(%3) {dims=[0], keepdim=true}",
            "(\"attribute\", true)",
        ),
    ] {
        let (output, took) = ranks(n, &[], &["graph-differs", how]);
        let text = stderr(&output);
        assert_eq!(code(&output), 1, "{text}");
        assert!(took < Duration::from_secs(8), "{took:?}");
        let last = n - 1;
        let other_line = place("graph_differs", line);
        let first = first.trim_end_matches(" {}");
        // Every rank has the same error, and prints it, or that it has the same.
        let error = text.lines().find(|l| l.contains("] Error: ranks 0 and ")).unwrap_or_else(|| panic!("{text}"));
        assert!(
            error.contains(&format!("Error: ranks 0 and {last} have captured different graphs: rank 0 has node ")),
            "{error}"
        );
        assert!(error.contains(first) && error.contains(&usual), "{error}");
        assert!(error.contains(&format!(", rank {last} has node ")), "{error}");
        assert!(error.contains(other) && error.contains(&other_line), "{error}");
        assert!(text.contains("help: every rank must capture the same calls"), "{text}");
        assert!(own(&text).contains("failed with the error above"), "{text}");
    }
}

#[test]
fn ranks_whose_passes_differ_name_what_those_made() {
    let (output, took) = ranks(2, &[], &["graph-differs", "passes"]);
    let text = stderr(&output);
    assert!(code(&output) == 1 && took < Duration::from_secs(8), "{text}");
    let error = text.lines().find(|l| l.contains("] Error: ranks 0 and 1 have captured different graphs: ")).unwrap();
    let (first, other) = error.split_once(", rank 1 has ").unwrap();
    assert!(first.contains("oflow.fused_reduce@1(") && other.contains("oflow.relu@1("), "{error}");
}

#[test]
fn ranks_of_several_hosts_compare_their_graphs() {
    // Ranks 1 and 2 are on different hosts, and the first rank of each placement differs.
    for (mode, wanted) in [
        ("graph-differs", "Error: ranks 0 and 2 have captured different graphs: rank 0 has node 3, "),
        ("graph-of-some", "Error: ranks 1 and 2 have captured different graphs: rank 1 has node 1, "),
    ] {
        let hosts = hosts::Hosts::new("2");
        let how = if mode == "graph-differs" { "op" } else { "differs" };
        let all = [(0, 2), (1, 1)].map(|(node, n)| hosts.start_with(node, n, job(), &[mode, how]));
        let texts = all.map(|running| running.finish().1);
        assert!(texts.iter().any(|text| text.contains(wanted)), "{texts:?}");
    }
}

#[test]
fn ranks_of_which_one_captured_more_get_the_same_error_and_may_go_on() {
    let (output, _) = ranks(3, &[], &["graph-differs", "longer"]);
    let text = stdout(&output);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{text}");
    let said: Vec<String> = (0..3).map(|rank| of_rank(&text, rank)).collect();
    assert!(said[0] == said[1] && said[1] == said[2], "{text}");
    let error = said[0].lines().next().unwrap();
    assert!(
        error.starts_with("caught: ranks 0 and 2 have captured different graphs: rank 0 has no further node"),
        "{error}"
    );
    assert!(error.contains(", rank 2 has node 5, ") && error.contains("oflow.neg@1("), "{error}");
    assert!(error.contains(&place("graph_differs", "(\"longer\", true)")), "{error}");
    assert!(said[0].lines().last().unwrap().starts_with("2.94303"), "{text}");
}

#[test]
fn a_rank_that_calls_ops_instead_of_running_the_graph_is_told_apart() {
    let (output, took) = ranks(2, &[], &["graph-differs", "eager"]);
    let text = own(&stderr(&output));
    assert_eq!(code(&output), 1, "{text}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    let (run, relu) = (place("graph_differs", "graph.run("), place("graph_differs", "let usual"));
    assert!(text.contains("ranks 0 and 1 issued different ops: rank 0 issued 'graph check' #2 "), "{text}");
    assert!(text.contains(&run) && text.contains(&format!("rank 1 'relu' #2 {relu}")), "{text}");
}

#[test]
fn ranks_that_have_no_part_of_a_graph_are_not_waited_for() {
    for how in ["", "left"] {
        let (output, _) = ranks(3, &[], &["graph-of-some", how]);
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{how}");
        let text = stdout(&output);
        assert_eq!([1, 2].map(|rank| of_rank(&text, rank)), ["8\n", "8\n"], "{text}");
    }
    let (output, took) = ranks(3, &[], &["graph-of-some", "differs"]);
    let text = stderr(&output);
    assert!(code(&output) == 1 && took < Duration::from_secs(8), "{text}");
    assert!(text.contains("Error: ranks 1 and 2 have captured different graphs: rank 1 has node 1, "), "{text}");
    let (output, took) = ranks(3, &[], &["graph-of-some", "ends"]);
    let text = stderr(&output);
    assert!(code(&output) == 1 && took < Duration::from_secs(8), "{text}");
    assert!(
        own(&text).contains("rank 2 (pid ") && own(&text).contains(" exited with code 0 while others needed it"),
        "{text}"
    );
}

#[test]
fn a_rank_that_does_not_come_to_the_first_run_is_named() {
    let run = place("graph_meets", "graph.run(");
    let run = run.trim_matches(['(', ')']);
    let (output, took) = ranks(2, &[], &["graph-meets", "exit"]);
    let text = stderr(&output);
    assert!(code(&output) == 7 && took < Duration::from_secs(8), "{text}");
    assert!(own(&text).contains(") exited with code 7"), "{text}");
    assert!(of_rank(&text, 0).contains("rank 1 ") && of_rank(&text, 0).contains(&format!("at {run}")), "{text}");
    let (output, took) = ranks(2, &["--stall", "2", "--timeout", "0.2"], &["graph-meets", "loop"]);
    let text = stderr(&output);
    assert!(code(&output) == 1 && took < Duration::from_secs(30), "{text}");
    let wanted = "rank 1 stalls the job: rank 0 has waited ";
    assert!(own(&text).contains(wanted) && own(&text).contains("in the meeting \"graph #"), "{text}");
    assert!(own(&text).contains(run), "{text}");
}

#[test]
fn an_error_in_the_run_of_a_graph_reads_as_it_does_without() {
    let at = place("bad_index", "let step");
    let errors = ["eager", "graph"].map(|how| {
        let (output, took) = ranks(2, &[], &["bad-index", how]);
        let text = stderr(&output);
        assert!(code(&output) == 1 && took < Duration::from_secs(8), "{text}");
        let report = own(&text);
        assert!(
            report.contains("rank 1 (pid ")
                && report.contains(&format!(") failed with the error above (at {}", &at[1..])),
            "{text}"
        );
        assert!(of_rank(&text, 0).contains("rank 1 has ended while rank 0 waits for rank 1 "), "{text}");
        of_rank(&text, 1)
    });
    assert_eq!(errors[0], errors[1]);
    assert!(errors[0].contains("index_select: index 4 at position 0 is outside 0..4"), "{}", errors[0]);
}
