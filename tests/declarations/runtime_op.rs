//! Ops that arrive at run time and functions of the user's, with public API only; the texts of the errors a person meets.

use oflow::functional::call;
use oflow::ops::{DTypeRule, Grad, OpDef, register};
use oflow::prelude::*;
use oflow::sbp::Signature;
use oflow::{BackwardOptions, ErrorKind, apply_custom, functional};

#[test]
fn an_op_from_text_runs_by_name_local_and_global_with_its_gradient() {
    let op = OpDef::elementwise("bent(x: float; alpha: runtime float = 0.5) -> y", "select(x >= 0, x * x, alpha * x)");
    register(op.unwrap().domain("test")).unwrap();
    let data = vec![-2.0f64, -1.0, 0.5, 3.0, -4.0, 5.0];
    let want = [-0.5, -0.25, 0.25, 9.0, -1.0, 25.0];
    let slope = [0.25, 0.25, 1.0, 6.0, 0.25, 10.0];
    let run = |x: &Tensor| -> Result<(Tensor, Vec<f64>, Vec<f64>)> {
        let x = x.detach().requires_grad_(true)?;
        let y = call("bent", &[(&x).into()], &[("alpha", 0.25.into())])?.remove(0);
        y.sum(())?.backward()?;
        Ok((y.detach(), y.to_f64_vec()?, x.grad().expect("gradient").to_f64_vec()?))
    };
    let x = from_vec(data.clone(), [6], Device::Cpu).unwrap();
    let (_, y, dx) = run(&x).unwrap();
    assert_eq!((y.as_slice(), dx.as_slice()), (&want[..], &slope[..]));
    let ranks = oflow::run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
        let mut seen = vec![];
        for s in [sbp![S(0), B], sbp![S(0), S(0)], sbp![B, P], sbp![B, B]] {
            let x = from_vec(data.clone(), [6], (&mesh, s))?;
            let (y, v, dx) = run(&x)?;
            assert_eq!((v.as_slice(), dx.as_slice()), (&want[..], &slope[..]));
            seen.push(y.sbp()?.to_string());
        }
        Ok(seen)
    });
    // P(sum) does not pass through: it is boxed.
    let seen = ranks.unwrap().remove(0);
    assert_eq!(&seen[..2], ["[S(0), B]", "[S(0), S(0)]"]);
    assert!(!seen[2].contains('P'), "{seen:?}");
}

#[test]
fn the_derivative_of_a_derived_gradient_is_there_too() {
    register(OpDef::elementwise("cube(x: float) -> y", "x * x * x").unwrap().domain("test")).unwrap();
    let x = from_vec(vec![2.0f64, -1.5], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let y = call("cube", &[(&x).into()], &[]).unwrap().remove(0);
    let again = BackwardOptions { create_graph: true, ..Default::default() };
    let d = functional::grad(&[y.sum(()).unwrap()], std::slice::from_ref(&x), &again).unwrap()[0].clone().unwrap();
    let dd = functional::grad(&[d.sum(()).unwrap()], std::slice::from_ref(&x), &again).unwrap()[0].clone().unwrap();
    let ddd = functional::grad(&[dd.sum(()).unwrap()], &[x], &again).unwrap()[0].clone().unwrap();
    assert_eq!(d.to_f64_vec().unwrap(), [12.0, 6.75]);
    assert_eq!(dd.to_f64_vec().unwrap(), [12.0, -9.0]);
    assert_eq!(ddd.to_f64_vec().unwrap(), [6.0, 6.0]);
}

#[test]
fn a_users_differentiable_function_runs_on_global_tensors() {
    // sinh, whose gradient is cosh: neither is an op of ours.
    let sinh = |x: &Tensor| x.exp()?.sub(&x.neg()?.exp()?)?.mul(0.5);
    let cosh = |x: &Tensor| x.exp()?.add(&x.neg()?.exp()?)?.mul(0.5);
    let check = |x: Tensor| -> Result<()> {
        let x = x.requires_grad_(true)?;
        let saved = x.detach();
        let y = apply_custom(
            "sinh",
            &[&x],
            |i| Ok(vec![sinh(i[0])?]),
            move |g| Ok(vec![g[0].as_ref().map(|g| g.mul(&cosh(&saved)?)).transpose()?]),
        )?;
        y[0].mul(2.0)?.sum(())?.backward()?;
        let (v, g) = (y[0].to_f64_vec()?, x.grad().expect("gradient").to_f64_vec()?);
        for (i, t) in x.to_f64_vec()?.into_iter().enumerate() {
            assert!((v[i] - t.sinh()).abs() < 1e-12 && (g[i] - 2.0 * t.cosh()).abs() < 1e-12, "at {t}");
        }
        Ok(())
    };
    let data = || vec![0.1f64, -0.7, 1.3];
    check(from_vec(data(), [3], Device::Cpu).unwrap()).unwrap();
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        check(from_vec(data(), [3], (&mesh, sbp![S(0)]))?)?;
        check(from_vec(data(), [3], (&mesh, sbp![B]))?)
    })
    .unwrap();
}

/// `weighted_rows(x, w) -> y`: row i of x times w[i], by a kernel of its own; sharded by rows and by columns.
fn weighted_rows() -> OpDef {
    OpDef::new("weighted_rows(x: float, w: float) -> y")
        .unwrap()
        .domain("test")
        .dtype(DTypeRule::Input(0))
        .shape1(|c| match (c.shape(0)?, c.shape(1)?) {
            ([r, n], [k]) if r == k => Ok([*r, *n].into_iter().collect()),
            (x, w) => Err(Error::shape(format!("rows {x:?} and weights {w:?} differ"))),
        })
        .get_sbp(|_| {
            ["S0, S0 -> S0", "S1, B -> S1", "P, B -> P", "B, P -> P"].iter().map(|s| s.parse::<Signature>()).collect()
        })
        .cpu(|cx| {
            let (x, w, y) = (cx.input(0)?, cx.input(1)?, cx.output(0));
            let columns = x.dims()[1];
            let (x, w) = (x.as_slice::<f32>()?, w.as_slice::<f32>()?);
            // SAFETY: the output is this call's own contiguous memory.
            let y = unsafe { y.as_mut_slice::<f32>()? };
            for (i, v) in y.iter_mut().enumerate() {
                *v = x[i] * w[i / columns];
            }
            Ok(())
        })
        .grad(Grad::rule(|g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let (x, w) = (g.input(0)?, g.input(1)?);
            let dx = g.call("weighted_rows", &[dy, w], &[])?;
            g.set(0, dx)?;
            let p = g.call("mul", &[dy, x], &[])?;
            let dw = g.call("sum", &[p], &[("dims", [1i64].into())])?;
            g.set(1, dw)
        }))
}

#[test]
fn domains_keep_names_apart() {
    use oflow::ops::find;
    let add = |domain: &str, text: &str, expr: &str| register(OpDef::elementwise(text, expr)?.domain(domain));
    let x = from_vec(vec![3.0f64], [1], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let run = |name: &str| Ok::<_, oflow::Error>(call(name, &[(&x).into()], &[])?.remove(0));
    add("left", "shared(x: float) -> y", "x * x").unwrap();
    // One domain has it: the bare name will do.
    assert_eq!(run("shared").unwrap().item().unwrap(), 9.0);
    add("right", "shared(x: float) -> y", "x + 1").unwrap();
    assert_eq!(run("left.shared").unwrap().item().unwrap(), 9.0);
    assert_eq!(run("right::shared").unwrap().item().unwrap(), 4.0);
    for e in [run("shared").unwrap_err(), find("shared").err().unwrap()] {
        assert_eq!(e.message(), "'shared' is the name of several ops: left.shared, right.shared");
        assert_eq!(e.help_text(), Some("write the domain too: 'left.shared'"));
    }
    // The derived gradients of ops of one name are two ops.
    run("left.shared").unwrap().add(&run("right.shared").unwrap()).unwrap().sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 7.0);
    // oflow's ops keep their bare names, and autocast its table for them alone.
    let other = add("left", "softmax(x: float) -> y", "x * 10").unwrap();
    assert_eq!((other.name(), find("softmax").unwrap().name()), ("left.softmax", "softmax"));
    assert_eq!(find("softmax").unwrap().id(), find("oflow.softmax").unwrap().id());
    assert_ne!(other.autocast(), find("softmax").unwrap().autocast());
    assert_eq!(run("left.softmax").unwrap().item().unwrap(), 30.0);
    let shown = functional::functions().into_iter().filter(|f| !f.variant);
    let names: Vec<String> = shown.map(|f| f.sig.name).collect();
    for name in ["left.shared", "right.shared", "left.softmax", "softmax"] {
        assert_eq!(names.iter().filter(|n| *n == name).count(), 1, "{name}");
    }
    let e = add("left", "shared(x: float) -> y", "x").err().unwrap();
    assert_eq!(e.message(), "op left.shared@1 is registered already (as left.shared@1)");
    let e = add("a.b", "c(x: float) -> y", "x").err().unwrap();
    assert_eq!(e.message(), "'a.b' cannot be the domain of an op");
    let e = run("left.sharde").unwrap_err();
    assert!(e.to_string().contains("did you mean 'left.shared'?"), "{e}");
}

#[test]
fn a_users_op_with_its_own_kernel_and_signatures() {
    register(weighted_rows()).unwrap();
    let x: Vec<f32> = (0..10).map(|i| i as f32 - 4.0).collect();
    let w = vec![2.0f32, -1.0, 0.5, 3.0, 1.0];
    let want: Vec<f64> = (0..10).map(|i| (x[i] * w[i / 2]) as f64).collect();
    let dw: Vec<f64> = (0..5).map(|r| (x[2 * r] + x[2 * r + 1]) as f64).collect();
    oflow::run_ranks(3, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        for (sx, sw, out) in
            [("S0", "S0", "[S(0)]"), ("S1", "B", "[S(1)]"), ("P", "B", "[P(sum)]"), ("B", "P", "[P(sum)]")]
        {
            let (sx, sw): (NdSbp, NdSbp) = (sx.parse()?, sw.parse()?);
            let x = from_vec(x.clone(), [5, 2], (&mesh, sx))?;
            let w = from_vec(w.clone(), [5], (&mesh, sw))?.requires_grad_(true)?;
            oflow::take_comm_trace();
            let y = call("weighted_rows", &[(&x).into(), (&w).into()], &[])?.remove(0);
            assert!(oflow::take_comm_trace().is_empty(), "boxed although a signature fits");
            assert_eq!(y.sbp()?.to_string(), out);
            assert_eq!(y.to_f64_vec()?, want);
            y.sum(())?.backward()?;
            assert_eq!(w.grad().expect("gradient").to_f64_vec()?, dw);
        }
        Ok(())
    })
    .unwrap();
    let e = register(weighted_rows()).err().expect("a second op of the name");
    assert_eq!(e.message(), "op test.weighted_rows@1 is registered already (as test.weighted_rows@1)");
}

#[test]
fn a_shape_mismatch_names_the_call_the_line_and_the_reason() {
    let e = oflow::run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let a = zeros([4, 2], (&mesh, sbp![S(0)]))?;
        let b = zeros([3, 3], (&mesh, sbp![B]))?;
        let e = a.matmul(&b).unwrap_err();
        let line = line!() - 1;
        assert_eq!(e.kind(), ErrorKind::Shape);
        // Logical: the program may catch it and go on, on every rank alike.
        assert!(e.is_logical());
        assert_eq!(zeros([2], (&mesh, sbp![S(0)]))?.to_vec::<f32>()?, [0.0; 2]);
        let at = format!("\n  at {}:{line}", file!());
        assert_eq!(e.site().map(|s| s.line), Some(line));
        assert!(e.to_string().contains(&at), "{e}");
        Ok(e.to_string())
    });
    for text in e.unwrap() {
        let first = "matmul(f32[4, 2] [S(0)], f32[3, 3] [B]) on cpu[4]: inner dims differ: 2 and 3";
        assert_eq!(text.lines().next(), Some(first), "{text}");
    }
    let (a, b) = (zeros([4, 2], Device::Cpu).unwrap(), zeros([3], Device::Cpu).unwrap());
    let e = a.add(&b).unwrap_err().to_string();
    assert!(e.starts_with("add(f32[4, 2], f32[3]): shapes [4, 2] and [3] do not broadcast: 2 against 3\n  at "), "{e}");
    assert!(e.contains("\n  help: sizes must be equal or 1, aligned at the last dim"), "{e}");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let x = zeros([2], Device::Cpu).unwrap();
    let e = call("sofmax", &[(&x).into()], &[]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Registry);
    assert!(e.to_string().contains("sofmax") && e.to_string().contains("did you mean 'softmax'?"), "{e}");
}

#[test]
fn arguments_that_fit_no_overload_are_answered_with_the_overloads() {
    let x = zeros([2], Device::Cpu).unwrap();
    let e = call("add", &[(&x).into(), "three".into()], &[]).unwrap_err().to_string();
    for part in [
        "add(f32[2], \"three\"): no overload takes these arguments",
        "add(Tensor a, Tensor b)",
        "add(Tensor x, Scalar s)",
        file!(),
    ] {
        assert!(e.contains(part), "'{part}' is missing in:\n{e}");
    }
}

#[test]
fn a_missing_gradient_rule_says_so() {
    register(
        OpDef::new("no_rule(x: float) -> y")
            .unwrap()
            .domain("test")
            .cpu(|cx| Ok(oflow::kernels::cpu::copy::copy(cx.input(0)?, cx.output(0))?)),
    )
    .unwrap();
    let x = ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let y = call("no_rule", &[(&x).into()], &[]).unwrap().remove(0);
    let e = y.sum(()).unwrap().backward().unwrap_err();
    assert_eq!(e.message(), "op 'test.no_rule' has no gradient rule");
    assert_eq!(e.help_text(), Some("declare one with `OpDef::grad`, or `detach()` the input"));
}

#[test]
fn a_gradient_given_as_data_takes_several_outputs_of_one_call() {
    use oflow::ops::GradArg::{Input, OutGrad, Output};
    use std::sync::atomic::{AtomicUsize, Ordering};
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let product = |name: &str, outputs: &str| OpDef::new(&format!("{name} -> {outputs}")).unwrap().domain("wired");
    // y = a b; the gradients are dy b and dy a, by one op of two outputs.
    let both = product("product_grad(dy: float, a: float, b: float)", "(da, db)")
        .cpu(|cx| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            for (i, other) in [(0, 2), (1, 1)] {
                let (dy, x) = (cx.input(0)?.as_slice::<f64>()?, cx.input(other)?.as_slice::<f64>()?);
                // SAFETY: the outputs of this call; nothing else uses them while the kernel runs.
                let d = unsafe { cx.output(i).as_mut_slice::<f64>()? };
                d.iter_mut().zip(dy.iter().zip(x)).for_each(|(d, (dy, x))| *d = dy * x);
            }
            Ok(())
        })
        .grad(Grad::None);
    register(both).unwrap();
    let text = "product(a: float, b: float; k: runtime float = 1.0)";
    let kernel = |cx: &oflow::ops::KernelCx<'_>| {
        let (a, b) = (cx.input(0)?.as_slice::<f64>()?, cx.input(1)?.as_slice::<f64>()?);
        // SAFETY: as above.
        let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
        y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (a, b))| *y = a * b);
        Ok(())
    };
    let grad = Grad::wiring("wired.product_grad", &[OutGrad(0), Input(0), Input(1)], &[], &[0, 1]);
    register(product(text, "y").cpu(kernel).grad(grad)).unwrap();
    let x = |v: f64, on: bool| from_vec(vec![v, -v], [2], Device::Cpu).unwrap().requires_grad_(on).unwrap();
    for (needs_a, needs_b) in [(true, true), (true, false), (false, true)] {
        let (a, b, before) = (x(3.0, needs_a), x(5.0, needs_b), CALLS.load(Ordering::Relaxed));
        let y = call("wired.product", &[(&a).into(), (&b).into()], &[]).unwrap().remove(0);
        y.sum(()).unwrap().backward().unwrap();
        let grad = |t: &Tensor| t.grad().map(|g| g.to_f64_vec().unwrap());
        assert_eq!(grad(&a), needs_a.then(|| vec![5.0, -5.0]));
        assert_eq!(grad(&b), needs_b.then(|| vec![3.0, -3.0]));
        assert_eq!(CALLS.load(Ordering::Relaxed) - before, 1, "one call for both gradients");
    }
    // What leads nowhere is refused when the op is registered.
    let wrong = |args: &[oflow::ops::GradArg], attrs: &[&str], inputs: &[usize]| {
        let grad = Grad::wiring("wired.product_grad", args, attrs, inputs);
        register(product("lost(a: float, b: float)", "y").grad(grad)).err().unwrap().message().to_string()
    };
    assert_eq!(wrong(&[], &[], &[2]), "op lost: its gradient is wired to input 2, which it does not have");
    assert_eq!(wrong(&[Output(1)], &[], &[0]), "op lost: its gradient is wired to Output(1), which it does not have");
    assert_eq!(wrong(&[], &["k"], &[0]), "op lost: its gradient is wired to the attribute 'k', which it does not have");
    let grad = Grad::wiring("wired.product_grad", &[OutGrad(0), Input(0), Input(0)], &[], &[0, 1, 0]);
    register(product("thrice(a: float, b: float)", "y").cpu(kernel).grad(grad)).unwrap();
    let (a, b) = (x(3.0, true), x(5.0, true));
    // The op that it calls is there when the call is recorded.
    let e = call("wired.thrice", &[(&a).into(), (&b).into()], &[]).unwrap_err();
    assert_eq!(e.message(), "the gradient of thrice calls 'wired.product_grad' for its output 2, and it has 2");
    call("wired.thrice", &[a.detach().into(), b.detach().into()], &[]).unwrap();
}

#[test]
fn a_global_op_without_a_context_is_an_error() {
    let mesh = Placement::of_world(Device::Cpu, 1).unwrap();
    let e = zeros([2], (&mesh, sbp![B])).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Context);
}

#[test]
fn a_registered_op_is_given_a_kernel_a_gradient_and_signatures_but_nothing_is_replaced() {
    use oflow::backend::add_kernel;
    use oflow::ops::{KernelDef, KernelPred, Priority, add_gradient, add_signatures};
    use std::sync::atomic::{AtomicUsize, Ordering};
    // An op of somebody else's crate: no gradient, one kernel, whole tensors only.
    let twice = |cx: &oflow::ops::KernelCx<'_>| {
        let x = cx.input(0)?.as_slice::<f64>()?;
        // SAFETY: the output of this call; nothing else uses it while the kernel runs.
        let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        Ok(())
    };
    register(OpDef::new("twice(x: float) -> y").unwrap().domain("test").cpu(twice)).unwrap();
    let run = |x: &Tensor| Ok::<_, oflow::Error>(call("twice", &[x.into()], &[])?.remove(0));
    let x = from_vec(vec![1.0f64, -3.0], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let e = run(&x).unwrap().sum(()).unwrap().backward().unwrap_err();
    assert!(e.message().contains("no gradient rule"), "{e}");

    add_gradient(
        "twice",
        Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dx = g.call("twice", &[dy], &[])?;
            g.set(0, dx)
        }),
    )
    .unwrap();
    run(&x).unwrap().sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_f64_vec().unwrap(), [2.0, 2.0]);
    let e = add_gradient("twice", Grad::None).unwrap_err();
    assert!(e.message().contains("is there already"), "{e}");
    assert!(add_gradient("softmax", Grad::None).is_err());

    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let counted = move |cx: &oflow::ops::KernelCx<'_>| {
        CALLS.fetch_add(1, Ordering::Relaxed);
        twice(cx)
    };
    let wide = KernelPred::InputDType(0, DType::F64);
    // The plan that the calls above have left is not used any more.
    add_kernel("twice", KernelDef::cpu("twice_f64", counted).when(wide.clone()).priority(Priority::Optimized)).unwrap();
    assert_eq!(run(&x).unwrap().to_f64_vec().unwrap(), [2.0, -6.0]);
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
    for again in
        [KernelDef::cpu("twice_f64", twice), KernelDef::cpu("another", twice).when(wide).priority(Priority::Optimized)]
    {
        let e = add_kernel("twice", again).unwrap_err();
        assert!(e.to_string().contains("twice_f64") && e.help_text().is_some(), "{e}");
    }
    assert!(add_kernel("twise", KernelDef::cpu("k", twice)).unwrap_err().help_text().unwrap().contains("twice"));

    let layouts = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let before = run(&ones([4], (&mesh, sbp![S(0)]))?.cast(DType::F64)?)?.sbp()?.clone();
        Ok(before)
    });
    assert_eq!(layouts.unwrap()[0], sbp![B]);
    add_signatures("twice", |c| {
        Ok((0..c.shape(0)?.len()).map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(d)])).collect())
    })
    .unwrap();
    let layouts = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let y = run(&ones([4], (&mesh, sbp![S(0)]))?.cast(DType::F64)?)?;
        assert_eq!(y.to_f64_vec()?, [2.0; 4]);
        Ok(y.sbp()?.clone())
    });
    assert_eq!(layouts.unwrap()[0], sbp![S(0)]);
}

/// The whole of what a crate writes to call its own op by the fast path: no name is looked up and nothing allocated per call.
mod another_crate {
    use oflow::interpreter::Call;
    use oflow::{Result, Scalar, Tensor, op};

    /// `by` times x.
    #[track_caller]
    pub fn times(x: &Tensor, by: impl Into<Scalar>) -> Result<Tensor> {
        Call::new(op!("times")?, &[Some(x)]).runtime([by]).run1()
    }

    /// x becomes `by` times x.
    #[track_caller]
    pub fn times_(x: &Tensor, by: impl Into<Scalar>) -> Result<()> {
        Call::new(op!("times")?, &[Some(x)]).runtime([by]).given(x).run().map(drop)
    }
}

#[test]
fn another_crate_calls_its_own_op_by_the_fast_path() {
    use another_crate::{times, times_};
    let x = ones([3], Device::Cpu).unwrap();
    // Before the op is there the place says so, and knows it as soon as it is.
    let (e, line) = (times(&x, 2.0).unwrap_err(), line!());
    assert_eq!(e.kind(), ErrorKind::Registry, "{e} {line}");
    register(OpDef::elementwise("times(x: float; by: runtime float = 2.0) -> y", "by * x").unwrap().domain("test"))
        .unwrap();
    let x = x.requires_grad_(true).unwrap();
    times(&x, 2.5).unwrap().sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [2.5; 3]);
    let y = x.detach().copy().unwrap();
    times_(&y, 4.0).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [4.0; 3]);
    let ints = arange(2, Device::Cpu).unwrap();
    let (e, line) = (times(&ints, 2.0).unwrap_err(), line!());
    assert_eq!(e.site().map(|s| (s.file, s.line)), Some((file!(), line)), "{e}");
    assert!(e.to_string().starts_with("test.times(i64[2])"), "{e}");
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let y = times(&ones([4], (&mesh, sbp![S(0)]))?, 3.0)?;
        assert_eq!((y.sbp()?.to_string(), y.to_vec::<f32>()?), ("[S(0)]".to_string(), vec![3.0; 4]));
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_expression_says_what_it_may_read() {
    let said = |text: &str| OpDef::elementwise(text, "alpha * x").err().map(|e| e.to_string());
    assert_eq!(said("scaled_by(x: float; alpha: runtime float = 1.0) -> y"), None);
    let e = said("scaled_by(x: float; alpha: float = 1.0) -> y").unwrap();
    assert!(e.contains("unknown name 'alpha'") && e.contains("declare `alpha: runtime float`"), "{e}");
    let e = said("scaled_by(x: float) -> y").unwrap();
    assert!(e.contains("unknown name 'alpha'") && !e.contains("declare"), "{e}");
    for (outputs, n) in [("()", 0), ("", 0), ("(y, z)", 2)] {
        let e = said(&format!("scaled_by(x: float; alpha: runtime float = 1.0) -> {outputs}")).unwrap();
        assert!(e.contains(&format!("an expression gives one output; the declaration has {n}")), "{e}");
    }
}
