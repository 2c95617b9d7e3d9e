//! Calls beside PyTorch's, which `ops_torch.py` makes: forward, and forward with the gradients of all inputs. On one thread, in processor
//! time; with `BENCH_THREADS=N` on N, in elapsed time.

use super::{Peer, median};
use oflow::DType;
use oflow::prelude::*;
use std::time::{Duration, Instant};

/// Turns of each side.
const TURNS: usize = 5;

type Run = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

/// A call; the name is that of the peer's too.
pub struct Case {
    pub name: &'static str,
    pub inputs: Vec<Vec<usize>>,
    pub dtype: DType,
    pub run: Run,
}

/// A call on inputs of f32.
pub fn case(name: &'static str, inputs: &[&[usize]], run: impl Fn(&[Tensor]) -> Result<Tensor> + 'static) -> Case {
    let inputs = inputs.iter().map(|i| i.to_vec()).collect();
    Case { name, inputs, dtype: DType::F32, run: Box::new(run) }
}

/// Threads of each side.
fn threads() -> usize {
    std::env::var("BENCH_THREADS").map_or(1, |n| n.parse().expect("BENCH_THREADS is a number"))
}

/// Processor time of this thread, or the time, if it does not compute alone.
fn seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let t = clock_gettime(if threads() == 1 { ClockId::ThreadCPUTime } else { ClockId::Monotonic });
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Median time of a call in µs.
fn median_us(f: impl Fn() -> Result<()>) -> Result<f64> {
    f()?;
    f()?;
    let (mut times, start) = (vec![], Instant::now());
    while times.len() < 5 || start.elapsed() < Duration::from_millis(300) {
        let start = seconds();
        f()?;
        times.push((seconds() - start) * 1e6);
    }
    Ok(median(times))
}

/// Measures the calls whose names contain the first argument, and prints a line for each.
pub fn run(cases: &[Case]) -> Result<()> {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let _pool = oflow::kernels::parallel::install_pool(threads())?;
    let mut peer = Peer::start("ops_torch.py");
    println!("{:<50} {:<8} {:>11} {:>11} {:>6}", "µs a call", "", "oflow", "PyTorch", "ratio");
    for case in cases.iter().filter(|c| c.name.contains(&filter)) {
        let make = |dims: &Vec<usize>| match case.dtype.is_complex() {
            true => randn([&dims[..], &[2]].concat(), Device::Cpu.dtype(case.dtype.part()))?.view_as_complex(),
            false => randn(&dims[..], Device::Cpu.dtype(case.dtype)),
        };
        let inputs: Vec<Tensor> = case.inputs.iter().map(make).collect::<Result<_>>()?;
        let leaves: Result<Vec<Tensor>> = inputs.iter().map(|x| x.detach().requires_grad_(true)).collect();
        let leaves = leaves?;
        for way in ["forward", "both"] {
            let (mut ours, mut theirs) = (vec![], vec![]);
            for _ in 0..TURNS {
                ours.push(match way {
                    "forward" => median_us(|| (case.run)(&inputs).map(drop))?,
                    _ => median_us(|| {
                        leaves.iter().try_for_each(|x| x.set_grad(None))?;
                        let y = (case.run)(&leaves)?;
                        let y = if y.dtype().is_complex() { y.real()? } else { y };
                        y.sum(())?.backward()
                    })?,
                });
                theirs.extend(peer.as_mut().map(|p| p.ask(&format!("{}\t{way}", case.name))));
            }
            let ours = median(ours);
            print!("{:<50} {way:<8} {ours:>11.1}", case.name);
            match theirs.is_empty() {
                true => println!(),
                false => {
                    let theirs = median(theirs);
                    println!(" {theirs:>11.1} {:>6.2}", ours / theirs);
                }
            }
        }
    }
    Ok(())
}
