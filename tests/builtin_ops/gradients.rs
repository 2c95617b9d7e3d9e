//! Gradients against finite differences, in f64 on one device: every differentiable op, then second derivatives through
//! the recorded backward pass.

use oflow::ops::{Grad, Op};
use oflow::prelude::*;
use oflow::testing::{self, Function, Sample};
use oflow::{BackwardOptions, functional::grad};
use oflow_tests::{built_in_ops, cases};

fn float_samples(op: &'static Op) -> Vec<Sample> {
    testing::float_samples(op).unwrap()
}

/// All ops with a value to differentiate.
fn ops() -> Vec<&'static Op> {
    built_in_ops().into_iter().filter(|o| !o.sig.inputs.iter().any(|i| i.mutable)).collect()
}

/// Ops of floats whose derivative nobody has written down, in PyTorch neither: a backward pass through them is an error.
const WITHOUT: &[&str] = &[
    "airy_ai",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
];

/// Parts of the lowering of an op that has the derivative itself.
const LOWERED: &[&str] = &["ring_attention_return", "ring_attention_step", "ring_attention_step_grad"];

#[test]
fn a_backward_pass_through_an_op_without_a_derivative_is_an_error() -> Result<()> {
    let x = full([2], 0.3, Device::Cpu)?.requires_grad_(true)?;
    let y = x.legendre_polynomial_p(&full([2], 3.0, Device::Cpu)?)?.add(&x)?.sum(())?;
    let e = y.backward().unwrap_err().to_string();
    assert!(e.contains("op 'legendre_polynomial_p' has no gradient rule") && e.contains("`detach()` the input"), "{e}");
    let missing: Vec<&str> = ops().iter().filter(|op| matches!(op.grad, Grad::Missing)).map(|op| op.name()).collect();
    assert_eq!(sorted(missing), sorted([WITHOUT, LOWERED].concat()));
    Ok(())
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

#[test]
fn every_gradient_equals_finite_differences() {
    let (mut wrong, mut total, mut tested) = (vec![], 0, 0);
    for op in ops() {
        if matches!(op.grad, Grad::None | Grad::Missing) {
            continue;
        }
        tested += 1;
        for (k, s) in float_samples(op).iter().enumerate() {
            match Function::new(Device::Cpu, op, s, k).first() {
                Ok(n) => total += n,
                Err(e) => wrong.push(format!("sample {k}: {e}")),
            }
        }
    }
    println!("{tested} ops, {total} partial derivatives");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first sample of each op and half of the others; all with `OFLOW_CASES=all`.
#[test]
fn second_derivatives_equal_finite_differences_of_the_first() {
    let (mut wrong, mut total, mut tested, mut take) = (vec![], 0, 0, cases::one_in(2));
    for op in ops() {
        if matches!(op.grad, Grad::None | Grad::Missing) || op.traits.hidden {
            continue;
        }
        tested += 1;
        for (k, s) in float_samples(op).iter().enumerate().filter(|(k, _)| *k == 0 || take()) {
            match Function::new(Device::Cpu, op, s, k).second() {
                Ok(n) => total += n,
                Err(e) => wrong.push(format!("sample {k}: {e}")),
            }
        }
    }
    println!("{tested} ops, {total} second derivatives");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Gradient of the squared norms of the gradients of `f`.
fn second_of(f: impl Fn(&[Tensor]) -> Result<Tensor>, shapes: &[&[usize]], dtype: DType) -> Result<Vec<Vec<f64>>> {
    let leaf = |(i, shape): (usize, &&[usize])| {
        let n = shape.iter().product::<usize>();
        let values: Vec<f64> = (0..n).map(|k| ((37 * k + 11 * i) % 23) as f64 / 11.0 - 1.0).collect();
        from_vec(values, *shape, Device::Cpu)?.cast(dtype)?.requires_grad_(true)
    };
    let leaves: Vec<Tensor> = shapes.iter().enumerate().map(leaf).collect::<Result<_>>()?;
    let keep = BackwardOptions { create_graph: true, ..Default::default() };
    let firsts = grad([f(&leaves)?.tanh()?.sum(())?], &leaves, &keep)?;
    let norms: Vec<Tensor> = firsts.iter().flatten().map(|g| g.square()?.sum(())).collect::<Result<_>>()?;
    let seconds = grad([stack(&norms, 0)?.sum(())?], &leaves, &BackwardOptions::default())?;
    seconds.into_iter().map(|g| g.expect("every input has a gradient").to_f64_vec()).collect()
}

#[test]
fn second_derivatives_of_halves_are_those_of_f64_but_for_rounding() {
    let image: &[usize] = &[1, 2, 5, 4];
    type F = fn(&[Tensor]) -> Result<Tensor>;
    let rows: [(&str, F, &[&[usize]]); 4] = [
        ("layer_norm", |t| t[0].layer_norm(Some(&t[1]), Some(&t[2]), 1e-5), &[&[3, 6], &[6], &[6]]),
        ("rms_norm", |t| t[0].rms_norm(Some(&t[1]), Some(1e-6)), &[&[3, 6], &[6]]),
        ("attention", |t| t[0].attention(&t[1], &t[2], false), &[image; 3]),
        ("attention, causal", |t| t[0].attention(&t[1], &t[2], true), &[image; 3]),
    ];
    for (name, f, shapes) in rows {
        let want = second_of(f, shapes, DType::F64).unwrap();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let have = second_of(f, shapes, dtype).unwrap_or_else(|e| panic!("{name} in {dtype}: {e}"));
            for (have, want) in have.iter().zip(&want) {
                let largest = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let off = have.iter().zip(want).fold(0.0f64, |m, (h, w)| m.max((h - w).abs()));
                let allowed = if dtype == DType::F32 { 1e-4 } else { 0.05 };
                assert!(off <= allowed * largest, "{name} in {dtype}: off by {off} of {largest}");
            }
        }
    }
}

/// Powers have no derivative at zero; norms have, as in PyTorch: zero. So have norms whose powers vanish.
#[test]
fn norms_of_zeros_have_gradients_of_zero() {
    for p in [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, -1.0, f64::INFINITY] {
        for dtype in [DType::F32, DType::F64] {
            let rows = vec![0.0, 0.0, 1.0, 2.0, 1e-30, 1e-30];
            let x = from_vec(rows, [3, 2], Device::Cpu.dtype(dtype)).unwrap().requires_grad_(true).unwrap();
            let y = x.norm(p, [1]).unwrap();
            y.sum(()).unwrap().backward().unwrap();
            let (y, dx) = (y.to_f64_vec().unwrap(), x.grad().expect("gradient").to_f64_vec().unwrap());
            assert_eq!(y[0], 0.0, "{p}");
            let far = from_vec(vec![f64::INFINITY; 2], [2], Device::Cpu.dtype(dtype)).unwrap();
            assert_eq!(far.norm(p, ()).unwrap().to_f64_vec().unwrap(), [f64::INFINITY], "{p}");
            // A negative power of what is nearly zero overflows.
            let finite = if p > 0.0 { 6 } else { 4 };
            assert!(dx[..finite].iter().all(|x| x.is_finite()), "p = {p}, {dtype}: {dx:?}");
            assert!(dx[..2] == [0.0, 0.0] && dx[3] > 0.0, "p = {p}, {dtype}: {dx:?}");
        }
    }
}
