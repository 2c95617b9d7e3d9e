//! The command line of `oflaunch`.

use std::ffi::OsString;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use oflow::comm::tcp::Outage;
use oflow::control::{SetBy, VARIABLES};

use crate::EXIT_CODES;
use crate::cores::Bind;

/// Largest number of ranks per oflaunch.
pub const MAX_RANKS: u16 = 1024;

/// Largest number of hosts of a job.
pub const MAX_NODES: usize = 65_536;

/// Run one program as several ranks, on this host or on several.
///
/// PROGRAM is a Rust script (a file that ends in `.rs`), which is built once against oflow and then run, a Python
/// program (a file that ends in `.py`, or with -m a module), or any executable. All ranks run the same program; the first one that fails ends the job.
#[derive(Debug, Parser)]
#[command(name = "oflaunch", version, verbatim_doc_comment)]
pub struct Cli {
    /// Number of ranks and threads.
    #[command(flatten)]
    pub size: Size,

    /// The hosts of the job.
    #[command(flatten)]
    pub hosts: Hosts,

    /// How often all ranks are restarted after a rank has failed; OFLOW_RESTART holds the number of restarts so far
    #[arg(long, value_name = "R", default_value = "0")]
    pub max_restarts: u32,

    /// Profile that scripts are built with [default: the one oflaunch was built with]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub profile: Option<Profile>,

    /// Seconds that the other ranks have to end by themselves after a rank has failed
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    pub timeout: Duration,

    /// Time-out in seconds for a rank that is alive but has not joined a collective that other ranks wait in; the job then ends
    #[arg(long, value_name = "S", default_value = "300", value_parser = seconds)]
    pub stall: Duration,

    /// Folder for rank-N.log (the output of each rank, with times), events.jsonl, and the flight records of a failed job
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,

    /// File that events are appended to, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,

    /// Cores that each rank is bound to
    #[arg(long, value_enum, value_name = "WHAT", default_value = "auto")]
    pub bind: Bind,

    /// Memory that a boxing may use on a rank besides its source and its result, e.g. 256M; if no plan is within it, the plan
    /// with the least memory is used, with a warning [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub boxing_memory: Option<u64>,

    /// How GPUs of different ranks communicate: nccl (an error if NCCL cannot be used), or staged (through host memory)
    /// [default: nccl if every rank of a group has its own GPU]
    #[arg(long, value_enum, value_name = "WAY")]
    pub comm: Option<CommBackend>,

    /// End the job with code 1 if its output, a log or an event cannot be written, as on a full disk [default: say so once and
    /// go on without]
    #[arg(long)]
    pub require_logs: bool,

    /// Print the output of the ranks unchanged, without `[rank N]` before each line
    #[arg(long)]
    pub no_prefix: bool,

    /// At the end, print a report to stderr: what a step consists of, what is most worth changing, and the kernels and boxings of
    /// each source line; with --log-dir it is kept there as report.json, for `oflow report`
    #[arg(long)]
    pub report: bool,

    /// Write a timeline of all ranks to job.pftrace in this folder, for Perfetto (ui.perfetto.dev): ops, kernels, boxings, waiting,
    /// data, checkpoints, steps and memory
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,

    /// Steps that the timeline has, counted from 0: 100..120 are 20 steps [default: all]
    #[arg(long, value_name = "STEPS", requires = "trace", value_parser = steps)]
    pub trace_steps: Option<String>,

    /// Largest size of the timeline of a rank in MiB; what comes after it is left out
    #[arg(long, value_name = "N", requires = "trace", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub trace_mib: Option<u32>,

    /// Serve a page that shows the job while it runs: metrics, ranks, memory, logs, boxings, stalls. Its address with a token is printed;
    /// it is reachable from this host only. 0, or no PORT: a free port
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub watch: Option<u16>,

    /// Draw the state of the job below its output, twice a second; standard error must be a terminal
    #[arg(long)]
    pub top: bool,

    /// Print commands, environment and cores, and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Print what oflaunch does, and every rank that fails instead of the first only
    #[arg(long, short)]
    pub verbose: bool,

    /// PROGRAM is the name of a Python module, which is run as `python3 -m PROGRAM` would
    #[arg(long, short)]
    pub module: bool,

    /// A Rust script (`train.rs`), a Python program (`train.py`) or an executable
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// A range of steps, as ranks read it.
fn steps(text: &str) -> Result<String, String> {
    oflow::context::trace_steps(text).map(|_| text.to_string()).map_err(|e| e.message().to_string())
}

/// Number of ranks and of threads per rank.
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
    /// Returns the number of ranks and of threads per rank on a host with `cores` cores.
    pub fn resolve(self, cores: usize) -> (usize, usize) {
        let nproc = self.nproc.map_or_else(|| cores.clamp(1, usize::from(MAX_RANKS)), usize::from);
        let threads = self.threads.map_or_else(|| (cores / nproc).max(1), usize::from);
        (nproc, threads)
    }
}

/// The hosts of a job: their number, the address of node 0, token and TLS.
#[derive(Clone, Debug, Args)]
pub struct Hosts {
    /// Number of hosts; run oflaunch on each of them. MIN:MAX starts with at least MIN of MAX hosts, and with --max-restarts
    /// restarts on the remaining hosts after one is lost
    #[arg(long, value_name = "M|MIN:MAX", default_value = "1", value_parser = nodes)]
    pub nnodes: RangeInclusive<usize>,

    /// Number of this host, from 0; --rdzv is the address of node 0 [default: in order of arrival]
    #[arg(long, value_name = "K")]
    pub node_rank: Option<usize>,

    /// Address of node 0, reachable from all hosts. Without it oflaunch listens on the loopback interface only
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub rdzv: Option<String>,

    /// File with the job's token (`oflow token` makes one), readable by its owner only [default: OFLOW_TOKEN from the
    /// environment; else node 0 makes a token and prints the command for the other hosts]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Folder with ca.pem, cert.pem and key.pem, for mutual TLS between hosts
    #[arg(long, value_name = "DIR")]
    pub tls_dir: Option<PathBuf>,

    /// Time-out in seconds for hosts to join, at the start and at each restart
    #[arg(long, value_name = "S", default_value = "600", value_parser = seconds)]
    pub join_timeout: Duration,

    /// Longest outage of the network between hosts that the job survives, in seconds (1 to 300): a host of which nothing is
    /// heard is named after 3 s and lost after this time
    #[arg(long, value_name = "S", default_value = "10", value_parser = outage)]
    pub outage_limit: Outage,
}

impl Hosts {
    /// The options of a job on one host.
    pub fn alone() -> Hosts {
        let (join_timeout, outage_limit) = (Duration::from_secs(600), Outage::default());
        Hosts {
            nnodes: 1..=1,
            node_rank: None,
            rdzv: None,
            token_file: None,
            tls_dir: None,
            join_timeout,
            outage_limit,
        }
    }

    /// Returns the contradiction between the options as a sentence, or `None`.
    pub fn contradiction(&self) -> Option<String> {
        let (min, max) = (*self.nnodes.start(), *self.nnodes.end());
        if max > 1 && self.rdzv.is_none() {
            return Some(format!("--nnodes {} needs --rdzv HOST:PORT, the address of node 0", describe(&self.nnodes)));
        }
        if max == 1 {
            let given = [
                ("--rdzv", self.rdzv.is_some()),
                ("--node-rank", self.node_rank.is_some_and(|rank| rank > 0)),
                ("--tls-dir", self.tls_dir.is_some()),
            ];
            let given = given.iter().find(|(_, given)| *given)?;
            return Some(format!("{} is for jobs of several hosts; say how many with --nnodes", given.0));
        }
        let rank = self.node_rank.filter(|rank| *rank >= max)?;
        Some(format!(
            "--node-rank {rank} is not below --nnodes {}",
            if min == max { max.to_string() } else { describe(&self.nnodes) }
        ))
    }
}

/// Returns a number of hosts in the form of the command line.
pub fn describe(nodes: &RangeInclusive<usize>) -> String {
    let (min, max) = (nodes.start(), nodes.end());
    if min == max { format!("{min}") } else { format!("{min}:{max}") }
}

/// A number of hosts, or two with a colon.
fn nodes(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |t: &str| t.parse().ok().filter(|n| (1..=MAX_NODES).contains(n));
    let (min, max) = text.split_once(':').unwrap_or((text, text));
    match (number(min), number(max)) {
        (Some(min), Some(max)) if min <= max => Ok(min..=max),
        _ => Err(format!("not a number of hosts from 1 to {MAX_NODES}, or MIN:MAX")),
    }
}

/// `host:port`, with an IPv6 address in brackets.
fn address(text: &str) -> Result<String, String> {
    let whole = |(host, port): (&str, &str)| {
        let bare = !host.is_empty() && (!host.contains(':') || (host.starts_with('[') && host.ends_with(']')));
        bare && port.parse::<u16>().is_ok_and(|port| port != 0)
    };
    if text.rsplit_once(':').is_some_and(whole) {
        Ok(text.to_string())
    } else {
        Err("not HOST:PORT, like node0:29400 or 10.0.0.1:29400".into())
    }
}

/// How GPUs of different ranks communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CommBackend {
    /// Directly between GPUs, by NCCL.
    Nccl,
    /// Through host memory.
    Staged,
}

impl CommBackend {
    /// Returns the value of `OFLOW_COMM`.
    pub fn name(self) -> &'static str {
        match self {
            CommBackend::Nccl => "nccl",
            CommBackend::Staged => "staged",
        }
    }
}

/// A cargo profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Optimised, without debug assertions.
    Release,
    /// Quick to build, with overflow checks and debug assertions.
    Dev,
}

impl Profile {
    /// Returns the profile of this program, for which the library is built already.
    pub fn own() -> Profile {
        if cfg!(debug_assertions) { Profile::Dev } else { Profile::Release }
    }

    /// Returns cargo's name of the profile.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Dev => "dev",
        }
    }

    /// Returns the folder of the profile in cargo's target directory.
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
        let matches = command().try_get_matches().unwrap_or_else(|e| with_hint(e).exit());
        let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
        if let Some(contradiction) = cli.hosts.contradiction() {
            command().error(ErrorKind::ArgumentConflict, contradiction).exit();
        }
        cli
    }
}

/// Says how arguments are given to the program, if one of them was taken for an argument of oflaunch.
fn with_hint(mut error: clap::Error) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::UnknownArgument => word.clone(),
        _ => return error,
    };
    if !unknown.starts_with('-') {
        let hint = format!("arguments of the program follow `--`, as in `oflaunch PROGRAM -- {unknown}`");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// Returns the command with its full help text.
pub fn command() -> clap::Command {
    Cli::command().after_long_help(after_help()).after_help("See --help for examples, exit codes and the environment.")
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wanted = "a number of seconds from 0 to 86400";
    let value: f64 = text.parse().map_err(|_| format!("not {wanted}"))?;
    if (0.0..=86400.0).contains(&value) { Ok(Duration::from_secs_f64(value)) } else { Err(format!("not {wanted}")) }
}

fn outage(text: &str) -> Result<Outage, String> {
    let limit = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok()).and_then(Outage::of);
    limit.ok_or_else(|| format!("not a number of seconds from {} to {}", Outage::LEAST, Outage::MOST))
}

/// Reads a number of bytes: `4096`, `64K`, `256M`, `2G`.
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
  oflaunch -n 2 train.py                       a Python program, with the python3 of the active environment
  oflaunch -n 8 --threads 1 ./target/release/train
                                               an executable; one compute thread per rank
  oflaunch --profile dev -n 2 train.rs         quick build with debug assertions
  oflaunch --dry-run -n 2 train.rs             show commands, environment and cores
  oflaunch -n 8 --nnodes 2 --node-rank 0 --rdzv node0:29400 --token-file token train.rs
                                               one of two hosts; the same with --node-rank 1 on the other

A script may begin with further dependencies. It must then be one file, without `mod` or `include!`:
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
    fn words_after_the_program_are_told_where_they_belong() {
        let parsed = |args: &[&str]| command().try_get_matches_from([&["oflaunch"], args].concat());
        let text = with_hint(parsed(&["-n", "2", "w.py", "ok"]).unwrap_err()).to_string();
        assert!(text.contains("arguments of the program follow `--`, as in `oflaunch PROGRAM -- ok`"), "{text}");
        let text = with_hint(parsed(&["--nprocs", "2", "w.py"]).unwrap_err()).to_string();
        assert!(!text.contains("of the program"), "{text}");
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
    fn hosts_are_checked_one_by_one_and_together() {
        for (bad, option) in
            [("0", "nnodes"), ("3:2", "nnodes"), ("2:", "nnodes"), ("a", "rdzv"), ("a:0", "rdzv"), ("::1:9", "rdzv")]
        {
            let error = parse(&[&format!("--{option}={bad}"), "p"]).unwrap_err();
            assert!(error.contains(&format!("--{option}")), "{bad}: {error}");
        }
        for (args, contradiction) in [
            (&["--nnodes", "2"][..], Some("--nnodes 2 needs --rdzv HOST:PORT, the address of node 0")),
            (&["--rdzv", "a:1"], Some("--rdzv is for jobs of several hosts; say how many with --nnodes")),
            (&["--node-rank", "1"], Some("--node-rank is for jobs of several hosts; say how many with --nnodes")),
            (&["--nnodes", "2", "--rdzv", "a:1", "--node-rank", "2"], Some("--node-rank 2 is not below --nnodes 2")),
            (&["--nnodes", "1:3", "--rdzv", "[::1]:1", "--node-rank", "2"], None),
            (&["--node-rank", "0"], None),
        ] {
            let cli = parse(&[args, &["p"]].concat()).unwrap();
            assert_eq!(cli.hosts.contradiction().as_deref(), contradiction, "{args:?}");
        }
        assert_eq!(parse(&["--nnodes", "2:4", "--rdzv", "a:1", "p"]).unwrap().hosts.nnodes, 2..=4);
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
