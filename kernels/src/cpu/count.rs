//! Places in sorted sequences, and counts: of indices, and of numbers in equal intervals. All tensors are contiguous.

use super::copy::fill;
use super::index::{Id, check_indices, index_dtype, with_ids};
use super::lane::{Lane, native, with_lane};
use crate::parallel::{GRAIN, parallel_for};
use crate::{DType, KernelError, Result, Scalar, View};

/// Checks the tensors of a search, and gives the length of the sequences and for how many values in a row there is one.
pub(crate) fn check_search(sorted: &View, x: &View, out: &View) -> Result<(usize, usize)> {
    let lead = sorted.rank().saturating_sub(1);
    let one = sorted.rank() == 1;
    let fits = sorted.rank() > 0
        && (one || (x.rank() == sorted.rank() && x.dims()[..lead] == sorted.dims()[..lead]))
        && out.dims() == x.dims()
        && sorted.dtype() == x.dtype()
        && matches!(out.dtype(), DType::I32 | DType::I64);
    match fits && [sorted, x, out].iter().all(|v| v.is_contiguous()) {
        true => Ok((sorted.dims()[lead], if one { x.len().max(1) } else { x.dims()[lead].max(1) })),
        false => Err(KernelError::new(format!(
            "{} {:?} in sequences {} {:?} into {} {:?}: they do not fit or are not contiguous",
            x.dtype(),
            x.dims(),
            sorted.dtype(),
            sorted.dims(),
            out.dtype(),
            out.dims()
        ))),
    }
}

/// For each value how many elements of its sorted sequence are smaller, or with `right` not greater. NaN are the greatest. The sequences are
/// the rows of `sorted`, which has the leading dims of `x`, or one row for all.
///
/// # Errors
/// If dims or dtypes do not fit, or a tensor is not contiguous.
pub fn searchsorted(sorted: &View, x: &View, out: &View, right: bool) -> Result<()> {
    let (n, each) = check_search(sorted, x, out)?;
    let (from, to) = (sorted.ptr() as usize, out.ptr() as usize);
    with_lane!(native(x.dtype())?, T => {
        let values = x.ptr() as usize;
        parallel_for(x.len(), GRAIN / 8, &|range| {
            let mut i = range.start;
            while i < range.end {
                // Values of one row, side by side: each step of a search waits for memory.
                let here = ABREAST.min(range.end - i).min(each - i % each);
                let row = (from as *const T).wrapping_add(i / each * n);
                // SAFETY: elements of x; the last one is repeated.
                let value = |k: usize| unsafe { (values as *const T).add(i + k.min(here - 1)).read() };
                let asked: [T; ABREAST] = std::array::from_fn(value);
                // SAFETY: `n` elements from `row` on.
                let places = unsafe { places(row, n, asked, right) };
                for (k, place) in places[..here].iter().enumerate() {
                    // SAFETY: an element of the output that belongs to this task.
                    unsafe {
                        match out.dtype() {
                            DType::I32 => (to as *mut i32).add(i + k).write(*place as i32),
                            _ => (to as *mut i64).add(i + k).write(*place as i64),
                        }
                    }
                }
                i += here;
            }
        });
    });
    Ok(())
}

/// Values that are searched for side by side.
const ABREAST: usize = 8;

/// The places of values in a sorted sequence.
///
/// # Safety
/// There are `n` elements from `row` on.
unsafe fn places<T: Lane>(row: *const T, n: usize, asked: [T; ABREAST], right: bool) -> [usize; ABREAST] {
    // SAFETY: by the contract of this function, for places below `n`.
    let at = |k: usize| unsafe { row.add(k).read() };
    let float = T::DTYPE.is_float();
    let found = match (float, right) {
        (true, false) => search(n, |k, i| at(i).to_f64() < asked[k].to_f64()),
        (true, true) => search(n, |k, i| at(i).to_f64() <= asked[k].to_f64()),
        (false, false) => search(n, |k, i| at(i).to_i64() < asked[k].to_i64()),
        (false, true) => search(n, |k, i| at(i).to_i64() <= asked[k].to_i64()),
    };
    if !float || asked.iter().all(|v| !v.to_f64().is_nan()) {
        return found;
    }
    // All numbers are smaller than NaN.
    let numbers = if right { [n; ABREAST] } else { search(n, |_, i| !at(i).to_f64().is_nan()) };
    std::array::from_fn(|k| if asked[k].to_f64().is_nan() { numbers[k] } else { found[k] })
}

/// For each number how many of the first of `n` places are ahead: those that are stand in front.
#[inline(always)]
fn search(n: usize, ahead: impl Fn(usize, usize) -> bool) -> [usize; ABREAST] {
    let (mut first, mut len) = ([0; ABREAST], n);
    while len > 1 {
        let half = len / 2;
        for (k, f) in first.iter_mut().enumerate() {
            *f += if ahead(k, *f + half - 1) { half } else { 0 };
        }
        len -= half;
    }
    std::array::from_fn(|k| first[k] + usize::from(len == 1 && ahead(k, first[k])))
}

pub(crate) fn check_counts(ids: &View, out: &View) -> Result<()> {
    index_dtype(ids)?;
    match out.rank() == 1 && out.dtype() == DType::I64 && ids.is_contiguous() && out.is_contiguous() {
        true => Ok(()),
        false => Err(KernelError::new(format!("counts of {:?} into {} {:?}", ids.dims(), out.dtype(), out.dims()))),
    }
}

/// How often each index from `first` on occurs, i64.
///
/// # Errors
/// If an index is outside `0..size`, or dims or dtypes do not fit.
pub fn count_index(ids: &View, out: &View, first: usize, size: usize) -> Result<()> {
    check_counts(ids, out)?;
    fill(out, Scalar::Int(0))?;
    let (to, here) = (out.ptr().cast::<i64>(), out.len());
    let outside = with_ids!(ids, I => {
        let mut outside = false;
        for i in 0..ids.len() {
            // SAFETY: element `i` of the indices; the place is inside the output.
            unsafe {
                let id = ids.ptr().cast::<I>().add(i).read().wide();
                let place = id.wrapping_sub(first as i64) as usize;
                if place < here {
                    *to.add(place) += 1;
                } else {
                    outside |= id as u64 >= size as u64;
                }
            }
        }
        outside
    });
    if outside { check_indices(ids, 0, size as i64) } else { Ok(()) }
}

pub(crate) fn check_histogram(x: &View, out: &View) -> Result<()> {
    let fits = matches!(x.dtype(), DType::F32 | DType::F64) && out.dtype() == x.dtype() && out.rank() == 1;
    match fits && x.is_contiguous() && out.is_contiguous() {
        true => Ok(()),
        false => Err(KernelError::new(format!(
            "histogram of {} {:?} into {} {:?}",
            x.dtype(),
            x.dims(),
            out.dtype(),
            out.dims()
        ))),
    }
}

/// How many elements lie in each of as many equal intervals between `lo` and `hi` as the output has elements; `hi` belongs to the last one.
/// What lies outside, and NaN, is not counted.
///
/// # Errors
/// If a tensor is not contiguous, or the dtypes are not one of f32 and f64.
pub fn histogram(x: &View, out: &View, lo: f64, hi: f64) -> Result<()> {
    check_histogram(x, out)?;
    let bins = out.len();
    let mut counts = vec![0u64; bins];
    macro_rules! counted {
        ($t:ty) => {{
            let (lo, hi) = (lo as $t, hi as $t);
            let (width, most) = (hi - lo, bins as $t);
            for i in 0..x.len() {
                // SAFETY: element `i` of the contiguous view.
                let v = unsafe { x.ptr().cast::<$t>().wrapping_add(i).read() };
                if v >= lo && v <= hi {
                    let bin = ((v - lo) * most / width) as usize;
                    counts[bin.min(bins - 1)] += 1;
                }
            }
            for (i, n) in counts.iter().enumerate() {
                // SAFETY: element `i` of the contiguous output.
                unsafe { out.ptr().cast::<$t>().wrapping_add(i).write(*n as $t) };
            }
        }};
    }
    match x.dtype() {
        _ if bins == 0 => {}
        DType::F32 => counted!(f32),
        _ => counted!(f64),
    }
    Ok(())
}
