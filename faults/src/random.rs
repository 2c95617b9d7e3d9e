//! Random numbers that a seed repeats.

use std::ops::Range;
use std::time::Duration;

/// SplitMix64: small, and good enough to choose moments and ranks.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream of its own for every seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of the range, which must not be empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        range.start + (self.draw() % (range.end - range.start) as u64) as usize
    }

    /// Between nothing and `most`.
    pub fn moment(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.draw() % (most.as_micros() as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        for _ in 0..100 {
            let n = a.within(2..5);
            assert!((2..5).contains(&n));
            assert_eq!(n, b.within(2..5));
        }
        assert_ne!(Random::new(1).draw(), Random::new(2).draw());
    }
}
