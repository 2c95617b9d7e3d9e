//! Training steps of a GPT.

use super::model::{Config, Gpt, on_axis};
use super::{same, told};
use oflow::data::Loader;
use oflow::functional::CrossEntropyOptions;
use oflow::nn::Module;
use oflow::optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer, clip_grad_norm};
use oflow::prelude::*;
use oflow::{Autocast, Tensor, World, autocast};
use std::time::Instant;

/// How the model is laid out and trained.
#[derive(Clone, Copy, Debug)]
struct Job {
    mesh: &'static [(&'static str, usize)],
    split: bool,
    precision: Autocast,
    dropout: f64,
    device: Device,
}

const PLAIN: Job =
    Job { mesh: &[("dp", 2), ("tp", 2)], split: true, precision: Autocast::Off, dropout: 0.1, device: Device::Cpu };

/// Trains a small GPT, and tells what a run tells.
fn train(job: Job, steps: usize) -> Result<Vec<String>> {
    manual_seed(3);
    let mesh = Placement::all(job.device)?.mesh(job.mesh)?;
    let mut c = Config::new(61, 2, 32, 4, 12);
    c.block.dropout = job.dropout;
    let mut model = Gpt::new(&c, (&mesh, NdSbp::broadcast(mesh.axes())))?;
    if job.split {
        model.to_global(&mesh, &Gpt::split_rules(&mesh)?)?;
    }
    let ids = |from: usize| (0..16 * c.seq).map(|i| ((i * 7 + from) % c.vocab) as i64).collect();
    let loader = Loader::new(&mesh, 6).split_along("dp")?;
    let loader = loader.column::<i64>(ids(0), &[c.seq])?.column::<i64>(ids(1), &[c.seq])?.shuffled(1);
    let mut opt = AdamW::new(model.parameters(), AdamWOptions::default());
    let mut scaler = (job.precision == Autocast::F16).then(|| GradScaler::new(GradScalerOptions::default()));
    let mut batches = loader.stream();
    let mut kept: Vec<(String, Tensor)> = vec![];
    for step in 0..steps {
        let b = batches.next()?;
        let loss = {
            let _amp = autocast(job.precision);
            model.forward(&b[0])?.cross_entropy_with(&b[1], &CrossEntropyOptions { dim: -1, ..Default::default() })?
        };
        opt.zero_grad();
        match &mut scaler {
            Some(s) => {
                s.scale(&loss)?.backward()?;
                s.unscale_(&opt)?;
            }
            None => loss.backward()?,
        }
        kept.push((format!("norm {step}"), clip_grad_norm(model.parameters(), 1.0)?));
        match &mut scaler {
            Some(s) => {
                assert!(s.step(&mut opt)?);
                s.update();
            }
            None => opt.step()?,
        }
        kept.push((format!("loss {step}"), loss));
    }
    for (name, p) in model.named_parameters() {
        kept.push((format!("gradient of {name}"), p.grad().expect("a gradient")));
        kept.push((name, p));
    }
    told(job.device, &kept)
}

fn compare(job: Job) {
    let real = crate::real(4, |_| train(job, 3));
    for (rank, real) in real.iter().enumerate() {
        let dry = oflow::dry_run(4, rank, |_| train(job, 3)).unwrap();
        assert!(real.iter().any(|line| line.contains("backward of")));
        same(&format!("{job:?}, rank {rank}"), real, &dry);
    }
}

#[test]
fn a_dry_run_of_gpt_tells_what_a_real_run_tells() {
    compare(PLAIN);
    compare(Job { split: false, ..PLAIN });
    compare(Job { mesh: &[("dp", 4)], split: false, precision: Autocast::Bf16, ..PLAIN });
    compare(Job { precision: Autocast::F16, dropout: 0.0, ..PLAIN });
}

/// The asynchronous device runs the same program: what it holds at once depends on delays, the rest does not.
#[test]
fn the_asynchronous_device_is_told_alike() {
    let job = Job { device: Device::Async, ..PLAIN };
    let real = crate::real(4, |_| train(job, 2)).remove(0);
    let dry = oflow::dry_run(4, 0, |_| train(job, 2)).unwrap();
    let n = real.len() - 1;
    same("async", &real[..n], &dry[..n]);
}

/// A GPT with the width of the one of 124M parameters, two blocks deep; batch, heads and hidden units split.
fn big_step(world: &World, device: Device) -> Result<(String, usize)> {
    let mesh = Placement::all(device)?.mesh(&[("dp", 8), ("tp", 8), ("replica", 64)])?;
    assert_eq!(world.size(), mesh.len());
    let c = Config::new(50_304, 2, 768, 16, 1024);
    let mut model = Gpt::new(&c, (&mesh, sbp![B, B, B]))?;
    let mut rules = Gpt::split_rules(&mesh)?;
    let vocabulary = on_axis(&mesh, "tp", Sbp::Split(0))?;
    rules.extend([("wte.weight", vocabulary.clone()), ("head.weight", vocabulary)]);
    model.to_global(&mesh, &rules)?;
    let mut opt = AdamW::new(model.parameters(), AdamWOptions::default());
    let tokens = || zeros([1024, c.seq], (&mesh, sbp![S(0), B, S(0)]).dtype(DType::I64));
    let loss = {
        let _amp = autocast(Autocast::Bf16);
        model
            .forward(&tokens()?)?
            .cross_entropy_with(&tokens()?, &CrossEntropyOptions { dim: -1, ..Default::default() })?
    };
    loss.backward()?;
    opt.step()?;
    let mut all = format!("{loss:?}\n");
    for (name, p) in model.named_parameters() {
        all += &format!("{name} {p:?} {:?}\n", p.grad().expect("a gradient"));
    }
    for r in oflow::take_comm_trace() {
        all += &format!("{r} {:?}\n", r.predicted);
    }
    Ok((all, oflow::memory_stats(device)?.peak))
}

#[test]
fn every_rank_of_8_by_8_by_64_decides_alike() {
    let mut first: Option<String> = None;
    for (device, rank) in [(Device::Cuda, 0), (Device::Cuda, 2077), (Device::Cuda, 4095)] {
        let start = Instant::now();
        let (all, peak) = oflow::dry_run(4096, rank, |w| big_step(w, device)).unwrap();
        let took = start.elapsed();
        println!(
            "rank {rank} of [8, 8, 64]: {took:?}, {} communication records, peak {peak} bytes",
            all.lines().count()
        );
        assert!(peak > 50_304 * 768 / 8 * 16, "weights, gradients and two moments: {peak}");
        match &first {
            Some(f) => assert_eq!(&all, f, "rank {rank}"),
            None => first = Some(all),
        }
    }
}
