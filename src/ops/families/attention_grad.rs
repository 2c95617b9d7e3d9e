//! Gradients of attention and of its gradient. The first is an op. The second is made of products over whole rows of weights: its memory
//! is quadratic in the length.

use super::softmax::cast_to;
use super::terms::{product, set_total, times, total};
use crate::error::Result;
use crate::ops::{AttrValue, GradCtx, Value};
use crate::placement::shard_range;
use oflow_kernels::Scalar;
use std::ops::Range;

fn matmul(g: &mut dyn GradCtx, a: (Value, bool), b: (Value, bool)) -> Result<Value> {
    g.call("matmul", &[a.0, b.0], &[("transpose_a", a.1.into()), ("transpose_b", b.1.into())])
}

/// Sum over the last dim, kept. It is complete: a product with rows would be longer, and a part of a sum times infinity may be NaN.
fn row_sum(g: &mut dyn GradCtx, v: Value) -> Result<Value> {
    let sum = g.call("sum", &[v], &[("dims", AttrValue::from([-1i64])), ("keepdim", true.into())])?;
    g.emitter().reduce_partials(sum)
}

/// A number for each query, beside the weights.
fn beside(g: &mut dyn GradCtx, v: Value) -> Result<Value> {
    let mut shape = g.shape(v);
    shape.push(1);
    g.call("reshape", &[v], &[("shape", shape.as_slice().into())])
}

/// A number for each query again.
fn flat(g: &mut dyn GradCtx, v: Value) -> Result<Value> {
    let shape = g.shape(v);
    g.call("reshape", &[v], &[("shape", shape[..shape.len() - 1].into())])
}

fn minus(g: &mut dyn GradCtx, a: Value, b: Value) -> Result<Value> {
    g.call("sub", &[a, b], &[])
}

/// `scale v`.
fn scaled(g: &mut dyn GradCtx, v: Value) -> Result<Value> {
    let scale = g.attr("scale")?;
    g.call("mul_scalar", &[v], &[("s", scale)])
}

/// P = exp(scale q kᵀ - lse), 0 where a query does not see a key.
fn weights(g: &mut dyn GradCtx, q: Value, k: Value, lse: Value) -> Result<Value> {
    weights_from(g, q, k, lse, 0)
}

/// The same where the first key is that of number `first`.
fn weights_from(g: &mut dyn GradCtx, q: Value, k: Value, lse: Value, first: usize) -> Result<Value> {
    let causal = g.bool("causal")?;
    let lower = [("diagonal", AttrValue::from(-(first as i64)))];
    let s = matmul(g, (q, false), (k, true))?;
    let s = scaled(g, s)?;
    let lse = beside(g, lse)?;
    let mut z = minus(g, s, lse)?;
    if causal {
        // Before, too: what is hidden may be too large for exp.
        z = g.call("tril", &[z], &lower)?;
    }
    let p = g.call("exp", &[z], &[])?;
    if causal { g.call("tril", &[p], &lower) } else { Ok(p) }
}

/// In the dtype of `lse`, which is f32 where the others are halves.
fn wide(g: &mut dyn GradCtx, v: Value, lse: Value) -> Result<Value> {
    let dtype = g.dtype(lse);
    cast_to(g.emitter(), v, dtype)
}

/// Gradients with respect to q, k and v, of the result and of `lse`.
pub(super) fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let (q, k, lse) = (g.input(0)?, g.input(1)?, g.output(1)?);
    let (mut of_out, mut of_lse) = ([None; 2], [None; 2]);
    if let Some(dout) = g.grad(0) {
        let (v, out) = (g.input(2)?, g.output(0)?);
        let attrs = ["causal", "gather_limit", "scale"].map(|name| g.attr(name).map(|value| (name, value)));
        let attrs = attrs.into_iter().collect::<Result<Vec<_>>>()?;
        let all = g.emit("attention_grad", &[dout, q, k, v, out, lse].map(Some), &attrs)?;
        of_out = [Some(all[0]), Some(all[1])];
        if g.needs(2) {
            g.set(2, all[2])?;
        }
    }
    if let Some(dlse) = g.grad(1) {
        // d lse / d s is P.
        let (q, k) = (wide(g, q, lse)?, wide(g, k, lse)?);
        let (p, d) = (weights(g, q, k, lse)?, beside(g, dlse)?);
        let p = product(g, p, d)?;
        let p = scaled(g, p)?;
        of_lse = [Some(matmul(g, (p, false), (k, false))?), Some(matmul(g, (p, true), (q, false))?)];
    }
    for i in 0..2 {
        if g.needs(i) {
            set_total(g, i, [of_out[i], of_lse[i]])?;
        }
    }
    Ok(())
}

/// Gradients of `attention_parts`: those of attention, part by part.
pub(super) fn gradient_of_parts(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dout) = g.grad(0) else { return Ok(()) };
    let lse = g.output(1)?;
    let (dout, q) = (wide(g, dout, lse)?, g.input(0).and_then(|v| wide(g, v, lse))?);
    let (k, v) = (g.input(1).and_then(|v| wide(g, v, lse))?, g.input(2).and_then(|v| wide(g, v, lse))?);
    let (parts, keys) = (g.shape(lse)[0], g.shape(k)[2]);
    let piece = |g: &mut dyn GradCtx, v: Value, dim: usize, range: &Range<usize>| {
        g.call("slice", &[v], &[("dim", dim.into()), ("start", range.start.into()), ("end", range.end.into())])
    };
    let part = |g: &mut dyn GradCtx, v: Value, i: usize| {
        let v = piece(g, v, 0, &(i..i + 1))?;
        let shape = g.shape(v);
        g.call("reshape", &[v], &[("shape", shape[1..].into())])
    };
    let (mut of_q, mut of_k, mut of_v) = (vec![], vec![], vec![]);
    for i in 0..parts {
        let own = shard_range(keys, parts, i);
        let (k, v) = (piece(g, k, 2, &own)?, piece(g, v, 2, &own)?);
        let (d_o, lse) = (part(g, dout, i)?, part(g, lse, i)?);
        // `lse` has no gradient, so the weights are divided by their sum, which is 1, or 0 where nothing is seen.
        let e = weights_from(g, q, k, lse, own.start)?;
        let sum = row_sum(g, e)?;
        let sum = g.call("clamp_min", &[sum], &[("min", Scalar::Float(f64::from(f32::MIN_POSITIVE)).into())])?;
        let p = g.call("div", &[e, sum], &[])?;
        let dp = matmul(g, (d_o, false), (v, true))?;
        let d = product(g, p, dp)?;
        let d = row_sum(g, d)?;
        let ds = minus(g, dp, d)?;
        let ds = product(g, p, ds)?;
        let ds = scaled(g, ds)?;
        of_q.push(Some(matmul(g, (ds, false), (k, false))?));
        of_k.push(Some(matmul(g, (ds, true), (q, false))?));
        of_v.push(Some(matmul(g, (p, true), (d_o, false))?));
    }
    if g.needs(0) {
        set_total(g, 0, of_q)?;
    }
    for (i, pieces) in [(1, of_k), (2, of_v)] {
        if g.needs(i) {
            let d = g.emit("concat", &pieces, &[("dim", 2usize.into())])?[0];
            g.set(i, d)?;
        }
    }
    Ok(())
}

/// Gradients of `attention_grad`. With P the weights, O the result, dP = dO vᵀ and D = Σ dO O for each query:
/// dS = P (dP - D), dq = scale dS k, dk = scale dSᵀ q, dv = Pᵀ dO.
pub(super) fn second_gradient(g: &mut dyn GradCtx) -> Result<()> {
    let lse = g.input(5)?;
    let mut input = |i| g.input(i).and_then(|v| wide(g, v, lse));
    let (d_o, q, k, v, o) = (input(0)?, input(1)?, input(2)?, input(3)?, input(4)?);
    let mut grad = |i| g.grad(i).map(|v| wide(g, v, lse)).transpose();
    let (of_dq, of_dk, of_dv) = (grad(0)?, grad(1)?, grad(2)?);
    let p = weights(g, q, k, lse)?;
    let dp = matmul(g, (d_o, false), (v, true))?;
    let d = product(g, d_o, o)?;
    let d = row_sum(g, d)?;
    let dp_less_d = minus(g, dp, d)?;
    let ds = product(g, p, dp_less_d)?;
    let ds = scaled(g, ds)?;
    // By input: what each gradient gives.
    let mut parts: [Vec<Option<Value>>; 5] = Default::default();
    // Of dS, but for `scale`.
    let mut of_ds = [None; 2];
    if let Some(a) = of_dq {
        of_ds[0] = Some(matmul(g, (a, false), (k, true))?);
        parts[2].push(Some(matmul(g, (ds, true), (a, false))?));
    }
    if let Some(b) = of_dk {
        of_ds[1] = Some(matmul(g, (q, false), (b, true))?);
        parts[1].push(Some(matmul(g, (ds, false), (b, false))?));
    }
    let mut of_p = [None; 2];
    if let Some(c) = of_dv {
        of_p[0] = Some(matmul(g, (d_o, false), (c, true))?);
        parts[0].push(Some(matmul(g, (p, false), (c, false))?));
    }
    if let Some(x) = total(g, of_ds)? {
        let x = scaled(g, x)?;
        of_p[1] = Some(product(g, x, dp_less_d)?);
        let z = product(g, x, p)?;
        parts[0].push(Some(matmul(g, (z, false), (v, false))?));
        parts[3].push(Some(matmul(g, (z, true), (d_o, false))?));
        let of_d = row_sum(g, z)?;
        let of_d = times(g, of_d, -1.0)?;
        parts[0].push(Some(product(g, o, of_d)?));
        parts[4].push(Some(product(g, d_o, of_d)?));
    }
    if let Some(y) = total(g, of_p)? {
        let w = product(g, y, p)?;
        let ws = scaled(g, w)?;
        parts[1].push(Some(matmul(g, (ws, false), (k, false))?));
        parts[2].push(Some(matmul(g, (ws, true), (q, false))?));
        if g.needs(5) {
            let sum = row_sum(g, w)?;
            let sum = flat(g, sum)?;
            let d = times(g, sum, -1.0)?;
            g.set(5, d)?;
        }
    }
    for (i, parts) in parts.into_iter().enumerate() {
        if g.needs(i) {
            set_total(g, i, parts)?;
        }
    }
    Ok(())
}
