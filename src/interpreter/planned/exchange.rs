//! Runs of the acts that are exchanges: boxings, alone and together, and boxes that kernels read.

use super::super::boxing::{Storages, issue_boxing};
use super::super::comm_trace::{BackwardScope, note_exchange, note_together, together};
use super::super::layout::{collect_into, issue_boxings};
use super::act::{Boxing, Home, RootId, What};
use super::{Planned, unbound};
use crate::comm::Tag;
use crate::context::RankCtx;
use crate::error::{Error, Result};
use crate::memory::Storage;
use crate::tensor::LocalTensor;
use crate::vm::boxing_device::Span;
use crate::vm::listed::{Listed, OperationList, Walk};
use crate::vm::{Instruction, ListedWork, StreamKind, Work};
use oflow_kernels::View;
use std::sync::Arc;

impl Planned {
    /// Storages that an act reads and writes, for streams to wait for; also memory whose bytes it begins to use again. Only those that
    /// `fits` says of the memory.
    pub(super) fn storages(&self, k: usize, fits: impl Fn(Home) -> bool) -> Result<Storages> {
        let storage = |r: &RootId| self.memory[*r].as_ref().map(|m| m.storage.clone()).ok_or_else(unbound);
        let fits = |r: &&RootId| fits(self.lowered.roots[**r].home);
        let act = &self.lowered.acts[k];
        let (mut reads, mut writes) = Storages::default();
        let others = self.around[k].waits.iter().filter(|(_, written)| *written).map(|(r, _)| r);
        for r in act.writes.iter().chain(others).filter(fits) {
            let s = storage(r)?;
            if !writes.iter().any(|w: &Storage| w.same_block(&s)) {
                writes.push(s);
            }
        }
        for r in act.reads.iter().filter(fits) {
            reads.push(storage(r)?);
        }
        Ok((reads, writes))
    }

    /// Issues an exchange.
    pub(super) fn exchange(&mut self, ctx: &RankCtx, k: usize, tag: Option<&Tag>) -> Result<()> {
        let act = &self.lowered.acts[k];
        let What::Box(b) = &act.what else { return Ok(()) };
        let tag = match (&b.entry, tag) {
            (Some((op, key, text)), _) => ctx.next_described(op, *key, act.site, &|| text.clone()),
            (None, Some(tag)) => *tag,
            (None, None) => return Err(Error::registry("an exchange in the plan of a local call")),
        };
        let Some(walk) = &b.walk else { return Ok(()) };
        let _backward = b.backward.then(BackwardScope::enter);
        let Some(scratch) = &b.scratch else { return self.issue_exchange(ctx, k, (b, walk), &tag) };
        let listed = match &self.lists[k] {
            Some(listed) => listed.clone(),
            None => {
                let listed = Arc::new(self.listed(ctx, k, (b, walk), scratch)?);
                self.lists[k] = Some(listed.clone());
                listed
            }
        };
        let stopwatch = match walk {
            Walk::Plans(plans) => note_together(ctx, plans, &together(ctx, plans), &tag),
            Walk::Boxes(plan, dtype) => note_exchange(ctx, &tag, plan.elements_sent() * dtype.size() as u64),
        };
        let (reads, writes) = self.storages(k, |home| home != Home::Arena)?;
        let work = Work::Listed(ListedWork { listed, tag, stopwatch });
        ctx.submit_boxing(b.devices.0, b.devices.1, Instruction { work, stream: StreamKind::Comm, reads, writes })
    }

    /// Lists what an exchange does, with the memory that is bound now.
    #[cold]
    fn listed(&self, ctx: &RankCtx, k: usize, (b, walk): (&Boxing, &Walk), scratch: &[RootId]) -> Result<Listed> {
        let mut scratch = scratch.iter();
        let list = OperationList::of(walk, ctx.rank(), &self.ends_of(b)?, &mut |bytes| {
            let root = scratch.next().and_then(|r| self.memory[*r].as_ref()).filter(|m| m.storage.bytes() == bytes);
            let storage = &root.ok_or_else(unbound)?.storage;
            Ok(Span { ptr: storage.ptr(), len: bytes })
        })?;
        let (reads, writes) = self.storages(k, |home| home == Home::Arena)?;
        let (shares, bytes) = match walk {
            Walk::Plans(plans) => {
                let bytes = plans.iter().map(|p| p.shape.iter().product::<usize>() * p.dtype.size()).sum();
                (together(ctx, plans).predicted.clone(), bytes)
            }
            Walk::Boxes(plan, dtype) => (vec![1], plan.shape.iter().product::<usize>() * dtype.size()),
        };
        let ends = (b.ends.iter().any(|e| e.0.is_some()), b.ends.iter().any(|e| e.1.is_some()));
        Ok(Listed { list, reads: reads.into_vec(), writes: writes.into_vec(), shares, bytes, ends })
    }

    /// This rank's shards, or boxes.
    fn ends_of(&self, b: &Boxing) -> Result<Vec<(Option<View>, Option<View>)>> {
        let view = |s: &Option<usize>| s.map(|s| Ok::<_, Error>(self.local_of(s)?.view())).transpose();
        b.ends.iter().map(|(from, to)| Ok((view(from)?, view(to)?))).collect()
    }

    /// Issues an exchange that is not in host memory.
    #[cold]
    fn issue_exchange(&self, ctx: &RankCtx, k: usize, (b, walk): (&Boxing, &Walk), tag: &Tag) -> Result<()> {
        let local = |s: &Option<usize>| s.map(|s| self.local_of(s)).transpose();
        let storages = self.storages(k, |_| true)?;
        match (walk, b.ends.as_slice()) {
            (Walk::Plans(plans), [(from, to)]) => {
                let ends: (Option<LocalTensor>, Option<LocalTensor>) = (local(from)?, local(to)?);
                issue_boxing(ctx, &plans[0], (ends.0.as_ref(), ends.1.as_ref()), storages, tag)
            }
            (Walk::Plans(plans), _) => issue_boxings(ctx, (plans.clone(), self.ends_of(b)?), storages, tag),
            (Walk::Boxes(plan, dtype), ends) => {
                let own = ends.iter().filter_map(|(own, _)| local(own).transpose()).collect::<Result<Vec<_>>>()?;
                let wanted = ends.first().map_or(Ok(None), |(_, wanted)| local(wanted))?;
                let own: Vec<&LocalTensor> = own.iter().collect();
                let exchange = (plan.clone(), *dtype, b.devices.1);
                collect_into(ctx, tag, exchange, (&own, wanted.as_ref()), storages)
            }
        }
    }
}
