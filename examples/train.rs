//! Trains a small network on handwritten digits, on one rank or on many:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/train.rs -- --parallel tp
//! ```

#[path = "common/losses.rs"]
mod losses;
#[path = "common/meter.rs"]
mod meter;
#[path = "common/options.rs"]
mod options;
#[path = "common/progress.rs"]
mod progress;
#[path = "common/saving.rs"]
mod saving;

use losses::Losses;
use meter::Meter;
use oflow::data::Loader;
use oflow::nn::{Dropout, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer, Schedule};
use oflow::prelude::*;
use oflow::state::Stateful;
use options::{Options, Parallel};
use progress::Progress;
use saving::{History, Saving};
use std::time::Instant;

const USAGE: &str = "\
Trains an MLP on 8x8 images of handwritten digits.

Options:
  --parallel MODE  single, dp (batch split), tp (weights split) or 2d (both)  [default: dp on several ranks]
  --device D       cpu or cuda (one GPU a rank)  [default: cpu]
  --autocast T     bf16 or f16: precision of the products; weights stay f32  [default: off]
  --epochs N       passes over the training set  [default: 40]
  --steps N        at most that many steps
  --batch N        rows of a global batch  [default: 64]
  --hidden N       width of the hidden layer  [default: 128]
  --lr X           learning rate  [default: 0.004]
  --dropout P      probability of dropping a hidden unit  [default: 0.1]
  --seed N         seed of weights, dropout and order  [default: 0]
  --dtype T        f32 or f64  [default: f32]
  --warmup N       first steps that the speed leaves out  [default: 3]
  --checkpoint DIR saves weights, optimizer, place in the data and random numbers there, while training goes on
  --save-every N   every N steps  [default: 100]
  --keep K         keeps the last K checkpoints; 0 keeps all  [default: 3]
  --resume         goes on from the latest checkpoint there, if there is one; also on other ranks or split otherwise
  --losses FILE    writes the loss of every step, one a line
  --compare FILE   compares them with those of another run
  --tolerance X    by how much they may differ (relative above 1)  [default: 0.0001]
  --json           prints one line of JSON per epoch and a last one with the result
  --help           prints this";

const PIXELS: usize = 64;
const CLASSES: usize = 10;
/// Every fifth row is for testing.
const TEST_EVERY: usize = 5;

struct Mlp {
    fc1: Linear,
    drop: Dropout,
    fc2: Linear,
}
oflow::module!(Mlp { fc1, drop, fc2 });

impl Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.fc2.forward(&self.drop.forward(&self.fc1.forward(x)?.relu()?)?)
    }
}

/// Images (pixels between 0 and 1) and labels of the rows that are, or are not, for testing.
fn digits(test: bool) -> Result<(Vec<f32>, Vec<i64>)> {
    let bad = |line: usize| Error::parse(format!("digits.csv, line {}: not 65 numbers", line + 1));
    let (mut images, mut labels) = (vec![], vec![]);
    for (i, line) in include_str!("data/digits.csv").lines().enumerate() {
        let row: Vec<u8> =
            line.split(',').map(|x| x.parse()).collect::<std::result::Result<_, _>>().map_err(|_| bad(i))?;
        let (label, pixels) = row.split_last().filter(|(_, p)| p.len() == PIXELS).ok_or_else(|| bad(i))?;
        if (i % TEST_EVERY == 0) == test {
            images.extend(pixels.iter().map(|p| f32::from(*p) / 16.0));
            labels.push(i64::from(*label));
        }
    }
    Ok((images, labels))
}

/// The digits as batches, split along "dp".
fn loader(mesh: &Placement, batch: usize, test: bool) -> Result<Loader> {
    let (images, labels) = digits(test)?;
    Loader::new(mesh, batch).split_along("dp")?.column(images, &[PIXELS])?.column(labels, &[])
}

/// Share of the test digits that are recognised.
fn accuracy(model: &Mlp, test: &Loader, dtype: DType) -> Result<f64> {
    let _quiet = no_grad();
    let mut right = 0.0;
    for batch in test.epoch(0) {
        let [x, y] = &batch?[..] else { continue };
        right += model.forward(&x.cast(dtype)?)?.argmax(-1)?.eq(y)?.sum(())?.item()?;
    }
    Ok(right / test.rows() as f64)
}

fn main() -> Result<()> {
    let mut o = Options::from_args(USAGE);
    let world = oflow::init()?;
    let parallel = Parallel::or_default(o.get("--parallel")?, world.size());
    let (device, precision) = (o.device(Device::Cpu)?, o.autocast()?);
    let (epochs, steps) = (o.count("--epochs", 40)?, o.count("--steps", usize::MAX)?);
    let (batch, hidden) = (o.count("--batch", 64)?, o.count("--hidden", 128)?);
    let (lr, dropout, seed) = (o.or("--lr", 0.004)?, o.or("--dropout", 0.1)?, o.or("--seed", 0u64)?);
    let (dtype, warmup, json) = (o.dtype()?, o.or("--warmup", 3)?, o.flag("--json"));
    let checks = Losses::from_options(&mut o)?;
    let mut saving = Saving::from_options(&mut o)?;
    o.done()?;
    let speaks = world.rank() == 0;

    manual_seed(seed);
    let mesh = parallel.mesh(world.size(), device)?;
    let everywhere = (&mesh, sbp![B, B]).dtype(dtype);
    let mut model = Mlp {
        fc1: Linear::new(PIXELS, hidden, &everywhere)?,
        drop: Dropout::new(dropout),
        fc2: Linear::new(hidden, CLASSES, &everywhere)?,
    };
    if parallel.splits_weights() {
        // Outputs of the first layer, inputs of the second: nothing is communicated in between.
        model.to_global(&mesh, &[("fc1.*", sbp![B, S(0)]), ("fc2.weight", sbp![B, S(1)])])?;
    }
    if speaks && !json {
        println!("{} parameters on {mesh}, autocast {precision}", model.parameter_count());
        for (name, p) in model.named_parameters() {
            println!("  {name:<12} {}", p.short());
        }
    }

    let train = loader(&mesh, batch, false)?.shuffled(seed);
    let test = loader(&mesh, 256, true)?;
    let total = (epochs * train.batches()).min(steps);
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr, ..Default::default() });
    let schedule = Schedule::WarmupCosine { warmup: total / 20, total, floor: 0.02 };
    let mut bar = Progress::new(total, speaks && !json);
    let began = Instant::now();
    let mut scaler = (precision == Autocast::F16).then(|| GradScaler::new(GradScalerOptions::default()));
    let (mut batches, mut losses) = (train.stream(), History(vec![]));
    let mut kept: Vec<(&str, &mut dyn Stateful)> =
        vec![("model", &mut model), ("opt", &mut opt), ("data", &mut batches), ("losses", &mut losses)];
    kept.extend(scaler.as_mut().map(|s| ("scaler", s as &mut dyn Stateful)));
    let first = saving.load(&mut kept)?;
    let mut meter = Meter::new((first + warmup).min(total.saturating_sub(1)));
    meter.mark(first);
    let (mut sum, mut count) = (0.0, 0);
    for step in first..total {
        let [x, y] = &batches.next()?[..] else { continue };
        let loss = {
            let _amp = autocast(precision);
            model.forward(&x.cast(dtype)?)?.cross_entropy(y)?
        };
        opt.zero_grad();
        opt.set_lr(lr * schedule.at(step));
        match &mut scaler {
            Some(s) => {
                s.scale(&loss)?.backward()?;
                s.step(&mut opt)?;
                s.update();
            }
            None => {
                loss.backward()?;
                opt.step()?;
            }
        }
        let loss_now = loss.item()?;
        oflow::synchronize(device)?;
        losses.0.push(loss_now);
        (sum, count) = (sum + loss_now, count + 1);
        meter.mark(step + 1);
        bar.at(step + 1, || format!("loss {loss_now:.4}"));
        if batches.at_end_of_epoch() || step + 1 == total {
            if json && speaks {
                let (epoch, loss) = (batches.epoch(), sum / f64::from(count));
                println!("{{\"epoch\": {epoch}, \"step\": {}, \"loss\": {loss}}}", step + 1);
            }
            (sum, count) = (0.0, 0);
        }
        let mut kept: Vec<(&str, &dyn Stateful)> =
            vec![("model", &model), ("opt", &opt), ("data", &batches), ("losses", &losses)];
        kept.extend(scaler.as_ref().map(|s| ("scaler", s as &dyn Stateful)));
        saving.after(step + 1, &kept)?;
    }
    saving.finish()?;
    let (step, losses) = (total, losses.0);
    let seconds = began.elapsed().as_secs_f64();
    model.train(false);
    let accuracy = accuracy(&model, &test, dtype)?;
    let (median, rate, peak) = (meter.median(), meter.steps_per_s(), meter::peak_mib(device)?);
    let loss_now = losses.last().copied().unwrap_or(f64::NAN);
    if speaks && json {
        println!(
            "{{\"steps\": {step}, \"loss\": {loss_now}, \"accuracy\": {accuracy}, \"seconds\": {seconds}, \"world\": {}, \
             \"ms\": {}, \"steps_per_s\": {rate}, \"peak_mib\": {peak:.1}, \"device\": \"{device}\", \"autocast\": \"{precision}\"}}",
            world.size(),
            median * 1e3
        );
    } else if speaks {
        println!(
            "{step} steps in {seconds:.1} s ({rate:.1} a second, {peak:.0} MiB): loss {loss_now:.4}, test accuracy {accuracy:.4}"
        );
    }
    if speaks { checks.done(&losses) } else { Ok(()) }
}
