//! Signs of singular vectors and eigenvectors, which the matrix leaves open.

use crate::batch::Real;
use num_traits::Float;

/// For each column the sign that makes its element of largest magnitude positive, the first of several. So a call gives the same
/// vectors on every machine, and vectors of a moving matrix do not jump.
pub(crate) fn flips<T: Real>(columns: &[T], rows: usize, count: usize) -> Vec<T> {
    let sign = |c: usize| {
        let column = &columns[c * rows..(c + 1) * rows];
        let larger = |best: T, x: &T| if Float::abs(*x) > Float::abs(best) { *x } else { best };
        let largest = column.iter().fold(T::zero(), larger);
        if largest < T::zero() { -T::one() } else { T::one() }
    };
    (0..count).map(sign).collect()
}
