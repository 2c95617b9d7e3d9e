//! Where the streams of a communicator's ranks meet. A collective has a number; each rank leaves its part and waits, and
//! the last to come checks that all mean the same and does it. A send and its receive meet by pair of ranks, in order.
//! Pointers of all ranks are addresses of this process, so doing it is copying.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::comm::{Comm, patience};
use super::reduce::{Op, Type, reduce};
use super::{INVALID_USAGE, lock};
use crate::driver::codes::LAUNCH_FAILED;
use crate::driver::stream::Failure;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NcclCall {
    AllReduce,
    Broadcast,
    Reduce,
    AllGather,
    ReduceScatter,
}

/// A rank's part in a collective.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub kind: NcclCall,
    pub send: usize,
    pub recv: usize,
    pub count: usize,
    pub dtype: Type,
    pub op: Op,
    pub root: usize,
}

/// A send or a receive.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub sends: bool,
    pub at: usize,
    pub count: usize,
    pub dtype: Type,
    pub peer: usize,
    /// The how manyth of this rank's to (or from) that peer.
    pub turn: u64,
}

/// Whether something has been done, and what was wrong with it.
type Done = Arc<Mutex<Option<Result<(), String>>>>;

struct Gathering {
    parts: Vec<Option<Part>>,
    done: Done,
}

/// A send or receive that waits for its other half.
struct Waiting {
    job: Peer,
    done: Done,
}

#[derive(Default)]
struct State {
    gatherings: BTreeMap<u64, Gathering>,
    /// By source, destination and whether it is the sends that wait.
    waiting: BTreeMap<(usize, usize, bool), VecDeque<Waiting>>,
}

pub struct Meeting {
    pub ranks: usize,
    state: Mutex<State>,
    bell: Condvar,
}

/// # Safety
/// The range can be read.
pub unsafe fn bytes(at: usize, len: usize) -> Vec<u8> {
    // SAFETY: by contract; an empty buffer may have any address.
    if len == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(at as *const u8, len) }.to_vec() }
}

/// # Safety
/// The range can be written.
pub unsafe fn write(at: usize, bytes: &[u8]) {
    if !bytes.is_empty() {
        // SAFETY: by contract.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
    }
}

impl Part {
    /// Text that all ranks must agree on.
    pub fn meaning(&self) -> String {
        format!("{:?} of {} x {:?}, op {:?}, root {}", self.kind, self.count, self.dtype, self.op, self.root)
    }

    /// How many bytes a rank brings.
    pub fn brings(&self, rank: usize, ranks: usize) -> usize {
        let len = self.count * self.dtype.size();
        match self.kind {
            NcclCall::Broadcast if rank != self.root => 0,
            NcclCall::ReduceScatter => len * ranks,
            _ => len,
        }
    }

    /// Combines the data that the ranks brought.
    pub fn combine(&self, brought: &[Vec<u8>]) -> Vec<u8> {
        match self.kind {
            NcclCall::AllReduce | NcclCall::Reduce | NcclCall::ReduceScatter => reduce(self.dtype, self.op, brought),
            NcclCall::Broadcast => brought[self.root].clone(),
            NcclCall::AllGather => brought.concat(),
        }
    }

    /// The piece of it that a rank gets.
    pub fn share<'a>(&self, rank: usize, whole: &'a [u8]) -> &'a [u8] {
        let len = self.count * self.dtype.size();
        match self.kind {
            NcclCall::Reduce if rank != self.root => &[],
            NcclCall::ReduceScatter => &whole[rank * len..][..len],
            _ => whole,
        }
    }
}

/// All ranks mean the same collective.
pub fn agree(meanings: &[String]) -> Result<(), String> {
    match meanings.iter().position(|meaning| *meaning != meanings[0]) {
        Some(rank) => Err(format!("ranks differ: rank 0 calls {}, rank {rank} {}", meanings[0], meanings[rank])),
        None => Ok(()),
    }
}

/// Does a collective of which all parts are there.
///
/// # Safety
/// The buffers were checked when the ranks called, and are live.
unsafe fn perform(parts: &[Part]) -> Result<(), String> {
    agree(&parts.iter().map(Part::meaning).collect::<Vec<_>>())?;
    // Everything is read before anything is written, so that buffers may be the same.
    // SAFETY: by contract.
    unsafe {
        let brought: Vec<_> =
            parts.iter().enumerate().map(|(rank, part)| bytes(part.send, part.brings(rank, parts.len()))).collect();
        let whole = parts[0].combine(&brought);
        parts.iter().enumerate().for_each(|(rank, part)| write(part.recv, part.share(rank, &whole)));
    }
    Ok(())
}

impl Meeting {
    pub fn new(ranks: usize) -> Meeting {
        Meeting { ranks, state: Mutex::default(), bell: Condvar::new() }
    }

    /// Wakes all who wait, to look again.
    pub fn ring(&self) {
        let _state = lock(&self.state);
        self.bell.notify_all();
    }

    fn arrive(&self, rank: usize, number: u64, part: Part) -> Done {
        let mut state = lock(&self.state);
        let ranks = self.ranks;
        let gathering = state
            .gatherings
            .entry(number)
            .or_insert_with(|| Gathering { parts: vec![None; ranks], done: Done::default() });
        gathering.parts[rank] = Some(part);
        let done = gathering.done.clone();
        let parts: Option<Vec<Part>> = gathering.parts.iter().copied().collect();
        if let Some(parts) = parts {
            state.gatherings.remove(&number);
            drop(state);
            // SAFETY: each rank's stream waits here for the end, so the buffers are still live.
            let result = unsafe { perform(&parts) };
            *lock(&done) = Some(result);
            self.ring();
        }
        done
    }

    fn meet(&self, rank: usize, job: Peer) -> Done {
        let pair = if job.sends { (rank, job.peer) } else { (job.peer, rank) };
        let mut state = lock(&self.state);
        let other = state.waiting.get_mut(&(pair.0, pair.1, !job.sends)).and_then(VecDeque::pop_front);
        let Some(other) = other else {
            let done = Done::default();
            let waiting = Waiting { job, done: done.clone() };
            state.waiting.entry((pair.0, pair.1, job.sends)).or_default().push_back(waiting);
            return done;
        };
        drop(state);
        let (from, to) = if job.sends { (&job, &other.job) } else { (&other.job, &job) };
        let result = if (from.count, from.dtype) == (to.count, to.dtype) {
            // SAFETY: checked when the ranks called; both wait for the end.
            unsafe { write(to.at, &bytes(from.at, from.count * from.dtype.size())) };
            Ok(())
        } else {
            let sent = format!("rank {} sends {} x {:?}", pair.0, from.count, from.dtype);
            Err(format!("{sent}, rank {} receives {} x {:?}", pair.1, to.count, to.dtype))
        };
        *lock(&other.done) = Some(result);
        self.ring();
        other.done
    }
}

impl Comm {
    /// On the stream's thread: one group of calls. All sends and receives are posted before any is waited for.
    pub fn carry_out(&self, collectives: Vec<(u64, Part)>, peers: Vec<Peer>) -> Result<(), Failure> {
        let meeting = &self.group.meeting;
        if self.aborted.load(SeqCst) {
            return Ok(());
        }
        if let Some(folder) = self.folder.get() {
            return folder.carry_out(self, collectives, peers);
        }
        let mut posted: Vec<(String, Done)> = Vec::new();
        for peer in peers {
            posted.push((format!("{peer:?}"), meeting.meet(self.rank, peer)));
        }
        for (number, part) in collectives {
            let done = meeting.arrive(self.rank, number, part);
            self.await_done(&format!("{part:?}"), &done)?;
        }
        posted.iter().try_for_each(|(what, done)| self.await_done(what, done))
    }

    fn await_done(&self, what: &str, done: &Done) -> Result<(), Failure> {
        let deadline = Instant::now() + patience();
        let mut state: MutexGuard<'_, State> = lock(&self.group.meeting.state);
        loop {
            if let Some(result) = lock(done).clone() {
                return result.map_err(|text| self.failure(&text));
            }
            if self.aborted.load(SeqCst) {
                // What this rank posted must not be read any more.
                state.gatherings.retain(|_, gathering| !Arc::ptr_eq(&gathering.done, done));
                state.waiting.values_mut().for_each(|all| all.retain(|waiting| !Arc::ptr_eq(&waiting.done, done)));
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.failure(&format!("rank {} waited in vain for the others in {what}", self.rank)));
            }
            let step = left.min(Duration::from_secs(1));
            let waited = self.group.meeting.bell.wait_timeout(state, step);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The communicator fails: what its stream fails with.
    pub fn failure(&self, text: &str) -> Failure {
        self.state.store(INVALID_USAGE, SeqCst);
        let _ = super::refuse::<()>(INVALID_USAGE, text);
        Failure(LAUNCH_FAILED, format!("NCCL: {text}"))
    }
}
