//! Elements chosen by an index for each of them along a dim: read, written and summed. All tensors are contiguous, and indices have the
//! dims of what they choose except along `dim`.

use super::copy::{copy, fill};
use super::index::{Id, check_indices, index_dtype, with_ids};
use super::lane::{Lane, with_bits, with_lane};
use super::take::around;
use crate::parallel::{GRAIN, parallel_for};
use crate::{Builtin, KernelError, Result, Scalar, View};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Checks that `ids` has the dims of `chosen`, and those of `table` except `dim`.
pub(crate) fn check(table: &View, ids: &View, chosen: &View, dim: usize) -> Result<()> {
    index_dtype(ids)?;
    let others = |a: &View, b: &View| (0..a.rank()).all(|d| d == dim || a.dims()[d] == b.dims()[d]);
    let fits = dim < table.rank()
        && ids.rank() == table.rank()
        && others(table, ids)
        && chosen.dims() == ids.dims()
        && chosen.dtype() == table.dtype();
    match fits && [table, ids, chosen].iter().all(|v| v.is_contiguous()) {
        true => Ok(()),
        false => Err(KernelError::new(format!(
            "{} {:?} and {} {:?} by indices {:?} along {dim}: they do not fit or are not contiguous",
            table.dtype(),
            table.dims(),
            chosen.dtype(),
            chosen.dims(),
            ids.dims()
        ))),
    }
}

/// Columns that a task sums or writes at a time: enough that lines are read on.
const COLUMNS: usize = 128;

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

    /// The row of the table that an index names; none where it is elsewhere. `outside` becomes true where it is nowhere.
    ///
    /// # Safety
    /// The indices are of type I, and `at` is below their number.
    #[inline(always)]
    unsafe fn row<I: Id>(&self, ids: *const I, at: usize, outside: &mut bool) -> Option<usize> {
        // SAFETY: by the contract of this function.
        let id = unsafe { ids.add(at).read() }.wide();
        let row = id.wrapping_sub(self.first) as usize;
        if row < self.rows {
            return Some(row);
        }
        *outside |= id as u64 >= self.size;
        None
    }

    /// Runs `each(block, columns)` for all blocks and, where these are few, for parts of their columns; it says whether an index was
    /// outside.
    fn columns(&self, each: &(dyn Fn(usize, std::ops::Range<usize>) -> bool + Sync)) {
        let width = (GRAIN / self.count.max(1)).max(COLUMNS).min(self.inner).max(1);
        let parts = self.inner.div_ceil(width);
        let grain = (GRAIN / (self.count * width).max(1)).max(1);
        parallel_for(self.outer * parts, grain, &|range| {
            for task in range {
                let (block, part) = (task / parts, task % parts);
                if each(block, part * width..((part + 1) * width).min(self.inner)) {
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

/// `out[a, j, b] = x[a, ids[a, j, b] - first, b]`; zero where that is outside x. x has the rows from `first` on of `size`.
///
/// # Errors
/// If an index is outside `0..size`, dims or dtypes do not fit, or a tensor is not contiguous.
pub fn gather(x: &View, ids: &View, out: &View, dim: usize, first: i64, size: usize) -> Result<()> {
    check(x, ids, out, dim)?;
    if out.is_empty() {
        return Ok(());
    }
    let b = Blocks::of(x, ids, dim, first, size);
    with_bits!(x.dtype(), T => with_ids!(ids, I => {
        let (from, to, at) = (x.ptr() as usize, out.ptr() as usize, ids.ptr() as usize);
        let (inner, count) = (b.inner, b.count);
        parallel_for(b.outer * count, (GRAIN / inner).max(1), &|lines| {
            let mut outside = false;
            let mut line = lines.start;
            while line < lines.end {
                let (block, last) = (line / count, lines.end.min((line / count + 1) * count));
                let table = (from as *const T).wrapping_add(block * b.rows * inner);
                let mut element = |at_id: usize, column: usize| {
                    // SAFETY: element `at_id` of the indices and of the output, which belongs to this task; the row of the table is checked.
                    unsafe {
                        let value = match b.row(at as *const I, at_id, &mut outside) {
                            Some(row) => table.add(row * inner + column).read(),
                            None => Default::default(),
                        };
                        (to as *mut T).add(at_id).write(value);
                    }
                };
                if inner == 1 {
                    (line..last).for_each(|j| element(j, 0));
                } else {
                    for j in line..last {
                        (0..inner).for_each(|i| element(j * inner + i, i));
                    }
                }
                line = last;
            }
            if outside {
                b.outside.store(true, Relaxed);
            }
        });
    }));
    b.checked()
}

/// `out = x`, then `out[a, ids[a, j, b] - first, b] = src[a, j, b]` in the order of `j`: the last of several wins. What is outside is
/// left out. `out` may be `x`; it has the rows from `first` on of `size`.
///
/// # Errors
/// If an index is outside `0..size`, dims or dtypes do not fit, or a tensor is not contiguous.
pub fn scatter(x: &View, ids: &View, src: &View, out: &View, dim: usize, first: i64, size: usize) -> Result<()> {
    check(out, ids, src, dim)?;
    copy(x, out)?;
    if src.is_empty() {
        return Ok(());
    }
    let b = Blocks::of(out, ids, dim, first, size);
    with_bits!(out.dtype(), T => with_ids!(ids, I => {
        let (from, to, at) = (src.ptr() as usize, out.ptr() as usize, ids.ptr() as usize);
        b.columns(&|block, columns| {
            let table = (to as *mut T).wrapping_add(block * b.rows * b.inner);
            let mut outside = false;
            for j in 0..b.count {
                let line = (block * b.count + j) * b.inner;
                for i in columns.clone() {
                    // SAFETY: an element of the indices and of `src`; the row of the output is checked, and its column belongs to this
                    // task.
                    unsafe {
                        if let Some(row) = b.row(at as *const I, line + i, &mut outside) {
                            table.add(row * b.inner + i).write((from as *const T).add(line + i).read());
                        }
                    }
                }
            }
            outside
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
    check(out, ids, values, dim)?;
    fill(out, Scalar::Int(0))?;
    if values.is_empty() {
        return Ok(());
    }
    let b = Blocks::of(out, ids, dim, first, size);
    with_lane!(out.dtype().computed()?, T => with_ids!(ids, I => {
        let (from, to, at) = (values.ptr() as usize, out.ptr() as usize, ids.ptr() as usize);
        b.columns(&|block, columns| {
            let table = (to as *mut T).wrapping_add(block * b.rows * b.inner);
            let mut outside = false;
            let width = columns.len();
            let half = matches!(T::DTYPE, Builtin::F16 | Builtin::BF16);
            let mut wide = vec![0f32; if half { b.rows * width } else { 0 }];
            for j in 0..b.count {
                let line = (block * b.count + j) * b.inner;
                for i in columns.clone() {
                    // SAFETY: an element of the indices and of the values; the row of the output is checked, and its column belongs to
                    // this task.
                    unsafe {
                        if let Some(row) = b.row(at as *const I, line + i, &mut outside) {
                            let value = (from as *const T).add(line + i).read();
                            if half {
                                wide[row * width + i - columns.start] += value.to_f32();
                            } else {
                                let place = table.add(row * b.inner + i);
                                place.write(sum(place.read(), value));
                            }
                        }
                    }
                }
            }
            for (place, total) in wide.iter().enumerate() {
                // SAFETY: an element of a column of this task.
                unsafe { table.add(place / width * b.inner + columns.start + place % width).write(T::from_f32(*total)) };
            }
            outside
        });
    }));
    b.checked()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::cpu::testing::{Owned, read};
    use crate::parallel::tests::with_threads;

    #[test]
    fn by_hand() {
        let x = Owned::from_f64(DType::F32, &[2, 3], &[1., 2., 3., 4., 5., 6.]);
        let ids = Owned::from_f64(DType::I64, &[2, 2], &[2., 0., 1., 1.]);
        let out = Owned::zeros(DType::F32, &[2, 2]);
        gather(&x.view(), &ids.view(), &out.view(), 1, 0, 3).unwrap();
        assert_eq!(read(&out.view()), [3., 1., 5., 5.]);
        // The columns from 1 on are here: column 0 is elsewhere.
        gather(&x.view(), &ids.view(), &out.view(), 1, 1, 4).unwrap();
        assert_eq!(read(&out.view()), [2., 0., 4., 4.]);
        let sums = Owned::zeros(DType::F32, &[2, 3]);
        let values = Owned::from_f64(DType::F32, &[2, 2], &[10., 20., 30., 40.]);
        scatter_sum(&values.view(), &ids.view(), &sums.view(), 1, 0, 3).unwrap();
        assert_eq!(read(&sums.view()), [20., 0., 10., 0., 70., 0.]);
        scatter(&x.view(), &ids.view(), &values.view(), &sums.view(), 1, 0, 3).unwrap();
        assert_eq!(read(&sums.view()), [20., 2., 10., 4., 40., 6.]);
        assert!(gather(&x.view(), &ids.view(), &out.view(), 0, 0, 2).is_err());
        // An index that is nowhere is an error, also where the table has other rows.
        let bad = Owned::from_f64(DType::I64, &[2, 2], &[2., 0., 4., 1.]);
        for first in [0, 1] {
            for e in [
                gather(&x.view(), &bad.view(), &out.view(), 1, first, 4),
                scatter(&x.view(), &bad.view(), &values.view(), &sums.view(), 1, first, 4),
                scatter_sum(&values.view(), &bad.view(), &sums.view(), 1, first, 4),
            ] {
                assert!(e.unwrap_err().to_string().contains("index 4 at position 2 is outside 0..4"));
            }
        }
    }

    #[test]
    fn threads_do_not_matter() {
        let (rows, count, inner) = (50, 300, 70);
        let values: Vec<f64> = (0..2 * count * inner).map(|i| (i % 97) as f64 / 3.0).collect();
        let ids: Vec<f64> = (0..2 * count * inner).map(|i| ((i * 31) % rows) as f64).collect();
        for dtype in [DType::F32, DType::BF16, DType::I32] {
            let (v, i) = (
                Owned::from_f64(dtype, &[2, count, inner], &values),
                Owned::from_f64(DType::I32, &[2, count, inner], &ids),
            );
            let run = |threads| {
                with_threads(threads, || {
                    let out = Owned::zeros(dtype, &[2, rows, inner]);
                    scatter_sum(&v.view(), &i.view(), &out.view(), 1, 0, rows).unwrap();
                    let back = Owned::zeros(dtype, &[2, count, inner]);
                    gather(&out.view(), &i.view(), &back.view(), 1, 0, rows).unwrap();
                    (read(&out.view()), read(&back.view()))
                })
            };
            assert_eq!(run(1), run(4));
        }
    }
}
