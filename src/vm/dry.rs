//! Streams of a dry run: instructions are counted, nothing is executed.
//!
//! Views of a dry run have shapes and strides, and addresses that are never mapped. Nothing here looks behind them. A boxing
//! is walked through for the memory that it takes between its steps.

use super::box_exec::execute_at;
use super::box_many::{Ends, execute_many_at};
use super::instruction::{Instruction, Work};
use super::place::{ALIGN, Among, Message, Place, Room, Span};
use crate::boxing::{BoxingPlan, Layout, Members};
use crate::error::{Error, Result};
use crate::memory::{Allocator, Storage};
use crate::placement::Device;
use oflow_kernels::{DType, ReduceOp, View};
use std::fmt::Display;

/// Streams that do nothing.
pub(super) struct DryStreams {
    rank: usize,
    device: Device,
    /// Counts what boxings take between their steps.
    alloc: Allocator,
}

impl DryStreams {
    pub(super) fn new(rank: usize, device: Device, alloc: &Allocator) -> DryStreams {
        DryStreams { rank, device, alloc: alloc.clone() }
    }

    /// Counts the memory that a boxing takes between its steps. It is free again when this returns, as on a stream: the
    /// next user of the memory waits for the boxing.
    pub(super) fn submit(&self, i: &Instruction) -> Result<()> {
        // Boxings between a GPU and the host pass through pinned memory, which is no memory of either.
        let cuda = |l: &Layout| l.placement.device() == Device::Cuda;
        let mixed = |p: &BoxingPlan| cuda(&p.src) != cuda(&p.dst);
        let mut place = Nowhere { streams: self, rooms: Default::default() };
        match &i.work {
            Work::Boxing(b) if !mixed(&b.plan) => execute_at(&mut place, &b.plan, b.src.as_ref(), b.dst.as_ref()),
            Work::BoxMany(b) if !b.plans.iter().any(|p| mixed(p)) => {
                let ends: Vec<Ends> = b.ends.iter().map(|(s, d)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
                execute_many_at(&mut place, &b.plans, &ends)
            }
            _ => Ok(()),
        }
    }
}

/// The error of reading what a dry run made.
pub(crate) fn no_values(what: impl Display) -> Error {
    Error::unsupported(format!("{what} has no values: a dry run computes shapes, layouts and memory only"))
        .help("leave reading out where `oflow::is_dry_run()`, or read in a real run")
}

/// Where the shards of a dry run live: rooms are counted, nothing is copied or sent.
struct Nowhere<'a> {
    streams: &'a DryStreams,
    rooms: [Option<Storage>; Room::COUNT],
}

impl Place for Nowhere<'_> {
    fn rank(&self) -> usize {
        self.streams.rank
    }
    fn room(&mut self, which: Room, bytes: usize) -> Result<Span> {
        // A GPU takes no block for nothing, the host does.
        if bytes == 0 && self.streams.device == Device::Cuda {
            return Ok(Span { ptr: std::ptr::without_provenance_mut(ALIGN), len: 0 });
        }
        let room = &mut self.rooms[which.index()];
        // What is too small goes before its successor comes.
        let storage = match room.take().filter(|s| s.bytes() >= bytes) {
            Some(s) => s,
            None => self.streams.alloc.alloc(bytes)?,
        };
        Ok(Span { ptr: room.insert(storage).ptr(), len: bytes })
    }
    fn copy(&mut self, _from: &View, _to: &View) -> Result<()> {
        Ok(())
    }
    fn identity(&mut self, _out: &View, _op: ReduceOp) -> Result<()> {
        Ok(())
    }
    fn reduce(&mut self, _out: Span, _from: &[Span], _dtype: DType, _op: ReduceOp) -> Result<()> {
        Ok(())
    }
    fn broadcast(&mut self, _members: &Members, _bytes: Span) -> Result<()> {
        Ok(())
    }
    fn all_reduce(&mut self, _members: &Members, _bytes: Span, _dtype: DType, _op: ReduceOp) -> Result<()> {
        Ok(())
    }
    fn all_gather(&mut self, _members: &Members, _send: Span, _receive: Span, _counts: &[usize]) -> Result<()> {
        Ok(())
    }
    fn reduce_scatter(
        &mut self,
        _members: &Members,
        _send: Span,
        _receive: Span,
        _counts: &[usize],
        _dtype: DType,
        _op: ReduceOp,
    ) -> Result<()> {
        Ok(())
    }
    fn all_to_all(
        &mut self,
        _members: &Members,
        _send: Span,
        _send_counts: &[usize],
        _receive: Span,
        _receive_counts: &[usize],
    ) -> Result<()> {
        Ok(())
    }
    fn exchange(&mut self, _among: Among, _sends: &[Message], _receives: &[Message]) -> Result<()> {
        Ok(())
    }
}
