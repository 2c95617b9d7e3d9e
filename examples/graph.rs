//! Trains a network on images of handwritten digits twice from the same seed: call by call, and as a graph that is captured once. Losses and
//! weights are the same, bit for bit.
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/graph.rs
//! ```

#[path = "common/digits.rs"]
mod digits;

use digits::{CLASSES, PIXELS, accuracy, digits};
use oflow::graph::{Graph, GraphOptions};
use oflow::memory_stats;
use oflow::nn::{Dropout, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Schedule};
use oflow::prelude::*;
use std::time::{Duration, Instant};

const EPOCHS: usize = 8;
const BATCH: usize = 64;
const LR: f64 = 0.004;

#[derive(oflow::nn::Module)]
struct Mlp {
    fc1: Linear,
    drop: Dropout,
    fc2: Linear,
}

impl Mlp {
    fn new(mesh: &Placement) -> Result<Mlp> {
        let target = (mesh, sbp![B]);
        Ok(Mlp {
            fc1: Linear::new(PIXELS, 128, target.clone())?,
            drop: Dropout::new(0.1),
            fc2: Linear::new(128, CLASSES, target)?,
        })
    }
    /// Logits `[N, 10]` of images `[N, 64]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.fc2.forward(&self.drop.forward(&self.fc1.forward(x)?.relu()?)?)
    }
}

/// One step of training: the closure that is captured, and that runs as it is.
fn step(model: &Mlp, opt: &mut AdamW, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let loss = model.forward(x)?.cross_entropy(y)?;
    opt.zero_grad();
    loss.backward()?;
    opt.step()?;
    Ok(loss)
}

/// A trained model, its losses, and the time of all steps.
struct Trained {
    model: Mlp,
    losses: Vec<f64>,
    time: Duration,
    /// Description of the graph.
    text: String,
    /// Bytes that the first run of the graph has taken beside what was there, as the allocator counts them.
    counted: usize,
}

fn train(mesh: &Placement, captured: bool) -> Result<Trained> {
    manual_seed(1);
    let model = Mlp::new(mesh)?;
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr: LR, ..Default::default() });
    let data = digits(mesh, BATCH, false)?.shuffled(1);
    let total = EPOCHS * data.batches();
    let schedule = Schedule::WarmupCosine { warmup: total / 20, total, floor: 0.02 };
    let (mut batches, mut graph) = (data.stream(), None);
    let mut trained = Trained { model, losses: vec![], time: Duration::ZERO, text: String::new(), counted: 0 };
    for n in 0..total {
        let [x, y] = &batches.next()?[..] else { continue };
        opt.set_lr(LR * schedule.at(n)); // a run of the graph reads the rate
        if captured && graph.is_none() {
            let model = &trained.model;
            let build =
                |g: &oflow::graph::GraphBuilder<'_>| step(model, &mut opt, &g.input("x", x)?, &g.input("y", y)?);
            let (mut built, before) = (Graph::build(build, GraphOptions::default())?, memory_stats(Device::Cpu)?.live);
            trained.losses.push(built.run(&[x, y])?.item()?);
            trained.counted = memory_stats(Device::Cpu)?.peak - before;
            graph = Some(built);
            continue;
        }
        let start = Instant::now();
        // The last batch of an epoch is smaller: a graph is of one shape, and the step itself runs beside it.
        let loss = match &mut graph {
            Some(graph) if x.shape()[0] == BATCH => graph.run(&[x, y])?,
            _ => step(&trained.model, &mut opt, x, y)?,
        };
        trained.time += start.elapsed();
        trained.losses.push(loss.item()?);
    }
    if let Some(plan) = graph.as_ref().and_then(Graph::plan) {
        let planned = plan.peak() - plan.outside;
        trained.text = format!("a run takes {planned} bytes by its plan, {} were counted", trained.counted);
    }
    trained.text.insert_str(0, &graph.map_or(String::new(), |g| g.explain()));
    Ok(trained)
}

fn main() -> Result<()> {
    let world = oflow::init()?;
    let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", world.size())])?;
    let (graph, eager) = (train(&mesh, true)?, train(&mesh, false)?);
    assert_eq!(graph.losses, eager.losses, "a graph has the bits of the step that it was captured from");
    for (a, b) in graph.model.parameters().iter().zip(eager.model.parameters()) {
        assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    }
    let found = accuracy(|x| graph.model.forward(x), &digits(&mesh, 256, true)?, DType::F32)?;
    if world.rank() == 0 {
        let micros = |t: &Trained| t.time.as_secs_f64() * 1e6 / t.losses.len() as f64;
        println!("{}", graph.text);
        println!("{:.0} us a step, {:.0} us as a graph; accuracy {found:.3}", micros(&eager), micros(&graph));
    }
    Ok(())
}
