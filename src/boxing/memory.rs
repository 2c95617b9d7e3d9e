//! How much memory the steps of a plan take besides the source and the destination shard.

use super::step::{BoxingStep, StepOp};
use crate::sbp::Layout;
use crate::sbp::Sbp;
use smallvec::SmallVec;

/// The most bytes that a step takes besides the first step's input and the last one's output.
pub(super) fn extra_memory(shape: &[usize], element: u64, steps: &[BoxingStep]) -> u64 {
    let last = steps.len().saturating_sub(1);
    let each = steps.iter().enumerate().map(|(i, s)| {
        let largest = |l: &Layout| largest_box(shape, l.placement.dims(), &l.sbp);
        let (before, after) = (largest(&s.before), largest(&s.after));
        let reduced = contributions(s.before.placement.dims(), &s.before.sbp, s.op);
        extra(s.op, &before, &after, reduced, (i == 0, i == last)) * element
    });
    each.max().unwrap_or(0)
}

pub(super) type Sizes = SmallVec<[usize; 8]>;

pub(super) fn count(sizes: &[usize]) -> u64 {
    sizes.iter().map(|s| *s as u64).product()
}

/// Sizes of the shard at coordinate 0, the largest.
pub(super) fn largest_box(shape: &[usize], dims: &[usize], sbp: &[Sbp]) -> Sizes {
    let mut sizes = Sizes::from_slice(shape);
    for (a, s) in sbp.iter().enumerate() {
        if let Sbp::Split(d) = s {
            sizes[*d] = sizes[*d].div_ceil(dims[a]);
        }
    }
    sizes
}

/// Shares that a receiver of an exchange reduces into one.
fn contributions(dims: &[usize], sbp: &[Sbp], op: StepOp) -> u64 {
    let StepOp::Exchange { kept, .. } = op else { return 1 };
    (0..dims.len()).filter(|a| sbp[*a].is_partial() && !kept.contains(*a)).map(|a| dims[a] as u64).product()
}

/// Elements that a step takes besides the plan's source and destination: its input and output where they are not these,
/// and what it packs, unpacks and receives apart.
pub(super) fn extra(op: StepOp, before: &[usize], after: &[usize], reduced: u64, (first, last): (bool, bool)) -> u64 {
    let (b, a) = (count(before), count(after));
    let inner = |sizes: &[usize], dim: usize| count(&sizes[..dim]) > 1;
    let apart = match op {
        StepOp::Slice { .. } | StepOp::Pad { .. } | StepOp::Keep { .. } => 0,
        StepOp::AllReduce { .. } | StepOp::Broadcast { .. } => 0,
        StepOp::AllGather { dim, .. } => u64::from(inner(after, dim)) * a,
        StepOp::ReduceScatter { dim, .. } => u64::from(inner(before, dim)) * b,
        StepOp::AllToAll { from, to, .. } => u64::from(inner(before, to)) * b + u64::from(inner(after, from)) * a,
        StepOp::Exchange { .. } => b + a * reduced + if reduced > 1 { a } else { 0 },
    };
    apart + if first { 0 } else { b } + if last { 0 } else { a }
}
