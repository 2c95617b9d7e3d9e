//! Several oflaunch processes on one machine as the hosts of one job: shell scripts as ranks, so what is tested is who starts
//! and ends when, who is named, and with which code every host ends.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::hosts::Hosts;
use crate::common::*;
use rustix::process::Signal;

/// How soon all of a job have to end after a failure.
const SOON: Duration = Duration::from_secs(5);

/// A rank that tells its process id and then runs on.
fn endless(hosts: &Hosts) {
    hosts.folder.sh("run", &format!("{TELL_PID}; while :; do sleep 0.2; done"));
}

fn reports(text: &str) -> Vec<&str> {
    text.lines().filter_map(|l| l.strip_prefix("oflaunch: ")).collect()
}

#[test]
fn hosts_meet_in_any_order_and_ranks_are_numbered_through() {
    let hosts = Hosts::new("3");
    hosts
        .folder
        .sh("env", "echo \"$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $NODE_RANK $NNODES $OFLOW_RESTART\"");
    // Node 0 last: the others wait for it.
    let outputs: Vec<_> = [(2, 1), (1, 3), (0, 2)].map(|(node, n)| hosts.start(node, n, "./env")).into();
    let mut lines: Vec<String> = Vec::new();
    for running in outputs {
        let (status, out, err) = running.finish_all();
        assert_eq!(status.code(), Some(0), "{err}");
        assert_eq!(err, "");
        lines.extend(out.lines().map(|l| l.split_once("] ").unwrap().1.to_string()));
    }
    lines.sort();
    assert_eq!(
        lines,
        ["0 0 6 2 0 3 0", "1 1 6 2 0 3 0", "2 0 6 3 1 3 0", "3 1 6 3 1 3 0", "4 2 6 3 1 3 0", "5 0 6 1 2 3 0"]
    );
}

#[test]
fn without_numbers_the_first_that_comes_hosts() {
    let hosts = Hosts::new("2");
    hosts.folder.sh("env", "echo \"$RANK of $WORLD_SIZE on $NODE_RANK\"");
    let both = [1, 2].map(|nproc| Running::of(&mut hosts.command(nproc, "./env")));
    let mut lines = Vec::new();
    for running in both {
        let (status, out, err) = running.finish_all();
        assert_eq!((status.code(), err.as_str()), (Some(0), ""));
        lines.extend(out.lines().map(|l| l.split_once("] ").unwrap().1.to_string()));
    }
    lines.sort();
    let first_has_one = ["0 of 3 on 0", "1 of 3 on 1", "2 of 3 on 1"];
    let first_has_two = ["0 of 3 on 0", "1 of 3 on 0", "2 of 3 on 1"];
    assert!(lines == first_has_one || lines == first_has_two, "{lines:?}");
}

#[test]
fn the_first_failure_ends_every_host_with_its_code() {
    let hosts = Hosts::new("3");
    hosts.folder.sh(
        "fail",
        &format!("{TELL_PID}; if [ $RANK = 3 ]; then while [ ! -e pid5 -o ! -e pid0 ]; do sleep 0.02; done; exit 7; fi; while :; do sleep 0.2; done"),
    );
    let all: Vec<_> = (0..3).map(|node| hosts.start(node, 2, "./fail")).collect();
    let pids: Vec<i32> = (0..6).map(|rank| hosts.pid(rank)).collect();
    let start = Instant::now();
    for running in all {
        let (status, text) = running.finish();
        assert_eq!(status.code(), Some(7), "{text}");
        let told = reports(&text);
        assert_eq!(told.len(), 1, "{text}");
        assert_eq!(told[0], format!("rank 3 (pid {}) exited with code 7", pids[3]));
    }
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_gone(&pids);
}

#[test]
fn a_killed_rank_is_named_on_every_host() {
    let hosts = Hosts::new("2");
    endless(&hosts);
    let all: Vec<_> = (0..2).map(|node| hosts.start(node, 2, "./run")).collect();
    let pids: Vec<i32> = (0..4).map(|rank| hosts.pid(rank)).collect();
    let start = Instant::now();
    kill(pids[1], Signal::KILL);
    for running in all {
        let (status, text) = running.finish();
        assert_eq!(status.code(), Some(137), "{text}");
        assert!(reports(&text)[0].starts_with(&format!("rank 1 (pid {}) was killed by signal 9", pids[1])), "{text}");
    }
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_gone(&pids);
}

#[test]
fn a_killed_agent_is_a_lost_node() {
    // Node 0's, which hosts the root, is no exception.
    for killed in [1, 0] {
        let hosts = Hosts::new("3");
        endless(&hosts);
        let mut all: Vec<_> = (0..3).map(|node| hosts.start(node, 1, "./run")).collect();
        let pids: Vec<i32> = (0..3).map(|rank| hosts.pid(rank)).collect();
        let start = Instant::now();
        all[killed].signal(Signal::KILL);
        drop(all.remove(killed));
        for running in all {
            let (status, text) = running.finish();
            assert_eq!(status.code(), Some(1), "{text}");
            let told = reports(&text);
            assert!(told[0].starts_with(&format!("node {killed} (")), "{text}");
            assert!(told[0].contains(") is lost: ") && told[0].contains("its oflaunch"), "{text}");
        }
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        assert_gone(&pids);
    }
}

#[test]
fn a_stopped_agent_is_a_lost_node() {
    let hosts = Hosts::new("2").with(&["--timeout", "0.5", "--outage-limit", "1"]);
    endless(&hosts);
    let all: Vec<_> = (0..2).map(|node| hosts.start(node, 1, "./run")).collect();
    let pids: Vec<i32> = (0..2).map(|rank| hosts.pid(rank)).collect();
    let [zero, one] = <[Running; 2]>::try_from(all).ok().unwrap();
    let start = Instant::now();
    one.signal(Signal::STOP);
    let (status, text) = zero.finish();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(reports(&text)[0].contains(") is lost: nothing heard from it for 3 s"), "{text}");
    // The report comes within 5 s; then the ranks, which do not hear, have half a second, and one more after SIGTERM.
    assert!(start.elapsed() < SOON + Duration::from_millis(1500), "{:?}", start.elapsed());
    drop(one);
    assert_gone(&pids);
}

#[test]
fn an_interrupt_on_one_host_ends_all() {
    let hosts = Hosts::new("2");
    endless(&hosts);
    let all: Vec<_> = (0..2).map(|node| hosts.start(node, 1, "./run")).collect();
    let pids: Vec<i32> = (0..2).map(|rank| hosts.pid(rank)).collect();
    all[1].signal(Signal::TERM);
    for running in all {
        let (status, text) = running.finish();
        assert_eq!(status.code(), Some(143), "{text}");
    }
    assert_gone(&pids);
}

#[test]
fn all_ranks_start_again() {
    let hosts = Hosts::new("2").with(&["--max-restarts", "2"]);
    // Fails twice, then is well.
    hosts.folder.sh(
        "again",
        "echo \"start $OFLOW_RESTART of $RANK\"; [ $RANK = 2 -a $OFLOW_RESTART -lt 2 ] && exit 5; [ $OFLOW_RESTART = 2 ] && exit 0; sleep 60",
    );
    let all: Vec<_> = (0..2).map(|node| hosts.start(node, 2, "./again")).collect();
    for (node, running) in all.into_iter().enumerate() {
        let (status, out, err) = running.finish_all();
        assert_eq!(status.code(), Some(0), "{err}");
        for (restart, rank) in (0..3).flat_map(|s| [(s, 2 * node), (s, 2 * node + 1)]) {
            assert!(out.contains(&format!("start {restart} of {rank}\n")), "{out}");
        }
        assert!(err.contains("exited with code 5; all ranks will be started again"), "{err}");
        assert!(err.contains("oflaunch: start 3 of at most 3: 4 ranks"), "{err}");
    }
}

#[test]
fn a_host_whose_ranks_have_all_ended_tells_why_too() {
    let hosts = Hosts::new("2").with(&["--max-restarts", "1"]);
    hosts.folder.sh("last", "[ $OFLOW_RESTART = 1 ] && exit 0; [ $RANK = 1 ] && exit 5; sleep 60");
    for running in [0, 1].map(|node| hosts.start(node, 1, "./last")) {
        let (status, _, err) = running.finish_all();
        assert_eq!(status.code(), Some(0), "{err}");
        assert!(err.contains("exited with code 5; all ranks will be started again"), "{err}");
    }
}

#[test]
fn a_job_goes_on_with_fewer_hosts() {
    let hosts = Hosts::new("1:2").with(&["--max-restarts", "1"]);
    hosts.folder.sh(
        "fewer",
        &format!("{TELL_PID}; echo \"$RANK of $WORLD_SIZE, start $OFLOW_RESTART\"; [ $OFLOW_RESTART = 1 ] && exit 0; while :; do sleep 0.2; done"),
    );
    let zero = hosts.start(0, 1, "./fewer");
    let one = hosts.start(1, 2, "./fewer");
    hosts.pid(0);
    hosts.pid(2);
    one.signal(Signal::KILL);
    drop(one);
    let (status, out, err) = zero.finish_all();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(out.contains("0 of 3, start 0") && out.contains("0 of 1, start 1"), "{out}");
    assert!(err.contains("node 1 (") && err.contains("all ranks will be started again"), "{err}");
    assert!(err.contains("start 2 of at most 2: 1 ranks on 1 hosts"), "{err}");
}

#[test]
fn hosts_that_do_not_come_are_not_waited_for_for_ever() {
    let hosts = Hosts::new("3").with(&["--join-timeout", "8"]);
    hosts.folder.sh("ok", "exit 0");
    let all = [0, 1].map(|node| hosts.start(node, 1, "./ok"));
    for running in all {
        let (status, text) = running.finish();
        assert_eq!(status.code(), Some(1), "{text}");
        assert!(text.contains("after 8 s the job cannot start: 2 of at least 3 hosts there ("), "{text}");
    }
}

#[test]
fn a_spare_host_says_what_it_waits_for_and_ends_with_the_job() {
    let hosts = Hosts::new("1:2").with(&["--max-restarts", "1"]);
    hosts.folder.sh("until", &format!("{TELL_PID}; while [ ! -e over ]; do sleep 0.05; done"));
    let zero = hosts.start(0, 1, "./until");
    let one = hosts.start(1, 1, "./until");
    hosts.pid(1);
    let (mut spare, mut lines) = Spare::start(&hosts, "./until");
    let text = lines.next().unwrap();
    assert!(text.contains("the job runs on 2 hosts already; this host joins it at the next restart"), "{text}");
    hosts.folder.write("over", "");
    assert_eq!(zero.finish().0.code(), Some(0));
    assert_eq!(one.finish().0.code(), Some(0));
    let text = lines.next().unwrap();
    assert!(text.contains("the job has ended without a part for this host"), "{text}");
    assert_eq!(spare.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_spare_host_takes_the_place_of_one_that_is_lost() {
    let hosts = Hosts::new("2").with(&["--max-restarts", "1"]);
    hosts.folder.sh("again", &format!("{TELL_PID}; [ $OFLOW_RESTART = 1 ] && exit 0; while :; do sleep 0.2; done"));
    let zero = hosts.start(0, 1, "./again");
    let one = hosts.start(1, 1, "./again");
    hosts.pid(1);
    let (mut spare, mut lines) = Spare::start(&hosts, "./again");
    assert!(lines.next().unwrap().contains("this host joins it at"));
    one.signal(Signal::KILL);
    drop(one);
    let text: Vec<String> = lines.collect();
    assert_eq!(spare.0.wait().unwrap().code(), Some(0), "{text:?}");
    assert!(text.iter().any(|l| l.contains("start 2 of at most 2: 2 ranks on 2 hosts")), "{text:?}");
    assert_eq!(zero.finish().0.code(), Some(0));
}

/// A host for which there is no place. It does not outlive the test.
struct Spare(Child);

impl Spare {
    /// Starts it; the second is what it says, line by line.
    fn start(hosts: &Hosts, program: &str) -> (Spare, impl Iterator<Item = String> + use<>) {
        let mut command = hosts.command(1, program);
        let mut spare = Spare(command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
        let lines = BufReader::new(spare.0.stderr.take().unwrap()).lines().map(Result::unwrap);
        (spare, lines)
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        let _may_have_ended = self.0.kill();
        let _may_be_reaped = self.0.wait();
    }
}

#[test]
fn one_host_alone_restarts_too() {
    let folder = Folder::new();
    folder.sh("again", "[ $OFLOW_RESTART = 0 -a $RANK = 1 ] && exit 4; exit 0");
    let output = run(&folder, &["-n", "2", "--max-restarts", "3", "./again"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("start 2 of at most 4: 2 ranks"), "{}", stderr(&output));
    folder.sh("never", "[ $RANK = 1 ] && exit 4; exit 0");
    let output = run(&folder, &["-n", "2", "--max-restarts", "1", "./never"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
}

#[test]
fn a_token_is_made_and_told_once() {
    let hosts = Hosts::new("2");
    hosts.folder.sh("ok", "exit 0");
    let mut zero = hosts.command(1, "./ok");
    zero.env_remove("OFLOW_TOKEN").args(["--node-rank", "0"]);
    let mut zero: Child = zero.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(zero.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert_eq!(first, "oflaunch: whoever has the job's token may join; on each other host run");
    let command = lines.next().unwrap().unwrap();
    let mut other = Command::new("sh");
    other
        .args(["-c", &command])
        .current_dir(hosts.folder.path())
        .env("OFLOW_MODEL", "default")
        .env_remove("OFLOW_TOKEN");
    let output = other.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(zero.wait().unwrap().code(), Some(0));
}

#[test]
fn who_does_not_belong_is_refused_with_a_reason() {
    let hosts = Hosts::new("2");
    endless(&hosts);
    let zero = hosts.start(0, 1, "./run");
    // Without a token, with another one, for another number of hosts, as a node that there is, with another program.
    let refused = |change: &dyn Fn(&mut Command), wanted: &str| {
        let mut command = hosts.command(1, "./run");
        change(&mut command);
        let output = command.output().unwrap();
        let text = stderr(&output);
        assert_eq!(code(&output), 1, "{text}");
        assert!(text.contains(wanted), "{text}");
    };
    let one = |c: &mut Command| {
        c.args(["--node-rank", "1"]);
    };
    refused(
        &|c| {
            one(c);
            c.env_remove("OFLOW_TOKEN");
        },
        "this host needs the token of the job it joins",
    );
    refused(
        &|c| {
            one(c);
            c.env("OFLOW_TOKEN", "f".repeat(64));
        },
        "does not know this job token",
    );
    refused(
        &|c| {
            c.env("OFLOW_TOKEN", "secret");
        },
        "environment variable OFLOW_TOKEN is malformed: a job token is 64 hexadecimal digits",
    );
    let other = Hosts { nodes: "3".into(), folder: Folder::new(), rdzv: hosts.rdzv.clone(), options: vec![] };
    endless(&other);
    let output = other.command(1, "./run").args(["--node-rank", "1"]).output().unwrap();
    assert!(stderr(&output).contains("give all the same --nnodes"), "{}", stderr(&output));
    let other = Hosts { nodes: "2".into(), ..other };
    other.folder.sh("run", "exit 0");
    let output = other.command(1, "./run").args(["--node-rank", "1"]).output().unwrap();
    assert!(stderr(&output).contains("they are different builds of the program"), "{}", stderr(&output));
    // The job is none the worse.
    let one = hosts.start(1, 1, "./run");
    let pids = [hosts.pid(0), hosts.pid(1)];
    kill(pids[0], Signal::TERM);
    let (status, text) = zero.finish();
    assert_eq!(status.code(), Some(143), "{text}");
    assert!(text.contains("without the job token: refused"), "{text}");
    drop(one.finish());
}

#[test]
fn idle_connections_do_no_harm() {
    let hosts = Hosts::new("2");
    hosts.folder.sh("ok", "exit 0");
    let zero = hosts.start(0, 1, "./ok");
    wait_for("node 0 to listen", LONG, || TcpStream::connect(&hosts.rdzv).ok());
    // More than may be there at once; nobody says a word.
    let _files = ManyFiles::open(2500);
    let mut idle = Vec::new();
    for _ in 0..1500 {
        idle.extend(TcpStream::connect(&hosts.rdzv));
    }
    let start = Instant::now();
    let one = hosts.start(1, 1, "./ok");
    let (status, text) = one.finish();
    assert_eq!(status.code(), Some(0), "{text}");
    let (status, text) = zero.finish();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(text.contains("without the job token: closed, more than 516 at once"), "{text}");
}

#[test]
fn contradictions_are_told_before_anything_starts() {
    let folder = Folder::new();
    folder.sh("ok", "exit 0");
    let output = run(&folder, &["--nnodes", "2", "./ok"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--nnodes 2 needs --rdzv HOST:PORT"), "{}", stderr(&output));
    let output = run(&folder, &["--nnodes", "2", "--rdzv", "192.0.2.1:5", "--node-rank", "0", "./ok"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("cannot listen at 192.0.2.1:5"), "{}", stderr(&output));
}

#[test]
fn a_dry_run_tells_of_the_hosts() {
    let hosts = Hosts::new("1:4");
    hosts.folder.sh("ok", "exit 0");
    let output = hosts.command(2, "./ok").args(["--dry-run", "--node-rank", "3"]).output().unwrap();
    let text = stdout(&output);
    assert!(text.contains(&format!("hosts: 1:4, which meet at {}; number of this one: 3", hosts.rdzv)), "{text}");
}

/// Somebody listens at the address of node 0 before node 0 does: what hosts that join say is of no use to them.
#[test]
fn who_listens_in_node_0s_place_learns_nothing() {
    let token = "5c".repeat(32);
    for answer in [&b""[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0; 64], b"oflowctl\x01\0\0\0\0\0\0\0"] {
        let folder = Folder::new();
        folder.sh("ok", "exit 0");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let rdzv = listener.local_addr().unwrap().to_string();
        let answer = answer.to_vec();
        let heard = std::thread::spawn(move || {
            let mut heard = vec![];
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let _gone = std::io::Write::write_all(&mut stream, &answer);
            let mut part = [0; 4096];
            while let Ok(n @ 1..) = std::io::Read::read(&mut stream, &mut part) {
                heard.extend_from_slice(&part[..n]);
            }
            heard
        });
        let args = ["--nnodes", "2", "--node-rank", "1", "--rdzv", &rdzv, "--join-timeout", "2", "./ok"];
        let output = oflaunch(&folder).args(args).env("OFLOW_TOKEN", &token).output().unwrap();
        let (heard, text) = (heard.join().unwrap(), stderr(&output));
        assert_eq!(code(&output), 1, "{text}");
        assert!(heard.starts_with(b"oflowctl") && heard.len() == 32, "{heard:?}");
        assert!(!heard.windows(4).any(|w| w == b"5c5c" || w == [0x5c; 4]), "{heard:?}");
        assert!(text.contains(&rdzv), "{text}");
    }
}

/// Passes connections to a server on, each byte after this time, and nothing while the link is `out`.
fn slowly(to: String, delay: Duration, out: &'static AtomicBool) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // The threads end with the connections.
    std::thread::spawn(move || {
        while let Ok((near, _)) = listener.accept() {
            // Who finds nobody comes again.
            let Ok(far) = TcpStream::connect(&to) else { continue };
            for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                let (later, parts) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
                std::thread::spawn(move || {
                    let mut part = [0; 4096];
                    while let Ok(n @ 1..) = std::io::Read::read(&mut from, &mut part) {
                        let _gone = later.send((Instant::now() + delay, part[..n].to_vec()));
                    }
                });
                std::thread::spawn(move || {
                    for (at, part) in parts {
                        // The latency of the link.
                        std::thread::sleep(at.saturating_duration_since(Instant::now()));
                        while out.load(Ordering::Acquire) {
                            // The outage of the link.
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        let _gone = std::io::Write::write_all(&mut to, &part);
                    }
                    let _gone = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    address
}

/// Of a link that is never out.
static WELL: AtomicBool = AtomicBool::new(false);

#[test]
fn a_round_trip_of_two_seconds_is_waited_for() {
    let hosts = Hosts::new("2");
    hosts.folder.sh("ok", "exit 0");
    let zero = hosts.start(0, 1, "./ok");
    let far = Hosts {
        folder: Folder::new(),
        rdzv: slowly(hosts.rdzv.clone(), Duration::from_secs(1), &WELL),
        ..Hosts::new("2")
    };
    far.folder.sh("ok", "exit 0");
    let one = far.start(1, 1, "./ok");
    for running in [one, zero] {
        let (status, text) = running.finish_within(Duration::from_secs(60));
        assert_eq!(status.code(), Some(0), "{text}");
        assert!(!text.contains("token"), "{text}");
    }
}

#[test]
fn node_0_waits_for_a_host_that_comes_back() {
    let hosts = Hosts::new("2").with(&["--max-restarts", "1", "--timeout", "0.5"]);
    hosts.folder.sh("again", &format!("{TELL_PID}; [ $OFLOW_RESTART = 1 ] && exit 0; while :; do sleep 0.2; done"));
    for comes_back in [true, false] {
        let zero = hosts.start(0, 1, "./again");
        let one = hosts.start(1, 1, "./again");
        let pids = [hosts.pid(0), hosts.pid(1)];
        one.signal(Signal::KILL);
        drop(one);
        assert_gone(&pids);
        if comes_back {
            let (status, text) = hosts.start(1, 1, "./again").finish();
            assert_eq!(status.code(), Some(0), "{text}");
        } else {
            zero.signal(Signal::INT);
        }
        let (status, text) = zero.finish();
        assert_eq!(status.code(), Some(if comes_back { 0 } else { 130 }), "{text}");
        assert!(
            text.contains("its oflaunch was killed, or the network is cut; all ranks will be started again"),
            "{text}"
        );
        assert_eq!(text.contains("start 2 of at most 2: 2 ranks"), comes_back, "{text}");
        for rank in 0..2 {
            std::fs::remove_file(hosts.folder.path().join(format!("pid{rank}"))).unwrap();
        }
    }
}

#[test]
fn a_host_that_was_cut_off_comes_back_by_itself() {
    static OUT: AtomicBool = AtomicBool::new(false);
    let options = ["--max-restarts", "1", "--timeout", "0.5", "--outage-limit", "1"];
    let hosts = Hosts::new("2").with(&options);
    let rdzv = slowly(hosts.rdzv.clone(), Duration::ZERO, &OUT);
    let far = Hosts { folder: Folder::new(), rdzv, ..Hosts::new("2").with(&options) };
    for folder in [&hosts.folder, &far.folder] {
        folder.sh("again", &format!("{TELL_PID}; [ $OFLOW_RESTART = 1 ] && exit 0; while :; do sleep 0.2; done"));
    }
    let jobs = [hosts.start(0, 1, "./again"), far.start(1, 1, "./again")];
    let pids = [hosts.pid(0), far.pid(1)];
    OUT.store(true, Ordering::Release);
    // Both ends give the other one up.
    assert_gone(&pids);
    OUT.store(false, Ordering::Release);
    for (running, other) in jobs.into_iter().zip([1, 0]) {
        let (status, text) = running.finish_within(Duration::from_secs(60));
        assert_eq!(status.code(), Some(0), "{text}");
        assert!(
            text.contains(&format!("node {other} (")) && text.contains(" is lost: nothing heard from it for "),
            "{text}"
        );
        assert!(text.contains("; all ranks will be started again"), "{text}");
        assert!(text.contains("start 2 of at most 2: 2 ranks"), "{text}");
    }
}
