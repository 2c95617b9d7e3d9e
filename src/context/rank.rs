//! The context of a rank, and entering it on a thread.

use super::capture::{CaptureCtx, GLOBAL_SEED, LOCAL_SEED};
use super::data_check::DataCheck;
use super::live::Live;
use super::random::GeneratorState;
use super::recorded::Recorded;
use super::timeline::{Timeline, TimelineOf};
use crate::backend::{self, BoxingPlace, DeviceRt, Opening};
use crate::boxing::Planner;
use crate::comm::{Communicator, Tag};
use crate::control::flight::{OpText, Recorder};
use crate::control::{ControlClient, FLIGHT_VARIABLE};
use crate::error::{CallSite, Error, Result};
use crate::memory::{Allocator, MemoryReport, Origin};
use crate::placement::Device;
use crate::trace::{self, Owner};
use crate::vm::{Instruction, VmMode};
use oflow_base::GuardStack;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A device that the rank uses, and the next one. The CPU is the first: its look-up is on the path of each call.
struct Slot {
    device: Device,
    place: BoxingPlace,
    rt: DeviceRt,
    next: OnceLock<Box<Slot>>,
}

impl Slot {
    fn new(device: Device, rt: DeviceRt) -> Slot {
        Slot { device, place: backend::of(device).boxing_place(), rt, next: OnceLock::new() }
    }
}

/// The context of a rank: its number, communicator, devices and generators.
pub struct RankCtx {
    rank: usize,
    world: usize,
    /// Origin of the rank's global tensors: whether they have data.
    origin: Origin,
    /// Dropped first: a rank says goodbye before it closes its communicator, so that the launcher, which orders failures by
    /// the goodbyes, never takes a rank that fails because of this one for the first.
    control: Option<Arc<ControlClient>>,
    comm: Option<Arc<dyn Communicator>>,
    planner: Planner,
    devices: Slot,
    /// The allocators of the devices that have been used, for who tells of their memory without the context.
    allocators: Arc<Mutex<Vec<Allocator>>>,
    local_rank: usize,
    data_check: DataCheck,
    /// The stream of global ops this rank has issued, the same on every rank of a correct program, and its traces.
    recorder: Arc<Recorder>,
    global_rng: Mutex<GeneratorState>,
    local_rng: Mutex<GeneratorState>,
    /// State that the interpreter keeps per rank (its dispatch cache); a lower room cannot name its type.
    interpreter: OnceLock<Box<dyn Any + Send + Sync>>,
    /// The log of metrics that the program has installed, whose type is a higher room's too.
    log: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    /// Source of glimpses for people who watch its job; without a control client nobody can.
    live: Option<Arc<Live>>,
    /// Of the context in which a graph is captured.
    capture: Option<Box<CaptureCtx<RankCtx>>>,
    /// Under which its threads record what they do.
    owner: Arc<Owner>,
    /// Dropped last: the timeline has what the devices did at their end.
    timeline: OnceLock<Timeline>,
}

thread_local! {
    static CURRENT: RefCell<Option<Here>> = const { RefCell::new(None) };
    /// The contexts that are entered, each with the one before it.
    static ENTERED: RefCell<GuardStack<Option<Here>>> = const { RefCell::new(GuardStack::new()) };
    /// Where the thread entered the context that it left last.
    static LEFT: Cell<Option<CallSite>> = const { Cell::new(None) };
    /// That of the current context.
    static ORIGIN: Cell<Origin> = const { Cell::new(Origin::DATA) };
    static LOCAL: RefCell<Option<Here>> = const { RefCell::new(None) };
}

impl RankCtx {
    /// Makes the context of a rank with a communicator. The compute stream is inline. All ranks of a world must have equal
    /// planners. Without a control client all ranks are on one host.
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
        let owner = Arc::new(Owner::new());
        // The streams' threads work for this rank.
        let before = trace::adopt(owner.number());
        let cpu = open_cpu(rank, local_rank, mode, Some(&comm));
        trace::adopt(before);
        let origin = Origin::rank_context(rank as u32, world as u32);
        let ctx = Self::build((rank, world, local_rank), origin, recorder, Some(comm), control, planner, cpu?);
        let live = ctx.control().map(|control| {
            let live = Arc::new(Live::new(owner.number(), ctx.recorder.clone(), ctx.shared_allocators()));
            control.show(live.clone());
            live
        });
        Ok(Arc::new(RankCtx { owner, live, ..ctx }))
    }

    /// A rank of a dry run: no communicator, no other ranks, and no memory behind its tensors.
    pub(super) fn dry(rank: u32, world: u32, planner: Planner) -> Arc<RankCtx> {
        Arc::new(Self::without_data(Origin::dry_run(rank, world), (rank as usize, world as usize), planner))
    }

    /// The context in which the rank captures a graph.
    pub(crate) fn capturing(self: &Arc<Self>) -> Arc<RankCtx> {
        let origin = Origin::capture(self.rank as u32, self.world as u32);
        let mut ctx = Self::without_data(origin, (self.rank, self.world), Planner::new(*self.planner.model()));
        ctx.capture = Some(Box::new(CaptureCtx::new(self.clone())));
        ctx.owner = self.owner.clone();
        ctx.global_rng = Mutex::new(GeneratorState::new(GLOBAL_SEED));
        ctx.local_rng = Mutex::new(GeneratorState::new(LOCAL_SEED));
        Arc::new(ctx)
    }

    fn without_data(origin: Origin, (rank, world): (usize, usize), planner: Planner) -> RankCtx {
        let (recorder, cpu) =
            (Arc::new(Recorder::without_records(rank, world)), backend::open_dry(Device::Cpu, rank, origin, None));
        Self::build((rank, world, rank), origin, recorder, None, None, planner, cpu)
    }

    fn build(
        (rank, world, local_rank): (usize, usize, usize),
        origin: Origin,
        recorder: Arc<Recorder>,
        comm: Option<Arc<dyn Communicator>>,
        control: Option<Arc<ControlClient>>,
        planner: Planner,
        cpu: DeviceRt,
    ) -> RankCtx {
        RankCtx {
            rank,
            world,
            origin,
            planner,
            allocators: Arc::new(Mutex::new(vec![cpu.alloc.clone()])),
            devices: Slot::new(Device::Cpu, cpu),
            comm,
            control,
            local_rank,
            data_check: DataCheck::of_environment(),
            recorder,
            global_rng: Mutex::new(GeneratorState::new(0)),
            local_rng: Mutex::new(GeneratorState::new(local_seed(0, rank))),
            interpreter: OnceLock::new(),
            log: Mutex::new(None),
            live: None,
            capture: None,
            owner: Arc::new(Owner::new()),
            timeline: OnceLock::new(),
        }
    }

    /// Starts the timeline that the launcher or the user has asked for.
    ///
    /// # Errors
    /// If its file cannot be made, or the environment says something that cannot be meant.
    pub(super) fn start_timeline(&self) -> Result<()> {
        if let Some(timeline) = Timeline::of_environment(&self.timeline_of(self.owner()))? {
            let _none_before = self.timeline.set(timeline);
        }
        Ok(())
    }

    /// The rank as a timeline names it, for the threads of an owner.
    pub(super) fn timeline_of(&self, owner: u32) -> TimelineOf<'_> {
        TimelineOf { rank: self.rank, owner, control: self.control.as_deref() }
    }

    /// Under which its threads record what they do.
    pub(crate) fn owner(&self) -> u32 {
        self.owner.number()
    }

    /// Returns the number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }
    /// Returns the number of ranks.
    pub fn world(&self) -> usize {
        self.world
    }
    /// The origin of what is made in this context.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }
    /// Returns whether this is a rank context. The context of a thread that has entered none is for local tensors only.
    pub fn is_rank(&self) -> bool {
        self.comm.is_some() || self.is_dry()
    }
    /// Returns whether this is a dry run: tensors have no data, and there are no other ranks.
    pub fn is_dry(&self) -> bool {
        self.origin.is_dry()
    }
    /// Returns the part of this context that only the capture of a graph has; `None` in others.
    pub(crate) fn capture(&self) -> Option<&CaptureCtx<RankCtx>> {
        self.capture.as_deref()
    }
    /// Refuses what needs data, or the other ranks.
    ///
    /// # Errors
    /// In a dry run, and while a graph is captured.
    pub(crate) fn not_dry(&self, what: &str) -> Result<()> {
        match self.is_dry() {
            false => Ok(()),
            true if self.origin.is_capture() => {
                Err(Error::unsupported(format!("a graph cannot {what}: its tensors have no data while it is captured"))
                    .help("do it outside of the closure, before or between the runs of the graph"))
            }
            true => Err(Error::unsupported(format!("a dry run cannot {what}: its tensors have no data"))
                .help("leave it out where `oflow::is_dry_run()`")),
        }
    }
    /// Returns the communicator.
    ///
    /// # Errors
    /// If this is not a rank context, or a dry run.
    pub fn comm(&self) -> Result<&Arc<dyn Communicator>> {
        self.not_dry("talk to other ranks")?;
        self.comm.as_ref().ok_or_else(no_context)
    }
    /// Check of the data that all ranks give alike, as part of the dispatch stream.
    pub(crate) fn data_check(&self) -> DataCheck {
        self.data_check
    }
    /// Returns the planner of boxings, with the cost model of the job: the measured one if there is one. It is the same on every
    /// rank.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }
    /// Returns the control client, or `None` without a launcher.
    pub fn control(&self) -> Option<&Arc<ControlClient>> {
        self.control.as_ref()
    }
    /// Returns the memory and streams of a device.
    ///
    /// # Errors
    /// When the device is not there.
    #[inline]
    pub fn device(&self, device: Device) -> Result<&DeviceRt> {
        if device == Device::Cpu { Ok(&self.devices.rt) } else { self.other_device(device) }
    }

    fn other_device(&self, device: Device) -> Result<&DeviceRt> {
        let mut slot = &self.devices;
        loop {
            let next = match slot.next.get() {
                Some(next) => next,
                None => {
                    let new = Slot::new(device, self.open(device)?);
                    // Another thread may have opened a device meanwhile: that one stays here.
                    slot.next.get_or_init(|| {
                        self.allocators().push(new.rt.alloc.clone());
                        Box::new(new)
                    })
                }
            };
            if next.device == device {
                return Ok(&next.rt);
            }
            slot = next;
        }
    }

    fn open(&self, device: Device) -> Result<DeviceRt> {
        let host = &self.devices.rt.alloc;
        if self.is_dry() {
            return Ok(backend::open_dry(device, self.rank, self.origin, Some(host)));
        }
        let (rank, local_rank, mode) = (self.rank, self.local_rank, VmMode::Inline);
        backend::of(device).open(&Opening { device, rank, local_rank, mode, host, comm: self.comm.as_ref() })
    }

    fn allocators(&self) -> MutexGuard<'_, Vec<Allocator>> {
        self.allocators.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The allocators of the devices that have been used. Devices that are used later are added.
    pub(crate) fn shared_allocators(&self) -> Arc<Mutex<Vec<Allocator>>> {
        self.allocators.clone()
    }

    /// Returns who holds the memory of the devices that this rank has used.
    pub fn memory_report(&self) -> MemoryReport {
        MemoryReport { rank: self.rank, devices: self.allocators().iter().map(Allocator::report).collect() }
    }

    /// The devices that have been used.
    fn used(&self) -> impl Iterator<Item = &Slot> {
        std::iter::successors(Some(&self.devices), |slot| slot.next.get().map(|next| &**next))
    }

    /// Waits for all work issued so far: before a collective on the caller's own thread, so that the rank keeps one total
    /// order of collectives.
    pub(crate) fn quiesce(&self) -> Result<()> {
        self.used().try_for_each(|slot| slot.rt.vm.synchronize())
    }

    /// Issues a boxing between devices, on the streams of a device that is not the host if this rank has a shard there. The
    /// rank has one total order of collectives, so those that the host's streams still have come first; those of other
    /// devices keep their order by themselves, because the host has done its part of them when they are issued. And as a
    /// stream's waits know its own device only, the host's end of a boxing from one device to another is done when this
    /// returns.
    ///
    /// # Errors
    /// Between two devices that both are not the host, and what the streams report.
    pub(crate) fn submit_boxing(&self, from: Device, to: Device, i: Instruction) -> Result<()> {
        let on_host = |device| backend::of(device).boxing_place() == BoxingPlace::Host;
        let (src, dst) = i.ends();
        let home = match (on_host(from), on_host(to)) {
            (false, false) if from != to => {
                return Err(Error::unsupported(format!("a tensor goes from {from} to {to} only through the host"))
                    .help("box to the CPU first: `x.to_global((&placement.on(Device::Cpu), sbp))`"));
            }
            (false, _) if src => from,
            (_, false) if dst => to,
            (false, false) => Device::Cpu,
            (_, false) => from,
            _ => to,
        };
        let vm = &self.device(home)?.vm;
        let others = self.used().filter(|slot| slot.device != home && slot.place == BoxingPlace::Host);
        others.map(|slot| &slot.rt).try_for_each(|d| d.vm.synchronize())?;
        vm.submit(i)?;
        if from == to || !on_host(home) { Ok(()) } else { vm.synchronize() }
    }

    /// Notes the next global op of the stream and makes the tag of its collectives. `key` hashes what the op is by content,
    /// never by ids or pointers; the name and the place of the call are added here.
    pub(crate) fn next_op(&self, op: &'static str, key: u64, site: CallSite) -> Tag {
        self.recorder.next(op, key, site, None)
    }

    /// [`RankCtx::next_op`] of a call without a plan whose arguments are worth telling; `text` makes its text.
    pub(crate) fn next_described(&self, op: &'static str, key: u64, site: CallSite, text: &dyn Fn() -> String) -> Tag {
        self.recorder.next_described(op, key, site, text)
    }

    /// [`RankCtx::next_op`] of a call with a plan: its text begins with the op's name, its key covers it.
    pub(crate) fn next_call(&self, op: &'static str, key: u64, site: CallSite, call: &OpText) -> Tag {
        self.recorder.next(op, key, site, Some(call))
    }

    /// Returns the number of global ops issued so far.
    pub fn ops_issued(&self) -> u64 {
        self.recorder.issued()
    }

    /// Returns the recorder of the dispatch stream, with the last ops and collectives of this rank.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    pub(crate) fn seed(&self, seed: u64) {
        self.refuse_in_capture("seed the generators");
        *self.global_rng.lock().unwrap_or_else(|e| e.into_inner()) = GeneratorState::new(seed);
        *self.local_rng.lock().unwrap_or_else(|e| e.into_inner()) = GeneratorState::new(local_seed(seed, self.rank));
    }

    /// A graph that is captured fails at its end: the call has no error to return.
    fn refuse_in_capture(&self, what: &str) {
        if let Some(capture) = self.capture() {
            capture.refuse(
                Error::unsupported(format!("a graph cannot {what}"))
                    .help("do it outside of the closure, before or between the runs of the graph"),
            );
        }
    }

    /// Draws (seed, ordinal) for one random op.
    pub(crate) fn draw(&self, global: bool) -> (u64, u64) {
        let g = if global { &self.global_rng } else { &self.local_rng };
        g.lock().unwrap_or_else(|e| e.into_inner()).draw()
    }

    /// Counts draws of the generators of global and of local tensors without making them. They wrap: a capture takes draws back that way.
    pub(crate) fn draw_many(&self, global: u64, local: u64) {
        for (g, draws) in [(&self.global_rng, global), (&self.local_rng, local)] {
            let mut state = g.lock().unwrap_or_else(|e| e.into_inner());
            state.ordinal = state.ordinal.wrapping_add(draws);
        }
    }

    /// Returns the state of the generator of global tensors.
    pub fn generator(&self) -> GeneratorState {
        *self.global_rng.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Sets the state of the generator of global tensors.
    pub fn set_generator(&self, g: GeneratorState) {
        self.refuse_in_capture("set the state of a generator");
        *self.global_rng.lock().unwrap_or_else(|e| e.into_inner()) = g;
    }

    /// Returns the state of the generator of local tensors, which differs between ranks.
    pub fn local_generator(&self) -> GeneratorState {
        *self.local_rng.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// Sets the state of the generator of local tensors.
    pub fn set_local_generator(&self, g: GeneratorState) {
        self.refuse_in_capture("set the state of a generator");
        *self.local_rng.lock().unwrap_or_else(|e| e.into_inner()) = g;
    }
    /// Returns the initial generator of local tensors of this rank for a seed.
    pub fn local_generator_of(&self, seed: u64) -> GeneratorState {
        GeneratorState::new(local_seed(seed, self.rank))
    }

    pub(crate) fn interpreter_slot(&self) -> &OnceLock<Box<dyn Any + Send + Sync>> {
        &self.interpreter
    }

    /// Source of glimpses for people who watch its job.
    pub(crate) fn live(&self) -> Option<&Live> {
        self.live.as_deref()
    }

    pub(crate) fn log_slot(&self) -> MutexGuard<'_, Option<Arc<dyn Any + Send + Sync>>> {
        self.log.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Makes this the current context of the calling thread until the guard is dropped; then the previous context is current
    /// again.
    #[track_caller]
    pub fn enter(self: &Arc<Self>) -> EnterGuard {
        self.enter_at(CallSite::here())
    }
    /// Enters it on behalf of that line.
    pub(crate) fn enter_at(self: &Arc<Self>, site: CallSite) -> EnterGuard {
        ORIGIN.set(self.origin);
        trace::adopt(self.owner.number());
        let before = CURRENT.replace(Some(Here(Rc::new(self.clone()))));
        EnterGuard { number: ENTERED.with_borrow_mut(|held| held.begin(before)), site, _not_send: PhantomData }
    }
}

/// Enters the context of the thread that captures a graph; `None` where the thread captures none.
pub(crate) fn enter_outer(site: CallSite) -> Option<EnterGuard> {
    let ctx = here();
    Some(ctx.capture()?.outer().enter_at(site))
}

/// Memory and streams of a rank's CPU.
fn open_cpu(rank: usize, local_rank: usize, mode: VmMode, comm: Option<&Arc<dyn Communicator>>) -> Result<DeviceRt> {
    let (device, cpu) = (Device::Cpu, backend::of(Device::Cpu));
    let host = &Allocator::cpu(cpu.allocator_options());
    cpu.open(&Opening { device, rank, local_rank, mode, host, comm })
}

fn local_seed(seed: u64, rank: usize) -> u64 {
    seed ^ (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub(crate) fn no_context() -> Error {
    let what = "a global tensor was used on a thread that has entered no rank context";
    match LEFT.get() {
        None => Error::context(what)
            .help("call oflow::init() at the start of main, and `ctx.enter()` on helper threads"),
        Some(site) => Error::context(format!(
            "{what}: the one that it entered at {}:{} was left when its value was dropped",
            site.file, site.line
        ))
        .help("keep the value as long as the context is used: `let world = oflow::init()?;` (`let _ = …` drops it at once)"),
    }
}

/// Leaves the context when dropped. Guards may be dropped in any order.
#[must_use = "the context is left when the guard is dropped: give it a name, `let _entered = …`; `let _ = …` drops it at once"]
pub struct EnterGuard {
    number: u64,
    site: CallSite,
    // Of this thread only, so the guard is dropped where it was made.
    _not_send: PhantomData<*const ()>,
}

impl Drop for EnterGuard {
    fn drop(&mut self) {
        // The list is gone only when the thread ends.
        let now = ENTERED.try_with(|held| held.borrow_mut().end(self.number, |_, _| true));
        if let Ok(Some(before)) = now {
            ORIGIN.set(before.as_ref().map_or(Origin::DATA, |here| here.origin));
            trace::adopt(before.as_ref().map_or(0, |here| here.owner.number()));
            CURRENT.set(before);
            let _there_may_be_no_list = LEFT.try_with(|left| left.set(Some(self.site)));
        }
    }
}

/// The context of a thread, held while a call runs on it. Each call takes one, so it is counted without atomics.
#[derive(Clone)]
// The outer count is of this thread, the inner one of all threads that have entered the context.
#[allow(clippy::redundant_allocation)]
pub(crate) struct Here(Rc<Arc<RankCtx>>);

impl Deref for Here {
    type Target = Arc<RankCtx>;
    fn deref(&self) -> &Arc<RankCtx> {
        &self.0
    }
}

/// Returns the context of this thread. On a thread that has entered none it is a context for local tensors only.
pub fn current() -> Arc<RankCtx> {
    (*here()).clone()
}

/// [`current`], to be used on this thread.
#[inline]
pub(crate) fn here() -> Here {
    if let Some(here) = CURRENT.with_borrow(|c| c.clone()) {
        return here;
    }
    LOCAL.with_borrow_mut(|l| {
        l.get_or_insert_with(|| {
            // An inline vm starts no thread, so this cannot fail.
            let cpu = match open_cpu(0, 0, VmMode::Inline, None) {
                Ok(cpu) => cpu,
                Err(e) => unreachable!("{e}"),
            };
            let recorder = Arc::new(Recorder::new(0, 1, None));
            let ctx = RankCtx::build((0, 1, 0), Origin::DATA, recorder, None, None, Planner::default(), cpu);
            Here(Rc::new(Arc::new(ctx)))
        })
        .clone()
    })
}

/// Where the tensors that this thread makes belong: to its program, or to the dry run that it has entered.
#[inline]
pub(crate) fn origin_here() -> Origin {
    ORIGIN.get()
}

/// Returns whether this thread is in a dry run. Tensors then have no data, and reading them is an error.
///
/// ```
/// use oflow::prelude::*;
/// let loss = oflow::dry_run(8, 0, |_| {
///     let loss = ones([4], Device::Cpu)?.sum(())?;
///     if oflow::is_dry_run() { Ok(None) } else { loss.item().map(Some) }
/// })?;
/// assert_eq!(loss, None);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn is_dry_run() -> bool {
    origin_here().is_dry()
}

/// Returns the rank context of this thread.
///
/// # Errors
/// If the thread has entered none.
pub fn current_rank() -> Result<Arc<RankCtx>> {
    Ok((*here_as_rank()?).clone())
}

/// [`current_rank`], to be used on this thread.
#[inline]
pub(crate) fn here_as_rank() -> Result<Here> {
    CURRENT.with_borrow(|c| c.clone()).ok_or_else(no_context)
}

/// Waits until all work that this rank has issued to a device is done, for measurements. Reading a value does not need it.
///
/// # Errors
/// If the device does not exist, or if work on it has failed.
pub fn synchronize(device: Device) -> Result<()> {
    current().device(device)?.vm.synchronize()
}
