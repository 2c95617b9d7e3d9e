use super::*;
use proptest::prelude::*;

/// A simulated rank: its ops as lines, hashed in a chain.
struct Sim {
    rank: usize,
    ops: Vec<u32>,
    marks: Marks,
    told: u64,
    hashes: Vec<u64>,
    /// Records that are still there.
    keeps: usize,
}

impl Sim {
    fn new(rank: usize) -> Sim {
        Sim { rank, ops: vec![], marks: Marks::default(), told: 0, hashes: vec![0], keeps: 1000 }
    }
    fn issue(&mut self, line: u32) {
        self.ops.push(line);
        let hash = (self.hashes.last().unwrap().rotate_left(5) ^ u64::from(line)).wrapping_mul(0xf135_7aea_2e62_a9c5);
        self.hashes.push(hash);
        self.marks.note(self.ops.len() as u64, hash);
    }
    fn op(&self, ordinal: u64) -> pb::OpRecord {
        let line = self.ops[ordinal as usize - 1];
        let call = format!("op{line}(f32[4] [B])");
        pb::OpRecord {
            ordinal,
            hash: self.hashes[ordinal as usize],
            op: format!("op{line}"),
            file: "train.rs".into(),
            line,
            call,
        }
    }
    fn beat(&mut self, ask: Option<pb::Interval>) -> pb::HeartbeatRequest {
        let marks = self.marks.after(self.told);
        self.told = self.ops.len() as u64;
        let oldest = self.ops.len().saturating_sub(self.keeps) as u64;
        let records = ask.map(|of| pb::Records {
            of: Some(of),
            ops: (of.after.max(oldest) + 1..=of.to.min(self.told)).map(|o| self.op(o)).collect(),
        });
        pb::HeartbeatRequest {
            rank: self.rank as u32,
            progress: self.told,
            marks: marks.into_iter().map(|(ordinal, hash)| pb::Mark { ordinal, hash }).collect(),
            records,
            ..Default::default()
        }
    }
}

/// Beats until there is a verdict, answering what is asked.
fn settle(streams: &mut Streams, sims: &mut [Sim], now: Instant) -> Option<Failure> {
    for _ in 0..3 {
        for sim in sims.iter_mut() {
            streams.beat(&sim.beat(None), now);
        }
        for (rank, interval) in streams.asks() {
            let sim = sims.iter_mut().find(|s| s.rank == rank).unwrap();
            streams.beat(&sim.beat(Some(interval)), now);
        }
        if let Some(found) = streams.verdict(now) {
            return Some(found);
        }
    }
    streams.verdict(now + PATIENCE)
}

#[test]
fn a_skipped_op_is_named_with_both_lines() {
    let mut sims = [Sim::new(0), Sim::new(1), Sim::new(2)];
    for line in 1..=100 {
        for sim in &mut sims {
            if (sim.rank, line) != (1, 77) {
                sim.issue(line);
            }
        }
    }
    let failure = settle(&mut Streams::default(), &mut sims, Instant::now()).unwrap();
    assert_eq!((failure.rank, failure.kind), (Some(1), FailureKind::Diverged));
    let at = |rank: usize| failure.places.iter().find(|p| p.rank == rank).map(|p| (p.ordinal, p.line));
    let [Some((77, a)), Some((77, b))] = [at(1), at(0).or(at(2))] else { panic!("{failure:?}") };
    assert_eq!((a, b), (78, 77));
    assert!(failure.message.contains("rank 1 ") && failure.message.contains("(train.rs:77)"), "{failure}");
    assert!(failure.message.contains("issued different ops: rank "), "{failure}");
}

#[test]
fn where_records_are_lost_the_interval_is_told() {
    let mut sims = [Sim::new(0), Sim::new(1)];
    for line in 1..=5000 {
        for sim in &mut sims {
            sim.keeps = 10;
            sim.issue(if (sim.rank, line) == (1, 1000) { 9999 } else { line });
        }
    }
    let mut streams = Streams::default();
    let failure = settle(&mut streams, &mut sims, Instant::now()).unwrap();
    assert!(failure.message.contains("somewhere after op #"), "{failure}");
    let numbers: Vec<u64> =
        failure.message.split('#').skip(1).filter_map(|t| t.split([',', ';']).next()?.parse().ok()).collect();
    assert!(numbers[0] < 1000 && numbers[1] >= 1000, "{failure}");
}

#[test]
fn what_ranks_noticed_stands_if_it_is_the_first_difference_and_gives_way_if_not() {
    let noticed = |ordinal: u64, lines: [u32; 2]| {
        let place = |rank: usize| Place {
            rank,
            op: format!("op{}", lines[rank]),
            ordinal,
            file: "train.rs".into(),
            line: lines[rank],
        };
        Failure::of_rank(0, FailureKind::Diverged, "they met").in_places([place(0), place(1)])
    };
    let mut sims = [Sim::new(0), Sim::new(1)];
    sims[0].issue(1);
    sims[1].issue(2);
    let mut streams = Streams::default();
    streams.noticed(noticed(1, [1, 2]), Instant::now()).unwrap();
    assert_eq!(settle(&mut streams, &mut sims, Instant::now()).unwrap().message, "they met");
    sims.iter_mut().for_each(|s| s.issue(3));
    let mut streams = Streams::default();
    streams.noticed(noticed(2, [3, 3]), Instant::now()).unwrap();
    let failure = settle(&mut streams, &mut sims, Instant::now()).unwrap();
    assert!(
        failure.message.contains("rank 0 issued 'op1' #1 (train.rs:1), rank 1 'op2' #1 (train.rs:2)\n"),
        "{failure}"
    );
    assert!(failure.message.contains("they noticed when rank 0 in 'op3' #2 (train.rs:3) met rank 1"), "{failure}");
    // Nothing came of the ranks: what they noticed is all there is.
    let mut streams = Streams::default();
    let now = Instant::now();
    streams.noticed(noticed(1, [1, 2]), now).unwrap();
    assert_eq!(streams.verdict(now), None);
    assert_eq!(streams.verdict(now + PATIENCE).unwrap().message, "they met");
    // Without two places there is nothing to look for.
    assert!(streams.noticed(Failure::of_rank(0, FailureKind::Diverged, "sizes"), now).is_err());
}

#[test]
fn an_op_before_the_first_is_none() {
    let mut streams = Streams::default();
    let now = Instant::now();
    for rank in 0..2 {
        let op = pb::OpRecord { ordinal: 0, hash: u64::from(rank), ..Default::default() };
        let mark = pb::Mark { ordinal: 1, hash: u64::from(rank) };
        let records = Some(pb::Records { of: None, ops: vec![op] });
        streams.beat(&pb::HeartbeatRequest { rank, records, marks: vec![mark], ..Default::default() }, now);
    }
    assert!(streams.verdict(now).is_none());
    let failure = streams.verdict(now + PATIENCE).unwrap();
    assert!(failure.message.contains("their records of it are lost"), "{failure}");
}

#[test]
fn calls_that_look_alike_say_so() {
    let mut sims = [Sim::new(0), Sim::new(1)];
    for sim in &mut sims {
        sim.issue(4);
    }
    sims[1].hashes[1] ^= 1;
    let hash = sims[1].hashes[1];
    sims[1].marks.note(1, hash);
    let failure = settle(&mut Streams::default(), &mut sims, Instant::now()).unwrap();
    assert!(failure.message.contains("rank 0 issued op4(f32[4] [B]) #1 (train.rs:4), rank 1 op4("), "{failure}");
    assert!(failure.message.contains("differ in an attribute or in a value"), "{failure}");
}

proptest! {
    /// Ranks that issue the same are never suspected, however they are scheduled and however far they run ahead.
    #[test]
    fn never_a_false_alarm(steps in prop::collection::vec((0usize..4, 1u32..300, any::<bool>()), 1..200)) {
        let mut sims: Vec<Sim> = (0..4).map(Sim::new).collect();
        let (mut streams, now) = (Streams::default(), Instant::now());
        for (rank, n, beats) in steps {
            for _ in 0..n {
                let line = sims[rank].ops.len() as u32 % 97;
                sims[rank].issue(line);
            }
            if beats {
                streams.beat(&sims[rank].beat(None), now);
            }
        }
        prop_assert!(settle(&mut streams, &mut sims, now).is_none());
        prop_assert!(streams.asks().is_empty());
    }

    /// One difference anywhere is found among ranks that are close together, and named exactly where the records are there.
    #[test]
    fn every_difference_is_found(n in 1u32..900, at in 0u32..900, ahead in 0u32..4, odd in 0usize..3) {
        let at = at % n + 1;
        let mut sims: Vec<Sim> = (0..3).map(Sim::new).collect();
        for sim in &mut sims {
            for line in 1..=n + ahead * sim.rank as u32 {
                sim.issue(if sim.rank == odd && line == at { 7777 } else { line });
            }
        }
        let failure = settle(&mut Streams::default(), &mut sims, Instant::now()).unwrap();
        prop_assert_eq!(failure.rank, Some(odd));
        prop_assert!(failure.places.iter().all(|p| p.ordinal == u64::from(at)), "{}", failure);
        prop_assert!(failure.places.iter().any(|p| p.rank == odd && p.line == 7777), "{}", failure);
    }
}
