//! 100,000 random sequences of boxings over overlapping groups on a machine without buffering (`rendezvous.rs`), under
//! adversarial schedules: every one ends. And the machine sees what must not pass: a wrong order, one buffer too few.

use super::hosts::{HOSTS, lists, planner};
use super::oracle::mesh;
use super::ranks::{Boxing, Draws, Random};
use super::rendezvous::{Adversary, Machine, Op, Recording, Stop, record, record_on};
use oflow::boxing::Layout;
use oflow::comm::transport::SLOTS;
use oflow::host_hierarchy::one_phase_bytes;
use oflow::kernels::DType;
use oflow::sbp::NdSbp;

/// Distinct boxings recorded for each size of world and of buffers; sequences draw from them.
const POOL: usize = 1500;

/// Boxings of a world that move something, one by one and together.
fn pool(world: usize, capacity: usize, count: usize, rng: &mut Random) -> Vec<Recording> {
    let moves = |r: &Recording| r.ops.iter().any(|o| !o.is_empty());
    // One in four is a list of boxings that are carried out together.
    let all = std::iter::repeat_with(|| {
        let len = if rng.below(4) == 0 { 2 + rng.below(4) } else { 1 };
        let list: Vec<Boxing> = (0..len).map(|_| rng.boxing(world)).collect();
        record(world, capacity, &list)
    });
    let all: Vec<Recording> = all.filter(moves).take(count).collect();
    for r in &all {
        // With buffers too small for one phase, an all-reduce takes two, which send less.
        let exact = capacity >= one_phase_bytes(2);
        assert!(r.posted == r.planned || !exact && r.posted < r.planned, "{} posted: {}", r.posted, r.text);
    }
    all
}

/// The same order on every rank.
fn same_order(world: usize, len: usize) -> Vec<Vec<usize>> {
    vec![(0..len).collect(); world]
}

fn adversary(i: usize, world: usize, rng: &mut Random) -> Adversary {
    match i % 3 {
        0 => Adversary::Random,
        1 => Adversary::LatestFirst,
        _ => Adversary::Starve(rng.below(world)),
    }
}

#[test]
fn i20_a_hundred_thousand_sequences_end_under_every_adversary() {
    const SEQUENCES: usize = 100_000;
    let mut rng = Random::new(0xdead_10cc);
    // The smallest buffers that a world may have, so that small shapes go in many rounds, and ordinary ones.
    let kinds: Vec<(usize, bool)> = (2..=6).flat_map(|w| [(w, true), (w, false)]).collect();
    let (mut count, mut boxings, mut operations) = (0, 0, 0);
    for (k, (world, small)) in kinds.iter().copied().enumerate() {
        let capacity = if small { 64 * world } else { 16 << 10 };
        let pool = pool(world, capacity, POOL, &mut rng);
        for i in (k..SEQUENCES).step_by(kinds.len()) {
            let sequence: Vec<&Recording> = (0..3 + rng.below(6)).map(|_| rng.of(&pool)).collect();
            // Two buffers are the least that a two-phase all-reduce can do with; transports have four.
            let slots = if rng.below(2) == 0 { 2 } else { 4 };
            let adversary = adversary(i, world, &mut rng);
            let machine = Machine::new(&sequence, &same_order(world, sequence.len()), slots);
            match machine.run(adversary, &mut rng) {
                Ok(steps) => operations += steps,
                Err(stop) => {
                    let all: Vec<_> = sequence.iter().map(|r| &r.text).collect();
                    panic!("sequence {i} on {world} ranks, {slots} buffers, {adversary:?}: {stop:#?}\n{all:#?}");
                }
            }
            (count, boxings) = (count + 1, boxings + sequence.len());
        }
    }
    println!("{count} sequences of {boxings} boxings, {operations} transport operations: no deadlock");
    assert_eq!(count, SEQUENCES);
}

#[test]
fn i20_long_boxings_on_hosts_end_under_every_adversary() {
    let mut rng = Random::new(0x4057);
    let (mut count, mut operations) = (0, 0);
    for (h, sizes) in HOSTS.iter().enumerate() {
        let world: usize = sizes.iter().sum();
        // Small buffers, for many rounds.
        let planner = planner(sizes);
        let record = |list: &Vec<Boxing>| record_on(sizes, &planner, 8 << 10, list);
        let pool: Vec<Recording> = lists(world, 24, 0xb0c5 + h as u64).iter().map(record).collect();
        for r in &pool {
            assert_eq!(r.posted, r.planned, "{}", r.text);
        }
        for i in 0..60 {
            let sequence: Vec<&Recording> = (0..2).map(|_| rng.of(&pool)).collect();
            let adversary = adversary(i, world, &mut rng);
            match Machine::new(&sequence, &same_order(world, sequence.len()), SLOTS).run(adversary, &mut rng) {
                Ok(steps) => operations += steps,
                Err(stop) => {
                    let all: Vec<_> = sequence.iter().map(|r| &r.text).collect();
                    panic!("sequence {i} on hosts {sizes:?}, {adversary:?}: {stop:#?}\n{all:#?}");
                }
            }
            count += 1;
        }
    }
    println!("{count} sequences on hosts, {operations} transport operations: no deadlock");
}

/// An all-reduce of a few numbers.
fn all_reduce(world: usize, ranks: &[usize]) -> Recording {
    let placement = mesh(ranks, &[ranks.len()]);
    let layout = |s: &str| Layout::new(&placement, s.parse::<NdSbp>().unwrap());
    let b = Boxing { shape: vec![3], dtype: DType::F32, src: layout("P"), dst: layout("B") };
    record(world, 4096, &[b])
}

#[test]
fn a_ring_of_wrong_orders_is_a_deadlock_and_its_waits_are_named() {
    // Each pair of three ranks has one all-reduce. Ranks 1 and 2 issue their two in the wrong order.
    let pairs = [all_reduce(3, &[0, 1]), all_reduce(3, &[0, 2]), all_reduce(3, &[1, 2])];
    let sequence: Vec<&Recording> = pairs.iter().collect();
    let order = [vec![0, 1], vec![2, 0], vec![1, 2]];
    for adversary in [Adversary::Random, Adversary::LatestFirst, Adversary::Starve(1)] {
        let right = Machine::new(&sequence, &same_order(3, 3), 4).run(adversary, &mut Random::new(1));
        assert!(right.is_ok(), "{right:?}");
        let wrong = Machine::new(&sequence, &order, 4).run(adversary, &mut Random::new(1));
        let Err(Stop::Deadlock(graph)) = wrong else { panic!("{wrong:?}") };
        assert_eq!(
            graph,
            "\
rank 0 waits for rank 1 to send, in all_reduce of #0 f32[3] [P(sum)] on cpu[2] -> [B] on cpu[2]
rank 1 waits for rank 2 to send, in all_reduce of #2 f32[3] [P(sum)] on cpu[2] of ranks [1, 2] -> [B] on cpu[2] of ranks [1, 2]
rank 2 waits for rank 0 to send, in all_reduce of #1 f32[3] [P(sum)] on cpu[2] of ranks [0, 2] -> [B] on cpu[2] of ranks [0, 2]"
        );
    }
}

/// The ranks that a rank exchanges posts with in a boxing.
fn peers(r: &Recording, rank: usize) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for op in &r.ops[rank] {
        match op {
            Op::Publish(posts) => all.extend(posts.iter().map(|p| p.0)),
            Op::Receive(from, _) => all.push(*from),
            _ => {}
        }
    }
    all
}

#[test]
fn every_planted_swap_between_ranks_that_talk_twice_is_seen() {
    let mut rng = Random::new(0x5a5a);
    let (mut deadlocks, mut divergences) = (0, 0);
    for world in 2..=6 {
        let pool = pool(world, 4096, 300, &mut rng);
        let mut planted = 0;
        while planted < 400 {
            let sequence: Vec<&Recording> = (0..3 + rng.below(6)).map(|_| rng.of(&pool)).collect();
            let (at, victim) = (rng.below(sequence.len() - 1), rng.below(world));
            let (a, b) = (peers(sequence[at], victim), peers(sequence[at + 1], victim));
            if std::ptr::eq(sequence[at], sequence[at + 1]) || !a.iter().any(|p| b.contains(p)) {
                continue;
            }
            let mut order = same_order(world, sequence.len());
            order[victim].swap(at, at + 1);
            let adversary = adversary(planted, world, &mut rng);
            match Machine::new(&sequence, &order, 4).run(adversary, &mut rng) {
                Err(Stop::Deadlock(graph)) => {
                    assert!(graph.contains(" waits for rank "), "{graph}");
                    deadlocks += 1;
                }
                Err(Stop::Diverged(text)) => {
                    assert!(text.contains(" gets a post of rank "), "{text}");
                    divergences += 1;
                }
                Ok(_) => panic!("rank {victim} swapped #{at} and #{}, and nobody noticed", at + 1),
            }
            planted += 1;
        }
    }
    println!("planted swaps: {deadlocks} deadlocks, {divergences} divergences, none missed");
    assert!(deadlocks > 0 && divergences > 0);
}

#[test]
fn one_buffer_is_too_few_for_two_phases_and_the_machine_says_so() {
    let placement = mesh(&[0, 1], &[2]);
    let layout = |s: &str| Layout::new(&placement, s.parse::<NdSbp>().unwrap());
    let b = Boxing { shape: vec![100], dtype: DType::F32, src: layout("P"), dst: layout("B") };
    let r = record(2, 128, &[b]);
    let run = |slots| Machine::new(&[&r], &same_order(2, 1), slots).run(Adversary::Random, &mut Random::new(1));
    let Err(Stop::Deadlock(graph)) = run(1) else { panic!("two phases need two buffers") };
    assert!(graph.contains("rank 0 waits for rank 1 to read") && graph.contains("rank 1 waits for rank 0 to read"));
    assert!(run(2).is_ok());
}
