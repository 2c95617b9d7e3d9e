//! Supervises the ranks: signals, exits, reports, missing heartbeats; and ends the job.
//!
//! The job runs until a failure ends it (the other ranks then get a grace period, SIGTERM, SIGKILL), or a signal to oflaunch,
//! which is passed on. The first cause decides the exit code; its consequences are not reported.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use oflow::comm::shm::{Loss, ShmArena};
use rustix::process::Signal;
use serde_json::json;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep, sleep_until, timeout, timeout_at};

use super::bound::Bound;
use super::memory::MemoryKills;
use super::signals::{Signals, stop_here};
use super::stopped::{Stopped, clocks_of, state_of};
use super::{Job, not_started, stdin_of};
use crate::guardian::Guardian;
use crate::logs;
use crate::output::{Output, Stream, Tail, complain};
use crate::rank::{self, Group, Recipe, Started, Streams};
use crate::report::{Ended, signal_name};
use crate::undelivered::Cause;
use crate::{EXIT_FAILED, Failed, cores, script, terminal};
use oflow::control::service::{Absent, Agent, Assignment, Candidate, Ends, Verdict};
use oflow::control::{Failure, FailureKind};

/// After a rank has failed, others that fail within this time are weighed against it: which was the first is not certain.
const VERDICT: Duration = Duration::from_millis(20);
/// How long a rank that has said goodbye before the failed ones did may take to end: theirs may follow from its failure.
const GOODBYE: Duration = Duration::from_millis(500);
/// From SIGTERM to SIGKILL.
const TERMINATE: Duration = Duration::from_secs(1);
/// How long a dead rank's pipes are read on: a process that has left its group may hold them open.
const DRAIN: Duration = Duration::from_millis(500);
/// A live rank that is silent for so long is worth a warning.
const SILENT: Duration = Duration::from_secs(10);
/// A rank that has not joined for so long is told of, and one that has joined and was not heard for so long.
const ABSENT: Duration = Duration::from_secs(1);
const UNHEARD: Duration = Duration::from_secs(2);
const LOOK_FOR_SILENCE: Duration = Duration::from_millis(500);
/// As if SIGPIPE had killed us.
const EXIT_BROKEN_PIPE: u8 = 141;

/// Inputs of the supervision of one start of a job.
pub(super) struct Scene<'a> {
    pub(super) job: &'a Job,
    pub(super) agent: &'a Agent,
    pub(super) part: Assignment,
    pub(super) arena: &'a ShmArena,
    pub(super) output: Output,
    pub(super) signals: &'a mut Signals,
    pub(super) guardian: &'a mut Guardian,
    pub(super) bound: &'a mut Bound,
}

/// How the ranks of this host have ended.
pub(super) struct Outcome {
    /// The exit code of this host's part of the job.
    pub(super) code: u8,
    /// Whether oflaunch has received a signal; then the job is not restarted.
    pub(super) interrupted: bool,
}

/// Starts the ranks, of a script from `start`, and waits for their end.
pub(super) async fn run(
    scene: Scene<'_>,
    recipes: Vec<Recipe>,
    start: Option<script::Start>,
) -> Result<Outcome, Failed> {
    let Scene { job, agent, part, arena, output, signals, guardian, bound } = scene;
    let (ended, mut exits) = mpsc::unbounded_channel();
    let mut watch = Watch {
        job,
        agent,
        part,
        arena,
        output,
        groups: Vec::new(),
        began: Instant::now(),
        ended: BTreeMap::new(),
        below: BTreeMap::new(),
        alive: 0,
        silent: Vec::new(),
        stopped: Stopped::default(),
        memory_kills: MemoryKills::new(),
        interrupted: false,
        reported: false,
        ending: None,
    };
    job.events.tell(
        "start",
        json!({
            "program": job.program.to_string_lossy(),
            "args": job.args.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>(),
            "world": part.world, "first_rank": part.first_rank, "nproc": part.nproc,
            "node": part.node, "nodes": part.nodes, "restart": part.restart,
        }),
    );
    for (rank, recipe) in (part.first_rank..).zip(&recipes) {
        if let Err(e) = watch.start(rank, recipe, &ended) {
            watch.signal_all(Signal::KILL);
            while watch.alive > 0 && exits.recv().await.is_some() {
                watch.alive -= 1;
            }
            return Err(not_started(job, rank, &e));
        }
        if let Some(group) = watch.groups.last() {
            guardian.watch(group.pid());
        }
    }
    drop(start);
    if job.verbose {
        for (local, group) in watch.groups.iter().enumerate() {
            let on = bound.cores(local).map_or(String::new(), |c| format!(" on cores {}", cores::describe(c)));
            let rank = part.first_rank + local;
            watch.output.say(&format!("rank {rank} is pid {}{on}", group.pid())).await;
        }
    }
    bound.begin();
    let mut look = interval(LOOK_FOR_SILENCE);
    while watch.alive > 0 {
        let deadline = watch.deadline();
        tokio::select! {
            biased;
            signal = signals.any() => match signal {
                Signal::TSTP => watch.stop(),
                end => watch.signalled(end).await,
            },
            Some(end) = exits.recv() => watch.exited(end, &mut exits).await,
            _ = agent.failed(), if watch.ending.is_none() => watch.decided().await,
            cause = job.undelivered.wait(), if watch.ending.is_none() => watch.unwritten(cause).await,
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => watch.escalate().await,
            _ = look.tick() => {
                watch.memory_kills.look(std::time::Instant::now());
                watch.look_for_stopped().await;
                watch.look_for_silence().await;
                watch.tell_of_absent();
                if watch.ending.is_none()
                    && let Some(found) = bound.look(&watch.groups, part.first_rank, std::time::Instant::now())
                {
                    job.events.tell("other-work", found.event());
                    watch.output.say(&found.message).await;
                }
            }
        }
    }
    // The last rank here may end before the root has weighed what was told to it.
    if watch.reported && watch.ending.is_none() && timeout(job.grace, agent.failed()).await.is_ok() {
        watch.decided().await;
    }
    Ok(Outcome { code: watch.ending.map_or(0, |e| e.code), interrupted: watch.interrupted })
}

/// The end of a job that has begun.
struct Ending {
    code: u8,
    /// The rank whose own exit code becomes the job's, while that is not known.
    culprit: Option<usize>,
    step: Step,
}

/// How far the end has come. Each step but the last may have a time at which the next one follows.
#[derive(Clone, Copy)]
enum Step {
    /// The ranks may end by themselves.
    Grace(Option<Instant>),
    /// The ranks have been asked to end.
    Terminated(Instant),
    /// The ranks have been killed.
    Killed,
}

struct Watch<'a> {
    job: &'a Job,
    agent: &'a Agent,
    part: Assignment,
    arena: &'a ShmArena,
    output: Output,
    groups: Vec<Arc<Group>>,
    /// When the ranks were started.
    began: Instant,
    /// Ranks that have ended, and with which code.
    ended: BTreeMap<usize, u8>,
    /// How a rank ended whose error its own lines tell: the report for others, and the one below these lines.
    below: BTreeMap<usize, (String, String)>,
    alive: usize,
    /// Ranks that have been warned of.
    silent: Vec<usize>,
    stopped: Stopped,
    memory_kills: MemoryKills,
    /// Whether a signal to us has come.
    interrupted: bool,
    /// Whether the root has been told of a failure here.
    reported: bool,
    ending: Option<Ending>,
}

impl Watch<'_> {
    fn start(&mut self, rank: usize, recipe: &Recipe, ended: &mpsc::UnboundedSender<Ended>) -> io::Result<()> {
        let terminals = [Stream::Out, Stream::Err].map(|stream| self.terminal_for(rank, stream));
        let [(out, stdout), (err, stderr)] = terminals;
        let streams = Streams { stdin: stdin_of(rank), output: [stdout, stderr] };
        let Started { mut child, pidfd, group } = rank::start(recipe, streams)?;
        if let Some(folder) = &self.job.log_dir {
            // A rank that never prints has an empty log, for which nobody looks in vain. What cannot be written its first line tells.
            let _empty = oflow_files::append(&logs::path(folder, rank), oflow_files::Access::Readable);
        }
        let tail = Arc::new(Tail::default());
        match self.connect(rank, &mut child, pidfd, [out, err], &tail) {
            Ok((pidfd, pumps)) => {
                let group = Arc::new(group);
                self.job.events.tell("rank-started", json!({ "rank": rank, "pid": group.pid() }));
                self.groups.push(group.clone());
                self.alive += 1;
                tokio::spawn(reap(rank, child, pidfd, group, pumps, tail, ended.clone()));
                Ok(())
            }
            Err(e) => {
                // Nobody would watch over it.
                group.signal(Signal::KILL);
                child.wait()?;
                Err(e)
            }
        }
    }

    /// Where a rank's output leads to: our end of its terminal, if it is to have one, and its own end, or a pipe.
    fn terminal_for(&self, rank: usize, stream: Stream) -> (Option<OwnedFd>, Stdio) {
        let ours = match stream {
            Stream::Out => io::stdout().as_fd().try_clone_to_owned(),
            Stream::Err => io::stderr().as_fd().try_clone_to_owned(),
        };
        let wanted = self.output.wants_terminal(rank, stream);
        match ours.ok().filter(|_| wanted).and_then(|like| terminal::make(like).ok()) {
            Some((ours, ranks)) => (Some(ours), ranks.into()),
            // Without a terminal there is no progress bar, and everything else works.
            None => (None, Stdio::piped()),
        }
    }

    /// Registers a new rank's pipes and process with the runtime.
    fn connect(
        &self,
        rank: usize,
        child: &mut Child,
        pidfd: OwnedFd,
        terminals: [Option<OwnedFd>; 2],
        tail: &Arc<Tail>,
    ) -> io::Result<(AsyncFd<OwnedFd>, Vec<JoinHandle<()>>)> {
        // SAFETY: the AsyncFd owns the descriptor, which therefore stays open and the same for as long as it lives.
        let pidfd = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }.map_err(io::Error::from)?;
        if let Some(stdin) = child.stdin.take() {
            relay_stdin(stdin)?;
        }
        let mut pumps = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            let from = pipe::Receiver::from_owned_fd(pipe.into())?;
            pumps.push(tokio::spawn(self.output.clone().pump(from, rank, Stream::Out, None)));
        }
        if let Some(pipe) = child.stderr.take() {
            let from = pipe::Receiver::from_owned_fd(pipe.into())?;
            pumps.push(tokio::spawn(self.output.clone().pump(from, rank, Stream::Err, Some(tail.clone()))));
        }
        for (ours, stream) in terminals.into_iter().zip([Stream::Out, Stream::Err]) {
            if let Some(ours) = ours {
                let tail = (stream == Stream::Err).then(|| tail.clone());
                pumps.push(tokio::spawn(self.output.clone().pump(terminal::Reader::new(ours)?, rank, stream, tail)));
            }
        }
        Ok((pidfd, pumps))
    }

    /// A rank has ended; so may have others, whose exits wait in the queue.
    async fn exited(&mut self, end: Ended, exits: &mut mpsc::UnboundedReceiver<Ended>) {
        let mut ends = vec![end];
        if self.ending.is_none() && !ends[0].success() {
            sleep(VERDICT).await;
            while let Ok(end) = exits.try_recv() {
                ends.push(end);
            }
            let deadline = Instant::now() + GOODBYE;
            while self.earlier_is_still_ending(&mut ends)
                && let Ok(Some(end)) = timeout_at(deadline, exits.recv()).await
            {
                ends.push(end);
            }
        }
        self.memory_kills.look(std::time::Instant::now());
        // Once the job ends it is we who kill.
        let by_kill = |e: &&mut Ended| e.status.signal() == Some(Signal::KILL.as_raw());
        let killed = ends.iter_mut().filter(by_kill).count();
        if self.ending.is_none() && self.memory_kills.explain(killed) {
            ends.iter_mut().filter(by_kill).for_each(|e| e.out_of_memory = true);
        }
        ends.iter_mut().for_each(|e| e.missing = self.agent.missing(e.rank));
        self.alive -= ends.len();
        for end in &ends {
            let message = if end.success() { String::new() } else { end.describe() };
            let fields = json!({ "rank": end.rank, "pid": end.pid, "code": end.code(), "message": message });
            self.job.events.tell("rank-ended", fields);
        }
        self.ended.extend(ends.iter().map(|e| (e.rank, e.code())));
        let below = ends.iter().filter_map(|e| Some((e.rank, (e.describe(), e.describe_below(self.part.world == 1)?))));
        self.below.extend(below);
        let failed = ends.iter().filter_map(|e| Some((e.candidate()?.failure, e)));
        let mut failed: Vec<(Failure, &Ended)> = failed.collect();
        self.known(&ends).sort(&mut failed, |(failure, _)| failure);
        for (failure, end) in failed {
            match &mut self.ending {
                None => match self.agent.failure() {
                    // What was told before says more than an end that follows from it.
                    Some(reported) if reported.rank == Some(end.rank) => self.fail(reported, end.code()).await,
                    Some(_) => self.decided().await,
                    None => self.fail(failure, end.code()).await,
                },
                Some(ending) => {
                    // If we sent the signal the code says nothing about the rank.
                    if ending.culprit == Some(end.rank) && !end.by_signal() {
                        ending.code = end.code();
                    }
                    // After a signal to us nothing has been told to the ranks yet: now one is missing. Whatever comes of it,
                    // the job is to end.
                    self.agent.end(failure, end.code());
                    self.poison(end.rank, Loss::Died(end.code()));
                    if self.job.verbose {
                        self.output.say(&end.describe()).await;
                    }
                }
            }
        }
        // After the failures: those who wait shall hear of the failure, not of somebody who has left.
        for end in &ends {
            self.agent.mark_left(end.rank, &end.describe());
            // A rank that exits with 0 may not have said goodbye. Who waits for it does so in vain.
            if end.success() {
                self.arena.leave(end.rank - self.part.first_rank);
            }
        }
    }

    /// Whether one of these ends may follow from that of a rank which is still to come.
    fn earlier_is_still_ending(&self, ends: &mut [Ended]) -> bool {
        ends.iter_mut().for_each(|e| e.missing = self.agent.missing(e.rank));
        let candidates: Vec<Candidate> = ends.iter().filter_map(Ended::candidate).collect();
        self.known(ends).earlier_is_still_ending(&candidates)
    }

    /// The ends of the ranks here, with these, which are not reported yet.
    fn known(&self, ends: &[Ended]) -> Ends {
        self.agent.ends(self.ended.keys().copied().chain(ends.iter().map(|e| e.rank)))
    }

    /// A rank here has failed. Whether the job has failed by it is for the root to say: at once where all ranks are here,
    /// soon elsewhere.
    async fn fail(&mut self, failure: Failure, code: u8) {
        // One that had waited in vain for another rank is not the cause.
        if let Some(rank) = failure.rank.filter(|_| failure.missing.is_none()) {
            self.poison(rank, failure.loss(Some(code)));
        }
        self.agent.fail_with(failure, code);
        self.reported = true;
        if self.ending.is_none() && self.agent.verdict().is_some() {
            self.decided().await;
            // A rank that told of its failure before it ended has no code from then.
            if let Some(ending) = &mut self.ending
                && ending.culprit.take().is_some()
            {
                ending.code = code;
            }
        }
    }

    /// The job has failed: prints why, and starts the grace period. Without a code it is that of the rank's own exit, when that
    /// comes.
    async fn decided(&mut self) {
        let Some(Verdict { failure, code, restarts }) = self.agent.verdict() else { return };
        if let Some(rank) = failure.rank {
            let own = self.ended.get(&rank).copied().or(code);
            self.poison(rank, failure.loss(own));
        }
        // It would use up the time of grace and would not end by itself.
        if matches!(failure.kind, FailureKind::Stopped | FailureKind::Stalled)
            && let Some(group) = failure.rank.and_then(|r| self.groups.get(r.checked_sub(self.part.first_rank)?))
        {
            group.signal(Signal::KILL);
        }
        self.job.events.failure(&failure);
        let until = Instant::now() + self.job.grace;
        self.ending = Some(Ending {
            code: code.unwrap_or(EXIT_FAILED),
            culprit: if code.is_none() { failure.rank } else { None },
            step: Step::Grace(Some(until)),
        });
        let what_next = if restarts { "; all ranks will be started again" } else { "" };
        // What a rank here has printed is not said again.
        let below = failure.rank.and_then(|rank| self.below.get(&rank)).filter(|(full, _)| *full == failure.message);
        let text = below.map_or(&failure.message, |(_, short)| short);
        self.output.say(&format!("{text}{what_next}")).await;
    }

    /// Ends the waits in shared memory of this host's ranks, if the rank is one of them.
    fn poison(&self, rank: usize, loss: Loss) {
        if let Some(local) = rank.checked_sub(self.part.first_rank).filter(|local| *local < self.part.nproc) {
            self.arena.poison(local, loss);
        }
    }

    /// Ctrl-Z: the ranks, which are no part of the terminal's foreground group, stop and continue with us.
    fn stop(&self) {
        self.signal_all(Signal::STOP);
        stop_here();
        self.signal_all(Signal::CONT);
    }

    /// A signal to oflaunch: the first one is passed on, the second one kills.
    async fn signalled(&mut self, signal: Signal) {
        let name = signal_name(signal.as_raw());
        self.interrupted = true;
        if let Some(ending) = &mut self.ending {
            ending.step = Step::Killed;
            self.output.say(&format!("{name}: killing the ranks")).await;
            self.signal_all(Signal::KILL);
            return;
        }
        // A person who presses Ctrl-C decides how long to wait; a scheduler that sends SIGTERM does not.
        let until = (signal != Signal::INT).then(|| Instant::now() + self.job.grace);
        let code = u8::try_from(128 + signal.as_raw()).unwrap_or(EXIT_FAILED);
        self.ending = Some(Ending { code, culprit: None, step: Step::Grace(until) });
        self.job.events.failure(&Failure::of_job(FailureKind::Interrupted, format!("{name} ended the job")));
        if self.part.nodes > 1 {
            let text = format!("node {} was ended by {name}", self.part.node);
            self.agent.end(Failure::of_job(FailureKind::Interrupted, text), code);
        }
        self.signal_all(signal);
        let hint = if until.is_none() { "; once more kills them" } else { "" };
        self.output.say(&format!("{name} passed on to the ranks{hint}")).await;
    }

    /// The output of oflaunch is closed, or what is required cannot be written: ends the job.
    async fn unwritten(&mut self, cause: Cause) {
        let (kind, text, code) = match cause {
            Cause::Closed => (FailureKind::Interrupted, "the output of oflaunch was closed".into(), EXIT_BROKEN_PIPE),
            Cause::Unwritten(what) => {
                let text = format!("{what}; --require-logs ends the job");
                complain(&text);
                (FailureKind::Storage, text, EXIT_FAILED)
            }
        };
        let failure = Failure::of_job(kind, text);
        self.job.events.failure(&failure);
        self.agent.end(failure, code);
        self.ending = Some(Ending { code, culprit: None, step: Step::Grace(Some(Instant::now())) });
    }

    fn deadline(&self) -> Option<Instant> {
        match self.ending.as_ref()?.step {
            Step::Grace(until) => until,
            Step::Terminated(until) => Some(until),
            Step::Killed => None,
        }
    }

    /// The time of the present step is up.
    async fn escalate(&mut self) {
        let Some(ending) = &mut self.ending else { return };
        let (step, signal) = match ending.step {
            Step::Grace(_) => (Step::Terminated(Instant::now() + TERMINATE), Signal::TERM),
            Step::Terminated(_) | Step::Killed => (Step::Killed, Signal::KILL),
        };
        ending.step = step;
        self.signal_all(signal);
        if self.job.verbose {
            let name = signal_name(signal.as_raw());
            self.output.say(&format!("sent {name} to the {} ranks that are left", self.alive)).await;
        }
    }

    /// A rank whose process is stopped would keep the others waiting for ever.
    async fn look_for_stopped(&mut self) {
        let now = std::time::Instant::now();
        for local in 0..self.groups.len() {
            let (rank, pid) = (self.part.first_rank + local, self.groups[local].pid());
            if self.ended.contains_key(&rank) || !self.stopped.look(rank, state_of(pid), now) || self.ending.is_some() {
                continue;
            }
            let for_it = format!("waits for rank {rank} ");
            let waits = (0..self.part.nproc).find_map(|other| {
                let status = self.arena.status(other).filter(|s| s.starts_with(&for_it))?;
                let call = status.split_once(", in ").map_or(String::new(), |(_, call)| format!(", in {call}"));
                Some(format!("; rank {} waits for it{call}", self.part.first_rank + other))
            });
            let text = format!(
                "rank {rank} (pid {pid}) was stopped by a signal and does not continue{}",
                waits.unwrap_or_default()
            );
            self.fail(Failure::of_rank(rank, FailureKind::Stopped, text), EXIT_FAILED).await;
        }
    }

    async fn look_for_silence(&mut self) {
        let now = self.agent.silent(SILENT);
        self.silent.retain(|rank| now.iter().any(|s| s.rank == *rank));
        for silence in now {
            if !self.silent.contains(&silence.rank) {
                self.silent.push(silence.rank);
                let local = silence.rank - self.part.first_rank;
                let waits = self.arena.status(local).map_or(String::new(), |s| format!("; {s}"));
                let text = format!(
                    "warning: nothing heard from rank {} (pid {}) for {:.0} s; its last op was number {}{waits}",
                    silence.rank,
                    self.groups[local].pid(),
                    silence.since.as_secs_f64(),
                    silence.progress
                );
                self.job.events.warning(Some(silence.rank), text.trim_start_matches("warning: "));
                self.output.say(&text).await;
            }
        }
    }

    /// Tells the service of ranks that run and have not joined the job or are silent, so that they count as stalled if others
    /// wait for them.
    fn tell_of_absent(&self) {
        let since = self.began.elapsed();
        if since < ABSENT {
            return;
        }
        let silent = self.agent.silent(UNHEARD).into_iter().map(|s| s.rank);
        let absent = self.agent.absent().into_iter().chain(silent).filter_map(|rank| {
            let pid = self.groups[rank - self.part.first_rank].pid();
            // One that is stopped is reported as that.
            let runs = state_of(pid) != Some('T');
            runs.then(|| Absent { rank, since, clocks: clocks_of(pid).unwrap_or_default() })
        });
        self.agent.note_absent(absent.collect());
    }

    fn signal_all(&self, signal: Signal) {
        self.groups.iter().for_each(|group| group.signal(signal));
    }
}

/// Waits for the end of a rank, kills its remaining processes, reads its pipes to the end, and reports the end.
async fn reap(
    rank: usize,
    mut child: Child,
    pidfd: AsyncFd<OwnedFd>,
    group: Arc<Group>,
    pumps: Vec<JoinHandle<()>>,
    tail: Arc<Tail>,
    ended: mpsc::UnboundedSender<Ended>,
) {
    // Should this fail, the wait below blocks until the rank ends: late, but right.
    let _readable = pidfd.readable().await;
    group.close();
    let status = child.wait();
    for mut pump in pumps {
        if timeout(DRAIN, &mut pump).await.is_err() {
            pump.abort();
        }
    }
    // Nobody else waits for our children; should it happen, the end counts as a failure.
    let status = status.unwrap_or_else(|_| ExitStatus::from_raw(1 << 8));
    // The receiver lives until the last rank has ended.
    let tail = tail.lines();
    let _receiver_waits =
        ended.send(Ended { rank, pid: group.pid(), status, tail, out_of_memory: false, missing: None });
}

/// Reads the terminal for rank 0. The thread ends with the process: a read cannot be called off.
fn relay_stdin(mut to: ChildStdin) -> io::Result<()> {
    std::thread::Builder::new().name("oflaunch-stdin".into()).spawn(move || {
        // Ends when the user closes the input or the rank is gone.
        let _either_end_closed = io::copy(&mut io::stdin().lock(), &mut to);
    })?;
    Ok(())
}
