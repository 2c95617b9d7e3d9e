//! Times of the CPU kernels on one thread, the best of several runs in processor time:
//! `cargo bench -p oflow-kernels --bench kernels [-- FILTER]`.

use oflow_kernels::conv::Sliding;
use oflow_kernels::cpu::elementwise::Program;
use oflow_kernels::cpu::{accumulate, conv, copy, embedding, gather, matmul, random, reduce, scan};
use oflow_kernels::expr::Expr;
use oflow_kernels::{DType, ReduceOp, ShardBox, View};

/// Prints nanoseconds per call and elements per nanosecond.
fn time(name: &str, n: usize, mut f: impl FnMut()) {
    if std::env::args().skip(1).find(|a| !a.starts_with('-')).is_some_and(|filter| !name.contains(&filter)) {
        return;
    }
    let calls = (2_000_000 / n).clamp(3, 20_000);
    let best = (0..7)
        .map(|_| {
            let start = thread_nanos();
            (0..calls).for_each(|_| f());
            (thread_nanos() - start) / calls as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<32} n={n:<9} {best:>12.1} ns  {:>7.2} Gel/s", n as f64 / best);
}

/// The processor time of this thread: what others run on the machine meanwhile does not count.
fn thread_nanos() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

fn main() {
    let gelu = "0.5 * a * (1 + tanh(0.7978845608 * (a + 0.044715 * a * a * a)))";
    for n in [64, 64 * 1024, 1024 * 1024] {
        let a: Vec<f32> = (0..n).map(|i| (i * 7 % 400) as f32 * 0.01 - 2.0).collect();
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
            ("exact gelu", "a * normcdf(a)"),
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
    time("amax of columns", side * side, || {
        reduce::reduce(&va, &vrow, reduce::Reduce::Max, &[0]).expect("runs");
    });
    // SAFETY: as above; the output has as many elements as it has rows.
    let column = unsafe { vrow.restride(0, [side, 1].as_slice().into(), [1, 1].as_slice().into()) };
    time("sum of rows", side * side, || {
        reduce::reduce(&va, &column, reduce::Reduce::Sum, &[1]).expect("runs");
    });
    time("amax of rows", side * side, || {
        reduce::reduce(&va, &column, reduce::Reduce::Max, &[1]).expect("runs");
    });
    let (wide, width) = (4 * side * side, 64);
    let values: Vec<f32> = (0..wide).map(|i| 0.9 + ((i * 37) % 61) as f32 / 300.0).collect();
    let ids: Vec<i64> =
        (0..wide as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64 % width as i64).collect();
    let (mut table, mut whole, mut places) = (vec![0f32; 4 * side * width], vec![0f32; wide], vec![0i64; wide]);
    // SAFETY: as above.
    let (values, ids, table, whole, places) = unsafe {
        (
            View::from_slice(&values, &[4 * side, side]),
            View::from_slice(&ids, &[4 * side, side]),
            View::from_mut(&mut table, &[4 * side, width]),
            View::from_mut(&mut whole, &[4 * side, side]),
            View::from_mut(&mut places, &[4 * side, side]),
        )
    };
    time("gather", wide, || gather::gather(&table, &ids, &whole, 1, 0, width).expect("runs"));
    let reversed: Vec<i64> = (0..side as i64).rev().collect();
    // SAFETY: as above; all rows are the one.
    let reversed = unsafe {
        View::from_slice(&reversed, &[side]).restride(0, [4 * side, side].as_slice().into(), [0, 1].as_slice().into())
    };
    time("gather reversed", wide, || gather::gather(&values, &reversed, &whole, 1, 0, side).expect("runs"));
    time("gather_last", wide, || gather::gather_last(&table, &ids, &whole, 1, 0, width).expect("runs"));
    time("scatter", wide, || gather::scatter(&table, &ids, &values, &table, 1, 0, width).expect("runs"));
    time("scatter_sum", wide, || gather::scatter_sum(&values, &ids, &table, 1, 0, width).expect("runs"));
    let turns: Vec<i64> = (0..4 * side as i64).map(|i| i * 7 % width as i64).collect();
    let mut few = vec![0f32; width * side];
    // SAFETY: as above.
    let (turns, few) = unsafe { (View::from_slice(&turns, &[4 * side]), View::from_mut(&mut few, &[width, side])) };
    time("embedding_grad", wide, || embedding::embedding_grad(&values, &turns, &few, 0, width).expect("runs"));
    time("cumprod", wide, || scan::cumprod(&values, &whole, 1).expect("runs"));
    time("cummax", wide, || scan::cumulative_extreme(&values, &whole, &places, 1, false).expect("runs"));
    let ones = vec![half::bf16::ONE; side * side];
    // SAFETY: as above.
    let ones = unsafe { View::from_slice(&ones, &[side, side]) };
    time("bf16 product", side * side * side, || matmul::matmul(&ones, &ones, &vhalf).expect("runs"));
    // Images, filters, stride and groups; the padding keeps the size of an image where the stride is one.
    for (image, filter, stride, groups) in [
        (&[16, 64, 56, 56][..], &[64, 64, 3, 3][..], 1, 1),
        (&[16, 512, 7, 7], &[512, 512, 3, 3], 1, 1),
        (&[16, 64, 56, 56], &[64, 1, 3, 3], 1, 64),
        (&[16, 128, 512], &[128, 128, 3], 1, 1),
        (&[16, 32, 56, 56], &[64, 32, 4, 4], 2, 1),
    ] {
        let kept = image.len() - 2;
        let padding = (filter[2] - 1) / 2;
        let s = Sliding::new(&vec![stride; kept], &vec![padding as i64; kept], &vec![1; kept], groups).expect("valid");
        let result: Vec<usize> = (0..image.len())
            .map(|d| match d {
                0 => image[0],
                1 => filter[0],
                _ => (image[d] + 2 * padding - filter[d]) / stride as usize + 1,
            })
            .collect();
        let numbers = |dims: &[usize]| vec![0.5f32; dims.iter().product()];
        let (mut x, mut w, mut y) = (numbers(image), numbers(filter), numbers(&result));
        // SAFETY: as above.
        let (x, w, y) =
            unsafe { (View::from_mut(&mut x, image), View::from_mut(&mut w, filter), View::from_mut(&mut y, &result)) };
        let name = format!("{filter:?} on {image:?}");
        time(&format!("conv {name}"), y.len(), || conv::conv(&x, &w, None, &s, &y).expect("runs"));
        time(&format!("conv_transpose {name}"), y.len(), || conv::conv_transpose(&y, &w, None, &s, &x).expect("runs"));
        time(&format!("conv_weight {name}"), y.len(), || conv::conv_weight(&x, &y, &s, &w).expect("runs"));
    }
    // SAFETY: these address the same elements.
    let (from, to) = unsafe {
        let dims = [32, 4, 128, 64];
        let strides = [4 * 128 * 64, 64, 256, 1];
        (
            va.restride(0, dims.as_slice().into(), strides.as_slice().into()),
            vc.restride(0, dims.as_slice().into(), [4 * 128 * 64, 128 * 64, 64, 1].as_slice().into()),
        )
    };
    time("copy to heads", side * side, || copy::copy(&from, &to).expect("runs"));
    let e = Expr::parse("exp(a)", &["a"], &[]).expect("valid text");
    let p = Program::compile(&e, &[DType::F32], DType::F32).expect("compiles");
    time("exp of a transpose", side * side, || p.run(std::slice::from_ref(&turned), &[], &vc).expect("runs"));
    let e = Expr::parse("a + b", &["a", "b"], &[]).expect("valid text");
    let p = Program::compile(&e, &[DType::F32; 2], DType::F32).expect("compiles");
    time("add of a row", side * side, || p.run(&[va.clone(), vrow.clone()], &[], &vc).expect("runs"));
    time("add of a transpose", side * side, || p.run(&[va.clone(), turned.clone()], &[], &vc).expect("runs"));
}
