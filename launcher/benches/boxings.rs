//! Boxings through the API beside Open MPI's collectives: median and 99th percentile of single calls, under oflaunch's defaults.
//!
//! ```text
//! cargo bench -p oflaunch --bench boxings [-- --ranks 2 --rounds 5 --late 0 --bind none --most 67108864]
//! ```
//!
//! P to B stands beside `MPI_Allreduce`, S(0) to B beside `MPI_Allgather`; bytes are those of the logical f32 tensor. Runs of ours
//! and of the peer alternate, and the calls of all rounds are taken together. `--late` lets the last rank compute that many µs before
//! each call and tells its times. The floor is the time in which all ranks at once copy so many bytes with memcpy. The peer is left
//! out where `mpicc` or `mpirun` is missing.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

type Res<T> = std::result::Result<T, Box<dyn Error>>;

/// The program of the ranks: a script, built as a user's is.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/scripts/boxings.rs");

/// Bytes and calls of one round.
const SIZES: [(usize, usize); 11] = [
    (8, 4000),
    (512, 4000),
    (4 << 10, 4000),
    (16 << 10, 2000),
    (64 << 10, 1000),
    (256 << 10, 500),
    (1 << 20, 200),
    (4 << 20, 60),
    (16 << 20, 20),
    (32 << 20, 10),
    (64 << 20, 8),
];

fn main() -> Res<()> {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).cloned();
    let number = |name: &str, default: usize| option(name).map_or(Ok(default), |text| text.parse());
    let (ranks, rounds, late) = (number("--ranks", 2)?, number("--rounds", 5)?, number("--late", 0)?);
    let (most, bind) = (number("--most", 64 << 20)?, option("--bind"));
    let folder = tempfile::tempdir()?;
    let peer = peer(folder.path());
    let sizes: Vec<String> =
        SIZES.iter().filter(|(bytes, _)| *bytes <= most).map(|(bytes, times)| format!("{bytes}:{times}")).collect();
    for (case, theirs) in [("P", "REDUCE"), ("S(0)", "GATHER")] {
        let (mut own, mut mpi) = (Times::new(), Times::new());
        for _ in 0..rounds {
            let mut c = Command::new(env!("CARGO_BIN_EXE_oflaunch"));
            c.env("OFLOW_MODEL", "default");
            c.args(["-n", &ranks.to_string(), "--threads", "1", "--no-prefix"]);
            c.args(bind.iter().flat_map(|bind| ["--bind", bind]));
            collect(c.args([SCRIPT, "--", case]).arg(late.to_string()).args(&sizes), &mut own)?;
            if let Some(program) = &peer {
                let mut c = Command::new("mpirun");
                c.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                c.args(["--oversubscribe", "-n", &ranks.to_string()]).arg(program);
                collect(c.arg(theirs).arg(late.to_string()).args(&sizes), &mut mpi)?;
            }
        }
        let bound = bind.as_ref().map_or(String::new(), |bind| format!(", --bind {bind}"));
        println!("\n{case} -> B, {ranks} ranks{bound}, late {late} us; µs");
        println!("| bytes | p50 | p99 | MPI p50 | MPI p99 | p50 / MPI | p99 / MPI | memcpy |");
        println!("|---|---|---|---|---|---|---|---|");
        for (key, times) in &mut own {
            let [p50, p99] = percentiles(&mut times.calls);
            let floor = if times.copies.is_empty() {
                String::new()
            } else {
                format!("{:.1}", percentiles(&mut times.copies)[0])
            };
            let theirs = mpi.get_mut(key).map(|t| percentiles(&mut t.calls));
            let [m50, m99] = theirs.map_or(["".into(), "".into()], |t| t.map(|v| format!("{v:.2}")));
            let [r50, r99] =
                theirs.map_or(["".into(), "".into()], |t| [p50 / t[0], p99 / t[1]].map(|v| format!("{v:.2}")));
            println!("| {key} | {p50:.2} | {p99:.2} | {m50} | {m99} | {r50} | {r99} | {floor} |");
        }
    }
    Ok(())
}

/// By bytes.
type Times = BTreeMap<usize, Samples>;

#[derive(Default)]
struct Samples {
    /// Nanoseconds of calls.
    calls: Vec<u64>,
    /// Nanoseconds of copies of as many bytes.
    copies: Vec<u64>,
}

/// Median and 99th percentile in µs.
fn percentiles(ns: &mut [u64]) -> [f64; 2] {
    ns.sort_unstable();
    [ns.len() / 2, ns.len() * 99 / 100].map(|i| ns[i] as f64 / 1e3)
}

/// Runs a command whose lines are `BYTES ns ns …`, and `copy BYTES ns ns …`.
fn collect(command: &mut Command, times: &mut Times) -> Res<()> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} ended with {}: {text}{errors}", output.status).into());
    }
    for line in text.lines() {
        let (copy, line) = line.strip_prefix("copy ").map_or((false, line), |rest| (true, rest));
        let numbers = line.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let Some((bytes, ns)) = numbers.split_first() else { continue };
        let samples = times.entry(*bytes as usize).or_default();
        if copy { &mut samples.copies } else { &mut samples.calls }.extend(ns);
    }
    Ok(())
}

fn peer(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("collectives_mpi");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/peers/collectives_mpi.c");
    let compiled = Command::new("mpicc").arg("-O2").arg("-o").arg(&program).arg(source).output();
    let found = compiled.is_ok_and(|o| o.status.success()) && Command::new("mpirun").arg("--version").output().is_ok();
    if !found {
        eprintln!("Open MPI is left out: mpicc or mpirun is missing or fails");
    }
    found.then_some(program)
}
