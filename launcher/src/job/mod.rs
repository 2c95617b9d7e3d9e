//! Runs a job: finds or builds the program, starts the ranks, and supervises them until the exit code.

mod bound;
mod claim;
pub mod flights;
mod meeting;
mod memory;
mod signals;
mod stopped;
mod supervise;
mod timeline;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use oflow::Report;
use oflow::comm::shm::ShmArena;
use oflow::comm::tcp::local_address;
use oflow::control::service::{Agent, Assignment, Next, NodeEvent};
use oflow::control::{
    ADDRESS_VARIABLE, COMM_VARIABLE, FLIGHT_VARIABLE, Failure, FailureKind, JOB_VARIABLE, LaunchEnv, RESTART_VARIABLE,
    Token,
};
use rustix::process::{Resource, Rlimit, getpgrp, getrlimit, setrlimit};
use rustix::termios::tcgetpgrp;
use serde_json::json;
use tokio::sync::mpsc;

use crate::cli::{Cli, CommBackend, Hosts, Profile, describe};
use crate::cores::Binding;
use crate::events::Events;
use crate::guardian::Guardian;
use crate::inspect::REPORT_FILE;
use crate::libraries::{self, Farm};
use crate::logs::{self, Logs};
use crate::model::{self, InForce};
use crate::output::{Output, Style};
use crate::program::{Program, resolve};
use crate::python::{self, Python, Search};
use crate::rank::Recipe;
use crate::report::signal_name;
use crate::script;
use crate::undelivered::{Cause, Undelivered};
use crate::watch::{Wanted, Watch};
use crate::{EXIT_FAILED, EXIT_NOT_EXECUTABLE, Failed, cores};
use bound::Bound;
use claim::Claim;
use flights::{End, Flights};
use meeting::Meeting;
use oflow_files::Access;
use signals::Signals;
use supervise::{Outcome, Scene};
use timeline::Timelines;

/// Room that each rank has in shared memory for what it sends. Only pages that are used take memory.
const ARENA_BYTES_PER_RANK: usize = 64 << 20;

/// Time that the other hosts have to receive the end of this host.
const FAREWELL: Duration = Duration::from_secs(2);

/// A job, with all defaults resolved.
#[derive(Clone, Debug)]
pub struct Job {
    /// Name of the program, as the user has called it.
    pub name: String,
    /// The program: what is executed, or what a Python interpreter runs.
    pub program: PathBuf,
    /// The interpreter and its part of the command line, for a Python program.
    pub python: Option<Python>,
    /// The arguments of every rank.
    pub args: Vec<OsString>,
    /// Number of ranks on this host.
    pub nproc: usize,
    /// The hosts of the job.
    pub hosts: Hosts,
    /// Number of restarts after failures.
    pub max_restarts: u32,
    /// Compute threads per rank.
    pub threads: usize,
    /// Cores of each rank, or `None` if ranks are not bound.
    pub cores: Option<Binding>,
    /// Time that the other ranks have to end by themselves after a failure.
    pub grace: Duration,
    /// Whether lines of ranks are prefixed.
    pub prefix: bool,
    /// Whether to print what oflaunch does.
    pub verbose: bool,
    /// Measured constants of the cost model as JSON, for the ranks; empty: the default constants.
    pub cost_model: Vec<u8>,
    /// Whether to print the ranks' communication at the end.
    pub report: bool,
    /// Timelines that the ranks write, if any.
    pub timelines: Option<Timelines>,
    /// How GPUs of different ranks communicate, if set.
    pub comm: Option<CommBackend>,
    /// Time-out for a rank that is alive but has not joined the collective.
    pub stall: Duration,
    /// Folder for the ranks' logs and flight records.
    pub log_dir: Option<PathBuf>,
    /// Page and terminal that show the job while it runs.
    pub watch: Wanted,
    /// The event log.
    pub events: Events,
    /// Output, logs and events that could not be written.
    pub undelivered: Undelivered,
}

/// Runs the job of a command line and returns its exit code.
pub fn run(cli: Cli) -> Result<u8, Failed> {
    let available = cores::available();
    let (nproc, threads) = cli.size.resolve(available.len());
    let program = found(&cli)?;
    let cost_model = model::in_force()?;
    let mut job = Job {
        name: cli.program.file_name().unwrap_or(cli.program.as_os_str()).to_string_lossy().into_owned(),
        program: PathBuf::new(),
        python: None,
        args: cli.args,
        nproc,
        hosts: cli.hosts,
        max_restarts: cli.max_restarts,
        threads,
        cores: cores::bind(cli.bind, &available, &cores::numa_nodes(&available), nproc, threads),
        grace: cli.timeout,
        prefix: !cli.no_prefix,
        verbose: cli.verbose,
        cost_model: cost_model.to_ranks(cli.boxing_memory),
        report: cli.report,
        timelines: cli.trace.map(|folder| Timelines::new(&folder, cli.trace_steps, cli.trace_mib)).transpose()?,
        comm: cli.comm,
        stall: cli.stall,
        log_dir: cli.log_dir,
        watch: Wanted { page: cli.watch, top: cli.top },
        events: Events::default(),
        undelivered: Undelivered::new(cli.require_logs),
    };
    let profile = cli.profile.unwrap_or_else(Profile::own);
    if cli.dry_run {
        print!("{}", dry_run(&mut job, program, profile, &cost_model, cli.events)?);
        return Ok(0);
    }
    job.watch.check()?;
    job.timelines.iter().try_for_each(Timelines::make_folder)?;
    let log_dir = job.log_dir.as_deref();
    job.events = Events::to(&event_files(log_dir, cli.events)?, log_dir, job.undelivered.clone())?;
    if cli.verbose {
        eprintln!("oflaunch: cost model: {}", cost_model.describe());
    }
    let build = match program {
        Program::Executable(path) => {
            job.program = path;
            None
        }
        Program::Python(python) => {
            job.program = python.name();
            job.python = Some(python);
            None
        }
        Program::Script(path) => {
            let built = script::build(&path, profile, cli.verbose)?;
            job.program = built.executable();
            Some(built)
        }
    };
    // What was lost of the last lines is known only when all have been written.
    let whole = |outcome: Result<u8, Failed>| match (outcome, job.undelivered.first()) {
        (Ok(0), Some(Cause::Unwritten(what))) => Err(Failed::new(what)),
        (outcome, _) => outcome,
    };
    let outcome = whole(start(&job, build.as_ref(), None).map(|(code, _)| code));
    let code = outcome.as_ref().map_or_else(|failed| failed.code, |code| *code);
    job.events.tell("end", json!({ "code": code }));
    whole(outcome)
}

/// The program of a command line.
fn found(cli: &Cli) -> Result<Program, Failed> {
    let [named, environment, path] = [python::INTERPRETER_VARIABLE, "VIRTUAL_ENV", "PATH"].map(std::env::var_os);
    let own = std::env::current_exe().ok();
    let search = Search {
        named: named.as_deref(),
        environment: environment.as_deref(),
        own_folder: own.as_deref().and_then(Path::parent),
        path: path.as_deref(),
    };
    match cli.module {
        true => Python::module(cli.program.as_os_str(), search).map(Program::Python),
        false => resolve(&cli.program, search),
    }
}

/// The files that events go to.
fn event_files(log_dir: Option<&Path>, events: Option<PathBuf>) -> Result<Vec<PathBuf>, Failed> {
    if let Some(folder) = log_dir {
        logs::make_folder(folder)?;
    }
    Ok(log_dir.map(|d| d.join("events.jsonl")).into_iter().chain(events).collect())
}

/// Runs a job that needs no build. Returns its exit code and the value of a key that its ranks have set.
pub fn run_for(job: &Job, key: &str) -> Result<(u8, Option<Vec<u8>>), Failed> {
    start(job, None, Some(key))
}

fn start(job: &Job, build: Option<&script::Built>, key: Option<&str>) -> Result<(u8, Option<Vec<u8>>), Failed> {
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
    build: Option<&script::Built>,
    key: Option<&str>,
) -> Result<(u8, Option<Vec<u8>>), Failed> {
    allow_descriptors(job.nproc, job.log_dir.is_some())?;
    let logs = job.log_dir.as_ref().map(|folder| Logs::open(folder, job.undelivered.clone())).transpose()?;
    let began = job.log_dir.as_deref().and_then(flights::now_in);
    let watch = Watch::of(job.watch, job.name.clone());
    let style = Style::detect(job.nproc * job.hosts.nnodes.end(), job.prefix, job.watch.top);
    let (output, writer) = Output::start(style, logs, watch.as_ref().map(Watch::tap), job.undelivered.clone())
        .map_err(|e| Failed::new(format!("cannot start the output thread: {e}")))?;
    // The hosts of one job meet at one address; a job on one host has a name of its own.
    let name = job.hosts.rdzv.as_ref().map_or(format!("pid {}", std::process::id()), |rdzv| format!("rdzv {rdzv}"));
    let _claim = job.log_dir.as_ref().map(|folder| Claim::take(folder, &name)).transpose()?;
    let meeting = Meeting::arrange(job, build, &output).await?;
    let agent = Agent::start(meeting.options).await.map_err(|e| Failed::new(e.to_string()))?;
    if let Some(line) = meeting.invitation {
        output.say(&line).await;
    }
    if let Some(events) = agent.events() {
        tokio::spawn(keep(events, job.events.clone()));
    }
    let following = match (&watch, agent.watcher()) {
        (None, _) => None,
        (Some(watch), Some(watcher)) => {
            if let Some(line) = watch.serve()? {
                output.say(&line).await;
            }
            Some(watch.follow(watcher, output.weak()))
        }
        (Some(_), None) => {
            output.say("--watch and --top show the job on node 0; this host is another one").await;
            None
        }
    };
    // Until all hosts are there nothing runs, and a signal may end us.
    let mut part = match agent.assigned().await.map_err(|e| Failed::new(e.to_string()))? {
        Next::Again(part) => part,
        Next::Over(code) => {
            output.say("the job has ended without a part for this host").await;
            drop(output);
            let _lines_may_be_cut = tokio::task::spawn_blocking(move || writer.join()).await;
            return Ok((code, None));
        }
    };
    // Before the first rank exists: from here on a Ctrl-C must not end us without it.
    let mut signals = Signals::listen()?;
    // Holds the links until the last rank has ended.
    let farm = Farm::prepare().map_err(|e| Failed::new(format!("cannot link CUDA's libraries for the ranks: {e}")))?;
    if let Some(farm) = farm.as_ref().filter(|_| job.verbose) {
        let linked: Vec<String> = farm.linked().iter().map(|f| f.display().to_string()).collect();
        output.say(&format!("CUDA's libraries for the ranks: {}", linked.join(", "))).await;
    }
    let flights = match Flights::prepare(job.log_dir.as_deref(), began, job.nproc) {
        Ok(flights) => Some(flights),
        Err(why) => {
            job.events.warning(None, &why);
            output.say(&format!("warning: {why}")).await;
            None
        }
    };
    let token_fd = meeting.token.to_descriptor().map_err(|e| Failed::new(e.to_string()))?;
    let mut bound = Bound::new(job.cores.clone());
    // A host that has waited for a place was in no start before.
    let mut nodes = if part.restart == 0 { part.nodes } else { 0 };
    // Whether a person or a scheduler wants the end of the job.
    let mut called_off = false;
    let outcome = loop {
        if part.restart > 0 {
            let what = format!("start {} of at most {}", part.restart + 1, job.max_restarts + 1);
            let hosts = if part.nodes == nodes { String::new() } else { format!(" on {} hosts", part.nodes) };
            output.say(&format!("{what}: {} ranks{hosts}", part.world)).await;
            job.events.tell("restart", json!({ "restart": part.restart, "world": part.world }));
            nodes = part.nodes;
        }
        if job.verbose {
            output.say(&format!("control service at {}", agent.address())).await;
        }
        let arena = ShmArena::create(job.nproc, ARENA_BYTES_PER_RANK).map_err(|e| Failed::new(e.to_string()));
        let guardian =
            Guardian::start().map_err(|e| Failed::new(format!("cannot start the guardian of the ranks: {e}")));
        let ended = match arena.and_then(|arena| Ok((arena, guardian?))) {
            Ok(((arena, fd), mut guardian)) => {
                if let Some(flights) = &flights {
                    guardian.keep(flights);
                }
                let (farm, flights) = (farm.as_ref(), flights.as_ref());
                let start = build.map(script::Built::start);
                let executable = match (&job.python, &start) {
                    (Some(python), _) => &python.interpreter,
                    (None, Some(start)) => &start.path,
                    (None, None) => &job.program,
                };
                let (token, token_fd, arena_fd) = (&meeting.token, token_fd.as_raw_fd(), fd.as_raw_fd());
                let mark = guardian.mark();
                let given = Given { executable, token, token_fd, arena: arena_fd, farm, flights, mark, bound: &bound };
                let recipes = (0..job.nproc).map(|local| recipe(job, part, local, &agent, &given)).collect();
                let (output, signals) = (output.clone(), &mut signals);
                let (guardian, bound) = (&mut guardian, &mut bound);
                let scene = Scene { job, agent: &agent, part, arena: &arena, output, signals, guardian, bound };
                // The descriptor is open until every rank has been started.
                supervise::run(scene, recipes, start).await
            }
            Err(e) => Err(e),
        };
        let Outcome { code, interrupted } = match ended {
            Ok(outcome) => outcome,
            Err(failed) => {
                let text = format!("node {}: {}", part.node, failed.message);
                agent.end(Failure::of_job(FailureKind::Error, text), failed.code);
                // The others are to hear of it.
                let _sent = tokio::time::timeout(FAREWELL, agent.finish(failed.code)).await;
                break Err(failed);
            }
        };
        called_off |= interrupted;
        let next = tokio::select! {
            next = agent.finish(code) => next,
            // After a Ctrl-C nobody waits for hosts that may come back.
            () = tokio::time::sleep(job.hosts.outage_limit.patience()), if interrupted => break Ok(code),
            signal = signals.next() => {
                called_off = true;
                let code = u8::try_from(128 + signal.as_raw()).unwrap_or(EXIT_FAILED);
                let text = format!("node {} was ended by {}", part.node, signal_name(signal.as_raw()));
                agent.end(Failure::of_job(FailureKind::Interrupted, text), code);
                let _sent = tokio::time::timeout(FAREWELL, agent.finish(code)).await;
                break Ok(code);
            }
        };
        match next {
            // Alone we know best: a signal to us decides, whatever the ranks say after it.
            Ok(Next::Over(_)) if part.nodes == 1 => break Ok(code),
            Ok(Next::Over(job_code)) => {
                if code == 0
                    && job_code != 0
                    && let Some(failure) = agent.failure()
                {
                    job.events.failure(&failure);
                    output.say(&failure.message).await;
                }
                break Ok(job_code);
            }
            // Somebody wanted an end after a failure had been told, from which all start again.
            Ok(Next::Again(_)) if interrupted => {
                let text = format!("node {} was ended by a signal", part.node);
                agent.end(Failure::of_job(FailureKind::Interrupted, text), code);
                let _sent = tokio::time::timeout(FAREWELL, agent.finish(code)).await;
                break Ok(code);
            }
            Ok(Next::Again(again)) => {
                // With fewer ranks some records of this start would stay among those of the next.
                if let Some(flights) = &flights {
                    flights.remove_rings();
                }
                part = again;
            }
            Err(e) => break Err(Failed::new(e.to_string())),
        }
    };
    // Of a job that was called off nobody wants to know more; of a rank that a signal from elsewhere has ended, somebody may.
    let kind = agent.failure().map(|f| f.kind);
    called_off |= kind == Some(FailureKind::Interrupted);
    let end = match (&outcome, kind) {
        (Ok(0), _) => End::Well,
        (Ok(129 | 130 | 143), _) if called_off => End::Well,
        (_, Some(FailureKind::Error | FailureKind::Panicked | FailureKind::Exited)) => End::Reported,
        _ => End::Badly,
    };
    for line in flights.map(|f| f.finish(end)).unwrap_or_default() {
        output.say(&line).await;
    }
    if let Some(timelines) = &job.timelines {
        let ranks = part.first_rank..part.first_rank + part.nproc;
        output.say(&timelines.finish(part.node, ranks, part.restart)).await;
    }
    if job.report && part.node == 0 {
        let spare = cores::available().len().saturating_sub(job.nproc * job.threads);
        let report = gather(part.world, &agent.reports(), spare);
        output.say(&report.text).await;
        if let (Some(folder), Some(report)) = (&job.log_dir, &report.report) {
            output.say(&save(folder, report)).await;
        }
    }
    if let Some(following) = following {
        following.abort();
    }
    if let (Some(watch), Ok(code)) = (&watch, &outcome) {
        watch.end(*code);
    }
    drop(output);
    drop(farm);
    let written = tokio::task::spawn_blocking(move || writer.join());
    // The writer ends when the last pump has; one that a stray process keeps open is not waited for.
    let _lines_may_be_cut = tokio::time::timeout(Duration::from_secs(1), written).await;
    Ok((outcome?, key.and_then(|k| agent.value(k))))
}

/// Writes what ranks have published into the log of events. Warnings of the service are there already.
async fn keep(mut published: mpsc::Receiver<NodeEvent>, events: Events) {
    while let Some(NodeEvent { rank, topic, text }) = published.recv().await {
        if rank.is_some() {
            events.tell("published", json!({ "rank": rank, "topic": topic, "text": text }));
        }
    }
}

/// Settings that every rank of this host is given alike.
struct Given<'a> {
    executable: &'a Path,
    token: &'a Token,
    token_fd: RawFd,
    arena: RawFd,
    farm: Option<&'a Farm>,
    flights: Option<&'a Flights>,
    mark: &'a str,
    bound: &'a Bound,
}

fn recipe(job: &Job, part: Assignment, local: usize, agent: &Agent, given: &Given) -> Recipe {
    let Given { executable, token, token_fd, arena, farm, flights, mark, bound } = given;
    let address = agent.address();
    let env = LaunchEnv {
        rank: part.first_rank + local,
        local_rank: local,
        world: part.world,
        local_world: part.nproc,
        node: part.node,
        nodes: part.nodes,
        master_addr: address.ip().to_string(),
        master_port: address.port(),
        token: (*token).clone(),
        shm_fd: Some(*arena),
        // What the user has set the ranks inherit.
        address: match &job.hosts.rdzv {
            Some(rdzv) if std::env::var_os(ADDRESS_VARIABLE).is_none() => local_address(rdzv.as_str()).ok(),
            _ => None,
        },
        report: job.report,
        stall: Some(job.stall),
        outage: job.hosts.outage_limit,
        threads: Some(job.threads),
    };
    let mut vars: Vec<(&str, OsString)> =
        env.to_vars(Some(*token_fd)).into_iter().map(|(n, v)| (n, v.into())).collect();
    vars.push((JOB_VARIABLE, mark.into()));
    vars.push((RESTART_VARIABLE, part.restart.to_string().into()));
    vars.extend(job.comm.map(|way| (COMM_VARIABLE, way.name().into())));
    vars.extend(job.timelines.iter().flat_map(Timelines::variables));
    vars.extend(farm.map(|f| (libraries::PATH, f.search_path())));
    vars.extend(flights.map(|f| (FLIGHT_VARIABLE, f.folder().into())));
    let python = job.python.as_ref();
    if python.is_some() {
        vars.extend(python::environment(|name| std::env::var_os(name).is_some()));
    }
    Recipe {
        name: python.map_or_else(|| job.program.clone(), |p| p.interpreter.clone()),
        executable: executable.into(),
        args: python.map(Python::arguments).unwrap_or_default().into_iter().chain(job.args.iter().cloned()).collect(),
        env: vars,
        cores: bound.cores(local).map(<[usize]>::to_vec),
        inherit: vec![*arena, *token_fd],
    }
}

/// The report of a job, and its text with the ranks that sent none.
struct JobReport {
    report: Option<Report>,
    text: String,
}

/// Writes a report to the folder of the logs, and says where.
fn save(folder: &Path, report: &Report) -> String {
    let path = folder.join(REPORT_FILE);
    match oflow_files::replace(&path, Access::Readable, report.to_json().as_bytes()) {
        Ok(()) => format!("report: {} (`oflow report {}` prints it again)", path.display(), folder.display()),
        Err(e) => format!("the report could not be saved: {e}"),
    }
}

/// Joins the reports that arrived. `spare` is the number of cores that no rank of this host computes on.
fn gather(world: usize, reports: &BTreeMap<usize, String>, spare: usize) -> JobReport {
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
        return JobReport { report: None, text: format!("no report of what was communicated{text}") };
    }
    let mut report = Report::merge(read);
    report.times.iter_mut().for_each(|t| t.spare_cores = spare);
    JobReport { text: format!("{report}{text}"), report: Some(report) }
}

/// Text of the commands that would be run.
fn dry_run(
    job: &mut Job,
    program: Program,
    profile: Profile,
    model: &InForce,
    events: Option<PathBuf>,
) -> Result<String, Failed> {
    let mut text = String::new();
    let mut line = |l: String| text.extend([l.as_str(), "\n"]);
    let mut before = Vec::new();
    match program {
        Program::Executable(path) => job.program = path,
        Program::Python(python) => before = python.command(),
        Program::Script(path) => {
            let package = script::Package::locate(&path, profile)?;
            line(format!("build: {}", package.command_line()));
            job.program = package.executable();
        }
    }
    if before.is_empty() {
        before.push(job.program.clone().into_os_string());
    }
    let command: Vec<String> = before.iter().chain(&job.args).map(|word| quote(&word.to_string_lossy())).collect();
    line(format!("run:   {}", command.join(" ")));
    line(format!("ranks: {}, {} compute threads each", job.nproc, job.threads));
    line(format!("costs: {}", model.describe()));
    line(format!("ends:  {} s after a failure, {} s after a stall", job.grace.as_secs_f64(), job.stall.as_secs_f64()));
    if job.hosts.rdzv.is_some() {
        line(format!("waits: up to {} s for a host that is silent", job.hosts.outage_limit.limit().as_secs_f64()));
    }
    if let Some(folder) = &job.log_dir {
        line(format!("logs:  {}", folder.display()));
    }
    for file in job.log_dir.as_ref().map(|d| d.join("events.jsonl")).into_iter().chain(events) {
        line(format!("event: {}", file.display()));
    }
    let nodes = cores::numa_nodes(&cores::available());
    if nodes.len() > 1 {
        let nodes: Vec<String> = nodes.iter().map(|n| cores::describe(n)).collect();
        line(format!("numa:  {} nodes with cores {}", nodes.len(), nodes.join(" | ")));
    }
    if let Some(rdzv) = &job.hosts.rdzv {
        let number = job.hosts.node_rank.map_or("in order of arrival".to_string(), |k| k.to_string());
        line(format!("hosts: {}, which meet at {rdzv}; number of this one: {number}", describe(&job.hosts.nnodes)));
    }
    // Where the other hosts' ranks are not known their numbers are those on this host.
    for rank in 0..job.nproc {
        let on = match &job.cores {
            Some(cores) => cores.describe(rank),
            None => "all cores".to_string(),
        };
        line(format!(
            "rank {rank}: {on}; RANK={rank} LOCAL_RANK={rank} WORLD_SIZE={0} LOCAL_WORLD_SIZE={0} OFLOW_THREADS={1}",
            job.nproc, job.threads
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

/// Makes room for the descriptors of so many ranks.
///
/// # Errors
/// If the system does not let us: without a descriptor for its connection a rank would only be told that the control service
/// does not answer.
fn allow_descriptors(ranks: usize, logs: bool) -> Result<(), Failed> {
    const OWN: u64 = 64;
    const ROOMY: u64 = 4096;
    // Two pipes, the process, its connection to the control service; its log.
    let per_rank = if logs { 5 } else { 4 };
    let wanted = OWN + per_rank * ranks as u64;
    let limit = getrlimit(Resource::Nofile);
    // Beside them, connections that have not yet proved that they know the token: they may take half.
    let wished = (2 * wanted).max(ROOMY);
    if limit.current.is_none_or(|current| current >= wished) {
        return Ok(());
    }
    match limit.maximum {
        Some(most) if most < wanted => Err(Failed::new(format!(
            "{ranks} ranks on this host need {wanted} file descriptors, the limit is {most}\n  help: raise it (`ulimit -Hn {wanted}` as root, or LimitNOFILE= of the service), or start fewer ranks"
        ))),
        most => {
            let raised = most.map_or(wished, |most| most.min(wished));
            setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit })
                .map_err(|e| Failed::new(format!("cannot raise the limit of file descriptors to {raised}: {e}")))
        }
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
