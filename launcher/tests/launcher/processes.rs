//! Real oflaunch runs of shell scripts: exit codes, output, deaths, signals, and that nothing is left behind.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::*;
use rustix::process::Signal;

#[test]
fn all_well_is_zero() {
    let folder = Folder::new();
    folder.sh("ok", "exit 0");
    let output = run(&folder, &["-n", "3", "./ok"]);
    assert_eq!((code(&output), stdout(&output), stderr(&output)), (0, String::new(), String::new()));
}

#[test]
fn the_environment_tells_each_rank_who_it_is() {
    let folder = Folder::new();
    folder.sh(
        "env",
        r#"echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $OFLOW_THREADS $(wc -c < /proc/$$/fd/$OFLOW_TOKEN_FD) $((MASTER_PORT > 0)) $1 $2""#,
    );
    let output = run(&folder, &["-n", "2", "--threads", "3", "--no-prefix", "./env", "--", "--a b", "-n"]);
    let text = stdout(&output);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort();
    assert_eq!(lines, ["0 0 2 2 127.0.0.1 3 64 1 --a b -n", "1 1 2 2 127.0.0.1 3 64 1 --a b -n"]);
}

#[test]
fn ranks_inherit_the_shared_memory() {
    let folder = Folder::new();
    folder.sh("shm", "readlink /proc/$$/fd/$OFLOW_SHM_FD");
    let output = run(&folder, &["-n", "2", "--no-prefix", "./shm"]);
    let text = stdout(&output);
    assert!(text.lines().count() == 2 && text.lines().all(|l| l.starts_with("/memfd:oflow")), "{text}");
}

#[test]
fn lines_are_prefixed_and_whole() {
    let folder = Folder::new();
    // Each line is written in two pieces, so that a launcher that passes on pieces would mix them.
    folder.sh(
        "talk",
        "i=0; while [ $i -lt 200 ]; do printf 'rank %s ' $RANK; echo \"line $i\"; echo \"e$i\" >&2; i=$((i+1)); done; printf end",
    );
    let output = run(&folder, &["-n", "3", "./talk"]);
    assert_eq!(code(&output), 0);
    let (out, err) = (stdout(&output), stderr(&output));
    for rank in 0..3 {
        let own: Vec<&str> = out.lines().filter(|l| l.starts_with(&format!("[rank {rank}] "))).collect();
        let mut wanted: Vec<String> = (0..200).map(|i| format!("[rank {rank}] rank {rank} line {i}")).collect();
        wanted.push(format!("[rank {rank}] end"));
        assert_eq!(own, wanted);
        let wanted: Vec<String> = (0..200).map(|i| format!("[rank {rank}] e{i}")).collect();
        let own: Vec<&str> = err.lines().filter(|l| l.starts_with(&format!("[rank {rank}] "))).collect();
        assert_eq!(own, wanted);
    }
    assert_eq!(out.lines().count(), 3 * 201);
}

#[test]
fn one_rank_alone_is_passed_through_unchanged() {
    let folder = Folder::new();
    folder.sh("bytes", r"printf 'a\r b\r\nc\377\0d'");
    let output = run(&folder, &["-n", "1", "./bytes"]);
    assert_eq!(output.stdout, b"a\r b\r\nc\xff\0d");
}

#[test]
fn input_goes_to_rank_0_only() {
    let folder = Folder::new();
    folder.sh("cat", "echo \"got $(cat)\"");
    let mut child =
        oflaunch(&folder).args(["-n", "2", "./cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"secret").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort();
    assert_eq!(lines, ["[rank 0] got secret", "[rank 1] got "]);
}

#[test]
fn the_first_failure_is_named_and_its_code_returned() {
    let folder = Folder::new();
    folder.sh("fail", "[ $RANK = 1 ] && exit 7; exit 0");
    let output = run(&folder, &["-n", "3", "./fail"]);
    assert_eq!(code(&output), 7);
    let text = stderr(&output);
    assert!(text.starts_with("oflaunch: rank 1 (pid ") && text.ends_with(") exited with code 7\n"), "{text}");
}

#[test]
fn a_panic_is_quoted() {
    let folder = Folder::new();
    folder.sh(
        "panic",
        "[ $RANK = 1 ] || exit 0; printf \"\\nthread 'main' (1) panicked at train.rs:3:5:\\nno data\\n\" >&2; exit 101",
    );
    let output = run(&folder, &["-n", "2", "./panic"]);
    assert_eq!(code(&output), 101);
    assert!(stderr(&output).contains(") panicked: no data (at train.rs:3:5)\n"), "{}", stderr(&output));
}

#[test]
fn a_rank_that_is_done_early_does_not_end_the_others() {
    let folder = Folder::new();
    // Rank 1 goes on until rank 0's process is gone, and then some work.
    folder.sh("early", &format!("{TELL_PID}; [ $RANK = 0 ] && exit 0; while [ ! -e pid0 ]; do :; done; while kill -0 $(cat pid0) 2>/dev/null; do :; done; echo done"));
    let output = run(&folder, &["-n", "2", "./early"]);
    assert_eq!((code(&output), stdout(&output)), (0, "[rank 1] done\n".to_string()));
}

/// Ranks that tell their ids and then run on, with a child process each. The sleeps are short: a signal that comes before the shell
/// has begun to wait for one is dealt with after it.
fn endless(folder: &Folder, before: &str) {
    folder.sh("endless", &format!("{before}\nsleep 1000 & {TELL_PID}; while :; do sleep 0.05; done"));
}

#[test]
fn a_killed_rank_ends_the_job() {
    let folder = Folder::new();
    endless(&folder, "");
    let running = Running::start(&folder, &["-n", "3", "./endless"]);
    let pids = folder.pids(3);
    let start = Instant::now();
    kill(pids[2], Signal::KILL);
    let (status, text) = running.finish();
    assert!(start.elapsed() < Duration::from_secs(5), "took {:?}", start.elapsed());
    assert_eq!(status.code(), Some(137));
    assert!(text.contains(&format!("rank 2 (pid {}) was killed by signal 9 (SIGKILL)", pids[2])), "{text}");
    assert_eq!(text.lines().count(), 1, "one failure, one report: {text}");
    assert_gone(&pids);
}

#[test]
fn ranks_that_ignore_sigterm_are_killed() {
    let folder = Folder::new();
    endless(&folder, "trap '' TERM INT");
    let running = Running::start(&folder, &["-n", "2", "--timeout", "0", "--verbose", "./endless"]);
    let pids = folder.pids(2);
    kill(pids[0], Signal::SEGV);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(139));
    assert!(text.contains("sent signal 15 (SIGTERM)") && text.contains("sent signal 9 (SIGKILL)"), "{text}");
    assert_gone(&pids);
}

#[test]
fn interrupt_is_passed_on() {
    let folder = Folder::new();
    endless(&folder, "trap 'echo bye; exit 0' INT");
    let running = Running::start(&folder, &["-n", "2", "./endless"]);
    let pids = folder.pids(2);
    running.signal(Signal::INT);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(130), "{text}");
    assert_gone(&pids);
}

#[test]
fn terminate_is_passed_on_and_not_waited_for_without_end() {
    let folder = Folder::new();
    endless(&folder, "trap 'touch asked$RANK' TERM");
    let running = Running::start(&folder, &["-n", "2", "--timeout", "0.5", "./endless"]);
    let pids = folder.pids(2);
    running.signal(Signal::TERM);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(143), "{text}");
    assert!((0..2).all(|r| folder.path().join(format!("asked{r}")).exists()));
    assert_gone(&pids);
}

#[test]
fn a_second_interrupt_kills() {
    let folder = Folder::new();
    endless(&folder, "trap 'touch asked$RANK' INT; trap '' TERM");
    let running = Running::start(&folder, &["-n", "2", "./endless"]);
    let pids = folder.pids(2);
    running.signal(Signal::INT);
    wait_for("both ranks to be asked", LONG, || {
        (0..2).all(|r| folder.path().join(format!("asked{r}")).exists()).then_some(())
    });
    running.signal(Signal::INT);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(130), "{text}");
    assert_gone(&pids);
}

#[test]
fn the_ranks_die_with_their_launcher() {
    let folder = Folder::new();
    folder.sh("endless", &format!("{TELL_PID}; exec sleep 1000"));
    let running = Running::start(&folder, &["-n", "2", "./endless"]);
    let pids = folder.pids(2);
    running.signal(Signal::KILL);
    let (status, _) = running.finish();
    assert_eq!(status.code(), None);
    // Nobody reaps them here but init; a zombie is no running process.
    for pid in pids {
        wait_for("rank to be dead", LONG, || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        });
    }
}

#[test]
fn what_a_rank_leaves_behind_is_killed() {
    let folder = Folder::new();
    folder.sh("leave", &format!("{TELL_PID}; sleep 1000 & exit 0"));
    let output = run(&folder, &["-n", "2", "./leave"]);
    assert_eq!(code(&output), 0);
    assert_gone(&folder.pids(2));
}

#[test]
fn a_closed_output_ends_the_job() {
    let folder = Folder::new();
    folder.sh("yes", "while :; do echo y; done");
    let mut child = oflaunch(&folder).args(["-n", "2", "./yes"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let status = wait_for("oflaunch to end", LONG, || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(141));
}

#[test]
fn programs_that_cannot_be_run() {
    let folder = Folder::new();
    folder.write("data", "no program");
    let script = folder.sh("lost", "");
    std::fs::write(script, "#!/no/such/shell\n").unwrap();
    for (program, wanted, message) in [
        ("./missing", 127, "cannot find ./missing: No such file or directory"),
        ("missing-in-path", 127, "no such program in PATH"),
        ("data", 127, "for the file in this folder write ./data"),
        ("missing.rs", 127, "cannot find missing.rs"),
        ("./data", 126, "./data is not executable"),
        ("./lost", 126, "cannot start rank 0 (./lost): No such file or directory (os error 2); the interpreter"),
        (".", 127, "no such program in PATH"),
        ("./", 126, "./ is not a file"),
    ] {
        let output = run(&folder, &["-n", "2", program]);
        let text = stderr(&output);
        assert_eq!(code(&output), wanted, "{program}: {text}");
        assert!(text.starts_with("oflaunch: ") && text.contains(message), "{program}: {text}");
    }
}

#[test]
fn wrong_use_is_code_2() {
    let folder = Folder::new();
    for args in [&["-n", "0", "true"][..], &["-n", "1025", "true"], &["--timeout", "-1", "true"], &["--bogus"], &[]] {
        let output = run(&folder, args);
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(stderr(&output).contains("error: "), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_dry_run_runs_nothing() {
    let folder = Folder::new();
    folder.sh("touch", "touch ran");
    let output = run(&folder, &["-n", "2", "-t", "1", "--dry-run", "./touch", "--", "a b"]);
    assert_eq!(code(&output), 0);
    let text = stdout(&output);
    assert!(text.starts_with("run:   ./touch 'a b'\nranks: 2, 1 compute threads each\ncosts: default constants (OFLOW_MODEL=default)\nends:  3 s after a failure, 300 s after a stall\nrank 0: "), "{text}");
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn help_and_version() {
    let folder = Folder::new();
    let help = stdout(&run(&folder, &["--help"]));
    for part in ["Usage: oflaunch [OPTIONS] <PROGRAM> [-- <ARGS>...]", "Examples:", "Exit codes:", "OFLOW_SHM_FD"] {
        assert!(help.contains(part), "{part} is missing in\n{help}");
    }
    assert!(stdout(&run(&folder, &["--version"])).starts_with("oflaunch 0."));
}

#[test]
fn too_few_descriptors_are_told_before_a_rank_is_started() {
    let folder = Folder::new();
    folder.sh("ok", "echo $RANK >> started");
    let oflaunch = env!("CARGO_BIN_EXE_oflaunch");
    folder.sh("limited", &format!("ulimit -n 200; exec '{oflaunch}' -n 64 ./ok"));
    let output = std::process::Command::new("./limited").current_dir(folder.path()).output().unwrap();
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains("64 ranks on this host need 320 file descriptors, the limit is 200"), "{text}");
    assert!(text.contains("help: raise it") && !folder.path().join("started").exists(), "{text}");
    // The soft limit is raised where the hard one lets us.
    folder.sh("soft", &format!("ulimit -Sn 100; exec '{oflaunch}' -n 16 ./ok"));
    let output = std::process::Command::new("./soft").current_dir(folder.path()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}
