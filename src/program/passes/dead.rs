//! Dead code: calls whose results nobody needs are left out.

use super::super::types::{Node, OutsideKind, Program, ValueId, Work};

/// Leaves out calls without side effects whose results no other call needs and no run returns. Writes stay, and so do the places of host
/// objects. A random call that is left out still has its place among the numbers that a run draws.
///
/// A section collects and carries only what is needed, of itself by its own calls or after it.
pub(super) fn dead(program: &mut Program) {
    let mut needed = vec![false; program.values.len()];
    program.outputs.iter().for_each(|v| needed[v.index()] = true);
    let mut kept = vec![true; program.nodes.len()];
    for (n, node) in program.nodes.iter_mut().enumerate().rev() {
        kept[n] = acts(node) || node.outputs.iter().any(|v| needed[v.index()]);
        if kept[n] {
            trim(node, &needed);
            node.needs().for_each(|v| needed[v.index()] = true);
        }
    }
    program.keep(&kept);
}

/// Values that lead to these, or to what a program does beside making its results.
fn leading_to(program: &Program, ends: &[ValueId]) -> Vec<bool> {
    let mut needed = vec![false; program.values.len()];
    ends.iter().for_each(|v| needed[v.index()] = true);
    for node in program.nodes.iter().rev() {
        if acts(node) || node.outputs.iter().any(|v| needed[v.index()]) {
            node.needs().for_each(|v| needed[v.index()] = true);
        }
    }
    needed
}

/// Leaves out what a section takes and gives and nobody needs; `needed` are the values that are needed after it.
fn trim(node: &mut Node, needed: &[bool]) {
    let outputs = node.outputs.clone();
    let Some(r) = node.repeat_mut() else { return };
    let (carried, written) = (r.of_kind(OutsideKind::Carried), r.of_kind(OutsideKind::Written));
    let inside: Vec<ValueId> = r.body.outside_of(OutsideKind::Carried).map(|o| o.value).collect();
    // What is carried is needed after the section, or by what an iteration gives.
    let mut stays: Vec<bool> = outputs.iter().map(|v| needed[v.index()]).collect();
    let used = loop {
        let place = |k: usize| if k < carried { k } else { k + written };
        let kept = (0..outputs.len()).filter(|k| stays[*k]).map(|k| r.body.outputs[place(k)]);
        let ends: Vec<ValueId> = kept.chain(r.body.outputs[carried..carried + written].iter().copied()).collect();
        let used = leading_to(&r.body, &ends);
        let found: Vec<usize> = (0..carried).filter(|k| !stays[*k] && used[inside[*k].index()]).collect();
        if found.is_empty() {
            break used;
        }
        found.into_iter().for_each(|k| stays[k] = true);
    };
    let of_writes = std::iter::repeat_n(true, written);
    let mut gives = stays[..carried].iter().copied().chain(of_writes).chain(stays[carried..].iter().copied());
    r.body.outputs.retain(|_| gives.next().unwrap_or(true));
    let (mut next_carried, mut taken) = (0, vec![]);
    r.body.outside.retain(|o| {
        let keeps = match o.kind {
            OutsideKind::Written => return true,
            OutsideKind::Carried => {
                next_carried += 1;
                stays[next_carried - 1]
            }
            _ => used[o.value.index()],
        };
        taken.push(keeps);
        keeps
    });
    dead(&mut r.body);
    let mut all = taken.into_iter();
    node.inputs.retain(|_| all.next().unwrap_or(true));
    let mut all = stays.into_iter();
    node.outputs.retain(|_| all.next().unwrap_or(true));
}

/// Whether a node does something beside making its results. What a section writes of its own ends with it.
fn acts(node: &Node) -> bool {
    has_side_effect(node) || !node.writes.is_empty()
}

/// Whether a node does something beside making and writing values.
pub(super) fn has_side_effect(node: &Node) -> bool {
    match &node.work {
        Work::Host(_) => true,
        Work::Box(_) => false,
        Work::Call(call) => call.op.traits.side_effect,
        Work::Repeat(r) => r.body.nodes.iter().any(has_side_effect),
    }
}
