//! Nothing of a job stays behind, whatever the ranks have started: when the job ends, and when oflaunch is killed in a way that
//! leaves it no time.

use std::fs;
use std::time::Duration;

use crate::common::*;
use rustix::process::{Pid, Signal, test_kill_process};

/// The processes whose command line has that word.
fn with_word(word: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|d| d.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).any(|w| w == word.as_bytes())
    };
    pids.filter(has).collect()
}

/// The guardian of a job, by the mark that its ranks have.
fn guardian_of(rank: i32) -> i32 {
    let environment = fs::read(format!("/proc/{rank}/environ")).unwrap();
    let text = String::from_utf8_lossy(&environment).into_owned();
    let mark = text.split('\0').find_map(|v| v.strip_prefix("OFLOW_JOB=")).expect("ranks have a mark").to_string();
    let found: Vec<i32> = with_word("oflow-guardian").into_iter().filter(|g| with_word(&mark).contains(g)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

fn alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Starts two ranks, each with children in its group, in a session of their own, and without the rank's environment.
fn started(folder: &Folder) -> (Running, Vec<i32>) {
    folder.sh(
        "rank",
        "sleep 1009 & echo $! > child$RANK.1
         setsid sleep 1009 & echo $! > child$RANK.2
         env -i sleep 1009 & echo $! > child$RANK.3
         (setsid sh -c 'setsid sleep 1009 & echo $! > child$RANK.4.new; mv child$RANK.4.new child$RANK.4; sleep 1009') &
         echo $$ > pid$RANK
         sleep 1009",
    );
    let running = Running::of(oflaunch(folder).args(["-n", "2", "./rank"]));
    let mut pids = vec![];
    for rank in 0..2 {
        for name in ["pid", "child"] {
            let all = if name == "pid" {
                vec![format!("pid{rank}")]
            } else {
                (1..=4).map(|k| format!("child{rank}.{k}")).collect()
            };
            for file in all {
                let path = folder.path().join(file);
                let pid = wait_for("a process", LONG, || fs::read_to_string(&path).ok()?.trim().parse::<i32>().ok());
                pids.push(pid);
            }
        }
    }
    (running, pids)
}

#[test]
fn nothing_stays_when_the_launcher_is_killed() {
    let folder = Folder::new();
    let (running, mut pids) = started(&folder);
    wait_for("the children to run", LONG, || pids.iter().all(|p| alive(*p)).then_some(()));
    pids.push(guardian_of(pids[0]));
    running.signal(Signal::KILL);
    wait_for("all to be gone", Duration::from_secs(10), || pids.iter().all(|p| !alive(*p)).then_some(()));
    drop(running.finish());
}

#[test]
fn the_guardian_ends_with_the_job() {
    let folder = Folder::new();
    folder.sh("rank", "echo $$ > pid.new; mv pid.new pid; read line < gate");
    rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("gate"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let running = Running::of(oflaunch(&folder).args(["-n", "1", "./rank"]));
    let path = folder.path().join("pid");
    let rank: i32 = wait_for("the rank", LONG, || fs::read_to_string(&path).ok()?.trim().parse().ok());
    let guardian = guardian_of(rank);
    assert!(alive(guardian));
    fs::write(folder.path().join("gate"), "go\n").unwrap();
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(test_kill_process(Pid::from_raw(guardian).unwrap()).is_err(), "the guardian is still there");
}

/// A signal of the terminal, which the whole foreground group gets, and `pkill oflaunch` are not for the guardian.
#[test]
fn the_guardian_is_in_nobodys_way() {
    let folder = Folder::new();
    let (running, pids) = started(&folder);
    let guardian = guardian_of(pids[0]);
    let of = |pid: i32, field: usize| -> i32 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(field).unwrap().parse().unwrap()
    };
    assert_eq!((of(guardian, 2), of(guardian, 3)), (guardian, guardian), "its own group and session");
    assert_eq!(fs::read_to_string(format!("/proc/{guardian}/comm")).unwrap().trim(), "oflow-guardian");
    running.signal(Signal::KILL);
    wait_for("all to be gone", Duration::from_secs(10), || pids.iter().all(|p| !alive(*p)).then_some(()));
    drop(running.finish());
}

/// A daemon of a rank: in a session of its own, and no child of the rank any more.
const DAEMON: &str = "(setsid sh -c 'echo $$ > daemon.new; mv daemon.new daemon; exec sleep 1009' &)
                      while [ ! -e daemon ]; do sleep 0.02; done";

fn daemon(folder: &Folder) -> i32 {
    let path = folder.path().join("daemon");
    wait_for("the daemon", LONG, || fs::read_to_string(&path).ok()?.trim().parse().ok())
}

#[test]
fn a_daemon_of_a_rank_ends_with_the_job() {
    for (end, code) in [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)] {
        let folder = Folder::new();
        folder.sh("rank", &format!("{DAEMON}; {end}"));
        let output = run(&folder, &["-n", "1", "./rank"]);
        assert_eq!(crate::common::code(&output), code, "{}", stderr(&output));
        assert!(!alive(daemon(&folder)), "{end}");
    }
    // After a Ctrl-C, too, which it does not get.
    let folder = Folder::new();
    folder.sh("rank", &format!("{DAEMON}; exec sleep 1009"));
    let running = Running::of(oflaunch(&folder).args(["-n", "1", "./rank"]));
    let daemon = daemon(&folder);
    running.signal(Signal::INT);
    let (status, text) = running.finish();
    assert_eq!(status.code(), Some(130), "{text}");
    assert!(!alive(daemon));
}

#[test]
fn a_daemon_of_one_start_does_not_live_in_the_next() {
    let folder = Folder::new();
    folder.sh(
        "rank",
        &format!(
            "if [ $OFLOW_RESTART = 1 ]; then
                 grep -q zombie /proc/$(cat daemon)/status 2>/dev/null || ! kill -0 $(cat daemon) 2>/dev/null
                 exit $?
             fi
             {DAEMON}; exit 3"
        ),
    );
    let output = run(&folder, &["-n", "1", "--max-restarts", "1", "./rank"]);
    assert_eq!(crate::common::code(&output), 0, "{}", stderr(&output));
}

#[test]
fn a_launcher_whose_file_is_gone_restarts() {
    let folder = Folder::new();
    let copy = folder.path().join("oflaunch");
    fs::copy(env!("CARGO_BIN_EXE_oflaunch"), &copy).unwrap();
    folder.sh("rank", "[ $OFLOW_RESTART = 1 ] && exit 0; rm oflaunch; exit 3");
    let mut command = std::process::Command::new(copy);
    command.current_dir(folder.path()).env("TMPDIR", folder.path()).env("OFLOW_MODEL", "default");
    command.args(["-n", "1", "--max-restarts", "1", "./rank"]);
    // A process that another test has just forked may hold the copy open for writing until it becomes its own program.
    let output = loop {
        match command.output() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    assert_eq!(crate::common::code(&output), 0, "{}", stderr(&output));
}
