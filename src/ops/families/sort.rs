//! Order along a dim: sorted, the first of the sorted line, one element of it. Each gives the elements and where they stood, so all
//! have one gradient. Equal elements keep their order, so every layout gives the same indices.

use super::gather::dim_of;
use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Emit, Grad, GradCtx, InferCtx, LowerCall, OpDef, ShapeRule, Value};
use crate::sbp::{Sbp, Signature};
use oflow_kernels::{DType, Dims, Scalar};
use smallvec::smallvec;

const SORT: &str = "The elements of each line along a dim from the smallest to the largest, or with `descending` from the largest, and where \
    they stood. NaN count as the largest. Equal elements always keep their order, so `stable` changes nothing.

```
use oflow::prelude::*;
let x = from_vec(vec![3.0f32, 1.0, 2.0], [3], Device::Cpu)?;
let sorted = x.sort(0, false)?;
assert_eq!(sorted[0].to_vec::<f32>()?, [1.0, 2.0, 3.0]);
assert_eq!(sorted[1].to_vec::<i64>()?, [1, 2, 0]);
# Ok::<(), oflow::Error>(())
```";

const TOPK: &str = "The k largest elements of each line along a dim, or with `largest=false` the smallest, and where they stood. They are always \
    sorted, so `sorted` changes nothing; of equal ones the first are taken. NaN count as the largest.";

const KTHVALUE: &str = "The k-th smallest element of each line along a dim, k counted from 1, and where it stood. NaN count as the largest.";

const MEDIAN: &str = "The median of each line along a dim, of an even number of elements the lower one of the two, and where it stood. NaN wins.";

/// The dtypes of elements and their indices.
fn dtypes() -> DTypeRule {
    DTypeRule::Fn(std::sync::Arc::new(|c| Ok(smallvec![c.input(0)?.dtype, DType::I64])))
}

/// Gives the gradient of each sorted element back: the place where it stood.
pub(super) fn chosen(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let shape = g.input_shape(0);
    if shape.is_empty() {
        return g.set(0, dy);
    }
    let dim = dim_of(g)?;
    let at = g.output(1)?;
    let mut kept = g.shape(dy);
    let mut lines = [dy, at];
    if kept.len() < shape.len() {
        kept.insert(dim, 1);
        for v in &mut lines {
            *v = g.call("reshape", &[*v], &[("shape", kept.as_slice().into())])?;
        }
    }
    let dx = g.call("scatter_sum", &lines, &[("dim", dim.into()), ("rows", shape[dim].into())])?;
    g.set(0, dx)
}

/// S of every dim but the one that is ordered.
fn others(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let rank = c.shape(0)?.len();
    let dim = c.dim("dim", rank)?;
    let split = (0..rank).filter(|d| *d != dim).map(Sbp::Split);
    Ok(split.map(|s| Signature::new(&[s], &[s, s])).collect())
}

/// The dim, and its size: that of a tensor without dims is 1.
fn ordered(c: &InferCtx<'_>) -> Result<(usize, usize)> {
    let shape = c.shape(0)?;
    let dim = c.dim("dim", shape.len())?;
    Ok((dim, shape.get(dim).copied().unwrap_or(1)))
}

fn sort() -> Result<OpDef> {
    Ok(OpDef::new("sort(x; dim: int = -1, descending: bool = false, stable: bool = false) -> (values, indices)")?
        .doc(SORT)
        .function("sort(Tensor x, Int dim=-1, Bool descending=false, *, Bool stable=false) -> (Tensor values, Tensor indices)")
        .check(super::dim_exists)
        .shape_rule(ShapeRule::SameAsInput)
        .dtype(dtypes())
        .get_sbp(others)
        .grad(Grad::rule_saving(&[], &[1], chosen))
        .samples(&[
            "f32[3, 5]; dim=1",
            "f64[4, 3, 2]; dim=0, descending=true",
            "i64[3, 6]<3",
            "bf16[2, 5]; descending=true",
            "bool[4, 3]; dim=-2",
            "f32[]; dim=0",
        ]))
}

/// The first elements of a split dim: those of each shard, and of these. Equal shards are lines of their own, one for each; others, and
/// those with too few elements, are gathered.
fn of_shards(e: &mut dyn Emit, call: &LowerCall<'_>) -> Result<Vec<Value>> {
    let (x, k, largest) = (call.input(0)?, call.size("k")?, call.bool("largest")?);
    let mut shape = e.shape(x);
    let dim = crate::ops::normalize_dim(call.int("dim")?, shape.len())?;
    let (shards, n) = (e.shards(x, dim), shape[dim]);
    let whole = |e: &mut dyn Emit, v: Value| match e.nd_sbp(v) {
        Some(sbp) => e.box_to(v, &sbp.map(|s| if s == Sbp::Split(dim) { Sbp::Broadcast } else { s })),
        None => Ok(v),
    };
    let first = |e: &mut dyn Emit, v: Value, dim: usize| -> Result<[Value; 2]> {
        let attrs = [("k", k.into()), ("dim", dim.into()), ("largest", largest.into())];
        let outs = e.emit("topk", &[Some(v)], &attrs)?;
        Ok([outs[0], outs[1]])
    };
    if shards < 2 || k == 0 || n % shards != 0 || n / shards < k {
        let x = whole(e, x)?;
        return Ok(first(e, x, dim)?.into());
    }
    let each = n / shards;
    shape[dim] = each;
    shape.insert(dim, shards);
    let lines = e.call("reshape", &[x], &[("shape", shape.as_slice().into())])?;
    let found = first(e, lines, dim + 1)?;
    shape.remove(dim);
    shape[dim] = shards * k;
    let mut candidates = found;
    for v in &mut candidates {
        let flat = e.call("reshape", &[*v], &[("shape", shape.as_slice().into())])?;
        *v = whole(e, flat)?;
    }
    // Of equal candidates the first stood first, too: shards are in order.
    let [values, at] = first(e, candidates[0], dim)?;
    let inside = e.call("gather", &[candidates[1], at], &[("dim", dim.into())])?;
    let number = |n: usize| [("s", Scalar::Int(n as i64).into())];
    let shard = e.call("floor_divide_scalar", &[at], &number(k))?;
    let before = e.call("mul_scalar", &[shard], &number(each))?;
    Ok(vec![values, e.call("add", &[inside, before], &[])?])
}

fn topk() -> Result<OpDef> {
    Ok(OpDef::new("topk(x; k: int, dim: int = -1, largest: bool = true, sorted: bool = true) -> (values, indices)")?
        .doc(TOPK)
        .check(|c| {
            let ((dim, n), k) = (ordered(c)?, c.size("k")?);
            match k <= n {
                true => Ok(()),
                false => Err(Error::argument(format!("k is {k}, dim {dim} has {n} elements"))),
            }
        })
        .shapes(|c| {
            let mut shape: Dims = c.shape(0)?.into();
            let dim = ordered(c)?.0;
            if let Some(n) = shape.get_mut(dim) {
                *n = c.size("k")?;
            }
            Ok(smallvec![shape.clone(), shape])
        })
        .dtype(dtypes())
        .get_sbp(others)
        .lowering(
            |c| {
                let (dim, _) = ordered(c)?;
                let whole = Signature::new(&[Sbp::Split(dim)], &[Sbp::Broadcast, Sbp::Broadcast]);
                Ok(if c.shape(0)?.is_empty() { vec![] } else { vec![whole] })
            },
            of_shards,
        )
        .grad(Grad::rule_saving(&[], &[1], chosen))
        .samples(&[
            "f32[3, 12]; k=2",
            "i64[8, 2]<3; k=2, dim=0, largest=false",
            "f32[3, 7]; k=3",
            "f64[5, 3, 2]; k=2, dim=0, largest=false",
            "i64[3, 6]<3; k=4",
            "bf16[2, 5]; k=1",
            "f32[6]; k=6",
            "f32[]; k=1, dim=0",
        ]))
}

/// One element of each line.
fn nth(text: &str, doc: &str) -> Result<OpDef> {
    Ok(OpDef::new(text)?
        .doc(doc)
        .shapes(|c| {
            let shape = super::reduce::reduced(c.shape(0)?, &[ordered(c)?.0], c.bool("keepdim")?);
            Ok(smallvec![shape.clone(), shape])
        })
        .dtype(dtypes())
        .get_sbp(|c| {
            let kept = super::reduce::signatures(c, &[ordered(c)?.0], None, &[])?;
            Ok(kept.into_iter().map(|s| Signature::new(&s.inputs, &[s.outputs[0], s.outputs[0]])).collect())
        })
        .grad(Grad::rule_saving(&[], &[1], chosen)))
}

fn kthvalue() -> Result<OpDef> {
    Ok(nth("kthvalue(x; k: int, dim: int = -1, keepdim: bool = false) -> (values, indices)", KTHVALUE)?
        .check(|c| {
            let ((dim, n), k) = (ordered(c)?, c.size("k")?);
            match k >= 1 && k <= n {
                true => Ok(()),
                false => Err(Error::argument(format!("k is {k}, dim {dim} has {n} elements")).help("k counts from 1")),
            }
        })
        .samples(&[
            "f32[3, 7]; k=3",
            "f64[5, 3, 2]; k=2, dim=0, keepdim=true",
            "i32[3, 6]<3; k=6, dim=-1",
            "f32[]; k=1",
        ]))
}

fn median() -> Result<OpDef> {
    Ok(nth("median(x; dim: int, keepdim: bool = false) -> (values, indices)", MEDIAN)?
        .check(|c| match ordered(c)? {
            (dim, 0) => Err(Error::shape(format!("no element to choose from: dim {dim} is empty"))),
            _ => Ok(()),
        })
        .function("median(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)")
        .samples(&["f32[3, 7]; dim=1", "f64[4, 3, 2]; dim=0, keepdim=true", "i64[3, 6]<3; dim=-1", "f32[]; dim=0"]))
}

fn middle() -> Result<OpDef> {
    Ok(OpDef::new("middle(x) -> (y, index)")?
        .doc("The median of all elements, of an even number the lower one of the two, and its place in row-major order. NaN wins.")
        .by_name_only()
        .check(|c| match c.input(0)? {
            x if x.is_empty() && !x.dtype.is_float() => Err(Error::shape("no element to choose from: the tensor is empty")),
            _ => Ok(()),
        })
        .shapes(|_| Ok(smallvec![Dims::new(), Dims::new()]))
        .dtype(dtypes())
        .grad(Grad::rule_saving(&[0], &[0], |g| {
            // Equal elements share the gradient, and NaN do.
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let (x, y) = (g.input(0)?, g.output(0)?);
            let hit = g.call("eq", &[x, y], &[])?;
            let (no, none) = (g.call("isnan", &[x], &[])?, g.call("isnan", &[y], &[])?);
            let both = g.call("logical_and", &[no, none], &[])?;
            let hit = g.call("logical_or", &[hit, both], &[])?;
            let count = g.call("sum", &[hit], &[])?;
            let share = g.call("div", &[dy, count], &[])?;
            let dx = g.call("mul", &[hit, share], &[])?;
            g.set(0, dx)
        }))
        .samples(&["f32[3, 5]", "f64[4, 3, 2]", "i64[6]<3", "f32[]", "f32[0, 2]"]))
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![sort(), topk(), kthvalue(), median(), middle()]
}
