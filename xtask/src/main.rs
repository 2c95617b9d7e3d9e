//! Project chores. `cargo xtask codegen` remakes the committed code that is generated: from `.proto` files and from the texts of
//! functions;
//! `cargo xtask cuda-kernels` compiles every CUDA program with the real compiler; `cargo xtask faults` plants faults in real
//! jobs; `cargo xtask fuzz` sends nonsense to decoders; `cargo xtask bench` runs the benches and writes down what they print;
//! `cargo xtask house` measures how the sources are read, `cargo xtask prose` checks docs, messages and examples, `cargo xtask budget`
//! counts what README's first command compiles, and `cargo xtask pytorch` runs PyTorch's own samples.

mod bench;
mod budget;
mod codegen;
mod cuda_kernels;
mod fuzz;
mod house;
#[cfg(test)]
mod launch_structs;
mod prose;
mod pytorch;
mod source;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// So that the fuzzer knows what an input costs.
#[global_allocator]
static ALLOCATOR: fuzz::Counting = fuzz::Counting;

const USAGE: &str = "usage: cargo xtask codegen                   remake generated code: proto/src/gen, src/functional/generated
       cargo xtask bench [FILTER] [--loaded] [--list]
                                             run the benches with FILTER in their names on a quiet machine, and write
                                             docs/performance/latest.md; --loaded: on any machine, without a conclusion;
                                             --list: say what there is and what each needs
       cargo xtask budget
                                             count the packages and the lines of LLVM code of README's first command
       cargo xtask cuda-kernels [--all | --write]
                                             compile a part of the CUDA programs, each for one architecture in turn;
                                             --all: all of them for each;
                                             --write: for each, and write xtask/data/cuda-kernels.tsv
       cargo xtask faults [--times 20] [--case NAME] [--seed S] [--load] [--hosts 2]
                                             plant each fault so many times in real jobs and judge the reports; --load: on an
                                             overloaded machine
       cargo xtask faults --false-alarms MINUTES [--seed S] [--hosts 2]
                                             healthy jobs on an overloaded machine: nothing may be reported
       cargo xtask fuzz MINUTES [SEED] [--only WORD]
                                             malformed input for everything that reads what strangers, peers or damaged
                                             disks wrote (of the targets with WORD in their names)
       cargo xtask fuzz --again FILE [--only WORD]
                                             an input that was found once more
       cargo xtask house [--json] [--root DIR]
                                             how the sources are read: walks, circles of imports, lengths
       cargo xtask house walk FILE:FUNCTION:PARAMETER [--room DIR] [--stays] [--cold]
                                             the files that one value is followed through
       cargo xtask prose [--root DIR]
                                             docs, messages and examples that break the rules of prose
       cargo xtask pytorch [OPTIONS]
                                             PyTorch's own samples of functions, modules and optimizers; without options all,
                                             written to docs/pytorch.md; --help: the options";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["codegen"] => codegen::run(),
        ["bench", rest @ ..] => bench::run(rest),
        ["budget"] => budget::run(),
        ["cuda-kernels"] => cuda_kernels::run(cuda_kernels::For::Part),
        ["cuda-kernels", "--all"] => cuda_kernels::run(cuda_kernels::For::All),
        ["cuda-kernels", "--write"] => cuda_kernels::run(cuda_kernels::For::Table),
        ["faults", rest @ ..] => faults(rest),
        ["house", rest @ ..] => house::run(rest),
        ["prose", rest @ ..] => prose::run(rest),
        ["pytorch", rest @ ..] => pytorch::run(rest),
        ["fuzz", "--again", file, rest @ ..] if rest.is_empty() || rest.len() == 2 && rest[0] == "--only" => {
            fuzz::again(Path::new(file), rest.get(1).copied().unwrap_or_default())
        }
        ["fuzz", minutes, rest @ ..] => fuzz(minutes, rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("xtask: {e}");
            ExitCode::FAILURE
        }
    }
}

/// The checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn fuzz(minutes: &str, rest: &[&str]) -> Result<(), Box<dyn Error>> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let (seed, only) = match rest {
        [] => (now, ""),
        [seed] => (seed.parse()?, ""),
        ["--only", word] => (now, *word),
        [seed, "--only", word] => (seed.parse()?, *word),
        _ => return Err(USAGE.into()),
    };
    let time = std::time::Duration::try_from_secs_f64(minutes.parse::<f64>()? * 60.0)?;
    fuzz::run(time, seed, only)
}

/// Runs the program of the fault matrix, which is a crate of its own.
fn faults(args: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut cargo = budget::cargo(&["run", "-q", "-p", "oflow-faults"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    if cargo.arg("--").args(args).status()?.success() { Ok(()) } else { Err("the fault matrix has failed".into()) }
}
