//! Which element types and numbers of dims an input takes, as data.

use super::{add, run};
use oflow::ops::{DTypeRule, OpDef, OpSignature};
use oflow::prelude::*;
use oflow::{ErrorKind, testing};

fn doubled(text: &str) -> Result<OpDef> {
    Ok(OpDef::new(text)?.dtype(DTypeRule::Input(0)).grad(oflow::ops::Grad::None).cpu(|cx| {
        oflow::kernels::cpu::copy::copy(cx.input(0)?, cx.output(0))?;
        Ok(())
    }))
}

#[test]
fn inputs_outside_the_sets_are_refused_before_anything_else() {
    let op = add(doubled("table(x: f32|bf16|int[2..=3], mask?: bool[0|2]) -> y").map(|o| {
        // Never reached by a call that the grammar refuses.
        o.check(|c| match c.shape("x")?.len() {
            2 | 3 => Ok(()),
            n => Err(Error::shape(format!("{n} dims came through"))),
        })
        .samples(&["f32[3, 4] bool[2, 2]", "i64[2, 3, 4] -", "bf16[2, 2] bool[]"])
    }));
    let tensor = |shape: &[usize], dtype| zeros_as(shape, dtype);
    let no_mask = |x: &Tensor| run("table", &[x], &[]);
    assert_eq!(no_mask(&tensor(&[2, 3], DType::BF16)).unwrap()[0].dtype(), DType::BF16);
    let e = no_mask(&tensor(&[2, 3], DType::F64)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DType);
    assert!(
        e.to_string().starts_with("hooks.table(f64[2, 3], none): input 'x' must be f32|bf16|int, not f64\n  at "),
        "{e}"
    );
    for (shape, text) in [(vec![4], "f32[4]"), (vec![2, 2, 2, 2], "f32[2, 2, 2, 2]")] {
        let e = no_mask(&tensor(&shape, DType::F32)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Shape);
        assert_eq!(e.message(), format!("input 'x' must have 2 to 3 dims, not {text}"));
        assert_eq!(e.help_text().unwrap(), format!("it has {} dims; `reshape` gives it others", shape.len()));
    }
    let e = run("table", &[&tensor(&[2, 2], DType::F32), &tensor(&[3], DType::Bool)], &[]).unwrap_err();
    assert_eq!(e.message(), "input 'mask' must have 0 or 2 dims, not bool[3]");
    // The harness makes calls that the sets exclude, and all must be refused.
    let report = testing::conformance(op).unwrap();
    assert!(report.bad_arguments > 30, "{report}");
}

fn zeros_as(shape: &[usize], dtype: DType) -> Tensor {
    zeros(shape, Device::Cpu).unwrap().cast(dtype).unwrap()
}

#[test]
fn sets_are_part_of_what_an_op_is() {
    let of = |text: &str| OpDef::new(text).unwrap().identity();
    let all = [
        "f(x: float) -> y",
        "f(x: f32|f64) -> y",
        "f(x: float[2]) -> y",
        "f(x: no_grad float) -> y",
        "f(x: host float) -> y",
    ];
    let mut found: Vec<u64> = all.iter().map(|t| of(t)).collect();
    found.dedup();
    assert_eq!(found.len(), all.len());
    let sig: OpSignature = OpSignature::parse("f( x:f32 | f64 [ 2 ] ) -> y").unwrap();
    assert_eq!(sig.to_string(), "f(x: f32|f64[2]) -> y");
    let e = OpSignature::parse("f(x: float[1..3]) -> y").unwrap_err();
    assert_eq!(e.message(), "op declaration 'f(x: float[1..3]) -> y': '[1..3]' is not a set of numbers of dims");
}

#[test]
fn built_in_ops_say_it_so() {
    let x = zeros([4], Device::Cpu).unwrap();
    assert_eq!(x.tril(0).unwrap_err().message(), "input 'x' must have 2 dims or more, not f32[4]");
    let ids = zeros_as(&[3], DType::U8);
    let e = zeros([4, 2], Device::Cpu).unwrap().embedding(&ids).unwrap_err();
    assert_eq!(e.message(), "input 'ids' must be i32|i64, not u8");
}
