//! Healthy jobs on an overloaded machine: whatever is reported of them is a false alarm.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Random;
use crate::job::{self, Order, Setup};

/// How much more there is to run than cores to run it.
const OVERSUBSCRIBED: usize = 4;
/// Ranks of a job.
const RANKS: usize = 4;
/// Jobs between two lines about them.
const SHOW_EVERY: u64 = 10;
/// After this a job counts as hanging: no job here takes more than some seconds of compute.
const HANGS: Duration = Duration::from_secs(300);

/// Result of the healthy jobs.
#[derive(Debug, Default)]
pub struct Calm {
    /// Jobs that ran, of every kind that there is.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// Jobs of which something false was reported, or that did not end well.
    pub alarms: Vec<String>,
    /// Warnings: right where a rank really makes the others wait, to be looked at otherwise.
    pub warnings: Vec<String>,
}

impl Calm {
    /// Number of jobs.
    pub fn jobs(&self) -> u64 {
        self.by_kind.values().sum()
    }
}

/// A kind of healthy job.
#[derive(Clone, Copy, Debug)]
struct HealthyJob {
    name: &'static str,
    program: &'static str,
    hosts: usize,
    args: &'static [&'static str],
    /// Whether ranks wait long for another, so that a warning is right.
    waits: bool,
    /// Whether checkpoints are saved at every step.
    saves: bool,
    /// Whether a rank exits in the first start, which is told as that, and in the second all is well.
    restarts: bool,
}

const STEPS: HealthyJob =
    HealthyJob { name: "", program: VICTIM, hosts: 1, args: &[], waits: false, saves: false, restarts: false };
const SLOW_RANK: &[&str] = &["--steps", "40", "--fault", "slow-rank", "--rank", "1"];
const EXITS: &[&str] = &["--steps", "60", "--fault", "exits-with-7", "--rank", "1", "--step", "20"];

const TRAIN: &str = "../examples/train.rs";
const GPT: &str = "../examples/gpt.rs";
const VICTIM: &str = "programs/victim.rs";
const GPT_ARGS: &[&str] =
    &["--steps", "4", "--dim", "64", "--layers", "2", "--seq", "32", "--sample", "0", "--parallel", "2d"];

const KINDS: &[HealthyJob] = &[
    HealthyJob { name: "train-dp", program: TRAIN, args: &["--steps", "60"], ..STEPS },
    HealthyJob { name: "train-tp", program: TRAIN, args: &["--steps", "60", "--parallel", "tp"], ..STEPS },
    HealthyJob { name: "gpt", program: GPT, args: GPT_ARGS, ..STEPS },
    HealthyJob { name: "steps", args: &["--steps", "300"], ..STEPS },
    HealthyJob { name: "boxes", args: &["--steps", "100", "--fault", "boxes"], ..STEPS },
    HealthyJob { name: "uneven", args: SLOW_RANK, ..STEPS },
    HealthyJob {
        name: "computes-long",
        args: &["--steps", "20", "--fault", "computes-long", "--rank", "2", "--step", "10"],
        waits: true,
        ..STEPS
    },
    HealthyJob {
        name: "sleeps-long",
        args: &["--steps", "20", "--fault", "sleeps-long", "--rank", "0", "--step", "10"],
        waits: true,
        ..STEPS
    },
    HealthyJob { name: "exits", args: &["--steps", "20", "--fault", "exits-when-done"], ..STEPS },
    HealthyJob { name: "leaves-others", args: &["--steps", "20", "--fault", "leaves-others", "--rank", "2"], ..STEPS },
    HealthyJob { name: "saves", args: &["--steps", "40"], saves: true, ..STEPS },
    HealthyJob { name: "restarts", args: EXITS, restarts: true, ..STEPS },
    HealthyJob { name: "steps-on-2-hosts", hosts: 2, args: &["--steps", "200"], ..STEPS },
    HealthyJob { name: "boxes-on-2-hosts", hosts: 2, args: &["--steps", "60", "--fault", "boxes"], ..STEPS },
    HealthyJob { name: "uneven-on-2-hosts", hosts: 2, args: SLOW_RANK, ..STEPS },
    HealthyJob {
        name: "computes-long-on-2-hosts",
        hosts: 2,
        args: &["--steps", "20", "--fault", "computes-long", "--rank", "2", "--step", "10"],
        waits: true,
        ..STEPS
    },
    HealthyJob { name: "exits-on-2-hosts", hosts: 2, args: &["--steps", "20", "--fault", "exits-when-done"], ..STEPS },
    HealthyJob {
        name: "leaves-others-on-2-hosts",
        hosts: 2,
        args: &["--steps", "20", "--fault", "leaves-others", "--rank", "2"],
        ..STEPS
    },
    HealthyJob { name: "saves-on-2-hosts", hosts: 2, args: &["--steps", "40"], saves: true, ..STEPS },
    HealthyJob { name: "restarts-on-2-hosts", hosts: 2, args: EXITS, restarts: true, ..STEPS },
];

/// Runs healthy jobs for so long, on `hosts` hosts at most, with the cores oversubscribed.
pub fn run(setup: &Setup, minutes: f64, hosts: usize, seed: u64) -> Result<Calm, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kinds: Vec<&HealthyJob> = KINDS.iter().filter(|k| k.hosts <= hosts).collect();
    let mut programs: Vec<PathBuf> = vec![];
    for kind in &kinds {
        programs.push(job::build(setup, &here.join(kind.program))?);
    }
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    // What computes for nothing is all of the load that is asked for, because ranks that wait are none; the jobs come on top.
    let at_once = (cores * OVERSUBSCRIBED / 2).div_ceil(RANKS).max(2);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let by_kind = kinds.iter().map(|k| (k.name, 0)).collect();
    let calm = Mutex::new(Calm { by_kind, ..Calm::default() });
    let (over, number) = (AtomicBool::new(false), AtomicU64::new(0));
    eprintln!("{cores} cores: {} threads compute for nothing, {at_once} jobs run at a time", cores * OVERSUBSCRIBED);
    let mut failed = None;
    std::thread::scope(|s| {
        for _ in 0..cores * OVERSUBSCRIBED {
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
                        // Every kind in turn, from a random one on.
                        let first = Random::new(seed).within(0..kinds.len());
                        let which = (first + n as usize) % kinds.len();
                        one(setup, kinds[which], &programs[which], n, &calm)?;
                        let left = end.saturating_duration_since(Instant::now());
                        tell(&calm, left)?;
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

/// A line now and then, so that somebody who looks on knows that it goes on.
fn tell(calm: &Mutex<Calm>, left: Duration) -> Result<(), String> {
    let calm = calm.lock().map_err(|e| e.to_string())?;
    if calm.jobs().is_multiple_of(SHOW_EVERY) {
        let (jobs, alarms, minutes) = (calm.jobs(), calm.alarms.len(), left.as_secs_f64() / 60.0);
        eprintln!("{jobs} jobs, {alarms} false alarms; {minutes:.1} minutes left");
    }
    Ok(())
}

fn one(setup: &Setup, kind: &HealthyJob, program: &Path, number: u64, calm: &Mutex<Calm>) -> Result<(), String> {
    let name = format!("calm-{}-{number}", kind.name);
    let failed = |e: std::io::Error| format!("{name}: {e}");
    let mut order = Order {
        ranks: vec![RANKS / kind.hosts; kind.hosts],
        options: vec!["--stall".into(), "30".into()],
        program: program.to_path_buf(),
        args: kind.args.iter().map(|a| a.to_string()).collect(),
    };
    if kind.program == VICTIM {
        order.args.extend(["--dir".into(), setup.work.join(&name).display().to_string()]);
    }
    let checkpoints = setup.work.join(format!("{name}-checkpoints"));
    if kind.saves {
        order.args.extend(["--save".into(), checkpoints.display().to_string()]);
    }
    if kind.restarts {
        order.options.extend(["--max-restarts".into(), "1".into()]);
    }
    let mut job = setup.start(&name, &order).map_err(failed)?;
    let ended = job.wait(HANGS).map_err(failed)?;
    let (mut alarms, mut warnings) = (vec![], vec![]);
    if !ended {
        alarms.push(format!("still runs after {HANGS:?}: {:?}", job.processes()));
        job.kill();
    }
    for host in 0..job.hosts() {
        match job.events(host) {
            Err(e) => alarms.push(e),
            Ok(events) => {
                let mut reports: Vec<_> = events.iter().filter_map(|e| e.report()).collect();
                if kind.restarts {
                    match reports.iter().position(|r| r.kind == "exited" && r.rank == Some(1)) {
                        Some(right) => drop(reports.remove(right)),
                        None => alarms.push(format!("host {host} does not tell that rank 1 has exited")),
                    }
                }
                alarms.extend(reports.into_iter().map(|r| format!("{}: {}", r.kind, r.message)));
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
    if kind.saves {
        let _may_stay = std::fs::remove_dir_all(&checkpoints);
    }
    let quiet = alarms.is_empty();
    let mut calm = calm.lock().map_err(|e| e.to_string())?;
    *calm.by_kind.entry(kind.name).or_default() += 1;
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
