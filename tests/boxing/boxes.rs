//! Layouts from boxes that ranks happen to hold, against a brute force that asks of each element who has it.

use super::oracle::{shard_at, value};
use super::ranks::{Draws, Memory, Random, room, tag};
use oflow::boxing::{HeldBox, Layout, Model, collect_boxes};
use oflow::comm::{Communicator, sim};
use oflow::kernels::view::contiguous_strides;
use oflow::kernels::{DType, ShardBox, View};
use oflow::vm::box_collect::execute_collect;

/// All indices of a shape, row-major.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for n in shape {
        all = all.iter().flat_map(|head: &Vec<usize>| (0..*n).map(move |i| [head.as_slice(), &[i]].concat())).collect();
    }
    all
}

fn has(b: &ShardBox, x: &[usize]) -> bool {
    (0..x.len()).all(|d| (b.offset[d]..b.offset[d] + b.size[d]).contains(&x[d]))
}

fn random_box(shape: &[usize], rng: &mut Random) -> ShardBox {
    let mut b = ShardBox::whole(shape);
    for (d, n) in shape.iter().enumerate() {
        b.offset[d] = rng.below(n + 1);
        b.size[d] = rng.below(n - b.offset[d] + 1);
    }
    b
}

/// Random boxes, completed to a cover: recursive cuts of the whole, dealt to random ranks.
fn cover(shape: &[usize], world: usize, rng: &mut Random) -> Vec<HeldBox> {
    let mut held: Vec<HeldBox> =
        (0..rng.below(5)).map(|_| HeldBox { rank: rng.below(world), at: random_box(shape, rng) }).collect();
    let mut parts = vec![ShardBox::whole(shape)];
    for _ in 0..rng.below(6) {
        let part = parts.swap_remove(rng.below(parts.len()));
        if shape.is_empty() {
            parts.push(part);
            continue;
        }
        let d = rng.below(shape.len());
        let at = rng.below(part.size[d] + 1);
        let (mut a, mut b) = (part.clone(), part);
        a.size[d] = at;
        (b.offset[d], b.size[d]) = (b.offset[d] + at, b.size[d] - at);
        parts.extend([a, b]);
    }
    held.extend(parts.into_iter().map(|at| HeldBox { rank: rng.below(world), at }));
    rng.shuffle(&mut held);
    held
}

/// The logical value at an index.
fn element(x: &[usize]) -> f32 {
    x.iter().fold(1.0, |v, i| v * 31.0 + *i as f32)
}

fn bytes(at: &ShardBox) -> Vec<u8> {
    let shift = |x: Vec<usize>| x.iter().zip(&at.offset).map(|(i, o)| i + o).collect::<Vec<_>>();
    indices(&at.size).into_iter().flat_map(|x| element(&shift(x)).to_ne_bytes()).collect()
}

/// Carries the plan out on simulated ranks; the destination's shards and the bytes sent.
fn run(world: usize, held: &[HeldBox], shape: &[usize], dst: &Layout, model: &Model) -> (Vec<Vec<u8>>, u64) {
    let plan = collect_boxes(shape, held, dst, model).unwrap();
    let by_rank = sim::run(world, |rank, comm| {
        let mut memory: Vec<Memory> = Vec::new();
        let mut views = Vec::new();
        for h in held.iter().filter(|h| h.rank == rank) {
            let data = bytes(&h.at);
            let mut m = Memory::new(data.len());
            m.bytes(data.len()).copy_from_slice(&data);
            // SAFETY: the memory holds all elements and is kept until the end of this closure.
            views.push(unsafe {
                View::from_raw(m.ptr(), DType::F32, h.at.size.clone(), contiguous_strides(&h.at.size))
            });
            memory.push(m);
        }
        let (mut to, mut len) = (Memory::new(0), 0);
        let out = dst.placement.position(rank).map(|p| {
            let size = shard_at(shape, dst, p).1;
            len = size.iter().product::<usize>() * 4;
            room(&mut to, DType::F32, &size)
        });
        execute_collect(&plan, (&comm, crate::memory()), &tag(0), DType::F32, (&views, out.as_ref())).unwrap();
        (to.bytes(len).to_vec(), comm.traffic().bytes_sent)
    });
    let shards = dst.placement.ranks().iter().map(|r| by_rank[*r].0.clone()).collect();
    (shards, by_rank.iter().map(|r| r.1).sum())
}

#[test]
fn random_covers_give_the_value_and_each_element_travels_once() {
    let mut rng = Random::new(0xb0e5);
    let mut count = 0;
    for world in 1..=5 {
        for _ in 0..120 {
            let shape = rng.shape();
            if shape.iter().product::<usize>() > 600 {
                continue;
            }
            let held = cover(&shape, world, &mut rng);
            let dst = rng.layout(world, shape.len(), DType::F32);
            let model = Model { hosts: (1 + rng.below(3)).into(), ..Model::default() };
            let plan = collect_boxes(&shape, &held, &dst, &model).unwrap();
            let mut sent = 0;
            for (p, &to) in dst.placement.ranks().iter().enumerate() {
                let coord = dst.placement.coord(p);
                let value_here = (0..coord.len()).all(|a| coord[a] == 0 || !dst.sbp[a].is_partial());
                let (offset, size) = shard_at(&shape, &dst, p);
                let want = ShardBox { logical: shape[..].into(), offset: offset[..].into(), size: size[..].into() };
                for x in indices(&shape) {
                    let pieces: Vec<_> = plan.pieces.iter().filter(|q| q.to == to && has(&q.at, &x)).collect();
                    if !value_here || !has(&want, &x) {
                        assert!(pieces.is_empty());
                        continue;
                    }
                    assert_eq!(pieces.len(), 1, "element {x:?} of rank {to}");
                    let piece = pieces[0];
                    assert!(has(&held[piece.source].at, &x) && held[piece.source].rank == piece.from);
                    let near = |r: usize| (r != to, model.hosts.host(r) != model.hosts.host(to));
                    let nearest = held.iter().filter(|h| has(&h.at, &x)).map(|h| near(h.rank)).min();
                    assert_eq!(Some(near(piece.from)), nearest, "element {x:?} of rank {to}");
                    sent += u64::from(piece.from != to);
                }
            }
            assert_eq!(plan.elements_sent(), sent);
            let (shards, traffic) = run(world, &held, &shape, &dst, &model);
            assert_eq!(traffic, 4 * sent);
            let logical: Vec<_> =
                indices(&shape).iter().map(|x| super::oracle::Num::F(f64::from(element(x)))).collect();
            assert_eq!(value(&shape, DType::F32, &dst, &shards).unwrap(), logical, "{dst}");
            count += 1;
        }
    }
    println!("{count} random covers");
    assert!(count > 300);
}

#[test]
fn the_first_hole_is_named() {
    let mut rng = Random::new(7);
    let mut holes = 0;
    for _ in 0..300 {
        let shape = [1 + rng.below(6), 1 + rng.below(6)];
        let held: Vec<_> =
            (0..rng.below(6)).map(|_| HeldBox { rank: rng.below(3), at: random_box(&shape, &mut rng) }).collect();
        let first = indices(&shape).into_iter().find(|x| !held.iter().any(|h| has(&h.at, x)));
        let plan = collect_boxes(&shape, &held, &rng.layout(3, 2, DType::F32), &Model::default());
        match (plan, first) {
            (Ok(_), None) => {}
            (Err(e), Some(x)) => {
                holes += 1;
                let text = format!("no rank holds the elements from {x:?} on");
                assert!(e.message().starts_with(&text), "{e}, not {text}");
            }
            (plan, first) => panic!("{first:?}: {plan:?}"),
        }
    }
    assert!((50..300).contains(&holes), "{holes}");
}

#[test]
fn copies_share_the_work() {
    // Four ranks have everything; eight others need everything.
    let held: Vec<_> = (0..4).map(|rank| HeldBox { rank, at: ShardBox::whole(&[100]) }).collect();
    let dst = Layout::new(&super::oracle::mesh(&(4..12).collect::<Vec<_>>(), &[8]), oflow::sbp![B]);
    let plan = collect_boxes(&[100], &held, &dst, &Model::default()).unwrap();
    for rank in 0..4 {
        let sent: usize = plan.pieces.iter().filter(|p| p.from == rank).map(|p| p.at.size[0]).sum();
        assert_eq!(sent, 200, "rank {rank}");
    }
}

#[test]
fn a_box_outside_is_refused() {
    let mut at = ShardBox::whole(&[4, 4]);
    at.offset[1] = 1;
    let dst = Layout::new(&super::oracle::mesh_of(&[2]), oflow::sbp![B]);
    let e = collect_boxes(&[4, 4], &[HeldBox { rank: 1, at }], &dst, &Model::default()).unwrap_err();
    assert_eq!(e.message(), "the box of sizes [4, 4] at [0, 1] that rank 1 holds is not inside [4, 4]");
}
