//! Streams of a dry run: instructions are counted, nothing is executed.
//!
//! Views of a dry run have shapes and strides, and addresses that are never mapped. Nothing here looks behind them. A boxing
//! is walked through for the memory that it takes between its steps.

use super::{BoxingPlace, DeviceRt, of};
use crate::boxing::{BoxingPlan, Layout, Members};
use crate::comm::CollectiveCall;
use crate::error::{Error, Result};
use crate::memory::{Allocator, Origin, Storage};
use crate::placement::Device;
use crate::vm::box_collect::execute_collect_at;
use crate::vm::box_exec::execute_at;
use crate::vm::box_many::{Ends, execute_many_at};
use crate::vm::boxing_device::{ALIGN, Among, BoxingDevice, Message, Scratch, Span};
use crate::vm::{Instruction, Streams, Vm, Work};
use oflow_kernels::{DType, ReduceOp, View};
use std::fmt::Display;

/// A device of a dry run, with the rank's host memory, which is none either: it counts what the real one would hold, and
/// executes nothing.
pub(crate) fn open(device: Device, rank: usize, origin: Origin, host: Option<&Allocator>) -> DeviceRt {
    let alloc = Allocator::dry(device, origin, of(device).allocator_options());
    let host = host.unwrap_or(&alloc).clone();
    let place = of(device).boxing_place();
    DeviceRt { vm: Vm::new(DryStreams { rank, place, alloc: alloc.clone(), host }), alloc }
}

/// Streams that do nothing.
struct DryStreams {
    rank: usize,
    place: BoxingPlace,
    /// Memory of the device.
    alloc: Allocator,
    /// Allocator of host memory.
    host: Allocator,
}

impl Streams for DryStreams {
    /// Counts the memory that a boxing takes between its steps. It is free again when this returns, as on a stream: the
    /// next user of the memory waits for the boxing.
    fn submit(&self, i: Instruction) -> Result<()> {
        // Boxings between a device and the host pass through memory that is of neither.
        let on_host = |l: &Layout| of(l.placement.device()).boxing_place() == BoxingPlace::Host;
        let mixed = |p: &BoxingPlan| on_host(&p.src) != on_host(&p.dst);
        let mut place = Nowhere { streams: self, scratch_buffers: Default::default() };
        match &i.work {
            Work::Boxing(b) if !mixed(&b.plan) => {
                let (src, dst, _held) = self.staged(&b.src, &b.dst)?;
                execute_at(&mut place, &b.plan, src.as_ref(), dst.as_ref())
            }
            Work::BoxMany(b) if !b.plans.iter().any(|p| mixed(p)) => {
                let staged: Vec<_> = b.ends.iter().map(|(s, d)| self.staged(s, d)).collect::<Result<_>>()?;
                let ends: Vec<Ends> =
                    staged.iter().map(|(s, d, _)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
                execute_many_at(&mut place, &b.plans, &ends)
            }
            Work::Collect(b) => {
                let (mut own, mut held) = (vec![], vec![]);
                for view in &b.own {
                    let (on_host, _, kept) = self.staged(&Some(view.clone()), &None)?;
                    own.extend(on_host);
                    held.push(kept);
                }
                let (_, dst, _kept) = self.staged(&None, &b.dst)?;
                execute_collect_at(&mut place, &b.plan, b.dtype, (&own, dst.as_ref()))
            }
            _ => Ok(()),
        }
    }
    fn wait(&self, _storage: &Storage) -> Result<()> {
        Ok(())
    }
    fn read(&self, _storage: &Storage, _offset: usize, _to: &mut [u8]) -> Result<()> {
        Err(no_values("this storage"))
    }
    fn write(&self, _storage: &Storage, _offset: usize, _from: &[u8]) -> Result<()> {
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    fn is_dry(&self) -> bool {
        true
    }
}

impl DryStreams {
    /// The shards of a boxing where it is carried out, and what holds them there: host memory where they pass through that
    /// (`staged.rs`), to which a shard with gaps goes by a copy on the device.
    fn staged(&self, src: &Option<View>, dst: &Option<View>) -> Result<(Option<View>, Option<View>, Vec<Storage>)> {
        let mut held = vec![];
        let mut on_host = |v: &Option<View>| match v {
            Some(v) if self.place == BoxingPlace::Staged && !v.is_empty() => {
                let len = v.len() * v.dtype().size();
                let storage = self.host.alloc(len)?;
                if !v.is_contiguous() {
                    drop(self.alloc.alloc(len)?);
                }
                let view = Span { ptr: storage.ptr(), len }.view(v.dtype(), v.dims());
                held.push(storage);
                Ok::<_, Error>(Some(view))
            }
            other => Ok(other.clone()),
        };
        Ok((on_host(src)?, on_host(dst)?, held))
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
    scratch_buffers: [Option<Storage>; Scratch::COUNT],
}

impl BoxingDevice for Nowhere<'_> {
    fn rank(&self) -> usize {
        self.streams.rank
    }
    fn scratch_buffer(&mut self, which: Scratch, bytes: usize) -> Result<Span> {
        // A device takes no block for nothing, the host does.
        if bytes == 0 && self.streams.place == BoxingPlace::Device {
            return Ok(Span { ptr: std::ptr::without_provenance_mut(ALIGN), len: 0 });
        }
        let buffer = &mut self.scratch_buffers[which.index()];
        // What is too small goes before its successor comes.
        let storage = match buffer.take().filter(|s| s.bytes() >= bytes) {
            Some(s) => s,
            None if self.streams.place == BoxingPlace::Staged => self.streams.host.alloc(bytes)?,
            None => self.streams.alloc.alloc(bytes)?,
        };
        Ok(Span { ptr: buffer.insert(storage).ptr(), len: bytes })
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
    fn collective(&mut self, _members: &Members, _call: CollectiveCall<'_, Span, Span>) -> Result<()> {
        Ok(())
    }
    fn exchange(&mut self, _among: Among, _sends: &[Message], _receives: &[Message]) -> Result<()> {
        Ok(())
    }
}
