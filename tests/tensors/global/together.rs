//! `box_many` and `from_boxes` as a user calls them.

use oflow::boxing::many::bytes_sent_together;
use oflow::prelude::*;
use oflow::vm::VmMode;
use oflow::{CommRecord, box_many, from_boxes, run_ranks, run_ranks_with, take_comm_trace};

const MODES: [VmMode; 3] = [VmMode::Inline, VmMode::CommThread, VmMode::Async { delay_us: 20, seed: 3 }];

#[test]
fn box_many_gives_what_to_global_gives() -> Result<()> {
    for mode in MODES {
        run_ranks_with(4, mode, |_| {
            let line = Placement::all(Device::Cpu)?;
            let mesh = line.mesh(&[("a", 2), ("b", 2)])?;
            let part = Placement::new(Device::Cpu, &[3, 1], &[2])?;
            let a = randn([5, 6], (&line, sbp![P]))?;
            let b = randn([70, 300], (&mesh, sbp![S(0), P]))?;
            let c = arange(7, (&part, sbp![S(0)]))?;
            let list = [
                (&a, (&line, sbp![B])),
                (&b, (&mesh, sbp![S(1), S(0)])),
                (&c, (&line, sbp![B])),
                (&a, (&line, sbp![S(1)])),
                (&a, (&line, sbp![P])),
            ];
            let together = box_many(&list)?;
            for (out, (t, layout)) in together.iter().zip(&list) {
                let alone = t.to_global(layout.clone())?;
                assert_eq!((out.sbp()?, out.placement()?), (alone.sbp()?, alone.placement()?));
                match t.dtype() {
                    DType::I64 => assert_eq!(out.to_vec::<i64>()?, alone.to_vec::<i64>()?),
                    _ => assert_eq!(out.to_vec::<f32>()?, alone.to_vec::<f32>()?),
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn box_many_is_one_op_with_a_record_for_each_boxing() -> Result<()> {
    run_ranks(2, |world| {
        let mesh = Placement::all(Device::Cpu)?;
        let grads = (0..5).map(|i| ones([i + 1], (&mesh, sbp![P]))).collect::<Result<Vec<_>>>()?;
        let list: Vec<_> = grads.iter().map(|g| (g, sbp![B])).collect();
        take_comm_trace();
        let before = world.ctx().ops_issued();
        let out = box_many(&list)?;
        assert_eq!(world.ctx().ops_issued() - before, 1);
        let records = take_comm_trace();
        assert_eq!(records.len(), 5);
        assert!(records.iter().all(|r| r.op == "box_many" && r.site.file.ends_with("together.rs") && !r.backward));
        assert_eq!(out[4].to_vec::<f32>()?, [1.0; 5]);
        assert!(box_many(&[] as &[(&Tensor, NdSbp)])?.is_empty());
        Ok(())
    })?;
    Ok(())
}

#[test]
fn the_transport_carries_what_the_records_say() -> Result<()> {
    let by_rank = run_ranks(4, |world| {
        let line = Placement::all(Device::Cpu)?;
        let mesh = Placement::new(Device::Cpu, &[2, 0, 3, 1], &[2, 2])?;
        let x = randn([33, 21], (&line, sbp![P]))?;
        let y = randn([12, 50], (&mesh, sbp![S(1), P]))?;
        let comm = world.ctx().comm()?.clone();
        take_comm_trace();
        let before = comm.traffic().bytes_sent;
        for layout in [(&line, sbp![B]), (&line, sbp![S(1)])] {
            x.to_global(layout.clone())?;
            y.to_global(layout)?;
        }
        x.to_global((&mesh, sbp![S(0), S(0)]))?;
        let alone = (take_comm_trace(), comm.traffic().bytes_sent - before);
        let before = comm.traffic().bytes_sent;
        box_many(&[(&x, (&line, sbp![B])), (&y, (&line, sbp![B])), (&x, (&line, sbp![B]))])?;
        let plans: Vec<_> = take_comm_trace().into_iter().filter_map(|r| r.plan().cloned()).collect();
        let together = (bytes_sent_together(&plans, world.rank()), comm.traffic().bytes_sent - before);
        let planned: u64 = alone.0.iter().map(|r| r.bytes_sent()).sum();
        Ok((planned, alone.1, together))
    })?;
    assert!(by_rank[0].0 > 0);
    assert_eq!(by_rank.iter().map(|r| r.1).sum::<u64>(), by_rank[0].0);
    let sums = by_rank.iter().fold((0, 0), |sum, r| (sum.0 + r.2.0, sum.1 + r.2.1));
    assert_eq!(sums.0, sums.1);
    Ok(())
}

#[test]
fn gradients_of_box_many_go_back_to_their_homes() -> Result<()> {
    run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let part = Placement::new(Device::Cpu, &[2, 0], &[2])?;
        let x = arange(6, (&mesh, sbp![S(0)]))?.cast(DType::F32)?.requires_grad_(true)?;
        let y = ones([4], (&part, sbp![B]))?.requires_grad_(true)?;
        let unused = ones([4], (&part, sbp![B]))?.requires_grad_(true)?;
        let out = box_many(&[(&x, (&mesh, sbp![B])), (&y, (&mesh, sbp![S(0)])), (&unused, (&mesh, sbp![S(0)]))])?;
        out[0].mul(&out[0])?.sum(())?.add(&out[1].mul(3.0)?.sum(())?)?.backward()?;
        let (gx, gy) = (x.grad().unwrap(), y.grad().unwrap());
        assert_eq!(gx.to_vec::<f32>()?, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!((gy.placement()?, gy.to_vec::<f32>()?), (&part, vec![3.0; 4]));
        assert!(unused.grad().is_none());
        Ok(())
    })?;
    Ok(())
}

#[test]
fn gradients_of_small_leaves_travel_together() -> Result<()> {
    run_ranks(2, |world| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = arange(32, (&mesh, sbp![B]))?.cast(DType::F32)?.reshape([4, 8])?.to_global(sbp![S(0)])?;
        let leaf = |shape: &[usize]| ones(shape, (&mesh, sbp![B]))?.requires_grad_(true);
        let (small, large) = ((0..10).map(|_| leaf(&[8])).collect::<Result<Vec<_>>>()?, leaf(&[200, 200])?);
        let mut loss = ones([4, 200], (&mesh, sbp![S(0)]))?.matmul(&large)?.sum(())?;
        for w in &small {
            loss = loss.add(&x.mul(w)?.sum(())?)?;
        }
        take_comm_trace();
        let before = world.ctx().comm()?.traffic().calls;
        loss.backward()?;
        let calls = world.ctx().comm()?.traffic().calls - before;
        let records = take_comm_trace();
        assert!(records.iter().all(|r| r.backward));
        // One all-reduce for the ten small leaves; the large one goes alone, as soon as it is there.
        let together = |r: &CommRecord| r.op == "gradient" && r.plan().is_some_and(|p| *p.shape == [8]);
        let (small_ones, others): (Vec<_>, Vec<_>) = records.iter().partition(|r| together(r));
        assert_eq!(small_ones.iter().map(|r| r.plan().unwrap().steps.len()).collect::<Vec<_>>(), [1; 10]);
        let alone = others.iter().filter(|r| r.bytes_sent() > 0).count();
        assert_eq!(others.iter().filter(|r| r.op == "gradient").count(), 1);
        // Starting the collective is predicted once.
        let predicted: Vec<_> = small_ones.iter().map(|r| r.predicted).collect();
        assert!(predicted[1..].iter().all(|p| *p * 10 < predicted[0]), "{predicted:?}");
        assert_eq!(calls as usize, alone + 1);
        for w in &small {
            let want: Vec<f32> = (0..8).map(|i| (4 * i + 48) as f32).collect();
            assert_eq!(w.grad().unwrap().to_vec::<f32>()?, want);
        }
        assert_eq!(large.grad().unwrap().to_vec::<f32>()?, [4.0; 200 * 200]);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn box_many_refuses_before_anything_is_sent() -> Result<()> {
    let texts = run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4], (&mesh, sbp![P]))?;
        let e = box_many(&[(&x, sbp![B]), (&x, sbp![S(3)])]).unwrap_err();
        // The ranks are in step afterwards.
        assert_eq!(x.to_vec::<f32>()?, [1.0; 4]);
        Ok(e.to_string())
    })?;
    assert!(texts[0].contains("box_many: tensor 1") && texts[0].contains("together.rs:"), "{}", texts[0]);
    assert_eq!(texts[0], texts[1]);
    let local = ones([4], Device::Cpu)?;
    let e = run_ranks(1, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        Ok(box_many(&[(&local, (&mesh, sbp![B]))]).unwrap_err().to_string())
    })?;
    assert!(e[0].contains("is not a global tensor"), "{}", e[0]);
    Ok(())
}

#[test]
fn boxes_of_any_ranks_become_a_layout() -> Result<()> {
    for mode in MODES {
        run_ranks_with(3, mode, |world| {
            let part = Placement::new(Device::Cpu, &[2, 1], &[2])?;
            // Rank 0 has rows 0 and 1, rank 1 nothing, rank 2 rows 1 to 3 in two boxes.
            let rows = |a: usize, b: usize| -> Result<Tensor> {
                from_vec((a * 2..b * 2).map(|i| i as f32).collect::<Vec<_>>(), [b - a, 2], Device::Cpu)
            };
            let own = match world.rank() {
                0 => vec![(0, rows(0, 2)?)],
                1 => vec![],
                _ => vec![(3, rows(3, 4)?), (1, rows(1, 3)?)],
            };
            let offsets: Vec<_> = own.iter().map(|(row, _)| [*row, 0]).collect();
            let boxes: Vec<(&[usize], &Tensor)> =
                own.iter().zip(&offsets).map(|((_, t), o)| (o.as_slice(), t)).collect();
            for sbp in [sbp![S(0)], sbp![S(1)], sbp![B], sbp![P]] {
                let x = from_boxes(&boxes, [4, 2], (&part, sbp.clone()))?;
                assert_eq!(x.sbp()?, &sbp);
                assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
            }
            // A view with strides is a box like any other.
            let t = rows(0, 4)?.transpose(0, 1)?;
            let whole = [(&[0, 0][..], &t)];
            let x = from_boxes(if world.rank() == 0 { &whole } else { &[] }, [2, 4], (&part, sbp![S(1)]))?;
            assert_eq!(x.to_vec::<f32>()?, [0.0, 2.0, 4.0, 6.0, 1.0, 3.0, 5.0, 7.0]);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn wrong_boxes_are_errors_on_every_rank_alike() -> Result<()> {
    type Wrong = fn(usize) -> Result<Vec<(Vec<usize>, Tensor)>>;
    let cases: [(&str, Wrong); 7] = [
        ("no rank holds the elements from [2] on (a box of sizes [1]) of [4]", |rank| {
            Ok(vec![(vec![3 * rank], ones([2 - rank], Device::Cpu)?)])
        }),
        ("rank 0 gives boxes of f32, rank 1 of f64", |rank| {
            let dtype = if rank == 0 { DType::F32 } else { DType::F64 };
            Ok(vec![(vec![2 * rank], ones([2], Device::Cpu.dtype(dtype))?)])
        }),
        ("the box of sizes [3] at [2] that rank 1 holds is not inside [4]", |rank| {
            Ok(vec![(vec![2 * rank], ones([3], Device::Cpu)?)])
        }),
        ("rank 1 gives a box whose offset or tensor has not the 1 dims of [4]", |rank| {
            Ok(vec![(vec![0; 1 + rank], ones([4], Device::Cpu)?)])
        }),
        ("rank 0 gives a box that requires a gradient", |_| {
            Ok(vec![(vec![0], ones([4], Device::Cpu)?.requires_grad_(true)?)])
        }),
        ("rank 1 gives a global tensor as a box", |rank| {
            let mesh = Placement::new(Device::Cpu, &[1], &[1])?;
            let x = ones([4], (&mesh, sbp![B]))?;
            Ok(vec![(vec![0], if rank == 1 { x } else { ones([4], Device::Cpu)? })])
        }),
        ("no rank gives a box, so nobody knows the dtype", |_| Ok(vec![])),
    ];
    for (text, wrong) in cases {
        let errors = run_ranks(2, |world| {
            let mesh = Placement::all(Device::Cpu)?;
            let own = wrong(world.rank())?;
            let boxes: Vec<(&[usize], &Tensor)> = own.iter().map(|(o, t)| (o.as_slice(), t)).collect();
            let e = from_boxes(&boxes, [4], (&mesh, sbp![S(0)])).unwrap_err();
            assert!(e.is_logical(), "{e}");
            // The ranks are in step afterwards.
            assert_eq!(ones([2], (&mesh, sbp![P]))?.to_vec::<f32>()?, [1.0; 2]);
            Ok(e.to_string())
        })?;
        assert!(errors[0].contains(text), "{}", errors[0]);
        assert!(errors[0].contains("from_boxes([4], [S(0)])") && errors[0].contains("together.rs:"), "{}", errors[0]);
        assert_eq!(errors[0], errors[1]);
    }
    Ok(())
}
