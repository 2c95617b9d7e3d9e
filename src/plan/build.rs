//! Building a plan: inference → candidate signatures → the choice → boxings → physical shapes → kernel.

use super::dynamic_shape::ResultParts;
use super::kernel::{Logical, check_shards, kernel_plan};
use super::request::{Asked, Input, PlanCx, Request, TypeRef, Where};
use super::step::{
    BoxStep, Buffer, BufferId, CrossDevice, For, HaloStep, KernelStep, Numbers, Plan, PlannedBoxing, Step,
};
use super::types::{GlobalRef, LocalRef, intern_global, intern_local};
use crate::boxing::{Choice, ChoiceInput, Hint, Layout, choose, collect_windows, hint};
use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use crate::ops::{
    AttrValue, DeviceCtx, Devices, InferCtx, LoweredBy, NdSignature, Op, PartBoxes, SbpRule, TensorType, WindowsFn,
    Withheld,
};
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, Sbp, check_layout, check_size};
use oflow_kernels::ShardBox;
use smallvec::SmallVec;
use std::hash::Hasher;
use std::sync::Arc;

/// The plan of a call, for the rank of `cx`.
///
/// # Errors
/// What inference, the layouts and the choice of kernels refuse: the same on every rank.
pub fn plan(cx: &PlanCx<'_>, r: &Request<'_>) -> Result<Plan> {
    let mut builder = Builder { cx, buffers: vec![], steps: vec![], boxed: vec![], lengths: 0 };
    let inputs: SmallVec<[Option<BufferId>; 4]> = r.inputs.iter().map(|i| builder.input(i.as_ref())).collect();
    let (device, takes_part, made) = match r.place {
        Where::Local(device) => (device, true, builder.local(r, &inputs, device)?),
        Where::Global(placement) => {
            let takes_part = placement.position(cx.rank).is_some();
            (placement.device(), takes_part, builder.global(r, &inputs, placement, Numbers::OfCall)?)
        }
    };
    let device = made.device.unwrap_or(device);
    let mut plan = Plan {
        withheld: made.withheld,
        buffers: builder.buffers,
        steps: builder.steps,
        outputs: made.outputs,
        device,
        takes_part,
        lengths: builder.lengths,
        hands_on_numbers: false,
        stream_key: made.stream_key,
        chosen: made.chosen,
    };
    plan.look_through();
    plan.reuse(r.inputs.len());
    Ok(plan)
}

/// Outputs of a call.
pub(super) struct MadeBy {
    pub(super) outputs: SmallVec<[BufferId; 2]>,
    stream_key: u64,
    /// Signature of a global call.
    chosen: Option<NdSignature>,
    /// Outputs without a gradient.
    withheld: Withheld,
    /// Where it runs, if not where its inputs are.
    device: Option<Device>,
}

/// A plan being built.
pub(super) struct Builder<'a> {
    pub(super) cx: &'a PlanCx<'a>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) steps: Vec<Step>,
    /// Buffers and what they have been boxed to: a P value that two ops of a lowering use is reduced once.
    pub(super) boxed: Vec<(BufferId, GlobalRef, BufferId)>,
    /// How many lengths are left to run time.
    pub(super) lengths: u32,
}

impl Builder<'_> {
    pub(super) fn buffer(&mut self, global: Option<GlobalRef>, local: Option<LocalRef>) -> BufferId {
        self.buffers.push(Buffer { global, local, ..Buffer::default() });
        BufferId(self.buffers.len() as u32 - 1)
    }

    /// The buffer of an input of the call. One that was left out has a number too.
    fn input(&mut self, i: Option<&Input>) -> Option<BufferId> {
        let id = match i.map(|i| &i.ty) {
            None => self.buffer(None, None),
            Some(TypeRef::Local(l)) => self.buffer(None, Some(l.clone())),
            Some(TypeRef::Global(g)) => self.global_buffer(g),
        };
        i.map(|_| id)
    }

    /// A buffer of a global type, with what this rank holds of it.
    fn global_buffer(&mut self, g: &GlobalRef) -> BufferId {
        let local = g.shard_dims(self.cx.rank).map(|d| intern_local(&d, g.ty.dtype, g.placement.device()));
        self.buffer(Some(g.clone()), local)
    }

    fn local(&mut self, r: &Request<'_>, inputs: &[Option<BufferId>], device: Device) -> Result<MadeBy> {
        let ins = r.types();
        let infer = InferCtx { op: r.op, inputs: &ins, attrs: r.attrs, runtime_kinds: r.runtime_kinds };
        let mut outs = r.op.infer(&infer)?;
        let withheld = r.op.withheld(&infer, &outs)?;
        if let Some(by) = &r.op.length {
            let outputs = self.dynamic_shape(r, (by, device), (&infer, &outs), inputs, None)?;
            return Ok(MadeBy { outputs, stream_key: 0, chosen: None, withheld, device: None });
        }
        let at = self.devices(r, &infer, device, outs.len())?;
        let device = at.run_on;
        check_given(r, &mut outs)?;
        let boxes_in: Vec<Option<ShardBox>> =
            ins.iter().map(|t| t.as_ref().map(|t| ShardBox::whole(&t.shape))).collect();
        let boxes_out: Vec<ShardBox> = outs.iter().map(|t| ShardBox::whole(&t.shape)).collect();
        let logical = Logical { infer: &infer, op: r.op, outs: &outs };
        if r.op.hooks.physical.is_some() {
            check_shards(&logical, &boxes_in, &boxes_out, None)?;
        }
        let kernel = kernel_plan(self.cx.kernels, &logical, (device, at.stream), &boxes_in, &boxes_out)?;
        let each = outs.iter().zip(&at.outputs);
        let made: SmallVec<[BufferId; 2]> =
            each.map(|(t, d)| self.buffer(None, Some(intern_local(&t.shape, t.dtype, *d)))).collect();
        let on = |i: &Option<BufferId>| Some(self.buffers[i.as_ref()?.index()].local.as_ref()?.device);
        let cross_device = cross_device(r.op, device, &inputs.iter().map(on).collect::<Vec<_>>(), &at.outputs);
        self.steps.push(Step::Kernel(KernelStep {
            op: r.op,
            inputs: inputs.iter().copied().collect(),
            makes: made.clone(),
            kernel,
            numbers: Numbers::OfCall,
            view: false,
            cross_device,
            reuse: None,
        }));
        Ok(MadeBy { outputs: made, stream_key: 0, chosen: None, withheld, device: Some(device) })
    }

    /// Where a kernel runs and its outputs are.
    fn devices(&self, r: &Request<'_>, infer: &InferCtx<'_>, device: Device, outputs: usize) -> Result<Devices> {
        if r.op.hooks.devices.is_none() {
            return Ok(Devices::all(device, outputs));
        }
        if r.given.is_some() {
            return Err(Error::unsupported(format!(
                "{} decides where its result is, so it is not written in place",
                r.op.name()
            ))
            .help("use the call that returns a new tensor"));
        }
        let of = |i: &Option<Input>| match &i.as_ref()?.ty {
            TypeRef::Local(l) => Some(l.device),
            TypeRef::Global(_) => Some(device),
        };
        let inputs: SmallVec<[Option<Device>; 4]> = r.inputs.iter().map(of).collect();
        let asked = DeviceCtx { call: infer, inputs: &inputs, default: device };
        let found = r.op.where_it_runs(&asked, outputs)?.unwrap_or_else(|| Devices::all(device, outputs));
        let elsewhere = found.run_on != device || found.outputs.iter().any(|d| *d != device);
        match r.place {
            Where::Global(_) if elsewhere => Err(Error::placement(format!(
                "{} would leave {device}, but a global tensor is on the device of its placement",
                r.op.name()
            ))
            .help("move the tensor with `to_global((&placement, sbp))`, to a placement of the other device")),
            _ => Ok(found),
        }
    }

    pub(super) fn global(
        &mut self,
        r: &Request<'_>,
        inputs: &[Option<BufferId>],
        placement: &Placement,
        numbers: Numbers,
    ) -> Result<MadeBy> {
        let ins = r.types();
        let infer = InferCtx { op: r.op, inputs: &ins, attrs: r.attrs, runtime_kinds: r.runtime_kinds };
        let mut outs = r.op.infer(&infer)?;
        outs.iter().try_for_each(|t| check_size(&t.shape, t.dtype, placement))?;
        let withheld = r.op.withheld(&infer, &outs)?;
        if r.op.length.is_none() {
            check_given(r, &mut outs)?;
        }
        let (sig, after) = match (r.target, r.signature) {
            (Some(want), _) => made_as(&infer, placement, &outs, want)?,
            (None, Some(stated)) => (stated.clone(), None),
            (None, None) => {
                let request = r.asked.map(|a| requested(a, &outs, placement)).transpose()?.flatten();
                let sig = chosen(r, &infer, &outs, placement, request)?;
                let after = request.filter(|want| sig.outputs[0] != **want);
                (sig, after)
            }
        };
        let inside = matches!(numbers, Numbers::Each(..));
        let mut used: SmallVec<[Option<BufferId>; 4]> = inputs.iter().copied().collect();
        for (i, want) in sig.inputs.iter().enumerate() {
            if let Some(id) = used[i] {
                used[i] = Some(self.boxed(id, placement, want, if inside { For::Lowering } else { For::Input(i) })?);
            }
        }
        if let Some(by) = &r.op.length {
            let parts = ResultParts { placement, sig: &sig, after };
            let outputs = self.dynamic_shape(r, (by, placement.device()), (&infer, &outs), &used, Some(&parts))?;
            let stream_key = stream_key(r, placement, &outs, &sig);
            return Ok(MadeBy { outputs, stream_key, chosen: Some(sig), withheld, device: None });
        }
        let made: SmallVec<[BufferId; 2]> = match sig.lowering.map(|l| r.op.lowered_by(l)).transpose()? {
            Some(LoweredBy::Program(run)) => self.lower(r, run, &sig, &used, placement, &numbers)?,
            Some(LoweredBy::Windows(w)) => {
                self.kernel(r, (&infer, &outs), (&sig, Some(w)), &used, placement, numbers)?
            }
            None => self.kernel(r, (&infer, &outs), (&sig, None), &used, placement, numbers)?,
        };
        let mut outputs = made;
        if let Some(want) = after
            && let Some(first) = outputs.first_mut()
        {
            *first = self.boxed(*first, placement, want, For::Result)?;
        }
        let stream_key = if inside { 0 } else { stream_key(r, placement, &outs, &sig) };
        Ok(MadeBy { outputs, stream_key, chosen: Some(sig), withheld, device: None })
    }

    /// The buffer in that layout: itself, one that was boxed before, or a new step.
    pub(super) fn boxed(
        &mut self,
        from: BufferId,
        placement: &Placement,
        want: &NdSbp,
        purpose: For,
    ) -> Result<BufferId> {
        let Some(g) = self.buffers[from.index()].global.clone().filter(|g| g.sbp != *want) else { return Ok(from) };
        let boxing = boxing_to(self.cx, &g, placement, want)?;
        // Two inputs of the call that are boxed alike are two handles.
        let again = self.boxed.iter().find(|(f, to, _)| *f == from && to.id() == boxing.to.id());
        if let Some((_, _, makes)) = again {
            return Ok(*makes);
        }
        let makes = self.buffer(Some(boxing.to.clone()), boxing.local.clone());
        self.boxed.push((from, boxing.to.clone(), makes));
        self.steps.push(Step::Box(BoxStep { from, makes, boxing, purpose }));
        Ok(makes)
    }

    /// The step of an op whose kernel runs on the shards, or on windows around them.
    fn kernel(
        &mut self,
        r: &Request<'_>,
        (infer, outs): (&InferCtx<'_>, &[TensorType]),
        (sig, windows): (&NdSignature, Option<&WindowsFn>),
        inputs: &[Option<BufferId>],
        placement: &Placement,
        numbers: Numbers,
    ) -> Result<SmallVec<[BufferId; 2]>> {
        let device = placement.device();
        let at = self.devices(r, infer, device, outs.len())?;
        let ins: SmallVec<[Option<Device>; 4]> = r.inputs.iter().map(|i| i.as_ref().map(|_| device)).collect();
        let cross_device = cross_device(r.op, device, &ins, &at.outputs);
        let part = |pos: usize| PartBoxes::at(pos, placement, infer, outs, sig, windows);
        let logical = Logical { infer, op: r.op, outs };
        // For every rank, so that all refuse alike.
        let ranks = placement.ranks().iter().enumerate().filter(|_| r.op.hooks.physical.is_some());
        for (pos, rank) in ranks {
            let of_rank = part(pos)?;
            check_shards(&logical, &of_rank.reads, &of_rank.outputs, Some(*rank))?;
        }
        let mut inputs: SmallVec<[Option<BufferId>; 4]> = inputs.iter().copied().collect();
        if windows.is_some() {
            let parts: Vec<PartBoxes> = (0..placement.len()).map(part).collect::<Result<_>>()?;
            for (i, id) in inputs.iter_mut().enumerate() {
                if let Some(from) = *id {
                    *id = Some(self.window(from, i, (placement, &sig.inputs[i]), &parts)?);
                }
            }
        }
        let here = placement.position(self.cx.rank).map(part).transpose()?;
        let kernel = match &here {
            Some(here) => kernel_plan(self.cx.kernels, &logical, (device, at.stream), &here.reads, &here.outputs)?,
            None => None,
        };
        let mut makes = SmallVec::new();
        for (o, (t, s)) in outs.iter().zip(&sig.outputs).enumerate() {
            let local = here.as_ref().map(|b| intern_local(&b.outputs[o].size, t.dtype, device));
            makes.push(self.buffer(Some(intern_global(t.clone(), placement, s)), local));
        }
        self.steps.push(Step::Kernel(KernelStep {
            op: r.op,
            inputs,
            makes: makes.clone(),
            kernel,
            numbers,
            view: r.op.view.is_some() && r.given.is_none(),
            cross_device,
            reuse: None,
        }));
        Ok(makes)
    }

    /// Buffer that the ranks' kernels read for an input: the input where these are the shards, else a step that exchanges
    /// what they lack.
    fn window(
        &mut self,
        from: BufferId,
        input: usize,
        (placement, sbp): (&Placement, &NdSbp),
        parts: &[PartBoxes],
    ) -> Result<BufferId> {
        if parts.iter().all(|p| p.reads[input] == p.shards[input]) {
            return Ok(from);
        }
        let windows: Option<Vec<ShardBox>> = parts.iter().map(|p| p.reads[input].clone()).collect();
        let (Some(windows), Some(g)) = (windows, self.buffers[from.index()].global.clone()) else {
            return Err(Error::registry("a window onto an input that is not there"));
        };
        let here = placement.position(self.cx.rank).map(|p| windows[p].size.clone());
        let local = here.map(|size| intern_local(&size, g.ty.dtype, placement.device()));
        let plan = collect_windows(&g.ty.shape, &Layout::new(placement, sbp.clone()), windows);
        let bytes = plan.elements_sent() * g.ty.dtype.size() as u64;
        let makes = self.buffer(None, local);
        self.steps.push(Step::Halo(HaloStep { from, makes, input, plan: Arc::new(plan), bytes }));
        Ok(makes)
    }
}

/// An elementwise result that is written in place is converted to the tensor's dtype, unless that is of a lower kind.
fn check_given(r: &Request<'_>, outs: &mut [TensorType]) -> Result<()> {
    let (Some(given), Some(first)) = (r.given.as_ref().map(|g| g.ty()), outs.first_mut()) else { return Ok(()) };
    if r.op.expr.is_some()
        && (given.dtype.is_real() || given.dtype.is_complex())
        && first.dtype.kind() <= given.dtype.kind()
    {
        first.dtype = given.dtype;
    }
    if given != first {
        let why = if given.shape != first.shape { Error::shape } else { Error::dtype };
        return Err(why(format!("the result {first} cannot be written in place into {given}"))
            .help("use the op that returns a new tensor"));
    }
    Ok(())
}

/// Boxing of a global type to another nd-SBP on a placement under the job's cost model, with this rank's shard type.
///
/// # Errors
/// The tensor cannot have that layout.
pub fn boxing_to(cx: &PlanCx<'_>, from: &GlobalRef, placement: &Placement, to: &NdSbp) -> Result<PlannedBoxing> {
    check_layout(&from.ty.shape, from.ty.dtype, placement, to)?;
    let src = Layout::new(&from.placement, from.sbp.clone());
    let dst = Layout::new(placement, to.clone());
    let to = intern_global(from.ty.clone(), placement, to);
    let local = to.shard_dims(cx.rank).map(|d| intern_local(&d, from.ty.dtype, placement.device()));
    let plan = cx.planner.plan(&from.ty.shape, from.ty.dtype, &src, &dst)?;
    if plan.warn_of_memory() {
        tracing::warn!(
            "{src} -> {dst} of {}: no way takes as little memory as the limit of {} B asks; this one takes {} B",
            from.ty,
            plan.model.extra_memory.unwrap_or_default(),
            plan.extra_bytes(),
        );
    }
    Ok(PlannedBoxing { to, local, plan })
}

/// Inputs and outputs of a kernel that are not on the device that the kernel runs on; `None` where all are.
fn cross_device(op: &Op, device: Device, inputs: &[Option<Device>], outputs: &[Device]) -> Option<Box<CrossDevice>> {
    let host = |i: usize| op.sig.input_def(i).is_some_and(|d| d.host) && device != Device::Cpu;
    let moved = |i: usize| inputs[i].is_some_and(|d| d != device);
    if outputs.iter().all(|d| *d == device) && !(0..inputs.len()).any(|i| host(i) || moved(i)) {
        return None;
    }
    let wanted = (0..inputs.len()).map(|i| if host(i) { Device::Cpu } else { device }).collect();
    Some(Box::new(CrossDevice { inputs: wanted, outputs: outputs.iter().any(|d| *d != device) }))
}

/// A source op makes S and B layouts itself (each rank only its shard); P is boxed from B afterwards. One that says how it may be
/// sharded makes what it says, and the rest is boxed from there.
fn made_as<'a>(
    infer: &InferCtx<'_>,
    placement: &Placement,
    outs: &[TensorType],
    want: &'a NdSbp,
) -> Result<(NdSignature, Option<&'a NdSbp>)> {
    let op = infer.op;
    let rows = match op.sbp {
        SbpRule::AllB => None,
        _ => Some(op.signatures_1d(infer, outs)?),
    };
    // Along each mesh axis the row that gives output 0 the layout asked for, else all of it on every rank.
    let row = |s: Sbp| rows.iter().flatten().find(|row| row.outputs.first() == Some(&s) && row.lowering.is_none());
    let able = |s: Sbp| !s.is_partial() && (rows.is_none() || row(s).is_some());
    let made = want.map(|s| if able(s) { s } else { Sbp::Broadcast });
    for t in outs {
        check_layout(&t.shape, t.dtype, placement, want)?;
    }
    let other = |o: usize| made.map(|s| row(s).and_then(|row| row.outputs.get(o).copied()).unwrap_or(s));
    let outputs = (0..outs.len()).map(other).collect();
    let after = (made != *want).then_some(want);
    Ok((NdSignature { inputs: SmallVec::new(), outputs, lowering: None }, after))
}

/// Layout asked of output 0, which must be possible for its shape; `None` for an op without outputs.
fn requested<'a>(asked: Asked<'a>, outs: &[TensorType], placement: &Placement) -> Result<Option<&'a NdSbp>> {
    let Some(out) = outs.first() else { return Ok(None) };
    check_layout(&out.shape, out.dtype, placement, asked.sbp).map_err(|e| {
        let help = e.help_text().unwrap_or("ask for a layout that the result can have, around that call alone");
        let (Asked { sbp, by, site }, why) = (asked, e.message());
        Error::sbp(format!("the result {out} cannot be {sbp}, which `{by}` at {site} asks for: {why}")).help(help)
    })?;
    Ok(Some(asked.sbp))
}

fn chosen(
    r: &Request<'_>,
    infer: &InferCtx<'_>,
    outs: &[TensorType],
    placement: &Placement,
    request: Option<&NdSbp>,
) -> Result<NdSignature> {
    let Choice { sig, unproven } = choice(r, infer, outs, placement, request, choose)?;
    tracing::trace!(op = r.op.name(), inputs = ?sig.inputs, outputs = ?sig.outputs, ?unproven, "choice");
    Ok(sig)
}

/// The hint for a global call that was planned: a layout of its result that would cost far less.
///
/// # Errors
/// What planning it refuses.
pub fn hint_of(r: &Request<'_>, placement: &Placement) -> Result<Option<Hint>> {
    if r.target.is_some() || r.asked.is_some() || r.given.is_some() || r.op.length.is_some() {
        return Ok(None);
    }
    with_choice(r, placement, None, |c| hint(c, &choose(c)?.sig))
}

/// Asks something of the choice that a call is to make; `request` is the layout that its result is to have.
///
/// # Errors
/// What inference refuses, and what `ask` returns.
pub fn with_choice<R>(
    r: &Request<'_>,
    placement: &Placement,
    request: Option<&NdSbp>,
    ask: impl FnOnce(&ChoiceInput<'_>) -> Result<R>,
) -> Result<R> {
    let ins = r.types();
    let infer = InferCtx { op: r.op, inputs: &ins, attrs: r.attrs, runtime_kinds: r.runtime_kinds };
    let outs = r.op.infer(&infer)?;
    choice(r, &infer, &outs, placement, request, ask)
}

fn choice<R>(
    r: &Request<'_>,
    infer: &InferCtx<'_>,
    outs: &[TensorType],
    placement: &Placement,
    request: Option<&NdSbp>,
    ask: impl FnOnce(&ChoiceInput<'_>) -> Result<R>,
) -> Result<R> {
    let sbps: Vec<Option<NdSbp>> = r.inputs.iter().map(|i| Some(i.as_ref()?.ty.global()?.sbp.clone())).collect();
    let withheld = r.op.withheld(infer, outs)?;
    let needs = |(n, i): (usize, &Option<Input>)| i.as_ref().is_some_and(|i| i.needs_grad) && !withheld.input(n);
    let needs: Vec<bool> = r.inputs.iter().enumerate().map(needs).collect();
    // A mutable input, and an input that is also the given output, stay where they are.
    let stays = |(n, i): (usize, &Option<Input>)| r.op.sig.mutates(n) || i.as_ref().is_some_and(|i| i.given);
    let fixed: Vec<bool> = r.inputs.iter().enumerate().map(stays).collect();
    ask(&ChoiceInput {
        op: r.op,
        infer,
        outs,
        placement,
        sbps: &sbps,
        needs_grad: &needs,
        fixed_inputs: &fixed,
        given_out: r.given.as_ref().and_then(|g| g.global()).map(|g| &g.sbp),
        request,
        keep: r.keep,
    })
}

/// Hash of op, attributes, shapes, dtypes, SBPs and placement: equal on every rank of a correct program. Never ids or
/// pointers; each part ends with a mark, so that no two calls read alike.
fn stream_key(r: &Request<'_>, placement: &Placement, outs: &[TensorType], sig: &NdSignature) -> u64 {
    let mut h = FixedHasher::default();
    let mut add = |text: &str| {
        h.write(text.as_bytes());
        h.write_usize(text.len());
    };
    add(&r.op.full_name());
    add(&r.op.identity().to_string());
    for a in r.attrs {
        match a {
            AttrValue::Bytes(bytes) => add(&format!("{bytes:?}")),
            other => add(&other.to_string()),
        }
    }
    for i in r.inputs {
        add(&i.as_ref().map_or("none".to_string(), |i| i.ty.short()));
    }
    outs.iter().for_each(|t| add(&t.to_string()));
    add(&format!("{:?} {:?}", sig.inputs, sig.outputs));
    add(&format!("{} {:?}", placement.device(), placement.dims()));
    add(&format!("{:?} {:?}", placement.ranks(), r.asked.map(|a| a.sbp.to_string())));
    add(if r.given.is_some() { "in place" } else { "" });
    h.finish()
}
