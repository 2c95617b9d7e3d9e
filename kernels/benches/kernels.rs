//! Times of the CPU kernels on one thread, best of several runs: `cargo bench -p oflow-kernels`.

use oflow_kernels::cpu::elementwise::Program;
use oflow_kernels::cpu::{accumulate, copy, random, reduce};
use oflow_kernels::expr::Expr;
use oflow_kernels::{DType, ReduceOp, ShardBox, View};
use std::time::Instant;

/// Prints nanoseconds per call and elements per nanosecond.
fn time(name: &str, n: usize, mut f: impl FnMut()) {
    let calls = (2_000_000 / n).clamp(3, 20_000);
    let best = (0..7)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|_| f());
            start.elapsed().as_nanos() as f64 / calls as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<32} n={n:<9} {best:>12.1} ns  {:>7.2} Gel/s", n as f64 / best);
}

fn main() {
    let gelu = "0.5 * a * (1 + tanh(0.7978845608 * (a + 0.044715 * a * a * a)))";
    for n in [64, 64 * 1024, 1024 * 1024] {
        let a: Vec<f32> = (0..n).map(|i| (i % 100) as f32 * 0.01).collect();
        let b = a.clone();
        let mut c = vec![0f32; n];
        // SAFETY: the vectors outlive the views; one output is used at a time.
        let (va, vb, vc) =
            unsafe { (View::from_slice(&a, &[n]), View::from_slice(&b, &[n]), View::from_mut(&mut c, &[n])) };
        for (name, text) in [
            ("add", "a + b"),
            ("mul", "a * b"),
            ("exp", "exp(a)"),
            ("gelu", gelu),
            ("erf", "erf(a)"),
            ("log", "log(a)"),
        ] {
            let e = Expr::parse(text, &["a", "b"], &[]).expect("valid text");
            let inputs = if e.uses_input(1) { vec![va.clone(), vb.clone()] } else { vec![va.clone()] };
            let p = Program::compile(&e, &vec![DType::F32; inputs.len()], DType::F32).expect("compiles");
            time(name, n, || p.run(&inputs, &[], &vc).expect("runs"));
        }
        let mut one = [0f32];
        // SAFETY: as above.
        let sum = unsafe { View::from_mut(&mut one, &[1]) };
        time("sum", n, || reduce::reduce(&va, &sum, reduce::Reduce::Sum, &[0]).expect("runs"));
        time("copy", n, || copy::copy(&va, &vc).expect("runs"));
        let whole = ShardBox::whole(&[n]);
        time("uniform", n, || random::uniform(&vc, &whole, 1, 2, 0.0, 1.0).expect("runs"));
        time("normal", n, || random::normal(&vc, &whole, 1, 2, 0.0, 1.0).expect("runs"));
        let bytes: Vec<u8> = a.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let mut total = bytes.clone();
        time("accumulate", n, || {
            accumulate::accumulate(&mut total, &bytes, DType::F32, ReduceOp::Sum).expect("runs");
        });
    }
    let side = 1024;
    let a = vec![1f32; side * side];
    let (mut c, mut row, mut half) = (vec![0f32; side * side], vec![0f32; side], vec![half::bf16::ZERO; side * side]);
    // SAFETY: as above.
    let (va, vc, vrow, vhalf) = unsafe {
        (
            View::from_slice(&a, &[side, side]),
            View::from_mut(&mut c, &[side, side]),
            View::from_mut(&mut row, &[1, side]),
            View::from_mut(&mut half, &[side, side]),
        )
    };
    // SAFETY: the transpose addresses the same elements.
    let turned = unsafe { va.restride(0, [side, side].as_slice().into(), [1, side as isize].as_slice().into()) };
    time("transpose", side * side, || copy::copy(&turned, &vc).expect("runs"));
    time("to bf16", side * side, || copy::copy(&va, &vhalf).expect("runs"));
    time("sum of columns", side * side, || {
        reduce::reduce(&va, &vrow, reduce::Reduce::Sum, &[0]).expect("runs");
    });
    let e = Expr::parse("a + b", &["a", "b"], &[]).expect("valid text");
    let p = Program::compile(&e, &[DType::F32; 2], DType::F32).expect("compiles");
    time("add of a row", side * side, || p.run(&[va.clone(), vrow.clone()], &[], &vc).expect("runs"));
    time("add of a transpose", side * side, || p.run(&[va.clone(), turned.clone()], &[], &vc).expect("runs"));
}
