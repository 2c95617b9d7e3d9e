//! Softmax and log-softmax. On a split dim they are lowerings: local part, all-reduce of the row statistics, local part.

use super::{as_dims, statistics};
use crate::error::{Error, Result};
use crate::ops::GradArg::{OutGrad, Output};
use crate::ops::{AttrValue, Emit, Grad, InferCtx, LowerCall, OpDef, Value};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::DType;

/// S of every dim but the softmax dim, for all `n` inputs alike.
fn direct(c: &InferCtx<'_>, n: usize, linear: bool) -> Result<Vec<Signature>> {
    let rank = c.shape(0)?.len();
    let dim = c.dim("dim", rank)?;
    let mut s: Vec<Signature> =
        (0..rank).filter(|d| *d != dim).map(|d| Signature::new(&vec![Sbp::Split(d); n], &[Sbp::Split(d)])).collect();
    if linear {
        // The gradient is linear in the out-gradient, its input 0.
        s.push("P, B -> P".parse()?);
    }
    Ok(s)
}

/// The inputs of a gradient: dy is like y.
fn pair(c: &InferCtx<'_>) -> Result<()> {
    super::dim_exists(c)?;
    super::one_dtype(c, &[0, 1])?;
    super::dims_are(c, 1, c.shape(0)?)
}

fn split(c: &InferCtx<'_>, n: usize) -> Result<Vec<Signature>> {
    let rank = c.shape(0)?.len();
    let d = c.dim("dim", rank)?;
    // Without elements there are no row statistics.
    let some = c.shape(0)?.get(d).is_some_and(|n| *n > 0);
    Ok(some.then(|| Signature::new(&vec![Sbp::Split(d); n], &[Sbp::Split(d)])).into_iter().collect())
}

pub(super) fn need(call: &LowerCall<'_>, i: usize) -> Result<Value> {
    call.inputs.get(i).copied().flatten().ok_or_else(|| Error::argument(format!("input {i} is missing")))
}

/// `[dim]` from the attribute `dim`, which is the op's first.
pub(super) fn dims(call: &LowerCall<'_>) -> AttrValue {
    as_dims(&call.attrs[0])
}

/// A reduction that keeps dims, whole on every rank.
pub(super) fn reduce_whole(e: &mut dyn Emit, op: &str, v: Value, dims: AttrValue) -> Result<Value> {
    let r = e.call(op, &[v], &[("dims", dims), ("keepdim", true.into())])?;
    e.reduce_partials(r)
}

/// In the dtype that statistics are computed in.
pub(super) fn widened(e: &mut dyn Emit, v: Value) -> Result<Value> {
    let dtype = statistics(e.dtype(v));
    cast_to(e, v, dtype)
}

/// In that dtype.
pub(super) fn cast_to(e: &mut dyn Emit, v: Value, dtype: DType) -> Result<Value> {
    if e.dtype(v) == dtype { Ok(v) } else { e.call("cast", &[v], &[("dtype", dtype.into())]) }
}

/// Row maximum and sum that softmax and its like are made of, over a whole dim.
struct Shifted {
    /// `x` minus the maximum.
    z: Value,
    /// `exp(x - max)`.
    exp: Value,
    /// The sum of these.
    sum: Value,
}

/// Reduces the maximum, then the sum, each once.
fn shifted(e: &mut dyn Emit, x: Value, dims: AttrValue) -> Result<Shifted> {
    let max = reduce_whole(e, "amax", x, dims.clone())?;
    let z = e.call("sub", &[x, max], &[])?;
    let exp = e.call("exp", &[z], &[])?;
    let sum = reduce_whole(e, "sum", exp, dims)?;
    Ok(Shifted { z, exp, sum })
}

const SAMPLES: &[&str] =
    &["f32[3, 5]; dim=1", "f32[4, 3, 2]; dim=1", "f64[4, 6]; dim=0", "bf16[2, 4]; dim=-1", "f32[]; dim=0"];

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        OpDef::new("softmax(x: float; dim: int = -1) -> y").map(|o| {
            o.doc("The softmax along a dim: exp(x) divided by its sum.")
                .strided()
                .check(super::dim_exists)
                .get_sbp(|c| direct(c, 1, false))
                .lowering(
                    |c| split(c, 1),
                    |e, call| {
                        let x = need(call, 0)?;
                        let (dtype, wide) = (e.dtype(x), widened(e, x)?);
                        let s = shifted(e, wide, dims(call))?;
                        let y = e.call("div", &[s.exp, s.sum], &[])?;
                        Ok(vec![cast_to(e, y, dtype)?])
                    },
                )
                .grad(Grad::wiring("softmax_grad", &[OutGrad(0), Output(0)], &["dim"], &[0]))
                .samples(SAMPLES)
        }),
        OpDef::new("softmax_grad(dy: float, y: float; dim: int) -> dx").map(|o| {
            o.doc("Gradient of softmax: y (dy - sum(dy y)).")
                .by_name_only()
                .strided()
                .check(pair)
                .get_sbp(|c| direct(c, 2, true))
                .lowering(
                    |c| split(c, 2),
                    |e, call| {
                        let dtype = e.dtype(need(call, 0)?);
                        let (dy, y) = (widened(e, need(call, 0)?)?, widened(e, need(call, 1)?)?);
                        let p = e.call("mul", &[dy, y], &[])?;
                        let s = reduce_whole(e, "sum", p, dims(call))?;
                        let d = e.call("sub", &[dy, s], &[])?;
                        let dx = e.call("mul", &[y, d], &[])?;
                        Ok(vec![cast_to(e, dx, dtype)?])
                    },
                )
                .grad(Grad::rule(|g| {
                    // dx = y (dy - s), s = sum(dy y):   d dy = y (v - sum(v y)),   d y = v (dy - s) - dy sum(v y)
                    let Some(v) = g.grad(0) else { return Ok(()) };
                    let (dy, y, dim) = (g.input(0)?, g.input(1)?, g.attr("dim")?);
                    let dims = as_dims(&dim);
                    let keep = [("dims", dims), ("keepdim", true.into())];
                    if g.needs(0) {
                        let d = g.call("softmax_grad", &[v, y], &[("dim", dim)])?;
                        g.set(0, d)?;
                    }
                    if g.needs(1) {
                        let p = g.call("mul", &[dy, y], &[])?;
                        let s = g.call("sum", &[p], &keep)?;
                        let d = g.call("sub", &[dy, s], &[])?;
                        let first = g.call("mul", &[v, d], &[])?;
                        let q = g.call("mul", &[v, y], &[])?;
                        let t = g.call("sum", &[q], &keep)?;
                        let second = g.call("mul", &[dy, t], &[])?;
                        let d = g.call("sub", &[first, second], &[])?;
                        g.set(1, d)?;
                    }
                    Ok(())
                }))
                .samples(&["f32[3, 5] f32[3, 5]; dim=1", "f64[4, 3] f64[4, 3]; dim=0"])
        }),
        OpDef::new("log_softmax(x: float; dim: int = -1) -> y").map(|o| {
            o.doc("The logarithm of the softmax along a dim.")
                .strided()
                .check(super::dim_exists)
                .get_sbp(|c| direct(c, 1, false))
                .lowering(
                    |c| split(c, 1),
                    |e, call| {
                        let x = need(call, 0)?;
                        let (dtype, wide) = (e.dtype(x), widened(e, x)?);
                        let s = shifted(e, wide, dims(call))?;
                        let l = e.call("log", &[s.sum], &[])?;
                        let y = e.call("sub", &[s.z, l], &[])?;
                        Ok(vec![cast_to(e, y, dtype)?])
                    },
                )
                .grad(Grad::wiring("log_softmax_grad", &[OutGrad(0), Output(0)], &["dim"], &[0]))
                .samples(SAMPLES)
        }),
        OpDef::new("log_softmax_grad(dy: float, y: float; dim: int) -> dx").map(|o| {
            o.doc("Gradient of log-softmax: dy - exp(y) sum(dy).")
                .by_name_only()
                .strided()
                .check(pair)
                .get_sbp(|c| direct(c, 2, true))
                .lowering(
                    |c| split(c, 2),
                    |e, call| {
                        let dtype = e.dtype(need(call, 0)?);
                        let (dy, y) = (widened(e, need(call, 0)?)?, widened(e, need(call, 1)?)?);
                        let s = reduce_whole(e, "sum", dy, dims(call))?;
                        let ex = e.call("exp", &[y], &[])?;
                        let t = e.call("mul", &[ex, s], &[])?;
                        let dx = e.call("sub", &[dy, t], &[])?;
                        Ok(vec![cast_to(e, dx, dtype)?])
                    },
                )
                .grad(Grad::rule(|g| {
                    let Some(v) = g.grad(0) else { return Ok(()) };
                    let (dy, y, dim) = (g.input(0)?, g.input(1)?, g.attr("dim")?);
                    let dims = as_dims(&dim);
                    let keep = [("dims", dims), ("keepdim", true.into())];
                    let ex = g.call("exp", &[y], &[])?;
                    let p = g.call("mul", &[v, ex], &[])?;
                    if g.needs(0) {
                        let s = g.call("sum", &[p], &keep)?;
                        let d = g.call("sub", &[v, s], &[])?;
                        g.set(0, d)?;
                    }
                    if g.needs(1) {
                        let s = g.call("sum", &[dy], &keep)?;
                        let t = g.call("mul", &[p, s], &[])?;
                        let d = g.call("neg", &[t], &[])?;
                        g.set(1, d)?;
                    }
                    Ok(())
                }))
                .samples(&["f32[3, 5] f32[3, 5]; dim=1", "f64[4, 3] f64[4, 3]; dim=0"])
        }),
    ]
}
