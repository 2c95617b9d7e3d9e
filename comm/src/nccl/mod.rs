//! NCCL: collectives between the GPUs of a group of ranks.
//!
//! [`NcclComm`] is not a [`Communicator`]: its calls enqueue work on a CUDA stream and return, and they take device addresses. A
//! rank issues the calls of all its communicators from one thread, in the total order of its collectives, on one stream. So
//! several communicators cannot deadlock.
//!
//! **No call blocks for ever.** Communicators are non-blocking (`blocking = 0`): a call in progress is polled until it has
//! succeeded or the job has failed. If a peer dies during a collective, its kernels on this rank's GPU would wait for ever. A
//! thread ([`Guard`]) therefore watches the communicators of a rank, and aborts them when NCCL reports an error or the transport
//! reports that a member has left ([`Pulse`]). Waits for the stream then return, and [`Guard::failure`] returns the reason.

mod guard;
mod work;

pub use guard::Guard;

use super::{Collective, CollectiveCall, Communicator, DType, ReduceOp, Tag};
use cudarc::nccl::sys::{self, ncclResult_t as Status};
use oflow_base::{Error, Result};
use oflow_kernels::cuda::probe::probe;
use oflow_kernels::cuda::{Gpu, Stream};
use smallvec::SmallVec;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use work::{What, Work};

/// Failure detection of a transport. Called from other threads while collectives run.
pub trait Pulse: Send + Sync {
    /// Returns why no collective can succeed any more, or `None`.
    fn failure(&self) -> Option<Error>;
    /// Returns whether a rank has left the world, for any reason.
    fn has_left(&self, rank: usize) -> bool;
    /// Returns the rank that this one waits for now. `None`, the default: not known; then all members of the call count.
    fn waits_for(&self) -> Option<usize> {
        None
    }
    /// Returns this rank's counters of its connection with a rank of another host, if there is one.
    fn link(&self, _rank: usize) -> Option<LinkEnd> {
        None
    }
}

/// The counters of one end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkEnd {
    /// Bytes that this end's kernel has taken for sending.
    pub sent: u64,
    /// Time since this end last sent something.
    pub quiet: Duration,
    /// Bytes received from the other end.
    pub received: u64,
    /// Number of times that this end has polled without receiving anything since it last received something, a few per second.
    pub looks: u64,
}

/// Address and length of device memory that a call reads.
pub type DeviceBytes = (*const u8, usize);

/// Address and length of device memory that a call writes.
pub type DeviceRoom = (*mut u8, usize);

/// The id by which the members of a communicator find each other.
pub type NcclId = [u8; 128];

/// The oldest NCCL with all that is used: non-blocking communicators that can be aborted, and bfloat16.
const OLDEST: (u32, u32) = (2, 14);
/// Longer than any start of a communicator takes.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a member that has left may be missed before its communicators are given up: one that ends in order has finished
/// its part, and the last bytes of it may still be on their way.
const GRACE: Duration = Duration::from_secs(2);
/// How long the orderly end of a communicator may take.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the guard looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Returns why NCCL cannot be used in this process, or `None` if it can.
pub fn unusable() -> Option<String> {
    let version = match &probe().nccl {
        Ok(v) => v,
        Err(why) => return Some(why.clone()),
    };
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (found < OLDEST).then(|| format!("NCCL {version} is older than {}.{}", OLDEST.0, OLDEST.1))
}

/// Makes an id. One member makes it and sends it to the others over another transport.
pub fn new_id() -> Result<NcclId> {
    if let Some(why) = unusable() {
        return Err(Error::comm(format!("NCCL cannot be used: {why}")));
    }
    let mut id = sys::ncclUniqueId { internal: [0; 128] };
    // SAFETY: the library is there; writes one id.
    match unsafe { sys::ncclGetUniqueId(&mut id) } {
        Status::ncclSuccess => Ok(id.internal.map(|c| c as u8)),
        e => Err(failed("ncclGetUniqueId", e, None)),
    }
}

/// The head of `ncclConfig_t` up to what NCCL 2.18 knows: the library fills in what a caller's smaller one lacks, so that
/// this serves older and newer ones than the bindings are of.
#[repr(C)]
struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
}

impl Config {
    fn non_blocking() -> Config {
        const UNDEFINED: c_int = c_int::MIN;
        Config {
            size: size_of::<Config>(),
            magic: 0xcafe_beef,
            version: 21700,
            blocking: 0,
            cga_cluster_size: UNDEFINED,
            min_ctas: UNDEFINED,
            max_ctas: UNDEFINED,
            net_name: std::ptr::null(),
            split_share: UNDEFINED,
        }
    }
}

fn failed(what: &str, status: Status, comm: Option<sys::ncclComm_t>) -> Error {
    // SAFETY: both return a NUL-terminated string that lives on, the first one's for ever.
    let text = |p: *const c_char| match p.is_null() {
        true => String::new(),
        false => unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned(),
    };
    // SAFETY: takes any number.
    let name = text(unsafe { sys::ncclGetErrorString(status) });
    // SAFETY: a live communicator.
    let detail = comm.map(|c| text(unsafe { sys::ncclGetLastError(c) })).unwrap_or_default();
    let detail = if detail.is_empty() { String::new() } else { format!(": {}", detail.trim_end()) };
    Error::comm(format!("{what}: {name}{detail}")).help("NCCL_DEBUG=INFO makes NCCL say more")
}

/// A live communicator of the library.
struct Raw(sys::ncclComm_t);
// SAFETY: NCCL lets any thread use a communicator, one at a time; it is behind a lock.
unsafe impl Send for Raw {}

/// A rank's NCCL communicator. Calls enqueue work on a stream of its GPU. Counts are in elements.
pub struct NcclComm {
    gpu: Arc<Gpu>,
    /// World ranks of the members, in order.
    ranks: Vec<usize>,
    /// This rank's number among them.
    me: usize,
    /// None once it has been aborted.
    raw: Mutex<Option<Raw>>,
    why: Mutex<Option<String>>,
    work: Work,
    pulse: Arc<dyn Pulse>,
}

impl NcclComm {
    /// Joins the communicator with this id as member `me` of `ranks`; all members call this. `host` is their communicator for
    /// host memory: its pulse is watched, its log is written, and joining is a barrier there.
    ///
    /// # Errors
    /// Errors of NCCL, and the failure of a member that cannot join.
    pub fn join(
        gpu: &Arc<Gpu>,
        id: &NcclId,
        ranks: &[usize],
        me: usize,
        (host, tag): (&dyn Communicator, &Tag),
    ) -> Result<Arc<NcclComm>> {
        gpu.bind()?;
        let id = sys::ncclUniqueId { internal: id.map(|b| b as c_char) };
        let mut config = Config::non_blocking();
        let mut raw: sys::ncclComm_t = std::ptr::null_mut();
        let config = std::ptr::from_mut(&mut config).cast::<sys::ncclConfig_t>();
        // SAFETY: the GPU is the current one; the config tells its own size, and the library reads no more of it.
        let status = unsafe { sys::ncclCommInitRankConfig(&mut raw, ranks.len() as c_int, id, me as c_int, config) };
        if raw.is_null() || !matches!(status, Status::ncclSuccess | Status::ncclInProgress) {
            return Err(failed("ncclCommInitRankConfig", status, None));
        }
        let comm = Arc::new(NcclComm {
            gpu: gpu.clone(),
            ranks: ranks.to_vec(),
            me,
            raw: Mutex::new(Some(Raw(raw))),
            why: Mutex::default(),
            work: Work::new(host.log()),
            pulse: host.pulse(),
        });
        let until = Instant::now() + START_TIMEOUT;
        let joining = || comm.settle("starting an NCCL communicator", status, Some(until));
        comm.work.at_once((Collective::Barrier, tag, ranks, 0), joining)?;
        Ok(comm)
    }

    /// Returns the world ranks of the members.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Puts a collective on a stream. f16 and bf16 are accumulated in their own precision and in NCCL's order: the bits are the
    /// same on all members, but not those of a reduction in member order.
    ///
    /// # Errors
    /// For a call that NCCL does not have ([`has`]), and errors of NCCL.
    ///
    /// # Safety
    /// The buffers are device memory that lives until the stream has executed the call. An all-reduce's are equally long, and
    /// may be the same memory; those of an all-gather and a reduce-scatter have the lengths that `counts` says, one per member.
    pub unsafe fn run(
        &self,
        stream: &Stream,
        call: CollectiveCall<'_, DeviceBytes, DeviceRoom>,
        tag: &Tag,
    ) -> Result<()> {
        let kind = call.kind();
        if !has(&call) {
            return Err(Error::unsupported(format!("NCCL has no such {}", kind.name())));
        }
        let (read, written) = call.buffers();
        let bytes = read.map_or(0, |s| s.1).max(written.map_or(0, |r| r.1));
        let what = (kind, tag, &self.ranks[..], bytes);
        let raw = sys::ncclDataType_t::ncclUint8;
        match call {
            CollectiveCall::AllReduce { send, receive, dtype, op } => {
                let (d, o, n) = (data_type(dtype)?, reduction(dtype, op), send.1 / dtype.size());
                // SAFETY: by this function's contract.
                self.call(stream, "ncclAllReduce", what, |c| unsafe {
                    sys::ncclAllReduce(send.0.cast(), receive.0.cast(), n, d, o, c, raw_stream(stream))
                })
            }
            CollectiveCall::ReduceScatter { send, receive, dtype, op, .. } => {
                let (d, o, n) = (data_type(dtype)?, reduction(dtype, op), receive.1 / dtype.size());
                // SAFETY: by this function's contract; `has` has seen that all parts are as long as this member's.
                self.call(stream, "ncclReduceScatter", what, |c| unsafe {
                    sys::ncclReduceScatter(send.0.cast(), receive.0.cast(), n, d, o, c, raw_stream(stream))
                })
            }
            CollectiveCall::AllGather { send, receive, .. } => {
                // SAFETY: as for a reduce-scatter.
                self.call(stream, "ncclAllGather", what, |c| unsafe {
                    sys::ncclAllGather(send.0.cast(), receive.0.cast(), send.1, raw, c, raw_stream(stream))
                })
            }
            CollectiveCall::Broadcast { root, buffer: (at, len) } => {
                // SAFETY: by this function's contract.
                self.call(stream, "ncclBroadcast", what, |c| unsafe {
                    sys::ncclBroadcast(at.cast(), at.cast(), len, raw, root as c_int, c, raw_stream(stream))
                })
            }
            CollectiveCall::AllToAll { .. } | CollectiveCall::Barrier => Ok(()),
        }
    }

    /// Sends and receives a batch of messages (other member, address, bytes). No message may be empty.
    ///
    /// # Safety
    /// Those of [`run`](Self::run), for each message.
    pub unsafe fn exchange(
        &self,
        stream: &Stream,
        sends: &[(usize, *const u8, usize)],
        receives: &[(usize, *mut u8, usize)],
        tag: &Tag,
    ) -> Result<()> {
        let d = sys::ncclDataType_t::ncclUint8;
        let ends = sends.iter().map(|m| m.0).chain(receives.iter().map(|m| m.0)).chain([self.me]);
        let mut ranks: SmallVec<[usize; 16]> = ends.map(|member| self.ranks[member]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let (out, back) = (sends.iter().map(|m| m.2).sum(), receives.iter().map(|m| m.2).sum::<usize>());
        let what = (Collective::Exchange, tag, &ranks[..], back.max(out));
        self.call(stream, "ncclSend and ncclRecv", what, |c| {
            let mut worst = Status::ncclSuccess;
            let mut note = |s: Status| {
                if worst == Status::ncclSuccess || worst == Status::ncclInProgress {
                    worst = s;
                }
            };
            // SAFETY: a group has no arguments; it is ended below.
            note(unsafe { sys::ncclGroupStart() });
            for (peer, from, bytes) in sends {
                // SAFETY: by this function's contract.
                note(unsafe { sys::ncclSend(from.cast(), *bytes, d, *peer as c_int, c, raw_stream(stream)) });
            }
            for (peer, to, bytes) in receives {
                // SAFETY: by this function's contract.
                note(unsafe { sys::ncclRecv(to.cast::<c_void>(), *bytes, d, *peer as c_int, c, raw_stream(stream)) });
            }
            // SAFETY: ends the group started above.
            note(unsafe { sys::ncclGroupEnd() });
            worst
        })
    }

    fn call(
        &self,
        stream: &Stream,
        name: &str,
        what: What<'_>,
        run: impl FnOnce(sys::ncclComm_t) -> Status,
    ) -> Result<()> {
        self.gpu.bind()?;
        let call = self.work.begin(&self.gpu, stream, what)?;
        let put = || {
            let status = {
                let raw = self.lock();
                run(raw.as_ref().ok_or_else(|| self.lost())?.0)
            };
            self.settle(name, status, None)
        };
        match put() {
            Ok(()) => self.work.issued(call, stream),
            Err(e) => {
                self.work.refused(&call);
                Err(e)
            }
        }
    }

    /// Waits until a call has been accepted: its work is then on the stream.
    fn settle(&self, what: &str, mut status: Status, deadline: Option<Instant>) -> Result<()> {
        let (mut looks, mut missed) = (0u32, None);
        loop {
            match status {
                Status::ncclSuccess => return Ok(()),
                Status::ncclInProgress => {}
                other => {
                    let e = failed(what, other, self.lock().as_ref().map(|r| r.0));
                    self.abort(e.message());
                    return Err(e);
                }
            }
            looks += 1;
            match looks {
                0..=100 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(100)),
            }
            if looks.is_multiple_of(256) {
                let left = || self.left().filter(|_| missed.get_or_insert_with(Instant::now).elapsed() > GRACE);
                if let Some(e) = self.pulse.failure().or_else(left) {
                    self.abort(e.message());
                    return Err(e);
                }
                if deadline.is_some_and(|d| Instant::now() > d) {
                    let e = Error::comm(format!("{what} with ranks {:?} did not end in time", self.ranks));
                    self.abort(e.message());
                    return Err(e);
                }
            }
            status = self.state()?;
        }
    }

    /// The state of the communicator, as NCCL has it.
    fn state(&self) -> Result<Status> {
        let raw = self.lock();
        let raw = raw.as_ref().ok_or_else(|| self.lost())?;
        let mut state = Status::ncclSuccess;
        // SAFETY: a live communicator; writes one word.
        match unsafe { sys::ncclCommGetAsyncError(raw.0, &mut state) } {
            Status::ncclSuccess => Ok(state),
            other => Ok(other),
        }
    }

    fn left(&self) -> Option<Error> {
        let gone = self.ranks.iter().find(|r| self.pulse.has_left(**r))?;
        Some(Error::peer(format!("rank {gone} has left while it was needed by NCCL among ranks {:?}", self.ranks)))
    }

    /// Ends all its work on the GPU, finished or not; every later call is an error.
    fn abort(&self, why: &str) {
        let raw = self.lock().take();
        if let Some(raw) = raw {
            // Before its work ends, which then looks as if it had been done.
            self.work.give_up();
            self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.to_string());
            let _bound = self.gpu.bind();
            // SAFETY: a live communicator, which nobody else can reach any more.
            let _nothing_left_to_do = unsafe { sys::ncclCommAbort(raw.0) };
        }
    }

    fn lost(&self) -> Error {
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        Error::comm(format!("NCCL among ranks {:?} has failed: {}", self.ranks, why.as_deref().unwrap_or("aborted")))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Raw>> {
        self.raw.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NcclComm {
    fn drop(&mut self) {
        let raw = self.lock().take();
        let Some(Raw(raw)) = raw else { return };
        if self.gpu.bind().is_err() {
            return;
        }
        // What is still on the stream gets its time, unless a member of it has gone.
        let mut missed = None;
        while self.work.is_busy() && self.pulse.failure().is_none() {
            if self.left().is_some() && missed.get_or_insert_with(Instant::now).elapsed() > GRACE {
                break;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        let until = Instant::now() + if self.work.is_busy() { Duration::ZERO } else { END_TIMEOUT };
        // SAFETY: a live communicator, until it is destroyed or aborted below, once.
        unsafe {
            let mut status = sys::ncclCommFinalize(raw);
            let hopeless = || self.pulse.failure().is_some() || Instant::now() > until;
            while status == Status::ncclInProgress && !hopeless() {
                std::thread::sleep(Duration::from_micros(200));
                if sys::ncclCommGetAsyncError(raw, &mut status) != Status::ncclSuccess {
                    break;
                }
            }
            let _ended = match status {
                Status::ncclSuccess => sys::ncclCommDestroy(raw),
                _ => sys::ncclCommAbort(raw),
            };
        }
    }
}

fn raw_stream(stream: &Stream) -> sys::cudaStream_t {
    stream.raw().cast()
}

fn data_type(dtype: DType) -> Result<sys::ncclDataType_t> {
    use sys::ncclDataType_t::*;
    Ok(match dtype {
        DType::Bool | DType::U8 => ncclUint8,
        DType::I8 => ncclInt8,
        DType::I32 => ncclInt32,
        DType::I64 => ncclInt64,
        DType::F16 => ncclFloat16,
        DType::BF16 => ncclBfloat16,
        DType::F32 => ncclFloat32,
        DType::F64 => ncclFloat64,
        DType::U32 => ncclUint32,
        other => return Err(Error::unsupported(format!("NCCL has no reduction of {other}"))),
    })
}

fn reduction(dtype: DType, op: ReduceOp) -> sys::ncclRedOp_t {
    use sys::ncclRedOp_t::*;
    match (dtype, op) {
        // A bool is 0 or 1: the sum of two is "or".
        (DType::Bool, ReduceOp::Sum) | (_, ReduceOp::Max) => ncclMax,
        (_, ReduceOp::Sum) => ncclSum,
        (_, ReduceOp::Min) => ncclMin,
    }
}

/// Returns whether NCCL has this call: parts of one length, and a reduction with the semantics of the other transports.
pub fn has<S, R>(call: &CollectiveCall<'_, S, R>) -> bool {
    let alike = |counts: &[usize]| counts.windows(2).all(|w| w[0] == w[1]);
    match call {
        CollectiveCall::Broadcast { .. } => true,
        CollectiveCall::AllReduce { dtype, op, .. } => reduces(*dtype, *op),
        CollectiveCall::AllGather { counts, .. } => alike(counts),
        CollectiveCall::ReduceScatter { counts, dtype, op, .. } => alike(counts) && reduces(*dtype, *op),
        CollectiveCall::AllToAll { .. } | CollectiveCall::Barrier => false,
    }
}

/// Whether NCCL has this reduction with the semantics of the other transports. Its float maximum and minimum drop NaN.
fn reduces(dtype: DType, op: ReduceOp) -> bool {
    data_type(dtype).is_ok() && (op == ReduceOp::Sum || !dtype.is_float())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_begins_as_the_bindings_have_it() {
        use std::mem::offset_of;
        assert_eq!(offset_of!(Config, blocking), offset_of!(sys::ncclConfig_t, blocking));
        assert_eq!(offset_of!(Config, net_name), offset_of!(sys::ncclConfig_t, netName));
        assert_eq!(offset_of!(Config, split_share), offset_of!(sys::ncclConfig_t, splitShare));
        assert!(size_of::<Config>() <= size_of::<sys::ncclConfig_t>());
    }

    #[test]
    fn calls_of_uneven_parts_and_other_reductions_are_not_nccls() {
        let gather = |counts| CollectiveCall::AllGather { send: (), receive: (), counts };
        assert!(has(&gather(&[8, 8, 8])) && !has(&gather(&[8, 8, 4])));
        let scatter = |counts, op| {
            let (send, receive, dtype) = ((), (), DType::F32);
            has(&CollectiveCall::ReduceScatter { send, receive, counts, dtype, op })
        };
        assert!(scatter(&[4, 4], ReduceOp::Sum));
        assert!(!scatter(&[4, 8], ReduceOp::Sum) && !scatter(&[4, 4], ReduceOp::Max));
        let (send, receive, counts) = ((), (), &[4, 4][..]);
        assert!(!has(&CollectiveCall::AllToAll { send, send_counts: counts, receive, receive_counts: counts }));
        let broadcast: CollectiveCall<'_, (), ()> = CollectiveCall::Broadcast { root: 0, buffer: () };
        assert!(has(&broadcast));
    }

    #[test]
    fn what_is_reduced_by_nccl() {
        assert!(reduces(DType::BF16, ReduceOp::Sum) && reduces(DType::Bool, ReduceOp::Max));
        assert!(!reduces(DType::F32, ReduceOp::Min));
        assert_eq!(reduction(DType::Bool, ReduceOp::Sum), sys::ncclRedOp_t::ncclMax);
        // NCCL has no integers of 16 bits.
        let lacking: Vec<DType> = DType::REAL.into_iter().filter(|d| data_type(*d).is_err()).collect();
        assert_eq!(lacking, [DType::I16, DType::U16]);
        assert!(!reduces(DType::I16, ReduceOp::Sum) && !reduces(DType::F8E5M2, ReduceOp::Max));
    }
}
