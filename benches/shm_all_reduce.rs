//! Latency of all-reduce (f32, sum) over shared memory between two processes.
//!
//! `cargo bench --bench shm_all_reduce`

use oflow::comm::shm::{ShmArena, ShmOptions};
use oflow::comm::{Communicator, DType, Group, ReduceOp, Tag};
use std::error::Error;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "OFLOW_BENCH_CHILD";
/// Bytes and repetitions of one sample.
const SIZES: [(usize, u32); 6] =
    [(0, 20_000), (4, 20_000), (4 << 10, 5_000), (64 << 10, 1_000), (1 << 20, 100), (16 << 20, 8)];
const SAMPLES: usize = 7;

fn run(comm: &impl Communicator) -> Result<(), Box<dyn Error>> {
    let group = Group { ranks: vec![0, 1], me: comm.rank() };
    let mut ordinal = 0;
    for (bytes, times) in SIZES {
        let (from, mut to) = (vec![0u8; bytes], vec![0u8; bytes]);
        let mut best = Duration::MAX;
        for _ in 0..SAMPLES {
            let start = Instant::now();
            for _ in 0..times {
                ordinal += 1;
                let tag = Tag {
                    ordinal,
                    hash: ordinal,
                    op: "bench",
                    file: file!(),
                    line: line!(),
                    scope: Default::default(),
                };
                match bytes {
                    0 => comm.barrier(&group, &tag)?,
                    _ => comm.all_reduce(&group, &tag, &from, &mut to, DType::F32, ReduceOp::Sum)?,
                }
            }
            best = best.min(start.elapsed() / times);
        }
        if comm.rank() == 0 {
            println!("{:>9} bytes {:>12.3} us", bytes, best.as_secs_f64() * 1e6);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = ShmOptions::default();
    if std::env::var_os(CHILD).is_some() {
        return run(&ShmArena::from_fd(std::io::stdin(), 1, 2)?.comm(1, options)?);
    }
    let (arena, fd) = ShmArena::create(2, 2 << 20)?;
    let mut child = Command::new(std::env::current_exe()?).env(CHILD, "1").stdin(Stdio::from(fd)).spawn()?;
    run(&arena.comm(0, options)?)?;
    child.wait()?;
    Ok(())
}
