//! Random numbers by Philox4x32-10, bit for bit those of [`crate::cpu::random`]: a number depends on seed, ordinal and the
//! element's place in the logical tensor alone.

use super::{Args, Define, Launch, Queue, Source};
use crate::cpu::random::{merged, top_below};
use crate::view::contiguous_strides;
use crate::{DType, KernelError, Result, ShardBox, Strides, View};
use smallvec::SmallVec;

pub(super) static RANDOM: Source = Source::file("random", include_str!("../../cuda/random.cu")).forms(&[
    "T={f32,f64,bf16} DIST={0,1,3} RUNS={0,1}",
    "T={i32,i64} DIST=4 RUNS=0",
    "T=b8 DIST=2 RUNS=0",
]);

/// Distribution of the numbers, with the bits that the kernel takes.
#[derive(Clone, Copy)]
struct Distribution {
    kind: i64,
    parameters: [u64; 3],
}

/// Seed and ordinal that select a stream of numbers.
type Key = (u64, u64);

/// Uniform numbers in `lo..hi`; see [`crate::cpu::random::uniform`].
///
/// # Errors
/// If the box is not that of `out`, or `out` is not of a float dtype. So for all functions here.
pub fn uniform(q: &Queue, out: &View, shard: &ShardBox, seed: u64, ordinal: u64, lo: f64, hi: f64) -> Result<()> {
    float_only(out)?;
    let top = top_below(out.dtype().computed()?, lo, hi);
    let parameters = [lo, top, hi - lo].map(|x| real(out.dtype(), x));
    generate(q, None, out, shard, (seed, ordinal), Distribution { kind: 0, parameters })
}

/// Normally distributed numbers (Box–Muller on neighbouring lanes).
///
/// # Errors
/// See [`uniform`].
pub fn normal(q: &Queue, out: &View, shard: &ShardBox, seed: u64, ordinal: u64, mean: f64, std: f64) -> Result<()> {
    float_only(out)?;
    let parameters = [mean, std, 0.0].map(|x| real(out.dtype(), x));
    generate(q, None, out, shard, (seed, ordinal), Distribution { kind: 1, parameters })
}

/// One with probability `p`, else zero; any dtype.
///
/// # Errors
/// If the box is not that of `out` or `p` is not in 0..=1.
pub fn bernoulli(q: &Queue, out: &View, shard: &ShardBox, seed: u64, ordinal: u64, p: f64) -> Result<()> {
    let parameters = [below(p)?, 0, 0];
    generate(q, None, out, shard, (seed, ordinal), Distribution { kind: 2, parameters })
}

/// Integers in `lo..hi`, equally likely; any dtype.
///
/// # Errors
/// If the box is not that of `out` or the range is empty.
pub fn randint(q: &Queue, out: &View, shard: &ShardBox, seed: u64, ordinal: u64, lo: i64, hi: i64) -> Result<()> {
    if lo >= hi {
        return Err(KernelError::new(format!("randint from an empty range {lo}..{hi}")));
    }
    let parameters = [lo as u64, hi.wrapping_sub(lo) as u64, 0];
    generate(q, None, out, shard, (seed, ordinal), Distribution { kind: 4, parameters })
}

/// `x / (1 - p)` with probability `1 - p`, else zero. `out` may be `x`.
///
/// # Errors
/// Those of [`uniform`], and if `p` is not in 0..=1 or the dims or dtypes differ.
pub fn dropout(q: &Queue, x: &View, out: &View, shard: &ShardBox, seed: u64, ordinal: u64, p: f64) -> Result<()> {
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
    let parameters = [below(p)?, real(out.dtype(), 1.0 / (1.0 - p)), 0];
    generate(q, Some(x), out, shard, (seed, ordinal), Distribution { kind: 3, parameters })
}

/// The words of 32 bits below this are hits: `w / 2^32 < p` without rounding.
fn below(p: f64) -> Result<u64> {
    match (0.0..=1.0).contains(&p) {
        true => Ok((p * (1u64 << 32) as f64).ceil() as u64),
        false => Err(KernelError::new(format!("{p} is not a probability"))),
    }
}

/// The bits of a parameter in the type that numbers of a dtype are made in.
fn real(dtype: DType, x: f64) -> u64 {
    if dtype == DType::F64 { x.to_bits() } else { u64::from((x as f32).to_bits()) }
}

fn float_only(out: &View) -> Result<()> {
    if out.dtype().is_float() { Ok(()) } else { Err(KernelError::new(format!("{} is not a float dtype", out.dtype()))) }
}

fn generate(q: &Queue, x: Option<&View>, out: &View, shard: &ShardBox, key: Key, d: Distribution) -> Result<()> {
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
    let mut views: SmallVec<[&View; 2]> = SmallVec::from_slice(&[out]);
    views.extend(x);
    // Dims of one element say nothing by their strides.
    let mut tidy: SmallVec<[View; 2]> = SmallVec::new();
    for v in &views {
        tidy.push(with_plain_strides(v));
    }
    let views: SmallVec<[&View; 2]> = tidy.iter().collect();
    let (split, length) = merged(shard, &views);
    let logical = contiguous_strides(&shard.logical);
    let base: u64 = (0..rank).map(|d| shard.offset[d] as u64 * logical[d] as u64).sum();
    let step = |v: &View| v.strides().last().copied().unwrap_or(1) as i64;
    let vectors = length == out.len()
        && base.is_multiple_of(4)
        && views.iter().all(|v| step(v) == 1 && (v.ptr() as usize).is_multiple_of(16));
    let address = |v: Option<&&View>| v.map_or(0, |v| v.ptr() as u64);
    let mut words: SmallVec<[u64; 48]> = SmallVec::from_slice(&[
        out.len() as u64,
        base,
        key.0,
        key.1,
        d.parameters[0],
        d.parameters[1],
        d.parameters[2],
    ]);
    words.push(address(views.first()));
    words.push(address(views.get(1)));
    let threads = match vectors {
        true => out.len().div_ceil((16 / out.dtype().size()).max(4)),
        false => {
            let (runs, groups) = (out.len() / length, length.div_ceil(4) + 1);
            if split > 8 {
                return Err(KernelError::new(format!("{split} dims that cannot be merged; 8 are the most")));
            }
            words.extend([runs as u64, length as u64, groups as u64, step(views[0]) as u64]);
            words.push(views.get(1).map_or(0, |v| step(v) as u64));
            words.push(split as u64);
            let mut padded =
                |value: &dyn Fn(usize) -> u64| words.extend((0..8).map(|d| if d < split { value(d) } else { 0 }));
            padded(&|d| shard.size[d] as u64);
            padded(&|d| logical[d] as u64);
            padded(&|d| views[0].strides()[d] as u64);
            padded(&|d| views.get(1).map_or(0, |v| v.strides()[d] as u64));
            runs * groups
        }
    };
    let blocks = i32::try_from(threads.div_ceil(256))
        .map_err(|_| KernelError::new(format!("{} random numbers are too many", out.len())))?;
    let defines =
        [Define::dtype("T", out.dtype()), Define::int("DIST", d.kind), Define::int("RUNS", i64::from(!vectors))];
    let f = q.function(&RANDOM, "random", &defines)?;
    q.launch(f, Launch::new(blocks as u32, 256), Args::new().words(&words))
}

/// The same window; dims of one element get the stride that a contiguous tensor would have there.
fn with_plain_strides(v: &View) -> View {
    let mut strides: Strides = v.strides().into();
    for d in (0..v.rank()).rev() {
        if v.dims()[d] == 1 {
            strides[d] = if d + 1 == v.rank() { 1 } else { strides[d + 1] * v.dims()[d + 1] as isize };
        }
    }
    // SAFETY: dims of one element are not stepped along.
    unsafe { v.restride(0, v.dims().into(), strides) }
}
