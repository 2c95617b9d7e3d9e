//! Cost of one warm call: local and global, views, boxings, with a gradient node; beside PyTorch's where there is one:
//! `PYTHON=path/to/python cargo bench --bench dispatch`.
//!
//! Printed is the median, over turns that alternate with PyTorch's (`benches/peers/dispatch_torch.py`), of the median processor
//! time of a call. Global calls run on 2 simulated ranks, beside PyTorch's local call and beside its DTensor on a mesh of one rank.
//! `-- --calls N ROW` only issues N calls of one row in a world of one: run it under `valgrind --tool=callgrind` with two values of
//! N; the difference of the instruction counts divided by the difference of N is the instructions of one call.

mod peers;

use oflow::prelude::*;
use peers::{Peer, median};

/// Turns of each side.
const TURNS: usize = 5;

/// A name, and the call that it stands for.
type Row<'a> = (&'a str, &'a dyn Fn() -> Result<Tensor>);

/// PyTorch's local row, and its row on DTensors, that a row is compared with.
fn beside(row: &str) -> (Option<&'static str>, Option<&'static str>) {
    match row {
        "add" => (Some("add"), None),
        "matmul" => (Some("matmul"), None),
        "mul_number" => (Some("mul_number"), None),
        "view" => (Some("view"), None),
        "recorded_add" => (Some("recorded_add"), None),
        "global_add" => (Some("add"), Some("dtensor_add")),
        "global_matmul" => (Some("matmul"), Some("dtensor_matmul")),
        "global_relu" => (Some("relu"), Some("dtensor_relu")),
        _ => (None, None),
    }
}

fn thread_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn median_us(f: &dyn Fn() -> Result<Tensor>) -> Result<f64> {
    const CALLS: u32 = 2000;
    for _ in 0..500 {
        f()?;
    }
    let mut samples = vec![];
    for _ in 0..15 {
        let start = thread_seconds();
        for _ in 0..CALLS {
            f()?;
        }
        samples.push((thread_seconds() - start) * 1e6 / f64::from(CALLS));
    }
    Ok(median(samples))
}

/// Times of each row in turns with the peer's, and prints them. `times` measures all rows once.
fn table(peer: &mut Option<Peer>, times: &dyn Fn() -> Result<Vec<(String, f64)>>) -> Result<()> {
    let mut rows: Vec<(String, [Vec<f64>; 3])> = vec![];
    for turn in 0..TURNS {
        for (i, (name, us)) in times()?.into_iter().enumerate() {
            if turn == 0 {
                rows.push((name.clone(), Default::default()));
            }
            let (local, dtensor) = beside(&name);
            let mut ask = |row: Option<&str>| peer.as_mut().zip(row).map(|(p, row)| p.ask(row));
            rows[i].1[0].push(us);
            rows[i].1[1].extend(ask(local));
            rows[i].1[2].extend(ask(dtensor));
        }
    }
    for (name, [ours, local, dtensor]) in rows {
        let ours = median(ours);
        print!("{name:<16} {ours:>8.3}");
        for theirs in [local, dtensor] {
            match theirs.is_empty() {
                true => print!(" {:>8} {:>6}", "", ""),
                false => {
                    let theirs = median(theirs);
                    print!(" {theirs:>8.3} {:>6.2}", ours / theirs);
                }
            }
        }
        println!();
    }
    Ok(())
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
    let mut peer = Peer::start("dispatch_torch.py");
    println!("{:<16} {:>8} {:>8} {:>6} {:>8} {:>6}", "µs a call", "oflow", "PyTorch", "ratio", "DTensor", "ratio");
    let measured =
        |rows: &[Row<'_>]| rows.iter().map(|(name, call)| Ok((name.to_string(), median_us(*call)?))).collect();
    table(&mut peer, &|| local(measured))?;
    table(&mut peer, &|| {
        let mut ranks: Vec<Vec<(String, f64)>> = oflow::run_ranks(2, move |_| global(measured))?;
        let other = ranks.pop().unwrap_or_default();
        let slower = |((name, us), (_, other)): ((String, f64), (String, f64))| (name, us.max(other));
        Ok(ranks.remove(0).into_iter().zip(other).map(slower).collect())
    })
}
