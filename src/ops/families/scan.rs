//! Scans along a dim besides sums: products, extremes, logarithms of sums of exponentials; and the recurrence that their
//! gradients are made of, which has itself as gradient.

use super::gather::dim_of;
use crate::error::Result;
use crate::ops::{DTypeRule, Emit, Grad, GradCtx, InferCtx, LowerCall, OpDef, ShapeRule, Value, normalize_dim};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::{DType, DTypeKind, Scalar};
use smallvec::smallvec;

/// S of every dim but the one along which an op runs, for all inputs and outputs alike.
fn others(c: &InferCtx<'_>, inputs: usize, outputs: usize) -> Result<Vec<Signature>> {
    let rank = c.shape(0)?.len();
    let dim = c.dim("dim", rank)?;
    let split = (0..rank).filter(|d| *d != dim).map(Sbp::Split);
    Ok(split.map(|s| Signature::new(&vec![s; inputs], &vec![s; outputs])).collect())
}

/// A part of a value along a dim.
pub(super) fn part(g: &mut dyn Emit, v: Value, dim: usize, start: usize, end: usize) -> Result<Value> {
    g.call("slice", &[v], &[("dim", dim.into()), ("start", start.into()), ("end", end.into())])
}

/// A value moved by one place along a dim, to the end or to the front, with zeros where nothing comes from.
fn shifted(g: &mut dyn GradCtx, v: Value, dim: usize, to_end: bool) -> Result<Value> {
    let n = g.shape(v)[dim];
    let (from, to) = if to_end { (0, 1) } else { (1, 0) };
    let kept = part(g, v, dim, from, from + n - 1)?;
    let attrs = [("dim", dim.into()), ("start", to.into()), ("step", 1i64.into()), ("size", n.into())];
    g.call("slice_grad", &[kept], &attrs)
}

/// The recurrence `r[i] = b[i] + a[i] r[i - 1]`, or from the end.
fn recurrence(g: &mut dyn GradCtx, a: Value, b: Value, dim: usize, reverse: bool) -> Result<Value> {
    g.call("linear_scan", &[a, b], &[("dim", dim.into()), ("reverse", reverse.into())])
}

/// Whether there is nothing to run along: then the result is the input.
fn alone(g: &dyn GradCtx) -> Result<Option<usize>> {
    let shape = g.input_shape(0);
    Ok(if shape.iter().product::<usize>() == 0 || shape.is_empty() { None } else { Some(dim_of(g)?) })
}

/// A scan by an op that is associative: each element takes in the one before it, then the one 2 before it, then 4, and so on.
fn doubling(e: &mut dyn Emit, call: &LowerCall<'_>, op: &str) -> Result<Vec<Value>> {
    let mut y = call.input(0)?;
    let shape = e.shape(y);
    let dim = normalize_dim(call.int("dim")?, shape.len().max(1))?;
    let n = shape.get(dim).copied().unwrap_or(1);
    let mut step = 1;
    while step < n {
        let (first, before, from) =
            (part(e, y, dim, 0, step)?, part(e, y, dim, 0, n - step)?, part(e, y, dim, step, n)?);
        let rest = e.call(op, &[before, from], &[])?;
        y = e.call("concat", &[first, rest], &[("dim", dim.into())])?;
        step *= 2;
    }
    Ok(vec![y])
}

const CUMPROD: &str = "The running product along a dim. Integers and bools multiply to i64. Its gradient divides by nothing, so zeros need no \
    care.";

fn cumprod() -> Result<OpDef> {
    Ok(OpDef::new("cumprod(x; dim: int) -> y")?
        .doc(CUMPROD)
        .lowered_for(DTypeKind::Complex, |e, call| doubling(e, call, "mul"))
        .check(super::dim_exists)
        .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
            let d = c.input(0)?.dtype;
            Ok(smallvec![if d.is_float() { d } else { DType::I64 }])
        })))
        .get_sbp(|c| others(c, 1, 1))
        .grad(Grad::rule_saving(&[0], &[0], |g| {
            // Element k is in all products from k on: y[k - 1] times r[k] = dy[k] + x[k + 1] r[k + 1].
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let Some(dim) = alone(g)? else { return g.set(0, dy) };
            let (x, y, n) = (g.input(0)?, g.output(0)?, g.input_shape(0)[dim]);
            let next = shifted(g, x, dim, false)?;
            let r = recurrence(g, next, dy, dim, true)?;
            let (first, rest) = (part(g, r, dim, 0, 1)?, part(g, r, dim, 1, n)?);
            let before = part(g, y, dim, 0, n - 1)?;
            let rest = g.call("mul", &[before, rest], &[])?;
            let dx = g.call("concat", &[first, rest], &[("dim", dim.into())])?;
            g.set(0, dx)
        }))
        .samples(&["f32[3, 5]; dim=1", "i32[4]; dim=0", "f64[4, 3]; dim=-2", "f32[]; dim=-1", "bool[3, 2]; dim=0"]))
}

fn extreme(name: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(x; dim: int) -> (values, indices)"))?
        .doc(doc)
        .check(super::dim_exists)
        .shape_rule(ShapeRule::SameAsInput)
        .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| Ok(smallvec![c.input(0)?.dtype, DType::I64]))))
        .get_sbp(|c| others(c, 1, 2))
        .grad(Grad::rule_saving(&[], &[1], super::sort::chosen))
        .samples(&["f32[3, 5]; dim=1", "f64[4, 3, 2]; dim=0", "i64[3, 6]<3; dim=-1", "bf16[5]; dim=0", "f32[]; dim=0"]))
}

fn logcumsumexp() -> Result<OpDef> {
    Ok(OpDef::new("logcumsumexp(x: float; dim: int) -> y")?
        .doc("The logarithm of the running sum of eˣ along a dim, also where the powers overflow.")
        .lowered_for(DTypeKind::Complex, |e, call| doubling(e, call, "logaddexp"))
        .check(super::dim_exists)
        .get_sbp(|c| others(c, 1, 1))
        .grad(Grad::rule_saving(&[0], &[0], |g| {
            // Of y[i] the share of x[k] is e^(x[k] - y[i]), i from k on: e^(x[k] - y[k]) times r[k] = dy[k] + e^(y[k] - y[k + 1]) r[k + 1].
            // As y rises, no power is greater than 1.
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let Some(dim) = alone(g)? else { return g.set(0, dy) };
            let (x, y) = (g.input(0)?, g.output(0)?);
            let least = || [("s", Scalar::Float(f64::NEG_INFINITY).into())];
            let nothing = g.call("eq_scalar", &[y], &least())?;
            // Where nothing has been added up yet, differences of infinities are no numbers.
            let share = |g: &mut dyn GradCtx, a: Value, b: Value| {
                let d = g.call("sub", &[a, b], &[])?;
                let d = g.call("masked_fill", &[d, nothing], &least())?;
                g.call("exp", &[d], &[])
            };
            let next = shifted(g, y, dim, false)?;
            let a = share(g, y, next)?;
            let r = recurrence(g, a, dy, dim, true)?;
            let own = share(g, x, y)?;
            let dx = g.call("mul", &[own, r], &[])?;
            g.set(0, dx)
        }))
        .samples(&["f32[3, 5]; dim=1", "f64[4, 3, 2]; dim=0", "bf16[4]; dim=-1", "f32[]; dim=0"]))
}

fn linear_scan() -> Result<OpDef> {
    Ok(OpDef::new("linear_scan(a: float, b: float; dim: int, reverse: bool = false) -> r")?
        .doc("r[i] = b[i] + a[i] r[i - 1] along a dim, with `reverse` from its end.")
        .by_name_only()
        .check(|c| {
            super::dim_exists(c)?;
            super::one_dtype(c, &[0, 1])?;
            super::dims_are(c, 1, c.shape(0)?)
        })
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let mut s = others(c, 2, 1)?;
            s.push(Signature::new(&[Sbp::Broadcast, Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
            Ok(s)
        })
        .grad(Grad::rule_saving(&[0], &[0], |g| {
            // The recurrence in the other direction, with the factors moved by one place.
            let Some(dr) = g.grad(0) else { return Ok(()) };
            let Some(dim) = alone(g)? else { return g.set(1, dr) };
            let reverse = matches!(g.attr("reverse")?, crate::ops::AttrValue::Bool(true));
            let a = g.input(0)?;
            let factors = shifted(g, a, dim, reverse)?;
            let db = recurrence(g, factors, dr, dim, !reverse)?;
            if g.needs(0) {
                let r = g.output(0)?;
                let before = shifted(g, r, dim, !reverse)?;
                let da = g.call("mul", &[db, before], &[])?;
                g.set(0, da)?;
            }
            g.set(1, db)
        }))
        .samples(&[
            "f32[3, 5] f32[3, 5]; dim=1",
            "f64[4, 3] f64[4, 3]; dim=0, reverse=true",
            "bf16[4] bf16[4]; dim=0",
            "f32[] f32[]; dim=0",
        ]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let running = |which: &str| {
        format!(
            "The {which} element so far along a dim, and where it stands: of equal ones the last. From the first NaN on the result is \
             NaN."
        )
    };
    vec![
        cumprod(),
        extreme("cummax", &running("largest")),
        extreme("cummin", &running("smallest")),
        logcumsumexp(),
        linear_scan(),
    ]
}
