//! Elementwise functions of two tensors, with broadcasting and promotion; `where`.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Emit, GivenValues, Grad, InferCtx, LowerCall, OpDef, Value};
use oflow_kernels::{DType, DTypeKind, Scalar};

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

/// As [`op`], of complex numbers too.
fn number(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    let samples = [SAMPLES, &["c64[3, 2]+ c64[3, 2]+", "c64[2, 3] f32[3]+", "f64[3] c128[2, 1]+"]].concat();
    Ok(OpDef::elementwise(&format!("{name}(a: number, b: number) -> y"), expr)?.doc(doc).samples(&samples))
}

fn compare(name: &str, sign: &str) -> Result<OpDef> {
    // Complex numbers have no order.
    let class = if matches!(sign, "==" | "!=") { ": number" } else { "" };
    Ok(OpDef::elementwise(&format!("{name}(a{class}, b{class}) -> y"), &format!("a {sign} b"))?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .doc(&format!("True where a {sign} b."))
        .samples(&["f32[3, 5] f32[3, 5]", "i64[4, 3]<3 i64[3]<3"]))
}

fn logical(name: &str, word: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(a: number, b: number) -> y"), &format!("{word}(a, b)"))?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .doc(doc)
        .samples(&["bool[3, 5] bool[3, 5]", "i32[4, 3] bool[3]", "c64[4]<2 f32[4]<2"]))
}

/// From the nearer end, so that both ends are met exactly.
const LERP: &str = "select(abs(weight) < 0.5, a + weight * (b - a), b - (b - a) * (1 - weight))";

fn floats(name: &str, expr: &str, doc: &str, derivatives: [&str; 2]) -> Result<OpDef> {
    let op = OpDef::elementwise(&format!("{name}(a: float, b: float) -> y"), expr)?;
    let op = op.derivative(0, derivatives[0])?.derivative(1, derivatives[1])?;
    Ok(op.doc(doc).samples(&["f32[3, 5] f32[3, 5]", "f32[2, 1, 3] f32[4, 1]", "f64[4, 3] f64[3]", "bf16[4] bf16[4]"]))
}

/// A function of the bits of integers; bools are one bit.
fn bits(name: &str, word: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(a: int|bool, b: int|bool) -> y"), &format!("{word}(a, b)"))?
        .grad(Grad::None)
        .doc(doc)
        .samples(&["i32[3, 5] i32[3, 5]", "i64[4, 3] u8[3]", "bool[2, 3] bool[3]"]))
}

fn shift(name: &str, word: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}(a: int, b: int) -> y"), &format!("{word}(a, b)"))?
        .grad(Grad::None)
        .doc(doc)
        .samples(&["i32[3, 5] i32[3, 5]<9", "i64[4, 3] i64[3]<70", "u8[4] u8[4]<9"]))
}

/// Refuses a number, the first runtime attribute, of a higher kind than the tensors: it would change the dtype of the result.
fn of_their_kind(v: &GivenValues<'_>) -> Result<()> {
    crate::ops::scalar_of_kind("value", v.runtime[0], v.dtypes.iter().copied().flatten())
}

/// Refuses an alpha of another kind than the result, which would change its dtype or lose alpha's fraction. As in PyTorch, the tensors
/// and the number decide the result, and a bool is an alpha of bools only.
fn alpha_of_their_kind(v: &GivenValues<'_>) -> Result<()> {
    let (alpha, number) = match *v.runtime.as_slice() {
        [alpha] => (alpha, None),
        [s, alpha, ..] => (alpha, Some(s.kind())),
        [] => return Ok(()),
    };
    let result = v.dtypes.iter().flatten().map(|d| d.kind()).chain(number).max().unwrap_or(DTypeKind::Float);
    let (kind, bools) = (alpha.kind(), result == DTypeKind::Bool);
    if kind <= result && (kind == DTypeKind::Bool) == bools {
        return Ok(());
    }
    let wanted = match result {
        DTypeKind::Bool => "a bool",
        DTypeKind::Int => "an integer",
        DTypeKind::Float => "a real number",
        DTypeKind::Complex | DTypeKind::Opaque => "a number",
    };
    Err(Error::dtype(format!("expected {wanted} for alpha, because the result has that kind, got {alpha}"))
        .help("`cast` the tensors to a dtype that has such numbers"))
}

/// `add` and `sub` with a factor for what is added or subtracted. In Rust `mul` says the same.
fn scaled(name: &str, sign: char) -> Vec<Result<OpDef>> {
    let by_alpha = |name: &str, args: &str, expr: String, doc: String, function: String, samples: &[&'static str]| {
        OpDef::elementwise(&format!("{name}({args}) -> y"), &expr)
            .map(|o| o.doc(&doc).by_name_only().function(&function).values(alpha_of_their_kind).samples(samples))
    };
    let two = by_alpha(
        &format!("{name}_scaled"),
        "a: number, b: number; alpha: runtime scalar",
        format!("a {sign} alpha * b"),
        format!("a {sign} alpha b."),
        format!("{name}(Tensor a, Tensor b, *, Scalar alpha) -> Tensor"),
        &[
            "f32[3, 5] f32[3, 5]; alpha=5",
            "f32[2, 1, 3] f32[4, 1]; alpha=2",
            "i32[4] i32[4]+; alpha=-3",
            "f32[2, 3]+ f64[3]+; alpha=-2",
            "bf16[4] bf16[4]; alpha=4",
            "c64[3, 2]+ c64[3, 2]+; alpha=-3",
        ],
    );
    let one = by_alpha(
        &format!("{name}_scalar_scaled"),
        "x: number; s: runtime scalar, alpha: runtime scalar",
        format!("x {sign} alpha * s"),
        format!("x {sign} alpha s."),
        format!("{name}(Tensor x, Scalar s, *, Scalar alpha) -> Tensor"),
        &["f32[3, 5]; s=2.0, alpha=0.5", "i32[4]; s=3, alpha=2", "bf16[3]+; s=2.0, alpha=3", "c64[3]; s=1.5, alpha=2"],
    );
    vec![two, one]
}

/// Three tensors, or two and a number.
fn three() -> Vec<Result<OpDef>> {
    const SAMPLES: &[&str] = &[
        "f32[3, 5] f32[3, 5] f32[3, 5]+",
        "f32[4, 3] f32[3] f32[4, 1]+",
        "f64[2] f64[2] f64[2]+",
        "bf16[3] bf16[3] bf16[3]+",
    ];
    let op = |text: &str, expr: &str, doc: &str| OpDef::elementwise(text, expr).map(|o| o.doc(doc).samples(SAMPLES));
    let tail = "Tensor x, Tensor a, Tensor b, *, Scalar value=1) -> Tensor";
    vec![
        op(
            "lerp(a: float|complex, b: float|complex, weight: float|complex) -> y",
            LERP,
            "a + weight (b - a): a where the weight is 0, b where it is 1.",
        )
        // The expression gives the same, but 1 - (1 - weight) for half of the weights.
        .and_then(|o| o.derivative(1, "weight")),
        OpDef::elementwise("lerp_scalar(a: float|complex, b: float|complex; weight: runtime scalar) -> y", LERP).map(
            |o| {
                o.doc("a + weight (b - a) with one weight for all.")
                    .function("lerp(Tensor a, Tensor b, Scalar weight) -> Tensor")
                    .samples(&["f32[3, 5] f32[3, 5]; weight=0.25", "f64[4, 3] f64[3]; weight=1.5"])
            },
        ),
        op(
            "addcmul(x: number, a: number, b: number; value: runtime scalar = 1) -> y",
            "x + value * (a * b)",
            "x + value a b.",
        )
        .map(|o| o.function(&format!("addcmul({tail}")).values(of_their_kind)),
        op(
            "addcdiv(x: float|complex, a: float|complex, b: float|complex; value: runtime scalar = 1) -> y",
            "x + value * a / b",
            "x + value a / b.",
        )
        .map(|o| o.function(&format!("addcdiv({tail}")).values(of_their_kind)),
    ]
}

/// Ops that only functions call: `prelu` after it has reshaped the weight, `glu` after it has cut its input in two.
fn inner() -> Vec<Result<OpDef>> {
    let op = |text: &str, expr: &str, doc: &str| {
        OpDef::elementwise(text, expr)
            .map(|o| o.doc(doc).by_name_only().samples(&["f32[3, 5] f32[1, 5]", "f64[4, 3] f64[]", "bf16[3] bf16[3]"]))
    };
    vec![
        op(
            "prelu(x: float, weight: float) -> y",
            "select(x > 0, x, weight * x)",
            "x, or weight x where x is not above 0.",
        ),
        op("gate(x: float, by: float) -> y", "x * sigmoid(by)", "x sigmoid(by)."),
    ]
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let mut all = two();
    all.extend(inner());
    all.extend(three());
    all.extend(scaled("add", '+'));
    all.extend(scaled("sub", '-').into_iter().map(|o| o.map(|o| o.check(subtracts_numbers))));
    all
}

/// An error where a bool is subtracted, or something from a bool, as in PyTorch.
pub(super) fn subtracts_numbers(c: &InferCtx<'_>) -> Result<()> {
    let mut tensors = c.present().map(|t| t.dtype);
    if tensors.any(|d| d == DType::Bool) || c.runtime_kinds.contains(&DTypeKind::Bool) {
        return Err(Error::dtype("expected numbers to subtract, got a bool")
            .help("for masks use `logical_xor` or `logical_not`; `cast` a bool to compute with it as 0 and 1"));
    }
    Ok(())
}

/// The number with the greater real part, plus log1p of what the other one adds.
fn complex_logaddexp(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    let (re_a, re_b) = (e.call("real", &[a], &[])?, e.call("real", &[b], &[])?);
    let first = e.call("ge", &[re_a, re_b], &[])?;
    let (more, less) = (e.call("where", &[first, a, b], &[])?, e.call("where", &[first, b, a], &[])?);
    let d = e.call("sub", &[less, more], &[])?;
    // Both are the logarithm of zero: their difference is no number.
    let greatest = e.call("real", &[more], &[])?;
    let zero = e.call("eq_scalar", &[greatest], &[("s", Scalar::Float(f64::NEG_INFINITY).into())])?;
    let d = e.call("masked_fill", &[d, zero], &[("s", Scalar::Float(f64::NEG_INFINITY).into())])?;
    let power = e.call("exp", &[d], &[])?;
    let rest = e.call("log1p", &[power], &[])?;
    Ok(vec![e.call("add", &[more, rest], &[])?])
}

fn heaviside() -> Result<OpDef> {
    Ok(OpDef::elementwise("heaviside(x, values) -> y", "select(x == 0, values, x > 0)")?
        .grad(Grad::None)
        .doc("0 where x is below zero, 1 where it is above, and the element of `values` where it is zero.")
        .samples(&["f32[3, 5] f32[3, 5]", "f32[2, 1, 3]<3 f32[4, 1]", "i32[4]<3 i32[4]"]))
}

fn close_to() -> Result<OpDef> {
    let text = "close_to(a: float|complex, b: float|complex; rtol: runtime float = 1e-5, atol: runtime float = 1e-8, \
                equal_nan: runtime float = 0.0) -> y";
    let finite = "not(or(isnan(b), isinf(b)))";
    let near = format!("and({finite}, abs(a - b) <= atol + rtol * abs(b))");
    let none = "and(equal_nan != 0, and(isnan(a), isnan(b)))";
    Ok(OpDef::elementwise(text, &format!("or(or(a == b, {none}), {near})"))?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .by_name_only()
        .doc("True where |a - b| is at most atol + rtol |b|, where both are equal, or both NaN and `equal_nan` is not 0.")
        .samples(&["f32[3, 5] f32[3, 5]; atol=0.5", "f64[4, 3]<2 f64[3]<2", "c64[3]<2 c64[3]<2; atol=0.5"]))
}

fn two() -> Vec<Result<OpDef>> {
    vec![
        number("add", "a + b", ADD),
        number("sub", "a - b", "a - b.").map(|o| o.check(subtracts_numbers)),
        number("mul", "a * b", "a b, element by element."),
        number("div", "a / b", "a / b; of integers, a float.").map(|o| o.dtype(DTypeRule::PromoteFloat)),
        number("pow", "pow(a, b)", "a to the power b.")
            .and_then(|o| o.derivative(0, "select(b == 0, 0, b * pow(a, b - 1))"))
            .and_then(|o| o.derivative(1, "select(and(a == 0, re(b) >= 0), 0, out * log(a))"))
            .map(|mut o| {
                o.samples = ["f32[3, 5]+ f32[3, 5]", "f64[4, 3]+ f64[3]", "c64[3]+ c64[3]", "c128[2, 3]+ f64[3]"]
                    .map(Into::into)
                    .into();
                o
            }),
        op("maximum", "max(a, b)", "The larger element of each pair; NaN if either is NaN."),
        op("minimum", "min(a, b)", "The smaller element of each pair; NaN if either is NaN."),
        op("fmod", "fmod(a, b)", "The remainder of a / b with the sign of a. Integers divided by 0 are an error."),
        op(
            "remainder",
            "remainder(a, b)",
            "The remainder of a / b with the sign of b. Integers divided by 0 are an error.",
        ),
        op("floor_divide", "floordiv(a, b)", "a / b rounded down. Integers divided by 0 are an error."),
        // The origin has no angle, and no slope. Squares of small numbers would vanish.
        op("atan2", "atan2(a, b)", "The angle of the point (b, a) seen from the origin, in radians from -π to π.")
            .and_then(|o| o.derivative(0, "select(and(a == 0, b == 0), 0, b / hypot(a, b) / hypot(a, b))"))
            .and_then(|o| o.derivative(1, "select(and(a == 0, b == 0), 0, -a / hypot(a, b) / hypot(a, b))"))
            .map(|o| o.dtype(DTypeRule::PromoteFloat)),
        floats("hypot", "hypot(a, b)", "√(a² + b²), also where the squares overflow.", ["a / out", "b / out"]),
        floats(
            "logaddexp",
            "logaddexp(a, b)",
            "log(eᵃ + eᵇ), also where the powers overflow.",
            ["sigmoid(a - b)", "sigmoid(b - a)"],
        )
        .map(|o| o.lowered_for(DTypeKind::Complex, complex_logaddexp)),
        floats(
            "logaddexp2",
            "logaddexp(a * 0.6931471805599453, b * 0.6931471805599453) * 1.4426950408889634",
            "log2(2ᵃ + 2ᵇ), also where the powers overflow.",
            ["sigmoid((a - b) * 0.6931471805599453)", "sigmoid((b - a) * 0.6931471805599453)"],
        ),
        op(
            "fmax",
            "select(isnan(b), a, select(isnan(a), b, max(a, b)))",
            "The larger element of each pair, or the one that is not NaN.",
        ),
        op(
            "fmin",
            "select(isnan(b), a, select(isnan(a), b, min(a, b)))",
            "The smaller element of each pair, or the one that is not NaN.",
        ),
        op(
            "copysign",
            "select(or(b < 0, and(b == 0, reciprocal(b) < 0)), -abs(a), abs(a))",
            "|a| with the sign of b, also where b is zero.",
        )
        .map(|o| o.dtype(DTypeRule::PromoteFloat)),
        number("ldexp", "a * exp2(b)", "a times 2 to the power b.").map(|o| o.dtype(DTypeRule::PromoteFloat)),
        op("xlogy", "select(isnan(b), b, select(a == 0, 0, a * log(b)))", "a log(b), and 0 where a is zero.")
            .and_then(|o| o.derivative(0, "select(and(a == 0, b <= 0), 0, log(b))"))
            .and_then(|o| o.derivative(1, "a / b"))
            .map(|mut o| {
                o.samples = ["f32[3, 5] f32[3, 5]+", "f32[2, 1, 3] f32[4, 1]+", "i32[4] i32[4]+", "f64[2, 3] f64[3]+"]
                    .map(Into::into)
                    .into();
                o.dtype(DTypeRule::PromoteFloat)
            }),
        heaviside(),
        close_to(),
        bits("bitwise_and", "bitand", "The bits that both have."),
        bits("bitwise_or", "bitor", "The bits that at least one has."),
        bits("bitwise_xor", "bitxor", "The bits that exactly one has."),
        shift("bitwise_left_shift", "shl", "a shifted left by b bits; 0 where b is negative or no bit is left."),
        shift(
            "bitwise_right_shift",
            "shr",
            "a shifted right by b bits, with its sign; the sign alone where b is negative or no bit is left.",
        ),
        compare("eq", "=="),
        compare("ne", "!="),
        compare("lt", "<"),
        compare("le", "<="),
        compare("gt", ">"),
        compare("ge", ">="),
        logical("logical_and", "and", "True where both elements are nonzero."),
        logical("logical_or", "or", "True where at least one element is nonzero."),
        logical("logical_xor", "xor", "True where exactly one element is nonzero."),
        OpDef::elementwise("where(cond, a: number, b: number) -> y", "select(cond, a, b)").map(|o| {
            o.doc("a where cond is true, else b. The three shapes broadcast.")
                .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
                    // The condition takes no part in promotion.
                    let d = crate::ops::promote_types([c.input(1)?, c.input(2)?].into_iter())?;
                    Ok([d].into_iter().collect())
                })))
                .samples(&["bool[3, 5] f32[3, 5] f32[3, 5]", "bool[4, 3] f32[3] f32[4, 1]"])
        }),
    ]
}
