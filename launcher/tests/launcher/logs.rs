//! Logs and events of real oflaunch runs.

use crate::common::*;
use serde_json::Value;
use std::fs;

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|e| e["event"].as_str().unwrap()).collect()
}

#[test]
fn every_rank_has_a_log_and_the_job_its_events() {
    let folder = Folder::new();
    folder.sh("talk", "echo out $RANK; echo err $RANK >&2; printf open");
    let output = run(&folder, &["-n", "2", "--log-dir", "logs", "--events", "more.jsonl", "./talk"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for rank in 0..2 {
        let text = fs::read_to_string(folder.path().join(format!("logs/rank-{rank}.log"))).unwrap();
        let mut lines: Vec<&str> = text.lines().map(|l| l.split_once("Z ").expect("a time").1).collect();
        lines.sort_unstable();
        let [err, open, out] = &lines[..] else { panic!("{text}") };
        assert_eq!(*err, format!("rank {rank} err: err {rank}"));
        assert_eq!(*open, format!("rank {rank} out: open"));
        assert_eq!(*out, format!("rank {rank} out: out {rank}"));
    }
    let text = fs::read_to_string(folder.path().join("logs/events.jsonl")).unwrap();
    assert_eq!(text, fs::read_to_string(folder.path().join("more.jsonl")).unwrap());
    let events = events(&text);
    assert_eq!(names(&events), ["start", "rank-started", "rank-started", "rank-ended", "rank-ended", "end"]);
    assert_eq!((&events[0]["world"], &events[0]["nproc"], &events[0]["restart"]), (&2.into(), &2.into(), &0.into()));
    assert!(events[1]["pid"].as_i64().unwrap() > 1);
    assert_eq!(events[5]["code"], 0);
    assert!(events.windows(2).all(|w| w[0]["time"].as_f64().unwrap() <= w[1]["time"].as_f64().unwrap()));
}

#[test]
fn a_failure_is_an_event() {
    let folder = Folder::new();
    folder.sh("fail", "test $RANK = 0 || exit 7; sleep 60");
    let output = run(&folder, &["-n", "2", "--timeout", "0", "--events", "e", "./fail"]);
    assert_eq!(code(&output), 7);
    let events = events(&fs::read_to_string(folder.path().join("e")).unwrap());
    let failures: Vec<&Value> = events.iter().filter(|e| e["event"] == "failure").collect();
    let [failure] = failures[..] else { panic!("{events:?}") };
    assert_eq!((&failure["rank"], &failure["kind"]), (&1.into(), &"exited".into()));
    assert!(failure["message"].as_str().unwrap().contains("exited with code 7"), "{failure}");
    let ended = events.iter().find(|e| e["event"] == "rank-ended" && e["rank"] == 1).unwrap();
    assert_eq!(ended["code"], 7);
    assert_eq!(events.last().unwrap()["code"], 7);
}

#[test]
fn a_full_disk_behind_stdout_does_not_end_the_job() {
    let folder = Folder::new();
    folder.sh("talk", "for i in 1 2 3; do echo out; done; echo done >&2");
    for streams in 1..=2 {
        let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = oflaunch(&folder);
        command.args(["-n", "2", "--log-dir", &format!("logs{streams}"), "./talk"]).stdout(full());
        if streams == 2 {
            command.stderr(full());
        }
        let output = command.output().unwrap();
        let text = stderr(&output);
        assert_eq!(code(&output), 0, "{text}");
        if streams == 1 {
            assert_eq!(
                text.matches("oflaunch: cannot write the output of the ranks: No space left").count(),
                1,
                "{text}"
            );
            assert_eq!(text.matches("] done").count(), 2, "{text}");
        }
        let log = fs::read_to_string(folder.path().join(format!("logs{streams}/rank-1.log"))).unwrap();
        assert_eq!(log.matches(" out: out").count(), 3, "{log}");
    }
}

#[test]
fn a_job_whose_logs_are_required_ends_when_one_cannot_be_written() {
    let folder = Folder::new();
    folder.sh("talk", "echo out; sleep 60");
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for args in [&["--events", "/dev/full", "--no-prefix"][..], &[]] {
        let mut command = oflaunch(&folder);
        command.args(["-n", "2", "--timeout", "0", "--require-logs"]).args(args).arg("./talk");
        if args.is_empty() {
            command.stdout(full());
        }
        let began = std::time::Instant::now();
        let output = command.output().unwrap();
        let text = stderr(&output);
        assert_eq!(code(&output), 1, "{text}");
        let what = if args.is_empty() { "the output of the ranks" } else { "events to /dev/full" };
        let said = format!(
            "oflaunch: cannot write {what}: No space left on device (os error 28); --require-logs ends the job"
        );
        assert_eq!(text.matches(&said).count(), 1, "{text}");
        assert!(began.elapsed() < LONG, "{text}");
    }
    // Without the option it is said, and the job goes on.
    folder.sh("short", "echo out");
    let output = run(&folder, &["-n", "2", "--events", "/dev/full", "./short"]);
    let text = stderr(&output);
    assert_eq!((code(&output), stdout(&output).lines().count()), (0, 2), "{text}");
    assert_eq!(text.matches("cannot write events to /dev/full: No space left").count(), 1, "{text}");
}

#[test]
fn a_log_that_does_not_fit_on_its_disk_is_told() {
    let folder = Folder::new();
    folder.sh("much", "head -c 200000 /dev/zero | tr '\\0' x; echo");
    for required in [false, true] {
        let logs = folder.path().join("logs");
        let Some(_disk) = Mounted::tmpfs(&logs, "64k") else { return };
        let mut args = vec!["-n", "1", "--log-dir", "logs", "--events", "e"];
        args.extend(required.then_some("--require-logs"));
        args.push("./much");
        let output = run(&folder, &args);
        let text = stderr(&output);
        let events = events(&fs::read_to_string(folder.path().join("e")).unwrap());
        assert_eq!(events.last().unwrap()["code"], i32::from(required), "{events:?}");
        assert!(text.contains("cannot write the log logs/rank-0.log: No space left"), "{required}: {text}");
        assert_eq!(code(&output), i32::from(required), "{text}");
    }
}

#[test]
fn a_folder_without_room_ends_no_job() {
    let folder = Folder::new();
    folder.sh("ok", "touch ran$RANK");
    let logs = folder.path().join("logs");
    let Some(_disk) = Mounted::tmpfs(&logs, "64k") else { return };
    assert!(fs::write(logs.join("fill"), vec![1; 128 << 10]).is_err());
    let output = run(&folder, &["-n", "2", "--log-dir", "logs", "./ok"]);
    let text = stderr(&output);
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.contains("logs/events.jsonl: No space left"), "{text}");
    assert!(folder.path().join("ran0").exists() && folder.path().join("ran1").exists());
    // Where it is asked for, it does.
    let output = run(&folder, &["-n", "2", "--log-dir", "logs", "--require-logs", "./ok"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
}

#[test]
fn a_silent_rank_has_an_empty_log() {
    let folder = Folder::new();
    folder.sh("half", "[ $RANK = 1 ] || echo hello");
    let output = run(&folder, &["-n", "2", "--log-dir", "logs", "./half"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let size = |rank: u32| fs::metadata(folder.path().join(format!("logs/rank-{rank}.log"))).unwrap().len();
    assert!(size(0) > 0 && size(1) == 0);
}

#[test]
fn what_cannot_be_written_is_said_before_anything_runs() {
    let folder = Folder::new();
    folder.sh("never", "touch ran");
    for option in [["--events", "/nowhere/e"], ["--log-dir", "/proc/logs"]] {
        let output = run(&folder, &[&["-n", "1"], &option[..], &["./never"]].concat());
        assert_eq!(code(&output), 1);
        assert!(stderr(&output).contains(option[1]), "{}", stderr(&output));
    }
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn a_dry_run_shows_where_things_would_go() {
    let folder = Folder::new();
    folder.sh("never", "touch ran");
    let args =
        ["-n", "1", "--dry-run", "--log-dir", "logs", "--events", "e", "--stall", "60", "--bind", "none", "./never"];
    let output = run(&folder, &args);
    let text = stdout(&output);
    for line in [
        "ends:  3 s after a failure, 60 s after a stall",
        "logs:  logs",
        "event: logs/events.jsonl",
        "event: e",
        "rank 0: all cores",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_that_others_can_write_to_is_refused_and_links_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    folder.sh("ok", "echo hello");
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let mode = |mode: u32| fs::set_permissions(&logs, fs::Permissions::from_mode(mode)).unwrap();
    let start = |trust: &str| {
        let args = ["-n", "1", "--log-dir", logs.to_str().unwrap(), "./ok"];
        oflaunch(&folder).args(args).env("OFLOW_TRUST_FOLDERS", trust).output().unwrap()
    };
    mode(0o777);
    let output = start("");
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains("can be written to by other users") && text.contains("chmod go-w"), "{text}");
    assert_eq!(code(&start("1")), 0);
    for name in ["events.jsonl", "rank-0.log"] {
        mode(0o755);
        let secret = folder.write("secret", "nobody else's");
        fs::remove_dir_all(&logs).unwrap();
        fs::create_dir(&logs).unwrap();
        symlink(&secret, logs.join(name)).unwrap();
        // In a sticky folder the link may be anybody's.
        mode(0o1777);
        let text = stderr(&start(""));
        assert!(text.contains(name), "{text}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "nobody else's", "{name}");
    }
}

#[test]
fn a_folder_is_nobody_elses_to_write_to_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.sh("ok", "echo hello");
    let oflaunch = env!("CARGO_BIN_EXE_oflaunch");
    folder.sh("open", &format!("umask 000; exec '{oflaunch}' -n 1 --log-dir a/b ./ok"));
    let output = std::process::Command::new("./open").current_dir(folder.path()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for path in ["a", "a/b", "a/b/events.jsonl", "a/b/rank-0.log"] {
        let mode = fs::metadata(folder.path().join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{path}: {mode:o}");
    }
}

#[test]
fn a_job_without_flight_records_says_so() {
    let folder = Folder::new();
    folder.sh("ok", "echo hello");
    let output = oflaunch(&folder).args(["-n", "1", "./ok"]).env("TMPDIR", "/nowhere/at/all").output().unwrap();
    let text = stderr(&output);
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.contains("no flight records of this job are kept") && text.contains("/nowhere/at/all"), "{text}");
}
