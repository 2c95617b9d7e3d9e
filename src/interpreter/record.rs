//! Recording a call for backward: which tensors are kept, where gradients go.

use super::call::Call;
use super::saved::save;
use super::writes::{writes, written as written_by};
use crate::error::{CallSite, Result};
use crate::ops::{Grad, GradArg, Numbers, Op, Withheld, derived_args};
use crate::placement::Device;
use crate::plan::TypeRef;
use crate::tensor::{Custom, Edge, Node, Saved, SavedData, Tensor, share_memory};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};

/// Returns the inputs and the outputs that the gradient rule reads, as bit sets, given which inputs want a gradient.
pub(super) fn grad_reads(call: &Call<'_>, needs: impl Fn(usize) -> bool) -> Result<(u64, u64)> {
    let (op, n) = (call.op, call.inputs.len());
    let (mut ins, mut outs) = (0u64, 0u64);
    match &op.grad {
        Grad::Missing | Grad::None => {}
        Grad::FromExpr => {
            let numbers = Numbers::of(op, call.inputs.iter().flatten().map(|t| t.dtype()), &call.runtime);
            for i in (0..n).filter(|i| needs(*i)) {
                let reads = derived_args(op, i, numbers)?;
                ins |= reads.inputs.iter().fold(0, |m, i| m | 1 << i);
                outs |= reads.output as u64;
            }
        }
        Grad::Wiring(wires) => {
            op.check_gradient_once()?;
            for w in wires.iter().filter(|w| needs(w.input)) {
                for a in &w.args {
                    match a {
                        GradArg::Input(i) => ins |= 1 << i,
                        GradArg::Output(i) => outs |= 1 << i,
                        GradArg::OutGrad(_) => {}
                    }
                }
            }
        }
        Grad::Rule { saves_inputs, saves_outputs, .. } => (ins, outs) = (*saves_inputs, *saves_outputs),
    }
    Ok((ins, outs))
}

/// Gives the outputs their place in the graph, but those `withheld`. `inputs` are as they were boxed for the kernel. A call that writes in place
/// gives the tensors written their new edge; without a gradient that is none.
pub(super) fn record(call: &Call<'_>, inputs: &[Option<&Tensor>], outs: &[Tensor], withheld: Withheld) -> Result<()> {
    let mut written: SmallVec<[&Tensor; 2]> = SmallVec::new();
    if writes(call) {
        written.extend(written_by(call));
    }
    let in_place = !written.is_empty();
    let mut edges: SmallVec<[Edge; 4]> = SmallVec::new();
    for (i, t) in inputs.iter().enumerate() {
        let edge = t.filter(|_| !withheld.input(i)).map_or(Edge::None, |t| t.edge());
        if let (Edge::Leaf(_), Some(t)) = (&edge, t) {
            t.name_memory(call.site.scope);
        }
        edges.push(edge);
    }
    if matches!(call.op.grad, Grad::None) || !edges.iter().any(Edge::is_some) {
        written.iter().for_each(|t| t.rebase(Edge::None, call.site));
        return Ok(());
    }
    let (keep_in, keep_out) = grad_reads(call, |i| edges[i].is_some())?;
    let bit = |m: u64, i: usize| m >> i.min(63) & 1 == 1;
    let mut saved: SmallVec<[Option<Saved>; 4]> = SmallVec::new();
    for (i, t) in inputs.iter().enumerate() {
        // What an in-place call has overwritten is gone: a rule that reads it gets the error, not the new value.
        let overwritten = || call.inputs[i].is_some_and(|t| written.iter().any(|w| share_memory(w, t)));
        saved.push(match t.filter(|_| bit(keep_in, i)) {
            None => None,
            Some(t) if overwritten() => Some(Saved { kept: SavedData::Tensor(t.overwritten()), version: u64::MAX }),
            // A view is kept without its base, whose edge may lead to this node.
            Some(t) if t.base().is_some() => Some(save(t.shadow(), t.version())?),
            Some(t) => Some(save(t.clone(), t.version())?),
        });
    }
    let mut types: SmallVec<[Option<TypeRef>; 4]> = SmallVec::new();
    for t in call.inputs {
        types.push(t.and_then(|t| t.type_ref()));
    }
    let device = call.inputs.iter().flatten().next().map_or(Device::Cpu, |t| t.device());
    if !in_place {
        outs.iter().for_each(|t| written.push(t));
    }
    let outs = written;
    let mut node = Node::new(call.op, device, call.site, edges, types);
    if !call.attrs.is_empty() {
        node.attrs = call.attrs.clone();
    }
    if !call.runtime.is_empty() {
        node.runtime = call.runtime.clone();
    }
    node.inputs = Mutex::new(Some(saved));
    node.n_outputs = outs.len();
    let node = Arc::new(node);
    for (i, t) in outs.iter().enumerate() {
        match (t.dtype().passes_gradients() && !withheld.output(i), in_place) {
            (false, _) => {}
            (true, false) => t.set_edge(Edge::Node(node.clone(), i)),
            (true, true) => t.rebase(Edge::Node(node.clone(), i), call.site),
        }
    }
    // Kept without their edge: an output that held its own node would never be freed.
    if keep_out != 0 {
        let mut kept = SmallVec::new();
        for (i, t) in outs.iter().enumerate() {
            kept.push(if bit(keep_out, i) { Some(save(t.value(), t.version())?) } else { None });
        }
        *node.outputs.lock().unwrap_or_else(|e| e.into_inner()) = kept;
    }
    Ok(())
}

/// Records a user's function, whose backward is the user's code.
pub(super) fn record_custom(op: &'static Op, inputs: &[&Tensor], outs: &[Tensor], site: CallSite, custom: Custom) {
    let edges = inputs.iter().map(|t| t.edge()).collect();
    let types = inputs.iter().map(|t| t.type_ref()).collect();
    let device = inputs.first().map_or(Device::Cpu, |t| t.device());
    let mut node = Node::new(op, device, site, edges, types);
    node.n_outputs = outs.len();
    node.custom = Some(custom);
    let node = Arc::new(node);
    for (i, t) in outs.iter().enumerate() {
        if t.dtype().passes_gradients() {
            t.set_edge(Edge::Node(node.clone(), i));
        }
    }
}
