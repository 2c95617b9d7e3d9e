//! Elements chosen by their values: where a tensor is not zero, what a mask chooses, the distinct values. All tensors are
//! contiguous.
//!
//! A tensor is cut into blocks of a fixed size. What is chosen in each is counted first, so that every block knows where its
//! results begin; then the blocks are written independently.

use super::copy::copy;
use super::lane::{Lane, Native, native, with_bits, with_lane};
use crate::parallel::{GRAIN, parallel_for};
use crate::view::contiguous_strides;
use crate::{DType, KernelError, Result, View};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Calls `f` with the position of each element in a range that is not zero; NaN is not.
fn each_true(x: &View, dtype: Native, range: std::ops::Range<usize>, mut f: impl FnMut(usize)) {
    with_lane!(dtype, S => {
        let p = x.ptr().cast::<S>();
        for i in range {
            // SAFETY: element `i` of the contiguous view.
            if unsafe { p.wrapping_add(i).read() }.to_f64() != 0.0 {
                f(i);
            }
        }
    });
}

/// Where the results of each block begin, then how many there are in all.
fn starts(x: &View, dtype: Native) -> Vec<usize> {
    let counts: Vec<AtomicUsize> = (0..x.len().div_ceil(GRAIN)).map(|_| AtomicUsize::new(0)).collect();
    parallel_for(x.len(), GRAIN, &|range| {
        let (block, mut n) = (range.start / GRAIN, 0);
        each_true(x, dtype, range, |_| n += 1);
        counts[block].store(n, Relaxed);
    });
    let mut all = vec![0];
    for c in counts {
        all.push(all[all.len() - 1] + c.into_inner());
    }
    all
}

/// Writes for each element that is not zero its indices into a row of `out` (i64, `[count, rank]`), in row-major order.
/// `offset`: the indices of x's first element.
///
/// # Errors
/// If the tensors are not contiguous, or `out` has not a row for each such element.
pub fn nonzero(x: &View, out: &View, offset: &[usize]) -> Result<()> {
    let dtype = native(x.dtype())?;
    let rank = x.rank();
    let fits = out.dtype() == DType::I64 && out.rank() == 2 && out.dims()[1] == rank && offset.len() == rank;
    let starts = starts(x, dtype);
    if !fits || !x.is_contiguous() || !out.is_contiguous() || starts.last() != Some(&out.dims()[0]) {
        return Err(refused("nonzero", x, out));
    }
    parallel_for(x.len(), GRAIN, &|range| {
        let mut row = starts[range.start / GRAIN];
        each_true(x, dtype, range, |mut i| {
            for d in (0..rank).rev() {
                let index = i % x.dims()[d] + offset[d];
                i /= x.dims()[d];
                // SAFETY: this block's rows of the output, which were counted.
                unsafe { out.ptr().cast::<i64>().wrapping_add(row * rank + d).write(index as i64) };
            }
            row += 1;
        });
    });
    Ok(())
}

/// Writes the elements where `mask` is true one after the other into `out`.
///
/// # Errors
/// If the tensors are not contiguous, x and mask have different dims, or `out` has not an element for each.
pub fn masked_select(x: &View, mask: &View, out: &View) -> Result<()> {
    let starts = mask_starts(mask)?;
    let fits = x.dims() == mask.dims() && x.dtype() == out.dtype() && x.is_contiguous() && out.is_contiguous();
    if !fits || starts.last() != Some(&out.len()) {
        return Err(refused("masked_select", x, out));
    }
    parallel_for(x.len(), GRAIN, &|range| {
        let mut to = starts[range.start / GRAIN];
        with_bits!(x.dtype(), T => {
            let (from, out) = (x.ptr().cast::<T>(), out.ptr().cast::<T>());
            each_true(mask, Native::Bool, range, |i| {
                // SAFETY: elements of the two views; this block's results were counted.
                unsafe { out.wrapping_add(to).write(from.wrapping_add(i).read()) };
                to += 1;
            });
        });
    });
    Ok(())
}

/// Scatters the elements of `values`, one after the other, to the positions where `mask` is true, and writes zeros elsewhere. `out` is the
/// part of the result that begins at element `first` of the mask.
///
/// # Errors
/// If the tensors are not contiguous, `out` does not lie inside, or there are not as many values as the mask chooses.
pub fn masked_spread(values: &View, mask: &View, out: &View, first: usize) -> Result<()> {
    let starts = mask_starts(mask)?;
    let inside = first.checked_add(out.len()).is_some_and(|end| end <= mask.len());
    if values.dtype() != out.dtype() || !inside || !values.is_contiguous() || !out.is_contiguous() {
        return Err(refused("masked_spread", values, out));
    }
    if starts.last() != Some(&values.len()) {
        let chosen = starts.last().copied().unwrap_or(0);
        return Err(KernelError::new(format!("the mask chooses {chosen} elements, there are {} values", values.len())));
    }
    let zeros = out.len() * out.dtype().size();
    // SAFETY: all bytes of the contiguous output; zeros are a value of every dtype.
    unsafe { out.ptr().write_bytes(0, zeros) };
    parallel_for(mask.len(), GRAIN, &|range| {
        let mut at = starts[range.start / GRAIN];
        with_bits!(out.dtype(), T => {
            let (from, out_at) = (values.ptr().cast::<T>(), out.ptr().cast::<T>());
            each_true(mask, Native::Bool, range, |i| {
                if i >= first && i < first + out.len() {
                    // SAFETY: elements of the two views; no other block writes element `i`.
                    unsafe { out_at.wrapping_add(i - first).write(from.wrapping_add(at).read()) };
                }
                at += 1;
            });
        });
    });
    Ok(())
}

fn mask_starts(mask: &View) -> Result<Vec<usize>> {
    if mask.dtype() != DType::Bool || !mask.is_contiguous() {
        return Err(KernelError::new(format!("a mask is a contiguous bool tensor, not {}", mask.dtype())));
    }
    Ok(starts(mask, Native::Bool))
}

/// Writes the distinct values of x, smallest first, to the front of `out` (x's length) and returns how many there are. NaN is
/// last; no two NaN are equal, as in PyTorch.
///
/// # Errors
/// If `out` is not contiguous, or of another length or dtype than x.
pub fn unique(x: &View, out: &View) -> Result<usize> {
    let dtype = native(x.dtype())?;
    if out.dtype() != x.dtype() || out.len() != x.len() || !out.is_contiguous() || !x.is_contiguous() {
        return Err(refused("unique", x, out));
    }
    // SAFETY: x's elements as one line.
    let line = unsafe { x.restride(0, [x.len()].into_iter().collect(), contiguous_strides(&[x.len()])) };
    copy(&line, out)?;
    Ok(with_lane!(dtype, S => {
        // SAFETY: the contiguous output, which nobody else uses during the call and which was just written.
        let all = unsafe { std::slice::from_raw_parts_mut(out.ptr().cast::<S>(), out.len()) };
        all.sort_unstable_by(order);
        keep_first(all)
    }))
}

/// NaN after all numbers; equal numbers with different bits (zeros) in one order.
fn order<S: Lane>(a: &S, b: &S) -> Ordering {
    if !S::DTYPE.is_float() {
        return a.to_i64().cmp(&b.to_i64());
    }
    let (a, b) = (a.to_f64(), b.to_f64());
    a.is_nan().cmp(&b.is_nan()).then_with(|| a.total_cmp(&b))
}

/// Moves the first of equal neighbours to the front; returns how many there are.
fn keep_first<S: Lane>(all: &mut [S]) -> usize {
    let same = |a: S, b: S| if S::DTYPE.is_float() { a.to_f64() == b.to_f64() } else { a.to_i64() == b.to_i64() };
    let mut n = 0;
    for i in 0..all.len() {
        if n == 0 || !same(all[n - 1], all[i]) {
            all[n] = all[i];
            n += 1;
        }
    }
    n
}

fn refused(what: &str, x: &View, out: &View) -> KernelError {
    let text = |v: &View| format!("{} {:?}", v.dtype(), v.dims());
    KernelError::new(format!("{what} of {} into {}", text(x), text(out)))
}
