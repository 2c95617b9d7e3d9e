//! Carrying out a boxing plan on this rank.
//!
//! One step is one collective on the step's group. A shard is a [`View`] that moves from step to step: slices are views of
//! what was there, the other steps write into rooms of the place, and the last one into the destination. Splits along a dim
//! that is not the outermost are packed and unpacked around the collective. Where the shards live, the `BoxingDevice` knows.

use super::boxing_device::{
    ALIGN, Among, BoxingDevice, Message, Scratch, Span, contiguous, packed, part_bytes, unpack,
};
use super::boxing_device_host::on_host;
use crate::boxing::{BoxingPlan, Contribution, GroupOp, Parts, RankCollective, RankExchange, RankProgram, RankStep};
use crate::comm::{CollectiveCall, Communicator, Tag};
use crate::error::{Error, Result};
use crate::memory::Allocator;
use oflow_kernels::{DType, Dims, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// Carries out this rank's part of a plan: `src` is its shard of the source layout (any strides; none outside the source
/// placement), `dst` becomes its shard of the destination layout (contiguous, not overlapping `src`; none outside the
/// destination placement). All ranks of both placements call this, with the same tag. What it needs between the steps is taken
/// from `memory`, and given back.
///
/// # Errors
/// When the views are not shards of the plan's layouts, and what the communicator reports.
pub fn execute(
    plan: &BoxingPlan,
    (comm, memory): (&dyn Communicator, &Allocator),
    tag: &Tag,
    src: Option<&View>,
    dst: Option<&View>,
) -> Result<()> {
    on_host((comm, memory), tag, |host| execute_at(host, plan, src, dst))
}

/// Carries it out where the shards live.
pub(crate) fn execute_at<P: BoxingDevice>(
    place: &mut P,
    plan: &BoxingPlan,
    src: Option<&View>,
    dst: Option<&View>,
) -> Result<()> {
    let program = checked(plan, place.rank(), src, dst)?;
    Run { place, plan }.program(&program, src, dst)
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

pub(super) struct Run<'a, P> {
    pub(super) place: &'a mut P,
    pub(super) plan: &'a BoxingPlan,
}

impl<P: BoxingDevice> Run<'_, P> {
    fn program(&mut self, program: &RankProgram, src: Option<&View>, dst: Option<&View>) -> Result<()> {
        let dtype = self.plan.dtype;
        let mut shard = src.cloned();
        // The scratch buffer that the shard is in.
        let mut slot = 1;
        for (i, step) in program.steps.iter().enumerate() {
            let to_dst = program.writes_destination(i);
            let next = 1 - slot;
            let input = shard.take();
            shard = self.step(step, input, |place, size| {
                if to_dst && let Some(dst) = dst {
                    return Ok(dst.clone());
                }
                slot = next;
                let bytes = size.iter().product::<usize>() * dtype.size();
                Ok(place.scratch_buffer(Scratch::Shard(next), bytes)?.view(dtype, size))
            })?;
        }
        finish(self.place, shard.as_ref(), dst)
    }

    /// Runs one step: takes the shard before it, returns the one after it. `output` gives a contiguous place for a shard.
    pub(super) fn step(
        &mut self,
        step: &RankStep,
        input: Option<View>,
        output: impl FnOnce(&mut P, &[usize]) -> Result<View>,
    ) -> Result<Option<View>> {
        let place = &mut *self.place;
        let shard = match step {
            RankStep::Idle => return Ok(None),
            RankStep::Exchange(x) => return self.exchange(x, input.as_ref(), output),
            RankStep::Collective(c) => return collective(place, c, (self.plan.dtype, input), output).map(Some),
            _ => input.ok_or_else(no_shard)?,
        };
        Ok(Some(match step {
            RankStep::Idle | RankStep::Exchange(_) | RankStep::Collective(_) | RankStep::Keep => shard,
            RankStep::Slice { offset, size } => shard.sub_box(offset, size)?,
            RankStep::Identity { op, size } => {
                let out = output(place, size)?;
                place.identity(&out, *op)?;
                out
            }
            RankStep::Pad { op, offset, size } => {
                let out = output(place, size)?;
                place.identity(&out, *op)?;
                place.copy(&shard, &out.sub_box(offset, shard.dims())?)?;
                out
            }
        }))
    }

    fn exchange(
        &mut self,
        x: &RankExchange,
        shard: Option<&View>,
        output: impl FnOnce(&mut P, &[usize]) -> Result<View>,
    ) -> Result<Option<View>> {
        let dtype = self.plan.dtype;
        let count = |size: &Dims| size.iter().product::<usize>() * dtype.size();
        let aligned_bytes = |size: &Dims| count(size).next_multiple_of(ALIGN);
        let place = &mut *self.place;
        let mut rest = place.scratch_buffer(Scratch::Send, x.sends.iter().map(|t| aligned_bytes(&t.size)).sum())?;
        let mut sends: SmallVec<[Message; 8]> = SmallVec::new();
        for t in &x.sends {
            let bytes = rest.cut(count(&t.size));
            place.copy(&own_box(shard, &t.offset, &t.size)?, &bytes.view(dtype, &t.size))?;
            sends.push((t.rank, bytes));
        }
        let mut rest =
            place.scratch_buffer(Scratch::Receive, x.receives.iter().map(|t| aligned_bytes(&t.size)).sum())?;
        let receives: SmallVec<[Message; 8]> = x.receives.iter().map(|t| (t.rank, rest.cut(count(&t.size)))).collect();
        if !sends.is_empty() || !receives.is_empty() {
            place.exchange(Among::Plan(self.plan), &sends, &receives)?;
        }
        let Some(size) = &x.size else { return Ok(None) };
        let out = output(place, size)?;
        let received: SmallVec<[Span; 8]> = receives.iter().map(|(_, bytes)| *bytes).collect();
        assemble(place, x, shard, &received, &out)?;
        Ok(Some(out))
    }
}

/// The error of a rank without a shard in a step that needs one.
pub(super) fn no_shard() -> Error {
    Error::placement("this rank has no shard, but the step needs one")
}

/// Runs a collective: packs the input if its parts have gaps, and unpacks the output if its parts have.
fn collective<P: BoxingDevice>(
    place: &mut P,
    c: &RankCollective,
    (dtype, input): (DType, Option<View>),
    output: impl FnOnce(&mut P, &[usize]) -> Result<View>,
) -> Result<View> {
    let bytes = |size: &[usize], parts: &Option<Parts>| parts.as_ref().map(|p| part_bytes(dtype, size, p));
    if c.op == GroupOp::Broadcast {
        // Only the root has an input.
        let out = output(place, &c.size)?;
        if let Some(shard) = &input {
            place.copy(shard, &out)?;
        }
        place.collective(&c.members, call(c.op, dtype, (Span::of(&out), &[]), (Span::of(&out), &[])))?;
        return Ok(out);
    }
    let shard = input.ok_or_else(no_shard)?;
    let out = output(place, &c.size)?;
    let send_counts = bytes(shard.dims(), &c.cut).unwrap_or_default();
    let receive_counts = bytes(&c.size, &c.joined).unwrap_or_default();
    let send = match &c.cut {
        Some(parts) => packed(place, &shard, parts, Scratch::Send)?,
        None => contiguous(place, &shard, Scratch::Send)?,
    };
    let direct = c.joined.as_ref().is_none_or(|p| c.size[..p.dim].iter().product::<usize>() == 1);
    let receive = received(place, &out, direct)?;
    let ends = ((Span::of(&send), &send_counts[..]), (receive, &receive_counts[..]));
    place.collective(&c.members, call(c.op, dtype, ends.0, ends.1))?;
    if let Some(parts) = c.joined.as_ref().filter(|_| !direct) {
        unpack(place, receive, &out, parts, &receive_counts)?;
    }
    Ok(out)
}

/// The call of a step's collective, on what is sent and received, with the bytes of each member's part where these are cut
/// or joined. A broadcast has one buffer, which is what is received.
pub(super) fn call<'a>(
    op: GroupOp,
    dtype: DType,
    (send, send_counts): (Span, &'a [usize]),
    (receive, receive_counts): (Span, &'a [usize]),
) -> CollectiveCall<'a, Span, Span> {
    match op {
        GroupOp::AllReduce(op) => CollectiveCall::AllReduce { send, receive, dtype, op },
        GroupOp::AllGather => CollectiveCall::AllGather { send, receive, counts: receive_counts },
        GroupOp::ReduceScatter(op) => CollectiveCall::ReduceScatter { send, receive, counts: send_counts, dtype, op },
        GroupOp::AllToAll => CollectiveCall::AllToAll { send, send_counts, receive, receive_counts },
        GroupOp::Broadcast => CollectiveCall::Broadcast { root: 0, buffer: receive },
    }
}

/// Where the members' parts of an output arrive: in it, if they lie there one after another.
fn received<P: BoxingDevice>(place: &mut P, out: &View, direct: bool) -> Result<Span> {
    if direct { Ok(Span::of(out)) } else { place.scratch_buffer(Scratch::Receive, out.len() * out.dtype().size()) }
}

/// Puts the last shard where it belongs, unless a step has written it there.
pub(super) fn finish<P: BoxingDevice>(place: &mut P, shard: Option<&View>, dst: Option<&View>) -> Result<()> {
    match (shard, dst) {
        (Some(shard), Some(dst)) if !dst.is_empty() && shard.ptr() != dst.ptr() => place.copy(shard, dst),
        _ => Ok(()),
    }
}

/// Makes the output of an exchange from this rank's own shard and the messages it received, in the order of
/// [`RankExchange::receives`].
pub(super) fn assemble<P: BoxingDevice>(
    place: &mut P,
    x: &RankExchange,
    shard: Option<&View>,
    received: &[Span],
    out: &View,
) -> Result<()> {
    let dtype = out.dtype();
    if let Some(op) = x.identity {
        place.identity(out, op)?;
    }
    for cell in &x.cells {
        let to = out.sub_box(&cell.offset, &cell.size)?;
        if let [only] = cell.contributions.as_slice() {
            let from = match only {
                Contribution::Own(at) => own_box(shard, at, &cell.size)?,
                Contribution::Received(i) => received[*i].view(dtype, &cell.size),
            };
            place.copy(&from, &to)?;
            continue;
        }
        // This rank's own contribution, then the results of the levels, inner first.
        let bytes = to.len() * dtype.size();
        let stride = bytes.next_multiple_of(ALIGN);
        let mut rest = place.scratch_buffer(Scratch::Reduce, stride * (cell.contributions.len() + 1))?;
        let mine = rest.cut(bytes);
        for c in &cell.contributions {
            if let Contribution::Own(at) = c {
                place.copy(&own_box(shard, at, &cell.size)?, &mine.view(dtype, &cell.size))?;
            }
        }
        let mut parts: SmallVec<[Span; 8]> = SmallVec::new();
        for c in &cell.contributions {
            parts.push(match c {
                Contribution::Own(_) => mine,
                Contribution::Received(i) => received[*i],
            });
        }
        for (op, count) in x.levels.iter().rev() {
            let mut results: SmallVec<[Span; 8]> = SmallVec::new();
            for chunk in parts.chunks(*count) {
                let result = rest.cut(bytes);
                place.reduce(result, chunk, dtype, *op)?;
                results.push(result);
            }
            parts = results;
        }
        place.copy(&parts[0].view(dtype, &cell.size), &to)?;
    }
    Ok(())
}

/// A box of this rank's shard.
pub(super) fn own_box(shard: Option<&View>, offset: &Dims, size: &Dims) -> Result<View> {
    let shard = shard.ok_or_else(|| Error::placement("this rank sends, but has no shard"))?;
    Ok(shard.sub_box(offset, size)?)
}
