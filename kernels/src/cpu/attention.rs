//! Attention in tiles. The matrix of scores is never stored, so memory grows with the length of the sequences, not its square.
//!
//! Forward, per block of queries: for each block of keys, `S = scale Q Kᵀ`, then the online softmax (Milakov and Gimelshein,
//! 2018): a running maximum and sum per row, and the output so far rescaled when the maximum grows (Dao et al., 2022).
//! Saved for the gradient is `lse`, the logarithm of each row's sum. Backward computes `P = exp(S - lse)` again and
//!
//! ```text
//! dV += Pᵀ dO      dP = dO Vᵀ      dS = P (dP - rowsum(dO O))      dQ += scale dS K      dK += scale dSᵀ Q
//! ```
//!
//! Block sizes are fixed and each sum is computed by one thread, so bits do not depend on the number of threads.

use self::seen::{Inputs, Results, has_nan};
use super::acc::{acc_dtype, with_acc};
use super::matmul::{Mat, PARALLEL_FLOPS, gemm_serial};
use super::rowmath;
use super::rows::{Buffered, Buffers, Rows, check_dims, check_dtype};
use crate::parallel::parallel_for;
use crate::{KernelError, Result, View};

/// Queries of one tile of scores: `gemm` packs the keys once for all of them.
const QUERIES: usize = 128;
/// The same where a query sees only what lies before: fewer hidden scores are computed in vain.
const CAUSAL_QUERIES: usize = 64;
/// Keys of one tile of scores: the tile fits the second-level cache.
pub const KEYS: usize = 256;

/// Queries `[B, H, Tq, D]`, keys `[B, H, Tk, D]` and values `[B, H, Tk, Dv]` — or their gradients. Any strides, so a
/// transposed `[B, T, H, D]` needs no copy.
#[derive(Clone, Copy, Debug)]
pub struct Qkv<'a> {
    /// Queries of all heads.
    pub q: &'a View,
    /// Keys of all heads.
    pub k: &'a View,
    /// Values of all heads.
    pub v: &'a View,
}

/// Settings of [`attention`].
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// Factor of the scores, usually `1 / sqrt(D)`.
    pub scale: f64,
    /// Query `i` sees keys `0..=i + offset` only (aligned at the first key, as PyTorch's `is_causal`).
    pub causal: bool,
    /// How much later than the first key the first query stands: 0 for whole sequences, more where the queries are a later part of
    /// theirs, less than 0 where the keys are.
    pub offset: i64,
}

impl Attention {
    fn block(&self) -> usize {
        if self.causal { CAUSAL_QUERIES } else { QUERIES }
    }

    /// How many of `keys` keys query `query` sees: the first ones.
    fn sees(&self, query: usize, keys: usize) -> usize {
        match self.causal {
            true => (query as i64 + 1).saturating_add(self.offset).clamp(0, keys as i64) as usize,
            false => keys,
        }
    }

    /// The first of `queries` queries that sees a key, or `queries`.
    fn seen_from(&self, key: usize, queries: usize) -> usize {
        match self.causal {
            true => (key as i64).saturating_sub(self.offset).clamp(0, queries as i64) as usize,
            false => 0,
        }
    }

    /// How many of the keys `start..start + count` query `query` sees.
    fn seen(&self, query: usize, start: usize, count: usize) -> usize {
        self.sees(query, start + count).saturating_sub(start)
    }
}

/// `out = softmax(scale Q Kᵀ) V`, and per query `lse`, the logarithm of the sum of the exponentials of its scores.
/// `out` is `[B, H, Tq, Dv]`; `lse` is `[B, H, Tq]`, f32 for halves, else of the operands' dtype. Of a query that sees no key, or
/// whose scores are all minus infinity, `out` is zero and `lse` minus infinity. Keys and values that a query does not see may be anything.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn attention(inputs: &Qkv, out: &View, lse: &View, settings: &Attention) -> Result<()> {
    let sizes = Sizes::new(inputs, out, lse)?;
    if out.is_empty() && lse.is_empty() {
        return Ok(());
    }
    with_acc!(out.dtype(), forward(&sizes, inputs, out, lse, settings));
    Ok(())
}

/// Gradients of [`attention`] from its inputs and results, into the three views of `grads`.
///
/// # Errors
/// If dims or dtypes do not match.
pub fn attention_grad(
    dout: &View,
    inputs: &Qkv,
    out: &View,
    lse: &View,
    grads: &Qkv,
    settings: &Attention,
) -> Result<()> {
    let sizes = Sizes::for_gradient(dout, inputs, out, lse, grads)?;
    with_acc!(out.dtype(), backward(&sizes, dout, inputs, out, lse, grads, settings));
    Ok(())
}

/// The sizes of one attention.
pub(crate) struct Sizes {
    /// B * H
    pub(crate) heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) depth: usize,
    pub(crate) value_depth: usize,
}

impl Sizes {
    pub(crate) fn new(inputs: &Qkv, out: &View, lse: &View) -> Result<Sizes> {
        let Qkv { q, k, v } = inputs;
        let (&[b, h, queries, depth], &[_, _, keys, _], &[_, _, _, value_depth]) = (q.dims(), k.dims(), v.dims())
        else {
            return Err(KernelError::new(format!(
                "q, k and v need dims [B, H, T, D]; they have {:?}, {:?} and {:?}",
                q.dims(),
                k.dims(),
                v.dims()
            )));
        };
        check_dims("k", k, &[b, h, keys, depth])?;
        check_dims("v", v, &[b, h, keys, value_depth])?;
        check_dims("the output", out, &[b, h, queries, value_depth])?;
        check_dims("lse", lse, &[b, h, queries])?;
        for (what, view) in [("k", k), ("v", v), ("the output", &out)] {
            check_dtype(what, view, q.dtype())?;
        }
        check_dtype("lse", lse, acc_dtype(q.dtype())?)?;
        Ok(Sizes { heads: b * h, queries, keys, depth, value_depth })
    }

    /// For the gradients.
    pub(crate) fn for_gradient(dout: &View, inputs: &Qkv, out: &View, lse: &View, grads: &Qkv) -> Result<Sizes> {
        let sizes = Sizes::new(inputs, out, lse)?;
        check_dims("dout", dout, out.dims())?;
        check_dtype("dout", dout, out.dtype())?;
        for (what, grad, of) in [("dq", grads.q, inputs.q), ("dk", grads.k, inputs.k), ("dv", grads.v, inputs.v)] {
            check_dims(what, grad, of.dims())?;
            check_dtype(what, grad, of.dtype())?;
        }
        Ok(sizes)
    }
}

/// A `[B, H, T, D]` operand.
struct Operand<'a> {
    view: &'a View,
    rows: Rows,
}

impl<'a> Operand<'a> {
    fn new(view: &'a View) -> Self {
        Operand { view, rows: Rows::along(view, 3) }
    }

    /// Number of the row of step `t` of a head.
    fn row(&self, head: usize, t: usize) -> usize {
        head * self.view.dims()[2] + t
    }

    /// Steps `t..t + count` of a head as a matrix: in place where it lies so in memory, else copied (and widened) into
    /// `buffer`: rows far apart would throw each other out of the cache.
    ///
    /// # Safety
    /// The steps exist and nobody writes them while the matrix is used; the matrix is not written.
    unsafe fn tile<A: Buffered>(&self, head: usize, t: usize, count: usize, buffer: &mut Vec<A>) -> Mat<A> {
        let depth = self.rows.len;
        if self.view.dtype() == A::DTYPE && self.view.strides()[2..] == [depth as isize, 1] {
            let ptr = self.rows.start(self.row(head, t)) as *mut A;
            return Mat { ptr, rs: depth as isize, cs: 1 };
        }
        buffer.clear();
        let mut row_buffer = Vec::new();
        for i in 0..count {
            // SAFETY: a row of the head, by the caller's promise.
            buffer.extend_from_slice(unsafe { self.rows.read(self.row(head, t + i), &mut row_buffer) });
        }
        row_major(buffer, depth)
    }
}

fn row_major<A>(buffer: &mut [A], columns: usize) -> Mat<A> {
    Mat { ptr: buffer.as_mut_ptr(), rs: columns as isize, cs: 1 }
}

fn forward<A: Buffered>(sizes: &Sizes, inputs: &Qkv, out: &View, lse: &View, settings: &Attention) {
    let Sizes { heads, queries, keys, depth, value_depth } = *sizes;
    let (q, k, v) = (Operand::new(inputs.q), Operand::new(inputs.k), Operand::new(inputs.v));
    let (out, lses) = (Operand::new(out), Rows::singles(lse));
    let all = Inputs { q: &q, k: &k, v: &v, settings };
    let block = settings.block();
    let blocks = queries.div_ceil(block);
    let flops = 2 * block.min(queries) * keys * (depth + value_depth);
    let scale = A::from_f64(settings.scale);
    parallel_for(heads * blocks, PARALLEL_FLOPS / flops.max(1), &|range| {
        A::with_buffers(|buffers| {
            let Buffers { a: row, b: scores, c: sums, more: [q_tile, k_tile, v_tile, ..], .. } = buffers;
            scores.resize(block * KEYS.min(keys), A::ZERO);
            sums.clear();
            sums.resize(block * value_depth, A::ZERO);
            for index in range {
                let (head, first) = (index / blocks, index % blocks * block);
                let count = block.min(queries - first);
                let mut state = [(-A::INFINITY, A::ZERO); QUERIES];
                sums.fill(A::ZERO);
                // SAFETY: steps of a head that exist; inputs are only read.
                let q_here = unsafe { q.tile(head, first, count, q_tile) };
                let visible = settings.sees(first + count - 1, keys);
                for start in (0..visible).step_by(KEYS) {
                    let width = KEYS.min(visible - start);
                    // SAFETY: steps of a head that exist; the buffers are this task's and as large as the tiles.
                    unsafe {
                        let k = k.tile(head, start, width, k_tile);
                        gemm_serial(count, width, depth, scale, q_here, k.t(), false, row_major(scores, width));
                    }
                    for (i, scores) in scores.chunks_exact_mut(width).take(count).enumerate() {
                        let (scores, hidden) = scores.split_at_mut(settings.seen(first + i, start, width));
                        hidden.fill(A::ZERO);
                        let (max, sum) = state[i];
                        let (max, sum, factor) = rowmath::online_softmax(scores, max, sum);
                        state[i] = (max, sum);
                        if start > 0 {
                            rowmath::scale(&mut sums[i * value_depth..(i + 1) * value_depth], factor);
                        }
                    }
                    // SAFETY: as above.
                    unsafe {
                        let v = v.tile(head, start, width, v_tile);
                        let (p, to) = (row_major(scores, width), row_major(sums, value_depth));
                        gemm_serial(count, value_depth, width, A::ONE, p, v, start > 0, to);
                    }
                }
                for (i, (max, sum)) in state[..count].iter().enumerate() {
                    let at = out.row(head, first + i);
                    let from = &mut sums[i * value_depth..(i + 1) * value_depth];
                    let seen = settings.sees(first + i, keys);
                    if seen < visible && has_nan(from) {
                        let shift = if *max == -A::INFINITY { A::ZERO } else { *max };
                        // SAFETY: a query and keys of a head that exist; inputs are only read.
                        unsafe { all.values(head, first + i, seen, shift, from) };
                    }
                    // Of nothing but minus infinities the result is zero, as of nothing.
                    if *sum != A::ZERO {
                        rowmath::scale(from, A::ONE / *sum);
                    }
                    // SAFETY: rows that exist; blocks of queries do not overlap.
                    unsafe {
                        lses.set(at, *max + sum.log());
                        out.rows.write(at, row, |to: &mut [A]| to.copy_from_slice(from));
                    }
                }
            }
        });
    });
}

fn backward<A: Buffered>(
    sizes: &Sizes,
    dout: &View,
    inputs: &Qkv,
    out: &View,
    lse: &View,
    grads: &Qkv,
    settings: &Attention,
) {
    let Sizes { heads, queries, keys, depth, value_depth } = *sizes;
    let (q, k, v) = (Operand::new(inputs.q), Operand::new(inputs.k), Operand::new(inputs.v));
    let (dq, dk, dv) = (Operand::new(grads.q), Operand::new(grads.k), Operand::new(grads.v));
    let (out, dout, lses) = (Operand::new(out), Operand::new(dout), Rows::singles(lse));
    let (all, results) = (Inputs { q: &q, k: &k, v: &v, settings }, Results { out: &out, dout: &dout, lses: &lses });
    let block = settings.block();
    let flops = 2 * queries * keys * (3 * depth + 2 * value_depth);
    let scale = A::from_f64(settings.scale);
    parallel_for(heads, PARALLEL_FLOPS / flops.max(1), &|range| {
        A::with_buffers(|buffers| {
            let Buffers {
                a: row,
                b: row2,
                c: p,
                d: ds,
                more: [dq_sum, dk_sum, dv_sum, q_tile, k_tile, v_tile, do_tile, _],
                ..
            } = buffers;
            p.resize(block * KEYS.min(keys), A::ZERO);
            ds.resize(block * KEYS.min(keys), A::ZERO);
            dq_sum.resize(block * depth, A::ZERO);
            dk_sum.resize(keys * depth, A::ZERO);
            dv_sum.resize(keys * value_depth, A::ZERO);
            for head in range {
                dk_sum.fill(A::ZERO);
                dv_sum.fill(A::ZERO);
                for first in (0..queries).step_by(block) {
                    let count = block.min(queries - first);
                    let mut of_row = [(A::ZERO, A::ZERO); QUERIES];
                    for (i, (lse, delta)) in of_row[..count].iter_mut().enumerate() {
                        let at = out.row(head, first + i);
                        // SAFETY: rows that exist and are only read.
                        unsafe {
                            *lse = seen::shift_of(lses.get(at));
                            *delta = rowmath::dot(dout.rows.read::<A>(at, row), out.rows.read(at, row2));
                        }
                    }
                    dq_sum.fill(A::ZERO);
                    // SAFETY: steps of a head that exist; inputs are only read.
                    let (q, dout) =
                        unsafe { (q.tile(head, first, count, q_tile), dout.tile(head, first, count, do_tile)) };
                    let visible = settings.sees(first + count - 1, keys);
                    for start in (0..visible).step_by(KEYS) {
                        let width = KEYS.min(visible - start);
                        // SAFETY (here and below): steps of a head that exist; the buffers are this task's and as large as
                        // the tiles.
                        let (k, v) =
                            unsafe { (k.tile(head, start, width, k_tile), v.tile(head, start, width, v_tile)) };
                        let (p_tile, ds_tile) = (row_major(p, width), row_major(ds, width));
                        unsafe {
                            gemm_serial(count, width, depth, scale, q, k.t(), false, p_tile);
                            gemm_serial(count, width, value_depth, A::ONE, dout, v.t(), false, ds_tile);
                        }
                        for i in 0..count {
                            let (lse, delta) = of_row[i];
                            let (p, hidden) =
                                p[i * width..(i + 1) * width].split_at_mut(settings.seen(first + i, start, width));
                            hidden.fill(A::ZERO);
                            rowmath::exp_in_place(p, lse);
                            let (ds, hidden) = ds[i * width..(i + 1) * width].split_at_mut(p.len());
                            hidden.fill(A::ZERO);
                            rowmath::scores_grad(p, delta, ds);
                        }
                        let (p_tile, ds_tile) = (row_major(p, width), row_major(ds, width));
                        let dk_to = row_major(dk_sum, depth).at(start, 0);
                        let dv_to = row_major(dv_sum, value_depth).at(start, 0);
                        unsafe {
                            gemm_serial(width, value_depth, count, A::ONE, p_tile.t(), dout, true, dv_to);
                            gemm_serial(width, depth, count, scale, ds_tile.t(), q, true, dk_to);
                            gemm_serial(count, depth, width, scale, ds_tile, k, true, row_major(dq_sum, depth));
                        }
                    }
                    for (i, dq) in dq_sum.chunks_exact_mut(depth.max(1)).take(count).enumerate() {
                        let seen = settings.sees(first + i, keys);
                        if seen < visible && has_nan(dq) {
                            // SAFETY: a query and keys of a head that exist; inputs and results are only read.
                            unsafe { all.query_grad(&results, head, first + i, seen, dq) };
                        }
                    }
                    // SAFETY: rows that exist; this task alone writes this head's gradients.
                    unsafe { write_steps(&dq, head, first, &dq_sum[..count * depth], row) };
                }
                for key in 0..keys {
                    let (dk, dv) =
                        (&mut dk_sum[key * depth..][..depth], &mut dv_sum[key * value_depth..][..value_depth]);
                    let from = settings.seen_from(key, queries);
                    if from > 0 && (has_nan(dk) || has_nan(dv)) {
                        // SAFETY: a key and queries of a head that exist; inputs and results are only read.
                        unsafe { all.key_grad(&results, head, key, from..queries, dk, dv) };
                    }
                }
                // SAFETY: as above.
                unsafe {
                    write_steps(&dk, head, 0, dk_sum, row);
                    write_steps(&dv, head, 0, dv_sum, row);
                }
            }
        });
    });
}

/// # Safety
/// The steps exist and nobody else touches them.
unsafe fn write_steps<A: Buffered>(to: &Operand, head: usize, first: usize, from: &[A], buffer: &mut Vec<A>) {
    if from.is_empty() {
        return;
    }
    for (i, from) in from.chunks_exact(to.rows.len).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { to.rows.write(to.row(head, first + i), buffer, |to: &mut [A]| to.copy_from_slice(from)) };
    }
}

mod seen;
