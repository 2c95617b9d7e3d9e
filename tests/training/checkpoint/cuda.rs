//! Checkpoints of tensors on GPUs, emulated ones where there are none: what is saved is what was there when the save was called,
//! whatever the streams still had to do, and any device goes on from any other's.

use super::layouts::random;
use super::resume::{ResumeCase, run};
use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions, list};
use oflow::prelude::*;
use oflow::{run_ranks, run_ranks_with, vm::VmMode};
use oflow_tests::bag::Bag;
use oflow_tests::gpus;
use std::path::Path;

/// CUDA, whose streams are late wherever they may be.
fn cuda() -> bool {
    // SAFETY: what reads the environment by then is Rust's own, which locks it; the emulator reads this when it starts a stream.
    unsafe { std::env::set_var("OFLOW_EMULATOR_DELAY_US", "300") };
    gpus::cuda()
}

const ROUNDS: usize = 4;

/// Adds and saves, and goes on in the same memory before the save can have been written.
fn add_and_save(dir: &Path, ranks: usize) -> Result<()> {
    run_ranks(ranks, |_| {
        let mesh = Placement::all(Device::Cuda)?.mesh(&[("dp", ranks / 2), ("tp", 2)])?;
        let at = |s: NdSbp| (&mesh, s);
        let turned = arange(24 * 10, at(sbp![B, B]))?.cast(DType::F32)?.reshape([24, 10])?.transpose(0, 1)?.copy()?;
        let split = zeros([300, 70], at(sbp![B, S(0)]))?;
        let small = zeros([33], at(sbp![B, B]).dtype(DType::BF16))?;
        let uneven = zeros([7, 5], at(sbp![S(0), S(1)]).dtype(DType::I64))?;
        let mut m = CheckpointManager::new(dir, CheckpointOptions { keep: 0 });
        for round in 1..=ROUNDS {
            for t in [&split, &small, &uneven, &turned] {
                (0..6).try_for_each(|_| t.add_(1).map(drop))?;
            }
            // A sum that no rank has: it is boxed before it is saved.
            let sum = split.matmul(&ones([70, 3], at(sbp![B, B]))?)?;
            let partial = split.transpose(0, 1)?.matmul(&sum.to_global(sbp![B, S(0)])?)?;
            assert!(partial.sbp()?.has_partial(), "{partial}");
            let bag = Bag([&split, &small, &uneven, &turned, &partial].map(Clone::clone).to_vec());
            match round % 2 {
                0 => m.save(round as u64, &[("x", &bag)])?,
                _ => m.save_async(round as u64, &[("x", &bag)])?,
            }
            // As an optimizer does; and what is dropped gives its memory to others at once.
            for t in [&split, &small, &uneven, &turned] {
                t.add_(32)?;
            }
            partial.mul_(-3)?;
            drop((bag, partial));
            zeros([70, 3], at(sbp![B, B]))?.add_(77)?;
        }
        m.finish()
    })?;
    Ok(())
}

#[test]
fn what_changes_after_a_save_is_saved_as_it_was() {
    if !cuda() {
        return;
    }
    for ranks in [2, 4] {
        let dir = tempfile::tempdir().unwrap();
        add_and_save(dir.path(), ranks).unwrap();
        let found = list(dir.path()).unwrap();
        assert_eq!(found.len(), ROUNDS);
        for f in found {
            let saved = Checkpoint::open(&f.path).unwrap();
            saved.verify().unwrap();
            let n = (6 * f.step + 32 * (f.step - 1)) as f64;
            run_ranks(3, |_| {
                let mesh = Placement::all(Device::Cpu)?;
                let read = |i: usize| saved.tensor(&format!("x.{i}"), (&mesh, sbp![S(0)]))?.to_f64_vec();
                assert_eq!(read(0)?, vec![n; 300 * 70], "step {}", f.step);
                assert_eq!(read(1)?, vec![n; 33]);
                assert_eq!(read(2)?, vec![n; 35]);
                let turned: Vec<f64> = (0..240).map(|i| f64::from(i % 24 * 10 + i / 24) + n).collect();
                assert_eq!(read(3)?, turned);
                assert_eq!(read(4)?, vec![300.0 * 70.0 * n * n; 70 * 3]);
                Ok(())
            })
            .unwrap();
        }
    }
}

#[test]
fn any_device_loads_what_any_other_has_saved() {
    if !cuda() {
        return;
    }
    for (from, to) in [(Device::Cuda, Device::Cpu), (Device::Cpu, Device::Cuda), (Device::Cuda, Device::Cuda)] {
        for worlds in [(1, 4), (4, 2), (3, 3)] {
            random((worlds.0, from), (worlds.1, to), 2);
        }
    }
}

#[test]
fn training_on_gpus_goes_on_with_its_bits() {
    if !cuda() {
        return;
    }
    let way = ResumeCase { device: Device::Cuda, ranks: 4, mesh: [2, 2], split: true, dtype: DType::BF16, adam: true };
    let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let want = run(whole.path(), &way, 11, false);
    for end in [4, 8] {
        run(cut.path(), &way, end, true);
    }
    assert_eq!(run(cut.path(), &way, 11, true), want);
    let steps: Vec<u64> = list(cut.path()).unwrap().iter().map(|f| f.step).collect();
    assert_eq!(steps, [6, 9], "two are kept");
}

#[test]
fn training_moves_between_hosts_and_gpus() {
    if !cuda() {
        return;
    }
    let on = |device, ranks, mesh, split| ResumeCase { device, ranks, mesh, split, dtype: DType::F64, adam: true };
    let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let want = run(whole.path(), &on(Device::Cpu, 1, [1, 1], false), 13, false);
    run(cut.path(), &on(Device::Cuda, 4, [2, 2], true), 4, true);
    run(cut.path(), &on(Device::Cpu, 3, [1, 3], true), 7, true);
    run(cut.path(), &on(Device::Cuda, 2, [2, 1], false), 10, false);
    let got = run(cut.path(), &on(Device::Cpu, 1, [1, 1], false), 13, true);
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-9), "{got:?}\n{want:?}");
}

/// The copies of a save go through a few pinned buffers, piece by piece, and wait for nothing else.
#[test]
fn a_save_copies_each_byte_once() {
    if !cuda() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    run_ranks_with(1, VmMode::Inline, |world| {
        let bag = Bag((0..5).map(|i| full([1000 + i, 7], i as f64, Device::Cuda)).collect::<Result<_>>()?);
        let mut m = CheckpointManager::new(dir.path(), CheckpointOptions::default());
        let counted = || -> Result<(u64, u64, u64)> {
            let c = world.ctx().device(Device::Cuda)?.vm.counters();
            Ok((c.host_copies, c.syncs, c.kernels))
        };
        let mut save = |step: u64, bag: &Bag, pieces: u64| -> Result<()> {
            let before = counted()?;
            m.save_async(step, &[("x", bag)])?;
            let after = counted()?;
            assert_eq!((after.0 - before.0, after.2 - before.2), (pieces, 0), "copies and kernels");
            assert!(after.1 - before.1 <= pieces, "waits: {before:?} {after:?}");
            Ok(())
        };
        for step in 1..4 {
            save(step, &bag, 5)?;
        }
        // 21 MiB come in pieces of 4 MiB, several at a time.
        let n = (21 << 18) + 5;
        let large = arange(n, Device::Cuda)?.cast(DType::F32)?;
        save(4, &Bag(vec![large.clone()]), 6)?;
        large.mul_(0)?;
        m.finish()?;
        let read = Checkpoint::open(dir.path())?.tensor("x.0", Device::Cpu)?.to_vec::<f32>()?;
        assert!(read.iter().enumerate().all(|(i, x)| *x == i as f32), "pieces are where they belong");
        Ok(())
    })
    .unwrap();
}
