//! Rows that become columns: of the tensor, so that the filters of a place lie side by side, and of copied images, so that its channels do.

use crate::View;
use crate::cpu::acc::{Acc, load};
use crate::cpu::turn::turn as by_squares;

/// Rows of `n` elements, from element `first` on, as columns of a matrix with `width` columns.
pub(super) fn turned<A: Acc>(of: &View, first: usize, rows: usize, n: usize, width: usize, to: &mut [A]) {
    const SIDE: usize = 16;
    let dtype = of.dtype();
    assert!(rows <= width && to.len() >= n * width);
    if dtype == A::DTYPE {
        let from = of.ptr().cast::<A>().wrapping_add(first);
        // SAFETY: rows of the contiguous tensor, and as many columns of the matrix (asserted).
        return unsafe { turn::<A>(from, n, to.as_mut_ptr(), width, [rows, n]) };
    }
    let mut part = [[A::ZERO; SIDE]; SIDE];
    for q in (0..n).step_by(SIDE) {
        let length = SIDE.min(n - q);
        for r in (0..rows).step_by(SIDE) {
            let count = SIDE.min(rows - r);
            for (i, part) in part[..count].iter_mut().enumerate() {
                let from = of.ptr().wrapping_add((first + (r + i) * n + q) * dtype.size());
                // SAFETY: elements of a row of the contiguous tensor.
                unsafe { load(dtype, from, 1, &mut part[..length]) };
            }
            for (l, to) in to[q * width..].chunks_mut(width).take(length).enumerate() {
                to[r..r + count].iter_mut().zip(&part).for_each(|(to, row)| *to = row[l]);
            }
        }
    }
}

/// `to[c][r] = from[r][c]` for `size` rows and columns of `from`; the steps are from row to row.
///
/// # Safety
/// The elements of `from` are readable, those of `to` writable, and the two do not overlap.
pub(super) unsafe fn turn<A: Acc>(from: *const A, from_step: usize, to: *mut A, to_step: usize, size: [usize; 2]) {
    let (from_step, to_step) = (from_step as isize, to_step as isize);
    // SAFETY: the caller's promise; numbers and their bits have one size.
    unsafe {
        match size_of::<A>() {
            4 => by_squares::<u32>(from.cast(), from_step, to.cast(), to_step, size),
            _ => by_squares::<u64>(from.cast(), from_step, to.cast(), to_step, size),
        }
    }
}
