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
use crate::ops::RuntimeAttrs;
use crate::plan::{BoxStep, BufferId, For, KernelPlan, KernelStep, Numbers, Plan};
use crate::tensor::{LocalTensor, Tensor};
use crate::vm::{Instruction, KernelWork, StreamKind, Work};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, View};
use smallvec::{SmallVec, smallvec};
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
        while self.made.len() <= slot {
            self.made.push(None);
        }
        self.made[slot] = local;
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
        if !self.plan.takes_part {
            return Ok(());
        }
        let mut inputs: SmallVec<[Option<LocalTensor>; 4]> = SmallVec::new();
        for id in &step.inputs {
            inputs.push(match id {
                Some(id) => self.read(n, *id)?,
                None => None,
            });
        }
        if step.view
            && let (Some(view), Some(kernel), Some(Some(input))) = (&step.op.view, &step.kernel, inputs.first())
            && let Some(ty) = step.makes.first().and_then(|b| self.plan.buffers[b.index()].local.as_ref())
            && let Some((offset, strides)) = view(input.dims(), &input.strides, &kernel.attrs, &ty.ty.shape)
        {
            let window = input.window(ty, offset, strides)?;
            self.make(step.makes[0], Some(window));
            return Ok(());
        }
        let of_call = matches!(step.numbers, Numbers::OfCall);
        let in_place = of_call && alias::writes(self.call);
        let mut memory = alias::Memory::default();
        if in_place {
            memory = alias::prepare(self.ctx, self.call, &mut inputs)?;
        }
        if !step.op.traits.strided {
            alias::make_contiguous(self.ctx, step.op, &mut inputs)?;
        }
        let mut outputs: SmallVec<[View; 2]> = SmallVec::new();
        let mut writes: SmallVec<[Storage; 2]> = SmallVec::new();
        if let Some(given) = memory.given {
            outputs.push(given.view());
            writes.push(given.storage);
        } else {
            for id in &step.makes {
                let buffer = &self.plan.buffers[id.index()];
                let Some(ty) = &buffer.local else { continue };
                let out = match buffer.length.and_then(|n| self.length(n)) {
                    Some(n) => LocalTensor::alloc(self.ctx, &with_length(ty, n.here))?,
                    None => LocalTensor::alloc(self.ctx, ty)?,
                };
                outputs.push(out.view());
                writes.push(out.storage.clone());
                self.make(*id, Some(out));
            }
        }
        let Some(kernel) = &step.kernel else { return Ok(()) };
        let runtime = match step.numbers {
            Numbers::OfCall => RuntimeAttrs::from_slice(&self.call.runtime),
            Numbers::Each(..) => step.runtime(&self.call.runtime)?,
        };
        let rt = self.ctx.device(self.plan.device)?;
        rt.vm.submit(self.instruction(kernel, &mut inputs, (outputs, writes), runtime)?)?;
        for (from, to) in &memory.back {
            copy_into(self.ctx, from, to)?;
        }
        Ok(())
    }

    /// A kernel with its views, and the storages that it reads and writes.
    fn instruction(
        &self,
        kernel: &Arc<KernelPlan>,
        inputs: &mut [Option<LocalTensor>],
        (outputs, mut writes): (SmallVec<[View; 2]>, SmallVec<[Storage; 2]>),
        runtime: RuntimeAttrs,
    ) -> Result<Instruction> {
        let workspace = match kernel.workspace {
            0 => None,
            n => {
                let s = self.ctx.device(self.plan.device)?.alloc.alloc(n)?;
                // SAFETY: the block is n bytes, exclusively ours, and lives in `writes` until the kernel is done.
                let v = unsafe { View::from_raw(s.ptr(), DType::U8, smallvec![n], contiguous_strides(&[n])) };
                writes.push(s);
                Some(v)
            }
        };
        let mut views: SmallVec<[Option<View>; 4]> = SmallVec::new();
        let mut reads: SmallVec<[Storage; 4]> = SmallVec::new();
        for (i, l) in inputs.iter_mut().enumerate() {
            let Some(l) = l.take() else {
                views.push(None);
                continue;
            };
            views.push(Some(l.view()));
            match kernel.op.writes_inputs() && kernel.op.sig.mutates(i) {
                true => writes.push(l.storage),
                false => reads.push(l.storage),
            }
        }
        Ok(Instruction {
            work: Work::Kernel(KernelWork {
                plan: kernel.clone(),
                inputs: views,
                outputs,
                runtime,
                workspace,
                site: self.call.site,
            }),
            stream: StreamKind::Compute,
            reads,
            writes,
        })
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
