//! Kernels about positions: ranges, triangles, lookups. Index tensors are i64 or i32.
//!
//! Lookups take the number of the first row they hold (`first`) and give zeros for indices outside: the results of the
//! shards of a split table then add up to the whole lookup. Range errors are found by [`check_indices`], once, where the
//! whole range is known.

use super::copy::{fill, fill_run, move_run, scalar_bytes};
use super::lane::{Lane, Native, native, with_bits, with_lane};
use super::strided::{Walk, prefetch};
use crate::parallel::{GRAIN, parallel_for};
use crate::{DType, KernelError, Result, Scalar, View};
use multiversion::multiversion;
use std::ops::Range;

/// How many rows of a table are on their way from memory while one is copied, and how much of each.
const AHEAD: usize = 8;
const LONGEST: usize = 256;

/// `start + step * first`, `start + step * (first + 1)`, … along the only dim of `out`: `first` is the logical index of the first
/// element. Integers wrap; floats are computed in f64.
///
/// # Errors
/// Where `out` is not one-dimensional, or of a registered dtype.
pub fn arange(out: &View, start: Scalar, step: Scalar, first: i64) -> Result<()> {
    if out.rank() != 1 {
        return Err(KernelError::new(format!("arange into {:?}", out.dims())));
    }
    let integer = !matches!((start, step), (Scalar::Float(_), _) | (_, Scalar::Float(_)));
    let dtype = native(out.dtype())?;
    let size = out.dtype().size() as isize;
    parallel_for(out.len(), GRAIN, &|range| {
        for i in range {
            let p = out.ptr().wrapping_offset(i as isize * out.strides()[0] * size);
            let i = first.wrapping_add(i as i64);
            with_lane!(dtype, T => {
                let value: T = if integer {
                    Lane::from_i64(start.to_i64().wrapping_add(step.to_i64().wrapping_mul(i)))
                } else {
                    Lane::from_f64(start.to_f64() + step.to_f64() * i as f64)
                };
                // SAFETY: element `i` of the output.
                unsafe { p.cast::<T>().write(value) }
            });
        }
    });
    Ok(())
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
unsafe fn zeros(dtype: DType, p: *mut u8, step: isize, range: Range<usize>) {
    with_bits!(dtype, T => {
        let first = p.cast::<T>().wrapping_offset(range.start as isize * step);
        // SAFETY: by the contract of this function.
        unsafe { fill_run(first, step, range.len(), T::default()) }
    });
}

/// The positions of some leading dims, in logical order, with an address in each of several views.
struct Lines {
    walk: Walk,
}

impl Lines {
    fn new(dims: &[usize], views: &[&View]) -> Lines {
        let strides: Vec<&[isize]> = views.iter().map(|v| &v.strides()[..dims.len()]).collect();
        Lines { walk: Walk::new(dims, &strides, false) }
    }
    fn count(&self) -> usize {
        self.walk.rows() * self.walk.inner()
    }
    fn address(&self, v: &View, operand: usize, line: usize) -> *mut u8 {
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
    let lines = Lines::new(ids.dims(), &[ids]);
    for i in 0..lines.count() {
        // SAFETY: an element of the view.
        let id = unsafe { load_index(lines.address(ids, 0, i), ids.dtype()) };
        if !(lo..hi).contains(&id) {
            return Err(KernelError::new(format!("index {id} at position {i} is outside {lo}..{hi}")));
        }
    }
    Ok(())
}

/// The rows of `weight` (rows × width) named by `ids`, into `out` (ids' dims × width); zeros for ids outside
/// `first_row..first_row + rows`.
///
/// # Errors
/// Where dims or dtypes do not fit.
pub fn embedding(weight: &View, ids: &View, out: &View, first_row: i64) -> Result<()> {
    check_lookup(weight, ids, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let (rows, width, lead) = (weight.dims()[0], weight.dims()[1], ids.rank());
    let lines = Lines::new(ids.dims(), &[ids, out]);
    let (d, size) = (weight.dtype(), weight.dtype().size() as isize);
    let row = |line: usize| {
        // SAFETY: an index.
        let row = row_of(unsafe { load_index(lines.address(ids, 0, line), ids.dtype()) }, first_row, rows)?;
        Some(weight.ptr().wrapping_offset(row as isize * weight.strides()[0] * size))
    };
    parallel_for(lines.count(), (GRAIN / width).max(1), &|range| {
        for line in range {
            // No prefetcher of the CPU guesses the next rows; the indices tell them.
            if line + AHEAD < lines.count()
                && let Some(next) = row(line + AHEAD)
            {
                prefetch(next, width.min(LONGEST) * size as usize, false);
            }
            let to = lines.address(out, 1, line);
            // SAFETY: a row of the table, and a row of the output that no other task writes.
            unsafe {
                match row(line) {
                    Some(from) => move_run(d, from, weight.strides()[1], to, out.strides()[lead], width),
                    None => zeros(d, to, out.strides()[lead], 0..width),
                }
            }
        }
    });
    Ok(())
}

pub(crate) fn check_lookup(table: &View, ids: &View, rows: &View) -> Result<()> {
    index_dtype(ids)?;
    let fits = table.rank() == 2
        && rows.rank() == ids.rank() + 1
        && rows.dims()[..ids.rank()] == *ids.dims()
        && rows.dims()[ids.rank()] == table.dims()[1]
        && rows.dtype() == table.dtype();
    if fits {
        return Ok(());
    }
    Err(KernelError::new(format!(
        "table {} {:?}, indices {:?} and rows {} {:?} do not fit",
        table.dtype(),
        table.dims(),
        ids.dims(),
        rows.dtype(),
        rows.dims()
    )))
}

/// The gradient of [`embedding`]: overwrites `dweight` with, for each row, the sum of the rows of `dy` whose id names it,
/// added in the order of the ids (halves in f32, rounded once). `dweight` has the rows from `first_row` on of `size`.
///
/// # Errors
/// Where dims or dtypes do not fit, or an id is outside `0..size`.
pub fn embedding_grad(dy: &View, ids: &View, dweight: &View, first_row: i64, size: usize) -> Result<()> {
    check_lookup(dweight, ids, dy)?;
    check_indices(ids, 0, size as i64)?;
    fill(dweight, Scalar::Int(0))?;
    if dy.is_empty() || dweight.is_empty() {
        return Ok(());
    }
    let dtype = native(dy.dtype())?;
    let (rows, width) = (dweight.dims()[0], dweight.dims()[1]);
    let lines = Lines::new(ids.dims(), &[ids, dy]);
    let mut order: Vec<(usize, usize)> = (0..lines.count())
        .filter_map(|line| {
            // SAFETY: an element of `ids`.
            let id = unsafe { load_index(lines.address(ids, 0, line), ids.dtype()) };
            Some((row_of(id, first_row, rows)?, line))
        })
        .collect();
    order.sort_unstable();
    let groups: Vec<&[(usize, usize)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
    let steps = [dy.strides()[ids.rank()], dweight.strides()[1]];
    parallel_for(groups.len(), (GRAIN / width).max(1), &|range| {
        let mut rows = vec![];
        for group in &groups[range] {
            let offset = group[0].0 as isize * dweight.strides()[0] * dweight.dtype().size() as isize;
            let to = dweight.ptr().wrapping_offset(offset);
            let from = |line: usize| lines.address(dy, 1, line).cast_const();
            rows.clear();
            rows.extend(group.iter().map(|g| from(g.1)));
            // SAFETY: rows of `dy`, and a row of `dweight` that only this task writes.
            unsafe { sum_rows(dtype, &rows, to, steps, width) };
        }
    });
    Ok(())
}

/// Columns summed at a time.
const TILE: usize = 512;

/// Overwrites `to` with the sum of rows: halves in f32, integers in i64.
///
/// # Safety
/// `width` elements with the given steps are readable from each row and writable at `to`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn sum_rows(dtype: Native, rows: &[*const u8], to: *mut u8, steps: [isize; 2], width: usize) {
    with_lane!(dtype, T => {
        // SAFETY (all): by the contract of this function.
        unsafe {
            match dtype {
                Native::F64 => sums(rows, to, steps, width, 0f64, |s, x: T| s + x.to_f64(), T::from_f64),
                d if d.is_float() => sums(rows, to, steps, width, 0f32, |s, x: T| s + x.to_f32(), T::from_f32),
                _ => sums(rows, to, steps, width, 0i64, |s, x: T| s.wrapping_add(x.to_i64()), T::from_i64),
            }
        }
    });
}

/// # Safety
/// As [`sum_rows`], of elements of type T.
#[inline(always)]
unsafe fn sums<T: Lane, A: Copy>(
    rows: &[*const u8],
    to: *mut u8,
    steps: [isize; 2],
    width: usize,
    zero: A,
    add: impl Fn(A, T) -> A,
    give: impl Fn(A) -> T,
) {
    let mut sums = [zero; TILE];
    for first in (0..width).step_by(TILE) {
        let sums = &mut sums[..TILE.min(width - first)];
        if first > 0 {
            sums.fill(zero);
        }
        for row in rows {
            let row = row.cast::<T>().wrapping_offset(first as isize * steps[0]);
            if steps[0] == 1 {
                // SAFETY (all): by the contract of this function.
                let row = unsafe { std::slice::from_raw_parts(row, sums.len()) };
                sums.iter_mut().zip(row).for_each(|(s, x)| *s = add(*s, *x));
            } else {
                for (i, s) in sums.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *s = add(*s, unsafe { row.wrapping_offset(i as isize * steps[0]).read() });
                }
            }
        }
        for (i, s) in sums.iter().enumerate() {
            // SAFETY: as above.
            unsafe { to.cast::<T>().wrapping_offset((first + i) as isize * steps[1]).write(give(*s)) };
        }
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
    let one = scalar_bytes(out.dtype().computed()?, Scalar::Int(1));
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
mod tests;
