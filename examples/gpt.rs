//! Trains a byte-level GPT on a text and samples from it, on one rank or on several:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/gpt.rs -- --parallel tp
//! ```
//!
//! The model is in `common/model.rs`, batches of text and sampling in `common/tokens.rs`; options, checkpoints and output as in `train.rs`.

#[path = "common/mod.rs"]
mod common;

use common::model::{Config, Gpt};
use common::tokens::{BYTES, sample, synthetic_loader, text_loader};
use common::{OPTIONS, Options, Setup};
use oflow::functional::CrossEntropyOptions;
use oflow::nn::{Module, ZeroOptions, zero};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Schedule, clip_grad_norm};
use oflow::prelude::*;

const USAGE: &str = "\
Trains a byte-level GPT and prints a sample.

Options:
  --preset P       sizes: tiny, or gpt2 (124M: 12 layers, 12 heads, width 768, 1,024 tokens, vocabulary 50,304, tied
                   embeddings, batch 8) on synthetic tokens; the options below override them  [default: tiny]
  --text FILE      training text  [default: examples/data/corpus.txt, Newton's Opticks]
  --synthetic      random tokens instead of a text (always if the vocabulary is not 256)
  --vocab N        size of the vocabulary  [default: 256]
  --steps N        training steps  [default: 300]
  --dim N          width  [default: 256]
  --layers N       number of blocks  [default: 4]
  --heads N        attention heads of a block  [default: 4]
  --seq N          context length in tokens  [default: 128]
  --batch N        rows of a global batch  [default: 16]
  --lr X           learning rate  [default: 0.001]
  --clip X         largest norm of all gradients; 0 does not clip  [default: 1]
  --zero N         divides over mesh axis dp: states of the optimizer (1), gradients too (2), weights too (3)  [default: 0]
  --recompute      keeps only the input of each block for backward, which runs the blocks once more
  --dropout P      probability of dropping on the residual branches  [default: 0]
  --sample N       bytes to generate at the end  [default: 300 after a text, else 0]
  --temperature X  of the sample; 0 takes the most likely byte  [default: 0.7]
";

fn main() -> Result<()> {
    let mut o = Options::from_args([USAGE, OPTIONS].concat());
    let world = oflow::init()?;
    let (tied, [vocab, layers, heads, width, seq, batch]) = match o.or("--preset", "tiny".to_string())?.as_str() {
        "tiny" => (false, [BYTES, 4, 4, 256, 128, 16]),
        "gpt2" => (true, [50_304, 12, 12, 768, 1024, 8]),
        other => return Err(Error::argument(format!("--preset {other}: tiny or gpt2"))),
    };
    let vocab = o.count("--vocab", vocab)?;
    let (width, heads, layers) = (o.count("--dim", width)?, o.count("--heads", heads)?, o.count("--layers", layers)?);
    let mut c = Config::new(vocab, layers, width, heads, o.count("--seq", seq)?);
    (c.block.dropout, c.tied, c.recompute) = (o.or("--dropout", 0.0)?, tied, o.flag("--recompute"));
    let (steps, batch) = (o.count("--steps", 300)?, o.count("--batch", batch)?);
    let (lr, clip, temperature) = (o.or("--lr", 1e-3)?, o.or("--clip", 1.0)?, o.or("--temperature", 0.7)?);
    let stage = o.or("--zero", 0)?;
    let synthetic = o.flag("--synthetic") || vocab != BYTES;
    let text = match o.get::<String>("--text")? {
        Some(file) => std::fs::read(&file).map_err(|e| Error::argument(format!("cannot read --text {file}: {e}")))?,
        None => include_bytes!("data/corpus.txt").to_vec(),
    };
    let count = o.or("--sample", if synthetic { 0 } else { 300 })?;
    if count > 0 && vocab != BYTES {
        return Err(Error::argument("--sample writes bytes: it needs --vocab 256"));
    }
    let setup = Setup::new(&world, o)?;
    let (mesh, precision, seed) = (setup.mesh.clone(), setup.precision, setup.seed);

    let mut model = Gpt::new(&c, (&mesh, sbp![B, B]).dtype(setup.dtype))?;
    if setup.splits_weights {
        model.to_global(&mesh, &Gpt::split_rules(&mesh)?)?;
    }
    zero(&mut model, &ZeroOptions::new(stage))?;
    setup.describe(&model);
    let train = match synthetic {
        true => synthetic_loader(&mesh, batch, &c, seed)?,
        false => text_loader(&text, &mesh, batch, c.seq)?,
    };
    let train = train.shuffled(seed);
    let mut batches = train.stream();
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr, ..Default::default() });
    let schedule = Schedule::WarmupCosine { warmup: steps / 15, total: steps, floor: 0.1 };

    let mut training = setup.start(steps, &mut [("model", &mut model), ("opt", &mut opt), ("data", &mut batches)])?;
    for step in training.steps() {
        let [seen, next] = &batches.next()?[..] else { continue };
        opt.set_lr(lr * schedule.at(step));
        let loss = training.step([seen, next], |[seen, next], scaler| {
            let loss = {
                let _guard = autocast(precision);
                model.forward(seen)?.cross_entropy_with(next, &CrossEntropyOptions { dim: -1, ..Default::default() })?
            };
            opt.zero_grad();
            scaler.scale(&loss)?.backward()?;
            scaler.unscale(&opt)?;
            if clip > 0.0 {
                clip_grad_norm(&model.parameters(), clip)?;
            }
            scaler.step(&mut opt)?;
            Ok(loss)
        })?;
        training.after(step, &loss, &[("model", &model), ("opt", &opt), ("data", &batches)])?;
    }
    let outcome = training.finish()?;

    model.train(false);
    if count > 0 {
        outcome.say(&sample(|ids| model.forward(ids), &mesh, c.seq, "The ", count, temperature, seed)?);
    }
    outcome.print(&[("tokens_per_s", (batch * c.seq) as f64 / outcome.step_seconds)]);
    let learned = synthetic || outcome.last < 0.7 * outcome.first;
    outcome.expect(200, learned, &format!("the loss is still {:.2}, after {:.2}", outcome.last, outcome.first))
}
