//! An agent's state of the ranks of its host, and its decisions. Pure: time is an argument; messages to the root and answers to
//! calls are collected until they are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oflow_proto::control as pb;
use pb::answer::Answer as Wire;
use pb::up::Item;
use prost::Message;
use tonic::Status;

use super::digest::Digest;
use super::limits::{MAX_PLACES, MAX_REPORT_BYTES, check_event, check_name, check_value, difference, status};
use super::watching;
use crate::{Failure, FailureKind};

/// A rank that has sent no heartbeat for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Rank that is silent.
    pub rank: usize,
    /// Time since its last heartbeat.
    pub since: Duration,
    /// Ordinal of the last op that it has reported.
    pub progress: u64,
}

/// A rank whose process runs, and which has not joined the job or is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Rank that is absent.
    pub rank: usize,
    /// Time since its start.
    pub since: Duration,
    /// How long it has run, and how long it could have run but had no processor.
    pub clocks: [Duration; 2],
}

/// Peer that a rank has waited for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The rank that did not come.
    pub rank: usize,
    /// Whether the link to it is lost; otherwise it had left the job.
    pub link: bool,
}

/// The answer to a successful call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Done,
    /// The rank has joined a world of this many ranks.
    World(u32),
    Value(Option<Vec<u8>>),
    Set(pb::CompareAndSetReply),
    Met(Arc<[Vec<u8>]>),
}

/// The result of a call.
pub type Outcome = Result<Answer, Status>;

enum Member {
    Absent,
    Joined { heard: Instant, progress: u64 },
    Left,
}

/// State of a call that has no answer yet.
enum Open {
    Join,
    /// A value that is waited for.
    Wait,
    Meeting(String),
    Other,
}

/// Ranks that have arrived at a meeting, not yet reported to the root.
struct PendingMeeting {
    participants: u32,
    members: Vec<u32>,
    arrivals: Vec<pb::Arrival>,
}

/// The ranks of one host.
pub struct NodeState {
    first: usize,
    world: usize,
    members: Vec<Member>,
    /// The first rank that joined, and what it said of itself; the others must say the same.
    reference: Option<pb::JoinRequest>,
    /// Whether the root has found that right.
    admitted: bool,
    tickets: u64,
    open: BTreeMap<u64, Open>,
    /// Whether arrivals at a meeting of all ranks wait for those of the whole host.
    gathers: bool,
    held: BTreeMap<String, PendingMeeting>,
    failure: Option<Failure>,
    departures: Vec<usize>,
    /// By rank: what it has waited for in vain.
    missing: BTreeMap<usize, Missing>,
    reports: BTreeMap<usize, String>,
    asks: BTreeMap<usize, pb::HeartbeatReply>,
    digest: Digest,
    /// Whether somebody watches the job.
    watched: bool,
    up: Vec<pb::Up>,
    answers: Vec<(u64, Outcome)>,
}

impl NodeState {
    /// Makes the state for the ranks `own` of a world. `gathers`: the root is on another host, so arrivals are sent to it
    /// together.
    pub fn new(own: Range<usize>, world: usize, gathers: bool) -> NodeState {
        NodeState {
            first: own.start,
            world,
            members: own.map(|_| Member::Absent).collect(),
            reference: None,
            admitted: false,
            tickets: 0,
            open: BTreeMap::new(),
            gathers,
            held: BTreeMap::new(),
            failure: None,
            departures: Vec::new(),
            missing: BTreeMap::new(),
            reports: BTreeMap::new(),
            asks: BTreeMap::new(),
            digest: Digest::default(),
            watched: false,
            up: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Returns the number of ranks of the host.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Takes the messages to the root, in order.
    pub fn take_up(&mut self) -> Vec<pb::Up> {
        std::mem::take(&mut self.up)
    }

    /// Takes the answers to calls.
    pub fn take_answers(&mut self) -> Vec<(u64, Outcome)> {
        std::mem::take(&mut self.answers)
    }

    /// A rank joins.
    pub fn join(&mut self, hello: pb::JoinRequest, now: Instant) -> Result<u64, Status> {
        let index = self.known(hello.rank)?;
        let rank = hello.rank as usize;
        self.check_failure()?;
        if !matches!(self.members[index], Member::Absent) {
            return Err(Status::already_exists(format!("rank {rank} has joined this job before")));
        }
        let first = self.reference.is_none();
        match &self.reference {
            Some(reference) => {
                if let Some(difference) = difference(reference, &hello, true) {
                    // Another start would bring the same program.
                    self.fail(&Failure::of_rank(rank, FailureKind::Diverged, difference.clone()), None, true);
                    return Err(Status::failed_precondition(difference));
                }
            }
            None => self.reference = Some(hello.clone()),
        }
        self.members[index] = Member::Joined { heard: now, progress: 0 };
        let ticket = self.open(Open::Join);
        if self.admitted {
            self.answer(ticket, Ok(Answer::World(self.world as u32)));
        } else if first {
            self.send(Item::Join(pb::NodeJoin { ticket, hello: Some(hello) }));
        }
        Ok(ticket)
    }

    pub fn put(&mut self, key: String, value: Vec<u8>) -> Result<u64, Status> {
        check_name(&key)?;
        check_value(&key, &value)?;
        let ticket = self.open(Open::Other);
        self.send(Item::Put(pb::NodePut { ticket, key, value }));
        Ok(ticket)
    }

    pub fn get(&mut self, key: String, wait: bool) -> Result<u64, Status> {
        check_name(&key)?;
        if wait {
            self.check_failure()?;
        }
        let ticket = self.open(if wait { Open::Wait } else { Open::Other });
        self.send(Item::Get(pb::NodeGet { ticket, key, wait }));
        Ok(ticket)
    }

    pub fn compare_and_set(&mut self, request: pb::CompareAndSetRequest) -> Result<u64, Status> {
        let pb::CompareAndSetRequest { key, expected, value } = request;
        check_name(&key)?;
        check_value(&key, &value)?;
        let ticket = self.open(Open::Other);
        self.send(Item::CompareAndSet(pb::NodeCompareAndSet { ticket, key, expected, value }));
        Ok(ticket)
    }

    /// A rank arrives at a meeting.
    pub fn arrive(&mut self, request: pb::MeetRequest) -> Result<u64, Status> {
        let pb::MeetRequest { name, rank, participants, value, members, .. } = request;
        let index = self.known(rank)?;
        check_name(&name)?;
        check_value(&name, &value)?;
        self.check_failure()?;
        if matches!(self.members[index], Member::Absent) {
            return Err(not_joined(rank));
        }
        let ticket = self.open(Open::Meeting(name.clone()));
        let arrival = pb::Arrival { ticket, rank, value };
        let new = || PendingMeeting { participants, members: members.clone(), arrivals: Vec::new() };
        let held = self.held.entry(name.clone()).or_insert_with(new);
        // Two opinions on who meets must both reach the root, which refuses one.
        let alike = held.participants == participants && held.members == members;
        if alike {
            held.arrivals.push(arrival);
        }
        let came: BTreeSet<u32> = held.arrivals.iter().map(|a| a.rank).collect();
        let waits = self.gathers && alike && participants as usize == self.world && came.len() < self.members.len();
        if !waits {
            self.release(&name);
        }
        if !alike {
            let arrivals = vec![pb::Arrival { ticket, rank, value: Vec::new() }];
            self.send(Item::Arrive(pb::NodeArrive { name, participants, arrivals, members }));
        }
        Ok(ticket)
    }

    fn release(&mut self, name: &str) {
        if let Some(PendingMeeting { participants, members, arrivals }) = self.held.remove(name) {
            self.send(Item::Arrive(pb::NodeArrive { name: name.to_string(), participants, arrivals, members }));
        }
    }

    /// Forwards arrivals that wait for the rest of the host. Call it regularly, so that the root knows which ranks are missing.
    pub fn tick(&mut self) {
        let names: Vec<String> = self.held.keys().cloned().collect();
        names.iter().for_each(|name| self.release(name));
    }

    /// The time-out of a call has passed. Returns whether the call is answered here; otherwise the root answers it.
    pub fn time_is_up(&mut self, ticket: u64, waited: Duration) -> bool {
        match self.open.get(&ticket) {
            None => false,
            Some(Open::Wait) => {
                self.send(Item::Cancel(pb::NodeCancel { ticket, waited_ms: None }));
                self.answer(ticket, Ok(Answer::Value(None)));
                true
            }
            Some(Open::Meeting(name)) => {
                let name = name.clone();
                self.release(&name);
                let waited_ms = Some(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX));
                self.send(Item::Cancel(pb::NodeCancel { ticket, waited_ms }));
                false
            }
            Some(Open::Join | Open::Other) => {
                let seconds = waited.as_secs_f64();
                let text = format!("node 0 has not answered for {seconds:.1} s");
                self.answer(ticket, Err(Status::unavailable(text)));
                true
            }
        }
    }

    /// The caller is gone.
    pub fn cancel(&mut self, ticket: u64) {
        match self.open.remove(&ticket) {
            None | Some(Open::Join | Open::Other) => {}
            Some(Open::Wait) => self.send(Item::Cancel(pb::NodeCancel { ticket, waited_ms: None })),
            Some(Open::Meeting(name)) => {
                let held = self.held.get_mut(&name).is_some_and(|h| {
                    let before = h.arrivals.len();
                    h.arrivals.retain(|a| a.ticket != ticket);
                    h.arrivals.len() < before
                });
                if self.held.get(&name).is_some_and(|h| h.arrivals.is_empty()) {
                    self.held.remove(&name);
                }
                if !held {
                    self.send(Item::Cancel(pb::NodeCancel { ticket, waited_ms: None }));
                }
            }
        }
    }

    /// Takes a heartbeat. Returns what the rank's next heartbeat is to contain.
    pub fn heartbeat(&mut self, mut request: pb::HeartbeatRequest, now: Instant) -> Result<pb::HeartbeatReply, Status> {
        let index = self.known(request.rank)?;
        match &mut self.members[index] {
            // A beat may overtake the goodbye; it does not bring the rank back.
            Member::Left => return Ok(pb::HeartbeatReply::default()),
            Member::Absent => return Err(not_joined(request.rank)),
            member => *member = Member::Joined { heard: now, progress: request.progress },
        }
        let rank = request.rank as usize;
        if let Some(glimpse) = watching::of_beat(&mut request).filter(|_| self.watched) {
            self.send(Item::Glimpse(glimpse));
        }
        let ranks = self.digest.beat(request);
        if !ranks.is_empty() {
            self.send(Item::Beat(pb::NodeBeat { sent_ns: 0, ranks }));
        }
        Ok(pb::HeartbeatReply { watched: self.watched, ..self.asks.remove(&rank).unwrap_or_default() })
    }

    /// Somebody watches the job from now on, or nobody does any more.
    pub fn watch(&mut self, on: bool) {
        self.watched = on;
    }

    /// Takes a rank's communication report; a later one replaces it.
    pub fn submit_report(&mut self, request: pb::SubmitReportRequest) -> Result<(), Status> {
        let index = self.known(request.rank)?;
        if matches!(self.members[index], Member::Absent) {
            return Err(not_joined(request.rank));
        }
        self.reports.insert(request.rank as usize, request.report.clone());
        self.send(Item::Report(request));
        Ok(())
    }

    pub fn reports(&self) -> &BTreeMap<usize, String> {
        &self.reports
    }

    /// Takes a rank's report of its own failure.
    pub fn report(&mut self, request: pb::ReportFailureRequest) -> Result<(), Status> {
        self.known(request.rank)?;
        let rank = request.rank as usize;
        let mut failure = Failure::from_wire(Some(rank), request.message, &request.detail);
        failure.rank = Some(rank);
        failure.message.truncate(failure.message.floor_char_boundary(MAX_REPORT_BYTES));
        failure.places.truncate(MAX_PLACES);
        // A divergence is about several ranks and names them.
        if failure.kind != FailureKind::Diverged {
            failure.message.insert_str(0, &format!("rank {rank} reported: "));
        }
        self.fail(&failure, None, false);
        Ok(())
    }

    /// Forwards a failure to the root, which decides which failure counts.
    pub fn fail(&mut self, failure: &Failure, code: Option<u8>, is_final: bool) {
        if self.failure.is_none() {
            let failure = failure.to_json().into_bytes();
            self.send(Item::Fail(pb::NodeFail { failure, code: code.map(u32::from), r#final: is_final }));
        }
    }

    /// A rank has waited in vain for another one. The first time counts.
    pub fn note_missing(&mut self, request: pb::NoteMissingRequest) -> Result<(), Status> {
        let pb::NoteMissingRequest { rank, missing, link } = request;
        self.known(rank)?;
        let missing = Missing { rank: missing as usize, link };
        if missing.rank < self.world && missing.rank != rank as usize {
            self.missing.entry(rank as usize).or_insert(missing);
        }
        Ok(())
    }

    /// A rank has left, or its process has ended.
    pub fn leave(&mut self, rank: usize) {
        let Some(member) = rank.checked_sub(self.first).and_then(|i| self.members.get_mut(i)) else { return };
        if !matches!(member, Member::Left) {
            *member = Member::Left;
            self.departures.push(rank);
            self.digest.left(rank);
            self.send(Item::Left(rank as u32));
        }
    }

    /// A rank's process has ended; `how` is a sentence without its end, or empty.
    pub fn gone(&mut self, rank: usize, how: &str) {
        self.leave(rank);
        self.send(Item::Gone(pb::NodeGone { rank: rank as u32, how: how.into() }));
    }

    /// The processes of these ranks run, and nothing is heard from them. Forwards that of those that have not left.
    pub fn note_absent(&mut self, ranks: Vec<Absent>) {
        let first = self.first;
        let is_member = |rank: usize| rank.checked_sub(first).and_then(|i| self.members.get(i));
        let absent = |a: &Absent| is_member(a.rank).is_some_and(|m| !matches!(m, Member::Left));
        let beat = |Absent { rank, since, clocks }: Absent| {
            let [last_ms, cpu_ms, queued_ms] =
                [since, clocks[0], clocks[1]].map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
            let rank = rank as u32;
            pb::HeartbeatRequest { rank, last_ms, cpu_ms, queued_ms, absent: true, ..Default::default() }
        };
        let ranks: Vec<_> = ranks.into_iter().filter(absent).map(beat).collect();
        if !ranks.is_empty() {
            self.send(Item::Beat(pb::NodeBeat { sent_ns: 0, ranks }));
        }
    }

    /// Returns the ranks that have neither joined nor left.
    pub fn absent_ranks(&self) -> Vec<usize> {
        let absent = |(i, m): (usize, &Member)| matches!(m, Member::Absent).then_some(self.first + i);
        self.members.iter().enumerate().filter_map(absent).collect()
    }

    /// Returns the ranks that have left, in order. A rank leaves before it closes its communicator, so a rank that fails because
    /// another has left comes after it.
    pub fn departures(&self) -> &[usize] {
        &self.departures
    }

    /// Returns what a rank has waited for in vain, as it reported.
    pub fn missing(&self, rank: usize) -> Option<Missing> {
        self.missing.get(&rank).copied()
    }

    /// Forwards an event to node 0.
    pub fn publish(&mut self, event: pb::NodeEvent) -> Result<(), Status> {
        if let Some(rank) = event.rank {
            let index = self.known(rank)?;
            if matches!(self.members[index], Member::Absent) {
                return Err(not_joined(rank));
            }
        }
        check_event(&event)?;
        self.send(Item::Event(event));
        Ok(())
    }

    /// All ranks have ended.
    pub fn done(&mut self, code: u8) {
        self.tick();
        self.send(Item::Done(u32::from(code)));
    }

    pub fn silent(&self, now: Instant, limit: Duration) -> Vec<Silence> {
        let silence = |(i, member): (usize, &Member)| match member {
            Member::Joined { heard, progress } => {
                let since = now.saturating_duration_since(*heard);
                (since > limit).then_some(Silence { rank: self.first + i, since, progress: *progress })
            }
            _ => None,
        };
        self.members.iter().enumerate().filter_map(silence).collect()
    }

    /// An answer of the root.
    pub fn answered(&mut self, answer: pb::Answer) {
        let pb::Answer { tickets, answer } = answer;
        let Some(answer) = answer else { return };
        let outcome: Outcome = match answer {
            Wire::Done(_) => Ok(Answer::Done),
            Wire::Value(reply) => Ok(Answer::Value(reply.value)),
            Wire::CompareAndSet(reply) => Ok(Answer::Set(reply)),
            Wire::Met(bytes) => match pb::MeetReply::decode(&bytes[..]) {
                Ok(reply) => Ok(Answer::Met(reply.values.into())),
                Err(e) => Err(Status::internal(format!("node 0 sent values that cannot be read: {e}"))),
            },
            Wire::Refused(refused) => Err(status(refused)),
        };
        for ticket in tickets {
            if matches!(self.open.get(&ticket), Some(Open::Join)) {
                self.admit(outcome.clone());
            } else {
                self.answer(ticket, outcome.clone());
            }
        }
    }

    /// The root has found the first rank right, and with it those that say the same; or not.
    fn admit(&mut self, outcome: Outcome) {
        self.admitted = outcome.is_ok();
        let outcome = outcome.map(|_| Answer::World(self.world as u32));
        let joining: Vec<u64> =
            self.open.iter().filter(|(_, o)| matches!(o, Open::Join)).map(|(ticket, _)| *ticket).collect();
        joining.into_iter().for_each(|ticket| self.answer(ticket, outcome.clone()));
    }

    /// Asks a rank a question, in the answer to its next heartbeat.
    pub fn ask(&mut self, ask: pb::Ask) {
        let all = self.asks.entry(ask.rank as usize).or_default();
        all.ask = ask.interval.or(all.ask.take());
        all.links.extend(ask.links);
        all.links.sort_unstable();
        all.links.dedup();
        all.asked = all.asked.max(ask.asked);
    }

    /// The job has failed: every call that waits ends. Whether that was news.
    pub fn failed(&mut self, failure: Failure) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let status = aborted(&failure);
        self.failure = Some(failure);
        let waiting: Vec<u64> =
            self.open.iter().filter(|(_, o)| !matches!(o, Open::Other)).map(|(ticket, _)| *ticket).collect();
        waiting.into_iter().for_each(|ticket| self.answer(ticket, Err(status.clone())));
        self.held.clear();
        true
    }

    /// Ends every call, because the root cannot answer any more.
    pub fn abandon(&mut self, why: &Status) {
        let all: Vec<u64> = self.open.keys().copied().collect();
        all.into_iter().for_each(|ticket| self.answer(ticket, Err(why.clone())));
    }

    fn check_failure(&self) -> Result<(), Status> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(aborted(failure)))
    }

    fn open(&mut self, what: Open) -> u64 {
        self.tickets += 1;
        self.open.insert(self.tickets, what);
        self.tickets
    }

    fn answer(&mut self, ticket: u64, outcome: Outcome) {
        if self.open.remove(&ticket).is_some() {
            self.answers.push((ticket, outcome));
        }
    }

    fn send(&mut self, item: Item) {
        self.up.push(pb::Up { item: Some(item) });
    }

    fn known(&self, rank: u32) -> Result<usize, Status> {
        let (rank, world) = (rank as usize, self.world);
        if rank >= world {
            return Err(Status::out_of_range(format!("rank {rank} is out of range: the world has {world} ranks")));
        }
        let last = self.first + self.members.len() - 1;
        rank.checked_sub(self.first).filter(|i| *i < self.members.len()).ok_or_else(|| {
            Status::out_of_range(format!("rank {rank} is on another host: here are ranks {} to {last}", self.first))
        })
    }
}

fn aborted(failure: &Failure) -> Status {
    Status::aborted(format!("the job has failed: {failure}"))
}

fn not_joined(rank: u32) -> Status {
    Status::failed_precondition(format!("rank {rank} has not joined the job"))
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
