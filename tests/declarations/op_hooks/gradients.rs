//! Inputs and outputs that have no gradient, as data and by code.

use super::{add, run};
use oflow::ops::{DTypeRule, Grad, OpDef};
use oflow::prelude::*;
use oflow::testing;

/// `weigh(x, w) -> (y, seen)`: y = x w; w is a constant for backward, and so is `seen`, which is x.
fn weigh(text: &str) -> Result<OpDef> {
    Ok(OpDef::new(text)?
        .dtype(DTypeRule::Input(0))
        .check(|c| match c.input("x")? == c.input("w")? {
            true => Ok(()),
            false => Err(Error::shape("x and w differ")),
        })
        .signatures(&["S0, S0 -> S0, S0"])
        .cpu(|cx| {
            let (x, w) = (cx.input("x")?.as_slice::<f64>()?, cx.input("w")?.as_slice::<f64>()?);
            // SAFETY: the outputs of this call, which nothing else uses while the kernel runs.
            let (y, seen) = unsafe { (cx.output(0).as_mut_slice::<f64>()?, cx.output(1).as_mut_slice::<f64>()?) };
            (0..y.len()).for_each(|i| y[i] = x[i] * w[i]);
            seen.copy_from_slice(x);
            Ok(())
        })
        .grad(Grad::rule(|g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            assert!(!g.needs(1), "nobody asks for the gradient of w");
            let w = g.input_named("w")?;
            let dx = g.call("mul", &[dy, w], &[])?;
            g.set(0, dx)
        }))
        .samples(&["f64[4] f64[4]", "f64[5] f64[5]"]))
}

#[test]
fn a_declaration_says_what_has_no_gradient() {
    let op = add(weigh("weigh(x: f64[1], w: no_grad f64[1]) -> (y, seen: no_grad)"));
    let leaf = |v: Vec<f64>| from_vec(v, [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let (x, w) = (leaf(vec![1.0, 2.0]), leaf(vec![3.0, 5.0]));
    let outs = run("weigh", &[&x, &w], &[]).unwrap();
    assert_eq!((outs[0].requires_grad(), outs[1].requires_grad()), (true, false));
    outs[0].sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [3.0, 5.0]);
    assert!(w.grad().is_none());
    // Nothing is recorded where only the constant requires a gradient.
    assert!(!run("weigh", &[&x.detach(), &w], &[]).unwrap()[0].requires_grad());
    // The harness compares the other derivatives, in every layout.
    let report = testing::conformance(op).unwrap();
    assert!(report.to_string().contains("derivatives"), "{report}");
}

#[test]
fn an_op_decides_by_its_attributes() {
    let text = "weigh_by(x: f64[1], w: f64[1]; fixed: bool = true) -> (y, seen)";
    add(weigh(text).map(|o| {
        o.modify_inputs(|c, inputs| {
            inputs[1].no_grad = c.bool("fixed")?;
            Ok(())
        })
        .modify_outputs(|c, outs, props| {
            assert_eq!(outs.len(), 2);
            props[1].no_grad = c.bool("fixed")?;
            Ok(())
        })
    }));
    let x = from_vec(vec![1.0f64, 2.0], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    for fixed in [true, false] {
        let outs = run("weigh_by", &[&x, &x.detach()], &[("fixed", fixed.into())]).unwrap();
        assert_eq!((outs[0].requires_grad(), outs[1].requires_grad()), (true, !fixed));
    }
    // The mark is of the plan, and a plan is made for each value of the attribute: w is constant or not.
    let w = from_vec(vec![3.0f64, 5.0], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let outs = run("weigh_by", &[&x.detach(), &w], &[("fixed", true.into())]).unwrap();
    assert!(!outs[0].requires_grad());
    assert!(run("weigh_by", &[&x.detach(), &w], &[("fixed", false.into())]).unwrap()[0].requires_grad());
}

#[test]
fn physical_shapes_are_checked_against_the_split() {
    // The op keeps every second row. Its rule says that rows may be split, which is wrong for shards of odd length.
    let op = |name: &str| {
        Ok::<_, oflow::Error>(
            OpDef::new(&format!("{name}(x: f64[1]) -> y"))?
                .shape1(|c| Ok([c.shape("x")?[0].div_ceil(2)].into_iter().collect()))
                .dtype(DTypeRule::Input(0))
                .signatures(&["S0 -> S0"])
                .physical_shapes(|c| Ok([[c.shape("x")?[0].div_ceil(2)].into_iter().collect()].into_iter().collect()))
                .cpu(|cx| {
                    let x = cx.input("x")?.as_slice::<f64>()?;
                    // SAFETY: the output of this call, which nothing else uses while the kernel runs.
                    let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
                    (0..y.len()).for_each(|i| y[i] = x[2 * i]);
                    Ok(())
                })
                .grad(Grad::None),
        )
    };
    add(op("halved"));
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = |n: usize| from_vec((0..n).map(|i| i as f64).collect(), [n], (&mesh, sbp![S(0)]));
        assert_eq!(run("halved", &[&x(8)?], &[])?[0].to_vec::<f64>()?, [0.0, 2.0, 4.0, 6.0]);
        // Both ranks hold three rows. The op would make two of each, but the split of three rows is two and one. All ranks refuse.
        let e = run("halved", &[&x(6)?], &[]).unwrap_err();
        let why = "halved: on rank 1 the shard of output 'y' is [1], but from input shards f64[3] the op makes [2]";
        assert_eq!((e.message(), e.is_logical()), (why, true));
        Ok(())
    })
    .unwrap();
}
