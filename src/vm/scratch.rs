//! Memory and copies of the boxing executors: buffers that a thread uses again and again, views of bytes, and parts of a
//! dim packed one after another and put back.

use crate::boxing::Members;
use crate::comm::Group;
use crate::error::Result;
use oflow_kernels::cpu::copy::copy;
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Dims, View};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;

/// Memory that the steps of one thread use again and again.
#[derive(Default)]
pub(super) struct Scratch {
    /// A shard between two steps; two, so that a step reads one and writes the other.
    pub(super) shards: [Buffer; 2],
    pub(super) send: Buffer,
    pub(super) receive: Buffer,
    pub(super) reduce: Buffer,
    pub(super) group: Vec<usize>,
    /// All shards between the steps of plans that run together.
    pub(super) arena: Buffer,
}

thread_local! {
    pub(super) static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Bytes aligned for every dtype.
#[derive(Default)]
pub(super) struct Buffer(Vec<u128>);

pub(super) const ALIGN: usize = size_of::<u128>();

impl Buffer {
    /// That many bytes, whatever they hold. Grows, never shrinks.
    pub(super) fn bytes(&mut self, len: usize) -> &mut [u8] {
        let words = len.div_ceil(ALIGN);
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        // SAFETY: the vector holds at least that many initialised bytes and is borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }
}

/// A contiguous view of bytes.
pub(super) fn view_of(bytes: &[u8], dtype: DType, dims: &[usize]) -> View {
    debug_assert_eq!(bytes.len(), dims.iter().product::<usize>() * dtype.size());
    view_at(bytes.as_ptr().cast_mut(), dtype, dims)
}

/// A contiguous view of memory that starts there.
pub(super) fn view_at(start: *mut u8, dtype: DType, dims: &[usize]) -> View {
    // No bytes may have any address; a view's is aligned.
    let ptr = if dims.contains(&0) { std::ptr::without_provenance_mut(ALIGN) } else { start };
    // SAFETY: the bytes are initialised and, in scratch buffers and destinations, start at multiples of the element; the
    // executors use a view only while the bytes behind it are alive, and write through it only where they own them.
    unsafe { View::from_raw(ptr, dtype, dims.into(), contiguous_strides(dims)) }
}

/// The bytes of a contiguous view.
pub(super) fn bytes_of(v: &View) -> &[u8] {
    debug_assert!(v.is_contiguous());
    if v.is_empty() {
        return &[];
    }
    // SAFETY: contiguous, live and initialised by the contract of `View::from_raw`.
    unsafe { std::slice::from_raw_parts(v.ptr(), v.len() * v.dtype().size()) }
}

/// The bytes of a contiguous view that this rank's step writes.
#[allow(clippy::mut_from_ref)]
pub(super) fn bytes_mut(v: &View) -> &mut [u8] {
    debug_assert!(v.is_contiguous());
    if v.is_empty() {
        return &mut [];
    }
    // SAFETY: as above; `v` is the step's output (the destination, or a scratch buffer that the step's input does not lie
    // in), of which the step makes one slice at a time.
    unsafe { std::slice::from_raw_parts_mut(v.ptr(), v.len() * v.dtype().size()) }
}

/// Makes a call on a step's group, with the list of ranks in memory that is used again.
pub(super) fn in_group<R>(ranks: &mut Vec<usize>, members: &Members, call: impl FnOnce(&Group) -> R) -> R {
    let mut group = Group { ranks: std::mem::take(ranks), me: members.me };
    group.ranks.clear();
    group.ranks.extend_from_slice(&members.ranks);
    let result = call(&group);
    *ranks = group.ranks;
    result
}

/// Bytes of each member's part of a dim of a tensor of these sizes.
pub(super) fn part_bytes(dtype: DType, size: &[usize], dim: usize, parts: &[Range<usize>]) -> SmallVec<[usize; 8]> {
    let others: usize = (0..size.len()).filter(|d| *d != dim).map(|d| size[d]).product();
    parts.iter().map(|p| p.len() * others * dtype.size()).collect()
}

/// The shard, copied if it has gaps.
pub(super) fn contiguous(shard: &View, buffer: &mut Buffer) -> Result<View> {
    if shard.is_contiguous() {
        return Ok(shard.clone());
    }
    let bytes = buffer.bytes(shard.len() * shard.dtype().size());
    let packed = view_of(bytes, shard.dtype(), shard.dims());
    copy(shard, &packed)?;
    Ok(packed)
}

/// The parts of a dim one after another, copied if they do not lie so already.
pub(super) fn packed(shard: &View, dim: usize, parts: &[Range<usize>], buffer: &mut Buffer) -> Result<View> {
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
pub(super) fn along(v: &View, dim: usize, part: &Range<usize>) -> Result<View> {
    let (mut offset, mut size): (Dims, Dims) = (SmallVec::from_elem(0, v.rank()), v.dims().into());
    offset[dim] = part.start;
    size[dim] = part.len();
    Ok(v.sub_box(&offset, &size)?)
}

/// Puts parts that lie one after another side by side in a dim.
pub(super) fn unpack(mut from: &[u8], out: &View, dim: usize, parts: &[Range<usize>], counts: &[usize]) -> Result<()> {
    for (part, count) in parts.iter().zip(counts) {
        let place = along(out, dim, part)?;
        let (now, later) = from.split_at(*count);
        copy(&view_of(now, out.dtype(), place.dims()), &place)?;
        from = later;
    }
    Ok(())
}

/// Takes that many bytes off the front, and the gap to where the next may start.
pub(super) fn cut<'a>(rest: &mut &'a mut [u8], len: usize) -> &'a mut [u8] {
    let (now, later) = std::mem::take(rest).split_at_mut(len.next_multiple_of(ALIGN));
    *rest = later;
    &mut now[..len]
}
