use crate::expr::{random, value};
use crate::owned::{Owned, read};
use crate::threads::with_threads;
use oflow_base::Random;
use oflow_kernels::cpu::elementwise::*;
use oflow_kernels::expr::{BinaryOp, Expr, UnaryOp};
use oflow_kernels::{DType, Result, Scalar, View};

fn program(text: &str, inputs: &[DType], out: DType) -> Program {
    Program::compile(&Expr::parse(text, &["a", "b", "c"], &["s"]).unwrap(), inputs, out).unwrap()
}

fn values(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Random::new(seed);
    (0..n).map(|_| (value(&mut rng) * 8.0).round() / 8.0).collect()
}

/// The interpreter against `Expr::eval`, on random expressions in f64.
#[test]
fn agrees_with_the_definition() {
    let mut rng = Random::new(11);
    let unary: Vec<UnaryOp> = UnaryOp::ALL.iter().copied().filter(|op| !op.needs_int()).collect();
    let binary: Vec<BinaryOp> =
        BinaryOp::ALL.iter().copied().filter(|op| !op.needs_int() && !op.makes_complex()).collect();
    for round in 0..400 {
        let e = random(&mut rng, 4, &unary, &binary);
        let n = [1, 31, 64, 700][round % 4];
        let x: Vec<Owned> =
            (0..3).map(|i| Owned::from_f64(DType::F64, &[n], &values(n, (round * 3 + i) as u64))).collect();
        let views: Vec<View> = x.iter().map(Owned::view).collect();
        let out = Owned::zeros(DType::F64, &[n]);
        let p = Program::compile(&e, &[DType::F64; 3], DType::F64).unwrap();
        p.run(&views, &[Scalar::Float(1.5)], &out.view()).unwrap();
        let input: Vec<Vec<f64>> = views.iter().map(read).collect();
        let simple = e.simplify();
        for (i, got) in read(&out.view()).into_iter().enumerate() {
            let want = simple.eval(&[input[0][i], input[1][i], input[2][i]], f64::NAN, &[1.5]);
            assert!(got == want || (got.is_nan() && want.is_nan()), "{e}: {got} not {want}");
        }
    }
}

/// Contiguous, permuted, broadcast, offset and threaded runs give the same bits as plain contiguous ones.
#[test]
fn layouts_and_threads_do_not_change_bits() {
    let p = program("tanh(a) * b + select(b > c, exp(c), sin(a))", &[DType::F32, DType::BF16, DType::F32], DType::F32);
    for dims in [[3usize, 5, 7], [2, 150, 130], [40, 9, 130], [130, 2, 300], [0, 2, 3]] {
        let n: usize = dims.iter().product();
        let flipped = [dims[2], dims[0], dims[1]];
        let a = Owned::from_f64(DType::F32, &flipped, &values(n, 1));
        let a = a.permuted(&[1, 2, 0]);
        let b = Owned::from_f64(DType::BF16, &[dims[1], 1], &values(dims[1], 2));
        let c = Owned::from_f64(DType::F32, &[dims[2]], &values(dims[2], 3));
        let full = |v: &View| {
            let strides = oflow_kernels::cpu::strided::broadcast_strides(v, &dims).unwrap();
            // SAFETY: broadcasting addresses elements of the view.
            let wide = unsafe { v.restride(0, dims.as_slice().into(), strides) };
            Owned::from_f64(v.dtype(), &dims, &read(&wide))
        };
        let (ca, cb, cc) = (full(&a), full(&b.view()), full(&c.view()));
        let plain = Owned::zeros(DType::F32, &dims);
        p.run(&[ca.view(), cb.view(), cc.view()], &[], &plain.view()).unwrap();
        for threads in [1, 2] {
            with_threads(threads, || {
                let out = Owned::zeros(DType::F32, &dims);
                p.run(&[a.clone(), b.view(), c.view()], &[], &out.view()).unwrap();
                assert_eq!(out.bytes(), plain.bytes(), "{dims:?} {threads}");
                let strided = Owned::zeros(DType::F32, &[dims[1], dims[2], dims[0]]);
                let window = strided.permuted(&[2, 0, 1]);
                p.run(&[a.clone(), b.view(), c.view()], &[], &window).unwrap();
                let bits = |v: &View| read(v).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&window), bits(&plain.view()), "{dims:?} {threads}");
            });
        }
    }
}

/// Operands of every element size that lie side by side along another dim than the output, at the edges of blocks.
#[test]
fn operands_that_cross() {
    for d in [DType::U8, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128] {
        for [rows, columns] in [[70usize, 1100usize], [9, 130], [600, 33]] {
            let n = rows * columns;
            let whole = |i: usize| (i % 100) as f64;
            let a = Owned::from_f64(d, &[columns, rows], &(0..n).map(whole).collect::<Vec<_>>());
            let b = Owned::from_f64(d, &[rows, columns], &(0..n).map(|i| whole(i * 3)).collect::<Vec<_>>());
            let out = Owned::zeros(d, &[rows, columns]);
            program("a + b", &[d, d], d).run(&[a.permuted(&[1, 0]), b.view()], &[], &out.view()).unwrap();
            let (x, y) = (read(&a.permuted(&[1, 0])), read(&b.view()));
            let want: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
            assert_eq!(read(&out.view()), want, "{d} {rows} {columns}");
            program("a", &[d], d).run(&[a.permuted(&[1, 0])], &[], &out.view()).unwrap();
            assert_eq!(read(&out.view()), x, "{d} {rows} {columns}");
        }
    }
}

/// Fused into one instruction or not, each operation rounds by itself, also where the output is an operand.
#[test]
fn pairs_round_twice() {
    let apply = |op: &str, a: f32, b: f32| match op {
        "+" => a + b,
        "-" => a - b,
        _ => a * b,
    };
    for first in ["+", "-", "*"] {
        for second in ["+", "-", "*"] {
            for n in [1, 63, 200, 1000] {
                let x: Vec<Vec<f64>> =
                    (1..4).map(|seed| values(n, seed).iter().map(|v| (v * 1.1) as f32 as f64).collect()).collect();
                let [a, b, c] = [0, 1, 2].map(|i| Owned::from_f64(DType::F32, &[n], &x[i]));
                let inputs = [a.view(), b.view(), c.view()];
                for (text, left) in
                    [(format!("(a {first} b) {second} c"), true), (format!("c {second} (a {first} b)"), false)]
                {
                    let want: Vec<f64> = (0..n)
                        .map(|i| {
                            let [a, b, c] = [0, 1, 2].map(|k| x[k][i] as f32);
                            let inner = apply(first, a, b);
                            (if left { apply(second, inner, c) } else { apply(second, c, inner) }) as f64
                        })
                        .collect();
                    let p = program(&text, &[DType::F32; 3], DType::F32);
                    let out = Owned::zeros(DType::F32, &[n]);
                    p.run(&inputs, &[], &out.view()).unwrap();
                    assert_eq!(read(&out.view()), want, "{text} {n}");
                    let own = Owned::from_f64(DType::F32, &[n], &x[2]);
                    p.run(&[a.view(), b.view(), own.view()], &[], &own.view()).unwrap();
                    assert_eq!(read(&own.view()), want, "{text} {n} in place");
                }
            }
        }
    }
}

/// Functions that are joined into one instruction, on numbers where an order of comparison would show.
#[test]
fn clamps_and_selections_by_a_comparison() {
    let special = [f64::NAN, -0.0, 0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 2.5];
    let compared = ["==", "!=", "<", "<=", ">", ">="].map(|op| format!("select(a {op} b, c, a)"));
    let texts =
        ["min(max(a, b), c)", "max(min(a, b), c)", "min(c, max(a, b))", "select(isnan(a), b, c)"].map(String::from);
    for text in texts.iter().chain(&compared) {
        for (d, integers) in [(DType::F32, false), (DType::F64, false), (DType::I64, true)] {
            for n in [1usize, 31, 33, 512, 5000] {
                let number = |i: usize| match integers {
                    true => (i % 7) as f64 - 3.0,
                    false => special[i % 8],
                };
                let all = [1usize, 8, 64].map(|step| (0..n).map(|i| number(i / step)).collect::<Vec<_>>());
                let x: Vec<Owned> = all.iter().map(|v| Owned::from_f64(d, &[n], v)).collect();
                let out = Owned::zeros(d, &[n]);
                let views: Vec<View> = x.iter().map(Owned::view).collect();
                program(text, &[d; 3], d).run(&views, &[], &out.view()).unwrap();
                let e = Expr::parse(text, &["a", "b", "c"], &["s"]).unwrap();
                for (i, got) in read(&out.view()).into_iter().enumerate() {
                    let want = e.eval(&[all[0][i], all[1][i], all[2][i]], f64::NAN, &[]);
                    assert!(
                        got == want || (got.is_nan() && want.is_nan()),
                        "{text} of {d}, {n}, {i}: {got} not {want}"
                    );
                }
            }
        }
    }
}

/// Values that are the same for all elements are computed once, also where several of them depend on each other.
#[test]
fn values_of_numbers_only() {
    let text = "select(s < 0.5, a + s * (b - a), b - (b - a) * (1 - s)) + exp(s * 2) * a";
    let p = program(text, &[DType::F64; 2], DType::F64);
    let e = Expr::parse(text, &["a", "b", "c"], &["s"]).unwrap().simplify();
    for (n, weight) in [(1usize, 0.25), (700, 0.75), (5000, 0.5)] {
        let (a, b) = (values(n, 1), values(n, 2));
        let out = Owned::zeros(DType::F64, &[n]);
        let [x, y] = [&a, &b].map(|v| Owned::from_f64(DType::F64, &[n], v));
        p.run(&[x.view(), y.view()], &[Scalar::Float(weight)], &out.view()).unwrap();
        for (i, got) in read(&out.view()).into_iter().enumerate() {
            assert_eq!(got, e.eval(&[a[i], b[i]], f64::NAN, &[weight]), "{n} {i}");
        }
    }
}

/// Powers with one exponent for all elements, whose logarithm is not taken.
#[test]
fn powers_with_one_exponent() {
    let mut numbers = vec![f64::NAN, -0.0, 0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 1e30, 1e-30, -1e-30];
    numbers.extend((1..3000).map(|i| (i as f64 - 1000.0) * 0.37));
    for d in [DType::F32, DType::F64] {
        let x = Owned::from_f64(d, &[numbers.len()], &numbers);
        let out = Owned::zeros(d, &[numbers.len()]);
        for exponent in [2.0, 3.0, 0.5, -1.0, 1.5, 0.0] {
            let p = program("pow(a, s)", &[d], d);
            p.run(&[x.view()], &[Scalar::Float(exponent)], &out.view()).unwrap();
            for (v, got) in read(&x.view()).into_iter().zip(read(&out.view())) {
                let want = if d == DType::F32 { f64::from((v.powf(exponent)) as f32) } else { v.powf(exponent) };
                let near = (got - want).abs() <= 4e-7 * want.abs() && got.is_sign_negative() == want.is_sign_negative();
                assert!(
                    got == want && got.is_sign_negative() == want.is_sign_negative()
                        || near
                        || (got.is_nan() && want.is_nan()),
                    "{d}: {v} ^ {exponent} is {got}, not {want}"
                );
            }
        }
    }
    let x = Owned::from_f64(DType::I64, &[5], &[-3.0, 0.0, 1.0, 7.0, 3e9]);
    let out = Owned::zeros(DType::I64, &[5]);
    for exponent in [2i64, 3, 4] {
        program("pow(a, s)", &[DType::I64], DType::I64)
            .run(&[x.view()], &[Scalar::Int(exponent)], &out.view())
            .unwrap();
        let want = [-3i64, 0, 1, 7, 3_000_000_000].map(|v| v.wrapping_pow(exponent as u32) as f64);
        assert_eq!(read(&out.view()), want, "{exponent}");
    }
}

/// Small integers and conversions, which take no way through the arithmetic's type where all lies side by side, give what they give where
/// it does not.
#[test]
fn stored_types() {
    use oflow_kernels::Builtin;
    let n = 300;
    let numbers: Vec<f64> = (0..n).map(|i| (i as f64 - 150.0) * 3.0).collect();
    let turned: Vec<f64> = numbers.iter().rev().copied().collect();
    for text in ["a + b", "a - b", "a * b"] {
        for d in [DType::U8, DType::I8, DType::I16, DType::U16, DType::I32, DType::U32] {
            let p = program(text, &[d, d], d);
            let whole = |v: &[f64]| v.iter().map(|x| (x.abs() * 40.0) % 120.0).collect::<Vec<_>>();
            let [a, b] = [whole(&numbers), whole(&turned)].map(|v| Owned::from_f64(d, &[n / 3, 3], &v));
            both_ways(&p, &[a.view(), b.view()], d, [n / 3, 3]);
        }
    }
    for from in Builtin::ALL.iter().map(|b| b.dtype()).filter(|d| !d.is_complex()) {
        for to in Builtin::ALL.iter().map(|b| b.dtype()).filter(|d| !d.is_complex()) {
            let p = program("a", &[from], to);
            let a = Owned::from_f64(from, &[n / 3, 3], &numbers);
            both_ways(&p, &[a.view()], to, [n / 3, 3]);
        }
    }
}

/// Runs a program into memory side by side and into another layout, and compares.
fn both_ways(p: &Program, inputs: &[View], out: DType, [rows, columns]: [usize; 2]) {
    let (plain, turned) = (Owned::zeros(out, &[rows, columns]), Owned::zeros(out, &[columns, rows]));
    p.run(inputs, &[], &plain.view()).unwrap();
    p.run(inputs, &[], &turned.permuted(&[1, 0])).unwrap();
    let bits = |v: &View| read(v).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&plain.view()), bits(&turned.permuted(&[1, 0])), "{p:?}");
}

#[test]
fn in_place() {
    for text in ["a * a + b", "exp(a)", "b - a", "select(a > b, a, -a)"] {
        for n in [5, 1000] {
            let p = program(text, &[DType::F32, DType::F32], DType::F32);
            let (x, y) =
                (Owned::from_f64(DType::F32, &[n], &values(n, 4)), Owned::from_f64(DType::F32, &[n], &values(n, 5)));
            let out = Owned::zeros(DType::F32, &[n]);
            p.run(&[x.view(), y.view()], &[], &out.view()).unwrap();
            p.run(&[x.view(), y.view()], &[], &x.view()).unwrap();
            assert_eq!(x.bytes(), out.bytes(), "{text}");
        }
    }
}

#[test]
fn dtypes_and_classes() {
    let run = |text: &str, inputs: &[(DType, &[f64])], out: DType, s: Scalar| {
        let x: Vec<Owned> = inputs.iter().map(|(d, v)| Owned::from_f64(*d, &[v.len()], v)).collect();
        let o = Owned::zeros(out, &[inputs[0].1.len()]);
        let dtypes: Vec<DType> = inputs.iter().map(|(d, _)| *d).collect();
        let views: Vec<View> = x.iter().map(Owned::view).collect();
        program(text, &dtypes, out).run(&views, &[s], &o.view()).unwrap();
        read(&o.view())
    };
    let s = Scalar::Int(2);
    assert_eq!(run("a > b", &[(DType::I32, &[1., 5.]), (DType::I32, &[2., 3.])], DType::Bool, s), [0., 1.]);
    assert_eq!(run("a == a", &[(DType::F32, &[1., f64::NAN])], DType::Bool, s), [1., 0.]);
    assert_eq!(
        run("a / b", &[(DType::I64, &[7., -7., 1.]), (DType::I64, &[2., 2., 3.])], DType::I64, s),
        [3., -3., 0.]
    );
    assert_eq!(run("a * s", &[(DType::U8, &[200., 3.])], DType::U8, s), [144., 6.]);
    assert_eq!(run("a / s", &[(DType::I64, &[7.])], DType::F32, s), [3.5]);
    assert_eq!(run("a + b", &[(DType::F16, &[2048.]), (DType::F16, &[1.])], DType::F16, s), [2048.]);
    assert_eq!(run("a + b", &[(DType::F16, &[2048.]), (DType::F16, &[1.])], DType::F32, s), [2049.]);
    assert_eq!(run("a", &[(DType::F32, &[2.7, -0.3])], DType::I32, s), [2., 0.]);
    assert_eq!(run("and(a, not(b))", &[(DType::Bool, &[1., 1.]), (DType::Bool, &[0., 1.])], DType::Bool, s), [1., 0.]);
    assert_eq!(run("3", &[(DType::F32, &[0., 0.])], DType::F32, s), [3., 3.]);
    assert_eq!(run("max(a, s)", &[(DType::F32, &[f64::NAN, 1.0])], DType::F32, s)[1], 2.0);
    assert!(run("max(a, s)", &[(DType::F32, &[f64::NAN])], DType::F32, s)[0].is_nan());
}

#[test]
fn sine_of_huge_arguments_does_not_depend_on_neighbours() {
    let p = program("sin(a)", &[DType::F32], DType::F32);
    let mixed = Owned::from_f64(DType::F32, &[3], &[0.5, 3e8, 7.25]);
    let out = Owned::zeros(DType::F32, &[3]);
    p.run(&[mixed.view()], &[], &out.view()).unwrap();
    let near = Owned::from_f64(DType::F32, &[1], &[7.25]);
    let alone = Owned::zeros(DType::F32, &[1]);
    p.run(&[near.view()], &[], &alone.view()).unwrap();
    assert_eq!(read(&out.view())[2], read(&alone.view())[0]);
    assert!((read(&out.view())[1] - 3e8f64.sin()).abs() < 1e-6);
}

#[test]
fn refusals() {
    let x = Owned::zeros(DType::F32, &[2, 3]);
    let p = program("a + s", &[DType::F32], DType::F32);
    let e = |r: Result<()>| r.unwrap_err().0;
    assert_eq!(e(p.run(&[x.view()], &[], &x.view())), "1 inputs and 0 scalars given, 1 and 1 needed");
    let s = [Scalar::Int(1)];
    let other = Owned::zeros(DType::F64, &[2, 3]);
    assert_eq!(e(p.run(&[other.view()], &s, &x.view())), "given f64 where the kernel was compiled for f32");
    let wrong = Owned::zeros(DType::F32, &[2]);
    assert_eq!(e(p.run(&[wrong.view()], &s, &x.view())), "dims [2] do not broadcast to [2, 3]");
    let big = Owned::zeros(DType::F32, &[1, 1, 1]);
    assert!(e(p.run(&[big.view()], &s, &x.view())).contains("do not broadcast"));
    assert!(Program::compile(&Expr::Output, &[], DType::F32).is_err());
}

/// Each function that divides, as an operand, a number, a part of a longer expression, in each way through memory: a run fails
/// where a divisor is 0, and only there. An arm of a selection is its author's.
#[test]
fn integers_are_not_divided_by_zero() {
    let texts = [
        "floordiv(a, b)",
        "remainder(a, b)",
        "fmod(a, b)",
        "a / b",
        "c + floordiv(a, b - c)",
        "-remainder(a + c, b * 2)",
    ];
    for d in [DType::U8, DType::I8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64] {
        for text in texts {
            let p = program(text, &[d; 3], d);
            for (dims, transposed) in [(vec![3], false), (vec![700], false), (vec![40, 50], true), (vec![0], false)] {
                let n: usize = dims.iter().product();
                let filled = |x: f64, at: Option<(usize, f64)>| {
                    let mut v = vec![x; n];
                    if let Some((i, x)) = at.filter(|_| n > 0) {
                        v[i] = x;
                    }
                    Owned::from_f64(d, &dims, &v)
                };
                let zero_of_divisor = if text.contains("b - c") { 2.0 } else { 0.0 };
                for at in [None, Some((n.saturating_sub(1), zero_of_divisor)), Some((n / 2, zero_of_divisor))] {
                    let (a, b, c, y) = (filled(7.0, None), filled(3.0, at), filled(2.0, None), Owned::zeros(d, &dims));
                    let turned = |t: &Owned| if transposed { t.permuted(&[1, 0]) } else { t.view() };
                    let out = if transposed { Owned::zeros(d, &[dims[1], dims[0]]) } else { y };
                    let run = p.run(&[turned(&a), turned(&b), turned(&c)], &[Scalar::Int(0)], &out.view());
                    assert_eq!(run.is_err(), at.is_some() && n > 0, "{text} of {d} {dims:?} {at:?}: {run:?}");
                }
            }
        }
        for (text, fails) in [("floordiv(a, s)", true), ("select(b == 0, 0, a / b)", false), ("remainder(a, 0)", true)]
        {
            let (a, y) = (Owned::from_f64(d, &[4], &[7.0; 4]), Owned::zeros(d, &[4]));
            let b = Owned::from_f64(d, &[4], &[0.0; 4]);
            let run = program(text, &[d; 3], d).run(&[a.view(), b.view(), a.view()], &[Scalar::Int(0)], &y.view());
            assert_eq!(run.is_err(), fails, "{text} of {d}");
        }
    }
    // Floats divide by 0 as they always do.
    let (a, y) = (Owned::from_f64(DType::F32, &[4], &[0.0; 4]), Owned::zeros(DType::F32, &[4]));
    program("floordiv(a, b)", &[DType::F32; 3], DType::F32)
        .run(&[a.view(), a.view(), a.view()], &[], &y.view())
        .unwrap();
}
