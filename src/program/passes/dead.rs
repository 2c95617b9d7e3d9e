//! Dead code: calls whose results nobody needs are left out.

use super::super::types::{Node, Program, Work};

/// Leaves out calls without side effects whose results no other call needs and no run returns. Writes stay, and so do the places of host
/// objects. A random call that is left out still has its place among the numbers that a run draws.
pub(super) fn dead(program: &mut Program) {
    let mut needed = vec![false; program.values.len()];
    program.outputs.iter().for_each(|v| needed[v.index()] = true);
    let mut kept = vec![true; program.nodes.len()];
    for (n, node) in program.nodes.iter().enumerate().rev() {
        kept[n] = acts(node) || node.outputs.iter().any(|v| needed[v.index()]);
        if kept[n] {
            node.needs().for_each(|v| needed[v.index()] = true);
        }
    }
    program.keep(&kept);
}

/// Whether a node does something beside making its results.
fn acts(node: &Node) -> bool {
    let side_effect = match &node.work {
        Work::Host(_) => true,
        Work::Box(_) => false,
        Work::Call(call) => call.op.traits.side_effect,
    };
    side_effect || !node.writes.is_empty()
}
