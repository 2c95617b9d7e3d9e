//! Trains a byte-level GPT on a text and writes some more of it, on one rank or on many:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/gpt.rs -- --parallel tp
//! ```

#[path = "common/options.rs"]
mod options;
#[path = "common/progress.rs"]
mod progress;

use oflow::data::Loader;
use oflow::nn::{Block, BlockOptions, Embedding, LayerNorm, Linear, Module, init};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Schedule, clip_grad_norm};
use oflow::prelude::*;
use options::{Options, Parallel};
use progress::Progress;
use std::time::Instant;

const USAGE: &str = "\
Trains a byte-level GPT and prints a sample.

Options:
  --parallel MODE  single, dp (batch split), tp (weights split) or 2d (both)  [default: dp on several ranks]
  --text FILE      text to learn  [default: examples/data/corpus.txt]
  --steps N        training steps  [default: 300]
  --dim N          width  [default: 256]
  --layers N       blocks  [default: 4]
  --heads N        heads of a block  [default: 4]
  --seq N          bytes the model sees  [default: 128]
  --batch N        rows of a global batch  [default: 16]
  --lr X           learning rate  [default: 0.001]
  --dropout P      probability of dropping on the residual branches  [default: 0]
  --seed N         seed of weights, dropout, order and sample  [default: 0]
  --sample N       bytes to generate at the end  [default: 300]
  --temperature X  of the sample; 0 takes the likeliest  [default: 0.7]
  --dtype T        f32 or f64  [default: f32]
  --report         lists the communication of the last training steps, by line of the program
  --json           prints one line of JSON per step and a last one with the result
  --help           prints this";

const VOCAB: usize = 256;

struct Gpt {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<Block>,
    lnf: LayerNorm,
    head: Linear,
}
oflow::module!(Gpt { wte, wpe, h, lnf, head });

/// Sizes of a model.
struct Config {
    layers: usize,
    block: BlockOptions,
    seq: usize,
}

impl Gpt {
    fn new(c: &Config, target: impl IntoTarget) -> Result<Gpt> {
        let (t, width) = (target.into_target(), c.block.width);
        Ok(Gpt {
            wte: Embedding::with_std(VOCAB, width, 0.02, &t)?,
            wpe: Embedding::with_std(c.seq, width, 0.02, &t)?,
            h: (0..c.layers).map(|_| Block::new(&c.block, &t)).collect::<Result<_>>()?,
            lnf: LayerNorm::new(width, &t)?,
            head: Linear { weight: init::normal([VOCAB, width], 0.02, &t)?, bias: None },
        })
    }
    /// Logits of the byte that follows each of `ids`, which is `[B, T]`.
    fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let place = ids.placement()?;
        let positions = arange(ids.shape()[1] as i64, (place, sbp![B, B]))?;
        let mut x = self.wte.forward(ids)?.add(&self.wpe.forward(&positions)?)?;
        for block in &self.h {
            x = block.forward(&x)?;
        }
        self.head.forward(&self.lnf.forward(&x)?)
    }
}

/// Windows of the text as batches split along "dp": what the model sees, and the same one byte later.
fn loader(text: &[u8], mesh: &Placement, batch: usize, seq: usize) -> Result<Loader> {
    let rows = text.len().saturating_sub(1) / seq;
    if rows < batch {
        let need = format!("a batch of {batch} rows of {seq} bytes needs a text of {} bytes", batch * seq + 1);
        return Err(Error::argument(format!("{need}, this one has {}", text.len())));
    }
    let ids = |from: usize| text[from..from + rows * seq].iter().map(|b| i64::from(*b)).collect();
    let loader = Loader::new(mesh, batch).split_along("dp")?;
    Ok(loader.column::<i64>(ids(0), &[seq])?.column::<i64>(ids(1), &[seq])?.drop_last())
}

/// A number in [0, 1) from a seed and a position, the same on every rank.
fn uniform(seed: u64, position: u64) -> f64 {
    let mut z = seed.wrapping_add((position + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Draws an index with probability proportional to exp(logit / temperature).
fn draw(logits: &[f64], temperature: f64, u: f64) -> usize {
    let best = (0..logits.len()).fold(0, |b, i| if logits[i] > logits[b] { i } else { b });
    if temperature <= 0.0 {
        return best;
    }
    let weights: Vec<f64> = logits.iter().map(|l| ((l - logits[best]) / temperature).exp()).collect();
    let mut left = u * weights.iter().sum::<f64>();
    weights
        .iter()
        .position(|w| {
            left -= w;
            left < 0.0
        })
        .unwrap_or(best)
}

/// Continues `prompt`. Every rank draws the same bytes, because reading logits gives every rank the same numbers.
fn sample(model: &Gpt, mesh: &Placement, c: &Config, prompt: &str, count: usize, t: f64, seed: u64) -> Result<String> {
    let _quiet = no_grad();
    let mut text = prompt.as_bytes().to_vec();
    for i in 0..count {
        // A window of fixed length: what is after the last byte does not matter, attention is causal.
        let seen = &text[text.len().saturating_sub(c.seq)..];
        let mut ids: Vec<i64> = seen.iter().map(|b| i64::from(*b)).collect();
        ids.resize(c.seq, 0);
        let logits = model.forward(&from_vec(ids, [1, c.seq], (mesh, sbp![B, B]))?)?.to_f64_vec()?;
        let next = draw(&logits[(seen.len() - 1) * VOCAB..][..VOCAB], t, uniform(seed, i as u64));
        text.push(next as u8);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn main() -> Result<()> {
    let world = oflow::init()?;
    let mut o = Options::from_args(USAGE);
    let parallel = Parallel::or_default(o.get("--parallel")?, world.size());
    let text = match o.get::<String>("--text")? {
        Some(file) => std::fs::read(&file).map_err(|e| Error::argument(format!("cannot read --text {file}: {e}")))?,
        None => include_bytes!("data/corpus.txt").to_vec(),
    };
    let (steps, batch) = (o.count("--steps", 300)?, o.count("--batch", 16)?);
    let (width, heads) = (o.count("--dim", 256)?, o.count("--heads", 4)?);
    let c = Config {
        layers: o.count("--layers", 4)?,
        seq: o.count("--seq", 128)?,
        block: BlockOptions { width, heads, hidden: 4 * width, dropout: o.or("--dropout", 0.0)? },
    };
    let (lr, seed) = (o.or("--lr", 1e-3)?, o.or("--seed", 0u64)?);
    let (count, temperature) = (o.or("--sample", 300)?, o.or("--temperature", 0.7)?);
    let (dtype, reports, json) = (o.dtype()?, o.flag("--report"), o.flag("--json"));
    o.done()?;
    let speaks = world.rank() == 0;

    manual_seed(seed);
    let mesh = parallel.mesh(world.size())?;
    let mut model = Gpt::new(&c, (&mesh, sbp![B, B]).dtype(dtype))?;
    if parallel.splits_weights() {
        // Heads and hidden units are split: two reductions per block, after o and after pr (and two in backward).
        model.to_global(
            &mesh,
            &[
                ("h.*.attn.o.weight", sbp![B, S(1)]),
                ("h.*.attn.o.bias", sbp![B, B]),
                ("h.*.attn.*", sbp![B, S(0)]),
                ("h.*.mlp.fc.*", sbp![B, S(0)]),
                ("h.*.mlp.pr.weight", sbp![B, S(1)]),
            ],
        )?;
    }
    if speaks && !json {
        println!("{} parameters on {mesh}, {} bytes of text", model.parameter_count(), text.len());
        for (name, p) in model.named_parameters().iter().filter(|(n, _)| !n.starts_with("h.") || n.starts_with("h.0."))
        {
            println!("  {name:<18} {}", p.short());
        }
    }

    let train = loader(&text, &mesh, batch, c.seq)?.shuffled(seed);
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr, ..Default::default() });
    let schedule = Schedule::WarmupCosine { warmup: steps / 15, total: steps, floor: 0.1 };
    let mut bar = Progress::new(steps, speaks && !json);
    let (mut times, mut losses) = (vec![], vec![]);
    // The first step makes all plans; of the others as many as the receipts last for.
    let reported = steps.saturating_sub(1).clamp(1, 20);
    let batches = (0u64..).flat_map(|epoch| train.epoch(epoch)).take(steps);
    for (step, b) in batches.enumerate() {
        let began = Instant::now();
        let b = b?;
        if step == steps - reported {
            oflow::take_receipts();
        }
        let loss = model.forward(&b[0])?.cross_entropy(&b[1])?;
        opt.zero_grad();
        loss.backward()?;
        clip_grad_norm(&model.parameters(), 1.0)?;
        opt.set_lr(lr * schedule.at(step));
        opt.step()?;
        let loss = loss.item()?;
        times.push(began.elapsed().as_secs_f64());
        losses.push(loss);
        bar.at(step + 1, || format!("loss {loss:.4}"));
        if json && speaks {
            println!("{{\"step\": {step}, \"loss\": {loss}, \"ms\": {:.3}}}", times[step] * 1e3);
        }
    }
    let report = oflow::report();
    if reports && speaks && json {
        println!("{{\"reported_steps\": {reported}, \"report\": {}}}", report.to_json());
    } else if reports && speaks {
        println!("the last {reported} steps on {mesh}: {report}");
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let speed = (batch * c.seq) as f64 / median;
    let last = losses.iter().rev().take(10).sum::<f64>() / losses.len().min(10) as f64;
    model.train(false);
    let text = sample(&model, &mesh, &c, "//! ", count, temperature, seed)?;
    if speaks && json {
        println!("{{\"first\": {}, \"loss\": {last}, \"ms\": {}, \"tokens_per_s\": {speed}}}", losses[0], median * 1e3);
    } else if speaks {
        println!("loss {:.4} -> {last:.4} (last ten), {:.1} ms a step, {speed:.0} tokens/s", losses[0], median * 1e3);
        println!("{text}");
    }
    Ok(())
}
