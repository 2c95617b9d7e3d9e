//! Checks that boxes cover a tensor exactly once.
//!
//! A box counts +1 for every element in it. The mixed difference of that count (the difference along each dim in turn) is ±1 at
//! the 2^d corners of the box and zero elsewhere, and it determines the count. So boxes cover the whole exactly once if and only
//! if their signed corners add up to those of the whole. That takes one pass over the corners and their sorting.

use std::result::Result;

/// A box: offset and sizes.
pub type BoxRef<'a> = (&'a [usize], &'a [usize]);

/// Boxes that divide more dims have too many corners: they are compared in pairs.
const MOST_DIMS: usize = 8;

/// Checks that boxes cover a whole exactly once. Each box lies in the whole, their elements are at least as many as those of the
/// whole, and the product of its sizes fits into 60 bits.
///
/// # Errors
/// If an element is in no box or in several. The message gives its index.
pub fn covers<'a>(whole: &[usize], parts: impl Iterator<Item = BoxRef<'a>> + Clone) -> Result<(), Vec<usize>> {
    if whole.contains(&0) {
        return Ok(());
    }
    let parts = parts.filter(|(_, size)| !size.contains(&0));
    // Dims that no box divides say nothing, and without them there are few corners.
    let cut = |d: &usize| parts.clone().any(|(_, size)| size[*d] != whole[*d]);
    let dims: Vec<usize> = (0..whole.len()).filter(cut).collect();
    if dims.len() > MOST_DIMS {
        return apart(&mut parts.collect::<Vec<_>>());
    }
    let place = |corner: usize, (offset, size): BoxRef<'_>| {
        dims.iter().enumerate().fold(0u128, |at, (bit, d)| {
            let end = if corner >> bit & 1 == 1 { size[*d] } else { 0 };
            at * (whole[*d] as u128 + 1) + (offset[*d] + end) as u128
        })
    };
    // The sign is the lowest bit: what is sorted is one number a corner.
    let signed = |corner: usize, part: BoxRef<'_>, minus: u32| {
        place(corner, part) << 1 | u128::from((corner.count_ones() + minus) & 1)
    };
    let origin = vec![0; whole.len()];
    let mut corners: Vec<u128> = vec![];
    for corner in 0..1usize << dims.len() {
        corners.push(signed(corner, (&origin, whole), 1));
        corners.extend(parts.clone().map(|part| signed(corner, part, 0)));
    }
    corners.sort_unstable();
    let sum = |same: &[u128]| same.iter().map(|c| if c & 1 == 0 { 1 } else { -1 }).sum::<i64>();
    let wrong = corners.chunk_by(|a, b| a >> 1 == b >> 1).find(|same| sum(same) != 0);
    let Some(mut at) = wrong.map(|same| same[0] >> 1) else { return Ok(()) };
    let mut first = origin;
    for d in dims.iter().rev() {
        let n = whole[*d] as u128 + 1;
        first[*d] = (at % n) as usize;
        at /= n;
    }
    Err(first)
}

/// Boxes of enough elements cover a whole exactly if no two have one in common. Boxes on two sides of a plane that cuts none of them have
/// none, so they are divided by such planes, along one dim after the other; boxes that no plane divides are compared in pairs.
fn apart(parts: &mut [BoxRef<'_>]) -> Result<(), Vec<usize>> {
    let dims = parts.first().map_or(0, |(offset, _)| offset.len());
    // Groups of boxes, with the dim to try first. A list: the groups of a spiral lie deep in each other.
    let mut left = vec![(0..parts.len(), 0)];
    while let Some((group, first)) = left.pop() {
        let boxes = &mut parts[group.clone()];
        if boxes.len() > FEW {
            let divided = (0..dims).map(|i| (first + i) % dims).find_map(|d| {
                boxes.sort_unstable_by_key(|(offset, _)| offset[d]);
                let mut end = 0;
                let mut planes = vec![];
                for (i, (offset, size)) in boxes.iter().enumerate() {
                    if i > 0 && offset[d] >= end {
                        planes.push(group.start + i);
                    }
                    end = end.max(offset[d] + size[d]);
                }
                (!planes.is_empty()).then_some((planes, d))
            });
            if let Some((mut planes, d)) = divided {
                planes.insert(0, group.start);
                planes.push(group.end);
                left.extend(planes.windows(2).map(|w| (w[0]..w[1], d + 1)));
                continue;
            }
        }
        in_pairs(&parts[group])?;
    }
    Ok(())
}

/// As many are compared in pairs at once.
const FEW: usize = 8;

fn in_pairs(parts: &[BoxRef<'_>]) -> Result<(), Vec<usize>> {
    for (i, (a, sizes)) in parts.iter().enumerate() {
        for (b, others) in &parts[..i] {
            let shared = (0..a.len()).all(|d| a[d] < b[d] + others[d] && b[d] < a[d] + sizes[d]);
            if shared {
                return Err((0..a.len()).map(|d| a[d].max(b[d])).collect());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(whole: &[usize], parts: &[(Vec<usize>, Vec<usize>)]) -> Result<(), Vec<usize>> {
        covers(whole, parts.iter().map(|(o, s)| (&o[..], &s[..])))
    }

    /// By looking at each element.
    fn counted(whole: &[usize], parts: &[(Vec<usize>, Vec<usize>)]) -> bool {
        let total: usize = whole.iter().product();
        (0..total).all(|flat| {
            let mut rest = flat;
            let mut at = vec![0; whole.len()];
            for d in (0..whole.len()).rev() {
                (at[d], rest) = (rest % whole[d], rest / whole[d]);
            }
            let inside =
                |(o, s): &&(Vec<usize>, Vec<usize>)| (0..at.len()).all(|d| (o[d]..o[d] + s[d]).contains(&at[d]));
            parts.iter().filter(inside).count() == 1
        })
    }

    /// Cuts a box in two, somewhere, over and over.
    fn cut(whole: &[usize], cuts: &[(usize, usize, usize)]) -> Vec<(Vec<usize>, Vec<usize>)> {
        let mut parts = vec![(vec![0; whole.len()], whole.to_vec())];
        for (which, d, at) in cuts.iter().filter(|_| !whole.is_empty()) {
            let n = parts.len();
            let (offset, size) = &mut parts[which % n];
            let d = d % whole.len();
            let at = at % (size[d] + 1);
            let (mut o, mut s) = (offset.clone(), size.clone());
            (o[d], s[d], size[d]) = (o[d] + at, s[d] - at, at);
            parts.push((o, s));
        }
        parts
    }

    #[test]
    fn some_by_hand() {
        let b = |o: &[usize], s: &[usize]| (o.to_vec(), s.to_vec());
        assert_eq!(check(&[], &[b(&[], &[])]), Ok(()));
        assert_eq!(check(&[], &[]), Err(vec![]));
        assert_eq!(check(&[0, 3], &[]), Ok(()));
        assert_eq!(check(&[5], &[b(&[0], &[3]), b(&[3], &[2])]), Ok(()));
        // As many elements as there are, but some twice and some not at all.
        assert_eq!(check(&[5], &[b(&[0], &[3]), b(&[2], &[2])]), Err(vec![2]));
        assert_eq!(check(&[4, 2], &[b(&[0, 0], &[2, 2]), b(&[0, 0], &[2, 2])]), Err(vec![0, 0]));
        // No cut goes from side to side.
        let wheel =
            [b(&[0, 0], &[1, 2]), b(&[0, 2], &[2, 1]), b(&[2, 1], &[1, 2]), b(&[1, 0], &[2, 1]), b(&[1, 1], &[1, 1])];
        assert_eq!(check(&[3, 3], &wheel), Ok(()));
        assert_eq!(check(&[3, 3], &wheel[..4]), Err(vec![1, 1]));
        // Eleven dims, each cut in its turn.
        let many: Vec<(usize, usize, usize)> = (0..11).map(|d| (0, d, 1)).collect();
        let mut parts = cut(&[2; 11], &many);
        assert_eq!((parts.len(), check(&[2; 11], &parts)), (12, Ok(())));
        parts[11].0[3] = 0;
        parts[11].1[3] = 2;
        let shared = (0..11).map(|d| usize::from(d == 3 || d == 10)).collect();
        assert_eq!(check(&[2; 11], &parts), Err(shared));
    }

    /// The two ways agree, and a grid in many dims takes no time: in pairs it took nine seconds.
    #[test]
    fn many_boxes_in_many_dims() {
        let grid: Vec<_> = (0..1usize << 16).map(|n| ((0..16).map(|d| n >> d & 1).collect(), vec![1; 16])).collect();
        assert_eq!(check(&[2; 16], &grid), Ok(()));
        let mut twice = grid.clone();
        twice[7] = twice[1 << 15].clone();
        assert_eq!(check(&[2; 16], &twice), Err(grid[1 << 15].0.clone()));
        let cuts = prop::collection::vec(any::<(usize, usize, usize)>(), 0..60);
        proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) }, |(cuts in cuts, moved in any::<(usize, usize)>())| {
            let mut parts: Vec<_> = cut(&[9, 9, 9], &cuts).into_iter().filter(|(_, s)| !s.contains(&0)).collect();
            let (n, d) = (parts.len(), moved.1 % 3);
            let refs = |parts: &[(Vec<usize>, Vec<usize>)]| {
                let mut refs: Vec<BoxRef<'_>> = parts.iter().map(|(o, s)| (&o[..], &s[..])).collect();
                (in_pairs(&refs).is_ok(), apart(&mut refs).is_ok())
            };
            prop_assert_eq!(refs(&parts), (true, true));
            parts[moved.0 % n].0[d] = 0;
            let (pairs, planes) = refs(&parts);
            prop_assert_eq!(pairs, planes);
        });
    }

    #[test]
    fn what_looking_at_each_element_finds() {
        let whole = prop::collection::vec(0usize..5, 0..4);
        let cuts = prop::collection::vec(any::<(usize, usize, usize)>(), 0..9);
        let change = prop::option::of(any::<(usize, usize, bool)>());
        proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) }, |(whole in whole, cuts in cuts, change in change)| {
            let mut parts = cut(&whole, &cuts);
            prop_assert_eq!(check(&whole, &parts), Ok(()));
            if let (Some((which, d, twice)), false) = (change, whole.is_empty()) {
                let (n, d) = (parts.len(), d % whole.len());
                let (offset, size) = &mut parts[which % n];
                match (twice, offset[d] + size[d] < whole[d], offset[d] > 0) {
                    (true, ..) => { let again = parts[which % n].clone(); parts.push(again) }
                    (_, true, _) => offset[d] += 1,
                    (_, _, true) => offset[d] -= 1,
                    _ => size[d] -= usize::from(size[d] > 0),
                }
                prop_assert_eq!(check(&whole, &parts).is_ok(), counted(&whole, &parts), "{:?} of {:?}", parts, whole);
            }
        });
    }
}
