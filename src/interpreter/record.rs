//! Recording a call for backward: which tensors are kept, where gradients go.

use super::call::Call;
use crate::error::{CallSite, Result};
use crate::ops::{Grad, GradArg, Op, derived_args};
use crate::placement::Device;
use crate::tensor::{Custom, Edge, Node, Saved, Tensor};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Order of creation. Per rank it grows in program order, which is the same on every rank.
static ORDINAL: AtomicU64 = AtomicU64::new(1);

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

/// Gives the outputs their place in the graph. `inputs` are as they were boxed for the kernel.
pub(super) fn record(call: &Call<'_>, inputs: &[Option<Tensor>], outs: &[Tensor]) -> Result<()> {
    if matches!(call.op.grad, Grad::None) {
        return Ok(());
    }
    let needs = |i: usize| inputs[i].as_ref().is_some_and(|t| t.requires_grad());
    let (keep_in, keep_out) = saves(call.op, needs, inputs.len())?;
    let bit = |m: u64, i: usize| m >> i.min(63) & 1 == 1;
    let keep = |t: &Tensor| Saved { tensor: t.clone(), version: t.version() };
    // What an in-place call has overwritten is gone: a rule that reads it gets the error, not the new value.
    let overwritten = |i: usize| matches!((call.given, call.inputs[i]), (Some(g), Some(t)) if g.same(t));
    let node = Arc::new(Node {
        ordinal: ORDINAL.fetch_add(1, Ordering::Relaxed),
        op: call.op,
        attrs: call.attrs.clone(),
        runtime: call.runtime.clone(),
        edges: inputs.iter().map(|t| t.as_ref().map_or(Edge::None, |t| t.edge())).collect(),
        input_types: inputs.iter().map(|t| t.as_ref().map(|t| t.ty().clone())).collect(),
        input_globals: call.inputs.iter().map(|t| t.and_then(|t| t.global()).cloned()).collect(),
        inputs: Mutex::new(Some(
            inputs
                .iter()
                .enumerate()
                .map(|(i, t)| {
                    let saved = t.as_ref().filter(|_| bit(keep_in, i)).map(keep)?;
                    Some(if overwritten(i) { Saved { version: u64::MAX, ..saved } } else { saved })
                })
                .collect(),
        )),
        outputs: Mutex::new(SmallVec::new()),
        n_outputs: outs.len(),
        watched: Mutex::default(),
        device: call.inputs.iter().flatten().next().map_or(Device::Cpu, |t| t.device()),
        site: call.site,
        custom: None,
    });
    for (i, t) in outs.iter().enumerate() {
        if t.dtype().is_float() {
            t.set_edge(Edge::Node(node.clone(), i));
        }
    }
    // Kept without their edge: an output that held its own node would never be freed.
    *node.outputs.lock().unwrap_or_else(|e| e.into_inner()) = outs
        .iter()
        .enumerate()
        .map(|(i, t)| bit(keep_out, i).then(|| Saved { tensor: t.detach(), version: t.version() }))
        .collect();
    Ok(())
}

/// Records a user's function, whose backward is the user's code.
pub(super) fn record_custom(op: &'static Op, inputs: &[&Tensor], outs: &[Tensor], site: CallSite, custom: Custom) {
    let node = Arc::new(Node {
        ordinal: ORDINAL.fetch_add(1, Ordering::Relaxed),
        op,
        attrs: SmallVec::new(),
        runtime: SmallVec::new(),
        edges: inputs.iter().map(|t| t.edge()).collect(),
        input_types: inputs.iter().map(|t| Some(t.ty().clone())).collect(),
        input_globals: inputs.iter().map(|t| t.global().cloned()).collect(),
        inputs: Mutex::new(Some(SmallVec::new())),
        outputs: Mutex::new(SmallVec::new()),
        n_outputs: outs.len(),
        watched: Mutex::default(),
        device: inputs.first().map_or(Device::Cpu, |t| t.device()),
        site,
        custom: Some(custom),
    });
    for (i, t) in outs.iter().enumerate() {
        if t.dtype().is_float() {
            t.set_edge(Edge::Node(node.clone(), i));
        }
    }
}
