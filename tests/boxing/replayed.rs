//! The bulk: every pair, replayed on one thread and compared with the definition.

use super::oracle::{make, mesh, mesh_of, nd_sbps, value};
use oflow::boxing::{Layout, plan};
use oflow::kernels::{DType, ReduceOp};
use oflow::placement::Placement;
use oflow::sbp::Sbp;
use oflow::vm::replay;
use oflow_tests::cases;

const SHAPES: [&[usize]; 6] = [&[4, 6, 2], &[5, 3, 7], &[1, 2, 3], &[3, 0, 2], &[], &[7]];

fn check(shape: &[usize], dtype: DType, src: &Layout, dst: &Layout) {
    let plan = plan(shape, dtype, src, dst).unwrap();
    let shards = make(shape, dtype, src, 7);
    let before = value(shape, dtype, src, &shards).unwrap();
    let after = replay(&plan, &shards).unwrap();
    let after = value(shape, dtype, dst, &after).unwrap_or_else(|e| panic!("{plan}{e}"));
    assert_eq!(before, after, "{plan}");
    let by_rank: u64 = (0..16).map(|r| plan.bytes_sent_by(r)).sum();
    assert_eq!(plan.bytes_sent(), by_rank, "{plan}");
}

fn layouts(placement: &Placement, shape: &[usize], dtype: DType) -> Vec<Layout> {
    nd_sbps(placement.axes(), shape.len(), dtype).into_iter().map(|s| Layout::new(placement, s)).collect()
}

#[test]
fn every_pair_on_a_line() {
    let mut count = 0;
    for n in 1..=4 {
        for shape in SHAPES {
            for dtype in DType::BUILTIN {
                let all = layouts(&mesh_of(&[n]), shape, dtype);
                for (src, dst) in all.iter().flat_map(|s| all.iter().map(move |d| (s, d))) {
                    check(shape, dtype, src, dst);
                    count += 1;
                }
            }
        }
    }
    println!("{count} conversions on [1] [2] [3] [4]");
}

/// One of three pairs; all with `OFLOW_CASES=all`.
#[test]
fn pairs_on_a_plane() {
    let (mut count, mut take) = (0, cases::one_in(3));
    for dims in [[2, 2], [2, 3], [3, 2], [1, 3], [2, 1]] {
        for (i, shape) in SHAPES.into_iter().enumerate() {
            for dtype in [DType::F32, DType::I64, [DType::BF16, DType::Bool][i % 2]] {
                let all = layouts(&mesh_of(&dims), shape, dtype);
                for (src, dst) in all.iter().flat_map(|s| all.iter().map(move |d| (s, d))).filter(|_| take()) {
                    check(shape, dtype, src, dst);
                    count += 1;
                }
            }
        }
    }
    println!("{count} conversions on [2, 2] [2, 3] [3, 2] [1, 3] [2, 1]");
}

/// Without P(min), which goes as P(max) does: with it there are two and a half times as many. One of twelve pairs; all with
/// `OFLOW_CASES=all`.
#[test]
fn pairs_on_a_cube() {
    let (mut count, mut take) = (0, cases::one_in(12));
    let cube = mesh_of(&[2, 2, 2]);
    for shape in [[4, 6, 2], [5, 3, 7], [1, 2, 3]] {
        for dtype in [DType::F32, DType::I64] {
            let mut all = layouts(&cube, &shape, dtype);
            all.retain(|l| !l.sbp.contains(&Sbp::Partial(ReduceOp::Min)));
            let pairs = all.iter().flat_map(|s| all.iter().map(move |d| (s, d)));
            for (src, dst) in pairs.filter(|_| take()) {
                check(&shape, dtype, src, dst);
                count += 1;
            }
        }
    }
    println!("{count} conversions on [2, 2, 2]");
}

#[test]
fn every_pair_between_placements() {
    let placements = [
        mesh(&[0, 1], &[2]),
        mesh(&[2, 3], &[2]),
        mesh(&[1, 2, 3], &[3]),
        mesh(&[3, 1, 0, 2], &[4]),
        mesh(&[0, 1, 2, 3], &[2, 2]),
        mesh(&[0], &[1]),
    ];
    let mut count = 0;
    let cases: [(&[usize], DType); 5] = [
        (&[4, 6, 2], DType::I32),
        (&[5, 3, 1], DType::F32),
        (&[1, 2, 3], DType::Bool),
        (&[], DType::I64),
        (&[0, 2], DType::F32),
    ];
    for (shape, dtype) in cases {
        let all: Vec<Layout> = placements.iter().flat_map(|p| layouts(p, shape, dtype)).collect();
        for (src, dst) in all.iter().flat_map(|s| all.iter().map(move |d| (s, d))) {
            check(shape, dtype, src, dst);
            count += 1;
        }
    }
    println!("{count} conversions between six placements");
}
