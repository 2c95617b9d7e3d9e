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

/// Returns the numbers of the parts that have elements in `range`, of the `parts` parts of `0..len`: those of [`shard_range`] that meet it.
///
/// ```
/// use oflow_base::shards_within;
/// assert_eq!(shards_within(6, 4, &(3..5)), 1..3); // of 0..2, 2..4, 4..5, 5..6
/// assert_eq!(shards_within(6, 4, &(3..3)), 0..0);
/// ```
///
/// # Panics
/// If there are no parts, or the range does not end within `len`.
pub fn shards_within(len: usize, parts: usize, range: &Range<usize>) -> Range<usize> {
    assert!(range.end <= len, "{range:?} of {len}");
    let (base, extra) = (len / parts, len % parts);
    let longer = extra * (base + 1);
    let shard_of = |at: usize| if at < longer { at / (base + 1) } else { extra + (at - longer) / base };
    if range.is_empty() { 0..0 } else { shard_of(range.start)..shard_of(range.end - 1) + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i1_shards_within_are_those_that_meet_the_range() {
        for (len, parts) in (0..9).flat_map(|len| (1..12).map(move |parts| (len, parts))) {
            for (start, end) in (0..=len).flat_map(|a| (a..=len).map(move |b| (a, b))) {
                let meets = |i: &usize| {
                    let own = shard_range(len, parts, *i);
                    own.start.max(start) < own.end.min(end)
                };
                let found: Vec<usize> = (0..parts).filter(meets).collect();
                assert_eq!(
                    shards_within(len, parts, &(start..end)).collect::<Vec<_>>(),
                    found,
                    "{start}..{end} of {len}/{parts}"
                );
            }
        }
    }

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
