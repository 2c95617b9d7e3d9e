//! One job from the command line to the exit code: find or build the program, start the ranks, watch over them.

mod supervise;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use oflow::Report;
use oflow::comm::shm::ShmArena;
use oflow::control::{COMM_VARIABLE, LaunchEnv, Token};
use rustix::process::{Resource, Rlimit, getpgrp, getrlimit, setrlimit};
use rustix::termios::tcgetpgrp;
use tokio::sync::Notify;

use crate::cli::{Cli, Profile, Way};
use crate::libraries::{self, Farm};
use crate::model::{self, InForce};
use crate::output::{Output, Style};
use crate::program::{Program, resolve};
use crate::rank::Recipe;
use crate::script;
use crate::{EXIT_FAILED, EXIT_NOT_EXECUTABLE, Failed, cores};
use oflow::control::service::{Agent, AgentOptions};

/// Room that each rank has in shared memory for what it sends. Only pages that are used take memory.
const ARENA_BYTES_PER_RANK: usize = 64 << 20;

/// What is to be run, with every default resolved.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program as the user named it, found.
    pub program: PathBuf,
    /// The arguments of every rank.
    pub args: Vec<OsString>,
    /// Number of ranks.
    pub world: usize,
    /// Compute threads per rank.
    pub threads: usize,
    /// Each rank's cores; none if there are too few to give each thread its own.
    pub cores: Option<Vec<Vec<usize>>>,
    /// What the others get to end by themselves after a failure.
    pub grace: Duration,
    /// Whether the ranks' lines are prefixed.
    pub prefix: bool,
    /// Whether to tell what happens.
    pub verbose: bool,
    /// Measured constants of the cost model as JSON, for the ranks; nothing: the default ones.
    pub cost_model: Vec<u8>,
    /// Whether to tell at the end what the ranks have communicated.
    pub report: bool,
    /// How GPUs exchange bytes, where the user says.
    pub comm: Option<Way>,
}

/// Does what the command line says; returns the exit code of the job.
pub fn run(cli: Cli) -> Result<u8, Failed> {
    let available = cores::available();
    let (world, threads) = cli.size.resolve(available.len());
    let program = resolve(&cli.program, std::env::var_os("PATH").as_deref())?;
    let cost_model = model::in_force()?;
    let mut job = Job {
        program: PathBuf::new(),
        args: cli.args,
        world,
        threads,
        cores: cores::split(&available, world, threads),
        grace: cli.timeout,
        prefix: !cli.no_prefix,
        verbose: cli.verbose,
        cost_model: cost_model.to_ranks(cli.boxing_memory),
        report: cli.report,
        comm: cli.comm,
    };
    let profile = cli.profile.unwrap_or_else(Profile::own);
    if cli.dry_run {
        print!("{}", dry_run(&mut job, program, profile, &cost_model)?);
        return Ok(0);
    }
    if cli.verbose {
        eprintln!("oflaunch: cost model: {}", cost_model.describe());
    }
    // Holds a script's build until all ranks have started from it, so that none starts from a later one.
    let build = match program {
        Program::Executable(path) => {
            job.program = path;
            None
        }
        Program::Script(path) => {
            let built = script::build(&path, profile, cli.verbose)?;
            job.program = built.executable.clone();
            Some(built)
        }
    };
    Ok(start(&job, build, None)?.0)
}

/// Runs a job that needs no build; returns its exit code and what its ranks have put under a key.
pub fn run_for(job: &Job, key: &str) -> Result<(u8, Option<Vec<u8>>), Failed> {
    start(job, None, Some(key))
}

fn start(job: &Job, build: Option<script::Built>, key: Option<&str>) -> Result<(u8, Option<Vec<u8>>), Failed> {
    // One thread, the main one: the ranks die with the thread that starts them (see `rank::start`).
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failed::new(format!("cannot start the runtime: {e}")))?;
    let outcome = runtime.block_on(run_ranks(job, build, key));
    // Nothing that is left may hold up the exit: a pump of a pipe that a stray process keeps open, for instance.
    runtime.shutdown_background();
    outcome
}

async fn run_ranks(
    job: &Job,
    build: Option<script::Built>,
    key: Option<&str>,
) -> Result<(u8, Option<Vec<u8>>), Failed> {
    allow_descriptors(job.world);
    let token = Token::random().map_err(|e| Failed::new(e.to_string()))?;
    let options = AgentOptions { cost_model: job.cost_model.clone(), ..AgentOptions::alone(job.world, token.clone()) };
    let agent = Agent::start(options).await.map_err(|e| Failed::new(e.to_string()))?;
    let closed = Arc::new(Notify::new());
    let (output, writer) = Output::start(Style::detect(job.world, job.prefix), closed.clone())
        .map_err(|e| Failed::new(format!("cannot start the output thread: {e}")))?;
    if job.verbose {
        output.say(&format!("control service at {}", agent.address())).await;
    }
    let (arena, arena_fd) =
        ShmArena::create(job.world, ARENA_BYTES_PER_RANK).map_err(|e| Failed::new(e.to_string()))?;
    // Holds the links until the last rank has ended.
    let farm = Farm::prepare().map_err(|e| Failed::new(format!("cannot link CUDA's libraries for the ranks: {e}")))?;
    if let Some(farm) = farm.as_ref().filter(|_| job.verbose) {
        let linked: Vec<String> = farm.linked().iter().map(|f| f.display().to_string()).collect();
        output.say(&format!("CUDA's libraries for the ranks: {}", linked.join(", "))).await;
    }
    let recipes =
        (0..job.world).map(|rank| recipe(job, rank, &agent, &token, arena_fd.as_raw_fd(), farm.as_ref())).collect();
    let said = output.clone();
    let outcome = supervise::run(job, recipes, &agent, &arena, output, closed, build).await;
    if job.report {
        said.say(&communication(job.world, &agent.reports())).await;
    }
    drop(said);
    drop(farm);
    // Open until every rank has been started.
    drop(arena_fd);
    let written = tokio::task::spawn_blocking(move || writer.join());
    // The writer ends when the last pump has; one that a stray process keeps open is not waited for.
    let _lines_may_be_cut = tokio::time::timeout(Duration::from_secs(1), written).await;
    Ok((outcome?, key.and_then(|k| agent.value(k))))
}

fn recipe(job: &Job, rank: usize, agent: &Agent, token: &Token, arena: RawFd, farm: Option<&Farm>) -> Recipe {
    let env = LaunchEnv {
        rank,
        local_rank: rank,
        world: job.world,
        local_world: job.world,
        node: 0,
        nodes: 1,
        master_addr: agent.address().ip().to_string(),
        master_port: agent.address().port(),
        token: token.clone(),
        shm_fd: Some(arena),
        report: job.report,
        threads: Some(job.threads),
    };
    let mut vars: Vec<(&str, OsString)> = env.to_vars().into_iter().map(|(n, v)| (n, v.into())).collect();
    vars.extend(job.comm.map(|way| (COMM_VARIABLE, way.name().into())));
    vars.extend(farm.map(|f| (libraries::PATH, f.search_path())));
    Recipe {
        program: job.program.clone(),
        args: job.args.clone(),
        env: vars,
        cores: job.cores.as_ref().map(|all| all[rank].clone()),
        inherit: env.shm_fd,
    }
}

/// What the ranks have communicated, from the reports that arrived.
fn communication(world: usize, reports: &BTreeMap<usize, String>) -> String {
    let mut text = String::new();
    let mut read = Vec::new();
    for (rank, json) in reports {
        match Report::from_json(json) {
            Ok(report) => read.push(report),
            Err(e) => text += &format!("\nthe report of rank {rank} cannot be read: {}", e.message()),
        }
    }
    let missing: Vec<String> = (0..world).filter(|r| !reports.contains_key(r)).map(|r| r.to_string()).collect();
    if !missing.is_empty() {
        let ranks = if missing.len() == 1 { "rank" } else { "ranks" };
        text += &format!("\nno report came from {ranks} {}: killed, or without a global tensor", missing.join(", "));
    }
    if read.is_empty() {
        format!("no report of what was communicated{text}")
    } else {
        format!("{}{text}", Report::merge(read))
    }
}

/// What would be run, as text.
fn dry_run(job: &mut Job, program: Program, profile: Profile, model: &InForce) -> Result<String, Failed> {
    let mut text = String::new();
    let mut line = |l: String| text.extend([l.as_str(), "\n"]);
    match program {
        Program::Executable(path) => job.program = path,
        Program::Script(path) => {
            let package = script::Package::locate(&path, profile)?;
            line(format!("build: {}", package.command_line()));
            job.program = package.executable();
        }
    }
    let command: Vec<String> = std::iter::once(job.program.as_os_str())
        .chain(job.args.iter().map(OsString::as_os_str))
        .map(|word| quote(&word.to_string_lossy()))
        .collect();
    line(format!("run:   {}", command.join(" ")));
    line(format!("ranks: {}, {} compute threads each", job.world, job.threads));
    line(format!("costs: {}", model.describe()));
    for rank in 0..job.world {
        let on = match &job.cores {
            Some(cores) => format!("cores {}", cores::describe(&cores[rank])),
            None => "all cores".to_string(),
        };
        line(format!(
            "rank {rank}: {on}; RANK={rank} LOCAL_RANK={rank} WORLD_SIZE={0} LOCAL_WORLD_SIZE={0} OFLOW_THREADS={1}",
            job.world, job.threads
        ));
    }
    Ok(text)
}

/// A word as a shell would read it back.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Why a rank could not be started.
fn not_started(job: &Job, rank: usize, error: &std::io::Error) -> Failed {
    let (code, hint) = match error.kind() {
        // The file itself was found before.
        ErrorKind::NotFound => (EXIT_NOT_EXECUTABLE, "; the interpreter in its first line does not exist"),
        ErrorKind::PermissionDenied => (EXIT_NOT_EXECUTABLE, ""),
        _ => (EXIT_FAILED, ""),
    };
    Failed::with_code(code, format!("cannot start rank {rank} ({}): {error}{hint}", job.program.display()))
}

/// Makes room for the descriptors of so many ranks, as far as the system lets us; where it does not, starting a rank
/// will say so.
fn allow_descriptors(world: usize) {
    const OWN: u64 = 64;
    const PER_RANK: u64 = 4;
    let wanted = OWN + PER_RANK * world as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |most| most.min(wanted));
        let _as_it_was = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit });
    }
}

/// Where a rank's standard input comes from.
fn stdin_of(rank: usize) -> Stdio {
    if rank != 0 {
        return Stdio::null();
    }
    let ours = std::io::stdin();
    if !ours.is_terminal() {
        return Stdio::inherit();
    }
    // A rank's group is not the terminal's foreground group and would be stopped when it reads: we read for it, if we
    // ourselves are in the foreground.
    match tcgetpgrp(&ours) {
        Ok(foreground) if foreground == getpgrp() => Stdio::piped(),
        _ => Stdio::null(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_needed() {
        assert_eq!(quote("--lr=0.1"), "--lr=0.1");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
    }
}
