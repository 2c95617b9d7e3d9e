//! Cost of one warm call: local add, global add on 2 simulated ranks, matmul, boxing, with a gradient node.
//!
//! `cargo bench --bench dispatch` prints µs per call (median of 15 samples). `-- --calls N` only issues N global adds on a
//! world of one: run it under `valgrind --tool=callgrind` with two values of N; the difference of the instruction counts
//! divided by the difference of N is the instructions of one call.

use oflow::prelude::*;
use std::time::Instant;

fn median_us(mut f: impl FnMut() -> Result<Tensor>) -> Result<f64> {
    const CALLS: u32 = 2000;
    for _ in 0..500 {
        f()?;
    }
    let mut samples = vec![];
    for _ in 0..15 {
        let t = Instant::now();
        for _ in 0..CALLS {
            f()?;
        }
        samples.push(t.elapsed().as_secs_f64() * 1e6 / CALLS as f64);
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[7])
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let Some(i) = args.iter().position(|a| a == "--calls") {
        let n: usize = args.get(i + 1).and_then(|n| n.parse().ok()).unwrap_or(1000);
        let _world = oflow::init()?;
        let _quiet = no_grad();
        let mesh = Placement::all(Device::Cpu)?;
        let (a, b) = (ones([8, 8], (&mesh, sbp![S(0)]))?, ones([8, 8], (&mesh, sbp![S(0)]))?);
        for _ in 0..n {
            a.add(&b)?;
        }
        return Ok(());
    }
    let quiet = no_grad();
    let (a, b) = (randn([8, 8], Device::Cpu)?, randn([8, 8], Device::Cpu)?);
    println!("local add 8x8            {:.3} us", median_us(|| a.add(&b))?);
    println!("local matmul 8x8         {:.3} us", median_us(|| a.matmul(&b))?);
    println!("local mul by a number    {:.3} us", median_us(|| a.mul(2.0))?);
    println!("local transpose (view)   {:.3} us", median_us(|| a.t())?);
    drop(quiet);
    let g = randn([8, 8], Device::Cpu)?.requires_grad_(true)?;
    println!("local add 8x8, recorded  {:.3} us", median_us(|| g.add(&b))?);
    let times = oflow::run_ranks(2, |_| {
        let _quiet = no_grad();
        let mesh = Placement::all(Device::Cpu)?;
        let a = randn([16, 8], (&mesh, sbp![S(0)]))?;
        let b = randn([16, 8], (&mesh, sbp![S(0)]))?;
        let w = randn([8, 8], (&mesh, sbp![B]))?;
        let whole = a.to_global(sbp![B])?;
        Ok([
            median_us(|| a.add(&b))?,
            median_us(|| a.matmul(&w))?,
            median_us(|| a.relu())?,
            median_us(|| whole.to_global(sbp![S(0)]))?,
            median_us(|| a.to_global(sbp![B]))?,
        ])
    })?;
    let names = ["global add", "global matmul S0 x B", "global relu", "boxing B -> S0 (slice)", "boxing S0 -> B"];
    for (i, name) in names.iter().enumerate() {
        println!("{name:<24} {:.3} us on 2 ranks", times[0][i].max(times[1][i]));
    }
    Ok(())
}
