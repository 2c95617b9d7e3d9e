//! The balanced split of a dim over ranks.

use std::ops::Range;

/// Returns the part of `0..len` that rank `index` of `parts` holds: `len / parts` elements, one more on the first `len % parts`
/// ranks, in order. Shapes, boxing, checkpoints, random numbers and views all use this function (I1).
///
/// ```
/// use oflow_base::shard_range;
/// let parts: Vec<_> = (0..4).map(|i| shard_range(6, 4, i)).collect();
/// assert_eq!(parts, [0..2, 2..4, 4..5, 5..6]);
/// assert_eq!(shard_range(2, 4, 3), 2..2); // smaller than the mesh: empty shards
/// ```
///
/// # Panics
/// If `index >= parts`.
pub fn shard_range(len: usize, parts: usize, index: usize) -> Range<usize> {
    assert!(index < parts, "shard {index} of {parts}");
    let (base, extra) = (len / parts, len % parts);
    let start = index * base + index.min(extra);
    start..start + base + usize::from(index < extra)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i1_split_is_a_balanced_partition() {
        for len in 0..40 {
            for parts in 1..12 {
                let mut next = 0;
                for i in 0..parts {
                    let r = shard_range(len, parts, i);
                    assert_eq!(r.start, next);
                    assert_eq!(r.len(), len / parts + usize::from(i < len % parts));
                    next = r.end;
                }
                assert_eq!(next, len);
            }
        }
    }
}
