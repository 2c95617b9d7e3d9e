//! Binding a plan: its numbered buffers become memory, its steps instructions.

use super::alias;
use super::boxing::{boxed, run_boxing};
use super::call::Call;
use super::counted::{Length, with_length};
use crate::backend;
use crate::comm::Tag;
use crate::context::RankCtx;
use crate::error::{CallSite, Error, Result};
use crate::memory::Storage;
use crate::ops::{Op, RuntimeAttrs, ViewFn};
use crate::plan::{BoxStep, BufferId, For, KernelPlan, KernelStep, LocalRef, Numbers, Plan};
use crate::tensor::{LocalTensor, Tensor};
use crate::vm::{Instruction, KernelWork, StreamKind, Work};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, View};
use smallvec::{SmallVec, smallvec};

/// A plan being carried out on a call's tensors.
pub(super) struct Run<'a> {
    pub(super) ctx: &'a RankCtx,
    pub(super) call: &'a Call<'a>,
    pub(super) plan: &'a Plan,
    /// That of the call in the stream of global ops.
    pub(super) tag: Option<&'a Tag>,
    /// Memory of the buffers that steps have made so far; those of inputs are the handles'.
    made: SmallVec<[Option<LocalTensor>; 4]>,
    /// Lengths that have become known, by number.
    pub(super) lengths: SmallVec<[Length; 1]>,
    /// The boxed forms of inputs, by number; shorter than the inputs where no later one is boxed.
    pub(super) boxed: SmallVec<[Option<Tensor>; 4]>,
}

/// What a kernel reads and writes: the views that it is given, and the storages that the instruction holds.
#[derive(Default)]
struct Bound {
    inputs: SmallVec<[Option<View>; 4]>,
    outputs: SmallVec<[View; 2]>,
    reads: SmallVec<[Storage; 4]>,
    writes: SmallVec<[Storage; 2]>,
}

impl Bound {
    fn input(&mut self, l: &LocalTensor, writes: bool) {
        self.inputs.push(Some(l.view()));
        match writes {
            true => self.writes.push(l.storage.clone()),
            false => self.reads.push(l.storage.clone()),
        }
    }

    fn output(&mut self, l: &LocalTensor) {
        self.outputs.push(l.view());
        self.writes.push(l.storage.clone());
    }
}

/// The window onto a tensor that a view op makes, where its strides can say it.
fn seen(l: Option<&LocalTensor>, view: &ViewFn, kernel: &KernelPlan, ty: &LocalRef) -> Option<Result<LocalTensor>> {
    let l = l?;
    let (offset, strides) = view(l.dims(), &l.strides, &kernel.attrs, &ty.ty.shape)?;
    Some(l.window(ty, offset, strides))
}

impl<'a> Run<'a> {
    /// Nothing is done yet.
    pub(super) fn new(ctx: &'a RankCtx, call: &'a Call<'a>, plan: &'a Plan, tag: Option<&'a Tag>) -> Run<'a> {
        Run { ctx, call, plan, tag, made: SmallVec::new(), lengths: SmallVec::new(), boxed: SmallVec::new() }
    }

    /// This rank's part of output `o`, once; none outside the placement. A lowering may hand on an input, or one buffer twice.
    pub(super) fn output(&mut self, o: usize) -> Result<Option<LocalTensor>> {
        let id = self.plan.outputs[o];
        match self.slot(id) {
            None => self.call.inputs[id.index()].map_or(Ok(None), Tensor::data),
            Some(slot) => {
                let again = self.plan.outputs[o + 1..].contains(&id);
                Ok(self.made.get_mut(slot).and_then(|m| if again { m.clone() } else { m.take() }))
            }
        }
    }

    /// The place of a buffer among those that steps make; none of an input.
    fn slot(&self, id: BufferId) -> Option<usize> {
        id.index().checked_sub(self.call.inputs.len())
    }

    /// This rank's part of a buffer that step `n` reads. After its last use it is not kept.
    pub(super) fn read(&mut self, n: usize, id: BufferId) -> Result<Option<LocalTensor>> {
        match self.slot(id) {
            None => self.call.inputs[id.index()].map_or(Ok(None), Tensor::data),
            Some(slot) => {
                let found = self.made.get_mut(slot).and_then(|m| match self.plan.buffers[id.index()].last_use {
                    Some(last) if last == n => m.take(),
                    _ => m.clone(),
                });
                Ok(found)
            }
        }
    }

    pub(super) fn make(&mut self, id: BufferId, local: Option<LocalTensor>) {
        let Some(slot) = self.slot(id) else { return };
        // Buffers are numbered in the order in which they are made, but those of a rank without a part.
        while self.made.len() < slot {
            self.made.push(None);
        }
        match self.made.get_mut(slot) {
            Some(made) => *made = local,
            None => self.made.push(local),
        }
    }

    /// Boxes a buffer. The boxed form of an input is kept by its handle.
    pub(super) fn boxing(&mut self, n: usize, b: &BoxStep) -> Result<()> {
        let tag = self.tag.ok_or_else(|| Error::registry("a boxing in the plan of a local call"))?;
        if let For::Input(i) = b.purpose
            && let Some(t) = self.call.inputs[i]
        {
            let form = boxed(self.ctx, t, &b.boxing, tag)?;
            self.make(b.makes, form.data()?);
            self.boxed.resize(i + 1, None);
            self.boxed[i] = Some(form);
            return Ok(());
        }
        let src = self.read(n, b.from)?;
        let dst = run_boxing(self.ctx, src, &b.boxing, tag)?;
        self.make(b.makes, dst);
        Ok(())
    }

    /// Allocates what a kernel makes and issues it; or finds another window onto its input.
    pub(super) fn kernel(&mut self, n: usize, step: &KernelStep) -> Result<()> {
        if !self.plan.takes_part || (step.view && self.window(n, step)?) {
            return Ok(());
        }
        let mut bound = Bound::default();
        let mut back = alias::Copies::new();
        if matches!(step.numbers, Numbers::OfCall) && alias::writes(self.call) {
            back = self.bind_written(n, step, &mut bound)?;
        } else {
            for (i, id) in step.inputs.iter().enumerate() {
                match id {
                    Some(id) => self.bind_input(n, step.op, (i, *id), &mut bound)?,
                    None => bound.inputs.push(None),
                }
            }
        }
        if bound.outputs.is_empty() {
            for id in &step.makes {
                let buffer = &self.plan.buffers[id.index()];
                let Some(ty) = &buffer.local else { continue };
                let out = match buffer.length.and_then(|n| self.length(n)) {
                    Some(n) => LocalTensor::alloc(self.ctx, &with_length(ty, n.here))?,
                    None => LocalTensor::alloc(self.ctx, ty)?,
                };
                bound.output(&out);
                self.make(*id, Some(out));
            }
        }
        let Some(kernel) = &step.kernel else { return Ok(()) };
        let runtime = match step.numbers {
            Numbers::OfCall => RuntimeAttrs::from_slice(&self.call.runtime),
            Numbers::Each(..) => step.runtime(&self.call.runtime)?,
        };
        let rt = self.ctx.device(self.plan.device)?;
        let workspace = match kernel.workspace {
            0 => None,
            n => {
                let s = rt.alloc.alloc(n)?;
                // SAFETY: the block is n bytes, exclusively ours, and lives in `writes` until the kernel is done.
                let v = unsafe { View::from_raw(s.ptr(), DType::U8, smallvec![n], contiguous_strides(&[n])) };
                bound.writes.push(s);
                Some(v)
            }
        };
        let Bound { inputs, outputs, reads, writes } = bound;
        let (plan, site) = (kernel.clone(), self.call.site);
        let work = Work::Kernel(KernelWork { plan, inputs, outputs, runtime, workspace, site });
        rt.vm.submit(Instruction { work, stream: StreamKind::Compute, reads, writes })?;
        for (from, to) in &back {
            copy_into(self.ctx, from, to)?;
        }
        Ok(())
    }

    /// Makes what a view op makes another window onto its input. False where strides cannot say it: then the kernel copies.
    fn window(&mut self, n: usize, step: &KernelStep) -> Result<bool> {
        let (Some(view), Some(kernel), Some(Some(from))) = (&step.op.view, &step.kernel, step.inputs.first()) else {
            return Ok(false);
        };
        let Some(ty) = step.makes.first().and_then(|b| self.plan.buffers[b.index()].local.as_ref()) else {
            return Ok(false);
        };
        let made = match self.slot(*from) {
            None => self.call.inputs[from.index()].map_or(Ok(None), |t| t.with_data(|l| seen(l, view, kernel, ty)))?,
            Some(slot) => seen(self.made.get(slot).and_then(Option::as_ref), view, kernel, ty),
        };
        let Some(window) = made.transpose()? else { return Ok(false) };
        for id in step.inputs.iter().flatten() {
            if self.slot(*id).is_some() {
                drop(self.read(n, *id)?);
            }
        }
        self.make(step.makes[0], Some(window));
        Ok(true)
    }

    /// Binds an input that is not written in place by the call. One of strides that the kernels do not take is copied.
    fn bind_input(&mut self, n: usize, op: &Op, (i, id): (usize, BufferId), bound: &mut Bound) -> Result<()> {
        let writes = op.writes_inputs() && op.sig.mutates(i);
        let fits = |l: &LocalTensor| op.traits.strided || writes || l.is_contiguous();
        let other = match (self.slot(id), self.call.inputs.get(id.index())) {
            // The usual case: a tensor's own data, which need not be copied from its handle to be seen.
            (None, Some(Some(t))) => {
                let other = t.with_data(|l| match l {
                    Some(l) if fits(l) => {
                        bound.input(l, writes);
                        None
                    }
                    l => Some(l.cloned()),
                })?;
                let Some(other) = other else { return Ok(()) };
                other
            }
            _ => self.read(n, id)?,
        };
        match other {
            Some(l) if fits(&l) => bound.input(&l, writes),
            Some(l) => bound.input(&contiguous(self.ctx, &l)?, writes),
            None => bound.inputs.push(None),
        }
        Ok(())
    }

    /// Binds what a call reads and writes that writes in place; what it returns is to be copied after the kernel.
    fn bind_written(&mut self, n: usize, step: &KernelStep, bound: &mut Bound) -> Result<alias::Copies> {
        let mut inputs: SmallVec<[Option<LocalTensor>; 4]> = SmallVec::new();
        for id in &step.inputs {
            inputs.push(match id {
                Some(id) => self.read(n, *id)?,
                None => None,
            });
        }
        let memory = alias::prepare(self.ctx, self.call, &mut inputs)?;
        if !step.op.traits.strided {
            alias::make_contiguous(self.ctx, step.op, &mut inputs)?;
        }
        if let Some(given) = memory.given {
            bound.output(&given);
        }
        for (i, l) in inputs.into_iter().enumerate() {
            let Some(l) = l else {
                bound.inputs.push(None);
                continue;
            };
            bound.input(&l, step.op.sig.mutates(i));
        }
        Ok(memory.back)
    }

    /// Copies the result of a lowering into the tensor that the call writes.
    pub(super) fn assign(&mut self, n: usize, from: BufferId) -> Result<()> {
        let Some(result) = self.read(n, from)? else { return Ok(()) };
        let memory = alias::prepare(self.ctx, self.call, &mut SmallVec::new())?;
        match memory.given {
            Some(given) => copy_into(self.ctx, &result, &given),
            None => Ok(()),
        }
    }
}

/// A contiguous copy on the same device; counted.
pub(super) fn contiguous(ctx: &RankCtx, l: &LocalTensor) -> Result<LocalTensor> {
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
            plan: backend::copy_plan(l.ty.device)?,
            inputs: smallvec![Some(l.view())],
            outputs: smallvec![out.view()],
            runtime: SmallVec::new(),
            workspace: None,
            site: CallSite::here(),
        }),
        stream: StreamKind::Compute,
        reads: smallvec![l.storage.clone()],
        writes: smallvec![out.storage.clone()],
    })
}
