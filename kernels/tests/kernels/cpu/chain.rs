//! Chains against their functions computed one after the other, each by a program of its own whose result is stored.

use crate::samples::Tensor;
use oflow_base::Random;
use oflow_kernels::cpu::elementwise::Program;
use oflow_kernels::expr::{BinaryOp, Chain, Class, Expr, Link, UnaryOp};
use oflow_kernels::{DType, View};

/// The dtypes of an arithmetic: its own first.
fn dtypes(class: Class) -> &'static [DType] {
    use DType as D;
    match class {
        Class::F32 => &[D::F32, D::BF16, D::F16, D::Bool, D::U8, D::I16],
        Class::F64 => &[D::F64, D::F32, D::BF16, D::I32, D::Bool],
        _ => &[D::I64, D::I32, D::U8, D::I8, D::U32, D::Bool],
    }
}

fn one_of<T: Copy>(rng: &mut Random, all: &[T]) -> T {
    all[rng.below(all.len())]
}

/// A function over `values` values; later ones are read more often.
fn function(rng: &mut Random, class: Class, values: usize, depth: usize) -> Expr {
    let float = class != Class::I64;
    if depth == 0 {
        return match rng.below(8) {
            0 => Expr::Const(one_of(rng, &[0.0, -0.0, 1.0, -2.0, 3.0])),
            1..3 => Expr::Input(rng.below(values)),
            _ => Expr::Input(values - 1 - rng.below(values.min(3))),
        };
    }
    let part = |rng: &mut Random| {
        let depth = rng.below(depth);
        function(rng, class, values, depth)
    };
    let unary: Vec<UnaryOp> =
        UnaryOp::ALL.iter().copied().filter(|op| if float { !op.needs_int() } else { !op.needs_float() }).collect();
    let binary = |op: &BinaryOp| !op.makes_complex() && if float { !op.needs_int() } else { !op.needs_float() };
    let binary: Vec<BinaryOp> =
        BinaryOp::ALL.iter().copied().filter(|op| binary(op) && (float || !op.divides())).collect();
    match rng.below(6) {
        0 => Expr::select(part(rng), part(rng), part(rng)),
        1 | 2 => Expr::unary(one_of(rng, &unary), part(rng)),
        3 => Expr::binary(one_of(rng, &binary), part(rng), part(rng)),
        // Pairs of these are one instruction.
        _ => Expr::binary(one_of(rng, &[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul]), part(rng), part(rng)),
    }
}

/// Bits of the elements; all NaNs are one.
fn bits(t: &Tensor) -> Vec<u64> {
    t.values().into_iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

#[test]
fn a_chain_has_the_bits_of_its_functions() {
    let mut rng = Random::new(7);
    for round in 0..600 {
        let class = one_of(&mut rng, &[Class::F32, Class::F32, Class::F64, Class::I64]);
        let all = dtypes(class);
        let compute = all[0];
        let shape: &[usize] = one_of(&mut rng, &[&[3, 37], &[1300], &[], &[2, 0], &[5, 1, 9], &[40, 130], &[9, 200]]);
        let inputs: Vec<Tensor> = (0..rng.within(1..4))
            .map(|_| {
                let d = one_of(&mut rng, all);
                let dims: Vec<usize> =
                    shape.iter().map(|n| if rng.below(4) == 0 { n.min(&1) } else { n }).copied().collect();
                // A dim of size 1 of a tensor without elements has none either.
                let dims = if shape.contains(&0) { shape.to_vec() } else { dims };
                Tensor::random(&mut rng, d, &dims)
            })
            .collect();
        let count = rng.within(1..9);
        let links: Vec<Link> = (0..count)
            .map(|k| {
                let depth = rng.within(1..4);
                let expr = function(&mut rng, class, inputs.len() + k, depth).simplify();
                let dtype = (k + 1 < count && rng.below(2) == 0).then(|| one_of(&mut rng, all));
                Link { expr, dtype }
            })
            .collect();
        let Ok(chain) = Chain::new(inputs.len(), links) else { continue };
        if chain.check_class(class).is_err() {
            continue;
        }
        let text = chain.to_string();
        // By their texts for debugging: NaN is not equal to itself.
        assert_eq!(format!("{:?}", Chain::parse(&text, inputs.len()).unwrap()), format!("{chain:?}"), "{text}");
        let out = one_of(&mut rng, all);
        let given: Vec<DType> = inputs.iter().map(|t| t.dtype).collect();
        let mut stored: Vec<Tensor> = vec![];
        for (k, link) in chain.links().iter().enumerate() {
            let last = k + 1 == chain.links().len();
            let dtype = if last { out } else { link.dtype.unwrap_or(compute) };
            let made = Tensor::random(&mut rng, dtype, shape);
            let mut dtypes = given.clone();
            dtypes.extend(stored.iter().map(|t| t.dtype));
            let views: Vec<View> = inputs.iter().chain(&stored).map(Tensor::view).collect();
            let alone = Chain::new(views.len(), vec![Link { expr: link.expr.clone(), dtype: None }]).unwrap();
            let program = Program::compile_chain(&alone, &dtypes, dtype, compute).unwrap();
            program.run(&views, &[], &made.view()).unwrap();
            stored.push(made);
        }
        let made = Tensor::random(&mut rng, out, shape);
        let views: Vec<View> = inputs.iter().map(Tensor::view).collect();
        Program::compile_chain(&chain, &given, out, compute).unwrap().run(&views, &[], &made.view()).unwrap();
        assert_eq!(bits(&made), bits(stored.last().unwrap()), "{round}: {text} of {given:?} {shape:?} to {out}");
    }
}

#[test]
fn what_is_no_chain_is_an_error() {
    for (text, why) in [
        ("x0; t1", "unknown name 't1'"),
        ("x2", "unknown name 'x2'"),
        ("x0; out", "has no value there"),
        ("x0 +", "expected a number"),
        ("", "expected a number"),
        ("x0 as f33", "f33"),
    ] {
        let e = Chain::parse(text, 2).unwrap_err().to_string();
        assert!(e.contains(why), "{text}: {e}");
    }
    assert!(Chain::parse(&"x0;".repeat(2000), 1).unwrap_err().to_string().contains("1024"));
    let wide = Chain::parse("x0 as i64; t0", 1).unwrap();
    assert!(wide.check_class(Class::F32).unwrap_err().to_string().contains("i64"));
    assert!(Program::compile_chain(&wide, &[DType::F32], DType::F32, DType::F32).is_err());
    assert!(Program::compile_chain(&wide, &[], DType::F32, DType::F32).is_err());
}

#[test]
fn gradients_of_chains_are_those_of_their_expressions() {
    let check = |text: &str, inputs: usize, input: usize, expect: &str| {
        let chain = Chain::parse(text, inputs).unwrap();
        let found = chain.gradient(input);
        assert_eq!(found.as_ref().map(Chain::to_string).unwrap_or_default(), expect);
        let Some(gradient) = found else { return };
        let (whole, part) = (chain.as_expr(1000).unwrap(), gradient.as_expr(10_000).unwrap());
        let at: Vec<f64> = (0..inputs).map(|i| 0.3 + 0.4 * i as f64).collect();
        let mut with_dy = at.clone();
        with_dy.push(1.5);
        let step = 1e-6;
        let moved = |by: f64| {
            let mut x = at.clone();
            x[input] += by;
            whole.eval(&x, f64::NAN, &[])
        };
        let slope = 1.5 * (moved(step) - moved(-step)) / (2.0 * step);
        let have = part.eval(&with_dy, f64::NAN, &[]);
        assert!((have - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{text}: {have} {slope}");
    };
    check("x0 * x1; exp(t0)", 2, 0, "x0 * x1; exp(t0); x2 * t1; t2 * x1");
    check("x0 * x1 as bf16; exp(t0)", 2, 1, "x0 * x1 as bf16; exp(t0); x2 * t1 as bf16; t2 * x0");
    check("tanh(x0); t0 * t0; t1 + x0", 1, 0, "tanh(x0); x1 * (t0 + t0); t1 * (1 - square(t0)); x1 + t2");
    check("x0 + x1; t0 * 2", 2, 1, "x2 * 2");
    check("x0 * x0; x1 + 1", 2, 0, "");
    check("floor(x0); t0 + x1", 2, 0, "");
}
