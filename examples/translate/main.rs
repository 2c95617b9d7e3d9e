//! Trains an encoder and a decoder to write a word backwards, and generates with a cache of keys and values:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/translate/main.rs -- --parallel tp
//! ```
//!
//! Words have different lengths: the encoder and the attention of the decoder to it are masked where the source is padding. The decoder
//! attends to what it has written before. Generating, it keeps its keys and values from letter to letter, and those of the encoder
//! from the first letter on; the program checks that the words are those of a decoder that computes everything anew. The model is in
//! `model.rs`, the words are in `words.rs`.

#[path = "../common/mod.rs"]
mod common;
mod model;
mod words;

use common::{OPTIONS, Options, Setup};
use model::{Sizes, Translator};
use oflow::data::Loader;
use oflow::functional::CrossEntropyOptions;
use oflow::nn::Module;
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Schedule};
use oflow::prelude::*;
use words::{IGNORED, words};

const USAGE: &str = "\
Trains an encoder and a decoder to write words backwards.

Options:
  --steps N        training steps  [default: 300]
  --batch N        words of a global batch  [default: 64]
  --letters N      letters of the alphabet  [default: 12]
  --longest N      letters of the longest word  [default: 8]
  --width N        width  [default: 48]
  --heads N        attention heads  [default: 4]
  --layers N       layers of the encoder, and of the decoder  [default: 2]
  --lr X           learning rate  [default: 0.003]
";

/// Fraction of the words that are written backwards without a mistake, with and without a cache.
fn accuracy(model: &Translator, test: &Loader) -> Result<f64> {
    let mut right = 0.0;
    for batch in test.epoch(0) {
        let [source, _, next] = &batch?[..] else { continue };
        let steps = next.shape()[1];
        let cached = model.generate(source, steps, true)?;
        let plain = model.generate(source, steps, false)?;
        if cached.ne(&plain)?.sum(())?.item()? > 0.0 {
            return Err(Error::argument("with a cache other words are written than without"));
        }
        let good = cached.eq(next)?.logical_or(&next.eq(IGNORED)?)?;
        right += good.cast(DType::I64)?.sum(1)?.eq(steps as i64)?.sum(())?.item()?;
    }
    Ok(right / test.rows() as f64)
}

fn main() -> Result<()> {
    let mut o = Options::from_args([USAGE, OPTIONS].concat());
    let world = oflow::init()?;
    let (steps, batch, lr) = (o.count("--steps", 300)?, o.count("--batch", 64)?, o.or("--lr", 3e-3)?);
    let (letters, longest) = (o.count("--letters", 12)?, o.count("--longest", 8)?.max(2));
    let (width, heads, layers) = (o.count("--width", 48)?, o.count("--heads", 4)?, o.count("--layers", 2)?);
    let sizes = Sizes { tokens: letters + 3, positions: longest + 1, width, heads, layers };
    let setup = Setup::new(&world, o)?;
    let (mesh, dtype, precision, seed) = (setup.mesh.clone(), setup.dtype, setup.precision, setup.seed);

    let mut model = Translator::new(&sizes, (&mesh, sbp![B, B]).dtype(dtype))?;
    if setup.splits_weights {
        model.to_global(&mesh, &Translator::split_rules(&mesh)?)?;
    }
    setup.describe(&model);
    let train = words(&mesh, batch, 64 * batch, &sizes, longest, seed)?.shuffled(seed);
    let test = words(&mesh, 100, 200, &sizes, longest, seed + 1)?;
    let mut batches = train.stream();
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr, ..Default::default() });
    let schedule = Schedule::WarmupCosine { warmup: steps / 15, total: steps, floor: 0.05 };

    let mut training = setup.start(steps, &mut [("model", &mut model), ("opt", &mut opt), ("data", &mut batches)])?;
    for step in training.steps() {
        let [source, seen, next] = &batches.next()?[..] else { continue };
        opt.set_lr(lr * schedule.at(step));
        let loss = training.step([source, seen, next], |[source, seen, next], scaler| {
            let loss = {
                let _guard = autocast(precision);
                let mut cache = model.encode(source)?;
                let o = CrossEntropyOptions { ignore_index: Some(IGNORED), dim: -1, ..Default::default() };
                model.decode(seen, &mut cache)?.cross_entropy_with(next, &o)?
            };
            opt.zero_grad();
            scaler.scale(&loss)?.backward()?;
            scaler.unscale(&opt)?;
            oflow::optim::clip_grad_norm(&model.parameters(), 1.0)?;
            scaler.step(&mut opt)?;
            Ok(loss)
        })?;
        training.after(step, &loss, &[("model", &model), ("opt", &opt), ("data", &batches)])?;
    }
    let outcome = training.finish()?;

    model.train(false);
    let accuracy = accuracy(&model, &test)?;
    outcome.print(&[("accuracy", accuracy)]);
    let learned = accuracy > 0.9;
    outcome.expect(300, learned, &format!("the model writes only {:.0} % of the words backwards", accuracy * 100.0))
}
