//! From N ranks to M, from any layout to any other, bit for bit.

use super::plan::{layout, meshes};
use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions};
use oflow::prelude::*;
use oflow::run_ranks;
use oflow_tests::bag::Bag;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Shape, dtype and two numbers that choose the layouts.
type Case = (Vec<usize>, usize, u64, u64);

/// Number of ranks, and where their tensors lie.
type World = (usize, Device);

/// A mesh of some of the ranks, and a layout on it.
fn lie((world, device): World, n: u64, shape: &[usize], dtype: DType) -> Result<(Placement, NdSbp)> {
    let members = world - (n >> 40) as usize % world.div_ceil(2);
    let all = meshes(members);
    let dims = &all[(n >> 20) as usize % all.len()];
    let skip = (n >> 50) as usize % (world - members + 1);
    let ranks: Vec<usize> = (0..members).map(|r| skip + (r + (n >> 55) as usize) % members).collect();
    let partial: &[Sbp] = match dtype {
        d if d.is_small_float() => &[],
        DType::C64 | DType::C128 => &[Sbp::PARTIAL_SUM],
        DType::Bool => &[Sbp::Partial(oflow::comm::ReduceOp::Max)],
        _ => &[Sbp::PARTIAL_SUM, Sbp::Partial(oflow::comm::ReduceOp::Max), Sbp::Partial(oflow::comm::ReduceOp::Min)],
    };
    Ok((Placement::new(device, &ranks, dims)?, layout(n, dims.len(), shape.len(), partial)))
}

fn value(case: usize, shape: &[usize], dtype: DType) -> Result<Tensor> {
    let numbers = (0..shape.iter().product::<usize>() as i64).map(|i| (i * 7 + case as i64) % 61).collect();
    let t = from_vec::<i64>(numbers, shape, Device::Cpu)?.cast(dtype)?;
    if dtype.is_complex() { t.mul(Scalar::Complex(1.0, -2.0)) } else { Ok(t) }
}

/// The numbers of a tensor; of a complex one the parts.
fn numbers(t: &Tensor) -> Result<Vec<f64>> {
    if t.dtype().is_complex() { t.view_as_real()?.to_f64_vec() } else { t.to_f64_vec() }
}

fn there_and_back(from: World, to: World, cases: &[Case]) -> Result<()> {
    let dir = tempfile::tempdir()?;
    run_ranks(from.0, |_| {
        let mut tensors = vec![];
        for (i, (shape, dtype, n, _)) in cases.iter().enumerate() {
            let dtype = DType::BUILTIN[*dtype];
            let (placement, sbp) = lie(from, *n, shape, dtype)?;
            let whole = NdSbp::broadcast(placement.axes());
            tensors
                .push(distribute(&value(i, shape, dtype)?.to_device(from.1)?, (&placement, whole))?.to_global(&sbp)?);
        }
        let mut manager = CheckpointManager::new(dir.path(), CheckpointOptions::default());
        manager.save(1, &[("x", &Bag(tensors))])
    })?;
    Checkpoint::open(dir.path())?.verify()?;
    run_ranks(to.0, |_| {
        let saved = Checkpoint::open(dir.path())?;
        let mut bag = Bag(vec![]);
        for (i, (shape, dtype, _, n)) in cases.iter().enumerate() {
            let dtype = DType::BUILTIN[*dtype];
            let (placement, sbp) = lie(to, *n, shape, dtype)?;
            let t = saved.tensor(&format!("x.{i}"), (&placement, sbp.clone()))?;
            assert_eq!((t.dtype(), t.shape(), t.sbp()?), (dtype, &shape[..], &sbp));
            assert_eq!(numbers(&t)?, numbers(&value(i, shape, dtype)?)?, "{t}");
            // And in place, into what had other values.
            let whole = NdSbp::broadcast(placement.axes());
            let old =
                distribute(&value(i + 5, shape, dtype)?.to_device(to.1)?, (&placement, whole))?.to_global(&sbp)?;
            bag.0.push(old);
        }
        saved.load(&mut [("x", &mut bag)])?;
        for (i, t) in bag.0.iter().enumerate() {
            let (shape, dtype, ..) = &cases[i];
            assert_eq!(numbers(t)?, numbers(&value(i, shape, DType::BUILTIN[*dtype])?)?, "in place: {t}");
        }
        Ok(())
    })?;
    Ok(())
}

/// Random tensors, saved by some ranks in random layouts and loaded by some others in other ones.
pub fn random(from: World, to: World, tries: u32) {
    let shape = prop::collection::vec(prop_oneof![1 => Just(0usize), 8 => 1usize..8, 1 => 40usize..90], 0..4);
    let cases = prop::collection::vec((shape, 0..DType::BUILTIN.len(), any::<u64>(), any::<u64>()), 1..7);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: tries,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let run = |cases: Vec<Case>| {
        there_and_back(from, to, &cases).map_err(|e| TestCaseError::fail(format!("{from:?} to {to:?}: {e}")))
    };
    runner.run(&cases, run).unwrap();
}

#[test]
fn every_world_to_every_other() {
    for from in 1..=8 {
        for to in 1..=8 {
            random((from, Device::Cpu), (to, Device::Cpu), 2);
        }
    }
}

#[test]
fn large_tensors_are_cut_and_read_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let shape = [700, 1031];
    run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = arange(700 * 1031, (&mesh, sbp![B]))?.reshape(shape)?;
        let y = x.transpose(0, 1)?;
        let mut m = CheckpointManager::new(dir.path(), CheckpointOptions::default());
        m.save(1, &[("x", &Bag(vec![x, y]))])
    })
    .unwrap();
    let saved = Checkpoint::open(dir.path()).unwrap();
    assert!(saved.tensors()["x.0"].pieces.len() > 1, "cut");
    let sizes: Vec<u64> = saved.manifest().files.iter().map(|f| f.len).collect();
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() < 200_000, "{sizes:?}");
    for layout in [sbp![S(0), B], sbp![S(1), S(0)], sbp![S(1), S(1)], sbp![B, B]] {
        run_ranks(4, |_| {
            let mesh = Placement::new(Device::Cpu, &[0, 1, 2, 3], &[2, 2])?;
            let saved = Checkpoint::open(dir.path())?;
            let want: Vec<i64> = (0..700 * 1031).collect();
            assert_eq!(saved.tensor("x.0", (&mesh, layout.clone()))?.to_vec::<i64>()?, want);
            assert_eq!(saved.tensor("x.1", (&mesh, layout.clone()))?.transpose(0, 1)?.to_vec::<i64>()?, want);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn a_gpu_like_device_is_saved_after_its_work_is_done() {
    let dir = tempfile::tempdir().unwrap();
    run_ranks(2, |_| {
        let mesh = Placement::all(Device::Async)?;
        let mut m = CheckpointManager::new(dir.path(), CheckpointOptions::default());
        let x = ones([64, 64], (&mesh, sbp![S(0)]))?;
        for _ in 0..5 {
            x.add_(1.0)?;
        }
        let bag = Bag(vec![x.clone()]);
        m.save_async(5, &[("x", &bag)])?;
        // Training goes on in the same memory.
        x.add_(100.0)?;
        m.wait()?;
        let mut bag = Bag(vec![zeros([64, 64], (&mesh, sbp![S(1)]))?]);
        assert_eq!(m.load_latest(&mut [("x", &mut bag)])?, Some(5));
        assert_eq!(bag.0[0].to_vec::<f32>()?, vec![6.0; 64 * 64]);
        Ok(())
    })
    .unwrap();
}
