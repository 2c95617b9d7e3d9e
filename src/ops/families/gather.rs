//! Elements chosen by an index for each of them along a dim: `gather`, its gradient `scatter_sum`, and `scatter` with the gradient
//! `gather_last`.

use super::KINDS;
use super::scalar::fits;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, GradCtx, InferCtx, OpDef};
use crate::sbp::{ReduceOp, Sbp, Signature};
use oflow_kernels::{DType, Dims, Scalar};

const GATHER: &str = "For each index the element of x that it names along a dim: y[i][j] = x[ids[i][j]][j] for dim 0. The indices have the \
    dims of the result.

# Errors
If an index is not within 0 and the size of the dim. The kernel finds it, so only ranks that hold the index return the error.";

/// The dim of the indices; the others are those of both.
fn indexed(c: &InferCtx<'_>, table: &[usize], ids: usize) -> Result<usize> {
    super::index_dtype(c, ids)?;
    let (i, rank) = (c.shape(ids)?, table.len());
    if rank == 0 {
        return Err(Error::shape("a tensor without dims has none to choose along"));
    }
    let dim = c.dim("dim", rank)?;
    match i.len() == rank && (0..rank).all(|d| d == dim || i[d] == table[d]) {
        true => Ok(dim),
        false => Err(Error::shape(format!("the indices {i:?} differ from {table:?} in more than dim {dim}"))),
    }
}

/// S of a dim along which nothing is chosen, of so many inputs.
fn by_others(c: &InferCtx<'_>, dim: usize, inputs: usize) -> Result<Vec<Signature>> {
    let others = (0..c.shape(0)?.len()).filter(|d| *d != dim).map(Sbp::Split);
    Ok(others.map(|d| Signature::new(&vec![d; inputs], &[d])).collect())
}

/// Signatures of reading by indices that all ranks have: each rank gives the elements that it has.
fn by_parts(c: &InferCtx<'_>, dim: usize) -> Result<impl Iterator<Item = Signature> + use<>> {
    let split = Signature::new(&[Sbp::Split(dim), Sbp::Broadcast], &[super::of_shares(c.input(0)?.dtype)]);
    Ok(std::iter::once(split).chain(super::taken()))
}

/// The dim of an attribute, counted from the front.
pub(super) fn dim_of(g: &dyn GradCtx) -> Result<usize> {
    match g.attr("dim")? {
        AttrValue::Int(d) => Ok(d.rem_euclid(g.input_shape(0).len().max(1) as i64) as usize),
        v => Err(Error::argument(format!("the dim is {v}"))),
    }
}

fn gather() -> Result<OpDef> {
    Ok(OpDef::new("gather(x: any, ids: int; dim: int) -> y")?
        .doc(GATHER)
        .by_name_only()
        .strided()
        .check(|c| indexed(c, c.shape(0)?, 1).map(drop))
        .shape1(|c| Ok(c.shape(1)?.into()))
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let (dim, b) = (indexed(c, c.shape(0)?, 1)?, Sbp::Broadcast);
            let mut s = by_others(c, dim, 2)?;
            s.push(Signature::new(&[b, Sbp::Split(dim)], &[Sbp::Split(dim)]));
            s.extend(by_parts(c, dim)?);
            Ok(s)
        })
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let (ids, dim) = (g.input(1)?, dim_of(g)?);
                let rows = g.input_shape(0)[dim];
                let dx = g.call("scatter_sum", &[dy, ids], &[("dim", dim.into()), ("rows", rows.into())])?;
                g.set(0, dx)?;
            }
            Ok(())
        }))
        .samples(&[
            "f32[6, 4] i64[3, 4]<6; dim=0",
            "f64[3, 5, 2] i32[3, 4, 2]<5; dim=1",
            "i64[2, 3] i64[2, 5]<3; dim=-1",
            "bool[4] i64[6]<4; dim=0",
        ]))
}

fn scatter_sum() -> Result<OpDef> {
    let table = |c: &InferCtx<'_>| -> Result<Dims> {
        let mut s: Dims = c.shape(0)?.into();
        let rank = s.len();
        if let Some(n) = s.get_mut(c.dim("dim", rank)?) {
            *n = c.size("rows")?;
        }
        Ok(s)
    };
    Ok(OpDef::new("scatter_sum(values, ids: int; dim: int, rows: int) -> y")?
        .linear_by_parts()
        .doc("Zeros to which each value is added at its index along a dim, which has `rows` elements: the gradient of gather.")
        .by_name_only()
        .checks_values()
        .check(move |c| {
            indexed(c, &table(c)?, 1)?;
            match c.shape(0)? == c.shape(1)? && c.input(0)?.dtype != DType::Bool {
                true => Ok(()),
                false => Err(Error::shape(format!("values {:?} and indices {:?} must have as many dims", c.shape(0)?, c.shape(1)?))),
            }
        })
        .shape1(move |c| table(c))
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let (dim, b, p) = (c.dim("dim", c.shape(0)?.len())?, Sbp::Broadcast, Sbp::PARTIAL_SUM);
            let mut s = by_others(c, dim, 2)?;
            s.push(Signature::new(&[Sbp::Split(dim), Sbp::Split(dim)], &[p]));
            s.push(Signature::new(&[b, b], &[Sbp::Split(dim)]));
            s.push(Signature::new(&[p, b], &[p]));
            Ok(s)
        })
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let (ids, dim) = (g.input(1)?, dim_of(g)?);
                let d = g.call("gather", &[dy, ids], &[("dim", dim.into())])?;
                g.set(0, d)?;
            }
            Ok(())
        }))
        .samples(&[
            "f32[3, 4] i64[3, 4]<6; dim=0, rows=6",
            "f64[3, 4, 2] i32[3, 4, 2]<5; dim=1, rows=5",
            "i64[2, 5] i64[2, 5]<3; dim=-1, rows=3",
            "bf16[4] i64[4]<3; dim=0, rows=3",
        ]))
}

fn scatter() -> Result<OpDef> {
    Ok(OpDef::new("scatter_into(x: any, ids: int, src: any; dim: int) -> y")?
        .doc("x with each element of `src` written at its index along a dim; of several at one place the last stands.")
        .by_name_only()
        .checks_values()
        .check(|c| {
            indexed(c, c.shape(0)?, 1)?;
            super::one_dtype(c, &[0, 2])?;
            super::dims_are(c, 2, c.shape(1)?)
        })
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let (dim, b) = (indexed(c, c.shape(0)?, 1)?, Sbp::Broadcast);
            let mut s = by_others(c, dim, 3)?;
            s.push(Signature::new(&[Sbp::Split(dim), b, b], &[Sbp::Split(dim)]));
            // Each place has an element of one of the two, by indices that all ranks have.
            s.extend(KINDS.map(|op| Signature::new(&[Sbp::Partial(op), b, Sbp::Partial(op)], &[Sbp::Partial(op)])));
            Ok(s)
        })
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let (ids, dim) = (g.input(1)?, AttrValue::from(dim_of(g)?));
            if g.needs(0) {
                let dx = g.call("scatter_fill", &[dy, ids], &[("dim", dim.clone()), ("s", Scalar::Int(0).into())])?;
                g.set(0, dx)?;
            }
            if g.needs(2) {
                let d = g.call("gather_last", &[dy, ids], &[("dim", dim)])?;
                g.set(2, d)?;
            }
            Ok(())
        }))
        .samples(&[
            "f32[6, 4] i64[3, 4]<6 f32[3, 4]; dim=0",
            "f64[3, 5, 2] i32[3, 4, 2]<5 f64[3, 4, 2]; dim=1",
            "i64[2, 3] i64[2, 5]<3 i64[2, 5]; dim=-1",
        ]))
}

fn scatter_fill() -> Result<OpDef> {
    Ok(OpDef::new("scatter_fill(x: number, ids: int; dim: int, s: runtime scalar) -> y")?
        .doc("x with one number written at each index along a dim.")
        .by_name_only()
        .checks_values()
        .check(|c| indexed(c, c.shape(0)?, 1).map(drop))
        .values(|v| fits(v.runtime[0], v.dtype(0)?))
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let (dim, b) = (indexed(c, c.shape(0)?, 1)?, Sbp::Broadcast);
            let mut s = by_others(c, dim, 2)?;
            s.push(Signature::new(&[Sbp::Split(dim), b], &[Sbp::Split(dim)]));
            // The number stands on all ranks: their sum would have it several times.
            s.extend(
                [ReduceOp::Max, ReduceOp::Min].map(|op| Signature::new(&[Sbp::Partial(op), b], &[Sbp::Partial(op)])),
            );
            Ok(s)
        })
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let (ids, dim) = (g.input(1)?, dim_of(g)?);
                let dx = g.call("scatter_fill", &[dy, ids], &[("dim", dim.into()), ("s", Scalar::Int(0).into())])?;
                g.set(0, dx)?;
            }
            Ok(())
        }))
        .samples(&[
            "f32[6, 4] i64[3, 4]<6; dim=0, s=2.5",
            "f64[3, 5, 2] i32[3, 4, 2]<5; dim=1, s=-1.0",
            "i64[2, 3] i64[2, 5]<3; dim=-1, s=7",
            "bf16[4] i64[6]<4; dim=0, s=0.5",
        ]))
}

fn gather_last() -> Result<OpDef> {
    Ok(OpDef::new("gather_last(x: any, ids: int; dim: int) -> y")?
        .doc(
            "As gather, but zero where an index that comes later along the dim names the same element. It is the gradient of scatter with \
             respect to the values, of which the last stands.",
        )
        .by_name_only()
        .check(|c| indexed(c, c.shape(0)?, 1).map(drop))
        .shape1(|c| Ok(c.shape(1)?.into()))
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let dim = indexed(c, c.shape(0)?, 1)?;
            Ok(by_others(c, dim, 2)?.into_iter().chain(by_parts(c, dim)?).collect())
        })
        .grad(Grad::rule_saving(&[1], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let (ids, dim) = (g.input(1)?, dim_of(g)?);
                // Zeros where no index points, and then the last value at each place.
                let rows = g.input_shape(0)[dim];
                let sums = g.call("scatter_sum", &[dy, ids], &[("dim", dim.into()), ("rows", rows.into())])?;
                let dx = g.call("scatter_into", &[sums, ids, dy], &[("dim", dim.into())])?;
                g.set(0, dx)?;
            }
            Ok(())
        }))
        .samples(&[
            "f32[6, 4] i64[5, 4]<6; dim=0",
            "f64[3, 5, 2] i32[3, 4, 2]<5; dim=1",
            "i64[2, 3] i64[2, 5]<3; dim=-1",
            "bool[4] i64[6]<4; dim=0",
        ]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![gather(), gather_last(), scatter_sum(), scatter(), scatter_fill()]
}
