use crate::rig::Rig;
use crate::samples::{Tensor, tolerance};
use oflow_base::Random;
use oflow_kernels::cpu::elementwise;
use oflow_kernels::cuda::elementwise::*;
use oflow_kernels::expr::{BinaryOp, Chain, Expr, UnaryOp};
use oflow_kernels::{DType, Scalar, View};

/// Runs the expression on both and compares. `make` lays an input out.
fn check(rig: &Rig, rng: &mut Random, expr: &Expr, inputs: &[(DType, &[usize])], out: (DType, &[usize]), random: bool) {
    let mut make = |d: DType, dims: &[usize]| match random {
        true => Tensor::random(rng, d, dims),
        false => Tensor::contiguous(rng, d, dims),
    };
    let xs: Vec<Tensor> = inputs.iter().map(|(d, dims)| make(*d, dims)).collect();
    let y = make(out.0, out.1);
    let scalars = [Scalar::Float(0.75), Scalar::Int(3)];
    let dtypes: Vec<DType> = inputs.iter().map(|i| i.0).collect();
    let (on_gpu, y_gpu): (Vec<_>, _) = (xs.iter().map(|x| rig.put(x)).collect(), rig.put(&y));
    let views: Vec<View> = xs.iter().map(Tensor::view).collect();
    elementwise::Program::compile(expr, &dtypes, out.0).unwrap().run(&views, &scalars, &y.view()).unwrap();
    let views: Vec<View> = on_gpu.iter().map(|x| x.view()).collect();
    let program = Program::compile(expr, &dtypes, out.0).unwrap();
    program.run(&rig.queue(), &views, &scalars, &y_gpu.view()).unwrap_or_else(|e| panic!("{expr}: {e}"));
    // One step apart where the functions round differently: of the output, not of the arithmetic.
    let relative =
        tolerance(out.0).max(if dtypes.iter().chain([&out.0]).any(|d| *d == DType::F64) { 1e-12 } else { 0.0 });
    rig.expect(&y_gpu, &y, relative, &format!("{expr} of {inputs:?}"));
}

fn parse(text: &str) -> Expr {
    Expr::parse(text, &["a", "b", "c"], &["s", "t"]).unwrap()
}

#[test]
fn all_functions() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(1);
    // All functions of one kind in one program, told apart by a selection on the second input: one compilation.
    for dtype in [DType::F32, DType::F64, DType::I64] {
        let float = dtype.is_float();
        let mut parts = vec![];
        for op in UnaryOp::ALL {
            if if float { !op.needs_int() } else { !op.needs_float() } {
                parts.push(Expr::unary(*op, Expr::Input(0)));
            }
        }
        for op in BinaryOp::ALL.iter().filter(|op| !op.makes_complex()) {
            if if float { !op.needs_int() } else { !op.needs_float() } {
                parts.push(Expr::binary(*op, Expr::Input(0), Expr::Input(1)));
            }
        }
        let kinds = parts.len();
        for (i, e) in parts.iter().enumerate() {
            assert!(e.cuda_source(&[dtype, dtype], dtype, dtype).is_ok(), "{i}");
        }
        let all = parts.into_iter().enumerate().fold(Expr::Const(0.0), |rest, (i, e)| {
            let here = Expr::binary(BinaryOp::Eq, Expr::Input(2), Expr::Const(i as f64));
            Expr::select(here, e, rest)
        });
        let special: Vec<f64> = match float {
            true => vec![0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-6, 30.0, -30.0, f64::INFINITY, f64::NAN, -3.0],
            false => vec![0.0, 1.0, -1.0, 7.0, -7.0, 2.0, -3.0, 5.0],
        };
        let n = special.len();
        let dims = [kinds, n, n];
        let a: Vec<f64> = (0..kinds * n * n).map(|i| special[i / n % n]).collect();
        let b: Vec<f64> = (0..kinds * n * n).map(|i| special[i % n]).collect();
        let c: Vec<f64> = (0..kinds * n * n).map(|i| (i / (n * n)) as f64).collect();
        let xs = [a, b, c].map(|v| Tensor::of(dtype, &dims, &v));
        let y = Tensor::contiguous(&mut rng, dtype, &dims);
        let gpu: Vec<_> = xs.iter().map(|x| rig.put(x)).collect();
        let y_gpu = rig.put(&y);
        let views: Vec<View> = xs.iter().map(Tensor::view).collect();
        elementwise::Program::compile(&all, &[dtype; 3], dtype).unwrap().run(&views, &[], &y.view()).unwrap();
        let views: Vec<View> = gpu.iter().map(|x| x.view()).collect();
        Program::compile(&all, &[dtype; 3], dtype).unwrap().run(&rig.queue(), &views, &[], &y_gpu.view()).unwrap();
        rig.expect(&y_gpu, &y, tolerance(dtype), "all functions");
    }
}

#[test]
fn layouts_and_dtypes() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(2);
    let sum = parse("a * s + b");
    for (a, b, out) in [
        (DType::F32, DType::F32, DType::F32),
        (DType::BF16, DType::F32, DType::F32),
        (DType::F16, DType::F16, DType::F16),
        (DType::I64, DType::Bool, DType::I64),
        (DType::U8, DType::I32, DType::I32),
        (DType::F64, DType::F16, DType::F64),
    ] {
        // Contiguous with a tail; a number; a row; a column; both sides.
        for (x, y, z) in [
            (&[3, 37][..], &[3, 37][..], &[3, 37][..]),
            (&[5, 64], &[], &[5, 64]),
            (&[6, 64], &[64], &[6, 64]),
            (&[6, 64], &[6, 1], &[6, 64]),
            (&[2, 1, 16], &[3, 1], &[2, 3, 16]),
        ] {
            check(&rig, &mut rng, &sum, &[(a, x), (b, y)], (out, z), false);
        }
        check(&rig, &mut rng, &sum, &[(a, &[4, 9, 5]), (b, &[9, 1])], (out, &[4, 9, 5]), true);
    }
    let less = parse("a < b");
    check(&rig, &mut rng, &less, &[(DType::F32, &[7, 11]), (DType::F32, &[11])], (DType::Bool, &[7, 11]), false);
    let pick = parse("select(a, b, c)");
    check(
        &rig,
        &mut rng,
        &pick,
        &[(DType::Bool, &[7, 16]), (DType::F32, &[7, 16]), (DType::F32, &[1])],
        (DType::F32, &[7, 16]),
        false,
    );
    for _ in 0..12 {
        let dims = [1 + rng.below(5), 1 + rng.below(40), 1 + rng.below(9)];
        check(&rig, &mut rng, &sum, &[(DType::F32, &dims), (DType::F32, &dims[1..])], (DType::F32, &dims), true);
    }
    check(&rig, &mut rng, &sum, &[(DType::F32, &[]), (DType::F32, &[])], (DType::F32, &[]), false);
    check(&rig, &mut rng, &sum, &[(DType::F32, &[0, 4]), (DType::F32, &[4])], (DType::F32, &[0, 4]), false);
}

#[test]
fn conversions_saturate_as_on_the_cpu() {
    let Some(rig) = Rig::new() else { return };
    let values = [300.7, -300.7, 3e9, -3e9, 1e19, -1e19, f64::NAN, 0.5, -0.5, 127.9, 255.5, 65520.0];
    for from in [DType::F32, DType::F64, DType::BF16] {
        for to in [DType::U8, DType::I8, DType::I32, DType::I64, DType::Bool, DType::F16] {
            let x = Tensor::of(from, &[values.len()], &values);
            let y = Tensor::contiguous(&mut Random::new(3), to, &[values.len()]);
            let (gx, gy) = (rig.put(&x), rig.put(&y));
            oflow_kernels::cpu::copy::copy(&x.view(), &y.view()).unwrap();
            oflow_kernels::cuda::copy::copy(&rig.queue(), &gx.view(), &gy.view()).unwrap();
            rig.expect(&gy, &y, 0.0, &format!("{from} to {to}"));
        }
    }
}

#[test]
fn in_place_and_composed() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(4);
    // A bias and a GELU in one pass over memory.
    let gelu = parse("0.5 * a * (1 + erf(a * 0.7071067811865476))");
    let fused = gelu.substitute(&[parse("a + b")], &[], None);
    check(&rig, &mut rng, &fused, &[(DType::BF16, &[9, 32]), (DType::BF16, &[32])], (DType::BF16, &[9, 32]), false);
    for (dims, random) in [(&[4, 33][..], false), (&[5, 6, 7], true)] {
        let x = if random {
            Tensor::random(&mut rng, DType::F32, dims)
        } else {
            Tensor::contiguous(&mut rng, DType::F32, dims)
        };
        let row = Tensor::contiguous(&mut rng, DType::F32, &dims[dims.len() - 1..]);
        let (gx, grow) = (rig.put(&x), rig.put(&row));
        let cpu = elementwise::Program::compile(&fused, &[DType::F32; 2], DType::F32).unwrap();
        cpu.run(&[x.view(), row.view()], &[], &x.view()).unwrap();
        let program = Program::compile(&fused, &[DType::F32; 2], DType::F32).unwrap();
        program.run(&rig.queue(), &[gx.view(), grow.view()], &[], &gx.view()).unwrap();
        rig.expect(&gx, &x, tolerance(DType::F32), "in place");
    }
}

#[test]
fn chains() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(6);
    let (f, h, b, i) = (DType::F32, DType::BF16, DType::F16, DType::I64);
    for (text, given, out, compute) in [
        ("x0 * x1; t0 + x0; t1 * x1; t2 - t0", [f, f], f, f),
        ("x0 * x1 as bf16; t0 + x0 as bf16; t1 * t1", [h, h], h, f),
        ("x0 * x0 as f16; max(t0, x1) as bf16; t0 - t1", [f, b], f, f),
        ("x0 > x1; select(t0, x0, 0.5) as u8; t1 + x1", [f, f], f, f),
        ("x0 * x1 as i32; t0 + x1 as u8; t1 - 7", [i, DType::Bool], i, i),
        ("x0 * x1 as f32; t0 + x0", [DType::F64, f], h, DType::F64),
    ] {
        let chain = Chain::parse(text, 2).unwrap();
        for (x, y, z) in [([5, 37], &[37][..], [5, 37]), ([6, 64], &[6, 1], [6, 64]), ([3, 50], &[3, 50], [3, 50])] {
            let xs = [Tensor::contiguous(&mut rng, given[0], &x), Tensor::contiguous(&mut rng, given[1], y)];
            let made = Tensor::random(&mut rng, out, &z);
            let (on_gpu, made_gpu): (Vec<_>, _) = (xs.iter().map(|x| rig.put(x)).collect(), rig.put(&made));
            let views: Vec<View> = xs.iter().map(Tensor::view).collect();
            let cpu = elementwise::Program::compile_chain(&chain, &given, out, compute).unwrap();
            cpu.run(&views, &[], &made.view()).unwrap();
            let views: Vec<View> = on_gpu.iter().map(|x| x.view()).collect();
            let program = Program::compile_chain(&chain, &given, out, compute).unwrap();
            program.run(&rig.queue(), &views, &[], &made_gpu.view()).unwrap();
            // Sums, products and choices alone: the same bits.
            rig.expect(&made_gpu, &made, 0.0, text);
        }
    }
}

#[test]
fn unaligned_windows() {
    let Some(rig) = Rig::new() else { return };
    let mut rng = Random::new(5);
    let twice = parse("a + a");
    for offset in 0..3 {
        let base = Tensor::contiguous(&mut rng, DType::F32, &[100]);
        let out = Tensor::contiguous(&mut rng, DType::F32, &[100]);
        let part = |v: View| v.sub_box(&[offset], &[90]).unwrap();
        let (gx, gy) = (rig.put(&base), rig.put(&out));
        let cpu = elementwise::Program::compile(&twice, &[DType::F32], DType::F32).unwrap();
        cpu.run(&[part(base.view())], &[], &part(out.view())).unwrap();
        let program = Program::compile(&twice, &[DType::F32], DType::F32).unwrap();
        program.run(&rig.queue(), &[part(gx.view())], &[], &part(gy.view())).unwrap();
        rig.expect(&gy, &out, 0.0, "an unaligned window");
    }
}

#[test]
fn integers_divided_by_zero_are_reported() {
    let Some(rig) = Rig::new() else { return };
    let (scalars, mut rng) = ([Scalar::Int(0), Scalar::Int(1)], Random::new(5));
    for (text, fails) in [
        ("floordiv(a, b)", true),
        ("c + remainder(a, b)", true),
        ("fmod(a, s)", true),
        ("fmod(a, t)", false),
        ("select(b == 0, 0, floordiv(a, b))", false),
    ] {
        for (dims, zeros) in [(vec![700], true), (vec![5, 7], true), (vec![700], false)] {
            let n: usize = dims.iter().product();
            let b: Vec<f64> = (0..n).map(|i| if zeros && i == n - 1 { 0.0 } else { 3.0 }).collect();
            let xs = [Tensor::of(DType::I64, &dims, &vec![7.0; n]), Tensor::of(DType::I64, &dims, &b)];
            let y = rig.put(&Tensor::contiguous(&mut rng, DType::I64, &dims));
            let gpu: Vec<_> = [&xs[0], &xs[1], &xs[0]].iter().map(|x| rig.put(x)).collect();
            let views: Vec<View> = gpu.iter().map(|x| x.view()).collect();
            let program = Program::compile(&parse(text), &[DType::I64; 3], DType::I64).unwrap();
            program.run(&rig.queue(), &views, &scalars, &y.view()).unwrap();
            rig.get(&y);
            let fault = rig.faults.take();
            let want = fails && (zeros || text.contains('s'));
            assert_eq!(fault.is_some(), want, "{text} of {dims:?}");
            if let Some(fault) = fault {
                assert!(fault.to_string().contains("got a 0"), "{fault}");
            }
        }
    }
}
