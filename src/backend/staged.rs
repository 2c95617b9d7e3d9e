//! Devices that the host drives step by step: an instruction is done when it has been issued. Boxings pass through host
//! memory, where the rank's communicator works on them.

use super::{DeviceRt, Opening, copy_plan, of};
use crate::boxing::Layout;
use crate::comm::Communicator;
use crate::error::{CallSite, Error, Result};
use crate::memory::{Allocator, MemorySource, Region, Storage};
use crate::ops::RuntimeAttrs;
use crate::placement::Device;
use crate::vm::boxing_device::Span;
use crate::vm::{BoxManyWork, BoxWork, CollectWork, Instruction, KernelWork, Streams, Vm, Work};
use oflow_kernels::View;
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device that does one thing at a time, and has done it when the call returns. What [`staged`] makes a backend's device of.
///
/// Addresses are the device's own: they come from [`allocate`](SyncDevice::allocate), with offsets added, and only the
/// device reads and writes there. Calls of one rank come one after another, from any thread.
pub trait SyncDevice: Send + Sync {
    /// Takes memory of that many bytes, aligned to 64 at least. It is used again and again: see
    /// [`AllocatorOptions::cache_bytes`](crate::memory::AllocatorOptions).
    ///
    /// # Errors
    /// Of the kind `Memory` when there is not enough.
    fn allocate(&self, bytes: usize) -> Result<Region>;

    /// Copies bytes of the device to the host.
    ///
    /// # Safety
    /// `from` is the address of as many bytes inside memory that this device has allocated and that is alive.
    unsafe fn copy_out(&self, from: *const u8, to: &mut [u8]) -> Result<()>;

    /// Copies bytes of the host to the device.
    ///
    /// # Safety
    /// `to` is the address of as many bytes inside memory that this device has allocated and that is alive; nobody uses
    /// what is there.
    unsafe fn copy_in(&self, from: &[u8], to: *mut u8) -> Result<()>;

    /// Calls a kernel once, with what the device's kernels take for their stream ([`KernelCx::stream`](crate::ops::KernelCx)),
    /// and returns when its work is done. `memory` is all that the kernel reads and writes.
    ///
    /// # Errors
    /// Those of the kernel, and the device's.
    fn run(&self, memory: &[Storage], kernel: &mut dyn FnMut(Option<&dyn Any>) -> Result<()>) -> Result<()>;
}

/// Memory and streams over a device that is driven step by step: what [`Backend::open`](super::Backend::open) of such a
/// device returns.
pub fn staged(at: &Opening<'_>, device: Arc<dyn SyncDevice>) -> DeviceRt {
    let source = Arc::new(Memory(device.clone()));
    let alloc = Allocator::device(at.device, source, of(at.device).allocator_options());
    let streams = StagedStreams {
        name: at.device,
        device,
        alloc: alloc.clone(),
        host: at.host.clone(),
        comm: at.comm.cloned(),
        turn: Mutex::new(()),
        host_copies: AtomicU64::new(0),
    };
    DeviceRt { alloc, vm: Vm::new(streams) }
}

struct Memory(Arc<dyn SyncDevice>);

impl MemorySource for Memory {
    fn allocate(&self, bytes: usize) -> Result<Region> {
        self.0.allocate(bytes)
    }
}

struct StagedStreams {
    name: Device,
    device: Arc<dyn SyncDevice>,
    alloc: Allocator,
    /// Host memory, for shards on their way.
    host: Allocator,
    comm: Option<Arc<dyn Communicator>>,
    /// Held while the device does something.
    turn: Mutex<()>,
    host_copies: AtomicU64,
}

impl Streams for StagedStreams {
    fn submit(&self, i: Instruction) -> Result<()> {
        let _turn = self.turn();
        let alone = i.begin()?;
        match &i.work {
            Work::Kernel(k) => self.kernel(k, i.reads.iter().chain(&i.writes))?,
            boxing => self.boxing(boxing, &i.reads)?,
        }
        alone.end()
    }

    fn wait(&self, _storage: &Storage) -> Result<()> {
        Ok(())
    }

    fn read(&self, storage: &Storage, offset: usize, to: &mut [u8]) -> Result<()> {
        let _turn = self.turn();
        self.copy_out(storage.ptr().wrapping_add(offset), to)
    }

    fn write(&self, storage: &Storage, offset: usize, from: &[u8]) -> Result<()> {
        let _turn = self.turn();
        self.copy_in(from, storage.ptr().wrapping_add(offset))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn counts(&self) -> (u64, u64) {
        (0, self.host_copies.load(Ordering::Relaxed))
    }
}

impl StagedStreams {
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The range lies inside a storage of this device, which is alive.
    fn copy_out(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        self.host_copies.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the callers: the vm has checked a read's range, and a shard's view lies in storages of its instruction.
        unsafe { self.device.copy_out(from, to) }
    }

    /// As [`copy_out`](StagedStreams::copy_out); this device's instructions run one after another, so nobody uses the bytes.
    fn copy_in(&self, from: &[u8], to: *mut u8) -> Result<()> {
        self.host_copies.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { self.device.copy_in(from, to) }
    }

    fn kernel<'a>(&self, k: &KernelWork, memory: impl Iterator<Item = &'a Storage>) -> Result<()> {
        let memory: SmallVec<[Storage; 8]> = memory.cloned().collect();
        self.device.run(&memory, &mut |stream| k.run(stream))
    }

    /// Copies the shards that are here to host memory, boxes there, and copies the results back.
    fn boxing(&self, work: &Work, reads: &[Storage]) -> Result<()> {
        let mut staging = Staging { streams: self, reads, sources: vec![], results: vec![] };
        let here = |l: &Layout| l.placement.device() == self.name;
        let mut pair = |plan: &crate::boxing::BoxingPlan, src: &Option<View>, dst: &Option<View>| {
            let staged = |v: &Option<View>, l: &Layout| v.clone().filter(|_| here(l));
            let (s, d) = (staged(src, &plan.src), staged(dst, &plan.dst));
            let s = s.map(|v| staging.source(&v)).transpose()?;
            let d = d.map(|v| staging.result(&v)).transpose()?;
            Ok::<_, Error>((s.or_else(|| src.clone()), d.or_else(|| dst.clone())))
        };
        let on_host = match work {
            Work::Kernel(_) | Work::Listed(_) | Work::Segment(_) => {
                return Err(Error::device("expected a boxing with its shards, got kernels or a list"));
            }
            Work::Boxing(b) => {
                let (src, dst) = pair(&b.plan, &b.src, &b.dst)?;
                Work::Boxing(BoxWork { plan: b.plan.clone(), tag: b.tag, src, dst, stopwatch: b.stopwatch.clone() })
            }
            Work::BoxMany(b) => Work::BoxMany(BoxManyWork {
                plans: b.plans.clone(),
                tag: b.tag,
                ends: b.plans.iter().zip(&b.ends).map(|(p, (s, d))| pair(p, s, d)).collect::<Result<_>>()?,
                stopwatch: b.stopwatch.clone(),
                predicted: b.predicted.clone(),
            }),
            Work::Collect(b) => Work::Collect(CollectWork {
                plan: b.plan.clone(),
                tag: b.tag,
                dtype: b.dtype,
                own: b.own.iter().map(|v| staging.source(v)).collect::<Result<_>>()?,
                dst: b.dst.as_ref().map(|v| staging.result(v)).transpose()?,
                stopwatch: b.stopwatch.clone(),
            }),
        };
        on_host.run(self.comm.as_deref(), &self.host)?;
        staging.finish()
    }
}

/// Shards of one instruction in host memory.
struct Staging<'a> {
    streams: &'a StagedStreams,
    /// Storages that hold the source shards.
    reads: &'a [Storage],
    sources: Vec<Storage>,
    /// With where each belongs.
    results: Vec<(Storage, Span)>,
}

impl Staging<'_> {
    /// A source shard in host memory.
    fn source(&mut self, shard: &View) -> Result<View> {
        let (dtype, dims, len) = (shard.dtype(), shard.dims(), shard.len() * shard.dtype().size());
        if len == 0 {
            return Ok(shard.clone());
        }
        let storage = self.streams.host.alloc(len)?;
        let packed = if shard.is_contiguous() { None } else { Some(self.packed(shard)?) };
        let from = packed.as_ref().map_or(shard.ptr(), |p| p.ptr());
        // SAFETY: host memory of that many initialised bytes, which nobody else has.
        self.streams.copy_out(from, unsafe { std::slice::from_raw_parts_mut(storage.ptr(), len) })?;
        let view = Span { ptr: storage.ptr(), len }.view(dtype, dims);
        self.sources.push(storage);
        Ok(view)
    }

    /// A copy on the device without gaps.
    fn packed(&self, shard: &View) -> Result<Storage> {
        let len = shard.len() * shard.dtype().size();
        let storage = self.streams.alloc.alloc(len)?;
        let copy = KernelWork {
            plan: copy_plan(self.streams.name)?,
            inputs: smallvec![Some(shard.clone())],
            outputs: smallvec![Span { ptr: storage.ptr(), len }.view(shard.dtype(), shard.dims())],
            runtime: RuntimeAttrs::new(),
            workspace: None,
            held: None,
            site: CallSite::here(),
        };
        self.streams.kernel(&copy, self.reads.iter().chain([&storage]))?;
        Ok(storage)
    }

    /// Host memory for a result.
    fn result(&mut self, shard: &View) -> Result<View> {
        let to = Span::of(shard);
        if to.len == 0 {
            return Ok(shard.clone());
        }
        let storage = self.streams.host.alloc(to.len)?;
        let view = Span { ptr: storage.ptr(), len: to.len }.view(shard.dtype(), shard.dims());
        self.results.push((storage, to));
        Ok(view)
    }

    /// Copies the results to where they belong.
    fn finish(self) -> Result<()> {
        self.results.iter().try_for_each(|(storage, to)| {
            // SAFETY: host memory of that many bytes, to which nobody writes any more.
            let bytes = unsafe { std::slice::from_raw_parts(storage.ptr(), to.len) };
            self.streams.copy_in(bytes, to.ptr)
        })
    }
}
