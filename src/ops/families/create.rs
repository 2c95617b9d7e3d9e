//! Source ops: tensors from nothing. Each rank makes only its shard.

use crate::error::Result;
use crate::ops::{AttrValue, DTypeRule, Grad, KernelCx, OpDef, ShapeRule};
use oflow_kernels::{Scalar, cpu, cuda};

/// Of the elements that lie here.
fn first_and_step(cx: &KernelCx<'_>) -> Result<(Scalar, Scalar)> {
    let (start, step) = (cx.scalar("start")?, cx.scalar("step")?);
    let first = cx.output_box(0).offset[0];
    let start = match (start, step) {
        (Scalar::Int(a), Scalar::Int(s)) => Scalar::Int(a.wrapping_add(s.wrapping_mul(first as i64))),
        (a, s) => Scalar::Float(a.to_f64() + s.to_f64() * first as f64),
    };
    Ok((start, step))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        OpDef::new("full(; shape: shape, dtype: dtype = f32, value: runtime scalar = 0) -> y").map(|o| {
            o.doc("Every element is `value`.")
                .check(super::builtin_attr)
                .shape_rule(ShapeRule::Attr)
                .dtype(DTypeRule::Attr)
                .grad(Grad::None)
                .values(|v| match v.attrs.get(1) {
                    Some(AttrValue::DType(d)) => super::scalar::fits(v.runtime[0], *d),
                    _ => Ok(()),
                })
                .cpu(|cx| Ok(cpu::copy::fill(cx.output(0), cx.scalar("value")?)?))
                .cuda(|cx| Ok(cuda::fill::fill(cx.queue()?, cx.output(0), cx.scalar("value")?)?))
                .samples(&["; shape=[3, 4], value=2.5", "; shape=[5], dtype=i64, value=3"])
        }),
        OpDef::new("arange(; len: int, dtype: dtype = i64, start: runtime scalar = 0, step: runtime scalar = 1) -> y")
            .map(|o| {
                o.doc("start, start + step, …: `len` elements.")
                    .check(super::builtin_attr)
                    .shape1(|c| Ok([c.size("len")?].into_iter().collect()))
                    .dtype(DTypeRule::Attr)
                    .grad(Grad::None)
                    .cpu(|cx| {
                        let (start, step) = first_and_step(cx)?;
                        Ok(cpu::index::arange(cx.output(0), start, step)?)
                    })
                    .cuda(|cx| {
                        let (start, step) = first_and_step(cx)?;
                        Ok(cuda::index::arange(cx.queue()?, cx.output(0), start, step)?)
                    })
                    .samples(&["; len=7", "; len=4, dtype=f32, start=0.5, step=0.25"])
            }),
    ]
}
