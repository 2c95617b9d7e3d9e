//! Rows taken side by side: element `c` of row `l` of a bundle lies at `[c][l]`.
//!
//! Along a dim that is not the last, neighbouring rows lie side by side in memory already; and rows too short to fill vector
//! registers fill them together. Either way every step of a kernel is the same vector instruction for all rows, and nothing
//! is summed across lanes.

use multiversion::{multiversion, target::target_cfg_f};

use super::acc::Acc;
use super::rows::Rows;

/// Rows in a bundle.
pub(crate) const LANES: usize = 16;

/// One bundle: `len` steps of [`LANES`] rows.
pub(crate) type Bundle<A> = [[A; LANES]];

/// Below this length rows are quicker in bundles, though they lie in order.
const SHORT: usize = 48;

/// True where a kernel over these rows should take them in bundles.
pub(crate) fn worthwhile(rows: &[&Rows]) -> bool {
    rows[0].count >= LANES && (rows[0].len < SHORT || rows.iter().any(|r| !matches!(r.stride(), Some(0 | 1))))
}

/// Gathers rows `first..first + count`; the lanes of absent rows repeat the last.
///
/// # Safety
/// The rows exist, nobody writes them, and the dtype is a float.
pub(crate) unsafe fn read<'a, A: Acc>(
    rows: &Rows,
    first: usize,
    count: usize,
    buffer: &'a mut Vec<[A; LANES]>,
    row: &mut Vec<A>,
) -> &'a mut Bundle<A> {
    buffer.resize(rows.len, [A::ZERO; LANES]);
    let bundle = &mut buffer[..rows.len];
    if rows.neighbours(first, count) && count == LANES {
        // SAFETY: the rows lie one element apart, so element c of all of them lies side by side.
        unsafe { rows.read_across(first, bundle) };
        return bundle;
    }
    for l in 0..LANES {
        // SAFETY: a row that exists.
        let from = unsafe { rows.read(first + l.min(count - 1), row) };
        for (to, x) in bundle.iter_mut().zip(from) {
            to[l] = *x;
        }
    }
    bundle
}

/// Scatters rows `first..first + count`.
///
/// # Safety
/// The rows exist, nobody else touches them, and the dtype is a float.
pub(crate) unsafe fn write<A: Acc>(rows: &Rows, first: usize, count: usize, bundle: &Bundle<A>, row: &mut Vec<A>) {
    if rows.neighbours(first, count) && count == LANES {
        // SAFETY: the rows lie one element apart, so element c of all of them lies side by side.
        unsafe { rows.write_across(first, bundle) };
        return;
    }
    for l in 0..count {
        // SAFETY: a row that exists.
        unsafe {
            rows.write(first + l, row, |to| {
                for (to, from) in to.iter_mut().zip(bundle) {
                    *to = from[l];
                }
            });
        }
    }
}

#[inline(always)]
fn each<A: Acc>(f: impl Fn(usize) -> A) -> [A; LANES] {
    let mut out = [A::ZERO; LANES];
    for (l, out) in out.iter_mut().enumerate() {
        *out = f(l);
    }
    out
}

/// The largest numbers. NaN is passed over: it comes back through the sums of exponentials.
#[inline(always)]
fn maxima<A: Acc>(x: &Bundle<A>) -> [A; LANES] {
    let mut max = [-A::INFINITY; LANES];
    for x in x {
        max = each(|l| if x[l] > max[l] { x[l] } else { max[l] });
    }
    max
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
pub(crate) fn softmax<A: Acc>(x: &mut Bundle<A>) {
    let (max, fma) = (maxima(x), target_cfg_f!(target_feature = "fma"));
    let mut sum = [A::ZERO; LANES];
    for x in x.iter_mut() {
        *x = each(|l| (x[l] - max[l]).exp_weight(fma));
        sum = each(|l| sum[l] + x[l]);
    }
    let scale = each(|l| A::ONE / sum[l]);
    for x in x.iter_mut() {
        *x = each(|l| x[l] * scale[l]);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
pub(crate) fn log_softmax<A: Acc>(x: &mut Bundle<A>) {
    let (max, fma) = (maxima(x), target_cfg_f!(target_feature = "fma"));
    let mut sum = [A::ZERO; LANES];
    for x in x.iter() {
        sum = each(|l| sum[l] + (x[l] - max[l]).exp_weight(fma));
    }
    let log = each(|l| sum[l].log());
    for x in x.iter_mut() {
        *x = each(|l| x[l] - max[l] - log[l]);
    }
}

/// The logarithm of the sum of exponentials of each row.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
pub(crate) fn logsumexp<A: Acc>(x: &Bundle<A>) -> [A; LANES] {
    let (max, fma) = (maxima(x), target_cfg_f!(target_feature = "fma"));
    let mut sum = [A::ZERO; LANES];
    for x in x {
        sum = each(|l| sum[l] + (x[l] - max[l]).exp_weight(fma));
    }
    if max.iter().all(|m| m.abs() < A::INFINITY) {
        return each(|l| max[l] + sum[l].log());
    }
    // An infinite maximum is the result itself, unless there is a NaN.
    let nan = each(|l| if x.iter().any(|x| x[l].is_nan()) { A::NAN } else { A::ZERO });
    each(|l| if max[l].abs() < A::INFINITY { max[l] + sum[l].log() } else { max[l] + nan[l] })
}

/// `dy` becomes `y * (dy - sum(dy * y))`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
pub(crate) fn softmax_grad<A: Acc>(dy: &mut Bundle<A>, y: &Bundle<A>) {
    let mut dot = [A::ZERO; LANES];
    for (dy, y) in dy.iter().zip(y) {
        dot = each(|l| dot[l] + dy[l] * y[l]);
    }
    for (dy, y) in dy.iter_mut().zip(y) {
        *dy = each(|l| y[l] * (dy[l] - dot[l]));
    }
}

/// `dy` becomes `dy - exp(y) * sum(dy)`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
pub(crate) fn log_softmax_grad<A: Acc>(dy: &mut Bundle<A>, y: &Bundle<A>) {
    let mut sum = [A::ZERO; LANES];
    for dy in dy.iter() {
        sum = each(|l| sum[l] + dy[l]);
    }
    for (dy, y) in dy.iter_mut().zip(y) {
        *dy = each(|l| dy[l] - y[l].exp() * sum[l]);
    }
}
