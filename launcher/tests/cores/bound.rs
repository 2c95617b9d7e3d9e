//! Ranks that are bound to cores of their own, beside a busy process on one of these cores.

use std::fs;
use std::process::{Child, Command};

use crate::common::*;
use oflaunch::cores::{available, describe, set_of};
use rustix::process::{Pid, Signal};
use rustix::thread::sched_setaffinity;
use serde_json::Value;

/// A busy process on one core, as long as this lives.
struct Busy(Child);

impl Busy {
    fn on(core: usize) -> Busy {
        let busy = Busy(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        sched_setaffinity(Some(Pid::from_child(&busy.0)), &set_of(&[core])).unwrap();
        busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The cores that a process may use, as the kernel writes them.
fn mask(pid: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_string()
}

/// Two busy ranks on two cores, with a busy process on the first of them. Skips where there is only one core.
fn beside(options: &[&str]) -> Option<(Folder, Running, Busy, [usize; 2])> {
    let [first, second, ..] = *available() else {
        println!("skipped: this process may use one core only");
        return None;
    };
    // What this thread starts inherits it.
    sched_setaffinity(None, &set_of(&[first, second])).unwrap();
    let folder = Folder::new();
    folder.sh("work", &format!("{TELL_PID}; while :; do :; done"));
    let busy = Busy::on(first);
    let size = ["-n", "2", "-t", "1", "--events", "events", "--max-restarts", "1", "--timeout", "0"];
    let running = Running::start(&folder, &[&size, options, &["./work"]].concat());
    Some((folder, running, busy, [first, second]))
}

fn told(folder: &Folder) -> Vec<Value> {
    let text = fs::read_to_string(folder.path().join("events")).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
    whole.map(|l| serde_json::from_str(l).unwrap()).filter(|e: &Value| e["event"] == "other-work").collect()
}

#[test]
fn ranks_may_use_all_cores_of_the_job_once_other_work_uses_theirs() {
    let Some((folder, running, _busy, cores)) = beside(&[]) else { return };
    let all = describe(&cores);
    let pids = folder.pids(2);
    wait_for("the ranks to be let go", LONG, || pids.iter().all(|pid| mask(*pid) == all).then_some(()));
    let event = wait_for("the event", LONG, || told(&folder).pop());
    assert!(event["freed"] == true && event["waited"].as_f64().unwrap() > 0.03, "{event}");
    let message = event["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("ranks may now use all of cores {all}, as with `--bind none`")), "{message}");
    // For good: also after a restart.
    (0..2).for_each(|rank| fs::remove_file(folder.path().join(format!("pid{rank}"))).unwrap());
    kill(pids[1], Signal::KILL);
    for pid in folder.pids(2) {
        assert_eq!(mask(pid), all);
    }
    running.signal(Signal::TERM);
    let (_, text) = running.finish_whole(LONG);
    assert_eq!(text.matches(OTHER_WORK).count(), 1, "{text}");
    assert!(text.contains(&format!("oflaunch: {message}\n")), "{text}");
    assert_eq!(told(&folder).len(), 1);
}

#[test]
fn ranks_that_are_to_stay_on_their_cores_stay() {
    let Some((folder, running, _busy, cores)) = beside(&["--bind", "cores"]) else { return };
    let pids = folder.pids(2);
    let event = wait_for("the event", LONG, || told(&folder).pop());
    assert_eq!(event["freed"], false);
    for (pid, core) in pids.into_iter().zip(cores) {
        assert_eq!(mask(pid), core.to_string());
    }
    running.signal(Signal::TERM);
    let (_, text) = running.finish_whole(LONG);
    assert!(text.contains("ranks stay bound, as `--bind cores` asks; `--bind none` would let them move\n"), "{text}");
}

#[test]
fn a_calibration_beside_other_work_says_so() {
    let folder = Folder::new();
    let _busy = Busy::on(available()[0]);
    let mut calibrate = Command::new(env!("CARGO_BIN_EXE_oflow"));
    let output =
        calibrate.args(["calibrate", "-n", "1", "--out", "one.json"]).current_dir(folder.path()).output().unwrap();
    let text = stdout(&output);
    assert!(
        code(&output) == 0 && text.contains("\nwarning: other work used ") && text.contains("loaded host"),
        "{text}"
    );
    let mut job = oflaunch(&folder);
    let text = stdout(&job.args(["--dry-run", "true"]).env("OFLOW_MODEL", "one.json").output().unwrap());
    let line = text.lines().find(|l| l.starts_with("costs: one.json, measured with 1 ranks")).unwrap();
    assert!(line.contains("; other work used ") && line.ends_with(" cores during the measurement"), "{line}");
}
