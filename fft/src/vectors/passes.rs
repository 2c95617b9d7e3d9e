//! Transforms of n blocks, by decimation in time: the numbers of every r-th place are transformed, then joined by transforms of r.
//! Each is finished before the next one starts, so that all but the last steps stay in the first-level cache.

use super::butterflies::{Block, Lanes};
use super::lane::Lane;
use crate::halves::root;

/// A planned transform of blocks: its radices, that of the first pass first.
pub(crate) struct Passes<T> {
    radices: Vec<usize>,
    /// Of each pass but the first: for each place of a part the factors of the second, third ... part.
    twiddles: Vec<Vec<[T; 2]>>,
}

/// Factors of n among 2, 3, 4, 5 and 8, the greatest first.
fn radices(n: usize) -> Option<Vec<usize>> {
    let (mut rest, mut all) = (n, vec![]);
    for r in [5, 3] {
        while rest.is_multiple_of(r) && rest > 0 {
            rest /= r;
            all.push(r);
        }
    }
    if !rest.is_power_of_two() {
        return None;
    }
    let mut bits = rest.ilog2();
    while bits > 0 {
        // Two fours in the place of an eight and a two.
        let taken = if bits == 2 || bits == 4 { 2 } else { bits.min(3) };
        all.push(1 << taken);
        bits -= taken;
    }
    all.sort_unstable_by(|a, b| b.cmp(a));
    Some(all)
}

impl<T: Lane> Passes<T> {
    /// None where n has other prime factors, or is one.
    pub(crate) fn new(n: usize) -> Option<Passes<T>> {
        let radices = radices(n)?;
        let (first, later) = radices.split_first()?;
        let mut part = *first;
        let twiddles = later.iter().map(|r| {
            let n = part * r;
            let of_place = |j: usize| (1..*r).map(move |k| root(j * k, n));
            let all = (0..part).flat_map(of_place).collect();
            part = n;
            all
        });
        Some(Passes { twiddles: twiddles.collect(), radices })
    }

    /// Transforms x into y.
    ///
    /// # Panics
    /// One of them has another length.
    #[inline(always)]
    pub(crate) fn run(&self, lanes: Lanes<T>, x: &[Block<T::V>], y: &mut [Block<T::V>]) {
        let n: usize = self.radices.iter().product();
        assert!(x.len() == n && y.len() == n);
        let first = self.radices[0];
        // Parts that each pass has of those it joins. The first numbers to transform follow from them, the last pass first.
        let mut parts = [0usize; usize::BITS as usize];
        for start in (0..n).step_by(first) {
            let (mut from, mut step) = (0, 1);
            for (pass, r) in self.radices.iter().enumerate().skip(1).rev() {
                from += parts[pass] * step;
                step *= r;
            }
            first_pass(lanes, &x[from..], step, &mut y[start..start + first]);
            let mut len = first;
            for (pass, r) in self.radices.iter().enumerate().skip(1) {
                len *= r;
                parts[pass] += 1;
                if parts[pass] < *r {
                    break;
                }
                parts[pass] = 0;
                later_pass(lanes, *r, &mut y[start + first - len..start + first], &self.twiddles[pass - 1]);
            }
        }
    }
}

/// The transform of as many numbers as y has, which lie `step` apart.
#[inline(always)]
fn first_pass<T: Lane>(lanes: Lanes<T>, x: &[Block<T::V>], step: usize, y: &mut [Block<T::V>]) {
    /// R numbers that lie `step` apart.
    #[inline(always)]
    fn read<V: Copy, const R: usize>(x: &[Block<V>], step: usize) -> [Block<V>; R] {
        let mut all = [x[0]; R];
        (1..R).for_each(|k| all[k] = x[k * step]);
        all
    }
    match y.len() {
        8 => y.copy_from_slice(&lanes.of_eight(read(x, step))),
        5 => y.copy_from_slice(&lanes.of_five(read(x, step))),
        4 => y.copy_from_slice(&lanes.of_four(read(x, step))),
        3 => y.copy_from_slice(&lanes.of_three(read(x, step))),
        _ => y.copy_from_slice(&lanes.of_two(read(x, step))),
    }
}

/// Joins r transforms that lie one after the other.
#[inline(always)]
fn later_pass<T: Lane>(lanes: Lanes<T>, r: usize, y: &mut [Block<T::V>], twiddles: &[[T; 2]]) {
    match r {
        8 => join(
            lanes,
            y,
            twiddles,
            #[inline(always)]
            |a| lanes.of_eight(a),
        ),
        5 => join(
            lanes,
            y,
            twiddles,
            #[inline(always)]
            |a| lanes.of_five(a),
        ),
        4 => join(
            lanes,
            y,
            twiddles,
            #[inline(always)]
            |a| lanes.of_four(a),
        ),
        3 => join(
            lanes,
            y,
            twiddles,
            #[inline(always)]
            |a| lanes.of_three(a),
        ),
        _ => join(
            lanes,
            y,
            twiddles,
            #[inline(always)]
            |a| lanes.of_two(a),
        ),
    }
}

/// Joins R transforms that lie one after the other, by `transform`.
#[inline(always)]
pub(crate) fn join<T: Lane, const R: usize>(
    lanes: Lanes<T>,
    y: &mut [Block<T::V>],
    twiddles: &[[T; 2]],
    transform: impl Fn([Block<T::V>; R]) -> [Block<T::V>; R],
) {
    let part = y.len() / R;
    assert!(y.len() == part * R && twiddles.len() == part * (R - 1));
    for (j, w) in twiddles.chunks_exact(R - 1).enumerate() {
        let mut all = [y[j]; R];
        for k in 1..R {
            all[k] = lanes.turned_by(y[k * part + j], w[k - 1]);
        }
        let all = transform(all);
        for k in 0..R {
            y[k * part + j] = all[k];
        }
    }
}
