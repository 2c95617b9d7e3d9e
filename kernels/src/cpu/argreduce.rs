//! The position of the largest or smallest element.

use super::lane::{Lane, native, with_lane};
use super::strided::{Walk, broadcast_strides};
use crate::parallel::{GRAIN, parallel_for};
use crate::{DType, Dims, KernelError, Result, Strides, View};

/// Writes to `out` (i64, size one in `dim`) the index along `dim` of the largest (`max`) or smallest element, plus
/// `index_offset` (the first logical index of a shard). The first of equals; NaN counts as beyond everything, as in
/// PyTorch.
///
/// # Errors
/// Where out's dtype or dims are others, or the dim is empty while the output is not.
pub fn argreduce(x: &View, out: &View, dim: usize, max: bool, index_offset: i64) -> Result<()> {
    let fits = dim < x.rank()
        && x.rank() == out.rank()
        && (0..x.rank()).all(|d| out.dims()[d] == if d == dim { 1 } else { x.dims()[d] });
    if !fits || out.dtype() != DType::I64 {
        return Err(KernelError::new(format!(
            "argmax or argmin of {:?} along {dim} into {} {:?}",
            x.dims(),
            out.dtype(),
            out.dims()
        )));
    }
    if out.is_empty() {
        return Ok(());
    }
    let n = x.dims()[dim];
    if n == 0 {
        return Err(KernelError::new("argmax or argmin along an empty dim has no value"));
    }
    let dtype = native(x.dtype())?;
    let others: Dims = out.dims().into();
    let walk = Walk::new(&others, &[out.strides(), x.strides()], true);
    let inner = walk.inner();
    parallel_for(walk.rows() * inner, (GRAIN / n).max(1), &|range| {
        for line in range {
            let start = |k: usize| walk.row_offset(k, line / inner) + (line % inner) as isize * walk.inner_stride(k);
            let from = x.ptr().wrapping_offset(start(1) * x.dtype().size() as isize);
            let to = out.ptr().cast::<i64>().wrapping_offset(start(0));
            // SAFETY: the line lies in x; `to` is an element of the output that no other task writes.
            unsafe {
                let best = with_lane!(dtype, S => find::<S>(from.cast(), x.strides()[dim], n, max));
                to.write(best as i64 + index_offset);
            }
        }
    });
    Ok(())
}

/// # Safety
/// `n` elements from `p` with `stride` are readable; `n` is not zero.
unsafe fn find<S: Lane>(p: *const S, stride: isize, n: usize, max: bool) -> usize {
    // SAFETY: by the contract of this function.
    let at = |i: usize| unsafe { p.wrapping_offset(i as isize * stride).read() };
    if S::DTYPE.is_float() {
        position(n, |i| at(i).to_f64(), |a, b| if max { a > b } else { a < b } || (a.is_nan() && !b.is_nan()))
    } else {
        position(n, |i| at(i).to_i64(), |a, b| if max { a > b } else { a < b })
    }
}

/// The first index whose value no other beats.
#[inline(always)]
fn position<T: Copy>(n: usize, at: impl Fn(usize) -> T, beats: impl Fn(T, T) -> bool) -> usize {
    let (mut best, mut index) = (at(0), 0);
    for i in 1..n {
        let x = at(i);
        if beats(x, best) {
            (best, index) = (x, i);
        }
    }
    index
}

/// Writes to `out` (i64, x's dims) the index along `dim` plus `index_offset` where `x` equals `m` (which broadcasts; NaN
/// equals NaN), elsewhere the largest i64: its minimum along `dim` is where `m` first stands.
///
/// # Errors
/// Where dims or dtypes do not fit.
pub fn match_index(x: &View, m: &View, out: &View, dim: usize, index_offset: i64) -> Result<()> {
    if x.dims() != out.dims() || out.dtype() != DType::I64 || m.dtype() != x.dtype() || dim >= x.rank() {
        return Err(KernelError::new(format!("match_index of {:?} along {dim} into {:?}", x.dims(), out.dims())));
    }
    let dtype = native(x.dtype())?;
    let repeated = broadcast_strides(m, x.dims())?;
    // The index along `dim` is a window too: of the numbers 0, 1, 2 …
    let counting: Strides = (0..x.rank()).map(|d| isize::from(d == dim)).collect();
    let walk = Walk::new(x.dims(), &[out.strides(), x.strides(), &repeated, &counting], true);
    let inner = walk.inner();
    parallel_for(if out.is_empty() { 0 } else { walk.rows() }, (GRAIN / inner.max(1)).max(1), &|rows| {
        for row in rows {
            let base: [isize; 4] = std::array::from_fn(|k| walk.row_offset(k, row));
            let step: [isize; 4] = std::array::from_fn(|k| walk.inner_stride(k));
            with_lane!(dtype, S => for i in 0..inner as isize {
                let at = |k: usize| base[k] + i * step[k];
                // SAFETY: the walk stays inside the three views; no other task writes this row of the output.
                unsafe {
                    let a = x.ptr().cast::<S>().wrapping_offset(at(1)).read();
                    let b = m.ptr().cast::<S>().wrapping_offset(at(2)).read();
                    let hit = a == b || (S::DTYPE.is_float() && a.to_f64() == b.to_f64())
                        || (S::DTYPE.is_float() && a.to_f64().is_nan() && b.to_f64().is_nan());
                    let index = if hit { at(3) as i64 + index_offset } else { i64::MAX };
                    out.ptr().cast::<i64>().wrapping_offset(at(0)).write(index);
                }
            });
        }
    });
    Ok(())
}
