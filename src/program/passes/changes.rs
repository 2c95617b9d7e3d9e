//! Changes of layout, as nodes make them.

use super::super::types::{Node, Program, Work};
use crate::ops::LayoutOp;
use crate::plan::{GlobalRef, TypeRef};

/// A change of layout between global types.
pub(super) type Change<'a> = (&'a GlobalRef, &'a GlobalRef);

/// The changes of layout of a node for which bytes move on a rank or between ranks; `None` of a node that is no boxing of global tensors.
pub(super) fn changes<'a>(program: &'a Program, node: &Node) -> Option<Vec<Change<'a>>> {
    let boxes = match &node.work {
        Work::Box(_) => true,
        Work::Call(call) => {
            use LayoutOp::{Box, BoxGrad, BoxMany, BoxManyGrad};
            matches!(call.op.layout, Some(Box | BoxGrad | BoxMany | BoxManyGrad))
        }
        Work::Host(_) | Work::Repeat(_) => false,
    };
    if !boxes || node.inputs.len() != node.outputs.len() {
        return None;
    }
    let pairs =
        node.inputs.iter().zip(&node.outputs).filter_map(|(from, to)| Some((program.ty((*from)?), program.ty(*to))));
    let moved = pairs.filter(|(from, to)| !stays(from, to));
    moved.map(|(from, to)| Some((from.global()?, to.global()?))).collect()
}

/// Whether a change of layout moves nothing: on each axis of the mesh the layouts are the same, or there is one rank only.
pub(super) fn stays(from: &TypeRef, to: &TypeRef) -> bool {
    match (from, to) {
        (TypeRef::Global(a), TypeRef::Global(b)) => {
            let axes = a.sbp.iter().zip(b.sbp.iter()).zip(a.placement.dims());
            a.placement == b.placement && a.ty == b.ty && axes.into_iter().all(|((a, b), size)| a == b || *size == 1)
        }
        _ => false,
    }
}
