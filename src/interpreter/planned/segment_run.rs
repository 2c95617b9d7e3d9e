//! Runs of segments: see `segments.rs`.

use super::act::RootId;
use super::{Planned, unbound};
use crate::context::RankCtx;
use crate::error::Result;
use crate::ops::StreamKind;
use crate::vm::{Instruction, KernelWork, Segment, Work};
use oflow_kernels::View;
use std::sync::Arc;

/// Addresses of a kernel's views.
fn addresses(work: &KernelWork) -> impl Iterator<Item = usize> {
    let inputs = work.inputs.iter().flatten().chain(&work.outputs).chain(&work.workspace);
    inputs.map(|v: &View| v.ptr().addr())
}

impl Planned {
    /// Issues the kernels of a segment.
    #[cold]
    pub(super) fn segment(&mut self, ctx: &RankCtx, s: usize) -> Result<()> {
        let mut now = std::mem::take(&mut self.segments.now);
        now.clear();
        let acts = self.segments.all[s].acts.clone();
        now.extend(self.works[acts.clone()].iter().flatten().flat_map(addresses));
        let segment = &mut self.segments.all[s];
        let same = segment.addresses == now;
        if !same {
            (segment.made, segment.addresses) = (None, now.clone());
        }
        self.segments.now = now;
        if !same {
            return acts.into_iter().try_for_each(|k| self.act(ctx, k, None));
        }
        let new = || Arc::new(Segment::new(self.works[acts].iter().flatten().map(KernelWork::again).collect()));
        let made = self.segments.all[s].made.get_or_insert_with(new).clone();
        let segment = &self.segments.all[s];
        let storage = |r: &RootId| self.memory[*r].as_ref().map(|m| m.storage.clone()).ok_or_else(unbound);
        let reads = segment.reads.iter().map(storage).collect::<Result<_>>()?;
        let writes = segment.writes.iter().map(storage).collect::<Result<_>>()?;
        let instruction = Instruction { work: Work::Segment(made), stream: StreamKind::Compute, reads, writes };
        ctx.device(segment.device)?.vm.submit(instruction)
    }
}
