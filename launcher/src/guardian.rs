//! Ends what ranks have started, when a start of the job has ended or oflaunch itself is killed.
//!
//! oflaunch kills the process group of a rank that has ended ([`Group::close`](crate::rank::Group::close)), and the kernel kills the
//! ranks of an oflaunch that is gone ([`rank::start`](crate::rank::start)). Neither ends processes that have left the group of their
//! rank, as daemons do. The guardian is a small process in a session of its own. It reads a pipe of oflaunch's. After the farewell
//! it kills every process that carries the mark of the start in its environment. The end of the pipe without a farewell means that
//! oflaunch was killed: then it also kills every process in the group of a rank, and saves the flight records as oflaunch would
//! have done.
//!
//! What it does not find: a process that has left the rank's process group *and* does not have the rank's environment. Who
//! kills the guardian too has no guardian.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use oflow::comm::proof::nonce;
use oflow::control::JOB_VARIABLE;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, setsid};

use crate::job::flights::{End, Flights};

/// Name of the guardian's process.
const NAME: &str = "oflow-guardian";
/// How long processes may take to be gone.
const LIMIT: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);
const FAREWELL: &str = "over";

/// The guardian of one start of a job. Dropping it says that the start has ended in order, and waits until nothing is left of it.
pub struct Guardian {
    mark: String,
    process: Child,
    pipe: Option<ChildStdin>,
}

impl Guardian {
    /// Starts the guardian of a start.
    ///
    /// # Errors
    /// If there are no random numbers, or the process cannot be started.
    pub fn start() -> io::Result<Guardian> {
        let mark: String = nonce().map_err(io::Error::other)?.iter().map(|b| format!("{b:02x}")).collect();
        // This program, also where its file has been replaced since: jobs run long, and restart.
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).arg(&mark).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Signals of the terminal and to oflaunch's process group are not for it.
        // SAFETY: between fork and exec the closure makes one system call; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(|| setsid().map(drop).map_err(io::Error::from)) };
        let mut process = command.spawn()?;
        let pipe = process.stdin.take();
        Ok(Guardian { mark, process, pipe })
    }

    /// Value of [`JOB_VARIABLE`] for the ranks.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Tells it the process group of a rank.
    pub fn watch(&mut self, group: i32) {
        self.tell(&group.to_string());
    }

    /// Tells it where the flight records of the ranks lie.
    pub fn keep(&mut self, flights: &Flights) {
        if let Ok(line) = serde_json::to_string(flights) {
            self.tell(&line);
        }
    }

    fn tell(&mut self, line: &str) {
        if let Some(pipe) = &mut self.pipe {
            // One that was killed is missed only if we are killed too.
            let _nobody_listens = writeln!(pipe, "{line}");
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.tell(FAREWELL);
        self.pipe = None;
        // It ends as soon as nothing is left; without this it would stay a zombie for as long as we live.
        let _reaped = self.process.wait();
    }
}

/// Whether this process was started as a guardian.
pub fn asked() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// The guardian's own program.
pub fn run() -> ExitCode {
    // So `pkill oflaunch` means the launcher alone.
    let _only_a_name = rustix::thread::set_name(c"oflow-guardian");
    let mark = std::env::args().nth(1).unwrap_or_default();
    let mut groups = BTreeSet::new();
    let mut flights: Option<Flights> = None;
    let mut in_order = false;
    for line in BufReader::new(io::stdin()).lines() {
        match line {
            Ok(line) if line == FAREWELL => {
                in_order = true;
                break;
            }
            Ok(line) => match line.parse::<i32>() {
                Ok(group) => groups.extend([group]),
                Err(_) => flights = serde_json::from_str(&line).ok().or(flights),
            },
            Err(_) => break,
        }
    }
    if in_order {
        // They have been killed; their numbers may be somebody else's by now. And oflaunch keeps the records itself.
        groups.clear();
        flights = None;
    }
    let end = Instant::now() + LIMIT;
    let job = Job { mark, groups, since: fields("self").map_or(0, |own| own.began), until: ticks() };
    while sweep(&job) > 0 && Instant::now() < end {
        std::thread::sleep(AGAIN);
    }
    if let Some(flights) = flights {
        let _nobody_to_tell = flights.finish(End::Badly);
    }
    ExitCode::SUCCESS
}

/// Marks that tell the processes of a job from others.
struct Job {
    mark: String,
    groups: BTreeSet<i32>,
    /// When the guardian was started, before the ranks: an environment is not read where it cannot have the mark.
    since: u64,
    /// When oflaunch was found to be gone. The number of a group that is empty may be somebody else's after that.
    until: u64,
}

/// Clock ticks since the machine was started, of which there are a hundred in a second in /proc; the next one.
fn ticks() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = uptime.split(' ').next().and_then(|s| s.parse::<f64>().ok());
    seconds.map_or(u64::MAX, |s| (s * 100.0) as u64 + 1)
}

/// Kills what belongs to the job; returns how many processes were found.
fn sweep(job: &Job) -> usize {
    let own = getpid();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|d| Pid::from_raw(d.file_name().to_str()?.parse().ok()?)).filter(|p| *p != own);
    let mut found = 0;
    for pid in pids {
        if !belongs(pid, job) {
            continue;
        }
        // Opened before the process is looked at again: the descriptor stays with it, its number may not.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if belongs(pid, job) {
            found += 1;
            let _gone_already = pidfd_send_signal(&process, Signal::KILL);
        }
    }
    found
}

/// Fields of a process in /proc.
struct Fields {
    ended: bool,
    group: i32,
    /// When it was started, in clock ticks since the machine was.
    began: u64,
}

fn fields(process: &str) -> Option<Fields> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name stands in brackets and may hold anything: state, parent, group and session come after it.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ended = matches!(*fields.first()?, "Z" | "X");
    Some(Fields { ended, group: fields.get(2)?.parse().ok()?, began: fields.get(19)?.parse().ok()? })
}

fn belongs(pid: Pid, job: &Job) -> bool {
    let pid = pid.as_raw_nonzero().to_string();
    let Some(Fields { ended, group, began }) = fields(&pid) else { return false };
    // A process that has ended is its parent's to reap.
    if ended {
        return false;
    }
    let entry = format!("{JOB_VARIABLE}={}", job.mark);
    let marked = || {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|e| e == entry.as_bytes())
    };
    (began <= job.until && job.groups.contains(&group)) || (!job.mark.is_empty() && began >= job.since && marked())
}
