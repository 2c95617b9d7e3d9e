//! Shards in host memory: kernels of the CPU, collectives of a communicator, scratch memory of the rank's allocator.

use super::boxing_device::{Among, BoxingDevice, Message, Scratch, Span};
use crate::boxing::Members;
use crate::comm::{CollectiveCall, Communicator, Group, Tag};
use crate::error::Result;
use crate::memory::{Allocator, Storage};
use oflow_kernels::cpu::accumulate::{fill_identity, reduce_slices};
use oflow_kernels::{DType, ReduceOp, View, cpu};
use smallvec::SmallVec;
use std::cell::RefCell;

thread_local! {
    /// A list of ranks that the boxings of a thread use again and again.
    static GROUP: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The host, for the collectives of one op.
pub(super) struct Host<'a> {
    comm: &'a dyn Communicator,
    memory: &'a Allocator,
    tag: &'a Tag,
    /// Given back at the end, so the allocator counts them while they are in use.
    scratch_buffers: [Option<Storage>; Scratch::COUNT],
    group: Vec<usize>,
}

/// Runs a boxing on the host.
pub(super) fn on_host<R>(
    (comm, memory): (&dyn Communicator, &Allocator),
    tag: &Tag,
    run: impl FnOnce(&mut Host) -> Result<R>,
) -> Result<R> {
    // Taken out while it is used, so that a communicator that boxes on this thread finds an empty one instead of a panic.
    let mut host = Host { comm, memory, tag, scratch_buffers: Default::default(), group: GROUP.take() };
    let result = run(&mut host);
    GROUP.set(host.group);
    result
}

/// Host memory for reading.
fn bytes<'a>(s: Span) -> &'a [u8] {
    if s.len == 0 {
        return &[];
    }
    // SAFETY: spans of this place are live, initialised bytes: the rooms' storages, and shards by the contract of
    // `View::from_raw`. The slice ends with the call that it is made for.
    unsafe { std::slice::from_raw_parts(s.ptr, s.len) }
}

/// Host memory that the step writes.
fn bytes_mut<'a>(s: Span) -> &'a mut [u8] {
    if s.len == 0 {
        return &mut [];
    }
    // SAFETY: as above; it is the step's output (the destination, or a scratch buffer that the step's input does not lie in), of
    // which one slice at a time is made.
    unsafe { std::slice::from_raw_parts_mut(s.ptr, s.len) }
}

impl BoxingDevice for Host<'_> {
    fn rank(&self) -> usize {
        self.comm.rank()
    }
    fn scratch_buffer(&mut self, which: Scratch, bytes: usize) -> Result<Span> {
        let buffer = &mut self.scratch_buffers[which.index()];
        match buffer {
            Some(s) if s.bytes() >= bytes => Ok(Span { ptr: s.ptr(), len: bytes }),
            _ => {
                // What the room gave before is no longer used: its block may be the next one's.
                *buffer = None;
                let storage = buffer.insert(self.memory.alloc(bytes)?);
                Ok(Span { ptr: storage.ptr(), len: bytes })
            }
        }
    }
    fn copy(&mut self, from: &View, to: &View) -> Result<()> {
        Ok(cpu::copy::copy(from, to)?)
    }
    fn identity(&mut self, out: &View, op: ReduceOp) -> Result<()> {
        Ok(fill_identity(bytes_mut(Span::of(out)), out.dtype(), op)?)
    }
    fn reduce(&mut self, out: Span, from: &[Span], dtype: DType, op: ReduceOp) -> Result<()> {
        let from: SmallVec<[&[u8]; 8]> = from.iter().map(|s| bytes(*s)).collect();
        Ok(reduce_slices(bytes_mut(out), &from, dtype, op)?)
    }
    fn collective(&mut self, members: &Members, call: CollectiveCall<'_, Span, Span>) -> Result<()> {
        // The list of ranks is in memory that is used again.
        let mut group = Group { ranks: std::mem::take(&mut self.group), me: members.me };
        group.ranks.clear();
        group.ranks.extend_from_slice(&members.ranks);
        let result = self.comm.run(&group, self.tag, call.map(bytes, bytes_mut));
        self.group = group.ranks;
        result
    }
    fn exchange(&mut self, _among: Among, sends: &[Message], receives: &[Message]) -> Result<()> {
        let sends: SmallVec<[(usize, &[u8]); 8]> = sends.iter().map(|(peer, s)| (*peer, bytes(*s))).collect();
        let mut receives: SmallVec<[(usize, &mut [u8]); 8]> =
            receives.iter().map(|(peer, s)| (*peer, bytes_mut(*s))).collect();
        self.comm.exchange(self.tag, &sends, &mut receives)
    }
}
