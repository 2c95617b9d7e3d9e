//! Training that stops and goes on: the same numbers as without the stop.

use oflow::checkpoint::{Checkpoint, CheckpointManager, CheckpointOptions, latest, list};
use oflow::data::Loader;
use oflow::nn::{Dropout, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer, Sgd, SgdOptions};
use oflow::prelude::*;
use oflow::state::Stateful;
use oflow::{World, run_ranks, run_ranks_with, vm::VmMode};
use oflow_tests::bag::Bag;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(oflow::nn::Module)]
struct Net {
    a: Linear,
    drop: Dropout,
    b: Linear,
}

trait Both: Optimizer + Stateful {}
impl<T: Optimizer + Stateful> Both for T {}

/// How a run is spread and what it trains with.
#[derive(Clone)]
pub struct ResumeCase {
    pub device: Device,
    pub ranks: usize,
    pub mesh: [usize; 2],
    pub split: bool,
    pub dtype: DType,
    pub adam: bool,
}

/// Trains from where the folder says, up to `end` steps, saving every third; returns the losses of the whole run.
fn train(dir: &Path, way: &ResumeCase, end: u64, behind: bool) -> Result<Vec<f64>> {
    let mesh = Placement::new(way.device, &(0..way.ranks).collect::<Vec<_>>(), &way.mesh)?
        .mesh(&[("dp", way.mesh[0]), ("tp", way.mesh[1])])?;
    manual_seed(5);
    let t = (&mesh, sbp![B, B]).dtype(way.dtype);
    let mut net = Net { a: Linear::new(6, 16, &t)?, drop: Dropout::new(0.25), b: Linear::new(16, 3, &t)? };
    if way.split {
        net.to_global(&mesh, &[("a.*", sbp![B, S(0)]), ("b.weight", sbp![B, S(1)])])?;
    }
    let numbers = (0..22 * 6).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
    let loader = Loader::new(&mesh, 4).split_along("dp")?.column::<f32>(numbers, &[6])?;
    let loader = loader.column::<i64>((0..22).map(|i| i % 3).collect(), &[])?.shuffled(9);
    let mut batches = loader.stream();
    let mut opt: Box<dyn Both> = match way.adam {
        true => Box::new(AdamW::new(net.parameters(), AdamWOptions { lr: 0.02, ..Default::default() })),
        false => Box::new(Sgd::new(net.parameters(), SgdOptions { lr: 0.05, momentum: 0.9, ..Default::default() })),
    };
    let mut scaler = GradScaler::new(GradScalerOptions { scale: 16.0, growth_interval: 4, ..Default::default() });
    let mut losses = serde_json::json!([]);
    let mut manager = CheckpointManager::new(dir, CheckpointOptions { keep: 2 });
    let from = manager.load_latest(&mut [
        ("net", &mut net),
        ("opt", &mut *opt),
        ("scaler", &mut scaler),
        ("data", &mut batches),
        ("losses", &mut losses),
    ])?;
    for step in from.unwrap_or(0)..end {
        let b = batches.next()?;
        opt.zero_grad();
        let h = net.drop.forward(&net.a.forward(&b[0].cast(way.dtype)?)?.relu()?)?;
        let loss = net.b.forward(&h)?.cross_entropy(&b[1])?;
        scaler.scale(&loss)?.backward()?;
        scaler.step(&mut *opt)?;
        scaler.update();
        losses.as_array_mut().unwrap().push(loss.item()?.into());
        if (step + 1) % 3 == 0 {
            let state: [(&str, &dyn Stateful); 5] =
                [("net", &net), ("opt", &*opt), ("scaler", &scaler), ("data", &batches), ("losses", &losses)];
            match behind {
                true => manager.save_async(step + 1, &state)?,
                false => manager.save(step + 1, &state)?,
            }
        }
    }
    manager.finish()?;
    Ok(losses.as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect())
}

pub fn run(dir: &Path, way: &ResumeCase, end: u64, behind: bool) -> Vec<f64> {
    run_ranks(way.ranks, |_| train(dir, way, end, behind)).unwrap().remove(0)
}

#[test]
fn a_run_that_stops_and_goes_on_has_the_bits_of_one_that_does_not() {
    for (dtype, adam) in [(DType::F32, true), (DType::F32, false), (DType::BF16, true), (DType::BF16, false)] {
        let way = ResumeCase { device: Device::Cpu, ranks: 4, mesh: [2, 2], split: true, dtype, adam };
        let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let want = run(whole.path(), &way, 14, false);
        // Stops between two saves: what came after the last one is done again.
        for end in [4, 5, 11] {
            run(cut.path(), &way, end, true);
        }
        assert_eq!(run(cut.path(), &way, 14, true), want);
        let steps: Vec<u64> = list(cut.path()).unwrap().iter().map(|f| f.step).collect();
        assert_eq!(steps, [9, 12], "two are kept");
    }
}

#[test]
fn another_world_goes_on_with_the_same_numbers() {
    let on = |ranks, mesh, split| ResumeCase { device: Device::Cpu, ranks, mesh, split, dtype: DType::F64, adam: true };
    let whole = tempfile::tempdir().unwrap();
    let want = run(whole.path(), &on(1, [1, 1], false), 15, false);
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &on(4, [4, 1], false), 4, true);
    run(dir.path(), &on(2, [1, 2], true), 7, false);
    run(dir.path(), &on(6, [2, 3], true), 10, true);
    let got = run(dir.path(), &on(1, [1, 1], false), 15, true);
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-9), "{got:?}\n{want:?}");
}

#[test]
fn local_generators_go_on_too() {
    let tmp = tempfile::tempdir().unwrap();
    let next = |from: bool| {
        run_ranks_with(3, VmMode::Inline, |_| {
            manual_seed(4);
            let mut m = CheckpointManager::new(tmp.path(), CheckpointOptions::default());
            if from {
                assert_eq!(m.load_latest(&mut [])?, Some(1));
            } else {
                rand([3], Device::Cpu)?;
                m.save(1, &[])?;
            }
            rand([2], Device::Cpu)?.to_vec::<f32>()
        })
        .unwrap()
    };
    let want = next(false);
    assert_ne!(want[0], want[1]);
    assert_eq!(next(true), want);
}

#[test]
fn an_empty_folder_has_nothing_to_go_on_from() {
    let tmp = tempfile::tempdir().unwrap();
    run_ranks(2, |_| {
        let mut fc = Linear::new(2, 2, (&Placement::all(Device::Cpu)?, sbp![B]))?;
        let mut m = CheckpointManager::new(tmp.path().join("none"), CheckpointOptions::default());
        assert_eq!(m.load_latest(&mut [("model", &mut fc)])?, None);
        let e = m.load_step(7, &mut [("model", &mut fc)]).unwrap_err().to_string();
        assert!(e.contains("step-000007 does not exist"), "{e}");
        assert!(e.contains("help: `oflow ckpt ls` lists all; every host of a job"), "{e}");
        Ok(())
    })
    .unwrap();
    assert!(!tmp.path().join("none").exists());
}

/// Set when it goes.
struct Enough<'a>(&'a AtomicBool);

impl Drop for Enough<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads beside a job that keeps one checkpoint: what was the latest a moment ago may be gone.
#[test]
fn a_reader_beside_a_job_that_saves_finds_a_whole_checkpoint() {
    let tmp = tempfile::tempdir().unwrap();
    let full_of = |n: u64| -> Result<Bag> {
        let mesh = Placement::all(Device::Cpu)?;
        Ok(Bag((0..3).map(|_| full([50, 4], n as f64, (&mesh, sbp![S(0)]))).collect::<Result<_>>()?))
    };
    // Saves until the reader has met enough of them.
    let enough = AtomicBool::new(false);
    let save = || {
        for step in 1.. {
            run_ranks(2, |_| {
                let mut m = CheckpointManager::new(tmp.path(), CheckpointOptions { keep: 1 });
                m.save(step, &[("x", &full_of(step)?)])
            })
            .unwrap();
            if enough.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    let mut seen = BTreeSet::new();
    std::thread::scope(|s| {
        let saving = s.spawn(save);
        let _at_a_panic_too = Enough(&enough);
        while !saving.is_finished() {
            if latest(tmp.path()).unwrap().is_none() {
                std::thread::yield_now();
                continue;
            }
            Checkpoint::open(tmp.path()).unwrap().verify().unwrap();
            let read = |_: &World| {
                let mut bag = full_of(0)?;
                let mut m = CheckpointManager::new(tmp.path(), CheckpointOptions::default());
                let step = m.load_latest(&mut [("x", &mut bag)])?.unwrap();
                for t in &bag.0 {
                    assert_eq!(t.to_vec::<f32>()?, vec![step as f32; 200]);
                }
                Ok(step)
            };
            seen.extend(run_ranks(3, read).unwrap());
            if seen.len() > 5 {
                enough.store(true, Ordering::Relaxed);
            }
        }
    });
}
