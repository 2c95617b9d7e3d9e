//! Matrix products: factor rules give every S, B and P signature.

use crate::error::{Error, Result};
use crate::ops::{Grad, InferCtx, OpDef, Value, broadcast_shapes};
use crate::sbp::{FactorRule, Sbp, Signature};
use oflow_kernels::Dims;

/// The matrix dims of an operand after its transpose flag: (rows, columns).
fn matrix(shape: &[usize], transposed: bool) -> Result<(usize, usize)> {
    match shape {
        [.., r, c] => Ok(if transposed { (*c, *r) } else { (*r, *c) }),
        _ => Err(Error::shape(format!("a matrix product needs at least 2 dims, not {shape:?}"))
            .help("`Tensor::matmul` takes vectors too")),
    }
}

fn shape(c: &InferCtx<'_>) -> Result<Dims> {
    product_shape(c, c.bool("transpose_a")?, c.bool("transpose_b")?)
}

/// The shape of the product of inputs 0 and 1, either of which may be transposed.
pub(super) fn product_shape(c: &InferCtx<'_>, transpose_a: bool, transpose_b: bool) -> Result<Dims> {
    let (a, b) = (c.shape(0)?, c.shape(1)?);
    let (m, k) = matrix(a, transpose_a)?;
    let (k2, n) = matrix(b, transpose_b)?;
    if k != k2 {
        return Err(Error::shape(format!("inner dims differ: {k} and {k2}"))
            .help("the last dim of the first operand must equal the second-to-last of the second"));
    }
    let mut out = broadcast_shapes([&a[..a.len() - 2], &b[..b.len() - 2]])?;
    out.extend([m, n]);
    Ok(out)
}

fn gradient(g: &mut dyn crate::ops::GradCtx) -> Result<()> {
    use crate::ops::AttrValue::Bool;
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let (ta, tb) = (g.attr("transpose_a")? == Bool(true), g.attr("transpose_b")? == Bool(true));
    fn product(g: &mut dyn crate::ops::GradCtx, x: Value, tx: bool, y: Value, ty: bool) -> Result<Value> {
        g.call("matmul", &[x, y], &[("transpose_a", tx.into()), ("transpose_b", ty.into())])
    }
    if g.needs(0) {
        let b = g.input(1)?;
        let da = if ta { product(g, b, tb, dy, true)? } else { product(g, dy, false, b, !tb)? };
        g.set(0, da)?;
    }
    if g.needs(1) {
        let a = g.input(0)?;
        let (ra, rb) = (g.input_shape(0).len(), g.input_shape(1).len());
        let db = if rb == 2 && ra > 2 && !ta {
            // One matrix against a batch: its gradient is summed over all rows in one product.
            if tb { g.call("matmul_rows", &[dy, a], &[])? } else { g.call("matmul_rows", &[a, dy], &[])? }
        } else if tb {
            product(g, dy, true, a, ta)?
        } else {
            product(g, a, !ta, dy, false)?
        };
        g.set(1, db)?;
    }
    Ok(())
}

/// `[.., k] x [.., n] -> [k, n]`, summed over all leading dims: the gradient of a weight.
fn matmul_rows() -> Result<OpDef> {
    Ok(OpDef::new("matmul_rows(a: num, b: num) -> y")?
        .product_by_parts("a", "b")?
        .doc("aᵀ b summed over all leading dims: the gradient of a weight.")
        .by_name_only()
        .strided()
        .check(|c| super::one_dtype(c, &[0, 1]))
        .shape1(|c| match (c.shape(0)?, c.shape(1)?) {
            ([_], _) | (_, [_]) => Err(Error::shape("a product of rows needs at least 2 dims")),
            ([la @ .., k], [lb @ .., n]) if la == lb => Ok([*k, *n].into_iter().collect()),
            (a, b) => Err(Error::shape(format!("leading dims differ: {a:?} and {b:?}"))),
        })
        .get_sbp(|c| {
            let last = c.shape(0)?.len() - 1;
            let mut s: Vec<Signature> =
                (0..last).map(|d| Signature::new(&[Sbp::Split(d), Sbp::Split(d)], &[Sbp::PARTIAL_SUM])).collect();
            for row in ["B, P -> P", "P, B -> P"] {
                s.push(row.parse()?);
            }
            s.push(Signature::new(&[Sbp::Split(last), Sbp::Broadcast], &[Sbp::Split(0)]));
            s.push(Signature::new(&[Sbp::Broadcast, Sbp::Split(last)], &[Sbp::Split(1)]));
            Ok(s)
        })
        .flops(|c| Ok((c.input(0)?.len() as u64).saturating_mul(2 * *c.shape(1)?.last().unwrap_or(&1) as u64)))
        .grad(Grad::rule(|g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let b = g.input(1)?;
                let da = g.call("matmul", &[b, dy], &[("transpose_b", true.into())])?;
                g.set(0, da)?;
            }
            if g.needs(1) {
                let a = g.input(0)?;
                let db = g.call("matmul", &[a, dy], &[])?;
                g.set(1, db)?;
            }
            Ok(())
        }))
        .samples(&["f32[2, 3, 4] f32[2, 3, 5]", "f64[3, 4] f64[3, 2]", "i32[2, 2, 3, 4] i32[2, 2, 3, 5]"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        OpDef::new("matmul(a: num, b: num; transpose_a: bool = false, transpose_b: bool = false) -> y").and_then(|o| {
            Ok(o.product_by_parts("a", "b")?
                .doc("Matrix product over the last two dims; leading dims broadcast.")
                .strided()
                .check(|c| super::one_dtype(c, &[0, 1]))
                .shape1(shape)
                .get_sbp(|c| {
                    let a = if c.bool("transpose_a")? { "...km" } else { "...mk" };
                    let b = if c.bool("transpose_b")? { "...nk" } else { "...kn" };
                    let out = shape(c)?;
                    Ok(FactorRule::product(&format!("{a}, {b} -> ...mn"))?
                        .signatures(&[Some(c.shape(0)?), Some(c.shape(1)?)], &[&out]))
                })
                .flops(|c| {
                    let out = shape(c)?;
                    let (_, k) = matrix(c.shape(0)?, c.bool("transpose_a")?)?;
                    Ok(out.iter().fold(k.saturating_mul(2), |n, d| n.saturating_mul(*d)) as u64)
                })
                .grad(Grad::rule(gradient))
                .samples(&[
                    "f32[4, 6] f32[6, 5]",
                    "f32[6, 4] f32[5, 6]; transpose_a=true, transpose_b=true",
                    "f64[2, 3, 4] f64[4, 5]",
                    "f64[2, 3, 4] f64[5, 4]; transpose_b=true",
                    "f32[2, 1, 3, 4] f32[3, 4, 2]",
                    "bf16[4, 6] bf16[6, 5]",
                    "i32[3, 4] i32[4, 2]",
                ]))
        }),
        matmul_rows(),
    ]
}
