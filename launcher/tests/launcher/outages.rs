//! Outages of the network between hosts, and hosts that stand still: short ones are survived with the same bits, after longer ones
//! the job restarts from its last checkpoint.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::hosts::{Hosts, TOKEN, free_port};
use crate::common::*;
use rustix::process::Signal;

/// Time-out of a job here, its outages included.
const WHOLE: Duration = Duration::from_secs(120);

/// Two hosts, each a network namespace, on one bridge. They are removed in the end.
struct Net(String);

impl Net {
    /// Says so where namespaces are not allowed.
    fn new(name: &str) -> Option<Net> {
        let net = Net(format!("{name}{}", std::process::id()));
        let bridge = net.bridge();
        let made = ip(&["netns", "add", &net.host(0)]) && ip(&["netns", "add", &net.host(1)]);
        if !made || !ip(&["link", "add", &bridge, "type", "bridge"]) || !ip(&["link", "set", &bridge, "up"]) {
            eprintln!("no network namespaces here: not tested");
            return None;
        }
        for host in 0..2 {
            let (port, inside) = (format!("{bridge}{host}"), net.host(host));
            assert!(ip(&["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &inside]));
            assert!(ip(&["link", "set", &port, "master", &bridge, "up"]));
            assert!(ip(&["-n", &inside, "link", "set", "lo", "up"]));
            assert!(ip(&["-n", &inside, "addr", "add", &format!("{}/24", address(host)), "dev", "eth0"]));
            assert!(ip(&["-n", &inside, "link", "set", "eth0", "up"]));
        }
        Some(net)
    }

    fn bridge(&self) -> String {
        format!("{}b", self.0)
    }

    fn host(&self, host: usize) -> String {
        format!("{}-{host}", self.0)
    }

    /// From now on nothing that a host sends arrives: it has a wrong address of the other one's card.
    fn cut(&self, from: usize) {
        let to = address(1 - from);
        let wrong = ["neigh", "replace", &to, "lladdr", "02:00:00:00:00:ff", "nud", "permanent", "dev", "eth0"];
        assert!(ip(&[&["-n", &self.host(from)], &wrong[..]].concat()));
    }

    fn mend(&self, from: usize) {
        assert!(ip(&["-n", &self.host(from), "neigh", "del", &address(1 - from), "dev", "eth0"]));
    }

    /// Outage of what those hosts send.
    fn outage(&self, of: &[usize], time: Duration) {
        of.iter().for_each(|host| self.cut(*host));
        std::thread::sleep(time);
        of.iter().for_each(|host| self.mend(*host));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // What was not made cannot be removed.
        let _all = [0, 1].map(|host| ip(&["netns", "del", &self.host(host)]));
        let _bridge = ip(&["link", "del", &self.bridge()]);
    }
}

fn address(host: usize) -> String {
    format!("10.78.0.{}", host + 1)
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).output().is_ok_and(|o| o.status.success())
}

/// `examples/train.rs`, built.
fn train() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/train.rs");
    BUILT.get_or_init(|| built(&script, &["--", "--steps", "1"]))
}

/// A job of two ranks, each on a host of the net.
fn start(net: &Net, folder: &Folder, options: &[&str], args: &[&str]) -> [Running; 2] {
    let rdzv = format!("{}:{}", address(0), free_port());
    [0, 1].map(|host| {
        let mut command = Command::new("ip");
        command.current_dir(folder.path()).env("TMPDIR", folder.path()).env("OFLOW_MODEL", "default");
        command.args(["netns", "exec", &net.host(host), env!("CARGO_BIN_EXE_oflaunch")]).env("OFLOW_TOKEN", TOKEN);
        command.args(["-n", "1", "--threads", "1", "--nnodes", "2", "--rdzv", &rdzv, "--node-rank", &host.to_string()]);
        command.args(options).args([train(), "--"]).args(args);
        Running::of(&mut command)
    })
}

/// A training that takes longer than its outages.
const TRAINING: [&str; 4] = ["--steps", "4000", "--epochs", "1000"];

/// The losses of the same training on one host.
fn wanted() -> &'static BTreeMap<usize, f64> {
    static LOSSES: OnceLock<BTreeMap<usize, f64>> = OnceLock::new();
    LOSSES.get_or_init(|| {
        let output = run(&Folder::new(), &[&["-n", "2", "--threads", "1", train(), "--"], &TRAINING[..]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        losses_of(&stdout(&output))
    })
}

/// Waits until rank 0 has printed its model, that is until the ranks have met. A thread reads on and returns the losses.
fn wait_for_training(zero: &mut Running) -> std::thread::JoinHandle<BTreeMap<usize, f64>> {
    let mut lines = BufReader::new(zero.stdout()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(" parameters on ")));
    std::thread::spawn(move || lines.filter_map(|line| step_of(&line)).collect())
}

/// What both hosts told, if all went well.
fn finished(jobs: [Running; 2]) -> [String; 2] {
    jobs.map(|job| {
        let (status, text) = job.finish_within(WHOLE);
        assert_eq!(status.code(), Some(0), "{text}");
        text
    })
}

#[test]
fn outages_are_told_and_survived_with_the_same_bits() {
    let Some(net) = Net::new("oo") else { return };
    let folder = Folder::new();
    let mut jobs = start(&net, &folder, &[], &TRAINING);
    let losses = wait_for_training(&mut jobs[0]);
    net.outage(&[0, 1], Duration::from_secs(4));
    net.outage(&[1], Duration::from_secs(1));
    net.outage(&[0], Duration::from_secs(2));
    let told = finished(jobs);
    assert!(losses.join().unwrap() == *wanted());
    for (text, other) in told.iter().zip([1, 0]) {
        assert!(
            text.contains(&format!("oflaunch: node {other} (")) && text.contains(") has been silent for 3 s: "),
            "{text}"
        );
        assert!(text.contains("; the job waits up to 10 s for it (--outage-limit)"), "{text}");
        assert!(text.contains(") is heard again, after "), "{text}");
    }
}

#[test]
fn after_a_longer_outage_the_job_restarts_from_its_last_checkpoint() {
    let Some(net) = Net::new("or") else { return };
    let folder = Folder::new();
    let options = ["--outage-limit", "1", "--max-restarts", "1", "--timeout", "1"];
    let saving = [&TRAINING[..], &["--checkpoint", "saved", "--save-every", "20", "--resume"]].concat();
    let mut jobs = start(&net, &folder, &options, &saving);
    let losses = wait_for_training(&mut jobs[0]);
    net.outage(&[0, 1], Duration::from_secs(8));
    let told = finished(jobs);
    assert!(losses.join().unwrap() == *wanted());
    for (text, other) in told.iter().zip([1, 0]) {
        let lost = text
            .lines()
            .find(|l| l.contains(&format!("node {other} (")) && l.contains(" is lost: nothing heard from it for 3 s"));
        assert!(lost.is_some_and(|l| l.ends_with("; all ranks will be started again")), "{text}");
        assert!(text.contains("start 2 of at most 2: 2 ranks"), "{text}");
    }
}

#[test]
fn a_host_that_stands_still_is_waited_for() {
    let hosts = Hosts::new("2");
    hosts.folder.sh("until", &format!("{TELL_PID}; while [ ! -e over ]; do sleep 0.05; done"));
    let [zero, one] = [0, 1].map(|node| hosts.start(node, 1, "./until"));
    let pids = [hosts.pid(0), hosts.pid(1)];
    let still = |signal| {
        kill(pids[1], signal);
        one.signal(signal);
    };
    still(Signal::STOP);
    std::thread::sleep(Duration::from_secs(4));
    still(Signal::CONT);
    hosts.folder.write("over", "");
    let (status, text) = zero.finish();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("node 1 (") && text.contains(") has been silent for 3 s: "), "{text}");
    let (status, text) = one.finish();
    assert_eq!(status.code(), Some(0), "{text}");
    assert_gone(&pids);
}

#[test]
fn a_killed_rank_is_named_as_soon_as_ever() {
    let hosts = Hosts::new("2").with(&["--outage-limit", "300"]);
    hosts.folder.sh("run", &format!("{TELL_PID}; while :; do sleep 0.2; done"));
    let jobs = [0, 1].map(|node| hosts.start(node, 1, "./run"));
    let pids = [hosts.pid(0), hosts.pid(1)];
    let start = Instant::now();
    kill(pids[1], Signal::KILL);
    for running in jobs {
        let (status, text) = running.finish();
        assert_eq!(status.code(), Some(137), "{text}");
        assert!(text.contains(&format!("rank 1 (pid {}) was killed by signal 9", pids[1])), "{text}");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_gone(&pids);
}
