//! Real jobs of real oflow programs: `scripts/job.rs` is built once and run in many ways, most of them fatal. Asserted are
//! what the user reads, the exit code, the time it takes, and that no process and no memory is left.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::common::*;
use oflaunch::model::{self, Calibration};
use oflow::boxing::Model;
use rustix::process::Signal;

/// Runs the job to its end.
fn ranks(n: usize, mode: &[&str]) -> Output {
    let folder = Folder::new();
    run(&folder, &[&["-n", &n.to_string(), job(), "--"], mode].concat())
}

/// `file:line` of the first line of the job that contains the text, as messages show it.
fn place(text: &str) -> String {
    let source = job_source();
    let line = fs::read_to_string(&source).unwrap().lines().position(|l| l.contains(text)).unwrap() + 1;
    format!("{}:{line}", source.canonicalize().unwrap().display())
}

/// What one rank printed, without the prefix.
fn of_rank(text: &str, rank: usize) -> String {
    let prefix = format!("[rank {rank}] ");
    text.lines().filter_map(|l| l.strip_prefix(&prefix)).map(|l| format!("{l}\n")).collect()
}

/// oflaunch's own lines but the one that names the records.
fn report(output: &Output) -> Vec<String> {
    reported(&stderr(output))
}

fn reported(text: &str) -> Vec<String> {
    let own = text.lines().filter_map(|l| l.strip_prefix("oflaunch: "));
    own.filter(|l| !l.starts_with("flight records are in ")).map(String::from).collect()
}

#[test]
fn global_tensors_on_1_2_4_and_8_ranks() {
    for n in [1, 2, 4, 8] {
        let output = ranks(n, &["arithmetic"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let total: usize = (0..12 * n).sum();
        let prefix = if n == 1 { "" } else { "[rank 0] " };
        assert_eq!(stdout(&output), format!("{prefix}{n} ranks: {total}\n"));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn a_long_wait_takes_no_processor_time() {
    let output = ranks(2, &["long-wait"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let ms: u64 = of_rank(&stdout(&output), 0).trim().parse().unwrap();
    assert!(ms <= 50, "{ms} ms");
}

/// Starts the job on several hosts, each an oflaunch of its own, with so many ranks.
fn hosts(folder: &Folder, sizes: &[usize], mode: &[&str]) -> Vec<Running> {
    let port = hosts::free_port();
    let start = |(node, nproc): (usize, &usize)| {
        let mut command = oflaunch(folder);
        command
            .args(["--nnodes", &sizes.len().to_string(), "--node-rank", &node.to_string()])
            .args(["--rdzv", &format!("127.0.0.1:{port}"), "-n", &nproc.to_string(), "--threads", "1", job(), "--"])
            .args(mode)
            .env("OFLOW_TOKEN", "ab".repeat(32));
        Running::of(&mut command)
    };
    sizes.iter().enumerate().map(start).collect()
}

/// The secret of a job is for its ranks: what they start has it neither in its environment nor behind a descriptor.
#[test]
fn children_of_ranks_do_not_get_the_token() {
    let folder = Folder::new();
    let look = "env; for f in /proc/self/fd/*; do readlink $f; done";
    let output = ranks(2, &["child", look]);
    let text = stdout(&output);
    assert!(code(&output) == 0 && text.contains("OFLOW_CONTROL=") && text.contains("pipe:"), "{text}");
    assert!(!text.contains("OFLOW_TOKEN=") && !text.contains("memfd:oflow-token"), "{text}");
    let given = "ab".repeat(32);
    for running in hosts(&folder, &[1, 1], &["child", look]) {
        let (status, out, err) = running.finish_all();
        assert_eq!(status.code(), Some(0), "{err}");
        assert!(!out.contains(&given) && !err.contains(&given), "{out}");
    }
}

#[test]
fn several_hosts_compute_what_one_does() {
    for sizes in [&[2, 2][..], &[1, 3, 2]] {
        let folder = Folder::new();
        let n: usize = sizes.iter().sum();
        let total: usize = (0..12 * n).sum();
        for (node, running) in hosts(&folder, sizes, &["arithmetic"]).into_iter().enumerate() {
            let (status, out, err) = running.finish_all();
            assert_eq!((status.code(), err.as_str()), (Some(0), ""));
            assert_eq!(out, if node == 0 { format!("[rank 0] {n} ranks: {total}\n") } else { String::new() });
        }
    }
}

#[test]
fn a_killed_launcher_ends_the_ranks_of_other_hosts() {
    let folder = Folder::new();
    let mut all = hosts(&folder, &[2, 1], &["forever", folder.path().to_str().unwrap()]);
    let pids = folder.pids(3);
    let start = Instant::now();
    drop(all.remove(1));
    let (status, text) = all.remove(0).finish();
    let took = start.elapsed();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(took < Duration::from_secs(5), "took {took:?}");
    assert!(text.contains("oflaunch: node 1 (") && text.contains(") is lost: "), "{text}");
    assert_gone(&pids);
}

#[test]
fn every_rank_plans_under_the_launchers_cost_model() {
    let folder = Folder::new();
    let file = folder.path().join("model.json");
    let with = |model: &str| {
        oflaunch(&folder)
            .args(["-n", "3", "--no-prefix", job(), "--", "cost-model"])
            .env("OFLOW_MODEL", model)
            .output()
            .unwrap()
    };
    let given = Model { local_ps: 12_345, hosts: 9.into(), ..Model::default() };
    model::write(&file, &Calibration::of_this_host(given, 2, 2)).unwrap();
    let output = with(file.to_str().unwrap());
    // Where the ranks are is known of the job, not of the file.
    assert_eq!((code(&output), stdout(&output)), (0, "12345 false\n".repeat(3)), "{}", stderr(&output));
    let default = Model::default().local_ps;
    assert_eq!(stdout(&with("default")), format!("{default} false\n").repeat(3));
    fs::write(&file, "{\"version\": 1, \"host\": ").unwrap();
    let output = with(file.to_str().unwrap());
    assert_eq!((code(&output), stdout(&output).as_str()), (1, ""));
    let text = stderr(&output);
    let shown = file.display();
    assert!(text.starts_with(&format!("oflaunch: the cost model {shown} is broken: EOF while")), "{text}");
    assert!(
        text.contains(&format!("`oflow calibrate --out {shown}`")) && text.contains("OFLOW_MODEL=default"),
        "{text}"
    );
}

#[test]
fn the_program_of_the_design_runs_on_4_ranks() {
    let folder = Folder::new();
    job();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/design.rs");
    let output = run(&folder, &["-n", "4", script.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for rank in 0..4 {
        assert_eq!(of_rank(&stdout(&output), rank), "f32[1024, 256] [S(0), S(1)] on cpu[dp=2, tp=2]\n");
    }
}

#[test]
fn eight_ranks_meet_quickly() {
    // The budget of 150 ms is for an idle machine; this one runs other tests. What is asserted is that nobody waits for a
    // timeout of any kind.
    job();
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos().to_string();
    let output = ranks(8, &["first-collective", &began]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let took = Duration::from_micros(of_rank(&stdout(&output), 0).trim().parse().unwrap());
    println!("launch of 8 ranks to the first collective: {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// The inodes of the shared memory that a process has mapped.
fn arenas(pid: &str) -> BTreeSet<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines()
        .filter(|l| l.contains("/memfd:oflow"))
        .filter_map(|l| l.split_whitespace().nth(4).map(Into::into))
        .collect()
}

/// Every arena that any process of ours has mapped.
fn arenas_of_all() -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().into_string().ok());
    processes.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).flat_map(|pid| arenas(&pid)).collect()
}

/// A running job of `n` ranks in an endless loop of collectives, with their process ids.
fn endless(folder: &Folder, n: usize) -> (Running, Vec<i32>) {
    let job = job();
    let running = Running::start(
        folder,
        &["-n", &n.to_string(), "--threads", "1", job, "--", "forever", folder.path().to_str().unwrap()],
    );
    let pids = folder.pids(n);
    (running, pids)
}

#[test]
fn a_killed_rank_ends_the_job_and_leaves_nothing() {
    let folder = Folder::new();
    let (running, pids) = endless(&folder, 4);
    let arena = arenas(&pids[0].to_string());
    assert_eq!(arena.len(), 1);
    assert!(pids.iter().all(|pid| arenas(&pid.to_string()) == arena), "one arena for all ranks");
    let start = Instant::now();
    kill(pids[2], Signal::KILL);
    let (status, text) = running.finish();
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "took {took:?}");
    assert_eq!(status.code(), Some(137), "{text}");
    let reports = reported(&text);
    let wanted = format!("rank 2 (pid {}) was killed by signal 9 (SIGKILL)", pids[2]);
    assert!(reports.len() == 1 && reports[0].starts_with(&wanted), "{text}");
    // The others say what they were at.
    for rank in [0, 1, 3] {
        let own = of_rank(&text, rank);
        assert!(
            own.starts_with(&format!("Error: rank 2 died with code 137 while rank {rank} waits for rank ")),
            "{text}"
        );
        assert!(own.contains(", in all_reduce of 'to_vec' #") && own.contains(&place("sum.item()")), "{text}");
    }
    assert_gone(&pids);
    wait_for("the shared memory to be gone", LONG, || arenas_of_all().is_disjoint(&arena).then_some(()));
    let left: Vec<_> = fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("oflow")), "{left:?}");
}

#[test]
fn interrupt_ends_every_rank_with_130() {
    let folder = Folder::new();
    let (running, pids) = endless(&folder, 3);
    let start = Instant::now();
    running.signal(Signal::INT);
    let (status, text) = running.finish();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(status.code(), Some(130), "{text}");
    assert_eq!(text, "oflaunch: signal 2 (SIGINT) passed on to the ranks; once more kills them\n");
    assert_gone(&pids);
}

#[test]
fn more_ranks_than_cores_work() {
    let folder = Folder::new();
    job();
    // All on two cores, so that they must give way to each other.
    let mut command = std::process::Command::new("taskset");
    command.args(["-c", "0,1", env!("CARGO_BIN_EXE_oflaunch"), "-n", "8", job(), "--", "arithmetic"]);
    let output = match command.current_dir(folder.path()).stdin(Stdio::null()).output() {
        Ok(output) => output,
        // No taskset here: on the cores that there are.
        Err(_) => ranks(8, &["arithmetic"]),
    };
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), "[rank 0] 8 ranks: 4560\n");
}

#[test]
fn a_panic_in_one_rank_is_quoted_once() {
    let start = Instant::now();
    let output = ranks(3, &["panic"]);
    assert!(start.elapsed() < LONG);
    assert_eq!(code(&output), 101);
    let report = report(&output);
    let at = place("rank 1 has no data");
    assert_eq!(report.len(), 1, "{report:?}");
    assert!(
        report[0].starts_with("rank 1 (pid ")
            && report[0].contains(&format!(") panicked: rank 1 has no data (at {at}:")),
        "{report:?}"
    );
    for rank in [0, 2] {
        let own = of_rank(&stderr(&output), rank);
        let wanted =
            format!("Error: rank 1 has ended while rank {rank} waits for rank 1 to send, in all_reduce of 'to_vec' #");
        assert!(own.starts_with(&wanted) && own.contains(&place("sum.item()")), "{own}");
    }
}

#[test]
fn an_error_of_one_rank_ends_all_and_is_reported_once() {
    let output = ranks(3, &["local-error"]);
    assert_eq!(code(&output), 1);
    let report = report(&output);
    assert_eq!(report.len(), 1, "{report:?}");
    assert!(report[0].ends_with(") failed with the error above"), "{report:?}");
    assert!(
        of_rank(&stderr(&output), 1).contains("Error: input/output failed: No such file or directory (os error 2)")
    );
    assert!(report[0].starts_with("rank 1 (pid "), "{report:?}");
}

#[test]
fn the_first_to_fail_is_named_although_it_is_the_last_to_end() {
    let output = ranks(3, &["unwinds-late"]);
    assert_eq!(code(&output), 1);
    let report = report(&output);
    assert!(report.len() == 1 && report[0].starts_with("rank 1 (pid "), "{report:?}");
    assert!(report[0].ends_with(") failed with the error above"), "{report:?}");
    assert!(of_rank(&stderr(&output), 1).contains("Error: the data is gone"));
}

#[test]
fn an_error_of_all_ranks_is_reported_once_with_its_place() {
    let output = ranks(4, &["same-error"]);
    assert_eq!(code(&output), 1);
    let report = report(&output);
    let at = place("x.add(&ones([4, 9]");
    let wanted = format!(") failed with the error above (at {at})");
    assert!(report.len() == 1 && report[0].ends_with(&wanted), "{report:?}\n{wanted}");
    // The ranks print it once, and say who else would have. A rank that comes so late that the job has failed says that.
    let text = stderr(&output);
    let lines = |start: &str, part: &str| text.lines().filter(|l| l.starts_with(start) && l.contains(part)).count();
    let printed = lines("[rank ", "] Error: add(");
    let late = lines("[rank ", "] Error: the job has failed: rank ");
    let told = text.lines().filter_map(|l| l.strip_prefix("[rank")?.split_once("] the same error as rank "));
    let same: usize = told.map(|(ranks, _)| ranks.split(',').count()).sum();
    assert_eq!((printed, printed + late + same), (1, 4), "{text}");
    assert_eq!(text.matches("do not broadcast").count(), printed + late, "{text}");
}

#[test]
fn exit_codes_are_kept() {
    for wanted in [1, 7, 255] {
        let output = ranks(3, &["exit", &wanted.to_string()]);
        assert_eq!(code(&output), wanted);
        let report = report(&output);
        assert!(report.len() == 1 && report[0].starts_with("rank 1 (pid "), "{report:?}");
        assert!(report[0].ends_with(&format!(") exited with code {wanted}")), "{report:?}");
    }
}

#[test]
fn a_caught_shape_error_reads_well_on_every_rank_and_the_job_goes_on() {
    let output = ranks(3, &["mismatch"]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    let at = place("let error = x.matmul(&w)");
    let wanted = format!(
        "caught: matmul(f32[8, 4] [S(0)], f32[3, 2] [B]) on cpu[3]: inner dims differ: 4 and 3
  at {at}
  help: the last dim of the first operand must equal the second-to-last of the second
--
goes on: 73
"
    );
    for rank in 0..3 {
        assert_eq!(of_rank(&stdout(&output), rank), wanted);
    }
}

#[test]
fn a_thread_without_a_context_gets_an_error() {
    let output = ranks(2, &["no-context"]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    let at = place("std::thread::scope");
    let wanted = format!(
        "caught: sum(f32[8] [S(0)]) on cpu[2]: a global tensor was used on a thread that has entered no rank context
  at {at}
  help: call oflow::init() at the start of main, and `ctx.enter()` on helper threads
"
    );
    for rank in 0..2 {
        assert_eq!(of_rank(&stdout(&output), rank), wanted);
    }
}

#[test]
fn ranks_that_diverge_are_named_with_their_ops_and_lines() {
    let start = Instant::now();
    let output = ranks(2, &["diverge"]);
    assert!(start.elapsed() < LONG);
    assert_eq!(code(&output), 1);
    let wanted = format!(
        "ranks 0 and 1 issued different ops: rank 0 is in all_reduce of 'exp' #3 ({}), rank 1 in all_reduce of 'relu' #3 ({})",
        place("sum.exp()?"),
        place("sum.relu()?")
    );
    let report = report(&output);
    assert!(report.len() == 1 && report[0].contains(&wanted), "{report:?}\n{wanted}");
    for rank in 0..2 {
        let own = of_rank(&stderr(&output), rank);
        assert!(
            own.contains(&wanted) && own.contains("help: every rank must issue the same ops in the same order"),
            "{own}"
        );
    }
}

#[test]
fn a_rank_that_is_done_while_others_wait_for_it() {
    // In the words of oflow, and in a program's own: who is missing is known from the error, not from its text.
    for (mode, text) in
        [("early", "rank 1 has ended while rank "), ("early-own-words", "no loss: rank 1 has ended while")]
    {
        let output = ranks(3, &[mode]);
        assert_eq!(code(&output), 1);
        let report = report(&output);
        assert!(report.len() == 1 && report[0].contains(&format!(" failed: {text}")), "{report:?}");
        let (who, why) = report[0].split_once(" exited with code 0 while others needed it: ").unwrap();
        assert!(who.starts_with("rank 1 (pid ") && why.starts_with("rank "), "{report:?}");
    }
}

#[test]
fn input_of_rank_0_reaches_all_through_a_collective() {
    let folder = Folder::new();
    let mut child = oflaunch(&folder)
        .args(["-n", "2", job(), "--", "stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"41.5\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output);
    let lines: BTreeSet<&str> = text.lines().collect();
    assert_eq!(lines, BTreeSet::from(["[rank 0] 41.5", "[rank 1] 41.5"]));
}

/// Rank 1 is started by a shell script that does something before it becomes the job.
fn with_rank_1(folder: &Folder, before: &str, instead: &str) -> Output {
    let job = job();
    folder.sh(
        "start",
        &format!("if [ $RANK = 1 ]; then {before} exec {instead} arithmetic; fi; exec '{job}' arithmetic"),
    );
    run(folder, &["-n", "2", "./start"])
}

#[test]
fn a_wrong_token_is_refused() {
    let folder = Folder::new();
    let wrong = "0".repeat(64);
    let output = with_rank_1(&folder, &format!("export OFLOW_TOKEN={wrong};"), &format!("'{}'", job()));
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    let own = of_rank(&text, 1);
    assert!(own.starts_with("Error: the control service does not know this job's token\n"), "{text}");
    assert!(own.contains("help: start all ranks of a job with the same oflaunch"), "{text}");
    let report = report(&output);
    assert_eq!(report.len(), 2, "{report:?}");
    let refused = "control service: 1 connection without the job token: refused; the last was from 127.0.0.1";
    assert!(report[0].starts_with(refused), "{report:?}");
    assert!(report[1].starts_with("rank 1 (pid "), "{report:?}");
    assert!(report[1].ends_with(" failed with the error above"), "{report:?}");
    assert!(!text.contains(&wrong), "a token is never printed");
}

#[test]
fn another_program_is_refused() {
    let folder = Folder::new();
    let copy = folder.path().join("copy");
    fs::copy(job(), &copy).unwrap();
    let output = with_rank_1(&folder, "", "./copy");
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains(": they run different builds of the program"), "{text}");
    assert_eq!(report(&output).len(), 1, "{text}");
}

/// What cannot be meant is refused by a program that runs alone, too.
#[test]
fn a_program_alone_refuses_values_that_mean_nothing() {
    for (name, value, why) in [
        ("OFLOW_THREADS", "-1", "is \"-1\", not a whole number"),
        ("OFLOW_THREADS", "0", "at least 1"),
        ("OFLOW_LOG", "oflow=loud", "is \"oflow=loud\", not a list of levels"),
        ("OFLOW_TRANSPORT", "junk", "is \"junk\", not own or mpi"),
        ("OFLOW_COMM", "junk", "is \"junk\""),
    ] {
        let output = std::process::Command::new(job()).env(name, value).output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}={value}: {text}");
        assert!(text.contains(&format!("environment variable {name}")) && text.contains(why), "{text}");
    }
    let output = std::process::Command::new(job()).arg("arithmetic").env("OFLOW_THREADS", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn half_an_environment_is_no_world_of_one() {
    let output = std::process::Command::new(job()).env("WORLD_SIZE", "2").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.starts_with("Error: environment variable RANK is not set although WORLD_SIZE is\n"), "{text}");
    let alone = std::process::Command::new(job()).arg("arithmetic").output().unwrap();
    assert_eq!((alone.status.code(), stdout(&alone).as_str()), (Some(0), "1 ranks: 66\n"));
}
