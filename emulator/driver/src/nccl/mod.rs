//! libnccl. Calls are put on CUDA streams; there the members of a communicator meet. Where all are threads of one process,
//! the last to come does the whole operation (`meeting.rs`); where they are processes of one host, each leaves what it
//! brings in a folder and reads the others' (`folder.rs`). `reduce.rs` has the arithmetic. Who waits in vain for
//! `OFLOW_EMULATOR_NCCL_TIMEOUT_S` (120) seconds fails, where NCCL would wait for ever.

mod comm;
mod folder;
mod meeting;
mod reduce;

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex};

use crate::driver::codes::STREAM_CAPTURE_UNSUPPORTED;
use crate::driver::{Gpu, lock, memory, stream};
use comm::{Comm, find};
use meeting::{NcclCall, Part, Peer};
use reduce::{Op, Type};

pub const SUCCESS: i32 = 0;
pub const SYSTEM_ERROR: i32 = 2;
pub const INVALID_ARGUMENT: i32 = 4;
pub const INVALID_USAGE: i32 = 5;
pub const IN_PROGRESS: i32 = 7;

/// Result of a function that may fail with an ncclResult_t.
pub type Outcome<T = ()> = Result<T, i32>;

fn status(outcome: Outcome) -> i32 {
    outcome.err().unwrap_or(SUCCESS)
}

static LAST_ERROR: Mutex<Option<&'static std::ffi::CStr>> = Mutex::new(None);

/// Remembers the text for ncclGetLastError and gives the code.
pub fn refuse<T>(code: i32, text: &str) -> Outcome<T> {
    eprintln!("emulated NCCL: {text}");
    if let Ok(text) = CString::new(text) {
        *lock(&LAST_ERROR) = Some(Box::leak(text.into_boxed_c_str()));
    }
    Err(code)
}

/// One operation of a rank, on its way to a stream.
struct Pending {
    comm: Arc<Comm>,
    stream: usize,
    job: Job,
}
enum Job {
    Collective(Part),
    Peer(Peer),
}

thread_local! {
    /// How deep in ncclGroupStart, and what was called since; and communicators that are being made.
    static DEPTH: RefCell<usize> = const { RefCell::new(0) };
    static PENDING: RefCell<Vec<Pending>> = const { RefCell::new(Vec::new()) };
    static JOINING: RefCell<Vec<(Arc<Comm>, usize)>> = const { RefCell::new(Vec::new()) };
}

fn in_group() -> bool {
    DEPTH.with_borrow(|depth| *depth > 0)
}

fn submit(pending: Pending) -> Outcome {
    if in_group() {
        PENDING.with_borrow_mut(|all| all.push(pending));
        return Ok(());
    }
    launch(vec![pending])
}

/// Puts operations on their streams: those of one communicator and stream together, so that sends and receives of one
/// group wait for no order among themselves.
fn launch(mut all: Vec<Pending>) -> Outcome {
    while !all.is_empty() {
        let (comm, handle) = (all[0].comm.clone(), all[0].stream);
        let same = |p: &Pending| Arc::ptr_eq(&p.comm, &comm) && p.stream == handle;
        let (mine, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(same);
        all = rest;
        let Ok(stream) = stream::find_on(comm.gpu, handle) else {
            return refuse(INVALID_ARGUMENT, "the stream is not one of the communicator's GPU");
        };
        let (mut peers, mut collectives) = (Vec::new(), Vec::new());
        for pending in mine {
            match pending.job {
                Job::Collective(part) => collectives.push((comm.next_number(), part)),
                Job::Peer(peer) => peers.push(peer),
            }
        }
        // NCCL's calls can be captured; nobody here asks for that.
        if stream.not_captured(STREAM_CAPTURE_UNSUPPORTED).is_err() {
            return refuse(INVALID_USAGE, "the stream captures a graph");
        }
        stream.work(move |_| comm.carry_out(std::mem::take(&mut collectives), std::mem::take(&mut peers)));
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupStart() -> i32 {
    DEPTH.with_borrow_mut(|depth| *depth += 1);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupEnd() -> i32 {
    let depth = DEPTH.with_borrow_mut(|depth| {
        let before = *depth;
        *depth = depth.saturating_sub(1);
        before
    });
    match depth {
        0 => status(refuse(INVALID_USAGE, "ncclGroupEnd without ncclGroupStart")),
        1 => {
            let joining = JOINING.with_borrow_mut(std::mem::take);
            let joined = joining.into_iter().try_for_each(|(comm, to)| {
                comm.await_all()?;
                // SAFETY: the place that ncclCommInitRank was given, valid until the group ends.
                unsafe { (to as *mut usize).write(comm.handle) };
                Ok(())
            });
            status(joined.and_then(|()| launch(PENDING.with_borrow_mut(std::mem::take))))
        }
        _ => SUCCESS,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> i32 {
    if version.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: a place for the result.
    unsafe { version.write(22800) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(code: i32) -> *const c_char {
    match code {
        SUCCESS => c"no error",
        1 => c"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        SYSTEM_ERROR => c"unhandled system error (run with NCCL_DEBUG=INFO for details)",
        3 => c"internal error - please report this issue to the NCCL developers",
        INVALID_ARGUMENT => c"invalid argument (run with NCCL_DEBUG=WARN for details)",
        INVALID_USAGE => c"invalid usage (run with NCCL_DEBUG=WARN for details)",
        6 => c"remote process exited or there was a network error",
        IN_PROGRESS => c"NCCL operation in progress",
        _ => c"unknown result code",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetLastError(_comm: usize) -> *const c_char {
    (*lock(&LAST_ERROR)).unwrap_or(c"").as_ptr()
}

// ---- operations -----------------------------------------------------------------------------------------------------

/// A buffer of the communicator's GPU that is live for all it is said to hold.
fn check(gpu: &'static Gpu, at: usize, bytes: usize, what: &str) -> Outcome {
    let mine = memory::owner(at).is_some_and(|owner| std::ptr::eq(owner, gpu));
    let pinned = matches!(memory::place(at, bytes), Ok(memory::MemoryKind::Pinned));
    if bytes == 0 || pinned || mine && memory::place(at, bytes).is_ok() {
        return Ok(());
    }
    refuse(
        INVALID_ARGUMENT,
        &format!("{what}: {bytes} bytes at {at:#x} are not one live allocation of this rank's GPU"),
    )
}

struct Call {
    kind: NcclCall,
    send: usize,
    recv: usize,
    count: usize,
    dtype: c_int,
    op: c_int,
    root: c_int,
    comm: usize,
    stream: usize,
}

fn collective(call: Call) -> Outcome {
    let comm = find(call.comm)?;
    comm.ready()?;
    let dtype = Type::of(call.dtype).ok_or(INVALID_ARGUMENT)?;
    let op = Op::of(call.op).ok_or(INVALID_ARGUMENT)?;
    let ranks = comm.ranks();
    let root = usize::try_from(call.root).ok().filter(|&root| root < ranks).ok_or(INVALID_ARGUMENT)?;
    let bytes = call.count * dtype.size();
    let (sends, receives) = match call.kind {
        NcclCall::AllReduce => (bytes, bytes),
        NcclCall::Broadcast => (if comm.rank == root { bytes } else { 0 }, bytes),
        NcclCall::Reduce => (bytes, if comm.rank == root { bytes } else { 0 }),
        NcclCall::AllGather => (bytes, bytes * ranks),
        NcclCall::ReduceScatter => (bytes * ranks, bytes),
    };
    check(comm.gpu, call.send, sends, "the send buffer")?;
    check(comm.gpu, call.recv, receives, "the receive buffer")?;
    let part = Part { kind: call.kind, send: call.send, recv: call.recv, count: call.count, dtype, op, root };
    submit(Pending { comm, stream: call.stream, job: Job::Collective(part) })
}

#[unsafe(no_mangle)]
extern "C" fn ncclAllReduce(
    send: usize,
    recv: usize,
    count: usize,
    dtype: c_int,
    op: c_int,
    comm: usize,
    stream: usize,
) -> i32 {
    status(collective(Call { kind: NcclCall::AllReduce, send, recv, count, dtype, op, root: 0, comm, stream }))
}

#[unsafe(no_mangle)]
extern "C" fn ncclBroadcast(
    send: usize,
    recv: usize,
    count: usize,
    dtype: c_int,
    root: c_int,
    comm: usize,
    stream: usize,
) -> i32 {
    status(collective(Call { kind: NcclCall::Broadcast, send, recv, count, dtype, op: 0, root, comm, stream }))
}

#[unsafe(no_mangle)]
extern "C" fn ncclBcast(buffer: usize, count: usize, dtype: c_int, root: c_int, comm: usize, stream: usize) -> i32 {
    ncclBroadcast(buffer, buffer, count, dtype, root, comm, stream)
}

#[unsafe(no_mangle)]
extern "C" fn ncclReduce(
    send: usize,
    recv: usize,
    count: usize,
    dtype: c_int,
    op: c_int,
    root: c_int,
    comm: usize,
    stream: usize,
) -> i32 {
    status(collective(Call { kind: NcclCall::Reduce, send, recv, count, dtype, op, root, comm, stream }))
}

#[unsafe(no_mangle)]
extern "C" fn ncclAllGather(send: usize, recv: usize, count: usize, dtype: c_int, comm: usize, stream: usize) -> i32 {
    status(collective(Call { kind: NcclCall::AllGather, send, recv, count, dtype, op: 0, root: 0, comm, stream }))
}

#[unsafe(no_mangle)]
extern "C" fn ncclReduceScatter(
    send: usize,
    recv: usize,
    count: usize,
    dtype: c_int,
    op: c_int,
    comm: usize,
    stream: usize,
) -> i32 {
    status(collective(Call { kind: NcclCall::ReduceScatter, send, recv, count, dtype, op, root: 0, comm, stream }))
}

fn to_peer(sends: bool, at: usize, count: usize, dtype: c_int, peer: c_int, comm: usize, stream: usize) -> Outcome {
    let comm = find(comm)?;
    comm.ready()?;
    let dtype = Type::of(dtype).ok_or(INVALID_ARGUMENT)?;
    let peer = usize::try_from(peer).ok().filter(|&peer| peer < comm.ranks()).ok_or(INVALID_ARGUMENT)?;
    check(comm.gpu, at, count * dtype.size(), if sends { "the send buffer" } else { "the receive buffer" })?;
    if peer == comm.rank && !in_group() {
        return refuse(INVALID_USAGE, "a rank sends to itself only within a group");
    }
    let turn = comm.next_turn(peer, sends);
    submit(Pending { comm, stream, job: Job::Peer(Peer { sends, at, count, dtype, peer, turn }) })
}

#[unsafe(no_mangle)]
extern "C" fn ncclSend(at: usize, count: usize, dtype: c_int, peer: c_int, comm: usize, stream: usize) -> i32 {
    status(to_peer(true, at, count, dtype, peer, comm, stream))
}

#[unsafe(no_mangle)]
extern "C" fn ncclRecv(at: usize, count: usize, dtype: c_int, peer: c_int, comm: usize, stream: usize) -> i32 {
    status(to_peer(false, at, count, dtype, peer, comm, stream))
}

/// Registration makes nothing faster here; it is accepted.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommRegister(comm: usize, _at: usize, _size: usize, handle: *mut *mut c_void) -> i32 {
    if !handle.is_null() {
        // SAFETY: not null, so a place for the result.
        unsafe { handle.write(std::ptr::null_mut()) };
    }
    status(find(comm).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommDeregister(comm: usize, _handle: usize) -> i32 {
    status(find(comm).map(|_| ()))
}
