//! Trains a mixture of experts on 8x8 images of handwritten digits, on one rank or on several:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 --report examples/moe.rs
//! ```
//!
//! An image is a token; a gate sends it to two experts. With `dp` each rank has a slice of the batch and a part of the experts, so
//! tokens travel to their experts and back: the report shows these all-to-alls. With `tp` the hidden units of each expert are split.

#[path = "common/mod.rs"]
mod common;

use common::digits::{CLASSES, PIXELS, accuracy, digits};
use common::{OPTIONS, Options, Setup};
use oflow::nn::{LayerNorm, Linear, MixtureOfExperts, Module, MoeOptions};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Schedule};
use oflow::prelude::*;

const USAGE: &str = "\
Trains a mixture of experts on 8x8 images of handwritten digits.

Options:
  --epochs N       passes over the training set  [default: 30]
  --steps N        largest number of steps
  --batch N        rows of a global batch  [default: 64]
  --width N        width of a token  [default: 48]
  --hidden N       hidden units of an expert  [default: 64]
  --experts N      number of experts  [default: 8]
  --capacity X     tokens that an expert takes of a group, in even shares  [default: 1.5]
  --balance X      factor of the loss that balances the experts  [default: 0.01]
  --lr X           learning rate  [default: 0.004]
";

#[derive(oflow::nn::Module)]
struct Net {
    embed: Linear,
    norm: LayerNorm,
    moe: MixtureOfExperts,
    head: Linear,
}

impl Net {
    fn new(o: MoeOptions, target: impl IntoTarget) -> Result<Net> {
        let t = target.into_target();
        Ok(Net {
            embed: Linear::new(PIXELS, o.width, &t)?,
            norm: LayerNorm::new(o.width, &t)?,
            moe: MixtureOfExperts::new(o, &t)?,
            head: Linear::new(o.width, CLASSES, &t)?,
        })
    }
    /// Logits `[N, 10]` of images `[N, 64]`, and the balance of the experts.
    fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let x = self.embed.forward(x)?;
        let (y, balance) = {
            let _scope = oflow::name_scope("moe");
            self.moe.forward(&self.norm.forward(&x)?)?
        };
        Ok((self.head.forward(&x.add(&y)?)?, balance))
    }
}

fn main() -> Result<()> {
    let mut o = Options::from_args([USAGE, OPTIONS].concat());
    let world = oflow::init()?;
    let (epochs, steps) = (o.count("--epochs", 30)?, o.count("--steps", usize::MAX)?);
    let (batch, lr, balanced) = (o.count("--batch", 64)?, o.or("--lr", 0.004)?, o.or("--balance", 0.01)?);
    let sizes = MoeOptions::new(o.count("--width", 48)?, o.count("--hidden", 64)?, o.count("--experts", 8)?);
    let sizes = MoeOptions { capacity_factor: o.or("--capacity", 1.5)?, ..sizes };
    let setup = Setup::new(&world, o)?;
    let (mesh, dtype, precision) = (setup.mesh.clone(), setup.dtype, setup.precision);

    let mut model = Net::new(sizes, (&mesh, sbp![B, B]).dtype(dtype))?;
    // Experts lie along the axis that splits the batch.
    let experts = sbp![S(0), B];
    let (up, down) = match setup.splits_weights {
        true => (sbp![S(0), S(2)], sbp![S(0), S(1)]),
        false => (experts.clone(), experts.clone()),
    };
    let rules = [("moe.up*", up), ("moe.down", down), ("moe.down_bias", experts)];
    model.to_global(&mesh, &rules)?;
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
                let (logits, balance) = model.forward(&x.cast(dtype)?)?;
                logits.cross_entropy(y)?.add(&balance.mul(balanced)?)?
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
    let accuracy = accuracy(|x| Ok(model.forward(x)?.0), &test, dtype)?;
    outcome.print(&[("accuracy", accuracy)]);
    outcome.expect(400, accuracy > 0.95, &format!("the model recognises only {:.1} % of the digits", accuracy * 100.0))
}
