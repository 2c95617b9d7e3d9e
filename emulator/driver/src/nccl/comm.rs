//! Communicators: how ranks find each other by id, and what one rank's handle knows.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::folder::Folder;
use super::meeting::Meeting;
use super::*;
use crate::driver::{Table, current, new_handle, setting};

/// Identity of a communicator, an ncclUniqueId.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id([u8; 128]);

/// State that the ranks of one communicator share.
pub struct Group {
    pub meeting: Meeting,
    /// The GPU's ordinal of each rank that has come.
    members: Mutex<Vec<Option<usize>>>,
    bell: Condvar,
}

/// One rank's end.
pub struct Comm {
    pub handle: usize,
    pub rank: usize,
    id: Id,
    pub gpu: &'static Gpu,
    pub group: Arc<Group>,
    number: AtomicU64,
    turns: Mutex<BTreeMap<(usize, bool), u64>>,
    /// Where ranks meet that are not all of this process.
    pub folder: OnceLock<Folder>,
    pub aborted: AtomicBool,
    /// Answer of ncclCommGetAsyncError.
    pub state: AtomicI32,
}

static COMMS: Table<Comm> = Table::new();
static GROUPS: Mutex<BTreeMap<Id, Arc<Group>>> = Mutex::new(BTreeMap::new());

/// How long anybody waits for the others.
pub fn patience() -> Duration {
    Duration::from_secs(setting("OFLOW_EMULATOR_NCCL_TIMEOUT_S", 120) as u64)
}

pub fn find(handle: usize) -> Outcome<Arc<Comm>> {
    COMMS.get(handle).ok_or(INVALID_ARGUMENT)
}

impl Comm {
    pub fn ranks(&self) -> usize {
        self.group.meeting.ranks
    }

    /// The place of the next collective in the order that all ranks share.
    pub fn next_number(&self) -> u64 {
        self.number.fetch_add(1, SeqCst)
    }

    /// The how manyth send to (or receive from) a peer is the next.
    pub fn next_turn(&self, peer: usize, sends: bool) -> u64 {
        let mut turns = lock(&self.turns);
        let turn = turns.entry((peer, sends)).or_default();
        *turn += 1;
        *turn
    }

    /// The communicator is made and has not failed.
    pub fn ready(&self) -> Outcome {
        match self.state.load(SeqCst) {
            SUCCESS if self.aborted.load(SeqCst) => Err(INVALID_USAGE),
            SUCCESS => Ok(()),
            IN_PROGRESS => refuse(INVALID_ARGUMENT, "the communicator is still being made (a non-blocking init)"),
            failed => Err(failed),
        }
    }

    /// Takes the rank's place, unless the communicator cannot be.
    fn join(id: Id, ranks: usize, rank: usize) -> Outcome<Arc<Comm>> {
        let gpu = current().or_else(|_| refuse(1, "ncclCommInitRank needs a current CUDA context"))?;
        if rank >= ranks {
            return Err(INVALID_ARGUMENT);
        }
        if id.0 == [0; 128] {
            return refuse(INVALID_ARGUMENT, "the unique id was not made by ncclGetUniqueId");
        }
        let group = lock(&GROUPS)
            .entry(id)
            .or_insert_with(|| {
                let members = Mutex::new(vec![None; ranks]);
                Arc::new(Group { meeting: Meeting::new(ranks), members, bell: Condvar::new() })
            })
            .clone();
        if group.meeting.ranks != ranks {
            return refuse(INVALID_ARGUMENT, "the ranks disagree on how many they are");
        }
        let taken = {
            let mut members = lock(&group.members);
            members[rank].replace(gpu.ordinal).is_some()
        };
        group.bell.notify_all();
        if taken {
            return refuse(INVALID_USAGE, "two members of a communicator have the same rank");
        }
        let handle = new_handle();
        let comm = Arc::new(Comm {
            handle,
            rank,
            id,
            gpu,
            group,
            number: AtomicU64::new(0),
            turns: Mutex::default(),
            folder: OnceLock::new(),
            aborted: AtomicBool::new(false),
            state: AtomicI32::new(IN_PROGRESS),
        });
        COMMS.insert_arc(handle, comm.clone());
        Ok(comm)
    }

    /// The handle is gone, and the rank leaves the folder if there is one.
    fn close(&self) {
        COMMS.remove(self.handle);
        if let Some(folder) = self.folder.get() {
            folder.leave();
        }
    }

    /// Waits until all ranks are there; they must have GPUs of their own.
    pub fn await_all(&self) -> Outcome {
        let result = self.meet_all();
        self.state.store(result.err().unwrap_or(SUCCESS), SeqCst);
        result
    }

    fn meet_all(&self) -> Outcome {
        let deadline = Instant::now() + patience();
        let folder = Folder::enter(&self.id.0, self.ranks(), self.rank, self.gpu.ordinal)?;
        let mut members = lock(&self.group.members);
        let mut gpus = loop {
            if let Some(gpus) = members.iter().copied().collect::<Option<Vec<usize>>>() {
                folder.leave();
                break gpus;
            }
            if let Some(gpus) = folder.members() {
                let _ = self.folder.set(folder);
                break gpus;
            }
            if self.aborted.load(SeqCst) {
                folder.give_up(self.rank);
                return Err(INVALID_USAGE);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                folder.give_up(self.rank);
                return refuse(SYSTEM_ERROR, "not all ranks of a communicator came");
            }
            let step = left.min(Duration::from_millis(2));
            members = self.group.bell.wait_timeout(members, step).unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(members);
        gpus.sort();
        gpus.dedup();
        if gpus.len() < self.ranks() {
            return refuse(INVALID_USAGE, "Duplicate GPU detected: two ranks of a communicator are on one GPU");
        }
        Ok(())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetUniqueId(id: *mut Id) -> i32 {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    if id.is_null() {
        return INVALID_ARGUMENT;
    }
    let mut bytes = [0x5a; 128];
    bytes[..4].copy_from_slice(&std::process::id().to_le_bytes());
    bytes[4..8].copy_from_slice(&(COUNT.fetch_add(1, SeqCst) as u32).to_le_bytes());
    // Process numbers come again.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    bytes[8..16].copy_from_slice(&(now.as_nanos() as u64).to_le_bytes());
    // SAFETY: a place for the result.
    unsafe { id.write(Id(bytes)) };
    SUCCESS
}

/// The head of ncclConfig_t, as far as it is read.
#[repr(C)]
struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
}

/// # Safety
/// `to` is a place for a handle, `config` null or a configuration.
unsafe fn init(to: *mut usize, ranks: c_int, id: Id, rank: c_int, config: *const Config) -> Outcome {
    let (Ok(ranks), Ok(rank)) = (usize::try_from(ranks), usize::try_from(rank)) else { return Err(INVALID_ARGUMENT) };
    if to.is_null() || ranks == 0 {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: by contract.
    let blocking = unsafe { config.as_ref() }.map_or(Ok(true), |config| {
        if config.magic != 0xcafe_beef || config.size < size_of::<Config>() {
            return refuse(INVALID_ARGUMENT, "the configuration was not made by NCCL_CONFIG_INITIALIZER");
        }
        Ok(config.blocking != 0)
    })?;
    let comm = Comm::join(id, ranks, rank)?;
    if in_group() {
        JOINING.with_borrow_mut(|all| all.push((comm, to as usize)));
        return Ok(());
    }
    // SAFETY: by contract.
    unsafe { to.write(comm.handle) };
    if blocking {
        let made = comm.await_all();
        if made.is_err() {
            // SAFETY: by contract. Nobody can destroy what was not made.
            unsafe { to.write(0) };
            comm.close();
        }
        return made;
    }
    std::thread::spawn(move || comm.await_all());
    Err(IN_PROGRESS)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRank(to: *mut usize, ranks: c_int, id: Id, rank: c_int) -> i32 {
    // SAFETY: the caller's promise.
    status(unsafe { init(to, ranks, id, rank, std::ptr::null()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRankConfig(
    to: *mut usize,
    ranks: c_int,
    id: Id,
    rank: c_int,
    config: *const Config,
) -> i32 {
    // SAFETY: the caller's promise.
    status(unsafe { init(to, ranks, id, rank, config) })
}

/// Waits until all that was put on the GPU's streams has been done, as destroying a communicator does.
#[unsafe(no_mangle)]
extern "C" fn ncclCommFinalize(comm: usize) -> i32 {
    status(find(comm).map(|comm| stream::drain(comm.gpu)))
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommDestroy(handle: usize) -> i32 {
    let comm = find(handle);
    let code = ncclCommFinalize(handle);
    if let Ok(comm) = comm {
        comm.close();
    }
    code
}

/// Gives up every wait for peers on this rank; the others notice nothing.
#[unsafe(no_mangle)]
extern "C" fn ncclCommAbort(handle: usize) -> i32 {
    status(find(handle).map(|comm| {
        comm.aborted.store(true, SeqCst);
        comm.group.meeting.ring();
        comm.group.bell.notify_all();
        comm.close();
    }))
}

macro_rules! questions {
    ($($name:ident($comm:ident) $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: usize, to: *mut c_int) -> i32 {
            match find(handle) {
                Ok($comm) if !to.is_null() => {
                    // SAFETY: not null, so a place for the result.
                    unsafe { to.write($answer) };
                    SUCCESS
                }
                Ok(_) => INVALID_ARGUMENT,
                Err(code) => code,
            }
        }
    )*};
}
questions! {
    ncclCommGetAsyncError(comm) comm.state.load(SeqCst);
    ncclCommCount(comm) comm.ranks() as c_int;
    ncclCommCuDevice(comm) comm.gpu.ordinal as c_int;
    ncclCommUserRank(comm) comm.rank as c_int;
}
