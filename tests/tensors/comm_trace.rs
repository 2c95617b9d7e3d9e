//! Comm records and the report: every boxing with its line, op, direction, bytes and time.

use oflow::comm::shm::{ShmArena, ShmOptions};
use oflow::comm::sim::{SimWorld, run_with};
use oflow::comm::{Communicator, Group};
use oflow::interpreter::COMM_TRACE_LIMIT;
use oflow::prelude::*;
use oflow::vm::{INLINE_BYTES, VmMode};
use oflow::{RankCtx, Report};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Lines from `first` on, ops and directions of the boxings that move bytes.
fn places(first: u32) -> Vec<(u32, &'static str, &'static str)> {
    let records = oflow::take_comm_trace();
    assert!(records.iter().all(|r| r.site.file == file!() && r.measured.is_some()));
    let moved = records.iter().filter(|r| r.bytes_sent() > 0);
    moved.map(|r| (r.site.line - first, r.op, if r.backward { "backward" } else { "forward" })).collect()
}

#[test]
fn the_line_op_and_direction_of_each_boxing() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 6], (&mesh, sbp![S(1)]))?.requires_grad_(true)?;
        let w = ones([6, 2], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let b = ones([2], (&mesh, sbp![B]))?.requires_grad_(true)?;
        oflow::take_comm_trace();
        let first = line!();
        let h = x.matmul(&w)?.relu()?;
        let whole = h.to_global(sbp![B])?;
        let s = whole.to_global(sbp![S(0)])?.mul(&b)?;
        assert_eq!(places(first), [(1, "relu", "forward"), (2, "to_global", "forward")]);
        s.sum(())?.backward()?;
        // A boxing that the gradient rule of a forward call needed, and a leaf's complete gradient: small ones go last.
        assert_eq!(places(first), [(1, "matmul", "backward"), (5, "gradient", "backward")]);
        let soft = x.softmax(1)?;
        assert_eq!(places(first), [(8, "softmax", "forward"); 2], "maximum and sum, inside the lowering");
        soft.square()?.sum(())?.backward()?;
        assert_eq!(places(first), [(8, "softmax_grad", "backward")], "a sum, inside the lowering of the gradient");
        h.to_vec::<f32>()?;
        assert_eq!(places(first), [(12, "to_vec", "forward")]);
        Ok(())
    })
    .unwrap();
}

/// Plans of the boxings that move bytes since the last time.
fn moved() -> Vec<String> {
    let records = oflow::take_comm_trace();
    records.iter().filter(|r| r.bytes_sent() > 0).map(|r| r.plan().unwrap().steps[0].to_string()).collect()
}

#[test]
fn split_classes_reduce_the_maximum_the_sum_and_the_pick_once_each() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_vec((0..24).map(|i| (i * 7 % 11) as f64).collect(), [4, 6], Device::Cpu)?;
        let t = distribute(&from_vec(vec![3i64, 0, 5, 1], [4], Device::Cpu)?, (&mesh, sbp![B]))?;
        let split = distribute(&x, (&mesh, sbp![S(1)]))?;
        let whole = distribute(&x, (&mesh, sbp![B]))?.cross_entropy(&t)?.item()?;
        oflow::take_comm_trace();
        // So few numbers would be gathered.
        let _kept = oflow::keep_layouts();
        let loss = split.cross_entropy(&t)?;
        assert_eq!(
            moved(),
            ["all-reduce(max) along axis 0", "all-reduce(sum) along axis 0", "all-reduce(sum) along axis 0"]
                .map(|s| format!("{s}: [{}] -> [B]", if s.contains("max") { "P(max)" } else { "P(sum)" }))
        );
        assert!((loss.item()? - whole).abs() < 1e-12);
        Ok(())
    })
    .unwrap();
}

/// What the ranks send for a roll and a flip of a grid whose rows are split: the rows that come from other ranks, and no more.
#[test]
fn rows_that_move_between_ranks_are_all_that_a_roll_sends() {
    oflow::run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let (rows, columns) = (10i64, 4096usize);
        let whole =
            from_vec((0..rows * columns as i64).map(|i| i as f64).collect(), [rows as usize, columns], Device::Cpu)?;
        let x = distribute(&whole, (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        for shift in [1i64, -1, 12] {
            oflow::take_comm_trace();
            let y = x.roll(shift, 0)?;
            assert_eq!(y.sbp().unwrap(), &sbp![S(0)]);
            let sent: u64 = oflow::take_comm_trace().iter().map(|r| r.bytes_sent()).sum();
            let owner = |r: i64| [0..3, 3..6, 6..8, 8..10].iter().position(|rows| rows.contains(&r));
            let away = (0..rows).filter(|r| owner(*r) != owner((r + shift).rem_euclid(rows))).count();
            assert_eq!(sent, (away * columns * 8) as u64, "all ranks together, rolled by {shift}");
            assert_eq!(y.to_vec::<f64>()?, whole.roll(shift, 0)?.to_vec::<f64>()?);
        }
        let y = x.flip(0)?;
        assert_eq!((y.sbp().unwrap(), y.to_vec::<f64>()?), (&sbp![S(0)], whole.flip(0)?.to_vec::<f64>()?));
        // Both turned: the ranks of a mesh of two axes cut rows and columns.
        let grid = mesh.mesh(&[("rows", 2), ("columns", 2)])?;
        let z = distribute(&whole, (&grid, sbp![S(0), S(1)]))?;
        let turned = z.roll([3, -2], [0, 1])?;
        assert_eq!(turned.sbp().unwrap(), &sbp![S(0), S(1)]);
        assert_eq!(turned.to_vec::<f64>()?, whole.roll([3, -2], [0, 1])?.to_vec::<f64>()?);
        let weights = distribute(&whole, (&mesh, sbp![S(0)]))?;
        x.roll(2, 0)?.mul(&weights)?.sum(())?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f64>()?, whole.roll(-2, 0)?.to_vec::<f64>()?);
        Ok(())
    })
    .unwrap();
}

#[test]
fn reading_on_one_rank_brings_the_value_to_that_rank_only() {
    oflow::run_ranks(4, |w| {
        let me = w.rank();
        let all = Placement::all(Device::Cpu)?;
        let plane = all.mesh(&[("dp", 2), ("tp", 2)])?;
        let part = Placement::new(Device::Cpu, &[2, 0], &[2])?;
        let values: Vec<f64> = (0..7 * 5).map(f64::from).collect();
        let local = from_vec(values.clone(), [7, 5], Device::Cpu)?;
        let bytes = |n: usize| (n * 8) as u64;
        // Elements that the reader has not: of its row, of the two replicas, as contributions, as whole.
        for (mesh, sbp, reader, elements) in [
            (&all, sbp![S(0)], 0, 5 * 5),
            (&all, sbp![S(0)], 3, 6 * 5),
            (&plane, sbp![B, S(1)], 1, 7 * 3),
            (&all, sbp![P], 2, 3 * 35),
            (&all, sbp![B], 2, 0),
            // Readers outside the placement.
            (&part, sbp![S(0)], 1, 35),
            (&part, sbp![B], 3, 35),
            (&part, sbp![P], 1, 2 * 35),
        ] {
            let x = distribute(&local, (mesh, sbp.clone()))?;
            oflow::take_comm_trace();
            w.barrier()?;
            let before = w.ctx().comm()?.traffic().bytes_sent;
            let got = x.to_vec_on::<f64>(reader)?;
            let sent = w.ctx().comm()?.traffic().bytes_sent - before;
            assert_eq!(got, (me == reader).then(|| values.clone()), "{sbp} on {mesh}, read on {reader}");
            let told: u64 = oflow::take_comm_trace().iter().map(|r| r.bytes_sent()).sum();
            assert_eq!(told, bytes(elements), "{sbp} on {mesh}, read on {reader}");
            assert!(sent <= told && (me != reader || sent == 0), "rank {me} sent {sent} of {told}");
        }
        let x = distribute(&local, (&all, sbp![S(0)]))?;
        let error = x.to_vec_on::<f64>(4).unwrap_err();
        assert!(error.is_logical() && error.to_string().contains("rank 4"), "{error}");
        // A local tensor is its rank's own.
        assert_eq!(local.to_vec_on::<f64>(1)?, (me == 1).then_some(values));
        Ok(())
    })
    .unwrap();
}

#[test]
fn memory_stats_count_what_boxings_take_between_their_steps() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        // Sizes of whole blocks: a shard is 2 MiB.
        let x = ones([1 << 10, 1 << 10], (&mesh, sbp![S(1)]))?;
        let live = || Ok::<_, Error>(oflow::memory_stats(Device::Cpu)?.live);
        let before = live()?;
        oflow::take_comm_trace();
        let y = x.to_global(sbp![S(0)])?;
        let extra = oflow::take_comm_trace()[0].plan().unwrap().extra_bytes();
        let stats = oflow::memory_stats(Device::Cpu)?;
        assert_eq!(extra, 2 << 20, "received apart");
        assert_eq!(stats.peak, before + (2 << 20) + extra as usize);
        assert_eq!(stats.live, before + (2 << 20), "nothing of it stays in use");
        drop((x, y));
        Ok(())
    })
    .unwrap();
}

#[test]
fn boxings_that_share_a_collective_share_its_bytes() {
    let told = oflow::run_ranks(3, |world| {
        let mesh = Placement::all(Device::Cpu)?;
        // Alone each would be one phase, in which everyone sends everything to everyone.
        let all = [700, 800, 0].map(|n| ones([n], (&mesh, sbp![P])));
        let all = all.into_iter().collect::<Result<Vec<_>>>()?;
        let sent = || -> Result<u64> { Ok(world.ctx().comm()?.traffic().bytes_sent) };
        oflow::take_comm_trace();
        let mut counted: Vec<u64> = vec![sent()?];
        for _ in 0..2 {
            oflow::box_many(&all.iter().map(|t| (t, (&mesh, sbp![B]))).collect::<Vec<_>>())?;
            world.barrier()?;
            counted.push(sent()?);
        }
        let records: Vec<u64> =
            oflow::take_comm_trace().iter().map(|r| r.bytes_by_link().values().sum::<u64>()).collect();
        oflow::box_many(&all.iter().map(|t| (t, (&mesh, sbp![B]))).collect::<Vec<_>>())?;
        Ok((records, oflow::report().bytes(), counted[2] - counted[1]))
    })
    .unwrap();
    let counted: u64 = told.iter().map(|(.., sent)| sent).sum();
    assert_eq!(counted, 2 * 2 * 1500 * 4);
    for (records, report, _) in &told {
        assert_eq!(*report, counted);
        assert_eq!(records.iter().sum::<u64>(), 2 * counted);
        // By their elements, rounded on each rank.
        assert!(records[0].abs_diff(counted * 7 / 15) <= 3, "{records:?}");
    }
}

#[test]
fn a_ring_and_no_more() {
    let reports = oflow::run_ranks(2, |_| {
        let x = ones([4], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
        oflow::take_comm_trace();
        let many = |n: usize| (0..n).try_for_each(|_| x.to_global(sbp![B]).map(drop));
        many(COMM_TRACE_LIMIT + 10)?;
        assert_eq!(oflow::take_comm_trace().len(), COMM_TRACE_LIMIT);
        many(COMM_TRACE_LIMIT + 7)?;
        let report = oflow::report();
        assert_eq!(oflow::report().count(), 0);
        Ok(report)
    })
    .unwrap();
    for r in reports {
        assert_eq!((r.count(), r.dropped, r.lines.len()), (COMM_TRACE_LIMIT as u64, 7, 1));
        assert_eq!(r.lines[0].measured.unwrap().count, COMM_TRACE_LIMIT as u64);
        assert!(r.to_string().contains("7 communication records were dropped"), "{r}");
    }
}

#[test]
fn the_report_adds_up() {
    let (sent, reports): (Vec<u64>, Vec<Report>) = oflow::run_ranks(3, |w| {
        let mesh = Placement::all(Device::Cpu)?;
        let part = Placement::new(Device::Cpu, &[0, 2], &[2])?;
        let local = full([2, 5], 1.0, Device::Cpu)?;
        w.barrier()?;
        oflow::report();
        let before = w.ctx().comm()?.traffic().bytes_sent;
        let x = local.to_global((&mesh, sbp![B]))?; // a collective about shapes, and a broadcast
        for _ in 0..5 {
            x.to_global(sbp![S(1)])?.to_global(sbp![B])?;
        }
        x.to_global((&part, sbp![S(0)]))?.sum(())?.item()?; // rank 1 is outside and gets the value by a broadcast
        let sent = w.ctx().comm()?.traffic().bytes_sent - before;
        Ok((sent, oflow::report()))
    })
    .unwrap()
    .into_iter()
    .unzip();
    for (rank, r) in reports.iter().enumerate() {
        assert_eq!(r.bytes(), sent.iter().sum::<u64>(), "what the transport sent: {r}");
        assert_eq!(r.count(), r.lines.iter().map(|l| l.count).sum::<u64>());
        assert_eq!((r.world, r.ranks.as_slice(), r.dropped), (3, &[rank][..], 0));
        let gather = r.lines.iter().find(|l| l.steps == ["all-gather(dim 1) along axis 0"]).unwrap();
        assert_eq!((gather.count, gather.bytes, gather.tensor.as_str()), (5, 5 * 2 * 40, "f32[2, 5]"));
        let m = gather.measured.unwrap();
        assert!(m.count == 5 && m.median_ns > 0 && m.total_ns >= 2 * m.median_ns, "{m:?}");
        assert!(r.ratio().unwrap() > 0.0);
        // Rank 1 has no part in a reduction on ranks 0 and 2: it knows of it and measures nothing.
        let reduce = r.lines.iter().find(|l| l.on.contains("0,2") || l.on.contains("0, 2")).unwrap();
        assert_eq!(reduce.measured.is_some(), rank != 1, "{r}");
    }
    let all = Report::merge(reports.iter().cloned());
    assert_eq!(
        (all.bytes(), all.count(), all.ranks.as_slice()),
        (reports[0].bytes(), reports[0].count(), &[0, 1, 2][..])
    );
    assert!(all.to_string().starts_with("communication by line of the program, all 3 ranks\n"), "{all}");
    assert_eq!(Report::from_json(&all.to_json()).unwrap(), all);
}

const LATE: Duration = Duration::from_millis(60);

/// Computes until a time has passed.
fn compute(for_: Duration) {
    let start = Instant::now();
    while start.elapsed() < for_ {
        std::hint::spin_loop();
    }
}

/// Boxes with a rank that is always late; the medians of elapsed and measured time, by rank.
fn with_a_late_rank<C: Communicator + 'static>(comms: Vec<C>, mode: VmMode, rows: usize) -> Vec<[Duration; 2]> {
    run_with(comms, |rank, comm| {
        let world = comm.world();
        let ctx = RankCtx::new(Arc::new(comm), None, oflow::boxing::Planner::default(), mode)?;
        let _entered = ctx.enter();
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([rows, 16], (&mesh, sbp![S(0)]))?;
        let partial = ones([rows, 16], (&mesh, sbp![P]))?;
        let mut times = [vec![], vec![]];
        for _ in 0..5 {
            oflow::take_comm_trace();
            if rank == world - 1 {
                compute(LATE);
            }
            let start = Instant::now();
            let (whole, split, reduced) =
                (x.to_global(sbp![B])?, x.to_global(sbp![S(1)])?, partial.to_global(sbp![B])?);
            let records = oflow::take_comm_trace();
            times[0].push(start.elapsed());
            assert_eq!(records.len(), 3);
            times[1].push(records.iter().filter_map(|r| r.measured).sum());
            drop((whole, split, reduced));
        }
        Ok::<_, Error>(times.map(|mut t: Vec<Duration>| {
            t.sort();
            t[2]
        }))
    })
    .into_iter()
    .collect::<Result<_>>()
    .unwrap()
}

#[test]
fn a_late_peer_is_not_communication() {
    let large = INLINE_BYTES / 64 * 2;
    let options = ShmOptions { timeout: Duration::from_secs(60), ..Default::default() };
    let shm = || {
        let (arena, _fd) = ShmArena::create(3, 1 << 20).unwrap();
        (0..3).map(|r| arena.comm(r, options).unwrap()).collect::<Vec<_>>()
    };
    let cases = [
        ("simulated", with_a_late_rank(SimWorld::new(3), VmMode::Inline, 7)),
        ("simulated, on a thread", with_a_late_rank(SimWorld::new(3), VmMode::CommThread, large)),
        ("shared memory", with_a_late_rank(shm(), VmMode::Inline, large)),
        ("shared memory, on a thread", with_a_late_rank(shm(), VmMode::CommThread, large)),
    ];
    for (name, ranks) in cases {
        for (rank, [elapsed, measured]) in ranks.iter().enumerate() {
            assert!(rank == 2 || *elapsed > LATE * 3 / 4, "{name}: rank {rank} waited only {elapsed:?}");
            assert!(
                *measured < LATE / 3 && !measured.is_zero(),
                "{name}: rank {rank} measured {measured:?} of {elapsed:?}"
            );
        }
    }
}

#[test]
fn waiting_is_known_to_ranks_that_hear_of_the_late_one() {
    // Rank 1 hears from rank 0 only, which is on time, in the first call; from rank 2, which is late, in the second.
    let waits = run_with(SimWorld::new(3), |rank, comm| {
        let tag = |ordinal| oflow::comm::Tag {
            ordinal,
            hash: 0,
            op: "test",
            file: file!(),
            line: 1,
            scope: Default::default(),
        };
        if rank == 2 {
            compute(LATE);
        }
        let mut byte = [rank as u8];
        if rank < 2 {
            let pair = Group { ranks: vec![0, 1], me: rank };
            comm.broadcast(&pair, &tag(1), 0, &mut byte).unwrap();
        }
        let early = comm.traffic().waited_ns;
        let all = Group { ranks: vec![0, 1, 2], me: rank };
        comm.broadcast(&all, &tag(2), 2, &mut byte).unwrap();
        [early, comm.traffic().waited_ns].map(Duration::from_nanos)
    });
    assert!(waits[1][0] < LATE / 2 && waits[1][1] > LATE / 2, "{waits:?}");
    assert!(waits[0][1] > LATE / 2 && waits[2][1].is_zero(), "{waits:?}");
}

#[test]
fn records_errors_and_lists_name_the_scope() {
    let reports = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let w = ones([6, 8], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let x = ones([4, 6], (&mesh, sbp![S(1)]))?;
        oflow::take_comm_trace();
        let y = {
            let _outer = oflow::name_scope("encoder");
            let _inner = oflow::name_scope("proj");
            let (y, called) = oflow::interpreter::list_called(|| x.matmul(&w));
            assert_eq!(called[0].site.scope.path(), "encoder.proj");
            let e = x.matmul(&ones([5, 5], (&mesh, sbp![B]))?).unwrap_err().to_string();
            assert!(e.contains("comm_trace.rs:") && e.contains(" in encoder.proj\n"), "{e}");
            y?.relu()?
        };
        y.to_global(sbp![B])?.sum(())?.backward()?;
        Ok(oflow::report())
    })
    .unwrap();
    for r in reports {
        let of = |op: &str| r.lines.iter().filter(|l| l.op == op).map(|l| l.scope.clone()).collect::<Vec<_>>();
        assert_eq!(of("relu"), ["encoder.proj"], "{r}");
        assert!(r.to_string().contains(" in encoder.proj\n"), "{r}");
        assert!(of("to_global").iter().all(String::is_empty), "{r}");
    }
}
