//! Carrying out a [`BoxesPlan`] on this rank: one batch of messages, each of which holds the pieces for one receiver.

use super::scratch::{ALIGN, SCRATCH, Scratch, bytes_mut, cut, view_of};
use crate::boxing::{BoxesPlan, HeldBox, Piece};
use crate::comm::{Communicator, Tag};
use crate::error::{Error, Result};
use crate::sbp::shard_box;
use oflow_kernels::cpu::accumulate::fill_identity;
use oflow_kernels::cpu::copy::copy;
use oflow_kernels::{DType, Dims, ShardBox, View};
use std::collections::BTreeMap;

/// Carries out this rank's part: `held` are all ranks' boxes as they were planned with, `own` the views of this rank's in
/// order, `dst` becomes its shard of the destination (contiguous; none outside). All ranks that hold or need something
/// call this.
///
/// # Errors
/// When the views are not those of the plan, and what the communicator reports.
pub fn execute_collect(
    plan: &BoxesPlan,
    held: &[HeldBox],
    comm: &dyn Communicator,
    tag: &Tag,
    dtype: DType,
    (own, dst): (&[View], Option<&View>),
) -> Result<()> {
    let me = comm.rank();
    let want = plan.dst.placement.position(me).map(|p| shard_box(&plan.shape, &plan.dst.placement, &plan.dst.sbp, p));
    if want.as_ref().map(|w| w.size.as_slice()) != dst.map(|d| d.dims()) {
        return Err(Error::shape(format!("the destination is not a shard of {}", plan.dst)));
    }
    // Which of this rank's views is the box of that number.
    let mut views: BTreeMap<usize, &View> = BTreeMap::new();
    for (source, view) in (0..held.len()).filter(|i| held[*i].rank == me).zip(own) {
        if view.dims() != held[source].at.size.as_slice() || view.dtype() != dtype {
            return Err(Error::shape(format!("box {source} is {}{:?}", view.dtype(), view.dims())));
        }
        views.insert(source, view);
    }
    let taken = |p: &Piece| -> Result<View> {
        let view = views.get(&p.source).ok_or_else(|| Error::shape(format!("box {} is not given", p.source)))?;
        Ok(view.sub_box(&start_in(&p.at, &held[p.source].at), &p.at.size)?)
    };
    let bytes = |p: &Piece| p.at.size.iter().product::<usize>() * dtype.size();
    let (mut to, mut from) = (BTreeMap::<usize, usize>::new(), BTreeMap::<usize, usize>::new());
    for p in plan.pieces.iter().filter(|p| p.from != p.to) {
        if p.from == me {
            *to.entry(p.to).or_default() += bytes(p);
        } else if p.to == me {
            *from.entry(p.from).or_default() += bytes(p);
        }
    }
    let mut scratch = SCRATCH.take();
    let Scratch { send, receive, .. } = &mut scratch;
    let all = |peers: &BTreeMap<usize, usize>| peers.values().map(|len| len.next_multiple_of(ALIGN)).sum();
    let mut rest = send.bytes(all(&to));
    let mut sends: Vec<(usize, &[u8])> = Vec::with_capacity(to.len());
    for (peer, len) in to {
        let message = cut(&mut rest, len);
        let mut free = &mut *message;
        for p in plan.pieces.iter().filter(|p| p.from == me && p.to == peer) {
            let (now, later) = free.split_at_mut(bytes(p));
            copy(&taken(p)?, &view_of(now, dtype, &p.at.size))?;
            free = later;
        }
        sends.push((peer, message));
    }
    let mut rest = receive.bytes(all(&from));
    let mut receives: Vec<(usize, &mut [u8])> = from.iter().map(|(peer, len)| (*peer, cut(&mut rest, *len))).collect();
    if !sends.is_empty() || !receives.is_empty() {
        comm.exchange(tag, &sends, &mut receives)?;
    }
    if let (Some(want), Some(dst)) = (&want, dst) {
        if let Some(op) = plan.identity(me) {
            fill_identity(bytes_mut(dst), dtype, op)?;
        }
        let mut rests: BTreeMap<usize, &[u8]> = receives.iter().map(|(peer, bytes)| (*peer, &**bytes)).collect();
        for p in plan.pieces.iter().filter(|p| p.to == me) {
            let place = dst.sub_box(&start_in(&p.at, want), &p.at.size)?;
            if p.from == me {
                copy(&taken(p)?, &place)?;
                continue;
            }
            let lost = || Error::comm(format!("no message from rank {}", p.from));
            let rest = rests.get_mut(&p.from).ok_or_else(lost)?;
            let (now, later) = rest.split_at(bytes(p));
            copy(&view_of(now, dtype, &p.at.size), &place)?;
            *rest = later;
        }
    }
    SCRATCH.set(scratch);
    Ok(())
}

/// Where `inner` starts in `outer`, both boxes of one tensor.
fn start_in(inner: &ShardBox, outer: &ShardBox) -> Dims {
    inner.offset.iter().zip(&outer.offset).map(|(i, o)| i - o).collect()
}
