//! Random generators: a seed and the ordinal of the next random op. Kernels compute the numbers with Philox from seed, ordinal
//! and logical index, so placement and SBP do not change them (I10).

use super::rank::current;

/// State of a random generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Philox key.
    pub seed: u64,
    /// Ordinal of the next random op.
    pub ordinal: u64,
}

impl Generator {
    /// Makes a generator at its start.
    pub fn new(seed: u64) -> Generator {
        Generator { seed, ordinal: 0 }
    }
    /// Draws the ordinal of one op.
    pub(crate) fn draw(&mut self) -> (u64, u64) {
        let o = self.ordinal;
        self.ordinal += 1;
        (self.seed, o)
    }
}

/// Seeds the generators of this rank's context: the one of global tensors with `seed`, the one of local tensors with a seed
/// derived from `seed` and the rank. Call it with the same seed on every rank.
pub fn manual_seed(seed: u64) {
    let ctx = current();
    ctx.seed(seed);
}
