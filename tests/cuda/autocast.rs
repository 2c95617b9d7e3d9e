//! Low precision on `Device::Cuda`: autocast, loss scaling and f32 masters give the CPU's losses.

use oflow::functional::CrossEntropyOptions;
use oflow::nn::{Block, BlockOptions, Embedding, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer};
use oflow::prelude::*;

#[derive(oflow::nn::Module)]
struct Net {
    wte: Embedding,
    h: Block,
    head: Linear,
}

/// Losses of a few steps; weights are of `dtype`, products as `mode` says.
fn train(device: Device, mode: Autocast, dtype: DType) -> Result<Vec<f64>> {
    manual_seed(4);
    let mesh = Placement::all(device)?;
    let t = (&mesh, sbp![B]).dtype(dtype);
    let wte = Embedding::with_std(24, 32, 0.5, &t)?;
    let head = Linear { weight: wte.weight.clone(), bias: None };
    let block = BlockOptions { width: 32, heads: 1, hidden: 64, dropout: 0.0 };
    let net = Net { h: Block::new(&block, &t)?, wte, head };
    let ids = randint(0, 24, [2, 9], (&mesh, sbp![B]))?;
    let (x, y) = (ids.slice(1, 0, 8, 1)?, ids.slice(1, 1, 9, 1)?);
    let mut opt = AdamW::new(net.parameters(), AdamWOptions { lr: 1e-2, ..Default::default() });
    let mut scaler = GradScaler::new(GradScalerOptions::default());
    let mut losses = vec![];
    for _ in 0..5 {
        let loss = {
            let _amp = autocast(mode);
            net.head
                .forward(&net.h.forward(&net.wte.forward(&x)?)?)?
                .cross_entropy_with(&y, &CrossEntropyOptions { dim: -1, ..Default::default() })?
        };
        opt.zero_grad();
        if mode == Autocast::F16 {
            scaler.scale(&loss)?.backward()?;
            scaler.step(&mut opt)?;
            scaler.update();
        } else {
            loss.backward()?;
            opt.step()?;
        }
        losses.push(loss.item()?);
    }
    assert_eq!(scaler.skipped(), 0);
    Ok(losses)
}

#[test]
fn low_precision_gives_the_cpus_losses() {
    if !super::cuda() {
        return;
    }
    for (mode, dtype) in [
        (Autocast::Bf16, DType::F32),
        (Autocast::F16, DType::F32),
        // Half parameters with f32 masters.
        (Autocast::Bf16, DType::BF16),
    ] {
        let run = |device| oflow::run_ranks(1, |_| train(device, mode, dtype)).unwrap().remove(0);
        let (cpu, cuda) = (run(Device::Cpu), run(Device::Cuda));
        for (i, (a, b)) in cpu.iter().zip(&cuda).enumerate() {
            assert!((a - b).abs() <= 2e-2 * a.abs(), "{mode} {dtype}, step {i}: {a} on the cpu, {b} on cuda");
        }
        assert!(cuda[4] < cuda[0], "{mode} {dtype}: {cuda:?}");
    }
}
