//! Buffers of the threads of a rank, and the rank that a thread works for.
//!
//! A thread records into its own buffer; its lock is free but while the collector takes the events. The buffers of a rank share a switch
//! ([`Lanes`]), so that of several ranks in one process only those record that have a session.

use super::event::Event;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Events after which the collector is woken before its time.
const MANY: usize = 8192;
/// Events that a buffer holds. More are dropped, and counted: the collector has not run for a while.
const MOST: usize = 65_536;

/// Number of ranks of this process that record.
pub(super) static RECORDING: AtomicU32 = AtomicU32::new(0);

/// Buffers of the ranks of this process, by owner.
static LANES: Mutex<BTreeMap<u32, Arc<Lanes>>> = Mutex::new(BTreeMap::new());

thread_local! {
    static OWNER: Cell<u32> = const { Cell::new(0) };
    static LANE: RefCell<Option<Arc<Lane>>> = const { RefCell::new(None) };
}

pub(super) fn lock<T: ?Sized>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The owner of what this thread does.
pub(crate) fn owner() -> u32 {
    OWNER.get()
}

/// Makes this rank the owner of what this thread does from here on; returns the one before.
#[inline]
pub(crate) fn adopt(owner: u32) -> u32 {
    OWNER.replace(owner)
}

/// The buffers of a rank.
pub(super) struct Lanes {
    owner: u32,
    recording: AtomicBool,
    /// Number of the next buffer, and those that there are.
    list: Mutex<(u32, Vec<Arc<Lane>>)>,
    /// Whether the events are to be taken now.
    wanted: Mutex<bool>,
    wake: Condvar,
}

/// The buffers of an owner.
pub(super) fn lanes_of(owner: u32) -> Arc<Lanes> {
    let new = || {
        Arc::new(Lanes {
            owner,
            recording: AtomicBool::new(false),
            list: Mutex::default(),
            wanted: Mutex::default(),
            wake: Condvar::new(),
        })
    };
    lock(&LANES).entry(owner).or_insert_with(new).clone()
}

/// Forgets the buffers of an owner that is gone.
pub(super) fn forget(owner: u32) {
    lock(&LANES).remove(&owner);
}

impl Lanes {
    /// Switches recording on or off.
    pub(super) fn record(&self, on: bool) {
        if self.recording.swap(on, Ordering::Relaxed) != on {
            match on {
                true => RECORDING.fetch_add(1, Ordering::Relaxed),
                false => RECORDING.fetch_sub(1, Ordering::Relaxed),
            };
        }
    }

    /// Wakes who waits in [`Lanes::wait`].
    pub(super) fn wake(&self) {
        *lock(&self.wanted) = true;
        self.wake.notify_one();
    }

    /// Waits for that time, or until the events are to be taken.
    pub(super) fn wait(&self, most: Duration) {
        let wanted = lock(&self.wanted);
        let (mut wanted, _) =
            self.wake.wait_timeout_while(wanted, most, |wanted| !*wanted).unwrap_or_else(PoisonError::into_inner);
        *wanted = false;
    }

    /// The buffers that there are. Those of threads that have ended are left out when they are empty.
    pub(super) fn all(&self) -> Vec<Arc<Lane>> {
        let mut list = lock(&self.list);
        // The thread of a buffer that only the list holds has ended, and no other one can get it.
        list.1.retain(|lane| Arc::strong_count(lane) > 1 || !lock(&lane.buffer).events.is_empty());
        list.1.clone()
    }

    /// A buffer for the calling thread.
    fn lane(self: &Arc<Self>) -> Arc<Lane> {
        let thread = std::thread::current();
        self.named(|number| thread.name().map_or_else(|| format!("thread {number}"), str::to_string))
    }

    /// A buffer whose name may have its number.
    fn named(self: &Arc<Self>, name: impl FnOnce(u32) -> String) -> Arc<Lane> {
        let mut list = lock(&self.list);
        let number = list.0;
        list.0 += 1;
        let lane = Arc::new(Lane { number, name: name(number), of: self.clone(), buffer: Mutex::default() });
        list.1.push(lane.clone());
        lane
    }
}

/// Events of one thread for one rank that nobody has taken yet.
pub(super) struct Lane {
    /// Number of the thread among those of its rank.
    pub(super) number: u32,
    /// Name of the thread.
    pub(super) name: String,
    of: Arc<Lanes>,
    buffer: Mutex<Buffer>,
}

#[derive(Default)]
struct Buffer {
    events: Vec<Event>,
    dropped: u64,
}

impl Lane {
    fn push(&self, event: Event) {
        if !self.of.recording.load(Ordering::Relaxed) {
            return;
        }
        let mut buffer = lock(&self.buffer);
        if buffer.events.len() >= MOST {
            buffer.dropped += 1;
            return;
        }
        buffer.events.push(event);
        let many = buffer.events.len() == MANY;
        drop(buffer);
        if many {
            self.of.wake();
        }
    }

    /// Swaps the events for an empty vector, and returns how many were dropped since the last time.
    pub(super) fn take(&self, events: &mut Vec<Event>) -> u64 {
        let mut buffer = lock(&self.buffer);
        std::mem::swap(&mut buffer.events, events);
        std::mem::take(&mut buffer.dropped)
    }
}

/// The buffer of a stream of a device, which is shown as a thread: its events happen on no thread of the host.
pub(crate) struct StreamLane(Arc<Lane>);

impl StreamLane {
    /// A buffer for an owner.
    pub(crate) fn new(owner: u32, name: &str) -> StreamLane {
        StreamLane(lanes_of(owner).named(|_| name.to_string()))
    }

    /// Whether a session records.
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        RECORDING.load(Ordering::Relaxed) != 0 && self.0.of.recording.load(Ordering::Relaxed)
    }

    /// Records something that happened, if a session records.
    pub(crate) fn happened(&self, event: Event) {
        self.0.push(event);
    }
}

/// Adds an event to the buffer of this thread.
pub(super) fn push(event: Event) {
    // A thread that ends has no buffer any more.
    let _ended = LANE.try_with(|lane| {
        let mut lane = lane.borrow_mut();
        let owner = OWNER.get();
        if lane.as_ref().is_none_or(|l| l.of.owner != owner) {
            *lane = Some(lanes_of(owner).lane());
        }
        if let Some(lane) = &*lane {
            lane.push(event);
        }
    });
}
