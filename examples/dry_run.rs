//! Plans a training step of a 124M GPT on 4,096 GPUs, on one thread and without a GPU: layouts, communication and memory.
//!
//! ```text
//! cargo run --release --example dry_run
//! ```

#[path = "common/model.rs"]
mod model;

use model::{Config, Gpt};
use oflow::functional::CrossEntropyOptions;
use oflow::nn::Module;
use oflow::optim::{AdamW, AdamWOptions};
use oflow::prelude::*;
use std::time::Instant;

/// Tokens of the global batch: rows, and tokens of a row.
const BATCH: [usize; 2] = [2048, 1024];

/// One step on an [8, 8, 64] mesh: rows are split over 8 x 64 ranks, attention heads and hidden units over 8.
fn step() -> Result<()> {
    let mesh = Placement::all(Device::Cuda)?.mesh(&[("node", 8), ("tp", 8), ("dp", 64)])?;
    let config = Config::new(50_304, 12, 768, 16, BATCH[1]);
    let mut model = Gpt::new(&config, (&mesh, sbp![B, B, B]))?;
    model.to_global(&mesh, &Gpt::split_rules(&mesh)?)?;
    let mut opt = AdamW::new(model.parameters(), AdamWOptions::default());
    let tokens = || zeros(BATCH, (&mesh, sbp![S(0), B, S(0)]).dtype(DType::I64));
    oflow::take_comm_trace(); // what laying out the weights took
    let loss = {
        let _amp = autocast(Autocast::Bf16);
        model
            .forward(&tokens()?)?
            .cross_entropy_with(&tokens()?, &CrossEntropyOptions { dim: -1, ..Default::default() })?
    };
    loss.backward()?;
    opt.step()?;
    for (name, p) in model.named_parameters().iter().filter(|(n, _)| !n.starts_with("h.") || n.starts_with("h.0.")) {
        println!("{name:<18} {}", p.short());
    }
    println!("{}\n{loss:?}\n{}", oflow::report(), oflow::memory_stats(Device::Cuda)?);
    Ok(())
}

fn main() -> Result<()> {
    let start = Instant::now();
    oflow::dry_run(4096, 0, |_| step())?;
    println!("planned in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
