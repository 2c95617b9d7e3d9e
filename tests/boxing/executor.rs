//! The executor on simulated ranks: values as the definition has them, bytes as the plan counts them.

use super::oracle::{make, mesh, mesh_of, nd_sbps, shard_size, value};
use super::ranks::{Memory, room, tag, view};
use oflow::boxing::{Layout, StepOp, plan};
use oflow::comm::{Communicator, sim};
use oflow::kernels::DType;
use oflow::placement::Placement;
use oflow::vm::box_exec::execute;

struct Case {
    shape: Vec<usize>,
    dtype: DType,
    src: Layout,
    dst: Layout,
    /// The source views have their dims in another order in memory.
    strided: bool,
}

/// Runs all cases on one world; the shards by case and destination position, and checks values and traffic.
fn check(world: usize, cases: &[Case]) {
    let sources: Vec<Vec<Vec<u8>>> =
        cases.iter().enumerate().map(|(i, c)| make(&c.shape, c.dtype, &c.src, i as u64)).collect();
    let by_rank = sim::run(world, |rank, comm| {
        let mut results = Vec::new();
        for (i, c) in cases.iter().enumerate() {
            let plan = plan(&c.shape, c.dtype, &c.src, &c.dst).unwrap();
            let (mut from, mut to) = (Memory::new(0), Memory::new(0));
            let src = c.src.placement.position(rank).map(|p| {
                from = Memory::new(sources[i][p].len());
                view(&mut from, &sources[i][p], c.dtype, &shard_size(&c.shape, &c.src, p), c.strided)
            });
            let mut len = 0;
            let dst = c.dst.placement.position(rank).map(|p| {
                let size = shard_size(&c.shape, &c.dst, p);
                len = size.iter().product::<usize>() * c.dtype.size();
                room(&mut to, c.dtype, &size)
            });
            let before = comm.traffic().bytes_sent;
            execute(&plan, (&comm, crate::memory()), &tag(i), src.as_ref(), dst.as_ref())
                .unwrap_or_else(|e| panic!("{plan}{e}"));
            results.push((to.bytes(len).to_vec(), comm.traffic().bytes_sent - before));
        }
        results
    });
    for (i, c) in cases.iter().enumerate() {
        let plan = plan(&c.shape, c.dtype, &c.src, &c.dst).unwrap();
        let shards: Vec<Vec<u8>> = c.dst.placement.ranks().iter().map(|r| by_rank[*r][i].0.clone()).collect();
        let before = value(&c.shape, c.dtype, &c.src, &sources[i]).unwrap();
        let after = value(&c.shape, c.dtype, &c.dst, &shards).unwrap_or_else(|e| panic!("{plan}{e}"));
        assert_eq!(before, after, "{plan}");
        let sent: Vec<u64> = by_rank.iter().map(|r| r[i].1).collect();
        assert_eq!(sent.iter().sum::<u64>(), plan.bytes_sent(), "{plan}");
        // A transport cuts large all-reduces at cache lines; everything else is exact for each rank.
        let elements: usize = c.shape.iter().product();
        if elements * c.dtype.size() <= oflow::host_hierarchy::one_phase_bytes(world) {
            let planned: Vec<u64> = (0..world).map(|r| plan.bytes_sent_by(r)).collect();
            assert_eq!(sent, planned, "{plan}");
        }
    }
}

fn layouts(placement: &Placement, shape: &[usize], dtype: DType) -> Vec<Layout> {
    nd_sbps(placement.axes(), shape.len(), dtype).into_iter().map(|s| Layout::new(placement, s)).collect()
}

/// Each `every`-th ordered pair of the layouts.
fn pairs(shape: &[usize], dtype: DType, all: &[Layout], every: usize) -> Vec<Case> {
    let pairs = all.iter().flat_map(|s| all.iter().map(move |d| (s, d)));
    pairs
        .enumerate()
        .filter(|(i, _)| i % every == 0)
        .map(|(i, (src, dst))| Case {
            shape: shape.to_vec(),
            dtype,
            src: src.clone(),
            dst: dst.clone(),
            strided: (i / every) % 2 == 1,
        })
        .collect()
}

const SHAPES: [&[usize]; 6] = [&[4, 6, 2], &[5, 3, 7], &[1, 2, 3], &[3, 0, 2], &[], &[7]];

#[test]
fn every_pair_on_a_line() {
    let mut count = 0;
    for n in [2, 3, 4] {
        let mut cases = Vec::new();
        for shape in SHAPES {
            for dtype in [DType::I32, DType::F32, DType::BF16, DType::Bool, DType::I64] {
                cases.extend(pairs(shape, dtype, &layouts(&mesh_of(&[n]), shape, dtype), 1));
            }
        }
        check(n, &cases);
        count += cases.len();
    }
    println!("{count} conversions executed on [2] [3] [4]");
}

#[test]
fn pairs_on_planes_and_cubes() {
    let mut count = 0;
    for (dims, every) in [(&[2, 2][..], 1), (&[2, 3], 3), (&[3, 2], 3), (&[2, 2, 2], 61)] {
        let mut cases = Vec::new();
        for (shape, dtype) in [(&[4, 6, 2], DType::I32), (&[5, 3, 1], DType::F32)] {
            cases.extend(pairs(shape, dtype, &layouts(&mesh_of(dims), shape, dtype), every));
        }
        check(dims.iter().product(), &cases);
        count += cases.len();
    }
    println!("{count} conversions executed on [2, 2] [2, 3] [3, 2] [2, 2, 2]");
}

#[test]
fn short_messages_of_large_groups() {
    let mut cases = Vec::new();
    for shape in [&[][..], &[3], &[100], &[71, 2], &[0], &[2000]] {
        for dims in [&[70][..], &[2, 35]] {
            for from in ["P(sum)", "P(max)", "S(0)"] {
                let layout = |sbp: &str| {
                    Layout::new(&mesh_of(dims), vec![sbp; dims.len()].join(",").parse::<oflow::sbp::NdSbp>().unwrap())
                };
                if from != "S(0)" || !shape.is_empty() {
                    let (shape, dtype) = (shape.to_vec(), DType::F32);
                    cases.push(Case { shape, dtype, src: layout(from), dst: layout("B"), strided: false });
                }
            }
        }
    }
    check(70, &cases);
}

#[test]
fn pairs_between_placements() {
    let placements = [
        mesh(&[0, 1], &[2]),
        mesh(&[2, 3], &[2]),
        mesh(&[1, 2, 3], &[3]),
        mesh(&[3, 1, 0, 2], &[4]),
        mesh(&[0, 1, 2, 3], &[2, 2]),
        mesh(&[0], &[1]),
    ];
    let mut cases = Vec::new();
    for (shape, dtype) in [(&[5, 3, 1][..], DType::F32), (&[4, 2, 6], DType::I32), (&[0, 2], DType::I32)] {
        let all: Vec<Layout> = placements.iter().flat_map(|p| layouts(p, shape, dtype)).collect();
        cases.extend(pairs(shape, dtype, &all, 5));
    }
    check(4, &cases);
    println!("{} conversions executed between six placements", cases.len());
}

#[test]
fn large_tensors_take_the_chunked_paths() {
    let mut cases = Vec::new();
    for shape in [[257, 131, 3], [64, 64, 32]] {
        let line = pairs(&shape, DType::F32, &layouts(&mesh_of(&[3]), &shape, DType::F32), 1);
        // Not P(sum) to P(max) and such: they are two of the others.
        cases.extend(line.into_iter().filter(|c| !(c.src.sbp.has_partial() && c.dst.sbp.has_partial())));
    }
    check(3, &cases);
    println!("{} large conversions executed on [3]", cases.len());
}

#[test]
fn one_axis_bytes_are_those_of_the_collective() {
    let line = mesh_of(&[4]);
    let shape = [10, 6];
    let n = 10 * 6 * 4;
    // Parts of dim 0: 3, 3, 2, 2 rows of 24 bytes.
    for (src, dst, bytes) in [
        ("P", "B", 4 * 3 * n),
        ("P", "S(0)", 3 * n),
        ("S(0)", "B", 3 * n),
        // What stays: rows × columns of the same rank, columns 2, 2, 1, 1.
        ("S(0)", "S(1)", n - 4 * (3 * 2 + 3 * 2 + 2 + 2)),
        ("B", "S(0)", 0),
    ] {
        let layout = |s: &str| Layout::new(&line, s.parse::<oflow::sbp::NdSbp>().unwrap());
        let (src, dst) = (layout(src), layout(dst));
        let plan = plan(&shape, DType::F32, &src, &dst).unwrap();
        assert_eq!(plan.steps.len(), 1, "{plan}");
        assert!(!matches!(plan.steps[0].op, StepOp::Exchange { .. }), "{plan}");
        assert_eq!(plan.bytes_sent(), bytes, "{plan}");
        check(4, &[Case { shape: shape.to_vec(), dtype: DType::F32, src, dst, strided: false }]);
    }
}

#[test]
fn wrong_views_are_errors() {
    let line = mesh_of(&[2]);
    let plan =
        plan(&[4], DType::F32, &Layout::new(&line, oflow::sbp![P]), &Layout::new(&line, oflow::sbp![S(0)])).unwrap();
    let messages = sim::run(2, |_, comm| {
        let mut memory = Memory::new(16);
        let src = view(&mut memory, &[0; 12], DType::F32, &[3], false);
        execute(&plan, (&comm, crate::memory()), &tag(0), Some(&src), None).unwrap_err().to_string()
    });
    assert_eq!(messages[0], "the source of the boxing is f32[3], the plan has f32[4]");
}
