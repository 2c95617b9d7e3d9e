//! The op harness: what the tests of ops share. Samples become cases ([`sample`]), logical values are dealt out to the
//! ranks of a mesh and put together again without any boxing of the library ([`layout`]), and a case's result on a mesh is
//! compared with the same call on one device ([`check`]).
#![allow(dead_code, unused_imports)] // each test binary uses its own part

pub mod check;
pub mod differences;
pub mod layout;
pub mod sample;

pub use check::{
    Case, Outcome, Plan, check_device, local_outcome, mixed_cases, run_cases, run_cases_on, settle, signature_cases,
};
pub use layout::{Value, assemble, deal};
pub use sample::{Sample, derived_samples, variants};

/// The meshes of the design's section 12 that every op is tested on.
pub const MESHES: [&[usize]; 6] = [&[1], &[2], &[3], &[4], &[2, 2], &[2, 3]];

/// Larger ones, that each op is tested on as its samples are given.
pub const LARGE_MESHES: [&[usize]; 2] = [&[8], &[2, 2, 2]];

/// Whether an op computes something: changes of layout and users' functions have tests of their own.
pub fn computes(op: &oflow::ops::Op) -> bool {
    op.layout.is_none() && op.name() != "apply_custom"
}

/// A small mixing function: the harness's only source of "random" choices, the same in every run.
pub fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |h, w| {
        let x = (h ^ w).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (x ^ x >> 29).wrapping_mul(0xc4ce_b9fe_1a85_ec53) ^ x >> 32
    })
}

/// A hash of a text, to spread choices over ops and samples.
pub fn seed(text: &str) -> u64 {
    mix(&text.bytes().map(u64::from).collect::<Vec<_>>())
}
