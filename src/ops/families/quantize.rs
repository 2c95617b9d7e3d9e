//! Quantised numbers: the way from floats to the integers of a quantised dtype and back. Functions fill in the numbers of the dtype.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, InferCtx, OpDef};
use oflow_kernels::DType;
use smallvec::smallvec;

/// Refuses a dtype that is not quantised.
pub(crate) fn quantised(dtype: DType) -> Result<()> {
    match dtype.quantization() {
        Some(_) => Ok(()),
        None => Err(Error::dtype(format!("{dtype} is not a quantised dtype")).help(
            "those are `DType::qint8(scale, zero)`, `quint8`, `qint16` and `qint32`, as text: qint8(scale=0.5, zero=3)",
        )),
    }
}

fn input(c: &InferCtx<'_>) -> Result<()> {
    quantised(c.input(0)?.dtype)
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let numbers = "zero: runtime float = 0.0, lo: runtime float = -128.0, hi: runtime float = 127.0";
    vec![
        OpDef::elementwise(
            &format!("quantize_linear(x: float; dtype: dtype, scale: runtime float = 1.0, {numbers}) -> y"),
            "min(max(round(x * (1 / scale)) + zero, lo), hi)",
        )
        .map(|o| {
            o.doc("x / scale, rounded (ties to even), plus zero, not below lo and not above hi: the stored integers of a quantised dtype.")
                .traits(|t| (t.stored, t.hidden) = (true, true))
                .check(|c| quantised(c.dtype_attr("dtype")?))
                .dtype(DTypeRule::Attr)
                .grad(Grad::None)
                .samples(&[
                    "f32[3, 5]; dtype=qint8(scale=0.5, zero=3), scale=0.5, zero=3",
                    "f64[4]; dtype=quint8(scale=0.25, zero=128), scale=0.25, zero=128, lo=0, hi=255",
                    "bf16[2, 3]; dtype=qint16(scale=0.125, zero=-7), scale=0.125, zero=-7, lo=-32768, hi=32767",
                    "f32[4]; dtype=qint32(scale=0.125, zero=9), scale=0.125, zero=9, lo=-2147483648, hi=2147483647",
                ])
        }),
        OpDef::elementwise("dequantize_linear(x: any; scale: runtime float = 1.0, zero: runtime float = 0.0) -> y", "(x - zero) * scale")
            .map(|o| {
                o.doc("The numbers that the stored integers x stand for, in f32.")
                    .traits(|t| (t.stored, t.hidden) = (true, true))
                    .check(input)
                    .dtype(DTypeRule::PromoteFloat)
                    .grad(Grad::None)
                    .samples(&[
                        "qint8(scale=0.5, zero=3)[3, 5]; scale=0.5, zero=3",
                        "quint8(scale=0.25, zero=128)[4]; scale=0.25, zero=128",
                        "qint16(scale=0.125, zero=-7)[2, 3]; scale=0.125, zero=-7",
                        "qint32(scale=0.125, zero=9)[4]; scale=0.125, zero=9",
                    ])
            }),
        OpDef::elementwise("int_repr(x: any) -> y", "x").map(|o| {
            o.doc("The integers that the elements of a quantised tensor are stored as: i8, u8, i16 or i32.")
                .traits(|t| t.stored = true)
                .check(input)
                .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| Ok(smallvec![c.input(0)?.dtype.storage().dtype()]))))
                .grad(Grad::None)
                .samples(&["qint8(scale=0.5, zero=3)[3, 5]", "quint8(scale=0.25, zero=128)[4]"])
        }),
        OpDef::elementwise(
            &format!("quantized_numbers(x: float; scale: runtime float = 1.0, {numbers}) -> y"),
            "(min(max(round(x * (1 / scale)) + zero, lo), hi) - zero) * scale",
        )
        .map(|o| {
            o.doc("x rounded to the numbers that a quantised dtype has, as floats.")
                .traits(|t| t.hidden = true)
                .grad(Grad::None)
                .samples(&["f32[3, 5]; scale=0.5, zero=1, lo=-2, hi=5", "f64[4]; scale=0.25, lo=-4, hi=4"])
        }),
        OpDef::elementwise(
            &format!("quantizes_within(x: float; scale: runtime float = 1.0, {numbers}) -> y"),
            "and(round(x * (1 / scale)) + zero >= lo, round(x * (1 / scale)) + zero <= hi)",
        )
        .map(|o| {
            o.doc("Whether x is between the smallest and the largest number that a quantised dtype has, rounded to them.")
                .traits(|t| t.hidden = true)
                .dtype(DTypeRule::Fixed(vec![DType::Bool]))
                .grad(Grad::None)
                .samples(&["f32[3, 5]; scale=0.5, zero=1, lo=-2, hi=5", "f64[4]; scale=0.25, lo=-4, hi=4"])
        }),
    ]
}
