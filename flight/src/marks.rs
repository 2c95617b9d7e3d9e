//! Hashes of a dispatch stream at spaced ordinals.
//!
//! An ordinal with k trailing zeros has level k. The last few marks of each level are kept, so recent marks are dense and old
//! ones sparse: about `KEPT` marks for each doubling of the distance. Two ranks at different positions always
//! have ordinals in common that are not much farther back than the distance between them, because both keep multiples of the
//! same powers of two.

/// Marks kept of each level.
const KEPT: usize = 8;
/// Levels: enough for 2⁴⁰ ops.
const LEVELS: usize = 40;

/// The marks of one stream, in bounded memory. Adding a mark costs two stores.
#[derive(Clone, Debug)]
pub struct Marks([[(u64, u64); KEPT]; LEVELS]);

impl Default for Marks {
    fn default() -> Marks {
        Marks([[(0, 0); KEPT]; LEVELS])
    }
}

impl Marks {
    fn slot(ordinal: u64) -> (usize, usize) {
        let level = ordinal.trailing_zeros();
        // Shifted in two steps, so that no shift is as wide as the number.
        ((level as usize).min(LEVELS - 1), ((ordinal >> level) >> 1) as usize % KEPT)
    }

    /// Adds the hash after an op; ordinals count from 1. A mark older than the one in its slot is dropped.
    pub fn note(&mut self, ordinal: u64, hash: u64) {
        if ordinal == 0 {
            return;
        }
        let (level, slot) = Marks::slot(ordinal);
        let entry = &mut self.0[level][slot];
        if ordinal >= entry.0 {
            *entry = (ordinal, hash);
        }
    }

    /// Returns the hash after an op, if it is kept.
    pub fn get(&self, ordinal: u64) -> Option<u64> {
        if ordinal == 0 {
            return None;
        }
        let (level, slot) = Marks::slot(ordinal);
        let (kept, hash) = self.0[level][slot];
        (kept == ordinal).then_some(hash)
    }

    /// Returns all marks after an ordinal, in order.
    pub fn after(&self, ordinal: u64) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = self.0.iter().flatten().copied().filter(|(o, _)| *o > ordinal).collect();
        all.sort_unstable();
        all
    }

    /// Returns the last ordinal before `before` at which both have a mark with the same hash, that is at which the streams
    /// agreed. 0, the start of every stream, if there is none.
    pub fn agreed(&self, other: &Marks, before: u64) -> u64 {
        let mine = self.after(0);
        mine.iter().rev().find(|(o, h)| *o < before && other.get(*o) == Some(*h)).map_or(0, |(o, _)| *o)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marks(n: u64) -> Marks {
        let mut m = Marks::default();
        (1..=n).for_each(|o| m.note(o, o * 31));
        m
    }

    #[test]
    fn near_is_dense_and_far_is_sparse() {
        let kept: Vec<u64> = marks(1000).after(0).into_iter().map(|(o, _)| o).collect();
        assert!(kept.len() <= KEPT * 10 && kept.ends_with(&[993, 994, 995, 996, 997, 998, 999, 1000]), "{kept:?}");
        assert!(kept.contains(&512));
        assert_eq!(marks(3).after(1).len(), 2);
        assert_eq!(marks(3).get(0), None);
    }

    proptest! {
        #[test]
        fn ranks_at_any_positions_have_marks_in_common(a in 1u64..200_000, lead in 0u64..100_000) {
            let (behind, ahead) = (marks(a), marks(a + lead));
            let common = behind.agreed(&ahead, u64::MAX);
            // Not farther back than the distance between them, roughly.
            prop_assert!(a - common <= lead / 2 + 8, "{common}");
        }
    }
}
