//! Common subexpressions: a call that repeats an earlier one gives its result. Boxings count as calls, so a value goes to a layout once.

use super::super::types::{Node, Program, ValueId, Work};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Leaves out calls that an earlier call has made: of the same op, attributes, numbers and inputs, with results of the same types.
///
/// - A result that is returned or written over is a tensor of its own, so its call stays.
/// - Forward and backward calls are not merged: activations would live longer.
/// - Calls of a second run are there to save memory; merging them with the first would undo that.
/// - A call under a guard is merged with one under the same guard.
pub(super) fn common(program: &mut Program) {
    let own = program.own_values();
    let mut same: Vec<ValueId> = (0..program.values.len() as u32).map(ValueId).collect();
    let mut kept = vec![true; program.nodes.len()];
    let mut made: BTreeMap<(bool, String), usize> = BTreeMap::new();
    for (n, kept) in kept.iter_mut().enumerate() {
        program.nodes[n].rename_needs(|v| same[v.index()]);
        let node = &program.nodes[n];
        if !may_be_merged(node) || node.outputs.iter().any(|v| own[v.index()]) {
            continue;
        }
        match made.entry((node.backward, program.made_how(node))) {
            Entry::Vacant(first) => {
                first.insert(n);
            }
            Entry::Occupied(first) => {
                let first = &program.nodes[*first.get()];
                for (v, earlier) in node.outputs.iter().zip(&first.outputs) {
                    same[v.index()] = *earlier;
                }
                *kept = false;
            }
        }
    }
    program.keep(&kept);
}

/// Whether the call gives the same results whenever it is made, and does nothing else.
fn may_be_merged(node: &Node) -> bool {
    let plain = match &node.work {
        Work::Host(_) | Work::Repeat(_) => false,
        Work::Box(_) => true,
        Work::Call(call) => {
            let traits = &call.op.traits;
            !traits.side_effect && !traits.random && call.host.is_none() && call.draw.is_none()
        }
    };
    plain && node.writes.is_empty() && !node.outputs.is_empty() && !node.recomputed
}
