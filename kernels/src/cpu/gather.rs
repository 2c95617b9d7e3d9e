//! Elements chosen by an index for each of them along a dim: read, written and summed. Indices have the dims of what they choose except
//! along `dim`. Reading takes any strides; all other tensors are contiguous.

use super::copy::{copy, fill, fill_run, for_segments};
use super::index::{Id, check_indices, index_dtype, row_of, with_ids};
use super::lane::{Lane, native, with_bits, with_lane};
use super::strided::Walk;
use super::take::around;
use crate::parallel::{GRAIN, parallel_for};
use crate::{Builtin, KernelError, Result, Scalar, Strides, View};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Checks that `ids` has the dims of `table` except `dim`, and that `chosen`, if there is one, has the dims of `ids`.
pub(crate) fn check(table: &View, ids: &View, chosen: Option<&View>, dim: usize) -> Result<()> {
    index_dtype(ids)?;
    let others = |a: &View, b: &View| (0..a.rank()).all(|d| d == dim || a.dims()[d] == b.dims()[d]);
    let fits = dim < table.rank()
        && ids.rank() == table.rank()
        && others(table, ids)
        && chosen.is_none_or(|c| c.dims() == ids.dims() && c.dtype() == table.dtype());
    let what = || chosen.map(|c| format!(" and {} {:?}", c.dtype(), c.dims())).unwrap_or_default();
    match fits {
        true => Ok(()),
        false => Err(KernelError::new(format!(
            "{} {:?}{} by indices {:?} along {dim}: they do not fit",
            table.dtype(),
            table.dims(),
            what(),
            ids.dims()
        ))),
    }
}

/// As [`check`], of contiguous tensors.
pub(crate) fn check_contiguous(table: &View, ids: &View, chosen: Option<&View>, dim: usize) -> Result<()> {
    check(table, ids, chosen, dim)?;
    match [table, ids].into_iter().chain(chosen).all(|v| v.is_contiguous()) {
        true => Ok(()),
        false => Err(KernelError::new("a tensor is not contiguous")),
    }
}

/// Columns that a task sums or writes at a time: enough that lines are read on.
const COLUMNS: usize = 128;

/// Places that [`gather_last`] remembers at a time, and columns at least.
const PLACES: usize = 128 * 1024;
const AT_LEAST: usize = 16;

/// Where the elements of a call lie: blocks of `count` (in the table: `rows`) lines of `inner` elements. The table has the rows from
/// `first` on of `size`.
struct Blocks<'a> {
    ids: &'a View,
    count: usize,
    rows: usize,
    inner: usize,
    outer: usize,
    first: i64,
    size: u64,
    /// An index was outside `0..size`.
    outside: AtomicBool,
}

impl<'a> Blocks<'a> {
    fn of(table: &View, ids: &'a View, dim: usize, first: i64, size: usize) -> Blocks<'a> {
        let (outer, inner) = around(table.dims(), dim);
        let (count, rows) = (ids.dims()[dim], table.dims()[dim]);
        Blocks { ids, count, rows, inner, outer, first, size: size as u64, outside: AtomicBool::new(false) }
    }

    /// Calls `each(places in the table, place among the indices)` for the indices of some columns of some blocks, from row to row; it says
    /// whether an index was outside. The first places, in the whole table and among these columns of these blocks, are none where an
    /// index is of rows that are not here.
    ///
    /// # Safety
    /// The indices are of type I and as many as this says.
    #[inline(always)]
    unsafe fn visit<I: Id>(
        &self,
        blocks: Range<usize>,
        columns: Range<usize>,
        mut each: impl FnMut(Option<[usize; 2]>, usize),
    ) -> bool {
        // All in locals: what `each` writes could be this struct, for all that the compiler knows.
        let ids = self.ids.ptr().cast::<I>().cast_const();
        let Blocks { count, rows, inner, first, size, .. } = *self;
        let mut outside = false;
        // `bases` are the places of the first index of a line, of the line's first element in the table, and among these columns.
        let mut element = |bases: [usize; 3], j: usize, steps: [usize; 2]| {
            let at = bases[0] + j * steps[0];
            // SAFETY: an index, by the contract of this function.
            let id = unsafe { ids.add(at).read() }.wide();
            let row = row_of(id, first, rows);
            outside |= row.is_none() && id as u64 >= size;
            each(row.map(|row| [bases[1] + row * steps[0], bases[2] + row * steps[1]]), at);
        };
        let bases = |block: usize, column: usize| {
            let among = (block - blocks.start) * rows * columns.len() + column - columns.start;
            [block * count * inner + column, block * rows * inner + column, among]
        };
        if inner > 1 {
            let steps = [inner, columns.len()];
            for block in blocks.clone() {
                let start = bases(block, columns.start);
                for j in 0..count {
                    (0..columns.len()).for_each(|i| element(start.map(|base| base + i), j, steps));
                }
            }
            return outside;
        }
        for block in blocks.clone() {
            let line = bases(block, 0);
            (0..count).for_each(|j| element(line, j, [1, 1]));
        }
        outside
    }

    /// Some columns of some blocks of [`gather_last`]: says whether an index was outside; none without memory. The last index that names an
    /// element is found first. To mark elements and ask for each index would guess wrong, and wait for the marks.
    ///
    /// # Safety
    /// x has type T, and so has the output, of which nobody else touches these columns; the indices have type I.
    unsafe fn last<T: Copy + Default, I: Id>(
        &self,
        from: *const T,
        to: *mut T,
        blocks: Range<usize>,
        columns: Range<usize>,
    ) -> Option<bool> {
        let (inner, width) = (self.inner, columns.len());
        let mut last: Vec<usize> = Vec::new();
        last.try_reserve_exact(blocks.len() * self.rows * width).ok()?;
        last.resize(blocks.len() * self.rows * width, usize::MAX);
        let places = last.as_mut_ptr();
        // SAFETY: `visit` gives places among these columns.
        let outside = unsafe {
            self.visit::<I>(blocks.clone(), columns.clone(), move |place, at| {
                if let Some([_, among]) = place {
                    places.add(among).write(at);
                }
            })
        };
        // Rows of all columns are one run.
        let (runs, length, step) = match width == inner {
            true => (blocks.clone(), self.count * inner, self.count * inner),
            false => (blocks.start * self.count..blocks.end * self.count, width, inner),
        };
        for run in runs {
            // SAFETY: elements of the output in these columns.
            unsafe { fill_run(to.add(run * step + columns.start), 1, length, T::default()) };
        }
        for (row, last) in last.chunks_exact(width).enumerate() {
            let from = from.wrapping_add((blocks.start * self.rows + row) * inner + columns.start);
            for (c, at) in last.iter().enumerate().filter(|(_, at)| **at != usize::MAX) {
                // SAFETY: an element of x, and one of the output in these columns.
                unsafe { to.add(*at).write(from.add(c).read()) };
            }
        }
        Some(outside)
    }

    /// Runs `each(blocks, columns)` for all blocks: one block, and of blocks of many columns parts of these. It says whether an index was outside.
    fn columns(&self, each: &(dyn Fn(Range<usize>, Range<usize>) -> bool + Sync)) {
        if self.ids.is_empty() {
            return;
        }
        let width = (GRAIN / self.count.max(1)).max(COLUMNS).min(self.inner).max(1);
        let parts = self.inner.div_ceil(width);
        let grain = (GRAIN / (self.count * width).max(1)).max(1);
        parallel_for(self.outer * parts, grain, &|range| {
            for task in range {
                let (block, part) = (task / parts, task % parts);
                if each(block..block + 1, part * width..((part + 1) * width).min(self.inner)) {
                    self.outside.store(true, Relaxed);
                }
            }
        });
    }

    /// An error that names the first index outside, if there is one.
    fn checked(&self) -> Result<()> {
        if self.outside.load(Relaxed) { check_indices(self.ids, 0, self.size as i64) } else { Ok(()) }
    }
}

/// `out[a, j, b] = x[a, ids[a, j, b] - first, b]`; zero where that is outside x. x has the rows from `first` on of `size`. Any strides.
///
/// # Errors
/// If an index is outside `0..size`, or dims or dtypes do not fit.
pub fn gather(x: &View, ids: &View, out: &View, dim: usize, first: i64, size: usize) -> Result<()> {
    check(x, ids, Some(out), dim)?;
    if out.is_empty() {
        return Ok(());
    }
    // x is walked with the dims of the indices and stands still in `dim`.
    let mut still: Strides = x.strides().into();
    still[dim] = 0;
    let walk = Walk::new(out.dims(), &[out.strides(), ids.strides(), &still], true);
    let steps: [isize; 3] = std::array::from_fn(|k| walk.inner_stride(k));
    let (rows, step) = (x.dims()[dim], x.strides()[dim]);
    let outside = AtomicBool::new(false);
    with_bits!(x.dtype(), T => with_ids!(ids, I => for_segments(&walk, &|at, n| {
        let to = out.ptr().cast::<T>().wrapping_offset(at[0]);
        let by = ids.ptr().cast::<I>().cast_const().wrapping_offset(at[1]);
        let from = x.ptr().cast::<T>().cast_const().wrapping_offset(at[2]);
        let mut bad = false;
        // Copies: what is written could be what this closure holds, for all that the compiler knows.
        let (first, rows, size, step) = (first, rows, size as u64, step);
        let mut element = |i: isize, steps: [isize; 3]| {
            // SAFETY: the walk visits elements of the output, each in one segment, and indices; the row of x is checked.
            unsafe {
                let id = by.wrapping_offset(i * steps[1]).read().wide();
                let row = row_of(id, first, rows);
                bad |= row.is_none() && id as u64 >= size;
                let value = match row {
                    Some(row) => from.wrapping_offset(i * steps[2] + row as isize * step).read(),
                    None => Default::default(),
                };
                to.wrapping_offset(i * steps[0]).write(value);
            }
        };
        match steps {
            [1, 1, 0] => (0..n as isize).for_each(|i| element(i, [1, 1, 0])),
            steps => (0..n as isize).for_each(|i| element(i, steps)),
        }
        if bad {
            outside.store(true, Relaxed);
        }
    })));
    if outside.into_inner() { check_indices(ids, 0, size as i64) } else { Ok(()) }
}

/// As [`gather`], but zero where an index that comes later along `dim` names the same element: each element of x is read once. That is
/// what [`scatter`] leaves of each of its values. All tensors are contiguous.
///
/// # Errors
/// If an index is outside `0..size`, dims or dtypes do not fit, a tensor is not contiguous, or there is no memory.
pub fn gather_last(x: &View, ids: &View, out: &View, dim: usize, first: i64, size: usize) -> Result<()> {
    check_contiguous(x, ids, Some(out), dim)?;
    if out.is_empty() {
        return Ok(());
    }
    let b = Blocks::of(x, ids, dim, first, size);
    let starved = AtomicBool::new(false);
    with_bits!(x.dtype(), T => with_ids!(ids, I => {
        let (from, to) = (x.ptr() as usize, out.ptr() as usize);
        b.columns(&|blocks, columns| {
            let (mut outside, width) = (false, (PLACES / b.rows.max(1)).max(AT_LEAST));
            for first in columns.clone().step_by(width) {
                let columns = first..columns.end.min(first + width);
                // SAFETY: x and the output have type T, the indices type I; these columns are this task's.
                match unsafe { b.last::<T, I>(from as *const T, to as *mut T, blocks.clone(), columns) } {
                    Some(more) => outside |= more,
                    None => starved.store(true, Relaxed),
                }
            }
            outside
        });
    }));
    if starved.into_inner() {
        return Err(KernelError::out_of_memory("no memory for the places that a gather reads once"));
    }
    b.checked()
}

/// `out = x`, then `out[a, ids[a, j, b] - first, b] = src[a, j, b]` in the order of `j`: the last of several wins. What is outside is
/// left out. `out` may be `x`; it has the rows from `first` on of `size`.
///
/// # Errors
/// If an index is outside `0..size`, dims or dtypes do not fit, or a tensor is not contiguous.
pub fn scatter(x: &View, ids: &View, src: &View, out: &View, dim: usize, first: i64, size: usize) -> Result<()> {
    check_contiguous(out, ids, Some(src), dim)?;
    copy(x, out)?;
    let b = Blocks::of(out, ids, dim, first, size);
    with_bits!(out.dtype(), T => with_ids!(ids, I => {
        let (from, to) = (src.ptr() as usize, out.ptr() as usize);
        b.columns(&|blocks, columns| {
            let (from, to) = (from as *const T, to as *mut T);
            // SAFETY: `visit` gives places of `src` and of the output, those of a column of this task.
            unsafe {
                b.visit::<I>(blocks, columns, move |place, at| {
                    if let Some([place, _]) = place {
                        to.add(place).write(from.add(at).read());
                    }
                })
            }
        });
    }));
    b.checked()
}

/// `out = x`, then `out[a, ids[a, j, b] - first, b] = value`. See [`scatter`].
///
/// # Errors
/// As [`scatter`]; for a registered dtype.
pub fn scatter_fill(
    x: &View,
    ids: &View,
    value: Scalar,
    out: &View,
    dim: usize,
    first: i64,
    size: usize,
) -> Result<()> {
    check_contiguous(out, ids, None, dim)?;
    let bytes = out.dtype().cast()?.encode(value);
    copy(x, out)?;
    let b = Blocks::of(out, ids, dim, first, size);
    with_bits!(out.dtype(), T => with_ids!(ids, I => {
        let to = out.ptr() as usize;
        // SAFETY: the bytes hold an element.
        let value = unsafe { bytes.as_ptr().cast::<T>().read_unaligned() };
        b.columns(&|blocks, columns| {
            let (to, value) = (to as *mut T, value);
            // SAFETY: `visit` gives places of the output, those of a column of this task.
            unsafe {
                b.visit::<I>(blocks, columns, move |place, _| {
                    if let Some([place, _]) = place {
                        to.add(place).write(value);
                    }
                })
            }
        });
    }));
    b.checked()
}

/// The sum of two elements; integers wrap.
#[inline(always)]
fn sum<T: Lane>(a: T, b: T) -> T {
    match T::DTYPE {
        Builtin::F64 => T::from_f64(a.to_f64() + b.to_f64()),
        d if d.is_float() => T::from_f32(a.to_f32() + b.to_f32()),
        _ => T::from_i64(a.to_i64().wrapping_add(b.to_i64())),
    }
}

/// Zeros to which `values[a, j, b]` is added at `[a, ids[a, j, b] - first, b]`, in the order of `j` (halves in f32, rounded once;
/// integers wrap). What is outside is left out; the output has the rows from `first` on of `size`.
///
/// # Errors
/// If an index is outside `0..size`, dims or dtypes do not fit, or a tensor is not contiguous.
pub fn scatter_sum(values: &View, ids: &View, out: &View, dim: usize, first: i64, size: usize) -> Result<()> {
    check_contiguous(out, ids, Some(values), dim)?;
    fill(out, Scalar::Int(0))?;
    let b = Blocks::of(out, ids, dim, first, size);
    with_lane!(native(out.dtype())?, T => with_ids!(ids, I => {
        let (from, to) = (values.ptr() as usize, out.ptr() as usize);
        b.columns(&|blocks, columns| {
            let (from, to) = (from as *const T, to as *mut T);
            let (table, width, left) = (blocks.start * b.rows * b.inner, columns.len(), columns.start);
            let half = matches!(T::DTYPE, Builtin::F16 | Builtin::BF16);
            if !half {
                // SAFETY: `visit` gives places of the values and of the output, those of a column of this task.
                return unsafe {
                    b.visit::<I>(blocks, columns, move |place, at| {
                        if let Some([place, _]) = place {
                            let (place, value) = (to.add(place), from.add(at).read());
                            place.write(sum(place.read(), value));
                        }
                    })
                };
            }
            let mut wide = vec![0f32; blocks.len() * b.rows * width];
            // SAFETY: `visit` gives places of the values.
            let outside = unsafe {
                b.visit::<I>(blocks, columns, |place, at| {
                    if let Some([_, among]) = place {
                        wide[among] += from.add(at).read().to_f32();
                    }
                })
            };
            for (place, total) in wide.iter().enumerate() {
                // SAFETY: an element of a column of this task.
                unsafe { to.add(table + place / width * b.inner + left + place % width).write(T::from_f32(*total)) };
            }
            outside
        });
    }));
    b.checked()
}
