//! The flight records of real jobs: they survive a full disk, a second job in the same folder, and files that are cut short or
//! broken.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::*;
use rustix::process::Signal;

/// The job's executable.
fn job() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| built(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/job.rs"), &[]))
}

/// A job of 2 ranks in an endless loop of collectives, with logs in a folder; its process ids.
fn endless(folder: &Folder, logs: &str) -> (Running, Vec<i32>) {
    let pids = folder.path().to_str().unwrap();
    let args = ["-n", "2", "--threads", "1", "--log-dir", logs, job(), "--", "forever", pids];
    let running = Running::start(folder, &args);
    let pids = folder.pids(2);
    (running, pids)
}

/// What `oflow postmortem` says of a folder.
fn postmortem(folder: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_oflow")).arg("postmortem").arg(folder).output().unwrap();
    (output.status.code(), stdout(&output) + &stderr(&output))
}

/// Files below a folder that end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path, end)),
            path if path.to_string_lossy().ends_with(end) => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

#[test]
fn a_launcher_that_is_killed_leaves_the_records_of_a_failed_job() {
    let folder = Folder::new();
    for logs in [Some("logs"), None] {
        let pids = folder.path().to_str().unwrap();
        let mut args = vec!["-n", "2", "--threads", "1"];
        args.extend(logs.iter().flat_map(|logs| ["--log-dir", logs]));
        args.extend([job(), "--", "forever", pids]);
        let running = Running::start(&folder, &args);
        let pids = folder.pids(2);
        running.signal(Signal::KILL);
        drop(running.finish());
        let copies = || {
            let all = files(folder.path(), ".json");
            (all.len() == 2 && files(folder.path(), ".ring").is_empty()).then_some(all)
        };
        let all = wait_for("the copies", LONG, copies);
        let (code, page) = postmortem(all[0].parent().unwrap());
        assert_eq!(code, Some(0), "{page}");
        assert!(pids.iter().all(|pid| page.contains(&format!("(pid {pid})"))), "{page}");
        for file in all.iter().cloned().chain((0..2).map(|rank| folder.path().join(format!("pid{rank}")))) {
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn after_a_plain_error_nobody_is_sent_to_the_records() {
    let folder = Folder::new();
    let output = run(&folder, &["-n", "2", "--threads", "1", job(), "--", "exit", "7"]);
    let text = stderr(&output);
    assert_eq!(code(&output), 7, "{text}");
    assert!(text.contains("oflaunch: flight records are in ") && !text.contains("oflow postmortem"), "{text}");
}

#[test]
fn a_rank_that_sigterm_ends_leaves_records_and_a_job_that_is_called_off_none() {
    let folder = Folder::new();
    let (running, pids) = endless(&folder, "logs");
    kill(pids[1], Signal::TERM);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(143), "{text}");
    assert_eq!(files(&folder.path().join("logs"), ".json").len(), 2, "{text}");
    let folder = Folder::new();
    let (running, _) = endless(&folder, "logs");
    running.signal(Signal::TERM);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(143), "{text}");
    assert_eq!(files(&folder.path().join("logs"), ".json").len(), 0, "{text}");
}

#[test]
fn a_full_disk_does_not_destroy_the_records() {
    let folder = Folder::new();
    let logs = folder.path().join("logs");
    let Some(_disk) = Mounted::tmpfs(&logs, "3m") else { return };
    let (running, pids) = endless(&folder, "logs");
    let mut filler = fs::File::create(logs.join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    kill(pids[1], Signal::KILL);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(137), "{text}");
    assert!(text.contains("cannot write ") && text.contains("No space left on device"), "{text}");
    assert!(text.contains("flight records are in "), "{text}");
    assert_eq!(files(&logs, ".ring").len(), 2, "{text}");
    let (code, page) = postmortem(&logs);
    assert_eq!(code, Some(0), "{page}");
    assert!(pids.iter().all(|pid| page.contains(&format!("(pid {pid})"))), "{page}");
    assert_eq!(files(&logs, ".json"), [""; 0].map(PathBuf::from));
}

#[test]
fn a_broken_record_is_named_and_the_others_are_used() {
    let folder = Folder::new();
    let (running, pids) = endless(&folder, "logs");
    kill(pids[1], Signal::KILL);
    running.finish();
    let logs = folder.path().join("logs");
    fs::write(logs.join("flight-0.json"), "{\"rank\":0,").unwrap();
    let (code, page) = postmortem(&logs);
    assert_eq!(code, Some(0), "{page}");
    assert!(page.contains(&format!("rank 1 (pid {})", pids[1])), "{page}");
    assert!(page.contains("cannot read the flight record ") && page.contains("flight-0.json"), "{page}");
    // With none that is readable there is nothing to tell but that.
    fs::write(logs.join("flight-1.json"), "").unwrap();
    let (code, page) = postmortem(&logs);
    assert_eq!(code, Some(1), "{page}");
    assert!(page.contains("flight-0.json") && page.contains("flight-1.json"), "{page}");
}

#[test]
fn a_second_job_in_the_folder_of_a_running_one_is_refused() {
    let folder = Folder::new();
    folder.sh("ok", "exit 0");
    let (running, pids) = endless(&folder, "logs");
    let output = run(&folder, &["-n", "1", "--log-dir", "logs", "./ok"]);
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains("another job writes to the log folder logs") && text.contains("--log-dir"), "{text}");
    kill(pids[1], Signal::KILL);
    let (_, text) = running.finish();
    assert!(text.contains("flight records are in logs"), "{text}");
    assert_eq!(files(&folder.path().join("logs"), ".json").len(), 2);
    assert!(postmortem(&folder.path().join("logs")).1.contains(&format!("(pid {})", pids[1])));
    // A job that has ended holds nothing.
    assert_eq!(code(&run(&folder, &["-n", "1", "--log-dir", "logs", "./ok"])), 0);
}

#[test]
fn hosts_of_one_job_share_a_log_folder() {
    let hosts = hosts::Hosts::new("2").with(&["--log-dir", "logs"]);
    hosts.folder.sh("ok", "echo hello");
    for running in [0, 1].map(|node| hosts.start(node, 1, "./ok")) {
        let (status, text) = running.finish();
        assert_eq!((status.code(), text.as_str()), (Some(0), ""));
    }
    assert_eq!(files(&hosts.folder.path().join("logs"), ".log").len(), 2);
}

#[test]
fn a_ring_that_is_cut_short_does_not_end_the_job() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let (running, pids) = endless(&folder, "logs");
    let rings = files(&folder.path().join("logs"), ".ring");
    assert_eq!(rings.len(), 2);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert!(rings.iter().all(|r| mode(r) == 0o600 && mode(r.parent().unwrap()) == 0o700), "{rings:?}");
    OpenOptions::new().write(true).open(&rings[0]).unwrap().set_len(0).unwrap();
    // Thousands of ops later both still run.
    let steps = |pid: i32| -> u64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(11).unwrap().parse().unwrap()
    };
    let before = steps(pids[0]);
    wait_for("the rank to go on", LONG, || (steps(pids[0]) > before + 20).then_some(()));
    running.signal(Signal::INT);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(130), "{text}");
}
