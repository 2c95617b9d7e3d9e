//! The steps of a plan whose result has a length that depends on values: ranks agree on the lengths of the parts, then each gets its shard.

use super::comm_trace::collective;
use super::copy::contiguous;
use super::run::{Length, Run, with_length};
use crate::boxing::{HeldBox, Layout, collect_boxes};
use crate::comm::{Group, Tag};
use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::plan::{ExchangeLengthStep, GlobalRef, LengthId, RebalanceStep, parts_of};
use crate::sbp::{NdSbp, Sbp, shard_box};
use crate::tensor::LocalTensor;
use oflow_kernels::view::contiguous_strides;
use smallvec::{SmallVec, smallvec};

impl Run<'_> {
    /// Reads the length of the part here. Ranks that make other parts, and those that make none, are told.
    pub(super) fn exchange_length(&mut self, n: usize, step: &ExchangeLengthStep) -> Result<()> {
        let mut here = 0i64;
        if let Some(count) = self.read(n, step.count)? {
            let mut bytes = [0u8; 8];
            self.ctx.device(self.plan.device)?.vm.read(&count.storage, count.offset * 8, &mut bytes)?;
            here = i64::from_le_bytes(bytes);
            // What is impossible is told to the others, so that all ranks refuse alike.
            if !(0..=self.most(step.makes)).contains(&here) {
                here = -1;
            }
        }
        let length = match (&step.spread, self.tag) {
            (Some((placement, sbp)), Some(tag)) if self.must_tell(placement, sbp) => {
                let lengths = self.tell(here, tag)?;
                let (whole, _) = parts_of(&[0], placement, sbp, &lengths)?;
                Length { here: here.max(0) as usize, whole, lengths }
            }
            _ => {
                let impossible = |_| Error::registry("the kernel gave a length that its result cannot have");
                let here = usize::try_from(here).map_err(impossible)?;
                Length { here, whole: here, lengths: smallvec![here as i64] }
            }
        };
        debug_assert_eq!(step.makes.0 as usize, self.lengths.len(), "lengths are numbered as they are found");
        self.lengths.push(length);
        Ok(())
    }

    /// The greatest length that the part here can have.
    fn most(&self, length: LengthId) -> i64 {
        let of_it = |b: &&crate::plan::Buffer| b.length == Some(length);
        let first = self.plan.buffers.iter().find(of_it).and_then(|b| b.local.as_ref());
        first.map_or(0, |l| l.ty.shape[0] as i64)
    }

    /// Whether there is a rank that does not know the length of every part: where all have the whole, all do.
    fn must_tell(&self, placement: &Placement, sbp: &NdSbp) -> bool {
        placement.len() < self.ctx.world() || !whole_everywhere(placement, sbp)
    }

    /// The number of each rank of the world.
    fn tell(&self, here: i64, tag: &Tag) -> Result<SmallVec<[i64; 8]>> {
        let world = self.ctx.world();
        self.ctx.quiesce()?;
        let mut all = vec![0u8; 8 * world];
        let group = Group { ranks: (0..world).collect(), me: self.ctx.rank() };
        let sent = (8 * world * (world - 1)) as u64;
        collective(self.ctx, tag, sent, |comm| {
            comm.all_gather(&group, tag, &here.to_le_bytes(), &mut all, &vec![8; world])
        })?;
        Ok(all.chunks_exact(8).map(|w| i64::from_le_bytes(w.try_into().unwrap_or_default())).collect())
    }

    /// Makes the result of the parts.
    pub(super) fn rebalance(&mut self, n: usize, step: &RebalanceStep) -> Result<()> {
        let part = self.read(n, step.from)?;
        let length = self.length(step.length).ok_or_else(|| Error::registry("a length that no step has found"))?;
        let part = part.map(|p| first_rows(&p, length.here)).transpose()?;
        let local = match (self.global(step.makes), self.tag) {
            (Some(to), Some(tag)) => self.spread(part, step, &to, tag)?,
            _ => part.map(|p| self.own(p)).transpose()?,
        };
        self.make(step.makes, local);
        Ok(())
    }

    /// A tensor with memory of its own size.
    fn own(&self, part: LocalTensor) -> Result<LocalTensor> {
        match part.storage.bytes() > part.ty.ty.bytes().max(LEAST) {
            true => contiguous(self.ctx, &part),
            false => Ok(part),
        }
    }

    /// The shard here of the layout `to` of all parts.
    fn spread(
        &self,
        part: Option<LocalTensor>,
        step: &RebalanceStep,
        to: &GlobalRef,
        tag: &Tag,
    ) -> Result<Option<LocalTensor>> {
        let (ctx, placement) = (self.ctx, &to.placement);
        let length = self.length(step.length).ok_or_else(|| Error::registry("a length that no step has found"))?;
        let sbp = step.parts.as_ref().ok_or_else(|| Error::registry("parts that no step has spread"))?;
        if *sbp == to.sbp && whole_everywhere(placement, sbp) {
            return part.map(|p| self.own(p)).transpose();
        }
        let lengths: SmallVec<[i64; 8]> = match length.lengths.len() == ctx.world() {
            true => length.lengths.clone(),
            false => SmallVec::from_elem(length.here as i64, ctx.world()),
        };
        let (_, boxes) = parts_of(&to.ty.shape, placement, sbp, &lengths)?;
        // Every rank compares all positions, so that all move or none does.
        let there = |p: usize| boxes[p] == shard_box(&to.ty.shape, placement, &to.sbp, p);
        if !to.sbp.has_partial() && (0..placement.len()).all(there) {
            return part.map(|p| self.own(p)).transpose();
        }
        let each = placement.ranks().iter().zip(boxes);
        let held: Vec<HeldBox> = each.map(|(rank, at)| HeldBox { rank: *rank, at }).collect();
        let own: SmallVec<[&LocalTensor; 1]> = part.iter().collect();
        let at = Layout::new(placement, to.sbp.clone());
        let plan = collect_boxes(&to.ty.shape, &held, &at, ctx.planner().model())?;
        self.exchange(tag, plan.into(), &own, (to.ty.dtype, placement.device()))
    }
}

/// Tensors of no more bytes keep the memory that they were computed in.
const LEAST: usize = 4096;

/// Whether each rank of the placement has all of it.
fn whole_everywhere(placement: &Placement, sbp: &NdSbp) -> bool {
    (0..sbp.len()).all(|a| sbp[a] == Sbp::Broadcast || placement.dims()[a] == 1)
}

/// The first `n` rows of a part.
fn first_rows(part: &LocalTensor, n: usize) -> Result<LocalTensor> {
    let ty = with_length(&part.ty, n);
    part.window(&ty, 0, contiguous_strides(&ty.ty.shape))
}
