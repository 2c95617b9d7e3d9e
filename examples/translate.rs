//! Trains an encoder and a decoder to write a word backwards, and generates with a cache of keys and values:
//!
//! ```text
//! cargo run --release --bin oflaunch -- --nproc 2 examples/translate.rs -- --parallel tp
//! ```
//!
//! Words have different lengths: the encoder and the attention of the decoder to it are masked where the source is padding. The decoder
//! attends to what it has written before. Generating, it keeps its keys and values from letter to letter, and those of the encoder
//! from the first letter on; the program checks that the words are those of a decoder that computes everything anew.

#[path = "common/mod.rs"]
mod common;

use common::model::on_axis;
use common::tokens::uniform;
use common::{OPTIONS, Options, Setup};
use oflow::data::Loader;
use oflow::functional::CrossEntropyOptions;
use oflow::nn::{Embedding, KeyValues, LayerNorm, Linear, Masks, Mlp, Module, MultiheadAttention, MultiheadOptions};
use oflow::optim::{AdamW, AdamWOptions, Optimizer, Schedule};
use oflow::prelude::*;

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

/// Token of positions after the end of a word, of the begin of a word that is written, and of its end. Letters follow.
const PAD: i64 = 0;
const BEGIN: i64 = 1;
const END: i64 = 2;
/// Label of positions that do not count.
const IGNORED: i64 = -100;

/// Sizes of a model.
#[derive(Clone, Copy)]
struct Sizes {
    tokens: usize,
    positions: usize,
    width: usize,
    heads: usize,
    layers: usize,
}

/// Attention that leaves the three projections separate, so that each can be split by heads.
fn attention(s: &Sizes, target: impl IntoTarget) -> Result<MultiheadAttention> {
    let width = Some(s.width);
    let o = MultiheadOptions { batch_first: true, kdim: width, vdim: width, ..MultiheadOptions::new(s.width, s.heads) };
    MultiheadAttention::new(o, target)
}

struct EncoderLayer {
    norm1: LayerNorm,
    attn: MultiheadAttention,
    norm2: LayerNorm,
    mlp: Mlp,
}
oflow::module!(EncoderLayer { norm1, attn, norm2, mlp });

struct DecoderLayer {
    norm1: LayerNorm,
    attn: MultiheadAttention,
    norm2: LayerNorm,
    cross: MultiheadAttention,
    norm3: LayerNorm,
    mlp: Mlp,
}
oflow::module!(DecoderLayer { norm1, attn, norm2, cross, norm3, mlp });

impl DecoderLayer {
    /// The positions of `x`, which follow those of `before`. Returns the keys and values of all of them too.
    fn forward(
        &self,
        x: &Tensor,
        before: Option<&KeyValues>,
        source: &KeyValues,
        hidden: &Tensor,
    ) -> Result<(Tensor, KeyValues)> {
        let h = self.norm1.forward(x)?;
        let own = self.attn.keys_values(&h, &h)?;
        let (own, causal) = match before {
            // A single position sees all before it.
            Some(before) => (before.followed_by(&own)?, false),
            None => (own, true),
        };
        let x = x.add(&self.attn.forward_from(&h, &own, &Masks { causal, ..Default::default() })?.0)?;
        let masks = Masks { key_padding: Some(hidden), ..Default::default() };
        let x = x.add(&self.cross.forward_from(&self.norm2.forward(&x)?, source, &masks)?.0)?;
        Ok((x.add(&self.mlp.forward(&self.norm3.forward(&x)?)?)?, own))
    }
}

struct Translator {
    tokens: Embedding,
    positions: Embedding,
    encoder: Vec<EncoderLayer>,
    decoder: Vec<DecoderLayer>,
    norm: LayerNorm,
    head: Linear,
}
oflow::module!(Translator { tokens, positions, encoder, decoder, norm, head });

/// What the decoder keeps of a source, and of what it has written.
struct Cache {
    /// True at padding of the source.
    hidden: Tensor,
    /// Of each layer: keys and values of the source.
    source: Vec<KeyValues>,
    /// Of each layer: keys and values of the positions so far.
    own: Vec<Option<KeyValues>>,
    written: usize,
}

impl Translator {
    fn new(s: &Sizes, target: impl IntoTarget) -> Result<Translator> {
        let t = target.into_target();
        let (norm, mlp) = (|| LayerNorm::new(s.width, &t), || Mlp::new(s.width, 4 * s.width, &t));
        let encoder = |_| Ok(EncoderLayer { norm1: norm()?, attn: attention(s, &t)?, norm2: norm()?, mlp: mlp()? });
        let decoder = |_| {
            Ok(DecoderLayer {
                norm1: norm()?,
                attn: attention(s, &t)?,
                norm2: norm()?,
                cross: attention(s, &t)?,
                norm3: norm()?,
                mlp: mlp()?,
            })
        };
        Ok(Translator {
            tokens: Embedding::with_std(s.tokens, s.width, 0.3, &t)?,
            positions: Embedding::with_std(s.positions, s.width, 0.3, &t)?,
            encoder: (0..s.layers).map(encoder).collect::<Result<_>>()?,
            decoder: (0..s.layers).map(decoder).collect::<Result<_>>()?,
            norm: norm()?,
            head: Linear::new(s.width, s.tokens, &t)?,
        })
    }
    /// Rules that split heads and hidden units over mesh axis `tp`.
    fn split_rules(mesh: &Placement) -> Result<Vec<(&'static str, NdSbp)>> {
        let split = |dim| on_axis(mesh, "tp", Sbp::Split(dim));
        Ok(vec![
            ("*_proj_weight", split(0)?),
            ("*.out_proj.weight", split(1)?),
            ("*.mlp.fc.*", split(0)?),
            ("*.mlp.pr.weight", split(1)?),
        ])
    }
    /// Tokens with their positions, counted from `first`.
    fn embedded(&self, ids: &Tensor, first: usize) -> Result<Tensor> {
        let place = ids.placement()?;
        let numbers = arange(ids.shape()[1] as i64, (place, NdSbp::broadcast(place.axes())))?.add(first as i64)?;
        self.tokens.forward(ids)?.add(&self.positions.forward(&numbers)?)
    }
    /// What a decoder starts from, of sources `i64[B, T]`.
    fn encode(&self, source: &Tensor) -> Result<Cache> {
        let hidden = source.eq(PAD)?;
        let masks = Masks { key_padding: Some(&hidden), ..Default::default() };
        let mut x = self.embedded(source, 0)?;
        for (i, layer) in self.encoder.iter().enumerate() {
            let _scope = oflow::name_scope(&format!("encoder.{i}"));
            let h = layer.norm1.forward(&x)?;
            x = x.add(&layer.attn.forward_with(&h, &h, &h, &masks)?.0)?;
            x = x.add(&layer.mlp.forward(&layer.norm2.forward(&x)?)?)?;
        }
        let source = self.decoder.iter().map(|layer| layer.cross.keys_values(&x, &x)).collect::<Result<_>>()?;
        Ok(Cache { hidden, source, own: self.decoder.iter().map(|_| None).collect(), written: 0 })
    }
    /// Logits `[B, T, tokens]` of what follows each of `ids`, `i64[B, T]`, which follow what is in the cache.
    fn decode(&self, ids: &Tensor, cache: &mut Cache) -> Result<Tensor> {
        let mut x = self.embedded(ids, cache.written)?;
        for (i, layer) in self.decoder.iter().enumerate() {
            let _scope = oflow::name_scope(&format!("decoder.{i}"));
            let (y, own) = layer.forward(&x, cache.own[i].as_ref(), &cache.source[i], &cache.hidden)?;
            (x, cache.own[i]) = (y, Some(own));
        }
        cache.written += ids.shape()[1];
        self.head.forward(&self.norm.forward(&x)?)
    }
    /// The most likely tokens `i64[B, steps]`. Without `cached` each step decodes all that is written so far.
    fn generate(&self, source: &Tensor, steps: usize, cached: bool) -> Result<Tensor> {
        let _guard = no_grad();
        let mut cache = self.encode(source)?;
        let (place, layout) = (source.placement()?, source.sbp()?);
        let mut written = full([source.shape()[0], 1], BEGIN, (place, layout.clone()))?;
        for step in 0..steps {
            let logits = if cached {
                self.decode(&written.narrow(1, step as i64, 1)?, &mut cache)?
            } else {
                let own = self.decoder.iter().map(|_| None).collect();
                let mut fresh = Cache { hidden: cache.hidden.clone(), source: cache.source.clone(), own, written: 0 };
                self.decode(&written, &mut fresh)?.narrow(1, step as i64, 1)?
            };
            written = cat(&[&written, &logits.argmax(-1)?.to_global(layout)?], 1)?;
        }
        written.narrow(1, 1, steps as i64)
    }
}

/// Words, what the decoder sees of their reverse, and what it is to write: `i64[rows, longest]`, `[rows, longest + 1]` twice.
fn words(mesh: &Placement, batch: usize, rows: usize, s: &Sizes, longest: usize, seed: u64) -> Result<Loader> {
    let (mut source, mut seen, mut next) = (vec![], vec![], vec![]);
    let letters = (s.tokens - 3) as f64;
    for row in 0..rows {
        let draw = |i: usize| uniform(seed, (row * (longest + 1) + i) as u64);
        let length = 2 + (draw(0) * (longest - 1) as f64) as usize;
        let word: Vec<i64> = (1..=length).map(|i| 3 + (draw(i) * letters) as i64).collect();
        let padded = |mut v: Vec<i64>, to: usize, with: i64| {
            v.resize(to, with);
            v
        };
        let back: Vec<i64> = word.iter().rev().copied().collect();
        source.extend(padded(word, longest, PAD));
        seen.extend(padded([&[BEGIN], &back[..]].concat(), longest + 1, PAD));
        next.extend(padded([&back[..], &[END]].concat(), longest + 1, IGNORED));
    }
    let loader = Loader::new(mesh, batch).split_along("dp")?;
    loader.column(source, &[longest])?.column(seen, &[longest + 1])?.column(next, &[longest + 1])
}

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
        let loss = {
            let _guard = autocast(precision);
            let mut cache = model.encode(source)?;
            let o = CrossEntropyOptions { ignore_index: Some(IGNORED), dim: -1, ..Default::default() };
            model.decode(seen, &mut cache)?.cross_entropy_with(next, &o)?
        };
        opt.zero_grad();
        training.scaler.scale(&loss)?.backward()?;
        training.scaler.unscale(&opt)?;
        oflow::optim::clip_grad_norm(&model.parameters(), 1.0)?;
        opt.set_lr(lr * schedule.at(step));
        training.scaler.step(&mut opt)?;
        training.after(step, &loss, &[("model", &model), ("opt", &opt), ("data", &batches)])?;
    }
    let outcome = training.finish()?;

    model.train(false);
    let accuracy = accuracy(&model, &test)?;
    outcome.print(&[("accuracy", accuracy)])?;
    let learned = accuracy > 0.9;
    outcome.expect(300, learned, &format!("the model writes only {:.0} % of the words backwards", accuracy * 100.0))
}
