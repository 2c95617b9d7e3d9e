//! How the ranks of one host find each other if `oflaunch` has not started them.
//!
//! ```text
//! local rank 0                                   the other ranks of the host
//! listens at a socket named after the job        connect, and retry until the socket exists
//! starts the host's agent on a thread
//! makes the shared memory
//! receives their numbers and checks them         send their numbers
//! sends memory, token and address                continue as if oflaunch had set these
//! watches their connections until they leave     watch their connection until they leave
//! ```
//!
//! The connections stay open, so that the host detects a dead rank within milliseconds, as a launcher would. If a connection
//! closes before its rank has left the control service, the rank is lost and the job fails on all ranks. A rank that does not
//! end by itself is then ended by signals, as under oflaunch. A rank that calls `exit()` says so (`at_exit`): it has left, and
//! the job fails only if another rank still needs it. Its exit code is for its launcher to judge.
//!
//! Start at [`Local::meet`].
//!
//! `starter.rs` recognises such ranks by environment variables. After they have met, each has the same `LaunchEnv` as
//! under oflaunch. With the cargo feature `mpi` and `OFLOW_TRANSPORT=mpi`, the collectives run over MPI.

mod at_exit;
mod ending;
mod folder;
pub mod fuzz;
mod host;
mod wire;

use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::ending::Ending;
use self::folder::Folder;
use self::host::Host;
use self::wire::{Hello, Welcome};
use super::env::{END_LIMIT, START_LIMIT};
use super::{ControlClient, Failure, FailureKind, LaunchEnv, StartedRank};
use oflow_base::{Error, Result};
use oflow_comm::shm::{Loss, ShmArena};

/// Room that each rank has in shared memory for what it sends, as under oflaunch.
const ARENA_BYTES_PER_RANK: usize = 64 << 20;
/// Time after which a waiting rank prints which ranks are missing.
const WARN_AFTER: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(3);

/// A rank's connection to the other ranks of its host. Dropping it leaves; local rank 0 then waits until the others have left.
pub struct Local {
    env: LaunchEnv,
    role: Role,
    /// Whether this rank has started its work.
    watching: bool,
    control: Weak<ControlClient>,
    ending: Arc<Ending>,
}

enum Role {
    Host(Host),
    Peer(Peer),
}

/// The connection of a rank that hosts nothing.
struct Peer {
    stream: UnixStream,
    arena: Option<Arc<ShmArena>>,
    leaving: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Ranks wait so long for each other at the start.
    pub(crate) start: Duration,
    /// Ranks may take so long to end after a failure.
    pub(crate) end: Duration,
}

impl Limits {
    fn from_env() -> Result<Limits> {
        let read = |name: &str, default: f64| -> Result<Duration> {
            let Some(text) = std::env::var_os(name) else { return Ok(Duration::from_secs_f64(default)) };
            let seconds = text.to_str().and_then(|t| t.parse::<f64>().ok()).filter(|s| (0.0..=86400.0).contains(s));
            seconds.map(Duration::from_secs_f64).ok_or_else(|| {
                Error::argument(format!(
                    "environment variable {name} is {text:?}, not a number of seconds from 0 to 86400"
                ))
            })
        };
        Ok(Limits { start: read(START_LIMIT, 300.0)?, end: read(END_LIMIT, 3.0)? })
    }
}

impl Local {
    /// Connects this rank to the other ranks of its host, and host 0 to the other hosts.
    ///
    /// # Errors
    /// If a rank does not join before the time-out (`OFLOW_START_TIMEOUT`), if ranks have contradictory numbers, or if a job on
    /// several hosts has no token.
    pub fn meet(found: &StartedRank) -> Result<Local> {
        if found.nodes > 1 {
            // Said by every rank alike, before anyone waits.
            found.need_token()?;
            found.need_root()?;
        }
        let limits = Limits::from_env()?;
        let folder = Folder::open()?;
        let ending = Arc::new(Ending::new(found.rank, limits.end));
        let (env, role) = if found.local_rank == 0 {
            let (env, host) = Host::start(found, &folder, limits)?;
            (env, Role::Host(host))
        } else {
            let (env, peer) = Peer::connect(found, &folder, limits)?;
            (env, Role::Peer(peer))
        };
        Ok(Local { env, role, watching: false, control: Weak::new(), ending })
    }

    /// Returns the environment that `oflaunch` would have set for this rank.
    pub fn env(&self) -> &LaunchEnv {
        &self.env
    }

    /// Starts to watch the other ranks. A lost rank is reported to `control`. If the job has failed and this rank does not end by
    /// itself, it is ended.
    ///
    /// # Errors
    /// If the thread that watches cannot be started.
    pub fn watch(&mut self, control: &Arc<ControlClient>) -> Result<()> {
        let ending = self.ending.clone();
        control.on_failure(move |failure| ending.begin(&failure.to_string()));
        if let Role::Peer(peer) = &mut self.role {
            peer.watch(&self.env, control)?;
        }
        match &self.role {
            Role::Host(host) => host.set_at_exit(),
            Role::Peer(peer) => peer.set_at_exit(self.env.local_rank)?,
        }
        self.control = Arc::downgrade(control);
        self.watching = true;
        Ok(())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // A thread that still has the rank's context keeps the client, and with it the goodbye, without which the end of the
        // connection would be taken for a death.
        if let Some(control) = self.control.upgrade()
            && let Err(error) = control.say_goodbye()
        {
            tracing::debug!("could not leave the job: {error}");
        }
        at_exit::clear();
        match &mut self.role {
            Role::Host(host) => host.wait_for_others(self.watching),
            Role::Peer(peer) => peer.leave(),
        }
        // Only now: a host that waits for ranks that do not end must end, too.
        self.ending.cancel();
    }
}

impl Peer {
    fn connect(found: &StartedRank, folder: &Folder, limits: Limits) -> Result<(LaunchEnv, Peer)> {
        let host = found.rank - found.local_rank;
        let started = Instant::now();
        let mut warned = false;
        let stream = loop {
            match folder.connect(&found.job)? {
                Some(stream) => break stream,
                None if started.elapsed() > limits.start => {
                    return Err(Error::comm(format!(
                        "rank {} has waited {:.0} s for rank {host}, the first of its host, at {}",
                        found.rank,
                        limits.start.as_secs_f64(),
                        folder.path(&found.job).display()
                    ))
                    .help(format!("every rank must call oflow::init(); {START_LIMIT} sets the time-out")));
                }
                None => {}
            }
            if !warned && started.elapsed() > WARN_AFTER {
                warned = true;
                eprintln!("oflow: rank {} waits for rank {host} of its host ({})", found.rank, found.starter);
            }
            std::thread::sleep(RETRY);
        };
        let lost = |what: &str| {
            Error::peer(format!(
                "rank {host}, the first of this host, {what} while the ranks of the host came together"
            ))
        };
        wire::send(&stream, &Hello::of(found), None).map_err(|e| lost("has gone").because(e))?;
        // It answers when all have come; should it die, the connection closes.
        stream
            .set_read_timeout(Some(limits.start + Duration::from_secs(5)))
            .map_err(|e| Error::comm("cannot set a time limit for a connection").because(e))?;
        let (welcome, fd): (Welcome, Option<OwnedFd>) =
            wire::receive(&stream).map_err(|e| lost("has gone or does not answer").because(e))?;
        let place = match welcome {
            Welcome::Refused(why) => return Err(Error::comm(why)),
            Welcome::Surroundings(place) => place,
        };
        stream.set_read_timeout(None).map_err(|e| Error::comm("cannot clear a time limit").because(e))?;
        let arena = match &fd {
            Some(fd) => Some(ShmArena::from_fd(fd.as_fd(), found.local_rank, found.local_world)?),
            None => None,
        };
        let env = place.env(found, fd.map(IntoRawFd::into_raw_fd))?;
        Ok((env, Peer { stream, arena, leaving: Arc::default(), thread: None }))
    }

    fn watch(&mut self, env: &LaunchEnv, control: &Arc<ControlClient>) -> Result<()> {
        let stream = self.stream.try_clone().map_err(|e| Error::comm("cannot watch the first rank").because(e))?;
        let (control, leaving, arena) = (Arc::downgrade(control), self.leaving.clone(), self.arena.clone());
        let (host, local) = (env.rank - env.local_rank, 0);
        let watch = move || {
            // Returns when the connection closes: nothing is ever sent on it.
            let _closed = wire::wait_for_end(&stream);
            if leaving.load(Ordering::Acquire) {
                return;
            }
            if let Some(arena) = arena {
                arena.poison(local, Loss::Gone);
            }
            if let Some(control) = control.upgrade() {
                control.fail_here(lost(host, None));
            }
        };
        let thread = std::thread::Builder::new().name("oflow-local".into()).spawn(watch);
        self.thread = Some(thread.map_err(|e| Error::comm("cannot start a thread").because(e))?);
        Ok(())
    }

    /// At `exit()` the host hears that this rank was not killed.
    fn set_at_exit(&self, local_rank: usize) -> Result<()> {
        let stream =
            self.stream.try_clone().map_err(|e| Error::comm("cannot keep the first rank in touch").because(e))?;
        let (leaving, arena) = (self.leaving.clone(), self.arena.clone());
        at_exit::set(move || {
            leaving.store(true, Ordering::Release);
            if let Some(arena) = arena {
                arena.leave(local_rank);
            }
            wire::say_exit(&stream);
        });
        Ok(())
    }

    fn leave(&mut self) {
        self.leaving.store(true, Ordering::Release);
        // Ends the thread's wait; a connection that has closed already is as good.
        let _closed = self.stream.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the thread that watches the first rank panicked");
        }
    }
}

/// Failure of a rank whose connection has closed before its goodbye.
fn lost(rank: usize, pid: Option<i32>) -> Failure {
    let pid = pid.map_or(String::new(), |pid| format!(" (pid {pid})"));
    let what = "is gone without a goodbye: it was killed";
    Failure::of_rank(rank, FailureKind::Killed, format!("rank {rank}{pid} {what}"))
}
