//! Healthy jobs on an overloaded machine: whatever is reported of them is a false alarm.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::job::{self, Order, Setup};
use crate::random::Random;

/// How much more there is to run than cores to run it.
const OVERSUBSCRIBED: usize = 4;
/// Ranks of a job.
const RANKS: usize = 4;
/// After this a job counts as hanging: no job here takes more than some seconds of compute.
const HANGS: Duration = Duration::from_secs(300);

/// What came of it.
#[derive(Debug, Default)]
pub struct Calm {
    /// Jobs that ran.
    pub jobs: u64,
    /// Jobs of which something false was reported, or that did not end well.
    pub alarms: Vec<String>,
    /// Warnings: right where a rank really makes the others wait, to be looked at otherwise.
    pub warnings: Vec<String>,
}

/// A kind of healthy job.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    program: &'static str,
    hosts: usize,
    args: &'static [&'static str],
    /// Whether ranks wait long for another, so that a warning is right.
    waits: bool,
}

const TRAIN: &str = "../examples/train.rs";
const GPT: &str = "../examples/gpt.rs";
const VICTIM: &str = "programs/victim.rs";

const KINDS: &[Kind] = &[
    Kind { name: "train-dp", program: TRAIN, hosts: 1, args: &["--steps", "60", "--json"], waits: false },
    Kind {
        name: "train-tp",
        program: TRAIN,
        hosts: 1,
        args: &["--steps", "60", "--json", "--parallel", "tp"],
        waits: false,
    },
    Kind {
        name: "gpt",
        program: GPT,
        hosts: 1,
        args: &[
            "--steps",
            "4",
            "--json",
            "--dim",
            "64",
            "--layers",
            "2",
            "--seq",
            "32",
            "--sample",
            "0",
            "--parallel",
            "2d",
        ],
        waits: false,
    },
    Kind { name: "steps", program: VICTIM, hosts: 1, args: &["--steps", "300"], waits: false },
    Kind { name: "boxes", program: VICTIM, hosts: 1, args: &["--steps", "100", "--fault", "boxes"], waits: false },
    Kind {
        name: "uneven",
        program: VICTIM,
        hosts: 1,
        args: &["--steps", "40", "--fault", "slow-rank", "--rank", "1"],
        waits: false,
    },
    Kind {
        name: "computes-long",
        program: VICTIM,
        hosts: 1,
        args: &["--steps", "20", "--fault", "computes-long", "--rank", "2", "--step", "10"],
        waits: true,
    },
    Kind {
        name: "sleeps-long",
        program: VICTIM,
        hosts: 1,
        args: &["--steps", "20", "--fault", "sleeps-long", "--rank", "0", "--step", "10"],
        waits: true,
    },
    Kind { name: "steps-on-2-hosts", program: VICTIM, hosts: 2, args: &["--steps", "200"], waits: false },
    Kind {
        name: "boxes-on-2-hosts",
        program: VICTIM,
        hosts: 2,
        args: &["--steps", "60", "--fault", "boxes"],
        waits: false,
    },
];

/// Runs healthy jobs for so long, on `hosts` hosts at most, with the cores oversubscribed.
pub fn run(setup: &Setup, minutes: f64, hosts: usize, seed: u64) -> Result<Calm, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kinds: Vec<&Kind> = KINDS.iter().filter(|k| k.hosts <= hosts).collect();
    let mut programs: Vec<PathBuf> = vec![];
    for kind in &kinds {
        programs.push(job::build(setup, &here.join(kind.program))?);
    }
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    // Half of the load are the jobs themselves, half computes for nothing.
    let at_once = (cores * OVERSUBSCRIBED / 2).div_ceil(RANKS).max(1);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let (over, number, calm) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(Calm::default()));
    let mut failed = None;
    std::thread::scope(|s| {
        for _ in 0..cores * OVERSUBSCRIBED / 2 {
            s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let workers: Vec<_> = (0..at_once)
            .map(|_| {
                s.spawn(|| {
                    while Instant::now() < end {
                        let n = number.fetch_add(1, Ordering::Relaxed);
                        let which = Random::new(seed + n).within(0..kinds.len());
                        one(setup, kinds[which], &programs[which], n, &calm)?;
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            let done: Result<(), String> = worker.join().unwrap_or_else(|_| Err("a worker panicked".into()));
            failed = failed.take().or(done.err());
        }
        over.store(true, Ordering::Relaxed);
    });
    match failed {
        Some(e) => Err(e),
        None => calm.into_inner().map_err(|e| e.to_string()),
    }
}

fn one(setup: &Setup, kind: &Kind, program: &Path, number: u64, calm: &Mutex<Calm>) -> Result<(), String> {
    let name = format!("calm-{}-{number}", kind.name);
    let told = |e: std::io::Error| format!("{name}: {e}");
    let mut order = Order {
        ranks: vec![RANKS / kind.hosts; kind.hosts],
        options: vec!["--stall".into(), "30".into()],
        program: program.to_path_buf(),
        args: kind.args.iter().map(|a| a.to_string()).collect(),
    };
    if kind.program == VICTIM {
        order.args.extend(["--dir".into(), setup.work.join(&name).display().to_string()]);
    }
    let mut job = setup.start(&name, &order).map_err(told)?;
    let ended = job.wait(HANGS).map_err(told)?;
    let (mut alarms, mut warnings) = (vec![], vec![]);
    if !ended {
        alarms.push(format!("still runs after {HANGS:?}: {:?}", job.processes()));
        job.kill();
    }
    for host in 0..job.hosts() {
        match job.events(host) {
            Err(e) => alarms.push(e),
            Ok(events) => {
                alarms.extend(events.iter().filter_map(|e| e.report()).map(|r| format!("{}: {}", r.kind, r.message)));
                let text =
                    |e: &crate::Event| e.fields.get("message").and_then(|m| m.as_str()).unwrap_or("?").to_string();
                warnings.extend(events.iter().filter(|e| e.name == "warning").map(text));
            }
        }
        if job.code(host) != Some(0) {
            alarms.push(format!("host {host} exited with {:?}: {}", job.code(host), job.stderr(host).trim()));
        }
    }
    alarms.extend(job.leftovers());
    let quiet = alarms.is_empty();
    let mut calm = calm.lock().map_err(|e| e.to_string())?;
    calm.jobs += 1;
    let right = if kind.waits { " (right)" } else { "" };
    calm.warnings.extend(warnings.into_iter().map(|w| format!("{name}{right}: {w}")));
    calm.alarms.extend(alarms.into_iter().map(|a| format!("{name}: {a}")));
    drop(calm);
    if quiet {
        let folder = job.folder.clone();
        drop(job);
        let _may_stay = std::fs::remove_dir_all(folder);
    }
    Ok(())
}
