//! Elements chosen by index along a dim of any number. All tensors are contiguous.

use super::copy::fill;
use super::index::{Id, check_indices, index_dtype, load_index, row_of, with_ids};
use super::lane::with_bits;
use crate::parallel::{GRAIN, parallel_for};
use crate::{DType, KernelError, Result, Scalar, View};

/// Sizes of the dims before and after `dim`, multiplied.
pub(crate) fn around(dims: &[usize], dim: usize) -> (usize, usize) {
    (dims[..dim].iter().product(), dims[dim + 1..].iter().product())
}

pub(crate) fn check_take(x: &View, ids: &View, out: &View, dim: usize) -> Result<()> {
    index_dtype(ids)?;
    let k = ids.rank();
    let fits = dim < x.rank()
        && out.rank() == x.rank() - 1 + k
        && out.dims()[..dim] == x.dims()[..dim]
        && out.dims()[dim..dim + k] == *ids.dims()
        && out.dims()[dim + k..] == x.dims()[dim + 1..]
        && out.dtype() == x.dtype();
    match fits && [x, ids, out].iter().all(|v| v.is_contiguous()) {
        true => Ok(()),
        false => Err(KernelError::new(format!(
            "{} {:?} by indices {:?} along {dim} into {} {:?}: they do not fit or are not contiguous",
            x.dtype(),
            x.dims(),
            ids.dims(),
            out.dtype(),
            out.dims()
        ))),
    }
}

/// `out[a.., j.., b..] = x[a.., ids[j..] - first, b..]` with the dims of `ids` in the place of `dim`; zeros where that is outside x.
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn index_select(x: &View, ids: &View, out: &View, dim: usize, first: i64) -> Result<()> {
    check_take(x, ids, out, dim)?;
    if out.is_empty() {
        return Ok(());
    }
    let (_, inner) = around(x.dims(), dim);
    let (rows, count) = (x.dims()[dim], ids.len());
    let bytes = inner * x.dtype().size();
    let id_size = ids.dtype().size();
    parallel_for(out.len() / inner, (GRAIN / inner).max(1), &|range| {
        let mut line = range.start;
        while line < range.end {
            let (outer, j) = (line / count, line % count);
            let n = (count - j).min(range.end - line);
            let table = x.ptr().wrapping_add(outer * rows * bytes);
            let to = out.ptr().wrapping_add(line * bytes);
            if inner == 1 {
                with_bits!(x.dtype(), T => with_ids!(ids, I => {
                    // SAFETY: `n` indices from index j on; a line of x, and `n` elements of the output that no other task writes.
                    unsafe { pick::<T, I>((table.cast(), rows), first, ids.ptr().cast::<I>().add(j), to.cast(), n) }
                }));
            } else {
                for i in 0..n {
                    // SAFETY: an index; a run of `inner` elements of the output, and one of x whose row is checked.
                    unsafe {
                        let id = load_index(ids.ptr().wrapping_add((j + i) * id_size), ids.dtype());
                        let to = to.wrapping_add(i * bytes);
                        match row_of(id, first, rows) {
                            Some(row) => std::ptr::copy_nonoverlapping(table.wrapping_add(row * bytes), to, bytes),
                            None => std::ptr::write_bytes(to, 0, bytes),
                        }
                    }
                }
            }
            line += n;
        }
    });
    Ok(())
}

/// The elements of a line that `n` indices name, counted from `first`; zeros where one is outside.
///
/// # Safety
/// The line, the indices and `to` have as many elements.
unsafe fn pick<T: Copy + Default, I: Id>(
    (line, rows): (*const T, usize),
    first: i64,
    ids: *const I,
    to: *mut T,
    n: usize,
) {
    for i in 0..n {
        // SAFETY: by the contract of this function; the row is checked.
        unsafe {
            let row = row_of(ids.add(i).read().wide(), first, rows);
            to.add(i).write(row.map_or(T::default(), |row| line.add(row).read()));
        }
    }
}

/// Indices of a dim of `size` elements as i64 that count from the front: negative ones count from the end.
///
/// # Errors
/// If an index is outside `-size..size`, or dims or dtypes do not fit.
pub fn wrap_index(ids: &View, out: &View, size: usize) -> Result<()> {
    check_ids(ids, out)?;
    let size = size as i64;
    check_indices(ids, -size, size)?;
    with_ids!(ids, I => {
        // SAFETY: nothing else reads or writes the output.
        let to = unsafe { out.as_mut_slice::<i64>()? };
        for (to, id) in to.iter_mut().zip(ids.as_slice::<I>()?) {
            let id = id.wide();
            *to = if id < 0 { id + size } else { id };
        }
    });
    Ok(())
}

pub(crate) fn check_ids(ids: &View, out: &View) -> Result<()> {
    index_dtype(ids)?;
    let fits = out.dims() == ids.dims() && out.dtype() == DType::I64;
    match fits && ids.is_contiguous() && out.is_contiguous() {
        true => Ok(()),
        false => Err(KernelError::new(format!("indices {:?} into {} {:?}", ids.dims(), out.dtype(), out.dims()))),
    }
}

/// For each row `first + r` the last position, counted from `base`, at which it stands in the list `ids`; -1 where it does not.
///
/// # Errors
/// If one of the two is not a list, or of another dtype.
pub fn last_index(ids: &View, out: &View, first: i64, base: i64) -> Result<()> {
    check_last(ids, out)?;
    fill(out, Scalar::Int(-1))?;
    let step = ids.dtype().size();
    for j in 0..ids.len() {
        // SAFETY: element j of the indices; the row is checked.
        unsafe {
            let id = load_index(ids.ptr().wrapping_add(j * step), ids.dtype());
            if let Some(row) = row_of(id, first, out.len()) {
                out.ptr().cast::<i64>().wrapping_add(row).write(base + j as i64);
            }
        }
    }
    Ok(())
}

pub(crate) fn check_last(ids: &View, out: &View) -> Result<()> {
    index_dtype(ids)?;
    let fits = ids.rank() == 1 && out.rank() == 1 && out.dtype() == DType::I64;
    match fits && ids.is_contiguous() && out.is_contiguous() {
        true => Ok(()),
        false => {
            Err(KernelError::new(format!("last positions of {:?} into {} {:?}", ids.dims(), out.dtype(), out.dims())))
        }
    }
}
