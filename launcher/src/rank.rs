//! Starts a rank's process, and ends it with all processes that it has started.

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpgid, getpid, getppid, kill_process, kill_process_group, pidfd_open,
    set_parent_process_death_signal,
};
use rustix::thread::sched_setaffinity;

use crate::cores::set_of;

/// How to start a rank's process.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The process's own name (`argv[0]`).
    pub name: PathBuf,
    /// Path of the executable.
    pub executable: PathBuf,
    /// Arguments of the program.
    pub args: Vec<OsString>,
    /// Environment variables added to those of oflaunch.
    pub env: Vec<(&'static str, OsString)>,
    /// The cores it is bound to; empty: not bound.
    pub cores: Option<Vec<usize>>,
    /// File descriptors that it inherits under the same numbers.
    pub inherit: Vec<RawFd>,
}

/// A started rank.
pub struct Started {
    /// The process with its pipes.
    pub child: Child,
    /// Becomes readable when the process ends.
    pub pidfd: OwnedFd,
    /// The process group.
    pub group: Group,
}

/// Where a rank's streams lead to.
pub struct Streams {
    /// Standard input of the process.
    pub stdin: Stdio,
    /// Standard output and standard error.
    pub output: [Stdio; 2],
}

/// Starts a rank in its own process group. The kernel kills it when the calling *thread* ends, so call this on a thread that
/// lives as long as the job.
pub fn start(recipe: &Recipe, streams: Streams) -> io::Result<Started> {
    let Streams { stdin, output: [stdout, stderr] } = streams;
    let cpus = recipe.cores.as_deref().map(set_of);
    let (launcher, inherit) = (getpid(), recipe.inherit.clone());
    let mut command = Command::new(&recipe.executable);
    command
        .arg0(&recipe.name)
        .args(&recipe.args)
        // It comes by descriptor: who starts a rank's children does not hand on the secret.
        .env_remove("OFLOW_TOKEN")
        .envs(recipe.env.iter().map(|(name, value)| (name, value)))
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    let prepare = move || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the launcher died before the line above, nobody will send the signal.
        if getppid() != Some(launcher) {
            return Err(Errno::CHILD.into());
        }
        if let Some(cpus) = &cpus {
            sched_setaffinity(None, cpus)?;
        }
        for fd in &inherit {
            // SAFETY: the caller keeps the descriptor open until after the spawn, and the child has a copy of it.
            fcntl_setfd(unsafe { BorrowedFd::borrow_raw(*fd) }, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls on values prepared before; it neither allocates
    // nor takes a lock.
    unsafe { command.pre_exec(prepare) };
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    // The child is ours and not reaped, so its id is still its own.
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Started { child, pidfd, group: Group { pid, live: Mutex::new(true) } }),
        Err(e) => {
            child.kill()?;
            child.wait()?;
            Err(e.into())
        }
    }
}

/// The process group of a rank: the rank and the processes that it has started.
pub struct Group {
    pid: Pid,
    /// Whether the leader is unreaped; after that its number may belong to somebody else.
    live: Mutex<bool>,
}

impl Group {
    /// Returns the rank's process id, which is also the id of the group.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Returns whether the rank has not been reaped, so that its id is still its own.
    pub fn is_live(&self) -> bool {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal to the group, if it still exists.
    pub fn signal(&self, signal: Signal) {
        if *self.live.lock().unwrap_or_else(PoisonError::into_inner) {
            self.send(signal);
        }
    }

    /// Kills the remaining processes of the group. Call it after the rank has ended and before it is reaped.
    pub fn close(&self) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        self.send(Signal::KILL);
        *live = false;
    }

    /// Call it while the rank is unreaped.
    fn send(&self, signal: Signal) {
        // The group may consist of processes that have ended; there is nothing to do about that or any other error.
        let _gone = kill_process_group(self.pid, signal);
        // The rank itself may have gone to another group, which may be ours or a stranger's.
        if getpgid(Some(self.pid)).is_ok_and(|group| group != self.pid) {
            let _gone = kill_process(self.pid, signal);
        }
    }
}
