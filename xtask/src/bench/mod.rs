//! `cargo xtask bench [FILTER]`: runs the benches one after the other and writes what they print to `docs/performance/latest.md`.
//!
//! Each bench prints its own table, with medians and ratios to a peer that it ran alternately with. This room knows their
//! commands (`BENCHES`), looks whether the machine is quiet (`machine.rs`), and keeps the page (`page.rs`). Numbers of a loaded
//! machine are no result: a bench waits for quiet up to a minute, then the run ends with an error, unless `--loaded` is given.

mod machine;
mod page;

use crate::root;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use machine::{State, Watch};
use page::{Facts, Section};

const PAGE: &str = "docs/performance/latest.md";

/// How long to wait for a quiet machine.
const PATIENCE: u32 = 60;

/// A bench: what to type after `cargo bench`, and what its peer needs. Without the peer it runs alone.
struct Bench {
    name: &'static str,
    args: &'static [&'static str],
    peer: &'static str,
}

const OPEN_MPI: &str = "Open MPI (mpicc and mpirun in PATH)";
const TORCH: &str = "PyTorch (PYTHON names a Python that has it)";
const NONE: &str = "no peer";

/// In the order of the page. Those that a user notices first come first.
const BENCHES: &[Bench] = &[
    Bench { name: "boxings", args: &["-p", "oflaunch", "--bench", "boxings"], peer: OPEN_MPI },
    Bench {
        name: "gpt_small",
        args: &["-p", "oflaunch", "--bench", "gpt"],
        peer: "PyTorch and JAX (PYTHON names a Python that has them)",
    },
    Bench {
        name: "gpt_large",
        args: &["-p", "oflaunch", "--bench", "gpt", "--", "--size", "large"],
        peer: "PyTorch and JAX (PYTHON names a Python that has them)",
    },
    Bench { name: "graph", args: &["-p", "oflaunch", "--bench", "graph"], peer: TORCH },
    Bench { name: "ops", args: &["--bench", "ops"], peer: TORCH },
    Bench { name: "cuda_speed", args: &["--bench", "cuda_speed"], peer: "PyTorch (by scripts/gpu-check.sh bench)" },
    Bench { name: "linalg", args: &["-p", "oflow-linalg", "--bench", "linalg"], peer: TORCH },
    Bench { name: "dispatch", args: &["--bench", "dispatch"], peer: TORCH },
    Bench {
        name: "start",
        args: &["-p", "oflaunch", "--bench", "start"],
        peer: "Open MPI (mpicc and mpirun in PATH) and torchrun (PYTHON names a Python with PyTorch)",
    },
    Bench { name: "shm_all_reduce", args: &["--bench", "shm_all_reduce"], peer: NONE },
    Bench {
        name: "tcp_all_reduce",
        args: &["--bench", "tcp_all_reduce"],
        peer: "raw sockets, and gloo (PYTHON names a Python with PyTorch)",
    },
    Bench { name: "box_many", args: &["--bench", "box_many"], peer: NONE },
    Bench { name: "checkpoint", args: &["--bench", "checkpoint"], peer: "dd" },
    Bench { name: "choice", args: &["--bench", "choice"], peer: NONE },
    Bench { name: "boxing_plan", args: &["--bench", "boxing_plan"], peer: NONE },
    Bench { name: "arena", args: &["--bench", "arena"], peer: NONE },
    Bench { name: "boxing_bytes", args: &["--bench", "boxing_bytes"], peer: NONE },
    Bench { name: "control_scale", args: &["-p", "oflaunch", "--bench", "control_scale"], peer: NONE },
    Bench { name: "kernels", args: &["-p", "oflow-kernels", "--bench", "kernels"], peer: NONE },
    Bench { name: "gpt_step", args: &["-p", "oflow-kernels", "--bench", "gpt_step"], peer: NONE },
    Bench { name: "fusion", args: &["-p", "oflow-kernels", "--bench", "fusion"], peer: NONE },
];

/// Reads what stands after `cargo xtask bench`, and runs it.
pub fn run(args: &[&str]) -> Result<(), Box<dyn Error>> {
    let (flags, words): (Vec<&str>, Vec<&str>) = args.iter().partition(|a| a.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|f| !["--loaded", "--list"].contains(f)) {
        return Err(format!("bench: unknown option {unknown}; there are --loaded and --list").into());
    }
    let filter = match words[..] {
        [] => "",
        [filter] => filter,
        _ => return Err("bench takes one FILTER".into()),
    };
    let chosen: Vec<&Bench> = BENCHES.iter().filter(|b| b.name.contains(filter)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = BENCHES.iter().map(|b| b.name).collect();
        return Err(format!("no bench has '{filter}' in its name; there are {}", names.join(", ")).into());
    }
    if flags.contains(&"--list") {
        for bench in chosen {
            println!("{:<15} {:<55} {}", bench.name, bench.command(), bench.peer);
        }
        return Ok(());
    }
    run_all(&chosen, flags.contains(&"--loaded"))
}

fn run_all(chosen: &[&Bench], loaded: bool) -> Result<(), Box<dyn Error>> {
    let (facts, python) = facts()?;
    let path = root().join(PAGE);
    let order: Vec<&str> = BENCHES.iter().map(|b| b.name).collect();
    let mut doubts = vec![];
    for bench in chosen {
        // Compiling is load, and is over before the machine is looked at.
        let built = bench.cargo(python.as_deref()).0.arg("--no-run").status()?;
        if !built.success() {
            return Err(format!("{} does not compile", bench.command()).into());
        }
        let before = quiet_state(bench.name, loaded)?;
        println!("\n{}: {}", bench.name, bench.command());
        let watch = Watch::start()?;
        let (output, status) = bench.output(python.as_deref())?;
        let (during, after) = (watch.state()?, machine::state()?);
        let section = Section {
            name: bench.name.into(),
            command: bench.command(),
            peer: bench.peer.into(),
            facts: facts.clone(),
            states: [before, during, after],
            failure: (!status.success()).then(|| status.to_string()),
            output,
        };
        for doubt in section.doubts() {
            eprintln!("{}: {doubt}", bench.name);
            doubts.push(format!("{}: {doubt}", bench.name));
        }
        let old = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, page::page(&old, &section, &order)).map_err(|e| format!("{PAGE}: {e}"))?;
    }
    println!("\nwrote {PAGE}");
    // With --loaded load was expected; a failure never is.
    doubts.retain(|d| !loaded || !d.contains(page::LOADED));
    if doubts.is_empty() { Ok(()) } else { Err(doubts.join("; ").into()) }
}

/// State of the machine, once it is quiet; at once with `loaded`.
fn quiet_state(name: &str, loaded: bool) -> Result<State, Box<dyn Error>> {
    for second in 0..PATIENCE {
        let state = machine::state()?;
        if loaded || state.is_quiet() {
            return Ok(state);
        }
        if second == 0 {
            eprintln!("{name} waits for a quiet machine, {PATIENCE} s at most: {state}");
        }
        // Looking takes a second itself; the next look is a little later.
        std::thread::sleep(Duration::from_millis(10));
    }
    let state = machine::state()?;
    Err(format!("{name}: the machine is loaded ({state}), its numbers would be no result; --loaded runs all the same")
        .into())
}

impl Bench {
    fn command(&self) -> String {
        format!("cargo bench {}", self.args.join(" "))
    }

    /// The command up to the arguments of the bench, and these.
    fn cargo(&self, python: Option<&str>) -> (Command, &'static [&'static str]) {
        let end = self.args.iter().position(|a| *a == "--").unwrap_or(self.args.len());
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root()).args(["bench", "-q"]).args(&self.args[..end]);
        if let Some(python) = python {
            cargo.env("PYTHON", python);
        }
        (cargo, &self.args[end..])
    }

    /// Runs the bench and returns what it printed on stdout and stderr; both are shown meanwhile.
    fn output(&self, python: Option<&str>) -> Result<(String, ExitStatus), Box<dyn Error>> {
        let (reader, writer) = std::io::pipe()?;
        let (mut command, rest) = self.cargo(python);
        command.args(rest).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // It holds the writing end, which must be closed for the reading end to end.
        drop(command);
        let mut text = String::new();
        for line in BufReader::new(reader).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            text += &line;
            text.push('\n');
        }
        Ok((text, child.wait()?))
    }
}

/// First line that a command prints, if it succeeds.
fn says(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).current_dir(root()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_string())
}

/// Facts about this run for the page, and the Python that has PyTorch.
fn facts() -> Result<(Facts, Option<String>), Box<dyn Error>> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let version = |module: &str| says(&python, &["-c", &format!("import {module}; print({module}.__version__)")]);
    let (torch, jax) = (version("torch"), version("jax"));
    let mpi = says("mpicc", &["--version"]).and_then(|_| says("mpirun", &["--version"]));
    let python = torch.is_some().then_some(python);
    let named = [("PyTorch ", torch), ("JAX ", jax), ("", mpi)];
    let peers = named.into_iter().filter_map(|(name, version)| Some(format!("{name}{}", version?)));
    // The page itself may have changed: every bench of a run writes it.
    let changes =
        says("git", &["status", "--porcelain", "--", ".", &format!(":!{PAGE}")]).ok_or("git status has failed")?;
    let facts = Facts {
        date: says("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).ok_or("date has failed")?,
        commit: says("git", &["rev-parse", "--short=12", "HEAD"]).ok_or("git rev-parse has failed")?,
        changed: !changes.is_empty(),
        machine: machine::description()?,
        peers: peers.collect(),
    };
    Ok((facts, python))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bench_of_the_repository_is_listed() {
        let folders = [("benches", ""), ("launcher/benches", "oflaunch"), ("kernels/benches", "oflow-kernels")];
        for (folder, package) in folders {
            for entry in fs::read_dir(root().join(folder)).expect("a folder of benches") {
                let file = entry.expect("an entry").file_name().into_string().expect("UTF-8");
                let Some(name) = file.strip_suffix(".rs") else { continue };
                let of = |b: &Bench| b.args.windows(2).any(|w| w == ["--bench", name]);
                let packaged = |b: &Bench| package.is_empty() || b.args.starts_with(&["-p", package]);
                assert!(BENCHES.iter().any(|b| of(b) && packaged(b)), "{folder}/{file} is not in BENCHES");
            }
        }
    }

    #[test]
    fn names_are_unique_and_what_cannot_be_run_is_said() {
        let mut names: Vec<&str> = BENCHES.iter().map(|b| b.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), BENCHES.len());
        let error = |args: &[&str]| run(args).expect_err("an error").to_string();
        assert!(error(&["nosuch"]).starts_with("no bench has 'nosuch' in its name; there are boxings, gpt_small, "));
        assert_eq!(error(&["--quick"]), "bench: unknown option --quick; there are --loaded and --list");
        assert_eq!(error(&["a", "b"]), "bench takes one FILTER");
    }
}
