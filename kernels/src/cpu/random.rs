//! Random numbers by Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//!
//! The key is the seed and the counter is (ordinal, logical linear index / 4); the lane is the index modulo 4. Values that
//! need more than 32 bits take a second word from the same lane of a second counter, marked by its top bit. So a number
//! depends on seed, ordinal and the element's place in the logical tensor, never on shards, strides or threads.
//! Elementary functions are [`crate::vmath`]'s, so the numbers do not depend on the system's library either.

mod philox;

use super::copy::convert_run;
use crate::parallel::{GRAIN, parallel_for};
use crate::{Builtin, KernelError, Result, ShardBox, View};
use half::{bf16, f16};
use philox::{BLOCK, Distribution, Key};

pub use philox::philox4x32;

/// Uniform numbers in `lo..hi`, rounded to the dtype of `out`, but never to `hi`; `lo` alone where the dtype has no number below
/// `hi` that is not below `lo`.
///
/// # Errors
/// Where the box is not that of `out`, or `out` is not of a float dtype. So for all functions here.
pub fn uniform(out: &View, shard: &ShardBox, seed: u64, ordinal: u64, lo: f64, hi: f64) -> Result<()> {
    float_only(out)?;
    let top = top_below(out.dtype().computed()?, lo, hi);
    generate(None, out, shard, Key { seed, ordinal }, Distribution::Uniform { lo, hi, top })
}

/// Normally distributed numbers (Box–Muller on neighbouring lanes).
///
/// # Errors
/// See [`uniform`].
pub fn normal(out: &View, shard: &ShardBox, seed: u64, ordinal: u64, mean: f64, std: f64) -> Result<()> {
    float_only(out)?;
    generate(None, out, shard, Key { seed, ordinal }, Distribution::Normal { mean, std })
}

/// One with probability `p`, else zero; any dtype.
///
/// # Errors
/// Where the box is not that of `out` or `p` is not in 0..=1.
pub fn bernoulli(out: &View, shard: &ShardBox, seed: u64, ordinal: u64, p: f64) -> Result<()> {
    probability(p)?;
    generate(None, out, shard, Key { seed, ordinal }, Distribution::Bernoulli { p })
}

/// Integers in `lo..hi`, equally likely; any dtype.
///
/// # Errors
/// Where the box is not that of `out` or the range is empty.
pub fn randint(out: &View, shard: &ShardBox, seed: u64, ordinal: u64, lo: i64, hi: i64) -> Result<()> {
    if lo >= hi {
        return Err(KernelError::new(format!("randint from an empty range {lo}..{hi}")));
    }
    generate(None, out, shard, Key { seed, ordinal }, Distribution::Integers { lo, hi })
}

/// `x / (1 - p)` with probability `1 - p`, else zero. `out` may be `x`.
///
/// # Errors
/// As for [`uniform`]; where `p` is not in 0..=1 or the dims or dtypes differ.
pub fn dropout(x: &View, out: &View, shard: &ShardBox, seed: u64, ordinal: u64, p: f64) -> Result<()> {
    probability(p)?;
    float_only(out)?;
    if x.dims() != out.dims() || x.dtype() != out.dtype() {
        return Err(KernelError::new(format!(
            "dropout from {} {:?} to {} {:?}",
            x.dtype(),
            x.dims(),
            out.dtype(),
            out.dims()
        )));
    }
    generate(Some(x), out, shard, Key { seed, ordinal }, Distribution::Keep { p })
}

/// The largest number of a float dtype below `hi`, or `lo` in that dtype where this is larger: what uniform numbers that
/// rounding takes to `hi` become.
pub fn top_below(dtype: Builtin, lo: f64, hi: f64) -> f64 {
    // The bits of a float, taken as an integer, count the magnitudes: the number before is one less, of negative ones one more.
    let before = |bits: u16, sign: u16| match bits {
        0 => sign | 1,
        b if b & sign == 0 => b - 1,
        b => b + 1,
    };
    let (nearest, before, low) = match dtype {
        Builtin::F16 => {
            let (x, low) = (f16::from_f64(hi), f16::from_f64(lo));
            (x.to_f64(), f16::from_bits(before(x.to_bits(), 1 << 15)).to_f64(), low.to_f64())
        }
        Builtin::BF16 => {
            let (x, low) = (bf16::from_f64(hi), bf16::from_f64(lo));
            (x.to_f64(), bf16::from_bits(before(x.to_bits(), 1 << 15)).to_f64(), low.to_f64())
        }
        Builtin::F32 => {
            let x = hi as f32;
            (f64::from(x), f64::from(x.next_down()), f64::from(lo as f32))
        }
        _ => (hi, hi.next_down(), lo),
    };
    if nearest < hi { nearest } else { before }.max(low)
}

fn probability(p: f64) -> Result<()> {
    if (0.0..=1.0).contains(&p) { Ok(()) } else { Err(KernelError::new(format!("{p} is not a probability"))) }
}

fn float_only(out: &View) -> Result<()> {
    if out.dtype().is_float() { Ok(()) } else { Err(KernelError::new(format!("{} is not a float dtype", out.dtype()))) }
}

/// How many trailing dims follow each other both in the logical tensor and, with one stride, in memory: the first of them,
/// and how many elements they have.
pub(crate) fn merged(shard: &ShardBox, views: &[&View]) -> (usize, usize) {
    let rank = shard.size.len();
    let (mut split, mut len) = (rank, 1);
    while split > 0 {
        let d = split - 1;
        // A dim joins if the dims inside it are whole and laid out without a gap.
        let follows = |v: &&View| d + 1 == rank || v.strides()[d] == v.strides()[rank - 1] * len as isize;
        let whole = split == rank || shard.size[split] == shard.logical[split];
        if !whole || !views.iter().all(follows) {
            break;
        }
        len *= shard.size[d];
        split = d;
    }
    (split, len)
}

/// Runs of elements that follow each other both in the logical tensor and, with one stride, in memory.
struct Runs<'a> {
    shard: &'a ShardBox,
    /// Dims from here on are merged.
    split: usize,
    len: usize,
}

impl<'a> Runs<'a> {
    fn new(shard: &'a ShardBox, views: &[&View]) -> Self {
        let (split, len) = merged(shard, views);
        Runs { shard, split, len }
    }

    /// The logical linear index of the first element of a run.
    fn logical(&self, run: usize) -> u64 {
        let (mut rest, mut index, mut step) = (run, 0u64, 1u64);
        for d in (0..self.shard.size.len()).rev() {
            let mut at = self.shard.offset[d] as u64;
            if d < self.split {
                at += (rest % self.shard.size[d]) as u64;
                rest /= self.shard.size[d];
            }
            index += at * step;
            step *= self.shard.logical[d] as u64;
        }
        index
    }

    /// Address and stride of the elements of a view from place `at` in a run.
    fn address(&self, v: &View, run: usize, at: usize) -> (*mut u8, isize) {
        let stride = v.strides().last().copied().unwrap_or(1);
        let (mut rest, mut offset) = (run, at as isize * stride);
        for d in (0..self.split).rev() {
            offset += (rest % self.shard.size[d]) as isize * v.strides()[d];
            rest /= self.shard.size[d];
        }
        (v.ptr().wrapping_offset(offset * v.dtype().size() as isize), stride)
    }
}

fn generate(x: Option<&View>, out: &View, shard: &ShardBox, key: Key, distribution: Distribution) -> Result<()> {
    let rank = shard.size.len();
    let inside = shard.logical.len() == rank
        && shard.offset.len() == rank
        && (0..rank).all(|d| shard.offset[d] + shard.size[d] <= shard.logical[d]);
    if out.dims() != shard.size.as_slice() || !inside {
        return Err(KernelError::new(format!("{shard:?} is not the box of a shard with dims {:?}", out.dims())));
    }
    if out.is_empty() {
        return Ok(());
    }
    let dtype = out.dtype().computed()?;
    let runs = match x {
        Some(x) => Runs::new(shard, &[x, out]),
        None => Runs::new(shard, &[out]),
    };
    parallel_for(out.len(), GRAIN, &|range| {
        let mut at = range.start;
        while at < range.end {
            let (run, place) = (at / runs.len, at % runs.len);
            let index = runs.logical(run) + place as u64;
            // Blocks start at multiples of their size in the logical tensor.
            let skip = (index % BLOCK as u64) as usize;
            let n = (BLOCK - skip).min(runs.len - place).min(range.end - at);
            let to = runs.address(out, run, place);
            let from = x.map(|x| runs.address(x, run, place));
            let block = index - skip as u64;
            // SAFETY: the run lies in the views; `n` elements from `skip` are inside the block.
            unsafe {
                match (&distribution, dtype) {
                    (Distribution::Integers { lo, hi }, d) => {
                        let mut values = [0i64; BLOCK];
                        philox::integers(&key, block, *lo, *hi, &mut values);
                        convert_run(values[skip..].as_ptr().cast(), Builtin::I64, 1, to.0, d, to.1, n);
                    }
                    (_, Builtin::F64) => {
                        let mut values = [0f64; BLOCK];
                        if let Some((p, stride)) = from {
                            convert_run(
                                p,
                                Builtin::F64,
                                stride,
                                values[skip..].as_mut_ptr().cast(),
                                Builtin::F64,
                                1,
                                n,
                            );
                        }
                        philox::block_f64(&key, block, &distribution, &mut values);
                        convert_run(values[skip..].as_ptr().cast(), Builtin::F64, 1, to.0, Builtin::F64, to.1, n);
                    }
                    (_, d) => {
                        let mut values = [0f32; BLOCK];
                        if let Some((p, stride)) = from {
                            convert_run(p, d, stride, values[skip..].as_mut_ptr().cast(), Builtin::F32, 1, n);
                        }
                        philox::block_f32(&key, block, &distribution, &mut values);
                        convert_run(values[skip..].as_ptr().cast(), Builtin::F32, 1, to.0, d, to.1, n);
                    }
                }
            }
            at += n;
        }
    });
    Ok(())
}
