//! The run of a plan: memory of its numbered buffers, step by step.

use super::call::Call;
use crate::comm::Tag;
use crate::context::RankCtx;
use crate::error::Result;
use crate::ops::TensorType;
use crate::plan::{BufferId, GlobalRef, KernelStep, LengthId, LocalRef, Plan, intern_global, intern_local};
use crate::tensor::{LocalTensor, Tensor};
use smallvec::SmallVec;

/// A plan being carried out on a call's tensors.
pub(super) struct Run<'a> {
    pub(super) ctx: &'a RankCtx,
    pub(super) call: &'a Call<'a>,
    pub(super) plan: &'a Plan,
    /// That of the call in the stream of global ops.
    pub(super) tag: Option<&'a Tag>,
    /// Memory of the buffers that steps have made so far; those of inputs are the handles'.
    pub(super) made: SmallVec<[Option<LocalTensor>; 4]>,
    /// Lengths that have become known, by number.
    pub(super) lengths: SmallVec<[Length; 1]>,
    /// The boxed forms of inputs, by number; shorter than the inputs where no later one is boxed.
    pub(super) boxed: SmallVec<[Option<Tensor>; 4]>,
}

/// A length that has become known.
pub(super) struct Length {
    /// Of the part here; 0 on a rank outside the placement.
    pub(super) here: usize,
    /// Of all parts together.
    pub(super) whole: usize,
    /// What each rank of the world told; in a local call, and where nobody had to be asked, this rank's alone.
    pub(super) told: SmallVec<[i64; 8]>,
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
    pub(super) fn slot(&self, id: BufferId) -> Option<usize> {
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

    /// What a step reads.
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
