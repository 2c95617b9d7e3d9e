//! Memory of the tensors that a call writes in place.

use super::call::Call;
use super::copy::{contiguous, copy_into};
use super::run::{Run, WrittenMemory};
use crate::context::RankCtx;
use crate::error::Result;
use crate::ops::Op;
use crate::plan::{BufferId, KernelStep};
use crate::tensor::LocalTensor;
use crate::vm::Instruction;
use smallvec::SmallVec;

impl Run<'_> {
    /// Gives the tensors that the call writes memory of their own, as [`prepare`] says.
    pub(super) fn prepare_written(&self, inputs: &mut SmallVec<[Option<LocalTensor>; 4]>) -> Result<WrittenMemory> {
        prepare(self.ctx, self.call, inputs)
    }

    /// Binds the inputs of a call that writes in place. Returns the memory of its output, and what is to be copied after the kernel.
    pub(super) fn bind_written(&mut self, n: usize, step: &KernelStep, i: &mut Instruction) -> Result<WrittenMemory> {
        let mut inputs = self.read_all(n, step)?;
        let memory = self.prepare_written(&mut inputs)?;
        if !step.op.traits.strided {
            make_contiguous(self.ctx, step.op, &mut inputs)?;
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
        let memory = self.prepare_written(&mut SmallVec::new())?;
        match memory.given {
            Some(given) => copy_into(self.ctx, &result, &given),
            None => Ok(()),
        }
    }
}

/// Gives the tensors that a call writes memory of their own, increments versions, and copies inputs that overlap it.
///
/// A global tensor is a value: memory that other handles (views, saved tensors, shards taken out) hold too is not written;
/// the handle gets memory of its own. Inputs that are written elsewhere than they are read are read from copies.
fn prepare(ctx: &RankCtx, call: &Call<'_>, inputs: &mut SmallVec<[Option<LocalTensor>; 4]>) -> Result<WrittenMemory> {
    let mut memory = WrittenMemory::default();
    let mut targets: SmallVec<[LocalTensor; 4]> = SmallVec::new();
    if let Some(g) = call.given
        && let Some(mut out) = g.data()?
    {
        // Held by the handle, by `out`, and by what is read of the same handle.
        let same = call.inputs.iter().zip(inputs.iter()).filter(|(t, l)| l.is_some() && t.is_some_and(|t| t.same(g)));
        if g.is_global() && (out.storage.holders() > 2 + same.count() || !out.is_contiguous()) {
            out = LocalTensor::alloc(ctx, &out.ty)?;
            g.replace_shard(out.clone());
        }
        targets.push(out.clone());
        memory.given = Some(out);
    }
    for (i, t) in call.inputs.iter().enumerate() {
        if call.op.sig.mutates(i)
            && let (Some(t), Some(Some(l))) = (t, inputs.get_mut(i))
        {
            // One hold by the handle, one by `l`.
            if t.is_global() && (l.storage.holders() > 2 || l.overlaps_itself()) {
                *l = contiguous(ctx, l)?;
                t.replace_shard(l.clone());
            }
            targets.push(l.clone());
        }
    }
    for l in &targets {
        l.storage.bump_version();
    }
    clear_the_way(ctx, call, inputs, &mut targets)?;
    if !call.op.traits.strided {
        memory.direct(ctx, call, inputs)?;
    }
    Ok(memory)
}

/// Copies the inputs of strides that the op's kernels do not take. What is written is not read from a copy.
fn make_contiguous(ctx: &RankCtx, op: &Op, inputs: &mut [Option<LocalTensor>]) -> Result<()> {
    for (i, l) in inputs.iter_mut().enumerate() {
        if let Some(l) = l.as_mut().filter(|l| !l.is_contiguous() && !op.sig.mutates(i)) {
            *l = contiguous(ctx, l)?;
        }
    }
    Ok(())
}

/// Copies the inputs that share memory with what is written, and not element by element.
fn clear_the_way(
    ctx: &RankCtx,
    call: &Call<'_>,
    inputs: &mut SmallVec<[Option<LocalTensor>; 4]>,
    targets: &mut [LocalTensor],
) -> Result<()> {
    targets.sort_unstable_by_key(|l| l.storage.id());
    for (i, l) in inputs.iter_mut().enumerate() {
        let Some(l) = l.as_mut().filter(|_| !call.op.sig.mutates(i)) else { continue };
        let first = targets.partition_point(|t| t.storage.id() < l.storage.id());
        let shared = targets[first..].iter().take_while(|t| t.storage.id() == l.storage.id());
        if shared.into_iter().any(|t| !t.same_window(l)) {
            *l = contiguous(ctx, l)?;
        }
    }
    Ok(())
}

impl WrittenMemory {
    /// Lets a kernel that takes contiguous memory only write temporaries, which are copied to their places afterwards.
    fn direct(
        &mut self,
        ctx: &RankCtx,
        call: &Call<'_>,
        inputs: &mut SmallVec<[Option<LocalTensor>; 4]>,
    ) -> Result<()> {
        let mutable =
            inputs.iter_mut().enumerate().filter(|(i, _)| call.op.sig.mutates(*i)).filter_map(|(_, l)| l.as_mut());
        for l in self.given.iter_mut().chain(mutable) {
            if !l.is_contiguous() {
                let here = contiguous(ctx, l)?;
                self.back.push((here.clone(), std::mem::replace(l, here)));
            }
        }
        Ok(())
    }
}
