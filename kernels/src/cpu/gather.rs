//! Elements chosen by an index for each of them along a dim: read, written and summed. All tensors are contiguous, and indices have the
//! dims of what they choose except along `dim`.

use super::copy::{copy, fill};
use super::index::{index_dtype, load_index, row_of};
use super::lane::{Lane, with_lane};
use super::take::around;
use crate::parallel::{GRAIN, parallel_for};
use crate::{Builtin, KernelError, Result, Scalar, View};

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

/// Where the elements of a call lie: blocks of `count` (in the table: `rows`) lines of `inner` elements.
struct Blocks {
    count: usize,
    rows: usize,
    inner: usize,
    outer: usize,
}

impl Blocks {
    fn of(table: &View, ids: &View, dim: usize) -> Blocks {
        let (outer, inner) = around(table.dims(), dim);
        Blocks { count: ids.dims()[dim], rows: table.dims()[dim], inner, outer }
    }
    /// Runs `each(block, columns)` for all blocks and, where these are few, for parts of their columns.
    fn columns(&self, each: &(dyn Fn(usize, std::ops::Range<usize>) + Sync)) {
        let width = (GRAIN / self.count.max(1)).clamp(1, self.inner.max(1)).max(16.min(self.inner));
        let parts = self.inner.div_ceil(width.max(1));
        let grain = (GRAIN / (self.count * width).max(1)).max(1);
        parallel_for(self.outer * parts, grain, &|range| {
            for task in range {
                let (block, part) = (task / parts, task % parts);
                each(block, part * width..((part + 1) * width).min(self.inner));
            }
        });
    }
}

/// The index of an element.
///
/// # Safety
/// `at` is below the number of elements of `ids`, which are of a dtype of indices.
#[inline(always)]
unsafe fn index(ids: &View, at: usize) -> i64 {
    // SAFETY: by the contract of this function.
    unsafe { load_index(ids.ptr().wrapping_add(at * ids.dtype().size()), ids.dtype()) }
}

/// `out[a, j, b] = x[a, ids[a, j, b] - first, b]`; zero where that is outside x.
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn gather(x: &View, ids: &View, out: &View, dim: usize, first: i64) -> Result<()> {
    check(x, ids, out, dim)?;
    let b = Blocks::of(x, ids, dim);
    macro_rules! moved {
        ($t:ty) => {{
            let (from, to) = (x.ptr().cast::<$t>() as usize, out.ptr().cast::<$t>() as usize);
            let lines = b.outer * b.count;
            parallel_for(lines, (GRAIN / b.inner.max(1)).max(1), &|range| {
                for line in range {
                    let block = line / b.count;
                    for i in 0..b.inner {
                        let at = line * b.inner + i;
                        // SAFETY: element `at` of the indices and of the output; the row of x is checked.
                        unsafe {
                            let value = match row_of(index(ids, at), first, b.rows) {
                                Some(row) => (from as *const $t).add((block * b.rows + row) * b.inner + i).read(),
                                None => Default::default(),
                            };
                            (to as *mut $t).add(at).write(value);
                        }
                    }
                }
            });
        }};
    }
    match x.dtype().size() {
        _ if out.is_empty() => {}
        1 => moved!(u8),
        2 => moved!(u16),
        4 => moved!(u32),
        8 => moved!(u64),
        size => return Err(KernelError::new(format!("no kernel gathers elements of {size} B"))),
    }
    Ok(())
}

/// `out = x`, then `out[a, ids[a, j, b] - first, b] = src[a, j, b]` in the order of `j`: the last of several wins. What is outside is
/// left out. `out` may be `x`.
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn scatter(x: &View, ids: &View, src: &View, out: &View, dim: usize, first: i64) -> Result<()> {
    check(out, ids, src, dim)?;
    copy(x, out)?;
    let b = Blocks::of(out, ids, dim);
    macro_rules! moved {
        ($t:ty) => {{
            let (from, to) = (src.ptr().cast::<$t>() as usize, out.ptr().cast::<$t>() as usize);
            b.columns(&|block, columns| {
                for j in 0..b.count {
                    for i in columns.clone() {
                        let at = (block * b.count + j) * b.inner + i;
                        // SAFETY: element `at` of the indices and of `src`; the row of the output is checked, and its column
                        // belongs to this task.
                        unsafe {
                            if let Some(row) = row_of(index(ids, at), first, b.rows) {
                                let value = (from as *const $t).add(at).read();
                                (to as *mut $t).add((block * b.rows + row) * b.inner + i).write(value);
                            }
                        }
                    }
                }
            });
        }};
    }
    match out.dtype().size() {
        _ if src.is_empty() || out.is_empty() => {}
        1 => moved!(u8),
        2 => moved!(u16),
        4 => moved!(u32),
        8 => moved!(u64),
        size => return Err(KernelError::new(format!("no kernel scatters elements of {size} B"))),
    }
    Ok(())
}

/// Zeros to which `values[a, j, b]` is added at `[a, ids[a, j, b] - first, b]`, in the order of `j` (halves in f32, rounded once;
/// integers wrap). What is outside is left out.
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn scatter_sum(values: &View, ids: &View, out: &View, dim: usize, first: i64) -> Result<()> {
    check(out, ids, values, dim)?;
    fill(out, Scalar::Int(0))?;
    if values.is_empty() || out.is_empty() {
        return Ok(());
    }
    let b = Blocks::of(out, ids, dim);
    let dtype = out.dtype().computed()?;
    with_lane!(dtype, T => {
        let (from, to) = (values.ptr() as usize, out.ptr() as usize);
        b.columns(&|block, columns| {
            // SAFETY: element `at` of `values`; a row of the output that is checked, in a column of this task.
            let value = |at: usize| unsafe { (from as *const T).add(at).read() };
            let place = |row: usize, i: usize| (to as *mut T).wrapping_add((block * b.rows + row) * b.inner + i);
            let each = |add: &mut dyn FnMut(usize, usize, T)| {
                for j in 0..b.count {
                    for i in columns.clone() {
                        let at = (block * b.count + j) * b.inner + i;
                        // SAFETY: an element of the indices.
                        if let Some(row) = row_of(unsafe { index(ids, at) }, first, b.rows) {
                            add(row, i, value(at));
                        }
                    }
                }
            };
            if dtype.is_half() {
                let width = columns.len();
                let mut sums = vec![0f32; b.rows * width];
                each(&mut |row, i, x| sums[row * width + i - columns.start] += x.to_f32());
                for row in 0..b.rows {
                    for i in columns.clone() {
                        // SAFETY: see above.
                        unsafe { place(row, i).write(T::from_f32(sums[row * width + i - columns.start])) };
                    }
                }
                return;
            }
            each(&mut |row, i, x| {
                let p = place(row, i);
                // SAFETY: see above.
                unsafe {
                    let sum = p.read();
                    p.write(match dtype {
                        Builtin::F32 => T::from_f32(sum.to_f32() + x.to_f32()),
                        Builtin::F64 => T::from_f64(sum.to_f64() + x.to_f64()),
                        _ => T::from_i64(sum.to_i64().wrapping_add(x.to_i64())),
                    });
                }
            });
        });
    });
    Ok(())
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
        gather(&x.view(), &ids.view(), &out.view(), 1, 0).unwrap();
        assert_eq!(read(&out.view()), [3., 1., 5., 5.]);
        // The columns from 1 on are here: column 0 is elsewhere.
        gather(&x.view(), &ids.view(), &out.view(), 1, 1).unwrap();
        assert_eq!(read(&out.view()), [2., 0., 4., 4.].map(|v: f64| if v == 2. { 2. } else { v }));
        let sums = Owned::zeros(DType::F32, &[2, 3]);
        let values = Owned::from_f64(DType::F32, &[2, 2], &[10., 20., 30., 40.]);
        scatter_sum(&values.view(), &ids.view(), &sums.view(), 1, 0).unwrap();
        assert_eq!(read(&sums.view()), [20., 0., 10., 0., 70., 0.]);
        scatter(&x.view(), &ids.view(), &values.view(), &sums.view(), 1, 0).unwrap();
        assert_eq!(read(&sums.view()), [20., 2., 10., 4., 40., 6.]);
        assert!(gather(&x.view(), &ids.view(), &out.view(), 0, 0).is_err());
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
                    scatter_sum(&v.view(), &i.view(), &out.view(), 1, 0).unwrap();
                    let back = Owned::zeros(dtype, &[2, count, inner]);
                    gather(&out.view(), &i.view(), &back.view(), 1, 0).unwrap();
                    (read(&out.view()), read(&back.view()))
                })
            };
            assert_eq!(run(1), run(4));
        }
    }
}
