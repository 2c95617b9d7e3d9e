//! State that the ranks of a job share: values by key, and meetings. Part of the root's state. Pure: a call is identified by
//! its [`Caller`], and answers are collected until they are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use oflow_proto::control as pb;
use pb::answer::Answer;
use prost::Message;
use tonic::Status;

use super::limits::{MAX_MEETING_BYTES, MAX_STORE_BYTES, check_name, check_value, for_want_of, list, refused};

/// Identifies a call: its node, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub node: u64,
    pub ticket: u64,
}

/// Event that a call without an answer waits for.
enum Open {
    Value(String),
    Gathering { name: String, rank: usize },
}

/// The ranks that are to come to a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invited {
    pub participants: usize,
    /// The ranks, where they are named; empty: any ranks.
    pub members: BTreeSet<usize>,
}

impl Invited {
    /// The ranks, if it is known who they are.
    fn known(&self, world: usize) -> Option<BTreeSet<usize>> {
        match self.members.is_empty() {
            false => Some(self.members.clone()),
            true => (self.participants == world).then(|| (0..world).collect()),
        }
    }

    fn describe(&self) -> String {
        match self.members.is_empty() {
            false => list(&self.members),
            true => format!("{} ranks", self.participants),
        }
    }
}

struct Gathering {
    invited: Invited,
    arrived: BTreeMap<usize, (Caller, Vec<u8>)>,
    bytes: usize,
}

/// An open meeting of ranks that are known: of all, or of those that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    pub name: String,
    /// The ranks that have arrived.
    pub here: Vec<usize>,
    /// The ranks that have not.
    pub missing: Vec<usize>,
}

/// Keys and meetings of one start of a job.
pub struct KvStore {
    world: usize,
    values: BTreeMap<String, Vec<u8>>,
    stored: usize,
    wanted: BTreeMap<String, Vec<Caller>>,
    meetings: BTreeMap<String, Gathering>,
    open: BTreeMap<Caller, Open>,
    left: BTreeSet<usize>,
    answers: Vec<(Vec<Caller>, Answer)>,
}

impl KvStore {
    pub fn new(world: usize) -> KvStore {
        KvStore {
            world,
            values: BTreeMap::new(),
            stored: 0,
            wanted: BTreeMap::new(),
            meetings: BTreeMap::new(),
            open: BTreeMap::new(),
            left: BTreeSet::new(),
            answers: Vec::new(),
        }
    }

    /// Takes the collected answers. Each is for one or more calls.
    pub fn take_answers(&mut self) -> Vec<(Vec<Caller>, Answer)> {
        std::mem::take(&mut self.answers)
    }

    pub fn value(&self, key: &str) -> Option<&Vec<u8>> {
        self.values.get(key)
    }

    pub fn put(&mut self, caller: Caller, key: String, value: Vec<u8>) {
        let answer = self.set(key, value).map_or_else(|s| refused(&s), |()| Answer::Done(true));
        self.answers.push((vec![caller], answer));
    }

    pub fn get(&mut self, caller: Caller, key: String, wait: bool) {
        match self.values.get(&key) {
            None if wait => {
                self.open.insert(caller, Open::Value(key.clone()));
                self.wanted.entry(key).or_default().push(caller);
            }
            value => {
                let value = value.cloned();
                self.answers.push((vec![caller], Answer::Value(pb::GetReply { value })));
            }
        }
    }

    pub fn compare_and_set(&mut self, caller: Caller, key: String, expected: Option<Vec<u8>>, value: Vec<u8>) {
        let current = self.values.get(&key);
        let answer = if current != expected.as_ref() {
            Answer::CompareAndSet(pb::CompareAndSetReply { set: false, current: current.cloned() })
        } else {
            match self.set(key, value.clone()) {
                Ok(()) => Answer::CompareAndSet(pb::CompareAndSetReply { set: true, current: Some(value) }),
                Err(status) => refused(&status),
            }
        };
        self.answers.push((vec![caller], answer));
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<(), Status> {
        check_name(&key)?;
        check_value(&key, &value)?;
        let replaced = self.values.get(&key).map_or(0, |old| key.len() + old.len());
        let stored = self.stored - replaced + key.len() + value.len();
        if stored > MAX_STORE_BYTES {
            return Err(Status::resource_exhausted(format!(
                "the job's key-value store is full: {key:?} would bring it to {stored} of {MAX_STORE_BYTES} bytes"
            )));
        }
        self.stored = stored;
        if let Some(callers) = self.wanted.remove(&key) {
            callers.iter().for_each(|c| drop(self.open.remove(c)));
            self.answers.push((callers, Answer::Value(pb::GetReply { value: Some(value.clone()) })));
        }
        self.values.insert(key, value);
        Ok(())
    }

    /// A rank arrives at a meeting.
    pub fn arrive(&mut self, caller: Caller, rank: usize, name: &str, invited: Invited, value: Vec<u8>) {
        if let Err(status) = self.enter(caller, rank, name, invited, value) {
            self.answers.push((vec![caller], refused(&status)));
        }
    }

    fn enter(
        &mut self,
        caller: Caller,
        rank: usize,
        name: &str,
        invited: Invited,
        value: Vec<u8>,
    ) -> Result<(), Status> {
        check_name(name)?;
        check_value(name, &value)?;
        let (world, participants) = (self.world, invited.participants);
        if !(1..=world).contains(&participants) {
            return Err(Status::invalid_argument(format!(
                "barrier {name:?} of {participants} ranks in a world of {world}"
            )));
        }
        let members = &invited.members;
        if !members.is_empty()
            && (members.len() != participants || !members.contains(&rank) || members.last() >= Some(&world))
        {
            return Err(Status::invalid_argument(format!(
                "barrier {name:?}: rank {rank} calls {participants} ranks of a world of {world} and names {}",
                list(members)
            )));
        }
        let new = || Gathering { invited: invited.clone(), arrived: BTreeMap::new(), bytes: 0 };
        let meeting = self.meetings.entry(name.to_string()).or_insert_with(new);
        if meeting.invited != invited {
            return Err(Status::invalid_argument(format!(
                "barrier {name:?}: rank {rank} says {}, {} said {}",
                invited.describe(),
                list(&meeting.arrived.keys().copied().collect()),
                meeting.invited.describe()
            )));
        }
        if meeting.arrived.contains_key(&rank) {
            return Err(Status::invalid_argument(format!("rank {rank} is at barrier {name:?} already")));
        }
        // A few bytes of each stand between the values.
        let bytes = meeting.bytes + value.len() + 8;
        if bytes > MAX_MEETING_BYTES {
            return Err(Status::resource_exhausted(format!(
                "the values of the ranks at {name:?} are more than {MAX_MEETING_BYTES} bytes together"
            )));
        }
        meeting.bytes = bytes;
        meeting.arrived.insert(rank, (caller, value));
        if meeting.arrived.len() < participants {
            self.open.insert(caller, Open::Gathering { name: name.to_string(), rank });
            self.end_if_impossible(name);
        } else if let Some(meeting) = self.meetings.remove(name) {
            let (callers, values): (Vec<Caller>, Vec<Vec<u8>>) = meeting.arrived.into_values().unzip();
            callers.iter().for_each(|c| drop(self.open.remove(c)));
            self.answers.push((callers, Answer::Met(pb::MeetReply { values }.encode_to_vec())));
        }
        Ok(())
    }

    /// Returns the open meetings of ranks that are known.
    pub fn meetings(&self) -> Vec<Meeting> {
        let meeting = |(name, m): (&String, &Gathering)| {
            let ranks = m.invited.known(self.world)?.into_iter();
            let (here, missing) = ranks.partition(|rank| m.arrived.contains_key(rank));
            Some(Meeting { name: name.clone(), here, missing })
        };
        self.meetings.iter().filter_map(meeting).collect()
    }

    /// A rank has left the job: meetings that need it fail.
    pub fn leave(&mut self, rank: usize) {
        if self.left.insert(rank) {
            let names: Vec<String> = self.meetings.keys().cloned().collect();
            names.iter().for_each(|name| self.end_if_impossible(name));
        }
    }

    fn end_if_impossible(&mut self, name: &str) {
        let Some(meeting) = self.meetings.get(name) else { return };
        let members = &meeting.invited.members;
        let needed = |r: &usize| !meeting.arrived.contains_key(r) && (members.is_empty() || members.contains(r));
        let gone: BTreeSet<usize> = self.left.iter().copied().filter(needed).collect();
        let (all, participants) =
            (if members.is_empty() { self.world } else { members.len() }, meeting.invited.participants);
        if all - gone.len() >= participants {
            return;
        }
        let why = format!("barrier {name:?} of {participants} ranks cannot complete: {} left the job", list(&gone));
        if let Some(meeting) = self.meetings.remove(name) {
            let callers: Vec<Caller> = meeting.arrived.into_values().map(|(caller, _)| caller).collect();
            callers.iter().for_each(|c| drop(self.open.remove(c)));
            let status = Status::failed_precondition(why);
            let status = gone.first().map_or_else(|| status.clone(), |rank| for_want_of(status.clone(), *rank));
            self.answers.push((callers, refused(&status)));
        }
    }

    /// Drops a call. If its time-out has passed it gets an answer that names the missing ranks.
    pub fn cancel(&mut self, caller: Caller, waited: Option<Duration>) {
        let answer = match self.open.remove(&caller) {
            // Answered meanwhile.
            None => return,
            Some(Open::Value(key)) => {
                if let Some(callers) = self.wanted.get_mut(&key) {
                    callers.retain(|c| *c != caller);
                    if callers.is_empty() {
                        self.wanted.remove(&key);
                    }
                }
                Answer::Value(pb::GetReply { value: None })
            }
            Some(Open::Gathering { name, rank }) => {
                let seconds = waited.unwrap_or_default().as_secs_f64();
                let missing = self.describe(&name);
                if let Some(meeting) = self.meetings.get_mut(&name) {
                    let value = meeting.arrived.remove(&rank);
                    meeting.bytes -= value.map_or(0, |(_, v)| v.len() + 8);
                    if meeting.arrived.is_empty() {
                        self.meetings.remove(&name);
                    }
                }
                refused(&Status::deadline_exceeded(format!(
                    "barrier {name:?} was not complete after {seconds:.1} s: {missing}"
                )))
            }
        };
        if waited.is_some() {
            self.answers.push((vec![caller], answer));
        }
    }

    /// Drops the calls of a lost node.
    pub fn forget(&mut self, node: u64) {
        let first = Caller { node, ticket: 0 };
        let callers: Vec<Caller> =
            self.open.range(first..=Caller { node, ticket: u64::MAX }).map(|(c, _)| *c).collect();
        callers.into_iter().for_each(|c| self.cancel(c, None));
    }

    /// The ranks that have arrived at a meeting and, if known, those that have not.
    fn describe(&self, name: &str) -> String {
        let Some(meeting) = self.meetings.get(name) else {
            return "it completed just now".into();
        };
        let came = format!("{} of {} ranks came", meeting.arrived.len(), meeting.invited.participants);
        match meeting.invited.known(self.world) {
            Some(ranks) => {
                let missing = ranks.into_iter().filter(|rank| !meeting.arrived.contains_key(rank)).collect();
                format!("{came}, {} did not", list(&missing))
            }
            None => format!("{came}: {}", list(&meeting.arrived.keys().copied().collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::limits::MAX_VALUE_BYTES;

    fn caller(ticket: u64) -> Caller {
        Caller { node: ticket % 2, ticket }
    }

    /// So many ranks, whoever they are.
    fn any(participants: usize) -> Invited {
        Invited { participants, members: BTreeSet::new() }
    }

    /// These ranks.
    fn these(ranks: &[usize]) -> Invited {
        Invited { participants: ranks.len(), members: ranks.iter().copied().collect() }
    }

    fn text(answer: &Answer) -> &str {
        match answer {
            Answer::Refused(refused) => &refused.message,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// The only answer, and to whom.
    fn one(store: &mut KvStore) -> (Vec<u64>, Answer) {
        let mut answers = store.take_answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        let (callers, answer) = answers.remove(0);
        (callers.iter().map(|c| c.ticket).collect(), answer)
    }

    fn met(answer: Answer) -> Vec<Vec<u8>> {
        match answer {
            Answer::Met(bytes) => pb::MeetReply::decode(&bytes[..]).unwrap().values,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_meeting_completes_once_all_came_and_may_be_used_again() {
        let mut store = KvStore::new(3);
        for round in 0..3 {
            store.arrive(caller(10 * round), 2, "b", any(2), vec![2]);
            assert!(store.take_answers().is_empty());
            store.arrive(caller(10 * round + 1), 0, "b", any(2), vec![0]);
            let (tickets, answer) = one(&mut store);
            assert_eq!(tickets, [10 * round + 1, 10 * round]);
            assert_eq!(met(answer), [vec![0], vec![2]]);
        }
        assert!(store.meetings.is_empty() && store.open.is_empty());
    }

    #[test]
    fn a_meeting_says_what_is_wrong() {
        let mut store = KvStore::new(4);
        store.arrive(caller(1), 1, "b", any(4), vec![]);
        store.arrive(caller(2), 1, "b", any(4), vec![]);
        assert_eq!(text(&one(&mut store).1), "rank 1 is at barrier \"b\" already");
        store.arrive(caller(3), 2, "b", any(3), vec![]);
        assert_eq!(text(&one(&mut store).1), "barrier \"b\": rank 2 says 3 ranks, rank 1 said 4 ranks");
        store.arrive(caller(4), 2, "b", any(5), vec![]);
        assert_eq!(text(&one(&mut store).1), "barrier \"b\" of 5 ranks in a world of 4");
        store.cancel(caller(1), Some(Duration::from_millis(50)));
        let (_, late) = one(&mut store);
        assert_eq!(text(&late), "barrier \"b\" was not complete after 0.1 s: 1 of 4 ranks came, ranks 0, 2, 3 did not");
        // The one whose time was up does not count as present.
        store.arrive(caller(5), 2, "b", any(2), vec![]);
        store.cancel(caller(5), Some(Duration::from_secs(1)));
        assert!(text(&one(&mut store).1).ends_with("1 of 2 ranks came: rank 2"));
        store.arrive(caller(6), 0, "all", any(4), vec![]);
        store.leave(3);
        let (tickets, gone) = one(&mut store);
        assert_eq!(tickets, [6]);
        assert_eq!(text(&gone), "barrier \"all\" of 4 ranks cannot complete: rank 3 left the job");
        store.arrive(caller(7), 0, "all", any(4), vec![]);
        assert!(text(&one(&mut store).1).contains("rank 3 left"));
        assert!(store.meetings.is_empty() && store.open.is_empty());
    }

    #[test]
    fn a_meeting_that_names_its_ranks_waits_for_them_and_for_no_others() {
        let mut store = KvStore::new(5);
        store.leave(0);
        store.arrive(caller(1), 1, "b", these(&[1, 3]), vec![1]);
        let open = Meeting { name: "b".into(), here: vec![1], missing: vec![3] };
        assert!(store.take_answers().is_empty() && store.meetings() == [open]);
        store.arrive(caller(2), 3, "b", these(&[1, 2, 3]), vec![]);
        assert_eq!(text(&one(&mut store).1), "barrier \"b\": rank 3 says ranks 1, 2, 3, rank 1 said ranks 1, 3");
        store.arrive(caller(3), 2, "b", these(&[1, 3]), vec![]);
        let text_of = text(&one(&mut store).1).to_string();
        assert_eq!(text_of, "barrier \"b\": rank 2 calls 2 ranks of a world of 5 and names ranks 1, 3");
        store.arrive(caller(4), 4, "c", these(&[4, 5]), vec![]);
        assert!(text(&one(&mut store).1).contains("of a world of 5 and names ranks 4, 5"));
        store.arrive(caller(5), 3, "b", these(&[1, 3]), vec![3]);
        assert_eq!(met(one(&mut store).1), [vec![1], vec![3]]);
        store.arrive(caller(6), 1, "b", these(&[1, 3]), vec![]);
        store.leave(2);
        assert!(store.take_answers().is_empty(), "nobody waits for rank 2");
        store.leave(3);
        let gone = one(&mut store).1;
        assert_eq!(text(&gone), "barrier \"b\" of 2 ranks cannot complete: rank 3 left the job");
        assert!(matches!(gone, Answer::Refused(pb::Refused { missing: Some(3), .. })));
        store.arrive(caller(7), 1, "late", these(&[1, 4]), vec![]);
        store.cancel(caller(7), Some(Duration::from_secs(1)));
        assert!(text(&one(&mut store).1).ends_with("1 of 2 ranks came, rank 4 did not"));
        assert!(store.meetings.is_empty() && store.open.is_empty());
    }

    #[test]
    fn those_who_wait_for_a_key_get_it_in_one_answer() {
        let mut store = KvStore::new(2);
        store.get(caller(1), "k".into(), false);
        assert_eq!(one(&mut store).1, Answer::Value(pb::GetReply { value: None }));
        for ticket in 2..5 {
            store.get(caller(ticket), "k".into(), true);
        }
        store.cancel(caller(3), None);
        store.put(caller(9), "k".into(), vec![7]);
        let answers = store.take_answers();
        assert_eq!(answers[0].0, [caller(2), caller(4)]);
        assert_eq!(answers[1], (vec![caller(9)], Answer::Done(true)));
        store.get(caller(5), "never".into(), true);
        store.forget(1);
        store.put(caller(6), "never".into(), vec![]);
        assert_eq!(store.take_answers().len(), 1, "nobody waits any more");
        assert!(store.open.is_empty() && store.wanted.is_empty());
    }

    #[test]
    fn compare_and_set_sets_only_what_was_expected() {
        let mut store = KvStore::new(1);
        for (expected, value, set, current) in [
            (Some(b"x"), b"y", false, None),
            (None, b"a", true, Some(b"a")),
            (None, b"b", false, Some(b"a")),
            (Some(b"a"), b"b", true, Some(b"b")),
        ] {
            store.compare_and_set(caller(1), "k".into(), expected.map(|e| e.to_vec()), value.to_vec());
            let wanted = pb::CompareAndSetReply { set, current: current.map(|c| c.to_vec()) };
            assert_eq!(one(&mut store).1, Answer::CompareAndSet(wanted));
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut store = KvStore::new(2);
        store.put(caller(1), "k".into(), vec![0; MAX_VALUE_BYTES + 1]);
        assert!(text(&one(&mut store).1).contains("more than"));
        store.put(caller(1), String::new(), vec![]);
        assert!(text(&one(&mut store).1).contains("not 0"));
        for i in 0..=MAX_STORE_BYTES / MAX_VALUE_BYTES {
            store.put(caller(1), format!("{i}"), vec![0; MAX_VALUE_BYTES]);
        }
        let answers = store.take_answers();
        assert!(text(&answers.last().unwrap().1).contains("store is full"));
        // Replacing frees what was there.
        store.put(caller(1), "0".into(), vec![]);
        store.put(caller(1), "small".into(), vec![0; 1000]);
        assert!(store.take_answers().iter().all(|(_, a)| *a == Answer::Done(true)));
    }
}
