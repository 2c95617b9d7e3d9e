//! Training on `Device::Cuda`: the CPU's losses, and a warm step that allocates nothing, waits for nothing and copies nothing
//! between host and GPU.

use oflow::nn::{LayerNorm, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer};
use oflow::prelude::*;

#[derive(oflow::nn::Module)]
struct Net {
    fc1: Linear,
    norm: LayerNorm,
    fc2: Linear,
}

fn train(device: Device, steps: usize, mut after: impl FnMut(Tensor)) -> Result<()> {
    manual_seed(3);
    let mesh = Placement::all(device)?;
    let target = |shape: [usize; 2]| randn(shape, (&mesh, sbp![B]));
    let net = Net {
        fc1: Linear::new(8, 16, (&mesh, sbp![B]))?,
        norm: LayerNorm::new(16, (&mesh, sbp![B]))?,
        fc2: Linear::new(16, 5, (&mesh, sbp![B]))?,
    };
    let x = target([12, 8])?;
    let classes: Vec<i64> = (0..12).map(|i| i % 5).collect();
    let y = from_vec(classes, [12], Device::Cpu)?.to_device(device)?;
    let y = distribute(&y, (&mesh, sbp![B]))?;
    let mut optimizer = AdamW::new(net.parameters(), AdamWOptions::default());
    for _ in 0..steps {
        let h = net.norm.forward(&net.fc1.forward(&x)?.gelu()?)?;
        let loss = net.fc2.forward(&h)?.cross_entropy(&y)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        after(loss);
    }
    Ok(())
}

fn losses(device: Device, steps: usize) -> Result<Vec<f64>> {
    let mut losses = vec![];
    train(device, steps, |l| losses.push(l))?;
    losses.iter().map(|l| l.item()).collect()
}

#[test]
fn the_losses_of_twenty_steps_are_the_cpus() {
    if !super::cuda() {
        return;
    }
    let run = |device| oflow::run_ranks(1, |_| losses(device, 20)).unwrap().remove(0);
    let (cpu, cuda) = (run(Device::Cpu), run(Device::Cuda));
    for (i, (a, b)) in cpu.iter().zip(&cuda).enumerate() {
        assert!((a - b).abs() <= 1e-4 * a.abs(), "step {i}: {a} on the cpu, {b} on cuda");
    }
    assert!(cuda[19] < cuda[0] * 0.9, "{cuda:?}");
}

#[test]
fn a_warm_step_allocates_waits_and_copies_nothing() {
    if !super::cuda() {
        return;
    }
    oflow::run_ranks(1, |world| {
        let mut seen = vec![];
        train(Device::Cuda, 8, |_| {
            let rt = world.ctx().device(Device::Cuda).expect("used");
            let c = rt.vm.counters();
            seen.push((rt.alloc.stats().misses, c.syncs, c.host_copies, c.kernels));
        })?;
        let (warm, last) = (seen[4], seen[7]);
        assert_eq!((warm.0, warm.1, warm.2), (last.0, last.1, last.2), "allocations, waits, copies: {seen:?}");
        assert!(last.3 > warm.3);
        Ok(())
    })
    .unwrap();
}
