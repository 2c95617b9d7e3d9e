//! Signals to oflaunch beside those that `processes.rs` tests: Ctrl-Z, a hang-up that is ignored, and a rank in another group.

use std::fs;
use std::process::Command;

use crate::common::*;
use rustix::process::Signal;

/// Ranks that run until the file `over` is there.
fn until_over(folder: &Folder) {
    folder.sh("until", &format!("{TELL_PID}; while [ ! -e over ]; do sleep 0.02; done"));
}

/// The state of a process: T is stopped.
fn state(pid: i32) -> Option<char> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit_once(") ")?.1.chars().next()
}

/// Whether this process ignores a signal, as those that it starts then do.
fn ignores(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|l| u64::from_str_radix(l.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn ctrl_z_stops_the_ranks_as_well() {
    let folder = Folder::new();
    until_over(&folder);
    let running = Running::start(&folder, &["-n", "2", "./until"]);
    let pids = folder.pids(2);
    let all = [pids[0], pids[1], parent(pids[0])];
    running.signal(Signal::TSTP);
    wait_for("all to stop", LONG, || all.iter().all(|p| state(*p) == Some('T')).then_some(()));
    running.signal(Signal::CONT);
    wait_for("all to continue", LONG, || all.iter().all(|p| state(*p) != Some('T')).then_some(()));
    folder.write("over", "");
    let (status, text) = running.finish();
    assert_eq!((status.code(), text.as_str()), (Some(0), ""));
}

#[test]
fn a_hang_up_that_is_ignored_stays_so() {
    let folder = Folder::new();
    until_over(&folder);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_oflaunch"), "-n", "1", "./until"]);
    command.current_dir(folder.path()).env("TMPDIR", folder.path()).env("OFLOW_MODEL", "default");
    let running = Running::of(&mut command);
    let pids = folder.pids(1);
    running.signal(Signal::HUP);
    kill(pids[0], Signal::HUP);
    folder.write("over", "");
    let (status, text) = running.finish();
    assert_eq!((status.code(), text.as_str()), (Some(0), ""));
    // Without nohup it ends the job.
    if ignores(Signal::HUP) {
        return println!("the rest is not tested: these tests run under nohup");
    }
    let folder = Folder::new();
    until_over(&folder);
    let running = Running::start(&folder, &["-n", "1", "./until"]);
    folder.pids(1);
    running.signal(Signal::HUP);
    assert_eq!(running.finish().0.code(), Some(129));
}

#[test]
fn a_rank_that_has_changed_its_group_gets_signals() {
    if !Command::new("python3").arg("-V").output().is_ok_and(|o| o.status.success()) {
        return eprintln!("there is no python3 here: not tested");
    }
    let folder = Folder::new();
    // Into the group of oflaunch, which is not to get the signal a second time.
    folder.write(
        "moves.py",
        "import os, time\nos.setpgid(0, os.getpgid(os.getppid()))\nopen('pid0.new', 'w').write(str(os.getpid()))\n\
         os.rename('pid0.new', 'pid0')\nwhile True:\n    time.sleep(0.2)\n",
    );
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let _old = fs::remove_file(folder.path().join("pid0"));
        let running = Running::of(oflaunch(&folder).args(["-n", "1", "./moves.py"]));
        let pids = folder.pids(1);
        running.signal(signal);
        let (status, text) = running.finish();
        assert_eq!(status.code(), Some(code), "{text}");
        assert_eq!(state(pids[0]), None);
    }
}
