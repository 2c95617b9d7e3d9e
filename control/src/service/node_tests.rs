use super::*;
use pb::answer::Answer as Wire;

fn hello(rank: u32) -> pb::JoinRequest {
    pb::JoinRequest { rank, version: "1.0".into(), registry_hash: 1, program_hash: 2 }
}

fn ups(state: &mut NodeState) -> Vec<Item> {
    state.take_up().into_iter().filter_map(|up| up.item).collect()
}

fn answered(state: &mut NodeState, tickets: &[u64], answer: Wire) {
    state.answered(pb::Answer { tickets: tickets.to_vec(), answer: Some(answer) });
}

/// The answers since the last time, all of which were granted.
fn granted(state: &mut NodeState) -> Vec<(u64, Answer)> {
    state.take_answers().into_iter().map(|(ticket, outcome)| (ticket, outcome.unwrap())).collect()
}

/// Ranks 2 and 3 of a world of 4, which have joined.
fn joined(gathers: bool) -> NodeState {
    let mut state = NodeState::new(2..4, 4, gathers);
    let now = Instant::now();
    let first = state.join(hello(2), now).unwrap();
    let second = state.join(hello(3), now).unwrap();
    // One hello for the host.
    assert!(matches!(&ups(&mut state)[..], [Item::Join(join)] if join.ticket == first));
    assert!(state.take_answers().is_empty());
    answered(&mut state, &[first], Wire::Done(true));
    assert_eq!(granted(&mut state), [(first, Answer::World(4)), (second, Answer::World(4))]);
    state
}

fn meet(state: &mut NodeState, rank: u32, participants: u32) -> Result<u64, Status> {
    state.arrive(pb::MeetRequest {
        name: "b".into(),
        rank,
        participants,
        value: vec![rank as u8],
        ..Default::default()
    })
}

fn text<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
    result.unwrap_err().message().to_string()
}

#[test]
fn a_rank_joins_once_and_on_its_own_host() {
    let mut state = joined(true);
    let now = Instant::now();
    assert_eq!(text(state.join(hello(3), now)), "rank 3 has joined this job before");
    assert_eq!(text(state.join(hello(4), now)), "rank 4 is out of range: the world has 4 ranks");
    assert_eq!(text(state.join(hello(1), now)), "rank 1 is on another host: here are ranks 2 to 3");
}

#[test]
fn a_difference_names_both_and_fails_the_job() {
    for (request, message) in [
        (pb::JoinRequest { version: "1.1".into(), ..hello(3) }, "rank 2 runs oflow 1.0, rank 3 runs oflow 1.1"),
        (
            pb::JoinRequest { registry_hash: 9, ..hello(3) },
            "rank 2 has op registry 0000000000000001, rank 3 has 0000000000000009: they were built with different ops or load different plug-ins",
        ),
        (
            pb::JoinRequest { program_hash: 9, ..hello(3) },
            "rank 2 has program 0000000000000002, rank 3 has 0000000000000009: they run different builds of the program",
        ),
    ] {
        let mut state = NodeState::new(2..4, 4, false);
        state.join(hello(2), Instant::now()).unwrap();
        assert_eq!(text(state.join(request, Instant::now())), message);
        let Some(Item::Fail(fail)) = ups(&mut state).pop() else { panic!("no failure") };
        assert_eq!(serde_json::from_slice::<Failure>(&fail.failure).unwrap().message, message);
        assert!(fail.r#final, "another start would bring the same programs");
    }
}

#[test]
fn what_the_root_finds_wrong_is_told_to_all_who_join() {
    let mut state = NodeState::new(0..2, 4, true);
    let first = state.join(hello(0), Instant::now()).unwrap();
    let second = state.join(hello(1), Instant::now()).unwrap();
    answered(&mut state, &[first], crate::service::limits::refused(&Status::failed_precondition("no")));
    let answers = state.take_answers();
    assert_eq!(answers.iter().map(|(t, _)| *t).collect::<Vec<_>>(), [first, second]);
    assert!(answers.iter().all(|(_, o)| o.as_ref().unwrap_err().message() == "no"));
}

#[test]
fn a_host_goes_to_a_meeting_of_all_together() {
    let mut state = joined(true);
    let a = meet(&mut state, 2, 4).unwrap();
    assert!(ups(&mut state).is_empty());
    let b = meet(&mut state, 3, 4).unwrap();
    let up = ups(&mut state);
    assert!(matches!(&up[..], [Item::Arrive(arrive)] if arrive.arrivals.len() == 2), "{up:?}");
    answered(&mut state, &[a, b], Wire::Met(pb::MeetReply { values: vec![vec![1]; 4] }.encode_to_vec()));
    assert!(state.take_answers().iter().all(|(_, o)| matches!(o, Ok(Answer::Met(values)) if values.len() == 4)));
    // Alone at first; the root hears of it at the next tick, so that it can say who is missing.
    let alone = meet(&mut state, 3, 4).unwrap();
    state.tick();
    assert!(matches!(&ups(&mut state)[..], [Item::Arrive(arrive)] if arrive.arrivals.len() == 1));
    assert!(!state.time_is_up(alone, Duration::from_millis(70)));
    assert!(matches!(&ups(&mut state)[..], [Item::Cancel(cancel)] if cancel.waited_ms == Some(70)));
    // Of some ranks at once: nobody knows here which of them come.
    meet(&mut state, 2, 2).unwrap();
    assert!(matches!(&ups(&mut state)[..], [Item::Arrive(_)]));
    // Gone before anybody heard of it.
    let mut state = joined(true);
    let gone = meet(&mut state, 2, 4).unwrap();
    state.cancel(gone);
    state.tick();
    assert!(ups(&mut state).is_empty());
    let gone = meet(&mut state, 2, 4).unwrap();
    state.tick();
    state.cancel(gone);
    assert!(matches!(&ups(&mut state)[..], [Item::Arrive(_), Item::Cancel(_)]));
}

#[test]
fn opinions_on_the_number_reach_the_root() {
    let mut state = joined(true);
    meet(&mut state, 2, 4).unwrap();
    meet(&mut state, 3, 3).unwrap();
    let up = ups(&mut state);
    let numbers: Vec<u32> =
        up.iter().map(|i| if let Item::Arrive(a) = i { a.participants } else { panic!("{i:?}") }).collect();
    assert_eq!(numbers, [4, 3]);
}

#[test]
fn a_failure_ends_every_wait() {
    let mut state = joined(true);
    let wait = state.get("k".into(), true).unwrap();
    let barrier = meet(&mut state, 2, 4).unwrap();
    let put = state.put("k".into(), vec![]).unwrap();
    let failure = Failure::of_rank(0, FailureKind::Killed, "rank 0 was killed");
    assert!(state.failed(failure.clone()) && !state.failed(failure.clone()));
    let answers = state.take_answers();
    assert_eq!(answers.iter().map(|(t, _)| *t).collect::<Vec<_>>(), [wait, barrier]);
    for (_, outcome) in answers {
        assert_eq!(text(outcome), "the job has failed: rank 0 was killed");
    }
    assert_eq!(text(meet(&mut state, 3, 4)), "the job has failed: rank 0 was killed");
    answered(&mut state, &[put], Wire::Done(true));
    assert_eq!(granted(&mut state), [(put, Answer::Done)]);
    ups(&mut state);
    state.fail(&failure, None, false);
    assert!(ups(&mut state).is_empty(), "only the first counts");
}

#[test]
fn a_reported_failure_is_cut_and_names_its_rank() {
    let mut state = joined(true);
    let request = |message: String| pb::ReportFailureRequest { rank: 3, message, detail: String::new() };
    state.report(request("é".repeat(MAX_REPORT_BYTES))).unwrap();
    let Some(Item::Fail(fail)) = ups(&mut state).pop() else { panic!("no failure") };
    let failure: Failure = serde_json::from_slice(&fail.failure).unwrap();
    assert!(failure.message.starts_with("rank 3 reported: é") && failure.message.len() < MAX_REPORT_BYTES + 40);
    assert_eq!(failure.rank, Some(3));
}

#[test]
fn silence_is_of_joined_ranks_only() {
    let start = Instant::now();
    let mut state = NodeState::new(1..4, 4, false);
    state.join(hello(1), start).unwrap();
    state.join(hello(2), start).unwrap();
    let beat = |rank| pb::HeartbeatRequest { rank, progress: 5, ..Default::default() };
    state.heartbeat(beat(1), start + Duration::from_secs(9)).unwrap();
    assert_eq!(text(state.heartbeat(beat(3), start)), "rank 3 has not joined the job");
    let (now, limit) = (start + Duration::from_secs(11), Duration::from_secs(10));
    assert_eq!(state.silent(now, limit), [Silence { rank: 2, since: now - start, progress: 0 }]);
    state.leave(2);
    state.heartbeat(beat(2), now).unwrap();
    assert_eq!(state.silent(now + limit, limit).iter().map(|s| s.rank).collect::<Vec<_>>(), [1]);
    // Only the first goodbye of a rank counts.
    state.leave(2);
    state.leave(1);
    assert_eq!(state.departures(), [2, 1]);
}

#[test]
fn a_rank_tells_once_for_whom_it_has_waited_in_vain() {
    let mut state = NodeState::new(1..4, 4, false);
    let mut note = |rank, missing| state.note_missing(pb::NoteMissingRequest { rank, missing, link: false });
    note(2, 3).unwrap();
    note(2, 1).unwrap();
    note(1, 4).unwrap();
    note(3, 3).unwrap();
    assert!(text(note(4, 1)).contains("rank 4 is out of range"));
    let missing = [1, 2, 3].map(|rank| state.missing(rank).map(|m| m.rank));
    assert_eq!(missing, [None, Some(3), None], "rank 4 is not of this world, and nobody waits for itself");
}

#[test]
fn a_rank_that_ends_before_anybody_joins_keeps_nobody_from_joining() {
    let mut state = NodeState::new(0..3, 3, false);
    state.gone(1, "rank 1 (pid 5) exited with code 0");
    state.take_up();
    state.join(hello(0), Instant::now()).unwrap();
    let sent = state.take_up();
    assert!(matches!(sent.as_slice(), [pb::Up { item: Some(Item::Join(_)) }]), "{sent:?}");
    // Who runs and is not heard is told of; who has ended is not.
    let absent = |rank| Absent { rank, since: Duration::from_secs(3), clocks: [Duration::from_secs(1); 2] };
    state.note_absent((1..3).map(absent).collect());
    let [pb::Up { item: Some(Item::Beat(beat)) }] = &state.take_up()[..] else { panic!("no beat") };
    let told: Vec<_> = beat.ranks.iter().map(|b| (b.rank, b.absent, b.last_ms, b.cpu_ms)).collect();
    assert_eq!(told, [(2, true, 3000, 1000)]);
}

#[test]
fn names_sizes_and_members_are_checked_here() {
    let mut state = joined(true);
    assert_eq!(text(state.get(String::new(), true)), "a key or barrier name has 1 to 1024 bytes, not 0");
    assert!(text(state.get("k".repeat(1025), false)).ends_with("not 1025"));
    let event = |rank, topic: &str, bytes| pb::NodeEvent { rank, topic: topic.into(), text: "x".repeat(bytes) };
    assert_eq!(text(state.publish(event(Some(4), "loss", 1))), "rank 4 is out of range: the world has 4 ranks");
    assert_eq!(text(state.publish(event(Some(2), "", 1))), "a topic has 1 to 256 bytes, not 0");
    assert_eq!(
        text(state.publish(event(Some(2), "loss", 65_537))),
        "what is published as \"loss\" has 65537 bytes, more than 65536"
    );
    assert!(ups(&mut state).is_empty());
    state.publish(event(Some(2), "loss", 65_536)).unwrap();
    assert!(matches!(&ups(&mut state)[..], [Item::Event(_)]));
    let mut absent = NodeState::new(0..2, 2, false);
    assert_eq!(text(absent.publish(event(Some(1), "loss", 1))), "rank 1 has not joined the job");
}

#[test]
fn what_the_root_asks_travels_with_a_heartbeat() {
    let mut state = joined(true);
    let beat = pb::HeartbeatRequest { rank: 3, ..Default::default() };
    let interval = pb::Interval { after: 4, to: 9 };
    let wanted = pb::HeartbeatReply { ask: Some(interval), links: vec![5, 7], asked: 2, ..Default::default() };
    state.ask(pb::Ask { rank: 3, interval: Some(interval), links: vec![7], asked: 2 });
    state.ask(pb::Ask { rank: 3, interval: None, links: vec![5, 7], asked: 1 });
    assert_eq!(state.heartbeat(beat.clone(), Instant::now()).unwrap(), wanted);
    assert_eq!(state.heartbeat(beat, Instant::now()).unwrap(), pb::HeartbeatReply::default());
}

#[test]
fn a_rank_is_asked_for_glimpses_while_somebody_watches() {
    let mut state = joined(true);
    let now = Instant::now();
    let beat = || pb::HeartbeatRequest {
        rank: 2,
        progress: 7,
        last: Some(pb::OpRecord { op: "relu".into(), ..Default::default() }),
        glimpse: Some(pb::Glimpse { rank: 3, steps: 5, ..Default::default() }),
        ..Default::default()
    };
    let glimpses = |state: &mut NodeState| -> Vec<pb::Glimpse> {
        ups(state).into_iter().filter_map(|item| if let Item::Glimpse(g) = item { Some(g) } else { None }).collect()
    };
    assert!(!state.heartbeat(beat(), now).unwrap().watched);
    assert_eq!(glimpses(&mut state), []);
    state.watch(true);
    assert!(state.heartbeat(beat(), now).unwrap().watched);
    let seen = glimpses(&mut state);
    // The rank is that of the beat, and what the beat tells is not sent twice.
    assert_eq!((seen[0].rank, seen[0].steps, seen[0].last.as_ref().map(|o| o.op.as_str())), (2, 5, Some("relu")));
    state.watch(false);
    assert!(!state.heartbeat(beat(), now).unwrap().watched);
    assert_eq!(glimpses(&mut state), []);
}
