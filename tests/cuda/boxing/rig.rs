//! Simulated ranks with GPUs, and what the tests ask of them.

use super::oracle::{make, shard_size, value};
use super::ranks::{Memory, tag, view};
use oflow::backend::{DeviceRt, cuda::open_gpu, host};
use oflow::boxing::{BoxingPlan, Layout, plan};
use oflow::comm::{Communicator, Tag, sim};
use oflow::kernels::cuda::Gpu;
use oflow::kernels::{DType, View, view::contiguous_strides};
use oflow::memory::{Allocator, AllocatorOptions, Storage};
use oflow::placement::Device;
use oflow::vm::{BoxManyWork, BoxWork, Instruction, Stopwatch, StreamKind, Took, Vm, VmMode, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the boxings that it was told the time of.
#[derive(Default)]
pub struct MeasuredTime(pub AtomicU64);

impl Stopwatch for MeasuredTime {
    fn done(&self, _number: u64, _took: Took, _together: usize) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A rank with a GPU.
pub struct Rig {
    pub rank: usize,
    pub comm: Arc<dyn Communicator>,
    pub measured: Arc<MeasuredTime>,
    cpu: DeviceRt,
    gpu: DeviceRt,
}

/// A shard on a device.
pub struct Shard {
    pub storage: Storage,
    pub view: View,
}

impl Rig {
    pub fn new(rank: usize, comm: sim::SimComm, gpus: usize) -> Rig {
        let comm: Arc<dyn Communicator> = Arc::new(comm);
        let gpu = Gpu::open(rank % gpus).unwrap();
        let options = AllocatorOptions::default();
        let alloc = Allocator::cpu(options);
        let gpu = open_gpu(&gpu, options, &alloc, Some(comm.clone())).unwrap();
        let vm = host::vm(VmMode::Inline, &alloc, Some(comm.clone())).unwrap();
        Rig { rank, comm, measured: Arc::default(), cpu: DeviceRt { alloc, vm }, gpu }
    }

    pub fn vm(&self, device: Device) -> &Vm {
        if device == Device::Cuda { &self.gpu.vm } else { &self.cpu.vm }
    }

    /// Memory of a device with these bytes.
    pub fn put(&self, device: Device, bytes: &[u8]) -> Storage {
        let alloc = if device == Device::Cuda { &self.gpu.alloc } else { &self.cpu.alloc };
        let storage = alloc.alloc(bytes.len()).unwrap();
        self.vm(device).write(&storage, 0, bytes).unwrap();
        storage
    }

    /// A source shard; `strided` stores it with the dims reversed.
    pub fn source(&self, device: Device, shard: &[u8], dtype: DType, size: &[usize], strided: bool) -> Shard {
        let mut memory = Memory::new(shard.len());
        let strides = view(&mut memory, shard, dtype, size, strided).strides().into();
        let storage = self.put(device, memory.bytes(shard.len()));
        // SAFETY: the storage holds all elements and is kept beside the view.
        let view = unsafe { View::from_raw(storage.ptr(), dtype, size.into(), strides) };
        Shard { storage, view }
    }

    /// A destination shard, full of sevens.
    pub fn room(&self, device: Device, dtype: DType, size: &[usize]) -> Shard {
        let storage = self.put(device, &vec![7; size.iter().product::<usize>() * dtype.size()]);
        // SAFETY: as above.
        let view = unsafe { View::from_raw(storage.ptr(), dtype, size.into(), contiguous_strides(size)) };
        Shard { storage, view }
    }

    pub fn read(&self, device: Device, shard: &Shard) -> Vec<u8> {
        let mut bytes = vec![0; shard.storage.bytes()];
        self.vm(device).read(&shard.storage, 0, &mut bytes).unwrap();
        bytes
    }

    pub fn watch(&self) -> (Arc<dyn Stopwatch>, u64) {
        (self.measured.clone(), 0)
    }

    /// Where this rank's part of boxings between these devices is issued.
    fn home(&self, from: Device, to: Device, ends: (bool, bool)) -> &Vm {
        let on_gpu = from == Device::Cuda && ends.0 || to == Device::Cuda && ends.1;
        self.vm(if on_gpu { Device::Cuda } else { Device::Cpu })
    }

    /// Boxings that are carried out one by one or together.
    pub fn submit(
        &self,
        tag: Tag,
        plans: &[Arc<BoxingPlan>],
        ends: &[(Option<Shard>, Option<Shard>)],
    ) -> oflow::Result<()> {
        let views = |e: &(Option<Shard>, Option<Shard>)| {
            (e.0.as_ref().map(|s| s.view.clone()), e.1.as_ref().map(|s| s.view.clone()))
        };
        let storages = |e: &Option<Shard>| e.as_ref().map(|s| s.storage.clone());
        let (from, to) = (plans[0].src.placement.device(), plans[0].dst.placement.device());
        let work = match (plans, ends) {
            ([plan], [one]) => {
                let (src, dst) = views(one);
                Work::Boxing(BoxWork { plan: plan.clone(), tag, src, dst, stopwatch: self.watch() })
            }
            _ => Work::BoxMany(BoxManyWork {
                plans: plans.to_vec(),
                tag,
                ends: ends.iter().map(views).collect(),
                stopwatch: self.watch(),
                predicted: vec![1; plans.len()],
            }),
        };
        let has = (ends.iter().any(|e| e.0.is_some()), ends.iter().any(|e| e.1.is_some()));
        self.home(from, to, has).submit(Instruction {
            work,
            stream: StreamKind::Comm,
            reads: ends.iter().filter_map(|e| storages(&e.0)).collect(),
            writes: ends.iter().filter_map(|e| storages(&e.1)).collect(),
        })
    }
}

/// A boxing to carry out.
pub struct Case {
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub src: Layout,
    pub dst: Layout,
    pub strided: bool,
}

impl Case {
    pub fn plan(&self) -> Arc<BoxingPlan> {
        plan(&self.shape, self.dtype, &self.src, &self.dst).unwrap()
    }
}

/// A layout on another device.
pub fn on(device: Device, l: &Layout) -> Layout {
    Layout::new(&l.placement.on(device), l.sbp.clone())
}

/// Carries out lists of boxings, each list at once, on ranks that have so many GPUs together, and checks the values; and the
/// bytes where `bytes`. Every list runs twice, because the first time makes the links.
pub fn check(world: usize, gpus: usize, lists: &[Vec<Case>], bytes: bool) {
    let sources: Vec<Vec<Vec<Vec<u8>>>> = lists
        .iter()
        .map(|l| l.iter().enumerate().map(|(i, c)| make(&c.shape, c.dtype, &c.src, i as u64)).collect())
        .collect();
    let by_rank = sim::run(world, |rank, comm| {
        let rig = Rig::new(rank, comm, gpus);
        let mut results = Vec::new();
        let mut issued = 0;
        for (n, list) in lists.iter().enumerate() {
            let plans: Vec<_> = list.iter().map(Case::plan).collect();
            let ends: Vec<_> = list
                .iter()
                .zip(&sources[n])
                .map(|(c, shards)| {
                    let device = |l: &Layout| l.placement.device();
                    let src = c.src.placement.position(rank).map(|p| {
                        rig.source(device(&c.src), &shards[p], c.dtype, &shard_size(&c.shape, &c.src, p), c.strided)
                    });
                    let dst = c.dst.placement.position(rank);
                    let dst = dst.map(|p| rig.room(device(&c.dst), c.dtype, &shard_size(&c.shape, &c.dst, p)));
                    (src, dst)
                })
                .collect();
            let named = |e: oflow::Error| panic!("rank {rank}: {e}\n{}", plans[0]);
            rig.submit(tag(2 * n), &plans, &ends).unwrap_or_else(named);
            let before = rig.comm.traffic().bytes_sent;
            rig.submit(tag(2 * n + 1), &plans, &ends).unwrap_or_else(named);
            let sent = rig.comm.traffic().bytes_sent - before;
            issued += 2 * plans.len() as u64;
            let read = |(c, e): (&Case, &(_, Option<Shard>))| {
                e.1.as_ref().map_or(vec![], |s| rig.read(c.dst.placement.device(), s))
            };
            results.push((list.iter().zip(&ends).map(read).collect::<Vec<_>>(), sent));
        }
        rig.vm(Device::Cuda).synchronize().unwrap();
        assert_eq!(rig.measured.0.load(Ordering::Relaxed), issued, "every boxing's time is told");
        results
    });
    for (n, list) in lists.iter().enumerate() {
        for (i, c) in list.iter().enumerate() {
            let shards: Vec<Vec<u8>> = c.dst.placement.ranks().iter().map(|r| by_rank[*r][n].0[i].clone()).collect();
            let before = value(&c.shape, c.dtype, &c.src, &sources[n][i]).unwrap();
            let after = value(&c.shape, c.dtype, &c.dst, &shards).unwrap_or_else(|e| panic!("{}{e}", c.plan()));
            assert_eq!(before, after, "{}", c.plan());
        }
        if bytes {
            let plans: Vec<_> = list.iter().map(Case::plan).collect();
            let planned: u64 = (0..world).map(|r| oflow::boxing::many::bytes_sent_together(&plans, r)).sum();
            let sent: u64 = by_rank.iter().map(|r| r[n].1).sum();
            assert_eq!(sent, planned, "{}", plans[0]);
        }
    }
}
