//! Carrying out a boxing plan on this rank, over a communicator.
//!
//! One step is one collective on the step's group. A shard is a [`View`] that moves from step to step: slices are views of
//! what was there, the other steps write into scratch buffers of the thread, and the last one into the destination.
//! Splits along a dim that is not the outermost are packed and unpacked around the collective.

use crate::boxing::{BoxingPlan, Contribution, Members, RankExchange, RankProgram, RankStep, identity, reduce_into};
use crate::comm::{Communicator, Group, Tag};
use crate::error::{Error, Result};
use oflow_kernels::cpu::copy::copy;
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Dims, View};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;

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
    let program = plan.program(comm.rank());
    check("source", plan.dtype, src, program.src.as_ref())?;
    check("destination", plan.dtype, dst, program.dst.as_ref())?;
    if dst.is_some_and(|d| !d.is_contiguous()) {
        return Err(Error::argument("the destination of a boxing must be contiguous"));
    }
    // Taken out while it is used, so that a communicator that boxes on this thread finds an empty one instead of a panic.
    let mut scratch = SCRATCH.take();
    let mut run = Run { comm, tag, dtype: plan.dtype, scratch: &mut scratch };
    let result = run.program(&program, src, dst);
    SCRATCH.set(scratch);
    result
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

/// Memory that the steps of one thread use again and again.
#[derive(Default)]
struct Scratch {
    /// A shard between two steps; two, so that a step reads one and writes the other.
    shards: [Buffer; 2],
    send: Buffer,
    receive: Buffer,
    reduce: Buffer,
    group: Vec<usize>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Bytes aligned for every dtype.
#[derive(Default)]
struct Buffer(Vec<u128>);

const ALIGN: usize = size_of::<u128>();

impl Buffer {
    /// That many bytes, whatever they hold. Grows, never shrinks.
    fn bytes(&mut self, len: usize) -> &mut [u8] {
        let words = len.div_ceil(ALIGN);
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        // SAFETY: the vector holds at least that many initialised bytes and is borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }
}

/// A contiguous view of bytes.
fn view_of(bytes: &[u8], dtype: DType, dims: &[usize]) -> View {
    debug_assert_eq!(bytes.len(), dims.iter().product::<usize>() * dtype.size());
    // No bytes may have any address; a view's is aligned.
    let ptr = if bytes.is_empty() { std::ptr::without_provenance_mut(ALIGN) } else { bytes.as_ptr().cast_mut() };
    // SAFETY: the bytes are initialised and, in scratch buffers and destinations, start at multiples of the element; the
    // steps below use a view only while the bytes behind it are alive, and write through it only where they own them.
    unsafe { View::from_raw(ptr, dtype, dims.into(), contiguous_strides(dims)) }
}

/// The bytes of a contiguous view.
fn bytes_of(v: &View) -> &[u8] {
    debug_assert!(v.is_contiguous());
    if v.is_empty() {
        return &[];
    }
    // SAFETY: contiguous, live and initialised by the contract of `View::from_raw`.
    unsafe { std::slice::from_raw_parts(v.ptr(), v.len() * v.dtype().size()) }
}

/// The bytes of a contiguous view that this rank's step writes.
#[allow(clippy::mut_from_ref)]
fn bytes_mut(v: &View) -> &mut [u8] {
    debug_assert!(v.is_contiguous());
    if v.is_empty() {
        return &mut [];
    }
    // SAFETY: as above; `v` is the step's output (the destination, or a scratch buffer that the step's input does not lie
    // in), of which the step makes one slice at a time.
    unsafe { std::slice::from_raw_parts_mut(v.ptr(), v.len() * v.dtype().size()) }
}

struct Run<'a> {
    comm: &'a dyn Communicator,
    tag: &'a Tag,
    dtype: DType,
    scratch: &'a mut Scratch,
}

impl Run<'_> {
    fn program(&mut self, program: &RankProgram, src: Option<&View>, dst: Option<&View>) -> Result<()> {
        let dtype = self.dtype;
        let mut shard = src.cloned();
        // The scratch buffer that the shard is in.
        let mut slot = 1;
        for (i, step) in program.steps.iter().enumerate() {
            // All-reduce works in place: what comes before a run of them at the end already writes to the destination.
            let in_place = |s: &RankStep| matches!(s, RankStep::AllReduce { .. } | RankStep::Keep);
            let to_dst = program.steps[i + 1..].iter().all(in_place);
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
        match (shard, dst) {
            (Some(shard), Some(dst)) if !dst.is_empty() && shard.ptr() != dst.ptr() => Ok(copy(&shard, dst)?),
            _ => Ok(()),
        }
    }

    /// Runs one step: takes the shard before it, returns the one after it. `output` gives a contiguous place for a shard.
    fn step(
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
                fill(bytes_mut(&out), &identity(dtype, *op));
                out
            }
            RankStep::Pad { op, offset, size } => {
                let out = output(shards, size);
                fill(bytes_mut(&out), &identity(dtype, *op));
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
        let own = |offset: &Dims, size: &Dims| -> Result<View> {
            let shard = shard.ok_or_else(|| Error::placement("this rank sends, but has no shard"))?;
            Ok(shard.sub_box(offset, size)?)
        };
        let count = |size: &Dims| size.iter().product::<usize>() * element;
        let room = |size: &Dims| count(size).next_multiple_of(ALIGN);
        let mut rest = send.bytes(x.sends.iter().map(|t| room(&t.size)).sum());
        let mut sends: SmallVec<[(usize, &[u8]); 8]> = SmallVec::new();
        for t in &x.sends {
            let bytes = cut(&mut rest, count(&t.size));
            copy(&own(&t.offset, &t.size)?, &view_of(bytes, dtype, &t.size))?;
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
        if let Some(op) = x.identity {
            fill(bytes_mut(&out), &identity(dtype, op));
        }
        for cell in &x.cells {
            let place = out.sub_box(&cell.offset, &cell.size)?;
            if let [only] = cell.contributions.as_slice() {
                let from = match only {
                    Contribution::Own(at) => own(at, &cell.size)?,
                    Contribution::Received(i) => view_of(&*receives[*i].1, dtype, &cell.size),
                };
                copy(&from, &place)?;
                continue;
            }
            // This rank's own contribution, then the results of the levels, inner first.
            let bytes = place.len() * element;
            let (mine, mut rest) = reduce.bytes(bytes * (cell.contributions.len() + 1)).split_at_mut(bytes);
            for c in &cell.contributions {
                if let Contribution::Own(at) = c {
                    copy(&own(at, &cell.size)?, &view_of(mine, dtype, &cell.size))?;
                }
            }
            let mut parts: SmallVec<[&[u8]; 8]> = SmallVec::new();
            for c in &cell.contributions {
                parts.push(match c {
                    Contribution::Own(_) => mine,
                    Contribution::Received(i) => &*receives[*i].1,
                });
            }
            for (op, count) in x.levels.iter().rev() {
                let results = parts.chunks(*count).len();
                let (now, later) = rest.split_at_mut(results * bytes);
                for (chunk, result) in parts.chunks(*count).zip(now.chunks_mut(bytes)) {
                    reduce_into(result, chunk, dtype, *op);
                }
                parts = now.chunks(bytes).collect();
                rest = later;
            }
            copy(&view_of(parts[0], dtype, &cell.size), &place)?;
        }
        Ok(Some(out))
    }
}

/// Makes a call on a step's group, with the list of ranks in memory that is used again.
fn in_group<R>(ranks: &mut Vec<usize>, members: &Members, call: impl FnOnce(&Group) -> R) -> R {
    let mut group = Group { ranks: std::mem::take(ranks), me: members.me };
    group.ranks.clear();
    group.ranks.extend_from_slice(&members.ranks);
    let result = call(&group);
    *ranks = group.ranks;
    result
}

/// Bytes of each member's part of a dim of a tensor of these sizes.
fn part_bytes(dtype: DType, size: &[usize], dim: usize, parts: &[Range<usize>]) -> SmallVec<[usize; 8]> {
    let others: usize = (0..size.len()).filter(|d| *d != dim).map(|d| size[d]).product();
    parts.iter().map(|p| p.len() * others * dtype.size()).collect()
}

/// The shard, copied if it has gaps.
fn contiguous(shard: &View, buffer: &mut Buffer) -> Result<View> {
    if shard.is_contiguous() {
        return Ok(shard.clone());
    }
    let bytes = buffer.bytes(shard.len() * shard.dtype().size());
    let packed = view_of(bytes, shard.dtype(), shard.dims());
    copy(shard, &packed)?;
    Ok(packed)
}

/// The parts of a dim one after another, copied if they do not lie so already.
fn packed(shard: &View, dim: usize, parts: &[Range<usize>], buffer: &mut Buffer) -> Result<View> {
    if shard.dims()[..dim].iter().product::<usize>() <= 1 {
        return contiguous(shard, buffer);
    }
    let (dtype, element) = (shard.dtype(), shard.dtype().size());
    let bytes = buffer.bytes(shard.len() * element);
    let packed = view_of(bytes, dtype, &[shard.len()]);
    let mut start = 0;
    for part in parts {
        let piece = along(shard, dim, part)?;
        let place = packed.sub_box(&[start], &[piece.len()])?;
        start += piece.len();
        copy(&piece, &view_of(bytes_mut(&place), dtype, piece.dims()))?;
    }
    Ok(packed)
}

/// The part of a view along one dim.
fn along(v: &View, dim: usize, part: &Range<usize>) -> Result<View> {
    let (mut offset, mut size): (Dims, Dims) = (SmallVec::from_elem(0, v.rank()), v.dims().into());
    offset[dim] = part.start;
    size[dim] = part.len();
    Ok(v.sub_box(&offset, &size)?)
}

/// Puts parts that lie one after another side by side in a dim.
fn unpack(mut from: &[u8], out: &View, dim: usize, parts: &[Range<usize>], counts: &[usize]) -> Result<()> {
    for (part, count) in parts.iter().zip(counts) {
        let place = along(out, dim, part)?;
        let (now, later) = from.split_at(*count);
        copy(&view_of(now, out.dtype(), place.dims()), &place)?;
        from = later;
    }
    Ok(())
}

/// Takes that many bytes off the front, and the gap to where the next may start.
fn cut<'a>(rest: &mut &'a mut [u8], len: usize) -> &'a mut [u8] {
    let (now, later) = std::mem::take(rest).split_at_mut(len.next_multiple_of(ALIGN));
    *rest = later;
    &mut now[..len]
}

/// Repeats one element.
fn fill(bytes: &mut [u8], element: &[u8]) {
    for e in bytes.chunks_exact_mut(element.len()) {
        e.copy_from_slice(element);
    }
}
