//! Chains of elementwise functions as one program and as a program each, and reductions that compute a chain in their blocks beside a program and
//! a reduction of what it stores. On one thread: processor time, in turns, medians.
//! `cargo bench -p oflow-kernels --bench fusion [-- FILTER]`.

use oflow_kernels::cpu::elementwise::Program;
use oflow_kernels::cpu::reduce::{self, Reduce};
use oflow_kernels::expr::{Chain, Expr, Link};
use oflow_kernels::{DType, View};

/// The processor time of this thread: what others run on the machine meanwhile does not count.
fn thread_nanos() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Chains of one kind: each function by its number, over `x`, `y`, a bias `b` and the result `p` before it, at first `x`.
type Kind = (&'static str, fn(usize) -> &'static str);

const KINDS: [Kind; 4] = [
    ("additions", |_| "p + y"),
    ("sums and products", |k| if k % 2 == 0 { "p * y" } else { "p + x" }),
    ("activations", |k| ["p * normcdf(p)", "p + y", "tanh(p)", "p * x"][k % 4]),
    ("a bias, then sums", |k| if k == 0 { "p + b" } else { "p + y" }),
];

/// Sums of chains over `x` and `y`, and over how many of the last dims.
const REDUCTIONS: [(&str, &str, usize); 6] = [
    ("sum of x", "x0", 2),
    ("sum of x - y squared", "x0 - x1; t0 * t0", 2),
    ("sum of tanh", "x0 - x1; tanh(t0); t1 * x1; t2 + x0", 2),
    ("rows of x * y", "x0 * x1", 1),
    ("rows of x - y squared", "x0 - x1; t0 * t0", 1),
    ("rows of tanh", "x0 - x1; tanh(t0); t1 * x1; t2 + x0", 1),
];

/// Elements of a row of the bias.
fn row(n: usize) -> usize {
    if n == 64 { 8 } else { 256 }
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    println!(
        "{:<22} {:<5} {:>9} {:>3} {:>12} {:>12} {:>6}",
        "kind", "dtype", "bytes", "n", "each, ns", "one, ns", "ratio"
    );
    for dtype in [DType::F32, DType::BF16] {
        for bytes in [64 * dtype.size(), 1 << 20, 64 << 20] {
            let n = bytes / dtype.size();
            let mut memory: Vec<Vec<u64>> = (0..4).map(|_| vec![0; bytes / 8]).collect();
            let mut bias = vec![0u64; row(n) * dtype.size() / 8];
            let view = |m: &mut Vec<u64>, dims: &[usize]| {
                let strides = if dims.len() == 2 { vec![dims[1] as isize, 1] } else { vec![1] };
                // SAFETY: the vectors outlive the views; one output is used at a time.
                unsafe { View::from_raw(m.as_mut_ptr().cast(), dtype, dims.into(), strides.into_iter().collect()) }
            };
            let all: Vec<View> = memory.iter_mut().map(|m| view(m, &[n / row(n), row(n)])).collect();
            let operands = [all[0].clone(), all[1].clone(), view(&mut bias, &[row(n)])];
            for (name, function) in KINDS.iter().filter(|(name, _)| name.contains(&filter)) {
                for length in [2, 4, 8, 16] {
                    let functions: Vec<Expr> = (0..length)
                        .map(|k| Expr::parse(function(k), &["x", "y", "b", "p"], &[]).expect("valid text"))
                        .collect();
                    let (each, one) = times(&functions, &operands, [&all[2], &all[3]]);
                    let ratio = one / each;
                    println!("{name:<22} {dtype:<5} {bytes:>9} {length:>3} {each:>12.0} {one:>12.0} {ratio:>6.2}");
                }
            }
            for (name, text, last) in REDUCTIONS.iter().filter(|(name, ..)| name.contains(&filter)) {
                let (apart, one) = reduction_times(text, *last, &all);
                let (length, ratio) = (text.split(';').count(), one / apart);
                println!("{name:<22} {dtype:<5} {bytes:>9} {length:>3} {apart:>12.0} {one:>12.0} {ratio:>6.2}");
            }
        }
    }
}

/// Processor time of a sum of a chain: of what its program stores, and of what it computes.
fn reduction_times(text: &str, last: usize, all: &[View]) -> (f64, f64) {
    let (dtype, dims) = (all[0].dtype(), all[0].dims());
    let chain = Chain::parse(text, 2).expect("valid text");
    let program = Program::compile_chain(&chain, &[dtype; 2], dtype, DType::F32).expect("compiles");
    let reduced: Vec<usize> = (2 - last..2).collect();
    let shape = [if last == 2 { 1 } else { dims[0] }, 1];
    // SAFETY: the result has no more elements than the memory of the last view.
    let out = unsafe { all[3].restride(0, shape.into_iter().collect(), [1, 1].into_iter().collect()) };
    let calls = (20_000_000 / all[0].len()).clamp(1, 5000);
    let apart = || {
        program.run(&all[..2], &[], &all[2]).expect("runs");
        reduce::reduce(&all[2], &out, Reduce::Sum, &reduced).expect("runs");
    };
    let one = || reduce::fused(&program, &all[..2], dims, &out, Reduce::Sum, (last, None)).expect("runs");
    in_turns(calls, &apart, &one)
}

/// Processor time of a call of each, measured in turns.
fn in_turns(calls: usize, first: &dyn Fn(), second: &dyn Fn()) -> (f64, f64) {
    let time = |f: &dyn Fn()| {
        let start = thread_nanos();
        (0..calls).for_each(|_| f());
        (thread_nanos() - start) / calls as f64
    };
    let turns = (0..7).map(|_| (time(first), time(second)));
    let (a, b) = turns.unzip();
    (median(a), median(b))
}

/// Processor time of a chain, as a program for each function and as one.
fn times(functions: &[Expr], operands: &[View; 3], made: [&View; 2]) -> (f64, f64) {
    let dtype = made[0].dtype();
    // Those of the operands that are read, and the expression over them.
    let read = |e: &Expr, all: usize| -> (Vec<usize>, Vec<Expr>) {
        let used: Vec<usize> = (0..all).filter(|i| e.uses_input(*i)).collect();
        let place = |i: usize| Expr::Input(used.iter().position(|u| *u == i).unwrap_or(0));
        let places = (0..all).map(place).collect();
        (used, places)
    };
    let mut apart: Vec<(Program, Vec<View>)> = vec![];
    for (k, e) in functions.iter().enumerate() {
        let (used, places) = read(e, 4);
        let before = if k == 0 { &operands[0] } else { made[(k + 1) % 2] };
        let inputs: Vec<View> = used.iter().map(|i| operands.get(*i).unwrap_or(before).clone()).collect();
        let dtypes = vec![dtype; inputs.len()];
        apart.push((Program::compile(&e.substitute(&places, &[], None), &dtypes, dtype).expect("compiles"), inputs));
    }
    let is_read = |i: &usize| *i == 0 || functions.iter().any(|e| e.uses_input(*i));
    let used: Vec<usize> = (0..3).filter(is_read).collect();
    let inputs: Vec<View> = used.iter().map(|i| operands[*i].clone()).collect();
    let place = |i: usize| Expr::Input(used.iter().position(|u| *u == i).unwrap_or(0));
    let link = |(k, e): (usize, &Expr)| {
        let before = if k == 0 { 0 } else { used.len() + k - 1 };
        let places = [place(0), place(1), place(2), Expr::Input(before)];
        let dtype = (dtype != DType::F32 && k + 1 < functions.len()).then_some(dtype);
        Link { expr: e.substitute(&places, &[], None), dtype }
    };
    let chain = Chain::new(used.len(), functions.iter().enumerate().map(link).collect()).expect("a chain");
    let one = Program::compile_chain(&chain, &vec![dtype; used.len()], dtype, DType::F32).expect("compiles");
    let calls = (20_000_000 / (made[0].len() * functions.len())).clamp(1, 5000);
    let each = || {
        for (k, (p, inputs)) in apart.iter().enumerate() {
            p.run(inputs, &[], made[k % 2]).expect("runs");
        }
    };
    in_turns(calls, &each, &|| one.run(&inputs, &[], made[0]).expect("runs"))
}
