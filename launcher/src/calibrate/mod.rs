//! `oflow calibrate`: measures the constants of the cost model on this host.
//!
//! It runs itself as a job, with the same processes, cores, shared memory and executor as the jobs whose times it predicts. The
//! ranks run `measure.rs`; `fit.rs` computes the constants; [`crate::model`] writes the file that the next job reads.

mod fit;
mod measure;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use oflow::boxing::Model;
use serde_json::{Value, json};

use crate::cli::Hosts;
use crate::cli::{MAX_RANKS, Size};
use crate::cores::Binding;
use crate::events::Events;
use crate::inspect::show;
use crate::job::{self, Job};
use crate::load::Beside;
use crate::model::{Calibration, check_writable, default_path, write};
use crate::undelivered::Undelivered;
use crate::watch::Wanted;
use crate::{Failed, cores};
use fit::Quality;
use measure::{ConstantGroup, Point};

/// Where rank 0 leaves what was measured.
const POINTS: &str = "calibrate/points";
/// Measuring wants no failure to be waited for.
const GRACE: Duration = Duration::from_secs(1);

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("nproc")
                .long("nproc")
                .short('n')
                .value_name("N")
                .value_parser(value_parser!(u16).range(1..=i64::from(MAX_RANKS)))
                .help("Number of ranks [default: number of cores, as oflaunch]"),
        )
        .arg(
            Arg::new("threads")
                .long("threads")
                .short('t')
                .value_name("T")
                .value_parser(value_parser!(u16).range(1..=1024))
                .help("Compute threads per rank [default: cores / ranks, at least 1]"),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .short('o')
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("File for the constants [default: oflow/model.json in $XDG_CONFIG_HOME or ~/.config]"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Print constants, errors and all measured times as JSON"),
        )
        .arg(Arg::new("measure").long("measure").hide(true).action(ArgAction::SetTrue))
        .after_help(
            "Examples:
  oflow calibrate
  oflow calibrate -n 4 --out four.json

Starts N ranks on this host, runs boxings of all kinds from a few bytes to 16 MiB in groups of 2 to N ranks, and fits the
constants of the cost model to the times, with the least relative error. It takes about ten seconds; other work on the host
makes the constants worse, and the output says how much of the cores it used. oflaunch gives the constants to every rank of
later jobs. They decide the steps of boxing plans and the predicted times. Signatures are chosen under fixed constants, so
layouts do not depend on the host.
OFLOW_MODEL=default uses the fixed constants, OFLOW_MODEL=FILE another file; `oflow doctor` prints which are in use.",
        )
}

/// Measures, writes the file and prints the result.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    if matches.get_flag("measure") {
        return as_rank();
    }
    let number = |name: &str| matches.get_one::<u16>(name).copied();
    let available = cores::available();
    let (world, threads) = Size { nproc: number("nproc"), threads: number("threads") }.resolve(available.len());
    let to = matches.get_one::<PathBuf>("out").cloned().or_else(default_path).ok_or_else(|| {
        Failed::new("no home directory to write to is known\n  help: `--out FILE` says where; OFLOW_MODEL=FILE makes oflaunch use it")
    })?;
    check_writable(&to)?;
    let program =
        std::env::current_exe().map_err(|e| Failed::new(format!("cannot find the program that runs: {e}")))?;
    let job = Job {
        name: "calibrate".into(),
        python: None,
        program,
        args: vec!["calibrate".into(), "--measure".into()],
        nproc: world,
        hosts: Hosts::alone(),
        max_restarts: 0,
        threads,
        cores: cores::split(&available, world, threads).map(Binding::fixed),
        grace: GRACE,
        prefix: true,
        verbose: false,
        cost_model: Vec::new(),
        report: false,
        timelines: None,
        comm: None,
        stall: Duration::from_secs(300),
        log_dir: None,
        watch: Wanted::default(),
        events: Events::default(),
        undelivered: Undelivered::default(),
    };
    let beside = Beside::begin();
    let (code, points) = job::run_for(&job, POINTS)?;
    let other_work = beside.and_then(|b| b.end(&available));
    let points = match points {
        Some(json) if code == 0 => json,
        // The job has said what went wrong.
        _ => return Err(Failed::with_code(code.max(1), "the measurement failed; nothing was written")),
    };
    let points: Vec<Point> =
        serde_json::from_slice(&points).map_err(|e| Failed::new(format!("the measured times cannot be read: {e}")))?;
    let (model, quality) = fit::fit(&points);
    let calibration = Calibration::of_this_host(model, available.len(), world).beside(other_work);
    write(&to, &calibration)?;
    if matches.get_flag("json") {
        let answer = json!({ "file": to, "calibration": calibration, "fit": quality, "points": points });
        return show(&format!("{answer:#}\n"));
    }
    let to = to.display();
    // One that was named is used where it is named again.
    let reach = if matches.contains_id("out") { format!("under OFLOW_MODEL={to}") } else { "from now on".into() };
    show(&format!("{}\nwritten to {to}; oflaunch uses it {reach}\n", table(&calibration, &quality)))
}

/// Work of the ranks; the first one hands in the result.
fn as_rank() -> Result<u8, Failed> {
    let failed = |e: oflow::Error| Failed::new(e.to_string());
    let no_job = || Failed::new("--measure is for `oflow calibrate` itself");
    let world = oflow::init().map_err(failed)?;
    let control = world.ctx().control().ok_or_else(no_job)?;
    let points = measure::measure(&world).map_err(failed)?;
    if world.rank() == 0 {
        control.put(POINTS, json!(points).to_string().as_bytes()).map_err(failed)?;
    }
    world.barrier().map_err(failed)?;
    Ok(0)
}

/// The constants as people read them.
fn table(c: &Calibration, quality: &[Quality]) -> String {
    let load = if c.nproc > c.cores { "; ranks share cores, so times are those of a loaded host" } else { "" };
    let ranks = if c.nproc == 1 { "rank" } else { "ranks" };
    let mut text = format!("{} {ranks} on {} with {} cores{load}\n\n", c.nproc, c.host, c.cores);
    text += "  step                    first byte    GB/s   beyond       GB/s   error of the fit: median, 90 %\n";
    for q in quality {
        let (name, start, per_kib, beyond, extra) = constants(q.kind, &c.model);
        let (beyond, later) = match extra {
            0 => (String::from("-"), String::from("-")),
            _ => (format!("{beyond} KiB"), rate(per_kib + extra)),
        };
        text += &format!(
            "  {name:<22}  {:>7.2} us  {:>6}  {beyond:>9}  {later:>6}   {:>4.0} %  {:>4.0} %  of {} times\n",
            start as f64 / 1e6,
            rate(per_kib),
            100.0 * q.median_error,
            100.0 * q.most_errors,
            q.points
        );
    }
    if c.nproc == 1 {
        text += "  with one rank only copies are measured: communication keeps the default constants\n";
    }
    if let Some(what) = c.disturbed() {
        text += &format!("\nwarning: {what}: these are times of a loaded host; measure again when it is idle\n");
    }
    text
}

/// Name, time of a first byte to or from one peer, price of a KiB, where the extra price begins, and that.
fn constants(kind: ConstantGroup, m: &Model) -> (String, u64, u64, u64, u64) {
    let local = |name: &str, start| {
        (name.to_string(), start, m.per_kib_copied_ps, m.extra_copied_beyond_kib, m.extra_per_kib_copied_ps)
    };
    match kind {
        ConstantGroup::Local => local("local step", m.local_ps),
        ConstantGroup::LocalExchange => local("exchange with itself", m.local_exchange_ps),
        ConstantGroup::Wire(a) => {
            let r = m.same_host.rates[a as usize];
            let name = match json!(a) {
                Value::String(name) => name.replace('_', " "),
                other => other.to_string(),
            };
            (name, r.latency_ps + r.per_peer_ps, r.per_kib_ps, r.extra_beyond_kib, r.extra_per_kib_ps)
        }
    }
}

/// Picoseconds a KiB as GB/s.
fn rate(per_kib_ps: u64) -> String {
    format!("{:.1}", 1024e3 / per_kib_ps.max(1) as f64)
}
