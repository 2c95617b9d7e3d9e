//! Trains a small convolutional network on 8x8 images of handwritten digits, on one rank or on several:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/convnet.rs -- --parallel tp
//! ```
//!
//! With `tp` the output channels of the first convolution are split, and the input channels of the second, as the units of a linear
//! layer are. With `dp` the statistics of batch norm are those of the global batch. With `--spatial` the rows of the images are split over
//! mesh axis "tp" in place of the weights: the ranks exchange the rows beside their parts before each convolution.

#[path = "common/mod.rs"]
mod common;

use common::digits::{CLASSES, accuracy, digits};
use common::{OPTIONS, Options, Setup};
use oflow::keep_layouts;
use oflow::nn::{BatchNorm, Conv2d, ConvOptions, Linear, Module};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Schedule};
use oflow::prelude::*;

const USAGE: &str = "\
Trains a convolutional network on 8x8 images of handwritten digits.

Options:
  --epochs N       passes over the training set  [default: 30]
  --steps N        largest number of steps
  --batch N        rows of a global batch  [default: 64]
  --channels N     channels of the first convolution; the second has twice as many  [default: 16]
  --lr X           learning rate  [default: 0.004]
  --spatial        with --parallel tp or 2d: splits the rows of the images in place of the weights
";

#[derive(oflow::nn::Module)]
struct ConvNet {
    conv1: Conv2d,
    norm1: BatchNorm,
    conv2: Conv2d,
    norm2: BatchNorm,
    fc: Linear,
    /// Layout of the images; they stay as they come without one.
    #[module(skip)]
    images: Option<NdSbp>,
}

impl ConvNet {
    fn new(channels: usize, target: impl IntoTarget) -> Result<ConvNet> {
        let target = target.into_target();
        let padded = || ConvOptions { padding: [1, 1], ..Default::default() };
        Ok(ConvNet {
            conv1: Conv2d::with(1, channels, [3, 3], padded(), &target)?,
            norm1: BatchNorm::new(channels, &target)?,
            conv2: Conv2d::with(channels, 2 * channels, [3, 3], padded(), &target)?,
            norm2: BatchNorm::new(2 * channels, &target)?,
            fc: Linear::new(2 * channels * 2 * 2, CLASSES, &target)?,
            images: None,
        })
    }
    /// Logits `[N, 10]` of images `[N, 64]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.reshape((x.shape()[0], 1, 8, 8))?;
        // Images as small as these would be gathered, because that costs less.
        let _guard = self.images.as_ref().map(|_| keep_layouts());
        if let Some(images) = &self.images {
            x = x.to_global(images)?;
        }
        let x = self.norm1.forward(&self.conv1.forward(&x)?)?.relu()?.max_pool2d(2, (), 0, 1, false)?;
        let x = self.norm2.forward(&self.conv2.forward(&x)?)?.relu()?.max_pool2d(2, (), 0, 1, false)?;
        self.fc.forward(&x.reshape((x.shape()[0], -1))?)
    }
}

fn main() -> Result<()> {
    let mut o = Options::from_args([USAGE, OPTIONS].concat());
    let world = oflow::init()?;
    let (epochs, steps) = (o.count("--epochs", 30)?, o.count("--steps", usize::MAX)?);
    let (batch, channels, lr) = (o.count("--batch", 64)?, o.count("--channels", 16)?, o.or("--lr", 0.004)?);
    let spatial = o.flag("--spatial");
    let setup = Setup::new(&world, o)?;
    let (mesh, dtype, precision) = (setup.mesh.clone(), setup.dtype, setup.precision);

    let mut model = ConvNet::new(channels, (&mesh, sbp![B, B]).dtype(dtype))?;
    if spatial && setup.splits_weights {
        model.images = Some(sbp![S(0), S(2)]);
    } else if setup.splits_weights {
        model.to_global(
            &mesh,
            &[("conv1.*", sbp![B, S(0)]), ("norm1.*", sbp![B, S(0)]), ("conv2.weight", sbp![B, S(1)])],
        )?;
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
    outcome.expect(400, accuracy > 0.98, &format!("the model recognises only {:.1} % of the digits", accuracy * 100.0))
}
