//! Identities: calls that give the value that they take.

use super::super::types::{Program, ValueId, Work};
use super::liveness::{Liveness, Sizes};

/// Reads the input in place of the result of what changes nothing: a change of layout to the layout that is there, and an elementwise op that
/// gives its input (the gradient of an addition, of a cast to the dtype that is there).
///
/// A result that is returned or written over is a tensor of its own, so its call stays; so does the call of an input whose memory is written,
/// and one with further inputs: what makes those is needed for it.
pub(super) fn identity(program: &mut Program) {
    // A window shows another value once its memory is written; a copy made of it before does not.
    let live = Liveness::of(program, &mut Sizes::default());
    let mut own = program.own_values();
    own.iter_mut().zip(0..).for_each(|(own, v)| *own |= !live.writes_of(ValueId(v)).is_empty());
    let mut same: Vec<ValueId> = (0..program.values.len() as u32).map(ValueId).collect();
    let mut kept = vec![true; program.nodes.len()];
    for (n, kept) in kept.iter_mut().enumerate() {
        program.nodes[n].rename_needs(|v| same[v.index()]);
        let Some((from, to)) = gives(program, n) else { continue };
        if !own[from.index()] && !own[to.index()] && program.ty(from).same(program.ty(to)) {
            (same[to.index()], *kept) = (from, false);
        }
    }
    program.keep(&kept);
}

/// The input that a node gives as its result, and the result.
fn gives(program: &Program, n: usize) -> Option<(ValueId, ValueId)> {
    let node = &program.nodes[n];
    let ([to], [], None) = (node.outputs.as_slice(), node.writes.as_slice(), node.guard) else { return None };
    let gives = match &node.work {
        Work::Call(call) => call.op.layout.is_some() || call.op.gives_its_input(),
        Work::Box(_) => true,
        Work::Host(_) | Work::Repeat(_) => false,
    };
    match node.inputs.as_slice() {
        [Some(from)] if gives => Some((*from, *to)),
        _ => None,
    }
}
