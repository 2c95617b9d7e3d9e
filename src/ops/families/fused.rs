//! Fused calls: what the pass `fuse` of a graph makes of several elementwise ones, and of a reduction that reads them.

use super::reduce;
use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, GradCtx, InferCtx, OpDef, ShapeRule, Value};
use crate::sbp::{ReduceOp, Sbp, Signature, elementwise_signatures, elementwise_splits};
use oflow_kernels::expr::{Chain, Class};
use oflow_kernels::{DType, Dims, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

const DOC: &str = "Elementwise functions one after the other, with the bits of a call for each.

Graphs make it of calls of elementwise ops. `chain` has the functions (`x0 * x1 as bf16; tanh(t0)`), `compute` the dtype that all of them \
compute in, `dtype` that of the result.";

const REDUCTION_DOC: &str = "A reduction of what elementwise functions give, over its last dims, with the bits of a call for each.

Graphs make it of a reduction and the calls that it alone reads: what these give is not stored. `chain`, `compute` and `dtype` are those of \
`fused`, `reduce` is the name of the reduction, `last` the number of dims.";

/// Parts of the one expression that is asked whether partial values pass through a chain. A larger one takes whole values.
const MOST_PARTS: usize = 256;

/// The chain of a call.
pub(crate) fn chain_of(attr: &str, inputs: usize) -> Result<Chain> {
    Ok(Chain::parse(attr, inputs)?)
}

fn check(c: &InferCtx<'_>) -> Result<()> {
    let compute = c.dtype_attr("compute")?;
    if !matches!(compute, DType::F32 | DType::F64 | DType::I64) {
        return Err(Error::dtype(format!("a chain computes in f32, f64 or i64, not in {compute}")));
    }
    if let Some(d) = c.present().map(|t| t.dtype).chain([c.dtype_attr("dtype")?]).find(|d| !d.is_real()) {
        return Err(Error::dtype(format!("a chain computes with real numbers and truth values, not with {d}")));
    }
    let chain = chain_of(c.str("chain")?, c.inputs.len())?;
    Ok(chain.check_class(Class::of(compute.computed()?))?)
}

/// The shape of what a chain gives.
fn shape_of(c: &InferCtx<'_>) -> Result<Dims> {
    crate::ops::broadcast_shapes(c.present().map(|t| t.shape.as_slice()))
}

fn signatures(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let ins: Vec<(&[usize], DType)> = c.present().map(|t| (t.shape.as_slice(), t.dtype)).collect();
    let shape = shape_of(c)?;
    let chain = chain_of(c.str("chain")?, c.inputs.len())?;
    // What is rounded in between is no sum of what parts would be rounded to.
    let whole = chain.links().iter().all(|l| l.dtype.is_none()).then(|| chain.as_expr(MOST_PARTS)).flatten();
    Ok(match whole {
        Some(e) => elementwise_signatures(&e, &ins, (&shape, c.dtype_attr("dtype")?)),
        None => elementwise_splits(&ins, &shape),
    })
}

fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    match g.grad(0) {
        Some(dy) => chain_gradient(g, dy),
        None => Ok(()),
    }
}

/// Sets the gradients of the inputs of a chain from that of what it gives.
fn chain_gradient(g: &mut dyn GradCtx, dy: Value) -> Result<()> {
    let n = g.inputs();
    let (AttrValue::Str(text), compute) = (g.attr("chain")?, g.attr("compute")?) else { return Ok(()) };
    let chain = chain_of(&text, n)?;
    for i in 0..n {
        let Some(dtype) = g.input_dtype(i).filter(|d| g.needs(i) && d.has_gradients()) else { continue };
        let Some((read, chain)) = chain.gradient(i).map(Chain::over_what_it_reads) else { continue };
        let values: Vec<Value> =
            read.iter().map(|k| if *k < n { g.input(*k) } else { Ok(dy) }).collect::<Result<_>>()?;
        let text = AttrValue::Str(chain.to_string().into());
        let dx = g.call("fused", &values, &[("chain", text), ("compute", compute.clone()), ("dtype", dtype.into())])?;
        g.set(i, dx)?;
    }
    Ok(())
}

pub(super) fn ops() -> Vec<Result<OpDef>> {
    let op = || {
        Ok(OpDef::new("fused(xs...; chain: str, compute: dtype, dtype: dtype) -> y")?
            .doc(DOC)
            .strided()
            .shape_rule(ShapeRule::Broadcast)
            .dtype(DTypeRule::Attr)
            .check(check)
            .get_sbp(signatures)
            .grad(Grad::rule(gradient))
            .traits(|t| {
                t.elementwise = true;
                t.hidden = true;
            })
            .samples(&[
                "f32[4, 6] f32[6]; chain=x0 * x1; tanh(t0); t1 + x0, compute=f32, dtype=f32",
                "f32[3, 5] f32[3, 1]; chain=x0 + x1; t0 - x0 * x1, compute=f32, dtype=f32",
                "f32[3, 5] f32[3, 5]; chain=x0 + x1; -t0, compute=f32, dtype=f32",
                "f64[5]; chain=sin(x0); t0 * t0, compute=f64, dtype=f64",
                "i64[3, 4] bool[4]; chain=x0 * x0; select(x1, t0, 2), compute=i64, dtype=i64",
            ]))
    };
    vec![op(), reduction()]
}

/// Reductions that read a chain, and how their partial results are joined.
const REDUCTIONS: [(&str, ReduceOp); 4] =
    [("sum", ReduceOp::Sum), ("mean", ReduceOp::Sum), ("amax", ReduceOp::Max), ("amin", ReduceOp::Min)];

/// Whether a reduction reads a chain that gives elements of a dtype. Those that are folded as a wider dtype would be converted first.
pub(crate) fn reads_chain(reduction: &str, made: DType) -> bool {
    let known = REDUCTIONS.iter().any(|(name, _)| *name == reduction);
    known && made.is_real() && !matches!(made, DType::I16 | DType::U16 | DType::U32)
}

/// The dims that a call reduces: the last ones of what the chain gives.
fn reduced_dims(c: &InferCtx<'_>, rank: usize) -> Result<std::ops::Range<usize>> {
    let last = c.int("last")?;
    let first = usize::try_from(last).ok().and_then(|last| rank.checked_sub(last));
    let none = || Error::argument(format!("a chain that gives {rank} dims has no last {last} to reduce"));
    Ok(first.ok_or_else(none)?..rank)
}

fn join_of(c: &InferCtx<'_>) -> Result<ReduceOp> {
    let name = c.str("reduce")?;
    let found = REDUCTIONS.iter().find(|(known, _)| *known == name);
    found.map(|(_, op)| *op).ok_or_else(|| {
        let known = REDUCTIONS.map(|(name, _)| name).join(", ");
        Error::argument(format!("no reduction '{name}' reads a chain")).help(format!("these do: {known}"))
    })
}

fn check_reduction(c: &InferCtx<'_>) -> Result<()> {
    check(c)?;
    let (shape, made, op) = (shape_of(c)?, c.dtype_attr("dtype")?, join_of(c)?);
    let dims = reduced_dims(c, shape.len())?;
    let name = c.str("reduce")?;
    if !reads_chain(name, made) || name == "mean" && !made.is_float() {
        return Err(Error::dtype(format!("'{name}' does not reduce elements of {made} as they are computed"))
            .help("call the reduction on the result of the chain"));
    }
    match shape[dims].contains(&0) && op != ReduceOp::Sum {
        true => Err(Error::shape("no element to choose from: a dim is empty")),
        false => Ok(()),
    }
}

/// The dtype of a reduction of elements of a dtype.
fn reduced_dtype(name: &str, made: DType) -> DType {
    if name == "sum" && !made.is_float() { DType::I64 } else { made }
}

/// Layouts that the chain passes on to what it gives, and the reduction from there.
fn reduction_signatures(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let (shape, op, keep) = (shape_of(c)?, join_of(c)?, c.bool("keepdim")?);
    let (dims, made) = (reduced_dims(c, shape.len())?, c.dtype_attr("dtype")?);
    let equal = reduced_dtype(c.str("reduce")?, made) == made;
    let over: Vec<usize> = dims.collect();
    let after = |s: Sbp| match s {
        Sbp::Split(d) if over.contains(&d) => Some(Sbp::Partial(op)),
        Sbp::Split(d) => Some(Sbp::Split(reduce::out_dim(d, &over, keep))),
        // A widening sum of partial integers would be summed before it wraps.
        Sbp::Partial(p) => (p == op && equal).then_some(s),
        Sbp::Broadcast => None,
    };
    let with = |s: Signature| Some(Signature { outputs: [after(s.outputs[0])?].into_iter().collect(), ..s });
    Ok(signatures(c)?.into_iter().filter_map(with).collect())
}

/// The gradient of what the chain gives, which is computed once more where the rule reads it; then those of the inputs.
fn reduction_gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let (AttrValue::Str(name), AttrValue::Int(last)) = (g.attr("reduce")?, g.attr("last")?) else { return Ok(()) };
    let inputs: Vec<Value> = (0..g.inputs()).map(|i| g.input(i)).collect::<Result<_>>()?;
    let shapes: Vec<Dims> = (0..g.inputs()).map(|i| g.input_shape(i)).collect();
    let shape = crate::ops::broadcast_shapes(shapes.iter().map(|s| s.as_slice()))?;
    let first = shape.len() - last as usize;
    let keep: Dims = (0..shape.len()).map(|d| if d < first { shape[d] } else { 1 }).collect();
    let dy = reduce::reshaped(g, dy, &keep)?;
    let dx = match &*name {
        "sum" | "mean" => {
            let n: usize = shape[first..].iter().product();
            let share = match &*name {
                "mean" => g.call("div_scalar", &[dy], &[("s", Scalar::Float(n as f64).into())])?,
                _ => dy,
            };
            g.call("expand", &[share], &[("shape", shape.as_slice().into())])?
        }
        _ => {
            let chain = ["chain", "compute", "dtype"];
            let attrs = chain.iter().map(|n| Ok((*n, g.attr(n)?))).collect::<Result<Vec<_>>>()?;
            let x = g.call("fused", &inputs, &attrs)?;
            let y = g.output(0)?;
            let y = reduce::reshaped(g, y, &keep)?;
            let dims: SmallVec<[i64; 6]> = (first as i64..shape.len() as i64).collect();
            reduce::share_among_equals(g, (x, y), dy, AttrValue::Ints(dims))?
        }
    };
    chain_gradient(g, dx)
}

fn reduction() -> Result<OpDef> {
    let text = "fused_reduce(xs...; chain: str, compute: dtype, dtype: dtype, reduce: str, last: int, keepdim: bool = false) -> y";
    Ok(OpDef::new(text)?
        .doc(REDUCTION_DOC)
        .strided()
        .shape1(|c| {
            let shape = shape_of(c)?;
            let dims: Vec<usize> = reduced_dims(c, shape.len())?.collect();
            Ok(reduce::reduced(&shape, &dims, c.bool("keepdim")?))
        })
        .dtype(DTypeRule::Fn(Arc::new(|c| {
            Ok([reduced_dtype(c.str("reduce")?, c.dtype_attr("dtype")?)].into_iter().collect())
        })))
        .check(check_reduction)
        .get_sbp(reduction_signatures)
        .flops(|c| Ok(shape_of(c)?.iter().product::<usize>() as u64))
        .grad(Grad::rule(reduction_gradient))
        .traits(|t| {
            t.hidden = true;
            t.cpu_only = true;
        })
        .samples(&[
            "f32[4, 6] f32[6]; chain=x0 * x1; tanh(t0), compute=f32, dtype=f32, reduce=sum, last=1",
            "f32[3, 5] f32[3, 1]; chain=x0 - x1; t0 * t0, compute=f32, dtype=f32, reduce=mean, last=2",
            "f64[4, 3, 2]; chain=sin(x0), compute=f64, dtype=f64, reduce=amax, last=1, keepdim=true",
            "f32[3, 5] f32[3, 5]; chain=x0 + x1; -t0, compute=f32, dtype=f32, reduce=sum, last=1",
            "i64[3, 4] bool[4]; chain=select(x1, x0, -x0), compute=i64, dtype=i64, reduce=amin, last=1",
            "f32[5]; chain=x0 > 0, compute=f32, dtype=bool, reduce=sum, last=1",
        ]))
}
