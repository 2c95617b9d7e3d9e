//! Factor rules: partial sums are taken only where the op says that it is linear.

use super::{add, run};
use oflow::ErrorKind;
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

/// An op of two inputs and perhaps a third, and a list, whose kernels read by the sizes of the first.
fn by_factors(text: &str, rule: &str) -> &'static Op {
    let def = OpDef::new(text).unwrap().dtype(DTypeRule::Input(0)).factors(rule);
    add(Ok(def.cpu(|_| Ok(())).grad(Grad::None)))
}

/// The letters of a factor rule are sizes: inputs that do not have them are refused in every call, local or global.
#[test]
fn dims_of_one_factor_have_one_size() {
    let of = |shapes: &[&[usize]]| -> Vec<Tensor> { shapes.iter().map(|s| ones(*s, Device::Cpu).unwrap()).collect() };
    let call = |op: &'static Op, shapes: &[&[usize]]| {
        let inputs = of(shapes);
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Some).collect();
        oflow::interpreter::Call::new(op, &inputs).run().map(drop)
    };
    let refused = |op: &'static Op, shapes: &[&[usize]], kind: ErrorKind, words: &[&str]| {
        let e = call(op, shapes).unwrap_err();
        println!("{e}\n");
        assert_eq!(e.kind(), kind, "{e}");
        assert!(words.iter().all(|w| e.to_string().contains(w)) && e.to_string().contains("sharding.rs"), "{e}");
    };
    let plus = by_factors("sized(x: f32, g: f32) -> y", "mn, mn -> mn");
    call(plus, &[&[4, 6], &[4, 6]]).unwrap();
    for bad in [&[2, 3][..], &[4, 5], &[1, 6], &[1, 1], &[0, 6]] {
        refused(plus, &[&[4, 6], bad], ErrorKind::Shape, &["input 'g' has the shape", "of input 'x'", "mn, mn -> mn"]);
    }
    for bad in [&[6][..], &[], &[1, 4, 6]] {
        refused(plus, &[&[4, 6], bad], ErrorKind::Shape, &["input 'g' has the shape", "2 dims are needed"]);
    }
    // One letter twice in one input, and a letter that the output has with another size.
    refused(
        by_factors("square_only(x: f32) -> y", "mm -> mm"),
        &[&[3, 4]],
        ErrorKind::Shape,
        &["dim 1 of it must be 3"],
    );
    let wrong = by_factors("wrong_output(x: f32, w: f32) -> y", "mk, kn -> mn");
    refused(wrong, &[&[4, 5], &[5, 6]], ErrorKind::Registry, &["output 'y' has the shape [4, 5]", "its shape rule"]);
    // Batch dims broadcast.
    let batch = by_factors("batched(x: f32, w: f32) -> y", "...mk, ...kk -> ...mk");
    call(batch, &[&[7, 3, 4, 5], &[3, 5, 5]]).unwrap();
    call(batch, &[&[7, 3, 4, 5], &[7, 1, 5, 5]]).unwrap();
    refused(batch, &[&[7, 3, 4, 5], &[2, 5, 5]], ErrorKind::Shape, &["batch dims do not broadcast with 3"]);
    refused(batch, &[&[1, 4, 5], &[3, 5, 5]], ErrorKind::Registry, &["output 'y'"]);
    refused(batch, &[&[4], &[5, 5]], ErrorKind::Shape, &["at least 2 dims are needed"]);
    // An optional input in the middle, and a list.
    let maybe = by_factors("maybe(x: f32, b?: f32, w: f32) -> y", "mk, k, k -> mk");
    let (x, w) = (ones([4, 5], Device::Cpu).unwrap(), ones([5], Device::Cpu).unwrap());
    oflow::interpreter::Call::new(maybe, &[Some(&x), None, Some(&w)]).run().unwrap();
    refused(maybe, &[&[4, 5], &[5], &[4]], ErrorKind::Shape, &["input 'w' has the shape [4]"]);
    let list = by_factors("all_of(x: f32, (xs: f32)...) -> y", "m, m -> m");
    call(list, &[&[4], &[4], &[4], &[4]]).unwrap();
    refused(list, &[&[4], &[4], &[3]], ErrorKind::Shape, &["has the shape [3]"]);
    // Global calls the same, on each rank; absent inputs and lists have signatures.
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        for sbp in [sbp![B], sbp![S(0)]] {
            let (x, g) = (ones([4, 6], (&mesh, &sbp))?, ones([2, 3], (&mesh, &sbp))?);
            let e = oflow::interpreter::Call::new(plus, &[Some(&x), Some(&g)]).run().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Shape, "{e}");
        }
        let x = ones([4, 5], (&mesh, sbp![S(0)]))?;
        let w = ones([5], (&mesh, sbp![B]))?;
        let y = oflow::interpreter::Call::new(maybe, &[Some(&x), None, Some(&w)]).run()?.remove(0);
        assert_eq!(y.sbp()?.to_string(), "[S(0)]");
        let v = ones([4], (&mesh, sbp![S(0)]))?;
        let y = oflow::interpreter::Call::new(list, &[Some(&v), Some(&v), Some(&v), Some(&v)]).run()?.remove(0);
        assert_eq!(y.sbp()?.to_string(), "[S(0)]");
        Ok(())
    })
    .unwrap();
}
