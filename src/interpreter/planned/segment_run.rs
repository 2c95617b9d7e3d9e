//! Runs of segments: see `segments.rs`.

use super::Planned;
use crate::context::RankCtx;
use crate::error::Result;
use crate::memory::Storage;
use crate::ops::StreamKind;
use crate::vm::{Instruction, KernelWork, Segment, Work};
use oflow_kernels::View;
use smallvec::SmallVec;
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
        let works = || self.works[acts.clone()].iter().flatten();
        let made = match &self.segments.all[s].made {
            Some(made) => made.clone(),
            None => Arc::new(Segment::new(works().map(KernelWork::again).collect())),
        };
        self.segments.all[s].made = Some(made.clone());
        let (mut reads, mut writes) = (SmallVec::<[Storage; 4]>::new(), SmallVec::<[Storage; 2]>::new());
        for k in acts {
            let (read, written) = self.storages(k, |_| true)?;
            let is_in = |all: &[Storage], s: &Storage| all.iter().any(|other| other.same_block(s));
            written.into_iter().for_each(|s| {
                if !is_in(&writes, &s) {
                    writes.push(s)
                }
            });
            read.into_iter().for_each(|s| {
                if !is_in(&reads, &s) {
                    reads.push(s)
                }
            });
        }
        let device = self.segments.all[s].device;
        let instruction = Instruction { work: Work::Segment(made), stream: StreamKind::Compute, reads, writes };
        ctx.device(device)?.vm.submit(instruction)
    }
}
