//! Training data and sampling for the byte-level GPT.

use super::model::Config;
use oflow::data::Loader;
use oflow::prelude::*;

/// Vocabulary of a byte-level model.
pub const BYTES: usize = 256;

/// Batches of windows of a text, split along mesh axis "dp". Column 0 is `i64[batch, seq]`, the tokens that the model sees;
/// column 1 is the same windows one byte later.
///
/// # Errors
/// If the text is shorter than one batch.
pub fn text_loader(text: &[u8], mesh: &Placement, batch: usize, seq: usize) -> Result<Loader> {
    let rows = text.len().saturating_sub(1) / seq;
    if rows < batch {
        let need = format!("a batch of {batch} rows of {seq} bytes needs a text of {} bytes", batch * seq + 1);
        return Err(Error::argument(format!("{need}, this one has {}", text.len())));
    }
    windows(mesh, batch, rows, seq, |i| i64::from(text[i]))
}

/// Four batches of random tokens below `c.vocab`, the same on every rank. Columns as in [`text_loader`].
pub fn synthetic_loader(mesh: &Placement, batch: usize, c: &Config, seed: u64) -> Result<Loader> {
    windows(mesh, batch, 4 * batch, c.seq, |i| (uniform(seed, i as u64) * c.vocab as f64) as i64)
}

fn windows(mesh: &Placement, batch: usize, rows: usize, seq: usize, token: impl Fn(usize) -> i64) -> Result<Loader> {
    let ids = |from: usize| (from..from + rows * seq).map(&token).collect::<Vec<i64>>();
    let loader = Loader::new(mesh, batch).split_along("dp")?;
    Ok(loader.column(ids(0), &[seq])?.column(ids(1), &[seq])?.drop_last())
}

/// A number in [0, 1) from a seed and a position, the same on every rank.
pub fn uniform(seed: u64, position: u64) -> f64 {
    let mut z = seed.wrapping_add((position + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Continues `prompt` by `count` bytes, with `forward` giving logits of the next byte at each of `seq` positions. Reading the logits gives
/// every rank the same numbers, so all draw the same bytes.
pub fn sample(
    forward: impl Fn(&Tensor) -> Result<Tensor>,
    mesh: &Placement,
    seq: usize,
    prompt: &str,
    count: usize,
    temperature: f64,
    seed: u64,
) -> Result<String> {
    let _guard = no_grad();
    let mut text = prompt.as_bytes().to_vec();
    for i in 0..count {
        // The window has a fixed length. Attention is causal, so the padding after the last byte has no effect.
        let window = &text[text.len().saturating_sub(seq)..];
        let mut ids: Vec<i64> = window.iter().map(|b| i64::from(*b)).collect();
        ids.resize(seq, 0);
        let logits = forward(&from_vec(ids, [1, seq], (mesh, sbp![B, B]))?)?.to_f64_vec()?;
        let next = draw(&logits[(window.len() - 1) * BYTES..][..BYTES], temperature, uniform(seed, i as u64));
        text.push(next as u8);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Draws an index with probability proportional to exp(logit / temperature), from `u` in [0, 1). A temperature of 0 gives
/// the largest logit.
fn draw(logits: &[f64], temperature: f64, u: f64) -> usize {
    let best = (0..logits.len()).fold(0, |b, i| if logits[i] > logits[b] { i } else { b });
    if temperature <= 0.0 {
        return best;
    }
    let weights: Vec<f64> = logits.iter().map(|l| ((l - logits[best]) / temperature).exp()).collect();
    let mut left = u * weights.iter().sum::<f64>();
    let drawn = weights.iter().position(|w| {
        left -= w;
        left < 0.0
    });
    drawn.unwrap_or(best)
}
