//! `cargo xtask faults`: the whole fault matrix, and healthy jobs on an overloaded machine. A program of its own, because it
//! needs nothing of the library but the launcher, as a process.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oflow_faults::matrix::{Matrix, Outcome};
use oflow_faults::{Case, Setup, calm, cargo_env, cases};

const HELP: &str = "\
Plants every fault of the matrix in jobs of up to three hosts, at random moments, and compares what the launcher reports.

  --times N          runs of each case [default: 20]
  --case NAME        only this case
  --seed S           seed of the first run; the runs of a case have S, S+1, … [default: the time]
  --load             beside four busy threads a core; limits are four times as long
  --hosts 1|2|3      only cases on so many hosts at most [default: 3]
  --false-alarms MIN healthy jobs for so many minutes, on an overloaded machine, instead of the matrix
  --oflaunch FILE    a launcher that is built already
  --victim FILE      a program with planted faults that is built already";

/// What the user asked for.
struct Options {
    times: u64,
    case: Option<String>,
    seed: u64,
    load: bool,
    hosts: usize,
    false_alarms: Option<f64>,
    /// A launcher that has been built already.
    oflaunch: Option<PathBuf>,
    /// A victim that has been built already.
    victim: Option<PathBuf>,
}

fn options(args: &[&str]) -> Result<Options, Box<dyn Error>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut o = Options {
        times: 20,
        case: None,
        seed: now,
        load: false,
        hosts: 3,
        false_alarms: None,
        oflaunch: None,
        victim: None,
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        if *name == "--load" {
            o.load = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        match *name {
            "--times" => o.times = value.parse()?,
            "--case" => o.case = Some(value.to_string()),
            "--seed" => o.seed = value.parse()?,
            "--hosts" => o.hosts = value.parse()?,
            "--oflaunch" => o.oflaunch = Some(PathBuf::from(value).canonicalize()?),
            "--victim" => o.victim = Some(PathBuf::from(value).canonicalize()?),
            "--false-alarms" => o.false_alarms = Some(value.parse()?),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    if o.times == 0 {
        return Err("--times 0 proves nothing: give at least 1".into());
    }
    if let Some(minutes) = o.false_alarms.filter(|m| !(*m > 0.0 && m.is_finite())) {
        return Err(format!("--false-alarms {minutes} is not a time in which anything could run").into());
    }
    Ok(o)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("faults: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<(), Box<dyn Error>> {
    if args.iter().any(|a| ["--help", "-h"].contains(a)) {
        println!("{HELP}");
        return Ok(());
    }
    let o = options(args)?;
    let oflaunch = match o.oflaunch.clone() {
        Some(built) => built,
        None => build()?,
    };
    let work = oflaunch.with_file_name("faults");
    std::fs::create_dir_all(&work)?;
    let setup = Setup { oflaunch, work };
    match o.false_alarms {
        Some(minutes) => false_alarms(&setup, minutes, &o),
        None => matrix(setup, &o),
    }
}

/// Builds the launcher with the profile of this program; returns its path.
fn build() -> Result<PathBuf, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["build", "-q", "--bin", "oflaunch", "--bin", "oflow"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    cargo_env::forget(&mut cargo);
    if !cargo.status()?.success() {
        return Err("oflaunch does not build".into());
    }
    Ok(std::env::current_exe()?.with_file_name("oflaunch"))
}

fn matrix(setup: Setup, o: &Options) -> Result<(), Box<dyn Error>> {
    let chosen: Vec<&Case> = cases()
        .iter()
        .filter(|c| c.hosts <= o.hosts && o.case.as_ref().is_none_or(|name| c.name == name || c.title() == *name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = cases().iter().map(|c| c.name).collect();
        return Err(format!("unknown case; there are {}", names.join(", ")).into());
    }
    let logs = setup.work.clone();
    let matrix = Matrix::new(setup, o.victim.clone())?.patience(if o.load { 4 } else { 1 });
    let _hogs = o.load.then(Hogs::start);
    println!("| case | runs | passed | worst report, s | worst end, s |\n|---|---|---|---|---|");
    let mut failed = 0;
    for case in chosen {
        let (mut passed, mut skipped, mut report, mut end) = (0, 0, Duration::ZERO, Duration::ZERO);
        let mut wrong = vec![];
        for seed in o.seed..o.seed + o.times {
            match matrix.once(case, seed) {
                Ok(Outcome { skipped: true, .. }) => skipped += 1,
                Ok(Outcome { report: r, end: e, wrong: w, folder, .. }) => {
                    report = report.max(r.unwrap_or_default());
                    end = end.max(e.unwrap_or_default());
                    passed += u64::from(w.is_empty());
                    if !w.is_empty() {
                        wrong.push(format!("seed {seed}, logs in {}:\n    {}", folder.display(), w.join("\n    ")));
                    }
                }
                Err(e) => wrong.push(format!("seed {seed}: {e}")),
            }
        }
        let seconds = |d: Duration| format!("{:.2}", d.as_secs_f64());
        println!("| {} | {} | {passed} | {} | {} |", case.title(), o.times - skipped, seconds(report), seconds(end));
        for w in &wrong {
            eprintln!("  {}: {w}", case.title());
        }
        failed += wrong.len();
    }
    if failed > 0 {
        let again = "`cargo xtask faults --times 1 --case CASE --seed SEED` does one again";
        return Err(format!("{failed} runs failed; logs are in {}; {again}", logs.display()).into());
    }
    Ok(())
}

fn false_alarms(setup: &Setup, minutes: f64, o: &Options) -> Result<(), Box<dyn Error>> {
    let calm = calm::run(setup, minutes, o.hosts, o.seed)?;
    for warning in &calm.warnings {
        println!("warning: {warning}");
    }
    for alarm in &calm.alarms {
        println!("FALSE ALARM: {alarm}");
    }
    for (kind, jobs) in &calm.by_kind {
        println!("{jobs:6} {kind}");
    }
    println!(
        "{} healthy jobs in {minutes} minutes: {} false alarms, {} warnings",
        calm.jobs(),
        calm.alarms.len(),
        calm.warnings.len()
    );
    let idle: Vec<&str> = calm.by_kind.iter().filter(|(_, jobs)| **jobs == 0).map(|(kind, _)| *kind).collect();
    if !calm.alarms.is_empty() {
        return Err("there were false alarms".into());
    }
    if !idle.is_empty() {
        return Err(format!("no job has run of {}: give it more minutes", idle.join(", ")).into());
    }
    Ok(())
}

/// Threads that compute for nothing, four for each core. All limits are four times as long then.
struct Hogs(Arc<AtomicBool>);

impl Hogs {
    fn start() -> Hogs {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..4 * std::thread::available_parallelism().map_or(1, |n| n.get()) {
            let over = over.clone();
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Hogs(over)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::options;

    #[test]
    fn what_proves_nothing_is_refused() {
        let why = |args: &[&str]| options(args).err().map(|e| e.to_string());
        assert_eq!(why(&["--times", "0"]).as_deref(), Some("--times 0 proves nothing: give at least 1"));
        for minutes in ["0", "-1", "nan", "inf"] {
            let text = why(&["--false-alarms", minutes]).unwrap_or_default();
            assert!(text.ends_with("is not a time in which anything could run"), "{text}");
        }
        assert_eq!(why(&["--false-alarms", "0.5", "--times", "1"]), None);
    }
}
