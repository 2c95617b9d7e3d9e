//! Sizes of boxes.

use crate::sbp::Sbp;
use smallvec::SmallVec;

/// Sizes of a box, one a dim.
pub(super) type Sizes = SmallVec<[usize; 8]>;

/// Elements of a box of these sizes.
pub(super) fn count(sizes: &[usize]) -> u64 {
    sizes.iter().map(|s| *s as u64).product()
}

/// Sizes of the shard at coordinate 0, the largest.
pub(super) fn largest_box(shape: &[usize], dims: &[usize], sbp: &[Sbp]) -> Sizes {
    let mut sizes = Sizes::from_slice(shape);
    for (a, s) in sbp.iter().enumerate() {
        if let Sbp::Split(d) = s {
            sizes[*d] = sizes[*d].div_ceil(dims[a]);
        }
    }
    sizes
}
