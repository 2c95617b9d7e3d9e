//! Outputs that not every call makes, and outputs that stand for several tensors.

use super::{add, run};
use oflow::ops::{DTypeRule, Grad, OpDef};
use oflow::prelude::*;
use oflow::testing;

/// `moments(x; squares, count) -> (sum, squares?, n?)`.
fn moments() -> Result<OpDef> {
    let text = "moments(x: f64[1], weights?: no_grad f64[1]; squares: bool = false) -> \
                (total, square?(squares), weight?(weights): no_grad)";
    Ok(OpDef::new(text)?
        .shapes(|c| {
            Ok((0..1 + usize::from(c.bool("squares")?) + usize::from(c.has("weights")))
                .map(|_| Default::default())
                .collect())
        })
        .dtype(DTypeRule::Fixed(vec![DType::F64, DType::F64, DType::F64]))
        .cpu(|cx| {
            let x = cx.input("x")?.as_slice::<f64>()?;
            let set = |name: &str, v: f64| -> Result<()> {
                // SAFETY: an output of this call, which nothing else uses while the kernel runs.
                let out = unsafe { cx.output_named(name)?.as_mut_slice::<f64>()? };
                out[0] = v;
                Ok(())
            };
            set("total", x.iter().sum())?;
            if cx.bool("squares")? {
                set("square", x.iter().map(|x| x * x).sum())?;
            }
            match cx.opt_input("weights") {
                Some(w) => set("weight", w.as_slice::<f64>()?.iter().sum()),
                None => Ok(()),
            }
        })
        .grad(Grad::rule(|g| {
            let x = g.input(0)?;
            let mut all = vec![];
            if let Some(d) = g.grad_of("total")? {
                let shape = g.input_shape(0);
                all.push(g.call("expand", &[d], &[("shape", shape.as_slice().into())])?);
            }
            if let Some(d) = g.grad_of("square")? {
                let twice = g.call("mul_scalar", &[x], &[("s", 2.0.into())])?;
                all.push(g.call("mul", &[d, twice], &[])?);
            }
            let Some(first) = all.pop() else { return Ok(()) };
            let sum = all.into_iter().try_fold(first, |a, b| g.call("add", &[a, b], &[]))?;
            g.set(0, sum)
        }))
        .samples(&["f64[4] -; squares=true", "f64[3] f64[2]", "f64[3] f64[3]; squares=true"]))
}

#[test]
fn optional_outputs_are_made_where_the_call_asks_for_them() {
    let op = add(moments());
    let x = from_vec(vec![1.0f64, 2.0, 4.0], [3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let w = from_vec(vec![0.5f64, 0.25], [2], Device::Cpu).unwrap();
    let values = |outs: &[Tensor]| outs.iter().map(|t| t.item().unwrap()).collect::<Vec<f64>>();
    let squares = |on: bool| [("squares", on.into())];
    assert_eq!(values(&run("moments", &[&x], &squares(false)).unwrap()), [7.0]);
    assert_eq!(values(&run("moments", &[&x], &squares(true)).unwrap()), [7.0, 21.0]);
    let outs = run("moments", &[&x, &w], &squares(false)).unwrap();
    assert_eq!((values(&outs), outs[1].requires_grad()), (vec![7.0, 0.75], false));
    let outs = run("moments", &[&x, &w], &squares(true)).unwrap();
    assert_eq!(
        (values(&outs), outs.iter().map(|t| t.requires_grad()).collect::<Vec<_>>()),
        (vec![7.0, 21.0, 0.75], vec![true, true, false])
    );
    outs[1].backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [2.0, 4.0, 8.0]);
    testing::conformance(op).unwrap();
}

/// `scaled(xs...; by) -> ys...(xs)`.
fn scaled() -> Result<OpDef> {
    Ok(OpDef::new("scaled(xs...: f64; by: runtime float = 2.0) -> ys...(xs)")?
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let n = c.inputs_of("xs")?.count();
            let row = vec!["S0"; n].join(", ");
            if c.inputs_of("xs")?.any(|t| t.shape.is_empty()) {
                Ok(vec![])
            } else {
                Ok(vec![format!("{row} -> {row}").parse()?])
            }
        })
        .cpu(|cx| {
            let by = cx.float("by")?;
            for (i, x) in cx.inputs_of("xs")?.enumerate() {
                // SAFETY: an output of this call, which nothing else uses while the kernel runs.
                let y = unsafe { cx.output(i).as_mut_slice::<f64>()? };
                y.iter_mut().zip(x.as_slice::<f64>()?).for_each(|(y, x)| *y = by * x);
            }
            Ok(())
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let by = g.float("by")?;
            for i in 0..g.inputs() {
                if let Some(d) = g.grad(i) {
                    let dx = g.call("mul_scalar", &[d], &[("s", by.into())])?;
                    g.set(i, dx)?;
                }
            }
            Ok(())
        }))
        .samples(&["f64[4] f64[2, 3] f64[5]; by=0.5", "f64[3]"]))
}

#[test]
fn as_many_outputs_as_inputs() {
    let op = add(scaled());
    let make = |n: usize| ones([n], Device::Cpu.dtype(DType::F64)).unwrap();
    let outs = run("scaled", &[&make(1), &make(3)], &[]).unwrap();
    let shapes: Vec<&[usize]> = outs.iter().map(|t| t.shape()).collect();
    assert_eq!(shapes, [&[1usize][..], &[3]]);
    assert_eq!(outs[1].to_vec::<f64>().unwrap(), [2.0; 3]);
    testing::conformance(op).unwrap();
}

/// `pieces(x; n) -> parts...(n)`: n equal parts.
fn pieces() -> Result<OpDef> {
    Ok(OpDef::new("pieces(x: f64[1]; n: int) -> parts...(n)")?
        .shapes(|c| {
            let (len, n) = (c.shape("x")?[0], c.size("n")?);
            match n > 0 && len.is_multiple_of(n) {
                true => Ok((0..n).map(|_| [len / n].into_iter().collect()).collect()),
                false => Err(Error::shape(format!("{len} elements are not {n} equal parts"))),
            }
        })
        .dtype(DTypeRule::Input(0))
        .cpu(|cx| {
            let x = cx.input("x")?.as_slice::<f64>()?;
            for i in 0..cx.int("n")? as usize {
                // SAFETY: an output of this call, which nothing else uses while the kernel runs.
                let part = unsafe { cx.output(i).as_mut_slice::<f64>()? };
                part.copy_from_slice(&x[i * part.len()..][..part.len()]);
            }
            Ok(())
        })
        .grad(Grad::None)
        .samples(&["f64[6]; n=3", "f64[4]; n=1"]))
}

#[test]
fn as_many_outputs_as_an_attribute_says() {
    let op = add(pieces());
    let x = from_vec(vec![1.0f64, 2.0, 3.0, 4.0], [4], Device::Cpu).unwrap();
    let parts = run("pieces", &[&x], &[("n", 2i64.into())]).unwrap();
    assert_eq!(parts[1].to_vec::<f64>().unwrap(), [3.0, 4.0]);
    for (n, why) in
        [(-1i64, "attribute 'n' asks for -1 outputs, 0 to 4096 are possible"), (3, "4 elements are not 3 equal parts")]
    {
        assert_eq!(run("pieces", &[&x], &[("n", n.into())]).unwrap_err().message(), why);
    }
    testing::conformance(op).unwrap();
    // A shape rule that does not follow its own declaration is an error, not a wrong number of tensors.
    let wrong = OpDef::new("miscounts(x: f64[1]; n: int) -> parts...(n)").map(|o| {
        o.shapes(|c| Ok([c.shape(0)?.into()].into_iter().collect())).dtype(DTypeRule::Input(0)).cpu(|_| Ok(()))
    });
    add(wrong);
    let e = run("miscounts", &[&x], &[("n", 2i64.into())]).unwrap_err();
    assert_eq!(
        e.message(),
        "the shape rule gives 1 outputs, the call of miscounts(x: f64[1]; n: int) -> parts...(n) makes 2"
    );
}

#[test]
fn an_op_without_inputs_gives_one_element_or_says_a_shape() {
    let nothing = |name: &str| OpDef::new(&format!("{name}() -> y")).unwrap().domain("hooks").grad(Grad::None);
    let one = |def: OpDef| {
        def.cpu(|cx| {
            // SAFETY: the output of this call, which nothing else uses while the kernel runs.
            unsafe { cx.output(0).as_mut_slice::<f32>()? }.fill(7.0);
            Ok(())
        })
    };
    let op = oflow::ops::register(one(nothing("seven").dtype(DTypeRule::Fixed(vec![DType::F32])))).unwrap();
    let target = oflow::interpreter::Target::Local(Device::Cpu);
    let y = oflow::interpreter::Call::new(op, &[]).target(Some(&target)).run1().unwrap();
    assert_eq!((y.shape(), y.to_vec::<f32>().unwrap()), (&[1][..], vec![7.0]));
    let e = oflow::ops::register(one(nothing("of_no_dtype"))).err().unwrap().to_string();
    assert!(
        e.contains("of_no_dtype has no inputs from which its outputs have a dtype") && e.contains("help: say it"),
        "{e}"
    );
}
