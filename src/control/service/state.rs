//! What the control service knows of its job, and its decisions. No clock, no sockets, no waiting: time comes in as an
//! argument, and a method tells whether those who wait should look again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::control::{Failure, FailureKind};
use oflow_proto::control as pb;
use tonic::Status;

/// Longest key or barrier name.
const MAX_KEY_BYTES: usize = 1024;
/// Largest value: rendezvous data, not tensors.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// All keys and values of a job together.
const MAX_STORE_BYTES: usize = 64 << 20;
/// Longest message of a reported failure; more is cut.
const MAX_REPORT_BYTES: usize = 4096;
/// Most places of a reported failure; more are left out.
const MAX_PLACES: usize = 16;

/// A rank of which nothing has been heard for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The rank.
    pub rank: usize,
    /// Time since its last sign of life.
    pub since: Duration,
    /// The last op it told of.
    pub progress: u64,
}

/// A call that cannot be granted.
#[derive(Debug)]
pub struct Refusal {
    /// The answer.
    pub status: Status,
    /// Whether the job failed with it.
    pub fails_job: bool,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal { status, fails_job: false }
    }
}

/// A rank waiting at a barrier: which round of which name.
#[derive(Debug)]
pub struct Arrival {
    name: String,
    round: u64,
    rank: usize,
}

enum Member {
    Absent,
    Joined { heard: Instant, progress: u64 },
    Left,
}

struct Meeting {
    round: u64,
    participants: usize,
    arrived: BTreeMap<usize, Vec<u8>>,
}

/// A meeting that is complete, until the last of its participants has heard.
struct Held {
    values: Arc<[Vec<u8>]>,
    waiting: usize,
}

/// The state of one job.
pub struct JobState {
    members: Vec<Member>,
    /// The first rank that joined, and what it said of itself; the others must say the same.
    reference: Option<(u32, pb::JoinRequest)>,
    values: BTreeMap<String, Vec<u8>>,
    stored: usize,
    /// Meetings for which somebody waits.
    meetings: BTreeMap<String, Meeting>,
    /// Complete ones, by round.
    held: BTreeMap<u64, Held>,
    rounds: u64,
    failure: Option<Failure>,
    /// Ranks that have left, in order.
    departures: Vec<usize>,
    /// What ranks have communicated, as they told.
    reports: BTreeMap<usize, String>,
}

impl JobState {
    pub fn new(world: usize) -> JobState {
        JobState {
            members: (0..world).map(|_| Member::Absent).collect(),
            reference: None,
            values: BTreeMap::new(),
            stored: 0,
            meetings: BTreeMap::new(),
            held: BTreeMap::new(),
            rounds: 0,
            failure: None,
            departures: Vec::new(),
            reports: BTreeMap::new(),
        }
    }

    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Records a failure; the first one stays. Whether it was the first.
    pub fn fail(&mut self, failure: Failure) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.failure = Some(failure);
        true
    }

    /// A rank's own report of its failure.
    pub fn report(&mut self, request: pb::ReportFailureRequest) -> Result<bool, Refusal> {
        let rank = self.known(request.rank)?;
        let mut failure = Failure::from_wire(Some(rank), request.message, &request.detail);
        failure.rank = Some(rank);
        failure.message.truncate(failure.message.floor_char_boundary(MAX_REPORT_BYTES));
        failure.places.truncate(MAX_PLACES);
        // A divergence is about several ranks and names them.
        if failure.kind != FailureKind::Diverged {
            failure.message.insert_str(0, &format!("rank {rank} reported: "));
        }
        Ok(self.fail(failure))
    }

    /// Takes a rank in. Returns the world size.
    pub fn join(&mut self, request: pb::JoinRequest, now: Instant) -> Result<u32, Refusal> {
        let rank = self.known(request.rank)?;
        if let Some(failure) = &self.failure {
            return Err(Status::aborted(format!("the job has failed: {failure}")).into());
        }
        if !matches!(self.members[rank], Member::Absent) {
            return Err(Status::already_exists(format!("rank {rank} has joined this job before")).into());
        }
        if let Some((first, reference)) = &self.reference
            && let Some(difference) = difference(*first, reference, &request)
        {
            self.fail(Failure::of_rank(rank, FailureKind::Diverged, difference.clone()));
            return Err(Refusal { status: Status::failed_precondition(difference), fails_job: true });
        }
        if self.reference.is_none() {
            self.reference = Some((request.rank, request));
        }
        self.members[rank] = Member::Joined { heard: now, progress: 0 };
        Ok(self.members.len() as u32)
    }

    pub fn heartbeat(&mut self, rank: u32, progress: u64, now: Instant) -> Result<(), Refusal> {
        let rank = self.known(rank)?;
        match &mut self.members[rank] {
            // A beat may overtake the goodbye; it does not bring the rank back.
            Member::Left => Ok(()),
            Member::Absent => Err(not_joined(rank)),
            member => {
                *member = Member::Joined { heard: now, progress };
                Ok(())
            }
        }
    }

    /// What a rank has communicated; the last report counts.
    pub fn submit_report(&mut self, request: pb::SubmitReportRequest) -> Result<(), Refusal> {
        let rank = self.known(request.rank)?;
        if matches!(self.members[rank], Member::Absent) {
            return Err(not_joined(rank));
        }
        self.reports.insert(rank, request.report);
        Ok(())
    }

    pub fn reports(&self) -> &BTreeMap<usize, String> {
        &self.reports
    }

    /// Whether that changed anything.
    pub fn leave(&mut self, rank: usize) -> bool {
        match self.members.get_mut(rank) {
            None | Some(Member::Left) => false,
            Some(member) => {
                *member = Member::Left;
                self.departures.push(rank);
                true
            }
        }
    }

    /// The ranks that have left, in order. A rank says goodbye before it closes its communicator, so one that fails because
    /// another has gone stands behind that one.
    pub fn departures(&self) -> &[usize] {
        &self.departures
    }

    pub fn silent(&self, now: Instant, limit: Duration) -> Vec<Silence> {
        self.members
            .iter()
            .enumerate()
            .filter_map(|(rank, member)| match member {
                Member::Joined { heard, progress } => {
                    let since = now.saturating_duration_since(*heard);
                    (since > limit).then_some(Silence { rank, since, progress: *progress })
                }
                _ => None,
            })
            .collect()
    }

    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.values.get(key).cloned()
    }

    pub fn put(&mut self, key: String, value: Vec<u8>) -> Result<(), Refusal> {
        check_name(&key)?;
        check_value(&key, &value)?;
        let replaced = self.values.get(&key).map_or(0, |old| key.len() + old.len());
        let stored = self.stored - replaced + key.len() + value.len();
        if stored > MAX_STORE_BYTES {
            return Err(Status::resource_exhausted(format!(
                "the job's key-value store is full: {key:?} would bring it to {stored} of {MAX_STORE_BYTES} bytes"
            ))
            .into());
        }
        self.stored = stored;
        self.values.insert(key, value);
        Ok(())
    }

    /// Whether the value was set, and what the key holds now.
    pub fn compare_and_set(
        &mut self,
        key: String,
        expected: Option<&[u8]>,
        value: Vec<u8>,
    ) -> Result<(bool, Option<Vec<u8>>), Refusal> {
        check_name(&key)?;
        let current = self.values.get(&key);
        if current.map(Vec::as_slice) != expected {
            return Ok((false, current.cloned()));
        }
        self.put(key, value.clone())?;
        Ok((true, Some(value)))
    }

    /// A rank comes to a meeting. The flag says whether that completed it.
    pub fn arrive(&mut self, request: pb::MeetRequest) -> Result<(Arrival, bool), Refusal> {
        let pb::MeetRequest { name, rank, participants, value, .. } = request;
        let rank = self.known(rank)?;
        check_name(&name)?;
        check_value(&name, &value)?;
        if let Some(failure) = &self.failure {
            return Err(Status::aborted(format!("the job has failed: {failure}")).into());
        }
        if matches!(self.members[rank], Member::Absent) {
            return Err(not_joined(rank));
        }
        let (world, participants) = (self.members.len(), participants as usize);
        if !(1..=world).contains(&participants) {
            return Err(Status::invalid_argument(format!(
                "barrier {name:?} of {participants} ranks in a world of {world}"
            ))
            .into());
        }
        let rounds = &mut self.rounds;
        let meeting = self.meetings.entry(name.clone()).or_insert_with(|| {
            *rounds += 1;
            Meeting { round: *rounds, participants, arrived: BTreeMap::new() }
        });
        if meeting.participants != participants {
            return Err(Status::invalid_argument(format!(
                "barrier {name:?}: rank {rank} says {participants} ranks, {} said {}",
                list(&meeting.arrived.keys().copied().collect()),
                meeting.participants
            ))
            .into());
        }
        if meeting.arrived.contains_key(&rank) {
            return Err(Status::invalid_argument(format!("rank {rank} waits at barrier {name:?} already")).into());
        }
        meeting.arrived.insert(rank, value);
        let arrival = Arrival { name, round: meeting.round, rank };
        let complete = meeting.arrived.len() == participants;
        if complete && let Some(meeting) = self.meetings.remove(&arrival.name) {
            let values = meeting.arrived.into_values().collect();
            self.held.insert(meeting.round, Held { values, waiting: participants });
        }
        Ok((arrival, complete))
    }

    /// What has become of a round: complete, impossible, or (`None`) still waiting.
    pub fn verdict(&self, arrival: &Arrival) -> Option<Result<Arc<[Vec<u8>]>, String>> {
        let Some(meeting) = self.meeting(arrival) else {
            return self.held.get(&arrival.round).map(|held| Ok(held.values.clone()));
        };
        // Then the failure is the reason, and ranks that leave are its consequence.
        if self.failure.is_some() {
            return None;
        }
        let gone: BTreeSet<usize> = (0..self.members.len())
            .filter(|rank| matches!(self.members[*rank], Member::Left) && !meeting.arrived.contains_key(rank))
            .collect();
        (self.members.len() - gone.len() < meeting.participants).then(|| {
            Err(format!(
                "barrier {:?} of {} ranks cannot complete: {} left the job",
                arrival.name,
                meeting.participants,
                list(&gone)
            ))
        })
    }

    /// Who has come to a round and, where that is known, who has not.
    pub fn describe_meeting(&self, arrival: &Arrival) -> String {
        let Some(meeting) = self.meeting(arrival) else {
            return "it completed just now".into();
        };
        let came = format!("{} of {} ranks came", meeting.arrived.len(), meeting.participants);
        if meeting.participants == self.members.len() {
            let missing = (0..self.members.len()).filter(|rank| !meeting.arrived.contains_key(rank)).collect();
            format!("{came}, {} did not", list(&missing))
        } else {
            format!("{came}: {}", list(&meeting.arrived.keys().copied().collect()))
        }
    }

    /// A rank no longer waits for a round: it has heard, or it gave up.
    pub fn withdraw(&mut self, arrival: &Arrival) {
        if let Some(meeting) = self.meetings.get_mut(&arrival.name)
            && meeting.round == arrival.round
        {
            meeting.arrived.remove(&arrival.rank);
            if meeting.arrived.is_empty() {
                self.meetings.remove(&arrival.name);
            }
        }
        if let Some(held) = self.held.get_mut(&arrival.round) {
            held.waiting -= 1;
            if held.waiting == 0 {
                self.held.remove(&arrival.round);
            }
        }
    }

    fn meeting(&self, arrival: &Arrival) -> Option<&Meeting> {
        self.meetings.get(&arrival.name).filter(|m| m.round == arrival.round)
    }

    fn known(&self, rank: u32) -> Result<usize, Refusal> {
        let (rank, world) = (rank as usize, self.members.len());
        if rank < world {
            return Ok(rank);
        }
        Err(Status::out_of_range(format!("there is no rank {rank} in a world of {world}")).into())
    }
}

fn not_joined(rank: usize) -> Refusal {
    Status::failed_precondition(format!("rank {rank} has not joined the job")).into()
}

fn check_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.len() > MAX_KEY_BYTES {
        let length = name.len();
        return Err(Status::invalid_argument(format!(
            "a key or barrier name has 1 to {MAX_KEY_BYTES} bytes, not {length}"
        ))
        .into());
    }
    Ok(())
}

fn check_value(name: &str, value: &[u8]) -> Result<(), Refusal> {
    if value.len() > MAX_VALUE_BYTES {
        let length = value.len();
        return Err(Status::resource_exhausted(format!(
            "the value of {name:?} has {length} bytes, more than {MAX_VALUE_BYTES}"
        ))
        .into());
    }
    Ok(())
}

/// What keeps two ranks from working together, as a sentence that names both.
fn difference(first: u32, reference: &pb::JoinRequest, request: &pb::JoinRequest) -> Option<String> {
    let rank = request.rank;
    if reference.version != request.version {
        return Some(format!(
            "rank {first} runs oflow {}, rank {rank} runs oflow {}",
            reference.version, request.version
        ));
    }
    let hashes = |what: &str, a: u64, b: u64, hint: &str| {
        (a != b).then(|| format!("rank {first} has {what} {a:016x}, rank {rank} has {b:016x}: {hint}"))
    };
    hashes(
        "op registry",
        reference.registry_hash,
        request.registry_hash,
        "they were built with different ops or load different plug-ins",
    )
    .or_else(|| {
        hashes("program", reference.program_hash, request.program_hash, "they run different builds of the program")
    })
}

/// Ranks as people write them: `rank 3`, `ranks 0, 2, 3`, and not more than a line of them.
fn list(ranks: &BTreeSet<usize>) -> String {
    const SHOWN: usize = 16;
    let text: Vec<String> = ranks.iter().take(SHOWN).map(usize::to_string).collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    let more = if ranks.len() > SHOWN { format!(" and {} more", ranks.len() - SHOWN) } else { String::new() };
    format!("{noun} {}{more}", text.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(rank: u32) -> pb::JoinRequest {
        pb::JoinRequest { rank, version: "1.0".into(), registry_hash: 1, program_hash: 2 }
    }

    fn job(world: usize) -> JobState {
        let mut state = JobState::new(world);
        for rank in 0..world {
            assert_eq!(state.join(hello(rank as u32), Instant::now()).unwrap(), world as u32);
        }
        state
    }

    fn arrive(state: &mut JobState, rank: u32, participants: u32) -> Result<(Arrival, bool), Refusal> {
        state.arrive(pb::MeetRequest { name: "b".into(), rank, participants, wait_ms: 0, value: vec![rank as u8] })
    }

    fn text<T>(result: Result<T, Refusal>) -> String {
        result.map(drop).unwrap_err().status.message().to_string()
    }

    #[test]
    fn a_rank_joins_once() {
        let mut state = job(2);
        assert_eq!(text(state.join(hello(1), Instant::now())), "rank 1 has joined this job before");
        assert_eq!(text(state.join(hello(2), Instant::now())), "there is no rank 2 in a world of 2");
    }

    #[test]
    fn a_difference_names_both_and_fails_the_job() {
        let cases = [
            (pb::JoinRequest { version: "1.1".into(), ..hello(1) }, "rank 0 runs oflow 1.0, rank 1 runs oflow 1.1"),
            (
                pb::JoinRequest { registry_hash: 9, ..hello(1) },
                "rank 0 has op registry 0000000000000001, rank 1 has 0000000000000009: they were built with different ops or load different plug-ins",
            ),
            (
                pb::JoinRequest { program_hash: 9, ..hello(1) },
                "rank 0 has program 0000000000000002, rank 1 has 0000000000000009: they run different builds of the program",
            ),
        ];
        for (request, message) in cases {
            let mut state = JobState::new(2);
            state.join(hello(0), Instant::now()).unwrap();
            let refusal = state.join(request, Instant::now()).unwrap_err();
            assert_eq!(refusal.status.message(), message);
            assert!(refusal.fails_job);
            assert_eq!(state.failure().unwrap().message, message);
        }
    }

    #[test]
    fn a_barrier_completes_once_all_came_and_may_be_used_again() {
        let mut state = job(3);
        for _round in 0..3 {
            let (first, done) = arrive(&mut state, 0, 2).unwrap();
            assert!(!done && state.verdict(&first).is_none());
            let (second, done) = arrive(&mut state, 2, 2).unwrap();
            assert!(done);
            // The first may come again before the others have woken from the last round.
            let (next, done) = arrive(&mut state, 0, 2).unwrap();
            assert!(!done && state.verdict(&next).is_none());
            let brought: Arc<[Vec<u8>]> = [vec![0], vec![2]].into();
            assert_eq!(state.verdict(&first), Some(Ok(brought.clone())));
            assert_eq!(state.verdict(&second), Some(Ok(brought)));
            state.withdraw(&first);
            state.withdraw(&second);
            assert!(state.verdict(&next).is_none(), "an old round's end must not touch the new one");
            state.withdraw(&next);
        }
        assert!(state.meetings.is_empty() && state.held.is_empty());
    }

    #[test]
    fn a_barrier_says_what_is_wrong() {
        let mut state = job(4);
        let (arrival, _) = arrive(&mut state, 1, 4).unwrap();
        assert_eq!(state.describe_meeting(&arrival), "1 of 4 ranks came, ranks 0, 2, 3 did not");
        assert_eq!(text(arrive(&mut state, 1, 4)), "rank 1 waits at barrier \"b\" already");
        assert_eq!(text(arrive(&mut state, 2, 3)), "barrier \"b\": rank 2 says 3 ranks, rank 1 said 4");
        assert_eq!(text(arrive(&mut state, 2, 5)), "barrier \"b\" of 5 ranks in a world of 4");
        assert!(state.leave(3));
        assert_eq!(
            state.verdict(&arrival),
            Some(Err("barrier \"b\" of 4 ranks cannot complete: rank 3 left the job".into()))
        );
        state.fail(Failure::of_rank(3, FailureKind::Killed, "rank 3 was killed"));
        assert_eq!(state.verdict(&arrival), None, "the failure is the better answer");
    }

    #[test]
    fn the_store_is_bounded() {
        let mut state = job(1);
        assert!(text(state.put("k".into(), vec![0; MAX_VALUE_BYTES + 1])).contains("more than"));
        assert!(text(state.put(String::new(), vec![])).contains("not 0"));
        let mut full = None;
        for i in 0..=MAX_STORE_BYTES / MAX_VALUE_BYTES {
            full = state.put(format!("{i}"), vec![0; MAX_VALUE_BYTES]).err();
        }
        assert!(full.unwrap().status.message().contains("store is full"));
        // Replacing frees what was there.
        state.put("0".into(), vec![]).unwrap();
        state.put("small".into(), vec![0; 1000]).unwrap();
    }

    #[test]
    fn compare_and_set_sets_only_what_was_expected() {
        let mut state = job(1);
        assert_eq!(state.compare_and_set("k".into(), Some(b"x"), b"y".to_vec()).unwrap(), (false, None));
        assert_eq!(state.compare_and_set("k".into(), None, b"a".to_vec()).unwrap(), (true, Some(b"a".to_vec())));
        assert_eq!(state.compare_and_set("k".into(), None, b"b".to_vec()).unwrap(), (false, Some(b"a".to_vec())));
        assert_eq!(state.compare_and_set("k".into(), Some(b"a"), b"b".to_vec()).unwrap(), (true, Some(b"b".to_vec())));
    }

    #[test]
    fn silence_is_of_joined_ranks_only() {
        let start = Instant::now();
        let mut state = JobState::new(3);
        state.join(hello(0), start).unwrap();
        state.join(hello(1), start).unwrap();
        state.heartbeat(0, 5, start + Duration::from_secs(9)).unwrap();
        assert_eq!(text(state.heartbeat(2, 0, start)), "rank 2 has not joined the job");
        let now = start + Duration::from_secs(11);
        let limit = Duration::from_secs(10);
        assert_eq!(state.silent(now, limit), [Silence { rank: 1, since: now - start, progress: 0 }]);
        state.leave(1);
        state.heartbeat(1, 0, now).unwrap();
        assert_eq!(state.silent(now + limit, limit).iter().map(|s| s.rank).collect::<Vec<_>>(), [0]);
    }

    fn told(rank: u32, message: &str) -> pb::ReportFailureRequest {
        pb::ReportFailureRequest { rank, message: message.into(), detail: String::new() }
    }

    #[test]
    fn the_first_failure_stays() {
        let mut state = job(2);
        assert!(state.report(told(1, "disk full")).unwrap());
        assert!(!state.fail(Failure::of_rank(0, FailureKind::Error, "consequence")));
        assert_eq!(state.failure().unwrap().message, "rank 1 reported: disk full");
        assert_eq!(state.report(told(0, &"é".repeat(MAX_REPORT_BYTES))).ok(), Some(false));
    }
}
