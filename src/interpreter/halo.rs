//! The steps of a plan in which ranks exchange boxes: the halo of a shard that its kernel reads, and the parts of a result.

use super::boxing::log_exchange;
use super::layout::collect;
use super::run::Run;
use crate::boxing::BoxesPlan;
use crate::comm::Tag;
use crate::context::check_collective;
use crate::error::{Error, Result};
use crate::placement::Device;
use crate::plan::HaloStep;
use crate::tensor::LocalTensor;
use oflow_kernels::DType;
use std::sync::Arc;

impl Run<'_> {
    /// Gives each rank the box of an input that its kernel reads.
    pub(super) fn halo(&mut self, n: usize, step: &HaloStep) -> Result<()> {
        let from = self.read(n, step.from)?;
        let tag = self.tag.ok_or_else(|| Error::registry("a halo in the plan of a local call"))?;
        let local = match from {
            Some(from) => self.exchange(tag, step.plan.clone(), &[&from], (from.ty.ty.dtype, from.ty.device))?,
            None => None,
        };
        self.make(step.makes, local);
        Ok(())
    }

    /// An exchange of boxes that a call needs.
    pub(super) fn exchange(
        &self,
        tag: &Tag,
        plan: Arc<BoxesPlan>,
        own: &[&LocalTensor],
        (dtype, device): (DType, Device),
    ) -> Result<Option<LocalTensor>> {
        let bytes = plan.elements_sent() * dtype.size() as u64;
        check_collective(tag.op, bytes)?;
        log_exchange(self.ctx, bytes, tag);
        collect(self.ctx, tag, plan, own, dtype, device)
    }
}
