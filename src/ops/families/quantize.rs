//! Quantised numbers: the way from floats to the integers of a quantised dtype and back, and products of these. Functions fill in the numbers of the dtype.

use super::matmul;
use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, InferCtx, OpDef};
use crate::sbp::FactorRule;
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

/// The product of the stored integers less their zeros.
fn product() -> Result<OpDef> {
    Ok(OpDef::new("quantized_product(a: any, b: any; dtype: dtype = i32, zero_a: runtime int = 0, zero_b: runtime int = 0) -> y")?
        .doc(
            "(a - zero_a) (b - zero_b) over the last two dims, of the integers that quantised numbers of 8 bits are stored as: i32, whose sums \
             wrap, or i64. Leading dims broadcast.",
        )
        .traits(|t| (t.stored, t.hidden) = (true, true))
        .strided()
        .check(|c| {
            for i in 0..2 {
                let dtype = c.input(i)?.dtype;
                quantised(dtype)?;
                if dtype.size() != 1 {
                    return Err(Error::dtype(format!("{dtype} has more than 8 bits")).help("cast both operands to qint8 or quint8"));
                }
            }
            match c.dtype_attr("dtype")? {
                DType::I32 | DType::I64 => Ok(()),
                other => Err(Error::dtype(format!("sums of products cannot be {other}")).help("they are i32 or i64")),
            }
        })
        .shape1(|c| matmul::product_shape(c, false, false))
        .dtype(DTypeRule::Attr)
        .get_sbp(|c| {
            let out = matmul::product_shape(c, false, false)?;
            Ok(FactorRule::parse("...mk, ...kn -> ...mn")?.signatures(&[Some(c.shape(0)?), Some(c.shape(1)?)], &[&out]))
        })
        .flops(|c| {
            let (out, k) = (matmul::product_shape(c, false, false)?, *c.shape(0)?.last().unwrap_or(&1));
            Ok(out.iter().fold(k.saturating_mul(2), |n, d| n.saturating_mul(*d)) as u64)
        })
        .grad(Grad::None)
        .samples(&[
            "qint8(scale=0.5, zero=3)[4, 6] quint8(scale=0.25, zero=128)[6, 5]; zero_a=3, zero_b=128",
            "quint8(scale=0.5, zero=1)[2, 3, 4] quint8(scale=0.5, zero=1)[4, 5]; dtype=i64, zero_a=1, zero_b=1",
            "qint8(scale=0.5, zero=0)[2, 1, 3, 4] qint8(scale=0.5, zero=-2)[3, 4, 2]; zero_b=-2",
        ]))
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
        product(),
    ]
}
