//! Attributes, inputs and outputs by name.

use super::{add, run};
use oflow::ops::{DTypeRule, Grad, OpDef};
use oflow::prelude::*;
use oflow::sbp::Signature;
use oflow::{ErrorKind, testing};

/// `affine(x, w?; alpha, rows, mode, keep, weights) -> (y, total)`, which asks for all that it is given by name.
fn affine() -> Result<OpDef> {
    Ok(OpDef::new(
        "affine(x: f64[2], w?: f64[1]; mode: str = \"plus\", keep: bool = true, bias: floats = [1.0], \
         rows: int = 0, alpha: runtime float = 2.0) -> (y, total: no_grad)",
    )?
    .check(|c| match (c.str("mode")?, c.has("w")) {
        (_, true) if c.shape("w")? != &c.shape("x")?[1..] => Err(Error::shape("w is not as long as a row")),
        ("plus" | "minus", _) => Ok(()),
        (other, _) => Err(Error::argument(format!("mode '{other}' is neither plus nor minus"))),
    })
    .values(|v| match v.float("alpha")?.is_finite() && v.dtype("x")? == DType::F64 {
        true => Ok(()),
        false => Err(Error::argument("alpha must be finite")),
    })
    .shapes(|c| Ok([c.shape("x")?.into(), c.shape("x")?[1..].into()].into_iter().collect()))
    .dtype(DTypeRule::Input(0))
    .get_sbp(|_| Ok(vec!["S1, S0 -> S1, S0".parse::<Signature>()?]))
    .localize(|c| c.with("rows", c.outputs[0].size[0] as i64))
    .cpu(|cx| {
        let (x, y, total) = (cx.input("x")?, cx.output_named("y")?, cx.output_named("total")?);
        let sign = if cx.str("mode")? == "plus" { 1.0 } else { -1.0 };
        let (alpha, bias) = (cx.float("alpha")?, sign * cx.floats("bias")?.iter().sum::<f64>());
        assert_eq!((cx.int("rows")? as usize, cx.bool("keep")?), (x.dims()[0], true));
        assert!(cx.inputs_of("x")?.count() == 1 && cx.input_box("x")?.size.as_slice() == x.dims());
        let (x, w) = (x.as_slice::<f64>()?, cx.opt_input("w").map(|w| w.as_slice::<f64>()).transpose()?);
        // SAFETY: the outputs of this call, which nothing else uses while the kernel runs.
        let (y, total) = unsafe { (y.as_mut_slice::<f64>()?, total.as_mut_slice::<f64>()?) };
        total.fill(0.0);
        let columns = total.len();
        for (i, y) in y.iter_mut().enumerate() {
            *y = alpha * x[i] * w.map_or(1.0, |w| w[i % columns]) + bias;
            total[i % columns] += *y;
        }
        Ok(())
    })
    .grad(Grad::rule(|g| {
        let alpha = g.float("alpha")?;
        let Some(dy) = g.grad_of("y")? else { return Ok(()) };
        assert!(g.grad_of("total")?.is_none());
        let x = g.input_named("x")?;
        let scaled = g.call("mul_scalar", &[dy], &[("s", alpha.into())])?;
        if g.has(1) {
            let w = g.input_named("w")?;
            let dw = g.call("mul", &[scaled, x], &[])?;
            g.set_named("w", dw)?;
            let dx = g.call("mul", &[scaled, w], &[])?;
            return g.set_named("x", dx);
        }
        g.set_named("x", scaled)
    }))
    .samples(&["f64[3, 4] f64[4]; alpha=0.5, mode=minus", "f64[2, 3] -"]))
}

#[test]
fn every_context_is_asked_by_name() {
    let op = add(affine());
    let x = from_vec(vec![1.0f64, 2.0, 3.0, 4.0], [2, 2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let w = from_vec(vec![1.0f64, -1.0], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let outs = run("affine", &[&x, &w], &[("alpha", 3.0.into()), ("mode", "minus".into())]).unwrap();
    assert_eq!(outs[0].to_vec::<f64>().unwrap(), [2.0, -7.0, 8.0, -13.0]);
    assert_eq!(outs[1].to_vec::<f64>().unwrap(), [10.0, -20.0]);
    outs[0].sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [3.0, -3.0, 3.0, -3.0]);
    assert_eq!(w.grad().unwrap().to_vec::<f64>().unwrap(), [12.0, 18.0]);
    // On shards of unequal size `rows` is that of the logical tensor's shard.
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_vec((0..10).map(f64::from).collect(), [2, 5], (&mesh, sbp![S(1)]))?;
        let y = &run("affine", &[&x], &[])?[0];
        assert_eq!(y.sbp()?.to_string(), "[S(1)]");
        assert_eq!(y.to_vec::<f64>()?[..3], [1.0, 3.0, 5.0]);
        Ok(())
    })
    .unwrap();
    for (attrs, why) in [
        ([("mode", "times".into()), ("alpha", 1.0.into())], "mode 'times' is neither plus nor minus"),
        ([("mode", "plus".into()), ("alpha", f64::NAN.into())], "alpha must be finite"),
    ] {
        let e = run("affine", &[&x], &attrs).unwrap_err();
        assert_eq!(e.message(), why);
        assert_eq!(e.site().map(|s| s.file), Some(file!()));
    }
    testing::conformance(op).unwrap();
}

#[test]
fn an_unknown_name_is_answered_with_those_that_there_are() {
    let ask = |what: &'static str| {
        move |cx: &oflow::ops::KernelCx<'_>| match what {
            "input" => cx.input("y").map(drop),
            "several" => cx.input("xs").map(drop),
            "output" => cx.output_named("z").map(drop),
            "attribute" => cx.int("dims").map(drop),
            "type" => cx.str("dim").map(drop),
            _ => cx.ints("alpha").map(drop),
        }
    };
    for what in ["input", "several", "output", "attribute", "type", "runtime"] {
        let text = format!("asks_{what}(x: float, xs...: float; dim: int = 0, alpha: runtime float = 1.0) -> y");
        add(OpDef::new(&text).map(|o| o.cpu(ask(what))));
    }
    let x = ones([2], Device::Cpu).unwrap();
    for (what, why, help) in [
        ("input", "asks_input has no input 'y'", "it has: x, xs"),
        (
            "several",
            "input 'xs' of asks_several stands for several tensors",
            "ask for all of them: `inputs_of`, or for one by its position",
        ),
        ("output", "asks_output has no output 'z'", "it has: y"),
        ("attribute", "asks_attribute has no attribute 'dims'", "it has: dim, alpha"),
        ("type", "attribute 'dim' of asks_type is 0, which is not text", ""),
        ("runtime", "attribute 'alpha' of asks_runtime is a runtime attribute: a number, and no other value", ""),
    ] {
        let e = run(&format!("asks_{what}"), &[&x, &x], &[]).unwrap_err();
        assert_eq!((e.message(), e.help_text().unwrap_or_default()), (why, help));
        assert_eq!(e.kind(), ErrorKind::Value);
    }
    // What a plan must not depend on is out of reach where plans are made.
    add(OpDef::new("reads_number(x: float; alpha: runtime float = 1.0) -> y")
        .map(|o| o.check(|c| c.float("alpha").map(drop))));
    let e = run("reads_number", &[&x], &[]).unwrap_err();
    assert_eq!(
        e.message(),
        "attribute 'alpha' of reads_number is a runtime attribute, whose value is not known when a call is planned"
    );
}
