//! Batch norm: each channel with mean 0 and variance 1 over the whole logical batch, however it is split. On a split batch or spatial
//! dim it is a lowering: the statistics are summed over the shards.

use super::softmax::{cast_to, need, reduce_whole, widened};
use super::statistics;
use super::terms::{product, set_total, times, total};
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Emit, Grad, GradCtx, InferCtx, LowerCall, OpDef, Value};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::{Dims, Scalar};
use smallvec::smallvec;
use std::sync::Arc;

fn channels(c: &InferCtx<'_>, x: usize) -> Result<usize> {
    match c.shape(x)? {
        [_, channels, ..] => Ok(*channels),
        shape => Err(Error::shape(format!("x needs at least 2 dims, batch and channels, not {shape:?}"))),
    }
}

fn per_channel(c: &InferCtx<'_>, x: usize, inputs: &[usize]) -> Result<()> {
    let channels = channels(c, x)?;
    inputs.iter().filter(|i| c.has(**i)).try_for_each(|i| super::dims_are(c, *i, &[channels]))
}

/// S of the batch and of spatial dims.
fn spread(c: &InferCtx<'_>, x: usize, row: impl Fn(Sbp) -> Signature) -> Result<Vec<Signature>> {
    let shape = c.shape(x)?;
    // Without elements there are no statistics.
    let some = shape.iter().all(|n| *n > 0);
    Ok((0..shape.len()).filter(|d| some && *d != 1).map(|d| row(Sbp::Split(d))).collect())
}

/// All dims but the channels, and how many elements a channel has.
fn others(shape: &[usize]) -> (AttrValue, usize) {
    let dims = (0..shape.len()).filter(|d| *d != 1);
    let count = dims.clone().map(|d| shape[d]).product();
    (AttrValue::Ints(dims.map(|d| d as i64).collect()), count)
}

fn reshaped(e: &mut dyn Emit, v: Value, shape: &[usize]) -> Result<Value> {
    e.call("reshape", &[v], &[("shape", shape.into())])
}

/// A number for each channel, beside x.
fn beside(e: &mut dyn Emit, v: Value, rank: usize) -> Result<Value> {
    let channels = e.shape(v).iter().product();
    let shape: Vec<usize> = (0..rank).map(|d| if d == 1 { channels } else { 1 }).collect();
    reshaped(e, v, &shape)
}

fn divided(e: &mut dyn Emit, v: Value, n: usize) -> Result<Value> {
    e.call("mul_scalar", &[v], &[("s", Scalar::Float(1.0 / n as f64).into())])
}

fn rstd(e: &mut dyn Emit, call: &LowerCall<'_>, var: Value) -> Result<Value> {
    let v = e.call("add_scalar", &[var], &[("s", call.runtime(0)?)])?;
    e.call("rsqrt", &[v], &[])
}

fn forward(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let x0 = need(call, 0)?;
    let dtype = e.dtype(x0);
    let x = widened(e, x0)?;
    let shape = e.shape(x);
    let (dims, n) = others(&shape);
    let sum = reduce_whole(e, "sum", x, dims.clone())?;
    let mean = divided(e, sum, n)?;
    let centred = e.call("sub", &[x, mean], &[])?;
    let squares = e.call("square", &[centred], &[])?;
    let sum = reduce_whole(e, "sum", squares, dims)?;
    let var = divided(e, sum, n)?;
    let r = rstd(e, call, var)?;
    let mut y = e.call("mul", &[centred, r], &[])?;
    for (i, op) in [(1, "mul"), (2, "add")] {
        if let Some(v) = call.inputs.get(i).copied().flatten() {
            let v = beside(e, v, shape.len())?;
            y = e.call(op, &[y, v], &[])?;
        }
    }
    let flat = [shape[1]];
    Ok(vec![cast_to(e, y, dtype)?, reshaped(e, mean, &flat)?, reshaped(e, var, &flat)?])
}

/// Inputs: dy, x, mean, var, weight?.
fn backward(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let (dy0, x0, mean0, var0) = (need(call, 0)?, need(call, 1)?, need(call, 2)?, need(call, 3)?);
    let dtype = e.dtype(x0);
    let (dy, x) = (widened(e, dy0)?, widened(e, x0)?);
    let shape = e.shape(x);
    let (dims, n) = others(&shape);
    let (mean, var) = (beside(e, mean0, shape.len())?, beside(e, var0, shape.len())?);
    let r = rstd(e, call, var)?;
    let centred = e.call("sub", &[x, mean], &[])?;
    let h = e.call("mul", &[centred, r], &[])?;
    let p = e.call("mul", &[dy, h], &[])?;
    let (db, dw) = (reduce_whole(e, "sum", dy, dims.clone())?, reduce_whole(e, "sum", p, dims)?);
    let (mean_g, mean_gh) = (divided(e, db, n)?, divided(e, dw, n)?);
    let t = e.call("mul", &[h, mean_gh], &[])?;
    let d = e.call("sub", &[dy, mean_g], &[])?;
    let d = e.call("sub", &[d, t], &[])?;
    let mut dx = e.call("mul", &[d, r], &[])?;
    if let Some(w) = call.inputs.get(4).copied().flatten() {
        let w = beside(e, w, shape.len())?;
        dx = e.call("mul", &[dx, w], &[])?;
    }
    let mut all = vec![cast_to(e, dx, dtype)?];
    for v in [dw, db] {
        let v = reshaped(e, v, &[shape[1]])?;
        all.push(cast_to(e, v, dtype)?);
    }
    Ok(all)
}

/// A number for each channel, beside a tensor of so many dims.
fn column(g: &mut dyn GradCtx, v: Value, rank: usize) -> Result<Value> {
    beside(g.emitter(), v, rank)
}

/// The sum over all dims but the channels, `[channels]`.
fn channel_sum(g: &mut dyn GradCtx, v: Value) -> Result<Value> {
    let dims = others(&g.shape(v)).0;
    g.call("sum", &[v], &[("dims", dims)])
}

/// The gradient with respect to x, weight and bias, of y and of the statistics.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let (rank, n) = (g.input_shape(0).len(), others(&g.input_shape(0)).1 as f64);
    let x = g.input(0)?;
    let (mean, var) = (g.output(1)?, g.output(2)?);
    let mut of_y = None;
    if let Some(dy) = g.grad(0) {
        let w = if g.has(1) { Some(g.input(1)?) } else { None };
        let eps = [("eps", g.attr("eps")?)];
        let all = g.emit("batch_norm_grad", &[Some(dy), Some(x), Some(mean), Some(var), w], &eps)?;
        for i in [1, 2] {
            if g.has(i) && g.needs(i) {
                g.set(i, all[i])?;
            }
        }
        of_y = Some(all[0]);
    }
    // mean = Σ x / n, var = Σ (x - mean)² / n
    let mut of_mean = None;
    if let Some(d) = g.grad(1) {
        let d = times(g, d, 1.0 / n)?;
        of_mean = Some(column(g, d, rank)?);
    }
    let mut of_var = None;
    if let Some(d) = g.grad(2) {
        let (d, m) = (times(g, d, 2.0 / n)?, column(g, mean, rank)?);
        let (d, centred) = (column(g, d, rank)?, g.call("sub", &[x, m], &[])?);
        of_var = Some(product(g, centred, d)?);
    }
    if !g.needs(0) {
        return Ok(());
    }
    set_total(g, 0, [of_y, of_var, of_mean])
}

/// The gradients of `batch_norm_grad`. With h = (x - mean) r, r = 1 / √(var + eps), G = dy weight, and v, a and b the gradients of dx,
/// dweight and dbias: dx = r (G - mean(G) - h mean(G h)), dweight = Σ dy h, dbias = Σ dy.
fn second_gradient(g: &mut dyn GradCtx) -> Result<()> {
    let (rank, n) = (g.input_shape(1).len(), others(&g.input_shape(1)).1 as f64);
    let (v, a, b) = (g.grad(0), g.grad(1), g.grad(2));
    let (dy, x, mean, var) = (g.input(0)?, g.input(1)?, g.input(2)?, g.input(3)?);
    let w = if g.has(4) { Some(g.input(4)?) } else { None };
    let eps = [("eps", g.attr("eps")?)];
    let shifted = g.call("add_scalar", &[var], &[("s", g.attr("eps")?)])?;
    let r = g.call("rsqrt", &[shifted], &[])?;
    let (r_beside, m_beside) = (column(g, r, rank)?, column(g, mean, rank)?);
    let centred = g.call("sub", &[x, m_beside], &[])?;
    let h = product(g, centred, r_beside)?;
    let a_beside = match a {
        Some(a) => Some(column(g, a, rank)?),
        None => None,
    };
    // What the gradient of x does to v is its own transpose.
    let back = |g: &mut dyn GradCtx, v: Value, w: Option<Value>| -> Result<Value> {
        Ok(g.emit("batch_norm_grad", &[Some(v), Some(x), Some(mean), Some(var), w], &eps)?[0])
    };
    if g.needs(0) {
        let of_v = match v {
            Some(v) => Some(back(g, v, w)?),
            None => None,
        };
        let of_a = match a_beside {
            Some(a) => Some(product(g, h, a)?),
            None => None,
        };
        let of_b = match b {
            Some(b) => Some(column(g, b, rank)?),
            None => None,
        };
        set_total(g, 0, [of_v, of_a, of_b])?;
    }
    if g.has(4)
        && g.needs(4)
        && let Some(v) = v
    {
        let d = back(g, v, None)?;
        let p = product(g, dy, d)?;
        let dw = channel_sum(g, p)?;
        g.set(4, dw)?;
    }
    if v.is_none() && a.is_none() || !(1..4).any(|i| g.needs(i)) {
        return Ok(());
    }
    // u, the gradient with respect to h, is a dy - r (v mean(G h) + G mean(v h)).
    let mut u = match a_beside {
        Some(a) => Some(product(g, dy, a)?),
        None => None,
    };
    let mut of_r = None;
    if let Some(v) = v {
        let big = match w {
            Some(w) => {
                let w = column(g, w, rank)?;
                product(g, dy, w)?
            }
            None => dy,
        };
        let sum_with_h = |g: &mut dyn GradCtx, of: Value, other: Value| -> Result<Value> {
            let p = product(g, of, h)?;
            let mean = channel_sum(g, p)?;
            let mean = times(g, mean, -1.0 / n)?;
            let scaled = product(g, mean, r)?;
            let scaled = column(g, scaled, rank)?;
            product(g, other, scaled)
        };
        let (one, other) = (sum_with_h(g, big, v)?, sum_with_h(g, v, big)?);
        u = total(g, [u, Some(one), Some(other)])?;
        // Σ v dx is r times the derivative with respect to r where h stands still.
        let dx = back(g, dy, w)?;
        let p = product(g, v, dx)?;
        of_r = Some(channel_sum(g, p)?);
    }
    let Some(u) = u else { return Ok(()) };
    if g.needs(1) {
        let d = product(g, u, r_beside)?;
        g.set(1, d)?;
    }
    if g.needs(2) {
        let (sum, minus) = (channel_sum(g, u)?, g.call("neg", &[r], &[])?);
        let d = product(g, sum, minus)?;
        g.set(2, d)?;
    }
    if g.needs(3) {
        let p = product(g, u, h)?;
        let through_h = channel_sum(g, p)?;
        let sum = total(g, [of_r, Some(through_h)])?.unwrap_or(through_h);
        let square = product(g, r, r)?;
        let d = product(g, sum, square)?;
        let d = times(g, d, -0.5)?;
        g.set(3, d)?;
    }
    Ok(())
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (b, s0, s1, p) = (Sbp::Broadcast, Sbp::Split(0), Sbp::Split(1), Sbp::PARTIAL_SUM);
    vec![
        OpDef::new("batch_norm_train(x: float[2..], weight?: float, bias?: float; eps: runtime float = 1e-5) -> (y, mean, var)").map(|o| {
            o.doc("Each channel, dim 1, with mean 0 and variance 1 over all other dims, then scaled and shifted; with mean and variance.")
                .by_name_only()
                .check(|c| {
                    super::one_dtype(c, &[0, 1, 2])?;
                    per_channel(c, 0, &[1, 2])
                })
                .shapes(|c| {
                    let n: Dims = [channels(c, 0)?].into_iter().collect();
                    Ok(smallvec![c.shape(0)?.into(), n.clone(), n])
                })
                .dtype(DTypeRule::Fn(Arc::new(|c| {
                    let d = c.input(0)?.dtype;
                    Ok([d, statistics(d), statistics(d)].into_iter().collect())
                })))
                .get_sbp(move |_| Ok(vec![Signature::new(&[s1, s0, s0], &[s1, s0, s0])]))
                .lowering(move |c| spread(c, 0, |s| Signature::new(&[s, b, b], &[s, b, b])), forward)
                .grad(Grad::rule_saving(&[0, 1], &[1, 2], gradient))
                .samples(&["f32[4, 3, 5] f32[3] f32[3]", "f64[6, 4] f64[4] -", "f32[3, 2, 2, 18] - -", "f64[3, 4, 20] f64[4] f64[4]; eps=0.1"])
        }),
        OpDef::new(
            "batch_norm_grad(dy: float[2..], x: float[2..], mean: float, var: float, weight?: float; eps: runtime float = 1e-5) -> (dx, dweight, dbias)",
        )
        .map(|o| {
            o.doc("Gradients of batch_norm_train.")
                .by_name_only()
                .check(|c| {
                    let x = c.input(1)?;
                    super::one_dtype(c, &[0, 1, 4])?;
                    super::dims_are(c, 0, &x.shape)?;
                    per_channel(c, 1, &[2, 3, 4])?;
                    [2, 3].into_iter().try_for_each(|i| super::dtype_is(c, i, statistics(x.dtype)))
                })
                .shapes(|c| {
                    let n: Dims = [channels(c, 1)?].into_iter().collect();
                    Ok(smallvec![c.shape(1)?.into(), n.clone(), n])
                })
                .dtype(DTypeRule::Input(1))
                .get_sbp(move |_| {
                    Ok(vec![
                        Signature::new(&[s1, s1, s0, s0, s0], &[s1, s0, s0]),
                        Signature::new(&[p, b, b, b, b], &[p, p, p]),
                    ])
                })
                .lowering(move |c| spread(c, 1, |s| Signature::new(&[s, s, b, b, b], &[s, b, b])), backward)
                .grad(Grad::rule_saving(&[0, 1, 2, 3, 4], &[], second_gradient))
                .traits(|t| t.run_empty = true)
                .samples(&["f32[4, 3, 5] f32[4, 3, 5] f32[3] f32[3]+ f32[3]", "f64[6, 4, 18] f64[6, 4, 18] f64[4] f64[4]+ -; eps=0.1"])
        }),
    ]
}
