//! Trains a byte-level GPT on a text and writes some more of it, on one rank or on many:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/gpt.rs -- --parallel tp
//! ```

#[path = "common/losses.rs"]
mod losses;
#[path = "common/meter.rs"]
mod meter;
#[path = "common/model.rs"]
mod model;
#[path = "common/options.rs"]
mod options;
#[path = "common/progress.rs"]
mod progress;
#[path = "common/saving.rs"]
mod saving;

use losses::Losses;
use meter::Meter;
use model::{Config, Gpt};
use oflow::data::Loader;
use oflow::nn::Module;
use oflow::optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer, Schedule, clip_grad_norm};
use oflow::prelude::*;
use oflow::state::Stateful;
use options::{Options, Parallel};
use progress::Progress;
use saving::{History, Saving};

const USAGE: &str = "\
Trains a byte-level GPT and prints a sample.

Options:
  --parallel MODE  single, dp (batch split), tp (weights split) or 2d (both)  [default: dp on several ranks]
  --device D       cpu or cuda (one GPU a rank)  [default: cpu]
  --autocast T     bf16 or f16: precision of products and attention; weights stay f32  [default: off]
  --preset P       sizes: tiny, or gpt2 (124M: 12 layers, 12 heads, width 768, 1,024 tokens, vocabulary 50,304, tied
                   embeddings, batch 8) on synthetic tokens; options below override it  [default: tiny]
  --text FILE      text to learn  [default: examples/data/corpus.txt]
  --synthetic      random tokens instead of a text (always where the vocabulary is not 256)
  --vocab N        tokens that there are  [default: 256]
  --steps N        training steps  [default: 300]
  --dim N          width  [default: 256]
  --layers N       blocks  [default: 4]
  --heads N        heads of a block  [default: 4]
  --seq N          tokens the model sees  [default: 128]
  --batch N        rows of a global batch  [default: 16]
  --lr X           learning rate  [default: 0.001]
  --clip X         largest norm of all gradients; 0 does not clip  [default: 1]
  --dropout P      probability of dropping on the residual branches  [default: 0]
  --seed N         seed of weights, dropout, order and sample  [default: 0]
  --sample N       bytes to generate at the end  [default: 300, of a text]
  --temperature X  of the sample; 0 takes the likeliest  [default: 0.7]
  --dtype T        f32 or f64: of weights and activations  [default: f32]
  --warmup N       first steps that the speed leaves out  [default: 3]
  --log N          reads the loss every N steps; between, the host does not wait for the device  [default: 1]
  --checkpoint DIR saves weights, optimizer, place in the data and random numbers there, while training goes on
  --save-every N   every N steps  [default: 100]
  --keep K         keeps the last K checkpoints; 0 keeps all  [default: 3]
  --resume         goes on from the latest checkpoint there, if there is one; also on other ranks or split otherwise
  --losses FILE    writes the losses that were read, one a line
  --compare FILE   compares them with those of another run
  --tolerance X    by how much they may differ (relative above 1)  [default: 0.0001]
  --report         lists the communication of the last training steps, by line of the program
  --json           prints one line of JSON per loss and a last one with the result
  --help           prints this";

/// Bytes are tokens.
const BYTES: usize = 256;

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

/// Random tokens, the same on every rank.
fn synthetic(mesh: &Placement, batch: usize, c: &Config, seed: u64) -> Result<Loader> {
    let rows = 4 * batch;
    let token = |i: usize| (uniform(seed, i as u64) * c.vocab as f64) as i64;
    let ids = |from: usize| (from..from + rows * c.seq).map(token).collect();
    let loader = Loader::new(mesh, batch).split_along("dp")?;
    Ok(loader.column::<i64>(ids(0), &[c.seq])?.column::<i64>(ids(1), &[c.seq])?.drop_last())
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
        let next = draw(&logits[(seen.len() - 1) * BYTES..][..BYTES], t, uniform(seed, i as u64));
        text.push(next as u8);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn main() -> Result<()> {
    let mut o = Options::from_args(USAGE);
    let world = oflow::init()?;
    let parallel = Parallel::or_default(o.get("--parallel")?, world.size());
    let (device, precision) = (o.device(Device::Cpu)?, o.autocast()?);
    // Vocabulary, layers, heads, width, tokens, batch.
    let (big, [vocab, layers, heads, width, seq, batch]) = match o.or("--preset", "tiny".to_string())?.as_str() {
        "tiny" => (false, [BYTES, 4, 4, 256, 128, 16]),
        "gpt2" => (true, [50_304, 12, 12, 768, 1024, 8]),
        other => return Err(Error::argument(format!("--preset {other}: tiny or gpt2")).help(USAGE)),
    };
    let vocab = o.count("--vocab", vocab)?;
    let synthetic_data = o.flag("--synthetic") || vocab != BYTES;
    let text = match o.get::<String>("--text")? {
        Some(file) => std::fs::read(&file).map_err(|e| Error::argument(format!("cannot read --text {file}: {e}")))?,
        None => include_bytes!("data/corpus.txt").to_vec(),
    };
    let (steps, batch) = (o.count("--steps", 300)?, o.count("--batch", batch)?);
    let (width, heads, layers) = (o.count("--dim", width)?, o.count("--heads", heads)?, o.count("--layers", layers)?);
    let mut c = Config::new(vocab, layers, width, heads, o.count("--seq", seq)?);
    (c.block.dropout, c.tied) = (o.or("--dropout", 0.0)?, big);
    let (lr, clip, seed) = (o.or("--lr", 1e-3)?, o.or("--clip", 1.0)?, o.or("--seed", 0u64)?);
    let count = o.or("--sample", if synthetic_data { 0 } else { 300 })?;
    if count > 0 && vocab != BYTES {
        return Err(Error::argument("--sample writes bytes: it needs --vocab 256"));
    }
    let (temperature, warmup, log) = (o.or("--temperature", 0.7)?, o.or("--warmup", 3)?, o.count("--log", 1)?);
    let (dtype, reports, json) = (o.dtype()?, o.flag("--report"), o.flag("--json"));
    let checks = Losses::from_options(&mut o)?;
    let mut saving = Saving::from_options(&mut o)?;
    o.done()?;
    let speaks = world.rank() == 0;

    manual_seed(seed);
    let mesh = parallel.mesh(world.size(), device)?;
    let mut model = Gpt::new(&c, (&mesh, sbp![B, B]).dtype(dtype))?;
    if parallel.splits_weights() {
        model.split_weights(&mesh)?;
    }
    if speaks && !json {
        let data = if synthetic_data { "random tokens".into() } else { format!("{} bytes of text", text.len()) };
        println!("{} parameters on {mesh}, {data}, autocast {precision}", model.parameter_count());
        for (name, p) in model.named_parameters().iter().filter(|(n, _)| !n.starts_with("h.") || n.starts_with("h.0."))
        {
            println!("  {name:<18} {}", p.short());
        }
    }

    let train = match synthetic_data {
        true => synthetic(&mesh, batch, &c, seed)?,
        false => loader(&text, &mesh, batch, c.seq)?,
    };
    let train = train.shuffled(seed);
    let mut opt = AdamW::new(model.parameters(), AdamWOptions { lr, ..Default::default() });
    let mut scaler = (precision == Autocast::F16).then(|| GradScaler::new(GradScalerOptions::default()));
    let schedule = Schedule::WarmupCosine { warmup: steps / 15, total: steps, floor: 0.1 };
    let mut bar = Progress::new(steps, speaks && !json);
    let (mut batches, mut losses) = (train.stream(), History(vec![]));
    let mut kept: Vec<(&str, &mut dyn Stateful)> =
        vec![("model", &mut model), ("opt", &mut opt), ("data", &mut batches), ("losses", &mut losses)];
    kept.extend(scaler.as_mut().map(|s| ("scaler", s as &mut dyn Stateful)));
    let first = saving.load(&mut kept)?;
    let mut meter = Meter::new((first + warmup).min(steps - 1));
    meter.mark(first);
    // The first step makes all plans; of the others as many as the receipts last for.
    let reported = steps.saturating_sub(1).clamp(1, 20);
    for step in first..steps {
        let b = batches.next()?;
        if step == steps - reported {
            oflow::take_receipts();
        }
        let loss = {
            let _amp = autocast(precision);
            model.forward(&b[0])?.cross_entropy(&b[1])?
        };
        opt.zero_grad();
        match &scaler {
            Some(s) => s.scale(&loss)?.backward()?,
            None => loss.backward()?,
        }
        if let Some(s) = &mut scaler {
            s.unscale_(&opt)?;
        }
        if clip > 0.0 {
            clip_grad_norm(&model.parameters(), clip)?;
        }
        opt.set_lr(lr * schedule.at(step));
        match &mut scaler {
            Some(s) => {
                s.step(&mut opt)?;
                s.update();
            }
            None => opt.step()?,
        }
        let logs = (step + 1) % log == 0 || step + 1 == steps;
        if logs || step + 1 == first + warmup {
            let loss = loss.item()?;
            // The loss is there before the step has ended.
            oflow::synchronize(device)?;
            let each = meter.mark(step + 1);
            // Where the speed begins to count is no matter of the losses: it depends on where this run began.
            if logs {
                losses.0.push(loss);
                bar.at(step + 1, || format!("loss {loss:.4}"));
            }
            if logs && json && speaks {
                let ms = if each.is_nan() { "null".into() } else { format!("{:.3}", each * 1e3) };
                println!("{{\"step\": {step}, \"loss\": {loss}, \"ms\": {ms}}}");
            }
        }
        let mut kept: Vec<(&str, &dyn Stateful)> =
            vec![("model", &model), ("opt", &opt), ("data", &batches), ("losses", &losses)];
        kept.extend(scaler.as_ref().map(|s| ("scaler", s as &dyn Stateful)));
        saving.after(step + 1, &kept)?;
    }
    saving.finish()?;
    let losses = losses.0;
    let report = oflow::report();
    if reports && speaks && json {
        println!("{{\"reported_steps\": {reported}, \"report\": {}}}", report.to_json());
    } else if reports && speaks {
        println!("the last {reported} steps on {mesh}: {report}");
    }
    let (median, rate, peak) = (meter.median(), meter.steps_per_s(), meter::peak_mib(device)?);
    let speed = (batch * c.seq) as f64 / median;
    let last = losses.iter().rev().take(10).sum::<f64>() / losses.len().min(10) as f64;
    model.train(false);
    let text = match count {
        0 => String::new(),
        n => sample(&model, &mesh, &c, "//! ", n, temperature, seed)?,
    };
    if speaks && json {
        let skipped = scaler.map_or(0, |s| s.skipped());
        println!(
            "{{\"first\": {}, \"loss\": {last}, \"ms\": {}, \"tokens_per_s\": {speed}, \"steps_per_s\": {rate}, \
             \"peak_mib\": {peak:.1}, \"device\": \"{device}\", \"autocast\": \"{precision}\", \"skipped\": {skipped}}}",
            losses[0],
            median * 1e3
        );
    } else if speaks {
        println!(
            "loss {:.4} -> {last:.4} (last ten), {:.1} ms a step, {rate:.2} steps/s, {speed:.0} tokens/s, {peak:.0} MiB",
            losses[0],
            median * 1e3
        );
        println!("{text}");
    }
    if speaks { checks.done(&losses) } else { Ok(()) }
}
