//! A rank that leaves while others wait for it on their GPUs ends their waits, with an error that names it.

use super::oracle::{mesh_of, shard_size};
use super::ranks::tag;
use super::rig::{Rig, Shard};
use oflow::ErrorKind;
use oflow::boxing::{BoxingPlan, Layout, plan};
use oflow::comm::sim;
use oflow::kernels::DType;
use oflow::placement::Device;
use oflow::prelude::*;
use oflow_tests::gpus::{cuda, gpus};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SHAPE: [usize; 2] = [6, 4];

fn all_reduce(world: usize) -> Arc<BoxingPlan> {
    let line = mesh_of(&[world]).on(Device::Cuda);
    let at = |s| Layout::new(&line, s);
    plan(&SHAPE, DType::F32, &at(sbp![P]), &at(sbp![B])).unwrap()
}

fn ends(rig: &Rig, plan: &BoxingPlan) -> (Option<Shard>, Option<Shard>) {
    let size = shard_size(&SHAPE, &plan.src, rig.rank);
    let src = rig.source(Device::Cuda, &[0; 96], DType::F32, &size, false);
    (Some(src), Some(rig.room(Device::Cuda, DType::F32, &size)))
}

/// What ranks 0 and 2 get when rank 1 leaves after the first of two boxings, and after how long.
fn left_alone(gpus: usize) -> Vec<(ErrorKind, String, Duration)> {
    let plan = all_reduce(3);
    sim::run(3, |rank, comm| {
        let rig = Rig::new(rank, comm, gpus);
        let ends = [ends(&rig, &plan)];
        let plans = [plan.clone()];
        rig.submit(tag(0), &plans, &ends).unwrap();
        rig.vm(Device::Cuda).synchronize().unwrap();
        if rank == 1 {
            return None;
        }
        let began = Instant::now();
        let wait = || {
            rig.submit(tag(1), &plans, &ends)?;
            rig.vm(Device::Cuda).synchronize()
        };
        let e = wait().unwrap_err();
        let later = rig.submit(tag(2), &plans, &ends).unwrap_err();
        assert!(!later.is_logical(), "{later}");
        Some((e.kind(), e.to_string(), began.elapsed()))
    })
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn nccl_is_aborted_when_a_member_leaves() {
    if !cuda() || gpus() < 3 {
        return;
    }
    let all = left_alone(3);
    assert_eq!(all.len(), 2);
    for (kind, text, took) in all {
        assert!(matches!(kind, ErrorKind::Peer | ErrorKind::Comm), "{kind:?}: {text}");
        assert!(
            text.contains("rank 1 has left") || text.contains("rank 0 has left") || text.contains("rank 2 has left"),
            "{text}"
        );
        assert!(took < Duration::from_secs(30), "{took:?}");
    }
}

#[test]
fn a_staged_boxing_fails_as_the_hosts_do() {
    if !cuda() {
        return;
    }
    for (kind, text, _) in left_alone(1) {
        assert_eq!(kind, ErrorKind::Peer, "{text}");
        assert!(text.contains("has ended"), "{text}");
    }
}
