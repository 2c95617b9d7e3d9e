//! `from_boxes`, `box_many`, conversions and reading on GPUs as a program calls them.

use oflow::prelude::*;
use oflow::{box_many, from_boxes, run_ranks};
use oflow_tests::gpus::{cuda, gpus};

/// Ranks enough for a GPU each, where there are several GPUs.
fn world() -> usize {
    gpus().clamp(2, 4)
}

#[test]
fn layouts_and_reading() -> Result<()> {
    if !cuda() {
        return Ok(());
    }
    run_ranks(world(), |w| {
        let n = w.size();
        let values: Vec<f32> = (0..6 * n).map(|i| i as f32).collect();
        let host = from_vec(values.clone(), [n, 6], Device::Cpu)?;
        let line = Placement::all(Device::Cuda)?;
        let x = host.to_device(Device::Cuda)?.to_global((&line, sbp![B]))?;
        assert_eq!(x.to_vec::<f32>()?, values);
        // Shards of what ranks have; B shards are made equal.
        let mine = from_vec(vec![w.rank() as f32 + 1.0; 3], [3], Device::Cuda)?;
        assert_eq!(mine.to_global((&line, sbp![B]))?.to_vec::<f32>()?, [1.0; 3]);
        let sum = (n * (n + 1) / 2) as f32;
        assert_eq!(mine.to_global((&line, sbp![P]))?.to_vec::<f32>()?, [sum; 3]);
        let rows = mine.to_global((&line, sbp![S(0)]))?;
        let want: Vec<f32> = (0..n).flat_map(|r| [r as f32 + 1.0; 3]).collect();
        assert_eq!(rows.to_vec::<f32>()?, want);
        // From a part of the world, which the others read too; and to the host's and back.
        let part = Placement::new(Device::Cuda, &[n - 1], &[1])?;
        let there = x.to_global((&part, sbp![B]))?;
        assert_eq!(there.to_vec::<f32>()?, values);
        let hosts = Placement::new(Device::Cpu, &[0, 1], &[2])?;
        let back = there.to_global((&hosts, sbp![S(1)]))?;
        assert_eq!(back.placement()?.device(), Device::Cpu);
        assert_eq!(back.to_global((&line, sbp![S(0)]))?.to_vec::<f32>()?, values);
        // Boxings of both devices in turn, one order on every rank.
        let y = host.to_global((&Placement::all(Device::Cpu)?, sbp![B]))?;
        for (one, other) in [(sbp![S(0)], sbp![S(1)]), (sbp![S(1)], sbp![S(0)]), (sbp![P], sbp![S(0)])] {
            let (on_gpu, on_cpu) = (x.to_global(one)?, y.to_global(other)?);
            assert_eq!(on_cpu.to_vec::<f32>()?, values);
            assert_eq!(on_gpu.to_vec::<f32>()?, values);
        }
        Ok(())
    })?;
    Ok(())
}

#[test]
fn many_at_once_and_from_boxes() -> Result<()> {
    if !cuda() {
        return Ok(());
    }
    run_ranks(world(), |w| {
        let n = w.size();
        let line = Placement::all(Device::Cuda)?;
        let hosts = Placement::all(Device::Cpu)?;
        let pair = Placement::new(Device::Cuda, &[1, 0], &[2])?;
        let values = |k: usize| (0..k).map(|i| (i % 17) as f32).collect::<Vec<_>>();
        let make = |shape: [usize; 2], at: &Placement, s: NdSbp| {
            distribute(&from_vec(values(shape[0] * shape[1]), shape, at.device())?, (at, s))
        };
        let a = make([5, 6], &line, sbp![P])?;
        let b = make([7, 4], &line, sbp![S(0)])?;
        let c = make([3, 8], &pair, sbp![S(1)])?;
        let d = make([4, 4], &hosts, sbp![S(0)])?;
        let out = box_many(&[
            (&a, (&line, sbp![B])),
            (&b, (&line, sbp![S(1)])),
            (&c, (&line, sbp![B])),
            (&a, (&line, sbp![S(1)])),
            (&d, (&line, sbp![B])),
            (&b, (&hosts, sbp![B])),
        ])?;
        for (t, count) in out.iter().zip([30, 28, 24, 30, 16, 28]) {
            assert_eq!(t.to_vec::<f32>()?, values(count), "{t}");
        }
        // Each rank has one row, the last one two; they become columns.
        let row = |r: usize| from_vec((0..6).map(|i| (10 * r + i) as f32).collect(), [1, 6], Device::Cuda);
        let (mine, last) = (row(w.rank())?, row(n)?);
        let (first, end) = ([w.rank(), 0], [n, 0]);
        let mut boxes: Vec<(&[usize], &Tensor)> = vec![(&first, &mine)];
        if w.rank() + 1 == n {
            boxes.push((&end, &last));
        }
        let whole = from_boxes(&boxes, [n + 1, 6], (&line, sbp![S(1)]))?;
        let want: Vec<f32> = (0..=n).flat_map(|r| (0..6).map(move |i| (10 * r + i) as f32)).collect();
        assert_eq!(whole.to_vec::<f32>()?, want);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn what_one_rank_does_alone_stays_on_the_gpu() -> Result<()> {
    if !cuda() {
        return Ok(());
    }
    run_ranks(world(), |w| {
        let line = Placement::all(Device::Cuda)?;
        let x = distribute(&from_vec((0..24).map(|i| i as f32).collect(), [6, 4], Device::Cuda)?, (&line, sbp![B]))?;
        let alone = Placement::new(Device::Cuda, &[0], &[1])?;
        let z = x.to_global((&alone, sbp![B]))?;
        let vm = &w.ctx().device(Device::Cuda)?.vm;
        vm.synchronize()?;
        let before = vm.counters();
        // A slice, zeros around it, one copy and zeros, a world of one.
        let s = x.to_global(sbp![S(0)])?;
        let p = s.to_global(sbp![P])?;
        let q = x.to_global(sbp![P])?;
        let one = z.to_global((&alone, sbp![S(1)]))?;
        let after = vm.counters();
        assert_eq!((after.syncs, after.host_copies), (before.syncs, before.host_copies));
        // NCCL is only put on the stream too, once its communicators are there.
        let whole = p.to_global(sbp![B])?;
        vm.synchronize()?;
        let before = vm.counters();
        let again = q.to_global(sbp![B])?;
        let after = vm.counters();
        if gpus() >= w.size() {
            assert_eq!((after.syncs, after.host_copies), (before.syncs, before.host_copies));
        } else {
            assert!(after.syncs > before.syncs && after.host_copies > before.host_copies);
        }
        for t in [s, p, q, one, whole, again] {
            assert_eq!(t.to_vec::<f32>()?, (0..24).map(|i| i as f32).collect::<Vec<_>>(), "{t}");
        }
        Ok(())
    })?;
    Ok(())
}
