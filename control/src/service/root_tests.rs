use super::*;

fn hello(host: &str, nproc: u32, nodes: RangeInclusive<usize>) -> pb::NodeHello {
    pb::NodeHello {
        version: "1.0".into(),
        host: host.into(),
        nproc,
        node_rank: None,
        program: 7,
        min_nodes: *nodes.start() as u32,
        max_nodes: *nodes.end() as u32,
        instance: 0,
        outage_ms: 10_000,
    }
}

/// A job and its clock.
struct Job {
    root: RootState,
    now: Instant,
    nodes: RangeInclusive<usize>,
}

impl Job {
    fn new(nodes: RangeInclusive<usize>, max_restarts: u32) -> Job {
        let plan = JobOptions {
            nodes: nodes.clone(),
            max_restarts,
            cost_model: b"m".to_vec(),
            settle: Duration::from_secs(5),
            gather: Duration::from_secs(600),
            stall: Duration::from_secs(300),
            outage: Outage::of(Duration::from_secs(1)).unwrap(),
        };
        let now = Instant::now();
        let own = pb::NodeHello { node_rank: Some(0), ..hello("a", 2, nodes.clone()) };
        Job { root: RootState::new(plan, own, now), now, nodes }
    }

    /// With hosts a, b and c of 2, 1 and 3 ranks.
    fn of_three(max_restarts: u32, least: usize) -> Job {
        let mut job = Job::new(least..=3, max_restarts);
        job.come(1, "b", 1).unwrap();
        job.come(2, "c", 3).unwrap();
        job.out();
        job
    }

    fn come(&mut self, id: u64, host: &str, nproc: u32) -> Result<(), Status> {
        self.root.arrive(id, hello(host, nproc, self.nodes.clone()), self.now)
    }

    fn out(&mut self) -> Vec<(u64, Down)> {
        self.root.take_out().into_iter().filter_map(|(id, down)| Some((id, down.item?))).collect()
    }

    fn up(&mut self, id: u64, item: Up) {
        self.root.handle(id, item, self.now).unwrap();
    }

    fn fail(&mut self, id: u64, rank: usize, kind: FailureKind, code: u32) {
        let failure = Failure::of_rank(rank, kind, format!("rank {rank} failed")).to_json().into_bytes();
        self.up(id, Up::Fail(pb::NodeFail { failure, code: Some(code), r#final: false }));
    }

    fn pass(&mut self, time: Duration) {
        // In steps, as the clock does; the others are heard meanwhile.
        let until = self.now + time;
        while self.now < until {
            self.now += Duration::from_millis(50);
            self.root.nodes.values_mut().for_each(|n| n.heard = self.now);
            self.root.tick(self.now);
        }
    }

    /// The message of the failure that all were told of, and to whom.
    fn failed(&mut self) -> Option<(String, bool, Vec<u64>)> {
        let mut told: Option<(String, bool, Vec<u64>)> = None;
        for (id, item) in self.out() {
            // What a lost host is told it may never hear.
            if let Down::Failed(failed) = item
                && self.root.nodes.contains_key(&id)
            {
                let failure: Failure = serde_json::from_slice(&failed.failure).unwrap();
                told.get_or_insert((failure.message, failed.restarts, vec![])).2.push(id);
            }
        }
        told
    }

    fn over(&mut self) -> Option<u32> {
        self.out().into_iter().find_map(|(_, item)| if let Down::Over(code) = item { Some(code) } else { None })
    }
}

fn parts(out: Vec<(u64, Down)>) -> Vec<(u64, u32, u32, u32)> {
    out.into_iter()
        .filter_map(|(id, item)| match item {
            Down::Begin(b) => Some((id, b.node, b.first_rank, b.world)),
            _ => None,
        })
        .collect()
}

fn message(result: Result<(), Status>) -> String {
    result.unwrap_err().message().to_string()
}

#[test]
fn the_job_begins_when_all_hosts_are_there_in_any_order() {
    let mut job = Job::new(3..=3, 0);
    let wanting = pb::NodeHello { node_rank: Some(1), ..hello("late", 4, 3..=3) };
    job.come(1, "b", 1).unwrap();
    assert!(job.out().is_empty());
    job.root.arrive(2, wanting, job.now).unwrap();
    assert_eq!(parts(job.out()), [(0, 0, 0, 7), (2, 1, 2, 7), (1, 2, 6, 7)]);
    assert_eq!(message(job.come(3, "d", 1)), "the job runs already, with 3 hosts");
    let mut alone = Job::new(1..=1, 0);
    assert_eq!(parts(alone.out()), [(0, 0, 0, 2)]);
}

#[test]
fn a_host_that_does_not_fit_is_refused_and_both_are_named() {
    let mut job = Job::new(3..=3, 0);
    let good = hello("b", 1, 3..=3);
    for (other, text) in [
        (pb::NodeHello { version: "1.1".into(), ..good.clone() }, "node 0 (a) runs oflow 1.0, b runs oflow 1.1"),
        (
            pb::NodeHello { program: 8, ..good.clone() },
            "node 0 (a) has program 0000000000000007, b has 0000000000000008: they are different builds of the program",
        ),
        (
            pb::NodeHello { outage_ms: 2500, ..good.clone() },
            "node 0 (a) survives outages of 10 s, b of 2.5 s: give all the same --outage-limit",
        ),
        (hello("b", 1, 2..=3), "node 0 (a) was started for 3 hosts, b for 2:3: give all the same --nnodes"),
        (
            pb::NodeHello { node_rank: Some(3), ..good.clone() },
            "b was started as node 3, but the job has 3 hosts, from 0",
        ),
        (pb::NodeHello { node_rank: Some(0), ..good.clone() }, "a is node 0 already; b was started as that too"),
        (hello("b", 0, 3..=3), "b brings 0 ranks; a job has 1 to 1048576"),
    ] {
        assert_eq!(message(job.root.arrive(9, other, job.now)), text);
    }
    job.root.arrive(1, good, job.now).unwrap();
}

#[test]
fn with_a_range_it_begins_with_fewer_after_a_while() {
    let mut job = Job::new(2..=4, 0);
    job.pass(Duration::from_secs(20));
    assert!(parts(job.out()).is_empty(), "one is not enough");
    job.come(1, "b", 1).unwrap();
    job.pass(Duration::from_secs(4));
    job.come(2, "c", 1).unwrap();
    job.pass(Duration::from_secs(4));
    assert!(job.out().is_empty(), "one more may come");
    job.pass(Duration::from_secs(1));
    assert_eq!(parts(job.out()).len(), 3);
}

#[test]
fn ranks_of_different_registries_fail_the_job() {
    let mut job = Job::of_three(0, 3);
    let join = |rank, registry_hash| {
        let hello = pb::JoinRequest { rank, version: "1".into(), registry_hash, program_hash: u64::from(rank) };
        Up::Join(pb::NodeJoin { ticket: 1, hello: Some(hello) })
    };
    job.up(0, join(0, 1));
    // The program's hash is of one host's file; the agents have compared contents.
    job.up(1, join(2, 1));
    assert!(job.out().iter().all(|(_, i)| matches!(i, Down::Answer(a) if a.answer == Some(Answer::Done(true)))));
    job.up(2, join(3, 2));
    let (text, _, told) = job.failed().unwrap();
    assert!(text.starts_with("rank 0 has op registry 0000000000000001, rank 3 has 0000000000000002"), "{text}");
    assert_eq!(told, [0, 1, 2]);
}

#[test]
fn the_cause_wins_over_its_consequences() {
    // The kill is told after what it caused, by another host.
    let mut job = Job::of_three(0, 3);
    job.fail(2, 4, FailureKind::LinkLost, 1);
    job.fail(1, 2, FailureKind::Error, 1);
    job.fail(0, 1, FailureKind::Killed, 137);
    assert_eq!(job.failed(), None, "not decided yet");
    job.pass(Duration::from_millis(150));
    assert_eq!(job.failed().unwrap(), ("rank 1 failed".into(), false, vec![0, 1, 2]));
    // Of two that failed by themselves the one that said goodbye first, although it was told later.
    let mut job = Job::of_three(0, 3);
    job.up(0, Up::Left(1));
    job.up(1, Up::Left(2));
    job.fail(1, 2, FailureKind::Error, 1);
    job.pass(Duration::from_millis(300));
    assert_eq!(job.failed(), None, "rank 1 said goodbye first and has not ended yet");
    job.fail(0, 1, FailureKind::Error, 3);
    job.pass(Duration::from_millis(100));
    assert_eq!(job.failed().unwrap().0, "rank 1 failed");
    for id in 0..3 {
        job.up(id, Up::Done(1));
    }
    assert_eq!(job.over(), Some(3));
}

#[test]
fn the_code_may_come_with_the_end() {
    let mut job = Job::of_three(0, 3);
    let failure = Failure::of_rank(2, FailureKind::Error, "told").to_json().into_bytes();
    job.up(1, Up::Fail(pb::NodeFail { failure, code: None, r#final: false }));
    job.pass(Duration::from_millis(150));
    assert_eq!(job.failed().unwrap().0, "told");
    job.up(0, Up::Done(1));
    job.up(1, Up::Done(9));
    assert_eq!(job.over(), None);
    job.up(2, Up::Done(143));
    assert_eq!(job.over(), Some(9));
}

#[test]
fn a_lost_host_is_named_and_ends_the_job() {
    let mut job = Job::of_three(0, 3);
    job.root.lost(2, "its connection has ended", job.now);
    job.pass(Duration::from_millis(150));
    assert_eq!(job.failed().unwrap(), ("node 2 (c) is lost: its connection has ended".into(), false, vec![0, 1]));
    job.up(0, Up::Done(143));
    job.up(1, Up::Done(143));
    assert_eq!(job.over(), Some(1));
    // Silence is a loss, too, unless we have slept ourselves.
    let mut job = Job::of_three(0, 3);
    job.now += Duration::from_secs(60);
    job.root.tick(job.now);
    assert_eq!(job.failed(), None);
    for _ in 0..80 {
        job.now += Duration::from_millis(50);
        job.up(1, Up::Beat(pb::NodeBeat::default()));
        job.root.tick(job.now);
    }
    assert_eq!(job.failed().unwrap().0, "node 2 (c) is lost: nothing heard from it for 3 s");
}

#[test]
fn a_job_that_is_over_is_over_for_all() {
    let mut job = Job::of_three(0, 3);
    job.up(0, Up::Done(0));
    job.up(2, Up::Done(0));
    assert_eq!(job.over(), None);
    job.up(1, Up::Done(0));
    assert_eq!(job.over(), Some(0));
    job.root.lost(1, "it ended", job.now);
    job.pass(Duration::from_secs(1));
    assert_eq!(job.failed(), None, "it may");
}

#[test]
fn all_start_again_with_everything_fresh() {
    let mut job = Job::of_three(1, 3);
    job.up(1, Up::Put(pb::NodePut { ticket: 1, key: "k".into(), value: vec![] }));
    job.fail(1, 2, FailureKind::Killed, 137);
    job.pass(Duration::from_millis(150));
    assert!(job.failed().unwrap().1, "restarts");
    for id in 0..3 {
        job.up(id, Up::Done(137));
    }
    let out = job.out();
    assert!(out.iter().all(|(_, i)| matches!(i, Down::Begin(b) if b.restart == 1)), "{out:?}");
    assert_eq!(parts(out).len(), 3);
    assert_eq!(job.root.value("k"), None);
    // No more of them.
    job.fail(1, 2, FailureKind::Killed, 137);
    job.pass(Duration::from_millis(150));
    assert!(!job.failed().unwrap().1);
    for id in 0..3 {
        job.up(id, Up::Done(1));
    }
    assert_eq!(job.over(), Some(137));
}

#[test]
fn fewer_hosts_go_on_where_that_is_allowed() {
    let mut job = Job::of_three(1, 2);
    job.root.lost(1, "gone", job.now);
    job.pass(Duration::from_millis(150));
    assert!(job.failed().unwrap().1);
    job.up(0, Up::Done(143));
    job.up(2, Up::Done(143));
    job.pass(Duration::from_secs(4));
    assert!(job.out().is_empty(), "another may come in its place");
    job.pass(Duration::from_secs(2));
    assert_eq!(parts(job.out()), [(0, 0, 0, 5), (2, 1, 2, 5)]);
    // Where all are needed, a lost one is waited for.
    let mut job = Job::of_three(1, 3);
    job.root.lost(1, "gone", job.now);
    job.pass(Duration::from_millis(150));
    assert!(job.failed().unwrap().1);
    job.up(0, Up::Done(143));
    job.up(2, Up::Done(143));
    job.pass(Duration::from_secs(60));
    assert!(parts(job.out()).is_empty() && job.over().is_none());
    job.come(7, "b", 1).unwrap();
    assert_eq!(parts(job.out()), [(0, 0, 0, 6), (2, 1, 2, 6), (7, 2, 5, 6)]);
    // Or another has come already.
    let mut job = Job::of_three(1, 3);
    job.come(7, "d", 1).unwrap();
    job.root.lost(1, "gone", job.now);
    job.pass(Duration::from_millis(150));
    assert!(job.failed().unwrap().1);
    job.up(0, Up::Done(143));
    job.up(2, Up::Done(143));
    assert_eq!(parts(job.out()).iter().map(|p| p.0).collect::<Vec<_>>(), [0, 2, 7]);
}

#[test]
fn who_interrupts_wants_the_end() {
    let mut job = Job::of_three(5, 3);
    let failure = Failure::of_job(FailureKind::Interrupted, "node 1 was ended").to_json().into_bytes();
    job.up(1, Up::Fail(pb::NodeFail { failure, code: Some(130), r#final: true }));
    job.pass(Duration::from_millis(150));
    assert!(!job.failed().unwrap().1);
    for id in 0..3 {
        job.up(id, Up::Done(130));
    }
    assert_eq!(job.over(), Some(130));
}

#[test]
fn a_host_speaks_for_its_own_ranks_only() {
    let mut job = Job::of_three(0, 3);
    for item in [
        Up::Left(0),
        Up::Gone(pb::NodeGone { rank: 6, how: String::new() }),
        Up::Arrive(pb::NodeArrive {
            name: "b".into(),
            participants: 6,
            arrivals: vec![pb::Arrival { ticket: 1, rank: 0, value: vec![] }],
            members: vec![],
        }),
    ] {
        let text = message(job.root.handle(1, item, job.now));
        assert!(text.starts_with("b sent a message about rank "), "{text}");
    }
    assert_eq!(message(job.root.handle(1, Up::Hello(hello("b", 1, 3..=3)), job.now)), "b said hello twice");
    let nonsense = Up::Fail(pb::NodeFail { failure: vec![0xff], code: None, r#final: false });
    assert!(message(job.root.handle(1, nonsense, job.now)).starts_with("b sent a failure that cannot be read"));
    assert_eq!(job.failed(), None);
}

#[test]
fn answers_go_to_each_host_in_one_item() {
    let mut job = Job::of_three(0, 3);
    for (id, ranks) in [(0, 0..2), (1, 2..3), (2, 3..6)] {
        let arrivals = ranks.map(|rank| pb::Arrival { ticket: rank.into(), rank, value: vec![rank as u8] }).collect();
        job.up(id, Up::Arrive(pb::NodeArrive { name: "b".into(), participants: 6, arrivals, members: vec![] }));
    }
    let out = job.out();
    let tickets: Vec<(u64, Vec<u64>)> = out
        .iter()
        .map(|(id, i)| (*id, if let Down::Answer(a) = i { a.tickets.clone() } else { panic!("{i:?}") }))
        .collect();
    assert_eq!(tickets, [(0, vec![0, 1]), (1, vec![2]), (2, vec![3, 4, 5])]);
}

fn notes(job: &mut Job) -> Vec<(u64, String)> {
    job.out()
        .into_iter()
        .filter_map(|(id, item)| if let Down::Note(text) = item { Some((id, text)) } else { None })
        .collect()
}

#[test]
fn who_waits_for_hosts_hears_for_whom_and_not_for_ever() {
    let mut job = Job::new(3..=3, 0);
    job.come(1, "b", 1).unwrap();
    job.pass(Duration::from_millis(9900));
    assert_eq!(notes(&mut job), []);
    job.pass(Duration::from_millis(200));
    let text = "waiting for 10 s: 2 of at least 3 hosts there (a, b)".to_string();
    assert_eq!(notes(&mut job), [(0, text.clone()), (1, text)]);
    job.pass(Duration::from_secs(59));
    assert_eq!(notes(&mut job), []);
    job.pass(Duration::from_secs(2));
    assert_eq!(notes(&mut job)[0].1, "waiting for 70 s: 2 of at least 3 hosts there (a, b)");
    job.pass(Duration::from_secs(530));
    let (told, restarts, to) = job.failed().unwrap();
    assert_eq!((restarts, to), (false, vec![0, 1]));
    assert_eq!(told, "after 600 s the job cannot start: 2 of at least 3 hosts there (a, b)");
    assert_eq!(message(job.come(2, "c", 3)), "the job is over");
}

#[test]
fn a_restart_that_waits_says_who_has_not_come_back() {
    let mut job = Job::of_three(1, 2);
    job.fail(0, 0, FailureKind::Exited, 5);
    job.pass(Duration::from_secs(1));
    assert!(job.failed().unwrap().1, "it is to start again");
    // Two of the three go while the last one still ends its ranks.
    job.up(0, Up::Done(5));
    job.up(1, Up::Done(5));
    job.root.lost(2, "its oflaunch has ended", job.now);
    assert!(matches!(job.root.phase, Phase::Gathering(_)));
    job.out();
    job.root.lost(1, "its oflaunch has ended", job.now);
    let text = "b has gone again (its oflaunch has ended); 1 of at least 2 hosts there (a); of those of the last start b, c has not come back";
    assert_eq!(notes(&mut job), [(0, text.to_string())]);
    job.pass(Duration::from_millis(10_100));
    assert!(notes(&mut job)[0].1.starts_with("waiting for 10 s: 1 of at least 2 hosts there (a); of those"));
    job.pass(Duration::from_secs(600));
    let (told, restarts, to) = job.failed().unwrap();
    assert!(told.starts_with("after 600 s the job cannot start: ") && !restarts && to == [0], "{told}");
    // Somebody comes in time in another job.
    let mut job = Job::of_three(1, 2);
    job.fail(0, 0, FailureKind::Exited, 5);
    job.pass(Duration::from_secs(1));
    job.up(0, Up::Done(5));
    job.up(1, Up::Done(5));
    job.root.lost(2, "gone", job.now);
    job.root.lost(1, "gone", job.now);
    job.out();
    job.come(7, "d", 1).unwrap();
    job.pass(Duration::from_secs(6));
    assert_eq!(parts(job.out()), [(0, 0, 0, 3), (7, 1, 2, 3)]);
}

#[test]
fn a_spare_host_is_told_what_it_waits_for() {
    let mut job = Job::of_three(1, 3);
    job.come(3, "d", 1).unwrap();
    let text = "the job runs on 3 hosts already; this host joins it at the next restart";
    assert_eq!(notes(&mut job), [(3, text.to_string())]);
    job.fail(0, 0, FailureKind::Exited, 5);
    job.pass(Duration::from_secs(1));
    for id in 0..3 {
        job.up(id, Up::Done(5));
    }
    // There is no further start in which it could take part.
    let out = job.out();
    assert!(out.contains(&(3, Down::Over(0))), "{out:?}");
    assert_eq!(parts(out).len(), 3);
}

#[test]
fn a_host_whose_first_attempt_was_lost_on_the_way_keeps_its_number() {
    let mut job = Job::new(3..=3, 0);
    let wants = |instance| pb::NodeHello { node_rank: Some(1), instance, ..hello("b", 1, 3..=3) };
    job.root.arrive(1, wants(77), job.now).unwrap();
    assert_eq!(message(job.root.arrive(2, wants(78), job.now)), "b is node 1 already; b was started as that too");
    job.root.arrive(3, wants(77), job.now).unwrap();
    assert_eq!(job.root.take_closed(), [1]);
    assert_eq!(job.root.handle(1, Up::Left(2), job.now).unwrap_err().message(), "this host counts as lost");
    job.come(4, "c", 3).unwrap();
    assert_eq!(parts(job.out()), [(0, 0, 0, 6), (3, 1, 2, 6), (4, 2, 3, 6)]);
    // Who has a part keeps it.
    assert_eq!(message(job.root.arrive(5, wants(77), job.now)), "b is node 1 already; b was started as that too");
    job.pass(Duration::from_secs(1));
    assert!(job.failed().is_none());
    job.root.handle(3, Up::Left(2), job.now).unwrap();
}

#[test]
fn nobody_takes_the_place_of_the_roots_own_host() {
    let now = Instant::now();
    let own = pb::NodeHello { node_rank: Some(0), instance: 77, ..hello("a", 2, 2..=2) };
    let Job { root, .. } = Job::new(2..=2, 0);
    let mut root = RootState::new(root.plan, own, now);
    root.arrive(1, pb::NodeHello { instance: 77, ..hello("b", 1, 2..=2) }, now).unwrap();
    assert_eq!(root.parts().count(), 2);
}

#[test]
fn a_silent_host_that_lives_hears_that_it_counts_as_lost() {
    let mut job = Job::of_three(0, 3);
    job.root.nodes.get_mut(&2).unwrap().heard = job.now - job.root.plan.outage.patience() - Duration::from_millis(1);
    job.root.tick(job.now);
    let told = job.out().into_iter().any(|(id, item)| id == 2 && matches!(item, Down::Failed(_)));
    assert!(told);
    assert_eq!(job.root.take_closed(), [2]);
}

#[test]
fn a_silent_host_is_named_while_the_job_waits_for_it() {
    let mut job = Job::of_three(0, 3);
    job.root.plan.outage = Outage::default();
    let silent_for = |job: &mut Job, seconds: u32| {
        for _ in 0..seconds * 20 {
            job.now += Duration::from_millis(50);
            job.up(1, Up::Beat(pb::NodeBeat::default()));
            job.root.tick(job.now);
        }
    };
    silent_for(&mut job, 2);
    assert_eq!(notes(&mut job), []);
    silent_for(&mut job, 7);
    let text = "node 2 (c) has been silent for 3 s: the network to it is out, or it stands still; the job waits up to 10 s for it \
                (--outage-limit)";
    assert_eq!(notes(&mut job), [(0, text.to_string()), (1, text.to_string())], "once, and not itself");
    job.up(2, Up::Beat(pb::NodeBeat::default()));
    assert_eq!(notes(&mut job), [0, 1].map(|id| (id, "node 2 (c) is heard again, after 9.0 s".to_string())));
    // The next silence is told, too, and ends the job where it lasts too long.
    silent_for(&mut job, 10);
    assert_eq!(notes(&mut job).len(), 2);
    assert_eq!(job.failed(), None);
    silent_for(&mut job, 13);
    let (text, ..) = job.failed().unwrap();
    assert!(text.starts_with("node 2 (c) is lost: nothing heard from it for "), "{text}");
}

#[test]
fn bytes_that_a_link_holds_back_end_the_job() {
    let mut job = Job::of_three(0, 3);
    let mut asked = [0; 3];
    for step in 0..20 {
        for (id, rank, peer) in [(0, 0, 2), (1, 2, 0)] {
            let (sent, received) = if rank == 0 { (1000, 500) } else { (500, 400) };
            let link = pb::LinkEnd { peer, sent, sent_ms: step * 250, received, looks: step };
            let call = "all_reduce of 'sum' #5 (train.rs:9)".to_string();
            let wait = pb::Wait { ranks: vec![peer], call, since_ms: step * 250 };
            let beat = pb::HeartbeatRequest {
                rank,
                wait: Some(wait),
                links: vec![link],
                asked: asked[rank as usize],
                ..Default::default()
            };
            job.up(id, Up::Beat(pb::NodeBeat { sent_ns: 0, ranks: vec![beat] }));
        }
        job.pass(Duration::from_millis(250));
        for (id, item) in job.out() {
            match item {
                Down::Ask(ask) => {
                    assert_eq!(id, u64::from(ask.rank / 2));
                    asked[ask.rank as usize] = ask.asked.max(asked[ask.rank as usize]);
                }
                Down::Failed(failed) => {
                    let failure: Failure = serde_json::from_slice(&failed.failure).unwrap();
                    assert_eq!(failure.kind, FailureKind::LinkLost);
                    let start =
                        "the link from rank 0 on a to rank 2 on b is lost: 600 bytes sent by rank 0 have not arrived";
                    assert!(failure.message.starts_with(start), "{failure}");
                    assert!((12..18).contains(&step), "after {step} quarters of a second");
                    return;
                }
                _ => {}
            }
        }
    }
    panic!("nothing was said");
}

#[test]
fn glimpses_are_collected_while_somebody_watches() {
    let mut job = Job::of_three(1, 3);
    let glimpse = |rank: u32| Up::Glimpse(pb::Glimpse { rank, steps: 4, ..Default::default() });
    job.up(1, glimpse(2));
    assert_eq!(job.root.sight(job.now).glimpses, []);
    job.root.show(true);
    job.root.show(true);
    let told = |out: Vec<(u64, Down)>| -> Vec<(u64, bool)> {
        out.into_iter().filter_map(|(id, d)| if let Down::Watched(on) = d { Some((id, on)) } else { None }).collect()
    };
    assert_eq!(told(job.out()), [(OWN, true), (1, true), (2, true)], "once");
    job.up(1, glimpse(2));
    job.up(2, Up::Left(4));
    let error = job.root.handle(1, glimpse(3), job.now).unwrap_err();
    assert!(error.message().contains("rank 3, which is not on that host"), "{error}");
    let sight = job.root.sight(job.now);
    assert_eq!(sight.glimpses.iter().map(|g| (g.rank, g.steps)).collect::<Vec<_>>(), [(2, 4)]);
    let hosts: Vec<_> = sight.hosts.iter().map(|h| (h.name.as_str(), h.ranks.clone())).collect();
    assert_eq!((hosts, sight.left), (vec![("a", 0..2), ("b", 2..3), ("c", 3..6)], vec![4]));
    assert_eq!(job.root.sight(job.now).glimpses, [], "taken once");
    // At the next start nobody has left, and the hosts are told again.
    job.fail(2, 5, FailureKind::Exited, 1);
    job.pass(Duration::from_secs(1));
    (0..3).for_each(|id| job.up(id, Up::Done(1)));
    assert_eq!(told(job.out()), [(OWN, true), (1, true), (2, true)]);
    assert_eq!(job.root.sight(job.now).left, Vec::<usize>::new());
    job.root.show(false);
    assert_eq!(told(job.out()), [(OWN, false), (1, false), (2, false)]);
}
