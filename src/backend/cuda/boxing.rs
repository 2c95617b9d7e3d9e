//! Boxings on a GPU's communication stream, and how long they took.

use super::boxing_device::OnGpu;
use super::links::Routes;
use crate::boxing::BoxingPlan;
use crate::comm::nccl::Guard;
use crate::comm::{Communicator, Tag, now_ns};
use crate::error::{Error, Result};
use crate::memory::{Allocator, Storage};
use crate::placement::Device;
use crate::vm::box_collect::execute_collect_at;
use crate::vm::box_exec::execute_at;
use crate::vm::box_many::{Ends, execute_many, execute_many_at};
use crate::vm::boxing_device::{BoxingDevice, Span};
use crate::vm::{BoxManyWork, CollectWork, Stopwatch, Took, Work, communicator};
use oflow_kernels::View;
use oflow_kernels::cuda::{Event, Gpu, Queue, Stream};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// Resources that a GPU's boxings need besides its streams.
pub(super) struct Boxings {
    comm: Option<Arc<dyn Communicator>>,
    /// Memory of the host, for boxings that pass through it.
    host: Allocator,
    links: Mutex<Routes>,
    /// After the links, so that their communicators end while it still watches.
    pub(super) guard: Guard,
    clocks: Mutex<Clocks>,
}

/// Counters that boxings add to.
pub(super) struct Counted<'a> {
    pub(super) syncs: &'a AtomicU64,
    pub(super) host_copies: &'a AtomicU64,
}

impl Boxings {
    pub(super) fn new(gpu: &Arc<Gpu>, host: &Allocator, comm: Option<Arc<dyn Communicator>>) -> Boxings {
        Boxings {
            comm,
            host: host.clone(),
            links: Mutex::new(Routes::new(gpu)),
            guard: Guard::default(),
            clocks: Mutex::new(Clocks::default()),
        }
    }

    /// Puts a boxing on the queue's stream. `memory` gives memory that this stream may use from now on.
    pub(super) fn run(
        &self,
        work: &Work,
        queue: Queue<'_>,
        memory: &mut dyn FnMut(usize) -> Result<Storage>,
        counted: &Counted,
    ) -> Result<()> {
        let comm = communicator(self.comm.as_deref())?;
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.poll()?;
        let stream = queue.stream();
        let on_gpu = |tag| OnGpu {
            queue,
            comm,
            host: &self.host,
            tag,
            links: &mut links,
            guard: &self.guard,
            memory,
            scratch_buffers: Default::default(),
            host_copies: counted.host_copies,
            syncs: counted.syncs,
        };
        match work {
            Work::Kernel(_) | Work::Segment(_) => Ok(()),
            Work::Listed(_) => Err(Error::device("a listed exchange is one of host memory")),
            Work::Boxing(b) => clocks.time(stream, comm, &[(&b.stopwatch, 1)], || {
                let mut place = on_gpu(&b.tag);
                if mixed(&b.plan) {
                    let ends = [(b.src.clone(), b.dst.clone())];
                    return through_host(&mut place, std::slice::from_ref(&b.plan), &ends);
                }
                place.prepare(&b.plan)?;
                execute_at(&mut place, &b.plan, b.src.as_ref(), b.dst.as_ref())
            }),
            Work::BoxMany(b) => {
                let (watch, first) = &b.stopwatch;
                let numbered: SmallVec<[Watch; 8]> =
                    (*first..).take(b.predicted.len()).map(|n| (watch.clone(), n)).collect();
                let watches: SmallVec<[_; 8]> = numbered.iter().zip(b.predicted.iter().copied()).collect();
                clocks.time(stream, comm, &watches, || many(&mut on_gpu(&b.tag), b))
            }
            Work::Collect(b) => clocks.time(stream, comm, &[(&b.stopwatch, 1)], || collect(&mut on_gpu(&b.tag), b)),
        }
    }

    /// Tells the times that are known by now.
    pub(super) fn poll(&self) -> Result<()> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner).poll()
    }
}

/// Whether only one end of a plan is on a GPU.
fn mixed(plan: &BoxingPlan) -> bool {
    plan.src.placement.device() != plan.dst.placement.device()
}

fn many(place: &mut OnGpu, b: &BoxManyWork) -> Result<()> {
    // The plans of one instruction have the same pair of devices.
    if b.plans.first().is_some_and(|p| mixed(p)) {
        return through_host(place, &b.plans, &b.ends);
    }
    for plan in &b.plans {
        place.prepare(plan)?;
    }
    let ends: Vec<Ends> = b.ends.iter().map(|(s, d)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
    execute_many_at(place, &b.plans, &ends)
}

fn collect(place: &mut OnGpu, b: &CollectWork) -> Result<()> {
    if b.plan.elements_sent() > 0 {
        place.link(&b.plan.ranks())?;
    }
    execute_collect_at(place, &b.plan, b.dtype, (&b.own, b.dst.as_ref()))
}

/// Boxings from a GPU to the host or back: shards on the GPU pass through pinned memory, and the host does the rest.
fn through_host(place: &mut OnGpu, plans: &[Arc<BoxingPlan>], ends: &[(Option<View>, Option<View>)]) -> Result<()> {
    let on_gpu = |device: Device| device == Device::Cuda;
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    // Packed copies of shards with gaps; the stream has read them when they are used again.
    let mut packed: Vec<Storage> = Vec::new();
    for (plan, (src, dst)) in plans.iter().zip(ends) {
        if on_gpu(plan.src.placement.device())
            && let Some(src) = src
        {
            let bytes = src.len() * src.dtype().size();
            sends.push(match src.is_contiguous() {
                true => Span::of(src),
                false => {
                    let storage = (place.memory)(bytes.max(1))?;
                    let span = Span { ptr: storage.ptr(), len: bytes };
                    place.copy(src, &span.view(src.dtype(), src.dims()))?;
                    packed.push(storage);
                    span
                }
            });
        }
        if on_gpu(plan.dst.placement.device()) {
            receives.extend(dst.as_ref().map(Span::of));
        }
    }
    let (comm, host, tag): (&dyn Communicator, &Allocator, &Tag) = (place.comm, place.host, place.tag);
    place.through_host(&sends, &receives, |sent, received| {
        let (mut sent, mut received) = (sent.iter(), received.iter_mut());
        let mut on_host = Vec::with_capacity(ends.len());
        for (plan, (src, dst)) in plans.iter().zip(ends) {
            let view = |ptr: *mut u8, v: &View| Span { ptr, len: v.len() * v.dtype().size() }.view(v.dtype(), v.dims());
            let src = match src {
                Some(v) if on_gpu(plan.src.placement.device()) => {
                    sent.next().map(|bytes| view(bytes.as_ptr().cast_mut(), v))
                }
                other => other.clone(),
            };
            let dst = match dst {
                Some(v) if on_gpu(plan.dst.placement.device()) => received.next().map(|b| view(b.as_mut_ptr(), v)),
                other => other.clone(),
            };
            on_host.push((src, dst));
        }
        let ends: Vec<Ends> = on_host.iter().map(|(s, d)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
        execute_many(plans, &ends, (comm, host), tag)
    })
}

/// Stopwatch that is told a time, and the number of the work there.
type Watch = (Arc<dyn Stopwatch>, u64);

/// Boxings on the stream whose time is not known yet.
#[derive(Default)]
struct Clocks {
    idle: Vec<(Event, Event)>,
    running: VecDeque<Running>,
    /// End of the last one, on the host's clock.
    until: u64,
}

struct Running {
    events: (Event, Event),
    /// When it was issued.
    issued: u64,
    /// Nanoseconds that the host waited for late members meanwhile.
    waited: u64,
    /// Each with its share of the time.
    shares: SmallVec<[(Watch, u64); 1]>,
}

/// Boxings whose times are kept until somebody asks.
const MOST_RUNNING: usize = 4096;

impl Clocks {
    /// Runs a boxing between two events. The time goes to the stopwatches in the given shares. NCCL does not tell how long
    /// a rank waited for late members, so its times hold that too.
    fn time(
        &mut self,
        stream: &Stream,
        comm: &dyn Communicator,
        watches: &[(&Watch, u64)],
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let events = match self.idle.pop() {
            Some(events) => events,
            None => (Event::new(stream.gpu(), true)?, Event::new(stream.gpu(), true)?),
        };
        let (issued, before) = (now_ns(), comm.traffic().waited_ns);
        events.0.record(stream)?;
        run()?;
        events.1.record(stream)?;
        let shares = watches.iter().map(|(watch, share)| ((*watch).clone(), *share)).collect();
        let waited = comm.traffic().waited_ns.saturating_sub(before);
        self.running.push_back(Running { events, issued, waited, shares });
        Ok(())
    }

    fn poll(&mut self) -> Result<()> {
        while let Some(first) = self.running.front() {
            if self.running.len() > MOST_RUNNING {
                first.events.1.synchronize()?;
            } else if !first.events.1.reached()? {
                break;
            }
            let Some(Running { events, issued, waited, shares }) = self.running.pop_front() else { break };
            let ns = (f64::from(events.0.elapsed_ms(&events.1)?) * 1e6) as u64;
            // The stream's clock is not the host's. A boxing does not start before it is issued, nor before the one ahead of it has ended.
            let begin = issued.max(self.until);
            self.until = begin + ns;
            let took = Took { begin, end: self.until, ns: ns.saturating_sub(waited) };
            for (((watch, number), _), took) in shares.iter().zip(took.shares(shares.iter().map(|s| s.1))) {
                watch.done(*number, took, shares.len());
            }
            self.idle.push(events);
        }
        Ok(())
    }
}
