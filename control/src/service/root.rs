//! The root's state of the job, and its decisions: which hosts take part, which failure was first, whether the job restarts, when
//! it is over. Pure: time is an argument; messages to the nodes are collected until they are taken.
//!
//! A job is a sequence of starts. Each start gathers hosts, assigns their parts, runs, and ends when every host has reported that
//! its ranks have ended, successfully or after a failure.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::time::{Duration, Instant};

use oflow_proto::control as pb;
use pb::answer::Answer;
use pb::down::Item as Down;
use pb::up::Item as Up;
use tonic::Status;

use gather::Gathering;

use super::divergence::Streams;
use super::kv_store::{Caller, Invited, KvStore};
use super::limits::{difference, refused};
use super::root_cause::{self, Candidate, Ends};
use super::stall::{Finding, Stalls};
use super::transit::Transit;
use super::watching::{HostPart, Sight, Watching};
use crate::flight::MAX_WORLD;
use crate::{Failure, FailureKind};
use oflow_comm::tcp::{NAMED_AFTER, Outage};

#[path = "gather.rs"]
mod gather;

/// The node that the root itself is on.
pub const OWN: u64 = 0;
/// Failures reported within this time after the first report are compared with it, because reports may arrive in another order.
const VERDICT: Duration = Duration::from_millis(100);
/// How long a rank that said goodbye before the failed ones did may take to end: theirs may follow from its failure.
const GOODBYE: Duration = Duration::from_millis(600);
/// A rank that is cut off is known by its links to several ranks, whose losses come one after the other.
const LINKS: Duration = Duration::from_millis(1000);
/// If the root has not been woken for this time, it cannot judge the silence of others.
const OVERSLEPT: Duration = Duration::from_millis(1000);

/// How often the waits are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Topic of events that the launcher prints for the user.
pub const WARNING: &str = "warning";

/// Options of a job.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// Smallest and largest number of hosts.
    pub nodes: RangeInclusive<usize>,
    /// Number of restarts after failures.
    pub max_restarts: u32,
    /// Constants of the cost model, sent to ranks that join.
    pub cost_model: Vec<u8>,
    /// How long to wait for more hosts once enough have joined.
    pub settle: Duration,
    /// Time-out for the needed hosts to join, at every start.
    pub gather: Duration,
    /// Time-out for a rank that is alive but has not joined a collective.
    pub stall: Duration,
    /// The longest outage of the network between hosts that the job survives.
    pub outage: Outage,
}

/// A host.
struct Node {
    hello: pb::NodeHello,
    heard: Instant,
    /// Whether its silence has been told.
    silent: bool,
    /// Part of the host in the present start; `None` while the host waits for a place.
    part: Option<HostEntry>,
}

impl Node {
    /// Ranks of the host in the present start.
    fn ranks(&self) -> Option<Range<usize>> {
        let first = self.part?.first_rank;
        Some(first..first + self.hello.nproc as usize)
    }
}

#[derive(Clone, Copy)]
struct HostEntry {
    number: usize,
    first_rank: usize,
    /// The code with which its ranks have ended.
    done: Option<u8>,
}

struct Verdict {
    failure: Failure,
    code: Option<u8>,
    restarts: bool,
}

enum Phase {
    /// Waits for hosts.
    Gathering(Gathering),
    /// Until all hosts are done.
    Running,
    Over,
}

/// The state of a job.
pub struct RootState {
    plan: JobOptions,
    nodes: BTreeMap<u64, Node>,
    phase: Phase,
    restart: u32,
    /// Names of the hosts of the present start, or of the one before while hosts gather.
    hosts: Vec<String>,
    /// Of the present start.
    store: KvStore,
    reference: Option<pb::JoinRequest>,
    candidates: Vec<Candidate>,
    /// When the first of the candidates came.
    failing: Option<Instant>,
    verdict: Option<Verdict>,
    ends: Ends,
    reports: BTreeMap<usize, String>,
    events: Vec<pb::NodeEvent>,
    streams: Streams,
    stalls: Stalls,
    transit: Transit,
    watching: Watching,
    /// When the waits were last looked at.
    looked: Instant,
    ticked: Instant,
    out: Vec<(u64, pb::Down)>,
    /// Hosts to which nothing more is to be said.
    closed: Vec<u64>,
}

impl RootState {
    /// Makes the state of a job that the root's own host has joined.
    pub fn new(plan: JobOptions, own: pb::NodeHello, now: Instant) -> RootState {
        let (stalls, transit) = (Stalls::new(plan.stall), Transit::new(plan.outage));
        let mut root = RootState {
            plan,
            nodes: BTreeMap::from([(OWN, Node { hello: own, heard: now, silent: false, part: None })]),
            phase: Gathering::starting(now),
            restart: 0,
            hosts: Vec::new(),
            store: KvStore::new(0),
            reference: None,
            candidates: Vec::new(),
            failing: None,
            verdict: None,
            ends: Ends::default(),
            reports: BTreeMap::new(),
            events: Vec::new(),
            streams: Streams::default(),
            stalls,
            transit,
            watching: Watching::default(),
            looked: now,
            ticked: now,
            out: Vec::new(),
            closed: Vec::new(),
        };
        root.begin_if_all_are_there(now);
        root
    }

    /// Takes the messages to nodes, in order.
    pub fn take_out(&mut self) -> Vec<(u64, pb::Down)> {
        for (callers, answer) in self.store.take_answers() {
            let mut by_node: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            callers.iter().for_each(|c| by_node.entry(c.node).or_default().push(c.ticket));
            for (node, tickets) in by_node {
                self.send(node, Down::Answer(pb::Answer { tickets, answer: Some(answer.clone()) }));
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Takes the hosts that are lost. Messages taken later are not for them.
    pub fn take_closed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.closed)
    }

    /// Takes the events that ranks have published.
    pub fn take_events(&mut self) -> Vec<pb::NodeEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.store.value(key).cloned()
    }

    /// Returns the communication reports, by rank.
    pub fn reports(&self) -> &BTreeMap<usize, String> {
        &self.reports
    }

    /// Returns how many hosts have joined and how many are wanted; `None` once the job has started.
    pub fn waits_for(&self) -> Option<(usize, RangeInclusive<usize>)> {
        matches!(self.phase, Phase::Gathering(_)).then(|| (self.nodes.len(), self.plan.nodes.clone()))
    }

    /// Somebody watches the job from now on, or nobody does any more.
    pub fn show(&mut self, on: bool) {
        if std::mem::replace(&mut self.watching.on, on) != on {
            self.tell_all(|_| Down::Watched(on));
        }
    }

    /// Takes what there is to see of the job.
    pub fn sight(&mut self, now: Instant) -> Sight {
        let (glimpses, left) = self.watching.take();
        let mut hosts: Vec<HostPart> = self
            .nodes
            .values()
            .filter_map(|n| Some(HostPart { name: n.hello.host.clone(), ranks: n.ranks()? }))
            .collect();
        hosts.sort_by_key(|h| h.ranks.start);
        let held = self.stalls.holding(now);
        Sight { restart: self.restart, hosts, glimpses, left, held, stall: self.plan.stall }
    }

    fn running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    fn may_restart(&self) -> bool {
        self.restart < self.plan.max_restarts
    }

    /// The hosts of the present start.
    fn parts(&self) -> impl Iterator<Item = (&Node, HostEntry)> {
        self.nodes.values().filter_map(|n| Some((n, n.part?)))
    }

    /// Takes a node's message. An error ends the node's stream.
    pub fn handle(&mut self, id: u64, item: Up, now: Instant) -> Result<(), Status> {
        let Some(node) = self.nodes.get_mut(&id) else { return Err(Status::aborted("this host counts as lost")) };
        let silence = now.saturating_duration_since(std::mem::replace(&mut node.heard, now));
        if std::mem::take(&mut node.silent) {
            self.tell_others(id, |host| format!("{host} is heard again, after {:.1} s", silence.as_secs_f64()));
        }
        let Some(node) = self.nodes.get(&id) else { return Ok(()) };
        if let Up::Beat(beat) = &item
            && beat.sent_ns != 0
        {
            let sent_ns = beat.sent_ns;
            self.send(id, Down::Pong(pb::Pong { sent_ns, root_ns: 0 }));
            return Ok(());
        }
        let Some(part) = node.part else { return Ok(()) };
        let ranks = part.first_rank..part.first_rank + node.hello.nproc as usize;
        let host = node.hello.host.clone();
        let own = |rank: u32| {
            let rank = rank as usize;
            let foreign = || {
                Status::invalid_argument(format!("{host} sent a message about rank {rank}, which is not on that host"))
            };
            ranks.contains(&rank).then_some(rank).ok_or_else(foreign)
        };
        let caller = |ticket| Caller { node: id, ticket };
        match item {
            Up::Hello(_) => return Err(Status::invalid_argument(format!("{host} said hello twice"))),
            Up::Join(join) => self.join(id, join),
            Up::Put(put) => self.store.put(caller(put.ticket), put.key, put.value),
            Up::Get(get) => self.store.get(caller(get.ticket), get.key, get.wait),
            Up::CompareAndSet(cas) => {
                self.store.compare_and_set(caller(cas.ticket), cas.key, cas.expected, cas.value);
            }
            Up::Arrive(pb::NodeArrive { name, participants, arrivals, members }) => {
                let members = members.into_iter().map(|r| r as usize).collect();
                let invited = Invited { participants: participants as usize, members };
                for pb::Arrival { ticket, rank, value } in arrivals {
                    self.store.arrive(caller(ticket), own(rank)?, &name, invited.clone(), value);
                }
            }
            Up::Cancel(cancel) => {
                self.store.cancel(caller(cancel.ticket), cancel.waited_ms.map(Duration::from_millis));
            }
            Up::Fail(fail) => {
                let failure = serde_json::from_slice(&fail.failure)
                    .map_err(|e| Status::invalid_argument(format!("{host} sent a failure that cannot be read: {e}")))?;
                let code = fail.code.map(|c| u8::try_from(c).unwrap_or(1));
                self.reported(failure, code, fail.r#final, now);
            }
            Up::Left(rank) => {
                let rank = own(rank)?;
                self.ends.left(rank);
                self.stalls.left(rank);
                self.transit.left(rank);
                self.store.leave(rank);
                self.watching.left(rank);
            }
            Up::Gone(pb::NodeGone { rank, how }) => {
                let rank = own(rank)?;
                self.watching.left(rank);
                self.ends.gone(rank, how);
            }
            Up::Glimpse(glimpse) => self.watching.note(own(glimpse.rank)?, glimpse),
            Up::Report(report) => {
                self.reports.insert(own(report.rank)?, report.report);
            }
            Up::Beat(beat) => {
                let world: usize = self.parts().map(|(n, _)| n.hello.nproc as usize).sum();
                for mut beat in beat.ranks {
                    own(beat.rank)?;
                    beat.links.retain(|l| (l.peer as usize) < world);
                    if !beat.absent {
                        self.streams.beat(&beat, now);
                    }
                    if !beat.marks_only {
                        self.stalls.beat(&beat, now);
                        self.transit.beat(&beat, now);
                    }
                }
            }
            Up::Event(event) => {
                event.rank.map(own).transpose()?;
                self.events.push(event);
            }
            Up::Done(code) => {
                if let Some(part) = self.nodes.get_mut(&id).and_then(|n| n.part.as_mut()) {
                    part.done = Some(u8::try_from(code).unwrap_or(1));
                }
                self.end_if_all_are_done(now);
            }
        }
        Ok(())
    }

    fn join(&mut self, id: u64, join: pb::NodeJoin) {
        let Some(hello) = join.hello else { return };
        let answer = match self.reference.as_ref().and_then(|first| difference(first, &hello, false)) {
            Some(difference) => {
                let failure = Failure::of_rank(hello.rank as usize, FailureKind::Diverged, difference.clone());
                self.decide(Candidate { failure, code: None, is_final: true });
                refused(&Status::failed_precondition(difference))
            }
            None => {
                self.reference.get_or_insert(hello);
                Answer::Done(true)
            }
        };
        self.send(id, Down::Answer(pb::Answer { tickets: vec![join.ticket], answer: Some(answer) }));
    }

    /// A host's connection has ended.
    pub fn lost(&mut self, id: u64, why: &str, now: Instant) {
        let Some(node) = self.nodes.remove(&id) else { return };
        self.store.forget(id);
        self.closed.push(id);
        let host = node.hello.host;
        if let (Some(part), false) = (node.part, matches!(self.phase, Phase::Over)) {
            let number = part.number;
            // One whose ranks have all ended well has nothing left to do.
            if part.done.is_none() {
                let message = format!("node {number} ({host}) is lost: {why}");
                let failure = Failure::of_job(FailureKind::NodeLost, message);
                // If it lives and is only not heard it is to know what has become of it.
                let detail = failure.to_json().into_bytes();
                let restarts = self.may_restart();
                self.send(id, Down::Failed(pb::Failed { failure: detail, code: Some(1), restarts }));
                self.fail(Candidate { failure, code: Some(1), is_final: false }, now);
            }
            // Its ranks will not end any more as far as we will hear.
            (part.first_rank..part.first_rank + node.hello.nproc as usize)
                .for_each(|rank| self.ends.gone(rank, String::new()));
            self.end_if_all_are_done(now);
        } else if matches!(self.phase, Phase::Gathering(_)) {
            let text = format!("{host} has gone again ({why}); {}", self.missing());
            self.tell_all(|_| Down::Note(text.clone()));
        }
    }

    /// Checks time-outs. Call it a few times a second.
    pub fn tick(&mut self, now: Instant) {
        let slept = now.saturating_duration_since(self.ticked);
        self.ticked = now;
        if slept > OVERSLEPT {
            self.nodes.values_mut().for_each(|n| n.heard = (n.heard + slept).min(now));
        }
        self.judge_silence(now);
        self.watch(now);
        if let Some(since) = self.failing {
            let elapsed = now.saturating_duration_since(since);
            let limit = if root_cause::is_about_links(&self.candidates) {
                LINKS
            } else if self.ends.earlier_is_still_ending(&self.candidates) {
                GOODBYE
            } else {
                VERDICT
            };
            if elapsed >= limit {
                self.decide_now();
            }
        }
        self.gather(now);
    }

    /// Names hosts of which nothing is heard; those that are silent for longer than an outage may last are lost.
    fn judge_silence(&mut self, now: Instant) {
        let (patience, limit) = (self.plan.outage.patience(), self.plan.outage.limit().as_secs_f64());
        let silent: Vec<(u64, Duration)> = self
            .nodes
            .iter()
            .map(|(id, n)| (*id, now.saturating_duration_since(n.heard)))
            .filter(|(id, silence)| *id != OWN && *silence >= NAMED_AFTER.min(patience))
            .collect();
        for (id, silence) in silent {
            let seconds = silence.as_secs_f64();
            if silence > patience {
                self.lost(id, &format!("nothing heard from it for {seconds:.0} s"), now);
            } else if let Some(node) = self.nodes.get_mut(&id)
                && !std::mem::replace(&mut node.silent, true)
            {
                self.tell_others(id, |host| silence_of(host, seconds, limit));
            }
        }
    }

    /// Tells all hosts but the one that it is about, by its name.
    fn tell_others(&mut self, id: u64, text: impl Fn(&str) -> String) {
        let Some(node) = self.nodes.get(&id) else { return };
        let host = match node.part {
            Some(part) => format!("node {} ({})", part.number, node.hello.host),
            None => node.hello.host.clone(),
        };
        let text = text(&host);
        let others: Vec<u64> = self.nodes.keys().copied().filter(|other| *other != id).collect();
        others.into_iter().for_each(|other| self.send(other, Down::Note(text.clone())));
    }

    /// A node reports a failure. Reports of a divergence are held back until the first op that differs is known.
    fn reported(&mut self, failure: Failure, code: Option<u8>, is_final: bool, now: Instant) {
        let failure = match failure.kind {
            FailureKind::Diverged if !is_final => match self.streams.noticed(failure, now) {
                Ok(()) => return,
                Err(failure) => failure,
            },
            _ => failure,
        };
        self.fail(Candidate { failure, code, is_final }, now);
    }

    /// Looks for streams that differ, and for ranks that hold up others.
    fn watch(&mut self, now: Instant) {
        if !self.running() || self.verdict.is_some() {
            return;
        }
        for (rank, interval) in self.streams.asks() {
            self.ask(pb::Ask { rank: rank as u32, interval: Some(interval), ..Default::default() });
        }
        let nodes = &self.nodes;
        let name = |rank| {
            let host = nodes.values().find(|n| n.ranks().is_some_and(|ranks| ranks.contains(&rank)));
            format!("rank {rank} on {}", host.map_or("a lost host", |n| n.hello.host.as_str()))
        };
        let mut found = self.transit.look(now, name);
        self.transit.take_asks().into_iter().for_each(|ask| self.ask(ask));
        if let Some(failure) = self.streams.verdict(now) {
            self.fail(Candidate { failure, code: None, is_final: false }, now);
        } else if now.saturating_duration_since(self.looked) >= LOOK {
            self.looked = now;
            found.extend(self.stalls.look(now, &self.store.meetings()));
        }
        for finding in found {
            match finding {
                Finding::Warning(text) => {
                    self.events.push(pb::NodeEvent { rank: None, topic: WARNING.into(), text });
                }
                Finding::Failure(failure) => self.fail(Candidate { failure, code: Some(1), is_final: false }, now),
            }
        }
    }

    /// Asks a rank something.
    fn ask(&mut self, ask: pb::Ask) {
        let here = |n: &Node| n.ranks().is_some_and(|ranks| ranks.contains(&(ask.rank as usize)));
        if let Some(id) = self.nodes.iter().find_map(|(id, n)| here(n).then_some(*id)) {
            self.send(id, Down::Ask(ask));
        }
    }

    fn fail(&mut self, candidate: Candidate, now: Instant) {
        if self.verdict.is_some() || matches!(self.phase, Phase::Over) {
            return;
        }
        self.candidates.push(candidate);
        // One agent sees all its ranks and has weighed already.
        let alone = self.parts().count() <= 1 && *self.plan.nodes.end() == 1;
        if alone && !self.ends.earlier_is_still_ending(&self.candidates) {
            self.decide_now();
        } else {
            self.failing.get_or_insert(now);
        }
    }

    fn decide_now(&mut self) {
        if let Some(cause) = root_cause::cause(&self.candidates, &self.ends) {
            self.decide(cause);
        }
    }

    /// Decides why the start has failed, and tells all nodes.
    fn decide(&mut self, candidate: Candidate) {
        self.failing = None;
        self.candidates.clear();
        if self.verdict.is_some() {
            return;
        }
        let Candidate { failure, code, is_final } = candidate;
        // Where hosts are missing, they or others may come.
        let restarts = !is_final && failure.kind != FailureKind::Interrupted && self.may_restart();
        let json = failure.to_json().into_bytes();
        self.verdict = Some(Verdict { failure, code, restarts });
        let message = pb::Failed { failure: json, code: code.map(u32::from), restarts };
        self.tell_all(|_| Down::Failed(message.clone()));
        if matches!(self.phase, Phase::Gathering(_)) {
            self.over(code.unwrap_or(1));
        }
    }

    fn end_if_all_are_done(&mut self, now: Instant) {
        if !self.running() || self.parts().any(|(_, part)| part.done.is_none()) {
            return;
        }
        if self.failing.is_some() {
            self.decide_now();
        }
        let Some(verdict) = &self.verdict else {
            let code = self.parts().filter_map(|(_, part)| part.done).find(|code| *code != 0).unwrap_or(0);
            return self.over(code);
        };
        if verdict.restarts {
            self.restart += 1;
            self.nodes.values_mut().for_each(|n| n.part = None);
            self.phase = Gathering::starting(now);
            self.verdict = None;
            // As before; where one is lost another may come.
            return if self.nodes.len() >= self.hosts.len() {
                self.begin(now)
            } else {
                self.begin_if_all_are_there(now)
            };
        }
        // Whose rank it was knows the code best.
        let culprit = verdict.failure.rank;
        let of_culprit = self
            .parts()
            .find(|(n, part)| {
                culprit.is_some_and(|r| (part.first_rank..part.first_rank + n.hello.nproc as usize).contains(&r))
            })
            .and_then(|(_, part)| part.done);
        let code = verdict.code.or(of_culprit).filter(|c| *c != 0).unwrap_or(1);
        self.over(code);
    }

    fn over(&mut self, code: u8) {
        self.phase = Phase::Over;
        self.tell_all(|_| Down::Over(u32::from(code)));
    }

    fn send(&mut self, node: u64, item: Down) {
        self.out.push((node, pb::Down { item: Some(item) }));
    }

    fn tell_all(&mut self, item: impl Fn(&Node) -> Down) {
        let items: Vec<(u64, Down)> = self.nodes.iter().map(|(id, node)| (*id, item(node))).collect();
        items.into_iter().for_each(|(id, item)| self.send(id, item));
    }
}

/// Names a host of which nothing has been heard for that many seconds.
pub fn silence_of(host: &str, seconds: f64, limit: f64) -> String {
    format!(
        "{host} has been silent for {seconds:.0} s: the network to it is out, or it stands still; the job waits up to {limit} s for it (--outage-limit)"
    )
}

/// Returns a number of hosts in the form of the command line.
pub fn describe(nodes: RangeInclusive<usize>) -> String {
    let (min, max) = nodes.into_inner();
    if min == max { format!("{min}") } else { format!("{min}:{max}") }
}

#[cfg(test)]
#[path = "root_tests.rs"]
mod tests;
