//! How much memory the steps of a plan take besides the source and the destination shard.

use super::sizes::{count, largest_box};
use super::steps::{BoxingStep, StepOp};
use crate::sbp::Layout;

/// The most bytes that a step takes besides the first step's input and the last one's output.
pub(super) fn extra_memory(shape: &[usize], element: u64, steps: &[BoxingStep]) -> u64 {
    let last = steps.len().saturating_sub(1);
    let each = steps.iter().enumerate().map(|(i, s)| {
        let largest = |l: &Layout| largest_box(shape, l.placement.dims(), &l.sbp);
        let (before, after) = (largest(&s.before), largest(&s.after));
        let reduced = s.op.kind().contributions(s.before.placement.dims(), &s.before.sbp);
        extra(s.op, &before, &after, reduced, (i == 0, i == last)) * element
    });
    each.max().unwrap_or(0)
}

/// Elements that a step takes besides the plan's source and destination: its input and output where they are not these,
/// and what it packs, unpacks and receives apart.
pub(super) fn extra(op: StepOp, before: &[usize], after: &[usize], reduced: u64, (first, last): (bool, bool)) -> u64 {
    let (b, a) = (count(before), count(after));
    op.kind().scratch(before, after, reduced) + if first { 0 } else { b } + if last { 0 } else { a }
}
