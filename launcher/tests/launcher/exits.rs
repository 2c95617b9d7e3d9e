//! Ranks that end with 0, or never join: a failure that names the rank if another rank needs it, and no news if nobody does.
//! Real jobs of real processes, on one host and on two, and without oflaunch.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::hosts::Hosts;
use crate::common::*;

/// How soon a rank that has ended is named and the job is over, on an idle machine. Other tests may run beside.
const SOON: Duration = Duration::from_secs(10);

/// What each oflaunch of a job said at its end.
struct ExitReport {
    code: Option<i32>,
    out: String,
    err: String,
}

impl ExitReport {
    /// oflaunch's own lines but the one that names the records.
    fn report(&self) -> Vec<&str> {
        let own = self.err.lines().filter_map(|l| l.strip_prefix("oflaunch: "));
        own.filter(|l| !l.starts_with("flight records are in ")).collect()
    }
}

/// Runs a mode of the job on hosts with so many ranks each; an oflaunch for each host.
fn ranks(sizes: &[usize], options: &[&str], mode: &[&str]) -> (Vec<ExitReport>, Duration) {
    job();
    let hosts = Hosts::new(&sizes.len().to_string()).with(options);
    let start = Instant::now();
    let all: Vec<Running> = match sizes {
        [n] => {
            let n = n.to_string();
            let own = ["-n", &n, "--threads", "1"];
            vec![Running::start(&hosts.folder, &[&own, options, &[job(), "--"], mode].concat())]
        }
        _ => sizes.iter().enumerate().map(|(node, n)| hosts.start_with(node, *n, job(), mode)).collect(),
    };
    let finish = |running: Running| {
        let (status, out, err) = running.finish_all();
        ExitReport { code: status.code(), out, err }
    };
    (all.into_iter().map(finish).collect(), start.elapsed())
}

/// The job fails soon, and every host names rank 1 with these words.
fn fails(sizes: &[usize], options: &[&str], mode: &[&str], words: &[&str]) {
    let (told, took) = ranks(sizes, options, mode);
    for told in &told {
        let report = told.report();
        assert_eq!((told.code, report.len()), (Some(1), 1), "{mode:?} on {sizes:?}: {}", told.err);
        assert!(report[0].starts_with("rank 1 "), "{mode:?} on {sizes:?}: {}", told.err);
        assert!(words.iter().all(|w| report[0].contains(w)), "{mode:?} on {sizes:?}: {}", told.err);
    }
    assert!(took < SOON, "{mode:?} on {sizes:?} took {took:?}");
}

/// The job succeeds without a word on stderr.
fn succeeds(sizes: &[usize], mode: &[&str], done: usize) {
    let (told, _) = ranks(sizes, &[], mode);
    for told in &told {
        assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{mode:?} on {sizes:?}");
    }
    let lines: usize = told.iter().map(|t| t.out.lines().filter(|l| l.ends_with("done")).count()).sum();
    assert_eq!(lines, done, "{mode:?} on {sizes:?}");
}

const NEEDED: [&str; 3] = [" exited with code 0 while others needed it: ", "rank 1 has ended while rank ", "in all_"];

#[test]
fn a_rank_that_exits_with_0_while_others_need_it_is_named() {
    for sizes in [&[4][..], &[1, 2], &[2, 2]] {
        fails(sizes, &[], &["exit", "0"], &NEEDED);
    }
}

#[test]
fn a_rank_that_exits_before_init_is_named() {
    for sizes in [&[4][..], &[2, 2]] {
        fails(sizes, &[], &["exits-before-init"], &[" exited with code 0 while others needed it: "]);
    }
}

#[test]
fn a_rank_that_exits_while_others_are_in_a_barrier_of_the_control_plane_is_named() {
    for sizes in [&[3][..], &[2, 1]] {
        let words = [" exited with code 0 while others needed it: ", "barrier \"all\" of 3 ranks cannot complete"];
        fails(sizes, &[], &["exits-from-barrier"], &words);
    }
}

#[test]
fn a_rank_that_never_joins_is_a_stall() {
    for sizes in [&[3][..], &[2, 1]] {
        let words = [" stalls the job: ", " has not called oflow::init()", "it sleeps"];
        fails(sizes, &["--stall", "2", "--timeout", "0.2"], &["never-inits"], &words);
    }
}

#[test]
fn a_rank_that_becomes_another_program_is_a_stall() {
    fails(&[3], &["--stall", "2", "--timeout", "0.2"], &["becomes-another"], &[" stalls the job: ", "it sleeps"]);
}

#[test]
fn all_ranks_may_end_by_exit() {
    for sizes in [&[1][..], &[4], &[2, 2]] {
        succeeds(sizes, &["exits-when-done"], sizes.iter().sum());
    }
}

#[test]
fn a_rank_that_nobody_needs_may_exit() {
    for sizes in [&[4][..], &[2, 2], &[1, 1, 1]] {
        succeeds(sizes, &["unneeded"], sizes.iter().sum::<usize>() - 1);
    }
}

/// The ranks of a job that no launcher of ours has started: exit code and what they have printed, by rank.
fn alone(n: usize, mode: &[&str]) -> (Vec<(Option<i32>, String)>, Duration) {
    let port = hosts::free_port();
    let start = Instant::now();
    let rank = |rank: usize| {
        let mut command = Command::new(job());
        command.args(mode).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let numbers = [("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", n), ("LOCAL_WORLD_SIZE", n)];
        command.envs(numbers.map(|(name, value)| (name, value.to_string())));
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..n).map(rank).collect();
    let finish = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    (children.into_iter().map(finish).collect(), start.elapsed())
}

#[test]
fn without_oflaunch_a_rank_that_exits_while_others_need_it_is_named() {
    job();
    let (ended, took) = alone(4, &["exit", "0"]);
    for (rank, (code, text)) in ended.iter().enumerate() {
        assert_eq!(*code, Some(i32::from(rank != 1)), "rank {rank}: {text}");
        assert!(rank == 1 || text.contains("Error: rank 1 has ended while rank "), "rank {rank}: {text}");
    }
    assert!(took < SOON, "{took:?}");
}

#[test]
fn without_oflaunch_all_ranks_may_end_by_exit() {
    job();
    for mode in ["exits-when-done", "unneeded"] {
        let (ended, _) = alone(4, &[mode]);
        for (rank, (code, text)) in ended.iter().enumerate() {
            assert_eq!((*code, text.as_str()), (Some(0), ""), "{mode}: rank {rank}");
        }
    }
}
