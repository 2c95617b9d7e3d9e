//! Trains a two-layer network on 8x8 images of handwritten digits, on one rank or on several:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/train.rs -- --parallel tp
//! ```
//!
//! Options, checkpoints and output are in `common/`; `regression.rs` is a program without them.

#[path = "common/mod.rs"]
mod common;

use common::digits::{CLASSES, PIXELS, accuracy, digits};
use common::{OPTIONS, Options, Setup};
use oflow::nn::{Dropout, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Schedule};
use oflow::prelude::*;

const USAGE: &str = "\
Trains an MLP on 8x8 images of handwritten digits.

Options:
  --epochs N       passes over the training set  [default: 40]
  --steps N        largest number of steps
  --batch N        rows of a global batch  [default: 64]
  --hidden N       width of the hidden layer  [default: 128]
  --lr X           learning rate  [default: 0.004]
  --dropout P      probability of dropping a hidden unit  [default: 0.1]
";

#[derive(oflow::nn::Module)]
struct Mlp {
    fc1: Linear,
    drop: Dropout,
    fc2: Linear,
}

impl Mlp {
    /// Logits `[N, 10]` of images `[N, 64]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.fc2.forward(&self.drop.forward(&self.fc1.forward(x)?.relu()?)?)
    }
}

fn main() -> Result<()> {
    let mut o = Options::from_args([USAGE, OPTIONS].concat());
    let world = oflow::init()?;
    let (epochs, steps) = (o.count("--epochs", 40)?, o.count("--steps", usize::MAX)?);
    let (batch, hidden) = (o.count("--batch", 64)?, o.count("--hidden", 128)?);
    let (lr, dropout) = (o.or("--lr", 0.004)?, o.or("--dropout", 0.1)?);
    let setup = Setup::new(&world, o)?;
    let (mesh, dtype, precision) = (setup.mesh.clone(), setup.dtype, setup.precision);

    // Weights are whole on every rank. --parallel tp splits the outputs of the first layer and the inputs of the second:
    // the hidden units then need no communication.
    let target = (&mesh, sbp![B, B]).dtype(dtype);
    let mut model = Mlp {
        fc1: Linear::new(PIXELS, hidden, &target)?,
        drop: Dropout::new(dropout),
        fc2: Linear::new(hidden, CLASSES, &target)?,
    };
    if setup.splits_weights {
        model.to_global(&mesh, &[("fc1.*", sbp![B, S(0)]), ("fc2.weight", sbp![B, S(1)])])?;
    }
    setup.describe(&model);

    let (train, test) = (digits(&mesh, batch, false)?.shuffled(setup.seed), digits(&mesh, 256, true)?);
    let mut batches = train.stream();
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr, ..Default::default() });
    let total = (epochs * train.batches()).min(steps);
    let schedule = Schedule::WarmupCosine { warmup: total / 20, total, floor: 0.02 };

    let mut training = setup.start(total, &mut [("model", &mut model), ("opt", &mut opt), ("data", &mut batches)])?;
    for step in training.steps() {
        let [x, y] = &batches.next()?[..] else { continue };
        opt.set_lr(lr * schedule.at(step));
        let loss = training.step([x, y], |[x, y], scaler| {
            let loss = {
                let _guard = autocast(precision);
                model.forward(&x.cast(dtype)?)?.cross_entropy(y)?
            };
            opt.zero_grad();
            scaler.scale(&loss)?.backward()?;
            scaler.step(&mut opt)?;
            Ok(loss)
        })?;
        training.after(step, &loss, &[("model", &model), ("opt", &opt), ("data", &batches)])?;
    }
    let outcome = training.finish()?;

    model.train(false);
    let accuracy = accuracy(|x| model.forward(x), &test, dtype)?;
    outcome.print(&[("accuracy", accuracy)]);
    outcome.expect(400, accuracy > 0.9, &format!("the model recognises only {:.0} % of the digits", accuracy * 100.0))
}
