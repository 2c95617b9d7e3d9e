//! The running agent of one host. It joins the state of its ranks ([`Ranks`]) with the connection to the root: on node 0 a lock
//! ([`Host`]), elsewhere a stream (`link.rs`).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use oflow_proto::control as pb;
use pb::down::Item;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tonic::Status;

use super::host::{self, Host};
use super::node::{Absent, Missing, NodeState, Silence};
use super::root::JobOptions;
use super::root_cause::Ends;
use super::serve::{Ranks, Verdict};
use super::watching::Sight;
use super::{AgentOptions, Assignment, Log, Next, Rendezvous, link};
use crate::flight::MAX_WORLD;
use crate::{Failure, FailureKind, Token};
use oflow_base::{Error, Result};
use oflow_comm::tcp::Outage;

/// How a job has ended for this agent.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// The job has ended with this exit code.
    Code(u8),
    /// This host could not take part.
    Refused { message: String, help: String },
}

/// The way to the root.
enum Uplink {
    Host(Arc<Host>),
    Link(Arc<Notify>),
}

/// State that the agent's tasks and its handle share.
pub(super) struct Core {
    pub(super) token: Token,
    pub(super) log: Log,
    pub(super) runtime: Handle,
    /// Ranks of this host.
    nproc: usize,
    ranks: Mutex<Option<Arc<Ranks>>>,
    /// The longest outage of the network between hosts that the job survives.
    pub(super) outage: Outage,
    max_restarts: u32,
    /// In how many starts this host had a part, and its part in the last one.
    assigned: watch::Sender<Option<(u64, Assignment)>>,
    /// Whether all ranks of that start have ended.
    resting: watch::Sender<bool>,
    end: watch::Sender<Option<End>>,
    uplink: Uplink,
    clock: Mutex<Clock>,
}

/// How far this host's clock is from node 0's.
#[derive(Default)]
pub(super) struct Clock {
    offset_ns: i64,
    round_trip_ns: Option<u64>,
}

impl Clock {
    /// Node 0 has answered a beat.
    pub(super) fn heard(&mut self, pong: &pb::Pong, now_ns: u64) {
        let round_trip = now_ns.saturating_sub(pong.sent_ns);
        // The quickest answer tells most; with time an old one counts less, because clocks drift.
        let best = self.round_trip_ns.map_or(u64::MAX, |b| b.saturating_add(b / 16 + 1000));
        if round_trip <= best {
            let middle = pong.sent_ns.saturating_add(round_trip / 2);
            *self = Clock {
                offset_ns: i64::try_from(i128::from(pong.root_ns) - i128::from(middle)).unwrap_or(0),
                round_trip_ns: Some(round_trip),
            };
        } else {
            self.round_trip_ns = Some(best);
        }
    }
}

/// Checks the part that node 0 assigns to a host with `nproc` ranks.
pub(super) fn part(begin: &pb::Begin, nproc: usize) -> std::result::Result<Assignment, String> {
    let part = Assignment {
        node: begin.node as usize,
        nodes: begin.nodes as usize,
        first_rank: begin.first_rank as usize,
        nproc: begin.nproc as usize,
        world: begin.world as usize,
        restart: begin.restart,
    };
    if part.nproc != nproc || part.first_rank + nproc > part.world || part.node >= part.nodes || part.world > MAX_WORLD
    {
        return Err(format!(
            "node 0 gives this host of {nproc} ranks an impossible part: {} ranks from {} on in a world of {}, as node {} of {}",
            part.nproc, part.first_rank, part.world, part.node, part.nodes
        ));
    }
    Ok(part)
}

impl Core {
    pub(super) fn ranks(&self) -> Option<Arc<Ranks>> {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends what has gathered for the root.
    pub(super) fn flush(self: &Arc<Self>) {
        match &self.uplink {
            Uplink::Host(host) => host.exchange(self, |_| ()),
            Uplink::Link(more) => more.notify_one(),
        }
    }

    /// Takes the messages gathered for the root, in order.
    pub(super) fn take_up(&self) -> Vec<pb::Up> {
        self.ranks().map_or(Vec::new(), |ranks| ranks.apply(NodeState::take_up))
    }

    /// Looks after what waits for a while.
    pub(super) fn tick(&self) {
        if let Some(ranks) = self.ranks() {
            ranks.apply(NodeState::tick);
        }
    }

    /// Handles a message of the root.
    pub(super) fn down(self: &Arc<Self>, item: Item) {
        match item {
            Item::Begin(begin) => self.begin(begin),
            Item::Answer(answer) => self.on_ranks(|ranks| ranks.apply(|s| s.answered(answer))),
            Item::Failed(failed) => {
                let failure: Failure = serde_json::from_slice(&failed.failure).unwrap_or_else(|e| {
                    Failure::of_job(FailureKind::Error, format!("a failure that cannot be read was told: {e}"))
                });
                let code = failed.code.map(|c| u8::try_from(c).unwrap_or(1));
                let (message, restarts) = (failure.message.clone(), failed.restarts);
                // Of no start: hosts that were waited for have not come. Who waits for a place waits on if there is a next start.
                if !self.failed(Verdict { failure, code, restarts }) && !restarts && !self.is_ending() {
                    self.finish(End::Refused { message, help: String::new() });
                }
            }
            Item::Pong(pong) => self.pong(&pong),
            Item::Ask(ask) => self.on_ranks(|ranks| ranks.apply(|s| s.ask(ask))),
            Item::Note(text) => (self.log)(&text),
            Item::Watched(on) => self.on_ranks(|ranks| ranks.apply(|s| s.watch(on))),
            Item::Over(code) => self.finish(End::Code(u8::try_from(code).unwrap_or(1))),
        }
    }

    fn on_ranks(&self, f: impl FnOnce(&Ranks)) {
        if let Some(ranks) = self.ranks() {
            f(&ranks);
        }
    }

    fn begin(self: &Arc<Self>, begin: pb::Begin) {
        let assignment = match part(&begin, self.nproc) {
            Ok(assignment) => assignment,
            Err(message) => return self.finish(End::Refused { message, help: String::new() }),
        };
        let own = assignment.first_rank..assignment.first_rank + assignment.nproc;
        let gathers = matches!(self.uplink, Uplink::Link(_));
        match Ranks::start(self, NodeState::new(own, assignment.world, gathers), begin.cost_model) {
            Ok(ranks) => {
                *self.ranks.lock().unwrap_or_else(PoisonError::into_inner) = Some(ranks);
                self.resting.send_replace(false);
                self.assigned.send_replace(Some((self.starts() + 1, assignment)));
            }
            Err(e) => self.finish(End::Refused { message: e.to_string(), help: String::new() }),
        }
    }

    /// Whether the current start is the last one and has failed.
    fn is_ending(&self) -> bool {
        self.ranks().is_some_and(|ranks| ranks.verdict.borrow().as_ref().is_some_and(|v| !v.restarts))
    }

    /// Records the first failure of a start and returns true. Later ones are its consequences and are dropped.
    fn failed(&self, verdict: Verdict) -> bool {
        self.ranks().is_some_and(|ranks| {
            let news = ranks.apply(|s| s.failed(verdict.failure.clone()));
            if news {
                ranks.verdict.send_replace(Some(verdict));
            }
            news
        })
    }

    /// The connection to the root has ended. Unless the job has ended too, this is a failure, which is decided here. Returns whether
    /// this host is to take part in another start: if the root was `silent`, it may be there again, and waits for this host.
    pub(super) fn lost_root(&self, message: &str, silent: bool) -> bool {
        if self.end.borrow().is_some() {
            return false;
        }
        let restarts = silent && self.assigned.borrow().is_some_and(|(_, part)| part.restart < self.max_restarts);
        let failure = Failure::of_job(FailureKind::NodeLost, message);
        self.failed(Verdict { failure, code: Some(1), restarts });
        self.on_ranks(|ranks| ranks.apply(|s| s.abandon(&Status::aborted(message))));
        let verdict = self.ranks().and_then(|r| r.verdict.borrow().clone());
        if verdict.as_ref().is_some_and(|v| v.restarts) {
            return true;
        }
        self.finish(End::Code(verdict.and_then(|v| v.code).unwrap_or(1)));
        false
    }

    /// Waits until all ranks of the present start have ended, and drops what they had to tell: nobody waits for that any more.
    pub(super) async fn rest(&self) {
        let mut resting = self.resting.subscribe();
        let _the_sender_lives_in_self = resting.wait_for(|resting| *resting).await.map(drop);
        drop(self.take_up());
    }

    pub(super) fn finish(&self, end: End) {
        self.end.send_if_modified(|now| {
            let first = now.is_none();
            if first {
                *now = Some(end);
            }
            first
        });
    }

    /// In how many starts this host had a part.
    pub(super) fn starts(&self) -> u64 {
        self.assigned.borrow().map_or(0, |(start, _)| start)
    }

    fn pong(&self, pong: &pb::Pong) {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).heard(pong, now_ns());
    }

    pub(super) fn clock_offset(&self) -> i64 {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).offset_ns
    }

    /// Largest error of the offset: half of the round trip, because the way there may have taken no time or all of it. `None` before the
    /// clocks were compared.
    pub(super) fn clock_error(&self) -> Option<u64> {
        match self.uplink {
            Uplink::Host(_) => Some(0),
            Uplink::Link(_) => {
                self.clock.lock().unwrap_or_else(PoisonError::into_inner).round_trip_ns.map(|ns| ns.div_ceil(2))
            }
        }
    }
}

/// Nanoseconds since 1970 by this host's clock.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The control service of one host. Dropping it closes its port.
pub struct Agent {
    core: Arc<Core>,
    host: Option<Arc<Host>>,
    tasks: Vec<JoinHandle<()>>,
    events: Mutex<Option<mpsc::Receiver<pb::NodeEvent>>>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        *self.core.ranks.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Agent {
    /// Starts an agent on the current tokio runtime. Its ranks are served on a free port of the loopback interface.
    ///
    /// # Errors
    /// If the options contradict each other, or if the agent cannot listen at the address.
    pub async fn start(options: AgentOptions) -> Result<Agent> {
        options.check()?;
        let (listener, address) = host::listen(&options.rendezvous).await?;
        let is_host = listener.is_some() || options.rendezvous == Rendezvous::Alone;
        let mut hello = options.hello();
        let (tell, events) = mpsc::channel(1024);
        let uplink = if is_host {
            hello.node_rank = Some(0);
            let plan = JobOptions {
                nodes: options.nodes.clone(),
                max_restarts: options.max_restarts,
                cost_model: options.cost_model.clone(),
                settle: options.settle,
                gather: options.join_limit,
                stall: options.stall,
                outage: options.outage,
            };
            Uplink::Host(Arc::new(Host::new(plan, hello.clone(), tell)))
        } else {
            Uplink::Link(Arc::default())
        };
        let core = Arc::new(Core {
            token: options.token.clone(),
            log: options.log.clone(),
            runtime: Handle::current(),
            nproc: options.nproc,
            ranks: Mutex::default(),
            outage: options.outage,
            max_restarts: options.max_restarts,
            assigned: watch::Sender::new(None),
            resting: watch::Sender::new(false),
            end: watch::Sender::new(None),
            uplink,
            clock: Mutex::default(),
        });
        let mut tasks = Vec::new();
        let mut host = None;
        match &core.uplink {
            Uplink::Host(own) => {
                host = Some(own.clone());
                if let Some(listener) = listener {
                    tasks.push(own.serve(&core, listener, &options)?);
                }
                tasks.push(own.tick(&core));
                core.flush();
            }
            Uplink::Link(more) => {
                let way = link::RootEndpoint {
                    address,
                    hello,
                    tls: options.tls.clone(),
                    limit: options.join_limit,
                    outage: options.outage,
                    more: more.clone(),
                };
                tasks.push(tokio::spawn(link::run(core.clone(), way)));
            }
        }
        Ok(Agent { core, host, tasks, events: Mutex::new(Some(events)) })
    }

    /// Waits until all hosts have joined. Returns this host's part in the job, or that the job is over.
    ///
    /// # Errors
    /// If the root refuses this host, or if too few hosts join before the time-out.
    pub async fn assigned(&self) -> Result<Next> {
        let next = self.next(0).await;
        self.farewell(&next).await;
        next
    }

    /// Waits for the start after that many, or the end.
    async fn next(&self, after: u64) -> Result<Next> {
        let (mut assigned, mut end) = (self.core.assigned.subscribe(), self.core.end.subscribe());
        let is_next = |a: &Option<(u64, Assignment)>| a.is_some_and(|(start, _)| start > after);
        let end = tokio::select! {
            biased;
            next = assigned.wait_for(is_next) => match next.ok().and_then(|a| *a) {
                Some((_, assignment)) => return Ok(Next::Again(assignment)),
                None => None,
            },
            end = end.wait_for(Option::is_some) => end.ok().and_then(|e| e.clone()),
        };
        match end {
            Some(End::Code(code)) => Ok(Next::Over(code)),
            Some(End::Refused { message, help }) if help.is_empty() => Err(Error::comm(message)),
            Some(End::Refused { message, help }) => Err(Error::comm(message).help(help)),
            // The senders live in self, so the waits cannot end otherwise.
            None => Err(Error::comm("the agent has ended")),
        }
    }

    /// Reports that all ranks of this host have ended, and waits until the other hosts' ranks have ended. Returns whether the job
    /// is over or starts again.
    ///
    /// # Errors
    /// If this host can take no further part.
    pub async fn finish(&self, code: u8) -> Result<Next> {
        let start = self.core.starts();
        if let Some(ranks) = self.core.ranks() {
            ranks.change(|s| s.done(code));
        }
        self.core.resting.send_replace(true);
        let next = self.next(start).await;
        self.farewell(&next).await;
        next
    }

    /// After the last message, gives the others a limited time to receive it before the port closes.
    async fn farewell(&self, next: &Result<Next>) {
        if !matches!(next, Ok(Next::Again(_)))
            && let Some(host) = &self.host
        {
            let _heard = tokio::time::timeout(self.core.outage.patience(), host.others_have_left()).await;
        }
    }

    /// Returns the address of the service for the ranks of this host. The port is 0 before [`Agent::assigned`] has returned, and
    /// changes with every start of the job.
    pub fn address(&self) -> SocketAddr {
        self.core.ranks().map_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), |r| r.address)
    }

    /// Fails the job: every rank is told, and waiting calls return. The root decides which failure was first; only that one
    /// counts.
    pub fn fail(&self, failure: Failure) {
        self.change(|s| s.fail(&failure, None, false));
    }

    /// Like [`Agent::fail`], with the exit code of the job.
    pub fn fail_with(&self, failure: Failure, code: u8) {
        self.change(|s| s.fail(&failure, Some(code), false));
    }

    /// Like [`Agent::fail_with`], and the job is not restarted: for an end that the user asks for.
    pub fn end(&self, failure: Failure, code: u8) {
        self.change(|s| s.fail(&failure, Some(code), true));
    }

    /// Returns why the job has failed, or `None`.
    pub fn failure(&self) -> Option<Failure> {
        self.verdict().map(|v| v.failure)
    }

    /// Returns why the job has failed and what follows, or `None`.
    pub fn verdict(&self) -> Option<Verdict> {
        self.core.ranks().and_then(|ranks| ranks.verdict.borrow().clone())
    }

    /// Waits until the job has failed.
    pub async fn failed(&self) -> Failure {
        let Some(ranks) = self.core.ranks() else {
            return std::future::pending().await;
        };
        let mut changes = ranks.verdict.subscribe();
        match changes.wait_for(Option::is_some).await.ok().and_then(|v| v.clone()) {
            Some(verdict) => verdict.failure,
            None => std::future::pending().await,
        }
    }

    /// Notes that a rank's process has ended, whether or not it said goodbye. `how` is a sentence without its end, such as `rank
    /// 3 (pid 17) exited with code 0`, or empty.
    pub fn mark_left(&self, rank: usize, how: &str) {
        self.change(|s| s.gone(rank, how));
    }

    /// Notes that the processes of these ranks run although nothing is heard from them: they count as stalled if others wait for
    /// them.
    pub fn note_absent(&self, ranks: Vec<Absent>) {
        if !ranks.is_empty() {
            self.change(|s| s.note_absent(ranks));
        }
    }

    /// Returns the ranks of this host that have not joined the job, and have not ended.
    pub fn absent(&self) -> Vec<usize> {
        self.look(NodeState::absent_ranks)
    }

    /// Returns the ends of this host's ranks, to compare failures before they are reported: the ranks that have left, in order, and as
    /// ended processes those of the ranks `gone`.
    pub fn ends(&self, gone: impl IntoIterator<Item = usize>) -> Ends {
        let mut ends = Ends::default();
        self.look(|s| s.departures().iter().for_each(|rank| ends.left(*rank)));
        gone.into_iter().for_each(|rank| ends.gone(rank, String::new()));
        ends
    }

    /// Returns what a rank has waited for in vain, as it reported.
    pub fn missing(&self, rank: usize) -> Option<Missing> {
        self.look(|s| s.missing(rank))
    }

    /// Returns the value of a key. On node 0 only.
    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.host.as_ref().and_then(|host| host.look(|root| root.value(key)))
    }

    /// Returns the communication reports received so far, by rank, as JSON of `oflow::Report`: on node 0 those of all ranks,
    /// elsewhere those of the host's ranks.
    pub fn reports(&self) -> BTreeMap<usize, String> {
        match &self.host {
            Some(host) => host.look(|root| root.reports().clone()),
            None => self.look(|s| s.reports().clone()),
        }
    }

    /// Returns the ranks of this host that have joined, have not left, and have sent nothing for longer than `limit`.
    pub fn silent(&self, limit: Duration) -> Vec<Silence> {
        self.look(|s| s.silent(Instant::now(), limit))
    }

    /// Returns the receiver of events that ranks publish and of the root's warnings, on node 0. It can be taken once; events that
    /// are not received are dropped.
    pub fn events(&self) -> Option<mpsc::Receiver<pb::NodeEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the clock of node 0 minus the clock of this host, in nanoseconds.
    pub fn clock_offset(&self) -> i64 {
        self.core.clock_offset()
    }

    /// Returns how many hosts have joined and how many are wanted, while this agent is node 0 and waits for hosts.
    pub fn waits_for(&self) -> Option<(usize, RangeInclusive<usize>)> {
        self.host.as_ref().and_then(|host| host.look(|root| root.waits_for()))
    }

    /// Returns a handle to watch the job with, on node 0. It does not keep the agent from ending.
    pub fn watcher(&self) -> Option<Watcher> {
        Some(Watcher { core: self.core.clone(), host: self.host.clone()? })
    }

    /// Returns the address of the root for other hosts, if this agent hosts it.
    pub fn root_address(&self) -> Option<SocketAddr> {
        self.host.as_ref().and_then(|h| h.address())
    }

    fn change(&self, change: impl FnOnce(&mut NodeState)) {
        if let Some(ranks) = self.core.ranks() {
            ranks.change(change);
        }
    }

    fn look<T: Default>(&self, look: impl FnOnce(&NodeState) -> T) -> T {
        self.core.ranks().map_or_else(T::default, |ranks| ranks.look(look))
    }
}

/// Sees the state of a job for people who watch it. Made by [`Agent::watcher`].
pub struct Watcher {
    core: Arc<Core>,
    host: Arc<Host>,
}

impl Watcher {
    /// Says whether somebody watches. While nobody does, ranks send nothing for this.
    pub fn watch(&self, on: bool) {
        self.host.exchange(&self.core, |root| root.show(on));
    }

    /// Takes what there is to see; glimpses come once.
    pub fn sight(&self) -> Sight {
        self.host.exchange(&self.core, |root| root.sight(Instant::now()))
    }

    /// Returns why the job has failed, or `None`.
    pub fn failure(&self) -> Option<Failure> {
        self.core.ranks().and_then(|ranks| ranks.verdict.borrow().clone()).map(|v| v.failure)
    }
}
