use oflow_base::Random;
use oflow_kernels::expr::*;
use oflow_kernels::{DType, ReduceOp};

/// A number from -3 to below 3.
pub(crate) fn value(rng: &mut Random) -> f64 {
    rng.signed() * 3.0
}

const INPUTS: [&str; 3] = ["a", "b", "c"];
const SCALARS: [&str; 1] = ["s"];

/// A random expression over three inputs and a scalar, from the given functions.
pub(crate) fn random(rng: &mut Random, depth: usize, unary: &[UnaryOp], binary: &[BinaryOp]) -> Expr {
    if depth == 0 || rng.below(6) == 0 {
        return match rng.below(8) {
            0..5 => Expr::Input(rng.below(3)),
            5 => Expr::Scalar(0),
            _ => Expr::Const([-2.0, -0.5, 0.0, 1.0, 3.0, 1e-7][rng.below(6)]),
        };
    }
    let mut sub = || random(rng, depth - 1, unary, binary);
    let (x, y, z) = (sub(), sub(), sub());
    match rng.below(9) {
        0..3 => Expr::unary(unary[rng.below(unary.len())], x),
        3..8 => Expr::binary(binary[rng.below(binary.len())], x, y),
        _ => Expr::select(x, y, z),
    }
}

/// True when some part of the expression is infinite or NaN there.
fn overflows(e: &Expr, x: &[f64], k: &[f64]) -> bool {
    e.any(&|part| !part.eval(x, 0.0, k).is_finite())
}

fn parse(text: &str) -> Expr {
    Expr::parse(text, &INPUTS, &SCALARS).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn precedence_and_functions() {
    let cases = [
        ("a + b * c", "a + b * c", 7.0),
        ("(a + b) * c", "(a + b) * c", 9.0),
        ("a - (b - c)", "a - (b - c)", 2.0),
        ("a - b - c", "a - b - c", -4.0),
        ("-a * b", "-a * b", -2.0),
        ("-(a*b)", "-(a * b)", -2.0),
        ("a<b", "a < b", 1.0),
        ("(a < b) == (b<=a)", "(a < b) == (b <= a)", 0.0),
        ("select(a >= c, 1.50, max(b, -2e0))", "select(a >= c, 1.5, max(b, -2))", 2.0),
        ("remainder(-a, c) + .5", "remainder(-a, c) + 0.5", 2.5),
        ("fmod(-a, c) / s", "fmod(-a, c) / s", -0.1),
        ("and(a, or(0, xor(b, not(c))))", "and(a, or(0, xor(b, not(c))))", 1.0),
        ("2 * pi / pi", "2 * 3.141592653589793 / 3.141592653589793", 2.0),
        ("neg(3) - -3", "neg(3) - -3", 0.0),
    ];
    for (text, printed, value) in cases {
        let e = parse(text);
        assert_eq!(e.named(&INPUTS, &SCALARS), printed);
        assert_eq!(e.eval(&[1.0, 2.0, 3.0], f64::NAN, &[10.0]), value, "{text}");
    }
}

#[test]
fn errors_say_where() {
    let cases = [
        ("a +", "at 3 of \"a +\": expected a number, a name or '(', found the end"),
        ("a b", "at 2 of \"a b\": expected an operator or the end, found 'b'"),
        ("x + a", "at 0 of \"x + a\": unknown name 'x'; known: a, b, c, s, out"),
        ("1 + foo(a)", "at 4 of \"1 + foo(a)\": unknown function 'foo'"),
        ("max(a)", "at 0 of \"max(a)\": max takes 2 arguments, 1 given"),
        ("(a", "at 2 of \"(a\": expected ')', found the end"),
        ("a < b < c", "at 6 of \"a < b < c\": comparisons do not chain; use parentheses or and(a, b)"),
        ("a ∂ b", "at 2 of \"a ∂ b\": expected an operator or the end, found '∂'"),
        (".", "at 0 of \".\": '.' is not a number"),
    ];
    for (text, message) in cases {
        assert_eq!(Expr::parse(text, &INPUTS, &SCALARS).unwrap_err().0, message);
    }
    assert!(Expr::parse(&"(".repeat(100_000), &[], &[]).unwrap_err().0.contains("nested deeper"));
    assert!(Expr::parse(&"-".repeat(100_000), &[], &[]).unwrap_err().0.contains("nested deeper"));
}

#[test]
fn text_round_trips() {
    let mut rng = Random::new(1);
    for _ in 0..3000 {
        let e = random(&mut rng, 5, UnaryOp::ALL, BinaryOp::ALL);
        let text = e.named(&INPUTS, &SCALARS);
        assert_eq!(format!("{:?}", parse(&text)), format!("{e:?}"), "{text}");
    }
}

#[test]
fn simplify_keeps_values() {
    let mut rng = Random::new(2);
    for _ in 0..3000 {
        let e = random(&mut rng, 5, UnaryOp::ALL, BinaryOp::ALL);
        let s = e.simplify();
        for _ in 0..5 {
            let (x, k) = ([value(&mut rng), value(&mut rng), value(&mut rng)], [value(&mut rng)]);
            let (want, got) = (e.eval(&x, 0.0, &k), s.eval(&x, 0.0, &k));
            let same = want == got || (want.is_nan() && got.is_nan()) || (want - got).abs() <= 1e-9 * want.abs();
            // Zeros of either sign are one value, but not to a division or a root of a sign.
            let signed_zero = want.is_infinite() && got.is_infinite();
            assert!(same || signed_zero, "{e} -> {s}: {want} {got} at {x:?} {k:?}");
        }
    }
}

#[test]
fn derivatives_as_text() {
    let cases = [
        ("exp(a)", "out"),
        ("sigmoid(a)", "out * (1 - out)"),
        ("tanh(a)", "1 - square(out)"),
        ("relu(a)", "select(a <= 0, 0, 1)"),
        ("abs(a)", "sign(a)"),
        ("a * b", "b"),
        ("a / b", "1 / b"),
        ("s / a", "-out / a"),
        ("pow(a, 3)", "3 * square(a)"),
        ("max(a, b)", "select(a < b, 0, select(a == b, 0.5, 1))"),
        ("floor(a) + b", "0"),
        ("sqrt(a)", "0.5 / out"),
        ("select(c, s * a, 2 * a)", "select(c, s, 2)"),
    ];
    for (text, derivative) in cases {
        assert_eq!(parse(text).derivative(0).named(&INPUTS, &SCALARS), derivative, "{text}");
    }
}

#[test]
fn derivatives_match_finite_differences() {
    use BinaryOp::*;
    use UnaryOp::*;
    let unary = [
        Neg, Abs, Exp, Log, Log1p, Expm1, Sqrt, Rsqrt, Reciprocal, Square, Sin, Cos, Tanh, Sigmoid, Erf, NormalCdf,
        Relu, Sign,
    ];
    // Apart: powers (where the base turns negative their logarithm is NaN, in PyTorch too) and remainders (steps may be
    // finer than the differences).
    let binary = [Add, Sub, Mul, Div, Max, Min, Gt];
    let apart = [
        "pow(exp(a), b)",
        "pow(a, 3)",
        "pow(2, a)",
        "pow(square(a), a * b)",
        "pow(a, -2)",
        "remainder(a * a, b)",
        "fmod(b, a)",
        "fmod(a * b, a + b)",
    ]
    .map(parse);
    let mut rng = Random::new(3);
    let mut compared = 0;
    for round in 0..20_000 {
        let e = apart.get(round % 200).cloned().unwrap_or_else(|| random(&mut rng, 3, &unary, &binary));
        let (x, k) = ([value(&mut rng), value(&mut rng), value(&mut rng)], [value(&mut rng)]);
        let d = e.derivative(0);
        let at = |h: f64| e.eval(&[x[0] + h, x[1], x[2]], f64::NAN, &k);
        let slope = |h: f64| (at(h) - at(-h)) / (2.0 * h);
        let (coarse, fine) = (slope(2e-5), slope(1e-5));
        let one_sided = (at(1e-5) - at(0.0)) / 1e-5;
        // Where the differences disagree the function has a kink or is too steep to tell.
        let smooth =
            (coarse - fine).abs() <= 1e-5 * (1.0 + fine.abs()) && (one_sided - fine).abs() <= 1e-2 * (1.0 + fine.abs());
        if !smooth || overflows(&e, &x, &k) || at(0.0).abs() > 1e4 {
            continue;
        }
        // A slope through infinity (the root of a constant zero) is no slope.
        if d.any(&|part| part.eval(&x, at(0.0), &k).is_infinite()) {
            continue;
        }
        compared += 1;
        let got = d.eval(&x, at(0.0), &k);
        assert!((got - fine).abs() <= 1e-4 * (1.0 + fine.abs()), "d/da {e} = {d}: {got} not {fine} at {x:?} {k:?}");
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn linearity_table() {
    let cases: [(&str, &[usize], bool); 18] = [
        ("a + b", &[0, 1], true),
        ("a + b", &[0], false),
        ("a * b", &[0], true),
        ("a * b", &[1], true),
        ("a * b", &[0, 1], false),
        ("a / b", &[0], true),
        ("a / b", &[1], false),
        ("select(c, a, b)", &[0, 1], true),
        ("select(c, a, b)", &[0], false),
        ("select(c, a, 0)", &[0], true),
        ("select(a, a, a)", &[0], false),
        ("s * a - b * c", &[0, 1], true),
        ("a + s", &[0], false),
        ("-a", &[0], true),
        ("relu(a)", &[0], false),
        ("out * a", &[0], false),
        ("shl(a, b)", &[0], true),
        ("a * b + c * (0 / b)", &[0], true),
    ];
    for (text, subset, want) in cases {
        assert_eq!(parse(text).linear_in(subset), want, "{text} {subset:?}");
    }
}

#[test]
fn linearity_claims_hold() {
    use BinaryOp::*;
    let mut rng = Random::new(4);
    let mut claimed = 0;
    for _ in 0..30_000 {
        let e = random(&mut rng, 3, &[UnaryOp::Neg, UnaryOp::Exp, UnaryOp::Relu], &[Add, Sub, Mul, Div, Max, Gt]);
        for subset in [&[0usize][..], &[1], &[0, 1], &[0, 1, 2]] {
            if !e.linear_in(subset) {
                continue;
            }
            claimed += 1;
            let (x, y, k) = (
                [value(&mut rng), value(&mut rng), value(&mut rng)],
                [value(&mut rng), value(&mut rng), value(&mut rng)],
                [value(&mut rng)],
            );
            let (mut second, mut sum) = (x, x);
            for i in subset {
                second[*i] = y[*i];
                sum[*i] = x[*i] + y[*i];
            }
            let (fx, fy, fs) = (e.eval(&x, 0.0, &k), e.eval(&second, 0.0, &k), e.eval(&sum, 0.0, &k));
            let close = (fx + fy - fs).abs() <= 1e-9 * (1.0 + fx.abs() + fy.abs());
            assert!(close || !(fx + fy).is_finite(), "{e} in {subset:?}: {fx} + {fy} is not {fs}");
        }
    }
    assert!(claimed > 1000, "{claimed}");
}

#[test]
fn monotony_table() {
    use Monotony::*;
    let cases = [
        ("relu(a)", Increasing),
        ("tanh(exp(a))", Increasing),
        ("-floor(a)", Decreasing),
        ("a - b", Increasing),
        ("b - a", Decreasing),
        ("max(a, b)", Increasing),
        ("max(a, -a)", Unknown),
        ("s * a", Unknown),
        ("exp(s) * a", Increasing),
        ("a / (1 + exp(b))", Increasing),
        ("a / b", Unknown),
        ("b + s", Constant),
        ("a * a", Unknown),
        ("exp(a) * sigmoid(a)", Increasing),
        ("sqrt(a)", Unknown),
        ("sqrt(exp(a))", Increasing),
        ("log(1 + exp(a))", Increasing),
        ("a > b", Unknown),
        ("select(b, a, 2 * a)", Increasing),
        ("sigmoid(a) * (1 - sigmoid(a))", Unknown),
        ("1 / (1 + exp(-a))", Increasing),
        ("out + a", Unknown),
    ];
    for (text, want) in cases {
        assert_eq!(parse(text).monotony(0), want, "{text}");
    }
}

#[test]
fn monotony_claims_hold() {
    let mut rng = Random::new(5);
    let mut claimed = 0;
    for _ in 0..40_000 {
        let e = random(&mut rng, 4, UnaryOp::ALL, BinaryOp::ALL);
        let m = e.monotony(0);
        if m == Monotony::Unknown {
            continue;
        }
        let (x, k) = ([value(&mut rng), value(&mut rng), value(&mut rng)], [value(&mut rng)]);
        let other = value(&mut rng);
        let (low, high) = (x[0].min(other), x[0].max(other));
        let at = |a: f64| e.eval(&[a, x[1], x[2]], 0.0, &k);
        let (fl, fh) = (at(low), at(high));
        claimed += usize::from(m != Monotony::Constant);
        let slack = 1e-12 * (1.0 + fl.abs());
        let holds = match m {
            _ if fl == fh || (fl.is_nan() && fh.is_nan()) => true,
            Monotony::Increasing => fl <= fh + slack,
            Monotony::Decreasing => fl + slack >= fh,
            _ => false,
        };
        // `inf - inf` is outside what is claimed; a NaN from finite values is not.
        let infinite = |a: f64| e.any(&|part| part.eval(&[a, x[1], x[2]], 0.0, &k).is_infinite());
        let excused = (fl.is_nan() || fh.is_nan()) && (infinite(low) || infinite(high));
        assert!(holds || excused, "{e} is not {m:?}: {fl} {fh} at {low} {high} {x:?} {k:?}");
    }
    assert!(claimed > 1000, "{claimed}");
}

#[test]
fn partial_table() {
    use ReduceOp::*;
    let cases: [(&str, &[usize], ReduceOp, Option<ReduceOp>); 15] = [
        ("max(a, b)", &[0, 1], Max, Some(Max)),
        ("max(a, b)", &[0, 1], Min, None),
        ("max(a, b)", &[0], Min, Some(Min)),
        ("min(a, b)", &[0, 1], Min, Some(Min)),
        ("min(-a, -b)", &[0, 1], Max, Some(Min)),
        ("-max(a, b)", &[0, 1], Max, Some(Min)),
        ("exp(max(a, max(b, c)))", &[0, 1, 2], Max, Some(Max)),
        ("max(a, c)", &[0, 1], Max, Some(Max)),
        ("a + b", &[0, 1], Max, None),
        ("a + b", &[0, 1], Sum, Some(Sum)),
        ("a + b", &[0], Sum, None),
        ("a > 0", &[0], Max, None),
        ("select(c, a, exp(b))", &[0, 1], Max, Some(Max)),
        ("select(c, a, -b)", &[0, 1], Max, None),
        ("logaddexp(2 * a, b)", &[0], Min, Some(Min)),
    ];
    for (text, inputs, op, want) in cases {
        assert_eq!(parse(text).partial_passes(inputs, op), want, "{text} {inputs:?} {op}");
    }
}

#[test]
fn partial_claims_hold() {
    use BinaryOp::{Add, Max as Most, Min as Least, Mul, Sub};
    let reduce = |op, x: f64, y: f64| if op == ReduceOp::Max { x.max(y) } else { x.min(y) };
    let mut rng = Random::new(6);
    let mut claimed = 0;
    for _ in 0..50_000 {
        let e = random(&mut rng, 3, UnaryOp::ALL, &[Add, Sub, Mul, Most, Least]);
        for op in [ReduceOp::Max, ReduceOp::Min] {
            let Some(out) = e.partial_passes(&[0, 1], op) else { continue };
            claimed += usize::from(e.uses_input(0) && e.uses_input(1));
            let c = value(&mut rng);
            let (x, y, k) =
                ([value(&mut rng), value(&mut rng), c], [value(&mut rng), value(&mut rng), c], [value(&mut rng)]);
            let both = [reduce(op, x[0], y[0]), reduce(op, x[1], y[1]), c];
            let want = e.eval(&both, 0.0, &k);
            let got = reduce(out, e.eval(&x, 0.0, &k), e.eval(&y, 0.0, &k));
            assert!(
                (want - got).abs() <= 1e-9 * (1.0 + want.abs()) || want == got || want.is_nan(),
                "{e} {op}: {want} {got}"
            );
        }
    }
    assert!(claimed > 300, "{claimed}");
}

#[test]
fn cuda_text() {
    let e = parse("select(a > 0, a, s * expm1(c)) + s * expm1(c)");
    let src = e.cuda_source(&[DType::BF16, DType::I64, DType::F32], DType::F16, DType::F32).unwrap();
    let want = r#"#include "elementwise.cuh"
typedef f32 A;
typedef f16 TO;
typedef bf16 T0;
typedef f32 T1;
OF_FN A of_value(A v0, A v2, A s0) {
    const A t0 = (A)(v0 > (0.0f));
    const A t1 = of_expm1(v2);
    const A t2 = of_mul(s0, t1);
    const A t3 = of_select(t0, v0, t2);
    const A t4 = of_add(t3, t2);
    return t4;
}
#define OF_N 2
#define OF_S 1
#define OF_EACH(X) X(0) X(1)
#define OF_COMPUTE(y, X) of_set(y, of_value(of_get<A>(X(0)), of_get<A>(X(1)), __uint_as_float((u32)k.s[0])))
#include "pointwise.cuh"
"#;
    assert_eq!(src, want);
    // Every function an expression can name exists in the header.
    let headers = [include_str!("../../cuda/elementwise.cuh"), include_str!("../../cuda/special.cuh")].concat();
    for op in UnaryOp::ALL {
        let of = if op.needs_int() { "i64" } else { "T" };
        let forms = [format!("{of} of_{}({of}", op.name()), format!("OF_SINGLE({})", op.name())];
        assert!(forms.iter().any(|f| headers.contains(f)), "{op}");
    }
    let special = parse("lgamma(a)").cuda_source(&[DType::F32], DType::F32, DType::F32).unwrap();
    assert!(special.starts_with("#include \"elementwise.cuh\"\n#include \"special.cuh\"\n"), "{special}");
    let text = |c: f64| Expr::Const(c).cuda_source(&[], DType::F32, DType::F32).unwrap();
    for (c, literal) in [(1e300, "(A)OF_INF"), (-1e300, "(A)-OF_INF"), (1e-7, "(1e-7f)"), (f64::NAN, "(A)OF_NAN")] {
        assert!(text(c).contains(&format!("return {literal};")), "{c}");
    }
    let message = parse("exp(a)").cuda_source(&[DType::I32], DType::I64, DType::I64).unwrap_err();
    assert_eq!(message.0, "'exp(x0)' needs a float, but all dtypes are integers");
}
