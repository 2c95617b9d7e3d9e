use crate::owned::{Owned, read};
use crate::samples::Tensor;
use crate::threads::with_threads;
use oflow_base::Random;
use oflow_kernels::cpu::elementwise::Program;
use oflow_kernels::cpu::reduce::*;
use oflow_kernels::expr::Chain;
use oflow_kernels::{DType, View};

const OPS: [Reduce; 4] = [Reduce::Sum, Reduce::Max, Reduce::Min, Reduce::Prod];

/// Element by element, from the definition.
fn oracle(x: &View, op: Reduce, dims: &[usize]) -> Vec<f64> {
    let out_dims: Vec<usize> = (0..x.rank()).map(|d| if dims.contains(&d) { 1 } else { x.dims()[d] }).collect();
    let start = match op {
        Reduce::Sum => 0.0,
        Reduce::Prod => 1.0,
        Reduce::Max => f64::NEG_INFINITY,
        Reduce::Min => f64::INFINITY,
    };
    let mut out = vec![start; out_dims.iter().product()];
    for (i, v) in read(x).into_iter().enumerate() {
        let (mut rest, mut o, mut step) = (i, 0, 1);
        for d in (0..x.rank()).rev() {
            o += if dims.contains(&d) { 0 } else { (rest % x.dims()[d]) * step };
            step *= out_dims[d];
            rest /= x.dims()[d];
        }
        let nan = v.is_nan() || out[o].is_nan();
        out[o] = match op {
            Reduce::Sum => out[o] + v,
            Reduce::Prod => out[o] * v,
            _ if nan => f64::NAN,
            Reduce::Max => out[o].max(v),
            Reduce::Min => out[o].min(v),
        };
    }
    out
}

fn out_of(x: &View, dims: &[usize], dtype: DType) -> Owned {
    let out: Vec<usize> = (0..x.rank()).map(|d| if dims.contains(&d) { 1 } else { x.dims()[d] }).collect();
    Owned::zeros(dtype, &out)
}

#[test]
fn all_ops_dtypes_dims_and_layouts() {
    let dims = [3, 70, 5];
    let n: usize = dims.iter().product();
    for d in oflow_kernels::cpu::lane::Native::ALL.map(|n| n.dtype()) {
        // Small, so that products stay exact; halves and bools included.
        let values: Vec<f64> = (0..n)
            .map(|i| if d == DType::Bool { (i % 3 != 0) as u8 as f64 } else { 1.0 + (i % 67 == 0) as u8 as f64 })
            .collect();
        let t = Owned::from_f64(d, &dims, &values);
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let x = t.permuted(&order);
            for set in [&[0usize][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2], &[]] {
                for op in OPS {
                    let wide = if d.is_float() { DType::F64 } else { DType::I64 };
                    let out_dtype = if matches!(op, Reduce::Max | Reduce::Min) { d } else { wide };
                    let out = out_of(&x, set, out_dtype);
                    reduce(&x, &out.view(), op, set).unwrap();
                    assert_eq!(read(&out.view()), oracle(&x, op, set), "{d} {order:?} {set:?} {op:?}");
                }
            }
        }
    }
}

#[test]
fn long_sums_are_accurate_and_do_not_depend_on_threads() {
    for (dims, set) in
        [([1, 1_000_003], vec![1]), ([70_001, 17], vec![0]), ([3, 200_000], vec![1]), ([1_001, 513], vec![0, 1])]
    {
        let n = dims[0] * dims[1];
        let values: Vec<f64> = (0..n).map(|i| ((i * 7919) % 1000) as f32 as f64 * 0.1).collect();
        let t = Owned::from_f64(DType::F32, &dims, &values);
        let sum = |threads| {
            with_threads(threads, || {
                let out = out_of(&t.view(), &set, DType::F32);
                reduce(&t.view(), &out.view(), Reduce::Sum, &set).unwrap();
                out.bytes()
            })
        };
        let alone = sum(1);
        assert_eq!(alone, sum(2));
        assert_eq!(alone, sum(3));
        let out = out_of(&t.view(), &set, DType::F32);
        reduce(&t.view(), &out.view(), Reduce::Sum, &set).unwrap();
        for (got, want) in read(&out.view()).into_iter().zip(oracle(&t.view(), Reduce::Sum, &set)) {
            assert!((got - want).abs() <= 2e-7 * want, "{dims:?} {set:?}: {got} {want}");
        }
    }
}

#[test]
fn nan_wins_wherever_it_stands() {
    for n in [1, 63, 64, 200, 5000] {
        for at in [0, n / 2, n - 1] {
            let mut values = vec![1.0; n];
            values[at] = f64::NAN;
            for d in [DType::F32, DType::F16, DType::F64] {
                let t = Owned::from_f64(d, &[n], &values);
                for op in [Reduce::Max, Reduce::Min] {
                    let out = Owned::zeros(d, &[1]);
                    reduce(&t.view(), &out.view(), op, &[0]).unwrap();
                    assert!(read(&out.view())[0].is_nan(), "{n} {at} {op:?}");
                }
            }
        }
    }
}

/// Many rows in a call, of every length around those of the accumulators; NaN and the extreme anywhere.
#[test]
fn rows_of_every_length_and_number() {
    let lengths = (1..20).chain([31, 32, 33, 47, 48, 63, 64, 65, 80, 127, 129, 200]);
    for n in lengths {
        for rows in [1, 7, 8, 9, 64, 65] {
            let number = |i: usize| ((i * 7919 + n) % 23) as f64 - 11.0;
            for d in [DType::F32, DType::F64, DType::BF16, DType::I32] {
                let mut values: Vec<f64> = (0..rows * n).map(number).collect();
                if d.is_float() {
                    values[(rows * n) / 2] = f64::NAN;
                }
                let lying = Owned::from_f64(d, &[rows, n], &values);
                let standing = Owned::from_f64(d, &[n, rows], &values);
                for x in [lying.view(), standing.permuted(&[1, 0])] {
                    for op in [Reduce::Sum, Reduce::Max, Reduce::Min] {
                        let out = out_of(&x, &[1], if d.is_float() { DType::F64 } else { DType::I64 });
                        reduce(&x, &out.view(), op, &[1]).unwrap();
                        let (have, want) = (read(&out.view()), oracle(&x, op, &[1]));
                        let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
                        assert!(have.iter().zip(&want).all(same), "{d} {rows} {n} {op:?}: {have:?} {want:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn empty_gives_the_identity() {
    let x = Owned::zeros(DType::F32, &[0, 2]);
    for (op, want) in
        [(Reduce::Sum, 0.0), (Reduce::Prod, 1.0), (Reduce::Max, f64::NEG_INFINITY), (Reduce::Min, f64::INFINITY)]
    {
        let out = Owned::from_f64(DType::F32, &[1, 2], &[7.0, 7.0]);
        reduce(&x.view(), &out.view(), op, &[0]).unwrap();
        assert_eq!(read(&out.view()), [want; 2]);
    }
    let ints = Owned::zeros(DType::I8, &[0]);
    let out = Owned::zeros(DType::I8, &[1]);
    reduce(&ints.view(), &out.view(), Reduce::Max, &[0]).unwrap();
    assert_eq!(read(&out.view()), [-128.0]);
    reduce(&x.view(), &Owned::zeros(DType::F32, &[0, 1]).view(), Reduce::Sum, &[1]).unwrap();
}

#[test]
fn halves_sum_in_f32() {
    let t = Owned::from_f64(DType::BF16, &[1000], &[1.0; 1000]);
    let out = Owned::zeros(DType::BF16, &[1]);
    reduce(&t.view(), &out.view(), Reduce::Sum, &[0]).unwrap();
    assert_eq!(read(&out.view()), [1000.0]);
}

#[test]
fn running_sums() {
    let t = Owned::from_f64(DType::I32, &[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let out = Owned::zeros(DType::I64, &[2, 3]);
    cumsum(&t.view(), &out.view(), 1, false).unwrap();
    assert_eq!(read(&out.view()), [1., 3., 6., 4., 9., 15.]);
    cumsum(&t.view(), &out.view(), 0, false).unwrap();
    assert_eq!(read(&out.view()), [1., 2., 3., 5., 7., 9.]);
    cumsum(&t.view(), &out.view(), 1, true).unwrap();
    assert_eq!(read(&out.view()), [6., 5., 3., 15., 11., 6.]);
    assert!(cumsum(&t.view(), &out.view(), 2, false).is_err());
}

#[test]
fn wrong_dims_are_refused() {
    let t = Owned::zeros(DType::F32, &[2, 3]);
    let e = reduce(&t.view(), &t.view(), Reduce::Sum, &[1]).unwrap_err();
    assert_eq!(e.0, "reducing [2, 3] over [1] does not give [2, 3]");
}

/// Reductions over the last dims of what is computed in their blocks, beside reductions of what was stored: one line and several, pieces of
/// long lines, operands of any strides.
#[test]
fn a_fused_reduction_has_the_bits_of_one_of_what_is_stored() {
    let mut rng = Random::new(11);
    let chains = ["x0", "x0 * x1; t0 - x0", "x0 - x1; t0 * t0", "x0 + x1; max(t0, x1); t1 * x0 + t0", "x0 > x1"];
    let halves = ["x0 * x1 as bf16; tanh(t0); t1 + t0", "exp(x1) as f16; t0 - x0"];
    let shapes: [&[usize]; 14] = [
        &[4, 7],
        &[300],
        &[],
        &[1, 1],
        &[0, 3],
        &[3, 0],
        &[2, 5000],
        &[70_000],
        &[3, 1, 40],
        &[5000, 3],
        &[33, 2, 129],
        &[200_000],
        &[2, 9000],
        &[4096],
    ];
    let mut compared = [0; 2];
    for round in 0..500 {
        let mut one_of = |n: usize| rng.below(n);
        let dtype = [DType::F32, DType::BF16, DType::F16, DType::F64, DType::I64, DType::I32][one_of(6)];
        let compute = match dtype {
            DType::F64 => DType::F64,
            DType::I64 | DType::I32 => DType::I64,
            _ => DType::F32,
        };
        let rounds = compute == DType::F32 && one_of(3) == 0;
        let text = if rounds { halves[one_of(halves.len())] } else { chains[one_of(chains.len())] };
        let made_dtype = if text == "x0 > x1" { DType::Bool } else { dtype };
        let shape = shapes[one_of(shapes.len())];
        let last = one_of(shape.len() + 1);
        let mean = made_dtype.is_float() && one_of(4) == 0;
        let op = if mean { Reduce::Sum } else { OPS[one_of(OPS.len())] };
        let repeats: Vec<bool> = shape.iter().map(|n| *n > 0 && one_of(4) == 0).collect();
        let small: Vec<usize> = shape.iter().zip(repeats).map(|(n, repeats)| if repeats { 1 } else { *n }).collect();
        let inputs = [Tensor::random(&mut rng, dtype, shape), Tensor::random(&mut rng, dtype, &small)];
        let views = inputs.each_ref().map(Tensor::view);
        let chain = Chain::parse(text, 2).unwrap();
        let program = Program::compile_chain(&chain, &[dtype; 2], made_dtype, compute).unwrap();
        let stored = Owned::zeros(made_dtype, shape);
        program.run(&views, &[], &stored.view()).unwrap();
        let dims: Vec<usize> = (shape.len() - last..shape.len()).collect();
        let wide = if made_dtype.is_float() { made_dtype } else { DType::I64 };
        let out_dtype = if matches!(op, Reduce::Max | Reduce::Min) { made_dtype } else { wide };
        let count = mean.then(|| 1 + dims.iter().map(|d| shape[*d]).product::<usize>());
        let want = out_of(&stored.view(), &dims, out_dtype);
        match count {
            Some(n) => oflow_kernels::cpu::reduce::mean(&stored.view(), &want.view(), &dims, n).unwrap(),
            None => reduce(&stored.view(), &want.view(), op, &dims).unwrap(),
        }
        for threads in [1, 3] {
            let have = out_of(&stored.view(), &dims, out_dtype);
            with_threads(threads, || fused(&program, &views, shape, &have.view(), op, (last, count)).unwrap());
            // One NaN is as another.
            let bits = |t: &Owned| -> Vec<u64> {
                read(&t.view()).into_iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
            };
            let same = if out_dtype.is_float() { bits(&have) == bits(&want) } else { have.bytes() == want.bytes() };
            let what = || format!("{round}: {op:?} of {text} over {last} of {shape:?} {dtype}, mean {mean}");
            assert!(same, "{}: {:?} {:?}", what(), read(&have.view()), read(&want.view()));
        }
        compared[usize::from(shape.iter().product::<usize>() > 4096)] += 1;
    }
    assert!(compared.iter().all(|n| *n > 100), "{compared:?}");
}

#[test]
fn a_fused_reduction_that_cannot_be_is_an_error() {
    let x = Owned::from_f64(DType::I64, &[2, 3], &[1.0, 2.0, 0.0, 4.0, 5.0, 6.0]);
    let run = |text: &str, dims: &[usize], out: &View, last: usize| {
        let chain = Chain::parse(text, 1).unwrap();
        let program = Program::compile_chain(&chain, &[DType::I64], DType::I64, DType::I64).unwrap();
        fused(&program, &[x.view()], dims, out, Reduce::Sum, (last, None)).map_err(|e| e.to_string())
    };
    let (rows, wide) = (Owned::zeros(DType::I64, &[2, 1]), Owned::zeros(DType::I64, &[2, 3]));
    run("x0 * x0", &[2, 3], &rows.view(), 1).unwrap();
    assert_eq!(read(&rows.view()), [5.0, 77.0]);
    for (found, says) in [
        (run("x0 * x0", &[2, 3], &rows.view(), 3), "no fused reduction of [2, 3] over the last 3 dims"),
        (run("x0 * x0", &[2, 3], &wide.view(), 1), "reducing [2, 3] over [1] does not give [2, 3]"),
        (run("x0 * x0", &[2, 4], &rows.view(), 1), "do not broadcast to [2, 4]"),
        (run("remainder(4, x0)", &[2, 3], &rows.view(), 1), "expected a divisor without zeros"),
    ] {
        assert!(found.clone().unwrap_err().contains(says), "{found:?}");
    }
}
