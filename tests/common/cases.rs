//! Which part of what can be enumerated a test takes: `OFLOW_CASES=all` (`scripts/nightly.sh`) takes everything.

use oflow::testing::mix;

/// Whether everything is asked for.
pub fn whole() -> bool {
    std::env::var("OFLOW_CASES").is_ok_and(|v| v == "all")
}

/// Takes about one of every `n` of what is enumerated, chosen by a hash of its place: steps of `n` would meet the same inner case again and
/// again where the enumeration has a period. All of them when everything is asked for.
pub fn one_in(n: usize) -> impl FnMut() -> bool {
    let (whole, mut place) = (whole(), 0u64);
    move || {
        place += 1;
        whole || mix(&[place, n as u64]).is_multiple_of(n as u64)
    }
}

/// How many random cases a test draws: a part of those that `scripts/nightly.sh` draws.
pub fn draws(daily: usize, nightly: usize) -> usize {
    if whole() { nightly } else { daily }
}
