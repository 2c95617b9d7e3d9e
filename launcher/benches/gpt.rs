//! Training steps of examples/gpt.rs under oflaunch beside PyTorch (alone, DDP, tensor parallel with DTensor) and JAX (jit, alone
//! and with the batch over two CPU devices).
//!
//! ```text
//! cargo bench -p oflaunch --bench gpt [-- --rounds 3 --size small|large --peers torch,jax --steps 15]
//! ```
//!
//! Runs alternate. Told is the median of the steps of all rounds; the first steps of each run, which compile and make plans,
//! are not counted. All sides take the global batch from the same text in f32, with AdamW and the same schedule, and none clips
//! gradients. `single` is one thread, `dp` and `tp` are two ranks (in JAX two devices of one process) with one thread each.
//! Memory is the kernel's peak (VmHWM) of all ranks summed, without launchers; pages that ranks share count once for each of
//! them. Ours is read every 20 ms, a peer reads its own at the end.
//!
//! PyTorch runs with the defaults of a user: no `torch.compile`, AdamW neither fused nor foreach. Peers that are not installed
//! are left out, and it is said so: a Python named by the variable PYTHON [default: python3] with PyTorch, with JAX.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

type Res<T> = std::result::Result<T, Box<dyn Error>>;

const MODES: [(&str, usize); 3] = [("single", 1), ("dp", 2), ("tp", 2)];
const SIDES: [&str; 3] = ["oflow", "PyTorch", "JAX"];

/// Steps that a run of a size makes, how many of them come first and are not counted, and the options of all sides.
const SIZES: [(&str, usize, usize, &str); 2] = [
    ("small", 15, 3, "--dim 256 --layers 4 --heads 4 --seq 128 --batch 16 --lr 0.001"),
    // With a learning rate of 0.001 and no warm-up its loss rises at first, on every side.
    ("large", 6, 2, "--dim 768 --layers 12 --heads 12 --seq 256 --batch 4 --lr 0.0001"),
];

fn main() -> Res<()> {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).map(String::as_str);
    let number = |name: &str, default: usize| option(name).map_or(Ok(default), str::parse);
    let (rounds, asked) = (number("--rounds", 3)?, option("--size").unwrap_or("small"));
    let Some((size, steps, warmup, model)) = SIZES.into_iter().find(|(name, ..)| *name == asked) else {
        return Err(format!("--size {asked}: small or large").into());
    };
    let steps = number("--steps", steps)?;
    if rounds == 0 || steps <= warmup {
        return Err(format!("nothing to count: --rounds {rounds}, --steps {steps} of which {warmup} warm up").into());
    }
    let sides = Sides::find(option("--peers").unwrap_or("torch,jax"))?;
    let mut common: Vec<String> = model.split(' ').map(String::from).collect();
    common.extend(["--steps", &steps.to_string()].map(String::from));
    // The first run builds the script.
    let tiny = ["--steps", "1", "--dim", "8", "--heads", "1", "--layers", "1"].map(String::from);
    sides.own(1, "single", &tiny).output()?;

    let mut runs: [[Option<Run>; 3]; 3] = Default::default();
    for _ in 0..rounds {
        for ((mode, ranks), runs) in MODES.into_iter().zip(&mut runs) {
            for (side, all) in runs.iter_mut().enumerate() {
                let Some(mut command) = sides.command(side, mode, ranks, &common, warmup) else { continue };
                let run = if side == 0 { run_own(&mut command, ranks, warmup)? } else { run_peer(&mut command)? };
                all.get_or_insert_default().add(run);
            }
        }
    }
    println!("\n{size}: {model}; rounds: {rounds}, counted steps of each: {}", steps - warmup);
    print!("{}", table(&runs));
    Ok(())
}

/// What runs of one mode on one side told.
#[derive(Default)]
struct Run {
    /// Milliseconds of the counted steps.
    ms: Vec<f64>,
    /// Losses of all steps; of the last run where there are several.
    losses: Vec<f64>,
    peak_mib: f64,
    /// Processor time divided by wall time, if told.
    cores: Option<f64>,
}

impl Run {
    fn add(&mut self, run: Run) {
        self.ms.extend(run.ms);
        self.losses = run.losses;
        self.peak_mib = self.peak_mib.max(run.peak_mib);
        self.cores = self.cores.into_iter().chain(run.cores).reduce(f64::max);
    }
    fn median(&self) -> f64 {
        let mut ms = self.ms.clone();
        ms.sort_by(f64::total_cmp);
        ms[ms.len() / 2]
    }
}

/// Times and memory, then how dp scales, then what shows whether all sides did the same work.
fn table(runs: &[[Option<Run>; 3]; 3]) -> String {
    let cell = |x: Option<f64>, digits: usize| x.map_or("-".to_string(), |x| format!("{x:.digits$}"));
    let mut text =
        "| mode | oflow, ms a step | PyTorch | oflow / PyTorch | JAX | oflow / JAX | oflow, MiB | PyTorch | JAX |\n\
                    |---|---|---|---|---|---|---|---|---|\n"
            .to_string();
    for ((mode, _), sides) in MODES.into_iter().zip(runs) {
        let [own, torch, jax] = sides.each_ref().map(|r| r.as_ref().map(Run::median));
        let ratio = |peer: Option<f64>| cell(own.zip(peer).map(|(own, peer)| own / peer), 2);
        let mib = sides.each_ref().map(|r| cell(r.as_ref().map(|r| r.peak_mib), 0)).join(" | ");
        let times = [cell(own, 1), cell(torch, 1), ratio(torch), cell(jax, 1), ratio(jax)].join(" | ");
        text += &format!("| {mode} | {times} | {mib} |\n");
    }
    let scaling = |side: usize| {
        let [single, dp] = [&runs[0][side], &runs[1][side]].map(|r| r.as_ref().map(Run::median));
        cell(single.zip(dp).map(|(single, dp)| 100.0 * single / (2.0 * dp)), 0)
    };
    let all: Vec<String> = SIDES.iter().enumerate().map(|(i, name)| format!("{name} {} %", scaling(i))).collect();
    text += &format!("\nScaling of dp, single / (2 x dp): {}.\n\n", all.join(", "));
    text += "| mode | side | loss of the first step | of the last | cores used |\n|---|---|---|---|---|\n";
    for ((mode, _), sides) in MODES.into_iter().zip(runs) {
        for (name, run) in SIDES.iter().zip(sides) {
            let Some(run) = run else { continue };
            let [first, last] = [run.losses.first(), run.losses.last()].map(|l| cell(l.copied(), 3));
            text += &format!("| {mode} | {name} | {first} | {last} | {} |\n", cell(run.cores, 2));
        }
    }
    text
}

/// Our launcher and the peers that there are.
struct Sides {
    root: PathBuf,
    python: String,
    has: [bool; 2],
}

impl Sides {
    fn find(asked: &str) -> Res<Sides> {
        if let Some(unknown) = asked.split(',').find(|p| !["torch", "jax", ""].contains(p)) {
            return Err(format!("--peers {unknown}: torch, jax or both with a comma").into());
        }
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        let has = ["torch", "jax"].map(|module| {
            let wanted = asked.split(',').any(|p| p == module);
            let code = format!("import {module}, numpy; print({module}.__version__)");
            let found = wanted.then(|| Command::new(&python).args(["-c", &code]).output());
            match found {
                Some(Ok(o)) if o.status.success() => {
                    eprintln!("{module} {}", String::from_utf8_lossy(&o.stdout).trim());
                    return true;
                }
                Some(_) => eprintln!("{module} is left out: the Python that PYTHON names does not have it"),
                None => eprintln!("{module} is left out, as asked"),
            }
            false
        });
        Ok(Sides { root: Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), python, has })
    }

    fn own(&self, ranks: usize, mode: &str, options: &[String]) -> Command {
        let mut c = Command::new(env!("CARGO_BIN_EXE_oflaunch"));
        c.env("OFLOW_MODEL", "default");
        c.args(["-n", &ranks.to_string(), "--threads", "1", "--no-prefix", "--profile", "release"]);
        c.arg(self.root.join("examples/gpt.rs")).args(["--", "--parallel", mode]).args(options);
        c.args(["--clip", "0", "--sample", "0"]);
        c
    }

    fn command(&self, side: usize, mode: &str, ranks: usize, options: &[String], warmup: usize) -> Option<Command> {
        if side == 0 {
            return Some(self.own(ranks, mode, options));
        }
        if !self.has[side - 1] || side == 2 && mode == "tp" {
            return None;
        }
        let script = self.root.join("scripts/peers").join(["gpt_torch.py", "gpt_jax.py"][side - 1]);
        let mut c = Command::new(&self.python);
        c.env("OMP_NUM_THREADS", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        if side == 1 && ranks > 1 {
            c.args(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", &ranks.to_string()]);
        }
        c.arg(script).args(["--parallel", mode]).args(options).args(["--warmup", &warmup.to_string()]);
        Some(c)
    }
}

/// Runs a peer, whose last line of output is JSON with all there is to tell.
fn run_peer(command: &mut Command) -> Res<Run> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let failed =
        |why: &str| format!("{command:?} {why}, {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(failed("has failed").into());
    }
    let told: Value = serde_json::from_str(text.trim().lines().last().unwrap_or_default())?;
    let list =
        |name: &str| -> Vec<f64> { told[name].as_array().into_iter().flatten().filter_map(Value::as_f64).collect() };
    let (ms, losses) = (list("ms"), list("losses"));
    match told["peak_mib"].as_f64() {
        Some(peak_mib) if !ms.is_empty() => Ok(Run { ms, losses, peak_mib, cores: told["cores"].as_f64() }),
        _ => Err(failed("told no times or no memory").into()),
    }
}

/// Step (from 1), loss and milliseconds of the line that an example prints for a step: `step 3/15: loss 5.41 (12.345 ms)`.
fn step(line: &str) -> Option<(usize, f64, f64)> {
    let (step, rest) = line.strip_prefix("step ")?.split_once('/')?;
    let (loss, ms) = rest.split_once(": loss ")?.1.split_once(" (")?;
    Some((step.parse().ok()?, loss.parse().ok()?, ms.strip_suffix(" ms)")?.parse().ok()?))
}

/// Runs ours, which prints loss and time of each step. Times of the first `warmup` steps do not count.
fn run_own(command: &mut Command, ranks: usize, warmup: usize) -> Res<Run> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let launcher = PathBuf::from(format!("/proc/{}", child.id()));
    // Peak memory in KiB, by process.
    let mut peaks = std::collections::BTreeMap::<String, u64>::new();
    // The output of some steps fits into the pipes.
    while child.try_wait()?.is_none() {
        for pid in ranks_of(&launcher) {
            let kib = peak_kib(&pid);
            if kib > 0 {
                peaks.insert(pid, kib);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut run = Run { peak_mib: peaks.values().sum::<u64>() as f64 / 1024.0, ..Run::default() };
    for (done, loss, ms) in text.lines().filter_map(step) {
        run.losses.push(loss);
        run.ms.extend((done > warmup).then_some(ms));
    }
    if !output.status.success() || run.ms.is_empty() || peaks.len() != ranks {
        let errors = String::from_utf8_lossy(&output.stderr);
        let (status, seen) = (output.status, peaks.len());
        return Err(format!("{command:?} ended with {status}, {seen} of {ranks} ranks seen: {text}{errors}").into());
    }
    Ok(run)
}

/// Process ids of the launcher's children that have a rank in their environment: not the guardian, not cargo.
fn ranks_of(launcher: &Path) -> Vec<String> {
    let threads = fs::read_dir(launcher.join("task")).into_iter().flatten().flatten();
    let children: String = threads.filter_map(|t| fs::read_to_string(t.path().join("children")).ok()).collect();
    let is_rank = |pid: &&str| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|v| v.starts_with(b"RANK="))
    };
    children.split_whitespace().filter(is_rank).map(String::from).collect()
}

fn peak_kib(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
