//! Building a dispatch plan: logical inference → candidate signatures → choice → boxing plans → physical shapes → kernel.

use super::cache::{DispatchPlan, InputBoxing};
use super::call::{Call, Target};
use crate::boxing::{Choice, ChoiceInput, Layout, choose};
use crate::context::{AskedSbp, RankCtx};
use crate::control::flight::OpText;
use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use crate::ops::{AttrValue, InferCtx, KernelDef, NdSignature, TensorType};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp, check_layout, check_size, shard_box};
use crate::tensor::{GlobalRef, Tensor, intern_global, intern_local};
use crate::vm::KernelPlan;
use oflow_kernels::{DTypeKind, ShardBox};
use smallvec::SmallVec;
use std::hash::Hasher;
use std::sync::Arc;

type Types = Vec<Option<TensorType>>;

fn types(inputs: &[Option<&Tensor>]) -> Types {
    inputs.iter().map(|t| t.map(|t| t.ty().clone())).collect()
}

/// The plan of a call on local tensors.
pub fn build_local(ctx: &RankCtx, call: &Call<'_>, device: Device) -> Result<DispatchPlan> {
    let ins = types(call.inputs);
    let kinds: SmallVec<[DTypeKind; 4]> = call.runtime.iter().map(|s| s.kind()).collect();
    let infer = InferCtx { op: call.op, inputs: &ins, attrs: &call.attrs, runtime_kinds: &kinds };
    let mut outs = call.op.infer(&infer)?;
    check_given(call, &mut outs)?;
    ctx.device(device)?;
    let boxes_in: Vec<Option<ShardBox>> = ins.iter().map(|t| t.as_ref().map(|t| ShardBox::whole(&t.shape))).collect();
    let boxes_out: Vec<ShardBox> = outs.iter().map(|t| ShardBox::whole(&t.shape)).collect();
    let kernel = kernel_plan(call, &infer, device, &boxes_in, &boxes_out, &outs)?;
    Ok(DispatchPlan {
        inputs: SmallVec::from_elem(None, ins.len()),
        kernel,
        lowering: None,
        out_local: Some(outs.iter().map(|t| intern_local(&t.shape, t.dtype, device)).collect()),
        out_global: SmallVec::new(),
        after: None,
        stream_key: 0,
        text: OpText::default(),
    })
}

/// An elementwise result that is written in place is converted to the tensor's dtype, unless that is of a lower kind.
fn check_given(call: &Call<'_>, outs: &mut [TensorType]) -> Result<()> {
    let Some(given) = call.given else { return Ok(()) };
    let lower = || given.dtype().is_builtin() && outs[0].dtype.kind() <= given.dtype().kind();
    if call.op.expr.is_some() && lower() {
        outs[0].dtype = given.dtype();
    }
    if *given.ty() != outs[0] {
        let why = if given.shape() != outs[0].shape.as_slice() { Error::shape } else { Error::dtype };
        return Err(why(format!("the result {} cannot be written in place into {}", outs[0], given.ty()))
            .help("use the op that returns a new tensor"));
    }
    Ok(())
}

/// The plan of a call on global tensors (or of a source op with a global target) whose output 0 is asked for in a layout.
pub fn build_global(
    ctx: &RankCtx,
    call: &Call<'_>,
    placement: &Placement,
    asked: Option<&AskedSbp>,
) -> Result<DispatchPlan> {
    let ins = types(call.inputs);
    let kinds: SmallVec<[DTypeKind; 4]> = call.runtime.iter().map(|s| s.kind()).collect();
    let infer = InferCtx { op: call.op, inputs: &ins, attrs: &call.attrs, runtime_kinds: &kinds };
    let mut outs = call.op.infer(&infer)?;
    outs.iter().try_for_each(|t| check_size(&t.shape, t.dtype, placement))?;
    check_given(call, &mut outs)?;
    let (sig, after) = match call.target {
        Some(Target::Global(_, want)) => source_signature(ctx, placement, &outs, want)?,
        _ => {
            let request = asked.map(|a| requested(a, &outs, placement)).transpose()?.flatten();
            let sig = chosen(call, &infer, &outs, placement, request)?;
            let after = match request {
                Some(r) if sig.outputs[0] != *r => {
                    Some(boxing_to(ctx, &intern_global(outs[0].clone(), placement, &sig.outputs[0]), placement, r)?)
                }
                _ => None,
            };
            (sig, after)
        }
    };
    let out_global: SmallVec<[GlobalRef; 2]> =
        outs.iter().zip(&sig.outputs).map(|(t, s)| intern_global(t.clone(), placement, s)).collect();
    let mut inputs: SmallVec<[Option<InputBoxing>; 4]> = SmallVec::new();
    for (t, want) in call.inputs.iter().zip(&sig.inputs) {
        inputs.push(match t.and_then(|t| t.global()) {
            Some(g) if g.sbp != *want => Some(boxing_to(ctx, g, placement, want)?),
            _ => None,
        });
    }
    let rank = ctx.rank();
    let mut plan = DispatchPlan {
        inputs,
        kernel: None,
        lowering: sig.lowering.map(|l| (l, sig.outputs.clone())),
        out_local: None,
        out_global,
        after,
        stream_key: stream_key(call, placement, &outs, &sig, asked),
        text: OpText::new(match (call.target, outs.first()) {
            // A call that makes a tensor has nothing else that says which.
            (Some(Target::Global(_, sbp)), Some(out)) => format!("{}({out}) on {placement} as {sbp}", call.op.name()),
            _ => call.short(),
        }),
    };
    if let Some(pos) = placement.position(rank) {
        let boxes_in: Vec<Option<ShardBox>> = ins
            .iter()
            .zip(&sig.inputs)
            .map(|(t, s)| t.as_ref().map(|t| shard_box(&t.shape, placement, s, pos)))
            .collect();
        let boxes_out: Vec<ShardBox> =
            outs.iter().zip(&sig.outputs).map(|(t, s)| shard_box(&t.shape, placement, s, pos)).collect();
        let device = placement.device();
        ctx.device(device)?;
        let local = boxes_out.iter().zip(&outs).map(|(b, t)| intern_local(&b.size, t.dtype, device));
        plan.out_local = Some(local.collect());
        if plan.lowering.is_none() {
            plan.kernel = kernel_plan(call, &infer, device, &boxes_in, &boxes_out, &outs)?;
        }
    }
    Ok(plan)
}

pub(super) fn check_world(ctx: &RankCtx, placement: &Placement) -> Result<()> {
    match placement.ranks().iter().find(|r| **r >= ctx.world()) {
        Some(r) => {
            Err(Error::placement(format!("{placement} needs rank {r}, but the world has {} ranks", ctx.world()))
                .help("start the program with `oflaunch --nproc N`"))
        }
        None => Ok(()),
    }
}

/// Boxing of a global type to another nd-SBP on a placement under the job's cost model, with this rank's shard type.
pub fn boxing_to(ctx: &RankCtx, from: &GlobalRef, placement: &Placement, to: &NdSbp) -> Result<InputBoxing> {
    check_layout(&from.ty.shape, from.ty.dtype, placement, to)?;
    check_world(ctx, placement)?;
    let src = Layout::new(&from.placement, from.sbp.clone());
    let dst = Layout::new(placement, to.clone());
    let to = intern_global(from.ty.clone(), placement, to);
    let local = to.shard_dims(ctx.rank()).map(|d| intern_local(&d, from.ty.dtype, placement.device()));
    let plan = ctx.planner().plan(&from.ty.shape, from.ty.dtype, &src, &dst)?;
    if plan.warn_of_memory() {
        tracing::warn!(
            "{src} -> {dst} of {}: no way takes as little memory as the limit of {} B asks; this one takes {} B",
            from.ty,
            plan.model.extra_memory.unwrap_or_default(),
            plan.extra_bytes(),
        );
    }
    Ok(InputBoxing { to, local, plan })
}

/// A source op makes S and B layouts itself (each rank only its shard); P is boxed from B afterwards.
fn source_signature(
    ctx: &RankCtx,
    placement: &Placement,
    outs: &[TensorType],
    want: &NdSbp,
) -> Result<(NdSignature, Option<InputBoxing>)> {
    let made = want.map(|s| if s.is_partial() { Sbp::Broadcast } else { s });
    for t in outs {
        check_layout(&t.shape, t.dtype, placement, want)?;
    }
    let after = match want.has_partial() {
        true => Some(boxing_to(ctx, &intern_global(outs[0].clone(), placement, &made), placement, want)?),
        false => None,
    };
    let outputs = outs.iter().map(|_| made.clone()).collect();
    Ok((NdSignature { inputs: SmallVec::new(), outputs, lowering: None }, after))
}

/// What is asked of output 0, which must be a layout that it can have; nothing of an op without outputs.
fn requested<'a>(asked: &'a AskedSbp, outs: &[TensorType], placement: &Placement) -> Result<Option<&'a NdSbp>> {
    let Some(out) = outs.first() else { return Ok(None) };
    let by = if asked.op.is_some() { "pin_sbp" } else { "with_sbp" };
    check_layout(&out.shape, out.dtype, placement, &asked.sbp).map_err(|e| {
        let help = e.help_text().unwrap_or("ask for a layout that the result can have, around that call alone");
        Error::sbp(format!(
            "the result {out} cannot be {}, which `{by}` at {} asks for: {}",
            asked.sbp,
            asked.site,
            e.message()
        ))
        .help(help)
    })?;
    Ok(Some(&asked.sbp))
}

fn chosen(
    call: &Call<'_>,
    infer: &InferCtx<'_>,
    outs: &[TensorType],
    placement: &Placement,
    request: Option<&NdSbp>,
) -> Result<NdSignature> {
    let Choice { sig, unproven } = choice(call, infer, outs, placement, request, choose)?;
    tracing::trace!(op = call.op.name(), inputs = ?sig.inputs, outputs = ?sig.outputs, ?unproven, "choice");
    Ok(sig)
}

/// Asks something of the choice that a call is to make; `request` is the layout that its result is to have.
pub fn with_choice<R>(
    call: &Call<'_>,
    placement: &Placement,
    request: Option<&NdSbp>,
    ask: impl FnOnce(&ChoiceInput<'_>) -> Result<R>,
) -> Result<R> {
    let ins = types(call.inputs);
    let kinds: SmallVec<[DTypeKind; 4]> = call.runtime.iter().map(|s| s.kind()).collect();
    let infer = InferCtx { op: call.op, inputs: &ins, attrs: &call.attrs, runtime_kinds: &kinds };
    let outs = call.op.infer(&infer)?;
    choice(call, &infer, &outs, placement, request, ask)
}

fn choice<R>(
    call: &Call<'_>,
    infer: &InferCtx<'_>,
    outs: &[TensorType],
    placement: &Placement,
    request: Option<&NdSbp>,
    ask: impl FnOnce(&ChoiceInput<'_>) -> Result<R>,
) -> Result<R> {
    let sbps: Vec<Option<NdSbp>> =
        call.inputs.iter().map(|t| t.and_then(|t| t.global()).map(|g| g.sbp.clone())).collect();
    let needs: Vec<bool> = call.inputs.iter().map(|t| call.recording && t.is_some_and(|t| t.requires_grad())).collect();
    // A mutable input, and an input that is also the given output, stay where they are.
    let fixed: Vec<bool> = call
        .inputs
        .iter()
        .enumerate()
        .map(|(i, t)| call.op.sig.mutates(i) || matches!((t, call.given), (Some(t), Some(g)) if t.same(g)))
        .collect();
    ask(&ChoiceInput {
        op: call.op,
        infer,
        outs,
        placement,
        sbps: &sbps,
        needs_grad: &needs,
        fixed_inputs: &fixed,
        given_out: call.given.and_then(|g| g.global()).map(|g| &g.sbp),
        request,
        runtime: &call.runtime,
    })
}

/// Physical inference and the kernel; none where there is nothing to compute.
fn kernel_plan(
    call: &Call<'_>,
    logical: &InferCtx<'_>,
    device: Device,
    ins: &[Option<ShardBox>],
    outs: &[ShardBox],
    out_types: &[TensorType],
) -> Result<Option<Arc<KernelPlan>>> {
    let op = call.op;
    if !outs.is_empty() && outs.iter().all(|b| b.size.contains(&0)) && !op.traits.run_empty {
        return Ok(None);
    }
    let attrs = op.localized(logical, ins, outs)?;
    let physical: Types = logical
        .inputs
        .iter()
        .zip(ins)
        .map(|(t, b)| t.as_ref().zip(b.as_ref()).map(|(t, b)| TensorType::new(&b.size, t.dtype)))
        .collect();
    let phys_out: Vec<TensorType> =
        out_types.iter().zip(outs).map(|(t, b)| TensorType::new(&b.size, t.dtype)).collect();
    let infer = InferCtx { op, inputs: &physical, attrs: &attrs, runtime_kinds: logical.runtime_kinds };
    let k = KernelDef::select(op, device, &infer)?;
    let state = k.state.as_ref().map(|f| f(&infer, &phys_out)).transpose()?;
    let workspace = k.workspace.as_ref().map_or(Ok(0), |f| f(&infer, &phys_out))?;
    Ok(Some(Arc::new(KernelPlan {
        op,
        name: k.name.clone(),
        run: k.run.clone(),
        state,
        attrs,
        input_boxes: ins.iter().cloned().collect(),
        output_boxes: outs.iter().cloned().collect(),
        workspace,
    })))
}

/// Hash of op, attributes, shapes, dtypes, SBPs and placement: equal on every rank of a correct program. Never ids or
/// pointers; each part ends with a mark, so that no two calls read alike.
fn stream_key(
    call: &Call<'_>,
    placement: &Placement,
    outs: &[TensorType],
    sig: &NdSignature,
    asked: Option<&AskedSbp>,
) -> u64 {
    let mut h = FixedHasher::default();
    let mut add = |text: &str| {
        h.write(text.as_bytes());
        h.write_usize(text.len());
    };
    add(&call.op.full_name());
    for a in &call.attrs {
        match a {
            AttrValue::Bytes(bytes) => add(&format!("{bytes:?}")),
            other => add(&other.to_string()),
        }
    }
    for t in call.inputs {
        add(&t.map_or("none".to_string(), |t| t.short()));
    }
    outs.iter().for_each(|t| add(&t.to_string()));
    add(&format!("{:?} {:?}", sig.inputs, sig.outputs));
    add(&format!("{} {:?}", placement.device(), placement.dims()));
    add(&format!("{:?} {:?}", placement.ranks(), asked.map(|a| a.sbp.to_string())));
    add(if call.given.is_some() { "in place" } else { "" });
    h.finish()
}
