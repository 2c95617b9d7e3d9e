//! Padding and resampling: `pad_constant`, which puts a number around a tensor or cuts it, and `resample`, whose elements are weighted
//! sums of elements of the last dims: reflected, repeated, interpolated, or regrouped in windows. All are linear (`pad_constant` but for
//! its number), and the gradient of each gradient is the op again.

use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, GradCtx, InferCtx, OpDef, Value};
use crate::sbp::{ReduceOp, Sbp, Signature};
use oflow_kernels::Dims;
use oflow_kernels::resample::{Rule, lines};

/// Elements before and after those of x, dim by dim.
fn around(c: &InferCtx<'_>) -> Result<Vec<[i64; 2]>> {
    let (x, before, size) = (c.shape(0)?, c.ints("before")?, c.sizes("size")?);
    if before.len() != x.len() || size.len() != x.len() {
        return Err(Error::argument(format!("{x:?} needs {} numbers, not {before:?} and {size:?}", x.len())));
    }
    let pair = |d: usize| {
        let (b, n, m) = (before[d], x[d] as i64, size[d] as i64);
        match b.checked_add(n).and_then(|end| m.checked_sub(end)) {
            Some(after) => Ok([b, after]),
            None => Err(Error::argument(format!("{b} elements before dim {d} are out of bounds"))),
        }
    };
    (0..x.len()).map(pair).collect()
}

fn pad_constant() -> Result<OpDef> {
    Ok(OpDef::new("pad_constant(x: number; before: ints, size: shape, value: scalar = 0) -> y")?
        .doc("x in a tensor of shape `size`, its first element at `before`, and a number around it. What is outside is left out.")
        .by_name_only()
        .strided()
        .check(|c| {
            super::scalar::fits(c.scalar("value")?, c.input(0)?.dtype)?;
            around(c).map(drop)
        })
        .shape1(|c| c.sizes("size"))
        .dtype(DTypeRule::Input(0))
        .get_sbp(|c| {
            let (around, p) = (around(c)?, Sbp::PARTIAL_SUM);
            let zero = !c.scalar("value")?.to_bool();
            let mut s = vec![];
            for (d, pair) in around.iter().enumerate() {
                let split = Sbp::Split(d);
                match pair {
                    [0, 0] => s.push(Signature::new(&[split], &[split])),
                    _ => {
                        s.push(Signature::new(&[Sbp::Broadcast], &[split]));
                        // Each rank adds the elements it has.
                        s.extend(zero.then(|| Signature::new(&[split], &[p])));
                    }
                }
            }
            s.extend((zero || around.iter().flatten().all(|n| *n <= 0)).then(|| Signature::new(&[p], &[p])));
            // The number is the same on all ranks.
            s.extend([ReduceOp::Max, ReduceOp::Min].map(|op| Signature::new(&[Sbp::Partial(op)], &[Sbp::Partial(op)])));
            Ok(s)
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let AttrValue::Ints(before) = g.attr("before")? else {
                return Err(Error::argument("'before' must be a list of ints"));
            };
            let (back, shape) = (before.iter().map(|b| -b).collect(), g.input_shape(0));
            let attrs = [("before", AttrValue::Ints(back)), ("size", shape.as_slice().into())];
            let dx = g.call("pad_constant", &[dy], &attrs)?;
            g.set(0, dx)
        }))
        .samples(&[
            "f32[2, 3, 4]; before=[0, 1, 2], size=[2, 6, 7]",
            "f64[4, 5]; before=[-1, 2], size=[2, 6], value=2.5",
            "i32[5]; before=[-1], size=[3], value=7",
            "bf16[2, 3]; before=[1, -4], size=[3, 2]",
            "bool[3]; before=[1], size=[6], value=true",
            "f32[3, 2]; before=[0, -1], size=[3, 1], value=2.5",
        ]))
}

/// Dims that are not resampled.
fn lead(c: &InferCtx<'_>) -> Result<usize> {
    let (rank, n) = (c.shape(0)?.len(), c.ints("size")?.len());
    match rank.checked_sub(n) {
        Some(lead) if (1..=3).contains(&n) => Ok(lead),
        _ => Err(Error::shape(format!("{n} dims of {:?} cannot be resampled; 1 to 3 can", c.shape(0)?))),
    }
}

fn rule(c: &InferCtx<'_>) -> Result<Rule> {
    Rule::named(c.str("mode")?).map_err(|e| Error::argument(e.0).help(MODES))
}

const MODES: &str = "the modes are reflect, replicate, circular, nearest, nearest-exact, linear, cubic, windows";

fn check(c: &InferCtx<'_>, back: bool) -> Result<()> {
    let (lead, rule, size) = (lead(c)?, rule(c)?, c.sizes("size")?);
    let given = &c.shape(0)?[lead..];
    let (image, result) = if back { (&size[..], given) } else { (given, &size[..]) };
    let (aligned, steps, scales) = (c.bool("aligned")?, c.ints("steps")?, c.floats("scales")?);
    lines(rule, aligned, steps, scales, image, result).map_err(|e| Error::argument(e.0))?;
    let dtype = c.input(0)?.dtype;
    match dtype.is_float() || (rule.moves() && !back) {
        true => Ok(()),
        false => Err(Error::dtype(format!("weighted sums are of floats, not of {dtype}"))),
    }
}

fn sized(c: &InferCtx<'_>) -> Result<Dims> {
    let mut dims: Dims = c.shape(0)?[..lead(c)?].into();
    dims.extend(c.sizes("size")?);
    Ok(dims)
}

/// S of the dims that are not resampled. Where elements are moved only, each of the result is one of x.
fn planes(c: &InferCtx<'_>, back: bool) -> Result<Vec<Signature>> {
    let mut s: Vec<Signature> = (0..lead(c)?).map(Sbp::Split).map(|d| Signature::new(&[d], &[d])).collect();
    s.push(Signature::new(&[Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
    let rule = rule(c)?;
    // Windows have zeros where the image ends, which are the same on all ranks.
    if rule.moves() && !back {
        s.extend([ReduceOp::Max, ReduceOp::Min].map(|op| Signature::new(&[Sbp::Partial(op)], &[Sbp::Partial(op)])));
    }
    Ok(s)
}

/// The gradient op of one of the two: the other, with the size of this one's input.
fn other(g: &mut dyn GradCtx, op: &str, dy: Value) -> Result<Value> {
    let (shape, AttrValue::Ints(size)) = (g.input_shape(0), g.attr("size")?) else {
        return Err(Error::argument("'size' must be a list of ints"));
    };
    let mut attrs: Vec<(&str, AttrValue)> = vec![];
    for name in ["mode", "aligned", "steps", "scales"] {
        attrs.push((name, g.attr(name)?));
    }
    attrs.push(("size", shape[shape.len() - size.len()..].into()));
    g.call(op, &[dy], &attrs)
}

fn op(text: &str, doc: &str, back: bool, gradient: &'static str) -> Result<OpDef> {
    Ok(OpDef::new(text)?
        .doc(doc)
        .by_name_only()
        .linear_by_parts()
        .check(move |c| check(c, back))
        .shape1(sized)
        .dtype(DTypeRule::Input(0))
        .get_sbp(move |c| planes(c, back))
        .grad(Grad::rule_saving(&[], &[], move |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dx = other(g, gradient, dy)?;
            g.set(0, dx)
        })))
}

const ATTRS: &str = "mode: str, size: shape, aligned: bool = false, steps: ints = [], scales: floats = []";

fn resample() -> Result<OpDef> {
    let doc = "The last dims with other sizes: elements around them (reflect, replicate, circular, with `steps` before each dim), \
        interpolated (nearest, nearest-exact, linear, cubic), or windows of them (with number, stride, padding, dilation of each dim).";
    Ok(op(&format!("resample(x; {ATTRS}) -> y"), doc, false, "resample_grad")?.samples(&[
        "f32[2, 3, 5]; mode=reflect, size=[9], steps=[3]",
        "f64[2, 4, 3]; mode=replicate, size=[5, 6], steps=[-1, 2]",
        "bf16[3, 4]; mode=circular, size=[9], steps=[2]",
        "i32[2, 3]; mode=reflect, size=[5], steps=[1]",
        "f32[2, 3, 3, 4]; mode=nearest, size=[5, 6]",
        "f64[2, 5, 4]; mode=nearest-exact, size=[2, 7], scales=[0.5, 1.8]",
        "f32[2, 3, 4, 3]; mode=linear, size=[3, 7]",
        "f64[2, 2, 3, 2]; mode=linear, size=[3, 5, 2], aligned=true",
        "f32[2, 4, 5]; mode=cubic, size=[7, 3]",
        "f64[2, 3, 2]; mode=cubic, size=[4, 5], aligned=true",
        "f32[2, 3, 6]; mode=windows, size=[9], steps=[3, 2, 1, 1]",
        "f64[2, 5, 4]; mode=windows, size=[6, 6], steps=[3, 1, 0, 2, 2, 2, 1, 1]",
    ]))
}

fn resample_grad() -> Result<OpDef> {
    let doc = "The gradient of resample: each element, times its weights, added to the elements that it was made of.";
    Ok(op(&format!("resample_grad(dy: float; {ATTRS}) -> dx"), doc, true, "resample")?.samples(&[
        "f32[2, 3, 9]; mode=reflect, size=[5], steps=[3]",
        "f64[2, 5, 6]; mode=replicate, size=[4, 3], steps=[-1, 2]",
        "bf16[3, 9]; mode=circular, size=[4], steps=[2]",
        "f32[2, 5, 6]; mode=nearest, size=[3, 4]",
        "f64[2, 2, 7]; mode=nearest-exact, size=[5, 4], scales=[0.5, 1.8]",
        "f32[2, 3, 3, 7]; mode=linear, size=[4, 3]",
        "f64[2, 3, 5]; mode=cubic, size=[4, 2]",
        "f32[2, 3, 9]; mode=windows, size=[6], steps=[3, 2, 1, 1]",
    ]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![pad_constant(), resample(), resample_grad()]
}
