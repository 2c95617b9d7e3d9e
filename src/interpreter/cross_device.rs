//! Kernels that the usual way does not serve: some of their tensors are on other devices, or an output takes the memory of an input.

use super::copy::{contiguous, copied_to};
use super::run::Run;
use crate::error::Result;
use crate::memory::{MemoryOwner, MemoryUse};
use crate::placement::Device;
use crate::plan::{BufferId, CrossDevice, KernelPlan, KernelStep};
use crate::tensor::LocalTensor;
use crate::vm::Instruction;
use smallvec::SmallVec;
use std::sync::Arc;

impl Run<'_> {
    /// A kernel that the usual way does not serve: some of its tensors are elsewhere, or an output takes the memory of an input. Apart
    /// from the usual way, so that this stays short.
    #[cold]
    pub(super) fn kernel_otherwise(
        &mut self,
        n: usize,
        step: &KernelStep,
        kernel: &Arc<KernelPlan>,
        mut i: Instruction,
    ) -> Result<()> {
        if let Some(devices) = &step.cross_device {
            return self.kernel_cross_device(n, step, kernel, devices, i);
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
            i.workspace(MemoryOwner::with_use(MemoryUse::Workspace, || rt.alloc.alloc(kernel.workspace))?);
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
    fn kernel_cross_device(
        &mut self,
        n: usize,
        step: &KernelStep,
        kernel: &Arc<KernelPlan>,
        devices: &CrossDevice,
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
            let l = match devices.inputs[k] {
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
            i.workspace(MemoryOwner::with_use(MemoryUse::Workspace, || rt.alloc.alloc(kernel.workspace))?);
        }
        rt.vm.submit(i)?;
        for (id, out, to) in made {
            let out = if to == device { out } else { copied_to(self.ctx, &out, to)? };
            self.make(id, Some(out));
        }
        Ok(())
    }
}
