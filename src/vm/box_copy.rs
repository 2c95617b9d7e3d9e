//! Copying between two strided windows of the same sizes.

use crate::error::{Error, Result};
use oflow_kernels::View;
use smallvec::SmallVec;

/// `dst` becomes `src`, element by element in row-major order. Rows that are contiguous on both sides are copied whole.
pub(super) fn copy(src: &View, dst: &View) -> Result<()> {
    if src.dims() != dst.dims() || src.dtype() != dst.dtype() {
        let show = |v: &View| format!("{}{:?}", v.dtype(), v.dims());
        return Err(Error::shape(format!("cannot copy {} to {}", show(src), show(dst))));
    }
    if src.is_empty() {
        return Ok(());
    }
    let element = src.dtype().size();
    // The dims from here on are one run of memory on both sides.
    let mut split = src.rank();
    let mut run = 1;
    while split > 0 && [src, dst].iter().all(|v| v.dims()[split - 1] == 1 || v.strides()[split - 1] == run as isize) {
        split -= 1;
        run *= src.dims()[split];
    }
    let outer = &src.dims()[..split];
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, split);
    let (mut from, mut to) = (0isize, 0isize);
    loop {
        // SAFETY: `from` and `to` are the offsets of `index`, whose run of elements lies in both views; the views do not
        // overlap, by the contract of an output.
        unsafe {
            let s = src.ptr().offset(from * element as isize);
            let d = dst.ptr().offset(to * element as isize);
            std::ptr::copy_nonoverlapping(s, d, run * element);
        }
        let Some(up) = (0..split).rev().find(|d| index[*d] + 1 < outer[*d]) else { return Ok(()) };
        for d in up + 1..split {
            from -= index[d] as isize * src.strides()[d];
            to -= index[d] as isize * dst.strides()[d];
            index[d] = 0;
        }
        index[up] += 1;
        from += src.strides()[up];
        to += dst.strides()[up];
    }
}
