//! Runs cases in processes of their own, so that a crash or a hang is a finding and not the end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use oflow_tests::again::again;

use crate::case::{CHILD, Job, run_child, run_here};

/// Calls of the test that every `cargo test` runs.
const SHORT: u64 = 6_000;
/// Calls of one process: what one leaks or keeps does not last.
const OF_A_PROCESS: u64 = 50_000;
/// A process that says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(120);
/// So many crashes and hangs end a run.
const MOST: usize = 25;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// What became of a process: the next case to run, and what it counted.
enum End {
    Done,
    /// It ended or hung in the case, whose call was the text.
    Died {
        case: u64,
        why: String,
    },
}

#[derive(Default)]
struct Findings {
    counts: BTreeMap<String, u64>,
    /// By kind: how often, and the first.
    findings: BTreeMap<String, (u64, String)>,
}

#[test]
fn random_calls_end_in_a_value_or_an_error_that_names_op_and_line() {
    if let Ok(job) = std::env::var(CHILD) {
        return run_child(&Job::parse(&job));
    }
    let (seed, only) = (number("OFLOW_CALLS_SEED").unwrap_or(1), number("OFLOW_CALLS_CASE"));
    let calls = number("OFLOW_CALLS").unwrap_or(SHORT);
    let folder = tempfile::tempdir().unwrap();
    let mut found = Findings::default();
    let mut case = only.unwrap_or(0);
    let mut dead = 0;
    while found.counts.get("calls").copied().unwrap_or(0) < calls && dead < MOST {
        let left = calls - found.counts.get("calls").copied().unwrap_or(0);
        let job = Job { seed, case, calls: left.min(OF_A_PROCESS), alone: only.is_some() };
        let (next, end) = process(&job, folder.path(), &mut found);
        case = next;
        if let End::Died { case: at, why } = end {
            dead += 1;
            let key = why.lines().next().unwrap_or_default().to_string();
            let entry = found.findings.entry(key).or_insert((0, format!("case {at}: {why}")));
            entry.0 += 1;
            case = at + 1;
        }
        if only.is_some() {
            break;
        }
    }
    let counts: Vec<String> = found.counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
    println!("seed {seed}, {case} cases: {}; {dead} processes died or hung", counts.join(", "));
    for (key, (n, first)) in &found.findings {
        println!("{n} x {key}\n    {}", first.replace('\n', "\n    "));
    }
    assert!(found.findings.is_empty(), "{} kinds of findings (above)", found.findings.len());
}

/// The same in this process, for a run under a memory checker, which would need more memory than the limit allows.
#[test]
fn random_calls_in_one_process() {
    let calls = number("OFLOW_CALLS_HERE").unwrap_or(200);
    let findings = run_here(number("OFLOW_CALLS_SEED").unwrap_or(2), calls);
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Runs one process to its end; the case after the last that it has run.
fn process(job: &Job, folder: &Path, found: &mut Findings) -> (u64, End) {
    let now = folder.join("now");
    std::fs::write(&now, "").unwrap();
    let name = "parent::random_calls_end_in_a_value_or_an_error_that_names_op_and_line";
    let mut child =
        again(name).env(CHILD, job.text(&now)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (lines, said) = mpsc::channel();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    std::thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).try_for_each(|l| lines.send(l)));
    let errors = std::thread::spawn(move || {
        let lines: Vec<String> = BufReader::new(err).lines().map_while(Result::ok).collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    });
    let mut next = job.case;
    let mut done = false;
    let hung = loop {
        match said.recv_timeout(SILENCE) {
            Ok(line) => {
                let fields: Vec<&str> = line.split('\t').collect();
                match fields.as_slice() {
                    ["finding", case, key, text] => {
                        let text = format!("case {case}: {}", text.replace("\\n", "\n"));
                        found.findings.entry(key.to_string()).or_insert((0, text)).0 += 1;
                    }
                    ["count", what, n] => {
                        *found.counts.entry(what.to_string()).or_default() += n.parse::<u64>().unwrap()
                    }
                    ["at", case] => next = case.parse().unwrap(),
                    ["done"] => done = true,
                    _ => {}
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => break true,
            Err(mpsc::RecvTimeoutError::Disconnected) => break false,
        }
    };
    if hung {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    let errors = errors.join().unwrap();
    if done && status.success() {
        return (next, End::Done);
    }
    let text = std::fs::read_to_string(&now).unwrap();
    let (case, call) = text.trim_end().split_once('\t').unwrap_or(("0", "before the first call"));
    let what = if hung { "hang".to_string() } else { format!("{status}") };
    let op = call.split('(').next().unwrap_or(call);
    let case = case.parse().unwrap_or(job.case);
    (case, End::Died { case, why: format!("{what} in {op}\n{call}\n{errors}") })
}
