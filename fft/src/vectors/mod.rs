//! Transforms by vectors of 512 bits, for CPUs with AVX-512: rustfft has code for vectors of 256 bits. Lengths are products of 2, 3 and 5.
//!
//! [`Columns`] are lines that lie side by side, one in each lane, so that nothing crosses lanes. [`line`] takes one line for the rows of a
//! matrix, whose columns are transformed in lanes, then the rows after a transposition in registers (Bailey, "FFTs in external or
//! hierarchical memory", 1990).

mod butterflies;
mod columns;
pub(crate) mod halves;
mod lane;
mod line;
mod passes;

pub(crate) use columns::Columns;
pub(crate) use lane::{Lane, parts, parts_mut};
pub(crate) use line::line;
