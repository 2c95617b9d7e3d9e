//! f32 and f64 products, by the `gemm` crates or as dot products, and their number of threads.
//!
//! The `gemm` crates sum along k in an order that depends on the sizes only, so the number of threads does not change bits;
//! `tests::bits_do_not_depend_on_threads` checks this.

use gemm_common::Parallelism;

use super::dots::{self, dots};
use super::{Mat, PARALLEL_FLOPS, Product};
use crate::View;
use crate::cpu::acc::Acc;
use crate::parallel::parallel_for;

/// A product of a batch above this many operations is worth several threads by itself.
const LARGE_FLOPS: usize = 32_000_000;
/// From this many multiplications the dot-product kernel pays; below, `gemm`'s own kernels do.
const DOTS_WORK: usize = 16 * 1024;

pub(super) fn run<T: Acc>(product: &Product, a: &View, b: &View, out: &View, keep: bool) {
    let (count, flops) = (product.count(), product.flops());
    let one = |index: usize, threads: bool| {
        let (a, b, c) = product.operands::<T>(a, b, out, index);
        // SAFETY: `Product` was checked against the views, so every element named here is one of theirs; products of one
        // batch write different elements, since no two indices of an output view share one.
        unsafe { single(product.m, product.n, product.k, a, b, keep, c, threads) }
    };
    let in_pool = rayon::current_thread_index().is_some();
    if !in_pool || flops.saturating_mul(count) < PARALLEL_FLOPS {
        (0..count).for_each(|i| one(i, false));
    } else if count > 1 && flops < LARGE_FLOPS {
        let grain = (PARALLEL_FLOPS / flops.max(1)).clamp(1, count);
        parallel_for(count, grain, &|range| range.for_each(|i| one(i, false)));
    } else {
        (0..count).for_each(|i| one(i, true));
    }
}

/// One product. `threads` allows several threads; the bits are the same either way.
///
/// # Safety
/// The matrices have the elements that `m`, `n` and `k` say; `c` overlaps neither itself nor the others.
#[allow(clippy::too_many_arguments)]
unsafe fn single<T: Acc>(m: usize, n: usize, k: usize, a: Mat<T>, b: Mat<T>, keep: bool, c: Mat<T>, threads: bool) {
    // SAFETY (all calls): the caller's promise; the swapped calls compute the transposed product.
    if m.max(n).saturating_mul(k) >= DOTS_WORK {
        if m <= dots::MAX_ROWS && b.rs == 1 {
            return unsafe { few_rows(m, n, k, a, b, keep, c, threads) };
        }
        if n <= dots::MAX_ROWS && a.cs == 1 {
            return unsafe { few_rows(n, m, k, b.t(), a.t(), keep, c.t(), threads) };
        }
    }
    let parallelism = if threads { Parallelism::Rayon(0) } else { Parallelism::None };
    unsafe { gemm_with(m, n, k, T::ONE, a, b, keep, c, parallelism) }
}

/// A few rows against a matrix that lies along k, as dot products; rows that do not lie along k are copied.
#[allow(clippy::too_many_arguments)]
unsafe fn few_rows<T: Acc>(m: usize, n: usize, k: usize, a: Mat<T>, b: Mat<T>, keep: bool, c: Mat<T>, threads: bool) {
    let mut rows = Vec::new();
    let mut a = a;
    if a.cs != 1 {
        // SAFETY: elements of `a`.
        rows.extend((0..m * k).map(|at| unsafe { a.at(at / k, at % k).ptr.read() }));
        a = Mat { ptr: rows.as_mut_ptr(), rs: k as isize, cs: 1 };
    }
    if !threads {
        // SAFETY: the caller's promise.
        return unsafe { dots(m, n, k, a, b, keep, c) };
    }
    let grain = (PARALLEL_FLOPS / (2 * m * k).max(1)).next_multiple_of(16).max(16);
    parallel_for(n, grain, &|range| {
        // SAFETY: a range of the columns; ranges do not overlap.
        unsafe { dots(m, range.len(), k, a, b.at(0, range.start), keep, c.at(0, range.start)) }
    });
}

/// `c = alpha * a x b`, or added to `c` if `keep`, on the calling thread.
///
/// # Safety
/// The matrices have the elements that `m`, `n` and `k` say; `c` overlaps neither itself nor the others.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn gemm_serial<T: Acc>(
    m: usize,
    n: usize,
    k: usize,
    alpha: T,
    a: Mat<T>,
    b: Mat<T>,
    keep: bool,
    c: Mat<T>,
) {
    // SAFETY: the caller's promise.
    unsafe { gemm_with(m, n, k, alpha, a, b, keep, c, Parallelism::None) }
}

#[allow(clippy::too_many_arguments)]
unsafe fn gemm_with<T: Acc>(
    mut m: usize,
    mut n: usize,
    k: usize,
    alpha: T,
    mut a: Mat<T>,
    mut b: Mat<T>,
    keep: bool,
    mut c: Mat<T>,
    parallelism: Parallelism,
) {
    // The stride of a dim of size one means nothing, but gemm reads a layout from it: give the one that fits the other dim.
    if m == 1 {
        c.rs = if c.cs.unsigned_abs() == 1 { n as isize } else { 1 };
    } else if n == 1 {
        c.cs = if c.rs.unsigned_abs() == 1 { m as isize } else { 1 };
    }
    // The kernels write columns.
    if c.cs.abs() < c.rs.abs() {
        (m, n) = (n, m);
        (a, b, c) = (b.t(), a.t(), c.t());
    }
    // They want strides of the result, and of `a` along k, that are not negative: walk those dims from their ends.
    if c.rs < 0 && m > 0 {
        (c, a) = (c.at(m - 1, 0), a.at(m - 1, 0));
        (c.rs, a.rs) = (-c.rs, -a.rs);
    }
    if c.cs < 0 && n > 0 {
        (c, b) = (c.at(0, n - 1), b.at(0, n - 1));
        (c.cs, b.cs) = (-c.cs, -b.cs);
    }
    if a.cs < 0 && k > 0 {
        (a, b) = (a.at(0, k - 1), b.at(k - 1, 0));
        (a.cs, b.rs) = (-a.cs, -b.rs);
    }
    // SAFETY: sizes and strides describe memory that exists, by the caller's promise.
    unsafe {
        T::gemm()(
            m,
            n,
            k,
            c.ptr,
            c.cs,
            c.rs,
            keep,
            a.ptr as *const T,
            a.cs,
            a.rs,
            b.ptr as *const T,
            b.cs,
            b.rs,
            T::ONE,
            alpha,
            false,
            false,
            false,
            parallelism,
        );
    }
}
