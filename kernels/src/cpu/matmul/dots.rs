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
    // Rows by four, with two columns each; rows that are left the other way round, columns by four. Both for four columns at a time, which
    // are read from memory once.
    let fours = m / 4 * 4;
    for j in (0..n).step_by(4) {
        let width = (n - j).min(4);
        for i in (0..fours).step_by(4) {
            for s in (j..j + width).step_by(2) {
                // SAFETY: rows i.. of `a` and columns s.. of `b`, as many as the tile takes, exist.
                unsafe {
                    match s + 2 <= j + width {
                        true => tile::<T, 4, 2, FMA>(k, a.at(i, 0), b.at(0, s), keep, c.at(i, s)),
                        false => tile::<T, 4, 1, FMA>(k, a.at(i, 0), b.at(0, s), keep, c.at(i, s)),
                    }
                }
            }
        }
        let mut i = fours;
        while i < m {
            // SAFETY: as above.
            unsafe {
                let (a, b, c) = (a.at(i, 0).t(), b.at(0, j).t(), c.at(i, j).t());
                let pair = i + 2 <= m && width == 4;
                if pair {
                    tile::<T, 4, 2, FMA>(k, b, a, keep, c);
                } else if width == 4 {
                    tile::<T, 4, 1, FMA>(k, b, a, keep, c);
                } else {
                    // No closure: it would be compiled without the instructions of this function.
                    for j in 0..width {
                        tile::<T, 1, 1, FMA>(k, b.at(j, 0), a, keep, c.at(j, 0));
                    }
                }
                i += if pair { 2 } else { 1 };
            }
        }
    }
}

/// R rows by S columns of the result. Each number is summed in the same order whatever R and S are.
#[inline(always)]
unsafe fn tile<T: Acc, const R: usize, const S: usize, const FMA: bool>(
    k: usize,
    a: Mat<T>,
    b: Mat<T>,
    keep: bool,
    c: Mat<T>,
) {
    // No element of the sums is named by a variable, so that they stay in registers.
    let mut sums = [[[T::ZERO; LANES]; S]; R];
    let mut p = 0;
    while p + LANES <= k {
        // SAFETY: p + LANES elements of each row and column exist.
        unsafe {
            let columns: [[T; LANES]; S] =
                std::array::from_fn(|s| std::ptr::read_unaligned(b.at(p, s).ptr as *const [T; LANES]));
            for (r, sums) in sums.iter_mut().enumerate() {
                let row = std::ptr::read_unaligned(a.at(r, p).ptr as *const [T; LANES]);
                add_products::<T, S, FMA>(sums, &row, &columns);
            }
        }
        p += LANES;
    }
    if p < k {
        // The rest, and zeros behind it.
        // SAFETY: k - p elements of each row and column exist.
        unsafe {
            let columns: [[T; LANES]; S] = std::array::from_fn(|s| rest(b.at(p, s), k - p));
            for (r, sums) in sums.iter_mut().enumerate() {
                add_products::<T, S, FMA>(sums, &rest(a.at(r, p), k - p), &columns);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        for (s, sums) in sums.iter().enumerate() {
            let sum = joined(sums);
            // SAFETY: element (r, s) of the tile of the output.
            unsafe {
                let to = c.at(r, s).ptr;
                *to = if keep { *to + sum } else { sum };
            }
        }
    }
}

#[inline(always)]
fn add_products<T: Acc, const S: usize, const FMA: bool>(
    sums: &mut [[T; LANES]; S],
    row: &[T; LANES],
    columns: &[[T; LANES]; S],
) {
    for (sums, column) in sums.iter_mut().zip(columns) {
        for (l, sum) in sums.iter_mut().enumerate() {
            *sum = multiply_add::<T, FMA>(row[l], column[l], *sum);
        }
    }
}

/// # Safety
/// `count` elements exist, LANES at most.
unsafe fn rest<T: Acc>(from: Mat<T>, count: usize) -> [T; LANES] {
    let mut all = [T::ZERO; LANES];
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from.ptr, all.as_mut_ptr(), count) };
    all
}

/// The sum of partial sums, halves added to halves.
#[inline(always)]
fn joined<T: Acc>(sums: &[T; LANES]) -> T {
    let eight: [T; 8] = std::array::from_fn(|l| sums[l] + sums[l + 8]);
    let four: [T; 4] = std::array::from_fn(|l| eight[l] + eight[l + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

#[inline(always)]
fn multiply_add<T: Acc, const FMA: bool>(x: T, y: T, sum: T) -> T {
    if FMA { x.fused(y, sum) } else { sum + x * y }
}
