//! The generator, and the distributions made from its words, over blocks that vectorise.

use crate::vmath::Real;
use multiversion::multiversion;

/// Elements made at a time: 32 counters.
pub(super) const BLOCK: usize = 128;
const COUNTERS: usize = BLOCK / 4;

/// Key and counter that select a stream of numbers.
pub(super) struct Key {
    pub(super) seed: u64,
    pub(super) ordinal: u64,
}

/// Distribution of the numbers.
pub(super) enum Distribution {
    Uniform {
        lo: f64,
        hi: f64,
        /// Greatest number made; replaces those above, which rounding would take to `hi`.
        top: f64,
    },
    Normal {
        mean: f64,
        std: f64,
    },
    Bernoulli {
        p: f64,
    },
    Integers {
        lo: i64,
        hi: i64,
    },
    /// Dropout of the values that are there.
    Keep {
        p: f64,
    },
}

/// Marks the counter of second words. Indices / 4 never reach it.
const SECOND: u64 = 1 << 63;

/// One call of Philox4x32-10: four words from a counter and a key.
///
/// ```
/// use oflow_kernels::cpu::random::philox4x32;
/// assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
/// ```
#[inline(always)]
pub fn philox4x32(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = counter[0] as u64 * 0xd251_1f53;
        let b = counter[2] as u64 * 0xcd9e_8d57;
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// The words of the block of elements that starts at logical index `first`: `words[lane][counter]`.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn words(key: &Key, first: u64, mark: u64) -> [[u32; COUNTERS]; 4] {
    let mut out = [[0; COUNTERS]; 4];
    let k = [key.seed as u32, (key.seed >> 32) as u32];
    for i in 0..COUNTERS {
        let c = (first / 4 + i as u64) | mark;
        let w = philox4x32([c as u32, (c >> 32) as u32, key.ordinal as u32, (key.ordinal >> 32) as u32], k);
        for (lane, w) in w.into_iter().enumerate() {
            out[lane][i] = w;
        }
    }
    out
}

/// In 0..1, 24 bits.
#[inline(always)]
fn unit32(w: u32) -> f32 {
    (w >> 8) as i32 as f32 * (1.0 / (1 << 24) as f32)
}

/// In 0..1, 53 bits.
#[inline(always)]
fn unit64(high: u32, low: u32) -> f64 {
    (((high as u64) << 32 | low as u64) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// True with probability `p`.
#[inline(always)]
fn hit(w: u32, p: f64) -> bool {
    w as f64 * (1.0 / (1u64 << 32) as f64) < p
}

/// Two normal numbers from a number in 0..=1 that is not zero and one in 0..1.
#[inline(always)]
fn box_muller<T: Real>(u: T, v: T) -> (T, T) {
    let r = (T::from_f64(-2.0) * u.log()).sqrt();
    let (sin, cos) = (v * T::from_f64(std::f64::consts::TAU)).sin_cos_fast();
    (r * cos, r * sin)
}

#[inline(always)]
fn block<T: Real>(
    key: &Key,
    first: u64,
    d: &Distribution,
    out: &mut [T; BLOCK],
    unit: impl Fn(u32, u32) -> T,
    // Not zero.
    open: impl Fn(u32, u32) -> T,
    wide: bool,
) {
    let high = words(key, first, 0);
    let second = wide && matches!(d, Distribution::Uniform { .. } | Distribution::Normal { .. });
    let low = if second { words(key, first, SECOND) } else { [[0; COUNTERS]; 4] };
    match d {
        Distribution::Uniform { lo, hi, top } => {
            let (lo, span, top) = (T::from_f64(*lo), T::from_f64(hi - lo), T::from_f64(*top));
            for lane in 0..4 {
                for i in 0..COUNTERS {
                    let v = lo + unit(high[lane][i], low[lane][i]) * span;
                    out[4 * i + lane] = if v < top { v } else { top };
                }
            }
        }
        Distribution::Normal { mean, std } => {
            let (mean, std) = (T::from_f64(*mean), T::from_f64(*std));
            for lane in [0, 2] {
                for i in 0..COUNTERS {
                    let u = open(high[lane][i], low[lane][i]);
                    let (a, b) = box_muller(u, unit(high[lane + 1][i], low[lane + 1][i]));
                    out[4 * i + lane] = mean + std * a;
                    out[4 * i + lane + 1] = mean + std * b;
                }
            }
        }
        Distribution::Bernoulli { p } => {
            for lane in 0..4 {
                for i in 0..COUNTERS {
                    out[4 * i + lane] = if hit(high[lane][i], *p) { T::ONE } else { T::ZERO };
                }
            }
        }
        Distribution::Keep { p } => {
            let scale = T::from_f64(1.0 / (1.0 - p));
            for lane in 0..4 {
                for i in 0..COUNTERS {
                    let kept = out[4 * i + lane] * scale;
                    out[4 * i + lane] = if hit(high[lane][i], *p) { T::ZERO } else { kept };
                }
            }
        }
        Distribution::Integers { .. } => unreachable!("made by `integers`"),
    }
}

/// Numbers for the block of elements from logical index `first`, a multiple of the block.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn block_f32(key: &Key, first: u64, d: &Distribution, out: &mut [f32; BLOCK]) {
    let scale = 1.0 / (1u64 << 32) as f32;
    block(key, first, d, out, |w, _| unit32(w), |w, _| w as f32 * scale + 0.5 * scale, false);
}

/// As [`block_f32`], in double precision.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn block_f64(key: &Key, first: u64, d: &Distribution, out: &mut [f64; BLOCK]) {
    let ulp = 1.0 / (1u64 << 53) as f64;
    block(key, first, d, out, unit64, |h, l| unit64(h, l) + 0.5 * ulp, true);
}

/// Integers in `lo..hi`: the high word of 64 random bits times the span.
pub(super) fn integers(key: &Key, first: u64, lo: i64, hi: i64, out: &mut [i64; BLOCK]) {
    let (high, low) = (words(key, first, 0), words(key, first, SECOND));
    let span = hi.wrapping_sub(lo) as u64;
    for (i, value) in out.iter_mut().enumerate() {
        let bits = (high[i % 4][i / 4] as u64) << 32 | low[i % 4][i / 4] as u64;
        *value = lo.wrapping_add(((bits as u128 * span as u128) >> 64) as i64);
    }
}
