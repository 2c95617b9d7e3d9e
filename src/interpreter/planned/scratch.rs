//! Memory that nodes allocate while they run: those that are carried out on tensors, and exchanges that are not in host memory.

use crate::boxing::BoxingPlan;
use crate::memory::block_bytes;
use crate::plan::{BufferId, LocalRef, Plan, Step};
use crate::program::{Node, ValueId};
use crate::vm::listed::Walk;

/// The most bytes that an exchange allocates which takes its own scratch memory, of the bytes of this rank's shards.
pub(super) fn exchange_scratch(walk: &Walk, sent: usize, received: usize) -> usize {
    match walk {
        Walk::Plans(plans) if plans.len() == 1 => boxing_scratch(&plans[0]),
        // What is packed, what is received, and a block for what lies between the steps, which may be empty.
        _ => block_bytes(sent) + block_bytes(received) + block_bytes(0),
    }
}

/// The most bytes that a boxing allocates. They may be several blocks, each an eighth larger at most.
fn boxing_scratch(plan: &BoxingPlan) -> usize {
    plan.extra_bytes().try_into().map_or(usize::MAX, |bytes: usize| bytes + bytes / 8)
}

/// The most bytes that a node allocates which is carried out on tensors, beside what it makes: boxings pack what they send and receive apart,
/// and calls have temporaries.
pub(super) fn stepwise_scratch(plan: Option<&Plan>, node: &Node, local: impl Fn(ValueId) -> Option<LocalRef>) -> usize {
    let bytes = |ty: Option<LocalRef>| ty.map_or(0, |l| block_bytes(l.bytes));
    match plan {
        Some(plan) => {
            let made = |b: &BufferId| plan.outputs.contains(b) || b.index() < node.inputs.len();
            let inside = (0..plan.buffers.len() as u32).map(BufferId).filter(|b| !made(b));
            let scratch = plan.steps.iter().map(|s| match s {
                Step::Kernel(k) => k.kernel.as_ref().map_or(0, |k| block_bytes(k.workspace)),
                Step::Box(b) => boxing_scratch(&b.boxing.plan),
                _ => 0,
            });
            inside.map(|b| bytes(plan.buffers[b.index()].local.clone())).sum::<usize>() + scratch.max().unwrap_or(0)
        }
        None if node.is_boxing() => {
            let of = |v: &ValueId| bytes(local(*v));
            let (sent, received) = (node.inputs.iter().flatten().map(of).sum(), node.outputs.iter().map(of).sum());
            // Boxings that are made together have a block for what lies between their steps, which may be empty.
            block_bytes(sent) + block_bytes(received) + block_bytes(0)
        }
        None => 0,
    }
}
