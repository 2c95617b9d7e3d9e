//! Warm paths touch no heap: the allocation of a tensor's memory, and boxing.

use super::{BYTES, calls};
use oflow::boxing::{Layout as BoxLayout, plan};
use oflow::comm::shm::{ShmArena, ShmOptions};
use oflow::comm::{Communicator, Tag, sim};
use oflow::kernels::View;
use oflow::kernels::view::contiguous_strides;
use oflow::memory::{Allocator, AllocatorOptions};
use oflow::prelude::*;
use oflow::sbp::shard_box;
use oflow::vm::box_exec::execute;

#[test]
fn warm_allocations_touch_no_heap() {
    let memory = Allocator::cpu(AllocatorOptions::default());
    let round = || {
        for bytes in [8, 64, 1000, 5000, 1 << 20, 3 << 20] {
            let blocks = [0; 4].map(|_| memory.alloc(bytes).unwrap());
            let shared = blocks[0].clone();
            shared.bump_version();
        }
    };
    round();
    let before = calls();
    round();
    assert_eq!(calls() - before, 0);
    // The counter counts.
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(calls() - before, 2);
    // 8 and 64 bytes are one class.
    assert_eq!(memory.stats().misses, 5 * 4);
}

/// The boxings of the tests below: reductions, gathers, a change of split, an exchange between permuted ranks.
fn layouts() -> Vec<(BoxLayout, BoxLayout)> {
    let line = Placement::new(Device::Cpu, &[0, 1], &[2]).unwrap();
    let turned = Placement::new(Device::Cpu, &[1, 0], &[2]).unwrap();
    let layout = |p: &Placement, s: NdSbp| BoxLayout::new(p, s);
    vec![
        (layout(&line, sbp![P]), layout(&line, sbp![B])),
        (layout(&line, sbp![P]), layout(&line, sbp![S(1)])),
        (layout(&line, sbp![S(1)]), layout(&line, sbp![B])),
        (layout(&line, sbp![S(0)]), layout(&line, sbp![S(1)])),
        (layout(&line, sbp![S(0)]), layout(&turned, sbp![S(0)])),
        (layout(&line, sbp![P]), layout(&turned, sbp![S(0)])),
    ]
}

/// Heap calls of this rank in a warm round of the executor.
fn warm_boxings(comm: &dyn Communicator) -> usize {
    let rank = comm.rank();
    let shape = [37, 21];
    let mut jobs = Vec::new();
    for (src, dst) in layouts() {
        let plan = plan(&shape, DType::F32, &src, &dst).unwrap();
        let view = |l: &BoxLayout| {
            let at = l.placement.position(rank).unwrap();
            let size = shard_box(&shape, &l.placement, &l.sbp, at).size;
            let memory = Vec::leak(vec![0f32; size.iter().product()]);
            // SAFETY: the memory is this test's until the process ends.
            unsafe { View::from_raw(memory.as_mut_ptr().cast(), DType::F32, size.clone(), contiguous_strides(&size)) }
        };
        jobs.push((plan, view(&src), view(&dst)));
    }
    let memory = Allocator::cpu(AllocatorOptions::default());
    let round = || {
        for (plan, src, dst) in &jobs {
            let tag =
                Tag { ordinal: 1, hash: 1, op: "to_global", file: "no_malloc.rs", line: 1, scope: Default::default() };
            execute(plan, (comm, &memory), &tag, Some(src), Some(dst)).unwrap();
        }
    };
    (0..3).for_each(|_| round());
    let before = calls();
    round();
    calls() - before
}

#[test]
fn warm_boxings_touch_no_heap() {
    assert_eq!(sim::run(2, |_, comm| warm_boxings(&comm)), [0, 0]);
    let (arena, _fd) = ShmArena::create(2, 4096).unwrap();
    let comms: Vec<_> = (0..2).map(|r| arena.comm(r, ShmOptions::default()).unwrap()).collect();
    assert_eq!(sim::run_with(comms, |_, comm| warm_boxings(&comm)), [0, 0]);
}

#[test]
fn warm_to_global_touches_no_heap() -> Result<()> {
    let calls = oflow::run_ranks(2, |_| {
        let mut jobs = Vec::new();
        for (src, dst) in layouts() {
            jobs.push((ones([37, 21], (&src.placement, src.sbp.clone()))?, dst));
        }
        // Kept from round to round: a type is interned as long as a tensor of it lives.
        let mut kept: Vec<Option<Tensor>> = vec![None; jobs.len()];
        let mut round = || -> Result<()> {
            for ((x, dst), kept) in jobs.iter().zip(&mut kept) {
                *kept = Some(x.to_global((&dst.placement, &dst.sbp))?);
            }
            Ok(())
        };
        // The ring of comm records grows at first.
        for _ in 0..50 {
            round()?;
        }
        let before = calls();
        round()?;
        Ok(calls() - before)
    })?;
    assert_eq!(calls, [0, 0]);
    Ok(())
}

#[test]
fn a_thread_without_a_context_takes_little_memory() {
    // What all threads share is there already.
    let add = || ones([2], Device::Cpu)?.add(&ones([2], Device::Cpu)?)?.to_vec::<f32>();
    add().unwrap();
    let bytes = std::thread::spawn(move || {
        let before = BYTES.get();
        add().unwrap();
        BYTES.get() - before
    });
    let bytes = bytes.join().unwrap();
    assert!(bytes < 128 << 10, "{bytes} bytes for one addition");
}
