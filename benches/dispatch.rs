//! Cost of one warm call: local and global, views, boxings, with a gradient node.
//!
//! `cargo bench --bench dispatch` prints µs per call (median of 15 samples; global calls on 2 simulated ranks). `-- --calls N ROW`
//! only issues N calls of one row in a world of one: run it under `valgrind --tool=callgrind` with two values of N; the difference
//! of the instruction counts divided by the difference of N is the instructions of one call.

use oflow::prelude::*;
use std::time::Instant;

/// A name, and the call that it stands for.
type Row<'a> = (&'a str, &'a dyn Fn() -> Result<Tensor>);

fn median_us(f: &dyn Fn() -> Result<Tensor>) -> Result<f64> {
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

/// Calls on local tensors. The last one is recorded for backward.
fn local<R>(run: impl FnOnce(&[Row<'_>]) -> Result<R>) -> Result<R> {
    let (a, b) = (randn([8, 8], Device::Cpu)?, randn([8, 8], Device::Cpu)?);
    let g = randn([8, 8], Device::Cpu)?.requires_grad_(true)?;
    run(&[
        ("add", &|| a.add(&b)),
        ("matmul", &|| a.matmul(&b)),
        ("mul_number", &|| a.mul(2.0)),
        ("view", &|| a.t()),
        ("recorded_add", &|| g.add(&b)),
    ])
}

/// Calls on global tensors, 8x8 a rank.
fn global<R>(run: impl FnOnce(&[Row<'_>]) -> Result<R>) -> Result<R> {
    let _quiet = no_grad();
    let mesh = Placement::all(Device::Cpu)?;
    let rows = 8 * mesh.ranks().len();
    let (a, b) = (randn([rows, 8], (&mesh, sbp![S(0)]))?, randn([rows, 8], (&mesh, sbp![S(0)]))?);
    let w = randn([8, 8], (&mesh, sbp![B]))?;
    let whole = a.to_global(sbp![B])?;
    run(&[
        ("global_add", &|| a.add(&b)),
        ("global_matmul", &|| a.matmul(&w)),
        ("global_relu", &|| a.relu()),
        ("box_b_to_s0", &|| whole.to_global(sbp![S(0)])),
        ("box_s0_to_b", &|| a.to_global(sbp![B])),
    ])
}

/// Issues `n` calls of the row of that name, if it is among these.
fn issue(rows: &[Row<'_>], name: &str, n: usize) -> Result<()> {
    let found = rows.iter().filter(|(row, _)| *row == name);
    found.flat_map(|(_, call)| (0..n).map(move |_| call())).try_for_each(|made| made.map(drop))
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let Some(i) = args.iter().position(|a| a == "--calls") {
        let n: usize = args.get(i + 1).and_then(|n| n.parse().ok()).unwrap_or(1000);
        let name = args.get(i + 2).map_or("global_add", String::as_str);
        let _world = oflow::init()?;
        local(|rows| issue(rows, name, n))?;
        return global(|rows| issue(rows, name, n));
    }
    local(|rows| {
        for (name, call) in rows {
            println!("{name:<16} {:.3} us", median_us(*call)?);
        }
        Ok(())
    })?;
    let times = oflow::run_ranks(2, |_| {
        global(|rows| {
            rows.iter().map(|(name, call)| Ok((name.to_string(), median_us(*call)?))).collect::<Result<Vec<_>>>()
        })
    })?;
    for ((name, us), (_, other)) in times[0].iter().zip(&times[1]) {
        println!("{name:<16} {:.3} us on 2 ranks", us.max(*other));
    }
    Ok(())
}
