//! Time to plan a boxing that is not remembered (cold) and one that is (warm): random pairs of nd-SBPs of tensors of rank 3.
//!
//! `cargo bench --bench boxing_plan`

use oflow::boxing::{Layout, Planner};
use oflow::kernels::{DType, ReduceOp};
use oflow::placement::{Device, Placement};
use oflow::prelude::*;
use oflow::sbp::{NdSbp, Sbp};
use std::time::{Duration, Instant};

const PAIRS: usize = 300;

/// Pseudo-random numbers below a bound.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

fn quantiles(times: &mut [Duration]) -> [f64; 3] {
    times.sort();
    [times.len() / 2, times.len() * 99 / 100, times.len() - 1].map(|i| times[i].as_secs_f64() * 1e6)
}

fn main() -> Result<()> {
    let all =
        [Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Partial(ReduceOp::Max), Sbp::Split(0), Sbp::Split(1), Sbp::Split(2)];
    let usual = [Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Split(0), Sbp::Split(1), Sbp::Split(2)];
    let planner = Planner::default();
    println!("{:<44} {:>9} {:>9} {:>9} {:>9}  us", "", "cold p50", "cold p99", "cold max", "warm p50");
    for dims in [&[8][..], &[4, 8], &[2, 2, 2], &[2, 4, 8], &[8, 8, 8]] {
        let mesh = Placement::of_world(Device::Cpu, dims.iter().product())?;
        let mesh = Placement::new(Device::Cpu, mesh.ranks(), dims)?;
        for (what, sbps, large) in
            [("B P S, large", &usual[..], true), ("all kinds, large", &all, true), ("all kinds, small", &all, false)]
        {
            let mut random = Random(7);
            let sbp = |r: &mut Random| (0..dims.len()).map(|_| sbps[r.below(sbps.len())]).collect::<NdSbp>();
            let (mut cold, mut warm) = (Vec::new(), Vec::new());
            for _ in 0..PAIRS {
                let (src, dst) = (Layout::new(&mesh, sbp(&mut random)), Layout::new(&mesh, sbp(&mut random)));
                let side = |r: &mut Random| if large { 64 + r.below(1000) } else { 8 + r.below(30) };
                let shape = [side(&mut random), side(&mut random), side(&mut random)];
                let start = Instant::now();
                planner.plan(&shape, DType::F32, &src, &dst)?;
                cold.push(start.elapsed());
                let start = Instant::now();
                planner.plan(&shape, DType::F32, &src, &dst)?;
                warm.push(start.elapsed());
            }
            let ([p50, p99, max], [w50, ..]) = (quantiles(&mut cold), quantiles(&mut warm));
            println!("{:<44} {p50:>9.1} {p99:>9.1} {max:>9.1} {w50:>9.2}", format!("{dims:?} {what}"));
        }
    }
    Ok(())
}
