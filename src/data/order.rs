//! The order of rows in an epoch.

/// Returns a permutation of `0..n` that depends only on the seed and the epoch, so all ranks compute the same one.
///
/// ```
/// use oflow::data::permutation;
/// let mut p = permutation(100, 7, 0);
/// assert_ne!(p, permutation(100, 7, 1));
/// p.sort();
/// assert_eq!(p, (0..100).collect::<Vec<_>>());
/// ```
pub fn permutation(n: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).collect();
    let mut state = seed ^ epoch.wrapping_mul(0xd134_2543_de82_ef95);
    // Fisher and Yates; the bias of a 64-bit remainder is below 2⁻⁴⁰ for any n that fits memory.
    for i in (1..n).rev() {
        rows.swap(i, (split_mix(&mut state) % (i as u64 + 1)) as usize);
    }
    rows
}

/// Increment of the state of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The random number of that ordinal in the stream of a seed: no state to keep but the ordinal.
pub(super) fn hashed(seed: u64, ordinal: u64) -> u64 {
    split_mix(&mut seed.wrapping_add(ordinal.wrapping_mul(STEP)))
}
