//! Rotary position embedding: pairs of the elements of a row, turned by angles whose cosines and sines are given.

use super::acc::{Acc, load, store, with_acc};
use super::strided::{Walk, broadcast_strides};
use crate::parallel::{GRAIN, parallel_for};
use crate::{KernelError, Result, Strides, View};
use multiversion::multiversion;

/// The rows of a call: operands are the output, x, cosines and sines.
pub(crate) struct Rows {
    pub(crate) walk: Walk,
    /// Elements of a row.
    pub(crate) width: usize,
    /// Pairs that are turned.
    pub(crate) pairs: usize,
    /// Elements from one of a row to the next, by operand.
    pub(crate) steps: [isize; 4],
}

/// Checks that the tensors fit.
pub(crate) fn rows(x: &View, cos: &View, sin: &View, out: &View) -> Result<Rows> {
    let all = [out, x, cos, sin];
    let bad = || {
        let dims = all.map(|v| format!("{} {:?}", v.dtype(), v.dims()));
        KernelError::new(format!("{} turned by {} and {} into {} do not fit", dims[1], dims[2], dims[3], dims[0]))
    };
    let same = all.iter().all(|v| v.dtype() == x.dtype() && v.rank() > 0);
    if !same || !x.dtype().is_float() || out.dims() != x.dims() || cos.dims() != sin.dims() {
        return Err(bad());
    }
    let lead = |v: &View| {
        let n = v.rank() - 1;
        // SAFETY: the first elements of the rows.
        unsafe { v.restride(0, v.dims()[..n].into(), v.strides()[..n].into()) }
    };
    let (width, pairs) = (x.dims()[x.rank() - 1], cos.dims()[cos.rank() - 1]);
    if pairs.checked_mul(2).is_none_or(|n| n > width) {
        return Err(bad());
    }
    let dims = &x.dims()[..x.rank() - 1];
    let strides: Vec<Strides> = all.iter().map(|v| broadcast_strides(&lead(v), dims)).collect::<Result<_>>()?;
    let operands: Vec<&[isize]> = strides.iter().map(|s| &s[..]).collect();
    let steps = all.map(|v| v.strides()[v.rank() - 1]);
    Ok(Rows { walk: Walk::new(dims, &operands, true), width, pairs, steps })
}

/// `out`: of the first `2 * pairs` elements of each row of x pairs turned, `(a cos - b sin, b cos + a sin)`; the others as they are. A pair is
/// elements i and `pairs + i`, or with `interleaved` 2 i and 2 i + 1. The rows of the cosines and sines broadcast to those of x.
///
/// # Errors
/// If the tensors do not fit.
pub fn rotary(x: &View, cos: &View, sin: &View, interleaved: bool, out: &View) -> Result<()> {
    let rows = rows(x, cos, sin, out)?;
    if out.is_empty() {
        return Ok(());
    }
    with_acc!(x.dtype(), turned(&rows, [out, x, cos, sin], interleaved))
}

fn turned<A: Acc>(rows: &Rows, all: [&View; 4], interleaved: bool) -> Result<()> {
    let (dtype, inner) = (all[0].dtype(), rows.walk.inner());
    let size = dtype.size() as isize;
    let lengths = [rows.width, rows.width, rows.pairs, rows.pairs];
    let direct = dtype == A::DTYPE && rows.steps.iter().zip(lengths).all(|(s, n)| *s == 1 || n < 2);
    let count = rows.walk.rows() * inner;
    parallel_for(count, (GRAIN / rows.width.max(1)).max(1), &|range| {
        let mut cursor = rows.walk.cursor(range.start / inner);
        let mut at = range.start % inner;
        cursor.shift(at as isize);
        let mut buffers = lengths.map(|n| vec![A::ZERO; if direct { 0 } else { n }]);
        for _ in range {
            let start = |k: usize| all[k].ptr().wrapping_offset(cursor.offsets[k] * size);
            if direct {
                // SAFETY: rows of the tensors, whose elements lie side by side; those of the output belong to this task.
                unsafe {
                    let row = |k: usize| std::slice::from_raw_parts(start(k).cast::<A>().cast_const(), lengths[k]);
                    let to = std::slice::from_raw_parts_mut(start(0).cast::<A>(), rows.width);
                    turn(row(1), row(2), row(3), interleaved, to);
                }
            } else {
                let [to, from, cos, sin] = &mut buffers;
                // SAFETY: rows of the tensors; those of the output belong to this task.
                unsafe {
                    load(dtype, start(1), rows.steps[1], from);
                    load(dtype, start(2), rows.steps[2], cos);
                    load(dtype, start(3), rows.steps[3], sin);
                    turn(from, cos, sin, interleaved, to);
                    store(dtype, start(0), rows.steps[0], to);
                }
            }
            at += 1;
            if at == inner {
                at = 0;
                cursor.shift(1 - inner as isize);
                cursor.next_row();
            } else {
                cursor.shift(1);
            }
        }
    });
    Ok(())
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn turn<A: Acc>(x: &[A], cos: &[A], sin: &[A], interleaved: bool, out: &mut [A]) {
    let n = cos.len();
    let (sin, (x, rest), (out, left)) = (&sin[..n], x.split_at(2 * n), out.split_at_mut(2 * n));
    left.copy_from_slice(rest);
    if interleaved {
        for ((to, x), (c, s)) in out.chunks_exact_mut(2).zip(x.chunks_exact(2)).zip(cos.iter().zip(sin)) {
            (to[0], to[1]) = (x[0] * *c - x[1] * *s, x[1] * *c + x[0] * *s);
        }
        return;
    }
    let ((a, b), (to_a, to_b)) = (x.split_at(n), out.split_at_mut(n));
    for i in 0..n {
        (to_a[i], to_b[i]) = (a[i] * cos[i] - b[i] * sin[i], b[i] * cos[i] + a[i] * sin[i]);
    }
}
