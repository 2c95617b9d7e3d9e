//! Four real processes over shared memory, 500 random boxings on random placements.
//!
//! The test starts its own binary four times with the arena as standard input. Every rank draws the same boxings from the
//! same seed, carries them out and prints what became its shard and how many bytes it sent; the parent has the definition of
//! every layout (`oracle.rs`) and judges. No rank's shard passes through the code under test on its way to the parent.

use super::oracle::{make, shard_size, value};
use super::ranks::{Boxing, Draws, Memory, Random, room, tag, view};
use oflow::boxing::plan;
use oflow::comm::Communicator;
use oflow::comm::shm::{ShmArena, ShmOptions};
use oflow::vm::box_exec::execute;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CHILD_RANK: &str = "OFLOW_TEST_BOXING_RANK";
const WORLD: usize = 4;
const BOXINGS: usize = 500;
/// Large enough for the one-phase all-reduce, so small enough that larger tensors go in rounds.
const BUFFER: usize = 8 << 10;

fn boxings() -> Vec<Boxing> {
    let mut rng = Random::new(0x000b_0415);
    (0..BOXINGS)
        .map(|i| {
            let mut b = rng.boxing(WORLD);
            if i % 10 == 0 && !b.shape.is_empty() {
                // Messages longer than a buffer.
                b.shape[0] *= 97;
            }
            b
        })
        .collect()
}

/// The body of the processes that the test below starts; on its own it does nothing.
#[test]
fn child_process() {
    let Some(rank) = std::env::var(CHILD_RANK).ok().and_then(|r| r.parse().ok()) else { return };
    // Nothing is left behind if the parent dies.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    let arena = ShmArena::from_fd(std::io::stdin(), rank, WORLD).unwrap();
    let options = ShmOptions { timeout: Duration::from_secs(60), ..Default::default() };
    let comm = arena.comm(rank, options).unwrap();
    println!();
    for (i, b) in boxings().iter().enumerate() {
        let plan = plan(&b.shape, b.dtype, &b.src, &b.dst).unwrap();
        let (mut from, mut to) = (Memory::new(0), Memory::new(0));
        let src = b.src.placement.position(rank).map(|p| {
            let shard = make(&b.shape, b.dtype, &b.src, i as u64).swap_remove(p);
            from = Memory::new(shard.len());
            view(&mut from, &shard, b.dtype, &shard_size(&b.shape, &b.src, p), i % 2 == 1)
        });
        let dst = b.dst.placement.position(rank).map(|p| room(&mut to, b.dtype, &shard_size(&b.shape, &b.dst, p)));
        let before = comm.traffic().bytes_sent;
        execute(&plan, (&comm, crate::memory()), &tag(i), src.as_ref(), dst.as_ref())
            .unwrap_or_else(|e| panic!("{plan}{e}"));
        let len = dst.map_or(0, |d| d.len() * b.dtype.size());
        let hex: String = to.bytes(len).iter().map(|x| format!("{x:02x}")).collect();
        println!("@ {i} {} {hex}", comm.traffic().bytes_sent - before);
    }
}

/// A started rank that does not outlive its test.
struct Rank(Child);

impl Drop for Rank {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// By boxing: bytes sent and destination shard.
type Results = Vec<(u64, Vec<u8>)>;

fn results(rank: &mut Rank) -> Results {
    let mut all = Results::new();
    let out = rank.0.stdout.take().unwrap();
    for line in BufReader::new(out).lines().map(|l| l.unwrap()) {
        let mut words = line.split(' ');
        if words.next() != Some("@") {
            continue;
        }
        assert_eq!(words.next(), Some(all.len().to_string().as_str()));
        let sent = words.next().unwrap().parse().unwrap();
        let hex = words.next().unwrap();
        all.push((sent, (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()));
    }
    all
}

#[test]
fn four_processes_run_500_random_boxings() {
    let (_arena, fd) = ShmArena::create(WORLD, BUFFER).unwrap();
    let start = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::child_process", "--nocapture"]).env(CHILD_RANK, rank.to_string());
        // The descriptor travels as standard input, so no flag of it needs to change.
        command.stdin(Stdio::from(fd.try_clone().unwrap())).stdout(Stdio::piped());
        Rank(command.spawn().unwrap())
    };
    let mut ranks: Vec<Rank> = (0..WORLD).map(start).collect();
    let by_rank: Vec<Results> = std::thread::scope(|s| {
        let readers: Vec<_> = ranks.iter_mut().map(|r| s.spawn(|| results(r))).collect();
        readers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    for (r, rank) in ranks.iter_mut().enumerate() {
        assert!(rank.0.wait().unwrap().success(), "rank {r} failed");
        assert_eq!(by_rank[r].len(), BOXINGS);
    }
    let (mut bytes, mut moved) = (0, 0);
    for (i, b) in boxings().iter().enumerate() {
        let plan = plan(&b.shape, b.dtype, &b.src, &b.dst).unwrap();
        let sources = make(&b.shape, b.dtype, &b.src, i as u64);
        let shards: Vec<_> = b.dst.placement.ranks().iter().map(|r| by_rank[*r][i].1.clone()).collect();
        let before = value(&b.shape, b.dtype, &b.src, &sources).unwrap();
        let after = value(&b.shape, b.dtype, &b.dst, &shards).unwrap_or_else(|e| panic!("{plan}{e}"));
        assert_eq!(before, after, "{plan}");
        let sent: Vec<u64> = by_rank.iter().map(|r| r[i].0).collect();
        assert_eq!(sent.iter().sum::<u64>(), plan.bytes_sent(), "{plan}");
        if b.shape.iter().product::<usize>() * b.dtype.size() <= oflow::host_hierarchy::one_phase_bytes(WORLD) {
            assert_eq!(sent, (0..WORLD).map(|r| plan.bytes_sent_by(r)).collect::<Vec<_>>(), "{plan}");
        }
        bytes += plan.bytes_sent();
        moved += usize::from(plan.bytes_sent() > 0);
    }
    println!("{BOXINGS} boxings on {WORLD} processes, {moved} of which moved {bytes} bytes, all as planned");
}
