//! The way of one call: mode → cache → plan → boxing → kernel → handles → autograd.

use super::alias;
use super::autocast;
use super::boxing::boxed;
use super::cache::{DispatchPlan, cache};
use super::call::{Call, Mode};
use super::emit::EagerEmit;
use super::key::{key_of, with_runtime};
use super::layout;
use super::plan::{build_global, build_local, check_world};
use super::policy::{self, Cause};
use super::record::record;
use crate::context::{AskedSbp, RankCtx, asked_sbp, current, current_rank, grad_enabled, no_grad, nothing_asked};
use crate::error::{Error, Result};
use crate::ops::{GivenValues, LowerCall};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use crate::tensor::{LocalTensor, Tensor};
use crate::vm::{Instruction, KernelWork, StreamKind, Work};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Scalar, View};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Outputs of a call.
pub type Outputs = SmallVec<[Tensor; 2]>;

/// Runs a call. Errors name the call and the user's line.
///
/// Under autocast the inputs are cast first, by calls of their own: the dtypes that the plan was made for are in the key, so
/// the mode itself need not be.
pub fn dispatch(call: Call<'_>) -> Result<Outputs> {
    match autocast::wanted(&call) {
        None => issue(call),
        Some(dtype) => autocast::issue_in(dtype, call),
    }
}

/// Runs a call with its inputs as they are.
pub(super) fn issue(mut call: Call<'_>) -> Result<Outputs> {
    call.recording =
        grad_enabled() && call.inputs.iter().flatten().copied().chain(call.given).any(|t| t.requires_grad());
    let result = match (allowed(&call), call.op.layout) {
        (Err(e), _) => Err(e),
        (_, Some(what)) => layout::run(&call, what, Cause::Asked(what.function())),
        (_, None) => match call.mode() {
            Ok(Mode::Local(device)) => run_local(&mut call, device),
            Ok(Mode::Global(placement)) => run_global(&mut call, &placement),
            Err(e) => Err(e),
        },
    };
    result.map_err(|e| e.in_call(|| call.short()).at(call.site))
}

/// What every call is checked for, also one whose plan is known: the values of its runtime attributes, which no plan has
/// seen, and what it writes.
fn allowed(call: &Call<'_>) -> Result<()> {
    // A wrong number of runtime attributes is refused by inference.
    if let Some(check) = &call.op.values
        && call.runtime.len() == call.op.sig.runtime.len()
    {
        let dtypes: SmallVec<[Option<DType>; 4]> = call.inputs.iter().map(|t| t.map(|t| t.dtype())).collect();
        check(&GivenValues { dtypes: &dtypes, attrs: &call.attrs, runtime: &call.runtime })?;
    }
    if alias::writes(call) { alias::check(call) } else { Ok(()) }
}

/// Fills the seed and ordinal that a random op was not given. Global ops advance the global generator on every rank, also
/// on those outside the placement.
fn draw(ctx: &RankCtx, call: &mut Call<'_>, global: bool) {
    if !call.op.traits.random {
        return;
    }
    let (Some(s), Some(o)) = (call.op.sig.runtime_attr("seed"), call.op.sig.runtime_attr("ordinal")) else { return };
    if call.runtime[o] == Scalar::Int(-1) {
        let (seed, ordinal) = ctx.draw(global);
        call.runtime[s] = Scalar::Int(seed as i64);
        call.runtime[o] = Scalar::Int(ordinal as i64);
    }
}

/// The layout that the program asks of this call's result. A call that makes a tensor states it itself; one that writes in
/// place cannot change it.
fn asked(call: &Call<'_>, placement: &Placement) -> Result<Option<AskedSbp>> {
    let Some(asked) = asked_sbp(call.op, placement.axes()).filter(|_| call.target.is_none()) else { return Ok(None) };
    match call.given.and_then(|g| g.global()) {
        None => Ok(Some(asked)),
        Some(g) if asked.op.is_some() || g.sbp == asked.sbp => Ok(None),
        Some(g) => Err(Error::sbp(format!(
            "the result is written in place into a tensor that is {}, but `with_sbp` at {} asks for {}",
            g.sbp, asked.site, asked.sbp
        ))
        .help("use the op that returns a new tensor")),
    }
}

fn run_local(call: &mut Call<'_>, device: crate::placement::Device) -> Result<Outputs> {
    let ctx = current();
    let key = key_of(call, None);
    let cached = cache(&ctx).get(&key);
    let plan = match cached {
        Some(p) => p,
        None => {
            let p = Arc::new(build_local(&ctx, call, device)?);
            cache(&ctx).insert(key, p.clone());
            p
        }
    };
    draw(&ctx, call, false);
    let inputs: SmallVec<[Option<Tensor>; 4]> = call.inputs.iter().map(|t| t.cloned()).collect();
    if let Some(view) = local_view(call, &plan)? {
        if call.recording {
            record(call, &inputs, std::slice::from_ref(&view))?;
        }
        return Ok(smallvec![view]);
    }
    let mut locals = SmallVec::new();
    for t in &inputs {
        locals.push(match t {
            Some(t) => t.data()?,
            None => None,
        });
    }
    let outs = run_kernel(&ctx, call, &plan, locals)?.unwrap_or_default();
    let outs: Outputs = match call.given {
        Some(g) => smallvec![g.clone()],
        None => outs.into_iter().map(Tensor::from_local).collect(),
    };
    if call.recording {
        record(call, &inputs, &outs)?;
    }
    Ok(outs)
}

/// The result of a view op on a local tensor: another window onto its memory. None where strides cannot say it, in memory
/// or in the elements of the base; then the kernel copies.
fn local_view(call: &Call<'_>, plan: &DispatchPlan) -> Result<Option<Tensor>> {
    let (None, Some(view)) = (call.given, &call.op.view) else { return Ok(None) };
    let (Some(Some(source)), Some([ty])) = (call.inputs.first(), plan.out_local.as_deref()) else { return Ok(None) };
    let Some(input) = source.data()? else { return Ok(None) };
    let (offset, strides) = source.place_in_base();
    // A result without elements has no kernel, and is a view all the same.
    let attrs = plan.kernel.as_ref().map_or(&call.attrs, |k| &k.attrs);
    let see = |strides: &[isize]| view(input.dims(), strides, attrs, &ty.ty.shape);
    let (Some(memory), Some(place)) = (see(&input.strides), see(&strides)) else { return Ok(None) };
    // Without elements nothing is addressed, and the place may lie outside.
    let by = if ty.ty.shape.contains(&0) { 0 } else { memory.0 };
    let window = input.window(ty, by, memory.1)?;
    let place = ((offset as isize + place.0) as usize, place.1);
    Ok(Some(Tensor::view_of(source, window, place, grad_enabled(), call.site)))
}

fn run_global(call: &mut Call<'_>, placement: &Placement) -> Result<Outputs> {
    let ctx = current_rank()?;
    let asked = asked(call, placement)?;
    let key = key_of(call, asked.as_ref());
    let cached = cache(&ctx).get(&key);
    let plan = match cached {
        Some(p) => p,
        None => {
            let _span = tracing::debug_span!("dispatch_miss", op = call.op.name()).entered();
            check_world(&ctx, placement)?;
            let p = Arc::new(build_global(&ctx, call, placement, asked.as_ref())?);
            cache(&ctx).insert(key, p.clone());
            p
        }
    };
    policy::check_inputs(call, &plan, placement)?;
    draw(&ctx, call, true);
    let tag = ctx.next_call(call.op.name(), with_runtime(plan.stream_key, &call.runtime), call.site, &plan.text);
    // On every rank, also on those without a shard: what is saved for backward compares versions.
    alias::written(call).for_each(|t| t.bump_global_version());
    let mut inputs: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for (t, boxing) in call.inputs.iter().zip(&plan.inputs) {
        inputs.push(match (t, boxing) {
            (Some(t), Some(b)) => Some(boxed(&ctx, t, b, &tag)?),
            (t, _) => t.cloned(),
        });
    }
    let outs: Outputs = match &plan.lowering {
        Some((l, want)) => {
            run_lowering(call, *l, want, &inputs).map_err(|e| policy::in_lowering(e, call, &plan, placement))?
        }
        None => {
            let mut locals = SmallVec::new();
            for t in &inputs {
                locals.push(match t {
                    Some(t) => t.data()?,
                    None => None,
                });
            }
            let made = run_kernel(&ctx, call, &plan, locals)?;
            match call.given {
                Some(g) => smallvec![g.clone()],
                None => {
                    let mut shards = made.into_iter().flatten();
                    plan.out_global.iter().map(|g| Tensor::from_shard(g.clone(), shards.next())).collect()
                }
            }
        }
    };
    let mut outs = outs;
    if let (Some(b), Some(first)) = (&plan.after, outs.first_mut()) {
        *first = boxed(&ctx, first, b, &tag)?;
    }
    if call.op.view.is_some() && call.given.is_none() {
        outs.iter().for_each(Tensor::mark_global_view);
    }
    if call.recording {
        record(call, &inputs, &outs)?;
    }
    Ok(outs)
}

/// Allocates outputs and issues the kernel. None on a rank that has no part.
fn run_kernel(
    ctx: &RankCtx,
    call: &Call<'_>,
    plan: &DispatchPlan,
    mut inputs: SmallVec<[Option<LocalTensor>; 4]>,
) -> Result<Option<SmallVec<[LocalTensor; 2]>>> {
    let Some(out_types) = &plan.out_local else {
        // What is remembered of a tensor that changes is forgotten on every rank: whether a later call needs a boxing or a
        // cast must not differ.
        alias::written(call).for_each(Tensor::release_forms);
        return Ok(None);
    };
    let device =
        match out_types.first().map(|t| t.device).or_else(|| inputs.iter().flatten().next().map(|l| l.ty.device)) {
            Some(d) => d,
            None => return Ok(None),
        };
    let rt = ctx.device(device)?;
    // A shard of a view op's result: another window onto the input's. Global tensors are copied on write.
    if call.given.is_none()
        && let (Some(view), Some(k)) = (&call.op.view, &plan.kernel)
        && let Some(Some(input)) = inputs.first()
        && !plan.out_global.is_empty()
        && let Some((offset, strides)) = view(input.dims(), &input.strides, &k.attrs, &out_types[0].ty.shape)
    {
        return Ok(Some(smallvec![input.window(&out_types[0], offset, strides)?]));
    }
    let memory = alias::prepare(ctx, call, &mut inputs)?;
    let mut outs: SmallVec<[LocalTensor; 2]> = memory.given.into_iter().collect();
    if call.given.is_none() {
        for t in out_types {
            outs.push(LocalTensor::alloc(ctx, t)?);
        }
    }
    let Some(kernel) = &plan.kernel else { return Ok(Some(outs)) };
    let mut writes: SmallVec<[crate::memory::Storage; 2]> = outs.iter().map(|o| o.storage.clone()).collect();
    let workspace = match kernel.workspace {
        0 => None,
        n => {
            let s = rt.alloc.alloc(n)?;
            // SAFETY: the block is n bytes, exclusively ours, and lives in `writes` until the kernel is done.
            let v =
                unsafe { View::from_raw(s.ptr(), oflow_kernels::DType::U8, smallvec![n], contiguous_strides(&[n])) };
            writes.push(s);
            Some(v)
        }
    };
    let mut reads: SmallVec<[crate::memory::Storage; 4]> = SmallVec::new();
    for (i, l) in inputs.iter().enumerate() {
        if let Some(l) = l {
            if call.op.sig.mutates(i) {
                writes.push(l.storage.clone());
            } else {
                reads.push(l.storage.clone());
            }
        }
    }
    rt.vm.submit(Instruction {
        work: Work::Kernel(KernelWork {
            plan: kernel.clone(),
            inputs: inputs.iter().map(|l| l.as_ref().map(|l| l.view())).collect(),
            outputs: outs.iter().map(|o| o.view()).collect(),
            runtime: call.runtime.clone(),
            workspace,
            site: call.site,
        }),
        stream: StreamKind::Compute,
        reads,
        writes,
    })?;
    for (from, to) in &memory.back {
        copy_into(ctx, from, to)?;
    }
    Ok(Some(outs))
}

/// A contiguous copy on the same device; counted.
pub fn contiguous(ctx: &RankCtx, l: &LocalTensor) -> Result<LocalTensor> {
    let out = LocalTensor::alloc(ctx, &l.ty)?;
    copy_into(ctx, l, &out)?;
    Ok(out)
}

/// Copies the elements of one local tensor into another of its type; counted.
fn copy_into(ctx: &RankCtx, l: &LocalTensor, out: &LocalTensor) -> Result<()> {
    let vm = &ctx.device(l.ty.device)?.vm;
    vm.count_copy();
    vm.submit(Instruction {
        work: Work::Kernel(KernelWork {
            plan: crate::backend::copy_plan(l.ty.device)?,
            inputs: smallvec![Some(l.view())],
            outputs: smallvec![out.view()],
            runtime: SmallVec::new(),
            workspace: None,
            site: crate::error::CallSite::here(),
        }),
        stream: StreamKind::Compute,
        reads: smallvec![l.storage.clone()],
        writes: smallvec![out.storage.clone()],
    })
}

/// Carries a call out by its lowering: a program of global calls, not recorded (the call as a whole is).
fn run_lowering(call: &Call<'_>, lowering: u8, want: &[NdSbp], inputs: &[Option<Tensor>]) -> Result<Outputs> {
    let (_quiet, _free) = (no_grad(), nothing_asked());
    let l = &call.op.lowerings[lowering as usize];
    let mut emit = EagerEmit::new(call.op.name(), call.site);
    let values: Vec<_> = inputs.iter().map(|t| t.as_ref().map(|t| emit.put(t.value()))).collect();
    let outs =
        (l.run)(&mut emit, &LowerCall { inputs: &values, attrs: &call.attrs, runtime: &call.runtime, outputs: want })?;
    let mut tensors = Outputs::new();
    for (v, s) in outs.into_iter().zip(want) {
        let v = crate::ops::Emit::box_to(&mut emit, v, s)?;
        tensors.push(emit.get(v));
    }
    if let Some(g) = call.given {
        super::copy::assign(g, &tensors[0], call.site)?;
        return Ok(smallvec![g.clone()]);
    }
    Ok(tensors)
}
