//! The context of a rank and how a thread enters it.

use super::random::Generator;
use super::recorded::Recorded;
use crate::boxing::Planner;
use crate::comm::{Communicator, Tag};
use crate::control::flight::{OpText, Recorder};
use crate::control::{ControlClient, FLIGHT_VARIABLE};
use crate::error::{CallSite, Error, Result};
use crate::memory::{Allocator, AllocatorOptions, MemoryStats};
use crate::placement::Device;
use crate::vm::{Instruction, Vm, VmMode};
use oflow_kernels::cuda::Gpu;
use oflow_kernels::cuda::probe::probe;
use std::any::Any;
use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// Memory and streams of one device of a rank.
pub struct DeviceRt {
    /// Allocator.
    pub alloc: Allocator,
    /// Streams.
    pub vm: Vm,
}

/// One rank: number, transport, devices, generators.
pub struct RankCtx {
    rank: usize,
    world: usize,
    /// Dropped first: a rank says goodbye before it closes its communicator, so that the launcher, which orders failures by
    /// the goodbyes, never takes a rank that fails because of this one for the first.
    control: Option<Arc<ControlClient>>,
    comm: Option<Arc<dyn Communicator>>,
    planner: Planner,
    cpu: DeviceRt,
    test: OnceLock<DeviceRt>,
    cuda: OnceLock<DeviceRt>,
    local_rank: usize,
    /// The stream of global ops this rank has issued, the same on every rank of a correct program, and its traces.
    recorder: Arc<Recorder>,
    global_rng: Mutex<Generator>,
    local_rng: Mutex<Generator>,
    /// What the interpreter keeps per rank (its dispatch cache); a lower room cannot name its type.
    interpreter: OnceLock<Box<dyn Any + Send + Sync>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<RankCtx>>> = const { RefCell::new(None) };
    static LOCAL: RefCell<Option<Arc<RankCtx>>> = const { RefCell::new(None) };
}

impl RankCtx {
    /// A rank over a communicator; the compute stream is inline. All ranks of a world have equal planners. Without a control
    /// client all ranks are on one host.
    pub fn new(
        comm: Arc<dyn Communicator>,
        control: Option<Arc<ControlClient>>,
        planner: Planner,
        mode: VmMode,
    ) -> Result<Arc<RankCtx>> {
        let (rank, world) = (comm.rank(), comm.world());
        let local_rank = control.as_ref().map_or(rank, |c| c.local_rank());
        let folder = control.as_ref().and(std::env::var_os(FLIGHT_VARIABLE)).filter(|f| !f.is_empty());
        let recorder = Arc::new(Recorder::new(rank, world, folder.as_deref().map(Path::new)));
        let comm: Arc<dyn Communicator> = Arc::new(Recorded::new(comm, recorder.clone(), control.as_ref()));
        if let Some(control) = &control {
            control.watch(recorder.clone(), &comm);
        }
        Self::build(recorder, rank, local_rank, world, Some(comm), control, planner, mode)
    }

    #[allow(clippy::too_many_arguments)]
    fn build(
        recorder: Arc<Recorder>,
        rank: usize,
        local_rank: usize,
        world: usize,
        comm: Option<Arc<dyn Communicator>>,
        control: Option<Arc<ControlClient>>,
        planner: Planner,
        mode: VmMode,
    ) -> Result<Arc<RankCtx>> {
        let alloc = Allocator::cpu(AllocatorOptions::default());
        let vm = Vm::new(mode, &alloc, comm.clone())?;
        Ok(Arc::new(RankCtx {
            rank,
            world,
            planner,
            cpu: DeviceRt { alloc, vm },
            comm,
            control,
            test: OnceLock::new(),
            cuda: OnceLock::new(),
            local_rank,
            recorder,
            global_rng: Mutex::new(Generator::new(0)),
            local_rng: Mutex::new(Generator::new(local_seed(0, rank))),
            interpreter: OnceLock::new(),
        }))
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }
    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.world
    }
    /// True if this is a rank context, not the local-only one of a thread that entered none.
    pub fn is_rank(&self) -> bool {
        self.comm.is_some()
    }
    /// The transport.
    ///
    /// # Errors
    /// On a thread that has entered no rank context.
    pub fn comm(&self) -> Result<&Arc<dyn Communicator>> {
        self.comm.as_ref().ok_or_else(no_context)
    }
    /// Plans boxings under the cost model of the job: the measured one where there is one, the same on every rank.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }
    /// The control client, under a launcher.
    pub fn control(&self) -> Option<&Arc<ControlClient>> {
        self.control.as_ref()
    }
    /// Memory and streams of a device.
    pub fn device(&self, device: Device) -> Result<&DeviceRt> {
        match device {
            Device::Cpu => Ok(&self.cpu),
            Device::Async => {
                if let Some(d) = self.test.get() {
                    return Ok(d);
                }
                let mode = VmMode::Async { delay_us: 50, seed: 0x5eed + self.rank as u64 };
                let options = AllocatorOptions { poison_on_free: true, ..Default::default() };
                let alloc = Allocator::host(Device::Async, options);
                let vm = Vm::new(mode, &alloc, self.comm.clone())?;
                Ok(self.test.get_or_init(|| DeviceRt { alloc, vm }))
            }
            Device::Cuda => match self.cuda.get() {
                Some(d) => Ok(d),
                None => {
                    let d = self.open_gpu().map_err(|e| {
                        e.help("`oflow doctor` lists what was found and what is missing; without a GPU use Device::Cpu")
                    })?;
                    Ok(self.cuda.get_or_init(|| d))
                }
            },
        }
    }

    /// Memory and streams of this rank's GPU. The ranks of a host take its visible GPUs in turn.
    fn open_gpu(&self) -> Result<DeviceRt> {
        let not_here = |e: oflow_kernels::KernelError| {
            Error::unsupported(format!("Device::Cuda cannot be used on this machine: {e}"))
        };
        let count = probe().check().map_err(not_here)?.len();
        let gpu = Gpu::open(self.local_rank % count)?;
        let alloc = Allocator::cuda(gpu.clone(), AllocatorOptions { cache_bytes: usize::MAX, poison_on_free: false });
        let vm = Vm::cuda(&gpu, &alloc, &self.cpu.alloc, self.comm.clone())?;
        Ok(DeviceRt { alloc, vm })
    }

    /// The devices that have been used.
    fn devices(&self) -> impl Iterator<Item = (Device, &DeviceRt)> {
        let others = [(Device::Async, self.test.get()), (Device::Cuda, self.cuda.get())];
        let used = others.into_iter().filter_map(|(device, rt)| Some((device, rt?)));
        std::iter::once((Device::Cpu, &self.cpu)).chain(used)
    }

    /// Waits for all work issued so far: before a collective on the caller's own thread, so that the rank keeps one total
    /// order of collectives.
    pub(crate) fn quiesce(&self) -> Result<()> {
        self.devices().try_for_each(|(_, d)| d.vm.synchronize())
    }

    /// Issues a boxing between devices, on the streams of the GPU if this rank has a shard there. The rank has one total
    /// order of collectives, so those that the host's streams still have come first; those of a GPU keep their order by
    /// themselves, because the host has done its part of them when they are issued. And as a stream's waits know its own
    /// device only, the host's end of a boxing from one device to another is done when this returns.
    pub(crate) fn submit_boxing(&self, from: Device, to: Device, i: Instruction) -> Result<()> {
        let (src, dst) = i.ends();
        let home = match (from, to) {
            (Device::Cuda, _) if src => Device::Cuda,
            (_, Device::Cuda) if dst => Device::Cuda,
            (Device::Cuda, Device::Cuda) => Device::Cpu,
            (device, Device::Cuda) | (_, device) => device,
        };
        let vm = &self.device(home)?.vm;
        let others = self.devices().filter(|(device, _)| *device != home && *device != Device::Cuda);
        others.map(|(_, d)| d).try_for_each(|d| d.vm.synchronize())?;
        vm.submit(i)?;
        if from == to || home == Device::Cuda { Ok(()) } else { vm.synchronize() }
    }

    /// Notes the next global op of the stream and makes the tag of its collectives. `key` hashes what the op is by content,
    /// never by ids or pointers; the name and the place of the call are added here.
    pub(crate) fn next_op(&self, op: &'static str, key: u64, site: CallSite) -> Tag {
        self.recorder.next(op, key, site, None)
    }

    /// [`RankCtx::next_op`] of a call with a plan: its text begins with the op's name, its key covers it.
    pub(crate) fn next_call(&self, op: &'static str, key: u64, site: CallSite, call: &OpText) -> Tag {
        self.recorder.next(op, key, site, Some(call))
    }

    /// Number of global ops issued so far.
    pub fn ops_issued(&self) -> u64 {
        self.recorder.issued()
    }

    /// The dispatch stream with the last ops and collectives of this rank.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    pub(crate) fn seed(&self, seed: u64) {
        *self.global_rng.lock().unwrap_or_else(|e| e.into_inner()) = Generator::new(seed);
        *self.local_rng.lock().unwrap_or_else(|e| e.into_inner()) = Generator::new(local_seed(seed, self.rank));
    }

    /// Draws (seed, ordinal) for one random op.
    pub(crate) fn draw(&self, global: bool) -> (u64, u64) {
        let g = if global { &self.global_rng } else { &self.local_rng };
        g.lock().unwrap_or_else(|e| e.into_inner()).draw()
    }

    /// State of the global generator, to save and restore.
    pub fn generator(&self) -> Generator {
        *self.global_rng.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Restores the global generator.
    pub fn set_generator(&self, g: Generator) {
        *self.global_rng.lock().unwrap_or_else(|e| e.into_inner()) = g;
    }

    /// State of the local generator, which is this rank's own.
    pub fn local_generator(&self) -> Generator {
        *self.local_rng.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Restores the local generator.
    pub fn set_local_generator(&self, g: Generator) {
        *self.local_rng.lock().unwrap_or_else(|e| e.into_inner()) = g;
    }
    /// The local generator that this rank has under a seed: where a checkpoint has none of this rank.
    pub fn local_generator_of(&self, seed: u64) -> Generator {
        Generator::new(local_seed(seed, self.rank))
    }

    pub(crate) fn interpreter_slot(&self) -> &OnceLock<Box<dyn Any + Send + Sync>> {
        &self.interpreter
    }

    /// Makes this the current context of the calling thread until the guard is dropped (then the one before it).
    pub fn enter(self: &Arc<Self>) -> EnterGuard {
        EnterGuard { saved: CURRENT.replace(Some(self.clone())), _not_send: std::marker::PhantomData }
    }
}

fn local_seed(seed: u64, rank: usize) -> u64 {
    seed ^ (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn no_context() -> Error {
    Error::context("a global tensor was used on a thread that has entered no rank context")
        .help("call oflow::init() at the start of main, and `ctx.enter()` on helper threads")
}

/// Leaves the context when dropped.
#[must_use = "the context is left when the guard is dropped"]
pub struct EnterGuard {
    saved: Option<Arc<RankCtx>>,
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for EnterGuard {
    fn drop(&mut self) {
        CURRENT.set(self.saved.take());
    }
}

/// The context of this thread; without one, a context for local tensors only.
pub fn current() -> Arc<RankCtx> {
    if let Some(c) = CURRENT.with_borrow(|c| c.clone()) {
        return c;
    }
    LOCAL.with_borrow_mut(|l| {
        l.get_or_insert_with(|| {
            // An inline vm starts no thread, so this cannot fail.
            match RankCtx::build(
                Arc::new(Recorder::new(0, 1, None)),
                0,
                0,
                1,
                None,
                None,
                Planner::default(),
                VmMode::Inline,
            ) {
                Ok(c) => c,
                Err(e) => unreachable!("{e}"),
            }
        })
        .clone()
    })
}

/// The rank context of this thread.
///
/// # Errors
/// When none has been entered.
pub fn current_rank() -> Result<Arc<RankCtx>> {
    CURRENT.with_borrow(|c| c.clone()).ok_or_else(no_context)
}

/// Memory of a device as this rank's allocator sees it: bytes in use, cached, the most in use at once. What a boxing takes
/// between its steps counts while it runs.
///
/// ```
/// use oflow::prelude::*;
/// let x = zeros([1024], Device::Cpu)?;
/// let stats = oflow::memory_stats(Device::Cpu)?;
/// assert!(stats.live >= 4096 && stats.peak >= stats.live);
/// # drop(x);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// When the device is not there.
pub fn memory_stats(device: Device) -> Result<MemoryStats> {
    Ok(current().device(device)?.alloc.stats())
}

/// Waits until everything that this rank has issued to a device is done: for measuring. Reading a value needs no such wait.
///
/// # Errors
/// When the device is not there, or work on it failed.
pub fn synchronize(device: Device) -> Result<()> {
    current().device(device)?.vm.synchronize()
}
