//! Elementwise functions of one tensor.

use crate::error::Result;
use crate::ops::{DTypeRule, Grad, OpDef};
use oflow_kernels::DType;

/// A function that keeps integers as they are.
fn keep(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x) -> y"), expr)?.doc(doc).samples(&["f32[3, 5]", "f32[4]", "i32[2, 3]"]))
}

/// A function into the floats: integers become f32.
fn float(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x) -> y"), expr)?.dtype(DTypeRule::PromoteFloat).doc(doc).samples(&[
        "f32[3, 5]+",
        "bf16[4, 2]+",
        "f64[3, 2]+",
    ]))
}

/// A function of numbers between two bounds.
fn within(name: &str, samples: &[&'static str], doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x) -> y"), &format!("{name}(x)"))?
        .dtype(DTypeRule::PromoteFloat)
        .doc(doc)
        .samples(samples))
}

const UP_TO_ONE: &[&str] = &["f32[3, 5]@-1..1", "bf16[4, 2]@-1..1", "f64[3, 2]@-1..1"];
const FROM_ONE: &[&str] = &["f32[3, 5]@1..3", "bf16[4, 2]@1..3", "f64[3, 2]@1..3"];

/// A yes-or-no question about each element.
fn ask(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x) -> y"), expr)?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .doc(doc)
        .samples(&["f32[3, 5]", "bool[4]"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let with = |op: Result<OpDef>, d: &str| op.and_then(|o| o.derivative(0, d));
    vec![
        OpDef::elementwise("copy(x: any) -> y", "x").map(|o| {
            o.doc("A copy in new memory. The gradient passes through.").samples(&["f32[3, 5]", "f32[4]", "i32[2, 3]"])
        }),
        cast(),
        keep("neg", "-x", "-x."),
        keep("abs", "abs(x)", "|x|."),
        keep("sign", "sign(x)", "-1, 0 or 1, in the dtype of x."),
        keep("square", "square(x)", "x²."),
        keep("floor", "floor(x)", "The largest integer not above x."),
        keep("ceil", "ceil(x)", "The smallest integer not below x."),
        keep("round", "round(x)", "The nearest integer, ties to even."),
        keep("trunc", "trunc(x)", "The integer part: x rounded towards zero."),
        fraction(),
        with(float("exp", "exp(x)", "eˣ."), "out"),
        with(float("expm1", "expm1(x)", "eˣ - 1, accurate near zero."), "out + 1"),
        float("log", "log(x)", "The natural logarithm."),
        float("log1p", "log1p(x)", "log(1 + x), accurate near zero."),
        with(float("sqrt", "sqrt(x)", "The square root; NaN below zero."), "0.5 / out"),
        with(float("rsqrt", "rsqrt(x)", "1 / √x."), "-0.5 * out * out * out"),
        with(float("reciprocal", "reciprocal(x)", "1 / x."), "-out * out"),
        float("sin", "sin(x)", "The sine, of radians."),
        float("cos", "cos(x)", "The cosine, of radians."),
        float("tan", "tan(x)", "The tangent, of radians."),
        within("asin", UP_TO_ONE, "The inverse sine, in radians from -π/2 to π/2; NaN outside -1 to 1."),
        within("acos", UP_TO_ONE, "The inverse cosine, in radians from 0 to π; NaN outside -1 to 1."),
        float("atan", "atan(x)", "The inverse tangent, in radians from -π/2 to π/2."),
        float("sinh", "sinh(x)", "The hyperbolic sine."),
        float("cosh", "cosh(x)", "The hyperbolic cosine."),
        float("asinh", "asinh(x)", "The inverse hyperbolic sine."),
        within("acosh", FROM_ONE, "The inverse hyperbolic cosine; NaN below 1."),
        within("atanh", UP_TO_ONE, "The inverse hyperbolic tangent; NaN outside -1 to 1."),
        float("exp2", "exp2(x)", "2ˣ."),
        float("log2", "log2(x)", "The logarithm to base 2."),
        float("log10", "log10(x)", "The logarithm to base 10."),
        float("erf", "erf(x)", "The error function."),
        float("erfc", "erfc(x)", "1 - erf(x), exact where erf(x) is nearly 1."),
        ask("logical_not", "not(x)", "True where x is zero."),
        ask("isnan", "isnan(x)", "True where x is NaN."),
        ask("isinf", "isinf(x)", "True where x is infinite."),
        ask("isfinite", "not(or(isnan(x), isinf(x)))", "True where x is neither infinite nor NaN."),
        bits(),
    ]
}

fn fraction() -> Result<OpDef> {
    Ok(OpDef::elementwise("frac(x: float) -> y", "x - trunc(x)")?
        .doc("What x has behind the point, with the sign of x.")
        .samples(&["f32[3, 5]", "f64[4]", "bf16[2, 3]"]))
}

fn bits() -> Result<OpDef> {
    Ok(OpDef::elementwise("bitwise_not(x: int) -> y", "bitnot(x)")?
        .grad(Grad::None)
        .doc("Every bit of an integer turned: -x - 1 of signed ones.")
        .samples(&["i32[3, 5]", "u8[4]", "i64[2, 3]"]))
}

fn cast() -> Result<OpDef> {
    Ok(OpDef::elementwise("cast(x: built-in; dtype: dtype) -> y", "x")?
        .dtype(DTypeRule::Attr)
        .doc("Converts the element type; floats to integers truncate, to bool `!= 0`.")
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            match g.input_dtype(0) {
                // Contributions may have been added up in the wider dtype.
                Some(dtype) if dtype.is_float() && g.dtype(dy) != dtype => {
                    let dx = g.call("cast", &[dy], &[("dtype", dtype.into())])?;
                    g.set(0, dx)
                }
                // The gradient of an 8-bit float keeps the dtype that it comes in: nothing is added up in 8 bits.
                Some(dtype) if dtype.passes_gradients() => g.set(0, dy),
                _ => Ok(()),
            }
        }))
        .samples(&["f32[3, 5]; dtype=f64", "f32[4]; dtype=f32", "i32[4]; dtype=f32", "f64[2, 2]; dtype=i64"]))
}
