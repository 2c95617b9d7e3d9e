//! Jobs on two and three hosts, which are agents on this machine with a shared memory of their own each: the examples give
//! the losses of a run on one host, bit for bit, and what goes over the links is what the plans say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use oflow_faults::Setup;
use oflow_faults::job::{self, Order, Started};

const LONG: Duration = Duration::from_secs(120);
const TRAIN: &[&str] = &["--steps", "25", "--json"];
const GPT: &[&str] =
    &["--steps", "3", "--dim", "32", "--heads", "2", "--layers", "1", "--seq", "16", "--sample", "0", "--json"];

fn setup() -> Setup {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hosts");
    fs::create_dir_all(&work).unwrap();
    Setup { oflaunch: PathBuf::from(env!("CARGO_BIN_EXE_oflaunch")), work }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

fn built(name: &'static str) -> PathBuf {
    static BUILT: OnceLock<BTreeMap<&str, PathBuf>> = OnceLock::new();
    let all =
        BUILT.get_or_init(|| ["train.rs", "gpt.rs"].map(|n| (n, job::build(&setup(), &example(n)).unwrap())).into());
    all[name].clone()
}

/// Runs an example to its good end on hosts with so many ranks each.
fn run(name: &str, program: &'static str, ranks: &[usize], args: &[&str], options: &[&str]) -> (Started, Vec<u8>) {
    let setup = setup();
    let losses = setup.work.join(format!("{name}-losses"));
    let mut all: Vec<String> = args.iter().map(|a| a.to_string()).collect();
    all.extend(["--losses".into(), losses.display().to_string()]);
    let order = Order {
        ranks: ranks.to_vec(),
        options: options.iter().map(|o| o.to_string()).collect(),
        program: built(program),
        args: all,
    };
    let mut job = setup.start(name, &order).unwrap();
    assert!(job.wait(LONG).unwrap(), "{name} does not end: {:?}", job.processes());
    for host in 0..ranks.len() {
        assert_eq!(job.code(host), Some(0), "{name}, host {host}: {}", job.stderr(host));
        assert!(job.events(host).unwrap().iter().all(|e| e.report().is_none()), "{name}: {}", job.stderr(host));
    }
    assert_eq!(job.leftovers(), Vec::<String>::new(), "{name}");
    let text = fs::read(&losses).unwrap();
    assert!(!text.is_empty());
    (job, text)
}

fn same_losses(name: &str, program: &'static str, args: &[&str]) {
    for parallel in ["dp", "tp", "2d"] {
        let args = [args, &["--parallel", parallel]].concat();
        let run = |ranks: &[usize]| {
            let hosts = ranks.iter().map(|n| n.to_string()).collect::<Vec<_>>().join("-");
            run(&format!("{name}-{parallel}-{hosts}"), program, ranks, &args, &[]).1
        };
        let one_host = run(&[4]);
        for ranks in [&[2, 2][..], &[2, 1, 1]] {
            assert!(run(ranks) == one_host, "{name} --parallel {parallel} on {ranks:?} differs from one host");
        }
    }
}

#[test]
fn training_on_hosts_gives_the_bits_of_one_host() {
    same_losses("train", "train.rs", TRAIN);
}

#[test]
fn a_gpt_on_hosts_gives_the_bits_of_one_host() {
    same_losses("gpt", "gpt.rs", GPT);
}

#[test]
fn the_report_of_all_hosts_is_that_of_one_job() {
    let (job, _) = run("report", "train.rs", &[2, 2], TRAIN, &["--report"]);
    let report = job.stderr(0);
    // Of all four ranks, on node 0, with what went over the network beside what stayed in the hosts.
    assert!(!report.contains("no report came from"), "{report}");
    assert!(report.contains("4 ranks") && report.contains("network"), "{report}");
}
