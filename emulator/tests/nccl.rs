//! NCCL's collectives between four threads on four GPUs, and what it refuses.

mod common;
use std::mem::MaybeUninit;
use std::sync::Mutex;

use common::*;
use cudarc::driver::sys as cuda;
use cudarc::nccl::sys::ncclDataType_t::*;
use cudarc::nccl::sys::ncclRedOp_t::*;
use cudarc::nccl::sys::*;
use half::bf16;

const FINE: ncclResult_t = ncclResult_t::ncclSuccess;
const RANKS: usize = 4;

/// NCCL calls of one test at a time: a GPU that one test breaks is not another's.
static TURN: Mutex<()> = Mutex::new(());

fn unique_id() -> ncclUniqueId {
    let mut id = MaybeUninit::uninit();
    unsafe {
        assert_eq!(ncclGetUniqueId(id.as_mut_ptr()), FINE);
        id.assume_init()
    }
}

struct Rank {
    rank: usize,
    comm: ncclComm_t,
    stream: cuda::CUstream,
}

impl Rank {
    fn stream(&self) -> cudaStream_t {
        self.stream.cast()
    }
    fn sync(&self) -> cuda::CUresult {
        unsafe { cuda::cuStreamSynchronize(self.stream) }
    }
}

/// Runs a rank a thread, each on a GPU of its own.
fn ranks(body: impl Fn(&Rank) + Sync) {
    let id = unique_id();
    std::thread::scope(|scope| {
        for rank in 0..RANKS {
            let body = &body;
            scope.spawn(move || unsafe {
                enter(rank as i32);
                let mut comm = std::ptr::null_mut();
                assert_eq!(ncclCommInitRank(&mut comm, RANKS as i32, id, rank as i32), FINE);
                let (mut count, mut me) = (0, 0);
                assert_eq!(ncclCommCount(comm, &mut count), FINE);
                assert_eq!(ncclCommUserRank(comm, &mut me), FINE);
                assert_eq!((count, me), (RANKS as i32, rank as i32));
                body(&Rank { rank, comm, stream: stream() });
                // Gone already where the test aborted it.
                let destroyed = ncclCommDestroy(comm);
                assert!(destroyed == FINE || destroyed == ncclResult_t::ncclInvalidArgument);
            });
        }
    });
}

fn ptr<T>(at: u64) -> *mut T {
    at as *mut T
}

#[test]
fn collectives() {
    if !emulated() {
        return;
    }
    let _turn = TURN.lock();
    ranks(|r| unsafe {
        let mine: Vec<f32> = (0..8).map(|i| (r.rank * 10 + i) as f32).collect();
        let all = |i: usize| (0..RANKS).map(move |rank| (rank * 10 + i) as f32);
        let (send, recv) = (upload(&mine), alloc(8 * 4 * RANKS));
        let got = |n| {
            assert_eq!(r.sync(), OK);
            download::<f32>(recv, n)
        };
        let (s, to) = (r.stream(), ptr(recv));
        assert_eq!(ncclAllReduce(ptr(send), to, 8, ncclFloat32, ncclSum, r.comm, s), FINE);
        assert_eq!(got(8), (0..8).map(|i| all(i).sum()).collect::<Vec<f32>>());
        assert_eq!(ncclAllReduce(ptr(send), to, 8, ncclFloat32, ncclMax, r.comm, s), FINE);
        assert_eq!(got(8), (0..8).map(|i| (30 + i) as f32).collect::<Vec<_>>());
        assert_eq!(ncclAllReduce(ptr(send), to, 8, ncclFloat32, ncclAvg, r.comm, s), FINE);
        assert_eq!(got(8), (0..8).map(|i| (15 + i) as f32).collect::<Vec<_>>());
        assert_eq!(ncclReduceScatter(ptr(send), to, 2, ncclFloat32, ncclMin, r.comm, s), FINE);
        assert_eq!(got(2), [(2 * r.rank) as f32, (2 * r.rank + 1) as f32]);
        assert_eq!(ncclAllGather(ptr(send), to, 8, ncclFloat32, r.comm, s), FINE);
        assert_eq!(got(32), (0..32).map(|i| (i / 8 * 10 + i % 8) as f32).collect::<Vec<_>>());
        assert_eq!(ncclBroadcast(ptr(send), to, 8, ncclFloat32, 2, r.comm, s), FINE);
        assert_eq!(got(8), (20..28).map(|i| i as f32).collect::<Vec<_>>());
        cuda::cuMemsetD32Async(recv, 0, 8, r.stream);
        assert_eq!(ncclReduce(ptr(send), to, 8, ncclFloat32, ncclSum, 1, r.comm, s), FINE);
        assert_eq!(got(1), [if r.rank == 1 { 60.0 } else { 0.0 }]);
        // In place, in halves, and integers.
        let halves = upload(&mine.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>());
        assert_eq!(ncclAllReduce(ptr(halves), ptr(halves), 8, ncclBfloat16, ncclProd, r.comm, s), FINE);
        assert_eq!(r.sync(), OK);
        let want = all(2).fold(bf16::from_f32(1.0), |a, x| bf16::from_f32(a.to_f32() * x));
        assert_eq!(download::<bf16>(halves, 8)[2], want);
        let whole = upload(&[r.rank as i64 + 1; 3]);
        assert_eq!(ncclAllReduce(ptr(whole), ptr(whole), 3, ncclInt64, ncclProd, r.comm, s), FINE);
        assert_eq!(r.sync(), OK);
        assert_eq!(download::<i64>(whole, 3), [24; 3]);
    });
}

#[test]
fn sends_and_receives_in_a_group_go_round_and_all_to_all() {
    if !emulated() {
        return;
    }
    let _turn = TURN.lock();
    ranks(|r| unsafe {
        let send = upload(&(0..RANKS).map(|to| (r.rank * 10 + to) as i32).collect::<Vec<_>>());
        let recv = alloc(4 * RANKS);
        assert_eq!(ncclGroupStart(), FINE);
        for peer in 0..RANKS {
            let (from, to) = (send + 4 * peer as u64, recv + 4 * peer as u64);
            assert_eq!(ncclSend(ptr(from), 1, ncclInt32, peer as i32, r.comm, r.stream()), FINE);
            assert_eq!(ncclRecv(ptr(to), 1, ncclInt32, peer as i32, r.comm, r.stream()), FINE);
        }
        assert_eq!(ncclGroupEnd(), FINE);
        assert_eq!(r.sync(), OK);
        assert_eq!(download::<i32>(recv, RANKS), (0..4).map(|from| (from * 10 + r.rank) as i32).collect::<Vec<_>>());
        // Without a group: 0 to 1 to 2 to 3, in the order of streams.
        if r.rank > 0 {
            assert_eq!(ncclRecv(ptr(recv), 4, ncclInt32, r.rank as i32 - 1, r.comm, r.stream()), FINE);
        } else {
            assert_eq!(cuda::cuMemcpyDtoDAsync_v2(recv, send, 16, r.stream), OK);
        }
        if r.rank < 3 {
            assert_eq!(ncclSend(ptr(recv), 4, ncclInt32, r.rank as i32 + 1, r.comm, r.stream()), FINE);
        }
        assert_eq!(r.sync(), OK);
        assert_eq!(download::<i32>(recv, 4), [0, 1, 2, 3]);
    });
}

#[test]
fn what_does_not_match_is_an_error() {
    if !emulated() {
        return;
    }
    let _turn = TURN.lock();
    ranks(|r| unsafe {
        let at = upload(&[0f32; 8]);
        let wrong = ncclResult_t::ncclInvalidArgument;
        assert_eq!(ncclAllReduce(ptr(at), ptr(at), 9, ncclFloat32, ncclSum, r.comm, r.stream()), wrong);
        assert_eq!(ncclBroadcast(ptr(at), ptr(at), 8, ncclFloat32, 4, r.comm, r.stream()), wrong);
        let count = if r.rank == 2 { 7 } else { 8 };
        assert_eq!(ncclAllReduce(ptr(at), ptr(at), count, ncclFloat32, ncclSum, r.comm, r.stream()), FINE);
        assert_eq!(r.sync(), cuda::CUresult::CUDA_ERROR_LAUNCH_FAILED);
        let mut state = FINE;
        assert_eq!(ncclCommGetAsyncError(r.comm, &mut state), FINE);
        assert_eq!(state, ncclResult_t::ncclInvalidUsage);
        let text = std::ffi::CStr::from_ptr(ncclGetLastError(r.comm)).to_str().unwrap();
        assert!(text.contains("AllReduce of 7 x F32"), "{text}");
        assert_eq!(cuda::cuDevicePrimaryCtxReset_v2(r.rank as i32), OK);
    });
    // Two ranks on one GPU.
    let id = unique_id();
    std::thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || unsafe {
                enter(0);
                let mut comm = std::ptr::null_mut();
                assert_eq!(ncclCommInitRank(&mut comm, 2, id, rank), ncclResult_t::ncclInvalidUsage);
                assert!(comm.is_null());
            });
        }
    });
}

#[test]
fn an_abort_frees_a_rank_whose_peer_never_comes() {
    if !emulated() {
        return;
    }
    let _turn = TURN.lock();
    ranks(|r| unsafe {
        let at = upload(&[0f32; 8]);
        if r.rank == 0 {
            assert_eq!(ncclRecv(ptr(at), 8, ncclFloat32, 1, r.comm, r.stream()), FINE);
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(cuda::cuStreamQuery(r.stream), cuda::CUresult::CUDA_ERROR_NOT_READY);
            assert_eq!(ncclCommAbort(r.comm), FINE);
            assert_eq!(r.sync(), OK);
        }
    });
}

/// A rank that is a process: joins by the id in the environment, reduces, sends round.
#[test]
#[ignore = "run by the next test as a child"]
fn rank_of_another_process() {
    assert!(emulated());
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let (rank, ranks) = (number("TEST_RANK"), number("TEST_RANKS"));
    let text = std::env::var("TEST_ID").unwrap();
    let mut id = unique_id();
    for (at, byte) in id.internal.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap() as _;
    }
    unsafe {
        enter(rank as i32);
        let mut comm = std::ptr::null_mut();
        assert_eq!(ncclCommInitRank(&mut comm, ranks as i32, id, rank as i32), FINE);
        let stream = stream();
        let s = stream.cast();
        let at = upload(&[rank as f32 + 1.0; 1000]);
        let all = alloc(4000 * ranks);
        for _ in 0..20 {
            assert_eq!(ncclAllGather(ptr(at), ptr(all), 1000, ncclFloat32, comm, s), FINE);
            assert_eq!(ncclReduceScatter(ptr(all), ptr(at), 1000, ncclFloat32, ncclMax, comm, s), FINE);
        }
        assert_eq!(ncclAllReduce(ptr(at), ptr(at), 1000, ncclFloat32, ncclSum, comm, s), FINE);
        let other = alloc(4000);
        assert_eq!(ncclGroupStart(), FINE);
        assert_eq!(ncclSend(ptr(at), 1000, ncclFloat32, ((rank + 1) % ranks) as i32, comm, s), FINE);
        assert_eq!(ncclRecv(ptr(other), 1000, ncclFloat32, ((rank + ranks - 1) % ranks) as i32, comm, s), FINE);
        assert_eq!(ncclGroupEnd(), FINE);
        assert_eq!(cuda::cuStreamSynchronize(stream), OK);
        assert_eq!(download::<f32>(other, 1000), [(ranks * (ranks + 1) / 2) as f32; 1000]);
        assert_eq!(ncclCommDestroy(comm), FINE);
    }
}

#[test]
fn ranks_may_be_processes() {
    if !emulated() {
        return;
    }
    let id: String = unique_id().internal.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
    let children: Vec<_> = (0..3)
        .map(|rank| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "rank_of_another_process", "--ignored"])
                .env("TEST_ID", &id)
                .env("TEST_RANK", rank.to_string())
                .env("TEST_RANKS", "3")
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
