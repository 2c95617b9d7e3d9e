//! The members of partial tensors: what each rank holds of a tensor that is P, so that their reduction has the bits of the
//! tensor.
//!
//! **P(sum), floats.** An element is `K · u`, with a power of two `u` as unit and an integer `K`. Its addends are integer multiples
//! of `u`: positive ones whose sum is at most `2^digits · u` and negative ones whose sum is at most that. So each sum of some of
//! them, in any order and association, is a multiple of `u` that the dtype holds: no addition rounds, whatever way oflow reduces. The
//! unit is the unit in the last place of the element ([`Addends::Like`]: addends use all digits and are at most twice as large
//! as the element), or the element's own lowest digit ([`Addends::Large`]: the largest addends for which this holds, up to
//! `2^(digits - 1)` times the element). Every sum is made again in member order before it is used.
//!
//! Elements with only one split: `-0.0` is the sum of nothing but `-0.0`; 0 of an unsigned dtype of zeros. A NaN is the sum of
//! one NaN and numbers, an infinity that of at least one of its sign and numbers.
//!
//! **P(sum), integers.** As floats with the unit 1, without overflow.
//!
//! **P(max), P(min).** One member has the element, the others have anything below or above it. All members of a NaN are NaN.

use oflow::kernels::{Builtin, ReduceOp};
use oflow::placement::Placement;
use oflow::sbp::{NdSbp, shard_box};

use super::numbers::{Numbers, bits};

/// How large addends are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addends {
    /// Like the element: what an op computes of addends is then about as exact as what it computes of the tensor.
    #[default]
    Like,
    /// As large as exact sums allow. What an op computes of them has lost digits to cancellation.
    Large,
}

/// Random numbers that depend on a seed only (splitmix64).
pub struct Random(u64);

impl Random {
    /// The sequence of a seed and a name.
    pub fn new(seed: u64, name: &str) -> Random {
        let start = name.bytes().fold(seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
        Random(start)
    }
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u128) -> u128 {
        if n == 0 { 0 } else { (u128::from(self.bits()) << 64 | u128::from(self.bits())) % n }
    }
    fn index(&mut self, n: usize) -> usize {
        self.below(n as u128) as usize
    }
}

/// The shards of a tensor, by mesh position, with their sizes: each a contiguous box of values, whose reduction along the partial
/// axes is the box of the tensor bit for bit.
pub fn shards(
    whole: &Numbers,
    shape: &[usize],
    placement: &Placement,
    sbp: &NdSbp,
    how: Addends,
    random: &mut Random,
) -> Vec<(Vec<usize>, Numbers)> {
    // Axes that follow each other with one reduction are one group, because oflow may reduce them together.
    let mut groups: Vec<(ReduceOp, Vec<usize>)> = Vec::new();
    for (axis, op) in sbp.iter().enumerate().filter_map(|(axis, s)| Some((axis, s.partial_op()?))) {
        match groups.last_mut() {
            Some((last, axes)) if *last == op => axes.push(axis),
            _ => groups.push((op, vec![axis])),
        }
    }
    let members = |axes: &[usize]| axes.iter().map(|a| placement.dims()[*a]).product::<usize>();
    let mut parts = vec![whole.clone()];
    for (op, axes) in &groups {
        let n = members(axes);
        parts = parts.iter().flat_map(|part| split(part, *op, n, how, random)).collect();
    }
    let position = |p: usize| {
        let coord = placement.coord(p);
        let along = groups.iter().flat_map(|(_, axes)| axes);
        let part = along.fold(0, |index, axis| index * placement.dims()[*axis] + coord[*axis]);
        let shard = shard_box(shape, placement, sbp, p);
        (shard.size.to_vec(), parts[part].cut(shape, &shard.offset, &shard.size))
    };
    (0..placement.len()).map(position).collect()
}

/// Members whose reduction in their order is `whole`.
pub fn split(whole: &Numbers, op: ReduceOp, members: usize, how: Addends, random: &mut Random) -> Vec<Numbers> {
    if members <= 1 {
        return vec![whole.clone(); members];
    }
    let mut parts = vec![whole.like(); members];
    match whole {
        Numbers::Floats(dtype, values) => {
            let usual = usual_size(values);
            for v in values {
                let made = match op {
                    ReduceOp::Sum => float_addends(*dtype, *v, usual, members, how, random),
                    _ => float_bounds(*dtype, *v, op, members, random),
                };
                parts.iter_mut().zip(made).for_each(|(part, x)| part.push_float(x));
            }
        }
        Numbers::Ints(dtype, values) => {
            for v in values {
                let made = match op {
                    ReduceOp::Sum => int_addends(*dtype, *v, members, how, random),
                    _ => int_bounds(*dtype, *v, op, members, random),
                };
                parts.iter_mut().zip(made).for_each(|(part, x)| part.push_int(x));
            }
        }
    }
    parts
}

/// Properties of a number format that the exactness of sums depends on.
struct Format {
    /// Binary digits of a significand.
    digits: i32,
    /// The smallest positive number is two to this.
    lowest: i32,
    /// The largest number.
    largest: f64,
}

fn format_of(dtype: Builtin) -> Format {
    let (digits, lowest, top) = match dtype {
        Builtin::F16 => (11, -24, 15),
        Builtin::BF16 => (8, -133, 127),
        Builtin::F32 => (24, -149, 127),
        _ => (53, -1074, 1023),
    };
    Format { digits, lowest, largest: (2.0 - power(1 - digits)) * power(top) }
}

/// Two to the power of `e`, exactly; `e` from -1074 to 1023.
fn power(e: i32) -> f64 {
    match e {
        -1022..=1023 => f64::from_bits(((e + 1023) as u64) << 52),
        -1074..=-1023 => f64::from_bits(1 << (e + 1074)),
        _ => 0.0,
    }
}

/// A finite number that is not zero as `(m, e)`: its size is `m · 2^e`, with an odd `m`.
fn odd(v: f64) -> (u64, i32) {
    let (fraction, exponent) = (v.to_bits() & ((1 << 52) - 1), (v.to_bits() >> 52 & 0x7ff) as i32);
    let (m, e) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    (m >> m.trailing_zeros(), e + m.trailing_zeros() as i32)
}

/// The exponent of a number: two to it is the largest power of two that is not above the number's size.
fn exponent(v: f64) -> i32 {
    let (m, e) = odd(v);
    e + 63 - m.leading_zeros() as i32
}

/// A number as large as those of the tensor, for the addends of zeros.
fn usual_size(values: &[f64]) -> f64 {
    let largest = values.iter().filter(|v| v.is_finite()).fold(0.0f64, |a, v| a.max(v.abs()));
    if largest == 0.0 { 1.0 } else { largest }
}

fn float_addends(dtype: Builtin, v: f64, usual: f64, n: usize, how: Addends, random: &mut Random) -> Vec<f64> {
    let made = match v {
        _ if v.is_nan() || v.is_infinite() => {
            let at = random.index(n);
            let others = |i| if i == at { v } else { small(random) };
            (0..n).map(others).collect()
        }
        _ if v == 0.0 && v.is_sign_negative() => vec![v; n],
        _ => finite_addends(dtype, v, usual, n, how, random),
    };
    if sums_to(dtype, &made, v) { made } else { trivial(v, n, random) }
}

/// Half-integers that every float dtype holds.
fn small(random: &mut Random) -> f64 {
    (random.below(33) as f64 - 16.0) / 2.0
}

/// The element on one member, and what changes no sum on the others.
fn trivial(v: f64, n: usize, random: &mut Random) -> Vec<f64> {
    let (at, nothing) = (random.index(n), if v == 0.0 { v } else { 0.0 });
    (0..n).map(|i| if i == at { v } else { nothing }).collect()
}

fn finite_addends(dtype: Builtin, v: f64, usual: f64, n: usize, how: Addends, random: &mut Random) -> Vec<f64> {
    let f = format_of(dtype);
    let unit = match (how, v == 0.0) {
        (Addends::Large, true) => exponent(f.largest) - f.digits - 1,
        (Addends::Large, false) => odd(v).1,
        (Addends::Like, zero) => (exponent(if zero { usual } else { v }) - f.digits + 1).max(f.lowest),
    };
    // As many units as the element has, and as many as any sum of addends may have.
    let have = if v == 0.0 { 0 } else { scaled(v, unit) };
    let most = match unit + f.digits > exponent(f.largest) {
        true => scaled(f.largest, unit),
        false => 1 << f.digits,
    };
    let parts = integer_addends(have, most - have, how, n, random);
    let sign = if v < 0.0 { -1.0 } else { 1.0 };
    let whole = |k: i128| if k == 0 { 0.0 } else { times_power(k as f64 * sign, unit) };
    parts.into_iter().map(whole).collect()
}

/// How many whole units of two to the `e` a number has; at most 2^64.
fn scaled(v: f64, e: i32) -> u128 {
    let (m, own) = odd(v);
    if own >= e { u128::from(m) << (own - e).min(64) } else { u128::from(m) >> (e - own).min(64) }
}

/// `x · 2^e`, exactly where the result is a number of the dtype: in two steps, because the power alone may be none.
fn times_power(x: f64, e: i32) -> f64 {
    let half = e / 2;
    x * power(half) * power(e - half)
}

/// Integers of both signs whose sum is `have`; the negative ones together have at most `spare`.
fn integer_addends(have: u128, spare: u128, how: Addends, n: usize, random: &mut Random) -> Vec<i128> {
    // Some of the elements are divided without a negative addend.
    let negative = match how {
        Addends::Like if random.bits() & 3 == 0 => 0,
        Addends::Like => random.below(spare + 1),
        // In the upper half.
        Addends::Large => spare - random.below(spare / 2 + 1),
    };
    let negative = if have == 0 && negative == 0 { spare.min(1) } else { negative };
    let mut signs: Vec<bool> = (0..n).map(|_| negative > 0 && random.bits() & 1 == 0).collect();
    if negative > 0 {
        // One of each sign, at least.
        let first = random.index(n);
        signs[first] = true;
        signs[(first + 1 + random.index(n - 1)) % n] = false;
    }
    let count = |s: bool, signs: &[bool]| signs.iter().filter(|x| **x == s).count();
    let mut minus = cuts(negative, count(true, &signs), random);
    let mut plus = cuts(have + negative, count(false, &signs), random);
    let mut take = |minus_sign: bool| if minus_sign { -minus.pop().unwrap_or(0) } else { plus.pop().unwrap_or(0) };
    signs.iter().map(|s| take(*s)).collect()
}

/// `n` integers from 0 with that sum.
fn cuts(total: u128, n: usize, random: &mut Random) -> Vec<i128> {
    let mut at: Vec<u128> = (1..n).map(|_| random.below(total + 1)).collect();
    at.sort_unstable();
    at.push(total);
    let mut before = 0;
    let part = |end: u128| {
        let part = end - before;
        before = end;
        part as i128
    };
    if n == 0 { vec![] } else { at.into_iter().map(part).collect() }
}

/// Whether the sum in member order has the bits of `v`, in the dtype and as halves are summed, in f32.
pub fn sums_to(dtype: Builtin, addends: &[f64], v: f64) -> bool {
    let first = addends.first().copied().unwrap_or(0.0);
    let rest = addends.iter().skip(1);
    let wide = match dtype {
        Builtin::F64 => rest.clone().fold(first, |a, b| a + b),
        _ => f64::from(rest.clone().fold(first as f32, |a, b| a + *b as f32)),
    };
    let narrow = rest.fold(first, |a, b| super::numbers::rounded(dtype, a + b));
    // Both sums are exact, or wrong: what f64 rounds, and the dtype again, is not the element.
    bits(dtype, wide) == bits(dtype, v) && bits(dtype, narrow) == bits(dtype, v)
}

fn float_bounds(dtype: Builtin, v: f64, op: ReduceOp, n: usize, random: &mut Random) -> Vec<f64> {
    let at = random.index(n);
    let f = format_of(dtype);
    let outward = if op == ReduceOp::Max { -1.0 } else { 1.0 };
    let beyond = |random: &mut Random| {
        // Steps of all sizes, up to the end of the dtype; a step that the dtype does not have is none.
        let step = power((random.below(24) as i32 - 8).min(exponent(f.largest))) * (1 + random.below(7)) as f64;
        let size = if v == 0.0 || v.is_infinite() { step } else { v.abs() * step };
        let x = super::numbers::rounded(dtype, v + outward * size).clamp(-f.largest, f.largest);
        // Equal numbers may have other bits: zeros have two signs.
        if (x < v) == (outward < 0.0) && x != v { x } else { v }
    };
    (0..n).map(|i| if i == at || v.is_nan() { v } else { beyond(random) }).collect()
}

/// The smallest and the largest integer of a dtype; bools are 0 and 1.
fn range_of(dtype: Builtin) -> (i128, i128) {
    dtype.dtype().integers().map_or((0, 1), |(low, high)| (i128::from(low), i128::from(high)))
}

fn int_addends(dtype: Builtin, v: i64, n: usize, how: Addends, random: &mut Random) -> Vec<i64> {
    let (low, high) = range_of(dtype);
    let (size, end) = if v < 0 { (-i128::from(v), -low) } else { (i128::from(v), high) };
    // What the other sign may have. With both, positive addends end at `high` and negative ones at `low`.
    let spare = if low == 0 { 0 } else { (end - size).min(high) };
    let spare = match how {
        Addends::Like => spare.min(2 * size.max(4)),
        Addends::Large => spare,
    };
    let parts = integer_addends(size as u128, spare.max(0) as u128, how, n, random);
    parts.into_iter().map(|k| (if v < 0 { -k } else { k }) as i64).collect()
}

fn int_bounds(dtype: Builtin, v: i64, op: ReduceOp, n: usize, random: &mut Random) -> Vec<i64> {
    let (low, high) = range_of(dtype);
    let at = random.index(n);
    let room = if op == ReduceOp::Max { i128::from(v) - low } else { high - i128::from(v) };
    let beyond = |random: &mut Random| {
        let step = random.below(room.max(0) as u128 + 1) as i128;
        (if op == ReduceOp::Max { i128::from(v) - step } else { i128::from(v) + step }) as i64
    };
    (0..n).map(|i| if i == at { v } else { beyond(random) }).collect()
}

#[cfg(test)]
#[path = "addends_tests.rs"]
mod tests;
