//! Boxings on several hosts: the bits of one host, and on the links exactly the bytes that the plans tell.

use super::oracle::{mesh, mesh_of, sbps, shard_size};
use super::ranks::{Boxing, Draws, Memory, Random, room, tag, view};
use oflow::boxing::many::{bytes_by_link_together, bytes_sent_together};
use oflow::boxing::{
    Algorithm, BoxingPlan, GroupOp, Hosts, Layout, LinkKind, Model, Planner, RankCollective, RankStep,
};
use oflow::comm::hosts::{HostsComm, HostsTransport};
use oflow::comm::shm::{ShmArena, ShmOptions};
use oflow::comm::sim::{SimComm, SimWorld, run_with};
use oflow::comm::tcp::{Alarm, Listener, MeshOptions};
use oflow::comm::transport::SLOTS;
use oflow::comm::{Collectives, Communicator, run_team};
use oflow::kernels::DType;
use oflow::sbp::{NdSbp, Sbp};
use oflow::vm::box_many::{Ends, execute_many};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Ranks of each host: two and three hosts, even and uneven.
pub const HOSTS: [&[usize]; 6] = [&[2, 2], &[2, 1, 1], &[3, 1], &[2, 2, 2], &[1, 4], &[2, 1, 3]];

/// The host of each rank.
pub fn table(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().enumerate().flat_map(|(h, n)| vec![h; *n]).collect()
}

/// Plans for ranks on hosts, with collectives where there are such: exchanges are dear.
pub fn planner(sizes: &[usize]) -> Planner {
    let mut model = Model { hosts: Hosts::of(&table(sizes)), ..Model::default() };
    for link in [&mut model.same_host, &mut model.network] {
        let rate = &mut link.rates[Algorithm::Exchange as usize];
        (rate.latency_ps, rate.per_kib_ps) = (rate.latency_ps * 50, rate.per_kib_ps * 50);
    }
    Planner::new(model)
}

/// Lists of boxings, each carried out together: most of one, small and large, with many that stay on their mesh.
pub fn lists(world: usize, count: usize, seed: u64) -> Vec<Vec<Boxing>> {
    let mut rng = Random::new(seed);
    let large = |rng: &mut Random| {
        let shape: Vec<usize> = match rng.below(3) {
            0 => vec![40_000 + rng.below(9)],
            1 => vec![190 + rng.below(20), 300],
            _ => vec![7, 129, 65 + rng.below(3)],
        };
        let dtype = *rng.of(&[DType::F32, DType::F32, DType::BF16, DType::I64]);
        // Mostly over all ranks in their order, where groups lie on hosts one after another.
        let whole = |all: Vec<Sbp>, rng: &mut Random| Layout::new(&mesh_of(&[world]), NdSbp::new(&[*rng.of(&all)]));
        let (src, dst) = match rng.below(6) {
            0 => (rng.layout(world, shape.len(), dtype), rng.layout(world, shape.len(), dtype)),
            1 => {
                let one = Layout::new(&mesh(&[rng.below(world)], &[1]), NdSbp::broadcast(1));
                (one, whole(vec![Sbp::Broadcast], rng))
            }
            _ => {
                let (from, to): (Vec<Sbp>, Vec<Sbp>) = (sbps(shape.len(), dtype), sbps(shape.len(), dtype));
                let src = whole(from.into_iter().filter(|s| !s.is_broadcast()).collect(), rng);
                (src, whole(to.into_iter().filter(|s| !s.is_partial()).collect(), rng))
            }
        };
        Boxing { shape, dtype, src, dst }
    };
    let list = |i: usize, rng: &mut Random| {
        let len = if (i + 1).is_multiple_of(4) { 2 + rng.below(5) } else { 1 };
        (0..len).map(|_| if i.is_multiple_of(2) { large(rng) } else { rng.boxing(world) }).collect()
    };
    (0..count).map(|i| list(i, &mut rng)).collect()
}

/// Bytes of a shard that depend on its place and are small numbers in every dtype.
fn fill(b: &Boxing, position: usize) -> Vec<u8> {
    let n: usize = shard_size(&b.shape, &b.src, position).iter().product();
    // Copies hold the same: what is said of an element depends on the coordinates of partial axes and on its place.
    let coord = super::oracle::coords(b.src.placement.dims(), position);
    let own: usize = (0..coord.len()).filter(|a| !b.src.sbp[*a].is_broadcast()).fold(7, |x, a| x * 31 + coord[a]);
    let number = |i: usize| (i * 37 + own * 11) % 200;
    let element = |i: usize| -> Vec<u8> {
        let x = number(i) as i64 - 100;
        match b.dtype {
            DType::Bool => vec![(x & 1) as u8],
            DType::U8 | DType::I8 => vec![x as u8],
            d if d.is_small_float() => vec![x as u8],
            DType::I16 | DType::U16 => (x as i16).to_ne_bytes().to_vec(),
            DType::U32 => (x as u32).to_ne_bytes().to_vec(),
            DType::I32 => (x as i32).to_ne_bytes().to_vec(),
            DType::I64 => x.to_ne_bytes().to_vec(),
            // Not exact, so that the order of additions is seen.
            DType::F16 => half::f16::from_f64(x as f64 / 7.0).to_ne_bytes().to_vec(),
            DType::BF16 => half::bf16::from_f64(x as f64 / 7.0).to_ne_bytes().to_vec(),
            DType::F32 => (x as f32 / 7.0).to_ne_bytes().to_vec(),
            DType::C64 => [x as f32 / 7.0, x as f32 / 3.0].iter().flat_map(|part| part.to_ne_bytes()).collect(),
            DType::C128 => [x as f64 / 7.0, x as f64 / 3.0].iter().flat_map(|part| part.to_ne_bytes()).collect(),
            _ => (x as f64 / 7.0).to_ne_bytes().to_vec(),
        }
    };
    (0..n).flat_map(element).collect()
}

/// Carries a list out on one rank: its shards of the results.
fn carry_out(plans: &[Arc<BoxingPlan>], all: &[Boxing], comm: &dyn Communicator, ordinal: usize) -> Vec<Vec<u8>> {
    let rank = comm.rank();
    let mut memory: Vec<_> = all.iter().map(|_| (Memory::new(0), Memory::new(0))).collect();
    let mut lens = Vec::new();
    let views: Vec<_> = all
        .iter()
        .zip(&mut memory)
        .map(|(b, (from, to))| {
            let src = b.src.placement.position(rank).map(|p| {
                let shard = fill(b, p);
                *from = Memory::new(shard.len());
                view(from, &shard, b.dtype, &shard_size(&b.shape, &b.src, p), false)
            });
            let dst = b.dst.placement.position(rank).map(|p| room(to, b.dtype, &shard_size(&b.shape, &b.dst, p)));
            lens.push(dst.as_ref().map_or(0, |d| d.len() * b.dtype.size()));
            (src, dst)
        })
        .collect();
    let ends: Vec<_> = views.iter().map(|(s, d)| Ends { src: s.as_ref(), dst: d.as_ref() }).collect();
    execute_many(plans, &ends, (comm, crate::memory()), &tag(ordinal)).unwrap_or_else(|e| panic!("{}{e}", plans[0]));
    memory.iter_mut().zip(lens).map(|((_, to), len)| to.bytes(len).to_vec()).collect()
}

/// Plans of each list, the same on every rank.
fn plans(planner: &Planner, lists: &[Vec<Boxing>]) -> Vec<Vec<Arc<BoxingPlan>>> {
    let plan = |b: &Boxing| planner.plan(&b.shape, b.dtype, &b.src, &b.dst).unwrap();
    lists.iter().map(|all| all.iter().map(plan).collect()).collect()
}

/// What the plans of a list tell: bytes within hosts and between them.
fn told(plans: &[Arc<BoxingPlan>]) -> (u64, u64) {
    let links: Vec<BTreeMap<LinkKind, u64>> = bytes_by_link_together(plans);
    let sum = |kind| links.iter().filter_map(|l| l.get(&kind)).sum();
    (sum(LinkKind::SameHost), sum(LinkKind::Network))
}

/// Compares with what is told. A direct all-reduce cuts its message at cache lines, which moves a few bytes from one member to
/// another: between hosts that shows where a group's members stand in turn on them.
fn same_bytes(counted: (u64, u64), plans: &[Arc<BoxingPlan>], table: &[usize]) {
    let in_turn = |step: &RankStep| match step {
        RankStep::Collective(RankCollective { op: GroupOp::AllReduce(_), members, .. }) => {
            let hosts: Vec<usize> = members.ranks.iter().map(|r| table[*r]).collect();
            let runs = hosts.chunk_by(|a, b| a == b).count();
            runs > hosts.iter().collect::<BTreeSet<_>>().len()
        }
        _ => false,
    };
    let shifts = plans.iter().any(|p| (0..table.len()).any(|r| p.program(r).steps.iter().any(in_turn)));
    let told = told(plans);
    let text = || plans.iter().map(|p| p.to_string()).collect::<Vec<_>>().join("and ");
    assert_eq!(counted.0 + counted.1, told.0 + told.1, "hosts {table:?}: {}", text());
    let off = counted.1.abs_diff(told.1);
    assert!(off == 0 || shifts && off * 100 < told.1, "{counted:?}, told {told:?}, hosts {table:?}: {}", text());
}

fn sent_from(comm: &SimComm, table: &[usize]) -> (u64, u64) {
    let (me, sim) = (comm.rank(), comm.sim());
    let sum = |far: bool| {
        let others = (0..table.len()).filter(|to| (table[*to] != table[me]) == far);
        others.map(|to| sim.link_bytes(me, to)).sum()
    };
    (sum(false), sum(true))
}

#[test]
fn random_boxings_give_the_bits_of_one_host_and_the_bytes_that_are_told() {
    let (mut boxings, mut across) = (0, 0);
    for (h, sizes) in HOSTS.iter().enumerate() {
        let table = table(sizes);
        let world = table.len();
        let lists = lists(world, 40, 0x1057 + h as u64);
        let plans = plans(&planner(sizes), &lists);
        let run = |comms: Vec<SimComm>| {
            run_with(comms, |_, comm| {
                let one = |(i, list): (usize, &Vec<Boxing>)| {
                    let before = sent_from(&comm, &table);
                    let out = carry_out(&plans[i], list, &comm, i);
                    let after = sent_from(&comm, &table);
                    (out, (after.0 - before.0, after.1 - before.1))
                };
                lists.iter().enumerate().map(one).collect::<Vec<_>>()
            })
        };
        let capacity = [4096, 64 << 10][h % 2];
        let (hosts, flat) = (run(SimWorld::on_hosts(sizes, capacity)), run(SimWorld::with_capacity(world, capacity)));
        for (i, plans) in plans.iter().enumerate() {
            let text = || plans.iter().map(|p| p.to_string()).collect::<Vec<_>>().join("and ");
            for rank in 0..world {
                assert!(hosts[rank][i].0 == flat[rank][i].0, "rank {rank} of hosts {sizes:?}: {}", text());
            }
            let sum = |f: &dyn Fn(&(u64, u64)) -> u64| -> u64 { hosts.iter().map(|r| f(&r[i].1)).sum() };
            let counted = (sum(&|s| s.0), sum(&|s| s.1));
            same_bytes(counted, plans, &table);
            let sent: u64 = (0..world).map(|r| bytes_sent_together(plans, r)).sum();
            assert_eq!(counted.0 + counted.1, sent, "hosts {sizes:?}: {}", text());
            let direct: u64 = flat.iter().map(|r| r[i].1.1).sum();
            across += usize::from(direct != counted.1);
            boxings += plans.len();
        }
    }
    println!("{boxings} boxings on hosts, {across} lists go by these");
    assert!(across > 40, "{across}");
}

/// A world on real connections and shared memory, all on this machine.
fn connected(sizes: &[usize], capacity: usize) -> Vec<HostsComm> {
    let (hosts, timeout) = (table(sizes), Duration::from_secs(60));
    let names: Vec<String> = hosts.iter().map(|h| format!("host{h}")).collect();
    let bind = |_| Mutex::new(Some(Listener::bind(Ipv4Addr::LOCALHOST.into()).unwrap()));
    let listeners: Vec<_> = hosts.iter().map(bind).collect();
    let addresses: Vec<_> = listeners.iter().map(|l| l.lock().unwrap().as_ref().unwrap().address()).collect();
    let arenas: Vec<_> =
        sizes.iter().map(|&n| (n > 1).then(|| ShmArena::create(n, SLOTS * capacity).unwrap().0)).collect();
    run_team(hosts.len(), |rank| {
        let listener = listeners[rank].lock().unwrap().take().unwrap();
        let options = MeshOptions { timeout, ..MeshOptions::new(capacity, false) };
        let alarm = Alarm::new().unwrap();
        let links = listener.connect(rank, &hosts, &names, &addresses, b"a token", alarm, &options).unwrap();
        let shm = ShmOptions { timeout, ..Default::default() };
        let arena = arenas[hosts[rank]].clone();
        Collectives::new(HostsTransport::new(rank, hosts.clone(), arena, shm, links, capacity).unwrap())
    })
}

#[test]
fn what_crosses_real_connections_is_what_is_told() {
    for (h, sizes) in [&[2, 2][..], &[2, 1, 1]].into_iter().enumerate() {
        let world = sizes.iter().sum();
        let lists = lists(world, 40, 0x7c9 + h as u64);
        let plans = plans(&planner(sizes), &lists);
        let one = |comm: &dyn Communicator, i: usize| {
            let before = comm.traffic();
            let out = carry_out(&plans[i], &lists[i], comm, i);
            let after = comm.traffic();
            (out, after.bytes_sent - before.bytes_sent, after.between_hosts - before.between_hosts)
        };
        let hosts =
            run_with(connected(sizes, 64 << 10), |_, comm| (0..lists.len()).map(|i| one(&comm, i)).collect::<Vec<_>>());
        let flat = run_with(SimWorld::with_capacity(world, 64 << 10), |_, comm| {
            (0..lists.len()).map(|i| one(&comm, i)).collect::<Vec<_>>()
        });
        for (i, plans) in plans.iter().enumerate() {
            let text = || plans.iter().map(|p| p.to_string()).collect::<Vec<_>>().join("and ");
            for rank in 0..world {
                assert!(hosts[rank][i].0 == flat[rank][i].0, "rank {rank} of hosts {sizes:?}: {}", text());
            }
            let (sent, far) = hosts.iter().fold((0, 0), |(s, f), r| (s + r[i].1, f + r[i].2));
            same_bytes((sent - far, far), plans, &table(sizes));
        }
    }
}
