//! Rows of a table by index, and the gradient of the table. Index tensors are i64 or i32.
//!
//! A part of a table takes the number of its first row and gives zeros for indices outside: the results of the shards of a split table
//! then add up to the whole lookup.

use super::copy::{fill, move_run};
use super::index::{Id, Lines, check_indices, index_dtype, load_index, row_of, with_ids, zeros};
use super::lane::{Lane, Native, native, with_float, with_integer};
use super::strided::prefetch;
use crate::parallel::{GRAIN, parallel_for};
use crate::{Element, KernelError, Result, Scalar, View};
use multiversion::multiversion;
use std::ops::AddAssign;

/// How many rows of a table are on their way from memory while one is copied, and how much of each.
const AHEAD: usize = 8;
const LONGEST: usize = 256;

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
    if width <= NARROW && [dy, ids, dweight].iter().all(|v| v.is_contiguous()) {
        let added = match dtype {
            Native::F32 => Some(with_ids!(ids, I => add_in_order::<f32, I>(dy, ids, dweight, first_row))),
            Native::F64 => Some(with_ids!(ids, I => add_in_order::<f64, I>(dy, ids, dweight, first_row))),
            _ => None,
        };
        if let Some(added) = added {
            return added;
        }
    }
    let lines = Lines::new(ids.dims(), &[ids, dy]);
    let row = |line: usize| {
        // SAFETY: an element of `ids`.
        row_of(unsafe { load_index(lines.address(ids, 0, line), ids.dtype()) }, first_row, rows)
    };
    let order = by_row(&(0..lines.count()).map(row).collect::<Vec<_>>(), rows);
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

/// Width up to which rows are added where they belong, one after the other: to order them first would cost more than it saves.
const NARROW: usize = 4;

/// The sums of [`embedding_grad`] in a dtype in which they are computed, in the order of the ids.
fn add_in_order<T: Element + AddAssign, I: Id + Element>(
    dy: &View,
    ids: &View,
    dweight: &View,
    first_row: i64,
) -> Result<()> {
    let width = dweight.dims()[1];
    // SAFETY: nothing else reads or writes the output.
    let to = unsafe { dweight.as_mut_slice::<T>()? };
    for (id, dy) in ids.as_slice::<I>()?.iter().zip(dy.as_slice::<T>()?.chunks_exact(width)) {
        if let Some(row) = row_of(id.wide(), first_row, dweight.dims()[0]) {
            to[row * width..][..width].iter_mut().zip(dy).for_each(|(to, x)| *to += *x);
        }
    }
    Ok(())
}

/// Pairs of row and line by row, those of a row in the order of the lines.
fn by_row(rows_of_lines: &[Option<usize>], rows: usize) -> Vec<(usize, usize)> {
    let pairs = || rows_of_lines.iter().enumerate().filter_map(|(line, row)| Some(((*row)?, line)));
    if rows > 8 * rows_of_lines.len() {
        // Few lines of many rows: a list of all rows would be the larger part.
        let mut order: Vec<_> = pairs().collect();
        order.sort_unstable();
        return order;
    }
    let mut next = vec![0usize; rows + 1];
    pairs().for_each(|(row, _)| next[row + 1] += 1);
    (0..rows).for_each(|row| next[row + 1] += next[row]);
    let mut order = vec![(0, 0); next[rows]];
    for (row, line) in pairs() {
        order[next[row]] = (row, line);
        next[row] += 1;
    }
    order
}

/// Columns summed at a time.
const TILE: usize = 512;

/// Overwrites `to` with the sum of rows: halves in f32, integers in i64.
///
/// # Safety
/// `width` elements with the given steps are readable from each row and writable at `to`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn sum_rows(dtype: Native, rows: &[*const u8], to: *mut u8, steps: [isize; 2], width: usize) {
    // SAFETY (all): by the contract of this function.
    unsafe {
        match dtype {
            Native::F64 => sums(rows, to, steps, width, 0f64, |s, x: f64| s + x, |s| s),
            d if d.is_float() => with_float!(d, T => {
                sums(rows, to, steps, width, 0f32, |s, x: T| s + x.to_f32(), T::from_f32)
            }),
            d => with_integer!(d, T => {
                sums(rows, to, steps, width, 0i64, |s, x: T| s.wrapping_add(x.to_i64()), T::from_i64)
            }),
        }
    }
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
        let n = sums.len();
        let at = |row: *const u8| row.cast::<T>().wrapping_offset(first as isize * steps[0]);
        // SAFETY (all): by the contract of this function.
        let slice = |row: *const u8| unsafe { std::slice::from_raw_parts(at(row), n) };
        // Some rows at a time, in their order: they come from memory side by side, and a sum stays in a register meanwhile.
        for rows in rows.chunks(4) {
            if let ([a, b, c, d], 1) = (rows, steps[0]) {
                let [a, b, c, d] = [slice(*a), slice(*b), slice(*c), slice(*d)];
                sums.iter_mut().enumerate().for_each(|(i, s)| *s = add(add(add(add(*s, a[i]), b[i]), c[i]), d[i]));
                continue;
            }
            for row in rows {
                if steps[0] == 1 {
                    sums.iter_mut().zip(slice(*row)).for_each(|(s, x)| *s = add(*s, *x));
                    continue;
                }
                for (i, s) in sums.iter_mut().enumerate() {
                    *s = add(*s, unsafe { at(*row).wrapping_offset(i as isize * steps[0]).read() });
                }
            }
        }
        for (i, s) in sums.iter().enumerate() {
            // SAFETY: as above.
            unsafe { to.cast::<T>().wrapping_offset((first + i) as isize * steps[1]).write(give(*s)) };
        }
    }
}
