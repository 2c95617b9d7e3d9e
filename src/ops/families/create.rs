//! Source ops: tensors from nothing. Each rank makes only its shard.

use crate::error::Result;
use crate::ops::{AttrValue, DTypeRule, Grad, OpDef, ShapeRule};

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        OpDef::new("full(; shape: shape, dtype: dtype = f32, value: runtime scalar = 0) -> y").map(|o| {
            o.doc("Every element is `value`.")
                .by_name_only()
                .check(|c| match c.dtype_attr("dtype")? {
                    d if d.is_builtin() => Ok(()),
                    d => Err(crate::ops::not_made(d)),
                })
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
                    .check(super::real_attr)
                    .shape1(|c| Ok([c.size("len")?].into_iter().collect()))
                    .dtype(DTypeRule::Attr)
                    .grad(Grad::None)
                    .samples(&[
                        "; len=7",
                        "; len=4, dtype=f32, start=0.5, step=0.25",
                        "; len=9, dtype=f64, start=0.1, step=0.1",
                    ])
            }),
        OpDef::new(
            "linspace(; len: int, dtype: dtype = f32, start: runtime float = 0.0, end: runtime float = 1.0) -> y",
        )
        .map(|o| {
            o.doc("`len` numbers from start to end, both included, in equal steps.")
                .by_name_only()
                .check(super::real_attr)
                .shape1(|c| Ok([c.size("len")?].into_iter().collect()))
                .dtype(DTypeRule::Attr)
                .grad(Grad::None)
                .samples(&[
                    "; len=7, start=-1.0, end=0.7",
                    "; len=10, dtype=f64, start=0.3, end=0.1",
                    "; len=1, dtype=i64, start=3.0",
                ])
        }),
        OpDef::new("eye(; rows: int, columns: int, dtype: dtype = f32) -> y").map(|o| {
            o.doc("A matrix with ones on its diagonal and zeros elsewhere.")
                .by_name_only()
                .check(super::real_attr)
                .shape1(|c| Ok([c.size("rows")?, c.size("columns")?].into_iter().collect()))
                .dtype(DTypeRule::Attr)
                .grad(Grad::None)
                .samples(&["; rows=4, columns=4", "; rows=3, columns=5, dtype=i64", "; rows=6, columns=2, dtype=bool"])
        }),
    ]
}
