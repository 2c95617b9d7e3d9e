//! Carries out one node of a program: what runs of graphs and the second run of activation checkpointing have in common.
//!
//! Nothing is inferred, chosen or recorded. A call has the plan that its signature says, from the dispatch cache of the rank: nodes with
//! equal keys share a plan, and a call without a signature shares it with the eager call that is not recorded.

use super::boxing::{BoxingReason, plan_cx};
use super::cache::DispatchPlan;
use super::call::{Call, Outputs};
use super::decide::{check_there, text_of};
use super::key::key_of_node;
use super::stages::{run_captured, run_captured_layout};
use super::state;
use crate::context::RankCtx;
use crate::control::flight::OpText;
use crate::error::{Error, Result};
use crate::ops::{LayoutOp, RuntimeAttrs};
use crate::plan::{Input, Request, Step, Target, TypeRef, Where, plan};
use crate::program::{BoxedFor, CallNode, Node, Program, ValueId};
use crate::tensor::Tensor;
use oflow_kernels::DTypeKind;
use smallvec::SmallVec;
use std::sync::Arc;

/// Makes the call of a node on these tensors, and records it for backward if one of them requires a gradient.
pub(super) fn run_recorded(
    ctx: &RankCtx,
    (node, call): (&Node, &CallNode),
    plan: Option<&DispatchPlan>,
    inputs: &[Option<&Tensor>],
) -> Result<Outputs> {
    let mut made = made_of((node, call), call.runtime.clone(), inputs);
    made.recording = made.is_recorded();
    run(ctx, call, made, plan)
}

/// Makes the call of a node on these tensors, with the plan that [`planned`] gave.
pub(super) fn run_call(
    ctx: &RankCtx,
    (node, call): (&Node, &CallNode),
    plan: Option<&DispatchPlan>,
    runtime: RuntimeAttrs,
    inputs: &[Option<&Tensor>],
    given: Option<&Tensor>,
) -> Result<Outputs> {
    run(ctx, call, made_of((node, call), runtime, inputs).given(given), plan)
}

fn made_of<'a>(
    (node, call): (&Node, &'a CallNode),
    runtime: RuntimeAttrs,
    inputs: &'a [Option<&'a Tensor>],
) -> Call<'a> {
    Call::of(call.op, inputs, call.attrs.clone(), runtime, node.site).target(call.target.as_ref())
}

fn run(ctx: &RankCtx, call: &CallNode, mut made: Call<'_>, plan: Option<&DispatchPlan>) -> Result<Outputs> {
    let outs = match plan {
        None => {
            let what = call.op.layout.ok_or_else(|| Error::registry("a call of a program has no plan"))?;
            run_captured_layout(&mut made, what, boxing_reason(call, what))
        }
        Some(plan) => run_captured(ctx, &mut made, plan),
    };
    outs.map_err(|e| e.in_call(|| made.short()))
}

/// The reason of a call that changes a layout.
pub(super) fn boxing_reason(call: &CallNode, what: LayoutOp) -> BoxingReason {
    match call.boxed_for {
        Some(BoxedFor::Gradient) => BoxingReason::Gradient,
        Some(BoxedFor::Op(op)) => BoxingReason::Needed(op),
        None => BoxingReason::Asked(what.function()),
    }
}

/// The plan of a node that kernels carry out, by its signature; `None` of others.
pub(super) fn planned(ctx: &RankCtx, program: &Program, node: &Node) -> Result<Option<Arc<DispatchPlan>>> {
    let Some(call) = node.call().filter(|c| c.op.layout.is_none()) else { return Ok(None) };
    let found = state::planned(ctx, &key_of_node(program, node, call), || make(ctx, program, node, call));
    found.map(Some).map_err(|e| e.in_call(|| call.op.name().to_string()).at(node.site))
}

/// As [`planned`], for a node of a graph: a kernel with state for each node has it in a plan of the node's own.
pub(super) fn planned_in_graph(ctx: &RankCtx, program: &Program, node: &Node) -> Result<Option<Arc<DispatchPlan>>> {
    let found = planned(ctx, program, node)?;
    let per_node = |s: &Step| matches!(s, Step::Kernel(k) if k.kernel.as_ref().is_some_and(|k| k.per_node));
    match (&found, node.call()) {
        (Some(decided), Some(call)) if decided.plan.steps.iter().any(per_node) => {
            let own = make(ctx, program, node, call);
            own.map(|own| Some(Arc::new(own))).map_err(|e| e.in_call(|| call.op.name().to_string()).at(node.site))
        }
        _ => Ok(found),
    }
}

fn make(ctx: &RankCtx, program: &Program, node: &Node, call: &CallNode) -> Result<DispatchPlan> {
    let into = node.written_into();
    let input = |v: &Option<ValueId>| {
        let v = (*v)?;
        Some(Input { ty: program.ty(v).clone(), needs_grad: false, given: into == Some(v) })
    };
    let inputs: SmallVec<[Option<Input>; 4]> = node.inputs.iter().map(input).collect();
    let runtime_kinds: SmallVec<[DTypeKind; 4]> = call.runtime.iter().map(|s| s.kind()).collect();
    let of_type = |v: ValueId| match program.ty(v) {
        TypeRef::Local(l) => Where::Local(l.device),
        TypeRef::Global(g) => Where::Global(&g.placement),
    };
    let place = match (&call.target, node.needs().next()) {
        (Some(Target::Local(d)), _) => Where::Local(*d),
        (Some(Target::Global(p, _)), _) => Where::Global(p),
        (None, Some(v)) => of_type(v),
        (None, None) => return Err(Error::argument("a call without inputs has no target")),
    };
    check_there(ctx, call.op, place)?;
    let target = match &call.target {
        Some(Target::Global(_, sbp)) => Some(sbp),
        _ => None,
    };
    let request = Request {
        op: call.op,
        attrs: &call.attrs,
        runtime_kinds: &runtime_kinds,
        inputs: &inputs,
        place,
        target,
        given: into.map(|v| program.ty(v).clone()),
        keep: false,
        asked: None,
        signature: call.signature.as_ref(),
    };
    let plan = plan(&plan_cx(ctx), &request)?;
    let text = match place {
        Where::Local(_) => OpText::default(),
        Where::Global(p) => OpText::new(text_of(call.op, call.target.as_ref(), &plan, p, || {
            let types: Vec<String> =
                inputs.iter().map(|i| i.as_ref().map_or("none".to_string(), |i| i.ty.short())).collect();
            format!("{}({}) on {p}", call.op.name(), types.join(", "))
        })),
    };
    Ok(DispatchPlan { plan, text })
}
