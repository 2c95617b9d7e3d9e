//! Factor rules: partial sums are taken only where the op says that it is linear.

use super::{add, run};
use oflow::ops::{DTypeRule, Grad, InferCtx, Op, OpDef, TensorType};
use oflow::prelude::*;
use oflow::testing;

/// `parts(x, w) -> (y, total)`: y = x² + w and the sum of w, which is linear in w alone and does not depend on x.
fn parts(name: &str) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(x: f64[1], w: f64[1]) -> (y, total)"))?
        .check(|c| if c.input(0)? == c.input(1)? { Ok(()) } else { Err(Error::shape("x and w differ")) })
        .shapes(|c| Ok([c.shape(0)?.into(), Default::default()].into_iter().collect()))
        .dtype(DTypeRule::Input(0))
        .factors("m, m -> m,")
        .traits(|t| t.run_empty = true)
        .cpu(|cx| {
            let (x, w) = (cx.input("x")?.as_slice::<f64>()?, cx.input("w")?.as_slice::<f64>()?);
            // SAFETY: the outputs of this call, which nothing else uses while the kernel runs.
            let (y, total) = unsafe { (cx.output(0).as_mut_slice::<f64>()?, cx.output(1).as_mut_slice::<f64>()?) };
            (0..y.len()).for_each(|i| y[i] = x[i] * x[i] + w[i]);
            total[0] = w.iter().sum();
            Ok(())
        })
        .grad(Grad::None)
        .samples(&["f64[6] f64[6]", "f64[5] f64[5]"]))
}

/// The 1-d signatures as text.
fn rows(op: &'static Op) -> Vec<String> {
    let types = [Some(TensorType::new(&[6], DType::F64)), Some(TensorType::new(&[6], DType::F64))];
    let (attrs, kinds) = (Default::default(), []);
    let ctx = InferCtx { op, inputs: &types, attrs: &attrs, runtime_kinds: &kinds };
    let outs = op.infer(&ctx).unwrap();
    op.signatures_1d(&ctx, &outs).unwrap().iter().map(|s| s.to_string()).collect()
}

#[test]
fn a_factor_rule_takes_partial_sums_only_where_the_op_is_linear() {
    let (plain, linear) = (add(parts("parts")), add(parts("sums").map(|o| o.linear_for("w", &["total"]))));
    assert_eq!(rows(plain), ["B, B -> B, B", "S(0), S(0) -> S(0), P(sum)"]);
    testing::conformance(plain).unwrap();
    // Said wrongly: y depends on w too, so it is not whole where w is partial. The harness finds it.
    assert_eq!(rows(linear)[2], "B, P(sum) -> B, P(sum)");
    let e = testing::conformance(linear).unwrap_err().to_string();
    assert!(e.contains("hooks.sums") && e.contains("[P(sum)]"), "{e}");
    let all = add(parts("squares").map(|o| o.linear_in(&["x"])));
    assert_eq!(rows(all)[2], "P(sum), B -> P(sum), P(sum)");
    assert!(testing::conformance(all).is_err());
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_vec(vec![1.0f64, 2.0, 3.0], [3], (&mesh, sbp![P]))?;
        let outs = run("parts", &[&x, &x], &[])?;
        assert!(outs.iter().all(|t| t.sbp().is_ok_and(|s| s[0] != sbp![P][0]) || t.shape().is_empty()));
        assert_eq!(outs[0].to_vec::<f64>()?, [2.0, 6.0, 12.0]);
        assert_eq!(outs[1].item()?, 6.0);
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_is_said_to_be_linear_must_be_there() {
    let register = |o: OpDef| oflow::ops::register(o.domain("hooks")).err().unwrap().message().to_string();
    assert_eq!(
        register(parts("bad_linear").unwrap().linear_in(&["z"])),
        "op bad_linear: it is linear in input 'z', but it has x, w"
    );
    assert_eq!(
        register(parts("bad_output").unwrap().linear_for("x", &["z"])),
        "op bad_output: it is linear in output 'z', but it has y, total"
    );
    assert_eq!(
        register(parts("bad_rows").unwrap().signatures(&["S0, S0 -> S0, P"]).linear_in(&["x"])),
        "op bad_rows: `linear_in` goes with `factors`; a list of signatures says itself where P(sum) is taken"
    );
}
