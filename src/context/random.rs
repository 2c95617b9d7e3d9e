//! Random generators: a seed and the ordinal of the next random op. The numbers themselves are Philox in the kernels; a
//! generator only says which op of which stream it is, so placement and SBP cannot change them (I10).

use super::rank::current;

/// Seed and next ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Philox key.
    pub seed: u64,
    /// Ordinal of the next random op.
    pub ordinal: u64,
}

impl Generator {
    /// A generator at its start.
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

/// Seeds the global generator of this rank's context and, with a value of its own per rank, the local one. Call it with
/// the same seed on every rank.
pub fn manual_seed(seed: u64) {
    let ctx = current();
    ctx.seed(seed);
}
