//! The data of `main.rs`: random words, and the same words backwards.

use super::common::tokens::uniform;
use super::model::Sizes;
use oflow::data::Loader;
use oflow::prelude::*;

/// Token of positions after the end of a word.
pub const PAD: i64 = 0;
/// Token with which the decoder begins to write a word.
pub const BEGIN: i64 = 1;
/// Token that the decoder writes after the last letter. The tokens of letters follow.
pub const END: i64 = 2;
/// Label of positions that the loss leaves out.
pub const IGNORED: i64 = -100;

/// Words, what the decoder sees of their reverse, and what it is to write: `i64[rows, longest]`, `[rows, longest + 1]` twice.
pub fn words(mesh: &Placement, batch: usize, rows: usize, s: &Sizes, longest: usize, seed: u64) -> Result<Loader> {
    let (mut source, mut seen, mut next) = (vec![], vec![], vec![]);
    let letters = (s.tokens - 3) as f64;
    for row in 0..rows {
        let draw = |i: usize| uniform(seed, (row * (longest + 1) + i) as u64);
        let length = 2 + (draw(0) * (longest - 1) as f64) as usize;
        let word: Vec<i64> = (1..=length).map(|i| 3 + (draw(i) * letters) as i64).collect();
        let padded = |mut v: Vec<i64>, to: usize, with: i64| {
            v.resize(to, with);
            v
        };
        let back: Vec<i64> = word.iter().rev().copied().collect();
        source.extend(padded(word, longest, PAD));
        seen.extend(padded([&[BEGIN], &back[..]].concat(), longest + 1, PAD));
        next.extend(padded([&back[..], &[END]].concat(), longest + 1, IGNORED));
    }
    let loader = Loader::new(mesh, batch).split_along("dp")?;
    loader.column(source, &[longest])?.column(seen, &[longest + 1])?.column(next, &[longest + 1])
}
