//! Recording a call for backward: which tensors are kept, where gradients go.

use super::alias;
use super::call::Call;
use crate::error::{CallSite, Result};
use crate::ops::{Grad, GradArg, Op, derived_args};
use crate::placement::Device;
use crate::tensor::{Custom, Edge, Node, Saved, Tensor, share_memory};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};

/// Which inputs and outputs the gradient rule reads, given which inputs want a gradient.
fn saves(op: &Op, needs: impl Fn(usize) -> bool, n: usize) -> Result<(u64, u64)> {
    let (mut ins, mut outs) = (0u64, 0u64);
    match &op.grad {
        Grad::Missing | Grad::None => {}
        Grad::FromExpr => {
            for i in (0..n).filter(|i| needs(*i)) {
                let a = derived_args(op, i)?;
                ins |= a.inputs.iter().fold(0, |m, i| m | 1 << i);
                outs |= a.output as u64;
            }
        }
        Grad::Wiring(wires) => {
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

/// Gives the outputs their place in the graph. `inputs` are as they were boxed for the kernel. A call that writes in place
/// gives the tensors written their new edge; without a gradient that is none.
pub(super) fn record(call: &Call<'_>, inputs: &[Option<&Tensor>], outs: &[Tensor]) -> Result<()> {
    let written: SmallVec<[&Tensor; 1]> = alias::written(call).collect();
    let needs = |i: usize| inputs[i].is_some_and(|t| t.requires_grad());
    if matches!(call.op.grad, Grad::None) || !(0..inputs.len()).any(needs) {
        written.iter().for_each(|t| t.rebase(Edge::None, call.site));
        return Ok(());
    }
    let (keep_in, keep_out) = saves(call.op, needs, inputs.len())?;
    let bit = |m: u64, i: usize| m >> i.min(63) & 1 == 1;
    // A view is kept without its base, whose edge may lead to this node.
    let keep =
        |t: &Tensor| Saved { tensor: if t.base().is_some() { t.shadow() } else { t.clone() }, version: t.version() };
    // What an in-place call has overwritten is gone: a rule that reads it gets the error, not the new value.
    let overwritten = |i: usize| call.inputs[i].is_some_and(|t| written.iter().any(|w| share_memory(w, t)));
    let gone = |t: &Tensor| Saved { tensor: t.overwritten(), version: u64::MAX };
    let edges = inputs.iter().map(|t| t.map_or(Edge::None, |t| t.edge())).collect();
    let types = inputs.iter().map(|t| t.map(|t| t.ty().clone())).collect();
    let device = call.inputs.iter().flatten().next().map_or(Device::Cpu, |t| t.device());
    let mut node = Node::new(call.op, device, call.site, edges, types);
    node.attrs = call.attrs.clone();
    node.runtime = call.runtime.clone();
    node.input_globals = call.inputs.iter().map(|t| t.and_then(|t| t.global()).cloned()).collect();
    let saved = inputs.iter().enumerate().map(|(i, t)| {
        let t = t.filter(|_| bit(keep_in, i))?;
        Some(if overwritten(i) { gone(t) } else { keep(t) })
    });
    node.inputs = Mutex::new(Some(saved.collect()));
    let outs: SmallVec<[&Tensor; 2]> =
        if written.is_empty() { outs.iter().collect() } else { written.iter().copied().collect() };
    node.n_outputs = outs.len();
    let node = Arc::new(node);
    for (i, t) in outs.iter().enumerate() {
        match (t.dtype().is_float(), written.is_empty()) {
            (false, _) => {}
            (true, true) => t.set_edge(Edge::Node(node.clone(), i)),
            (true, false) => t.rebase(Edge::Node(node.clone(), i), call.site),
        }
    }
    // Kept without their edge: an output that held its own node would never be freed.
    *node.outputs.lock().unwrap_or_else(|e| e.into_inner()) = outs
        .iter()
        .enumerate()
        .map(|(i, t)| bit(keep_out, i).then(|| Saved { tensor: t.value(), version: t.version() }))
        .collect();
    Ok(())
}

/// Records a user's function, whose backward is the user's code.
pub(super) fn record_custom(op: &'static Op, inputs: &[&Tensor], outs: &[Tensor], site: CallSite, custom: Custom) {
    let edges = inputs.iter().map(|t| t.edge()).collect();
    let types = inputs.iter().map(|t| Some(t.ty().clone())).collect();
    let device = inputs.first().map_or(Device::Cpu, |t| t.device());
    let mut node = Node::new(op, device, site, edges, types);
    node.input_globals = inputs.iter().map(|t| t.global().cloned()).collect();
    node.n_outputs = outs.len();
    node.custom = Some(custom);
    let node = Arc::new(node);
    for (i, t) in outs.iter().enumerate() {
        if t.dtype().is_float() {
            t.set_edge(Edge::Node(node.clone(), i));
        }
    }
}
