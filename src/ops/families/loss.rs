//! Cross entropy of logits against class indices, per row. With the classes split it is a lowering over row statistics.

use super::softmax::{cast_to, need, reduce_whole};
use super::statistics;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Emit, Grad, GradCtx, InferCtx, OpDef, Value};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::{DType, Dims, Scalar};
use smallvec::smallvec;

fn rows(c: &InferCtx<'_>) -> Result<usize> {
    match c.shape(0)?.len() {
        0 => Err(Error::shape("the logits need a last dim of classes")),
        n => Ok(n - 1),
    }
}

fn check(c: &InferCtx<'_>) -> Result<()> {
    let lead = &c.shape(0)?[..rows(c)?];
    if c.shape(1)? != lead {
        return Err(Error::shape(format!("the target has shape {:?}, the rows of the logits {lead:?}", c.shape(1)?))
            .help("the classes are the last dim of the logits"));
    }
    if c.input(1)?.dtype != DType::I64 {
        return Err(Error::dtype(format!("the target must be i64, not {}", c.input(1)?.dtype)));
    }
    match c.op.sig.attr("label_smoothing").map(|_| c.float("label_smoothing")).transpose()? {
        Some(s) if !(0.0..=1.0).contains(&s) => {
            Err(Error::argument(format!("label_smoothing is {s}")).help("it is within 0 and 1"))
        }
        _ => Ok(()),
    }
}

/// Share of a target that its class keeps, and share that every class gets.
fn parts(smoothing: &AttrValue, classes: usize) -> Option<(f64, f64)> {
    match smoothing {
        AttrValue::Float(s) if *s != 0.0 => Some((1.0 - s, s / classes.max(1) as f64)),
        _ => None,
    }
}

fn scaled(e: &mut dyn Emit, v: Value, by: f64) -> Result<Value> {
    e.call("mul_scalar", &[v], &[("s", Scalar::Float(by).into())])
}

/// S of the row dims for all; per input and output as many entries as given.
fn by_rows(c: &InferCtx<'_>, ins: usize, outs: usize) -> Result<Vec<Signature>> {
    Ok((0..rows(c)?).map(|d| Signature::new(&vec![Sbp::Split(d); ins], &vec![Sbp::Split(d); outs])).collect())
}

/// A value per row beside the rows: with a last dim of size 1.
fn column(g: &mut dyn GradCtx, v: Value) -> Result<Value> {
    let mut shape: Vec<usize> = g.shape(v).to_vec();
    shape.push(1);
    g.call("reshape", &[v], &[("shape", shape.as_slice().into())])
}

/// A value per row, 0 in the rows whose target (input 1) is ignored.
fn counting(g: &mut dyn GradCtx, v: Value) -> Result<Value> {
    let skip = ignored(g)?;
    g.call("masked_fill", &[v, skip], &[("s", Scalar::Float(0.0).into())])
}

fn ignored(g: &mut dyn GradCtx) -> Result<Value> {
    let target = g.input(1)?;
    let ignore = g.attr("ignore_index")?.to_scalar().unwrap_or(Scalar::Int(-100));
    g.call("eq_scalar", &[target], &[("s", ignore.into())])
}

/// Gradient of `nll_pick`: dy at the target, 0 elsewhere and in ignored rows.
fn picked(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let shape = g.input_shape(0);
    let (target, skip) = (g.input(1)?, ignored(g)?);
    let classes = shape[shape.len() - 1];
    let target = g.call("masked_fill", &[target, skip], &[("s", Scalar::Int(0).into())])?;
    let target = column(g, target)?;
    let dy = counting(g, dy)?;
    let dy = column(g, dy)?;
    let dx = g.call("scatter_sum", &[dy, target], &[("dim", (-1i64).into()), ("rows", classes.into())])?;
    g.set(0, dx)
}

/// Gradients of `cross_entropy_grad`, which is `(exp(x - lse) - target) dloss` in the rows that count, with one-hot targets that may
/// be smoothed.
fn second(g: &mut dyn GradCtx) -> Result<()> {
    let Some(v) = g.grad(0) else { return Ok(()) };
    let (x, target, lse, dloss) = (g.input(0)?, g.input(1)?, g.input(2)?, g.input(3)?);
    let l = column(g, lse)?;
    let z = g.call("sub", &[x, l], &[])?;
    let p = g.call("exp", &[z], &[])?;
    let pv = g.call("mul", &[p, v], &[])?;
    let last = [("dims", AttrValue::from([-1i64]))];
    if g.needs(0) || g.needs(2) {
        let d = counting(g, dloss)?;
        let d = column(g, d)?;
        let dx = g.call("mul", &[pv, d], &[])?;
        if g.needs(2) {
            let s = g.call("sum", &[dx], &last)?;
            let dlse = g.call("neg", &[s], &[])?;
            g.set(2, dlse)?;
        }
        if g.needs(0) {
            g.set(0, dx)?;
        }
    }
    if g.needs(3) {
        let s = g.call("sum", &[pv], &last)?;
        let ignore = g.attr("ignore_index")?;
        let mut at = g.call("nll_pick", &[v, target], &[("ignore_index", ignore)])?;
        let mut s = counting(g, s)?;
        let classes = g.input_shape(0).last().copied().unwrap_or(1);
        if let Some((kept, spread)) = parts(&g.attr("label_smoothing")?, classes) {
            let all = g.call("sum", &[v], &last)?;
            let all = counting(g, all)?;
            let all = scaled(g.emitter(), all, spread)?;
            at = scaled(g.emitter(), at, kept)?;
            s = g.call("sub", &[s, all], &[])?;
        }
        let d = g.call("sub", &[s, at], &[])?;
        g.set(3, d)?;
    }
    Ok(())
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let (b, p) = (Sbp::Broadcast, Sbp::PARTIAL_SUM);
    vec![
        OpDef::new("cross_entropy(logits: float, target: int; ignore_index: int = -100, label_smoothing: float = 0.0) -> (loss, lse)").map(|o| {
            o.doc("Per row: logsumexp(logits) - logits[target], of which label smoothing mixes in the mean over all classes, and the logsumexp.")
                .strided()
                .check(check)
                .shapes(|c| {
                    let lead: Dims = c.shape(1)?.into();
                    Ok(smallvec![lead.clone(), lead])
                })
                .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
                    let d = statistics(c.input(0)?.dtype);
                    Ok([d, d].into_iter().collect())
                })))
                .get_sbp(|c| by_rows(c, 2, 2))
                .lowering(
                    move |c| Ok(vec![Signature::new(&[Sbp::Split(rows(c)?), b], &[b, b])]),
                    |e, call| {
                        let (x0, target) = (need(call, 0)?, need(call, 1)?);
                        let ignore = call.attrs[0].clone();
                        let dtype = statistics(e.dtype(x0));
                        let x = cast_to(e, x0, dtype)?;
                        let last = AttrValue::from([-1i64]);
                        // What is subtracted is finite: the sum is infinite where a logit is, and 0 where all are minus infinity.
                        let max = reduce_whole(e, "amax", x, last.clone())?;
                        let most = if dtype == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
                        let ends = [("lo", Scalar::Float(-most).into()), ("hi", Scalar::Float(most).into())];
                        let max = e.call("clamp", &[max], &ends)?;
                        let z = e.call("sub", &[x, max], &[])?;
                        let exp = e.call("exp", &[z], &[])?;
                        let sum = reduce_whole(e, "sum", exp, last)?;
                        let l = e.call("log", &[sum], &[])?;
                        let lse = e.call("add", &[l, max], &[])?;
                        let shape = e.shape(target);
                        let lse = e.call("reshape", &[lse], &[("shape", shape.as_slice().into())])?;
                        let mut pick = e.call("nll_pick", &[x, target], &[("ignore_index", ignore.clone())])?;
                        let classes = e.shape(x).last().copied().unwrap_or(1);
                        if let Some((kept, spread)) = parts(&call.attrs[1], classes) {
                            let all = e.call("sum", &[x], &[("dims", AttrValue::from([-1i64]))])?;
                            let all = scaled(e, all, spread)?;
                            pick = scaled(e, pick, kept)?;
                            pick = e.call("add", &[pick, all], &[])?;
                        }
                        let pick = e.reduce_partials(pick)?;
                        // An infinite logit has no share of the sum: NaN, as 0 times infinity.
                        let none = scaled(e, lse, 0.0)?;
                        let loss = e.call("sub", &[lse, pick], &[])?;
                        let loss = e.call("add", &[loss, none], &[])?;
                        let ignored = match ignore {
                            AttrValue::Int(i) => Scalar::Int(i),
                            _ => Scalar::Int(-100),
                        };
                        let skip = e.call("eq_scalar", &[target], &[("s", ignored.into())])?;
                        let loss = e.call("masked_fill", &[loss, skip], &[("s", Scalar::Float(0.0).into())])?;
                        Ok(vec![loss, lse])
                    },
                )
                .grad(Grad::rule_saving(&[0, 1], &[1], |g| {
                    let (x, t, lse) = (g.input(0)?, g.input(1)?, g.output(1)?);
                    let mut total = None;
                    if let Some(dloss) = g.grad(0) {
                        let attrs = [
                            ("ignore_index", g.attr("ignore_index")?),
                            ("label_smoothing", g.attr("label_smoothing")?),
                        ];
                        total = Some(g.call("cross_entropy_grad", &[x, t, lse, dloss], &attrs)?);
                    }
                    if let Some(dlse) = g.grad(1) {
                        // d lse / d x is the softmax.
                        let mut keep: Vec<usize> = g.shape(lse).to_vec();
                        keep.push(1);
                        let column = [("shape", AttrValue::from(keep.as_slice()))];
                        let (l, d) = (g.call("reshape", &[lse], &column)?, g.call("reshape", &[dlse], &column)?);
                        let z = g.call("sub", &[x, l], &[])?;
                        let p = g.call("exp", &[z], &[])?;
                        let dx = g.call("mul", &[p, d], &[])?;
                        total = Some(match total {
                            Some(t) => g.call("add", &[t, dx], &[])?,
                            None => dx,
                        });
                    }
                    match total {
                        Some(v) if g.needs(0) => g.set(0, v),
                        _ => Ok(()),
                    }
                }))
                .samples(&[
                    "f32[4, 5] i64[4]<5",
                    "f64[2, 3, 6] i64[2, 3]<6",
                    "f32[4, 3] i64[4]<3; ignore_index=1",
                    "f64[3, 5] i64[3]<5; ignore_index=1, label_smoothing=0.25",
                ])
        }),
        OpDef::new("nll_pick(logits: float, target: int; ignore_index: int = -100) -> y").map(|o| {
            o.doc("Per row the logit of the target, 0 where it is ignored.")
                .by_name_only()
                .strided()
                .check(check)
                .shape1(|c| Ok(c.shape(1)?.into()))
                .dtype(DTypeRule::Input(0))
                .get_sbp(move |c| {
                    let mut s = by_rows(c, 2, 1)?;
                    s.push(Signature::new(&[Sbp::Split(rows(c)?), b], &[p]));
                    s.extend(super::taken());
                    Ok(s)
                })
                .grad(Grad::rule_saving(&[1], &[], picked))
                .samples(&["f32[4, 5] i64[4]<5", "f64[2, 3, 6] i64[2, 3]<6", "f32[4, 3] i64[4]<3; ignore_index=1"])
        }),
        OpDef::new(
            "cross_entropy_grad(logits: float, target: int, lse: float, dloss: float; ignore_index: int = -100, label_smoothing: float = 0.0) -> dlogits",
        )
        .map(|o| {
            o.doc("Gradient of cross_entropy: (softmax - onehot) dloss.")
                .by_name_only()
                .strided()
                .check(|c| {
                    check(c)?;
                    super::dims_are(c, 2, c.shape(1)?)?;
                    super::dims_are(c, 3, c.shape(1)?)
                })
                .dtype(DTypeRule::Input(0))
                .get_sbp(move |c| {
                    let mut s = by_rows(c, 4, 1)?;
                    let k = Sbp::Split(rows(c)?);
                    s.push(Signature::new(&[k, b, b, b], &[k]));
                    s.push(Signature::new(&[b, b, b, p], &[p]));
                    Ok(s)
                })
                .grad(Grad::rule_saving(&[0, 1, 2, 3], &[], second))
                .samples(&[
                    "f32[4, 5] i64[4]<5 f32[4] f32[4]",
                    "f64[2, 3, 6] i64[2, 3]<6 f64[2, 3] f64[2, 3]",
                    "f32[4, 3] i64[4]<3 f32[4] f32[4]; ignore_index=1",
                    "f64[3, 5] i64[3]<5 f64[3] f64[3]; ignore_index=1, label_smoothing=0.25",
                ])
        }),
    ]
}
