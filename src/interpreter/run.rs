//! Carries out the plan of a call: its numbered buffers become memory, its kernels instructions.
//!
//! Other files have the steps that not every call has: `boxing`, `in_place`, `cross_device`, `dynamic_shape`, `halo`.

use super::anomaly;
use super::call::{Call, Outputs};
use super::copy::{contiguous, copy_into};
use super::writes::writes;
use crate::comm::Tag;
use crate::context::{DataCheck, RankCtx};
use crate::error::Result;
use crate::memory::{MemoryOwner, MemoryUse};
use crate::ops::{Op, RuntimeAttrs, TensorType, ViewFn};
use crate::plan::{
    BufferId, GlobalRef, KernelPlan, KernelStep, LengthId, LocalRef, Numbers, Plan, Step, intern_global, intern_local,
};
use crate::tensor::{LocalTensor, Tensor};
use crate::vm::Instruction;
use smallvec::SmallVec;

/// The copies to which inputs were boxed for a call, by number; shorter than the inputs where no later one is boxed.
pub(super) type Boxed = SmallVec<[Option<Tensor>; 4]>;

/// Carries out the plan of a call and returns its outputs. Inputs that are boxed for it are put into `boxed`.
#[inline(always)]
pub(super) fn carry_out(
    ctx: &RankCtx,
    call: &Call<'_>,
    plan: &Plan,
    tag: Option<&Tag>,
    boxed: &mut Boxed,
) -> Result<Outputs> {
    let mut run = Run { ctx, call, plan, tag, made: SmallVec::new(), lengths: SmallVec::new(), boxed };
    plan.steps.iter().enumerate().try_for_each(|(n, step)| match step {
        Step::Kernel(k) => run.kernel(n, k),
        Step::Box(b) => run.boxing(n, b),
        Step::Assign(from) => run.assign(n, *from),
        Step::ExchangeLength(a) => run.exchange_length(n, a),
        Step::Rebalance(s) => run.rebalance(n, s),
        Step::Halo(w) => run.halo(n, w),
    })?;
    if ctx.data_check() == DataCheck::All {
        anomaly::look_at_partials(call, plan, run.boxed)?;
    }
    handles(call, plan, &mut run)
}

/// The handles of what a call has made.
#[inline(always)]
fn handles(call: &Call<'_>, plan: &Plan, run: &mut Run<'_>) -> Result<Outputs> {
    let mut outs = Outputs::new();
    if let Some(g) = call.given {
        outs.push(g.clone());
        return Ok(outs);
    }
    for (o, id) in plan.outputs.iter().enumerate() {
        let local = run.output(o)?;
        match (run.global(*id), local) {
            (Some(g), local) => {
                let out = Tensor::from_shard(g, local);
                if call.op.view.is_some() {
                    out.mark_global_view();
                }
                outs.push(out);
            }
            (None, Some(local)) => outs.push(Tensor::from_local(local)),
            (None, None) => {}
        }
    }
    Ok(outs)
}

/// A plan being carried out on a call's tensors.
pub(super) struct Run<'a> {
    pub(super) ctx: &'a RankCtx,
    pub(super) call: &'a Call<'a>,
    pub(super) plan: &'a Plan,
    /// Number of the call in the stream of global ops; none of a local call.
    pub(super) tag: Option<&'a Tag>,
    /// Memory of the buffers that steps have made so far; those of inputs are the handles'.
    made: SmallVec<[Option<LocalTensor>; 4]>,
    /// Lengths that have become known, by number.
    pub(super) lengths: SmallVec<[Length; 1]>,
    pub(super) boxed: &'a mut Boxed,
}

/// A length that has become known.
pub(super) struct Length {
    /// Of the part here; 0 on a rank outside the placement.
    pub(super) here: usize,
    /// Of all parts together.
    pub(super) whole: usize,
    /// Length of each rank's part, by rank of the world; of this rank alone in a local call and where nobody had to be asked.
    pub(super) lengths: SmallVec<[i64; 8]>,
}

/// The type with another size of dim 0.
pub(super) fn with_length(ty: &LocalRef, n: usize) -> LocalRef {
    if ty.ty.shape[0] == n {
        return ty.clone();
    }
    let mut shape = ty.ty.shape.clone();
    shape[0] = n;
    intern_local(&shape, ty.ty.dtype, ty.device)
}

impl Run<'_> {
    /// This rank's part of output `o`, once; none outside the placement. A lowering may hand on an input, or one buffer twice.
    #[inline]
    fn output(&mut self, o: usize) -> Result<Option<LocalTensor>> {
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

    /// This rank's parts of the buffers that a step reads.
    pub(super) fn read_all(&mut self, n: usize, step: &KernelStep) -> Result<SmallVec<[Option<LocalTensor>; 4]>> {
        let mut inputs = SmallVec::new();
        for id in &step.inputs {
            inputs.push(match id {
                Some(id) => self.read(n, *id)?,
                None => None,
            });
        }
        Ok(inputs)
    }

    /// A length that steps before have found.
    pub(super) fn length(&self, id: LengthId) -> Option<&Length> {
        self.lengths.get(id.0 as usize)
    }

    /// The global type of a buffer, with its length; none of a local one.
    pub(super) fn global(&self, id: BufferId) -> Option<GlobalRef> {
        let buffer = &self.plan.buffers[id.index()];
        let bound = buffer.global.as_ref()?;
        let Some(length) = buffer.length.and_then(|n| self.length(n)) else { return Some(bound.clone()) };
        let mut shape = bound.ty.shape.clone();
        shape[0] = length.whole;
        Some(intern_global(TensorType::new(&shape, bound.ty.dtype), &bound.placement, &bound.sbp))
    }
}

/// Temporaries, each with the memory that it is copied to after the kernel.
type Copies = SmallVec<[(LocalTensor, LocalTensor); 1]>;

/// The memory that a call writes, known before its kernel runs.
#[derive(Default)]
pub(super) struct WrittenMemory {
    /// Memory of the given output.
    pub(super) given: Option<LocalTensor>,
    /// Copies to make after the kernel, for kernels that cannot write strided memory.
    pub(super) back: Copies,
}

/// The window onto a tensor that a view op makes, where its strides can say it.
fn seen(l: Option<&LocalTensor>, view: &ViewFn, kernel: &KernelPlan, ty: &LocalRef) -> Option<Result<LocalTensor>> {
    let l = l?;
    let (offset, strides) = view(l.dims(), &l.strides, &kernel.attrs, &ty.ty.shape)?;
    Some(l.window(ty, offset, strides))
}

impl Run<'_> {
    /// Allocates what a kernel makes and issues it; or finds another window onto its input.
    fn kernel(&mut self, n: usize, step: &KernelStep) -> Result<()> {
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
            i.workspace(MemoryOwner::with_use(MemoryUse::Workspace, || rt.alloc.alloc(kernel.workspace))?);
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
            if self.prepare_written(&mut inputs)?.given.is_some() {
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
