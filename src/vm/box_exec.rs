//! Carrying out a boxing plan on this rank, over a communicator.
//!
//! One step is one collective on the step's group. A shard is a [`View`] that moves from step to step: slices are views of
//! what was there, the other steps write into scratch buffers of the thread, and the last one into the destination.
//! Splits along a dim that is not the outermost are packed and unpacked around the collective.

use super::scratch::{
    ALIGN, Buffer, SCRATCH, Scratch, bytes_mut, bytes_of, contiguous, cut, in_group, packed, part_bytes, unpack,
    view_of,
};
use crate::boxing::{BoxingPlan, Contribution, RankExchange, RankProgram, RankStep};
use crate::comm::{Communicator, Tag};
use crate::error::{Error, Result};
use oflow_kernels::cpu::accumulate::{fill_identity, reduce_slices};
use oflow_kernels::cpu::copy::copy;
use oflow_kernels::{DType, Dims, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// Carries out this rank's part of a plan: `src` is its shard of the source layout (any strides; none outside the source
/// placement), `dst` becomes its shard of the destination layout (contiguous, not overlapping `src`; none outside the
/// destination placement). All ranks of both placements call this, with the same tag.
///
/// # Errors
/// When the views are not shards of the plan's layouts, and what the communicator reports.
pub fn execute(
    plan: &BoxingPlan,
    comm: &dyn Communicator,
    tag: &Tag,
    src: Option<&View>,
    dst: Option<&View>,
) -> Result<()> {
    let program = checked(plan, comm.rank(), src, dst)?;
    // Taken out while it is used, so that a communicator that boxes on this thread finds an empty one instead of a panic.
    let mut scratch = SCRATCH.take();
    let mut run = Run { comm, tag, dtype: plan.dtype, scratch: &mut scratch };
    let result = run.program(&program, src, dst);
    SCRATCH.set(scratch);
    result
}

/// This rank's part of a plan, for views that are shards of its layouts.
pub(super) fn checked(
    plan: &BoxingPlan,
    rank: usize,
    src: Option<&View>,
    dst: Option<&View>,
) -> Result<Arc<RankProgram>> {
    let program = plan.program(rank);
    check("source", plan.dtype, src, program.src.as_ref())?;
    check("destination", plan.dtype, dst, program.dst.as_ref())?;
    if dst.is_some_and(|d| !d.is_contiguous()) {
        return Err(Error::argument("the destination of a boxing must be contiguous"));
    }
    Ok(program)
}

fn check(what: &str, dtype: DType, view: Option<&View>, expected: Option<&Dims>) -> Result<()> {
    match (view, expected) {
        (Some(v), Some(e)) if v.dtype() == dtype && *v.dims() == **e => Ok(()),
        (None, None) => Ok(()),
        _ => {
            let given = view.map(|v| format!("{}{:?}", v.dtype(), v.dims()));
            let wanted = expected.map(|e| format!("{dtype}{:?}", e.as_slice()));
            let say = |s: Option<String>| s.unwrap_or_else(|| "no shard".into());
            Err(Error::shape(format!("the {what} of the boxing is {}, the plan has {}", say(given), say(wanted))))
        }
    }
}

pub(super) struct Run<'a> {
    pub(super) comm: &'a dyn Communicator,
    pub(super) tag: &'a Tag,
    pub(super) dtype: DType,
    pub(super) scratch: &'a mut Scratch,
}

impl Run<'_> {
    fn program(&mut self, program: &RankProgram, src: Option<&View>, dst: Option<&View>) -> Result<()> {
        let dtype = self.dtype;
        let mut shard = src.cloned();
        // The scratch buffer that the shard is in.
        let mut slot = 1;
        for (i, step) in program.steps.iter().enumerate() {
            let to_dst = program.ends_in_place(i);
            let next = 1 - slot;
            let input = shard.take();
            shard = self.step(step, input, |shards: &mut [Buffer; 2], size: &[usize]| {
                if to_dst && let Some(dst) = dst {
                    return dst.clone();
                }
                slot = next;
                let bytes = size.iter().product::<usize>() * dtype.size();
                view_of(shards[next].bytes(bytes), dtype, size)
            })?;
        }
        finish(shard.as_ref(), dst)
    }

    /// Runs one step: takes the shard before it, returns the one after it. `output` gives a contiguous place for a shard.
    pub(super) fn step(
        &mut self,
        step: &RankStep,
        input: Option<View>,
        output: impl FnOnce(&mut [Buffer; 2], &[usize]) -> View,
    ) -> Result<Option<View>> {
        let (comm, tag, dtype) = (self.comm, self.tag, self.dtype);
        let shard = match step {
            RankStep::Idle => return Ok(None),
            RankStep::Exchange(x) => return self.exchange(x, input.as_ref(), output),
            RankStep::Broadcast { members, size } => {
                // Only the root has an input.
                let out = output(&mut self.scratch.shards, size);
                if let Some(shard) = &input {
                    copy(shard, &out)?;
                }
                let bytes = bytes_mut(&out);
                in_group(&mut self.scratch.group, members, |g| comm.broadcast(g, tag, 0, bytes))?;
                return Ok(Some(out));
            }
            _ => input.ok_or_else(|| Error::placement("this rank has no shard, but the step needs one"))?,
        };
        let Scratch { shards, send, receive, group, .. } = &mut *self.scratch;
        Ok(Some(match step {
            RankStep::Idle | RankStep::Exchange(_) | RankStep::Broadcast { .. } | RankStep::Keep => shard,
            RankStep::Slice { offset, size } => shard.sub_box(offset, size)?,
            RankStep::Identity { op, size } => {
                let out = output(shards, size);
                fill_identity(bytes_mut(&out), dtype, *op)?;
                out
            }
            RankStep::Pad { op, offset, size } => {
                let out = output(shards, size);
                fill_identity(bytes_mut(&out), dtype, *op)?;
                copy(&shard, &out.sub_box(offset, shard.dims())?)?;
                out
            }
            RankStep::AllReduce { members, op } => {
                let out = output(shards, shard.dims());
                if out.ptr() != shard.ptr() {
                    copy(&shard, &out)?;
                }
                let bytes = bytes_mut(&out);
                in_group(group, members, |g| comm.all_reduce(g, tag, bytes, dtype, *op))?;
                out
            }
            RankStep::AllGather { members, dim, parts, size } => {
                let out = output(shards, size);
                let send = contiguous(&shard, send)?;
                let counts = part_bytes(dtype, size, *dim, parts);
                let direct = size[..*dim].iter().product::<usize>() == 1;
                let receive = if direct { bytes_mut(&out) } else { receive.bytes(out.len() * dtype.size()) };
                in_group(group, members, |g| comm.all_gather(g, tag, bytes_of(&send), receive, &counts))?;
                if !direct {
                    unpack(receive, &out, *dim, parts, &counts)?;
                }
                out
            }
            RankStep::ReduceScatter { members, op, dim, parts, size } => {
                let out = output(shards, size);
                let counts = part_bytes(dtype, shard.dims(), *dim, parts);
                let send = packed(&shard, *dim, parts, send)?;
                let receive = bytes_mut(&out);
                in_group(group, members, |g| {
                    comm.reduce_scatter(g, tag, bytes_of(&send), receive, &counts, dtype, *op)
                })?;
                out
            }
            RankStep::AllToAll { members, from, to, from_parts, to_parts, size } => {
                let out = output(shards, size);
                let send_counts = part_bytes(dtype, shard.dims(), *to, to_parts);
                let counts = part_bytes(dtype, size, *from, from_parts);
                let send = packed(&shard, *to, to_parts, send)?;
                let direct = size[..*from].iter().product::<usize>() == 1;
                let receive = if direct { bytes_mut(&out) } else { receive.bytes(out.len() * dtype.size()) };
                in_group(group, members, |g| comm.all_to_all(g, tag, bytes_of(&send), &send_counts, receive, &counts))?;
                if !direct {
                    unpack(receive, &out, *from, from_parts, &counts)?;
                }
                out
            }
        }))
    }

    fn exchange(
        &mut self,
        x: &RankExchange,
        shard: Option<&View>,
        output: impl FnOnce(&mut [Buffer; 2], &[usize]) -> View,
    ) -> Result<Option<View>> {
        let (dtype, element) = (self.dtype, self.dtype.size());
        let Scratch { shards, send, receive, reduce, .. } = &mut *self.scratch;
        let count = |size: &Dims| size.iter().product::<usize>() * element;
        let room = |size: &Dims| count(size).next_multiple_of(ALIGN);
        let mut rest = send.bytes(x.sends.iter().map(|t| room(&t.size)).sum());
        let mut sends: SmallVec<[(usize, &[u8]); 8]> = SmallVec::new();
        for t in &x.sends {
            let bytes = cut(&mut rest, count(&t.size));
            copy(&own_box(shard, &t.offset, &t.size)?, &view_of(bytes, dtype, &t.size))?;
            sends.push((t.rank, bytes));
        }
        let mut rest = receive.bytes(x.receives.iter().map(|t| room(&t.size)).sum());
        let mut receives: SmallVec<[(usize, &mut [u8]); 8]> = SmallVec::new();
        for t in &x.receives {
            receives.push((t.rank, cut(&mut rest, count(&t.size))));
        }
        if !sends.is_empty() || !receives.is_empty() {
            self.comm.exchange(self.tag, &sends, &mut receives)?;
        }
        let Some(size) = &x.size else { return Ok(None) };
        let out = output(shards, size);
        let received: SmallVec<[&[u8]; 8]> = receives.iter().map(|(_, bytes)| &**bytes).collect();
        assemble(x, shard, &received, &out, reduce)?;
        Ok(Some(out))
    }
}

/// Puts the last shard where it belongs, unless a step has written it there.
pub(super) fn finish(shard: Option<&View>, dst: Option<&View>) -> Result<()> {
    match (shard, dst) {
        (Some(shard), Some(dst)) if !dst.is_empty() && shard.ptr() != dst.ptr() => Ok(copy(shard, dst)?),
        _ => Ok(()),
    }
}

/// Makes the output of an exchange from this rank's own shard and the messages it received, in the order of
/// [`RankExchange::receives`].
pub(super) fn assemble(
    x: &RankExchange,
    shard: Option<&View>,
    received: &[&[u8]],
    out: &View,
    reduce: &mut Buffer,
) -> Result<()> {
    let dtype = out.dtype();
    if let Some(op) = x.identity {
        fill_identity(bytes_mut(out), dtype, op)?;
    }
    for cell in &x.cells {
        let place = out.sub_box(&cell.offset, &cell.size)?;
        if let [only] = cell.contributions.as_slice() {
            let from = match only {
                Contribution::Own(at) => own_box(shard, at, &cell.size)?,
                Contribution::Received(i) => view_of(received[*i], dtype, &cell.size),
            };
            copy(&from, &place)?;
            continue;
        }
        // This rank's own contribution, then the results of the levels, inner first.
        let bytes = place.len() * dtype.size();
        let (mine, mut rest) = reduce.bytes(bytes * (cell.contributions.len() + 1)).split_at_mut(bytes);
        for c in &cell.contributions {
            if let Contribution::Own(at) = c {
                copy(&own_box(shard, at, &cell.size)?, &view_of(mine, dtype, &cell.size))?;
            }
        }
        let mut parts: SmallVec<[&[u8]; 8]> = SmallVec::new();
        for c in &cell.contributions {
            parts.push(match c {
                Contribution::Own(_) => mine,
                Contribution::Received(i) => received[*i],
            });
        }
        for (op, count) in x.levels.iter().rev() {
            let results = parts.chunks(*count).len();
            let (now, later) = rest.split_at_mut(results * bytes);
            for (chunk, result) in parts.chunks(*count).zip(now.chunks_mut(bytes)) {
                reduce_slices(result, chunk, dtype, *op)?;
            }
            parts = now.chunks(bytes).collect();
            rest = later;
        }
        copy(&view_of(parts[0], dtype, &cell.size), &place)?;
    }
    Ok(())
}

/// A box of this rank's shard.
pub(super) fn own_box(shard: Option<&View>, offset: &Dims, size: &Dims) -> Result<View> {
    let shard = shard.ok_or_else(|| Error::placement("this rank sends, but has no shard"))?;
    Ok(shard.sub_box(offset, size)?)
}
