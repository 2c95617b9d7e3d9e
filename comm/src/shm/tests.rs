use super::*;
use crate::oracle::{check_all, check_overlapping, check_short, check_world, tag};
use crate::sim::run_with;
use crate::{Communicator, DType, Group, ReduceOp, run_team};
use oflow_base::{Error, ErrorKind};
use oflow_kernels::cpu::past_cache::PAST_CACHE;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn options() -> ShmOptions {
    ShmOptions { timeout: Duration::from_secs(60), ..Default::default() }
}

fn world(n: usize, bytes: usize) -> (Arc<ShmArena>, Vec<ShmComm>) {
    let (arena, _fd) = ShmArena::create(n, bytes).unwrap();
    let comms = (0..n).map(|r| arena.comm(r, options()).unwrap()).collect();
    (arena, comms)
}

fn all(comm: &ShmComm) -> Group {
    Group { ranks: (0..comm.world()).collect(), me: comm.rank() }
}

#[test]
fn collectives_agree_with_the_oracle() {
    for n in [1, 2, 3, 4, 5, 8] {
        let (arena, comms) = world(n, 4096);
        let slot = arena.capacity();
        run_with(comms, |_, comm| check_world(&comm, slot));
    }
}

#[test]
fn overlapping_groups_in_one_order_agree_with_the_oracle() {
    for n in [2, 5, 8] {
        run_with(world(n, 4096).1, |_, comm| check_overlapping(&comm, 200, 4096));
    }
}

#[test]
fn short_messages_of_large_groups_agree_with_the_oracle() {
    run_with(world(70, 64 << 10).1, |_, comm| check_short(&comm, &all(&comm)));
}

#[test]
fn messages_larger_than_the_caches_agree_with_the_oracle() {
    let elements = PAST_CACHE / 4 + 17;
    for n in [2, 3] {
        run_with(world(n, 4 << 20).1, |_, comm| {
            check_all(&comm, &all(&comm), elements, DType::F32, ReduceOp::Sum, 7);
        });
    }
}

const CHILD_RANK: &str = "OFLOW_TEST_SHM_RANK";

/// The body of the processes that the test below starts; on its own it does nothing.
#[test]
fn child_process() {
    let Some(rank) = std::env::var(CHILD_RANK).ok().and_then(|r| r.parse().ok()) else { return };
    let arena = ShmArena::from_fd(std::io::stdin(), rank, 3).unwrap();
    let comm = arena.comm(rank, options()).unwrap();
    check_overlapping(&comm, 60, 4096);
}

#[test]
fn processes_share_an_inherited_arena() {
    let (arena, fd) = ShmArena::create(3, 16 << 10).unwrap();
    // The descriptor travels as standard input, so no flag of it needs to change.
    let start = |rank: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shm::tests::child_process", "--nocapture"])
            .env(CHILD_RANK, rank.to_string())
            .stdin(Stdio::from(fd.try_clone().unwrap()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = [1, 2].map(start).into();
    let comm = arena.comm(0, options()).unwrap();
    check_overlapping(&comm, 60, 4096);
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(arena.state(1), RankState::Left);
}

/// The cores of two ranks, of which each is bound to one.
fn cores_of_ranks_on(cores: [usize; 2]) -> Option<usize> {
    let (arena, _fd) = ShmArena::create(2, 4096).unwrap();
    let mut comms = vec![];
    for (rank, core) in cores.into_iter().enumerate() {
        assert_eq!(arena.cores(), None, "some are still to come");
        let open = || {
            let mut one = CpuSet::new();
            one.set(core);
            sched_setaffinity(None, &one).unwrap();
            arena.comm(rank, options()).unwrap()
        };
        comms.push(std::thread::scope(|s| s.spawn(open).join().unwrap()));
    }
    arena.cores()
}

#[test]
fn ranks_that_are_bound_to_cores_of_their_own_know_it() {
    let own = sched_getaffinity(None).unwrap();
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|c| own.is_set(*c)).collect();
    let quota = std::thread::available_parallelism().unwrap().get();
    if quota < 2 {
        eprintln!("one core: not tested");
        return;
    }
    assert_eq!(cores_of_ranks_on([cores[0], cores[1]]), Some(2));
    assert_eq!(cores_of_ranks_on([cores[1], cores[1]]), Some(1));
    let (arena, comms) = world(3, 4096);
    assert_eq!(arena.cores(), Some(quota), "not bound");
    drop(comms);
}

/// Runs `wait` on rank 0 of 2, and `act` once rank 0 sleeps.
fn woken(wait: impl Fn(&ShmComm) -> Error + Sync, act: impl Fn(&ShmArena, ShmComm) + Sync) -> Error {
    let (arena, comms) = world(2, 4096);
    let ends = run_with(comms, |rank, comm| {
        if rank == 0 {
            return Some(wait(&comm));
        }
        while arena.status(0).is_none() && arena.state(0) != RankState::Left {
            std::thread::yield_now();
        }
        act(&arena, comm);
        None
    });
    ends.into_iter().flatten().next().unwrap()
}

#[test]
fn poison_ends_waits_at_once_and_names_the_dead() {
    let start = Instant::now();
    let e = woken(|c| c.barrier(&all(c), &tag(8, "step")).unwrap_err(), |arena, _| arena.poison(1, Loss::Died(9)));
    assert_eq!(e.kind(), ErrorKind::Peer);
    let text = "rank 1 died with code 9 while rank 0 waits for rank 1 to send, in barrier of 'step' #8 (oracle.rs:9)";
    assert_eq!(e.message(), text);
    assert!(start.elapsed() < Duration::from_secs(10));
    // A wait for readers ends too.
    let e = woken(
        |c| (0..9).find_map(|i| c.broadcast(&all(c), &tag(i, "x"), 0, &mut [1]).err()).unwrap(),
        |arena, _| arena.poison(1, Loss::Stopped),
    );
    assert!(e.message().starts_with("rank 1 was stopped by a signal while rank 0 waits for rank 1 to read"), "{e}");
}

#[test]
fn the_dead_rank_of_a_host_that_is_not_the_first_has_its_number_in_the_job() {
    let (arena, _fd) = ShmArena::create(2, 4096).unwrap();
    let options = ShmOptions { spins: Spins::Fixed(0), timeout: Duration::from_secs(10), first: 4 };
    let comm = arena.comm(0, options).unwrap();
    arena.poison(1, Loss::Died(137));
    let text = comm.barrier(&Group { ranks: vec![0, 1], me: 0 }, &tag(8, "step")).unwrap_err().to_string();
    assert!(text.starts_with("rank 5 died with code 137 while rank 4 waits for rank 5"), "{text}");
}

#[test]
fn a_rank_that_ends_is_named() {
    let e = woken(|c| c.barrier(&all(c), &tag(8, "step")).unwrap_err(), |_, comm| drop(comm));
    assert_eq!(e.kind(), ErrorKind::Peer);
    assert!(e.message().starts_with("rank 1 has ended while rank 0 waits for rank 1 to send"), "{e}");
}

#[test]
fn what_was_posted_before_leaving_is_still_read() {
    run_with(world(2, 4096).1, |rank, comm| {
        let mut buf = [rank as u8; 100];
        comm.broadcast(&all(&comm), &tag(1, "last"), 1, &mut buf).unwrap();
        assert_eq!(buf, [1; 100]);
    });
}

#[test]
fn a_missing_rank_is_named_when_the_time_is_over() {
    let (arena, _fd) = ShmArena::create(3, 4096).unwrap();
    let short = ShmOptions { spins: Spins::Fixed(0), timeout: Duration::from_millis(20), first: 0 };
    let (comm, _other) = (arena.comm(0, short).unwrap(), arena.comm(2, short).unwrap());
    let e = comm.barrier(&all(&comm), &tag(2, "alone")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Comm);
    let text = "rank 1 is missing: after 0.02 s rank 0 waits for rank 1 to send, in barrier of 'alone' #2 (oracle.rs:3)\n  rank 1 has not started\n  rank 2 is not in a call";
    assert_eq!(e.message(), text);
    assert!(e.to_string().contains("under oflaunch it is six times --stall, at least 30 minutes"), "{e}");
    let again = comm.barrier(&all(&comm), &tag(3, "again")).unwrap_err();
    assert!(again.message().starts_with("this rank's communicator failed before: rank 1 is missing"), "{again}");
}

#[test]
fn different_ops_are_told_on_both_sides() {
    let both = |kind: &str| {
        format!(
            "ranks 0 and 1 issued different ops: rank 0 is in {kind} of 'add' #4 (oracle.rs:5), rank 1 in {kind} of 'mul' #5 (oracle.rs:6)"
        )
    };
    let mine = |rank: usize| if rank == 0 { tag(4, "add") } else { tag(5, "mul") };
    for e in run_with(world(2, 4096).1, |rank, comm| {
        comm.all_reduce(&all(&comm), &mine(rank), &[0; 4], &mut [0; 4], DType::F32, ReduceOp::Sum).unwrap_err()
    }) {
        assert_eq!((e.kind(), e.message()), (ErrorKind::Diverged, &*both("all_reduce")));
    }
    // The root of a broadcast goes on; it is told where it next waits for the one who rejected.
    let (arena, comms) = world(2, 4096);
    let errors = run_team(2, |rank| {
        let comm = &comms[rank];
        let one = comm.broadcast(&all(comm), &mine(rank), 0, &mut [0; 4]);
        one.and_then(|()| comm.barrier(&all(comm), &mine(rank))).unwrap_err()
    });
    assert_eq!(errors[1].message(), both("broadcast"));
    assert_eq!(errors[0].kind(), ErrorKind::Diverged);
    assert!(errors[0].message().contains("rank 1 in broadcast of 'mul' #5"), "{}", errors[0]);
    assert_eq!(arena.state(1), RankState::Attached);
}

#[test]
fn long_names_are_cut_and_not_confused() {
    let op: &'static str = "o".repeat(300).leak();
    let file: &'static str = format!("{}/train.rs", "d".repeat(300)).leak();
    let errors = run_with(world(2, 4096).1, |rank, comm| {
        let t = crate::Tag { ordinal: rank as u64, hash: 0, op, file, line: 7, scope: Default::default() };
        comm.barrier(&all(&comm), &t).unwrap_err()
    });
    assert!(
        errors.iter().all(|e| e.kind() == ErrorKind::Diverged && e.message().contains("/train.rs:7")),
        "{errors:?}"
    );
}

#[test]
fn wrong_descriptors_are_refused() {
    let (arena, fd) = ShmArena::create(2, 4096).unwrap();
    let refused = |fd: &std::os::fd::OwnedFd, rank, world| ShmArena::from_fd(fd, rank, world).err().unwrap();
    assert!(refused(&fd, 0, 3).message().contains("it is for 2 ranks"));
    assert_eq!(refused(&fd, 2, 2).kind(), ErrorKind::Argument);
    let null = std::fs::File::open("/dev/null").unwrap().into();
    assert!(refused(&null, 0, 2).message().contains("magic number"));
    let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let mut head = [0u8; 4096];
    rustix::io::pread(&fd, &mut head, 0).unwrap();
    rustix::io::pwrite(&file, &head, 0).unwrap();
    assert!(refused(&file, 0, 2).message().contains("it has 4096 bytes"));
    head[8] = 99;
    rustix::io::pwrite(&file, &head, 0).unwrap();
    assert!(refused(&file, 0, 2).message().contains("its version is 99"));
    assert!(ShmArena::create(0, 4096).is_err());
    let _first = arena.comm(1, options()).unwrap();
    assert!(arena.comm(1, options()).err().unwrap().message().contains("before"));
    assert!(arena.comm(2, options()).is_err());
}
