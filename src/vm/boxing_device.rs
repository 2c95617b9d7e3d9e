//! Where the shards of a boxing live: what the walk over a plan asks of the memory and of the way between ranks.
//!
//! The walk ([`super::box_exec`], [`super::box_many`], [`super::box_collect`]) is written once. The host carries it out at
//! once, over a communicator ([`super::boxing_device_host`]); a GPU puts it on a stream (`backend/cuda/boxing_device.rs`). Parts of a dim are
//! packed one after another and put back here, for both.

use crate::boxing::{BoxingPlan, Members, Parts};
use crate::comm::CollectiveCall;
use crate::error::Result;
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Dims, ReduceOp, View};
use smallvec::SmallVec;
use std::ops::Range;

/// Scratch buffers and messages in them start at multiples of this, so that every dtype is aligned, and 16-byte accesses are.
pub(crate) const ALIGN: usize = 16;

/// Bytes of a place's memory. Plain data: the walk hands out no two spans that overlap unless it says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) ptr: *mut u8,
    pub(crate) len: usize,
}

impl Span {
    /// The bytes of a contiguous view.
    pub(crate) fn of(v: &View) -> Span {
        debug_assert!(v.is_contiguous());
        Span { ptr: v.ptr(), len: v.len() * v.dtype().size() }
    }

    /// The first bytes, and the rest.
    pub(crate) fn split_at(self, at: usize) -> (Span, Span) {
        assert!(at <= self.len, "a span of {} bytes has no byte {at}", self.len);
        let rest = Span { ptr: self.ptr.wrapping_add(at), len: self.len - at };
        (Span { ptr: self.ptr, len: at }, rest)
    }

    /// As a contiguous tensor.
    pub(crate) fn view(self, dtype: DType, dims: &[usize]) -> View {
        debug_assert_eq!(self.len, dims.iter().product::<usize>() * dtype.size());
        view_at(self.ptr, dtype, dims)
    }

    /// Takes that many bytes off the front, and the gap to where the next may start.
    pub(crate) fn cut(&mut self, len: usize) -> Span {
        let (now, later) = self.split_at(len.next_multiple_of(ALIGN));
        *self = later;
        Span { ptr: now.ptr, len }
    }
}

// SAFETY: plain data, as `View` is: whoever makes a span says who uses its bytes when.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

/// A view whose memory is not known yet, with its first element at an address that stands for one. It is for listing what a boxing does.
pub(crate) fn placeholder(address: usize, dtype: DType, dims: &[usize], strides: &[isize]) -> View {
    // SAFETY: lists of operations are made of it, in whose place others are made before they are carried out: nobody reads or writes there.
    unsafe { View::from_raw(std::ptr::without_provenance_mut(address), dtype, dims.into(), strides.into()) }
}

/// A contiguous view of memory that starts there.
pub(crate) fn view_at(start: *mut u8, dtype: DType, dims: &[usize]) -> View {
    // No bytes may have any address; a view's is aligned.
    let ptr = if dims.contains(&0) { std::ptr::without_provenance_mut(ALIGN) } else { start };
    // SAFETY: the bytes are initialised and, in scratch buffers and destinations, start at multiples of the element; the walk uses a
    // view only while the bytes behind it are alive, and writes through it only where it owns them.
    unsafe { View::from_raw(ptr, dtype, dims.into(), contiguous_strides(dims)) }
}

/// Memory that the walk asks for again and again. What a scratch buffer gave before is no longer used when it is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scratch {
    /// A shard between two steps; two, so that a step reads one and writes the other.
    Shard(usize),
    /// Memory for the bytes that go to others.
    Send,
    /// Memory for the bytes that come from others.
    Receive,
    /// Contributions on their way to a result.
    Reduce,
    /// All shards between the steps of plans that run together.
    Arena,
}

impl Scratch {
    pub(crate) const COUNT: usize = 6;
    pub(crate) fn index(self) -> usize {
        match self {
            Scratch::Shard(i) => i,
            Scratch::Send => 2,
            Scratch::Receive => 3,
            Scratch::Reduce => 4,
            Scratch::Arena => 5,
        }
    }
}

/// Ranks that may take part in a batch of messages: a superset that all of them know alike.
#[derive(Clone, Copy)]
pub(crate) enum Among<'a> {
    /// The ranks of both placements of a plan.
    Plan(&'a BoxingPlan),
    /// The listed ranks, in order.
    Ranks(&'a [usize]),
}

/// A message: world rank at the other end, bytes.
pub(crate) type Message = (usize, Span);

/// Memory of the shards of a boxing, and the communication between its ranks. Counts are bytes by member. What a call does may only have been put on a stream when it
/// returns; the calls of one place take effect in order.
pub(crate) trait BoxingDevice {
    /// This rank.
    fn rank(&self) -> usize;
    /// That many bytes, whatever they hold.
    fn scratch_buffer(&mut self, which: Scratch, bytes: usize) -> Result<Span>;
    /// `to = from`, of one dtype and dims, any strides.
    fn copy(&mut self, from: &View, to: &View) -> Result<()>;
    /// The contiguous `out` becomes the identity of a reduction.
    fn identity(&mut self, out: &View, op: ReduceOp) -> Result<()>;
    /// `out = from[0] op from[1] op …`, halves in f32 and rounded once.
    fn reduce(&mut self, out: Span, from: &[Span], dtype: DType, op: ReduceOp) -> Result<()>;
    /// Runs a collective of a step's group. The buffers do not overlap, except that an all-reduce's may be the same memory.
    fn collective(&mut self, members: &Members, call: CollectiveCall<'_, Span, Span>) -> Result<()>;
    /// Messages, at most one in each direction between two ranks; only ranks that have one call this.
    fn exchange(&mut self, among: Among, sends: &[Message], receives: &[Message]) -> Result<()>;
    /// A number for a plan: exchanges of plans with different ones may not be one batch of messages.
    fn scope(&mut self, plan: &BoxingPlan) -> usize {
        let _any = plan;
        0
    }
}

/// Bytes of each member's part of a tensor of these sizes.
pub(super) fn part_bytes(dtype: DType, size: &[usize], parts: &Parts) -> SmallVec<[usize; 8]> {
    let others: usize = (0..size.len()).filter(|d| *d != parts.dim).map(|d| size[d]).product();
    parts.ranges.iter().map(|p| p.len() * others * dtype.size()).collect()
}

/// The shard, copied if it has gaps.
pub(super) fn contiguous<P: BoxingDevice>(place: &mut P, shard: &View, scratch: Scratch) -> Result<View> {
    if shard.is_contiguous() {
        return Ok(shard.clone());
    }
    let bytes = place.scratch_buffer(scratch, shard.len() * shard.dtype().size())?;
    let packed = bytes.view(shard.dtype(), shard.dims());
    place.copy(shard, &packed)?;
    Ok(packed)
}

/// The parts of a dim one after another, copied if they do not lie so already.
pub(super) fn packed<P: BoxingDevice>(place: &mut P, shard: &View, parts: &Parts, scratch: Scratch) -> Result<View> {
    if shard.dims()[..parts.dim].iter().product::<usize>() <= 1 {
        return contiguous(place, shard, scratch);
    }
    let (dtype, element) = (shard.dtype(), shard.dtype().size());
    let all = place.scratch_buffer(scratch, shard.len() * element)?;
    let mut rest = all;
    for part in &parts.ranges {
        let piece = along(shard, parts.dim, part)?;
        let (now, later) = rest.split_at(piece.len() * element);
        place.copy(&piece, &now.view(dtype, piece.dims()))?;
        rest = later;
    }
    Ok(all.view(dtype, &[shard.len()]))
}

/// The part of a view along one dim.
pub(super) fn along(v: &View, dim: usize, part: &Range<usize>) -> Result<View> {
    let (mut offset, mut size): (Dims, Dims) = (SmallVec::from_elem(0, v.rank()), v.dims().into());
    offset[dim] = part.start;
    size[dim] = part.len();
    Ok(v.sub_box(&offset, &size)?)
}

/// Puts parts that lie one after another side by side in a dim.
pub(super) fn unpack<P: BoxingDevice>(
    place: &mut P,
    mut from: Span,
    out: &View,
    parts: &Parts,
    counts: &[usize],
) -> Result<()> {
    for (part, count) in parts.ranges.iter().zip(counts) {
        let to = along(out, parts.dim, part)?;
        let (now, later) = from.split_at(*count);
        place.copy(&now.view(out.dtype(), to.dims()), &to)?;
        from = later;
    }
    Ok(())
}
