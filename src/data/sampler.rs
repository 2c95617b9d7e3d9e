//! The rows of an epoch, and their order.

use super::order::{hashed, permutation};
use crate::error::{Error, Result};
use std::sync::Arc;

/// The rows of an epoch and their order. It is the same on every rank and depends on nothing but the sampler, the number of rows and the
/// epoch. Ranks share each batch of it, so the number of ranks does not change which rows a batch has.
///
/// ```
/// use oflow::data::Sampler;
/// assert_eq!(Sampler::sequential().order(4, 0)?, [0, 1, 2, 3]);
/// assert_eq!(Sampler::subset(vec![5, 1]).order(6, 0)?, [5, 1]);
/// // Row 1 is drawn three times as often as row 0; row 2 never.
/// let drawn = Sampler::weighted(vec![1.0, 3.0, 0.0], 4000, 7)?.order(3, 0)?;
/// let ones = drawn.iter().filter(|r| **r == 1).count();
/// assert!((2850..3150).contains(&ones) && !drawn.contains(&2));
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampler(Kind);

#[derive(Clone, Debug, Default, PartialEq)]
enum Kind {
    #[default]
    Sequential,
    Random {
        seed: u64,
    },
    Weighted {
        /// Sums of the weights up to each row.
        sums: Arc<[f64]>,
        draws: usize,
        seed: u64,
    },
    Subset {
        rows: Arc<[usize]>,
        seed: Option<u64>,
    },
}

impl Sampler {
    /// All rows in their order.
    pub fn sequential() -> Sampler {
        Sampler(Kind::Sequential)
    }
    /// All rows in random order, another one in each epoch ([`permutation`]).
    pub fn random(seed: u64) -> Sampler {
        Sampler(Kind::Random { seed })
    }
    /// `draws` rows, each drawn with a probability in proportion to its weight, with replacement; others in each epoch.
    ///
    /// # Errors
    /// If a weight is negative or not finite, or all are 0.
    pub fn weighted(weights: Vec<f64>, draws: usize, seed: u64) -> Result<Sampler> {
        if let Some((row, w)) = weights.iter().enumerate().find(|(_, w)| !(w.is_finite() && **w >= 0.0)) {
            return Err(
                Error::argument(format!("the weight of row {row} is {w}")).help("weights are finite and not negative")
            );
        }
        let mut sum = 0.0;
        let sums: Arc<[f64]> = weights.iter().map(|w| (sum += w, sum).1).collect();
        if !(sum > 0.0 && sum.is_finite()) {
            return Err(Error::argument(format!("the sum of the weights is {sum}; no row can be drawn")));
        }
        Ok(Sampler(Kind::Weighted { sums, draws, seed }))
    }
    /// The given rows in the given order, such as a part for validation.
    pub fn subset(rows: Vec<usize>) -> Sampler {
        Sampler(Kind::Subset { rows: rows.into(), seed: None })
    }
    /// The given rows in random order, another one in each epoch.
    pub fn random_subset(rows: Vec<usize>, seed: u64) -> Sampler {
        Sampler(Kind::Subset { rows: rows.into(), seed: Some(seed) })
    }
    /// Returns the number of rows of an epoch of a data set of `rows` rows.
    pub fn len(&self, rows: usize) -> usize {
        match &self.0 {
            Kind::Sequential | Kind::Random { .. } => rows,
            Kind::Weighted { draws, .. } => *draws,
            Kind::Subset { rows, .. } => rows.len(),
        }
    }
    /// Checks that the sampler is one for that many rows.
    ///
    /// # Errors
    /// If it has weights for another number of rows, or names a row that is not there.
    pub fn check(&self, rows: usize) -> Result<()> {
        match &self.0 {
            Kind::Weighted { sums, .. } if sums.len() != rows => {
                Err(Error::argument(format!("the sampler has {} weights for {rows} rows", sums.len())))
            }
            Kind::Subset { rows: named, .. } => match named.iter().find(|r| **r >= rows) {
                Some(r) => Err(Error::index(format!("the sampler names row {r}; there are {rows} rows"))),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
    /// Returns the rows of an epoch, in their order.
    ///
    /// # Errors
    /// If the sampler does not fit that many rows.
    pub fn order(&self, rows: usize, epoch: u64) -> Result<Vec<usize>> {
        self.check(rows)?;
        Ok(match &self.0 {
            Kind::Sequential => (0..rows).collect(),
            Kind::Random { seed } => permutation(rows, *seed, epoch),
            Kind::Weighted { sums, draws, seed } => {
                let all = sums.last().copied().unwrap_or(0.0);
                let seed = hashed(*seed, epoch);
                let draw = |n: usize| {
                    let at = (hashed(seed, n as u64) >> 11) as f64 / (1u64 << 53) as f64 * all;
                    // Rounding up to the whole sum would lead behind the last row.
                    sums.partition_point(|s| *s <= at).min(sums.partition_point(|s| *s < all))
                };
                (0..*draws).map(draw).collect()
            }
            Kind::Subset { rows, seed: None } => rows.to_vec(),
            Kind::Subset { rows, seed: Some(seed) } => {
                permutation(rows.len(), *seed, epoch).into_iter().map(|i| rows[i]).collect()
            }
        })
    }
    /// The seed of a random order of all rows, and whether there is no more to say about the order than that.
    pub(super) fn seed(&self) -> Option<u64> {
        match self.0 {
            Kind::Random { seed } => Some(seed),
            _ => None,
        }
    }
    /// A text that tells samplers of other rows or weights apart; `None` for all rows, whose order the seed tells.
    pub(super) fn fingerprint(&self) -> Option<String> {
        let mixed = |words: &mut dyn Iterator<Item = u64>| words.fold(0, |h: u64, w| hashed(h ^ w, 1));
        match &self.0 {
            Kind::Sequential | Kind::Random { .. } => None,
            Kind::Weighted { sums, draws, seed } => {
                let of = mixed(&mut sums.iter().map(|s| s.to_bits()));
                Some(format!("{draws} draws by {} weights ({of:016x}) with seed {seed}", sums.len()))
            }
            Kind::Subset { rows, seed } => {
                let of = mixed(&mut rows.iter().map(|r| *r as u64));
                let order = seed.map_or("in their order".to_string(), |s| format!("shuffled by seed {s}"));
                Some(format!("{} chosen rows ({of:016x}) {order}", rows.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights_and_change_with_the_epoch() {
        let weights = [0.0, 2.0, 0.0, 1.0, 5.0, 0.0];
        let s = Sampler::weighted(weights.to_vec(), 80_000, 3).unwrap();
        let drawn = s.order(6, 0).unwrap();
        for (row, w) in weights.iter().enumerate() {
            let got = drawn.iter().filter(|r| **r == row).count() as f64 / 10_000.0;
            assert!((got - w).abs() < 0.1, "row {row} of weight {w} was drawn {got} × 10,000 times");
        }
        assert_ne!(drawn, s.order(6, 1).unwrap());
        assert_eq!(drawn, s.order(6, 0).unwrap());
    }

    #[test]
    fn a_random_subset_has_each_row_once() {
        let s = Sampler::random_subset(vec![9, 4, 7, 1], 5);
        let (a, b) = (s.order(10, 0).unwrap(), s.order(10, 1).unwrap());
        let mut sorted = a.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [1, 4, 7, 9]);
        assert!((0..8).any(|e| s.order(10, e).unwrap() != a) && a.len() == b.len());
    }

    #[test]
    fn samplers_that_do_not_fit_are_refused() {
        let message = |r: Result<Sampler>| r.unwrap_err().message().to_string();
        assert_eq!(message(Sampler::weighted(vec![1.0, -1.0], 2, 0)), "the weight of row 1 is -1");
        assert!(message(Sampler::weighted(vec![0.0], 2, 0)).contains("sum of the weights is 0"));
        assert!(message(Sampler::weighted(vec![], 2, 0)).contains("sum of the weights is 0"));
        assert!(message(Sampler::weighted(vec![f64::NAN], 2, 0)).contains("NaN"));
        let e = Sampler::weighted(vec![1.0], 2, 0).unwrap().order(2, 0).unwrap_err();
        assert_eq!(e.message(), "the sampler has 1 weights for 2 rows");
        let e = Sampler::subset(vec![0, 8]).order(8, 0).unwrap_err();
        assert_eq!(e.message(), "the sampler names row 8; there are 8 rows");
    }
}
