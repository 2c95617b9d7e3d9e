//! Instructions that the vm runs, as data.

use super::box_collect::execute_collect;
use super::box_exec::execute;
use super::box_many::{Ends, execute_many};
use super::boxing_device_host::on_host;
use super::listed::Listed;
use crate::boxing::{BoxesPlan, BoxingPlan};
use crate::comm::{Communicator, Tag, now_ns};
use crate::error::{CallSite, Error, ErrorKind, Result};
use crate::memory::{Allocator, MemoryOwner, MemoryUse, Storage, Writing};
use crate::ops::{KernelCx, RuntimeAttrs, StreamKind};
use crate::plan::KernelPlan;
use crate::trace::{self, What};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, View};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};

/// Host memory that lives as long as the work of a kernel.
pub struct HostBuffers(pub SmallVec<[Storage; 1]>);

/// A kernel with its views.
pub struct KernelWork {
    /// Plan of the kernel.
    pub plan: Arc<KernelPlan>,
    /// Views of the inputs; `None` where one is absent.
    pub inputs: SmallVec<[Option<View>; 4]>,
    /// Views of the outputs.
    pub outputs: SmallVec<[View; 2]>,
    /// Runtime attributes of the call.
    pub runtime: RuntimeAttrs,
    /// Scratch memory, if the kernel needs any.
    pub workspace: Option<View>,
    /// Host memory of inputs that the kernel reads there; nobody else has it. Few kernels have any, so it is one word here.
    pub held: Option<Box<HostBuffers>>,
    /// The user's line, for errors that depend on values.
    pub site: CallSite,
}

impl KernelWork {
    /// The same work, to be issued: it holds no host memory.
    pub(crate) fn again(&self) -> KernelWork {
        KernelWork {
            plan: self.plan.clone(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            runtime: self.runtime.clone(),
            workspace: self.workspace.clone(),
            held: None,
            site: self.site,
        }
    }

    /// Calls the kernel: it computes on the current thread, or puts its work on the stream that the device's kernels take.
    ///
    /// # Errors
    /// Those of the kernel, with the op and the user's line.
    #[inline]
    pub fn run(&self, stream: Option<&dyn Any>) -> Result<()> {
        let begin = trace::begin();
        let cx = KernelCx {
            op: self.plan.op,
            inputs: &self.inputs,
            outputs: &self.outputs,
            attrs: &self.plan.attrs,
            runtime: &self.runtime,
            input_boxes: &self.plan.input_boxes,
            output_boxes: &self.plan.output_boxes,
            state: self.plan.state.as_ref(),
            cache: &self.plan.cache,
            workspace: self.workspace.as_ref(),
            stream,
        };
        // Shapes and attributes were checked before: what a kernel refuses depends on values, and only this rank
        // may have seen them.
        let done = (self.plan.run)(&cx).map_err(|e| {
            let e = if e.is_logical() { e.as_kind(ErrorKind::Value) } else { e };
            e.in_call(|| self.plan.op.name().to_string()).at(self.site)
        });
        begin.end(self.site, || match stream {
            None => What::Kernel(self.plan.op.name()),
            Some(_) => What::Launch(self.plan.op.name()),
        });
        done
    }
}

/// Kernels that are issued together, again and again, always with the same memory.
pub struct Segment {
    kernels: Vec<KernelWork>,
    prepared: Mutex<Prepared>,
}

/// State of a segment on its device.
pub enum Prepared {
    /// The streams have not seen it.
    Not,
    /// Work that the streams launch in its place.
    Ready(Box<dyn Any + Send>),
    /// Reason why the device does not take the kernels together.
    Refused(String),
}

impl Segment {
    /// Makes a segment.
    pub fn new(kernels: Vec<KernelWork>) -> Segment {
        Segment { kernels, prepared: Mutex::new(Prepared::Not) }
    }

    /// Returns the kernels, in their order.
    pub fn kernels(&self) -> &[KernelWork] {
        &self.kernels
    }

    /// Returns what the streams have made of it.
    pub fn prepared(&self) -> MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Calls the kernels one after the other.
    fn run(&self) -> Result<()> {
        self.kernels.iter().try_for_each(|k| k.run(None))
    }

    /// The op and the user's line of a kernel, by number.
    pub(crate) fn origin(&self, n: usize) -> Option<(&'static str, CallSite)> {
        self.kernels.get(n).map(|k| (k.plan.op.name(), k.site))
    }
}

/// Hears how long boxings took, on the thread that carried them out.
pub trait Stopwatch: Send + Sync {
    /// The boxing of that number is done, one of `together` that were carried out together.
    fn done(&self, number: u64, took: Took, together: usize);
}

/// Time of a boxing on this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// Start, in nanoseconds of the clock that ranks of a host share.
    pub begin: u64,
    /// End on the same clock.
    pub end: u64,
    /// Nanoseconds from the last arrival of those that took part to this rank's end, summed over the boxing's collectives, and its local
    /// work; so a late peer is not counted.
    pub ns: u64,
}

impl Took {
    /// The time as shares of it, one after the other.
    pub(crate) fn shares(self, shares: impl Iterator<Item = u64> + Clone) -> impl Iterator<Item = Took> {
        let whole = shares.clone().fold(0, u64::saturating_add).max(1);
        let length = self.end.saturating_sub(self.begin);
        let part = move |of: u64, share: u64| (u128::from(of) * u128::from(share) / u128::from(whole)) as u64;
        let mut before = 0u64;
        shares.map(move |share| {
            let begin = self.begin + part(length, before);
            before = before.saturating_add(share);
            Took { begin, end: self.begin + part(length, before), ns: part(self.ns, share) }
        })
    }
}

/// A boxing plan with its ends on this rank.
pub struct BoxWork {
    /// Plan of the boxing.
    pub plan: Arc<BoxingPlan>,
    /// Tag of the collectives: the call's number in the stream of global ops.
    pub tag: Tag,
    /// This rank's source shard.
    pub src: Option<View>,
    /// This rank's destination shard.
    pub dst: Option<View>,
    /// Stopwatch that is told the duration, and the number of the boxing there.
    pub stopwatch: (Arc<dyn Stopwatch>, u64),
}

/// Several boxings that are carried out together.
pub struct BoxManyWork {
    /// Plans of the boxings, in order.
    pub plans: Vec<Arc<BoxingPlan>>,
    /// Tag of the collectives: the call's number in the stream of global ops.
    pub tag: Tag,
    /// This rank's source and destination shard of each.
    pub ends: Vec<(Option<View>, Option<View>)>,
    /// Stopwatch that is told the durations, and the number of the first boxing there; the others follow.
    pub stopwatch: (Arc<dyn Stopwatch>, u64),
    /// Predicted share of each boxing in the whole time.
    pub predicted: Vec<u64>,
}

/// A tensor put together from boxes that ranks hold.
pub struct CollectWork {
    /// The box that each rank sends to each other rank.
    pub plan: Arc<BoxesPlan>,
    /// Tag of the messages: the call's number in the stream of global ops.
    pub tag: Tag,
    /// Of all boxes.
    pub dtype: DType,
    /// This rank's boxes, in order.
    pub own: Vec<View>,
    /// This rank's box of the result.
    pub dst: Option<View>,
    /// Stopwatch that is told the duration, and the number of the exchange there.
    pub stopwatch: (Arc<dyn Stopwatch>, u64),
}

/// An exchange whose operations are listed: boxings, or boxes of a tensor, of a graph.
pub struct ListedWork {
    pub(crate) listed: Arc<Listed>,
    /// Tag of the collectives: the call's number in the stream of global ops.
    pub tag: Tag,
    /// Stopwatch that is told the durations, and the number of the first boxing there; the others follow.
    pub stopwatch: (Arc<dyn Stopwatch>, u64),
}

/// Work of an instruction.
// Lives on the issuing thread's stack for the common inline case; a box would be a heap allocation per kernel.
#[allow(clippy::large_enum_variant)]
pub enum Work {
    /// Run a kernel.
    Kernel(KernelWork),
    /// Run a boxing plan.
    Boxing(BoxWork),
    /// Run boxing plans together.
    BoxMany(BoxManyWork),
    /// Put a tensor together from boxes.
    Collect(CollectWork),
    /// Carry out the operations of an exchange.
    Listed(ListedWork),
    /// Run kernels that follow each other.
    Segment(Arc<Segment>),
}

/// One instruction: work, its stream, and the storages it reads and writes (which it keeps alive).
pub struct Instruction {
    /// Work of the instruction.
    pub work: Work,
    /// Stream that the instruction runs on.
    pub stream: StreamKind,
    /// Storages that the instruction reads.
    pub reads: SmallVec<[Storage; 4]>,
    /// Storages written (scratch too).
    pub writes: SmallVec<[Storage; 2]>,
}

impl Instruction {
    /// A kernel, on the stream that its plan names; what it reads and writes is added.
    #[inline]
    pub(crate) fn of_kernel(plan: Arc<KernelPlan>, runtime: RuntimeAttrs, site: CallSite) -> Instruction {
        let (inputs, outputs) = (SmallVec::new(), SmallVec::new());
        let stream = plan.stream;
        let work = Work::Kernel(KernelWork { plan, inputs, outputs, runtime, workspace: None, held: None, site });
        Instruction { work, stream, reads: SmallVec::new(), writes: SmallVec::new() }
    }

    #[inline]
    fn kernel(&mut self) -> &mut KernelWork {
        match &mut self.work {
            Work::Kernel(k) => k,
            // Only what `of_kernel` made is added to.
            _ => unreachable!("operands of a boxing"),
        }
    }

    /// Adds the next input of a kernel: a view of memory that it reads, or writes too.
    #[inline]
    pub(crate) fn input(&mut self, view: View, storage: &Storage, writes: bool) {
        self.kernel().inputs.push(Some(view));
        match writes {
            true => self.writes.push(storage.clone()),
            false => self.reads.push(storage.clone()),
        }
    }

    /// Adds an input that the kernel reads in host memory, which nobody else uses.
    pub(crate) fn host_input(&mut self, view: View, storage: Storage) {
        let kernel = self.kernel();
        kernel.inputs.push(Some(view));
        kernel.held.get_or_insert_with(|| Box::new(HostBuffers(SmallVec::new()))).0.push(storage);
    }

    /// Adds an optional input that was left out.
    pub(crate) fn absent(&mut self) {
        self.kernel().inputs.push(None);
    }

    /// Adds the next output of a kernel.
    #[inline]
    pub(crate) fn output(&mut self, view: View, storage: &Storage) {
        self.kernel().outputs.push(view);
        self.writes.push(storage.clone());
    }

    /// Gives a kernel its scratch memory, which nobody else uses.
    pub(crate) fn workspace(&mut self, storage: Storage) {
        let n = storage.bytes();
        // SAFETY: the block is n bytes, exclusively ours, and lives in `writes` until the kernel is done.
        let view = unsafe { View::from_raw(storage.ptr(), DType::U8, smallvec![n], contiguous_strides(&[n])) };
        self.kernel().workspace = Some(view);
        self.writes.push(storage);
    }

    /// Logical bytes of the tensors that are boxed; 0 for a kernel.
    pub(crate) fn boxed_bytes(&self) -> usize {
        let bytes = |p: &BoxingPlan| p.shape.iter().product::<usize>() * p.dtype.size();
        match &self.work {
            Work::Kernel(_) | Work::Segment(_) => 0,
            Work::Boxing(b) => bytes(&b.plan),
            Work::BoxMany(b) => b.plans.iter().map(|p| bytes(p)).sum(),
            Work::Collect(b) => b.plan.shape.iter().product::<usize>() * b.dtype.size(),
            Work::Listed(b) => b.listed.bytes,
        }
    }

    /// Whether this rank has a shard of the source, and of the destination, of any of the boxings.
    pub(crate) fn ends(&self) -> (bool, bool) {
        match &self.work {
            Work::Kernel(_) | Work::Segment(_) => (false, false),
            Work::Boxing(b) => (b.src.is_some(), b.dst.is_some()),
            Work::BoxMany(b) => (b.ends.iter().any(|e| e.0.is_some()), b.ends.iter().any(|e| e.1.is_some())),
            Work::Collect(b) => (!b.own.is_empty(), b.dst.is_some()),
            Work::Listed(b) => b.listed.ends,
        }
    }

    /// Storages that it reads, also those that a listed exchange keeps.
    pub(crate) fn all_reads(&self) -> impl Iterator<Item = &Storage> + Clone {
        self.reads.iter().chain(self.listed().map_or(&[][..], |l| &l.reads))
    }

    /// The same of storages that it writes.
    pub(crate) fn all_writes(&self) -> impl Iterator<Item = &Storage> + Clone {
        self.writes.iter().chain(self.listed().map_or(&[][..], |l| &l.writes))
    }

    fn listed(&self) -> Option<&Listed> {
        match &self.work {
            Work::Listed(b) => Some(&b.listed),
            _ => None,
        }
    }

    /// The op and the user's line.
    pub(crate) fn origin(&self) -> (&'static str, CallSite) {
        let tagged = |t: &Tag| (t.op, t.site());
        match &self.work {
            Work::Kernel(k) => (k.plan.op.name(), k.site),
            Work::Boxing(b) => tagged(&b.tag),
            Work::BoxMany(b) => tagged(&b.tag),
            Work::Collect(b) => tagged(&b.tag),
            Work::Listed(b) => tagged(&b.tag),
            Work::Segment(s) => s.origin(0).map_or(("segment", CallSite::here()), |(_, site)| ("segment", site)),
        }
    }

    /// Begins work that is done on this thread: until [`Alone::end`], what another thread does to the same storages without
    /// waiting is an error (see `memory/uses.rs`).
    ///
    /// # Errors
    /// Another thread writes one of the storages.
    #[inline]
    pub(crate) fn begin(&self) -> Result<Alone<'_>> {
        let mut alone = Alone { of: self, writing: SmallVec::new(), turns: SmallVec::new() };
        for (k, s) in self.writes.iter().enumerate() {
            // Fresh memory is held by the caller and by this instruction; nobody else can write or read it.
            if s.holders() > 2 && !self.writes[..k].iter().any(|w| w.same_block(s)) {
                alone.writing.push(s.begin_write().map_err(|e| self.located(e))?);
            }
        }
        for s in &self.reads {
            // What it writes itself it may read.
            let turn = match self.writes.iter().any(|w| w.same_block(s)) {
                true => OWN,
                false => s.turn().map_err(|e| self.located(e))?,
            };
            alone.turns.push(turn);
        }
        Ok(alone)
    }

    fn located(&self, e: Error) -> Error {
        let (op, site) = self.origin();
        e.in_call(|| op.to_string()).at(site)
    }
}

/// In place of a turn, of which none is odd: the instruction writes the storage itself.
const OWN: u64 = u64::MAX;

/// Work that is being done: what it writes is marked, what it reads is known as it was.
#[must_use = "the storages are compared at the end"]
pub(crate) struct Alone<'a> {
    of: &'a Instruction,
    writing: SmallVec<[Writing<'a>; 2]>,
    turns: SmallVec<[u64; 4]>,
}

impl Alone<'_> {
    /// The work is done.
    ///
    /// # Errors
    /// Another thread has written what was read.
    #[inline]
    pub(crate) fn end(self) -> Result<()> {
        for (s, turn) in self.of.reads.iter().zip(&self.turns) {
            if *turn != OWN {
                s.still(*turn).map_err(|e| self.of.located(e))?;
            }
        }
        Ok(())
    }
}

impl Work {
    /// Does the work on the current thread, where all views are in host memory; what a boxing needs besides its ends is taken
    /// from `memory`.
    ///
    /// # Errors
    /// What a kernel and the communicator report.
    pub fn run(&self, comm: Option<&dyn Communicator>, memory: &Allocator) -> Result<()> {
        match self {
            Work::Kernel(k) => k.run(None),
            Work::Segment(s) => s.run(),
            Work::Boxing(b) => {
                let (stopwatch, number) = &b.stopwatch;
                let comm = communicator(comm)?;
                let run = || execute(&b.plan, (comm, memory), &b.tag, b.src.as_ref(), b.dst.as_ref());
                stopwatch.done(*number, owned(&b.tag, || timed(comm, run))?, 1);
                Ok(())
            }
            Work::BoxMany(b) => {
                let ends: Vec<Ends> = b.ends.iter().map(|(s, d)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
                let comm = communicator(comm)?;
                let run = || execute_many(&b.plans, &ends, (comm, memory), &b.tag);
                let took = owned(&b.tag, || timed(comm, run))?;
                tell_shares(&b.stopwatch, &b.predicted, took);
                Ok(())
            }
            Work::Listed(b) => {
                let comm = communicator(comm)?;
                let run = || on_host((comm, memory), &b.tag, |host| b.listed.run(host));
                let took = owned(&b.tag, || timed(comm, run))?;
                tell_shares(&b.stopwatch, &b.listed.shares, took);
                Ok(())
            }
            Work::Collect(b) => {
                let (stopwatch, number) = &b.stopwatch;
                let comm = communicator(comm)?;
                let ends = (b.own.as_slice(), b.dst.as_ref());
                let run = || execute_collect(&b.plan, (comm, memory), &b.tag, b.dtype, ends);
                let took = owned(&b.tag, || timed(comm, run))?;
                stopwatch.done(*number, took, 1);
                Ok(())
            }
        }
    }
}

/// Runs a boxing, which allocates on behalf of its op.
fn owned<R>(tag: &Tag, run: impl FnOnce() -> R) -> R {
    MemoryOwner { used_for: MemoryUse::Boxing, op: tag.op, site: tag.site() }.run(run)
}

/// Boxings that are carried out together have one time: each gets the share that it is predicted to take.
fn tell_shares((stopwatch, first): &(Arc<dyn Stopwatch>, u64), shares: &[u64], took: Took) {
    for (number, took) in (*first..).zip(took.shares(shares.iter().copied())) {
        stopwatch.done(number, took, shares.len());
    }
}

pub(crate) fn communicator(comm: Option<&dyn Communicator>) -> Result<&dyn Communicator> {
    comm.ok_or_else(|| Error::context("boxing needs a rank context"))
}

/// Runs a boxing and returns the time that it took.
pub(crate) fn timed(comm: &dyn Communicator, run: impl FnOnce() -> Result<()>) -> Result<Took> {
    let (begin, waited) = (now_ns(), comm.traffic().waited_ns);
    run()?;
    let end = now_ns();
    let ns = (end - begin).saturating_sub(comm.traffic().waited_ns.saturating_sub(waited));
    Ok(Took { begin, end, ns })
}
