use super::*;

const MS: Duration = Duration::from_millis(1);

/// Two ranks on two hosts and their clock.
struct Pair {
    transit: Transit,
    now: Instant,
    /// By rank: what it has been asked last.
    asked: [u64; 2],
    found: Vec<(u64, Finding)>,
    start: Instant,
}

/// What a rank's end counts.
#[derive(Clone, Copy, Default)]
struct Counts {
    sent: u64,
    quiet: u64,
    received: u64,
    looks: u64,
    queued: u64,
}

impl Pair {
    fn new() -> Pair {
        Pair::that_survives(Duration::from_secs(1))
    }

    fn that_survives(limit: Duration) -> Pair {
        let now = Instant::now();
        let transit = Transit::new(Outage::of(limit).unwrap());
        Pair { transit, now, asked: [0; 2], found: vec![], start: now }
    }

    /// A beat of a rank that waits for the other, or computes, at that time.
    fn beat(&mut self, rank: u32, waits: bool, c: Counts) {
        let asked = self.asked[rank as usize];
        self.beat_that_knows(rank, waits, c, asked);
    }

    fn beat_that_knows(&mut self, rank: u32, waits: bool, c: Counts, asked: u64) {
        let peer = 1 - rank;
        let call = "all_reduce of 'sum' #5 (train.rs:9)".to_string();
        let wait = waits.then(|| pb::Wait { ranks: vec![peer], call, since_ms: 2000 });
        let end = pb::LinkEnd { peer, sent: c.sent, sent_ms: c.quiet, received: c.received, looks: c.looks };
        let beat =
            pb::HeartbeatRequest { rank, wait, links: vec![end], asked, queued_ms: c.queued, ..Default::default() };
        self.transit.beat(&beat, self.now);
        let at = (self.now - self.start).as_millis() as u64;
        let name = |rank: usize| format!("rank {rank} on host{rank}");
        self.found.extend(self.transit.look(self.now, name).into_iter().map(|f| (at, f)));
        for ask in self.transit.take_asks() {
            assert_eq!(ask.links, [1 - ask.rank]);
            let asked = &mut self.asked[ask.rank as usize];
            *asked = (*asked).max(ask.asked);
        }
    }

    /// Four beats of each rank a second, for so long; the counts by rank and milliseconds.
    fn run(&mut self, seconds: u64, waits: [bool; 2], counts: impl Fn(usize, u64) -> Counts) {
        for step in 0..seconds * 4 {
            for rank in 0..2 {
                self.beat(rank, waits[rank as usize], counts(rank as usize, step * 250));
            }
            self.now += 250 * MS;
        }
    }
}

/// Rank 0 has sent 1000 bytes at the beginning, rank 1 has got 400 of them and looks for the rest.
fn held_back(rank: usize, ms: u64) -> Counts {
    match rank {
        0 => Counts { sent: 1000, quiet: ms, received: 500, looks: ms / 250, ..Counts::default() },
        _ => Counts { sent: 500, quiet: ms, received: 400, looks: ms / 250, ..Counts::default() },
    }
}

#[test]
fn bytes_that_do_not_come_are_a_lost_link_within_four_seconds() {
    for sender_waits in [true, false] {
        let mut pair = Pair::new();
        pair.run(10, [sender_waits, true], held_back);
        let (at, Finding::Failure(failure)) = &pair.found[0] else { panic!("{:?}", pair.found) };
        assert!((3000..=4000).contains(at), "{at}");
        assert_eq!((failure.kind, failure.rank), (FailureKind::LinkLost, None));
        assert_eq!(
            failure.message,
            "the link from rank 0 on host0 to rank 1 on host1 is lost: 600 bytes sent by rank 0 have not arrived after 3.0 s, although rank 1 waits for them, in all_reduce of 'sum' #5 (train.rs:9)"
        );
        assert_eq!(failure.places[0].rank, 1);
    }
}

#[test]
fn signs_of_life_that_do_not_come_either_change_nothing() {
    // A rank that waits sends one a second: its last bytes are always young.
    let mut pair = Pair::new();
    pair.run(10, [true, true], |rank, ms| match rank {
        0 => Counts { sent: 1000 + ms / 1000 * 64, quiet: ms % 1000, ..held_back(0, ms) },
        _ => held_back(1, ms),
    });
    let (at, Finding::Failure(failure)) = &pair.found[0] else { panic!("{:?}", pair.found) };
    assert!((3000..=4000).contains(at), "{at}");
    assert!(failure.message.contains("is lost: 600 bytes sent by rank 0 have not arrived"), "{failure}");
}

#[test]
fn a_rank_that_does_not_look_is_not_behind_a_lost_link() {
    // Stopped, starved of its processor, or computing: it may have looked long ago, but not after it was asked.
    for looks in [0, 1, 5, 1000] {
        let mut pair = Pair::new();
        pair.run(600, [true, true], |rank, ms| match rank {
            1 => Counts { looks, ..held_back(1, ms) },
            _ => held_back(0, ms),
        });
        assert!(pair.found.is_empty(), "{looks}: {:?}", pair.found);
    }
    // It looks once in two seconds, and then what came meanwhile is there.
    let mut pair = Pair::new();
    pair.run(600, [true, true], |rank, ms| match rank {
        1 => Counts { looks: ms / 2000 % 3, received: 400 + ms / 6000, ..held_back(1, ms) },
        _ => Counts { sent: u64::MAX, ..held_back(0, ms) },
    });
    assert!(!pair.found.iter().any(|(_, f)| matches!(f, Finding::Failure(_))), "{:?}", pair.found);
}

#[test]
fn a_rank_that_sends_nothing_is_not_behind_a_lost_link() {
    let mut pair = Pair::new();
    pair.run(600, [false, true], |rank, ms| match rank {
        0 => Counts { sent: 400, ..held_back(0, ms) },
        _ => held_back(1, ms),
    });
    // It sends now and then, and each time that arrives.
    pair.run(600, [false, true], |rank, ms| {
        let steps = ms / 5000;
        match rank {
            0 => Counts { sent: 400 + steps, quiet: ms % 5000, received: 500, ..Counts::default() },
            _ => Counts { received: 400 + steps, looks: ms % 5000 / 250, sent: 500, ..Counts::default() },
        }
    });
    assert!(pair.found.is_empty(), "{:?}", pair.found);
}

#[test]
fn old_news_of_the_reader_do_not_count() {
    // Its beats come, but they were made before it was asked.
    let mut pair = Pair::new();
    for step in 0..2000 {
        let ms = step * 250;
        pair.beat(0, true, held_back(0, ms));
        pair.beat_that_knows(1, true, held_back(1, ms), 0);
        pair.now += 250 * MS;
    }
    assert!(pair.found.is_empty(), "{:?}", pair.found);
    // And those of the sender are true for ever: it may be silent after the first.
    let mut pair = Pair::new();
    pair.beat(0, false, held_back(0, 2000));
    for step in 0..20 {
        pair.beat(1, true, held_back(1, step * 250));
        pair.now += 250 * MS;
    }
    assert!(matches!(pair.found[..], [(_, Finding::Failure(_)), ..]), "{:?}", pair.found);
}

#[test]
fn a_link_that_creeps_is_warned_of_once_with_its_rate() {
    let mut pair = Pair::new();
    let creeps = |rank: usize, ms: u64| match rank {
        0 => Counts { sent: 10 << 20, quiet: ms, received: 500, looks: ms / 250, ..Counts::default() },
        _ => Counts { sent: 500, quiet: ms, received: ms * 10, looks: 0, ..Counts::default() },
    };
    pair.run(60, [true, true], creeps);
    let [(at, Finding::Warning(text))] = &pair.found[..] else { panic!("{:?}", pair.found) };
    assert!(*at <= 6500, "{at}");
    assert_eq!(
        text,
        "the link from rank 0 on host0 to rank 1 on host1 is slow: 9.8 KiB/s in 4 s in which rank 1 has waited for more, in all_reduce of 'sum' #5 (train.rs:9)"
    );
    // Not of one whose reader gets no processor, does not wait, or that is as fast as links are.
    let mut pair = Pair::new();
    pair.run(60, [true, true], |rank, ms| Counts { queued: ms * 9 / 10, ..creeps(rank, ms) });
    pair.run(60, [true, false], creeps);
    let fast = |rank: usize, ms: u64| match rank {
        0 => Counts { sent: ms * 4096, ..creeps(0, ms) },
        _ => Counts { received: ms.saturating_sub(2000) * 4096, ..creeps(1, ms) },
    };
    pair.run(60, [true, true], fast);
    assert!(pair.found.is_empty(), "{:?}", pair.found);
}

#[test]
fn any_numbers_are_survived_and_who_has_left_is_forgotten() {
    let mut state = 7u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    let mut transit = Transit::new(Outage::default());
    let mut now = Instant::now();
    for _ in 0..20_000 {
        let [sent, sent_ms, received, looks, asked, queued_ms] =
            std::array::from_fn(|_| [0, 1, 2, 1500, u64::MAX - 1, u64::MAX][below(6) as usize]);
        let (rank, peer) = (below(3) as u32, below(4) as u32);
        let wait = pb::Wait { ranks: vec![peer], call: "?".into(), since_ms: sent_ms };
        let beat = pb::HeartbeatRequest {
            rank,
            wait: (below(2) == 0).then_some(wait),
            links: vec![pb::LinkEnd { peer, sent, sent_ms, received, looks }],
            asked,
            queued_ms,
            ..Default::default()
        };
        transit.beat(&beat, now);
        now += 100 * MS;
        let _any = (transit.look(now, |r| r.to_string()), transit.take_asks());
    }
    (0..4).for_each(|rank| transit.left(rank));
    assert!(transit.ends.is_empty() && transit.suspects.is_empty() && transit.paces.is_empty());
}

#[test]
fn a_link_that_pauses_is_not_lost() {
    let mut pair = Pair::new();
    // All was sent long ago; a byte comes every two and a half seconds, and in between rank 1 looks in vain.
    pair.run(60, [false, true], |rank, ms| match rank {
        0 => Counts { sent: 1000, quiet: 60_000 + ms, received: 500, ..Counts::default() },
        _ => Counts { sent: 500, quiet: ms, received: 400 + ms / 2500, looks: ms % 2500 / 250, ..Counts::default() },
    });
    assert!(!pair.found.iter().any(|(_, f)| matches!(f, Finding::Failure(_))), "{:?}", pair.found);
}

#[test]
fn an_outage_is_told_and_survived() {
    let mut pair = Pair::that_survives(Duration::from_secs(10));
    let outage = |seconds: u64| {
        move |rank: usize, ms: u64| match rank {
            1 if ms > seconds * 1000 => Counts { received: 1000, ..held_back(1, ms) },
            _ => held_back(rank, ms),
        }
    };
    pair.run(20, [false, true], outage(9));
    let [(at, Finding::Warning(text))] = &pair.found[..] else { panic!("{:?}", pair.found) };
    assert!((3000..=4000).contains(at), "{at}");
    let start = "the link from rank 0 on host0 to rank 1 on host1 has been silent for 3.0 s: 600 bytes sent by rank 0 have not arrived";
    assert!(text.starts_with(start) && text.ends_with("; the job waits up to 10 s (--outage-limit)"), "{text}");
    // One that lasts ends the job.
    let mut pair = Pair::that_survives(Duration::from_secs(10));
    pair.run(40, [false, true], outage(30));
    let [_, (at, Finding::Failure(failure)), ..] = &pair.found[..] else { panic!("{:?}", pair.found) };
    assert!((12_000..=23_000).contains(at), "{at}");
    assert!(failure.message.contains(" is lost: 600 bytes sent by rank 0 have not arrived after "), "{failure}");
}
