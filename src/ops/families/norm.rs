//! Layer norm and rms norm over the trailing dims. On a split trailing dim they are lowerings: the row statistics are
//! summed over the shards.

use super::norm_grad::{Norm, gradient, second_gradient};
use super::softmax::{cast_to, need, widened};
use super::statistics;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Emit, Grad, InferCtx, LowerCall, OpDef, Value};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::{DTypeKind, Dims, Scalar};
use smallvec::{SmallVec, smallvec};

/// Number of leading dims; the others are normalised.
fn lead(c: &InferCtx<'_>, x: usize) -> Result<usize> {
    let (rank, axes) = (c.shape(x)?.len() as i64, c.int("axes")?);
    if axes < 1 || axes > rank {
        return Err(Error::argument(format!("cannot normalise over the last {axes} dims of a tensor of {rank}")));
    }
    Ok((rank - axes) as usize)
}

/// Checks that weight and bias have the normalised dims.
fn check_affine(c: &InferCtx<'_>, x: usize, affine: &[usize]) -> Result<()> {
    let want = &c.shape(x)?[lead(c, x)?..];
    for i in affine {
        if c.has(*i) && c.shape(*i)? != want {
            return Err(Error::shape(format!(
                "{} has shape {:?}, the normalised dims are {want:?}",
                c.op.sig.inputs[*i].name,
                c.shape(*i)?
            )));
        }
    }
    Ok(())
}

/// Checks the inputs of a gradient: dy is like x, input 1, and the statistics have its leading dims.
fn check_saved(c: &InferCtx<'_>, statistics_at: &[usize]) -> Result<()> {
    let x = c.input(1)?;
    super::one_dtype(c, &[0, 1])?;
    super::dims_are(c, 0, &x.shape)?;
    for i in statistics_at {
        super::dims_are(c, *i, &x.shape[..lead(c, 1)?])?;
        super::dtype_is(c, *i, statistics(x.dtype))?;
    }
    Ok(())
}

fn list(dims: std::ops::Range<usize>) -> AttrValue {
    AttrValue::Ints(dims.map(|d| d as i64).collect())
}

/// `sum(v over dims) / n`, whole on every rank.
fn mean_whole(e: &mut dyn Emit, v: Value, dims: std::ops::Range<usize>, n: usize) -> Result<Value> {
    let s = super::softmax::reduce_whole(e, "sum", v, list(dims))?;
    e.call("mul_scalar", &[s], &[("s", Scalar::Float(1.0 / n as f64).into())])
}

fn axes_of(call: &LowerCall<'_>, norm: Norm) -> usize {
    match call.attrs.first() {
        _ if norm == Norm::Grouped => 2,
        Some(AttrValue::Int(a)) => *a as usize,
        _ => 1,
    }
}

/// Drops the kept trailing 1s of a statistic.
fn squeeze(e: &mut dyn Emit, v: Value, lead: usize) -> Result<Value> {
    let shape: Vec<usize> = e.shape(v)[..lead].to_vec();
    e.call("reshape", &[v], &[("shape", shape.as_slice().into())])
}

/// Gives a statistic trailing 1s again.
pub(super) fn unsqueeze(e: &mut dyn Emit, v: Value, axes: usize) -> Result<Value> {
    let mut shape: Vec<usize> = e.shape(v).to_vec();
    shape.extend(std::iter::repeat_n(1, axes));
    e.call("reshape", &[v], &[("shape", shape.as_slice().into())])
}

/// S of a trailing dim `d`: the statistics are whole, what lies along the normalised dims is split.
fn trailing(c: &InferCtx<'_>, x: usize, row: impl Fn(usize, Sbp, Sbp) -> Signature) -> Result<Vec<Signature>> {
    let l = lead(c, x)?;
    Ok((l..c.shape(x)?.len()).map(|d| row(d, Sbp::Split(d), Sbp::Split(d - l))).collect())
}

/// Forward of a norm over a split trailing dim.
pub(super) fn forward(e: &mut dyn Emit, call: &LowerCall<'_>, norm: Norm) -> Result<Vec<Value>> {
    let x0 = need(call, 0)?;
    let dtype = e.dtype(x0);
    let x = widened(e, x0)?;
    let (shape, axes) = (e.shape(x), axes_of(call, norm));
    let l = shape.len() - axes;
    let n: usize = shape[l..].iter().product();
    let mut outs = vec![];
    let mut xc = x;
    let mut mean = None;
    if norm.centred() {
        let m = mean_whole(e, x, l..shape.len(), n)?;
        xc = e.call("sub", &[x, m], &[])?;
        mean = Some(squeeze(e, m, l)?);
    }
    let sq = e.call("square", &[xc], &[])?;
    let var = mean_whole(e, sq, l..shape.len(), n)?;
    let v = e.call("add_scalar", &[var], &[("s", call.runtime(0)?)])?;
    let r = e.call("rsqrt", &[v], &[])?;
    let mut y = e.call("mul", &[xc, r], &[])?;
    for (i, op) in [(1, "mul"), (2, "add")] {
        if let Some(v) = call.inputs.get(i).copied().flatten() {
            let v = norm.beside(e, v)?;
            y = e.call(op, &[y, v], &[])?;
        }
    }
    outs.push(cast_to(e, y, dtype)?);
    outs.extend(mean);
    outs.push(squeeze(e, r, l)?);
    Ok(outs)
}

/// Backward of a norm over a split trailing dim. Inputs: dy, x, [mean], rstd, weight?.
pub(super) fn backward(e: &mut dyn Emit, call: &LowerCall<'_>, norm: Norm) -> Result<Vec<Value>> {
    let centred = norm.centred();
    let at = usize::from(centred);
    let (dy0, x0) = (need(call, 0)?, need(call, 1)?);
    let dtype = e.dtype(x0);
    let (dy, x) = (widened(e, dy0)?, widened(e, x0)?);
    let (shape, axes) = (e.shape(x), axes_of(call, norm));
    let l = shape.len() - axes;
    let n: usize = shape[l..].iter().product();
    let r0 = need(call, 2 + at)?;
    let r = unsqueeze(e, r0, axes)?;
    let xc = match centred {
        true => {
            let m0 = need(call, 2)?;
            let m = unsqueeze(e, m0, axes)?;
            e.call("sub", &[x, m], &[])?
        }
        false => x,
    };
    let xhat = e.call("mul", &[xc, r], &[])?;
    let g = match call.inputs.get(3 + at).copied().flatten() {
        Some(w) => {
            let w = norm.beside(e, w)?;
            e.call("mul", &[dy, w], &[])?
        }
        None => dy,
    };
    let gx = e.call("mul", &[g, xhat], &[])?;
    let c2 = mean_whole(e, gx, l..shape.len(), n)?;
    let t = e.call("mul", &[xhat, c2], &[])?;
    let mut d = e.call("sub", &[g, t], &[])?;
    if centred {
        let c1 = mean_whole(e, g, l..shape.len(), n)?;
        d = e.call("sub", &[d, c1], &[])?;
    }
    let dx = e.call("mul", &[d, r], &[])?;
    let p = e.call("mul", &[dy, xhat], &[])?;
    let over = |e: &mut dyn Emit, v: Value| {
        let dims = norm.beyond_weight(l);
        if dims.is_empty() { Ok(v) } else { e.call("sum", &[v], &[("dims", AttrValue::Ints(dims))]) }
    };
    let mut outs = vec![cast_to(e, dx, dtype)?];
    let dw = over(e, p)?;
    outs.push(cast_to(e, dw, dtype)?);
    if centred {
        let db = over(e, dy)?;
        outs.push(cast_to(e, db, dtype)?);
    }
    Ok(outs)
}

fn layer_norm() -> Result<OpDef> {
    Ok(OpDef::new(
        "layer_norm(x: float, weight?: float, bias?: float; axes: int = 1, eps: runtime float = 1e-5) -> (y, mean, rstd)",
    )?
    .doc("Normalises the last `axes` dims to mean 0 and variance 1, then scales and shifts.")
    .strided()
    .check(|c| check_affine(c, 0, &[1, 2]))
    .shapes(|c| {
        let x = c.shape(0)?;
        let stat: Dims = x[..lead(c, 0)?].into();
        Ok(smallvec![x.into(), stat.clone(), stat])
    })
    .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
        let d = c.input(0)?.dtype;
        Ok([d, statistics(d), statistics(d)].into_iter().collect())
    })))
    .get_sbp(|c| {
        let b = Sbp::Broadcast;
        Ok((0..lead(c, 0)?).map(|d| Signature::new(&[Sbp::Split(d), b, b], &[Sbp::Split(d); 3])).collect())
    })
    .lowering(
        |c| {
            let b = Sbp::Broadcast;
            trailing(c, 0, |_, s, w| Signature::new(&[s, w, w], &[s, b, b]))
        },
        |e, call| forward(e, call, Norm::Layer),
    )
    .grad(Grad::rule_saving(&[0, 1], &[1, 2], |g| gradient(g, Norm::Layer)))
    .samples(&["f32[4, 3, 6] f32[6] f32[6]", "f64[4, 6] f64[6] -", "f32[3, 2, 4] - -; axes=2", "f32[5, 6] f32[6] f32[6]"]))
}

fn layer_norm_grad() -> Result<OpDef> {
    Ok(OpDef::new(
        "layer_norm_grad(dy: float, x: float, mean: float, rstd: float, weight?: float; axes: int = 1) -> (dx, dweight, dbias)",
    )?
    .doc("Gradients of layer_norm.")
    .by_name_only()
    .strided()
    .check(|c| {
        check_affine(c, 1, &[4])?;
        check_saved(c, &[2, 3])
    })
    .shapes(|c| {
        let x = c.shape(1)?;
        let w: Dims = x[lead(c, 1)?..].into();
        Ok(smallvec![x.into(), w.clone(), w])
    })
    .dtype(DTypeRule::Input(1))
    .get_sbp(|c| {
        let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
        let mut rows: Vec<Signature> = (0..lead(c, 1)?)
            .map(|d| {
                let s = Sbp::Split(d);
                Signature::new(&[s, s, s, s, b], &[s, p, p])
            })
            .collect();
        rows.push(Signature::new(&[p, b, b, b, b], &[p, p, p]));
        Ok(rows)
    })
    .lowering(
        |c| {
            let b = Sbp::Broadcast;
            trailing(c, 1, |_, s, w| Signature::new(&[s, s, b, b, w], &[s, w, w]))
        },
        |e, call| backward(e, call, Norm::Layer),
    )
    .grad(Grad::rule_saving(&[0, 1, 2, 3, 4], &[], |g| second_gradient(g, Norm::Layer)))
    .traits(|t| t.run_empty = true)
    .samples(&["f32[4, 3, 6] f32[4, 3, 6] f32[4, 3] f32[4, 3]+ f32[6]", "f64[4, 6] f64[4, 6] f64[4] f64[4]+ -"]))
}

/// The root of the mean of x², which is complex, as in PyTorch.
fn complex_rms_norm(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let rank = e.shape(x).len();
    let dims: Vec<i64> = (rank.saturating_sub(call.size("axes")?)..rank).map(|d| d as i64).collect();
    let square = e.call("square", &[x], &[])?;
    let mean = e.call("mean", &[square], &[("dims", dims.clone().into()), ("keepdim", true.into())])?;
    let more = e.call("add_scalar", &[mean], &[("s", call.runtime("eps")?)])?;
    let scale = e.call("rsqrt", &[more], &[])?;
    let mut y = e.call("mul", &[x, scale], &[])?;
    if let Some(weight) = call.inputs.get(1).copied().flatten() {
        y = e.call("mul", &[y, weight], &[])?;
    }
    let shape = e.shape(x);
    let rstd = e.call("reshape", &[scale], &[("shape", AttrValue::from(&shape[..rank - dims.len()]))])?;
    Ok(vec![y, rstd])
}

fn rms_norm() -> Result<OpDef> {
    Ok(OpDef::new("rms_norm(x: float, weight?: float; axes: int = 1, eps: runtime float = 1e-6) -> (y, rstd)")?
        .doc("Divides by the root of the mean square of the last `axes` dims, then scales.")
        .lowered_for(DTypeKind::Complex, complex_rms_norm)
        .strided()
        .check(|c| check_affine(c, 0, &[1]))
        .shapes(|c| {
            let x = c.shape(0)?;
            Ok(smallvec![x.into(), x[..lead(c, 0)?].into()])
        })
        .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
            let d = c.input(0)?.dtype;
            Ok([d, statistics(d)].into_iter().collect())
        })))
        .get_sbp(|c| {
            Ok((0..lead(c, 0)?)
                .map(|d| Signature::new(&[Sbp::Split(d), Sbp::Broadcast], &[Sbp::Split(d); 2]))
                .collect())
        })
        .lowering(
            |c| trailing(c, 0, |_, s, w| Signature::new(&[s, w], &[s, Sbp::Broadcast])),
            |e, call| forward(e, call, Norm::Rms),
        )
        .grad(Grad::rule_saving(&[0, 1], &[1], |g| gradient(g, Norm::Rms)))
        .samples(&["f32[4, 3, 6] f32[6]", "f64[4, 6] -", "f32[3, 2, 4] f32[2, 4]; axes=2"]))
}

fn rms_norm_grad() -> Result<OpDef> {
    Ok(OpDef::new("rms_norm_grad(dy: float, x: float, rstd: float, weight?: float; axes: int = 1) -> (dx, dweight)")?
        .doc("Gradients of rms_norm.")
        .by_name_only()
        .strided()
        .check(|c| {
            check_affine(c, 1, &[3])?;
            check_saved(c, &[2])
        })
        .shapes(|c| {
            let x = c.shape(1)?;
            let out: SmallVec<[Dims; 2]> = smallvec![x.into(), x[lead(c, 1)?..].into()];
            Ok(out)
        })
        .dtype(DTypeRule::Input(1))
        .get_sbp(|c| {
            let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
            let mut rows: Vec<Signature> = (0..lead(c, 1)?)
                .map(|d| {
                    let s = Sbp::Split(d);
                    Signature::new(&[s, s, s, b], &[s, p])
                })
                .collect();
            rows.push(Signature::new(&[p, b, b, b], &[p, p]));
            Ok(rows)
        })
        .lowering(
            |c| trailing(c, 1, |_, s, w| Signature::new(&[s, s, Sbp::Broadcast, w], &[s, w])),
            |e, call| backward(e, call, Norm::Rms),
        )
        .grad(Grad::rule_saving(&[0, 1, 2, 3], &[], |g| second_gradient(g, Norm::Rms)))
        .traits(|t| t.run_empty = true)
        .samples(&["f32[4, 3, 6] f32[4, 3, 6] f32[4, 3]+ f32[6]", "f64[4, 6] f64[4, 6] f64[4]+ -"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![layer_norm(), layer_norm_grad(), rms_norm(), rms_norm_grad()]
}
