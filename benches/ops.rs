//! Times single ops on one thread, beside PyTorch's where there is one:
//! `PYTHON=path/to/python cargo bench --bench ops [-- FILTER]`.
//!
//! Each case is a forward call, then a forward call with the gradients of all inputs. Ours and PyTorch's
//! (`benches/peers/ops_torch.py`, a process of its own) are measured in turns. Printed is the median, over the turns, of
//! the median processor time of a call, which includes dispatch and the memory of results.

mod peers;

use oflow::DType;
use oflow::prelude::*;
use peers::{Peer, median};
use std::time::{Duration, Instant};

/// Turns of each side.
const TURNS: usize = 5;

type Run = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

struct Case {
    name: &'static str,
    inputs: Vec<Vec<usize>>,
    dtype: DType,
    run: Run,
}

fn case(name: &'static str, inputs: &[&[usize]], run: impl Fn(&[Tensor]) -> Result<Tensor> + 'static) -> Case {
    let inputs = inputs.iter().map(|i| i.to_vec()).collect();
    Case { name, inputs, dtype: DType::F32, run: Box::new(run) }
}

fn of(dtype: DType, case: Case) -> Case {
    Case { dtype, ..case }
}

fn cases() -> Result<Vec<Case>> {
    let (square, tall, small) = (&[1024, 1024][..], &[4096, 1024][..], &[16, 4, 128, 64][..]);
    let (heads, cube, side) = (&[8, 8, 512, 64][..], &[32, 64, 64][..], &[256, 256][..]);
    let product = |x: &[Tensor]| x[0].matmul(&x[1]);
    let attention = |x: &[Tensor]| x[0].attention(&x[1], &x[2], true);
    let ids = randint(0, 50_000, [64, 512], Device::Cpu)?;
    let back = arange(4096, Device::Cpu)?.rsub(4095)?;
    Ok(vec![
        case("gelu exact [1024,1024]", &[square], |x| x[0].gelu()),
        case("exp of a transposed [1024,1024]", &[square], |x| x[0].t()?.exp()),
        case("add of a transposed [1024,1024]", &[square, square], |x| x[0].add(&x[1].t()?)),
        case("copy [16,128,4,64] as [16,4,128,64]", &[&[16, 128, 4, 64]], |x| x[0].transpose(1, 2)?.copy()),
        case("copy of a transposed [1024,1024]", &[square], |x| x[0].t()?.copy()),
        case("amax dim 0 [4096,1024]", &[tall], |x| x[0].amax([0])),
        case("amax dim 0 [1024,1024]", &[square], |x| x[0].amax([0])),
        case("sum dim 0 [4096,1024]", &[tall], |x| x[0].sum([0])),
        case("sum dim 0 [1024,1024]", &[square], |x| x[0].sum([0])),
        case("sum dim 1 [1024,1024]", &[square], |x| x[0].sum([1])),
        case("var dim 1 [4096,1024]", &[tall], |x| x[0].var([1])),
        case("softmax [4096,1024]", &[tall], |x| x[0].softmax(-1)),
        case("cumsum dim 1 [4096,1024]", &[tall], |x| x[0].cumsum(1)),
        case("index_select rows [4096,1024]", &[tall], move |x| x[0].embedding(&back)),
        case("embedding 50k x 128, 32k ids", &[&[50_000, 128]], move |x| x[0].embedding(&ids)),
        case("bij,bjk,bkl [32,64,64]", &[cube, cube, cube], |x| x[0].matmul(&x[1])?.matmul(&x[2])),
        case("matmul [1024,1024]x[1024,1024]", &[square, square], product),
        case("matmul skinny [1024,1024]x[1024,8]", &[square, &[1024, 8]], product),
        case("matmul skinny [8,1024]x[1024,1024]", &[&[8, 1024], square], product),
        of(DType::BF16, case("matmul bf16 [1024,1024]x[1024,1024]", &[square, square], product)),
        of(DType::BF16, case("matmul bf16 [256,256]x[256,256]", &[side, side], product)),
        of(DType::F64, case("matmul f64 [512,512]x[512,512]", &[&[512, 512], &[512, 512]], product)),
        case("attention causal [8,8,512,64]", &[heads, heads, heads], attention),
        case("attention causal [16,4,128,64]", &[small, small, small], attention),
    ])
}

fn thread_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Median processor time of a call in µs.
fn median_us(f: impl Fn() -> Result<()>) -> Result<f64> {
    f()?;
    f()?;
    let (mut times, start) = (vec![], Instant::now());
    while times.len() < 5 || start.elapsed() < Duration::from_millis(300) {
        let start = thread_seconds();
        f()?;
        times.push((thread_seconds() - start) * 1e6);
    }
    Ok(median(times))
}

fn main() -> Result<()> {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let mut peer = Peer::start("ops_torch.py");
    println!("{:<38} {:<8} {:>11} {:>11} {:>6}", "µs a call", "", "oflow", "PyTorch", "ratio");
    for case in cases()?.iter().filter(|c| c.name.contains(&filter)) {
        let inputs: Result<Vec<Tensor>> =
            case.inputs.iter().map(|dims| randn(&dims[..], Device::Cpu.dtype(case.dtype))).collect();
        let inputs = inputs?;
        let leaves: Result<Vec<Tensor>> = inputs.iter().map(|x| x.detach().requires_grad_(true)).collect();
        let leaves = leaves?;
        for way in ["forward", "both"] {
            let (mut ours, mut theirs) = (vec![], vec![]);
            for _ in 0..TURNS {
                ours.push(match way {
                    "forward" => median_us(|| (case.run)(&inputs).map(drop))?,
                    _ => median_us(|| {
                        leaves.iter().for_each(|x| x.set_grad(None));
                        (case.run)(&leaves)?.sum(())?.backward()
                    })?,
                });
                theirs.extend(peer.as_mut().map(|p| p.ask(&format!("{}\t{way}", case.name))));
            }
            let ours = median(ours);
            print!("{:<38} {way:<8} {ours:>11.1}", case.name);
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
