//! A tensor and a number. The number is a runtime attribute: it is not in the dispatch key, and no rule reads its value.

use super::binary::subtracts_numbers;
use crate::error::{Error, Result};
use crate::ops::{DTypeClass, DTypeRule, GivenValues, Grad, OpDef};
use oflow_kernels::{Builtin, DType, DTypeKind, Scalar};

/// An overload of the function of two tensors.
fn op(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}_scalar(x; s: runtime scalar) -> y"), expr)?
        .doc(doc)
        .function(&format!("{name}(Tensor x, Scalar s) -> Tensor"))
        .samples(&["f32[3, 5]+; s=2.0", "i32[4]; s=3", "i32[2, 2]+; s=1.5", "i8[4]+; s=257", "bf16[3]+; s=2.0"]))
}

/// One bound of the elements. At the bound the slope is 0, as of `clamp`; so has PyTorch's `clamp(min=)`, and `clamp_min` has 1 there.
fn bound(name: &str, expr: &str, word: &str, slope: &str, doc: &str) -> Result<OpDef> {
    let def = OpDef::elementwise(&format!("{name}(x; {word}: runtime scalar) -> y"), expr)?.derivative(0, slope)?;
    let samples = ["f32[3, 5]", "i32[4]", "i8[4]", "bf16[3]"].into_iter().zip(["0.5", "1.5", "257", "2.0"]);
    let mut def = def.doc(doc).function(&format!("{name}(Tensor x, Scalar {word}) -> Tensor"));
    def.samples = samples.map(|(t, s)| format!("{t}; {word}={s}").into()).collect();
    Ok(def)
}

/// As [`op`], of complex numbers too.
fn number(name: &str, expr: &str, doc: &str) -> Result<OpDef> {
    let mut def = op(name, expr, doc)?.samples(&["c64[3]+; s=2.0", "c128[2]+; s=1.5-0.5j", "f32[3]+; s=0.5+2.0j"]);
    def.sig.inputs[0].dtypes = DTypeClass::Number.into();
    Ok(def)
}

/// With the number on the left: a function of its own, and an overload of the other where no method can stand.
fn reversed(name: &str, of: &str, expr: &str, doc: &str) -> Result<OpDef> {
    Ok(number(name, expr, doc)?.function(&format!("{of}(Scalar s, Tensor x) -> Tensor")))
}

fn compare(name: &str, sign: &str) -> Result<OpDef> {
    // Complex numbers have no order.
    let class = if matches!(sign, "==" | "!=") { ": number" } else { "" };
    Ok(OpDef::elementwise(&format!("{name}_scalar(x{class}; s: runtime scalar) -> y"), &format!("x {sign} s"))?
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .grad(Grad::None)
        .doc(&format!("True where x {sign} s."))
        .function(&format!("{name}(Tensor x, Scalar s) -> Tensor"))
        .samples(&[
            "f32[3, 5]; s=0.5",
            "i64[4]<5; s=2",
            "i64[4]<5; s=1.5",
            "bool[4]; s=0.5",
            "i8[5]; s=300",
            "bf16[3]; s=0.1",
        ]))
}

/// An error unless a tensor of that dtype has room for the number.
pub(super) fn fits(s: Scalar, dtype: DType) -> Result<()> {
    match dtype.builtin() {
        // Inference refuses registered dtypes.
        None => Ok(()),
        Some(d) if s.fits(d) => Ok(()),
        Some(_) => Err(Error::argument(format!("{s} is beyond the range of {dtype}"))
            .help("give a number in the range, or `cast` the tensor to a wider dtype")),
    }
}

/// Whether a call computes with integers: those of a tensor of integers or bools and of a number that is one.
fn of_integers(v: &GivenValues<'_>) -> Result<bool> {
    let whole = matches!(v.dtype(0)?.kind(), DTypeKind::Int | DTypeKind::Bool);
    Ok(whole && matches!(v.runtime[0], Scalar::Int(_) | Scalar::Bool(_)))
}

/// Refuses 0 as the divisor of integers, also where it becomes 0 in the tensor's dtype.
fn no_zero(v: &GivenValues<'_>) -> Result<()> {
    let (dtype, s) = (v.dtype(0)?, v.runtime[0]);
    let entered = |d: Builtin| if d == Builtin::Bool { s } else { s.in_dtype(d) };
    match of_integers(v)? && dtype.builtin().is_some_and(|d| entered(d).to_i64() == 0) {
        true => Err(Error::value(format!("expected a divisor that is not 0, got {s} for {dtype}"))
            .help("integers have no quotient by 0; `cast` the tensor to a float dtype for inf and NaN")),
        false => Ok(()),
    }
}

/// Refuses negative powers of integers.
fn no_negative(v: &GivenValues<'_>) -> Result<()> {
    let s = v.runtime[0];
    match of_integers(v)? && s.to_i64() < 0 {
        true => Err(Error::value(format!("expected an exponent of at least 0 for {}, got {s}", v.dtype(0)?))
            .help("a negative power of an integer is a fraction; `cast` the tensor to a float dtype, or give a float")),
        false => Ok(()),
    }
}

/// A function of the bits of integers and those of a number.
fn bits(name: &str, of: &str, word: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::elementwise(&format!("{name}_scalar(x: {of}; s: runtime scalar) -> y"), &format!("{word}(x, s)"))?
        .grad(Grad::None)
        .doc(doc)
        .function(&format!("{name}(Tensor x, Scalar s) -> Tensor"))
        .samples(&["i32[3, 5]; s=6", "u8[4]; s=3"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let float = |o: Result<OpDef>| o.map(|o| o.dtype(DTypeRule::PromoteFloat));
    let divided = |o: Result<OpDef>| o.map(|o| o.values(no_zero));
    vec![
        number("add", "x + s", "x + s."),
        number("sub", "x - s", "x - s.").map(|o| o.check(subtracts_numbers)),
        reversed("rsub", "sub", "s - x", "s - x.").map(|o| o.check(subtracts_numbers)),
        number("mul", "x * s", "x s."),
        float(number("div", "x / s", "x / s.")),
        float(reversed("rdiv", "div", "s / x", "s / x.")),
        number("pow", "pow(x, s)", "x to the power s.")
            .and_then(|o| o.derivative(0, "select(s == 0, 0, s * pow(x, s - 1))"))
            .map(|o| o.values(no_negative)),
        reversed("rpow", "pow", "pow(s, x)", "s to the power x.")
            .and_then(|o| o.derivative(0, "select(and(s == 0, re(x) >= 0), 0, out * log(s))")),
        bound("clamp_min", "max(x, min)", "min", "x > min", "x, but not below min."),
        bound("clamp_max", "min(x, max)", "max", "x < max", "x, but not above max."),
        divided(op("fmod", "fmod(x, s)", "The remainder of x / s with the sign of x.")),
        divided(op("remainder", "remainder(x, s)", "The remainder of x / s with the sign of s.")),
        divided(op("floor_divide", "floordiv(x, s)", "x / s rounded down.")),
        bits("bitwise_and", "int|bool", "bitand", "The bits that both have."),
        bits("bitwise_or", "int|bool", "bitor", "The bits that at least one has."),
        bits("bitwise_xor", "int|bool", "bitxor", "The bits that exactly one has."),
        bits("bitwise_left_shift", "int", "shl", "x shifted left by s bits."),
        bits("bitwise_right_shift", "int", "shr", "x shifted right by s bits, with its sign."),
        compare("eq", "=="),
        compare("ne", "!="),
        compare("lt", "<"),
        compare("le", "<="),
        compare("gt", ">"),
        compare("ge", ">="),
        OpDef::elementwise("clamp(x; lo: runtime scalar, hi: runtime scalar) -> y", "min(max(x, lo), hi)")
            .and_then(|o| o.derivative(0, "and(x > lo, x < hi)"))
            .map(|o| {
                o.doc("x, but not below lo and not above hi.")
                    .function("clamp(Tensor x, Scalar lo, Scalar hi) -> Tensor")
                    .samples(&[
                        "f32[3, 5]; lo=-0.5, hi=0.5",
                        "i32[4]; lo=-1, hi=2",
                        "i8[4]; lo=-1, hi=300",
                        "i32[4]; lo=-0.5, hi=1.5",
                    ])
            }),
        OpDef::elementwise("masked_fill(x: number, mask; s: runtime scalar) -> y", "select(mask, s, x)").map(|o| {
            o.doc("s where the mask is true, else x. Shapes broadcast.")
                .dtype(DTypeRule::Input(0))
                .values(|v| fits(v.runtime[0], v.dtype(0)?))
                .samples(&["f32[3, 5] bool[3, 5]; s=-1.0", "f32[2, 3, 3] bool[3, 3]; s=0.0", "i32[4] bool[4]; s=2.5"])
        }),
    ]
}
