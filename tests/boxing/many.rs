//! Many boxings together: the values and bits of one by one, in the bytes that the plan of the whole says.

use super::oracle::{make, mesh, shard_size, value};
use super::ranks::{Boxing, Draws, Memory, Random, room, tag, view};
use oflow::boxing::many::{BATCH_BYTES, batches, bytes_sent_together, waves};
use oflow::boxing::{BoxingPlan, GroupOp, Layout, RankStep, plan};
use oflow::comm::{Communicator, Traffic, sim};
use oflow::kernels::{DType, ReduceOp, View};
use oflow::sbp::NdSbp;
use oflow::vm::box_exec::execute;
use oflow::vm::box_many::{Ends, execute_many};
use std::sync::Arc;

fn plans(all: &[Boxing]) -> Vec<Arc<BoxingPlan>> {
    all.iter().map(|b| plan(&b.shape, b.dtype, &b.src, &b.dst).unwrap()).collect()
}

/// Each rank's destination shards (empty outside), and its traffic.
fn run(world: usize, all: &[Boxing], together: bool) -> Vec<(Vec<Vec<u8>>, Traffic)> {
    let plans = plans(all);
    let sources: Vec<_> = all.iter().enumerate().map(|(i, b)| make(&b.shape, b.dtype, &b.src, i as u64)).collect();
    sim::run(world, |rank, comm| {
        let mut memory: Vec<(Memory, Memory)> = all.iter().map(|_| (Memory::new(0), Memory::new(0))).collect();
        let mut views: Vec<(Option<View>, Option<View>)> = Vec::new();
        for (i, (b, (from, to))) in all.iter().zip(&mut memory).enumerate() {
            let src = b.src.placement.position(rank).map(|p| {
                *from = Memory::new(sources[i][p].len());
                view(from, &sources[i][p], b.dtype, &shard_size(&b.shape, &b.src, p), i % 2 == 1)
            });
            let dst = b.dst.placement.position(rank).map(|p| room(to, b.dtype, &shard_size(&b.shape, &b.dst, p)));
            views.push((src, dst));
        }
        let before = comm.traffic();
        if together {
            let ends: Vec<Ends> = views.iter().map(|(s, d)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
            execute_many(&plans, &ends, (&comm, crate::memory()), &tag(0)).unwrap();
        } else {
            for (i, (plan, (s, d))) in plans.iter().zip(&views).enumerate() {
                execute(plan, (&comm, crate::memory()), &tag(i), s.as_ref(), d.as_ref()).unwrap();
            }
        }
        let after = comm.traffic();
        let shards = memory.iter_mut().zip(&views).map(|((_, to), (_, d))| {
            let len = d.as_ref().map_or(0, |d| d.len() * d.dtype().size());
            to.bytes(len).to_vec()
        });
        let sent = after.bytes_sent - before.bytes_sent;
        let traffic = Traffic { bytes_sent: sent, calls: after.calls - before.calls, ..after };
        (shards.collect(), traffic)
    })
}

fn check(world: usize, all: &[Boxing]) -> (u64, u64) {
    let (one_by_one, together) = (run(world, all, false), run(world, all, true));
    for (i, b) in all.iter().enumerate() {
        let shards = |of: &[(Vec<Vec<u8>>, Traffic)]| -> Vec<Vec<u8>> {
            b.dst.placement.ranks().iter().map(|r| of[*r].0[i].clone()).collect()
        };
        let text = || format!("boxing {i}: {:?} {} {} -> {}", b.shape, b.dtype, b.src, b.dst);
        assert_eq!(shards(&one_by_one), shards(&together), "{}", text());
        let before = value(&b.shape, b.dtype, &b.src, &make(&b.shape, b.dtype, &b.src, i as u64)).unwrap();
        assert_eq!(before, value(&b.shape, b.dtype, &b.dst, &shards(&together)).unwrap(), "{}", text());
    }
    let plans = plans(all);
    let planned: u64 = (0..world).map(|r| bytes_sent_together(&plans, r)).sum();
    assert_eq!(together.iter().map(|r| r.1.bytes_sent).sum::<u64>(), planned);
    let calls = |of: &[(Vec<Vec<u8>>, Traffic)]| of.iter().map(|r| r.1.calls).sum::<u64>();
    (calls(&one_by_one), calls(&together))
}

#[test]
fn random_lists_give_the_bits_of_one_by_one() {
    let mut rng = Random::new(0x3a9_7be);
    let (mut count, mut alone, mut together) = (0, 0, 0);
    for world in 2..=5 {
        for _ in 0..60 {
            let mut all: Vec<Boxing> = (0..2 + rng.below(14)).map(|_| rng.boxing(world)).collect();
            // Some of one kind, so that there are buckets of several.
            for i in 1..all.len() {
                if rng.below(2) == 0 {
                    let b = &all[rng.below(i)];
                    if b.shape.len() >= 2 {
                        let shape = b.shape.iter().map(|n| n + rng.below(3)).collect();
                        all[i] = Boxing { shape, dtype: b.dtype, src: b.src.clone(), dst: b.dst.clone() };
                    }
                }
            }
            let calls = check(world, &all);
            (count, alone, together) = (count + all.len(), alone + calls.0, together + calls.1);
        }
    }
    println!("{count} boxings in 240 lists: {alone} calls one by one, {together} together");
    assert!(together < alone);
}

fn line(shape: &[usize], dtype: DType, n: usize, src: &str, dst: &str) -> Boxing {
    let placement = mesh(&(0..n).collect::<Vec<_>>(), &[n]);
    let layout = |s: &str| Layout::new(&placement, s.parse::<NdSbp>().unwrap());
    Boxing { shape: shape.to_vec(), dtype, src: layout(src), dst: layout(dst) }
}

#[test]
fn a_hundred_gradients_are_one_all_reduce() {
    let all: Vec<Boxing> = (0..100).map(|i| line(&[1 + i, 7], DType::F32, 2, "P", "B")).collect();
    assert_eq!(check(2, &all), (200, 2));
    let mixed: Vec<Boxing> = (0..40)
        .map(|i| {
            let (src, dst) = [("P", "B"), ("S(0)", "B"), ("P", "S(0)"), ("S(0)", "S(1)")][i % 4];
            line(&[3 + i, 5], if i % 8 < 4 { DType::F32 } else { DType::BF16 }, 3, src, dst)
        })
        .collect();
    // Four kinds, two dtypes.
    assert_eq!(check(3, &mixed), (120, 24));
}

#[test]
fn batches_are_bounded() {
    let big = BATCH_BYTES / 4 / 3;
    let all: Vec<_> = [2, big, big, big, 7, 4 * big, 1].map(|n| line(&[n], DType::F32, 2, "P", "B")).into();
    assert_eq!(batches(&plans(&all)), [0..3, 3..5, 5..6, 6..7]);
    let programs: Vec<_> = plans(&all[..2]).iter().map(|p| (p.dtype, p.program(0))).collect();
    let RankStep::Collective(c) = &programs[0].1.steps[0] else { panic!("{programs:?}") };
    assert_eq!(c.op, GroupOp::AllReduce(ReduceOp::Sum));
    assert_eq!(waves(&programs)[0].buckets, [[0, 1]]);
}
