//! Integer products: plain loops in blocks; sums wrap like every integer kernel.

use super::{Mat, PARALLEL_FLOPS, Product};
use crate::parallel::parallel_for;
use crate::{Element, View};

/// The arithmetic of integers that wrap.
pub(super) trait Wrapping: Element + Default {
    /// `self + x * y`
    fn add_product(self, x: Self, y: Self) -> Self;
}

macro_rules! wrapping {
    ($($t:ty),*) => {$(
        impl Wrapping for $t {
            #[inline(always)]
            fn add_product(self, x: $t, y: $t) -> $t {
                self.wrapping_add(x.wrapping_mul(y))
            }
        }
    )*};
}
wrapping!(u8, i8, i32, i64);

/// How many columns are summed at a time, side by side in a buffer that fits the nearest cache.
const COLUMNS: usize = 256;

pub(super) fn run<T: Wrapping>(product: &Product, a: &View, b: &View, out: &View, keep: bool) {
    let Product { m, n, k, .. } = *product;
    // One piece of work is one row of one product.
    let grain = (PARALLEL_FLOPS / 2 / (n * k).max(1)).max(1);
    parallel_for(product.count() * m, grain, &|range| {
        for index in range {
            let (a, b, c) = product.operands::<T>(a, b, out, index / m);
            // SAFETY: `Product` was checked against the views; rows of an output do not overlap.
            unsafe { row(n, k, a.at(index % m, 0), b, keep, c.at(index % m, 0)) };
        }
    });
}

/// # Safety
/// `a` has one row of `k` elements, `b` is `k` by `n`, `c` has one row of `n` that nothing else touches.
unsafe fn row<T: Wrapping>(n: usize, k: usize, a: Mat<T>, b: Mat<T>, keep: bool, c: Mat<T>) {
    let mut sums = [T::default(); COLUMNS];
    for j in (0..n).step_by(COLUMNS) {
        let sums = &mut sums[..COLUMNS.min(n - j)];
        for (l, sum) in sums.iter_mut().enumerate() {
            // SAFETY: column j + l is below n.
            *sum = if keep { unsafe { *c.at(0, j + l).ptr } } else { T::default() };
        }
        for p in 0..k {
            // SAFETY: p is below k, and the columns j.. exist, as many as there are sums.
            let (x, from) = unsafe { (*a.at(0, p).ptr, b.at(p, j)) };
            if b.cs == 1 {
                // SAFETY: the columns lie side by side.
                let from = unsafe { std::slice::from_raw_parts(from.ptr, sums.len()) };
                sums.iter_mut().zip(from).for_each(|(sum, y)| *sum = sum.add_product(x, *y));
            } else {
                for (l, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: as above, a stride apart.
                    *sum = sum.add_product(x, unsafe { *from.at(0, l).ptr });
                }
            }
        }
        for (l, sum) in sums.iter().enumerate() {
            // SAFETY: column j + l is below n.
            unsafe { *c.at(0, j + l).ptr = *sum };
        }
    }
}
