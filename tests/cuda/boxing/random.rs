//! Values and bytes of boxings drawn at random.

use super::oracle::{mesh_of, nd_sbps};
use super::ranks::{Boxing, Draws, Random};
use super::rig::{Case, check, on};
use oflow::boxing::Layout;
use oflow::kernels::DType;
use oflow::placement::Device;
use oflow_tests::gpus::{cuda, gpus};

fn case(rng: &mut Random, world: usize, from: Device, to: Device) -> Case {
    let Boxing { shape, dtype, src, dst } = rng.boxing(world);
    Case { shape, dtype, src: on(from, &src), dst: on(to, &dst), strided: rng.below(2) == 0 }
}

/// Lists of boxings, most of one, some of several.
fn lists(seed: u64, world: usize, count: usize, (from, to): (Device, Device)) -> Vec<Vec<Case>> {
    let mut rng = Random::new(seed);
    let mut list = |_| {
        let n = if rng.below(4) == 0 { 2 + rng.below(6) } else { 1 };
        (0..n).map(|_| case(&mut rng, world, from, to)).collect()
    };
    (0..count).map(&mut list).collect()
}

const GPUS: (Device, Device) = (Device::Cuda, Device::Cuda);

#[test]
fn between_ranks_that_share_a_gpu() {
    if cuda() {
        check(2, 1, &lists(1, 2, 60, GPUS), true);
        check(4, 2.min(gpus()), &lists(2, 4, 60, GPUS), true);
    }
}

#[test]
fn over_nccl() {
    if cuda() {
        check(2, gpus().min(2), &lists(3, 2, 60, GPUS), true);
        check(3, gpus().min(3), &lists(4, 3, 60, GPUS), true);
        check(4, gpus().min(4), &lists(5, 4, 100, GPUS), true);
    }
}

#[test]
fn every_pair_on_a_line_over_nccl() {
    if !cuda() {
        return;
    }
    let mut all = Vec::new();
    for (shape, dtype) in
        [(&[4, 6][..], DType::F32), (&[5, 3], DType::BF16), (&[8], DType::Bool), (&[3, 4], DType::I64)]
    {
        let line = mesh_of(&[3]).on(Device::Cuda);
        let layouts: Vec<Layout> = nd_sbps(1, shape.len(), dtype).into_iter().map(|s| Layout::new(&line, s)).collect();
        let pair = |s: &Layout, d: &Layout| Case {
            shape: shape.to_vec(),
            dtype,
            src: s.clone(),
            dst: d.clone(),
            strided: false,
        };
        all.extend(layouts.iter().flat_map(|s| layouts.iter().map(move |d| vec![pair(s, d)])));
    }
    check(3, gpus().min(3), &all, true);
}

#[test]
fn between_gpus_and_hosts() {
    if cuda() {
        check(3, gpus().min(3), &lists(6, 3, 60, (Device::Cpu, Device::Cuda)), false);
        check(3, gpus().min(3), &lists(7, 3, 60, (Device::Cuda, Device::Cpu)), false);
    }
}
