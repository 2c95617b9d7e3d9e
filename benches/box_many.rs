//! 100 partial tensors of 4 KiB made whole on two processes over shared memory: one by one, and together.
//!
//! `cargo bench --bench box_many` prints the median and the least time of all 100. They differ where the two processes do not
//! have a core each all the time: then every wait is a turn of the scheduler.

use oflow::boxing::Planner;
use oflow::comm::shm::{ShmArena, ShmOptions};
use oflow::prelude::*;
use oflow::vm::VmMode;
use oflow::{RankCtx, box_many};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

const CHILD: &str = "OFLOW_BENCH_CHILD";
const TENSORS: usize = 100;
const SAMPLES: usize = 201;

/// Median and least.
fn times_us(mut f: impl FnMut() -> Result<()>) -> Result<[f64; 2]> {
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        f()?;
        samples.push(start.elapsed().as_secs_f64() * 1e6);
    }
    samples.sort_by(f64::total_cmp);
    Ok([samples[SAMPLES / 2], samples[0]])
}

fn run(arena: &Arc<ShmArena>, rank: usize) -> Result<()> {
    let comm = arena.comm(rank, ShmOptions::default())?;
    let ctx = RankCtx::new(Arc::new(comm), None, Planner::default(), VmMode::Inline)?;
    let _entered = ctx.enter();
    let _quiet = no_grad();
    let mesh = Placement::all(Device::Cpu)?;
    for (from, to) in [(sbp![P], sbp![B]), (sbp![S(0)], sbp![B]), (sbp![P], sbp![S(0)])] {
        let all = (0..TENSORS).map(|_| ones([1024], (&mesh, &from))).collect::<Result<Vec<_>>>()?;
        let list: Vec<_> = all.iter().map(|t| (t, to.clone())).collect();
        let alone = times_us(|| all.iter().try_for_each(|t| t.to_global(&to).map(drop)))?;
        let together = times_us(|| box_many(&list).map(drop))?;
        if rank == 0 {
            let what = format!("{TENSORS} x f32[1024] {from} -> {to}");
            println!("{what:<36} one by one {alone:>9.1?} us   together {together:>9.1?} us");
        }
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    if std::env::var_os(CHILD).is_some() {
        return Ok(run(&ShmArena::from_fd(std::io::stdin(), 1, 2)?, 1)?);
    }
    let (arena, fd) = ShmArena::create(2, 2 << 20)?;
    let mut child = Command::new(std::env::current_exe()?).env(CHILD, "1").stdin(Stdio::from(fd)).spawn()?;
    run(&arena, 0)?;
    child.wait()?;
    Ok(())
}
