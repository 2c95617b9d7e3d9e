//! Work of local rank 0 for the ranks of its host: the rank connects them, hosts their agent on a thread, and detects ranks
//! that die.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use super::at_exit;
use super::folder::{Door, Folder, own};
use super::wire::{self, Hello, Surroundings, Welcome, share_threads};
use super::{ARENA_BYTES_PER_RANK, Limits, WARN_AFTER, lost};
use crate::service::{Agent, AgentOptions, Assignment, Next, Rendezvous};
use crate::{Failure, FailureKind, LaunchEnv, StartedRank, Token};
use oflow_base::{Error, Result};
use oflow_comm::shm::ShmArena;

/// Time-out for the first message of a connection.
const SILENCE: Duration = Duration::from_secs(5);
/// Time that the other hosts of a failed job have to receive the end of this one.
const FAREWELL: Duration = Duration::from_secs(2);
/// An earlier job of the same name that is about to end is waited for.
const NAMESAKE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(20);

/// The host's end.
pub(super) struct Host {
    hosting: Arc<Mutex<Option<Running>>>,
    arena: Arc<ShmArena>,
}

/// The thread that hosts, until its end has been waited for.
struct Running {
    stop: oneshot::Sender<End>,
    thread: JoinHandle<()>,
}

/// How the host's own rank ends.
enum End {
    /// The rank finished without error.
    Well,
    /// The hosting has failed: kind and message.
    Badly(FailureKind, &'static str),
}

/// A rank of this host that has connected.
struct Guest {
    rank: usize,
    pid: i32,
    stream: UnixStream,
    hello: Hello,
}

impl Host {
    pub(super) fn start(found: &StartedRank, folder: &Folder, limits: Limits) -> Result<(LaunchEnv, Host)> {
        let token = match &found.token {
            Some(token) => token.clone(),
            None => Token::random()?,
        };
        let mut hosting = Hosting::start(found, token.clone(), limits.start)?;
        let (arena, fd) = ShmArena::create(found.local_world, ARENA_BYTES_PER_RANK)?;
        let own_hello = Hello::of(found);
        let guests = match found.local_world {
            1 => Vec::new(),
            _ => gather(found, &own_hello, &open_door(found, folder)?, limits)?,
        };
        let address = hosting.address()?;
        let cores: Vec<Vec<usize>> =
            std::iter::once(&own_hello).chain(guests.iter().map(|g| &g.hello)).map(|h| h.cores.clone()).collect();
        let quota = std::thread::available_parallelism().map_or(1, |n| n.get());
        let quota = if cores.iter().all(|c| *c == cores[0]) { quota } else { usize::MAX };
        let threads = share_threads(&cores, quota);
        let place = |local_rank: usize| Surroundings {
            token: token.expose().to_string(),
            address: address.0.clone(),
            port: address.1,
            threads: threads[local_rank],
        };
        for guest in &guests {
            let welcome = Welcome::Surroundings(place(guest.hello.local_rank));
            wire::send(&guest.stream, &welcome, Some(fd.as_fd()))
                .map_err(|e| Error::peer(lost(guest.rank, Some(guest.pid)).message).because(e))?;
        }
        let env = place(0).env(found, Some(fd.into_raw_fd()))?;
        let host = hosting.watch(found.rank, guests, arena)?;
        Ok((env, host))
    }

    /// The own rank is done, having started its work or not: hosts on until the others are, too.
    pub(super) fn wait_for_others(&mut self, started: bool) {
        let end = match (std::thread::panicking(), started) {
            (true, _) => End::Badly(FailureKind::Panicked, "panicked"),
            (false, false) => End::Badly(FailureKind::Exited, "could not start"),
            (false, true) => End::Well,
        };
        wait(&self.hosting, end);
    }

    /// At `exit()` this rank hosts on until the others are done, too. Who needs it hears that it has left.
    pub(super) fn set_at_exit(&self) {
        let (hosting, arena) = (self.hosting.clone(), self.arena.clone());
        at_exit::set(move || {
            arena.leave(0);
            wait(&hosting, End::Well);
        });
    }
}

/// Ends the hosting when all ranks have left.
fn wait(hosting: &Mutex<Option<Running>>, end: End) {
    let running = hosting.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Running { stop, thread }) = running else { return };
    // The thread may have ended by itself, all others having left.
    let _still_there = stop.send(end);
    if thread.join().is_err() {
        tracing::error!("the thread that hosts the control service panicked");
    }
}

/// Waits for an earlier job of this name to go.
fn open_door(found: &StartedRank, folder: &Folder) -> Result<Door> {
    let deadline = Instant::now() + NAMESAKE;
    loop {
        if let Some(door) = folder.listen(&found.job)? {
            return Ok(door);
        }
        if Instant::now() > deadline {
            return Err(Error::comm(format!(
                "another job of this user uses the socket {} of this job",
                folder.path(&found.job).display()
            ))
            .help("give each job its own MASTER_PORT, or end the other job"));
        }
        std::thread::sleep(RETRY);
    }
}

/// Waits until all ranks of the host have come, and returns them in order.
fn gather(found: &StartedRank, own_hello: &Hello, door: &Door, limits: Limits) -> Result<Vec<Guest>> {
    let mut guests: BTreeMap<usize, Guest> = BTreeMap::new();
    let missing = |guests: &BTreeMap<usize, Guest>| -> String {
        let absent = (1..found.local_world).filter(|l| !guests.contains_key(l)).map(|l| (found.rank + l).to_string());
        absent.collect::<Vec<_>>().join(", ")
    };
    let failed = |e: std::io::Error| Error::comm("cannot accept the ranks of this host").because(e);
    let started = Instant::now();
    let mut warned = false;
    while guests.len() + 1 < found.local_world {
        let limit = if warned { limits.start } else { limits.start.min(WARN_AFTER) };
        let left = limit.saturating_sub(started.elapsed());
        let time = Timespec::try_from(left).ok();
        let ready = match poll(&mut [PollFd::new(&door.listener, PollFlags::IN)], time.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other.map_err(|e| failed(e.into()))?,
        };
        if ready == 0 {
            if started.elapsed() >= limits.start {
                return Err(Error::comm(format!(
                    "after {:.0} s these ranks of this host have not joined: {}",
                    limits.start.as_secs_f64(),
                    missing(&guests)
                ))
                .help(format!(
                    "by {} there are {} here; every rank must call oflow::init(). To run a program alone, unset these variables",
                    found.starter, found.local_world
                )));
            }
            if !warned {
                warned = true;
                eprintln!("oflow: rank {} waits for these ranks of its host: {}", found.rank, missing(&guests));
            }
            continue;
        }
        let (stream, _) = door.listener.accept().map_err(failed)?;
        let Ok(pid) = own(&stream) else { continue };
        stream.set_read_timeout(Some(SILENCE)).map_err(failed)?;
        // Somebody who looked whether we listen, or who died: a rank that is needed comes again, or is missed.
        let Ok((hello, _)) = wire::receive::<Hello>(&stream) else { continue };
        let twice = guests.contains_key(&hello.local_rank);
        let misfit = hello.misfit(own_hello).or_else(|| twice.then(|| format!("rank {} has joined twice", hello.rank)));
        if let Some(why) = misfit {
            // It may be of another job; if it is of ours this one cannot be complete, and says so in time.
            let _gone = wire::send(&stream, &Welcome::Refused(why.clone()), None);
            return Err(Error::comm(why));
        }
        guests.insert(hello.local_rank, Guest { rank: hello.rank, pid, stream, hello });
    }
    Ok(guests.into_values().collect())
}

/// The thread with the control service, before the ranks are known.
struct Hosting {
    started: mpsc::Receiver<Result<(String, u16)>>,
    work: oneshot::Sender<Work>,
    thread: JoinHandle<()>,
}

struct Work {
    rank: usize,
    guests: Vec<Guest>,
    arena: Arc<ShmArena>,
    stop: oneshot::Receiver<End>,
}

impl Hosting {
    fn start(found: &StartedRank, token: Token, limit: Duration) -> Result<Hosting> {
        let mut options = AgentOptions::alone(found.local_world, token);
        (options.join_limit, options.outage) = (limit, found.outage);
        if found.nodes > 1 {
            let (host, port) = found.need_root()?;
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
            options.rendezvous = match found.node {
                0 => Rendezvous::Host(format!("{}:{port}", listening(&host))),
                _ => Rendezvous::Join(format!("{host}:{port}")),
            };
            options.nodes = found.nodes..=found.nodes;
            options.node_rank = Some(found.node);
        }
        let wanted = Assignment {
            node: found.node,
            nodes: found.nodes,
            first_rank: found.rank,
            nproc: found.local_world,
            world: found.world,
            restart: 0,
        };
        let (started_tx, started) = mpsc::sync_channel(1);
        let (work, coming) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("oflow-host".into())
            .spawn(move || host(options, wanted, &started_tx, coming))
            .map_err(|e| Error::comm("cannot start the thread that hosts the control service").because(e))?;
        Ok(Hosting { started, work, thread })
    }

    /// Waits until all hosts are there; the address for the ranks of this one.
    fn address(&mut self) -> Result<(String, u16)> {
        self.started.recv().map_err(|_| Error::comm("the hosting thread ended before it had started"))?
    }

    fn watch(self, rank: usize, guests: Vec<Guest>, arena: Arc<ShmArena>) -> Result<Host> {
        for guest in &guests {
            let ready = guest.stream.set_read_timeout(None).and_then(|()| guest.stream.set_nonblocking(true));
            ready.map_err(|e| Error::comm("cannot watch a rank of this host").because(e))?;
        }
        let (stop, stopped) = oneshot::channel();
        let work = Work { rank, guests, arena: arena.clone(), stop: stopped };
        self.work.send(work).map_err(|_| Error::comm("the hosting thread has ended"))?;
        Ok(Host { hosting: Arc::new(Mutex::new(Some(Running { stop, thread: self.thread }))), arena })
    }
}

/// The address at which the first host listens: the one that the others know it by, or all where that is none of its own
/// (a service's, for instance, which leads here).
fn listening(host: &str) -> &str {
    if std::net::TcpListener::bind(format!("{host}:0")).is_ok() { host } else { "0.0.0.0" }
}

/// The body of the hosting thread.
fn host(
    options: AgentOptions,
    wanted: Assignment,
    started: &mpsc::SyncSender<Result<(String, u16)>>,
    mut coming: oneshot::Receiver<Work>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            let _waiting = started.send(Err(Error::comm("cannot start the runtime of the control service").because(e)));
            return;
        }
    };
    runtime.block_on(async {
        // Ends early if the ranks of this host do not come together: then the other end of the channel is gone.
        let begun = tokio::select! {
            begun = begin(options, wanted) => begun,
            _ = &mut coming => return,
        };
        let agent = match begun {
            Ok(agent) => agent,
            Err(e) => {
                let _waiting = started.send(Err(e));
                return;
            }
        };
        let address = agent.address();
        let _waiting = started.send(Ok((address.ip().to_string(), address.port())));
        if let Ok(work) = coming.await {
            serve(&agent, work).await;
        }
    });
    runtime.shutdown_background();
}

/// Starts the agent and waits for its part, which must be what the launcher said.
async fn begin(options: AgentOptions, wanted: Assignment) -> Result<Agent> {
    let agent = Agent::start(options).await?;
    // It does not wait for ever: `join_limit`.
    let got = agent.assigned().await?;
    let Next::Again(got) = got else {
        return Err(Error::comm("the job of this host was over before it had a part in it"));
    };
    if got != wanted {
        return Err(Error::comm(format!(
            "the hosts do not agree on their ranks: by its launcher this one is {wanted:?}, by the others {got:?}"
        )));
    }
    Ok(agent)
}

/// Watches over the ranks of the host until all of them have gone, and the own one, too.
async fn serve(agent: &Agent, work: Work) {
    let Work { rank, guests, arena, stop } = work;
    let mut gone = tokio::task::JoinSet::new();
    for Guest { rank, pid, stream, .. } in guests {
        match tokio::net::UnixStream::from_std(stream) {
            Ok(mut stream) => drop(gone.spawn(async move {
                let (mut said, mut exits) = ([0; 64], false);
                while let Ok(n @ 1..) = stream.read(&mut said).await {
                    exits |= said[..n].contains(&wire::EXIT);
                }
                (rank, pid, exits)
            })),
            Err(e) => {
                let why = format!("rank {rank} cannot be watched: {e}");
                agent.fail(Failure::of_rank(rank, FailureKind::Error, why));
            }
        }
    }
    let mut stop = Some(stop);
    let mut printed = false;
    while !gone.is_empty() || stop.is_some() {
        let own_end = async {
            match &mut stop {
                Some(stop) => stop.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(ended) = gone.join_next() => {
                let Ok((rank, pid, exits)) = ended else { continue };
                if !exits && !agent.ends([]).has_left(rank) {
                    agent.fail(lost(rank, Some(pid)));
                }
                agent.mark_left(rank, &if exits { format!("rank {rank} (pid {pid}) called exit()") } else { String::new() });
            }
            end = own_end => {
                stop = None;
                if let Ok(End::Badly(kind, what)) = end {
                    agent.fail(Failure::of_rank(rank, kind, format!("rank {rank} {what}")));
                }
                // After exit() it has said no goodbye.
                agent.mark_left(rank, "");
            }
            failure = agent.failed(), if !printed => {
                printed = true;
                eprintln!("oflow: {failure}");
                // Those who wait in shared memory for a rank of this host; who waits for another host hears of it there.
                if let Some(lost) = failure.rank.filter(|r| (rank..rank + arena.world()).contains(r)) {
                    arena.poison(lost - rank, failure.loss(None));
                }
            }
        }
    }
    // The other hosts need this one until they are done, too: the first has the root, and one that went would be a lost one.
    let failed = agent.failure().is_some();
    let finished = agent.finish(u8::from(failed));
    let over = if failed { tokio::time::timeout(FAREWELL, finished).await.ok() } else { Some(finished.await) };
    if let Some(Err(error)) = over {
        tracing::debug!("at the end of the job: {error}");
    }
}
