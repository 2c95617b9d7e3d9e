//! A few rows against a transposed right operand, as dot products along k.
//!
//! A general product first packs the right operand; with a few rows the packing costs more than the product. Here both
//! operands are read once and in place, at the bandwidth of memory.

use multiversion::{multiversion, target::target_cfg_f};

use super::Mat;
use crate::cpu::acc::Acc;

/// Up to how many rows this kernel is the faster one.
pub(super) const MAX_ROWS: usize = 16;

/// Partial sums of one dot product. Fixed, so that every path sums in one order.
const LANES: usize = 16;

/// `c = a x b` (or added to `c`) where `a` is contiguous along its rows and `b` along its columns.
///
/// # Safety
/// The matrices have the elements that `m`, `n` and `k` say; `a.cs == 1`, `b.rs == 1`; `c` overlaps nothing.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
pub(super) unsafe fn dots<T: Acc>(m: usize, n: usize, k: usize, a: Mat<T>, b: Mat<T>, keep: bool, c: Mat<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        if target_cfg_f!(any(target_feature = "fma", target_feature = "neon")) {
            panel::<T, true>(m, n, k, a, b, keep, c);
        } else {
            panel::<T, false>(m, n, k, a, b, keep, c);
        }
    }
}

#[inline(always)]
unsafe fn panel<T: Acc, const FMA: bool>(m: usize, n: usize, k: usize, a: Mat<T>, b: Mat<T>, keep: bool, c: Mat<T>) {
    let mut j = 0;
    while j < n {
        let pair = j + 2 <= n;
        let mut i = 0;
        while i < m {
            // SAFETY: rows i.. of `a` and columns j.. of `b`, as many as the tile takes, exist.
            unsafe {
                i += match (m - i >= 4, pair) {
                    (true, true) => tile::<T, 4, 2, FMA>(k, a.at(i, 0), b.at(0, j), keep, c.at(i, j)),
                    (true, false) => tile::<T, 4, 1, FMA>(k, a.at(i, 0), b.at(0, j), keep, c.at(i, j)),
                    (false, true) => tile::<T, 1, 2, FMA>(k, a.at(i, 0), b.at(0, j), keep, c.at(i, j)),
                    (false, false) => tile::<T, 1, 1, FMA>(k, a.at(i, 0), b.at(0, j), keep, c.at(i, j)),
                };
            }
        }
        j += if pair { 2 } else { 1 };
    }
}

/// R rows by S columns of the result; returns R. Each number is summed in the same order whatever R and S are.
#[inline(always)]
unsafe fn tile<T: Acc, const R: usize, const S: usize, const FMA: bool>(
    k: usize,
    a: Mat<T>,
    b: Mat<T>,
    keep: bool,
    c: Mat<T>,
) -> usize {
    let mut sums = [[[T::ZERO; LANES]; S]; R];
    let mut p = 0;
    while p + LANES <= k {
        // SAFETY: p + LANES elements of each row and column exist.
        unsafe {
            let columns: [[T; LANES]; S] =
                std::array::from_fn(|s| std::ptr::read_unaligned(b.at(p, s).ptr as *const [T; LANES]));
            for (r, sums) in sums.iter_mut().enumerate() {
                let row = std::ptr::read_unaligned(a.at(r, p).ptr as *const [T; LANES]);
                for (sums, column) in sums.iter_mut().zip(&columns) {
                    for (l, sum) in sums.iter_mut().enumerate() {
                        *sum = multiply_add::<T, FMA>(row[l], column[l], *sum);
                    }
                }
            }
        }
        p += LANES;
    }
    for (r, sums) in sums.iter_mut().enumerate() {
        for (s, sums) in sums.iter_mut().enumerate() {
            for (l, sum) in sums[..k - p].iter_mut().enumerate() {
                // SAFETY: p + l is below k.
                let (x, y) = unsafe { (*a.at(r, p + l).ptr, *b.at(p + l, s).ptr) };
                *sum = multiply_add::<T, FMA>(x, y, *sum);
            }
            let mut width = LANES / 2;
            while width > 0 {
                for l in 0..width {
                    sums[l] = sums[l] + sums[l + width];
                }
                width /= 2;
            }
            // SAFETY: element (r, s) of the tile of the output.
            unsafe {
                let to = c.at(r, s).ptr;
                *to = if keep { *to + sums[0] } else { sums[0] };
            }
        }
    }
    R
}

#[inline(always)]
fn multiply_add<T: Acc, const FMA: bool>(x: T, y: T, sum: T) -> T {
    if FMA { x.fused(y, sum) } else { sum + x * y }
}
