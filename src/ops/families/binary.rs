//! Elementwise functions of two tensors, with broadcasting and promotion; `where`.

use crate::error::Result;
use crate::ops::{DTypeRule, Grad, OpDef};
use oflow_kernels::DType;

const SAMPLES: &[&str] =
    &["f32[3, 5] f32[3, 5]", "f32[4, 3] f32[3]", "f32[2, 1, 3] f32[4, 1]", "i32[4] i32[4]+", "f32[2, 3]+ f64[3]+"];

const ADD: &str = "a + b.

```
use oflow::prelude::*;
let x = ones([2, 1], Device::Cpu)?;
let y = arange(3, Device::Cpu)?;
assert_eq!(x.add(&y)?.add(1.0)?.to_vec::<f32>()?, [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
# Ok::<(), oflow::Error>(())
```";

fn op(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(a, b) -> y"), expr)?.doc(doc).samples(SAMPLES))
}

fn compare(name: &str, sign: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(a, b) -> y"), &format!("a {sign} b"))?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .doc(&format!("True where a {sign} b."))
        .samples(&["f32[3, 5] f32[3, 5]", "i64[4, 3]<3 i64[3]<3"]))
}

fn logical(name: &str, word: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(a, b) -> y"), &format!("{word}(a, b)"))?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .doc(doc)
        .samples(&["bool[3, 5] bool[3, 5]", "i32[4, 3] bool[3]"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        op("add", "a + b", ADD),
        op("sub", "a - b", "a - b."),
        op("mul", "a * b", "a b, element by element."),
        op("div", "a / b", "a / b; of integers, a float.").map(|o| o.dtype(DTypeRule::PromoteFloat)),
        op("pow", "pow(a, b)", "a to the power b.")
            .and_then(|o| o.derivative(0, "select(b == 0, 0, b * pow(a, b - 1))"))
            .and_then(|o| o.derivative(1, "select(and(a == 0, b >= 0), 0, out * log(a))"))
            .map(|mut o| {
                o.samples = vec!["f32[3, 5]+ f32[3, 5]".into(), "f64[4, 3]+ f64[3]".into()];
                o
            }),
        op("maximum", "max(a, b)", "The larger element of each pair; NaN if either is NaN."),
        op("minimum", "min(a, b)", "The smaller element of each pair; NaN if either is NaN."),
        op("fmod", "fmod(a, b)", "The remainder of a / b with the sign of a."),
        op("remainder", "remainder(a, b)", "The remainder of a / b with the sign of b."),
        op("floor_divide", "floordiv(a, b)", "a / b rounded down."),
        compare("eq", "=="),
        compare("ne", "!="),
        compare("lt", "<"),
        compare("le", "<="),
        compare("gt", ">"),
        compare("ge", ">="),
        logical("logical_and", "and", "True where both elements are nonzero."),
        logical("logical_or", "or", "True where at least one element is nonzero."),
        logical("logical_xor", "xor", "True where exactly one element is nonzero."),
        OpDef::elementwise("where(cond, a, b) -> y", "select(cond, a, b)").map(|o| {
            o.doc("a where cond is true, else b. The three shapes broadcast.")
                .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
                    // The condition takes no part in promotion.
                    let d = crate::ops::promoted(c.input(1)?.dtype, c.input(2)?.dtype)?;
                    Ok([d].into_iter().collect())
                })))
                .samples(&["bool[3, 5] f32[3, 5] f32[3, 5]", "bool[4, 3] f32[3] f32[4, 1]"])
        }),
    ]
}
