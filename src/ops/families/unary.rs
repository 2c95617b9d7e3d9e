//! Elementwise functions of one tensor.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, OpDef};
use oflow_kernels::{DType, DTypeKind};
use std::sync::Arc;

/// A function that keeps integers as they are, of complex numbers too.
fn number(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x: number) -> y"), expr)?.doc(doc).samples(&[
        "f32[3, 5]",
        "f32[4]",
        "i32[2, 3]",
        "c64[3, 2]",
        "c128[4]",
    ]))
}

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

/// A function into the floats, and of complex numbers into themselves.
fn analytic(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    let def = OpDef::elementwise(&format!("{name}(x: number) -> y"), expr)?.dtype(DTypeRule::PromoteFloat);
    Ok(def.doc(doc).samples(&["f32[3, 5]+", "bf16[4, 2]+", "f64[3, 2]+", "c64[3, 2]+", "c128[4]+"]))
}

/// A function of numbers between two bounds.
fn within(name: &str, samples: &[&'static str], doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x: number) -> y"), &format!("{name}(x)"))?
        .dtype(DTypeRule::PromoteFloat)
        .doc(doc)
        .samples(samples))
}

const UP_TO_ONE: &[&str] = &["f32[3, 5]@-1..1", "bf16[4, 2]@-1..1", "f64[3, 2]@-1..1"];
const FROM_ONE: &[&str] = &["f32[3, 5]@1..3", "bf16[4, 2]@1..3", "f64[3, 2]@1..3"];

/// A yes-or-no question about each element.
fn ask(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x: number) -> y"), expr)?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .doc(doc)
        .samples(&["f32[3, 5]", "bool[4]", "c64[3]"]))
}

fn minus_sign() -> Result<OpDef> {
    Ok(OpDef::elementwise("minus_sign(x: float) -> y", "or(x < 0, and(x == 0, reciprocal(x) < 0))")?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .by_name_only()
        .doc("True where x is below zero, or a zero with a minus sign.")
        .samples(&["f32[3, 5]", "f64[4]", "bf16[3]"]))
}

/// A yes-or-no question about real numbers.
fn ask_real(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(x) -> y"), expr)?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .doc(doc)
        .samples(&["f32[3, 5]", "i32[4]", "bool[3]", "f64[4]"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let with = |op: Result<OpDef>, d: &str| op.and_then(|o| o.derivative(0, d));
    vec![
        OpDef::elementwise("copy(x: any) -> y", "x").map(|o| {
            o.doc("A copy in new memory. The gradient passes through.").samples(&["f32[3, 5]", "f32[4]", "i32[2, 3]"])
        }),
        cast(),
        number("neg", "-x", "-x.").map(|o| {
            o.check(|c| match c.inputs[0].as_ref().map(|x| x.dtype) {
                Some(DType::Bool) => {
                    Err(Error::dtype("bools have no negative number").help("logical_not() inverts them"))
                }
                _ => Ok(()),
            })
        }),
        number("abs", "abs(x)", "|x|; of complex numbers a real number.").map(|o| o.dtype(part())),
        with(
            number(
                "norm_term_zero",
                "select(x == 0, 0, 1)",
                "1 where x is not 0, else 0: what an element adds to the norm of order 0. Its slope is 0.",
            )
            .map(|o| o.dtype(part()).traits(|t| t.hidden = true)),
            "0",
        ),
        number("sgn", "sign(x)", "x / |x|, and 0 of 0: -1, 0 or 1 for real numbers."),
        number("conj", "conj(x)", "The complex conjugate; of real numbers x itself."),
        number("real", "re(x)", "The real part; of real numbers x itself.").map(|o| o.dtype(part())),
        imag(),
        complex(),
        keep("sign", "sign(x)", "-1, 0 or 1, in the dtype of x."),
        number("square", "square(x)", "x²; of bools integers.").map(|o| o.dtype(DTypeRule::PromoteInt)),
        keep("floor", "floor(x)", "The largest integer not above x."),
        keep("ceil", "ceil(x)", "The smallest integer not below x."),
        keep("round", "round(x)", "The nearest integer, ties to even."),
        keep("trunc", "trunc(x)", "The integer part: x rounded towards zero."),
        fraction(),
        with(analytic("exp", "exp(x)", "eˣ."), "out"),
        with(analytic("expm1", "expm1(x)", "eˣ - 1, accurate near zero."), "out + 1"),
        analytic("log", "log(x)", "The natural logarithm."),
        analytic("log1p", "log1p(x)", "log(1 + x), accurate near zero."),
        with(analytic("sqrt", "sqrt(x)", "The square root; NaN below zero."), "0.5 / out"),
        with(analytic("rsqrt", "rsqrt(x)", "1 / √x."), "-0.5 * out * out * out"),
        with(analytic("reciprocal", "reciprocal(x)", "1 / x."), "-out * out"),
        analytic("sin", "sin(x)", "The sine, of radians."),
        analytic("cos", "cos(x)", "The cosine, of radians."),
        analytic("tan", "tan(x)", "The tangent, of radians."),
        within("asin", UP_TO_ONE, "The inverse sine, in radians from -π/2 to π/2; NaN outside -1 to 1."),
        within("acos", UP_TO_ONE, "The inverse cosine, in radians from 0 to π; NaN outside -1 to 1."),
        analytic("atan", "atan(x)", "The inverse tangent, in radians from -π/2 to π/2."),
        analytic("sinh", "sinh(x)", "The hyperbolic sine."),
        analytic("cosh", "cosh(x)", "The hyperbolic cosine."),
        analytic("asinh", "asinh(x)", "The inverse hyperbolic sine."),
        within("acosh", FROM_ONE, "The inverse hyperbolic cosine; NaN below 1."),
        within("atanh", UP_TO_ONE, "The inverse hyperbolic tangent; NaN outside -1 to 1."),
        analytic("exp2", "exp2(x)", "2ˣ."),
        analytic("log2", "log2(x)", "The logarithm to base 2."),
        analytic("log10", "log10(x)", "The logarithm to base 10."),
        float("erf", "erf(x)", "The error function."),
        float("erfc", "erfc(x)", "1 - erf(x), exact where erf(x) is nearly 1."),
        float("deg2rad", "x * 0.017453292519943295", "Degrees in radians."),
        float("rad2deg", "x * 57.29577951308232", "Radians in degrees."),
        analytic(
            "sinc",
            "select(x == 0, 1, sin(x * 3.141592653589793) / (x * 3.141592653589793))",
            "sin(πx) / (πx), and 1 of 0.",
        ),
        replace_not_finite(),
        logit_within(),
        ask("logical_not", "not(x)", "True where x is zero."),
        ask("isnan", "isnan(x)", "True where x is NaN."),
        ask("isinf", "isinf(x)", "True where x is infinite."),
        ask("isfinite", "not(or(isnan(x), isinf(x)))", "True where x is neither infinite nor NaN."),
        ask_real("isposinf", "and(isinf(x), x > 0)", "True where x is inf."),
        ask_real("isneginf", "and(isinf(x), x < 0)", "True where x is -inf."),
        minus_sign(),
        bits(),
    ]
}

fn replace_not_finite() -> Result<OpDef> {
    let text = "replace_not_finite(x: float; nan: runtime float, posinf: runtime float, neginf: runtime float) -> y";
    Ok(OpDef::elementwise(text, "select(isnan(x), nan, select(isinf(x), select(x > 0, posinf, neginf), x))")?
        .by_name_only()
        .doc("x with these numbers in the place of NaN, inf and -inf.")
        .samples(&["f32[3, 5]; nan=0.5, posinf=9.0, neginf=-9.0", "bf16[4]; nan=0.0, posinf=1.0, neginf=2.0"]))
}

/// Without bounds `eps` is negative; outside of 0 to 1 the value is then NaN, and so is its slope.
fn logit_within() -> Result<OpDef> {
    let inside = "select(eps < 0, x, select(x < eps, eps, select(x > 1 - eps, 1 - eps, x)))";
    OpDef::elementwise(
        "logit_within(x: float; eps: runtime float = -1.0) -> y",
        &format!("log({inside} / (1 - {inside}))"),
    )?
    .by_name_only()
    .doc("log(x / (1 - x)) of x brought into eps to 1 - eps, unless eps is negative.")
    .samples(&["f32[3, 5]@0.1..0.9", "f64[4, 2]@0.1..0.9; eps=0.3", "bf16[3]@0.2..0.8"])
    .derivative(0, "select(and(eps >= 0, or(x < eps, x > 1 - eps)), 0, select(isnan(out), out, 1 / abs(x * (1 - x))))")
}

/// The dtype of the parts of complex numbers, of real ones their own.
fn part() -> DTypeRule {
    DTypeRule::Fn(Arc::new(|c| Ok([c.input(0)?.dtype.part()].into_iter().collect())))
}

fn imag() -> Result<OpDef> {
    Ok(OpDef::elementwise("imag(x: complex) -> y", "im(x)")?
        .dtype(part())
        .doc("The imaginary part of complex numbers.")
        .samples(&["c64[3, 2]", "c128[4]"]))
}

fn complex() -> Result<OpDef> {
    Ok(OpDef::elementwise("complex(re: f32|f64, im: f32|f64) -> y", "complex(re, im)")?
        .dtype(DTypeRule::Fn(Arc::new(|c| {
            super::one_dtype(c, &[0, 1])?;
            Ok([c.input(0)?.dtype.complex()].into_iter().collect())
        })))
        .doc("The complex numbers re + i im, c64 of f32 and c128 of f64.")
        .samples(&["f32[3, 2] f32[3, 2]", "f64[4] f64[2, 1]"]))
}

fn fraction() -> Result<OpDef> {
    Ok(OpDef::elementwise("frac(x: float) -> y", "x - trunc(x)")?
        .doc("What x has behind the point, with the sign of x.")
        .samples(&["f32[3, 5]", "f64[4]", "bf16[2, 3]"]))
}

fn bits() -> Result<OpDef> {
    Ok(OpDef::elementwise("bitwise_not(x: int) -> y", "bitnot(x)")?
        .lowered_for(DTypeKind::Bool, |e, call| Ok(vec![e.call("logical_not", &[call.input(0)?], &[])?]))
        .grad(Grad::None)
        .doc("Every bit of an integer turned: -x - 1 of signed ones. A bool is one bit.")
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
                Some(dtype) if dtype.has_gradients() && g.dtype(dy) != dtype => {
                    let dx = g.call("cast", &[dy], &[("dtype", dtype.into())])?;
                    g.set(0, dx)
                }
                // The gradient of an 8-bit float keeps the dtype that it comes in: nothing is added up in 8 bits.
                Some(dtype) if dtype.passes_gradients() => g.set(0, dy),
                _ => Ok(()),
            }
        }))
        .samples(&[
            "f32[3, 5]; dtype=f64",
            "f32[4]; dtype=f32",
            "i32[4]; dtype=f32",
            "f64[2, 2]; dtype=i64",
            "f32[3]; dtype=c64",
            "c128[3]; dtype=f32",
            "c64[2]; dtype=c128",
        ]))
}
