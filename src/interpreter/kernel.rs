//! The step of a plan that is a kernel: its inputs and outputs become memory, and it is issued as an instruction.

use super::copy::{contiguous, copy_into};
use super::in_place::{WrittenMemory, prepare};
use super::run::{Run, with_length};
use super::writes::writes;
use crate::error::Result;
use crate::ops::{Op, RuntimeAttrs, ViewFn};
use crate::plan::{BufferId, KernelPlan, KernelStep, LocalRef, Numbers};
use crate::tensor::LocalTensor;
use crate::vm::Instruction;

/// The window onto a tensor that a view op makes, where its strides can say it.
fn seen(l: Option<&LocalTensor>, view: &ViewFn, kernel: &KernelPlan, ty: &LocalRef) -> Option<Result<LocalTensor>> {
    let l = l?;
    let (offset, strides) = view(l.dims(), &l.strides, &kernel.attrs, &ty.ty.shape)?;
    Some(l.window(ty, offset, strides))
}

impl Run<'_> {
    /// Allocates what a kernel makes and issues it; or finds another window onto its input.
    pub(super) fn kernel(&mut self, n: usize, step: &KernelStep) -> Result<()> {
        if !self.plan.takes_part || (step.view && self.window(n, step)?) {
            return Ok(());
        }
        let in_place = matches!(step.numbers, Numbers::OfCall) && writes(self.call);
        let Some(kernel) = &step.kernel else { return self.nothing(n, step, in_place) };
        let runtime = match step.numbers {
            Numbers::OfCall => RuntimeAttrs::from_slice(&self.call.runtime),
            Numbers::Each(..) => step.runtime(&self.call.runtime)?,
        };
        // Bound where it stands: it is too large to be moved from part to part.
        let mut i = Instruction::of_kernel(kernel.clone(), runtime, self.call.site);
        let mut memory = WrittenMemory::default();
        if in_place {
            memory = self.bind_written(n, step, &mut i)?;
        } else {
            if step.cross_device.is_some() || step.reuse.is_some() {
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

    /// A step without a kernel: what it makes has no elements. What a call writes is as if it had been written.
    fn nothing(&mut self, n: usize, step: &KernelStep, in_place: bool) -> Result<()> {
        if in_place {
            let mut inputs = self.read_all(n, step)?;
            if prepare(self.ctx, self.call, &mut inputs)?.given.is_some() {
                return Ok(());
            }
        }
        self.allocate(step, |_| {})
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
    pub(super) fn bind_input(
        &mut self,
        n: usize,
        op: &Op,
        (k, id): (usize, BufferId),
        i: &mut Instruction,
    ) -> Result<()> {
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
}
