//! Kernels about positions: ranges, triangles, lookups. Index tensors are i64 or i32.
//!
//! Lookups take the number of the first row they hold (`first`) and give zeros for indices outside: the results of the
//! shards of a split table then add up to the whole lookup. Range errors are found by [`check_indices`], once, where the
//! whole range is known.

use super::copy::{fill, fill_run, move_run};
use super::lane::{Lane, Native, native, with_bits, with_lane};
use super::strided::Walk;
use crate::parallel::{GRAIN, parallel_for};
use crate::{DType, KernelError, Result, Scalar, View};
use multiversion::multiversion;
use std::ops::Range;

/// `start + step * first`, `start + step * (first + 1)`, … along the only dim of `out`: `first` is the logical index of the first
/// element. Integers wrap; floats are computed in f64.
///
/// # Errors
/// Where `out` is not one-dimensional, or of a registered dtype.
pub fn arange(out: &View, start: Scalar, step: Scalar, first: i64) -> Result<()> {
    if out.rank() != 1 {
        return Err(KernelError::new(format!("arange into {:?}", out.dims())));
    }
    let dtype = native(out.dtype())?;
    let (stride, size) = (out.strides()[0], out.dtype().size() as isize);
    parallel_for(out.len(), GRAIN, &|range| {
        let p = out.ptr().wrapping_offset(range.start as isize * stride * size);
        // SAFETY: elements `range` of the output, which no other task writes.
        unsafe { progression(dtype, (p, stride, range.len()), [start, step], first.wrapping_add(range.start as i64)) };
    });
    Ok(())
}

/// `start + step * first` and the elements after it into `n` elements from `p`.
///
/// # Safety
/// They are elements of the dtype that may be written.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn progression(dtype: Native, (p, stride, n): (*mut u8, isize, usize), [start, step]: [Scalar; 2], first: i64) {
    let integer = !matches!((start, step), (Scalar::Float(_), _) | (_, Scalar::Float(_)));
    with_lane!(dtype, T => {
        let p = p.cast::<T>();
        macro_rules! write_all {
            (|$i:ident| $value:expr) => {
                // SAFETY: by the contract of this function.
                unsafe {
                    if stride == 1 {
                        for k in 0..n {
                            let $i = first.wrapping_add(k as i64);
                            p.add(k).write($value);
                        }
                    } else {
                        for k in 0..n {
                            let $i = first.wrapping_add(k as i64);
                            p.wrapping_offset(k as isize * stride).write($value);
                        }
                    }
                }
            };
        }
        if integer {
            let (start, step) = (start.to_i64(), step.to_i64());
            write_all!(|i| <T as Lane>::from_i64(start.wrapping_add(step.wrapping_mul(i))));
        } else {
            let (start, step) = (start.to_f64(), step.to_f64());
            write_all!(|i| <T as Lane>::from_f64(start + step * i as f64));
        }
    });
}

/// The lower triangle of the last two dims: zero where `column - row > diagonal`, in logical positions: the view's first
/// element is at (`row_offset`, `col_offset`). `out` may be `x`.
///
/// # Errors
/// Where dims or dtypes differ or there are fewer than two dims.
pub fn tril(x: &View, out: &View, diagonal: i64, row_offset: i64, col_offset: i64) -> Result<()> {
    triangle(x, out, |row| 0..edge(row, diagonal, row_offset, col_offset).saturating_add(1))
}

/// The upper triangle: zero where `column - row < diagonal`. See [`tril`].
///
/// # Errors
/// See [`tril`].
pub fn triu(x: &View, out: &View, diagonal: i64, row_offset: i64, col_offset: i64) -> Result<()> {
    triangle(x, out, |row| edge(row, diagonal, row_offset, col_offset)..i64::MAX)
}

/// The column of the view in which the diagonal crosses a row.
fn edge(row: i64, diagonal: i64, row_offset: i64, col_offset: i64) -> i64 {
    row.saturating_add(row_offset).saturating_add(diagonal).saturating_sub(col_offset)
}

/// Keeps in each row the columns that `keep(row)` names.
fn triangle(x: &View, out: &View, keep: impl Fn(i64) -> Range<i64> + Sync) -> Result<()> {
    let rank = x.rank();
    if rank < 2 || x.dims() != out.dims() || x.dtype() != out.dtype() {
        return Err(KernelError::new(format!(
            "triangle from {} {:?} to {} {:?}",
            x.dtype(),
            x.dims(),
            out.dtype(),
            out.dims()
        )));
    }
    if out.is_empty() {
        return Ok(());
    }
    let (rows, columns) = (x.dims()[rank - 2], x.dims()[rank - 1]);
    let planes = Lines::new(&x.dims()[..rank - 1], &[x, out]);
    let (from_step, to_step) = (x.strides()[rank - 1], out.strides()[rank - 1]);
    parallel_for(planes.count(), (GRAIN / columns).max(1), &|range| {
        for line in range {
            let kept = keep((line % rows) as i64);
            let limit = |at: i64| at.clamp(0, columns as i64) as usize;
            let (first, last) = (limit(kept.start), limit(kept.end.max(kept.start)));
            let (from, to) = (planes.address(x, 0, line), planes.address(out, 1, line));
            // SAFETY: the row lies in both views; no other task writes it.
            unsafe {
                zeros(out.dtype(), to, to_step, 0..first);
                zeros(out.dtype(), to, to_step, last..columns);
                let at = |p: *mut u8, step: isize| p.wrapping_offset(first as isize * step * x.dtype().size() as isize);
                move_run(x.dtype(), at(from, from_step), from_step, at(to, to_step), to_step, last - first);
            }
        }
    });
    Ok(())
}

/// # Safety
/// The elements `range` from `p` are writable.
pub(super) unsafe fn zeros(dtype: DType, p: *mut u8, step: isize, range: Range<usize>) {
    with_bits!(dtype, T => {
        let first = p.cast::<T>().wrapping_offset(range.start as isize * step);
        // SAFETY: by the contract of this function.
        unsafe { fill_run(first, step, range.len(), T::default()) }
    });
}

/// The positions of some leading dims, in logical order, with an address in each of several views.
pub(super) struct Lines {
    walk: Walk,
}

impl Lines {
    pub(super) fn new(dims: &[usize], views: &[&View]) -> Lines {
        let strides: Vec<&[isize]> = views.iter().map(|v| &v.strides()[..dims.len()]).collect();
        Lines { walk: Walk::new(dims, &strides, false) }
    }
    pub(super) fn count(&self) -> usize {
        self.walk.rows() * self.walk.inner()
    }
    pub(super) fn address(&self, v: &View, operand: usize, line: usize) -> *mut u8 {
        let inner = self.walk.inner();
        let place = (line % inner) as isize * self.walk.inner_stride(operand);
        let offset = self.walk.row_offset(operand, line / inner) + place;
        v.ptr().wrapping_offset(offset * v.dtype().size() as isize)
    }
}

pub(crate) fn index_dtype(ids: &View) -> Result<()> {
    match ids.dtype() {
        DType::I32 | DType::I64 => Ok(()),
        d => Err(KernelError::new(format!("indices are i64 or i32, not {d}"))),
    }
}

/// A type of indices.
pub(super) trait Id: Copy {
    /// As i64.
    fn wide(self) -> i64;
}
impl Id for i32 {
    #[inline(always)]
    fn wide(self) -> i64 {
        i64::from(self)
    }
}
impl Id for i64 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self
    }
}

/// Evaluates an expression with `$I` bound to the type of the indices of a view.
macro_rules! with_ids {
    ($ids:expr, $I:ident => $body:expr) => {
        if $ids.dtype() == $crate::DType::I32 {
            type $I = i32;
            $body
        } else {
            type $I = i64;
            $body
        }
    };
}
pub(super) use with_ids;

/// # Safety
/// `p` addresses an element of an index tensor of this dtype.
pub(super) unsafe fn load_index(p: *const u8, dtype: DType) -> i64 {
    // SAFETY: by the contract of this function.
    unsafe { if dtype == DType::I32 { p.cast::<i32>().read() as i64 } else { p.cast::<i64>().read() } }
}

/// The row of a table with `rows` rows from `first` on that an index names.
#[inline(always)]
pub(super) fn row_of(id: i64, first: i64, rows: usize) -> Option<usize> {
    // A difference that is negative, or wraps, is larger than any number of rows.
    let row = id.wrapping_sub(first) as usize;
    (row < rows).then_some(row)
}

/// An error naming the first index outside `lo..hi`, if there is one.
///
/// # Errors
/// See above; also where `ids` is not i64 or i32.
pub fn check_indices(ids: &View, lo: i64, hi: i64) -> Result<()> {
    index_dtype(ids)?;
    if ids.is_empty() {
        return Ok(());
    }
    let refused =
        |i: usize, id: i64| Err(KernelError::new(format!("index {id} at position {i} is outside {lo}..{hi}")));
    if ids.is_contiguous() {
        let found = with_ids!(ids, I => outside(ids.as_slice::<I>()?, lo, hi));
        return found.map_or(Ok(()), |(i, id)| refused(i, id));
    }
    let lines = Lines::new(ids.dims(), &[ids]);
    for i in 0..lines.count() {
        // SAFETY: an element of the view.
        let id = unsafe { load_index(lines.address(ids, 0, i), ids.dtype()) };
        if !(lo..hi).contains(&id) {
            return refused(i, id);
        }
    }
    Ok(())
}

/// The first index outside `lo..hi`, with its position.
fn outside<I: Id>(ids: &[I], lo: i64, hi: i64) -> Option<(usize, i64)> {
    let wrong = |id: &I| (id.wide() < lo) | (id.wide() >= hi);
    // All of them without a branch: they are right nearly always.
    match ids.iter().fold(false, |any, id| any | wrong(id)) {
        true => ids.iter().position(wrong).map(|i| (i, ids[i].wide())),
        false => None,
    }
}

/// `out[.., c] = 1` where the id is `first + c`, else 0; `out` has ids' dims and one more.
///
/// # Errors
/// Where dims do not fit.
pub fn one_hot(ids: &View, out: &View, first: i64) -> Result<()> {
    index_dtype(ids)?;
    let lead = ids.rank();
    if out.rank() != lead + 1 || out.dims()[..lead] != *ids.dims() {
        return Err(KernelError::new(format!("one_hot of {:?} into {:?}", ids.dims(), out.dims())));
    }
    fill(out, Scalar::Int(0))?;
    if out.is_empty() {
        return Ok(());
    }
    let lines = Lines::new(ids.dims(), &[ids, out]);
    let size = out.dtype().size();
    let one = out.dtype().computed()?.encode(Scalar::Int(1));
    for line in 0..lines.count() {
        // SAFETY: an element of `ids`, and an element of this line of the output.
        unsafe {
            let id = load_index(lines.address(ids, 0, line), ids.dtype());
            if let Some(c) = row_of(id, first, out.dims()[lead]) {
                let offset = c as isize * out.strides()[lead] * size as isize;
                let to = lines.address(out, 1, line).wrapping_offset(offset);
                std::ptr::copy_nonoverlapping(one.as_ptr(), to, size);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::row_of;

    #[test]
    fn the_least_index_names_no_row() {
        assert_eq!(row_of(i64::MIN, 5, 10), None);
    }
}
