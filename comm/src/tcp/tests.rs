use super::*;
use crate::hosts::{HostsComm, HostsTransport};
use crate::oracle::{check_overlapping, check_world, data, reduced, tag};
use crate::shm::{ShmArena, ShmOptions};
use crate::{CollectiveCall, Collectives, Communicator, DType, Group, ReduceOp, run_team};
use oflow_base::host_hierarchy::{FlowKind, HostHierarchy, Width};
use oflow_base::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(super) const TOKEN: &[u8] = b"a token of the job";
const SHORT: Duration = Duration::from_secs(60);

/// How a test's world is built.
pub(super) struct TestHosts<'a> {
    /// Ranks of each host.
    pub(super) hosts: &'a [usize],
    pub(super) capacity: usize,
    pub(super) buffer: Option<usize>,
}

pub(super) fn options(capacity: usize, buffer: Option<usize>) -> MeshOptions {
    MeshOptions { timeout: SHORT, start: Duration::from_secs(20), buffer, ..MeshOptions::new(capacity, false) }
}

pub(super) fn names(hosts: &[usize]) -> Vec<String> {
    hosts.iter().map(|h| format!("host{h}")).collect()
}

/// Host of each rank.
pub(super) fn table(layout: &[usize]) -> Vec<usize> {
    layout.iter().enumerate().flat_map(|(h, n)| std::iter::repeat_n(h, *n)).collect()
}

/// A world of threads on several "hosts" of this machine; `route` may lead connections elsewhere, by rank that connects and
/// address of the one that listens.
pub(super) fn world_with(
    l: &TestHosts,
    route: impl Fn(usize, usize, SocketAddr) -> SocketAddr + Sync,
) -> (Vec<HostsComm>, Vec<Arc<Alarm>>) {
    let hosts = table(l.hosts);
    let n = hosts.len();
    let listeners: Vec<Mutex<Option<Listener>>> =
        (0..n).map(|_| Mutex::new(Some(Listener::bind(Ipv4Addr::LOCALHOST.into()).unwrap()))).collect();
    let addresses: Vec<SocketAddr> = listeners.iter().map(|l| l.lock().unwrap().as_ref().unwrap().address()).collect();
    let arenas: Vec<Option<Arc<ShmArena>>> =
        l.hosts.iter().map(|&ranks| (ranks > 1).then(|| ShmArena::create(ranks, 4 * l.capacity).unwrap().0)).collect();
    let made = run_team(n, |rank| {
        let listener = listeners[rank].lock().unwrap().take().unwrap();
        let seen: Vec<SocketAddr> = (0..n).map(|to| route(rank, to, addresses[to])).collect();
        let (alarm, o) = (Alarm::new().unwrap(), options(l.capacity, l.buffer));
        let links =
            listener.connect_by(rank, &hosts, &names(&hosts), &addresses, &seen, TOKEN, alarm.clone(), &o).unwrap();
        let shm = ShmOptions { timeout: SHORT, ..Default::default() };
        let arena = arenas[hosts[rank]].clone();
        (Collectives::new(HostsTransport::new(rank, hosts.clone(), arena, shm, links, l.capacity).unwrap()), alarm)
    });
    made.into_iter().unzip()
}

pub(super) fn world(hosts: &[usize], capacity: usize, buffer: Option<usize>) -> Vec<HostsComm> {
    world_with(&TestHosts { hosts, capacity, buffer }, |_, _, a| a).0
}

pub(super) fn run<R: Send>(comms: Vec<HostsComm>, f: impl Fn(usize, HostsComm) -> R + Sync) -> Vec<R> {
    crate::sim::run_with(comms, f)
}

pub(super) fn all(comm: &HostsComm) -> Group {
    Group { ranks: (0..comm.world()).collect(), me: comm.rank() }
}

const LAYOUTS: [&[usize]; 7] = [&[1, 1], &[1, 1, 1], &[2, 2], &[1, 3], &[3, 1, 2], &[2, 2, 2], &[4, 4]];

#[test]
fn collectives_agree_with_the_oracle() {
    for hosts in LAYOUTS {
        run(world(hosts, 4096, None), |_, comm| check_world(&comm, 4096));
    }
}

#[test]
fn overlapping_groups_in_one_order_agree_with_the_oracle() {
    for hosts in LAYOUTS {
        run(world(hosts, 4096, None), |_, comm| check_overlapping(&comm, 100, 4096));
    }
}

#[test]
fn a_long_all_reduce_crosses_the_network_once() {
    for hosts in [&[2, 2][..], &[3, 1, 2], &[1, 4], &[2, 2, 2]] {
        let sent = run(world(hosts, 4096, None), |rank, comm| {
            let mut sums = Vec::new();
            for (seed, dtype) in [DType::F32, DType::F16, DType::BF16, DType::I64].into_iter().enumerate() {
                // Over two hosts and more, from the second rank on too.
                for from in [0, 1] {
                    let ranks: Vec<usize> = (from..comm.world()).collect();
                    let Some(me) = ranks.iter().position(|r| *r == rank) else { continue };
                    let n = 50_001;
                    let mut buf = data(dtype, seed as u64, rank, n);
                    let expected = reduced(dtype, ReduceOp::Sum, seed as u64, &ranks, n);
                    let group = Group { ranks, me };
                    let before = comm.traffic().between_hosts;
                    comm.all_reduce(&group, &tag(1, "sum"), &buf.clone(), &mut buf, dtype, ReduceOp::Sum).unwrap();
                    assert!(buf == expected, "{dtype} {hosts:?} from {from}");
                    let network = comm.traffic().between_hosts - before;
                    sums.push((dtype, from, n, network));
                }
            }
            sums
        });
        let each = |from: usize, dtype: DType| -> u64 {
            sent.iter().flatten().filter(|(d, f, ..)| (*d, *f) == (dtype, from)).map(|(.., bytes)| bytes).sum()
        };
        let table = table(hosts);
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I64] {
            for from in [0, 1] {
                let there = table[from..].to_vec();
                let Some(s) = HostHierarchy::of(there.len(), |i| there[i]) else { continue };
                let width = Width::reduced(dtype.size(), dtype.partial_size(ReduceOp::Sum));
                assert!(s.takes(FlowKind::AllReduce, 50_001, width));
                let links = s.hosts.len() as u64 - 1;
                assert_eq!(
                    each(from, dtype),
                    links * 50_001 * (width.element + width.partial),
                    "{dtype} {hosts:?} {from}"
                );
            }
        }
    }
}

#[test]
fn the_smallest_socket_buffers_do_not_deadlock() {
    // Little data: what the kernel does with such buffers takes its time.
    for (hosts, buffer) in [(&[1, 1][..], 1), (&[2, 1], 8 << 10), (&[1, 1, 1], 8 << 10)] {
        run(world(hosts, 8 << 10, Some(buffer)), |_, comm| {
            let mut buf = vec![comm.rank() as u8; if buffer == 1 { 20_000 } else { 200_000 }];
            let sum = (0..comm.world()).sum::<usize>() as u8;
            comm.all_reduce(&all(&comm), &tag(1, "sum"), &buf.clone(), &mut buf, DType::U8, ReduceOp::Sum).unwrap();
            assert!(buf.iter().all(|b| *b == sum));
            let (n, world) = (buf.len() / 4, comm.world());
            let (send, mut recv) = (vec![comm.rank() as u8; n * world], vec![0; n * world]);
            let counts = vec![n; world];
            let (send_counts, receive_counts) = (&counts, &counts);
            let swap =
                CollectiveCall::AllToAll { send: &send[..], send_counts, receive: &mut recv[..], receive_counts };
            comm.run(&all(&comm), &tag(2, "swap"), swap).unwrap();
            assert!(recv.iter().enumerate().all(|(i, b)| *b == (i / n) as u8));
        });
    }
}

#[test]
fn different_ops_are_told_on_both_sides() {
    let errors = run(world(&[1, 1], 4096, None), |rank, comm| {
        let t = if rank == 0 { tag(4, "add") } else { tag(5, "mul") };
        comm.all_reduce(&all(&comm), &t, &[0; 4], &mut [0; 4], DType::F32, ReduceOp::Sum).unwrap_err()
    });
    for e in errors {
        assert_eq!(e.kind(), ErrorKind::Diverged);
        assert_eq!(
            e.message(),
            "ranks 0 and 1 issued different ops: rank 0 is in all_reduce of 'add' #4 (oracle.rs:5), rank 1 in all_reduce of 'mul' #5 (oracle.rs:6)"
        );
    }
}

#[test]
fn names_are_sent_once_and_told_right() {
    let errors = run(world(&[1, 1], 4096, None), |rank, comm| {
        // Several posts of one name, then one of another, then again: what is left out must be found again.
        for op in ["add", "add", "sub", "add", "add", "add", "add", "add", "add"] {
            comm.barrier(&all(&comm), &tag(1, op)).unwrap();
        }
        comm.barrier(&all(&comm), &tag(1 + rank as u64, "add")).unwrap_err()
    });
    for e in errors {
        assert!(
            e.message().ends_with(
                "rank 0 is in barrier of 'add' #1 (oracle.rs:2), rank 1 in barrier of 'add' #2 (oracle.rs:3)"
            ),
            "{e}"
        );
    }
}

#[test]
fn a_rank_that_ends_is_named_and_its_last_posts_are_read() {
    let ends: Vec<Option<Error>> = run(world(&[1, 1], 4096, None), |rank, comm| {
        let mut buf = vec![rank as u8; 300_000];
        comm.broadcast(&all(&comm), &tag(1, "last"), 1, &mut buf).unwrap();
        assert!(buf.iter().all(|b| *b == 1));
        (rank == 0).then(|| comm.barrier(&all(&comm), &tag(8, "step")).unwrap_err())
    });
    let e = ends[0].as_ref().unwrap();
    assert_eq!(e.kind(), ErrorKind::Peer);
    let text = "rank 1 has ended while rank 0 waits for rank 1 to send, in barrier of 'step' #8 (oracle.rs:9)";
    assert_eq!(e.message(), text);
}

#[test]
fn an_alarm_ends_every_wait() {
    for hosts in [&[1, 1][..], &[2, 1]] {
        let (comms, alarms) = world_with(&TestHosts { hosts, capacity: 4096, buffer: None }, |_, _, a| a);
        let start = Instant::now();
        run(comms, |rank, comm| {
            if rank + 1 == comm.world() {
                // The last rank keeps its link until the others have their error.
                alarms.iter().for_each(|a| a.raise("rank 7 reported: no more coffee"));
                return;
            }
            let e = comm.barrier(&all(&comm), &tag(8, "step")).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Peer);
            assert_eq!(e.message(), "the job has failed: rank 7 reported: no more coffee");
        });
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
