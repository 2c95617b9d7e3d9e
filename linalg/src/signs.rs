//! Signs of singular vectors and eigenvectors, of complex ones their phases, which the matrix leaves open.

use crate::batch::Field;

/// For each column the factor of absolute value 1 that makes its element of largest magnitude positive, the first of several. So a call
/// gives the same vectors on every machine, and vectors of a moving matrix do not jump.
pub(crate) fn phases<T: Field>(columns: &[T], rows: usize, count: usize) -> Vec<T> {
    let phase = |c: usize| {
        let column = &columns[c * rows..(c + 1) * rows];
        let larger = |best: T, x: &T| if x.size() > best.size() { *x } else { best };
        column.iter().fold(T::zero(), larger).direction().conjugate()
    };
    (0..count).map(phase).collect()
}
