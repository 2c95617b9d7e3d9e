//! From the start of the launcher to the end of the first all-reduce on every rank, beside Open MPI and torchrun with gloo.
//!
//! ```text
//! cargo bench -p oflaunch --bench start [-- --rounds 7]
//! ```
//!
//! Runs alternate, medians are told. Peers that are not installed are left out, and it is said so: `mpicc` and `mpirun` in
//! PATH, a Python with PyTorch named by the variable PYTHON [default: python3]. The goal is 0.15 s for 8 ranks.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use oflow::prelude::*;

/// Set for the ranks, which are this program too.
const RANK_MODE: &str = "OFLOW_BENCH_START_RANK";
const WORLDS: [usize; 2] = [2, 8];

fn main() -> std::result::Result<(), Box<dyn Error>> {
    if std::env::var_os(RANK_MODE).is_some() {
        return Ok(rank()?);
    }
    let args: Vec<String> = std::env::args().collect();
    let rounds = args.iter().position(|a| a == "--rounds").and_then(|i| args.get(i + 1));
    let rounds: usize = rounds.map_or(Ok(7), |r| r.parse())?;
    let folder = tempfile::tempdir()?;
    let peers = Peers::find(folder.path());
    println!("| ranks | oflaunch, s | Open MPI, s | torchrun + gloo, s | Open MPI / oflaunch | torchrun / oflaunch |");
    println!("|---|---|---|---|---|---|");
    for world in WORLDS {
        let mut times = [vec![], vec![], vec![]];
        // The first round reads files into memory and is not counted.
        for round in 0..=rounds {
            for (which, times) in times.iter_mut().enumerate() {
                let Some(command) = peers.command(which, world)? else { continue };
                let took = measure(command, world)?;
                if round > 0 {
                    times.push(took);
                }
            }
        }
        let [own, mpi, torch] = times.map(median);
        let show = |t: Option<f64>| t.map_or("-".to_string(), |t| format!("{t:.3}"));
        let ratio = |t: Option<f64>| t.zip(own).map_or("-".to_string(), |(t, own)| format!("{:.1}", t / own));
        println!("| {world} | {} | {} | {} | {} | {} |", show(own), show(mpi), show(torch), ratio(mpi), ratio(torch));
    }
    Ok(())
}

/// One rank of ours.
fn rank() -> Result<()> {
    let world = oflow::init()?;
    let all = Placement::all(Device::Cpu)?;
    let sum = ones([world.size()], (&all, sbp![S(0)]))?.sum(())?.item()?;
    let now = now_ns();
    assert_eq!(sum, world.size() as f64);
    println!("{now}");
    Ok(())
}

fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos())
}

/// What there is to compare with.
struct Peers {
    own: PathBuf,
    mpi: Option<PathBuf>,
    python: Option<String>,
}

impl Peers {
    fn find(folder: &Path) -> Peers {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/peers");
        let program = folder.join("start_mpi");
        let compiled =
            Command::new("mpicc").arg("-O2").arg("-o").arg(&program).arg(scripts.join("start_mpi.c")).output();
        let mpi = compiled.is_ok_and(|o| o.status.success()).then_some(program);
        if mpi.is_none() {
            eprintln!("Open MPI is left out: mpicc is missing or fails");
        }
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        let has_torch = Command::new(&python).args(["-c", "import torch.distributed"]).output();
        let python = has_torch.is_ok_and(|o| o.status.success()).then_some(python);
        if python.is_none() {
            eprintln!("torchrun is left out: the Python that PYTHON names has no PyTorch");
        }
        Peers { own: PathBuf::from(env!("CARGO_BIN_EXE_oflaunch")), mpi, python }
    }

    fn command(&self, which: usize, world: usize) -> std::result::Result<Option<Command>, Box<dyn Error>> {
        let n = world.to_string();
        Ok(match which {
            0 => {
                let mut c = Command::new(&self.own);
                c.env(RANK_MODE, "1").env("OFLOW_MODEL", "default");
                c.args(["-n", &n, "--threads", "1", "--no-prefix"]).arg(std::env::current_exe()?);
                Some(c)
            }
            1 => self.mpi.as_ref().map(|program| {
                let mut c = Command::new("mpirun");
                c.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                c.args(["--oversubscribe", "-n", &n]).arg(program);
                c
            }),
            _ => self.python.as_ref().map(|python| {
                let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/peers/start_torch.py");
                let mut c = Command::new(python);
                c.env("OMP_NUM_THREADS", "1");
                c.args(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", &n]).arg(script);
                c
            }),
        })
    }
}

/// Seconds from the start of the command to the latest time that a rank printed.
fn measure(mut command: Command, world: usize) -> std::result::Result<f64, Box<dyn Error>> {
    let began = now_ns();
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let times: Vec<u128> = text.lines().filter_map(|l| l.trim().parse().ok()).collect();
    match times.iter().max() {
        Some(last) if output.status.success() && times.len() == world => Ok((last - began) as f64 / 1e9),
        _ => {
            Err(format!("{command:?} ended with {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr))
                .into())
        }
    }
}

fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    (!times.is_empty()).then(|| times[times.len() / 2])
}
