//! Gradient rules that call functions of the table: composed ones, overloads with numbers, and those that a program registers.

use oflow::functional::{FnBody, FnDef, grad, register_function};
use oflow::interpreter::Call;
use oflow::kernels::Element;
use oflow::ops::{DTypeRule, Grad, KernelCx, OpDef, register};
use oflow::prelude::*;
use oflow::{BackwardOptions, op};
use std::sync::Arc;

fn turned<T: Element + std::ops::Mul<Output = T>>(cx: &KernelCx<'_>, two: T) -> Result<()> {
    let x = cx.input(0)?.as_slice::<T>()?;
    let (rows, columns) = (cx.input(0)?.dims()[0], cx.input(0)?.dims()[1]);
    // SAFETY: the output of this call, of which no other slice is alive.
    let y = unsafe { cx.output(0).as_mut_slice::<T>()? };
    (0..y.len()).for_each(|i| y[i] = x[i % rows * columns + i / rows] * two);
    Ok(())
}

/// An op on matrices: 2 xᵀ.
fn twice_turned(name: &str, grad: Grad) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(x: float) -> y"))?
        .domain("rules")
        .check(|c| match c.shape(0)?.len() {
            2 => Ok(()),
            _ => Err(Error::shape("needs a matrix")),
        })
        .shape1(|c| Ok(c.shape(0)?.iter().rev().copied().collect()))
        .dtype(DTypeRule::Input(0))
        .signatures(&["S0 -> S1", "S1 -> S0", "P -> P"])
        .cpu(|cx| if cx.output(0).dtype() == DType::F64 { turned(cx, 2.0f64) } else { turned(cx, 2.0f32) })
        .grad(grad)
        .samples(&["f32[4, 3]", "f64[2, 5]"]))
}

#[test]
fn a_rule_calls_composed_functions_and_overloads_with_numbers() {
    let rule = Grad::rule_saving(&[], &[], |g| {
        let Some(dy) = g.grad(0) else { return Ok(()) };
        let dx = g.call("transpose", &[dy], &[("dim0", 0.into()), ("dim1", (-1).into())])?;
        let dx = g.call("mul", &[dx], &[("s", 2.0.into())])?;
        g.set(0, dx)
    });
    let op = register(twice_turned("composed", rule).unwrap()).unwrap();
    // Values, layouts, first and second derivatives.
    oflow::testing::conformance(op).unwrap();
}

#[test]
fn the_derivative_of_such_a_rule_has_a_derivative() {
    let rule = Grad::rule(|g| {
        let Some(dy) = g.grad(0) else { return Ok(()) };
        // The softmax is there to be differentiated again; two of the same shape are added, which is the op.
        let x = g.input(0)?;
        let p = g.call("softmax", &[x], &[("dim", 1.into())])?;
        let p = g.call("add", &[p, p], &[])?;
        let dx = g.call("t", &[dy], &[])?;
        let dx = g.call("mul", &[dx, p], &[])?;
        g.set(0, dx)
    });
    let _ = register(twice_turned("curved", rule).unwrap()).unwrap();
    let x = from_vec(vec![0.5f64, -1.0, 2.0, 0.25], [2, 2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let y = Call::new(op!("rules.curved").unwrap(), &[Some(&x)]).run1().unwrap().sum(()).unwrap();
    let again = BackwardOptions { create_graph: true, ..Default::default() };
    let d = grad([&y], [&x], &again).unwrap().remove(0).unwrap();
    let p = x.detach().softmax(1).unwrap();
    let close = |a: &Tensor, b: &Tensor| {
        let (a, b) = (a.to_f64_vec().unwrap(), b.to_f64_vec().unwrap());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?} {b:?}");
    };
    close(&d, &p.mul(2.0).unwrap());
    // d/dx of the sum of squares of 2 softmax(x).
    let total = d.square().unwrap().sum(()).unwrap();
    let dd = grad([&total], [&x], &BackwardOptions::default()).unwrap().remove(0).unwrap();
    let x2 = x.detach().requires_grad_(true).unwrap();
    let total = x2.softmax(1).unwrap().mul(2.0).unwrap().square().unwrap().sum(()).unwrap();
    let want = grad([&total], [&x2], &BackwardOptions::default()).unwrap().remove(0).unwrap();
    close(&dd, &want);
}

#[test]
fn a_registered_function_serves_rules_on_global_tensors() {
    let body = |b: &oflow::functional::Bound| Ok(vec![b.given(0)?.t()?.mul(b.float(1)?)?]);
    let def = FnDef::new("scaled_turn_test(Tensor x, *, Float by) -> Tensor", FnBody::Code(Arc::new(body))).unwrap();
    register_function(def.hidden()).unwrap();
    let rule = Grad::rule_saving(&[], &[], |g| {
        let Some(dy) = g.grad(0) else { return Ok(()) };
        let dx = g.call("scaled_turn_test", &[dy], &[("by", 2.0.into())])?;
        g.set(0, dx)
    });
    let _ = register(twice_turned("registered", rule).unwrap()).unwrap();
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 3], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let y = Call::new(op!("rules.registered")?, &[Some(&x)]).run1()?;
        let w = arange(12, (&mesh, sbp![B]))?.reshape([3, 4])?;
        y.mul(&w)?.sum(())?.backward()?;
        let want: Vec<f64> = (0..12).map(|i| f64::from(2 * (i % 3 * 4 + i / 3))).collect();
        assert_eq!(x.grad().unwrap().to_f64_vec()?, want);
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_a_rule_cannot_call_is_an_error_of_the_line_of_the_call() {
    for (name, call, attrs, text) in [
        ("unknown", "transposed", vec![], "unknown function 'transposed'"),
        ("misfit", "transpose", vec![("dim0", 0i64.into())], "no overload takes these tensors and attributes"),
        ("writes", "mul_", vec![("other", 2.0.into())], "a gradient rule cannot call a function that writes in place"),
    ] {
        let rule = Grad::rule_saving(&[], &[], move |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dx = g.call(call, &[dy], &attrs)?;
            g.set(0, dx)
        });
        let op = register(twice_turned(name, rule).unwrap()).unwrap();
        let x = ones([2, 2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
        let (y, line) = (Call::new(op, &[Some(&x)]).run1().unwrap(), line!());
        let e = y.sum(()).unwrap().backward().unwrap_err();
        assert!(e.to_string().contains(text), "{e}");
        assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
    }
}

/// A value that a step takes twice is there the second time, also where nobody takes it afterwards.
#[test]
fn a_lowering_gives_one_value_twice() {
    let op = twice_turned("squared", Grad::None).unwrap().samples(&[]).lowering(
        |_| Ok(vec![oflow::sbp::Signature::new(&[Sbp::Split(0)], &[Sbp::Split(1)])]),
        |e, call| {
            let x = call.inputs[0].ok_or_else(|| Error::argument("no input"))?;
            let y = e.call("permute", &[x], &[("dims", vec![1i64, 0].into())])?;
            let y = e.call("neg", &[y], &[])?;
            Ok(vec![e.call("mul", &[y, y], &[])?])
        },
    );
    let mut op = op;
    op.sbp = oflow::ops::SbpRule::AllB;
    let op = register(op).unwrap();
    let all = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_vec((0..12).map(|i| i as f32).collect(), [4, 3], (&mesh, sbp![S(0)]))?;
        Call::new(op, &[Some(&x)]).run1()?.to_vec::<f32>()
    });
    let want: Vec<f32> = (0..12).map(|i| ((i % 4 * 3 + i / 4) as f32).powi(2)).collect();
    assert_eq!(all.unwrap(), [want.clone(), want]);
}

#[test]
fn a_lowering_calls_ops_only() {
    let op = twice_turned("lowered", Grad::None).unwrap().samples(&[]).lowering(
        |_| Ok(vec![oflow::sbp::Signature::new(&[Sbp::Split(0)], &[Sbp::Broadcast])]),
        |e, call| {
            let x = call.inputs[0].ok_or_else(|| Error::argument("no input"))?;
            let y = e.call("transpose", &[x], &[("dim0", 0.into()), ("dim1", 1.into())])?;
            Ok(vec![y])
        },
    );
    let op = register(op).unwrap();
    let e = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 3], (&mesh, sbp![S(0)]))?;
        oflow::with_sbp(sbp![B], || Call::new(op, &[Some(&x)]).run1()).map(drop)
    })
    .unwrap_err()
    .to_string();
    assert!(e.contains("a lowering calls 'transpose', which is not an op"), "{e}");
}
