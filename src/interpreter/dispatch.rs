//! The way of one call: mode → cache → plan → boxing → kernel → handles → autograd.

use super::autocast;
use super::cache::{DispatchPlan, InputBoxing, cache};
use super::call::{Call, Mode, Target};
use super::emit::EagerEmit;
use super::plan::{build_global, build_local};
use super::policy;
use super::record::record;
use crate::comm::Tag;
use crate::context::{AskedSbp, RankCtx, asked_sbp, current, current_rank, grad_enabled, no_grad, nothing_asked};
use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use crate::ops::{GivenValues, KeyWords, LowerCall, generation};
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp};
use crate::tensor::{LocalTensor, Tensor};
use crate::vm::{BoxWork, Instruction, KernelWork, StreamKind, Work};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Scalar, View};
use smallvec::{SmallVec, smallvec};
use std::hash::Hasher;
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
    call.recording = grad_enabled() && call.inputs.iter().flatten().any(|t| t.requires_grad());
    let result = match check_values(&call).and_then(|()| call.mode()) {
        Ok(Mode::Local(device)) => run_local(&mut call, device),
        Ok(Mode::Global(placement)) => run_global(&mut call, &placement),
        Err(e) => Err(e),
    };
    result.map_err(|e| e.in_call(|| call.short()).at(call.site))
}

/// What an op has to say about the values of its runtime attributes, which no plan has seen.
fn check_values(call: &Call<'_>) -> Result<()> {
    let Some(check) = &call.op.values else { return Ok(()) };
    let dtypes: SmallVec<[Option<DType>; 4]> = call.inputs.iter().map(|t| t.map(|t| t.dtype())).collect();
    check(&GivenValues { dtypes: &dtypes, attrs: &call.attrs, runtime: &call.runtime })
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

fn push_sbp(key: &mut KeyWords, n: &NdSbp) {
    for sbp in n.iter() {
        key.push(match sbp {
            Sbp::Broadcast => 0,
            Sbp::Partial(op) => 1 + *op as u64,
            Sbp::Split(d) => 16 + *d as u64,
        });
    }
}

/// Everything that can change the plan, as words.
fn key_of(call: &Call<'_>, asked: Option<&AskedSbp>) -> KeyWords {
    let mut key = KeyWords::new();
    key.push(call.op.id());
    let flags = (asked.is_some() as u64) << 2 | (call.recording as u64) << 1 | call.given.is_some() as u64;
    key.push(generation() << 8 | flags);
    if let Some(a) = asked {
        // Its length stands first: a layout of a wrong number of axes is an error, but a key all the same.
        key.push(a.sbp.len() as u64);
        push_sbp(&mut key, &a.sbp);
    }
    for t in call.inputs {
        match t {
            None => key.push(0),
            Some(t) => {
                let (id, class) = match (t.global(), t.body()) {
                    (Some(g), _) => (g.id(), 1u64),
                    (None, crate::tensor::Body::Local(l)) => (l.ty.id(), 0),
                    _ => (0, 0),
                };
                let given = matches!(call.given, Some(g) if g.same(t));
                key.push(id << 3 | (given as u64) << 2 | class << 1 | t.requires_grad() as u64);
            }
        }
    }
    // Marks the end of the inputs: variadic ops differ in their number.
    key.push(u64::MAX);
    match call.target {
        None => {}
        Some(Target::Local(d)) => key.push(*d as u64),
        Some(Target::Global(p, s)) => {
            key.push(p.id());
            push_sbp(&mut key, s);
        }
    }
    if let Some(g) = call.given {
        key.push(match (g.global(), g.body()) {
            (Some(g), _) => g.id(),
            (None, crate::tensor::Body::Local(l)) => l.ty.id(),
            _ => 0,
        });
    }
    call.attrs.iter().for_each(|a| a.encode(&mut key));
    call.runtime.iter().for_each(|s| key.push(s.kind() as u64));
    key
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
    if call.recording {
        record(call, &inputs, &outs)?;
    }
    Ok(outs)
}

/// The key of a call with the values of its runtime attributes: a scalar operand or a seed that differs between ranks makes
/// tensors differ that are to be equal.
fn with_runtime(key: u64, runtime: &[Scalar]) -> u64 {
    let mut h = FixedHasher::default();
    h.write_u64(key);
    for scalar in runtime {
        let (kind, bits) = match *scalar {
            Scalar::Bool(b) => (0, u64::from(b)),
            Scalar::Int(i) => (1, i as u64),
            // A NaN is a NaN, whatever made it.
            Scalar::Float(x) if x.is_nan() => (2, u64::MAX),
            Scalar::Float(x) => (2, x.to_bits()),
        };
        h.write_u64(bits ^ kind << 62);
    }
    h.finish()
}

fn check_world(ctx: &RankCtx, placement: &Placement) -> Result<()> {
    match placement.ranks().iter().find(|r| **r >= ctx.world()) {
        Some(r) => {
            Err(Error::placement(format!("{placement} needs rank {r}, but the world has {} ranks", ctx.world()))
                .help("start the program with `oflaunch --nproc N`"))
        }
        None => Ok(()),
    }
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
        forget_written(call);
        return Ok(None);
    };
    let device =
        match out_types.first().map(|t| t.device).or_else(|| inputs.iter().flatten().next().map(|l| l.ty.device)) {
            Some(d) => d,
            None => return Ok(None),
        };
    let rt = ctx.device(device)?;
    // Local views: the output is another window onto the input.
    if call.given.is_none()
        && let (Some(view), Some(k)) = (&call.op.view, &plan.kernel)
        && let Some(Some(input)) = inputs.first()
        && let Some((offset, strides)) = view(input.dims(), &input.strides, &k.attrs, &out_types[0].ty.shape)
    {
        let start = input.offset as isize + offset;
        return Ok(Some(smallvec![input.window(&out_types[0], start as usize, strides)]));
    }
    if !call.op.traits.strided {
        for i in inputs.iter_mut().flatten() {
            if !i.is_contiguous() {
                *i = contiguous(ctx, i)?;
            }
        }
    }
    // Mutable inputs of global tensors are values: memory that others hold too is copied first.
    for (i, t) in call.inputs.iter().enumerate() {
        if call.op.sig.mutates(i)
            && let (Some(t), Some(Some(l))) = (t, inputs.get_mut(i))
        {
            // Boxed forms are stale after the write; those that are the same memory must not make it look shared.
            t.inner().boxed.lock().unwrap_or_else(|e| e.into_inner()).clear();
            // One hold by the handle, one by `l`.
            if t.is_global() && l.storage.holders() > 2 {
                *l = contiguous(ctx, l)?;
                t.replace_shard(l.clone());
            }
        }
    }
    let mut outs: SmallVec<[LocalTensor; 2]> = SmallVec::new();
    match call.given {
        Some(g) => outs.extend(given_memory(ctx, g, &mut inputs, call)?),
        None => {
            for t in out_types {
                outs.push(LocalTensor::alloc(ctx, t)?);
            }
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
            let mutable = call.op.sig.mutates(i);
            if mutable {
                l.storage.bump_version();
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
    Ok(Some(outs))
}

/// Forgets the boxed forms and casts of the tensors that a call writes.
fn forget_written(call: &Call<'_>) {
    let written = call.inputs.iter().enumerate().filter(|(i, _)| call.op.sig.mutates(*i)).filter_map(|(_, t)| *t);
    for t in written.chain(call.given) {
        t.inner().boxed.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}

/// Memory of a given output. A global tensor is a value: memory that other handles (views, saved tensors) hold too is not
/// written; the handle gets memory of its own. Inputs that overlap the output in another order are copied first.
fn given_memory(
    ctx: &RankCtx,
    g: &Tensor,
    inputs: &mut SmallVec<[Option<LocalTensor>; 4]>,
    call: &Call<'_>,
) -> Result<Option<LocalTensor>> {
    let Some(mut out) = g.data()? else { return Ok(None) };
    if g.is_global() {
        // Held by the handle, by `out`, and by each input that is the same handle.
        let own = 2 + call.inputs.iter().flatten().filter(|t| t.same(g)).count();
        if out.storage.holders() > own || !out.is_contiguous() {
            out = LocalTensor::alloc(ctx, &out.ty)?;
            g.replace_shard(out.clone());
        }
    }
    for l in inputs.iter_mut().flatten() {
        if l.storage.id() == out.storage.id() && !l.same_window(&out) {
            *l = contiguous(ctx, l)?;
        }
    }
    out.storage.bump_version();
    g.inner().boxed.lock().unwrap_or_else(|e| e.into_inner()).clear();
    Ok(Some(out))
}

/// A contiguous copy on the same device; counted.
pub fn contiguous(ctx: &RankCtx, l: &LocalTensor) -> Result<LocalTensor> {
    let out = LocalTensor::alloc(ctx, &l.ty)?;
    let vm = &ctx.device(l.ty.device)?.vm;
    vm.count_copy();
    vm.submit(Instruction {
        work: Work::Kernel(KernelWork {
            plan: super::copy::copy_plan(l.ty.device)?,
            inputs: smallvec![Some(l.view())],
            outputs: smallvec![out.view()],
            runtime: SmallVec::new(),
            workspace: None,
            site: crate::error::CallSite::here(),
        }),
        stream: StreamKind::Compute,
        reads: smallvec![l.storage.clone()],
        writes: smallvec![out.storage.clone()],
    })?;
    Ok(out)
}

/// The boxed form of a global tensor. It has the edge of its source, and is remembered on the source's handle until that
/// changes: a P tensor used by three ops is reduced once.
pub fn boxed(ctx: &RankCtx, t: &Tensor, b: &InputBoxing, tag: &Tag) -> Result<Tensor> {
    let version = t.version();
    let key = b.to.id();
    {
        let memo = t.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, _, found)) = memo.iter().find(|(k, v, _)| *k == key && *v == version) {
            return Ok(found.clone());
        }
    }
    let out = run_boxing(ctx, t, b, tag)?;
    if t.requires_grad() {
        out.set_edge(t.edge());
    }
    let mut memo = t.inner().boxed.lock().unwrap_or_else(|e| e.into_inner());
    memo.retain(|(_, v, _)| *v == version);
    if memo.len() >= 4 {
        memo.remove(0);
    }
    memo.push((key, version, out.clone()));
    Ok(out)
}

/// Runs a boxing plan on the communication stream.
pub fn run_boxing(ctx: &RankCtx, t: &Tensor, b: &InputBoxing, tag: &Tag) -> Result<Tensor> {
    let src = t.data()?;
    if b.plan.is_identity() {
        return unmoved(ctx, src, b);
    }
    let _span =
        tracing::debug_span!("boxing", plan = %b.plan, site = %format_args!("{}:{}", tag.file, tag.line)).entered();
    let dst = b.local.as_ref().map(|l| LocalTensor::alloc(ctx, l)).transpose()?;
    policy::tell(ctx, &b.plan, tag);
    let stopwatch = super::receipts::note(ctx, &b.plan, tag);
    let instruction = Instruction {
        work: Work::Boxing(BoxWork {
            plan: b.plan.clone(),
            tag: *tag,
            src: src.as_ref().map(|s| s.view()),
            dst: dst.as_ref().map(|d| d.view()),
            stopwatch,
        }),
        stream: StreamKind::Comm,
        reads: src.iter().map(|s| s.storage.clone()).collect(),
        writes: dst.iter().map(|d| d.storage.clone()).collect(),
    };
    ctx.submit_boxing(b.plan.src.placement.device(), b.plan.dst.placement.device(), instruction)?;
    Ok(Tensor::from_shard(b.to.clone(), dst))
}

/// Boxing in which nothing moves. Shards of a tensor without elements still have other sizes in another layout.
pub(super) fn unmoved(ctx: &RankCtx, src: Option<LocalTensor>, b: &InputBoxing) -> Result<Tensor> {
    let shard = match (&b.local, src) {
        (Some(l), Some(s)) if s.dims() == l.ty.shape.as_slice() => Some(s),
        (Some(l), _) => Some(LocalTensor::alloc(ctx, l)?),
        (None, _) => None,
    };
    Ok(Tensor::from_shard(b.to.clone(), shard))
}

/// Carries a call out by its lowering: a program of global calls, not recorded (the call as a whole is).
fn run_lowering(call: &Call<'_>, lowering: u8, want: &[NdSbp], inputs: &[Option<Tensor>]) -> Result<Outputs> {
    let (_quiet, _free) = (no_grad(), nothing_asked());
    let l = &call.op.lowerings[lowering as usize];
    let mut emit = EagerEmit::new(call.op.name(), call.site);
    let values: Vec<_> = inputs.iter().map(|t| t.as_ref().map(|t| emit.put(t.detach()))).collect();
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
