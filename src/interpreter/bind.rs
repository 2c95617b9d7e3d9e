//! Binding a plan: its numbered buffers become memory, its steps instructions.

use super::alias;
use super::boxing::{boxed, run_boxing};
use super::call::Call;
use super::counted::{Length, with_length};
use super::read::local_bytes;
use crate::backend;
use crate::comm::Tag;
use crate::context::RankCtx;
use crate::error::{CallSite, Error, Result};
use crate::ops::{Op, RuntimeAttrs, ViewFn};
use crate::placement::Device;
use crate::plan::{Apart, BoxStep, BufferId, For, KernelPlan, KernelStep, LocalRef, Numbers, Plan};
use crate::tensor::{LocalTensor, Tensor};
use crate::vm::Instruction;
use smallvec::SmallVec;
use std::sync::Arc;

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
    #[inline]
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
    #[inline]
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

    #[inline]
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
        let in_place = matches!(step.numbers, Numbers::OfCall) && alias::writes(self.call);
        let Some(kernel) = &step.kernel else { return self.nothing(n, step, in_place) };
        let runtime = match step.numbers {
            Numbers::OfCall => RuntimeAttrs::from_slice(&self.call.runtime),
            Numbers::Each(..) => step.runtime(&self.call.runtime)?,
        };
        // Bound where it stands: it is too large to be moved from part to part.
        let mut i = Instruction::of_kernel(kernel.clone(), runtime, self.call.site);
        let mut memory = alias::Memory::default();
        if in_place {
            memory = self.bind_written(n, step, &mut i)?;
        } else {
            if step.apart.is_some() || step.reuse.is_some() {
                return self.kernel_otherwise(n, step, kernel, i);
            }
            for (k, id) in step.inputs.iter().enumerate() {
                match id {
                    Some(id) => self.bind_input(n, step.op, (k, *id), &mut i)?,
                    None => i.absent(),
                }
            }
        }
        // Not held any longer: who holds a storage is counted.
        match memory.given.take() {
            Some(given) => i.output(given.view(), &given.storage),
            None => self.allocate(step, |out| i.output(out.view(), &out.storage))?,
        }
        let rt = self.ctx.device(self.plan.device)?;
        if kernel.workspace > 0 {
            i.workspace(rt.alloc.alloc(kernel.workspace)?);
        }
        rt.vm.submit(i)?;
        for (from, to) in &memory.back {
            copy_into(self.ctx, from, to)?;
        }
        Ok(())
    }

    /// Allocates what a step makes, and shows each to `f`.
    #[inline]
    fn allocate(&mut self, step: &KernelStep, mut f: impl FnMut(&LocalTensor)) -> Result<()> {
        for id in &step.makes {
            let buffer = &self.plan.buffers[id.index()];
            let Some(ty) = &buffer.local else { continue };
            let out = match buffer.length.and_then(|n| self.length(n)) {
                Some(n) => LocalTensor::alloc(self.ctx, &with_length(ty, n.here))?,
                None => LocalTensor::alloc(self.ctx, ty)?,
            };
            f(&out);
            self.make(*id, Some(out));
        }
        Ok(())
    }

    /// A kernel that the usual way does not serve: some of its tensors are elsewhere, or an output takes the memory of an input. Apart
    /// from the usual way, so that this stays short.
    #[cold]
    fn kernel_otherwise(
        &mut self,
        n: usize,
        step: &KernelStep,
        kernel: &Arc<KernelPlan>,
        mut i: Instruction,
    ) -> Result<()> {
        if let Some(apart) = &step.apart {
            return self.kernel_apart(n, step, kernel, apart, i);
        }
        let mut lent = None;
        for (k, id) in step.inputs.iter().enumerate() {
            match id {
                Some(id) if step.reuse.is_some_and(|r| r.0 == k) => lent = self.lend(n, *id, &mut i)?,
                Some(id) => self.bind_input(n, step.op, (k, *id), &mut i)?,
                None => i.absent(),
            }
        }
        for (o, id) in step.makes.iter().enumerate() {
            let Some(ty) = &self.plan.buffers[id.index()].local else { continue };
            let out = match lent.take_if(|_| step.reuse.is_some_and(|r| r.1 == o)) {
                Some(lent) => lent,
                None => LocalTensor::alloc(self.ctx, ty)?,
            };
            i.output(out.view(), &out.storage);
            self.make(*id, Some(out));
        }
        let rt = self.ctx.device(self.plan.device)?;
        if kernel.workspace > 0 {
            i.workspace(rt.alloc.alloc(kernel.workspace)?);
        }
        rt.vm.submit(i)
    }

    /// Binds a value of the plan that ends with this kernel. Returns it where its memory may become an output's: where nobody else
    /// holds it.
    fn lend(&mut self, n: usize, id: BufferId, i: &mut Instruction) -> Result<Option<LocalTensor>> {
        let Some(l) = self.read(n, id)? else {
            i.absent();
            return Ok(None);
        };
        let whole = l.is_contiguous() && l.offset == 0 && l.storage.is_unique();
        let l = if l.is_contiguous() { l } else { contiguous(self.ctx, &l)? };
        i.input(l.view(), &l.storage, false);
        Ok(Some(l).filter(|_| whole))
    }

    /// A kernel some of whose inputs or outputs are on other devices, or read in host memory: these are copied.
    fn kernel_apart(
        &mut self,
        n: usize,
        step: &KernelStep,
        kernel: &Arc<KernelPlan>,
        apart: &Apart,
        mut i: Instruction,
    ) -> Result<()> {
        let device = self.plan.device;
        for (k, id) in step.inputs.iter().enumerate() {
            let l = match id {
                Some(id) => self.read(n, *id)?,
                None => None,
            };
            let Some(l) = l else {
                i.absent();
                continue;
            };
            let l = match apart.inputs[k] {
                to if to != device => {
                    let own = copied_to(self.ctx, &l, to)?;
                    i.host_input(own.view(), own.storage.clone());
                    continue;
                }
                to if l.ty.device != to => copied_to(self.ctx, &l, to)?,
                _ if !step.op.traits.strided && !l.is_contiguous() => contiguous(self.ctx, &l)?,
                _ => l,
            };
            i.input(l.view(), &l.storage, false);
        }
        let mut made: SmallVec<[(BufferId, LocalTensor, Device); 2]> = SmallVec::new();
        for id in &step.makes {
            let Some(ty) = &self.plan.buffers[id.index()].local else { continue };
            let out = LocalTensor::alloc_like(self.ctx, &ty.ty.shape, ty.ty.dtype, device)?;
            i.output(out.view(), &out.storage);
            made.push((*id, out, ty.device));
        }
        let rt = self.ctx.device(device)?;
        if kernel.workspace > 0 {
            i.workspace(rt.alloc.alloc(kernel.workspace)?);
        }
        rt.vm.submit(i)?;
        for (id, out, to) in made {
            let out = if to == device { out } else { copied_to(self.ctx, &out, to)? };
            self.make(id, Some(out));
        }
        Ok(())
    }

    /// A step without a kernel: what it makes has no elements. What a call writes is as if it had been written.
    fn nothing(&mut self, n: usize, step: &KernelStep, in_place: bool) -> Result<()> {
        if in_place {
            let mut inputs = self.read_all(n, step)?;
            if alias::prepare(self.ctx, self.call, &mut inputs)?.given.is_some() {
                return Ok(());
            }
        }
        self.allocate(step, |_| {})
    }

    /// What a step reads.
    fn read_all(&mut self, n: usize, step: &KernelStep) -> Result<SmallVec<[Option<LocalTensor>; 4]>> {
        let mut inputs = SmallVec::new();
        for id in &step.inputs {
            inputs.push(match id {
                Some(id) => self.read(n, *id)?,
                None => None,
            });
        }
        Ok(inputs)
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
    #[inline]
    fn bind_input(&mut self, n: usize, op: &Op, (k, id): (usize, BufferId), i: &mut Instruction) -> Result<()> {
        let writes = op.writes_inputs() && op.sig.mutates(k);
        let fits = |l: &LocalTensor| op.traits.strided || writes || l.is_contiguous();
        let other = match (self.slot(id), self.call.inputs.get(id.index())) {
            // The usual case: a tensor's own data, which need not be copied from its handle to be seen.
            (None, Some(Some(t))) => {
                let other = t.with_data(|l| match l {
                    Some(l) if fits(l) => {
                        i.input(l.view(), &l.storage, writes);
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
            Some(l) if fits(&l) => i.input(l.view(), &l.storage, writes),
            Some(l) => {
                let l = contiguous(self.ctx, &l)?;
                i.input(l.view(), &l.storage, writes);
            }
            None => i.absent(),
        }
        Ok(())
    }

    /// Binds the inputs of a call that writes in place. Returns the memory of its output, and what is to be copied after the kernel.
    fn bind_written(&mut self, n: usize, step: &KernelStep, i: &mut Instruction) -> Result<alias::Memory> {
        let mut inputs = self.read_all(n, step)?;
        let memory = alias::prepare(self.ctx, self.call, &mut inputs)?;
        if !step.op.traits.strided {
            alias::make_contiguous(self.ctx, step.op, &mut inputs)?;
        }
        for (k, l) in inputs.into_iter().enumerate() {
            match l {
                Some(l) => i.input(l.view(), &l.storage, step.op.sig.mutates(k)),
                None => i.absent(),
            }
        }
        Ok(memory)
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

/// A contiguous copy in memory of its own, on any device; it passes through host memory.
fn copied_to(ctx: &RankCtx, l: &LocalTensor, device: Device) -> Result<LocalTensor> {
    let out = LocalTensor::alloc_like(ctx, l.dims(), l.dtype(), device)?;
    if !ctx.is_dry() {
        ctx.device(device)?.vm.write(&out.storage, 0, &local_bytes(ctx, l)?)?;
    }
    Ok(out)
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
    let mut i = Instruction::of_kernel(backend::copy_plan(l.ty.device)?, SmallVec::new(), CallSite::here());
    i.input(l.view(), &l.storage, false);
    i.output(out.view(), &out.storage);
    vm.submit(i)
}
