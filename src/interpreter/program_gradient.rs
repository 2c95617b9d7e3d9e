//! Calls of a captured program made once more inside of a capture, recorded for backward: the gradient of a program is taken from them by the
//! engine and the rules that eager tensors have ([`engine`](super::engine)).
//!
//! The calls keep their signatures. Only those are made that lead to the outputs, so what the program writes beside (steps of optimizers,
//! statistics) is left out.

use super::capture::{Capture, Captured};
use super::layout::box_for;
use super::node::{planned, run_recorded};
use crate::context::{here, set_grad_enabled};
use crate::error::{Error, Result};
use crate::program::{Node, OutsideKind, ValueId, Work, described};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

/// Refuses values that the program does not have, or that have no gradient.
pub(crate) fn check_differentiable(of: &Captured, values: &[ValueId]) -> Result<()> {
    for v in values {
        let Some(ty) = of.program.values.get(v.index()) else {
            return Err(Error::argument(format!("the graph has no value {v}; it has {}", of.program.values.len()))
                .help("the program of the graph has the values of its inputs by name, and of what it returns"));
        };
        if !ty.ty().dtype.has_gradients() {
            return Err(Error::autograd(format!("{v}, {}, has no gradient", described(ty)))
                .help("only values of float and complex numbers have one"));
        }
    }
    Ok(())
}

/// Refuses outputs that gradients cannot begin at.
pub(crate) fn check_outputs(of: &Captured, outputs: &[ValueId]) -> Result<()> {
    check_differentiable(of, outputs)?;
    let is_number = |v: &&ValueId| {
        let ty = of.program.ty(**v).ty();
        ty.len() == 1 && !ty.dtype.is_complex()
    };
    match outputs.iter().find(|v| !is_number(v)) {
        Some(v) => {
            let ty = described(of.program.ty(*v));
            Err(Error::autograd(format!("{v}, {ty}, is not a single real number"))
                .help("reduce it in the graph: `sum`, `mean`, `abs`"))
        }
        None => Ok(()),
    }
}

/// Makes the calls of a program that lead to `outputs` inside of the capture in progress. Gradients go to the values `wanted` alone. Returns
/// the symbols of both.
///
/// # Errors
/// One of the calls writes in place, stands under a guard or has numbers of the host, or is refused.
pub(crate) fn call_again(
    capture: &Capture,
    of: &Captured,
    outputs: &[ValueId],
    wanted: &[ValueId],
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let (program, _recorded) = (&of.program, set_grad_enabled(true));
    let mut values: Vec<Option<Tensor>> = vec![None; program.values.len()];
    let is_wanted = |v: ValueId| wanted.contains(&v);
    // Where nothing else leads to it a gradient, a wanted value begins here.
    let as_wanted = |t: Tensor| if t.requires_grad() { Ok(t) } else { t.value().requires_grad_(true) };
    let steps = program.leading_to(outputs);
    let mut read = vec![false; program.values.len()];
    let named = outputs.iter().chain(wanted).copied();
    steps.iter().flat_map(|(n, _)| program.nodes[*n].needs()).chain(named).for_each(|v| read[v.index()] = true);
    for (o, t) in program.outside.iter().zip(&of.outside) {
        let symbol = match o.kind {
            OutsideKind::Input => capture.input(&o.name, t, o.site)?,
            kind if read[o.value.index()] => capture.outside(t, kind, o.site)?,
            _ => continue,
        };
        let value = symbol.value();
        values[o.value.index()] = Some(if is_wanted(o.value) { as_wanted(value)? } else { value });
    }
    for (n, _) in &steps {
        let node = &program.nodes[*n];
        let outs = call_node(of, node, &values).map_err(|e| e.at(node.site))?;
        for (v, t) in node.outputs.iter().zip(outs) {
            values[v.index()] = Some(if is_wanted(*v) { as_wanted(t)? } else { t });
        }
    }
    let found = |all: &[ValueId]| -> Result<Vec<Tensor>> {
        let missing = |v: &ValueId| Error::autograd(format!("{v} does not lead to the outputs"));
        all.iter().map(|v| values[v.index()].clone().ok_or_else(|| missing(v))).collect()
    };
    Ok((found(outputs)?, found(wanted)?))
}

fn call_node(of: &Captured, node: &Node, values: &[Option<Tensor>]) -> Result<SmallVec<[Tensor; 2]>> {
    let program = &of.program;
    if !node.writes.is_empty() || node.guard.is_some() {
        let what = if node.guard.is_some() { "stands under a guard" } else { "writes in place" };
        return Err(Error::unsupported(format!("a call that leads to the outputs {what}, which has no gradient"))
            .help("capture the function whose gradient is wanted, with ops that return new tensors"));
    }
    let missing = || Error::registry("a value that a node of a program needs is missing");
    let mut inputs: SmallVec<[Option<&Tensor>; 4]> = SmallVec::new();
    for v in &node.inputs {
        inputs.push(v.map(|v| values[v.index()].as_ref().ok_or_else(missing)).transpose()?);
    }
    match &node.work {
        Work::Call(call) => {
            let ctx = here();
            let plan = planned(&ctx, program, node)?;
            run_recorded(&ctx, (node, call), plan.as_deref(), &inputs)
        }
        Work::Box(op) => {
            let to = node.outputs.first().and_then(|v| program.ty(*v).global()).ok_or_else(missing)?;
            let t = inputs.first().copied().flatten().ok_or_else(missing)?;
            // A gradient passes a boxing that a call needs in the layout that it has.
            let boxed = box_for(op, t, to, node.site)?;
            boxed.set_edge(t.edge());
            Ok(smallvec![boxed])
        }
        Work::Host(_) => Ok(SmallVec::new()),
        Work::Repeat(_) => {
            Err(Error::unsupported("a repeated section leads to the outputs; a graph has no gradient through one")
                .help("call `backward` inside of the section, or repeat its calls with a loop of the closure"))
        }
    }
}
