//! Jobs on two and three hosts, which are agents on this machine with a shared memory of their own each: the examples give
//! the losses of a run on one host, bit for bit, and what goes over the links is what the plans say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::common::{losses_of, unwrapped};
use oflow_faults::Setup;
use oflow_faults::job::{self, Order, Started};

const LONG: Duration = Duration::from_secs(120);
const TRAIN: &[&str] = &["--steps", "25"];
const GPT: &[&str] = &["--steps", "3", "--dim", "32", "--heads", "2", "--layers", "1", "--seq", "16", "--sample", "0"];

fn setup() -> Setup {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hosts");
    fs::create_dir_all(&work).unwrap();
    Setup { oflaunch: PathBuf::from(env!("CARGO_BIN_EXE_oflaunch")), work }
}

/// Examples, and a script of these tests.
const PROGRAMS: [(&str, &str); 4] = [
    ("train.rs", "../examples/train.rs"),
    ("gpt.rs", "../examples/gpt.rs"),
    ("bytes.rs", "tests/scripts/bytes.rs"),
    ("victim.rs", "../faults/programs/victim.rs"),
];

fn built(name: &'static str) -> PathBuf {
    static BUILT: OnceLock<BTreeMap<&str, PathBuf>> = OnceLock::new();
    let build = |path| job::build(&setup(), &Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let all = BUILT.get_or_init(|| PROGRAMS.map(|(name, path)| (name, build(path))).into());
    all[name].clone()
}

/// Runs an example to its good end on hosts with so many ranks each. Returns the loss of each step.
fn run(name: &str, program: &'static str, ranks: &[usize], args: &[&str]) -> BTreeMap<usize, f64> {
    let args = args.iter().map(|a| a.to_string()).collect();
    let order = Order { ranks: ranks.to_vec(), options: Vec::new(), program: built(program), args };
    let losses = losses_of(&finished(name, setup().start(name, &order).unwrap()).stdout(0));
    assert!(!losses.is_empty());
    losses
}

/// Waits for a job's good end.
fn finished(name: &str, mut job: Started) -> Started {
    assert!(job.wait(LONG).unwrap(), "{name} does not end: {:?}", job.processes());
    for host in 0..job.hosts() {
        assert_eq!(job.code(host), Some(0), "{name}, host {host}: {}", job.stderr(host));
        assert!(job.events(host).unwrap().iter().all(|e| e.report().is_none()), "{name}: {}", job.stderr(host));
    }
    assert_eq!(job.leftovers(), Vec::<String>::new(), "{name}");
    job
}

fn same_losses(name: &str, program: &'static str, args: &[&str]) {
    for parallel in ["dp", "tp", "2d"] {
        let args = [args, &["--parallel", parallel]].concat();
        let run = |ranks: &[usize]| {
            let hosts = ranks.iter().map(|n| n.to_string()).collect::<Vec<_>>().join("-");
            run(&format!("{name}-{parallel}-{hosts}"), program, ranks, &args)
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
fn a_slow_link_is_warned_of() {
    let setup = setup();
    let dir = setup.work.join("slow-link").display().to_string();
    let args = ["--dir", &dir, "--steps", "8", "--fault", "slow-link", "--rank", "1", "--step", "2"];
    let args = args.iter().map(|a| a.to_string()).collect();
    let order = Order { ranks: vec![1, 1], options: Vec::new(), program: built("victim.rs"), args };
    let job = finished("slow-link", setup.start("slow-link", &order).unwrap());
    let text = job.stderr(0);
    assert!(text.contains("warning: the link from rank 1 on ") && text.contains(" is slow: "), "{text}");
}

/// Bytes that the report of a job tells of a kind of link.
fn reported(report: &str, over: &str) -> u64 {
    let report = unwrapped(report);
    let sums = report.lines().find_map(|l| l.split_once(" in all: ")).map_or("", |(_, sums)| sums);
    let links = sums.split("; ").next().unwrap_or("").split(", ");
    let bytes = links.filter_map(|l| l.strip_suffix(over)?.strip_suffix(" B over ")?.parse::<u64>().ok());
    bytes.sum()
}

#[test]
fn the_report_of_all_hosts_tells_the_bytes_that_have_crossed_the_network() {
    for ranks in [&[2, 2][..], &[2, 1, 1]] {
        let setup = setup();
        let name = format!("bytes-{}", ranks.len());
        let sent = setup.work.join(format!("{name}-sent"));
        let _ = fs::remove_dir_all(&sent);
        fs::create_dir_all(&sent).unwrap();
        let order = Order {
            ranks: ranks.to_vec(),
            options: vec!["--report".into()],
            program: built("bytes.rs"),
            args: vec![sent.display().to_string()],
        };
        let job = finished(&name, setup.start(&name, &order).unwrap());
        let report = job.stderr(0);
        // Of all four ranks, on node 0.
        assert!(!report.contains("no report came from") && report.contains("4 ranks"), "{report}");
        let counted: u64 =
            (0..4).map(|r| fs::read_to_string(sent.join(r.to_string())).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(reported(&report, "network"), counted, "{ranks:?}: {report}");
        assert!(counted > 1 << 20 && reported(&report, "same host") > 1 << 20, "{report}");
    }
}
