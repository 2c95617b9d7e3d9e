//! Fused calls: what the pass `fuse` of a graph makes of several elementwise ones.

use crate::error::{Error, Result};
use crate::ops::{AttrValue, DTypeRule, Grad, GradCtx, InferCtx, OpDef, ShapeRule, Value};
use crate::sbp::{Signature, elementwise_signatures, elementwise_splits};
use oflow_kernels::DType;
use oflow_kernels::expr::{Chain, Class};

const DOC: &str = "Elementwise functions one after the other, with the bits of a call for each.

Graphs make it of calls of elementwise ops. `chain` has the functions (`x0 * x1 as bf16; tanh(t0)`), `compute` the dtype that all of them \
compute in, `dtype` that of the result.";

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

fn signatures(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let ins: Vec<(&[usize], DType)> = c.present().map(|t| (t.shape.as_slice(), t.dtype)).collect();
    let shape = crate::ops::broadcast_shapes(ins.iter().map(|(shape, _)| *shape).collect::<Vec<_>>())?;
    let chain = chain_of(c.str("chain")?, c.inputs.len())?;
    // What is rounded in between is no sum of what parts would be rounded to.
    let whole = chain.links().iter().all(|l| l.dtype.is_none()).then(|| chain.as_expr(MOST_PARTS)).flatten();
    Ok(match whole {
        Some(e) => elementwise_signatures(&e, &ins, (&shape, c.dtype_attr("dtype")?)),
        None => elementwise_splits(&ins, &shape),
    })
}

fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
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
    vec![op()]
}
