//! Reductions over dims: sum, mean, amax, amin, any, all, argmax, argmin, cumsum.

use super::as_dims;
use super::prod::prod;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeClass, DTypeRule, Emit, Grad, GradCtx, InferCtx, LowerCall, OpDef, Value};
use crate::sbp::{ReduceOp, Sbp, Signature};
use oflow_kernels::{DType, DTypeKind, Dims, Scalar};

/// Shape after reducing `dims`.
pub(super) fn reduced(shape: &[usize], dims: &[usize], keepdim: bool) -> Dims {
    (0..shape.len())
        .filter_map(|d| match dims.contains(&d) {
            true => keepdim.then_some(1),
            false => Some(shape[d]),
        })
        .collect()
}

/// Where input dim `d`, which is not reduced, stands in the output.
pub(super) fn out_dim(d: usize, dims: &[usize], keepdim: bool) -> usize {
    if keepdim { d } else { d - dims.iter().filter(|r| **r < d).count() }
}

/// S of a kept dim stays; S of a reduced dim gives P(op); the P kinds that pass are listed.
pub(super) fn signatures(
    c: &InferCtx<'_>,
    dims: &[usize],
    over: Option<ReduceOp>,
    passing: &[ReduceOp],
) -> Result<Vec<Signature>> {
    let keep = c.bool("keepdim")?;
    let mut s = Vec::new();
    for d in 0..c.shape(0)?.len() {
        let out = match (dims.contains(&d), over) {
            (false, _) => Sbp::Split(out_dim(d, dims, keep)),
            (true, Some(op)) => Sbp::Partial(op),
            (true, None) => continue,
        };
        s.push(Signature::new(&[Sbp::Split(d)], &[out]));
    }
    s.extend(passing.iter().map(|op| Signature::new(&[Sbp::Partial(*op)], &[Sbp::Partial(*op)])));
    Ok(s)
}

pub(super) fn base(name: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(x; dims: ints = [], keepdim: bool = false) -> y"))?
        .doc(doc)
        .strided()
        .shape1(|c| {
            let shape = c.shape(0)?;
            Ok(reduced(shape, &c.dims("dims", shape.len())?, c.bool("keepdim")?))
        })
        .flops(|c| Ok(c.input(0)?.len() as u64)))
}

/// Puts the reduced dims of a gradient back and lets broadcasting do the rest.
fn unreduced(g: &mut dyn GradCtx, v: crate::ops::Value) -> Result<crate::ops::Value> {
    let shape = g.input_shape(0);
    let dims = dims_of(g)?;
    reshaped(g, v, &reduced(&shape, &dims, true))
}

/// A value in a shape of as many elements.
pub(super) fn reshaped(g: &mut dyn GradCtx, v: crate::ops::Value, shape: &[usize]) -> Result<crate::ops::Value> {
    if *g.shape(v) == *shape { Ok(v) } else { g.call("reshape", &[v], &[("shape", shape.into())]) }
}

pub(super) fn dims_of(g: &dyn GradCtx) -> Result<Vec<usize>> {
    let rank = g.input_shape(0).len();
    match g.attr("dims")? {
        AttrValue::Ints(v) if v.is_empty() => Ok((0..rank).collect()),
        AttrValue::Ints(v) => v.iter().map(|d| crate::ops::normalize_dim(*d, rank)).collect(),
        v => Err(Error::argument(format!("dims must be a list, not {v}"))),
    }
}

const SAMPLES: &[&str] = &[
    "f32[3, 5]",
    "f32[4, 3, 2]; dims=[1]",
    "f64[4, 3, 2]; dims=[0, -1], keepdim=true",
    "i32[3, 4]; dims=[0]",
    "f32[]; dims=[-1]",
];

fn sum() -> Result<OpDef> {
    Ok(base("sum", "The sum over dims (none given: all). Integers and bools sum to i64. Over a split dim the result is P(sum): it is reduced when \
         a later op needs it.")?
        .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
            let d = c.input(0)?.dtype;
            Ok([if d.is_float() { d } else { DType::I64 }].into_iter().collect())
        })))
        .linear_by_parts()
        .get_sbp(|c| {
            let dims = c.dims("dims", c.shape(0)?.len())?;
            // A widening sum of partial integers would be summed before it wraps: only equal dtypes pass P.
            let d = c.input(0)?.dtype;
            let passing: &[ReduceOp] = if d.is_float() || d == DType::I64 { &[ReduceOp::Sum] } else { &[] };
            signatures(c, &dims, Some(ReduceOp::Sum), passing)
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dy = unreduced(g, dy)?;
            let shape = g.input_shape(0);
            let dx = g.call("expand", &[dy], &[("shape", shape.as_slice().into())])?;
            g.set(0, dx)
        }))
        .samples(SAMPLES))
}

fn mean() -> Result<OpDef> {
    // Of integers the function `mean` takes the mean of f64.
    let mut op = base(
        "mean",
        "The mean over dims (none given: all); of no elements NaN. Over a split dim the result is P(sum).",
    )?;
    op.sig.inputs[0].dtypes = DTypeClass::Float.into();
    Ok(op
        .by_name_only()
        .dtype(DTypeRule::Input(0))
        .linear_by_parts()
        .get_sbp(|c| {
            // Each rank divides by the logical count before it rounds: a part of a mean is no larger than the elements.
            let dims = c.dims("dims", c.shape(0)?.len())?;
            signatures(c, &dims, Some(ReduceOp::Sum), &[ReduceOp::Sum])
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let dy = unreduced(g, dy)?;
            let shape = g.input_shape(0);
            let n: usize = dims_of(g)?.iter().map(|d| shape.get(*d).copied().unwrap_or(1)).product();
            let share = g.call("div_scalar", &[dy], &[("s", Scalar::Float(n as f64).into())])?;
            let dx = g.call("expand", &[share], &[("shape", shape.as_slice().into())])?;
            g.set(0, dx)
        }))
        .samples(&SAMPLES.iter().copied().filter(|s| !s.starts_with('i')).collect::<Vec<_>>())
        .samples(&["bf16[3, 4]; dims=[0]"]))
}

fn extreme(name: &str, p: ReduceOp) -> Result<OpDef> {
    Ok(base(
        name,
        match p {
            ReduceOp::Max => "The largest element over dims (none given: all). Over a split dim the result is P(max).",
            _ => "The smallest element over dims (none given: all). Over a split dim the result is P(min).",
        },
    )?
    .check(|c| {
        let shape = c.shape(0)?;
        let dims = c.dims("dims", shape.len())?;
        match dims.iter().find(|d| shape.get(**d) == Some(&0)) {
            Some(d) => Err(Error::shape(format!("no element to choose from: dim {d} is empty"))),
            None => Ok(()),
        }
    })
    .get_sbp(move |c| signatures(c, &c.dims("dims", c.shape(0)?.len())?, Some(p), &[p]))
    .grad(Grad::rule_saving(&[0], &[0], |g| {
        // Ties share the gradient, as PyTorch's amax and amin do.
        let Some(dy) = g.grad(0) else { return Ok(()) };
        let (x, y) = (g.input(0)?, g.output(0)?);
        let (dy, y) = (unreduced(g, dy)?, unreduced(g, y)?);
        let dims = g.attr("dims")?;
        let dx = share_among_equals(g, (x, y), dy, dims)?;
        g.set(0, dx)
    }))
    .samples(SAMPLES))
}

/// The gradient of what an extreme element was chosen from, with the reduced dims as 1 in the element and its gradient.
pub(super) fn share_among_equals(
    g: &mut dyn GradCtx,
    (x, y): (crate::ops::Value, crate::ops::Value),
    dy: crate::ops::Value,
    dims: AttrValue,
) -> Result<crate::ops::Value> {
    let hit = g.call("eq", &[x, y], &[])?;
    // An integer: halves hold no large count.
    let count = g.call("sum", &[hit], &[("dims", dims), ("keepdim", true.into())])?;
    let share = g.call("div", &[dy, count], &[])?;
    g.call("mul", &[hit, share], &[])
}

fn quantor(name: &str, p: ReduceOp, doc: &str) -> Result<OpDef> {
    Ok(base(name, doc)?
        .lowered_for(DTypeKind::Complex, by_truth)
        .dtype(DTypeRule::Fixed(vec![DType::Bool]))
        .get_sbp(move |c| {
            let dims = c.dims("dims", c.shape(0)?.len())?;
            let passing: &[ReduceOp] = if c.input(0)?.dtype == DType::Bool { &[p] } else { &[] };
            signatures(c, &dims, Some(p), passing)
        })
        .grad(Grad::None)
        .samples(&["bool[3, 5]; dims=[1]", "i32[3, 4]", "bool[]; dims=[0]"]))
}

fn arg(name: &str, max: bool) -> Result<OpDef> {
    Ok(OpDef::new(&format!("{name}(x; dim: int, keepdim: bool = false) -> index"))?
        .function(&format!("{name}(Tensor x, Int dim, Bool keepdim=false) -> Tensor"))
        .doc(&format!(
            "The i64 index of the {} element along a dim; among equals the first; NaN wins.",
            if max { "largest" } else { "smallest" }
        ))
        .strided()
        .shape1(|c| {
            let shape = c.shape(0)?;
            let d = c.dim("dim", shape.len())?;
            Ok(reduced(shape, &[d], c.bool("keepdim")?))
        })
        .dtype(DTypeRule::Fixed(vec![DType::I64]))
        .check(|c| {
            let shape = c.shape(0)?;
            match shape.get(c.dim("dim", shape.len())?) {
                Some(0) => Err(Error::shape("no element to choose from: the dim is empty")),
                _ => Ok(()),
            }
        })
        .get_sbp(|c| signatures(c, &[c.dim("dim", c.shape(0)?.len())?], None, &[]))
        .lowering(
            |c| {
                let rank = c.shape(0)?.len();
                let d = c.dim("dim", rank)?;
                Ok((d < rank).then(|| Signature::new(&[Sbp::Split(d)], &[Sbp::Broadcast])).into_iter().collect())
            },
            move |e, call| {
                // The extreme value over all shards; then the least logical index that has it.
                let x = call.inputs[0].ok_or_else(|| Error::argument("x is missing"))?;
                let dim = call.attrs[0].clone();
                let dims = as_dims(&dim);
                let best = if max { "amax" } else { "amin" };
                let m = e.call(best, &[x], &[("dims", dims.clone()), ("keepdim", true.into())])?;
                let m = e.reduce_partials(m)?;
                let at = e.call("match_index", &[x, m], &[("dim", dim)])?;
                let first = e.call("amin", &[at], &[("dims", dims), ("keepdim", call.attrs[1].clone())])?;
                Ok(vec![e.reduce_partials(first)?])
            },
        )
        .grad(Grad::None)
        .samples(&["f32[3, 5]; dim=1", "f32[4, 3, 2]; dim=0, keepdim=true", "i32[6]; dim=-1", "f32[]; dim=0"]))
}

/// An op that only asks which elements are zero, of the answers.
pub(super) fn by_truth(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let truth = e.call("ne_scalar", &[x], &[("s", 0i64.into())])?;
    let attrs: Vec<(&str, AttrValue)> =
        call.op.sig.attrs.iter().zip(call.attrs).map(|(a, v)| (a.name.as_str(), v.clone())).collect();
    e.emit(&call.op.sig.name, &[Some(truth)], &attrs)
}

/// The logical index along `dim` where x equals m, elsewhere the largest i64: what argmax over a split dim is made of.
fn match_index() -> Result<OpDef> {
    Ok(OpDef::new("match_index(x, m; dim: int) -> index")?
        .doc("The logical index along a dim where x equals m (NaN equals NaN), elsewhere the largest i64.")
        .by_name_only()
        .check(|c| {
            super::dim_exists(c)?;
            super::one_dtype(c, &[0, 1])?;
            let (x, d) = (c.shape(0)?, c.dim("dim", c.shape(0)?.len())?);
            let mut want: Dims = x.into();
            match want.get_mut(d) {
                Some(n) => *n = 1,
                None => return Err(Error::shape("a tensor without dims has none to look along")),
            }
            super::dims_are(c, 1, &want)
        })
        .dtype(DTypeRule::Fixed(vec![DType::I64]))
        .get_sbp(|c| {
            let (x, m) = (c.shape(0)?, c.shape(1)?);
            let split = |d| if m.get(d) == x.get(d) { Sbp::Split(d) } else { Sbp::Broadcast };
            Ok((0..x.len()).map(|d| Signature::new(&[Sbp::Split(d), split(d)], &[Sbp::Split(d)])).collect())
        })
        .grad(Grad::None)
        .samples(&["f32[3, 5] f32[3, 1]; dim=1"]))
}

fn cumsum() -> Result<OpDef> {
    Ok(OpDef::new("cumsum(x; dim: int, reverse: bool = false) -> y")?
        .linear_by_parts()
        .doc("The running sum along a dim, with `reverse` from its end.")
        .function("cumsum(Tensor x, Int dim, *, Bool reverse=false) -> Tensor")
        .check(super::dim_exists)
        .dtype(DTypeRule::Fn(std::sync::Arc::new(|c| {
            let d = c.input(0)?.dtype;
            Ok([if d.is_float() { d } else { DType::I64 }].into_iter().collect())
        })))
        .get_sbp(|c| {
            let rank = c.shape(0)?.len();
            let dim = c.dim("dim", rank)?;
            let mut s: Vec<Signature> =
                (0..rank).filter(|d| *d != dim).map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(d)])).collect();
            let d = c.input(0)?.dtype;
            if d.is_float() || d == DType::I64 {
                s.push(Signature::new(&[Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
            }
            Ok(s)
        })
        .grad(Grad::rule_saving(&[], &[], |g| {
            // The running sum from the other end.
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let other = !matches!(g.attr("reverse")?, AttrValue::Bool(true));
            let dx = g.call("cumsum", &[dy], &[("dim", g.attr("dim")?), ("reverse", other.into())])?;
            g.set(0, dx)
        }))
        .samples(&["f32[3, 5]; dim=1", "i32[4]; dim=0", "f64[4, 3]; dim=0, reverse=true", "f32[]; dim=-1"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        sum(),
        mean(),
        prod(),
        extreme("amax", ReduceOp::Max),
        extreme("amin", ReduceOp::Min),
        quantor("any", ReduceOp::Max, "True if some element is not zero."),
        quantor("all", ReduceOp::Min, "True if no element is zero."),
        arg("argmax", true),
        arg("argmin", false),
        match_index(),
        cumsum(),
    ]
}
