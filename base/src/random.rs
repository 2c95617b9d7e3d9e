//! Random numbers that a seed repeats, for tests: the same on every rank and every machine.

use std::ops::Range;

/// SplitMix64 (Steele et al., 2014): small, and good enough to choose cases, moments and ranks.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Makes the stream of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }
    /// Returns the next number, any of 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Returns a number from 0 to below `n`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.draw() % n.max(1) as u64) as usize
    }
    /// Returns a number from -1 to below 1.
    pub fn signed(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    /// Returns one of the range, which must not be empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.end - range.start)
    }
    /// Returns true once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    /// Returns true that many times of 100.
    pub fn percent(&mut self, n: u64) -> bool {
        self.draw() % 100 < n
    }
    /// Picks one of a list, which must not be empty.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
    /// Puts a list into random order.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
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
        assert!((0..1000).map(|_| a.signed()).all(|x| (-1.0..1.0).contains(&x)));
        assert_ne!(Random::new(1).draw(), Random::new(2).draw());
        let mut all: Vec<usize> = (0..20).collect();
        a.shuffle(&mut all);
        assert_ne!(all, (0..20).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
    }
}
