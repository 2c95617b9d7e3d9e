//! The numbers that a random op is given.

use crate::context::Generator;
use crate::error::Result;
use crate::interpreter::draw_for_capture;
use oflow_kernels::Scalar;

/// The runtime attributes `seed` and `ordinal` of one random op. An ordinal of -1 stands for the generator of the rank.
pub(super) fn drawn(generator: Option<&Generator>) -> Result<[Scalar; 2]> {
    let of = |g: &Generator| draw_for_capture(g).map_or_else(|| g.draw(), Ok);
    let (seed, ordinal) = generator.map_or(Ok((0, u64::MAX)), of)?;
    Ok([Scalar::Int(seed as i64), Scalar::Int(ordinal as i64)])
}
