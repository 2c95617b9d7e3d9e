//! Plans: every byte once, evenly, for thousands of ranks.

use oflow::DType;
use oflow::checkpoint::{GRANULE, TensorSpec, boxes_of_run, shares, whole_layout};
use oflow::placement::{Device, Placement};
use oflow::sbp::NdSbp;
use oflow::{sbp, sbp::Sbp};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn spec(name: &str, shape: &[usize], dtype: DType, placement: &Placement, sbp: NdSbp) -> TensorSpec {
    TensorSpec { name: name.into(), shape: shape.into(), dtype, placement: placement.clone(), sbp }
}

/// Checks that all ranks together write each element once; returns the bytes of each rank.
fn written(specs: &[TensorSpec], world: usize) -> Vec<usize> {
    let mut seen: Vec<Vec<bool>> = specs.iter().map(|s| vec![false; s.shape.iter().product()]).collect();
    let bytes = (0..world)
        .map(|rank| {
            let mut bytes = 0;
            for share in shares(specs, rank).unwrap() {
                let s = &specs[share.tensor];
                bytes += share.run.len() * s.dtype.size();
                let boxes = boxes_of_run(&share.shard, share.run.clone());
                assert_eq!(boxes.iter().map(|b| b.size.iter().product::<usize>()).sum::<usize>(), share.run.len());
                for b in boxes {
                    each(&b.size, &mut |at| {
                        let flat = (0..at.len()).fold(0, |n, d| n * s.shape[d] + b.offset[d] + at[d]);
                        assert!(!std::mem::replace(&mut seen[share.tensor][flat], true), "{} written twice", s.name);
                    });
                }
            }
            bytes
        })
        .collect();
    assert!(seen.iter().flatten().all(|s| *s), "something is written by nobody");
    bytes
}

fn each(size: &[usize], f: &mut dyn FnMut(&[usize])) {
    let total: usize = size.iter().product();
    let mut at = vec![0; size.len()];
    for _ in 0..total {
        f(&at);
        for d in (0..size.len()).rev() {
            at[d] += 1;
            if at[d] < size[d] {
                break;
            }
            at[d] = 0;
        }
    }
}

#[test]
fn four_thousand_ranks_write_every_byte_once_and_evenly() {
    let ranks: Vec<usize> = (0..4096).collect();
    let mesh = Placement::new(Device::Cpu, &ranks, &[64, 8, 8]).unwrap();
    let kinds = [sbp![B, B, B], sbp![B, S(0), B], sbp![S(0), S(1), B], sbp![B, S(1), S(0)], sbp![S(0), S(0), S(0)]];
    let specs: Vec<TensorSpec> = (0..20)
        .map(|i| spec(&format!("t{i}"), &[384 + i, 257], DType::F32, &mesh, kinds[i % kinds.len()].clone()))
        .collect();
    let bytes = written(&specs, 4096);
    let total: usize = bytes.iter().sum();
    assert_eq!(total, specs.iter().map(|s| 4 * s.shape.iter().product::<usize>()).sum::<usize>());

    // What all have is cut into equal parts, up to a granule at each end.
    let whole = [
        spec("a", &[4096, 1 << 18], DType::F32, &mesh, sbp![B, B, B]),
        spec("b", &[7], DType::I64, &mesh, sbp![B, B, B]),
    ];
    for rank in [0, 1, 17, 4094, 4095] {
        let mine: usize = shares(&whole, rank).unwrap().iter().map(|s| s.run.len() * 4).sum();
        assert!(mine.abs_diff(1 << 20) <= 2 * GRANULE, "rank {rank} writes {mine} bytes");
    }
    // About one piece a rank, not one of each tensor a rank.
    let many: Vec<TensorSpec> =
        (0..500).map(|i| spec(&format!("t{i}"), &[512, 512], DType::F32, &mesh, sbp![B, B, B])).collect();
    let pieces: usize = (0..4096).map(|r| shares(&many, r).unwrap().len()).sum();
    assert!(pieces <= 500 + 4096, "{pieces} pieces");
}

#[test]
fn ranks_outside_write_nothing_and_partial_layouts_are_refused() {
    let some = Placement::new(Device::Cpu, &[5, 2], &[2]).unwrap();
    let s = [spec("a", &[3], DType::F32, &some, sbp![S(0)])];
    assert_eq!([0, 2, 5].map(|r| shares(&s, r).unwrap().len()), [0, 1, 1]);
    let p = [spec("a", &[3], DType::F32, &some, sbp![P])];
    assert_eq!(shares(&p, 2).unwrap_err().to_string(), "'a' is [P(sum)], so no rank has its value");
}

/// One of many layouts, by a number.
pub fn layout(mut n: u64, axes: usize, dims: usize, partial: &[Sbp]) -> NdSbp {
    let sbps: Vec<Sbp> = (0..axes)
        .map(|_| {
            let options = 1 + dims as u64 * 2 + partial.len() as u64;
            let pick = n % options;
            n /= options;
            match pick as usize {
                0 => Sbp::Broadcast,
                k if k <= 2 * dims => Sbp::Split((k - 1) / 2),
                k => partial[k - 1 - 2 * dims],
            }
        })
        .collect();
    NdSbp::new(&sbps)
}

/// Meshes of that many ranks.
pub fn meshes(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![n]];
    for a in 1..=n {
        if n.is_multiple_of(a) {
            all.push(vec![a, n / a]);
            for b in 1..=n / a {
                if (n / a).is_multiple_of(b) {
                    all.push(vec![a, b, n / a / b]);
                }
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_once_whatever_the_layouts(
        world in 1usize..40,
        tensors in prop::collection::vec((prop::collection::vec(0usize..9, 0..4), any::<u64>(), 1usize..3, 0..DType::REAL.len()), 1..12),
        big in 0usize..60_000,
    ) {
        let mut specs = vec![];
        for (i, (shape, n, form, dtype)) in tensors.iter().enumerate() {
            let all = meshes(world - (*n as usize % world).min(world / 2));
            let dims = &all[(*n >> 32) as usize % all.len()];
            let members: Vec<usize> = (0..dims.iter().product()).map(|r| world - 1 - r).collect();
            let placement = Placement::new(Device::Cpu, &members, dims).unwrap();
            let mut shape = shape.clone();
            if *form == 2 && !shape.is_empty() {
                // Some are larger than a granule.
                shape[0] = big / shape[1..].iter().product::<usize>().max(1);
            }
            let sbp = layout(*n, dims.len(), shape.len(), &[Sbp::PARTIAL_SUM]);
            let sbp = whole_layout(&shape, &sbp);
            specs.push(spec(&format!("t{i}"), &shape, DType::REAL[*dtype], &placement, sbp));
        }
        let bytes = written(&specs, world);
        // Replicas differ by no more than cuts can be off, in each layout.
        let mut even: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for s in specs.iter().filter(|s| s.sbp.is_broadcast()) {
            even.entry(s.placement.to_string()).or_default();
        }
        prop_assert!(bytes.len() == world);
        if specs.iter().all(|s| s.sbp.is_broadcast()) && even.len() == 1 {
            let members: Vec<usize> = specs[0].placement.ranks().iter().map(|r| bytes[*r]).collect();
            let (least, most) = (members.iter().min().unwrap(), members.iter().max().unwrap());
            prop_assert!(most - least <= 2 * GRANULE + 8, "{members:?}");
        }
    }
}
