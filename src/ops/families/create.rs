//! Source ops: tensors from nothing. Each rank makes only its shard.

use crate::error::Result;
use crate::ops::{AttrValue, DTypeRule, Grad, OpDef, ShapeRule};

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        OpDef::new("full(; shape: shape, dtype: dtype = f32, value: runtime scalar = 0) -> y").map(|o| {
            o.doc("Every element is `value`.")
                .by_name_only()
                .check(super::builtin_attr)
                .shape_rule(ShapeRule::Attr)
                .dtype(DTypeRule::Attr)
                .grad(Grad::None)
                .values(|v| match v.attrs.get(1) {
                    Some(AttrValue::DType(d)) => super::scalar::fits(v.runtime[0], *d),
                    _ => Ok(()),
                })
                .samples(&["; shape=[3, 4], value=2.5", "; shape=[5], dtype=i64, value=3"])
        }),
        OpDef::new("arange(; len: int, dtype: dtype = i64, start: runtime scalar = 0, step: runtime scalar = 1) -> y")
            .map(|o| {
                o.doc("start, start + step, …: `len` elements.")
                    .by_name_only()
                    .check(super::builtin_attr)
                    .shape1(|c| Ok([c.size("len")?].into_iter().collect()))
                    .dtype(DTypeRule::Attr)
                    .grad(Grad::None)
                    .samples(&["; len=7", "; len=4, dtype=f32, start=0.5, step=0.25"])
            }),
    ]
}
