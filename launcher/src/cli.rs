//! What the user may say to `oflaunch`.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use oflow::control::{SetBy, VARIABLES};

use crate::EXIT_CODES;
use crate::cores::Bind;

/// Most ranks one oflaunch starts.
pub const MAX_RANKS: u16 = 1024;

/// Run one program as several ranks on this host.
///
/// PROGRAM is a Rust script (a file that ends in `.rs`), which is built once against oflow and then run, or any
/// executable. All ranks run the same program; the first one that fails ends the job.
#[derive(Debug, Parser)]
#[command(name = "oflaunch", version, verbatim_doc_comment)]
pub struct Cli {
    /// How many ranks to start.
    #[command(flatten)]
    pub size: Size,

    /// Profile that scripts are built with [default: the one oflaunch was built with]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub profile: Option<Profile>,

    /// Seconds the other ranks get to end by themselves after one has failed
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    pub timeout: Duration,

    /// Seconds that ranks may wait for one that lives but does not come, before the job is ended
    #[arg(long, value_name = "S", default_value = "300", value_parser = seconds)]
    pub stall: Duration,

    /// Folder for rank-N.log (what each rank printed, with times), events.jsonl, and what is written on a failure
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,

    /// File to which what happens is appended, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,

    /// What each rank is bound to
    #[arg(long, value_enum, value_name = "WHAT", default_value = "cores")]
    pub bind: Bind,

    /// Memory that a boxing may take on a rank besides its source and its result, e.g. 256M; where no way keeps it, the one that
    /// takes least is used, with a warning [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub boxing_memory: Option<u64>,

    /// How the GPUs of different ranks exchange bytes: nccl (an error where it cannot be), or staged (through host memory)
    /// [default: nccl where every rank of a group has a GPU of its own]
    #[arg(long, value_enum, value_name = "WAY")]
    pub comm: Option<Way>,

    /// Show the ranks' output as it is, without `[rank N]` before each line
    #[arg(long)]
    pub no_prefix: bool,

    /// At the end, print to stderr what the ranks have communicated, by line of the program: bytes, predicted and
    /// measured time
    #[arg(long)]
    pub report: bool,

    /// Print what would be run, and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Tell what oflaunch does, and of every rank that fails rather than the first
    #[arg(long, short)]
    pub verbose: bool,

    /// A Rust script (`train.rs`) or an executable
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// Ranks and their threads.
#[derive(Clone, Copy, Debug, Args)]
pub struct Size {
    /// Number of ranks [default: number of cores]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_RANKS)))]
    pub nproc: Option<u16>,

    /// Compute threads per rank [default: cores / ranks, at least 1]
    #[arg(long, short = 't', value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

impl Size {
    /// Ranks and threads per rank on a host with so many cores.
    pub fn resolve(self, cores: usize) -> (usize, usize) {
        let nproc = self.nproc.map_or_else(|| cores.clamp(1, usize::from(MAX_RANKS)), usize::from);
        let threads = self.threads.map_or_else(|| (cores / nproc).max(1), usize::from);
        (nproc, threads)
    }
}

/// How GPUs exchange bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// From GPU to GPU.
    Nccl,
    /// Through host memory.
    Staged,
}

impl Way {
    /// The name that ranks know it by.
    pub fn name(self) -> &'static str {
        match self {
            Way::Nccl => "nccl",
            Way::Staged => "staged",
        }
    }
}

/// A cargo profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Optimised.
    Release,
    /// Quick to build, with overflow checks and debug assertions.
    Dev,
}

impl Profile {
    /// The profile that this program was built with, whose library is therefore built already.
    pub fn own() -> Profile {
        if cfg!(debug_assertions) { Profile::Dev } else { Profile::Release }
    }

    /// The name that cargo knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Dev => "dev",
        }
    }

    /// The folder of the target directory that it is built into.
    pub fn folder(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Dev => "debug",
        }
    }
}

impl Cli {
    /// Reads the command line. Ends the process after `--help`, `--version` and errors, as clap does.
    pub fn from_command_line() -> Cli {
        let matches = command().get_matches();
        Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit())
    }
}

/// The command with its full help text.
pub fn command() -> clap::Command {
    Cli::command().after_long_help(after_help()).after_help("See --help for examples, exit codes and the environment.")
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wanted = "a number of seconds from 0 to 86400";
    let value: f64 = text.parse().map_err(|_| format!("not {wanted}"))?;
    if (0.0..=86400.0).contains(&value) { Ok(Duration::from_secs_f64(value)) } else { Err(format!("not {wanted}")) }
}

/// A number of bytes: `4096`, `64K`, `256M`, `2G`.
pub fn memory(text: &str) -> Result<u64, String> {
    let wanted = || format!("'{text}' is not a size; write e.g. 256M (K, M and G are powers of 1024)");
    let (digits, shift) = match text.trim().char_indices().next_back().ok_or_else(wanted)? {
        (i, 'k' | 'K') => (&text.trim()[..i], 10),
        (i, 'm' | 'M') => (&text.trim()[..i], 20),
        (i, 'g' | 'G') => (&text.trim()[..i], 30),
        _ => (text.trim(), 0),
    };
    let number: u64 = digits.trim().parse().map_err(|_| wanted())?;
    number.checked_mul(1 << shift).ok_or_else(wanted)
}

fn after_help() -> String {
    let mut text = String::from(
        "Examples:
  oflaunch -n 4 train.rs                       build train.rs, run it as 4 ranks
  oflaunch -n 2 train.rs -- --epochs 3         with arguments for the program
  oflaunch -n 8 --threads 1 ./target/release/train
                                               an executable; one compute thread per rank
  oflaunch --profile dev -n 2 train.rs         quick build with debug assertions
  oflaunch --dry-run -n 2 train.rs             show commands, environment and cores

A script may begin with further dependencies; it must then be one file, without `mod` or `include!`:
  ---
  [dependencies]
  serde_json = \"1\"
  ---

Standard input goes to rank 0. Rank 0's output has no prefix on a terminal, so that progress bars work.
Ctrl-C is passed on to all ranks; a second one kills them.

Exit codes:
",
    );
    table(&mut text, EXIT_CODES.iter().copied());
    text.push_str("\nEnvironment that each rank gets:\n");
    let set_by_us = VARIABLES.iter().filter(|v| v.set_by != SetBy::User);
    table(&mut text, set_by_us.map(|v| (v.name, v.meaning)));
    text.push_str("\nEnvironment that you may set:\n");
    let set_by_user = VARIABLES.iter().filter(|v| v.set_by == SetBy::User);
    table(&mut text, set_by_user.map(|v| (v.name, v.meaning)));
    text
}

fn table<'a>(text: &mut String, rows: impl Iterator<Item = (&'a str, &'a str)> + Clone) {
    let width = rows.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, meaning) in rows {
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "  {name:width$}  {meaning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Cli, String> {
        let matches = command().try_get_matches_from([&["oflaunch"], args].concat()).map_err(|e| e.to_string())?;
        Cli::from_arg_matches(&matches).map_err(|e| e.to_string())
    }

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn arguments_after_the_dashes_are_the_programs() {
        let cli = parse(&["-n", "2", "train.rs", "--", "--nproc", "9", "-x"]).unwrap();
        assert_eq!(cli.size.nproc, Some(2));
        assert_eq!(cli.args, ["--nproc", "9", "-x"]);
    }

    #[test]
    fn numbers_are_checked() {
        for bad in ["0", "1025", "-1", "two", ""] {
            assert!(parse(&[&format!("--nproc={bad}"), "p"]).unwrap_err().contains("--nproc"), "{bad:?}");
        }
        for bad in ["-1", "nan", "inf", "1e9", "soon"] {
            let error = parse(&[&format!("--timeout={bad}"), "p"]).unwrap_err();
            assert!(error.contains("a number of seconds from 0 to 86400"), "{bad}: {error}");
        }
        assert_eq!(parse(&["--timeout", "0.25", "p"]).unwrap().timeout, Duration::from_millis(250));
    }

    #[test]
    fn sizes_fill_the_cores() {
        let size = |nproc, threads| Size { nproc, threads };
        assert_eq!(size(None, None).resolve(8), (8, 1));
        assert_eq!(size(Some(2), None).resolve(8), (2, 4));
        assert_eq!(size(Some(3), None).resolve(8), (3, 2));
        assert_eq!(size(Some(16), None).resolve(8), (16, 1));
        assert_eq!(size(Some(2), Some(1)).resolve(8), (2, 1));
        assert_eq!(size(None, None).resolve(4096), (1024, 4));
    }

    #[test]
    fn the_help_names_every_variable_and_code() {
        let help = command().render_long_help().to_string();
        for variable in VARIABLES {
            assert!(help.contains(variable.name), "{}", variable.name);
        }
        for (code, meaning) in EXIT_CODES {
            assert!(help.contains(meaning), "{code}");
        }
    }
}
