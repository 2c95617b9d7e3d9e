//! Runs of the matrix: the fault at a random moment, then the judgement.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};

use crate::Random;
use crate::cases::{Act, Case};
use crate::events::{Place, Report};
use crate::job::{self, Order, Setup, Started};

/// How long a job may take to get to the fault: builds nothing, but the machine may be busy.
const START: Duration = Duration::from_secs(60);
/// Longer than any limit of the matrix: after it a job counts as hanging.
const HANGS: Duration = Duration::from_secs(30);
/// Exit code that a shell shows for a process that SIGKILL has ended.
const KILLED: i32 = 137;
/// Latest step of a fault.
const STEPS: usize = 40;
/// Latest moment of a fault from outside, after all ranks have trained a step.
const MOMENT: Duration = Duration::from_millis(400);

/// Settings that every run needs.
pub struct Matrix {
    setup: Setup,
    victim: PathBuf,
    /// Lines of the victim by mark.
    lines: BTreeMap<String, u32>,
    /// Factor of the limits where the machine does other things too.
    patience: u32,
}

/// One run judged.
#[derive(Debug)]
pub struct Outcome {
    /// From the fault to the report.
    pub report: Option<Duration>,
    /// From the fault to the end of the last process.
    pub end: Option<Duration>,
    /// Faults of the outcome; empty where the case has passed.
    pub wrong: Vec<String>,
    /// Whether the case cannot be run here: nothing may be mounted, for instance.
    pub skipped: bool,
    /// Where its logs are.
    pub folder: PathBuf,
}

impl Matrix {
    /// Builds the victim, if it has not been built already.
    pub fn new(setup: Setup, victim: Option<PathBuf>) -> Result<Matrix, String> {
        let source = job::victim();
        let victim = victim.map_or_else(|| job::build(&setup, &source), Ok)?;
        let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        let mark = |(i, line): (usize, &str)| Some((line.rsplit_once("// @")?.1.trim().to_string(), i as u32 + 1));
        let lines = text.lines().enumerate().filter_map(mark).collect();
        Ok(Matrix { setup, victim, lines, patience: 1 })
    }

    /// Multiplies the limits.
    #[must_use]
    pub fn patience(self, patience: u32) -> Matrix {
        Matrix { patience, ..self }
    }

    /// One run of a case. The folder with its logs is removed if all was well.
    pub fn once(&self, case: &Case, seed: u64) -> Result<Outcome, String> {
        let mut random = Random::new(seed);
        let nproc = if case.hosts > 1 { random.within(1..3) } else { random.within(2..5) };
        let world = nproc * case.hosts;
        let rank = random.within(0..world);
        let step = random.within(1..STEPS);
        let moment = Duration::from_micros(random.below(MOMENT.as_micros() as usize) as u64);
        let name = format!("{}-{}-{seed}", case.name, case.hosts);
        let folder = self.setup.work.join(&name);
        let mut order = Order {
            ranks: vec![nproc; case.hosts],
            options: case.options.iter().map(|o| o.to_string()).collect(),
            program: self.victim.clone(),
            args: vec!["--dir".into(), folder.display().to_string()],
        };
        if case.planted() {
            let fault = ["--fault", case.name, "--rank", &rank.to_string(), "--step", &step.to_string()];
            order.args.extend(fault.iter().map(|a| a.to_string()));
        }
        if case.act == Act::LimitMemory {
            order.program = limited(&self.setup.work, &self.victim, rank)?;
        }
        let saves = matches!(case.act, Act::KillSaving | Act::FillDisk);
        let checkpoints = self.setup.work.join(format!("{name}-checkpoints"));
        if saves {
            order.args.extend(["--save".into(), checkpoints.display().to_string()]);
        }
        let failed = |e: std::io::Error| format!("{name}: {e}");
        let _disk = match case.act {
            Act::FillDisk => match SmallDisk::mount(&checkpoints)? {
                Some(disk) => Some(disk),
                None => return Ok(Outcome { report: None, end: None, wrong: vec![], skipped: true, folder }),
            },
            _ => None,
        };
        let mut job = self.setup.start(&name, &order).map_err(failed)?;
        let fault = match strike(&mut job, case, world, rank, moment) {
            Ok(fault) => fault,
            Err(e) => return Err(format!("{name}: {e}; {}", tail(&job))),
        };
        let gone = job.wait(HANGS).map_err(failed)?;
        let end = gone.then(|| Duration::from_secs_f64((now() - fault).max(0.0)));
        let mut wrong = vec![];
        if !gone {
            wrong.push(format!("processes still run {HANGS:?} after the fault: {:?}", job.processes()));
            job.kill();
        }
        let report = self.judge(case, rank, fault, &job, &mut wrong);
        for (what, took, limit) in [("report", report, case.report_within), ("end", end, case.end_within)] {
            let limit = limit * self.patience;
            if let Some(took) = took.filter(|t| *t > limit) {
                wrong.push(format!("the {what} came after {took:.2?}, not within {limit:?}"));
            }
        }
        if gone {
            wrong.extend(job.leftovers());
        }
        if saves {
            wrong.extend(self.damaged(&checkpoints)?);
            // Of a disk that is taken away the files go with it.
            let _may_stay = fs::remove_dir_all(&checkpoints);
        }
        if !wrong.is_empty() {
            wrong.push(format!(
                "planted: rank {rank} of {world} on {} hosts, step {step}, moment {moment:?}",
                case.hosts
            ));
        }
        drop(job);
        if wrong.is_empty() {
            // What cannot be removed lies in the work folder, which the caller removes.
            let _may_stay = fs::remove_dir_all(&folder);
        }
        Ok(Outcome { report, end, wrong, skipped: false, folder })
    }

    /// Fault of the checkpoints of a folder: each that is there must be whole.
    fn damaged(&self, checkpoints: &Path) -> Result<Option<String>, String> {
        let there = fs::read_dir(checkpoints).into_iter().flatten().flatten();
        if !there.into_iter().any(|e| e.file_name().to_string_lossy().starts_with("step-")) {
            return Ok(None);
        }
        let mut oflow = Command::new(self.setup.oflaunch.with_file_name("oflow"));
        let output = oflow.args(["ckpt", "verify"]).arg(checkpoints).output().map_err(|e| format!("oflow: {e}"))?;
        let text = || String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned();
        Ok((!output.status.success()).then(|| format!("half a checkpoint is left: {}", text())))
    }

    /// Compares what was reported with what was done. Returns how long the report took.
    fn judge(&self, case: &Case, rank: usize, fault: f64, job: &Started, wrong: &mut Vec<String>) -> Option<Duration> {
        let killed = match case.act {
            Act::KillAgent(host) => Some(host),
            _ => None,
        };
        let mut first: Option<Report> = None;
        for host in 0..job.hosts() {
            if killed == Some(host) {
                // It has no time to report anything.
                let code = job.code(host);
                if code != Some(KILLED) {
                    wrong.push(format!("host {host}, which was killed, exited with {code:?}, not {KILLED}"));
                }
                continue;
            }
            let events = job.events(host).unwrap_or_else(|e| {
                wrong.push(format!("the events of host {host}: {e}"));
                vec![]
            });
            let reports: Vec<Report> = events.iter().filter_map(|e| e.report()).collect();
            match reports.len() {
                0 => wrong.push(format!("host {host} reported no failure: {}", job.stderr(host).trim())),
                1 => self.compare(case, rank, &reports[0], wrong),
                n => wrong.push(format!("host {host} reported {n} failures, not 1: {reports:?}")),
            }
            let code = job.code(host);
            let right = |c: i32| if case.codes.is_empty() { c != 0 } else { case.codes.contains(&c) };
            if !code.is_some_and(right) {
                wrong.push(format!("host {host} exited with {code:?}, not one of {:?}", case.codes));
            }
            first = reports.into_iter().chain(first).min_by(|a, b| a.time.total_cmp(&b.time));
        }
        first.map(|r| Duration::from_secs_f64((r.time - fault).max(0.0)))
    }

    fn compare(&self, case: &Case, rank: usize, report: &Report, wrong: &mut Vec<String>) {
        if !case.kinds.contains(&report.kind.as_str()) {
            wrong.push(format!("reported as {:?}, not one of {:?}: {}", report.kind, case.kinds, report.message));
        }
        if case.names_rank && report.rank != Some(rank) {
            wrong.push(format!("names {:?}, not rank {rank}: {}", report.rank, report.message));
        }
        if case.names_no_other && report.rank.is_some_and(|r| r != rank) {
            wrong.push(format!("names rank {:?}, not rank {rank} or none: {}", report.rank, report.message));
        }
        if !report.message.contains(case.says) {
            wrong.push(format!("does not say {:?}: {}", case.says, report.message));
        }
        let mine = |p: &&Place| p.rank == rank;
        let theirs = |p: &&Place| p.rank != rank;
        let sides: [(&str, &[_], Vec<&Place>); 2] = [
            ("of the rank at fault", case.at_fault, report.places.iter().filter(mine).collect()),
            ("of another rank", case.elsewhere, report.places.iter().filter(theirs).collect()),
        ];
        for (whose, wanted, places) in sides {
            let matches = |(op, mark): &(&str, &str)| {
                let line = self.lines.get(*mark).copied();
                let at = |p: &&&Place| (op.is_empty() || p.op == *op) && p.file == "victim.rs" && Some(p.line) == line;
                places.iter().any(|p| at(&p))
            };
            if !wanted.is_empty() && !wanted.iter().any(matches) {
                let lines: Vec<_> = wanted.iter().map(|(op, mark)| (op, self.lines.get(*mark))).collect();
                wrong.push(format!("{whose}: {places:?}, not {lines:?}: {}", report.message));
            }
        }
    }
}

/// Waits until the job runs, does what is to be done from outside, and returns when the fault happened.
fn strike(job: &mut Started, case: &Case, world: usize, rank: usize, moment: Duration) -> Result<f64, String> {
    let folder = job.folder.clone();
    let number = |name: String| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<f64>().ok();
    if case.planted() || case.act == Act::FillDisk {
        return until(job, "the fault", || number("fault".into()));
    }
    let mut pids = vec![];
    for r in 0..world {
        pids.push(until(job, "all ranks to have trained a step", || number(format!("pid{r}")))? as i32);
    }
    // The random moment is the point of the exercise; nothing is waited for.
    std::thread::sleep(moment);
    let fault = now();
    let signal = |signal| match Pid::from_raw(pids[rank]) {
        Some(pid) => kill_process(pid, signal).map_err(|e| format!("rank {rank} cannot be signalled: {e}")),
        None => Err("a process id of 0".to_string()),
    };
    match case.act {
        Act::KillRank | Act::KillSaving => signal(Signal::KILL)?,
        Act::StopRank => signal(Signal::STOP)?,
        Act::KillAgent(host) => job.signal_agent(host, Signal::KILL).map_err(|e| e.to_string())?,
        Act::Planted | Act::LimitMemory | Act::FillDisk => {}
    }
    Ok(fault)
}

fn until<T>(job: &mut Started, what: &str, mut ready: impl FnMut() -> Option<T>) -> Result<T, String> {
    let deadline = Instant::now() + START;
    loop {
        if let Some(value) = ready() {
            return Ok(value);
        }
        let over = job.any_ended().map_err(|e| e.to_string())?;
        if over && let Some(value) = ready() {
            return Ok(value);
        }
        if over || Instant::now() > deadline {
            return Err(format!("waited for {what} in vain"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A file system in memory with room for two or three checkpoints, for as long as this lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Nothing where one may not mount.
    fn mount(at: &Path) -> Result<Option<SmallDisk>, String> {
        fs::create_dir_all(at).map_err(|e| format!("{}: {e}", at.display()))?;
        let mut mount = Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(at).output();
        Ok(output.is_ok_and(|o| o.status.success()).then(|| SmallDisk(at.to_path_buf())))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A process that is left in it holds it; it is reported as left.
        let _busy = Command::new("umount").arg(&self.0).output();
        let _busy_too = fs::remove_dir(&self.0);
    }
}

/// A shell script that limits the address space of one rank and becomes the program.
fn limited(work: &Path, program: &Path, rank: usize) -> Result<PathBuf, String> {
    use std::os::unix::fs::PermissionsExt;
    let path = work.join(format!("limited-{rank}"));
    let text = format!("#!/bin/sh\n[ \"$RANK\" = {rank} ] && ulimit -v 3000000\nexec '{}' \"$@\"\n", program.display());
    fs::write(&path, text)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn tail(job: &Started) -> String {
    (0..job.hosts()).map(|h| format!("host {h}: {}", job.stderr(h).trim())).collect::<Vec<_>>().join("; ")
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    fn matrix() -> Matrix {
        let setup = Setup { oflaunch: PathBuf::new(), work: PathBuf::new() };
        let lines = [("other".to_string(), 10), ("usual".to_string(), 12)].into();
        Matrix { setup, victim: PathBuf::new(), lines, patience: 1 }
    }

    fn wrong(case: &str, rank: usize, report: &Report) -> Vec<String> {
        let case = cases().iter().find(|c| c.name == case).unwrap();
        let mut wrong = vec![];
        matrix().compare(case, rank, report, &mut wrong);
        wrong
    }

    fn place(rank: usize, op: &str, line: u32) -> Place {
        Place { rank, op: op.into(), file: "victim.rs".into(), line }
    }

    #[test]
    fn a_divergence_must_name_both_ops_and_lines() {
        let places = vec![place(0, "sigmoid", 12), place(2, "tanh", 10)];
        let right = Report { time: 0.0, rank: None, kind: "diverged".into(), message: "m".into(), places };
        assert!(wrong("calls-another-op", 2, &right).is_empty());
        // Somebody else planted it, the wrong kind, the wrong line, a side that is missing.
        assert_eq!(wrong("calls-another-op", 0, &right).len(), 2);
        assert_eq!(wrong("calls-another-op", 2, &Report { kind: "error".into(), ..right.clone() }).len(), 1);
        let places = vec![place(0, "sigmoid", 13), place(2, "tanh", 10)];
        assert_eq!(wrong("calls-another-op", 2, &Report { places, ..right.clone() }).len(), 1);
        let places = vec![place(2, "tanh", 10)];
        assert_eq!(wrong("calls-another-op", 2, &Report { places, ..right }).len(), 1);
    }

    #[test]
    fn the_rank_and_what_it_said_must_be_right() {
        let message = "rank 1 panicked: the data is missing".to_string();
        let right = Report { time: 0.0, rank: Some(1), kind: "panicked".into(), message, places: vec![] };
        assert!(wrong("panics", 1, &right).is_empty());
        assert_eq!(wrong("panics", 0, &right).len(), 1);
        assert_eq!(wrong("panics", 1, &Report { message: "rank 1 panicked".into(), ..right }).len(), 1);
    }

    #[test]
    fn every_mark_of_a_case_is_a_line_of_the_victim() {
        let text = fs::read_to_string(job::victim()).unwrap();
        for case in cases() {
            for (_, mark) in case.at_fault.iter().chain(case.elsewhere) {
                assert_eq!(text.lines().filter(|l| l.ends_with(&format!("// @{mark}"))).count(), 1, "{mark}");
            }
        }
    }
}
