//! Carrying out a [`BoxesPlan`] on this rank: one batch of messages, each of which holds the pieces for one receiver.

use super::boxing_device::{ALIGN, Among, BoxingDevice, Message, Scratch, Span};
use super::boxing_device_host::on_host;
use crate::boxing::{BoxesPlan, Piece};
use crate::comm::{Communicator, Tag};
use crate::error::{Error, Result};
use crate::memory::Allocator;
use oflow_kernels::{DType, Dims, ShardBox, View};
use std::collections::BTreeMap;

/// Carries out this rank's part: `own` are the views of this rank's boxes in order, `dst` becomes the box that it is to have
/// (contiguous; none where it needs none). All ranks that hold or need something call this.
///
/// # Errors
/// When the views are not those of the plan, and what the communicator reports.
pub fn execute_collect(
    plan: &BoxesPlan,
    (comm, memory): (&dyn Communicator, &Allocator),
    tag: &Tag,
    dtype: DType,
    ends: (&[View], Option<&View>),
) -> Result<()> {
    on_host((comm, memory), tag, |host| execute_collect_at(host, plan, dtype, ends))
}

/// Carries it out where the boxes live.
pub(crate) fn execute_collect_at<P: BoxingDevice>(
    at: &mut P,
    plan: &BoxesPlan,
    dtype: DType,
    (own, dst): (&[View], Option<&View>),
) -> Result<()> {
    let me = at.rank();
    let (held, want) = (&plan.held, plan.wants(me));
    if want.map(|w| w.at.size.as_slice()) != dst.map(|d| d.dims()) {
        return Err(Error::shape(format!(
            "the destination {:?} is not the box that rank {me} is to have",
            dst.map(|d| d.dims())
        )));
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
    let all = |peers: &BTreeMap<usize, usize>| peers.values().map(|len| len.next_multiple_of(ALIGN)).sum();
    let mut rest = at.scratch_buffer(Scratch::Send, all(&to))?;
    let mut sends: Vec<Message> = Vec::with_capacity(to.len());
    for (peer, len) in to {
        let message = rest.cut(len);
        let mut free = message;
        for p in plan.pieces.iter().filter(|p| p.from == me && p.to == peer) {
            let (now, later) = free.split_at(bytes(p));
            at.copy(&taken(p)?, &now.view(dtype, &p.at.size))?;
            free = later;
        }
        sends.push((peer, message));
    }
    let mut rest = at.scratch_buffer(Scratch::Receive, all(&from))?;
    let receives: Vec<Message> = from.iter().map(|(peer, len)| (*peer, rest.cut(*len))).collect();
    if !sends.is_empty() || !receives.is_empty() {
        at.exchange(Among::Ranks(&plan.ranks()), &sends, &receives)?;
    }
    if let (Some(want), Some(dst)) = (want, dst) {
        if let Some(op) = want.identity {
            at.identity(dst, op)?;
        }
        let mut rests: BTreeMap<usize, Span> = receives.into_iter().collect();
        for p in plan.pieces.iter().filter(|p| p.to == me) {
            let place = dst.sub_box(&start_in(&p.at, &want.at), &p.at.size)?;
            if p.from == me {
                at.copy(&taken(p)?, &place)?;
                continue;
            }
            let lost = || Error::comm(format!("no message from rank {}", p.from));
            let rest = rests.get_mut(&p.from).ok_or_else(lost)?;
            let (now, later) = rest.split_at(bytes(p));
            at.copy(&now.view(dtype, &p.at.size), &place)?;
            *rest = later;
        }
    }
    Ok(())
}

/// Where `inner` starts in `outer`, both boxes of one tensor.
fn start_in(inner: &ShardBox, outer: &ShardBox) -> Dims {
    inner.offset.iter().zip(&outer.offset).map(|(i, o)| i - o).collect()
}
